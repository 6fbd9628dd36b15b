"""Estimates and their intervals, at values computed by hand or by formulas of other shape."""

import numpy as np
import pytest
from scipy import optimize, stats

from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.estimates import Estimate, inflation, share


def by_matrices(values, groups, n_folds):
    """Bell and McCaffrey's interval of a mean, with matrices of all samples."""
    n, members = len(values), [np.flatnonzero(groups == group) for group in np.unique(groups)]
    residuals = np.eye(n) - 1 / n
    square = np.zeros((n, n))
    for own in members:
        of_group = np.isin(np.arange(n), own) / np.sqrt(1 - len(own) / n)  # of the sum of its residuals
        square += np.outer(residuals @ of_group, residuals @ of_group) / n**2
    degrees = np.trace(square) ** 2 / np.trace(square @ square)
    between, independent = values @ square @ values, values.var(ddof=1) / n
    of_groups = inflation(n_folds) * (1 + estimates.UNSEEN / len(members) ** 2)
    assert between > independent
    variance = inflation(n_folds) * independent + of_groups * (between - independent)
    return stats.t.isf(0.025, degrees) * np.sqrt(variance)


def test_intervals_at_known_values():
    assert Estimate(1.0, 0.5, 2.0).through(lambda value: -value) == (-1.0, -2.0, -0.5)
    assert share(8, 10) == pytest.approx((0.8, 0.49, 0.943), abs=5e-4)
    assert (inflation(2), inflation(5), inflation(10)) == (2, 1.25, 1.25)
    scale = np.sqrt(1.25 * np.var([1.0, 2.0, 4.0], ddof=1) / 3)
    expected = stats.t.isf(0.025, 2) * scale
    assert estimates.half_width(np.array([1.0, 2.0, 4.0]), 10) == pytest.approx(expected)
    assert estimates.half_width(np.array([0.5]), 10) is None
    assert estimates.half_width(np.array([0.5, np.inf]), 10) is None


def test_groups_count_as_by_bell_and_mccaffrey(rng):
    groups = np.repeat(list("abcd"), [3, 20, 7, 12])
    values = rng.normal(size=42) + 3 * rng.normal(size=4)[np.unique(groups, return_inverse=True)[1]]
    assert estimates.half_width(values, 4, groups) == pytest.approx(by_matrices(values, groups, 4))
    # groups of one sample each are samples
    n = 30
    alone = estimates.half_width(values[:n], 10, np.arange(n))
    assert alone == pytest.approx(estimates.half_width(values[:n], 10))
    # groups that agree by chance are no better than independent samples, and four of them far from certain
    same = np.tile([0.0, 1.0], 20)
    wider = np.sqrt(1 + estimates.UNSEEN / 16)
    assert estimates.half_width(same, 5, np.repeat(np.arange(4), 10)) == pytest.approx(
        wider * stats.norm.isf(0.025) * same.std(ddof=1) / np.sqrt(40)
    )


def test_two_groups_have_no_interval():
    values, groups = np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 0, 1, 1])
    assert estimates.share_of(values, 2, groups) == (0.75, None, None)
    assert estimates.loss(values, 2, groups) == (0.75, None, None)
    assert estimates.share_difference(values, 2, groups) == (0.75, None, None)
    without = estimates.loss(values, 2, groups)
    assert estimates.loss_difference(without, without, 1.0) == (0.0, None, None)


def test_shares_are_wilson_s_of_fewer_samples():
    values = np.repeat([1.0, 0.0], [45, 5])
    low, high = 0.5, 0.99999
    n = 50 / 1.25
    z = stats.t.isf(0.025, 49) * np.sqrt(50 / 49)  # the variance has n - 1 in its denominator
    ends = [
        optimize.brentq(lambda p: (0.9 - p) ** 2 - z**2 * p * (1 - p) / n, *bounds)
        for bounds in ((low, 0.9), (0.9, high))
    ]
    assert estimates.share_of(values, 10) == pytest.approx((0.9, *ends), abs=1e-6)
    assert estimates.share_of(np.ones(50), 10) == pytest.approx(share(n, n))
    n = 50 / (1 + estimates.UNSEEN / 25)
    assert estimates.share_of(np.ones(50), 5, np.repeat(np.arange(5), 10)) == pytest.approx(share(n, n))


def test_a_loss_has_the_score_interval_of_a_variance_in_proportion_to_the_mean(rng):
    values = rng.exponential(size=40)
    found = estimates.loss(values, 10)
    half = estimates.half_width(values, 10)
    for end in (found.low, found.high):  # where the distance is as great as the half-width for that mean
        assert abs(end - values.mean()) == pytest.approx(half * np.sqrt(end / values.mean()))
    assert 0 < found.low < found.value < found.high
    # without errors, the probabilities say how much errors would cost
    wider = estimates.loss(np.full(40, 0.02), 10, dispersion=3.0)
    z = stats.t.isf(0.025, 39)
    assert (wider.high - 0.02) ** 2 == pytest.approx(z**2 * 1.25 * 3.0 * wider.high / 40)
    assert estimates.loss(np.zeros(40), 10) == (0.0, None, None)
    groups = np.arange(40) // 8  # which differ in proportion to the mean
    found, half = estimates.loss(values, 5, groups), estimates.half_width(values, 5, groups)
    assert np.log([found.high / found.value, found.value / found.low]) == pytest.approx(half / values.mean())


def test_differences(rng):
    same = estimates.share_difference(np.zeros(50), 10)
    assert same.high == -same.low == pytest.approx(stats.t.isf(0.025, 49) * np.sqrt(1.25) / 50)
    assert estimates.share_difference(np.array([1.0, -1.0, 1.0]), 2) == (pytest.approx(1 / 3), -1.0, 1.0)
    first, second = Estimate(1.0, 0.7, 1.5), Estimate(2.0, 1.6, 2.6)
    found = estimates.loss_difference(first, second, 0.0)
    assert found == pytest.approx((1.0, 1 - np.hypot(0.4, 0.5), 1 + np.hypot(0.6, 0.3)))
    assert estimates.loss_difference(first, second, 1.0) == pytest.approx((1.0, 0.9, 1.3))
    assert estimates.loss_difference(first, Estimate(np.inf), 0.0) == (np.inf, None, None)
    x, y, groups = rng.normal(size=30), rng.normal(size=30), np.arange(30) // 3
    assert estimates.correlation(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    sums = [np.bincount(groups, v - v.mean()) for v in (x, y)]
    assert estimates.correlation(x, y, groups) == pytest.approx(np.corrcoef(sums)[0, 1])
    assert estimates.correlation(x, np.ones(30)) == 0
