"""The verdict: every word of it follows from numbers computed here without its code."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from cgnlearn import CGNClassifier, CGNClassifierCV
from cgnlearn.data.splits import Split, repeated_splits
from cgnlearn.evaluation.run import Run, Unit
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, FoldResult, Study
from cgnlearn.evaluation.verdict import Verdict, calibration, improvement, judgement, standings


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
    made = Study("a set", X, labels, models, repeated_splits(labels, n_folds=5, n_repeats=2), proposed="proposed")
    run = Run(made.work())
    list(run.go_on())
    return replace(made, results=run.results)


def by_row(study, model, metric, folds=None):
    """Values in each sample, averaged over the repetitions, without our metrics."""
    found = [[] for _ in study.y]
    for result in study.results:
        if result.unit.name != model or result.log_proba is None or (folds and result.unit[1:] not in folds):
            continue
        for row, said in zip(result.rows, np.exp(result.log_proba), strict=True):
            truth = study.classes.index(study.y[row])
            found[row].append(float(said.argmax() == truth) if metric == "accuracy" else -np.log(said[truth]))
    return np.array([np.mean(values) for values in found if values])


def mean_of(study, model, metric):
    return by_row(study, model, metric).mean()


def half_of(values):
    """Half the width of Student's interval, with the variance of folds that share training samples."""
    return stats.t.isf(0.025, len(values) - 1) * np.sqrt(1.25 * values.var(ddof=1) / len(values))


def expected_share(values):
    """Where the score test of a share just does not reject, with the precision of Student's interval."""
    share, n = values.mean(), len(values) / 1.25
    z = stats.norm.isf(0.025)
    if 0 < share < 1:
        n = min(n, z**2 * share * (1 - share) / half_of(values) ** 2)

    def beyond(p):
        return (share - p) ** 2 * n - z**2 * p * (1 - p)

    low = 0.0 if share == 0 else optimize.brentq(beyond, 1e-12, share - 1e-9)
    return low, 1.0 if share == 1 else optimize.brentq(beyond, share + 1e-9, 1 - 1e-12)


def expected_loss(study, model, folds=None):
    """Where the distance from the mean is as great as the half-width for a variance in proportion to the mean."""
    values, costs = by_row(study, model, "log_loss", folds), []
    for result in study.results:
        if result.unit.name == model and result.log_proba is not None and (not folds or result.unit[1:] in folds):
            costs += [(p, -log) for row in result.log_proba for p, log in zip(np.exp(row), row, strict=True)]
    p, cost = np.array(costs).T
    n = p.sum()
    mean = (p * cost).sum() / n
    least = ((p * cost**2).sum() / n - mean**2) / mean * values.mean()
    half = stats.t.isf(0.025, len(values) - 1) * np.sqrt(1.25 * max(values.var(ddof=1), least) / len(values))
    ratio = half**2 / values.mean()
    centre, root = values.mean() + ratio / 2, np.sqrt(ratio * values.mean() + ratio**2 / 4)
    return centre - root, centre + root


def paired(study, first, second, metric):
    folds = [
        {r.unit[1:] for r in study.results if r.unit.name == m and r.log_proba is not None} for m in (first, second)
    ]
    better = 1 if metric == "accuracy" else -1
    return better * np.subtract(*(by_row(study, model, metric, folds[0] & folds[1]) for model in (first, second)))


def expected_pair(study, first, second, metric):
    values = paired(study, first, second, metric)
    if metric == "accuracy":
        half = max(half_of(values), stats.t.isf(0.025, len(values) - 1) * np.sqrt(1.25) / len(values))
        return values.mean() - half, values.mean() + half
    folds = set.intersection(
        *({r.unit[1:] for r in study.results if r.unit.name == m and r.log_proba is not None} for m in (first, second))
    )
    own, other = (by_row(study, model, "log_loss", folds) for model in (first, second))
    (low, high), (other_low, other_high) = (expected_loss(study, model, folds) for model in (first, second))
    rho = 0.0 if np.ptp(own) == 0 or np.ptp(other) == 0 else np.corrcoef(own, other)[0, 1]
    a, b, c, d = other.mean() - other_low, high - own.mean(), other_high - other.mean(), own.mean() - low
    below, above = (np.sqrt(x**2 + y**2 - 2 * rho * x * y) for x, y in ((a, b), (c, d)))
    return values.mean() - below, values.mean() + above


def numbers(text):
    return [float(number) for number in re.findall(r"(?<![\w.])[+-]?\d+(?:\.\d+)?", text.replace("−", "-"))]


def test_every_sentence_of_the_verdict_says_what_the_folds_say(study):
    verdict = Verdict(study)
    accuracy = mean_of(study, "proposed", "accuracy")
    low, high = expected_share(by_row(study, "proposed", "accuracy"))
    shown = numbers(verdict.sentences[0])
    assert shown == pytest.approx([100 * accuracy, 95, 100 * low, 100 * high], abs=0.051)
    assert len(verdict.headline.split()) <= 16

    for sentence, other in zip(verdict.sentences[1:], (BASELINE, LOGISTIC), strict=False):
        assert other in sentence
        points, gain = paired(study, "proposed", other, "accuracy"), paired(study, "proposed", other, "log_loss")
        limits = expected_pair(study, "proposed", other, "accuracy")
        lowest, highest = expected_pair(study, "proposed", other, "log_loss")
        factors = np.exp([gain.mean(), lowest, highest])
        expected = [100 * abs(points.mean()), 95, *(100 * limit for limit in limits), factors[0], 95, *factors[1:]]
        if abs(points.mean()) < 0.0005:
            expected = expected[1:]
        assert numbers(sentence) == pytest.approx(expected, abs=0.051)
        assert (" lower (" in sentence) == (points.mean() < 0)
        judged = "clearly better" if lowest > 0 else "clearly worse" if highest < 0 else "no clear difference"
        assert sentence.endswith(f": {judged}.")
        told = verdict.headline if other == BASELINE else " ".join(verdict.remarks).lower()
        assert f"{judged} {'from' if judged.startswith('no') else 'than'} " in told

    aucs, slopes = [], []
    for repeat in (0, 1):
        own = [r for r in study.results if r.unit.name == "proposed" and r.unit.repeat == repeat]
        odds = np.concatenate([r.log_proba[:, 1] - r.log_proba[:, 0] for r in own])
        ill = study.y[np.concatenate([r.rows for r in own])] == "ill"
        aucs.append(roc_auc_score(ill, odds))
        slopes.append(LogisticRegression(C=np.inf).fit(odds[:, None], ill).coef_[0, 0])
    assert f"tells ill from healthy: AUC {np.mean(aucs):.2f}, clearly better than" in verdict.headline
    auc, loss, slope = verdict.figures
    assert auc.value == f"{np.mean(aucs):.3f}"
    assert numbers(loss.value) == pytest.approx([mean_of(study, "proposed", "log_loss")], abs=0.00051)
    assert numbers(loss.reference) == pytest.approx([mean_of(study, BASELINE, "log_loss")], abs=0.00051)
    assert numbers(slope.value) == pytest.approx([np.mean(slopes)], abs=0.0051)
    assert slope.value in verdict.sentences[-1]
    assert "80 events; 100 are needed" in verdict.remarks[0]


def test_accuracy_leads_only_where_no_class_is_rare(rng):
    """Three classes of a third each, and one of a fifth."""
    for sizes, leads in (((40, 40, 40), True), ((48, 48, 24), False)):
        true = np.repeat(np.arange(3), sizes)
        p = np.full((120, 3), 0.1) + 0.7 * np.eye(3)[np.where(rng.random(120) < 0.8, true, (true + 1) % 3)]
        labels = true.astype(str)
        splits = [Split(0, 0, np.empty(0, np.intp), np.arange(120))]
        models = {"m": None, BASELINE: None}
        frequencies = np.broadcast_to(np.array(sizes) / 120, (120, 3))
        results = [FoldResult(Unit(name, 0, 0), np.arange(120), np.log(of)) for name, of in
                   (("m", p / p.sum(axis=1, keepdims=True)), (BASELINE, frequencies))]  # fmt: skip
        made = Study("a set", pd.DataFrame({"a": true}), labels, models, splits, results, proposed="m", are_fitted=True)
        verdict = Verdict(made)
        names = [figure.name for figure in verdict.figures]
        assert (names[0] == "accuracy") == leads == ("classifies" in verdict.headline)
        assert ("macro AUC" in verdict.headline) != leads
        assert {"accuracy", "log loss"} < set(names)


def test_bold_is_only_what_every_paired_difference_says(study):
    for metric in ("accuracy", "log_loss"):
        for standing in standings(study, metric):
            own = standing.model
            lows = [expected_pair(study, own, other, metric)[0] for other in study.models if other != own]
            assert standing.is_best == (min(lows) > 0)
            better = 1 if metric == "accuracy" else -1
            own_mean, base_mean = mean_of(study, own, metric), mean_of(study, BASELINE, metric)
            assert standing.is_worse == (better * own_mean < better * base_mean)


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
    assert verdict.headline.startswith("Do not use proposed")
    assert "probabilities are too extreme, slope" in verdict.sentences[-1]
    by_loss = {standing.model: standing for standing in standings(bad, "log_loss")}
    assert by_loss["proposed"].is_worse
    assert not by_loss["proposed"].is_best
    assert not by_loss[BASELINE].is_worse
    two = ("proposed", BASELINE)
    results = [r for r in sure if r.unit.name in two]
    alone = replace(bad, models={m: bad.models[m] for m in two}, results=results)
    assert not any(s.is_best for s in standings(alone, "log_loss") if s.model == "proposed")


def test_no_error_is_not_taken_for_certainty(study):
    """All samples named rightly: the interval of the share, and of differences, still has a length."""
    sure = [
        FoldResult(r.unit, r.rows, np.log(np.where(np.eye(2)[study.true[r.rows]] > 0, 0.999, 0.001)))
        if r.unit.name == "proposed"
        else r
        for r in study.results
    ]
    verdict = Verdict(replace(study, results=sure))
    low = 100 * expected_share(np.ones(160))[0]
    assert f"100% (95% CI {low:.1f} to 100) of held-out samples are classified correctly" in verdict.sentences[0]
    assert low < 98
    margin = verdict.over["accuracy"][BASELINE]
    assert (margin.low, margin.high) == pytest.approx(expected_pair(verdict.study, "proposed", BASELINE, "accuracy"))
    assert margin.high - margin.low > 0.1
    gain = verdict.over["log_loss"][BASELINE]
    assert gain.sign == 1
    assert (verdict.log_loss.low, verdict.log_loss.high) == pytest.approx(expected_loss(verdict.study, "proposed"))
    assert verdict.log_loss.high > 0.02


def test_rows_of_one_group_count_once(study):
    """Each sample three times, as a group: nothing is known better than by one."""
    thrice = np.repeat(np.arange(160), 3)
    results = [
        FoldResult(
            r.unit, np.flatnonzero(np.isin(thrice, r.rows)), np.repeat(r.log_proba[np.argsort(r.rows)], 3, axis=0)
        )
        for r in study.results
    ]
    copied = replace(study, X=study.X.iloc[thrice], y=study.y[thrice], results=results, groups=thrice)
    for metric in ("accuracy", "log_loss", "brier"):
        assert improvement(copied, "proposed", LOGISTIC, metric) == pytest.approx(
            improvement(study, "proposed", LOGISTIC, metric), rel=0.01, abs=1e-6
        )
        assert np.array([s.value for s in standings(copied, metric)]) == pytest.approx(
            np.array([s.value for s in standings(study, metric)]), rel=0.01
        )


def in_groups(rng, sizes, accuracies, n_classes=2):
    """A study whose model is right in these shares of the groups, with probabilities to match."""
    groups = np.repeat(np.arange(len(sizes)), sizes)
    n, share = len(groups), np.repeat(accuracies, sizes)
    true = rng.integers(n_classes, size=n)
    true[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
    right = rng.random(n) < share
    said = np.where(right, true, (true + 1) % n_classes)
    p = np.full((n, n_classes), (1 - np.mean(accuracies)) / (n_classes - 1))
    p[np.arange(n), said] = np.mean(accuracies)
    base = np.full((n, n_classes), 1 / n_classes)
    splits = [Split(0, g, np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(len(sizes))]
    results = [
        FoldResult(Unit(name, 0, split.fold), split.test, np.log(found[split.test]))
        for split in splits
        for name, found in (("model", p), (BASELINE, base))
    ]
    labels = np.array([f"class {code:02}" for code in true])
    models = {"model": None, BASELINE: None}
    made = Study("a set", pd.DataFrame({"a": groups}), labels, models, splits, proposed="model", groups=groups)
    return replace(made, results=results)


def test_few_groups_that_agree_are_believed(rng):
    """597 patients in 4 groups, 84% right; 20 classes in 5 groups, 91.5% right."""
    verdict = Verdict(in_groups(rng, [200, 150, 147, 100], [0.86, 0.81, 0.84, 0.83]))
    assert 0.7 < verdict.accuracy.low < verdict.accuracy.value < verdict.accuracy.high < 0.93
    assert "clearly better than the class frequencies" in verdict.headline
    assert "not clearly" not in verdict.headline
    verdict = Verdict(in_groups(rng, [100, 90, 80, 70, 60], [0.94, 0.89, 0.92, 0.9, 0.92], n_classes=20))
    margin = verdict.over["accuracy"][BASELINE]
    assert 0.7 < margin.low < margin.value < margin.high <= 1
    assert verdict.over["log_loss"][BASELINE].sign == 1


def test_two_groups_are_too_few_to_tell(rng):
    verdict = Verdict(in_groups(rng, [40, 40], [0.9, 0.8]))
    assert verdict.accuracy.low is None
    assert "too few groups to compare it with the class frequencies" in verdict.headline
    assert verdict.sentences[1].endswith(": too few groups to tell.")
    assert verdict.result(BASELINE) == "too few groups to tell"
    assert "CI" not in verdict.headline


@pytest.mark.slow
@pytest.mark.shared
def test_colon_is_better_than_the_class_frequencies(shared):
    """62 samples, 2,000 features, an AUC far above chance: the log losses of the samples tell."""
    X = pd.read_csv(shared / "data" / "micro" / "alon_colon_62x2000.csv.gz")
    y = X.pop("class").to_numpy(dtype=str)
    models = {"mixture": CGNClassifierCV(), BASELINE: DummyClassifier(strategy="prior")}
    made = Study("colon", X, y, models, repeated_splits(y, n_folds=5), proposed="mixture")
    run = Run(made.work())
    list(run.go_on())
    verdict = Verdict(replace(made, results=run.results))
    assert verdict.over["log_loss"][BASELINE].sign == 1


def test_models_that_answer_on_some_folds_are_compared_on_those(study):
    gone = {(0, 1), (1, 3)}
    part = [
        FoldResult(r.unit, r.rows, None) if r.unit.name == LOGISTIC and r.unit[1:] in gone else r for r in study.results
    ]
    some = replace(study, results=part)
    margin = improvement(some, "proposed", LOGISTIC, "log_loss")
    assert margin.value == pytest.approx(paired(some, "proposed", LOGISTIC, "log_loss").mean())
    assert (margin.low, margin.high) == pytest.approx(expected_pair(some, "proposed", LOGISTIC, "log_loss"))
    assert "(on the 8 of 10 folds with predictions of both)" in Verdict(some).sentences[2]
    none = [FoldResult(r.unit, r.rows, None) if r.unit.name == LOGISTIC else r for r in study.results]
    assert improvement(replace(study, results=none), "proposed", LOGISTIC, "log_loss") is None
    assert all(LOGISTIC not in sentence for sentence in Verdict(replace(study, results=none)).sentences)


def test_a_zero_probability_of_the_truth_is_infinitely_worse(study):
    results = []
    for r in study.results:
        log_proba = r.log_proba.copy()
        if r.unit == Unit(LOGISTIC, 0, 0):
            log_proba[0] = [0.0, -np.inf] if study.y[r.rows[0]] == "ill" else [-np.inf, 0.0]
        results.append(FoldResult(r.unit, r.rows, log_proba))
    verdict = Verdict(replace(study, results=results))
    assert verdict.over["log_loss"][LOGISTIC] == (np.inf, None, None)
    assert "log loss infinitely lower" in verdict.sentences[2]


def test_a_better_model_is_named(study):
    """The truth itself, hidden among the others."""
    results = [
        FoldResult(r.unit, r.rows, np.log(np.where(np.eye(2)[study.true[r.rows]] > 0, 0.99, 0.01)))
        if r.unit.name == "other"
        else r
        for r in study.results
    ]
    assert "Lower log loss on the same folds: other." in Verdict(replace(study, results=results)).sentences


@pytest.mark.parametrize(
    ("sharper", "n", "told"),
    [
        (1.0, 1200, r"no sign of miscalibration \(\d{3} events\)"),
        (3.0, 1200, "probabilities are too extreme"),
        (0.3, 1200, "probabilities are too moderate"),
        (1.0, 120, r"calibration not assessed with certainty \(\d\d events; 100 are needed\)"),
    ],
)
def test_calibration_is_judged_by_its_test_and_few_events_vouch_for_nothing(sharper, n, told):
    rng = np.random.default_rng(0)
    odds = rng.normal(0, 2, size=n)
    true = (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)
    log_proba = -np.logaddexp(0, np.column_stack([sharper * odds, -sharper * odds]))
    splits = [Split(0, 0, np.empty(0, np.intp), np.arange(n))]
    made = Study("a set", pd.DataFrame({"a": odds}), true.astype(str), {"m": None}, splits, are_fitted=True)
    study = replace(made, results=[FoldResult(Unit("m", 0, 0), np.arange(n), log_proba)])
    found = calibration(study, "m")
    assert re.match(told, judgement(study, found))
    assert found.slope.value == pytest.approx(1 / sharper, rel=0.35)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    [(30, None, 0.0, 1.6), (100, None, 0.0, 0.6), (120, 3, 0.2, 1.6), (150, 5, 0.2, 0.6), (320, 40, 0.5, 1.6)],
)
def test_intervals_contain_the_truth_as_often_as_they_say(scenario, monkeypatch):
    """Simulated cross-validations; the page about the coverage has more of them."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "bench")
    import intervals

    _, found = intervals.coverage(intervals.Scenario(*scenario), 150)
    assert (found > 0.88).all()  # 0.92 and three standard errors of 150 draws
    assert found.mean() < 0.995  # few groups have wide intervals
