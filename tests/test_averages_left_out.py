"""Averages over structures without each of their rows: against refits with the prior held."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from cgnlearn import BandAverage, CGNClassifier, CGNClassifierCV, Prior, TreeAverage


def held(p, **options):
    """A prior that no row has a say in."""
    location, scale = np.linspace(-1, 1, p), np.linspace(0.5, 2, p)
    return Prior(location=location, scale=scale, strength=1.5, shape=1.3, **options)


def refitted(model, X, y, weights, rows):
    """Joint log probabilities of some rows, each by a fit of all others."""
    found = []
    for i in rows:
        kept = np.arange(len(y)) != i
        part = CGNClassifier(**model.get_params(deep=False))
        part.partial_fit(X[kept], y[kept], np.unique(y), None if weights is None else weights[kept])
        found.append(part.predict_joint_log_proba(X[[i]])[0])
    return np.array(found)


def assert_equals_refits(model, X, y, weights=None, rows=None, tolerance=1e-9):
    model.fit(X, y, weights)
    rows = np.arange(len(y)) if rows is None else rows
    found = model._model.leave_one_out(model._table(X, y, weights))
    joint = model.temperature_ * found.log_likelihood + found.class_log_prior
    expected = refitted(model, X, y, weights, rows)
    np.testing.assert_allclose(joint[rows], expected, rtol=tolerance, atol=tolerance)
    of_classes = joint - joint[:, :1], expected - expected[:, :1]
    np.testing.assert_allclose(of_classes[0][rows], of_classes[1], rtol=tolerance, atol=100 * tolerance)


def chain(seed, n, p, classes):
    """Columns that hang together, some of which differ between classes; one is constant and one repeated."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, p))
    for column in range(1, p):
        X[:, column] += rng.normal() * X[:, column - 1]
    X += rng.normal(size=p) * (rng.uniform(size=p) < 0.5) * y[:, None]
    X[:, 2:3] = 0.7
    X[:, 5:6] = X[:, 4:5]
    return X, y, rng.uniform(0.2, 3, n)


def mixed(kinds, seed, n):
    """Continuous columns "c" and discrete ones "d" that hang together; every level in every class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    latest, columns = np.zeros(n), []
    for i, kind in enumerate(kinds):
        latest = 0.5 * latest + 0.4 * y + rng.normal(size=n)
        levels = (latest > 0.3) + 1.0 * (latest > 1.2)
        levels[:9] = (np.arange(9) // 3 + i) % 3
        columns.append(latest if kind == "c" else levels)
    return np.column_stack(columns), y, rng.uniform(0.2, 3, n), [i for i, kind in enumerate(kinds) if kind == "d"]


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 5), st.integers(2, 3), st.booleans())
def test_bands_equal_refits(seed, p, k_max, classes, weighted):
    X, y, weights = chain(seed, 11, p, classes)
    model = CGNClassifier(BandAverage(k_max), prior=held(p), temperature=0.7)
    assert_equals_refits(model, X, y, weights if weighted else None)


@pytest.mark.parametrize("weighted", [False, True])
def test_bands_of_many_rows_and_columns(weighted):
    """Several tiles of rows, several stretches of columns, and discrete columns between them."""
    X, y, weights = chain(0, 420, 6, 3)
    X[:, 3] = np.arange(len(y)) % 2
    model = CGNClassifier(BandAverage(4), prior=held(6), categorical_features=[3])
    assert_equals_refits(model, X, y, weights if weighted else None, [0, 200, 401, 419])
    X, y, weights = chain(1, 12, 2100, 2)
    assert_equals_refits(CGNClassifier(BandAverage(3), prior=held(2100)), X, y, weights if weighted else None, [3, 8])


@pytest.mark.parametrize("kinds", ["ccc", "ddd", "dcdc", "cdd"])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_forests_equal_refits(kinds, sharing, weighted):
    X, y, weights, discrete = mixed(kinds, 0, 90)
    model = CGNClassifier(
        TreeAverage(), sharing=sharing, prior=held(len(kinds), dirichlet=0.1), categorical_features=discrete
    )
    assert_equals_refits(model, X, y, weights if weighted else None, np.arange(0, 90, 4))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.text("cd", min_size=1, max_size=5), st.sampled_from([0.0, 1.0]), st.booleans())
def test_forests_equal_refits_on_any_data(seed, kinds, sharing, weighted):
    X, y, weights, discrete = mixed(kinds, seed, 18)
    X[:, [i for i in range(3, len(kinds)) if i not in discrete and 0 not in discrete]] = X[:, :1]  # repeated
    model = CGNClassifier(
        TreeAverage(), sharing=sharing, prior=held(len(kinds)), class_prior="uniform", categorical_features=discrete
    )
    assert_equals_refits(model, X, y, weights if weighted else None, np.arange(0, 18, 2))


@pytest.mark.parametrize(
    ("structure", "sharing"), [(BandAverage(3), 0.0), (TreeAverage(), 0.0), (TreeAverage(), 1.0)], ids=str
)
def test_small_classes(structure, sharing):
    """Of two rows, and of one."""
    X, _, _ = chain(2, 10, 4, 2)
    y = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 2])
    assert_equals_refits(CGNClassifier(structure, sharing=sharing, prior=held(4)), X, y)
    # Without its row the class is where all are: whether the prior has a say or next to none.
    for strength in (1.0, 1e-12, 1e-20):
        model = CGNClassifier(structure, sharing=sharing, prior=Prior(strength=strength)).fit(X, y)
        assert np.isfinite(model.leave_one_out_log_proba(X, y)).all()


@pytest.mark.parametrize("structure", [BandAverage(3), TreeAverage()], ids=str)
def test_a_row_far_out(structure):
    """Densities lie farther apart than plain numbers reach, and the weights turn with the row."""
    X, y, _ = chain(3, 400, 12, 2)
    X[7] += 100.0 * np.random.default_rng(3).normal(size=12) * (X[0] != X[1])
    assert_equals_refits(CGNClassifier(structure, prior=held(12)), X, y, rows=[0, 1, 7], tolerance=1e-8)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_far_apart_evidences_leave_the_most_probable_forest(sharing):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 20_000)
    X = np.cumsum(rng.normal(size=(len(y), 5)), axis=1) + y[:, None]
    model, best = (CGNClassifier(structure, sharing=sharing).fit(X, y) for structure in (TreeAverage(), "tree"))
    found, expected = (each.leave_one_out_log_proba(X, y) for each in (model, best))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("structure", [BandAverage(3), TreeAverage()], ids=str)
def test_choices_go_by_it(structure):
    X, y = load_wine(return_X_y=True)
    X = X[:, :5]
    model = CGNClassifier(structure, temperature="cv").fit(X, y)
    assert "std_test_cll" not in model.cv_results_  # there were no folds
    truth = model.leave_one_out_log_proba(X, y)[np.arange(len(y)), y].mean()
    assert model.cv_results_["mean_test_cll"].max() == pytest.approx(truth, abs=1e-3)
    by_folds = CGNClassifier(structure, temperature="cv").fit(X, y, groups=np.arange(len(y)))
    assert "std_test_cll" in by_folds.cv_results_
    assert (model.surprise(X + 100) == 0).all()
    mixture = CGNClassifierCV(candidates=[structure], transforms=("none",)).fit(X, y)
    assert {by for by in mixture.cv_results_["by"] if by} == {"leave-one-out"}


@pytest.mark.parametrize("structure", [BandAverage(3), TreeAverage()], ids=str)
def test_missing_values_are_refused(structure):
    X, y, _ = chain(5, 20, 4, 2)
    model = CGNClassifier(structure).fit(X, y)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="column 1 has missing values"):
        model.leave_one_out_log_proba(X, y)
