"""Typicality of samples, and models for another prevalence."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, Prior, load, save
from cgnlearn.data.splits import stratified_sample
from cgnlearn.data.table import read, read_training
from cgnlearn.networks import typicality
from cgnlearn.networks.model import NotExactError

CLASS_PRIOR = [0.7, 0.2, 0.1]


def held(X, **more):
    """A prior in which nothing depends on the samples."""
    return Prior(location=X.mean(axis=0), scale=X.var(axis=0), **more)


def ranked(seen, density, weights=None):
    """The rank of densities among others, which count themselves, interpolated."""
    weights = np.ones(len(seen)) if weights is None else weights
    order = np.argsort(seen)
    one, total = (weights**2).sum() / weights.sum(), weights.sum() + (weights**2).sum() / weights.sum()
    return np.maximum(np.interp(density, seen[order], weights[order].cumsum(), right=total), one) / total


def source(n, seed, columns=6):
    """Two classes with correlated features."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, columns))
    for j in range(1, columns):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X + y[:, None], y


def incomplete(X, share, seed=9):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


@pytest.mark.parametrize("class_prior", [None, CLASS_PRIOR])
@pytest.mark.parametrize("structure", ["naive_bayes", "complete"])
def test_the_share_of_refits_that_are_less_likely(mixed, structure, class_prior):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    settings = {"structure": structure, "prior": held(X), "class_prior": class_prior}
    model = CGNClassifier(**settings).fit(X, y)
    others = [np.arange(len(X)) != i for i in range(len(X))]
    seen = [CGNClassifier(**settings).fit(X[kept], y[kept]).score_samples(X[~kept])[0] for kept in others]
    rows = np.vstack([rows, rows[:1] + 1e3])
    expected = ranked(np.array(seen), model.score_samples(rows))
    np.testing.assert_allclose(model.typicality(rows), expected, atol=1e-9)
    assert 0 < np.mean(expected) < 1
    np.testing.assert_allclose(expected[-1], 1 / (len(X) + 1))


def test_weights_count(mixed):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    model = CGNClassifier(prior=held(X)).fit(X, y, weights)
    found = model._model.leave_one_out(model._table(X, y, weights))
    seen = logsumexp(found.log_likelihood + found.class_log_prior, axis=1)
    np.testing.assert_allclose(model.typicality(rows), ranked(seen, model.score_samples(rows), weights))


def test_of_many_rows_some_stand_for_all(mixed, monkeypatch):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    model = CGNClassifier().fit(X, y)
    monkeypatch.setattr(typicality, "MOST_ROWS", 45)
    fewer = CGNClassifier().fit(X, y)
    assert fewer._reference.n_samples == 45
    assert np.unique(np.diff(fewer._reference.values[:, 0])).size > 1
    np.testing.assert_allclose(fewer.typicality(rows), model.typicality(rows), atol=0.15)


def test_training_rows_that_change_later_change_nothing(mixed):
    X, y, rows = (part[:, 2:].copy() if part.ndim == 2 else part for part in mixed)
    expected = CGNClassifier().fit(X, y).typicality(rows)
    model = CGNClassifier().fit(X, y)
    X += 1e6
    np.testing.assert_array_equal(model.typicality(rows), expected)


def test_files_hold_no_rows_and_tell_the_same(mixed, tmp_path):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    model = CGNClassifier("complete").fit(X, y)
    save(model, tmp_path / "model.skops")
    copies = [load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(model))]
    for copy in copies:
        assert isinstance(copy._reference, typicality.Reference)
        np.testing.assert_array_equal(copy.typicality(rows), model.typicality(rows))


def test_it_says_why_it_cannot_tell(mixed):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    streamed = CGNClassifier().partial_fit(X[:45], y[:45], classes=[0, 1, 2])
    with pytest.raises(NotExactError, match="only fit computes them"):
        streamed.typicality(rows)
    with pytest.raises(ValueError, match="only fit computes them"):
        CGNClassifier().fit(X, y).partial_fit(X, y).typicality(rows)


@pytest.mark.parametrize("class_prior", ["uniform", CLASS_PRIOR])
def test_another_prevalence_is_that_of_a_refit(mixed, class_prior):
    X, y, rows = mixed
    kept = (y < 2) | (np.arange(len(y)) < 50)
    X, y = X[kept], y[kept]
    model = CGNClassifier("tan", sharing=0.3, likelihood_power=0.5, categorical_features=[0, 1]).fit(X, y)
    before = model.predict_proba(rows)
    other = model.with_class_prior(class_prior)
    refit = CGNClassifier(**model.get_params(deep=False)).set_params(class_prior=class_prior).fit(X, y)
    np.testing.assert_array_equal(other.predict_joint_log_proba(rows), refit.predict_joint_log_proba(rows))
    np.testing.assert_array_equal(other.typicality(rows), refit.typicality(rows))
    assert other.get_params()["class_prior"] == class_prior
    np.testing.assert_array_equal(model.predict_proba(rows), before)
    assert model.class_prior is None
    assert not np.allclose(before, other.predict_proba(rows))


def test_a_prevalence_after_the_rows_were_scored(mixed):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    model = CGNClassifier().fit(X, y)
    model.typicality(rows)
    refit = CGNClassifier(class_prior=CLASS_PRIOR).fit(X, y)
    np.testing.assert_array_equal(model.with_class_prior(CLASS_PRIOR).typicality(rows), refit.typicality(rows))


@pytest.mark.parametrize("bad", [None, "rare", [0.5, 0.5], [1.0, 0.0, 0.0], {"a": 1}])
def test_a_prevalence_is_checked(mixed, bad):
    X, y, _ = mixed
    with pytest.raises(ValueError, match="class_prior must"):
        CGNClassifier().fit(X, y).with_class_prior(bad)


# ---- how often fresh samples are below a threshold


@pytest.mark.parametrize("n", [10, 20, 60])
def test_few_samples_cannot_flag(n):
    X, y = source(n, 0)
    model = CGNClassifier().fit(X, y)
    assert model.typicality(X[:1] + 100)[0] == pytest.approx(1 / (n + 1))
    assert model.typicality(source(500, 1)[0]).min() >= 1 / (n + 1)


def test_alternating_classes_are_both_in_the_reference():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = np.c_[rng.normal(size=2000) + 6 * y, rng.normal(size=2000) * np.where(y == 0, 0.1, 10)]
    flagged = CGNClassifier().fit(X, y).typicality(X) < 0.01
    assert flagged[y == 0].mean() < 0.035
    assert flagged[y == 1].mean() < 0.035


def test_the_sample_is_stratified_and_always_the_same():
    labels = np.repeat([0, 1, 2], [5000, 900, 100])
    rows = stratified_sample(labels, 600)
    assert np.bincount(labels[rows]).tolist() == [500, 90, 10]
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, stratified_sample(labels, 600))
    assert len(np.unique(np.diff(rows[:500]))) > 5  # not evenly spaced
    assert stratified_sample(labels[:7], 600).tolist() == list(range(7))


STRUCTURES = [
    "naive_bayes",
    "selective_naive_bayes",
    "complete",
    "tan",
    Band(3),
    {i: [i - 1] if i else [] for i in range(6)},
]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("missing", [(0, 0), (0, 0.2), (0.15, 0), (0.15, 0.3)])
@pytest.mark.filterwarnings("ignore::cgnlearn.data.warning.DataWarning")
def test_fresh_samples_are_below_a_threshold_as_often_as_it_says(structure, missing):
    X, y = source(200, 0)
    fresh = incomplete(source(600, 1)[0], missing[1])
    found = CGNClassifier(structure).fit(incomplete(X, missing[0]), y).typicality(fresh)
    assert (found < 0.01).mean() < 0.045  # of one fit: bench/typicality.py has the mean over many
    assert 0.015 < (found < 0.05).mean() < 0.11
    assert 0.4 < found.mean() < 0.6


@pytest.mark.parametrize("structure", ["complete", "tan", "tan_average", "band_average"])
def test_structures_with_more_features_than_the_samples_tell(structure):
    below = []
    for seed in range(3):
        X, y = source(40, seed, columns=100 if structure in ("complete", "tan") else 12)
        fresh = source(300, seed + 50, columns=X.shape[1])[0]
        below.append((CGNClassifier(structure).fit(X, y).typicality(fresh) < 0.1).mean())
    assert 0.02 < np.mean(below) < 0.2  # with the structure and the prior of all samples, TAN and complete have more


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan"])
def test_units_change_nothing_and_outliers_are_found(structure):
    X, y = source(200, 0)
    fresh = source(200, 1)[0]
    outliers = fresh.copy()
    outliers[np.arange(200), np.arange(200) % 6] += 6 * X.std()
    both = np.vstack([fresh, outliers])
    both[np.arange(400), (np.arange(400) + 2) % 6] = np.nan
    expected = CGNClassifier(structure).fit(X, y).typicality(both)
    assert (expected[:200] < 0.01).mean() < 0.03
    assert (expected[200:] < 0.01).mean() > 0.9
    for unit in (0.001, 1000.0):
        found = CGNClassifier(structure).fit(unit * X, y).typicality(unit * both)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_mixture_with_missing_values():
    X, y = source(150, 0)
    fresh = source(400, 1)[0]
    fresh[np.arange(400), np.arange(400) % 6] = np.nan
    outliers = fresh.copy()
    outliers[np.arange(400), (np.arange(400) + 2) % 6] += 6 * X.std()
    candidates = ["naive_bayes", "complete"]
    models = [CGNClassifierCV(candidates=candidates).fit(unit * X, y) for unit in (1.0, 0.001)]
    found = models[0].typicality(fresh)
    assert (found < 0.01).mean() < 0.045
    assert 0.015 < (found < 0.05).mean() < 0.11
    assert (models[0].typicality(outliers) < 0.01).mean() > 0.9
    np.testing.assert_allclose(models[1].typicality(0.001 * fresh), found, atol=1e-4)


def test_samples_do_not_depend_on_others_in_the_batch():
    X, y = source(100, 0)
    fresh = incomplete(source(20, 1)[0], 0.2)
    fresh[0], fresh[1] = np.nan, X[0]
    model = CGNClassifier("tan").fit(X, y)
    one_by_one = [model.typicality(row[None])[0] for row in fresh]
    np.testing.assert_allclose(model.typicality(fresh), one_by_one, rtol=1e-9)
    assert one_by_one[0] > 0.5  # nothing is observed


def test_discrete_features_that_are_missing():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.c_[(rng.random(400) < 0.03).astype(float), (rng.random(400) < 0.5), rng.normal(size=400) + y]
    model = CGNClassifier(categorical_features=[0, 1]).fit(X, y)
    rare, common = model.typicality([[1, np.nan, np.nan], [0, np.nan, np.nan]])
    assert 0.005 < rare < 0.08
    assert common > 0.5


@pytest.mark.filterwarnings("ignore::cgnlearn.data.warning.DataWarning")
def test_a_file_tells_the_same_of_samples_with_missing_values(tmp_path):
    X, y = source(60, 0)
    fresh = incomplete(source(30, 1)[0], 0.3)
    model = CGNClassifier("complete").fit(incomplete(X, 0.2), y)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").typicality(fresh), model.typicality(fresh))


def test_held_out_by_refits_where_there_is_no_closed_form(mixed):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    model = CGNClassifier(prior=Prior(location="paper"))
    seen = [model.fit(X[kept], y[kept]).score_samples(X[~kept])[0] for kept in ~np.eye(len(X), dtype=bool)]
    model.fit(X, y)
    assert len(X) <= typicality.MOST_REFITS
    np.testing.assert_allclose(model.typicality(rows), ranked(np.array(seen), model.score_samples(rows)), atol=1e-9)


def test_quantiles_of_columns_with_and_without_missing_values():
    X = np.random.default_rng(0).normal(size=(40, 4))
    X[::3, 1], X[:, 2] = np.nan, np.nan
    table = read(X, read_training(np.ones((2, 4)), [0, 1])[0].schema)
    found = typicality.value_quantiles(table)
    for column in (0, 1, 3):
        np.testing.assert_allclose(found[column], np.nanquantile(X[:, column], typicality.QUANTILES))
    assert np.isnan(found[2]).all()
