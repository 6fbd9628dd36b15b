"""Weights of the mixture, from the log probabilities of the true classes of held-out samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.power import PSEUDO_COUNT
from cgnlearn.data.arrays import Floats

N_BOOTSTRAPS = 400
N_STEPS = 300  # of EM; weights that still change then are of nearly equal settings
TRUSTED = 0.5  # effective share of the samples, as many settings were fitted to them
SPREAD = 3.0  # pseudo-count of all settings together in stacking
N_SHARES = 101  # weights of the class frequencies that are tried
MOST_DROPPED = 0.01  # total weight of the lightest settings, which are dropped


def mixture_weights(scores: Scores, weights: Floats, floor: int, random_state: np.random.RandomState) -> Floats:
    """Half pseudo-BMA+, half stacking; never worse than the setting ``floor``, the class frequencies.

    With the pseudo-count of the likelihood power in the likeliest wrong class.
    """
    truth, weights = np.vstack([scores.truth, scores.second]), np.append(weights, PSEUDO_COUNT)
    found = (pseudo_bma(truth, weights, random_state) + stacking(truth, weights)) / 2
    found = np.where(worth_keeping(found), found, 0.0)
    return not_worse_than(floor, found / found.sum(), truth, weights)


def pseudo_bma(truth: Floats, weights: Floats, random_state: np.random.RandomState) -> Floats:
    """Pseudo-BMA+ (Yao, Vehtari, Simpson and Gelman 2018): the mean of exp(-n log loss) over Bayesian bootstraps.

    ``truth`` are log probabilities of the true class: (samples, settings). n is half the number of samples, as the best
    of many settings is partly best by chance.
    """
    drawn = random_state.standard_gamma(weights, (N_BOOTSTRAPS, len(weights)))
    drawn *= TRUSTED * weights.sum() / drawn.sum(axis=1, keepdims=True)
    found: Floats = softmax(drawn @ truth, axis=1).mean(axis=0)
    return found


def stacking(truth: Floats, weights: Floats) -> Floats:
    """Weights of the mixture with the least log loss, under a weak Dirichlet prior, by EM."""
    n = truth.shape[1]
    proba = np.exp(truth - truth.max(axis=1, keepdims=True))
    found = np.full(n, 1 / n)
    for _ in range(N_STEPS):
        share = weights / (proba @ found)
        found = found * (share @ proba) + SPREAD / n
        found /= found.sum()
    return found


def not_worse_than(floor: int, weight: Floats, truth: Floats, weights: Floats) -> Floats:
    """Move weight to one setting as long as the mixture has a higher log loss than that setting alone."""
    mixed, alone = np.exp(truth) @ weight, np.exp(truth[:, floor])
    shares = np.linspace(0, 1, N_SHARES)
    with np.errstate(divide="ignore"):
        log_score = np.log((1 - shares) * mixed[:, None] + shares * alone[:, None]).T @ weights
    share = shares[log_score.argmax()] if log_score[0] < log_score[-1] else 0.0
    moved = (1 - share) * weight
    moved[floor] += share
    return moved


def worth_keeping(weights: Floats) -> NDArray[np.bool_]:
    """All settings except the lightest, which together have at most `MOST_DROPPED`."""
    order = np.argsort(weights, kind="stable")
    gone = np.cumsum(weights[order]) <= MOST_DROPPED
    kept = np.ones(len(weights), bool)
    kept[order[gone]] = False
    return kept
