"""Quantiles of shifted gamma distributions against SciPy, intervals against quantiles of posterior draws."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from cgnlearn import CGNClassifier
from cgnlearn.data.arrays import contrasts_of
from cgnlearn.networks import intervals
from cgnlearn.networks.intervals import gamma_quantile, intervals_of, normal_draws, summary
from cgnlearn.networks.uncertainty import LogDensities
from tests.networks.test_uncertainty import drawn_log_densities, samples


@pytest.mark.parametrize("skewness", [-2.0, -0.7, 1e-6, 0.3, 2.0])
def test_quantiles_of_a_gamma_distribution(skewness):
    share = np.array([0.025, 0.05, 0.5, 0.95, 0.975])
    found = gamma_quantile(stats.norm.ppf(share), np.array(skewness))
    np.testing.assert_allclose(found, stats.pearson3(skewness).ppf(share), atol=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_intervals_are_those_of_posterior_draws(n_classes, sharing):
    X, y, new = samples(n_classes)
    model = CGNClassifier("complete", sharing=sharing, class_prior="uniform").fit(X, y)
    found = model.predict_interval(new, 0.8)
    proba = softmax(drawn_log_densities(X, y, new, sharing), axis=2)
    predicted = model.predict_proba(new)
    low, high = np.quantile(proba, [0.1, 0.9], axis=0)
    most = 0.04 if n_classes == 2 else 0.1
    np.testing.assert_allclose(found[..., 0], np.minimum(low, predicted), atol=most)
    np.testing.assert_allclose(found[..., 1], np.maximum(high, predicted), atol=most)


def test_two_classes_by_formula_and_by_draws():
    rng = np.random.default_rng(0)
    scores = LogDensities(rng.normal(size=(5, 2)), rng.uniform(0.5, 4, (5, 1, 1)), rng.normal(size=(5, 1)) * [[-1, 1]])
    proba = softmax(scores.mean, axis=1)
    found = intervals_of(scores, proba, 0.9)
    np.testing.assert_allclose(found.low[:, 0], 1 - found.high[:, 1])
    np.testing.assert_allclose(found.log_odds_std[:, 0] ** 2, 2 * scores.covariance[:, 0, 0])
    # Two classes as three, of which the last never occurs.
    mean = np.column_stack([scores.mean, np.full(5, -50.0)])
    of_odds = np.array([[1.0, -1.0, 0.0]]) / np.sqrt(2)
    across = contrasts_of(3) @ of_odds.T @ of_odds @ contrasts_of(3).T
    wide = LogDensities(mean, scores.covariance * across, np.column_stack([scores.third, np.zeros(5)]))
    other = intervals_of(wide, softmax(mean, axis=1), 0.9)
    np.testing.assert_allclose(other.low[:, :2], found.low, atol=0.02)
    np.testing.assert_allclose(other.log_odds_std[:, :2], found.log_odds_std, rtol=0.1)


def test_no_variance_gives_the_probability_itself():
    scores = LogDensities(np.array([[0.0, 1.0, -1.0]]), np.zeros((1, 2, 2)), np.zeros((1, 3)))
    proba = softmax(scores.mean, axis=1)
    found = intervals_of(scores, proba, 0.9)
    np.testing.assert_allclose(found.low, proba)
    np.testing.assert_allclose(found.high, proba)
    np.testing.assert_allclose(found.log_odds_std, 0.0, atol=1e-12)


def test_draws_are_standard_and_always_the_same():
    draws = normal_draws(3)
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=0.02)
    assert draws is normal_draws(3)


def test_summary_of_draws():
    share = (np.arange(200) + 0.5) / 200
    proba = np.stack([share, 1 - share])[None]
    low, high, std = summary(proba, 0.9)
    np.testing.assert_allclose(low, 0.05, atol=0.003)
    np.testing.assert_allclose(high, 0.95, atol=0.003)
    np.testing.assert_allclose(std, np.std(np.log(share / (1 - share))))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("power", [1.0, 1.3])
def test_compiled_loops_give_the_same_intervals(level, power, rng, monkeypatch):
    """Of three members, one of which is almost certain, and samples of probabilities near 0 and 1."""
    members = []
    for spread in (1.0, 3.0, 1e-9):
        A = spread * rng.normal(size=(40, 3, 3))
        mean, third = 20 * rng.normal(size=(40, 4)), spread**3 * rng.normal(size=(40, 4))
        members.append(LogDensities(mean, A @ A.swapaxes(1, 2), third))
    weights = rng.dirichlet(np.ones(3), intervals.N_DRAWS)
    given = members, weights, power, np.log([0.1, 0.2, 0.3, 0.4]), level
    expected = intervals.mixed_intervals(*given)
    monkeypatch.setattr(intervals, "COMPILED", 0)
    monkeypatch.setattr(intervals, "CHUNK", 50_000)
    for found, wanted in zip(intervals.mixed_intervals(*given), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
