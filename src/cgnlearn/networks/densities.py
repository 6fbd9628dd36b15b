"""The formulas: log probabilities, log densities and log evidences, on stacked arrays.

Each is one expression of the paper (see ``docs/model.md``); nothing else in the package has
one. Shapes broadcast.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats


def categorical(counts: Floats, weight: float) -> Floats:
    """ln p(level | cell) after ``counts`` (…, levels) with a Dirichlet of ``weight`` per level; 0 is ML."""
    mass = counts + weight
    probability: Floats = np.log(mass) - np.log(mass.sum(axis=-1, keepdims=True))
    return probability


def categorical_leave_one_out(counts: Floats, weight: float, labels: Any, levels: Any, own: Any) -> Floats:
    """Leave-one-out ``categorical`` of the level of each sample, in every class: (samples, classes).

    ``counts`` (samples, classes, levels) of the cell of each sample are overwritten; ``own`` are the sample weights.
    """
    samples = np.arange(len(labels))
    counts[samples, labels, levels] -= own
    with np.errstate(divide="ignore"):  # the maximum likelihood probability of a unique level is 0
        return categorical(np.maximum(counts, 0.0), weight)[samples, :, levels]


def categorical_evidence(counts: Floats, weight: float) -> Floats:
    """ln p(the counted samples, in their order) under a Dirichlet of ``weight`` per level: (…,)."""
    n_levels = counts.shape[-1]
    n = counts.sum(axis=-1)
    inside = (gammaln(weight + counts) - gammaln(weight)).sum(axis=-1)
    evidence: Floats = gammaln(weight * n_levels) - gammaln(weight * n_levels + n) + inside
    return evidence


def categorical_of_sample(
    weight: Floats, count: Floats, n: Floats, n_levels: int, dirichlet: float
) -> tuple[Floats, Floats]:
    """ln p(level | cell) without a sample that has it, and what `categorical_evidence` loses with that sample.

    Both are the same if the sample has the weight 1. ``count`` and ``n`` are those of the level and of its cell, the
    sample included.
    """
    level, total = count + dirichlet, n + dirichlet * n_levels
    level_left = np.maximum(count - weight, 0.0) + dirichlet
    total_left = np.maximum(n - weight, 0.0) + dirichlet * n_levels
    lost: Floats = gammaln(level) - gammaln(level_left) - gammaln(total) + gammaln(total_left)
    return np.log(level_left) - np.log(total_left), lost


def normal(residual: ArrayLike, variance: ArrayLike) -> Floats:
    """ln N(residual | 0, variance)."""
    residual, variance = np.asarray(residual), np.asarray(variance)
    density: Floats = -0.5 * (np.log(2 * np.pi * variance) + residual * residual / variance)
    return density


def student(residual: ArrayLike, spread: ArrayLike, shape: ArrayLike) -> Floats:
    """ln of a Student t at ``residual``: 2ρ' degrees of freedom and scale² ``spread`` / 2ρ'.

    ``shape`` is ρ' and ``spread`` is F h = 2φ'(1 + zᵀV'z): the predictive of Proposition 3 of the paper.
    """
    residual, spread, shape = np.asarray(residual), np.asarray(spread), np.asarray(shape)
    density: Floats = (
        gammaln(shape + 0.5)
        - gammaln(shape)
        - 0.5 * np.log(np.pi * spread)
        - (shape + 0.5) * np.log1p(residual * residual / spread)
    )
    return density


def multivariate_normal(distance: ArrayLike, log_det: ArrayLike, size: ArrayLike) -> Floats:
    """ln N of ``size`` features at once: squared Mahalanobis ``distance``, ln|Σ|."""
    density: Floats = -0.5 * (np.asarray(size) * np.log(2 * np.pi) + log_det + distance)
    return density


def multivariate_student(
    log_given: ArrayLike,
    log_whole: ArrayLike,
    log_det: ArrayLike,
    size: ArrayLike,
    shape: ArrayLike,
    n_blocks: int = 1,
) -> Floats:
    """The sum of `student` over the ``size`` own members of a block, each given those before it.

    From one member to the next the leverage h grows by w², so that h (1 + w²/h) is the next one's, and ρ' by a half:
    all terms but the first and the last cancel.

    Parameters
    ----------
    log_given, log_whole : ln h before the first own member and after the last, summed over the blocks
    log_det : Σ ln F over all own members: for a block with nothing given, ln|Ψ'|
    size : own members of each block
    shape : ρ' of the first
    n_blocks : how many blocks of this size have been summed over
    """
    shape, half = np.asarray(shape), np.asarray(size) / 2
    # What is the same for many samples is put together first.
    constant = n_blocks * (gammaln(shape + half) - gammaln(shape) - half * np.log(np.pi)) - np.asarray(log_det) / 2
    density: Floats = shape * np.asarray(log_given) + constant - (shape + half) * np.asarray(log_whole)
    return density


def log_gamma_ratio(n: ArrayLike, shape: ArrayLike) -> Floats:
    """lnΓ(ρ') - lnΓ(ρ0) after n samples."""
    shape = np.asarray(shape)
    ratio: Floats = gammaln(shape + np.asarray(n) / 2) - gammaln(shape)
    return ratio


def regression_evidence(
    n: ArrayLike,
    shape: ArrayLike,
    prior_scale: ArrayLike,
    spread: ArrayLike,
    log_det_ratio: ArrayLike,
    log_strength_ratio: ArrayLike,
    log_gammas: ArrayLike | None = None,
) -> Any:
    """ln p(the child's n values | its parents' values): the normal inverse gamma's marginal likelihood.

    Parameters
    ----------
    n : samples
    shape : ρ0, the inverse gamma's prior shape
    prior_scale : Ψ0 of the child, 2φ
    spread : F, the posterior's 2φ'
    log_det_ratio : ln|Ψ0| - ln|Ψ'| over the parents
    log_strength_ratio : ln(κ0/κ'), summed over the classes that share the regression
    log_gammas : `log_gamma_ratio`, where a table of it serves many regressions
    """
    n, shape = np.asarray(n), np.asarray(shape)
    after = shape + n / 2
    return (
        (log_gamma_ratio(n, shape) if log_gammas is None else np.asarray(log_gammas))
        + shape * np.log(np.asarray(prior_scale) / 2)
        - after * np.log(np.asarray(spread) / 2)
        + (np.asarray(log_det_ratio) + np.asarray(log_strength_ratio)) / 2
        - n / 2 * np.log(2 * np.pi)
    )


def evidence_of_sample(
    weight: ArrayLike, shape: ArrayLike, spread: ArrayLike, left: Any, strength: ArrayLike
) -> Floats:
    """Log evidence that a feature without parents loses with a sample: for weight 1, its `student` density.

    Parameters
    ----------
    weight : of the sample
    shape, spread, strength : ρ', F and κ' with the sample
    left : which share of F is left without it
    """
    shape, strength, half = np.asarray(shape), np.asarray(strength), np.asarray(weight) / 2
    lost: Floats = gammaln(shape) - gammaln(shape - half) + (shape - half) * np.log(left)
    lost += 0.5 * np.log((strength - weight) / strength) - half * np.log(np.pi * np.asarray(spread))
    return lost


def block_evidence(
    n: ArrayLike,
    shape: float,
    size: int,
    log_det: ArrayLike,
    log_det_ratio: ArrayLike,
    log_strength_ratio: ArrayLike,
) -> Floats:
    """The sum of `regression_evidence` over the ``size`` members of a block, each given those before it.

    Every member counts its own Ψ0 and F with its shape and a half for each member after it: determinants remain.

    Parameters
    ----------
    n : samples
    shape : ρ0 of the first member
    size : how many members
    log_det : ln|Ψ'| over the block
    log_det_ratio : ln|Ψ0| - ln|Ψ'|
    log_strength_ratio : ln(κ0/κ'), summed over the classes that share the regressions
    """
    n = np.asarray(n)
    shapes = shape + np.arange(size) / 2
    gammas = (gammaln(shapes + n[..., None] / 2) - gammaln(shapes)).sum(axis=-1)
    evidence: Floats = (
        gammas
        + (shape + (size - 1) / 2) * np.asarray(log_det_ratio)
        - n / 2 * (np.asarray(log_det) + size * np.log(np.pi))
        + size / 2 * np.asarray(log_strength_ratio)
    )
    return evidence


# ---- of classes


def normalised(log_joint: Floats) -> Floats:
    """Log probabilities of the classes, along the last axis, from log joint ones."""
    classes = range(log_joint.shape[-1])  # one after the other: loops over samples are long
    highest = reduce(np.maximum, (log_joint[..., c] for c in classes))
    log_proba: Floats = log_joint - highest[..., None]
    log_proba -= np.log(sum(np.exp(log_proba[..., c]) for c in classes))[..., None]
    return log_proba


def is_correct(log_proba: Floats, true: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the most probable class is the true one, row by row."""
    found: NDArray[np.bool_] = log_proba.argmax(axis=1) == true
    return found


def true_class_log_proba(log_proba: Floats, true: NDArray[np.intp]) -> Floats:
    """The log probability of the true class, row by row."""
    return log_proba[np.arange(len(true)), true]
