"""Typicality of samples, and models for another prevalence."""

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp

from cgnlearn import CGNClassifier, Prior, load, save
from cgnlearn.data.table import evenly_spaced
from cgnlearn.networks import typicality as typicality
from cgnlearn.networks.model import NotExactError

CLASS_PRIOR = [0.7, 0.2, 0.1]


def held(X, **more):
    """A prior in which nothing depends on the samples."""
    return Prior(location=X.mean(axis=0), scale=X.var(axis=0), **more)


@pytest.mark.parametrize("class_prior", [None, CLASS_PRIOR])
@pytest.mark.parametrize("structure", ["naive_bayes", "complete"])
def test_the_share_of_refits_that_are_less_likely(mixed, structure, class_prior):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    settings = {"structure": structure, "prior": held(X), "class_prior": class_prior}
    model = CGNClassifier(**settings).fit(X, y)
    others = [np.arange(len(X)) != i for i in range(len(X))]
    seen = [CGNClassifier(**settings).fit(X[kept], y[kept]).score_samples(X[~kept])[0] for kept in others]
    rows = np.vstack([rows, rows[:1] + 1e3])
    expected = [np.mean(seen < density) for density in model.score_samples(rows)]
    np.testing.assert_allclose(model.typicality(rows), expected, atol=1e-12)
    assert 0 < np.mean(expected) < 1
    assert expected[-1] == 0.0


def test_weights_count(mixed):
    X, y, rows = (part[:, 2:] if part.ndim == 2 else part for part in mixed)
    weights = np.random.default_rng(1).uniform(0, 2, len(y))
    model = CGNClassifier(prior=held(X)).fit(X, y, weights)
    found = model._model.leave_one_out(model._table(X, y, weights))
    seen = logsumexp(found.log_likelihood + found.class_log_prior, axis=1)
    expected = [weights[seen < density].sum() / weights.sum() for density in model.score_samples(rows)]
    np.testing.assert_allclose(model.typicality(rows), expected)


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
    with pytest.raises(NotExactError, match='location "paper"'):
        CGNClassifier(prior=Prior(location="paper")).fit(X, y).typicality(rows)
    streamed = CGNClassifier().partial_fit(X[:45], y[:45], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="only fit computes them"):
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


def test_rows_are_spread_evenly_over_tables_of_any_size():
    for n in (0, 1, 999, 1000, 1001, 1025, 4379, 59_999):
        rows = evenly_spaced(n, 1000)
        assert len(rows) == min(n, 1000)
        assert not n or (rows[0] == 0 and rows[-1] < n)
        assert len(rows) < 2 or np.ptp(np.diff(rows)) <= 1
