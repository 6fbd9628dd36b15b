"""Multinomial logistic regression of one score, in which the classes have an order that is found with it.

    logits(sample) = log prior + b + axis · score,    score = slopes · features(sample),    penalty λ/2 ‖slopes‖²

This is the stereotype model (Anderson 1984): slopes of rank one. Instead of a slope for every feature and contrast it
has one for every feature, and an axis of the contrasts, of length 1. The loss is not convex in both together; a path of
penalties begins where slopes are 0 and the axis is that of the steepest descent, and follows the minimum from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigvalsh, null_space

from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import stratified
from cgnlearn.logistic.design import Design, LinearOdds
from cgnlearn.logistic.optimiser import (
    ACCURACY,
    MOST_STEPS,
    SHORTEST,
    SMALLEST,
    Point,
    Samples,
    cholesky,
    fitted,
    solved_by,
)
from cgnlearn.logistic.path import N_FOLDS, Ending, LeaveOneOut, Step, can_fold, inverse_by, inverse_of
from cgnlearn.logistic.uncertainty import LEAST_SIZE, Curved, supported_penalty


class Scored(NamedTuple):
    """Parameters."""

    slopes: Floats  # of the score: (features,)
    axis: Floats  # of length 1: (contrasts,)
    intercept: Floats  # b: (contrasts,)

    @classmethod
    def nearest(cls, slopes: Floats, intercept: Floats) -> Scored:
        """The nearest to slopes of every contrast: (features, contrasts)."""
        left, lengths, right = np.linalg.svd(slopes, full_matrices=False)
        return cls(left[:, 0] * lengths[0], right[0], intercept)

    @property
    def point(self) -> Point:
        """The same as slopes of every contrast."""
        return Point(np.vstack([self.intercept, np.outer(self.slopes, self.axis)]), 0.0)

    def moved(self, slopes: Floats, turn: Floats, intercept: Floats, length: float) -> Scored:
        """Parameters after a part of a step; a turn of the axis is at right angles to it."""
        axis = self.axis + length * turn
        return Scored(self.slopes + length * slopes, axis / np.linalg.norm(axis), self.intercept + length * intercept)


def fits(samples: Samples, path: Sequence[float]) -> Iterator[Point]:
    """Fit at every penalty, the strongest first, each starting from the one before; samples have no offset."""
    for _, at in _path(samples, path):
        yield at.point


def steps(samples: Samples, path: Sequence[float], log_likelihood: Callable[[Floats], float]) -> Iterator[Step]:
    """Fits with held-out predictions, up to where weaker penalties are no better, as `path.steps`."""
    ending = Ending(samples, log_likelihood)
    folds: _Folds | None = None
    for place, (loss, at) in enumerate(_path(samples, path)):
        if folds is None:
            left_out = loss.leave_one_out(at)
            log_proba = left_out.log_proba
            if can_fold(samples) and left_out.is_optimistic(samples):
                folds = _Folds(samples, path, place)
        if folds is not None:
            log_proba = folds.next_held_out()
        yield Step(loss.penalty, at.point, log_proba, "leave-one-out" if folds is None else f"{len(folds.pairs)} folds")
        if ending.reached(loss.penalty, log_proba):
            return


def _path(samples: Samples, path: Sequence[float]) -> Iterator[tuple[_Loss, Scored]]:
    at = _beginning(samples)
    for penalty in path:
        loss = _Loss(samples, penalty)
        at = _by_newton(loss, at)
        yield loss, at


class _Folds:
    """Out-of-fold predictions at the penalties of a path, one after the other from a place on."""

    def __init__(self, samples: Samples, path: Sequence[float], place: int) -> None:
        self.samples = samples
        self.pairs = stratified(samples.labels, N_FOLDS, 0).pairs
        self._points = [islice(fits(samples.rows(train), path), place, None) for train, _ in self.pairs]

    def next_held_out(self) -> Floats:
        """(samples, classes)."""
        found = np.empty((len(self.samples.labels), self.samples.n_contrasts + 1))
        for (_, test), points in zip(self.pairs, self._points, strict=True):
            part = self.samples.rows(test)
            found[test] = part.log_proba(part.contrasts(next(points)))
        return found


def _beginning(samples: Samples) -> Scored:
    """No slopes, and the axis along which the first ones decrease the loss most."""
    alone = fitted(samples.without_features(), 0.0, Point(samples.origin.slopes[:1], 0.0))
    proba = np.exp(samples.log_proba(samples.design[:, :1] @ alone.slopes + samples.log_prior))
    steepest = samples.design[:, 1:].T @ (samples.excess(proba) * samples.weights[:, None])
    axis = np.linalg.eigh(steepest.T @ steepest)[1][:, -1]
    return Scored(np.zeros(len(steepest)), axis, alone.slopes[0])


def _by_newton(loss: _Loss, at: Scored) -> Scored:
    """Damped Newton."""
    value, log_proba = loss(at)
    for _ in range(MOST_STEPS):
        around = loss.around(at, np.exp(log_proba))
        step = around.step()
        expected = -float(around.gradient @ step)
        size, turns = len(at.slopes), around.turns
        length = 1.0
        while True:
            moved = at.moved(step[:size], turns @ step[size : size + turns.shape[1]], step[-len(at.axis) :], length)
            next_value, next_log_proba = loss(moved)
            if next_value <= value - 1e-4 * length * expected:
                break
            length /= 2
            if length < SHORTEST:
                return at
        at, value, log_proba = moved, next_value, next_log_proba
        if expected <= ACCURACY * (1 + abs(value)):
            break
    return at


class _Around(NamedTuple):
    """The loss around a point: of the slopes, turns of the axis, and b, in this order."""

    turns: Floats  # directions at right angles to the axis: (contrasts, turns)
    others: Floats  # derivatives of the logits in turns and in b: (samples, contrasts, turns and contrasts)
    gradient: Floats
    hessian: Floats
    definite: Floats  # the Hessian without second derivatives of the logits, which is positive definite

    @property
    def factor(self) -> Floats:
        """Cholesky factor of the Hessian where it is positive definite, as near a minimum."""
        try:
            return cholesky(self.hessian)
        except np.linalg.LinAlgError:
            return cholesky(self.definite)

    def step(self) -> Floats:
        """Newton's step, always downwards."""
        return -solved_by(self.factor, self.gradient)


@dataclass(frozen=True, eq=False)
class _Loss:
    """The penalised log loss at one penalty."""

    samples: Samples
    penalty: float

    def __call__(self, at: Scored) -> tuple[float, Floats]:
        """The loss, and the log probabilities (samples, classes)."""
        log_proba = self.samples.log_proba(self.samples.contrasts(at.point))
        return self.samples.loss(at.point, self.penalty, log_proba), log_proba

    def around(self, at: Scored, proba: Floats) -> _Around:
        """The derivatives."""
        samples, size, n_contrasts = self.samples, len(at.slopes), len(at.axis)
        features, score = samples.design[:, 1:], samples.design[:, 1:] @ at.slopes
        turns = null_space(at.axis[None])
        others = np.empty((len(features), n_contrasts, 2 * n_contrasts - 1))
        others[:, :, : n_contrasts - 1] = score[:, None, None] * turns
        others[:, :, n_contrasts - 1 :] = np.eye(n_contrasts)
        definite = self._definite(at, samples.curvature(proba) * samples.weights[:, None, None], others)

        excess = samples.excess(proba) * samples.weights[:, None]
        ridge = samples.penalties(self.penalty)
        gradient = np.concatenate([features.T @ (excess @ at.axis), np.einsum("sa,sao->o", excess, others)])
        gradient[:size] += ridge[1:] * at.slopes
        gradient[-n_contrasts:] += ridge[0] * at.intercept
        # Second derivatives of the logits: of slopes and turns, and of turns, as the axis keeps its length.
        hessian = definite.copy()
        hessian[size:-n_contrasts, :size] += (excess @ turns).T @ features
        which = np.arange(size, size + n_contrasts - 1)
        hessian[which, which] -= score @ (excess @ at.axis)
        return _Around(turns, others, gradient, hessian, definite)

    def _definite(self, at: Scored, curvature: Floats, others: Floats) -> Floats:
        samples, size, n_contrasts = self.samples, len(at.slopes), len(at.axis)
        features = samples.design[:, 1:]
        found = np.empty((size + others.shape[2],) * 2)
        along = curvature @ at.axis
        root = features * np.sqrt(np.maximum(along @ at.axis, 0.0))[:, None]  # rounding may make it negative
        found[:size, :size] = root.T @ root
        found[size:, :size] = np.einsum("sa,sao->os", along, others) @ features
        found[size:, size:] = np.tensordot(curvature @ others, others, ((0, 1), (0, 1)))
        ridge = samples.penalties(self.penalty)
        diagonal = np.concatenate([ridge[1:], np.zeros(n_contrasts - 1), np.full(n_contrasts, ridge[0])])
        diagonal += SMALLEST * max(found.diagonal().max(), self.penalty)  # a score of 0 everywhere has no axis
        np.fill_diagonal(found, found.diagonal() + diagonal)
        return found

    def leave_one_out(self, at: Scored) -> LeaveOneOut:
        """Leave-one-out by one Newton step from the fit to all samples; a sample is removed with its whole weight.

        What a sample adds to the derivatives depends on its score, on the axis and on b alone. So its removal is one
        update, and its probabilities after the step need no more than these.
        """
        samples, size, n_contrasts = self.samples, len(at.slopes), len(at.axis)
        proba = np.exp(samples.log_proba(samples.contrasts(at.point)))
        around = self.around(at, proba)
        features, score = samples.design[:, 1:], samples.design[:, 1:] @ at.slopes
        weights = samples.weights[:, None, None]
        excess, curvature = samples.excess(proba), samples.curvature(proba)
        along = np.broadcast_to(at.axis[:, None], (len(features), n_contrasts, 1))
        logits = np.concatenate([along, around.others], axis=2)  # derivatives in the score, the turns and b
        own = logits.transpose(0, 2, 1) @ curvature @ logits

        inverse = inverse_by(around.factor)
        covariance = np.empty_like(own)  # of the score, the turns and b, under the inverse Hessian
        covariance[:, 0, 0] = np.einsum("sf,sf->s", features @ inverse[:size, :size], features)
        covariance[:, 0, 1:] = covariance[:, 1:, 0] = features @ inverse[:size, size:]
        covariance[:, 1:, 1:] = inverse[size:, size:]
        covariance *= weights
        effective = float(np.einsum("sab,sba->", covariance, own))

        turned, which = excess @ around.turns, np.arange(1, n_contrasts)
        own[:, 0, which] += turned
        own[:, which, 0] += turned
        own[:, which, which] -= (score * (excess @ at.axis))[:, None]
        slope = logits.transpose(0, 2, 1) @ excess[:, :, None]
        moved = (covariance @ np.linalg.solve(np.eye(own.shape[1]) - own @ covariance, slope))[:, :, 0]
        axis = at.axis + moved[:, which] @ around.turns.T
        axis *= ((score + moved[:, 0]) / np.linalg.norm(axis, axis=1))[:, None]
        contrasts = samples.log_prior + at.intercept + moved[:, n_contrasts:] + axis
        return LeaveOneOut(samples.log_proba(contrasts), effective, None)


def certainty(design: Design, odds: LinearOdds, proba: Floats, penalty: float, times: float) -> Curved:
    """The inverse Hessian of the slopes of all contrasts, as that of a score and its axis."""
    slopes = design.slopes(odds)
    at = Scored.nearest(slopes, np.zeros(slopes.shape[1]))
    size, n_contrasts = slopes.shape
    around = _Loss(design.samples, 0.0).around(at, proba)
    hessian = times * around.definite

    def inverse(penalty: float) -> Floats:
        with_penalty = hessian.copy()
        which = np.arange(size)
        with_penalty[which, which] += penalty
        return inverse_of(with_penalty)

    found = inverse(penalty)
    eigenvalues = np.maximum(1 / eigvalsh(found[:size, :size]) - penalty, 0.0)
    supported = supported_penalty(eigenvalues, penalty, max(float(at.slopes @ at.slopes), LEAST_SIZE))
    if supported > penalty:
        found = inverse(supported)
    # The derivatives of all slopes, contrast by contrast, b first.
    every = np.zeros((n_contrasts, 1 + size, len(found)))
    every[:, 1:, :size] = at.axis[:, None, None] * np.eye(size)
    every[:, 1:, size:-n_contrasts] = around.turns[:, None] * at.slopes[:, None]
    every[:, 0, -n_contrasts:] = np.eye(n_contrasts)
    every = every.reshape(-1, len(found))
    return Curved(design, every @ found @ every.T, False)
