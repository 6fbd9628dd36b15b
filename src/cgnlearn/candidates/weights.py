"""Weights of candidates from their log probabilities of the true classes of held-out samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.power import PSEUDO_COUNT
from cgnlearn.data.arrays import Floats

N_BOOTSTRAPS = 400
N_STEPS = 300  # of expectation and maximisation; the weights that still move then are of settings that are alike
TRUSTED = 0.5  # of the samples: so many settings were fitted to them that they tell less than all
SPREAD = 3.0  # samples that stacking supposes beforehand, spread over all settings
N_SHARES = 101  # of the class frequencies, among which the best is sought
MOST_DROPPED = 0.01  # of all weight, by leaving out the lightest


def mixture_weights(scores: Scores, weights: Floats, floor: int, random_state: np.random.RandomState) -> Floats:
    """Half by pseudo-BMA+ and half by stacking; no worse than one of the settings, the class frequencies.

    They are judged as if part of a sample more were of the class that comes second, as the likelihood power is.

    Parameters
    ----------
    scores : Scores
    weights : ndarray (samples,)
    floor : int
        The setting than which the mixture is not to be worse.
    """
    truth, weights = np.vstack([scores.truth, scores.second]), np.append(weights, PSEUDO_COUNT)
    found = (pseudo_bma(truth, weights, random_state) + stacking(truth, weights)) / 2
    found = np.where(worth_keeping(found), found, 0.0)
    return not_worse_than(floor, found / found.sum(), truth, weights)


def pseudo_bma(truth: Floats, weights: Floats, random_state: np.random.RandomState) -> Floats:
    """Pseudo-BMA+ (Yao, Vehtari, Simpson and Gelman 2018): exp(- n log loss), over Bayesian bootstraps.

    Half of the samples are trusted: the best of many is best by luck too.

    Parameters
    ----------
    truth : ndarray (samples, settings)
        Log probability of the true class.
    weights : ndarray (samples,)
    """
    drawn = random_state.standard_gamma(weights, (N_BOOTSTRAPS, len(weights)))
    drawn *= TRUSTED * weights.sum() / drawn.sum(axis=1, keepdims=True)
    found: Floats = softmax(drawn @ truth, axis=1).mean(axis=0)
    return found


def stacking(truth: Floats, weights: Floats) -> Floats:
    """The weights whose mixture has the least log loss, with a weak Dirichlet prior, by EM."""
    n = truth.shape[1]
    proba = np.exp(truth - truth.max(axis=1, keepdims=True))
    found = np.full(n, 1 / n)
    for _ in range(N_STEPS):
        share = weights / (proba @ found)
        found = found * (share @ proba) + SPREAD / n
        found /= found.sum()
    return found


def not_worse_than(floor: int, weight: Floats, truth: Floats, weights: Floats) -> Floats:
    """The weights, moved towards one of the settings as far as their mixture would else be worse than it alone."""
    mixed, alone = np.exp(truth) @ weight, np.exp(truth[:, floor])
    shares = np.linspace(0, 1, N_SHARES)
    with np.errstate(divide="ignore"):
        log_score = np.log((1 - shares) * mixed[:, None] + shares * alone[:, None]).T @ weights
    share = shares[log_score.argmax()] if log_score[0] < log_score[-1] else 0.0
    moved = (1 - share) * weight
    moved[floor] += share
    return moved


def worth_keeping(weights: Floats) -> NDArray[np.bool_]:
    """All settings but the lightest, as long as these have next to no weight together."""
    order = np.argsort(weights, kind="stable")
    gone = np.cumsum(weights[order]) <= MOST_DROPPED
    kept = np.ones(len(weights), bool)
    kept[order[gone]] = False
    return kept
