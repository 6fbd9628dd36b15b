"""Intervals of class probabilities, from the posterior of log densities.

Scores of the classes get a shifted gamma distribution with their mean, variance and third cumulant, one of each class,
joined by the correlations of a normal distribution. With two classes the quantiles of a probability are those of one
number; with more they are taken over draws, which are always the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from cgnlearn.data.arrays import Floats, contrasts_of
from cgnlearn.networks.uncertainty import LogDensities, square_roots

N_DRAWS = 200
MOST_SKEWED = 4.0  # skewness of a shifted gamma distribution up to which its quantiles are approximated well
LEAST_SKEWED = 1e-6  # of which quantiles are those of a normal distribution
CHUNK = 1 << 17  # numbers that are held at once: they stay in the cache
COMPILED = 1 << 18  # draws of scores from which on loops are compiled


class Intervals(NamedTuple):
    """Intervals of the probability of every class."""

    low: Floats  # (samples, classes)
    high: Floats
    log_odds_std: Floats  # standard deviation of ln p / (1 - p)


@cache
def normal_draws(n_contrasts: int) -> Floats:
    """Standard normal draws, each coordinate at the middle of equal parts of the distribution: (draws, contrasts)."""
    rng = np.random.default_rng(0)
    ranks = np.stack([rng.permutation(N_DRAWS) for _ in range(n_contrasts)], axis=1)
    found: Floats = ndtri((ranks + 0.5) / N_DRAWS)
    found.flags.writeable = False
    return found


class _Shapes(NamedTuple):
    """Shifted gamma distributions of the scores of the classes, and what joins them."""

    mean: Floats  # (samples, classes)
    deviation: Floats
    skewness: Floats
    directions: Floats  # coordinates in independent contrasts, of length 1: (samples, classes, contrasts)

    @classmethod
    def of(cls, scores: LogDensities) -> _Shapes:
        roots = square_roots(scores.covariance) @ contrasts_of(scores.mean.shape[1])  # (samples, contrasts, classes)
        deviation = np.sqrt(np.square(roots).sum(axis=1))
        positive = np.where(deviation > 0, deviation, 1.0)
        skewness = np.clip(scores.third / positive / positive / positive, -MOST_SKEWED, MOST_SKEWED)
        skewness = np.where(np.abs(skewness) < LEAST_SKEWED, LEAST_SKEWED, skewness)
        return cls(scores.mean, deviation, skewness, (roots / positive[:, None]).swapaxes(1, 2))


def scores_at(normal: Floats, scores: LogDensities) -> Floats:
    """Scores of the classes for standard normal contrasts (draws, contrasts): (samples, classes, draws)."""
    shapes = _Shapes.of(scores)
    found: Floats = gamma_quantile(shapes.directions @ normal.T, shapes.skewness[:, :, None])
    found *= shapes.deviation[:, :, None]
    found += shapes.mean[:, :, None]
    return found


def gamma_quantile(normal: Floats, skewness: Floats) -> Floats:
    """Quantiles of a gamma distribution with mean 0 and variance 1, by those of the normal (Wilson and Hilferty 1931).

    The skewness is not 0.

    >>> gamma_quantile(np.array([-1.645, 1.645]), np.array([1.0])).round(2)
    array([-1.32,  1.87])
    """
    sixth = skewness / 6
    root = np.maximum(sixth * normal + (1 - sixth * sixth), 0.0)
    found: Floats = root * root
    found *= root
    found -= 1
    found *= 2 / skewness
    return found


def intervals_of(scores: LogDensities, proba: Floats, level: float) -> Intervals:
    """Intervals of softmax probabilities of scores, which contain the predicted ones."""
    n_classes = proba.shape[1]
    if n_classes == 2:
        proba_at = probabilities(scores_at(two_sided(level), scores))
        low, high = proba_at.min(axis=2), proba_at.max(axis=2)
        std = np.repeat(np.sqrt(2 * scores.covariance[:, 0]), 2, axis=1)
    else:
        low, high, std = mixed_intervals([scores], np.ones((N_DRAWS, 1)), 1.0, np.zeros(n_classes), level)
    return Intervals(np.minimum(low, proba), np.maximum(high, proba), std)


def mixed_intervals(
    members: Sequence[LogDensities], weights: Floats, power: float, class_log_prior: Floats, level: float
) -> Intervals:
    """Intervals over draws of mixed probabilities: each draw has the same contrasts for all members.

    ``weights`` are (draws, members). The mixture is raised to ``power``, as `cgnlearn.candidates.mixture.raised` does.
    """
    n_samples, n_classes = members[0].mean.shape
    normal = normal_draws(n_classes - 1)
    if n_samples * n_classes * len(normal) * len(members) >= COMPILED:
        return _by_loops(normal, members, weights, power, class_log_prior, level)
    found = Intervals(*np.empty((3, n_samples, n_classes)))
    step = max(1, CHUNK // (len(normal) * n_classes))
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        total = np.zeros((len(members[0].mean[rows]), n_classes, len(normal)))
        for scores, weight in zip(members, weights.T, strict=True):
            part = LogDensities(scores.mean[rows], scores.covariance[rows], scores.third[rows])
            total += weight * probabilities(scores_at(normal, part))
        if power != 1:
            log_proba = np.log(np.maximum(total, np.finfo(float).tiny))
            total = probabilities(power * log_proba + ((1 - power) * class_log_prior)[:, None])
        for whole, of_rows in zip(found, summary(total, level), strict=True):
            whole[rows] = of_rows
    return found


def _by_loops(
    normal: Floats,
    members: Sequence[LogDensities],
    weights: Floats,
    power: float,
    class_log_prior: Floats,
    level: float,
) -> Intervals:
    """`mixed_intervals` of many samples, for which loops are worth compiling."""
    from cgnlearn.kernels.compilation import in_threads
    from cgnlearn.kernels.draws import drawn_intervals

    shapes = [_Shapes.of(each) for each in members]
    scores = np.array([[each[i] for each in shapes] for i in range(3)])
    directions = np.stack([each.directions for each in shapes])
    found = np.empty((3, *members[0].mean.shape))
    draws, of_members = np.ascontiguousarray(normal.T), np.ascontiguousarray(weights.T)
    below = (1 - level) / 2 * len(normal) - 0.5  # of draws at the middle of equal parts

    def fill(rows: slice) -> None:
        part = np.ascontiguousarray(scores[:, :, rows]), np.ascontiguousarray(directions[:, rows])
        summed = np.empty((3, *part[0].shape[2:]))
        drawn_intervals(draws, of_members, *part, power, class_log_prior, below, summed)
        found[:, rows] = summed

    step = max(1, CHUNK // (len(normal) * found.shape[2] * len(members)))
    in_threads(fill, [slice(start, start + step) for start in range(0, found.shape[1], step)])
    return Intervals(expit(found[0]), expit(found[1]), found[2])


def two_sided(level: float) -> Floats:
    """Normal quantiles that an interval lies between: (2, 1)."""
    return ndtri(np.array([[(1 - level) / 2], [(1 + level) / 2]]))


def probabilities(scores: Floats) -> Floats:
    """Softmax over the classes, in place: (samples, classes, draws)."""
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def summary(proba: Floats, level: float) -> tuple[Floats, Floats, Floats]:
    """Quantiles of probabilities over draws (samples, classes, draws), and the deviation of their log odds."""
    least = np.finfo(float).tiny
    others = (1 - np.eye(proba.shape[1])) @ proba  # not 1 - p, which rounds to 0
    log_odds = np.log(np.maximum(proba, least) / np.maximum(others, least))
    std = log_odds.std(axis=2)
    log_odds.sort(axis=2)
    n = proba.shape[2]
    below = (1 - level) / 2 * n - 0.5  # of draws at the middle of n equal parts
    first = int(np.clip(np.floor(below), 0, n - 2))
    share = np.clip(below - first, 0.0, 1.0)
    low = (1 - share) * log_odds[..., first] + share * log_odds[..., first + 1]
    high = (1 - share) * log_odds[..., n - 1 - first] + share * log_odds[..., n - 2 - first]
    return expit(low), expit(high), std
