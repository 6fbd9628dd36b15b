"""The report: one page, self-contained, escaped, and seen by a real browser."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, Jan
from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.abstention import prediction_sets
from cgnlearn.evaluation.chosen import Chosen, explained
from cgnlearn.evaluation.decisions import decisions, one_class, predictions_by_model
from cgnlearn.evaluation.metrics import METRICS
from cgnlearn.evaluation.run import Run
from cgnlearn.evaluation.study import BASELINE, Study, pooled
from cgnlearn.evaluation.subgroups import subgroups_of
from cgnlearn.evaluation.verdict import Verdict
from cgnlearn.plots.style import DARK_COLOURS, LINES
from cgnlearn.reporting import write_report
from cgnlearn.reporting.album import VARIABLES, Album
from cgnlearn.reporting.cards import cards, column, histogram_of
from cgnlearn.reporting.demonstration import Comparison, comparison_figure
from cgnlearn.reporting.effects import common_view, drawing, effects_of
from cgnlearn.reporting.leaderboard import leaderboard
from cgnlearn.reporting.page import IncompleteReportError
from cgnlearn.reporting.samples import Viewer, strip_of
from cgnlearn.reporting.shape import shape_of

HOSTILE = "<script>alert('x')</script>&\"' $\\nonsense{$"


def study_of(X, y, models, **options):
    y = np.asarray(y, dtype=str)
    models = models | {BASELINE: DummyClassifier(strategy="prior")}
    return done(Study("a set", X, y, models, repeated_splits(y, n_folds=4, n_repeats=2), **options))


def done(study, folder=None, stop_after=None, explained=True):
    run = Run(study.work(explained=explained), folder)
    for number, _ in enumerate(run.go_on(), start=1):
        if number == stop_after:
            break
    return replace(study, results=run.results)


def unseen(study, row):
    """The chosen model as it was when the first repetition predicted this row."""
    split = next(split for split in study.splits if row in split.test)
    return clone(study.models[study.chosen]).fit(study.X.iloc[split.train], study.y[split.train])


@pytest.fixture(scope="module")
def mixed_study():
    rng = np.random.default_rng(0)
    n = 90
    y = np.arange(n) % 3
    X = pd.DataFrame({"a": y + rng.normal(size=n), "b": rng.normal(size=n), HOSTILE: 2 * y + rng.normal(size=n)})
    X["level"] = pd.Categorical(np.where(rng.random(n) < 0.3 + 0.3 * (y == 1), "low", HOSTILE))
    labels = np.array(["x", "y", HOSTILE])[y]
    models = {"tree bayes": CGNClassifier("tan"), "naive ml": CGNClassifier(estimation="ml")}
    return study_of(X, labels, models, settings={"File": HOSTILE})


@pytest.fixture(scope="module")
def mixed_chosen(mixed_study):
    return Chosen.of(mixed_study)


@pytest.fixture(scope="module")
def spectra_study():
    rng = np.random.default_rng(1)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 80)).cumsum(axis=1) + 3 * y[:, None] * (np.arange(80) == 40)
    mz = np.linspace(1000, 2000, 80)
    frame = pd.DataFrame(X, columns=[f"{m:.1f}" for m in mz])
    models = {"band 2 bayes": CGNClassifier(Band(2)), "band 2 ml": CGNClassifier(Band(2), estimation="ml")}
    return study_of(frame, np.array(["control", "case"])[y], models, positions=mz, marks=mz[[40]])


@pytest.fixture(scope="module")
def page(tmp_path_factory, mixed_study, spectra_study):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, [mixed_study, spectra_study], title=f"Title {HOSTILE}")
    return path


def test_the_study_says_what_the_model_says(mixed_study, mixed_chosen):
    study, chosen = mixed_study, mixed_chosen
    assert (
        study.chosen
        == min((s for s in study.summaries if s.model != BASELINE), key=lambda s: s.metrics["log_loss"].mean).model
    )
    first = [r for r in study.results if r.unit.repeat == 0 and r.unit.name == study.chosen]
    log_proba = np.full((90, 3), np.nan)
    for result in first:
        log_proba[result.rows] = result.log_proba
    assert sorted(row.index for row in chosen.samples) == list(range(90))
    for row in chosen.samples:
        assert row.predicted == study.classes[log_proba[row.index].argmax()]
        assert row.true == study.y[row.index]
        assert row.probability_true == pytest.approx(np.exp(log_proba[row.index, study.true[row.index]]))
    margins = [row.log_odds for row in chosen.samples]
    assert margins == sorted(margins)
    assert chosen.confusion.sum() == 90
    assert np.trace(chosen.confusion) == sum(row.true == row.predicted for row in chosen.samples)


@pytest.mark.parametrize("method", ["shapley", "contributions"])
def test_reasons_are_attributions_of_the_fold_s_own_model(mixed_study, mixed_chosen, method, monkeypatch):
    study, chosen = mixed_study, mixed_chosen
    if method == "contributions":  # Shapley values would take too long
        monkeypatch.setattr("cgnlearn.evaluation.evidence.SECONDS", (-1.0, -1.0))
        results = [replace(result, evidence=None) for result in study.results]
        chosen = replace(chosen, evidence=explained(replace(study, results=results)))
    assert chosen.evidence.is_shapley == (method == "shapley")
    for row in chosen.samples[::17]:
        model = unseen(study, row.index)
        one = study.X.iloc[[row.index]]
        parts, joint = getattr(model, method)(one)[0], model.predict_joint_log_proba(one)[0]
        second, first = np.argsort(joint)[-2:]
        odds = parts[:, first] - parts[:, second]
        assert row.against == study.classes[second]
        assert row.log_odds == pytest.approx(joint[first] - joint[second])
        order = np.argsort(-np.abs(odds))
        assert [feature for feature, _ in row.reasons] == order.tolist()
        np.testing.assert_allclose([log_odds for _, log_odds in row.reasons], odds[order])
        prior = model.class_log_prior_
        assert Viewer(chosen).view(row).rest == pytest.approx(prior[first] - prior[second])
        if study.chosen == "tree bayes":
            np.testing.assert_allclose(row.interval, model.predict_interval(one, 0.9)[0, first])
            assert row.interval[0] < row.probability < row.interval[1]


def test_evidence_adds_up_to_the_mean_log_odds_of_the_truth(mixed_study, mixed_chosen):
    study, chosen = mixed_study, mixed_chosen
    log_proba, true = chosen.log_proba, study.true
    rivals = log_proba.copy()
    rivals[np.arange(90), true] = -np.inf
    margin = log_proba[np.arange(90), true] - rivals.max(axis=1)
    prior = np.zeros(90)
    for split in study.splits[:4]:
        own = CGNClassifier(**study.models[study.chosen].get_params()).fit(
            study.X.iloc[split.train], study.y[split.train]
        )
        own_prior = own.class_log_prior_
        prior[split.test] = own_prior[true[split.test]] - own_prior[rivals[split.test].argmax(axis=1)]
    assert chosen.evidence.for_truth.sum() == pytest.approx((margin - prior).mean())


def test_remarkable_samples_are_the_ends_of_the_list(mixed_chosen):
    chosen = mixed_chosen
    wrong = [row for row in chosen.samples if row.true != row.predicted]
    assert chosen.remarkable == [
        ("Least certain sample", chosen.samples[0]),
        ("Most confident error", wrong[-1]),
        ("Most certain sample", chosen.samples[-1]),
    ]


def test_details_of_a_sample_show_measured_and_typical_values(mixed_study, mixed_chosen):
    study, chosen = mixed_study, mixed_chosen
    seen = Viewer(chosen).view(chosen.samples[0])
    index, by_name = chosen.samples[0].index, {item.name: item for item in seen.items}
    assert set(by_name) == set(study.names)
    for label, words in ((seen.sample.predicted, "typical_for"), (seen.sample.against, "typical_against")):
        of_class = study.X[study.y == label]
        low, high = np.quantile(of_class["a"], [0.05, 0.95], method="closest_observation")
        assert getattr(by_name["a"], words) == f"{low:.4g} to {high:.4g}".replace("-", "−")
        share = (of_class["level"] == study.X["level"][index]).mean()
        assert getattr(by_name["level"], words) == f"{100 * share:.0f}% of samples"
    assert by_name["a"].value == f"{study.X['a'][index]:.4g}".replace("-", "−")
    assert by_name["level"].value == study.X["level"][index]
    plain = Viewer(chosen).as_dict()
    assert len(plain["samples"]) == len(chosen.samples)
    json.dumps(plain, allow_nan=False)


def test_a_strip_keeps_the_order_of_what_it_shows():
    strip = strip_of(5.0, (1.0, 3.0), (2.0, 9.0))
    assert strip.of == (4.0, 27.0)
    assert strip.against == (15.5, 96.0)
    assert strip.value == 50.0
    assert strip_of(1.0, None, (0.0, 1.0)) is None
    assert strip_of(1.0, (1.0, 1.0), (1.0, 1.0)).value == 50.0


def heights(shape):
    return [10 - float(height) for height in re.findall(r"10V([\d.]+)H", str(shape))]


def test_cards_count_missing_cells_and_draw_the_others(mixed_study, mixed_chosen):
    X = mixed_study.X.copy()
    X.loc[::3, "a"] = np.nan
    X.loc[:4, "level"] = None
    X["none"] = np.nan
    X["constant"] = 7.0
    X["huge"] = np.where(np.arange(90) == 5, 1e300, 0.0)
    evidence = replace(mixed_chosen.evidence, for_truth=np.array([3.0, 0.1, -2.0, 1.0, 0.5, 0.4, 0.3]))
    study = replace(mixed_study, X=X)
    chosen = replace(mixed_chosen, study=study, evidence=evidence)
    found = cards(chosen)
    assert [card.name for card in found.shown] == ["a", HOSTILE, "level", "none", "constant", "huge", "b"]
    sizes = np.array([3, 2, 1, 0.5, 0.4, 0.3, 0.1])
    assert [card.share for card in found.shown] == pytest.approx(sizes / sizes.sum())
    assert [card.bar[1] for card in found.shown] == pytest.approx(100 * sizes / 5)  # from -2 to 3
    assert found.zero == pytest.approx(40)
    assert [card.bar[0] for card in found.shown[:2]] == pytest.approx([40, 0])  # to the right of zero, to the left
    by_name = {card.name: card for card in found.shown}
    missing = {name: card.n_missing for name, card in by_name.items()}
    assert missing == {"a": 30, "b": 0, HOSTILE: 0, "level": 5, "none": 90, "constant": 0, "huge": 0}
    assert by_name["none"].histogram is None
    assert by_name["constant"].histogram.labels == ["7"]
    level = by_name["level"].histogram
    assert level.are_levels
    shares = [(X["level"][study.y == label].dropna() == level.labels[0]).mean() for label in study.classes]
    bars = np.array([heights(shape) for _, _, shape in level.shapes])
    np.testing.assert_allclose(bars[:, 0] / bars.sum(axis=1), shares, atol=0.01)
    view = Viewer(chosen).view(replace(chosen.samples[0], index=0, reasons=[(0, 1.0), (3, 0.5), (4, 0.1)]))
    assert [item.value for item in view.items] == ["missing"] * 3
    assert [item.strip for item in view.items] == [None] * 3
    assert view.items[2].typical_for == "no values"


def heights_of_curve(shape, kind):
    """Log odds at the points of a curve of a drawing between -1 and 3."""
    [path] = re.findall(rf'class="{kind} c1" d="([^"]*)"', str(shape))
    return [3 - 4 * float(y) / 40 for y in re.findall(r"[ML][\d.]+ ([\d.]+)", path)]


def test_cards_draw_the_log_odds_given_a_feature_alone(mixed_study, mixed_chosen):
    X, y = mixed_study.X[["a", "level"]], mixed_study.y
    study = replace(mixed_study, X=X)
    model = CGNClassifier("tan").fit(X, y)
    chosen = replace(mixed_chosen, study=study, final=model)
    histograms = [histogram_of(column(X, at), study, [0, 1, 2]) for at in range(2)]
    found = effects_of(chosen, {0: histograms[0].ends, 1: None})
    at = np.linspace(*np.quantile(X["a"], [0.005, 0.995], method="closest_observation"), 41)
    for place, kind, cells in ((0, "curve", at), (1, "points", [HOSTILE, "low"])):
        alone = pd.DataFrame({"a": np.nan, "level": pd.Categorical([None] * len(cells), X["level"].cat.categories)})
        alone[X.columns[place]] = cells if place == 0 else pd.Categorical(cells, X["level"].cat.categories)
        p = model.predict_proba(alone)[:, 1]
        drawn = drawing(found[place], histograms[place], (-1.0, 3.0), [(0, 0), (1, 1)])
        np.testing.assert_allclose(heights_of_curve(drawn, kind), np.clip(np.log(p / (1 - p)), -1, 3), atol=0.01)
        assert 'role="img" aria-label="Log odds given' in drawn
    low, high = common_view(list(found.values()))
    assert low <= found[0].log_odds.min() or low == -8
    assert high >= found[0].log_odds.max() or high == 8


def test_ten_cards_have_curves_and_no_model_without_missing_values_has_any(mixed_chosen, spectra_study):
    found = cards(mixed_chosen)
    assert [card.effect is not None for card in found.shown] == [True] * 4
    assert len(found.effects) == 4
    assert cards(Chosen.of(spectra_study)).effects == []


def test_of_many_levels_and_features_the_most_are_shown():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame(rng.normal(size=(60, 30)), columns=[f"x{i}" for i in range(30)])
    X["many"] = pd.Categorical([f"level {i % 12}" for i in range(60)])
    study = study_of(X, y, {"naive bayes": CGNClassifier()})
    chosen = Chosen.of(study)
    found = cards(chosen)
    assert (len(found.shown), len(found.folded), found.n_more) == (20, 11, 0)
    assert [card.effect is not None for card in found.shown] == [True] * 10 + [False] * 10
    sizes = np.abs(chosen.evidence.for_truth)
    assert [card.name for card in found.shown] == [study.names[i] for i in np.argsort(-sizes, kind="stable")[:20]]
    drawn = histogram_of(column(X, 30), study, [0, 1])
    assert len(drawn.labels) == 6
    assert drawn.labels[-1] == "7 others"


def test_bins_are_gathered_to_the_peaks_of_spectra(spectra_study):
    study, chosen = spectra_study, Chosen.of(spectra_study)
    names, shown, of_column = study.features
    assert names[-1] == "between the peaks"
    assert shown[-1] is None
    assert all(name == f"m/z {study.positions[at]:.0f}" for name, at in zip(names[:-1], shown[:-1], strict=True))
    row = chosen.samples[3]
    model = unseen(study, row.index)
    parts, joint = (
        model.contributions(study.X.iloc[[row.index]])[0],
        model.predict_joint_log_proba(study.X.iloc[[row.index]])[0],
    )
    odds = parts[:, joint.argmax()] - parts[:, joint.argmin()]
    for feature, value in row.reasons:
        assert value == pytest.approx(odds[of_column == feature].sum())
    found = cards(chosen)
    total = sum(card.evidence for card in (*found.shown, *found.folded)) + found.of_more + found.between
    assert total == pytest.approx(chosen.evidence.for_truth.sum())


def test_of_many_samples_the_least_and_the_most_certain_are_listed(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(900) % 2
    X = pd.DataFrame({"a": y + rng.normal(size=900), "b": rng.normal(size=900)})
    study = study_of(X, y, {"naive bayes": CGNClassifier()})
    chosen = Chosen.of(study)
    margins = np.abs(np.diff(chosen.log_proba, axis=1)[:, 0])
    least, most = np.sort(margins)[[199, -200]]
    assert len(chosen.samples) == 400
    assert {row.index for row in chosen.samples} == set(np.flatnonzero((margins <= least) | (margins >= most)).tolist())
    assert all(len(row.reasons) == 2 for row in chosen.samples)
    assert chosen.confusion.sum() == 900
    write_report(tmp_path / "report.html", [study])
    assert "the 200 least and the 200 most certain of 900" in (tmp_path / "report.html").read_text()


def test_the_most_confident_error_may_be_none_of_the_listed_samples(tmp_path):
    """Of 900 samples 400 are listed, and the errors are among the 500 others."""
    n = 900
    y = np.arange(n) % 2
    X = pd.DataFrame({"a": np.arange(n, dtype=float)})
    study = replace(study_of(X, y, {"naive bayes": CGNClassifier()}), results=[])
    margin = np.linspace(0.1, 9, n)  # of the predicted class; in ascending order of the samples
    wrong = np.arange(300, 500, 7)
    odds = np.where(np.isin(np.arange(n), wrong), -1, 1) * np.where(y == 1, 1, -1) * margin
    log_proba = -np.logaddexp(0, np.column_stack([odds, -odds]))
    results = [
        replace(result, log_proba=log_proba[result.rows], evidence=None)
        for result in done(study).results
        if result.unit.name == "naive bayes"
    ]
    told = replace(study, results=results, models={"naive bayes": CGNClassifier()})
    chosen = Chosen.of(told)
    listed = {sample.index for sample in chosen.samples}
    assert not listed & set(wrong.tolist())
    assert [(title, sample.index) for title, sample in chosen.remarkable] == [
        ("Least certain sample", 0),
        ("Most confident error", wrong[-1]),
        ("Most certain sample", n - 1),
    ]
    write_report(tmp_path / "report.html", [told])
    assert f"Most confident error: {wrong[-1]}<" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    "broken", ["cgnlearn.reporting.cards.cards", "cgnlearn.reporting.leaderboard.leaderboard", "verdict"]
)
def test_an_exception_in_a_part_leaves_the_others(mixed_study, tmp_path, monkeypatch, broken):
    def fails(*_):
        raise KeyError(4952)

    if broken == "verdict":  # which is computed while the page is rendered
        monkeypatch.setattr(Verdict, "headline", property(fails))
    else:
        monkeypatch.setattr(broken, fails)
    path = tmp_path / "report.html"
    with pytest.raises(IncompleteReportError) as raised:
        write_report(path, [mixed_study])
    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.path == path
    text = path.read_text()
    assert "The part about the chosen model could not be made" in text
    assert "Data and settings" in text
    assert ("Brier score" in text) == ("leaderboard" not in broken)
    assert "No model has predictions" not in text


class Counted(CGNClassifier):
    """Writes down how many rows it is fitted on."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y):
        self.fits.append(len(y))
        return super().fit(X, y)


class Silent(CGNClassifier):
    """Has contributions for no set, as others have for some."""

    def contributions(self, X):
        raise ValueError("not for this one")


def text_of(path):
    return re.sub(r"Written by [^<]*|<td class=\"n time\"[^/]*</td>", "", path.read_text())


def test_a_report_fits_the_final_model_and_no_fold_again(mixed_study, tmp_path):
    models = {"tree bayes": Counted("tan"), BASELINE: DummyClassifier(strategy="prior")}
    fresh = replace(mixed_study, models=models, results=[])
    Counted.fits.clear()
    study = done(fresh)
    assert Counted.fits == [len(split.train) for split in study.splits]
    Counted.fits.clear()
    write_report(tmp_path / "report.html", [study])
    assert Counted.fits == [90]
    # Of an interrupted run gone on with: only what the earlier call had fitted, and the same page.
    done(fresh, tmp_path / "kept", stop_after=5)
    resumed = done(fresh, tmp_path / "kept")
    Counted.fits.clear()
    write_report(tmp_path / "resumed.html", [resumed])
    assert sorted(Counted.fits) == sorted([len(split.train) for split in study.splits[:3]] + [90])
    assert text_of(tmp_path / "resumed.html") == text_of(tmp_path / "report.html")


@pytest.mark.parametrize("stop_after", [1, 2, 4, 13])
def test_an_interrupted_evaluation_has_a_report(mixed_study, tmp_path, stop_after):
    study = done(replace(mixed_study, results=[]), stop_after=stop_after)
    write_report(tmp_path / "report.html", [study])
    assert "The evaluation was interrupted" in (tmp_path / "report.html").read_text()
    n_first = sum(len(r.rows) for r in study.results if r.unit.name == study.chosen and r.unit.repeat == 0)
    chosen = Chosen.of(study)
    assert len(chosen.samples) == chosen.confusion.sum() == n_first > 0


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, features):
        self.found.append((tag, dict(features)))


def test_the_page_is_self_contained_and_escaped(page):
    text = page.read_text(encoding="utf-8")
    tags = _Tags()
    tags.feed(text)
    scripts = [features.get("type") for tag, features in tags.found if tag == "script"]
    assert scripts.count(None) == 1  # our own; none of the data's
    assert set(scripts) == {None, "application/json"}
    for tag, features in tags.found:
        for name, value in features.items():
            if name in ("src", "href", "xlink:href", "srcset", "action", "data"):
                assert value.startswith(("#", "data:")), (tag, name, value)
    assert not re.search(r"@import|url\((?!#|'?data:)", text)
    ids = [features["id"] for _, features in tags.found if "id" in features]
    assert len(ids) == len(set(ids))
    references = set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', text))
    assert references <= set(ids)
    assert "&lt;script&gt;alert" in text


def test_the_page_says_what_must_be_said(page, mixed_study, spectra_study):
    text = page.read_text(encoding="utf-8")
    headings = "Comparison of models, Confusion matrix, How we know, Table 1, Most confused pairs, Data and settings"
    others = "Limits of use, Triangles mark the peaks, ROC curve, Decision curve, Sensitivity (share of cases found)"
    for words in f"{headings}, {others}, Least certain sample, Most certain sample, 95% CI".split(", "):
        assert words in text
    assert len(page.read_bytes()) < 1_500_000
    for study in (mixed_study, spectra_study):
        verdict = Verdict(study)
        shown = [
            verdict.headline,
            *verdict.remarks,
            *verdict.sentences,
            *(part for figure in verdict.figures for part in figure if part),
        ]
        places = [text.index(str(escape(sentence))) for sentence in shown]
        assert places[0] < text.index("Comparison of models", places[0])


def test_the_sections_are_listed_and_there(page):
    tags = _Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    ids = {features["id"] for _, features in tags.found if "id" in features}
    listed = [features["href"] for tag, features in tags.found if tag == "a"]
    assert len(listed) > 12
    assert {href.removeprefix("#") for href in listed} <= ids


def test_figures_take_the_page_s_colours(page):
    text = page.read_text(encoding="utf-8")
    for figure in re.findall(r"<svg.*?</svg>", text, re.S):
        for colour in VARIABLES:
            assert colour not in re.sub(r"<image.*?/>", "", figure, flags=re.S)
    for colour, name in VARIABLES.items():
        assert f"{name}: {colour};" in text
        assert f"{name}: {DARK_COLOURS[colour]};" in text


def test_the_picture_of_comparisons_has_plain_numbers(mixed_study):
    study = replace(mixed_study, results=[])
    study.__dict__["summaries"] = [
        replace(summary, model=name) for summary, name in zip(mixed_study.summaries, ("ml", "bayes"), strict=False)
    ]
    drawn = comparison_figure([Comparison("tan", study)], Album("x"))
    assert "mathdefault" not in drawn
    assert "maximum likelihood" in drawn


def test_twenty_classes_have_a_colour_each(page):
    assert len(set(LINES)) == len({DARK_COLOURS[colour] for colour in LINES}) == 20
    assert ".c19 { --class: var(--line19); }" in page.read_text(encoding="utf-8")


def test_subgroups_and_prediction_sets_are_told(spectra_study, tmp_path):
    by = {"site": np.where(np.arange(40) < 30, "north", "south")}
    study = replace(spectra_study, by=by)
    write_report(tmp_path / "report.html", [study])
    text = (tmp_path / "report.html").read_text()
    north = next(of for of in subgroups_of(study, study.chosen) if of.level == "north")
    assert f'site = north</th><td class="n">30</td><td class="n">{north.n_events}' in text
    assert "too few to tell" in text  # of the south
    sets = prediction_sets(study, study.chosen)
    assert f"{100 * sets.abstains:.1f}% get no decision" in text
    assert "Intercept" in text


def test_groups_are_counted_as_well_as_samples(mixed_study, tmp_path):
    groups = np.arange(90) // 4
    write_report(
        tmp_path / "report.html", [replace(mixed_study, groups=groups, ids=np.array([f"P{i}" for i in range(90)]))]
    )
    text = (tmp_path / "report.html").read_text()
    assert "90 samples in 23 groups" in text
    assert "The samples come from only 23 independent groups" in text
    assert f"x: 30 samples in {len(set(groups[mixed_study.y == 'x']))} groups" in text
    assert "Least certain sample: P" in text


def test_the_leaderboard_shows_the_metrics_of_all_samples_by_log_loss(mixed_study):
    study = mixed_study
    found = leaderboard(study, Verdict(study))
    losses = [line.metrics["log_loss"].value.value for line in found.lines]
    assert losses == sorted(losses)
    assert {line.model for line in found.lines} == set(study.models)
    for line in found.lines:
        own = [result for result in study.results if result.unit.name == line.model]
        log_proba, true = pooled(own, study.true)
        for name, standing in line.metrics.items():
            assert standing.value.value == pytest.approx(METRICS[name](log_proba, true))
        auc = [roc_auc_score(study.true[rows], np.exp(p), multi_class="ovr") for rows, p in by_repeat(own)]
        assert line.auc.value == pytest.approx(np.mean(auc))
        assert line.seconds.fit > 0
        assert line.is_chosen == (line.model == study.chosen) == (line.result == "")
    places = [line.place.at.value for line in found.lines if not line.place.is_out]
    assert places == sorted(places)
    assert found.lines[-1].model == BASELINE
    assert found.baseline == found.lines[-1].place.at.value


def by_repeat(results):
    for repeat in sorted({result.unit.repeat for result in results}):
        own = [result for result in results if result.unit.repeat == repeat]
        yield np.concatenate([r.rows for r in own]), np.concatenate([r.log_proba for r in own])


def test_a_model_without_contributions_has_a_report(mixed_study, tmp_path):
    models = {"black box": GaussianNB(), BASELINE: DummyClassifier(strategy="prior")}
    study = study_of(mixed_study.X[["a", "b"]], mixed_study.y, models, proposed="black box")
    assert study.chosen == "black box"
    assert explained(study) is None
    write_report(tmp_path / "report.html", [study])
    assert "does not compute contributions" in (tmp_path / "report.html").read_text()
    silent = study_of(mixed_study.X[["a", "b"]], mixed_study.y, {"silent": Silent()})
    chosen = Chosen.of(silent)
    assert chosen.evidence is None
    assert not any(sample.reasons for sample in chosen.samples)
    write_report(tmp_path / "silent.html", [silent])


def test_the_model_is_told_in_words_and_drawn_where_it_can_be_read(mixed_study, mixed_chosen, spectra_study):
    assert shape_of(mixed_chosen.final, Album("t")).tree
    assert shape_of(mixed_chosen.final, Album("t")).figure is None
    band = shape_of(Chosen.of(spectra_study).final, Album("s"))
    assert (band.tree, band.groups, band.figure) == (None, None, None)
    assert "depends on up to 1 preceding ones" in band.text

    def of(structure, **names):
        X = mixed_study.X.rename(columns={HOSTILE: "c"})
        return shape_of(CGNClassifier(structure).fit(X, mixed_study.y), Album("x"))

    assert of("naive_bayes")[1:4] == (None, None, None)
    assert of("complete")[1:4] == (None, None, None)
    assert of(Jan([["a", "b", "c"], ["level"]])).groups == [["a", "b", "c"], ["level"]]
    assert of({"level": [], "a": ["level"], "b": ["level"], "c": ["a", "b"]}).figure is not None


def test_members_of_a_mixture_are_told_by_kind():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(40, 3)) + np.arange(40)[:, None] % 2), np.arange(40) % 2
    mixture = CGNClassifierCV(candidates=["naive_bayes", "complete"])
    X.columns = X.columns.astype(str)
    model = mixture.fit(X, y)
    told, members = shape_of(model, Album("mixture")).members, model.members_
    assert sum(kind.n for kind in told) == len(members)
    assert sum(kind.weight for kind in told) == pytest.approx(1)
    assert len({kind.text for kind in told}) == len(told) == len(members)
    assert [kind.weight for kind in told] == sorted((kind.weight for kind in told), reverse=True)


def test_without_any_answer_the_page_says_so(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(24, 20)))
    X.columns = X.columns.astype(str)
    study = study_of(X, np.arange(24) % 2, {"complete ml": CGNClassifier("complete", estimation="ml")})
    assert study.chosen is None
    write_report(tmp_path / "report.html", [study])
    text = (tmp_path / "report.html").read_text()
    assert "No model has predictions in every fold" in text
    assert "complete ml has no predictions in 8 of 8 folds: maximum likelihood does not exist for column" in unescape(
        text
    )
    assert "no residual variance." in text


PROBE = f"<script>{(Path(__file__).parent / 'probe.js').read_text()}</script>"
# In a frame, as windows are at least 500 pixels wide.
FRAME = """<!doctype html><body><script>
addEventListener("message", event => { document.body.dataset.probe = JSON.stringify(event.data); });
</script><iframe src="probed.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe></body>"""
CATCH = """<script>window.probeErrors = [];
addEventListener("error", event => window.probeErrors.push(String(event.message)));
addEventListener("securitypolicyviolation", event => window.probeErrors.push(event.violatedDirective));</script>"""


def chromium(tmp_path, *words):
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium to look at the report with")
    return subprocess.run(
        [
            found, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=1400,1000", "--virtual-time-budget=5000", "--enable-logging=stderr", *words,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 768, 1300])
@pytest.mark.slow
def test_a_browser_shows_it_without_error_or_request(page, mixed_study, spectra_study, tmp_path, width):
    text = page.read_text(encoding="utf-8")
    probed = tmp_path / "probed.html"
    probed.write_text(text.replace("<title>", CATCH + "<title>", 1).replace("</body>", PROBE + "</body>"))
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)))
    found = chromium(tmp_path, "--dump-dom", frame.as_uri())
    assert "CONSOLE" not in found.stderr
    told = re.search(r'data-probe="([^"]*)"', found.stdout)
    assert told, found.stderr[-2000:]
    seen = json.loads(unescape(told.group(1)))
    assert seen["errors"] == []
    assert len(seen["boxes"]) >= 5
    assert all(w > 200 and h > 80 and inked > 5 for w, h, inked in seen["boxes"])
    assert seen["before"] == seen["after"] == []
    chosen = Chosen.of(mixed_study)
    sample = chosen.samples[1]
    view = Viewer(chosen).view(sample)
    assert seen["title"] == f"Sample {sample.name}"
    expected = [*(item.log_odds for item in view.items), view.rest]
    assert [float(cell.replace("−", "-")) for cell in seen["cells"]] == pytest.approx(expected, abs=0.011)
    if sample.interval is None:  # of maximum likelihood
        assert seen["certainty"] == ""
    else:
        numbers = [float(number) for number in re.findall(r"[\d.]+", seen["certainty"])]
        assert numbers == pytest.approx([sample.probability, *sample.interval], abs=0.006)
    assert seen["effects"] == len(cards(chosen).effects)
    assert seen["up"] == sorted(seen["up"]) == seen["down"][::-1]
    assert len(seen["up"]) == seen["total"] == 90
    assert seen["wrong"] == seen["marked"] > 0
    assert seen["none"] == 0
    assert width < 700 or seen["tip"].startswith("m/z 1")
    assert seen["overflow"] <= 0
    assert seen["changed"]
    assert seen["told"] == "20%"
    positive = spectra_study.classes.index(spectra_study.positive_class)
    found = decisions(one_class(predictions_by_model(spectra_study)[spectra_study.chosen], positive), threshold=0.2)
    sensitivity, specificity = (float(cell.split("%")[0]) / 100 for cell in seen["cells_at"][:2])
    assert (sensitivity, specificity) == pytest.approx((found.sensitivity.value, found.specificity.value), abs=0.0006)
    assert seen["rules"] == {"unnamed": [], "bare": 0, "jumps": 0, "faint": [], "lang": "en"}
    assert seen["requests"] == []


@pytest.mark.browser
@pytest.mark.slow
def test_on_paper_a_study_takes_at_most_eight_pages_of_which_the_last_is_filled(spectra_study, tmp_path):
    path = tmp_path / "report.html"
    write_report(path, [spectra_study])

    def n_pages():
        chromium(tmp_path, f"--print-to-pdf={tmp_path / 'report.pdf'}", path.as_uri())
        return len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "report.pdf").read_bytes()))

    n_filled, text = n_pages(), path.read_text(encoding="utf-8")
    assert 2 <= n_filled <= 8
    without = text.replace('.toggle("fits", i < n)', '.toggle("fits", false)')
    path.write_text(without, encoding="utf-8")
    assert without != text
    assert n_pages() == n_filled
    path.write_text(text.replace("</body>", "<script>dispatchEvent(new Event('beforeprint'))</script></body>"))
    found = chromium(tmp_path, "--dump-dom", path.as_uri()).stdout
    n_more = len(re.findall(r'<tr class="[^"]*fits', found))
    assert 0 < n_more <= 30
    assert f'<span class="printed">{10 + n_more}</span>' in found


@pytest.mark.slow
def test_figures_are_saved_for_a_paper(mixed_study, spectra_study, tmp_path):
    write_report(tmp_path / "report.html", [mixed_study], figures=tmp_path / "mixed")
    names = {"calibration", "risk-coverage", "effects"}
    assert {path.name for path in (tmp_path / "mixed").iterdir()} == {f"{n}.{e}" for n in names for e in ("svg", "pdf")}
    for path in (tmp_path / "mixed").iterdir():
        assert path.read_bytes().startswith(b"%PDF" if path.suffix == ".pdf" else b"<?xml")
    drawn = re.findall(r"<text [^>]*>([^<]*)</text>", (tmp_path / "mixed" / "effects.svg").read_text(encoding="utf-8"))
    assert {"a", "b", "level", "log odds"} <= {unescape(text) for text in drawn}
    write_report(tmp_path / "report.html", [spectra_study], figures=tmp_path / "spectra")
    saved = {path.stem for path in (tmp_path / "spectra").iterdir()}
    assert saved == {"calibration", "risk-coverage", "roc", "decision-curve", "spectra"}
