"""Multinomial logistic regression that starts from given scores, and its leave-one-out in one go.

    logits(row) = offset + τ · scores(row) + b + δ · features(row),        penalty λ/2 ‖δ‖²

Logits count up to a constant of the row: everything here is in *contrasts*, orthonormal coordinates of what is left,
one fewer than there are classes. The norm of δ is the same there, and b and δ then sum to 0 over the classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, helmert
from scipy.linalg.lapack import dpotri
from scipy.optimize import brentq, minimize

from cgnlearn.model.densities import Floats, normalised

Bounds = tuple[float, float]
Factor = tuple[Floats, bool]  # Cholesky's

MOST_DENSE = 1500  # parameters whose Hessian is factorised whole
OFFSET = 1e-9  # penalty of b for every row: where the scores leave no doubt, nothing else would hold it
LEAST_PENALTY = 1e-5  # that leaves a number of parameters: none below is looked for
MOST_STEPS = 100
SHORTEST = 1e-9  # part of a step: if that is too long, none is short enough
MANY = 100  # parameters from which a Hessian is worth keeping for the next step
MOST_PRODUCTS = 30  # of a Hessian with a direction; with more of them in a step it is cheaper to have it whole
STEP_ERROR = 1e-2  # of a step that is found by such products


class Point(NamedTuple):
    """Parameters."""

    slopes: Floats  # (1 + features, contrasts), the first row being b
    temperature: float


class Curvature(NamedTuple):
    """The Hessian of the slopes at a fit, by which one nearby is found without Hessians of its own."""

    hessian: Floats
    penalty: float

    def factor(self, rows: Rows, penalty: float) -> Factor:
        """As it would be with another penalty."""
        hessian = self.hessian.copy()
        more = rows.penalties(penalty) - rows.penalties(self.penalty)
        np.fill_diagonal(hessian, hessian.diagonal() + np.tile(more, rows.n_contrasts))
        return _factor(hessian)


@dataclass(frozen=True, eq=False)
class Rows:
    """Labelled rows.

    Parameters
    ----------
    design : ndarray (rows, 1 + features)
        The first column is ones.
    scores : ndarray (rows, contrasts)
    offset : ndarray (contrasts,)
    labels : ndarray of int (rows,)
    weights : ndarray (rows,)
    """

    design: Floats
    scores: Floats
    offset: Floats
    labels: NDArray[np.intp]
    weights: Floats

    @classmethod
    def of(cls, features: Floats, scores: Floats, offset: Floats, labels: NDArray[np.intp], weights: Floats) -> Rows:
        """From scores (rows, classes) and an offset (classes,)."""
        across = helmert(len(offset)).T
        design = np.concatenate([np.ones((len(features), 1)), features], axis=1)
        centred = scores - scores.mean(axis=1, keepdims=True)  # large as they are, only differences count
        return cls(design, centred @ across, offset @ across, labels, weights)

    @property
    def n_contrasts(self) -> int:
        """One fewer than there are classes."""
        return len(self.offset)

    @property
    def n_parameters(self) -> int:
        """Slopes, offsets and the temperature."""
        return self.n_contrasts * self.design.shape[1] + 1

    def without_features(self) -> Rows:
        """The same rows seen with an infinite penalty."""
        return replace(self, design=self.design[:, :1])

    def contrasts(self, point: Point) -> Floats:
        """The logits: (rows, contrasts)."""
        found: Floats = self.design @ point.slopes
        found += self.offset + point.temperature * self.scores
        return found

    def loss(self, point: Point, penalty: float, log_proba: Floats | None = None) -> float:
        """The penalised log loss, summed over the rows; ``log_proba``: where it is known already."""
        log_proba = self.log_proba(self.contrasts(point)) if log_proba is None else log_proba
        truth = log_proba[np.arange(len(self.labels)), self.labels]
        return float(0.5 * (self.penalties(penalty) @ np.square(point.slopes)).sum() - self.weights @ truth)

    def penalties(self, penalty: float) -> Floats:
        """Of b and of the features: (1 + features,)."""
        found = np.full(self.design.shape[1], penalty)
        found[0] = OFFSET * self.weights.sum()
        return found

    def log_proba(self, contrasts: Floats) -> Floats:
        """Of the classes: (rows, classes)."""
        return normalised(contrasts @ helmert(self.n_contrasts + 1))

    def gradient(self, point: Point, penalty: float) -> Floats:
        """Of the loss, contrast by contrast, the temperature last."""
        return self._gradient(self._excess(np.exp(self.log_proba(self.contrasts(point)))), point, penalty)

    def _excess(self, proba: Floats) -> Floats:
        """How far the probabilities exceed the truth: (rows, contrasts)."""
        across = helmert(self.n_contrasts + 1).T
        excess: Floats = proba @ across - across[self.labels]
        return excess

    def _gradient(self, excess: Floats, point: Point, penalty: float) -> Floats:
        excess = excess * self.weights[:, None]
        slopes = self.design.T @ excess + self.penalties(penalty)[:, None] * point.slopes
        return np.append(slopes.T.ravel(), (excess * self.scores).sum())

    def curvature(self, proba: Floats) -> Floats:
        """W of every row: (rows, contrasts, contrasts)."""
        across = helmert(self.n_contrasts + 1).T
        mean = proba @ across
        squares = across[:, :, None] * across[:, None, :]
        found: Floats = np.tensordot(proba, squares, 1) - mean[:, :, None] * mean[:, None, :]
        return found

    def hessian(self, point: Point, penalty: float) -> Floats:
        """Of the loss, in the gradient's order."""
        return self._hessian(self.curvature(np.exp(self.log_proba(self.contrasts(point)))), penalty)

    def _hessian(self, curvature: Floats, penalty: float) -> Floats:
        size, n = self.design.shape[1], self.n_contrasts
        found = np.empty((self.n_parameters,) * 2)
        weighted = curvature * self.weights[:, None, None]
        for a in range(n):
            for b in range(a + 1):
                block = self._block(weighted[:, a, b], penalty if a == b else None)
                found[a * size : (a + 1) * size, b * size : (b + 1) * size] = block
                found[b * size : (b + 1) * size, a * size : (a + 1) * size] = block
        along = (weighted @ self.scores[:, :, None])[:, :, 0]
        found[-1, :-1] = found[:-1, -1] = (self.design.T @ along).T.ravel()
        found[-1, -1] = (along * self.scores).sum()
        return found

    def _block(self, weights: Floats, penalty: float | None) -> Floats:
        """Between two contrasts, or of one, which is penalised."""
        if penalty is None:
            between: Floats = self.design.T @ (self.design * weights[:, None])
            return between
        root = self.design * np.sqrt(np.maximum(weights, 0.0))[:, None]  # where a class is certain, rounding goes below
        block: Floats = root.T @ root  # of one matrix with itself: half the work
        np.fill_diagonal(block, block.diagonal() + self.penalties(penalty))
        return block

    def along(self, curvature: Floats, direction: Floats, penalty: float) -> Floats:
        """The slopes' Hessian times a direction, both in the gradient's order but without the temperature."""
        slopes = direction.reshape(self.n_contrasts, -1).T
        bent = (curvature @ (self.design @ slopes)[:, :, None])[:, :, 0] * self.weights[:, None]
        found: Floats = self.design.T @ bent + self.penalties(penalty)[:, None] * slopes
        return found.T.ravel()


def fitted(
    rows: Rows, penalty: float, start: Point, bounds: Bounds = (0.0, 1.0), near: Curvature | None = None
) -> Point:
    """The parameters of least penalised loss, the temperature within bounds.

    With the curvature of a fit nearby, of the same rows or of most of them, and a temperature that does not move,
    steps are found by conjugate gradients.
    """
    start = Point(start.slopes, min(max(start.temperature, bounds[0]), bounds[1]))
    if not _is_dense(rows):
        return _by_gradient(rows, penalty, start, bounds)
    if near is None or bounds[0] < bounds[1]:
        return _by_newton(rows, penalty, start, bounds)
    return _by_newton(rows, penalty, start, bounds, near.factor(rows, penalty))


def _is_dense(rows: Rows) -> bool:
    return rows.n_parameters <= MOST_DENSE


def _by_newton(rows: Rows, penalty: float, point: Point, bounds: Bounds, near: Factor | None = None) -> Point:
    """Damped Newton; each step minimises the quadratic model within the bounds, which hold one parameter only."""
    log_proba = rows.log_proba(rows.contrasts(point))
    loss = rows.loss(point, penalty, log_proba)
    for _ in range(MOST_STEPS):
        proba = np.exp(log_proba)
        gradient = rows._gradient(rows._excess(proba), point, penalty)
        curvature = rows.curvature(proba)
        step = None if near is None else _conjugate_step(rows, curvature, gradient, penalty, near)
        if step is None:
            hessian = rows._hessian(curvature, penalty)
            factor = _factor(hessian[:-1, :-1])
            step = _newton_step(hessian, factor, gradient, point.temperature, bounds)
            near = factor if bounds[0] == bounds[1] and len(gradient) > MANY else None
        expected = -float(gradient @ step)
        if expected <= 0:
            return point
        length = 1.0
        while True:
            next_point = _moved(point, length * step, bounds)
            log_proba = rows.log_proba(rows.contrasts(next_point))
            next_loss = rows.loss(next_point, penalty, log_proba)
            # Near the optimum the loss no longer tells two points apart, where Newton's step still does.
            if next_loss <= loss - 1e-4 * length * expected or expected <= 1e-9 * (1 + abs(loss)):
                break
            length /= 2
            if length < SHORTEST:
                return point
        point, loss = next_point, next_loss
        if expected <= 1e-8 * (1 + abs(loss)):  # what this step has left is next to nothing of it
            return point
    return point


def _conjugate_step(rows: Rows, curvature: Floats, gradient: Floats, penalty: float, near: Factor) -> Floats | None:
    """Newton's step by conjugate gradients in the units of a curvature nearby; None where that is too far."""
    step = np.zeros(len(gradient) - 1)
    rest = -gradient[:-1]
    solved = cho_solve(near, rest, check_finite=False)
    direction = solved
    size = first = float(rest @ solved)
    for _ in range(MOST_PRODUCTS):
        if size <= STEP_ERROR**2 * first:
            return np.append(step, 0.0)
        bent = rows.along(curvature, direction, penalty)
        length = size / float(direction @ bent)
        step += length * direction
        rest -= length * bent
        solved = cho_solve(near, rest, check_finite=False)
        size, before = float(rest @ solved), size
        direction = solved + size / before * direction
    return None


def _moved(point: Point, step: Floats, bounds: Bounds) -> Point:
    temperature = min(max(point.temperature + step[-1], bounds[0]), bounds[1])
    return Point(point.slopes + step[:-1].reshape(point.slopes.T.shape).T, float(temperature))


def _newton_step(hessian: Floats, rest: Factor, gradient: Floats, temperature: float, bounds: Bounds) -> Floats:
    alone = cho_solve(rest, gradient[:-1], check_finite=False)
    along = cho_solve(rest, hessian[:-1, -1], check_finite=False)
    left = hessian[-1, -1] - hessian[-1, :-1] @ along  # the temperature's curvature once the rest has followed
    slope = gradient[-1] - hessian[-1, :-1] @ alone
    move = -slope / left if left > 1e-12 * hessian[-1, -1] else 0.0
    move = min(max(move, bounds[0] - temperature), bounds[1] - temperature)
    return np.append(-alone - along * move, move)


def _by_gradient(rows: Rows, penalty: float, start: Point, bounds: Bounds) -> Point:
    """L-BFGS, where a Hessian would be too large."""
    shape, n = start.slopes.T.shape, rows.weights.sum()

    def value(parameters: Floats) -> tuple[float, Floats]:
        point = Point(parameters[:-1].reshape(shape).T, float(parameters[-1]))
        return rows.loss(point, penalty) / n, rows.gradient(point, penalty) / n

    found = minimize(
        value,
        np.append(start.slopes.T.ravel(), start.temperature),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * (shape[0] * shape[1]) + [bounds],
        options={"maxiter": 1000, "maxcor": 30, "ftol": 1e-13, "gtol": 1e-8},
    )
    return Point(found.x[:-1].reshape(shape).T, float(found.x[-1]))


def left_out(rows: Rows, penalty: float, point: Point, bounds: Bounds = (0.0, 1.0)) -> Floats:
    """Log probabilities of the classes of every row, by the fit without it: (rows, classes).

    One Newton step from the fit to all rows (Rad and Maleki 2020). Of a row of weight 2, which is a row twice, one is
    left out. Where a Hessian would be too large, its blocks between contrasts are taken for 0.
    """
    return leaving_out(rows, penalty, point, bounds).log_proba


class WithoutRows(NamedTuple):
    """What rows are without themselves, and what was come by on the way."""

    log_proba: Floats  # (rows, classes)
    effective: float  # number of parameters: the more there are to a row, the more leaving out flatters
    curvature: Curvature | None  # where a Hessian would not be too large


def leaving_out(rows: Rows, penalty: float, point: Point, bounds: Bounds = (0.0, 1.0)) -> WithoutRows:
    """The same, and more."""
    contrasts = rows.contrasts(point)
    proba = np.exp(rows.log_proba(contrasts))
    curvature, excess = rows.curvature(proba), rows._excess(proba)
    hessian = rows._hessian(curvature, penalty) if _is_dense(rows) else None
    leverage = _leverage(rows, curvature, penalty, hessian, moves=bounds[0] < point.temperature < bounds[1])
    effective = float(rows.weights @ np.einsum("rab,rba->r", leverage, curvature))
    leverage *= np.minimum(rows.weights, 1.0)[:, None, None]
    system = np.eye(rows.n_contrasts) - leverage @ curvature
    moved = np.linalg.solve(system, leverage @ excess[:, :, None])[:, :, 0]
    near = None if hessian is None else Curvature(hessian[:-1, :-1], penalty)
    return WithoutRows(rows.log_proba(contrasts + moved), effective, near)


def _leverage(rows: Rows, curvature: Floats, penalty: float, hessian: Floats | None, *, moves: bool) -> Floats:
    """A of every row: (rows, contrasts, contrasts); ``moves``: whether the temperature is free."""
    design, n = rows.design, rows.n_contrasts
    size = design.shape[1]
    found = np.zeros((len(design), n, n))
    if hessian is None:
        for a in range(n):
            inverse = _inverse(rows._block(rows.weights * curvature[:, a, a], penalty))
            found[:, a, a] = np.einsum("rf,rf->r", design @ inverse, design)
        return found
    inverse = _inverse(hessian if moves else hessian[:-1, :-1])
    for a in range(n):
        for b in range(a + 1):
            block = inverse[a * size : (a + 1) * size, b * size : (b + 1) * size]
            found[:, a, b] = found[:, b, a] = np.einsum("rf,rf->r", design @ block, design)
    if moves:
        across = design @ inverse[-1, :-1].reshape(n, size).T
        found += across[:, :, None] * rows.scores[:, None, :] + rows.scores[:, :, None] * across[:, None, :]
        found += inverse[-1, -1] * rows.scores[:, :, None] * rows.scores[:, None, :]
    return found


def _factor(matrix: Floats) -> Factor:
    """Of a positive definite one."""
    found: Factor = cho_factor(matrix, lower=True, check_finite=False)
    return found


def _inverse(matrix: Floats) -> Floats:
    """Of a positive definite one, from its Cholesky factor."""
    factor, _ = _factor(matrix)
    lower = np.tril(dpotri(factor, lower=True)[0])
    found: Floats = lower + np.tril(lower, -1).T
    return found


def penalty_leaving(rows: Rows, effective: float) -> float:
    """The penalty that leaves so many parameters to a contrast; 0 if none leaves as many.

    The effective number of parameters is that of a ridge regression with the weights that rows have where all classes
    are equally probable, which are the greatest: (C - 1) Σ d/(d + λ), d the eigenvalues of the features' scatter
    divided by C.
    """
    features = rows.design[:, 1:]
    scatter = np.linalg.eigvalsh(features.T @ (features * rows.weights[:, None])).clip(min=0.0) / (rows.n_contrasts + 1)

    def excess(log_penalty: float) -> float:
        return float((scatter / (scatter + np.exp(log_penalty))).sum() - effective)

    least = np.log(LEAST_PENALTY)
    if not len(scatter) or excess(least) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, least, np.log(scatter.sum() / effective) + 1)))
