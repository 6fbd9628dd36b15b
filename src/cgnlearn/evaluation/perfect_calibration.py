"""The test of perfect calibration, whose distribution is simulated from the probabilities themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.estimates import FEWEST_GROUPS
from cgnlearn.logistic.recalibration import bounded

N_SIMULATIONS = 999
ENOUGH_EVENTS = 200.0  # expected of every class, from which on the statistic of the test is chi-squared
MOST_DRAWN = 200_000  # probabilities of a simulation
CHUNK = 1 << 18  # draws that are held at once


def p_value(log_proba: Floats, true: NDArray[np.intp], groups: NDArray[Any] | None = None) -> float | None:
    """Score test of intercepts 0 and slope 1, with the distribution of its statistic under the probabilities.

    The distribution is simulated; for many samples it is chi-squared. With groups it is the larger one of this and of
    Hotelling's test of the groups' scores. None with too few groups.
    """
    log_p = bounded(log_proba)
    p = np.exp(log_p)
    p /= p.sum(axis=1, keepdims=True)
    residual_mean = (p * log_p).sum(axis=1)
    away = log_p - residual_mean[:, None]
    inner = p[:, 1:]
    information = np.zeros((p.shape[1], p.shape[1]))
    information[:-1, :-1] = np.diag(inner.sum(axis=0)) - inner.T @ inner
    information[:-1, -1] = information[-1, :-1] = (inner * away[:, 1:]).sum(axis=0)
    information[-1, -1] = (p * away**2).sum()
    size = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    kept = values > 1e-9  # without log odds that vary, the slope says nothing
    whitening = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]

    def statistic(scores: Floats) -> Floats:
        found: Floats = ((scores @ whitening) ** 2).sum(axis=-1)
        return found

    scores = scores_of(log_p, log_p, true)
    observed = float(statistic(scores.sum(axis=0)))
    least = float((p * (1 - p)).sum(axis=0).min())
    if least >= ENOUGH_EVENTS or p.size > MOST_DRAWN:
        found = float(stats.chi2.sf(observed, kept.sum()))
    else:
        simulated = statistic(_simulated_scores(p, log_p, residual_mean))
        found = float((1 + (simulated >= observed * (1 - 1e-9)).sum()) / (1 + N_SIMULATIONS))
    if groups is None:
        return found
    sums = sums_by_group(scores @ whitening, groups)
    n_groups, n_free = sums.shape
    if n_groups < n_free + FEWEST_GROUPS:
        return None
    between = np.cov(sums.T).reshape(n_free, n_free)
    hotelling = float(n_groups * sums.mean(axis=0) @ np.linalg.pinv(between) @ sums.mean(axis=0))
    f = hotelling * (n_groups - n_free) / (n_free * (n_groups - 1))
    return max(found, float(stats.f.sf(f, n_free, n_groups - n_free)))


def scores_of(log_p: Floats, x: Floats, true: NDArray[np.intp]) -> Floats:
    """Derivatives of each sample's log likelihood by the intercepts but the first, and by the slope of ``x``."""
    p, rows = np.exp(log_p), np.arange(len(true))
    residual = -p
    residual[rows, true] += 1.0
    return np.column_stack([residual[:, 1:], (residual * x).sum(axis=1)])


def _simulated_scores(p: Floats, log_p: Floats, mean: Floats) -> Floats:
    """Total scores (simulations, parameters) of classes drawn from the probabilities."""
    rng, (n, n_classes) = np.random.default_rng(0), p.shape
    ends, steps = p.cumsum(axis=1), np.diff(log_p, axis=1)
    found = np.empty((N_SIMULATIONS, n_classes))
    for part in np.array_split(found, max(1, N_SIMULATIONS * n // CHUNK)):  # views
        drawn = rng.random((len(part), n))
        beyond = np.zeros((len(part), n_classes))  # numbers of samples of this class or a later one
        part[:, -1] = (log_p[:, 0] - mean).sum()
        for label in range(1, n_classes):
            is_beyond = drawn >= ends[:, label - 1]
            beyond[:, label - 1] = is_beyond.sum(axis=1)
            part[:, -1] += is_beyond @ steps[:, label - 1]
        part[:, :-1] = -np.diff(beyond, axis=1) - p[:, 1:].sum(axis=0)
    return found


def sums_by_group(scores: Floats, groups: NDArray[Any]) -> Floats:
    """The sums of scores (samples, parameters) over the samples of each group."""
    number = np.unique(groups, return_inverse=True)[1]
    sums = np.zeros((number.max() + 1, scores.shape[1]))
    np.add.at(sums, number, scores)
    return sums
