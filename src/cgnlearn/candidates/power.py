"""The likelihood power: how far the features are trusted, from log likelihoods of held-out samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from cgnlearn.data.arrays import Floats

LEAST_POWER = 1e-4
PSEUDO_COUNT = 0.25  # samples more, of the class that comes second: where none is wrong, a model is else too sure
PRECISION = 0.8  # of the normal prior of ln power around 0
ACCURACY = 1e-4  # of ln power


def likelihood_power(
    log_likelihood: Floats, class_log_prior: Floats, labels: NDArray[np.intp], weights: Floats
) -> float:
    """The power up to 1 of p(x | class) under which held-out samples have the least log loss.

    Log loss is convex in the power: the least is where its slope is 0. A weak log-normal prior holds the power near 1,
    and part of a sample more, of the class that comes second, keeps it from being too sure where no sample is wrong.

    Parameters
    ----------
    log_likelihood : ndarray (samples, classes)
    class_log_prior : ndarray (samples, classes) or (classes,)
    labels, weights : ndarray (samples,)
    """
    n = weights.sum()
    scores = np.ascontiguousarray(log_likelihood.T)  # (classes, samples): loops over samples are long
    scores = scores - scores.max(axis=0)
    prior = np.ascontiguousarray(np.broadcast_to(class_log_prior, log_likelihood.shape).T)
    every = np.arange(len(labels))
    truth = scores[labels, every]
    second = weights @ scores[second_best(log_likelihood + class_log_prior, labels), every] / n

    def slope(log_power: float) -> float:
        power = np.exp(log_power)
        joint = power * scores
        joint += prior
        joint -= joint.max(axis=0)
        proba = np.exp(joint, out=joint)
        expected = np.einsum("cr,cr->r", proba, scores) / proba.sum(axis=0)
        more = weights @ (truth - expected) + PSEUDO_COUNT * (second - weights @ expected / n)
        return float(more * power - PRECISION * log_power) / n

    low, high = float(np.log(LEAST_POWER)), 0.0
    if slope(high) >= 0:
        return 1.0
    if slope(low) <= 0:
        return LEAST_POWER
    return float(np.exp(brentq(slope, low, high, xtol=ACCURACY)))


def second_best(log_proba: Floats, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """The likeliest class of each sample that is not its own."""
    others = log_proba.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return others.argmax(axis=1)
