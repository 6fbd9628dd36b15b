"""Standardised features, missing values, rotation, and the way back."""

import numpy as np
import pytest

from cgnlearn.data.table import read_training
from cgnlearn.logistic.design import Design, Features, centred
from cgnlearn.logistic.features import Expansion
from cgnlearn.logistic.optimiser import Samples, fitted


def table_of(X, y):
    return read_training(X, y, None, None)[0]


@pytest.mark.parametrize("n_columns", [4, 50])
def test_log_odds_are_those_of_a_regression_on_all_columns(n_columns, rng):
    """Rotated or not; a constant column says nothing, and a missing value stands at its column's mean."""
    X, y = rng.normal(size=(20, n_columns)) + 5, np.arange(20) % 3
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    X[:, 2] = 7.0
    table, log_prior = table_of(X, y), np.log([0.2, 0.3, 0.5])
    expansion = Expansion.of(table, "linear")
    design = Design.of(expansion(table).values, table, log_prior)
    assert (design.basis is None) == (n_columns < 20)
    odds = design.odds([fitted(design.samples, 2.0, design.samples.origin)])[0]
    scaled = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.where(np.arange(n_columns) == 2, 1, np.nanstd(X, axis=0)))
    whole = Samples.of(scaled, y, np.ones(20), log_prior, None)
    contrasts = whole.contrasts(fitted(whole, 2.0, whole.origin))
    found = odds.log_odds(expansion, table) + log_prior
    np.testing.assert_allclose(
        found - np.logaddexp.reduce(found, axis=1, keepdims=True), whole.log_proba(contrasts), atol=1e-6
    )
    assert not odds.slopes[2].any()
    apart = odds.contributions(expansion, table)
    np.testing.assert_allclose(apart.sum(axis=1) + odds.intercept + log_prior, found, atol=1e-12)


def test_a_rare_indicator_is_not_stretched(rng):
    X = np.column_stack([np.arange(60) == 0, np.arange(60) % 2]).astype(float)
    table = table_of(rng.normal(size=(60, 2)), np.arange(60) % 2)
    design = Design.of(X.copy(), table, np.zeros(2))
    np.testing.assert_allclose(design.samples.design[:, 1:], X - X.mean(axis=0))


def test_chunks_change_nothing(rng, monkeypatch):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    table = table_of(X, y)
    expansion = Expansion.of(table, "products")
    design = Design.of(expansion(table).values, table, np.zeros(2))
    odds = design.odds([fitted(design.samples, penalty, design.samples.origin) for penalty in (3.0, 1.0)])
    whole, apart = odds.log_odds(expansion, table), odds[1].contributions(expansion, table)
    assert whole.shape == (2, 30, 2)
    monkeypatch.setattr("cgnlearn.logistic.design.CHUNK", 40)
    np.testing.assert_allclose(odds.log_odds(expansion, table), whole, atol=1e-12)
    np.testing.assert_allclose(odds[1].contributions(expansion, table), apart, atol=1e-12)


def test_no_features_are_a_matrix_without_columns():
    owner, values = Features.joined([], 5)
    assert owner.shape == (0,)
    assert values.shape == (5, 0)


@pytest.mark.parametrize("away", [0.0, 1e9, -1e12])
def test_features_far_from_zero_keep_what_they_say(away, rng):
    values, weights = rng.normal(size=(200, 3)), np.linspace(0.5, 2.0, 200)
    values[:, 1] = 0.1  # its mean must be exact, or rounding would be taken for a feature
    values[5, 2] = np.nan
    mean, deviation = centred(moved := values + away, weights)
    expected = np.sqrt(np.cov(values[:, 0], aweights=weights, ddof=0))
    np.testing.assert_allclose(deviation[0], expected, rtol=1e-3 if away else 1e-12)
    assert np.isinf(deviation[1])
    assert moved[5, 2] == 0
    np.testing.assert_allclose(mean[0] - away, np.average(values[:, 0], weights=weights), rtol=1e-9, atol=1e-3)
