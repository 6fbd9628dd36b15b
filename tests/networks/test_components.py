"""Features that are never observed together with their parents, or constant where they are."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, Prior, Structure, load, save
from tests.networks.test_leave_one_out import assert_same, joint, refitted

pytestmark = pytest.mark.filterwarnings("ignore:.*is observed in")
HELD = Prior(location=[0.3, -1.0, 0.5], scale=[1.0, 0.8, 1.5])
CHAIN = Structure.from_parents({0: [], 1: [0], 2: [1]})


def never_together(seed=0, n=60):
    """Three columns, of which the first two are never observed together."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + y[:, None]
    X[: n // 2, 0], X[n // 2 :, 1] = np.nan, np.nan
    return X, y


def by_itself(X, y, column, counted):
    """Log densities of a column of all samples, from a naive Bayes classifier of this column and the counted ones."""
    model = CGNClassifier().fit(X[counted][:, [column]], y[counted])
    return model.contributions(X[:, [column]])[:, 0]


def test_a_feature_never_observed_with_its_parent_has_no_density_and_is_nobodys_parent():
    X, y = never_together()
    found = CGNClassifier(CHAIN).fit(X, y).contributions(X)
    np.testing.assert_allclose(found[:, 0], by_itself(X, y, 0, ~np.isnan(X[:, 0])), rtol=1e-10)
    assert not found[:, 1].any()
    np.testing.assert_allclose(found[:, 2], by_itself(X, y, 2, ~np.isnan(X[:, 1])), rtol=1e-10)


def test_a_parent_that_is_constant_where_the_child_is_observed_is_none():
    X, y = never_together(n=80)
    X[:, 0] = np.where(np.isnan(X[:, 1]), X[:, 0], 3.0)  # so that the two vary in different samples
    X[:5, 0] = np.nan
    model = CGNClassifier(CHAIN).fit(X, y)
    found, both = model.contributions(X), ~np.isnan(X[:, :2]).any(axis=1)
    np.testing.assert_allclose(found[:, 1], by_itself(X, y, 1, both), rtol=1e-10)
    assert found[:5, 1].all()  # also where the parent, which says nothing about it, is missing
    held = CGNClassifier(CHAIN, prior=HELD).partial_fit(X, y, classes=[0, 1])
    assert_same(joint(held, X, y, None), refitted(held, X, y, None))


@pytest.mark.parametrize("structure", ["tan", "complete", Band(2), CHAIN, {2: [], 1: [2], 0: [1, 2]}], ids=str)
def test_columns_never_observed_together(structure, tmp_path):
    X, y = never_together(n=200)
    model = CGNClassifier(structure).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.6
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), probabilities)


@pytest.mark.parametrize("levels", [None, ["u", "v"]], ids=str)
@pytest.mark.parametrize("structure", ["naive_bayes", "tan", "complete", Band(2)], ids=str)
def test_a_categorical_column_without_an_observed_level_changes_nothing(structure, levels):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    expected = CGNClassifier(structure).fit(frame, y).predict_proba(frame)
    frame["e"] = pd.Categorical([None] * 150, categories=levels)
    np.testing.assert_allclose(CGNClassifier(structure).fit(frame, y).predict_proba(frame), expected, rtol=1e-9)


def test_a_constant_column_beside_a_categorical_one_with_missing_values(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    frame = pd.DataFrame(
        {"batch": 1.0, "x": rng.normal(size=150) + y, "c": pd.Categorical(rng.choice(["a", "b"], 150))}
    )
    frame.loc[0, ["batch", "x"]] = np.nan
    frame.loc[50:60, "c"] = None
    model = CGNClassifier("complete").fit(frame, y)
    without = CGNClassifier("complete").fit(frame[["x", "c"]], y)
    np.testing.assert_allclose(model.predict_proba(frame), without.predict_proba(frame[["x", "c"]]), rtol=1e-9)
    np.testing.assert_allclose(
        model.leave_one_out_log_proba(frame, y), without.leave_one_out_log_proba(frame[["x", "c"]], y), rtol=1e-9
    )
    save(model, tmp_path / "model")


@pytest.mark.parametrize("seed", [13, 14, 16, 23, 27])
def test_sums_over_missing_levels_have_the_prior_of_all_samples(seed, tmp_path):
    """Without one of very few samples a family may have a single one: no reason for other units."""
    rng = np.random.default_rng(seed)
    n = rng.integers(8, 60)
    X = rng.normal(size=(n, 5))
    X[rng.random(X.shape) < 0.6] = np.nan
    frame, y = pd.DataFrame(X, columns=list("abcde")), np.arange(n) % 2
    for name in ("f", "g"):
        frame[name] = pd.Categorical(np.where(rng.random(n) < 0.6, None, rng.choice(["p", "q"], n)))
    model = CGNClassifier("tan").fit(frame, y)
    assert np.isfinite(model.typicality(frame)).all()
    save(model, tmp_path / "model")


def panels(n, correlation, seed):
    """Two sub-cohorts with five columns of their own each and three in common."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 13))
    for panel in (slice(0, 5), slice(5, 10), slice(10, 13)):
        shared = rng.normal(size=(n, 1))
        X[:, panel] = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * X[:, panel]
    X += 0.5 * y[:, None]
    X[: n // 2, :5], X[n // 2 :, 5:10] = np.nan, np.nan
    return X, y


def check_panels(n, correlation, seed, **settings):
    X, y = panels(n, correlation, seed)
    model = CGNClassifierCV(**settings).fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.isfinite(model.oof_log_proba_).all()
    names, reasons = model.cv_results_["param_candidate"], model.cv_results_["reason"]
    assert not any("failed" in reason for reason in reasons[names == "tan"])


@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_two_panels_are_mixed(correlation):
    check_panels(60, correlation, 0, candidates=["naive_bayes", "complete", "tan"], transforms=["none"])


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("seed", range(4))
def test_two_panels_by_default(n, correlation, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_panels(n, correlation, seed)


@pytest.mark.parametrize("n_filled", [1, 2, 3])
def test_a_categorical_column_with_few_values_leaves_every_candidate_in_the_mixture(n_filled):
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(["p", "q", "r"][:n_filled] + [None] * (150 - n_filled))  # none of them in some folds
    model = CGNClassifierCV(candidates=["naive_bayes", "complete", "tan"], transforms=["none"]).fit(frame, y)
    assert not any(model.cv_results_["reason"])
    assert model.score(frame, y) > 0.95


def test_the_order_of_levels_does_not_matter():
    """A missing level above an observed feature, below which a continuous feature is missing too."""
    rng = np.random.default_rng(0)
    stage = rng.integers(0, 3, 120)
    a = 2.0 * stage + rng.normal(size=120)
    b = a + rng.normal(size=120)
    X = pd.DataFrame({"stage": np.array(["I", "II", "III"])[stage], "a": a, "b": b, "c": b + rng.normal(size=120)})
    y = (a + rng.normal(size=120) > 2).astype(int)
    new = pd.DataFrame({"stage": [None] * 5, "a": a[:5], "b": np.nan, "c": b[:5]})
    found = []
    for levels in (["I", "II", "III"], ["III", "I", "II"]):
        kind = pd.CategoricalDtype(levels)
        model = CGNClassifier({"stage": [], "a": ["stage"], "b": ["a"], "c": ["b"]})
        model.fit(X.astype({"stage": kind}), y)
        found.append(model.predict_log_proba(new.astype({"stage": kind})))
    np.testing.assert_allclose(*found, rtol=1e-10)
