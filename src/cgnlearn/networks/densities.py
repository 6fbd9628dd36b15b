"""The formulas of the model (``docs/model.md``): log probabilities, log densities and log evidences.

Arguments are arrays of shapes that broadcast.
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
    total = mass.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):  # the maximum likelihood probability of a level or a cell without samples is 0
        probability: Floats = np.log(mass) - np.log(np.where(total > 0, total, 1.0))
    return probability


def categorical_leave_one_out(counts: Floats, weight: float, labels: Any, levels: Any, own: Any) -> Floats:
    """Leave-one-out ``categorical`` of the level of each sample, in every class: (samples, classes).

    ``counts`` (samples, classes, levels) of the cell of each sample are overwritten; ``own`` are the sample weights.
    """
    samples = np.arange(len(labels))
    counts[samples, labels, levels] -= own
    return categorical(np.maximum(counts, 0.0), weight)[samples, :, levels]


def categorical_evidence(counts: Floats, weight: float) -> Floats:
    """ln p(counted samples, in their order) under a Dirichlet of ``weight`` per level: (…,)."""
    n_levels = counts.shape[-1]
    n = counts.sum(axis=-1)
    inside = (gammaln(weight + counts) - gammaln(weight)).sum(axis=-1)
    evidence: Floats = gammaln(weight * n_levels) - gammaln(weight * n_levels + n) + inside
    return evidence


def categorical_of_sample(
    weight: Floats, count: Floats, n: Floats, n_levels: int, dirichlet: float
) -> tuple[Floats, Floats]:
    """Leave-one-out ln p(level | cell) of a sample, and what `categorical_evidence` loses with the sample.

    Both are equal if its weight is 1. ``count`` and ``n`` are those of the level and of its cell, the sample included.
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
    log_given: ArrayLike,  # ln h before the first own member, summed over the blocks
    log_whole: ArrayLike,  # ln h after the last
    log_det: ArrayLike,  # Σ ln F over all own members: for a block with nothing given, ln|Ψ'|
    size: ArrayLike,  # own members of each block
    shape: ArrayLike,  # ρ' of the first
    n_blocks: int = 1,
) -> Floats:
    """Sum of `student` over the own members of blocks, each given the members before it.

    From one member to the next, the leverage h grows by w² to h (1 + w²/h) and ρ' by a half: all terms but the first
    and the last cancel.
    """
    shape, half = np.asarray(shape), np.asarray(size) / 2
    # First the terms that are the same for many samples.
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
    shape: ArrayLike,  # ρ0
    prior_scale: ArrayLike,  # Ψ0 of the child, 2φ
    spread: ArrayLike,  # F = 2φ'
    log_det_ratio: ArrayLike,  # ln|Ψ0| - ln|Ψ'| over the parents
    log_strength_ratio: ArrayLike,  # ln(κ0/κ'), summed over the classes that share the regression
    log_gammas: ArrayLike | None = None,  # `log_gamma_ratio`, if computed before
) -> Any:
    """ln p(n values of the child | values of its parents), with a normal inverse gamma prior."""
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

    ``shape``, ``spread`` and ``strength`` are ρ', F and κ' with the sample; ``left`` is the share of F without it.
    """
    shape, strength, half = np.asarray(shape), np.asarray(strength), np.asarray(weight) / 2
    lost: Floats = gammaln(shape) - gammaln(shape - half) + (shape - half) * np.log(left)
    lost += 0.5 * np.log((strength - weight) / strength) - half * np.log(np.pi * np.asarray(spread))
    return lost


def block_evidence(
    n: ArrayLike,
    shape: float,  # ρ0 of the first member
    size: int,
    log_det: ArrayLike,  # ln|Ψ'|
    log_det_ratio: ArrayLike,  # ln|Ψ0| - ln|Ψ'|
    log_strength_ratio: ArrayLike,  # ln(κ0/κ'), summed over the classes that share the regressions
) -> Floats:
    """Sum of `regression_evidence` over the members of a block, each given the members before it."""
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


def normalised(log_joint: Floats) -> Floats:
    """Log probabilities of the classes, along the last axis, from joint log probabilities."""
    classes = range(log_joint.shape[-1])  # one after another: inner loops run over samples
    highest = reduce(np.maximum, (log_joint[..., c] for c in classes))
    log_proba: Floats = log_joint - highest[..., None]
    log_proba -= np.log(sum(np.exp(log_proba[..., c]) for c in classes))[..., None]
    return log_proba


def is_correct(log_proba: Floats, true: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Whether the most probable class of each sample is the true one."""
    correct: NDArray[np.bool_] = log_proba.argmax(axis=1) == true
    return correct


def true_class_log_proba(log_proba: Floats, true: NDArray[np.intp]) -> Floats:
    """Log probability of the true class of each sample."""
    return log_proba[np.arange(len(true)), true]
