"""The likelihood power of settings and of their mixture, from held-out samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats

LEAST_POWER = 1e-4
PSEUDO_COUNT = 0.25  # of a sample in the likeliest wrong class: without errors a model would be overconfident
PRECISION = 0.8  # of the normal prior of ln power, with mean 0
MOST_MIXTURE_POWER, MIXTURE_PSEUDO_COUNT, MIXTURE_PRECISION = 1.5, 4.0, 30.0  # the same for a mixture
ACCURACY = 1e-4  # tolerance of ln power


def mixture_power(log_proba: Floats, class_log_prior: Floats, labels: NDArray[np.intp], weights: Floats) -> float:
    """Return the power of a mixture's likelihood ratios p(c | x) / p(c), from 1 to `MOST_MIXTURE_POWER`.

    A linear mixture of calibrated members is under-confident. But its weights were fitted to the same held-out
    samples, which therefore look better than others will: the prior is worth many samples.
    """
    return likelihood_power(
        log_proba - class_log_prior,
        class_log_prior,
        labels,
        weights,
        bounds=(1.0, MOST_MIXTURE_POWER),
        pseudo_count=MIXTURE_PSEUDO_COUNT,
        precision=MIXTURE_PRECISION,
    )


def likelihood_power(
    log_likelihood: Floats,
    class_log_prior: Floats,
    labels: NDArray[np.intp],
    weights: Floats,
    *,
    bounds: tuple[float, float] = (LEAST_POWER, 1.0),
    pseudo_count: float = PSEUDO_COUNT,
    precision: float = PRECISION,
) -> float:
    """Return the power of p(x | class), within bounds, with the least log loss of held-out samples.

    Log likelihoods are (samples, classes), the log prior is the same or (classes,). Log loss is convex in the power, so
    the minimum is where its slope is 0. A log-normal prior keeps the power near 1, and a pseudo-count in the
    likeliest wrong class keeps it finite where no sample is misclassified.
    """
    n = weights.sum()
    scores = np.ascontiguousarray(log_likelihood.T)  # (classes, samples): loops over samples are long
    scores = scores - scores.max(axis=0)
    prior = np.ascontiguousarray(np.broadcast_to(class_log_prior, log_likelihood.shape).T)
    every = np.arange(len(labels))
    truth = scores[labels, every]
    second = weights @ scores[second_best(log_likelihood + class_log_prior, labels), every] / n

    def slope(log_power: float) -> tuple[float, float]:
        """Negative slope of the log loss in ln power, and its derivative."""
        power = np.exp(log_power)
        joint = power * scores
        joint += prior
        joint -= joint.max(axis=0)
        proba = np.exp(joint, out=joint)
        total = proba.sum(axis=0)
        proba *= scores
        expected = proba.sum(axis=0) / total
        variance = np.einsum("cr,cr->r", proba, scores) / total - np.square(expected)
        more = weights @ (truth - expected) + pseudo_count * (second - weights @ expected / n)
        less = (1 + pseudo_count / n) * (weights @ variance)
        return float(more * power - precision * log_power), float((more - less * power) * power - precision)

    least, most = bounds
    low, high = float(np.log(least)), float(np.log(most))
    at = high
    while high - low > ACCURACY:  # Newton, or bisection where that leads out of what is possible
        value, change = slope(at)
        if value >= 0:
            low = at
        else:
            high = at
        step = at - value / change if change < 0 else low
        before, at = at, step if low < step < high else (low + high) / 2
        if abs(at - before) < ACCURACY:
            break
    return least if at - np.log(least) < ACCURACY else most if np.log(most) - at < ACCURACY else float(np.exp(at))


def second_best(log_proba: Floats, labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """The likeliest wrong class of each sample."""
    others = log_proba.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return others.argmax(axis=1)
