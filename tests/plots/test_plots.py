"""Displays show the values of the model."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import Band, BandAverage, CGNClassifier, CGNClassifierCV, Jan, Structure
from cgnlearn.plots import (
    ContributionsDisplay,
    EffectDisplay,
    ImportanceDisplay,
    PathDisplay,
    RanksDisplay,
    RelevanceDisplay,
    ReliabilityDisplay,
    SpectrumDisplay,
    StructureDisplay,
)
from cgnlearn.plots.structure import _places, pattern
from cgnlearn.plots.style import wrapped


@pytest.fixture(autouse=True)
def _no_windows():
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


@pytest.fixture
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def drawn(display):
    display.figure_.draw_without_rendering()
    return display


def test_contributions_add_up_to_the_log_odds(iris):
    X, y = iris
    model = CGNClassifier("complete", likelihood_power=0.5).fit(X, y)
    for row in (0, 60, 120):
        display = drawn(ContributionsDisplay.from_estimator(model, X, row))
        joint = np.sort(model.predict_joint_log_proba(X.iloc[[row]])[0])
        assert display.log_odds.sum() + display.prior_log_odds == pytest.approx(joint[-1] - joint[-2])
        assert display.of == str(model.predict(X.iloc[[row]])[0])
        widths = [bar.get_width() for bar in display.ax_.patches]
        assert sum(widths) == pytest.approx(joint[-1] - joint[-2])
        assert len(widths) == 5
    chosen = ContributionsDisplay.from_estimator(model, X, 0, of=2, against=1)
    assert (chosen.of, chosen.against) == ("2", "1")


def test_names_are_not_taken_for_formulas(iris):
    X, y = iris
    names = ["$x$", r"$\nonsense{$", "a_b^", "$$"]
    labels = np.array(["$a$", r"$\b{$", "c"])[y]
    X = X.set_axis(names, axis=1)
    model = CGNClassifier("tan").fit(X, labels)
    bars = drawn(ContributionsDisplay.from_estimator(model, X, 60))
    assert set(names) < {label.get_text() for label in bars.ax_.get_yticklabels()}
    drawn(StructureDisplay.from_estimator(model))
    drawn(ReliabilityDisplay.from_predictions(labels, {r"$\m{$": model.predict_proba(X)}))
    drawn(ReliabilityDisplay.from_estimator(model, X, labels, per_class=True))


def test_small_contributions_are_summed_and_spectra_are_lines(rng):
    X = rng.normal(size=(30, 100))
    y = np.arange(30) % 2
    model = CGNClassifier(Band(2)).fit(X, y)
    bars = drawn(ContributionsDisplay.from_estimator(model, X, 3))
    assert len(bars.ax_.patches) == 22
    assert [label.get_text() for label in bars.ax_.get_yticklabels()][-2:] == ["80 others", "class prior"]
    line = drawn(ContributionsDisplay.from_estimator(model, X, 3, positions=np.arange(100) + 0.5))
    assert line.ax_.get_xlabel() == "m/z"
    np.testing.assert_array_equal(line.values, X[3])


def test_structures_are_graphs_up_to_sixty_features():
    small = drawn(StructureDisplay.from_structure(Structure.band(8, 3)))
    assert len([text for text in small.ax_.texts if text.get_text()]) == 8
    assert not small.ax_.images
    large = drawn(StructureDisplay.from_structure(Structure.band(61, 3)))
    assert len(large.ax_.images) == 1


def test_nodes_do_not_overlap():
    structures = [
        Structure.naive_bayes(13),
        Structure.complete(9),
        Structure.jan([[0, 1, 2], [3, 4], [5], [6]]),
        Structure.tree([None, 0, 0, 1, 1, 1, 2, 5, 5, 7, 7, None, 11]),
        Structure.band(20, 2),
        Structure.naive_bayes(1),
    ]
    for structure in structures:
        places = np.array(list(_places(structure).values()))
        assert len(places) == len(structure.nodes)
        distance = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
        assert distance.min() > 0.3
        drawn(StructureDisplay.from_structure(structure))


def test_the_pattern_counts_every_edge():
    for structure in (Structure.band(1000, 12), Structure.box(450, 7)):
        image = pattern(structure)
        assert image.shape == (400, 400)
        assert image.sum() == structure.n_edges
        rows, columns = np.nonzero(image)
        assert (columns <= rows).all()
    exact = pattern(Structure.from_parents({0: [], 1: [0], 2: [0], 3: [1, 2]}))
    assert {(int(c), int(p)) for c, p in np.argwhere(exact)} == {(1, 0), (2, 0), (3, 1), (3, 2)}


def test_structure_of_an_estimator(iris):
    X, y = iris
    model = CGNClassifier(Jan([["petal length (cm)", "petal width (cm)"]])).fit(X, y)
    texts = [text.get_text() for text in StructureDisplay.from_estimator(model).ax_.texts]
    assert {text for text in texts if text} == {"petal length (cm)", "petal width (cm)"}


def test_names_in_a_structure_are_complete(iris):
    X, y = iris
    names = ["a rather long name of a column", "underscored_and_long_and_long", "short", "x" * 50]
    texts = StructureDisplay.from_estimator(CGNClassifier("tan").fit(X.set_axis(names, axis=1), y)).ax_.texts
    shown = {text.get_text().replace("\n", "").replace(" ", "") for text in texts if text.get_text()}
    assert shown == {name.replace(" ", "") for name in names}


def test_a_reliability_diagram_begins_at_the_smallest_probability(iris):
    X, y = iris
    model = CGNClassifier().fit(X, y)
    display = drawn(ReliabilityDisplay.from_estimator(model, X, y))
    assert 0.2 < display.ax_.get_xlim()[0] <= 0.3  # the most probable of three classes has at least 1/3
    bars = display.ax_.child_axes[0].patches
    line = display.lines["CGNClassifier"]
    assert sum(bar.get_height() for bar in bars if bar.get_height() > 0) == pytest.approx(100 * model.score(X, y))
    assert sum(bar.get_height() for bar in bars if bar.get_height() < 0) == pytest.approx(100 * model.score(X, y) - 100)
    assert line.happened.sum() + line.others.sum() == len(y)
    each = drawn(ReliabilityDisplay.from_estimator(CGNClassifier().fit(X, y), X, y, per_class=True))
    assert each.ax_.get_xlim()[0] < 0


def test_reliability_of_many_classes(iris):
    X, y = iris
    model = CGNClassifier().fit(X[::2], y[::2])
    display = drawn(ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2]))
    line = display.lines["CGNClassifier"].bins
    proba = model.predict_proba(X[1::2])
    assert line.n.sum() == 75
    assert line.n @ line.observed / 75 == pytest.approx(model.score(X[1::2], y[1::2]))
    assert line.n @ line.predicted / 75 == pytest.approx(proba.max(axis=1).mean())
    each = drawn(ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], per_class=True))
    assert list(each.lines) == ["0", "1", "2"]
    assert each.lines["1"].bins.n @ each.lines["1"].bins.observed == (y[1::2] == 1).sum()
    both = ReliabilityDisplay.from_predictions(y[1::2], {"a": proba, "b": proba[:, ::-1]})
    assert list(both.lines) == ["a", "b"]
    with pytest.raises(ValueError, match="75 samples and 3 classes"):
        ReliabilityDisplay.from_predictions(y[1::2], proba[:, :2])
    one = ReliabilityDisplay.from_predictions(y[1::2], proba, pos_label=1)
    alone = ReliabilityDisplay.from_predictions(y[1::2], proba[:, 1], pos_label=1)
    for display in (one, alone):
        np.testing.assert_array_equal(display.lines["classifier"].curve.observed, each.lines["1"].curve.observed)
    with pytest.raises(ValueError, match="pos_label 7 is not a class: the classes are 0, 1, 2"):
        ReliabilityDisplay.from_predictions(y[1::2], proba, pos_label=7)


def test_path_of_a_cross_validated_k(rng):
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8)).cumsum(axis=1) + y[:, None]
    model = CGNClassifier(Band(k="cv", k_max=5), likelihood_power="cv").fit(X, y)
    display = drawn(PathDisplay.from_estimator(model))
    path = display.paths["inner cross-validation"]
    assert path.x.tolist() == [1, 2, 3, 4, 5]
    assert path.x[np.argmin(path.log_loss)] == model.k_
    assert path.log_loss.min() == model.cv_results_["mean_test_log_loss"].min()


def test_paths_are_the_metrics_of_each_order(rng):
    y = np.array(["a", "b", "b"])
    joint = rng.normal(size=(2, 4, 3, 2))
    sizes = np.array([[5, 7, 9, 11], [5, 6, 8, 10]])
    display = drawn(PathDisplay.from_predictions(y, joint, sizes, names=("band", "box")))
    best = joint[1, 2].argmax(axis=1)
    assert display.paths["box"].accuracy[2] == pytest.approx(np.mean(best == [0, 1, 1]))
    proba = np.exp(joint[0, 3]) / np.exp(joint[0, 3]).sum(axis=1, keepdims=True)
    assert display.paths["band"].log_loss[3] == pytest.approx(-np.log(proba[range(3), [0, 1, 1]]).mean())
    assert display.axes_[0].lines[1].get_xdata().tolist() == sizes[1].tolist()
    with pytest.raises(ValueError, match="did not choose its k"):
        PathDisplay.from_estimator(CGNClassifier())
    with pytest.raises(ValueError, match="families × orders × samples × classes"):
        PathDisplay.from_predictions(y, joint[0], sizes, names=("band", "box"))
    with pytest.raises(ValueError, match="n_parameters must be"):
        PathDisplay.from_predictions(y, joint, sizes[:1], names=("band", "box"))


def test_relevance_is_drawn_at_the_positions_of_the_columns(iris):
    X, y = iris
    model = CGNClassifier(BandAverage(3)).fit(X, y)
    display = drawn(RelevanceDisplay.from_estimator(model))
    assert (display.axis, display.positions.tolist()) == ("column", [0, 1, 2, 3])
    np.testing.assert_array_equal(display.relevance, model.inclusion_probability_)
    expected = model.order_probability_ @ [0, 1, 2]
    np.testing.assert_allclose(display.axes_[1].lines[0].get_ydata(), expected)
    numbered = CGNClassifier(BandAverage(3)).fit(X.set_axis(["10.5", "11", "11.5", "13"], axis=1), y)
    assert RelevanceDisplay.from_estimator(numbered).positions.tolist() == [10.5, 11, 11.5, 13]
    assert RelevanceDisplay.from_estimator(numbered).axis == "m/z"
    odd = CGNClassifier(BandAverage(3)).fit(X.set_axis(["1", "2", "3", "nan"], axis=1), y)
    assert RelevanceDisplay.from_estimator(odd).axis == "column"
    given = RelevanceDisplay.from_estimator(numbered, positions=[4, 3, 2, 1], axis="time")
    assert (given.axes_[1].get_xlabel(), given.positions.tolist()) == ("time", [4, 3, 2, 1])


def test_mirrored_spectra_and_the_evidence_of_their_peaks():
    from cgnlearn.datasets import make_spectra

    made = make_spectra(80, 300, n_peaks=10, n_markers=2, effect=3.0, random_state=0)
    model = CGNClassifier(likelihood_power=0.3).fit(made.data, made.target)
    one = drawn(
        SpectrumDisplay.from_estimator(model, made.data, made.target, mz=made.mz, row=5, of="case", against="control")
    )
    parts = model.contributions(made.data[5:6])[0]
    assert one.evidence_.sum() + one.between_ == pytest.approx(0.3 * (parts[:, 0] - parts[:, 1]).sum())
    np.testing.assert_allclose(one.above, made.data[made.target == "case"].mean(axis=0))
    spectra, evidence = one.axes_
    assert evidence.get_xlabel() == "m/z"
    assert min(np.min(line.get_ydata()) for line in spectra.lines) == pytest.approx(-one.below.max())
    many = drawn(SpectrumDisplay.from_estimator(model, made.data, made.target, mz=made.mz))
    strongest = many.peaks_[np.argsort(-many.evidence_)[:2]]
    for marker in made.peaks[made.effects != 0]:
        assert np.abs(strongest / marker - 1).min() < 0.03
    assert 1 <= len(evidence.texts) <= 8
    with pytest.raises(ValueError, match="same length"):
        SpectrumDisplay([1.0, 2.0], [1.0], [1.0], [1.0], "a", "b", "c")


def test_bars_join_methods_that_do_not_differ_significantly():
    names = [f"${i}$" for i in range(6)]
    display = RanksDisplay([1.0, 1.5, 2.2, 4.0, 4.1, 6.0], names, 0.9, marked="$0$").plot()
    drawn(display)
    assert display.alike == [(1.0, 1.5), (1.5, 2.2), (4.0, 4.1)]
    texts = [text.get_text() for text in display.ax_.texts]
    assert [name for text in texts for name in names if name in text] == names
    alone = RanksDisplay.from_values(np.eye(40)[:, :3] + [[3, 2, 1]], names[:3])
    assert alone.alike == []
    for values, given in (([[1.0, 2.0]], names), ([1.0, 2.0], names[:2]), ([[1.0]], names[:1])):
        with pytest.raises(ValueError, match=r"columns|at least two"):
            RanksDisplay.from_values(values, given)


def test_long_names_are_broken_after_underscores():
    assert wrapped("nonflavanoid_phenols", 13) == "nonflavanoid_\nphenols"


@pytest.fixture(scope="module")
def mixture():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return CGNClassifierCV(candidates=["naive_bayes", "tan", "logistic", "aode"]).fit(X, y)


def test_contributions_of_a_mixture_add_up_with_their_remainder(iris, mixture):
    X, _ = iris
    for row in (0, 70, 120):
        display = drawn(ContributionsDisplay.from_estimator(mixture, X, row))
        log_proba = np.sort(mixture.predict_log_proba(X.iloc[[row]])[0])
        assert display.log_odds.sum() + display.prior_log_odds + display.remainder == pytest.approx(
            log_proba[-1] - log_proba[-2]
        )
        widths = [bar.get_width() for bar in display.ax_.patches]
        assert sum(widths) == pytest.approx(log_proba[-1] - log_proba[-2])
        assert [text.get_text() for text in display.ax_.get_yticklabels()].count("remainder of the mixture") == 1
    line = drawn(ContributionsDisplay.from_estimator(mixture, X, 70, positions=np.arange(4)))
    assert "remainder" in line.ax_.get_title("left")
    alone = drawn(ContributionsDisplay.from_estimator(CGNClassifier().fit(*iris), X, 70))
    assert alone.remainder == 0
    assert "remainder of the mixture" not in [text.get_text() for text in alone.ax_.get_yticklabels()]


def test_spectra_of_a_mixture(mixture, iris):
    X, y = iris
    display = SpectrumDisplay.from_estimator(mixture, X, y, mz=np.arange(4.0), row=70)
    parts = mixture.contributions(X.iloc[[70]])[0]
    first, second = np.argsort(mixture.predict_proba(X.iloc[[70]])[0])[::-1][:2]
    total = display.evidence_.sum() + display.between_
    assert total == pytest.approx((parts[:, first] - parts[:, second]).sum())


def test_importance_is_the_log_loss_that_a_feature_saves(rng, mixture, iris):
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 3)) + np.outer(y, [0.0, 3.0, 1.0])
    model = CGNClassifier().fit(X, y)
    display = drawn(ImportanceDisplay.from_estimator(model, X, y, n_repeats=20))
    strong, weak = display.increase[1], display.increase[2]
    assert strong.min() > weak.max() > 0.01
    assert abs(display.increase[0]).max() < 0.05
    order = np.random.default_rng(3).permutation(200)
    permuted = np.column_stack([X[:, 0], X[order, 1], X[:, 2]])
    losses = [-model.predict_log_proba(some)[np.arange(200), y].mean() for some in (X, permuted)]
    assert losses[1] - losses[0] == pytest.approx(strong.mean(), abs=5 * strong.std())
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["1", "2", "0"]
    X, y = iris
    of_mixture = drawn(ImportanceDisplay.from_estimator(mixture, X, y, n_repeats=2))
    same = ImportanceDisplay.from_estimator(mixture, pl.from_pandas(X), y, n_repeats=2)
    np.testing.assert_array_equal(of_mixture.increase, same.increase)
    assert of_mixture.names == list(X.columns)


def test_many_features_have_a_bar_of_the_others():
    display = drawn(ImportanceDisplay(np.ones((30, 2)), [f"x{i}" for i in range(30)]).plot())
    assert display.ax_.get_yticklabels()[-1].get_text() == "mean of 10 others"


def test_displays_say_what_they_need(iris, mixture):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), CGNClassifier()).fit(X, y)
    other = LogisticRegression(max_iter=1000).fit(X, y)
    for draw, message in (
        (lambda: StructureDisplay.from_estimator(mixture), "CGNClassifierCV does not have one structure: use CGNCl"),
        (lambda: StructureDisplay.from_estimator(other), "LogisticRegression does not have one structure: use CGNCl"),
        (lambda: RelevanceDisplay.from_estimator(mixture), r"does not have relevance: use CGNClassifier\(BandAverage"),
        (lambda: RelevanceDisplay.from_estimator(CGNClassifier().fit(X, y)), "CGNClassifier does not have relevance"),
        (
            lambda: ContributionsDisplay.from_estimator(other, X),
            "does not have the contributions of features: use CGNC",
        ),
        (lambda: ContributionsDisplay.from_estimator(pipeline, X), "CGNClassifierCV or its last step, on samples as"),
        (lambda: ImportanceDisplay.from_estimator(other, X, y), "LogisticRegression does not have what its importance"),
        (lambda: PathDisplay.from_estimator(mixture), "did not choose its k"),
        (lambda: ContributionsDisplay.from_estimator(mixture, X, of="z"), r"'z' is none of the classes \[0, 1, 2\]"),
        (lambda: StructureDisplay.from_estimator(CGNClassifier()), "is not fitted yet"),
        (lambda: ContributionsDisplay.from_estimator(CGNClassifierCV(), X), "is not fitted yet"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            draw()
        assert "\n" not in str(caught.value)


# ---- Shapley values and effects


def test_a_waterfall_goes_from_the_prior_to_the_prediction(iris):
    X, y = iris
    for model in (CGNClassifier("tan").fit(X, y), CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(X, y)):
        display = drawn(ContributionsDisplay.from_estimator(model, X, 70, method="shapley", of=2, against=1))
        log_proba = model.predict_log_proba(X.iloc[[70]])[0]
        bars = display.ax_.patches
        assert len(bars) == 6
        assert bars[0].get_width() == pytest.approx(display.prior_log_odds)
        for before, after in pairwise(bars[:-1]):
            assert after.get_x() == pytest.approx(before.get_x() + before.get_width())
        assert bars[-2].get_x() + bars[-2].get_width() == pytest.approx(log_proba[2] - log_proba[1])
        assert (bars[-1].get_x(), bars[-1].get_width()) == (0, pytest.approx(log_proba[2] - log_proba[1]))
        names = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert (names[0], names[-1]) == ("class prior", "sample")


def test_groups_of_features_in_a_waterfall(iris):
    X, y = iris
    model = CGNClassifier("tan").fit(X, y)
    petal = {"petal": ["petal length (cm)", "petal width (cm)"]}
    display = drawn(ContributionsDisplay.from_estimator(model, X, 70, method="shapley", groups=petal))
    assert display.names == ["petal", "others"]
    with pytest.raises(ValueError, match='groups need method="shapley"'):
        ContributionsDisplay.from_estimator(model, X, 70, groups=petal)
    with pytest.raises(ValueError, match='method must be "chain" or "shapley"'):
        ContributionsDisplay.from_estimator(model, X, 70, method="other")


def test_an_effect_is_the_prediction_from_one_feature(iris):
    X, y = iris
    model = CGNClassifier("tan").fit(X, y)
    display = drawn(EffectDisplay.from_estimator(model, X, "petal width (cm)"))
    H = np.full((121, 4), np.nan)
    H[:, 3] = display.values
    proba = model.predict_proba(type(X)(H, columns=X.columns))
    np.testing.assert_allclose(display.log_odds, np.log(proba) - np.log1p(-proba), atol=1e-3)
    assert display.values[0] < X["petal width (cm)"].min() < X["petal width (cm)"].max() < display.values[-1]
    assert len(display.ax_.get_legend().get_texts()) == 3
    np.testing.assert_allclose(display.prior_log_odds, np.log(0.5), atol=1e-9)


def test_of_two_classes_one_curve_is_drawn_and_of_a_discrete_feature_points():
    rng = np.random.default_rng(0)
    y = np.array(["ill", "well"])[np.arange(60) % 2]
    colour = np.where(rng.random(60) < np.where(y == "ill", 0.8, 0.3), "red", "blue")
    X = pl.DataFrame({"colour": colour, "size": rng.normal(size=60)})
    model = CGNClassifier().fit(X, y)
    display = drawn(EffectDisplay.from_estimator(model, X, "colour"))
    assert display.classes == ["well"]
    assert display.values.tolist() == ["blue", "red"]
    assert display.rug.tolist() == [(colour == "blue").sum(), (colour == "red").sum()]
    assert display.log_odds[0, 0] > 0 > display.log_odds[1, 0]
    other = drawn(EffectDisplay.from_estimator(model, X, 1, of="ill"))
    assert other.classes == ["ill"]
    assert other.ax_.get_ylabel() == "log odds of ill"


def test_a_wide_band_leaves_half_of_the_view_to_the_curve():
    odds, band = np.linspace(-1, 2, 5)[:, None], np.full((5, 1, 2), [-12.0, 13.0])
    low, high = EffectDisplay(np.arange(5), odds, ["ill"], "size", [0.0], band).plot().ax_.get_ylim()
    assert -3 < low < -2.5
    assert 3.5 < high < 4
    low, high = EffectDisplay(np.arange(5), odds, ["ill"], "size", [0.0], band / 10).plot().ax_.get_ylim()
    assert low < -1.2
    assert high < 2.5


def test_a_panel_of_effects_begins_with_the_most_important_feature(iris):
    X, y = iris
    model = CGNClassifier("tan").fit(X, y)
    displays = EffectDisplay.panel(model, X, y, most=3)
    increase = model.feature_importance(X, y).increase
    assert [display.name for display in displays] == X.columns[np.argsort(-increase)[:3]].tolist()
    assert displays[0].ax_.get_title(loc="left").startswith(f"{increase.max():+.3f} nats (")
    drawn(displays[0])


def test_effects_that_cannot_be_drawn_say_why(iris):
    X, y = iris
    model = CGNClassifier().fit(X, y)
    with pytest.raises(ValueError, match="'z' is no column of X"):
        EffectDisplay.from_estimator(model, X, "z")
    with pytest.raises(ValueError, match=r"'z' is none of the classes \[0, 1, 2\]"):
        EffectDisplay.from_estimator(model, X, 0, of="z")
    with pytest.raises(ValueError, match="an effect integrates features out, which TANAverage"):
        EffectDisplay.from_estimator(CGNClassifier("tan_average").fit(X, y), X, 0)
    with pytest.raises(ValueError, match="has no value in X"):
        EffectDisplay.from_estimator(model, X.assign(**{X.columns[0]: np.nan}), 0)
