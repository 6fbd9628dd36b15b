import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from cgnlearn import (
    TAN,
    Band,
    Box,
    CGNClassifier,
    CGNClassifierCV,
    GreedyJan,
    Jan,
    NaiveBayes,
    Prior,
    SampleNotAcceptableError,
    Structure,
    load,
    save,
)  # fmt: skip
from cgnlearn.data.warning import DataWarning
from cgnlearn.networks.moments import moments_of

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)


# ---- equalities between structures


def test_structures_that_are_the_same_give_the_same():
    X, y = WINE

    def proba(structure):
        return CGNClassifier(structure).fit(X[::2], y[::2]).predict_proba(X[1::2])

    naive = proba("naive_bayes")
    for same in (Jan([[i] for i in range(13)]), Band(1), Box(1), NaiveBayes(), Structure.naive_bayes(13)):
        np.testing.assert_allclose(proba(same), naive, atol=1e-12)
    complete = proba("complete")
    for same in (Jan([range(13)]), Band(13), Box(13), Band(40), Structure.complete(13)):
        np.testing.assert_allclose(proba(same), complete, atol=1e-12)
    chordal = proba(Structure.from_chordal([(i, i + 1) for i in range(12)], 13))
    np.testing.assert_allclose(chordal, proba(Band(2)), atol=1e-12)


@given(st.permutations(range(5)), st.sampled_from(["pooled", "cell"]), st.sampled_from([0.0, 0.4, 1.0]))
def test_permuting_a_group_changes_nothing(order, location, sharing):
    X, y = WINE
    model = CGNClassifier(Jan([list(range(5)), [7, 6]]), prior=Prior(location=location), sharing=sharing)
    before = model.fit(X[::2], y[::2]).predict_proba(X[1::2])
    model.set_params(structure=Jan([list(order), [6, 7]]))
    assert np.abs(model.fit(X[::2], y[::2]).predict_proba(X[1::2]) - before).max() < 1e-9


@given(
    st.integers(-60, 60),
    st.floats(-1e3, 1e3),
    st.sampled_from(["naive_bayes", "complete", Band(3), "tan"]),
    st.sampled_from(["pooled", "paper", "cell"]),
)
def test_shifting_and_scaling_a_column_changes_nothing(exponent, shift, structure, location):
    X, y = IRIS
    model = CGNClassifier(structure, prior=Prior(location=location))
    before = model.fit(X[::2], y[::2]).predict_proba(X[1::2])
    moved = X.copy()
    moved[:, 1] = (moved[:, 1] + shift) * 10.0**exponent
    assert np.abs(model.fit(moved[::2], y[::2]).predict_proba(moved[1::2]) - before).max() < 1e-9


@pytest.mark.filterwarnings("ignore:sample_weight counts samples")
def test_bayes_tends_to_ml_as_samples_are_repeated():
    X, y = IRIS
    ml = CGNClassifier("complete", estimation="ml").fit(X, y).predict_log_proba(X)
    distance = [
        np.abs(CGNClassifier("complete").fit(X, y, np.full(len(y), w)).predict_log_proba(X) - ml).max()
        for w in (1.0, 1e2, 1e4, 1e7)
    ]
    assert distance == sorted(distance, reverse=True)
    assert distance[-1] < 0.01


# ---- batches and weights


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("structure", ["naive_bayes", "complete", Band(3)], ids=str)
def test_partial_fit_over_a_hundred_batches_is_one_fit(rng, structure, offset):
    n = 3000
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6)) + y[:, None] + offset
    whole = CGNClassifier(structure).fit(X, y)
    parts = CGNClassifier(structure)
    for rows in np.array_split(rng.permutation(n), np.sort(rng.choice(np.arange(1, n), 99, replace=False))):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    test = rng.normal(size=(50, 6)) @ rng.normal(size=(6, 6)) + offset
    assert np.abs(parts.predict_proba(test) - whole.predict_proba(test)).max() < 1e-10
    assert parts.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)


def test_partial_fit_knows_its_classes_and_refits(mixed):
    X, y, test = mixed
    model = CGNClassifier(categorical_features=[0, 1])
    with pytest.raises(ValueError, match="first call of partial_fit needs classes"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=[0, 1, 2, 9])
    unseen = model.predict_proba(test)
    assert unseen.shape == (9, 4)
    assert np.isfinite(unseen).all()
    assert model.predict_proba(test[:1]).sum() == pytest.approx(1)
    with pytest.raises(ValueError, match=r"classes must be those of the first call, \[0, 1, 2, 9\]"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"class 5, which is not among"):
        model.partial_fit(X, np.where(y == 0, 5, y))
    assert CGNClassifier(categorical_features=[0, 1]).fit(X, y).predict_proba(test).shape == (9, 3)
    assert model.fit(X, y).classes_.tolist() == [0, 1, 2]
    with pytest.raises(AttributeError, match="partial_fit"):
        CGNClassifier("fwgjan").partial_fit(X, y, classes=[0, 1, 2])


@given(st.integers(0, 10**6), st.sampled_from(["naive_bayes", "complete"]), st.sampled_from([0.0, 0.5]))
def test_a_weight_of_two_is_the_sample_twice(seed, structure, sharing):
    X, y = IRIS
    weights = np.random.default_rng(seed).integers(0, 3, len(y))
    weights[[0, 1, 50, 51, 100, 101]] = 1
    weighted = CGNClassifier(structure, sharing=sharing).fit(X, y, weights)
    repeated = CGNClassifier(structure, sharing=sharing).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)
    if sharing == 0:
        assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_)


# ---- settings


def test_class_priors(mixed):
    X, y, _ = mixed
    X, y = X[:, 2:], np.where(y == 2, 1, y)
    learned = CGNClassifier().fit(X, y)
    np.testing.assert_allclose(np.exp(learned.class_log_prior_), [30.01 / 90.02, 60.01 / 90.02])
    uniform = CGNClassifier(class_prior="uniform").fit(X, y)
    given = CGNClassifier(class_prior=[0.5, 0.5]).fit(X, y)
    np.testing.assert_array_equal(uniform.predict_proba(X), given.predict_proba(X))
    odds = learned.predict_log_proba(X) - uniform.predict_log_proba(X)
    np.testing.assert_allclose(odds[:, 1] - odds[:, 0], np.log(60.01 / 30.01))


def test_likelihood_power_tempers_the_likelihood_alone(mixed):
    X, y, test = mixed
    cool, plain = (CGNClassifier(likelihood_power=t).fit(X[:, 2:], y) for t in (0.25, 1.0))
    likelihood = plain.predict_joint_log_proba(test[:, 2:]) - plain.class_log_prior_
    np.testing.assert_allclose(
        cool.predict_joint_log_proba(test[:, 2:]), 0.25 * likelihood + plain.class_log_prior_, atol=1e-12
    )


def test_score_samples_is_the_marginal():
    X, y = IRIS
    model = CGNClassifier().fit(X, y)
    np.testing.assert_allclose(model.score_samples(X), np.log(np.exp(model.predict_joint_log_proba(X)).sum(axis=1)))
    assert model.score_samples([[100.0] * 4])[0] < model.score_samples(X).min()


def test_fitted_features():
    X, y = IRIS
    model = CGNClassifier(Band(2), sharing=1.0).fit(X, y)
    assert model.structure_ == Structure.band(4, 2)
    assert model.n_parameters_ == Structure.band(4, 2).n_parameters(3, sharing=1.0)
    assert model.likelihood_power_ == 1.0
    assert model.statistics_.classes.tolist() == [50, 50, 50]
    assert model.n_features_in_ == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimation": "map"}, 'estimation must be "bayes" or "ml"'),
        ({"sharing": 1.5}, "sharing must be a number from 0 to 1"),
        ({"sharing": "all"}, "sharing must be a number from 0 to 1"),
        ({"likelihood_power": 0}, "likelihood_power must be a positive number"),
        ({"likelihood_power": np.inf}, "likelihood_power must be a positive number"),
        ({"structure": "forest"}, 'structure must be one of "naive_bayes"'),
        ({"structure": {0: [1], 1: [0]}}, "cycle: 0 -> 1 -> 0|cycle: 1 -> 0 -> 1"),
        ({"structure": {0: [], 9: []}}, "names column 9, but X has 4 columns"),
        ({"structure": {"a": []}}, "names 'a', but X has no column names"),
        (
            {"structure": {0: [1], 1: []}, "categorical_features": [0]},
            "column 1 is continuous and cannot be a parent of column 0",
        ),
        ({"class_prior": [0.5, 0.5]}, "one probability for each of the 3 classes"),
        ({"class_prior": [1.0, 0.0, 0.0]}, "class_prior must be positive"),
        ({"class_prior": "flat"}, 'class_prior must be "uniform"'),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        CGNClassifier(**settings).fit(*IRIS)
    assert "\n" not in str(caught.value)


def test_wrong_types_are_refused():
    for settings in ({"structure": 3}, {"prior": "flat"}):
        with pytest.raises(TypeError, match="must be"):
            CGNClassifier(**settings).fit(*IRIS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.zeros(len(y)), None), "y has one class only, 0.0"),
        (lambda X, y: (X, y, -np.ones(len(y))), "Negative values in data passed to `sample_weight`"),
        (lambda X, y: (X, y, np.zeros(len(y))), "all of sample_weight is zero"),
        (lambda X, y: (X, y[:-1], None), "inconsistent numbers of samples"),
        (lambda X, y: (X[:, 0], y, None), "Expected 2D array"),
        (lambda X, y: (X[:0], y[:0], None), "0 sample"),
    ],
)
def test_wrong_data_are_refused(change, message):
    X, y, weights = change(*IRIS)
    with pytest.raises(ValueError, match=message):
        CGNClassifier().fit(X, y, weights)


def test_wrong_columns_at_prediction_are_refused():
    X, y = IRIS
    model = CGNClassifier().fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but CGNClassifier is expecting 4"):
        model.predict(X[:, :3])
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = CGNClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[list("badc")])
    with pytest.raises(ValueError, match="column 'c' holds infinity in sample 3"):
        named.predict(frame.assign(c=frame["c"].where(np.arange(len(y)) != 3, np.inf)))


# ---- data frames


def mixed_frames(mixed):
    X, y, test = mixed

    def pandas(X):
        frame = pd.DataFrame(X, columns=["site", "grade", "a", "b", "c"])
        frame["site"] = pd.Categorical.from_codes(X[:, 0].astype(int), ["left", "right"])
        frame["grade"] = pd.Categorical.from_codes(X[:, 1].astype(int), ["low", "mid", "high"])
        return frame

    def polars(X):
        frame = pl.from_pandas(pandas(X).astype({"site": str, "grade": str}))
        return frame.with_columns(
            pl.col("site").cast(pl.Enum(["left", "right"])), pl.col("grade").cast(pl.Enum(["low", "mid", "high"]))
        )

    return {"pandas": (pandas(X), pandas(test)), "polars": (polars(X), polars(test))}, y, (X, test)


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", Band(2), "tan"], ids=str)
def test_numpy_pandas_and_polars_agree(mixed, structure):
    frames, y, (X, test) = mixed_frames(mixed)
    expected = CGNClassifier(structure, categorical_features=[0, 1]).fit(X, y).predict_proba(test)
    for train, rows in frames.values():
        model = CGNClassifier(structure).fit(train, y)
        np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-12)
        assert model.feature_names_in_.tolist() == ["site", "grade", "a", "b", "c"]


def test_mappings_by_name(mixed):
    frames, y, (X, test) = mixed_frames(mixed)
    by_name = {"site": [], "a": ["site"], "c": ["a", "site"]}
    expected = CGNClassifier({0: [], 2: [0], 4: [2, 0]}, categorical_features=[0, 1]).fit(X, y).predict_proba(test)
    for train, rows in frames.values():
        model = CGNClassifier(by_name).fit(train, y)
        np.testing.assert_allclose(model.predict_proba(rows), expected, atol=1e-12)
        assert set(model.structure_.nodes) == {"site", "a", "c"}
        jan = CGNClassifier(Jan([["c", "site", "a"]])).fit(train, y)  # the discrete one goes ahead by itself
        assert jan.structure_.parents["c"] == ("site",)
    with pytest.raises(ValueError, match="column 'a' is continuous and cannot be a parent of column 'site'"):
        CGNClassifier({"a": [], "site": ["a"]}).fit(train, y)
    with pytest.raises(ValueError, match="names 'dose', which is not a column"):
        CGNClassifier({"dose": []}).fit(train, y)


# ---- hostile data


def assert_sound(model, X):
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(model.predict_joint_log_proba(X)).all()


HOSTILE_STRUCTURES = ["naive_bayes", "complete", Band(3), Box(2), "tan"]


@pytest.mark.parametrize("structure", HOSTILE_STRUCTURES, ids=str)
@pytest.mark.parametrize("location", ["pooled", "paper", "cell"])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_bayes_always_answers(rng, structure, location, sharing):
    y = np.array([0, 0, 0, 0, 1, 1, 2])  # fewer samples than columns; a class of one sample
    X = rng.normal(size=(7, 9))
    X[:, 1] = 3.7  # constant
    X[:, 3] = X[:, 2]  # duplicated
    X[:, 4] *= 1e150
    X[:, 5] *= 1e-150
    X[:, 6] = 1e8 + X[:, 6]
    X[:, 7] = y == 2  # constant in every class
    model = CGNClassifier(structure, prior=Prior(location=location), sharing=sharing).fit(X, y)
    assert_sound(model, X)
    far = np.vstack([X * 1e3, -X, np.full((1, 9), 1e300), np.full((1, 9), -1e300), np.zeros((1, 9))])
    assert_sound(model, far)
    assert not model.contributions(far)[:, 1].any()


def test_a_constant_column_says_nothing():
    X, y = IRIS
    padded = np.column_stack([X[:, :2], np.full(len(y), 0.1), X[:, 2:]])
    for structure in ("naive_bayes", "complete", Band(3)):
        model = CGNClassifier(structure).fit(padded, y)
        elsewhere = padded.copy()
        elsewhere[:, 2] = 55.0
        np.testing.assert_array_equal(model.predict_proba(elsewhere), model.predict_proba(padded))
    for structure in ("naive_bayes", "complete"):
        np.testing.assert_allclose(
            CGNClassifier(structure).fit(padded, y).predict_proba(padded),
            CGNClassifier(structure).fit(X, y).predict_proba(X),
            atol=1e-12,
        )


def test_only_constant_columns_leave_the_class_prior():
    model = CGNClassifier().fit(np.ones((5, 2)), [0, 0, 0, 1, 1])
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), np.exp(model.class_log_prior_)[None])
    assert model.sample(3, 0)[0].tolist() == [[1, 1]] * 3


def test_empty_cells_and_unseen_levels(rng):
    train = pd.DataFrame(
        {"x": rng.normal(size=12), "g": pd.Categorical(["a", "b"] * 6, categories=["a", "b", "never"])}
    )
    y = np.array(["no", "yes"] * 6)  # level a is always "no"
    for structure in ("naive_bayes", "complete", {"g": [], "x": ["g"]}):
        for location in ("pooled", "paper", "cell"):
            model = CGNClassifier(structure, prior=Prior(location=location)).fit(train, y)
            assert_sound(model, train)
            assert_sound(model, train.assign(g=pd.Categorical(["never"] * 12, categories=["a", "b", "never"])))


def test_squares_that_overflow_are_refused_by_name():
    with pytest.raises(ValueError, match="squares of column 1 overflow: divide"):
        CGNClassifier().fit([[1.0, 1e200], [2.0, -1e200], [3.0, 2e200]], [0, 0, 1])


def test_an_expert_scale_far_from_the_data_still_answers(rng):
    x = rng.normal(size=(40, 1))
    X = np.column_stack([x, x, rng.normal(size=40)])
    model = CGNClassifier("complete", prior=Prior(scale=[1e-30, 1e-30, 1e12])).fit(X, np.arange(40) % 2)
    assert_sound(model, X)


def test_float32_and_fortran_order_are_read_as_they_are(rng):
    X, y = IRIS
    expected = CGNClassifier("complete").fit(X, y).predict_proba(X)
    fortran = np.asfortranarray(X)
    np.testing.assert_allclose(CGNClassifier("complete").fit(fortran, y).predict_proba(fortran), expected, atol=1e-12)
    single = X.astype(np.float32)
    np.testing.assert_allclose(CGNClassifier("complete").fit(single, y).predict_proba(single), expected, atol=1e-4)
    integers = np.round(X * 10).astype(int)
    assert CGNClassifier().fit(integers, y).score(integers, y) > 0.9


# ---- sampling


@pytest.mark.parametrize("estimation", ["bayes", "ml"])
@pytest.mark.parametrize("location", ["pooled", "paper"])
def test_samples_follow_the_model(mixed, estimation, location):
    X, y, _ = mixed
    structure = {0: [], 2: [0], 3: [2, 0], 4: [3]}
    model = CGNClassifier(
        structure, estimation=estimation, prior=Prior(location=location, shape=4.0), categorical_features=[0, 1]
    ).fit(X, y)
    drawn, labels = model.sample(20_000, random_state=1)
    assert drawn.shape == (20_000, 5)
    np.testing.assert_allclose(np.bincount(labels) / len(labels), np.exp(model.class_log_prior_), atol=0.02)
    # Refitting many draws by maximum likelihood gives back the densities of the training samples.
    refitted = CGNClassifier(structure, estimation="ml", categorical_features=[0]).fit(drawn, labels)
    gap = refitted.predict_joint_log_proba(X) - model.predict_joint_log_proba(X)
    assert np.median(np.abs(gap)) < 0.1
    np.testing.assert_array_equal(model.sample(5, random_state=3)[0], model.sample(5, random_state=3)[0])
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)


def test_samples_come_in_the_form_of_the_training_data(mixed):
    frames, y, _ = mixed_frames(mixed)
    for train, _ in frames.values():
        model = CGNClassifier("complete").fit(train, y)
        drawn, labels = model.sample(30, random_state=0)
        assert type(drawn) is type(train)
        assert CGNClassifier("complete").fit(drawn, labels).predict(train).shape == y.shape


# ---- scikit-learn manners


def test_grid_search_reaches_the_learner():
    X, y = WINE
    search = GridSearchCV(
        CGNClassifier(Band(1)), {"structure__k": [1, 3], "sharing": [0.0, 1.0]}, scoring="neg_log_loss"
    )
    search.fit(X, y)
    assert set(search.best_params_) == {"structure__k", "sharing"}


def test_pipelines_clones_and_pickles():
    X, y = WINE
    model = make_pipeline(StandardScaler(), CGNClassifier(Structure.band(13, 3), prior=Prior(strength=2.0)))
    assert cross_val_score(model, X, y).mean() > 0.95
    fitted = clone(model).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))


def test_representations_are_readable():
    X, y = IRIS
    model = CGNClassifier(Structure.band(4, 2), prior=Prior(strength=2.0)).fit(X, y)
    assert repr(model) == (
        "CGNClassifier(prior=Prior(strength=2.0),\n              structure=Structure(4 features, 3 edges))"
    )
    assert repr(model.statistics_) == "Statistics(150 samples, 3 classes)"
    page = model._repr_html_()
    assert "Structure(4 features, 3 edges)" in page
    assert "CGNClassifier" in page


# ---- what was fitted stays as it was


def test_parameters_set_after_fit_change_nothing_fitted(tmp_path):
    X, y = IRIS
    prior = np.array([0.2, 0.3, 0.5])
    model = CGNClassifier("complete", class_prior=prior, likelihood_power=0.7).fit(X[::3], y[::3])
    expected = model.predict_proba(X)
    model.set_params(
        estimation="ml", sharing=1.0, likelihood_power=2.0, structure="naive_bayes", prior=Prior(shape=9.0)
    )
    prior[:] = [0.6, 0.3, 0.1]
    save(model, tmp_path / "model.skops")
    for copy in (model, pickle.loads(pickle.dumps(model)), deepcopy(model), load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(copy.predict_proba(X), expected)


def test_a_failed_fit_leaves_nothing_fitted():
    X, y = IRIS
    model = CGNClassifier("complete", estimation="ml").fit(X, y)
    with pytest.raises(SampleNotAcceptableError):
        model.fit(X[::20], y[::20])
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="first call of partial_fit needs classes"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="holds infinity"):
        model.partial_fit(np.full_like(X, np.inf), y, classes=[0, 1, 2])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_failed_partial_fit_loses_nothing():
    X, y = IRIS
    model = CGNClassifier("tan").partial_fit(X, y, classes=[0, 1, 2])
    expected = model.predict_proba(X)
    for wrong in ((X[:, :2], y), (np.full_like(X, np.inf), y), (X, y + 1), (X, y[:3])):
        with pytest.raises(ValueError):
            model.partial_fit(*wrong)
        np.testing.assert_array_equal(model.predict_proba(X), expected)


@pytest.mark.parametrize("likelihood_power", [0.4, 1.0, 3.0])
def test_the_density_integrates_to_one_whatever_the_likelihood_power(likelihood_power):
    X, y = IRIS
    model = CGNClassifier(likelihood_power=likelihood_power).fit(X[:, :1], y)
    grid = np.linspace(-60, 80, 200_001)[:, None]
    assert np.trapezoid(np.exp(model.score_samples(grid)), grid[:, 0]) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    "model",
    [
        CGNClassifier("tan"),
        CGNClassifier("complete", likelihood_power="cv"),
        CGNClassifier(Band("cv", k_max=3, cv=3)),
        CGNClassifier(GreedyJan(cv=3)),
        CGNClassifier(categorical_features=[0]),
    ],
    ids=str,
)
def test_samples_of_weight_zero_change_nothing(rng, model):
    X, y = IRIS
    X = X.round()
    weights = rng.uniform(0.5, 2, len(y))
    more = np.vstack([X, X[:40] * 10 + 100])  # other levels, too
    labels = np.concatenate([y, np.full(40, 7)])  # and another class
    expected = clone(model).fit(X, y, weights)
    found = clone(model).fit(more, labels, np.concatenate([weights, np.zeros(40)]))
    assert found.classes_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_choices_are_the_same_every_time_by_default():
    X, y = load_wine(return_X_y=True)
    for model in (CGNClassifier(Band("cv", k_max=4), likelihood_power="cv"), CGNClassifier("fwgjan")):
        once, again = (clone(model).fit(X, y).predict_proba(X) for _ in range(2))
        np.testing.assert_array_equal(once, again)


def test_scales_too_small_are_refused_as_too_large_ones_are():
    X, y = IRIS
    for scale in (1e-155, 1e-170, 1e-300):
        with pytest.raises(ValueError, match="squares of column 0 underflow: multiply"):
            CGNClassifier().fit(X * scale, y)
    for scale in (1e160, 1e300):
        with pytest.raises(ValueError, match="squares of column 0 overflow: divide"):
            CGNClassifier().fit(X * scale, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"class_prior": {0: 0.3, 1: 0.3, 2: 0.4}}, "class_prior must be .* an array in the order of classes_, not {0"),
        ({"class_prior": [0.5, "a", 0.2]}, "class_prior must hold numbers"),
        ({"likelihood_power": np.ones(2)}, "likelihood_power must be a positive number"),
    ],
)
def test_odd_parameters_are_refused_in_one_line(parameters, message):
    with pytest.raises(ValueError, match=message) as caught:
        CGNClassifier(**parameters).fit(*IRIS)
    assert "\n" not in str(caught.value)


# ---- count first, decide later


def test_samples_are_counted_no_more_often_than_needed(monkeypatch):
    """Once, also where something is chosen by leave-one-out; once more in folds where a structure is learned anew."""
    X, y = IRIS
    counted = []

    def counting(table, partition, n_classes):
        counted.append(table.n_samples)
        return moments_of(table, partition, n_classes)

    monkeypatch.setattr("cgnlearn.networks.statistics.moments_of", counting)
    for structure, likelihood_power, times in (
        ("naive_bayes", 1.0, 1),
        ("tan", 1.0, 1),
        ("naive_bayes", "cv", 1),
        ("tan", "cv", 5),
        (Band("cv", k_max=4), "cv", 1),
        (GreedyJan("backward"), 1.0, 2),
    ):
        counted.clear()
        CGNClassifier(structure, likelihood_power=likelihood_power).fit(X, y)
        assert sum(counted) == times * len(y), structure


@pytest.mark.parametrize("structure", ["tan", TAN("mutual_information")], ids=str)
def test_a_tree_is_learned_in_parts(mixed, structure):
    X, y, test = mixed
    whole = CGNClassifier(structure, categorical_features=[0, 1]).fit(X, y)
    parts = CGNClassifier(structure, categorical_features=[0, 1])
    for rows in (slice(0, 30), slice(30, 37), slice(37, None)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert parts.structure_ == whole.structure_
    np.testing.assert_allclose(parts.predict_proba(test), whole.predict_proba(test), rtol=1e-9)


@pytest.mark.parametrize("structure", ["naive_bayes", "tan", "complete", Band(2), {2: [], 4: [2]}], ids=str)
def test_from_statistics_is_fit(mixed, structure):
    X, y, test = mixed
    parameters = {"structure": structure, "categorical_features": [0, 1], "sharing": 0.3, "likelihood_power": 0.8}
    whole = CGNClassifier(**parameters).fit(X, y)
    parts = [CGNClassifier(**parameters).partial_fit(X[i::3], y[i::3], classes=[0, 1, 2]).statistics_ for i in range(3)]
    found = CGNClassifier.from_statistics(sum(parts), **parameters)
    np.testing.assert_allclose(found.predict_proba(test), whole.predict_proba(test), rtol=1e-9)
    assert found.structure_ == whole.structure_
    other = CGNClassifier.from_statistics(sum(parts), structure={2: []}, class_prior="uniform")
    assert other.predict_proba(test).shape == (9, 3)


def test_from_statistics_refuses_what_needs_rows(mixed):
    X, y, _ = mixed
    statistics = CGNClassifier().fit(X, y).statistics_
    for parameters in ({"structure": "fwgjan"}, {"structure": Band("cv")}, {"likelihood_power": "cv"}):
        with pytest.raises(ValueError, match="from_statistics cannot"):
            CGNClassifier.from_statistics(statistics, **parameters)
    with pytest.raises(ValueError, match="were not counted together"):
        CGNClassifier.from_statistics(statistics, structure="complete")


def test_a_tree_over_too_many_columns_is_refused_before_it_is_counted():
    X = np.zeros((4, 12_600))
    with pytest.raises(ValueError, match=r"a TAN of 12600 continuous columns needs about \d+ GB.*use Band"):
        CGNClassifier("tan").fit(X, [0, 0, 1, 1])


# ---- weights that are no frequencies


@pytest.mark.parametrize("model", [CGNClassifier("complete", estimation="ml"), CGNClassifierCV(candidates=["tan"])])
@pytest.mark.parametrize(
    ("weight", "total", "mean"), [(1 / 150, "1", "0.00667"), (1000.0, "150000", "1e+03")], ids=["small", "large"]
)
def test_weights_that_are_hardly_frequencies_are_warned_of(model, weight, total, mean):
    X, y = load_iris(return_X_y=True)
    with pytest.warns(DataWarning) as told:
        model.fit(X, y, sample_weight=np.full(150, weight))
    (message,) = (str(each.message) for each in told)
    assert f"150 samples (an effective number of 150) count as {total}, " in message
    assert message.endswith(f"divide them by their mean, {mean}")
    assert told[0].filename == __file__


def test_weights_that_may_be_frequencies_are_not_warned_of():
    X, y = load_iris(return_X_y=True)
    CGNClassifier().fit(X, y, sample_weight=np.random.default_rng(0).uniform(0.2, 5.0, 150))
    counts = np.full(150, 1000.0)  # of equal samples, as of a table of counts
    CGNClassifier(categorical_features=[0, 1, 2, 3]).fit(X.round(), y, sample_weight=counts)
