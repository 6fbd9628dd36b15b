"""Intervals of class probabilities, from the posterior of log densities.

Scores of the classes get a shifted gamma distribution with their mean, variance and third cumulant, one of each class,
joined by the correlations of a normal distribution. With two classes the quantiles of a probability are those of one
number; with more they are taken over draws, which are always the same.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, ndtri

from cgnlearn.data.arrays import Floats, contrasts_of
from cgnlearn.networks.uncertainty import LogDensities, square_roots

N_DRAWS = 200
MOST_SKEWED = 4.0  # skewness of a shifted gamma distribution up to which its quantiles are approximated well
CHUNK = 1 << 21  # numbers that are held at once


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


def scores_at(normal: Floats, scores: LogDensities) -> Floats:
    """Scores of the classes for standard normal contrasts (draws, contrasts): (samples, classes, draws)."""
    across = contrasts_of(scores.mean.shape[1])
    roots = square_roots(scores.covariance) @ across  # (samples, contrasts, classes)
    deviation = np.sqrt(np.square(roots).sum(axis=1))
    positive = np.where(deviation > 0, deviation, 1.0)
    skewness = np.clip(scores.third / positive / positive / positive, -MOST_SKEWED, MOST_SKEWED)
    standard = (roots / positive[:, None]).swapaxes(1, 2) @ normal.T
    found: Floats = gamma_quantile(standard, skewness[:, :, None])
    found *= deviation[:, :, None]
    found += scores.mean[:, :, None]
    return found


def gamma_quantile(normal: Floats, skewness: Floats) -> Floats:
    """Quantiles of a gamma distribution with mean 0 and variance 1, by those of the normal (Wilson and Hilferty 1931).

    >>> gamma_quantile(np.array([-1.645, 1.645]), np.array([1.0])).round(2)
    array([-1.32,  1.87])
    """
    skewness = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    sixth = skewness / 6
    root = np.maximum(sixth * normal + (1 - sixth * sixth), 0.0)
    found: Floats = root * root
    found *= root
    found -= 1
    found *= 2 / skewness
    return found


def intervals_of(scores: LogDensities, proba: Floats, level: float) -> Intervals:
    """Intervals of softmax probabilities of scores, which contain the predicted ones."""
    n_samples, n_classes = proba.shape
    normal = two_sided(level) if n_classes == 2 else normal_draws(n_classes - 1)
    found = Intervals(*np.empty((3, n_samples, n_classes)))
    step = max(1, CHUNK // (len(normal) * n_classes))
    for start in range(0, n_samples, step):
        rows = slice(start, start + step)
        part = LogDensities(scores.mean[rows], scores.covariance[rows], scores.third[rows])
        proba_at = probabilities(scores_at(normal, part))
        if n_classes == 2:
            low, high = proba_at.min(axis=2), proba_at.max(axis=2)
            std = np.repeat(np.sqrt(2 * part.covariance[:, 0]), 2, axis=1)
        else:
            low, high, std = summary(proba_at, level)
        found.low[rows] = np.minimum(low, proba[rows])
        found.high[rows] = np.maximum(high, proba[rows])
        found.log_odds_std[rows] = std
    return found


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
