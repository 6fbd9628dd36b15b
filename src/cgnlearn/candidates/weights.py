"""Weights of the mixture, from the log probabilities of the true classes of held-out samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.power import PSEUDO_COUNT
from cgnlearn.data.arrays import Floats

N_BOOTSTRAPS = 400
N_STEPS = 300  # of EM; weights that still change then are of nearly equal settings
SETTLED = 1e-5  # change of a weight in a step of EM after which it ends
TRUSTED = 0.25  # effective share of the samples, as many settings were fitted to them
SPREAD = 3.0  # pseudo-count of all settings together in stacking
N_SHARES = 101  # weights of the class frequencies that are tried
MOST_DROPPED = 0.02  # total weight of the lightest members, which are dropped


@dataclass(frozen=True, eq=False)
class Evidence:
    """Held-out samples and their Bayesian bootstraps, by which settings and members are weighed."""

    counts: Floats  # of the samples, and the pseudo-count of the likelihood power last: (samples + 1,)
    drawn: Floats  # counts of each bootstrap: (bootstraps, samples + 1)

    @classmethod
    def of(cls, counts: Floats, random_state: np.random.RandomState) -> Evidence:
        """``counts`` sum to the effective number of samples."""
        counts = np.append(counts, PSEUDO_COUNT)
        drawn = random_state.standard_gamma(counts, (N_BOOTSTRAPS, len(counts)))
        drawn *= TRUSTED * counts.sum() / drawn.sum(axis=1, keepdims=True)
        return cls(counts, drawn)

    def weights(self, truth: Floats, second: Floats) -> Floats:
        """Half pseudo-BMA+, half stacking.

        ``truth`` are log probabilities of the true class (samples, settings); ``second``, their means for the likeliest
        wrong class, get the pseudo-count.
        """
        truth = np.vstack([truth, second])
        found: Floats = (self.pseudo_bma(truth) + stacking(truth, self.counts)) / 2
        return found

    def pseudo_bma(self, truth: Floats) -> Floats:
        """Pseudo-BMA+ (Yao, Vehtari, Simpson and Gelman 2018): the mean of exp(-n log loss) over Bayesian bootstraps.

        n is a quarter of the number of samples, as the best of many settings is partly best by chance.
        """
        found: Floats = softmax(self.drawn @ truth, axis=1).mean(axis=0)
        return found

    def mixture_weights(self, scores: Scores, floor: int, most: int | None) -> Floats:
        """Weights of at most ``most`` members; the mixture is not worse than ``floor``, the class frequencies."""
        found = self.weights(scores.truth, scores.second)
        found = np.where(worth_keeping(found, MOST_DROPPED), found, 0.0)
        truth = np.vstack([scores.truth, scores.second])
        found = not_worse_than(floor, found / found.sum(), truth, self.counts)
        if most is not None:
            found[np.argsort(-found, kind="stable")[most:]] = 0.0
        kept: Floats = found / found.sum()
        return kept

    def weight_draws(self, scores: Scores, weights: Floats, n_draws: int) -> Floats:
        """Weights of the members around ``weights``, as they vary over the bootstraps: (draws, candidates).

        Half of the weights is by pseudo-BMA+, which has a value for every bootstrap.
        """
        kept = np.flatnonzero(weights)
        truth = np.vstack([scores.truth, scores.second])[:, kept]
        drawn = softmax(self.drawn @ truth, axis=1)
        found = np.zeros((n_draws, len(weights)))
        found[:, kept] = np.maximum(weights[kept] + (drawn - drawn.mean(axis=0))[:n_draws] / 2, 0.0)
        return found / found.sum(axis=1, keepdims=True)


def stacking(truth: Floats, weights: Floats) -> Floats:
    """Weights of the mixture with the least log loss, under a weak Dirichlet prior, by EM."""
    n = truth.shape[1]
    proba = np.exp(truth - truth.max(axis=1, keepdims=True))
    found = np.full(n, 1 / n)
    for step in range(N_STEPS):
        before = found
        share = weights / (proba @ found)
        found = found * (share @ proba) + SPREAD / n
        found /= found.sum()
        if step % 5 == 4 and np.abs(found - before).max() < SETTLED:  # looking takes as long as half a step
            break
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


def worth_keeping(weights: Floats, most_dropped: float) -> NDArray[np.bool_]:
    """All except the lightest, which together have at most ``most_dropped``."""
    order = np.argsort(weights, kind="stable")
    gone = np.cumsum(weights[order]) <= most_dropped
    kept = np.ones(len(weights), bool)
    kept[order[gone]] = False
    return kept
