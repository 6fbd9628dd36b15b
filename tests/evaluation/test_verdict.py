"""The verdict: every word of it follows from numbers computed here without its code."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss

from cgnlearn import CGNClassifier
from cgnlearn.evaluation.run import Run, Unit
from cgnlearn.evaluation.significance import compare, interval
from cgnlearn.evaluation.splits import cut
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, FoldResult, Study
from cgnlearn.evaluation.verdict import Verdict, beside, calibration, standings


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(3)
    y = np.arange(160) % 2
    X = pd.DataFrame({"a": y + rng.normal(size=160), "b": 0.7 * y + rng.normal(size=160), "c": rng.normal(size=160)})
    models = {
        "proposed": CGNClassifier(),
        "other": CGNClassifier("complete"),
        LOGISTIC: LogisticRegression(),
        BASELINE: DummyClassifier(strategy="prior"),
    }
    labels = np.array(["healthy", "ill"])[y]
    made = Study("a set", X, labels, models, cut(labels, n_folds=5, n_repeats=2), proposed="proposed")
    run = Run(made.work())
    list(run.go_on())
    return replace(made, results=run.results)


def by_fold(study, model, metric):
    """Values in each fold by scikit-learn."""
    found = {}
    for result in study.results:
        if result.unit.name == model and result.log_proba is not None:
            truth, proba = study.y[result.rows], np.exp(result.log_proba)
            if metric == "accuracy":
                value = accuracy_score(truth, np.array(study.classes)[proba.argmax(axis=1)])
            else:
                value = -log_loss(truth, proba / proba.sum(axis=1, keepdims=True), labels=study.classes)
            found[result.unit[1:]] = value
    return found


def expected_interval(values, n_folds):
    values = np.asarray(values)
    scale = values.std(ddof=1) * np.sqrt(1 / len(values) + 1 / (n_folds - 1))
    return stats.t.interval(0.95, len(values) - 1, values.mean(), scale)


def paired(study, first, second, metric):
    a, b = by_fold(study, first, metric), by_fold(study, second, metric)
    return np.array([a[fold] - b[fold] for fold in sorted(a.keys() & b.keys())])


def numbers(text):
    return [float(number) for number in re.findall(r"(?<![\w.])[+-]?\d+(?:\.\d+)?", text.replace("−", "-"))]


def test_an_interval_is_that_of_the_corrected_t_test(rng):
    for shift in (0.0, 0.3, 0.8):
        values = rng.normal(shift, 1, size=20)
        found = interval(values, n_folds=10)
        assert (found.low, found.high) == pytest.approx(expected_interval(values, 10))
        assert bool(found.sign) == (compare(values, np.zeros(20), n_folds=10).corrected_t_p < 0.05)
    assert interval(np.array([0.5]), n_folds=10) == (0.5, None, None)
    assert interval(np.array([0.5, -np.inf]), n_folds=2) == (-np.inf, None, None)
    assert interval(np.full(4, 0.5), n_folds=4) == (0.5, 0.5, 0.5)


def test_every_sentence_of_the_verdict_says_what_the_folds_say(study):
    verdict = Verdict(study)
    accuracy = np.array(list(by_fold(study, "proposed", "accuracy").values()))
    low, high = expected_interval(accuracy, 5)
    shown = numbers(verdict.headline.split(":")[0])
    assert shown == pytest.approx([100 * accuracy.mean(), 95, 100 * low, 100 * high], abs=0.051)

    for sentence, other in zip(verdict.sentences, (BASELINE, LOGISTIC), strict=False):
        assert other in sentence
        points, gain = paired(study, "proposed", other, "accuracy"), paired(study, "proposed", other, "cll")
        limits, factors = expected_interval(points, 5), np.exp([gain.mean(), *expected_interval(gain, 5)])
        expected = [100 * abs(points.mean()), 100, *(100 * limit for limit in limits), *factors]
        if abs(points.mean()) < 0.0005:
            expected = expected[2:]
        assert numbers(sentence) == pytest.approx(expected, abs=0.051)
        assert ("fewer" in sentence) == (points.mean() < 0)
        lowest, highest = expected_interval(gain, 5)
        judged = "clearly better" if lowest > 0 else "clearly worse" if highest < 0 else "no clear difference"
        assert sentence.endswith(f": {judged}.")
        told = {"clearly better": "clearly better than", "clearly worse": "clearly worse than"}
        assert f"{told.get(judged, 'not clearly')} " in verdict.headline

    first = [r for r in study.results if r.unit.name == "proposed" and r.unit.repeat == 0]
    proba = np.exp(np.concatenate([r.log_proba for r in first]))
    right = np.array(study.classes)[proba.argmax(axis=1)] == study.y[np.concatenate([r.rows for r in first])]
    bins = np.minimum((10 * proba.max(axis=1)).astype(int), 9)
    error = sum(abs((proba.max(axis=1) - right)[bins == b].sum()) for b in range(10)) / len(right)
    trust = verdict.sentences[-1]
    mean_said, share_right, measured, chance = numbers(trust)
    assert (mean_said, share_right) == pytest.approx((100 * proba.max(axis=1).mean(), 100 * right.mean()), abs=0.051)
    assert measured == pytest.approx(error, abs=0.00051)
    assert ("can be taken at their word" in trust) == (error <= chance) == ("can be trusted" in verdict.headline)


def test_the_three_numbers(study):
    right, typical, gap = Verdict(study).figures
    for figure, metric, form in ((right, "accuracy", float), (typical, "cll", np.exp)):
        own, base = (np.mean(list(by_fold(study, model, metric).values())) for model in ("proposed", BASELINE))
        assert numbers(figure.value) == pytest.approx([100 * form(own)], abs=0.051)
        assert numbers(figure.beside) == pytest.approx([100 * form(base)], abs=0.051)
    assert gap.value in Verdict(study).sentences[-1]


def test_bold_is_only_what_every_paired_difference_says(study):
    for metric in ("accuracy", "cll"):
        values = {model: np.array(list(by_fold(study, model, metric).values())) for model in study.models}
        for standing in standings(study, metric):
            own = values[standing.model]
            lows = [expected_interval(own - values[other], 5)[0] for other in values if other != standing.model]
            assert standing.is_best == (min(lows) > 0)
            assert standing.is_worse == (own.mean() < values[BASELINE].mean())


def test_worse_than_the_class_frequencies_is_never_best(study):
    """A model that is often right but gives the truth next to nothing where it is wrong."""
    sure = [
        FoldResult(r.unit, r.rows, 40 * r.log_proba - np.logaddexp.reduce(40 * r.log_proba, axis=1, keepdims=True))
        if r.unit.name in ("proposed", "other")
        else r
        for r in study.results
    ]
    bad = replace(study, results=sure)
    verdict = Verdict(bad)
    assert not verdict.is_good
    assert verdict.headline.startswith("Do not use it")
    assert "cannot be taken at their word, they are too high" in verdict.sentences[-1]
    by_cll = {standing.model: standing for standing in standings(bad, "cll")}
    assert by_cll["proposed"].is_worse
    assert not by_cll["proposed"].is_best
    assert not by_cll[BASELINE].is_worse
    alone = replace(bad, models={m: bad.models[m] for m in ("proposed", BASELINE)},
                    results=[r for r in sure if r.unit.name in ("proposed", BASELINE)])  # fmt: skip
    assert not any(s.is_best for s in standings(alone, "cll") if s.model == "proposed")


def test_models_that_answer_on_some_folds_are_compared_on_those(study):
    gone = {(0, 1), (1, 3)}
    part = [
        FoldResult(r.unit, r.rows, None) if r.unit.name == LOGISTIC and r.unit[1:] in gone else r for r in study.results
    ]
    some = replace(study, results=part)
    margin = beside(some, "proposed", LOGISTIC, "cll")
    kept = paired(some, "proposed", LOGISTIC, "cll")
    assert len(kept) == 8
    assert margin.mean == pytest.approx(kept.mean())
    assert "(on the 8 of 10 folds that both answered)" in Verdict(some).sentences[1]
    none = [FoldResult(r.unit, r.rows, None) if r.unit.name == LOGISTIC else r for r in study.results]
    assert beside(replace(study, results=none), "proposed", LOGISTIC, "cll") is None
    assert all(LOGISTIC not in sentence for sentence in Verdict(replace(study, results=none)).sentences)


def test_a_zero_probability_of_the_truth_is_infinitely_worse(study):
    results = []
    for r in study.results:
        log_proba = r.log_proba.copy()
        if r.unit == Unit(LOGISTIC, 0, 0):
            log_proba[0] = [0.0, -np.inf] if study.y[r.rows[0]] == "ill" else [-np.inf, 0.0]
        results.append(FoldResult(r.unit, r.rows, log_proba))
    verdict = Verdict(replace(study, results=results))
    assert verdict.over["cll"][LOGISTIC] == (np.inf, None, None)
    assert "incomparably more probability" in verdict.sentences[1]


def test_a_better_model_is_named(study):
    """The truth itself, hidden among the others."""
    results = [
        FoldResult(r.unit, r.rows, np.log(np.where(np.eye(2)[study.true[r.rows]] > 0, 0.99, 0.01)))
        if r.unit.name == "other"
        else r
        for r in study.results
    ]
    assert (
        "Better on the same folds, by the probability given to the truth: other."
        in Verdict(replace(study, results=results)).sentences
    )


@pytest.mark.parametrize(("sharper", "judgement"), [(1.0, "trusted"), (3.0, "not"), (0.3, "not")])
def test_calibration_is_judged_against_chance(sharper, judgement):
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 2, size=1200)
    true = (rng.random(1200) < 1 / (1 + np.exp(-odds))).astype(int)
    log_proba = -np.logaddexp(0, np.column_stack([sharper * odds, -sharper * odds]))
    made = Study("a set", pd.DataFrame({"a": odds}), true.astype(str), {"m": None}, cut(true.astype(str)))
    found = calibration(replace(made, results=[FoldResult(Unit("m", 0, 0), np.arange(1200), log_proba)]), "m")
    assert found.judgement == judgement
    assert (found.said > found.right) == (sharper > 1 or (sharper == 1 and found.said > found.right))


def test_the_error_of_chance_is_exceeded_by_chance_in_one_of_twenty():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.5, 1, size=300)
    log_proba = np.log(np.column_stack([p, 1 - p]))
    labels = np.array(["a", "b"] * 150)
    made = Study("a set", pd.DataFrame({"a": p}), labels, {"m": None}, cut(labels))
    beyond = 0
    for _ in range(60):
        true = (rng.random(300) > p).astype(int)
        now = replace(
            made, y=np.array(["a", "b"])[true], results=[FoldResult(Unit("m", 0, 0), np.arange(300), log_proba)]
        )
        beyond += calibration(now, "m").judgement != "trusted"
    assert 0 <= beyond <= 9  # 3 are expected; more than 9 of 60 happen once in 900 times
