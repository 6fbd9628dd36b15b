"""Fits of one regression to several parts of its samples at once: to all of them and to the training samples of folds.

The parts share the features and differ in the weights of the samples, which are 0 outside of a part. So one product of
matrices serves all parts, and so does one preconditioner. The likelihood power is fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cgnlearn.data.arrays import Floats, contrasts_of
from cgnlearn.logistic.optimiser import MOST_STEPS, SHORTEST, SMALLEST, Samples, cholesky, solved_by
from cgnlearn.networks.densities import normalised

MOST_NUMBERS = 1 << 20  # samples × parts × classes at once: what is computed from them stays in the cache
MOST_PRODUCTS = 40  # of the Hessians with a direction in one step
STEP_ERROR = 3e-2  # relative, of a step
ACCURACY = 1e-6  # of the loss, relative: where a step is expected to decrease it by less, the step is the last

Solver = Callable[[Floats], Floats]


def fitted_parts(samples: Samples, weights: Floats, penalty: float, start: Floats) -> Floats:
    """Slopes of least penalised loss: (1 + features, parts, contrasts), like ``start``; weights are (samples, parts).

    By Newton's method, with steps by conjugate gradients: no Hessian is computed.
    """
    n_numbers = len(weights) * (samples.n_contrasts + 1)
    at_once = max(1, MOST_NUMBERS // max(1, n_numbers))
    if weights.shape[1] > at_once:
        cuts = range(0, weights.shape[1], at_once)
        parts = [(weights[:, cut : cut + at_once], start[:, cut : cut + at_once]) for cut in cuts]
        return np.concatenate([fitted_parts(samples, own, penalty, at) for own, at in parts], axis=1)
    parts_of = _Parts(samples, weights, samples.penalties(penalty))
    slopes = start
    log_proba = parts_of.log_proba(slopes)
    loss = parts_of.loss(slopes, log_proba)
    moving = np.ones(weights.shape[1], bool)
    for _ in range(MOST_STEPS):
        proba = np.exp(log_proba)
        gradient = parts_of.gradient(slopes, proba)
        step = parts_of.step(gradient, proba, parts_of.mean_curvature(proba), moving)
        expected = -(gradient * step).sum(axis=(0, 2))
        moving &= expected > 0
        slopes, log_proba, loss = parts_of.moved(slopes, step * moving[:, None], loss, expected, log_proba)
        moving &= expected > ACCURACY * (1 + np.abs(loss))
        if not moving.any():
            break
    return slopes


@dataclass(frozen=True, eq=False)
class _Parts:
    """The parts' losses; slopes are (1 + features, parts, contrasts)."""

    samples: Samples
    weights: Floats  # (samples, parts)
    penalties: Floats  # (1 + features,)

    @cached_property
    def across(self) -> Floats:
        """(contrasts, classes)."""
        return contrasts_of(self.samples.n_contrasts + 1)

    @cached_property
    def offset(self) -> Floats:
        """Logits of the classes without features: (samples, 1, classes)."""
        return ((self.samples.log_prior + self.samples.powers[1] * self.samples.offset) @ self.across)[:, None]

    def logits(self, slopes: Floats) -> Floats:
        """The features' share of the logits: (samples, parts, classes).

        From contrasts to classes and back goes what belongs to features, which are fewer than samples.
        """
        found = self.samples.design @ (slopes @ self.across).reshape(len(slopes), -1)
        return found.reshape(len(found), slopes.shape[1], -1)

    def log_proba(self, slopes: Floats) -> Floats:
        """(samples, parts, classes)."""
        return normalised(self.logits(slopes) + self.offset)

    def loss(self, slopes: Floats, log_proba: Floats) -> Floats:
        """(parts,)."""
        truth = np.take_along_axis(log_proba, self.samples.labels[:, None, None], axis=2)[:, :, 0]
        penalty = np.einsum("f,fpc->p", self.penalties, np.square(slopes)) / 2
        found: Floats = penalty - np.einsum("sp,sp->p", self.weights, truth)
        return found

    def of_samples(self, values: Floats) -> Floats:
        """Sum over the weighted samples of features times values of the classes: (1 + features, parts, contrasts)."""
        weighted = values * self.weights[:, :, None]
        found = self.samples.design.T @ weighted.reshape(len(weighted), -1)
        return found.reshape(len(found), *values.shape[1:]) @ self.across.T

    def gradient(self, slopes: Floats, proba: Floats) -> Floats:
        excess = proba.copy()
        excess[np.arange(len(excess)), :, self.samples.labels] -= 1.0
        return self.of_samples(excess) + self.penalties[:, None, None] * slopes

    def along(self, proba: Floats, direction: Floats) -> Floats:
        """Hessians times directions."""
        moved = self.logits(direction)
        moved -= np.einsum("spc,spc->sp", proba, moved)[:, :, None]
        moved *= proba
        return self.of_samples(moved) + self.penalties[:, None, None] * direction

    def mean_curvature(self, proba: Floats) -> Solver:
        """Preconditioner: for every contrast the mean of the contrasts' Hessians, and the mean of the parts' ones."""
        spread = 1 - np.einsum("spc,spc->sp", proba, proba)
        spread = (spread * self.weights).mean(axis=1) / self.samples.n_contrasts
        root = self.samples.design * np.sqrt(np.maximum(spread, 0.0))[:, None]
        hessian = root.T @ root
        np.fill_diagonal(hessian, hessian.diagonal() + self.penalties + SMALLEST * hessian.diagonal().max())
        factor = cholesky(hessian)
        return lambda right: solved_by(factor, right.reshape(len(right), -1)).reshape(right.shape)

    def step(self, gradient: Floats, proba: Floats, solved: Solver, moving: Floats) -> Floats:
        """Newton's steps by preconditioned conjugate gradients, or towards them."""
        step = np.zeros_like(gradient)
        rest = -gradient
        direction = solved_rest = solved(rest)
        size = np.einsum("fpc,fpc->p", rest, solved_rest)
        enough = np.where(moving, STEP_ERROR**2 * size, np.inf)
        for _ in range(MOST_PRODUCTS):
            active = size > enough
            if not active.any():
                break
            product = self.along(proba, direction)
            curved = np.einsum("fpc,fpc->p", direction, product)
            length = np.where(active & (curved > 0), size / np.where(curved > 0, curved, 1.0), 0.0)[:, None]
            step += length * direction
            rest -= length * product
            solved_rest = solved(rest)
            size, before = np.einsum("fpc,fpc->p", rest, solved_rest), size
            direction = solved_rest + (size / np.where(before > 0, before, 1.0))[:, None] * direction
        return step

    def moved(
        self, slopes: Floats, step: Floats, loss: Floats, expected: Floats, log_proba: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Slopes after steps that decrease the losses, with log probabilities and losses there."""
        length = np.ones(len(loss))
        while True:
            next_slopes = slopes + length[:, None] * step
            log_proba = self.log_proba(next_slopes)
            next_loss = self.loss(next_slopes, log_proba)
            # Near the optimum the loss cannot distinguish two points, but Newton's step can.
            worse = (next_loss > loss - 1e-4 * length * expected) & (expected > 1e-9 * (1 + np.abs(loss)))
            worse &= length > 0
            if not worse.any():
                return next_slopes, log_proba, next_loss
            length[worse] /= 2
            length[length < SHORTEST] = 0.0
