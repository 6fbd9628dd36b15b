"""Weights of candidates from what each says of rows that it has not seen; and their temperatures before."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from cgnlearn.model.densities import Floats
from cgnlearn.structures.selection import DOUBT, TEMPERATURES, TEMPERED

N_BOOTSTRAPS = 400
N_STEPS = 300  # of expectation and maximisation; the weights that still move then are of candidates that are alike
TRUSTED = 0.5  # of the rows: so many candidates were fitted to them, or tempered by them, that they tell less than all
# Many candidates guard against one that is too sure: half the doubt that one alone needs, and a prior twice as firm.
HALF_DOUBT, TWICE_TEMPERED = DOUBT / 2, TEMPERED * 2
SPREAD = 3.0  # rows that stacking supposes beforehand, spread over all candidates
ACCURACY = 1e-4  # of the logarithm of a temperature
N_SHARES = 101  # of the class frequencies, among which the best is sought
MOST_DROPPED = 0.01  # of all weight, by leaving out the lightest


def tempered(log_likelihood: Floats, class_log_prior: Floats, labels: NDArray[np.intp], weights: Floats) -> float:
    """The temperature up to 1 under which rows that were left out have the best mean CLL.

    CLL is concave in the temperature: where its slope is 0. A weak log-normal prior holds it near 1, and part of a row
    more, of the class that comes second, keeps it from being too sure where no row is wrong.
    """
    n = weights.sum()
    scores = np.ascontiguousarray(log_likelihood.T)  # (classes, rows): loops over rows are long
    scores = scores - scores.max(axis=0)
    prior = np.ascontiguousarray(np.broadcast_to(class_log_prior, log_likelihood.shape).T)
    rows = np.arange(len(labels))
    truth = scores[labels, rows]
    second = weights @ scores[second_best(log_likelihood + class_log_prior, labels), rows] / n

    def slope(log_temperature: float) -> float:
        temperature = np.exp(log_temperature)
        joint = temperature * scores
        joint += prior
        joint -= joint.max(axis=0)
        proba = np.exp(joint, out=joint)
        expected = np.einsum("cr,cr->r", proba, scores) / proba.sum(axis=0)
        more = weights @ (truth - expected) + HALF_DOUBT * (second - weights @ expected / n)
        return float(more * temperature - 2 * TWICE_TEMPERED * log_temperature) / n

    low, high = float(np.log(TEMPERATURES[0])), 0.0
    if slope(high) >= 0:
        return 1.0
    if slope(low) <= 0:
        return float(np.exp(low))
    return float(np.exp(brentq(slope, low, high, xtol=ACCURACY)))


def second_best(log_proba: Floats, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """The likeliest class of each row that is not its own."""
    others = log_proba.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return others.argmax(axis=1)


def pseudo_bma(truth: Floats, weights: Floats, random_state: np.random.RandomState) -> Floats:
    """Pseudo-BMA+ (Yao, Vehtari, Simpson and Gelman 2018): exp(n CLL), averaged over Bayesian bootstraps of the rows.

    Of the rows half are trusted: the best of many candidates is best by luck too.

    Parameters
    ----------
    truth : ndarray (rows, candidates)
        Log probability of the true class.
    weights : ndarray (rows,)
    """
    drawn = random_state.standard_gamma(weights, (N_BOOTSTRAPS, len(weights)))
    drawn *= TRUSTED * weights.sum() / drawn.sum(axis=1, keepdims=True)
    found: Floats = softmax(drawn @ truth, axis=1).mean(axis=0)
    return found


def stacking(truth: Floats, weights: Floats) -> Floats:
    """The weights whose mixture has the best CLL, with a weak Dirichlet prior, by expectation and maximisation."""
    n = truth.shape[1]
    proba = np.exp(truth - truth.max(axis=1, keepdims=True))
    found = np.full(n, 1 / n)
    for _ in range(N_STEPS):
        share = weights / (proba @ found)
        found = found * (share @ proba) + SPREAD / n
        found /= found.sum()
    return found


def not_worse_than(floor: int, weight: Floats, truth: Floats, weights: Floats) -> Floats:
    """The weights, moved towards one candidate as far as their mixture would else be worse than it alone."""
    mixed, alone = np.exp(truth) @ weight, np.exp(truth[:, floor])
    shares = np.linspace(0, 1, N_SHARES)
    with np.errstate(divide="ignore"):
        cll = np.log((1 - shares) * mixed[:, None] + shares * alone[:, None]).T @ weights
    share = shares[cll.argmax()] if cll[0] < cll[-1] else 0.0
    moved = (1 - share) * weight
    moved[floor] += share
    return moved


def worth_keeping(weights: Floats) -> NDArray[np.bool_]:
    """All candidates but the lightest, as long as these have next to no weight together."""
    order = np.argsort(weights, kind="stable")
    gone = np.cumsum(weights[order]) <= MOST_DROPPED
    kept = np.ones(len(weights), bool)
    kept[order[gone]] = False
    return kept
