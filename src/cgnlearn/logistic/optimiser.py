"""Multinomial logistic regression with an optional offset: its penalised loss and the minimum of this.

    logits(sample) = log prior + τ · offset(sample) + b + δ · features(sample),        penalty λ/2 ‖δ‖²

Logits are defined up to a constant of the sample, so everything here is in *contrasts*: orthonormal coordinates of
logits that sum to 0, one fewer than there are classes. The norm of δ is the same there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs
from scipy.optimize import minimize

from cgnlearn.data.arrays import Columns, Floats, contrasts_of, effective
from cgnlearn.networks.densities import normalised, true_class_log_proba

MOST_DENSE = 600  # parameters whose Hessian is factorised whole
MOST_CURVATURE = 2e7  # samples × contrasts² of their curvatures: 160 megabytes
SMALLEST = 1e-12  # addition to the diagonal of a matrix that rounding may make singular, relative to its greatest
INTERCEPT_PENALTY = 1e-9  # of b, for every sample: it keeps b finite where the offset separates the classes
MOST_STEPS = 100
ACCURACY = 1e-6  # of the loss, relative: where a step is expected to decrease it by less, the step is the last
SHORTEST = 1e-9  # part of a step in a line search
IN_THREADS = 3e7  # multiplications of a product of matrices from which a thread is worth starting
MANY = 100  # parameters from which a Hessian is worth keeping for the next step
MOST_PRODUCTS = 30  # of a Hessian with a direction in one step; with more, the whole Hessian is cheaper
STEP_ERROR = 1e-2  # relative, of a step found by such products


class Point(NamedTuple):
    """Parameters."""

    slopes: Floats  # (1 + features, contrasts), the first row being b
    power: float  # τ


class Curvature(NamedTuple):
    """Hessian of the slopes at a fit, as a preconditioner for fits nearby."""

    hessian: Floats
    penalty: float


@dataclass(frozen=True, eq=False)
class Samples:
    """Labelled samples."""

    design: Floats  # (samples, 1 + features), the first column being ones
    offset: Floats  # (samples, contrasts)
    log_prior: Floats  # (contrasts,)
    labels: Columns
    weights: Floats
    powers: tuple[float, float] = (0.0, 1.0)  # the bounds of τ

    @classmethod
    def of(
        cls, features: Floats, labels: Columns, weights: Floats | None, log_prior: Floats, offset: Floats | None
    ) -> Samples:
        """Samples with a log prior (classes,) and an offset (samples, classes); without an offset τ is fixed."""
        weights = np.ones(len(features)) if weights is None else weights
        across = contrasts_of(len(log_prior)).T
        design = np.concatenate([np.ones((len(features), 1)), features], axis=1)
        if offset is None:
            none = np.zeros((len(features), across.shape[1]))
            return cls(design, none, log_prior @ across, labels, weights, (0.0, 0.0))
        centred = offset - offset.mean(axis=1, keepdims=True)  # only differences matter, and offsets may be large
        return cls(design, centred @ across, log_prior @ across, labels, weights)

    @property
    def n_contrasts(self) -> int:
        return len(self.log_prior)

    @property
    def n_parameters(self) -> int:
        """Number of slopes, intercepts and the likelihood power."""
        return self.n_contrasts * self.design.shape[1] + 1

    @property
    def is_dense(self) -> bool:
        """Whether a Hessian is small enough to be factorised whole."""
        return self.n_parameters <= MOST_DENSE and len(self.design) * self.n_contrasts**2 <= MOST_CURVATURE

    @property
    def has_power(self) -> bool:
        """Whether τ is free."""
        return self.powers[0] < self.powers[1]

    @property
    def effective_weights(self) -> Floats:
        """Weights that sum to the effective number of samples."""
        return effective(self.weights)

    @property
    def origin(self) -> Point:
        """Parameters of the offset alone."""
        return Point(np.zeros((self.design.shape[1], self.n_contrasts)), self.powers[1])

    def without_features(self) -> Samples:
        """Samples with the intercept only, as for an infinite penalty."""
        return replace(self, design=self.design[:, :1])

    def rows(self, which: Columns) -> Samples:
        """Subset of the samples."""
        parts = {name: getattr(self, name)[which] for name in ("design", "offset", "labels", "weights")}
        return replace(self, **parts)

    def contrasts(self, point: Point) -> Floats:
        """Logits: (samples, contrasts)."""
        found: Floats = self.design @ point.slopes
        found += self.log_prior + point.power * self.offset
        return found

    def log_proba(self, contrasts: Floats) -> Floats:
        """Log probabilities: (samples, classes)."""
        return normalised(contrasts @ contrasts_of(self.n_contrasts + 1))

    def loss(self, point: Point, penalty: float, log_proba: Floats) -> float:
        """Penalised log loss, summed over the samples."""
        truth = true_class_log_proba(log_proba, self.labels)
        return float(0.5 * (self.penalties(penalty) @ np.square(point.slopes)).sum() - self.weights @ truth)

    def penalties(self, penalty: float) -> Floats:
        """Penalties of b and of the features: (1 + features,)."""
        found = np.full(self.design.shape[1], penalty)
        found[0] = INTERCEPT_PENALTY * self.weights.sum()
        return found

    def excess(self, proba: Floats) -> Floats:
        """Probabilities minus indicators of the true classes: (samples, contrasts)."""
        across = contrasts_of(self.n_contrasts + 1).T
        found: Floats = proba @ across - across[self.labels]
        return found

    def gradient(self, point: Point, penalty: float, proba: Floats) -> Floats:
        """Gradient of the loss, contrast by contrast, the likelihood power last."""
        excess = self.excess(proba) * self.weights[:, None]
        slopes = self.design.T @ excess + self.penalties(penalty)[:, None] * point.slopes
        return np.append(slopes.T.ravel(), (excess * self.offset).sum())

    def curvature(self, proba: Floats) -> Floats:
        """Covariance of the class indicators of every sample: (samples, contrasts, contrasts)."""
        across = contrasts_of(self.n_contrasts + 1).T
        mean = proba @ across
        squares = across[:, :, None] * across[:, None, :]
        found: Floats = np.tensordot(proba, squares, 1)
        found -= mean[:, :, None] * mean[:, None, :]
        return found

    def hessian(self, curvature: Floats, penalty: float) -> Floats:
        """Hessian of the loss, in the gradient's order."""
        size = self.design.shape[1]
        found = np.empty((self.n_parameters,) * 2)

        def fill(pair: tuple[int, int]) -> None:
            a, b = pair
            block = self.block(curvature[:, a, b], penalty if a == b else None)
            found[a * size : (a + 1) * size, b * size : (b + 1) * size] = block
            found[b * size : (b + 1) * size, a * size : (a + 1) * size] = block

        for_pairs(fill, self.n_contrasts, self.design)
        along = (curvature @ self.offset[:, :, None])[:, :, 0] * self.weights[:, None]
        found[-1, :-1] = found[:-1, -1] = (self.design.T @ along).T.ravel()
        found[-1, -1] = (along * self.offset).sum()
        return found

    def block(self, curvature: Floats, penalty: float | None) -> Floats:
        """Block of the Hessian between two contrasts, or of one with its penalty."""
        weights = curvature * self.weights
        if penalty is None:
            between: Floats = self.design.T @ (self.design * weights[:, None])
            return between
        root = self.design * np.sqrt(np.maximum(weights, 0.0))[:, None]  # rounding may make them negative
        block: Floats = root.T @ root  # of one matrix with itself: half the work
        np.fill_diagonal(block, block.diagonal() + self.penalties(penalty))
        return block

    def along(self, curvature: Floats, direction: Floats, penalty: float) -> Floats:
        """Hessian of the slopes times a direction, in the gradient's order without the likelihood power."""
        slopes = direction.reshape(self.n_contrasts, -1)
        product = np.einsum("sab,bs->as", curvature, slopes @ self.design.T)
        found: Floats = product @ self.design + slopes * self.penalties(penalty)
        return found.ravel()

    def moved(self, point: Point, step: Floats) -> Point:
        """Parameters after a step in the gradient's order, within the bounds."""
        slopes = point.slopes + step[:-1].reshape(point.slopes.T.shape).T
        return Point(slopes, float(np.clip(point.power + step[-1], *self.powers)))


def fitted(samples: Samples, penalty: float, start: Point, near: Curvature | None = None) -> Point:
    """Parameters of least penalised loss; an infinite penalty leaves only b.

    With the curvature of a fit nearby, of most of the samples or all, and a fixed likelihood power, steps are found by
    conjugate gradients.
    """
    if np.isinf(penalty):
        alone = fitted(samples.without_features(), 0.0, Point(start.slopes[:1], start.power))
        return Point(np.concatenate([alone.slopes, np.zeros_like(start.slopes[1:])]), alone.power)
    start = samples.moved(start, np.zeros(samples.n_parameters))
    if not samples.is_dense:
        return _by_gradient(samples, penalty, start)
    if near is None or samples.has_power:
        return _by_newton(samples, penalty, start, None)
    return _by_newton(samples, penalty, start, cholesky(nearby(samples, near, penalty)))


def nearby(samples: Samples, near: Curvature, penalty: float) -> Floats:
    """Hessian of a fit nearby with another penalty."""
    hessian = near.hessian.copy()
    more = samples.penalties(penalty) - samples.penalties(near.penalty)
    np.fill_diagonal(hessian, hessian.diagonal() + np.tile(more, samples.n_contrasts))
    return hessian


def _by_newton(samples: Samples, penalty: float, point: Point, near: Floats | None) -> Point:
    """Damped Newton; each step minimises the quadratic model within the bounds of the likelihood power."""
    log_proba = samples.log_proba(samples.contrasts(point))
    loss = samples.loss(point, penalty, log_proba)
    for _ in range(MOST_STEPS):
        proba = np.exp(log_proba)
        gradient = samples.gradient(point, penalty, proba)
        curvature = samples.curvature(proba)
        weighted = curvature * samples.weights[:, None, None]
        step = None if near is None else _conjugate_step(samples, weighted, gradient, penalty, near)
        if step is None:
            hessian = samples.hessian(curvature, penalty)
            factor = cholesky(hessian[:-1, :-1])
            step = _newton_step(samples, hessian, factor, gradient, point.power)
            near = factor if not samples.has_power and len(gradient) > MANY else None
        expected = -float(gradient @ step)
        if expected <= 0:
            return point
        length = 1.0
        while True:
            next_point = samples.moved(point, length * step)
            log_proba = samples.log_proba(samples.contrasts(next_point))
            next_loss = samples.loss(next_point, penalty, log_proba)
            # Near the optimum the loss cannot distinguish two points, but Newton's step can.
            if next_loss <= loss - 1e-4 * length * expected or expected <= 1e-9 * (1 + abs(loss)):
                break
            length /= 2
            if length < SHORTEST:
                return point
        point, loss = next_point, next_loss
        if expected <= ACCURACY * (1 + abs(loss)):
            return point
    return point


def _conjugate_step(
    samples: Samples, curvature: Floats, gradient: Floats, penalty: float, near: Floats
) -> Floats | None:
    """Newton's step by preconditioned conjugate gradients; None where the preconditioner is too far away."""
    step = np.zeros(len(gradient) - 1)
    rest = -gradient[:-1]
    solved = solved_by(near, rest)
    direction = solved
    size = first = float(rest @ solved)
    for _ in range(MOST_PRODUCTS):
        if size <= STEP_ERROR**2 * first:
            return np.append(step, 0.0)
        product = samples.along(curvature, direction, penalty)
        length = size / float(direction @ product)
        step += length * direction
        rest -= length * product
        solved = solved_by(near, rest)
        size, before = float(rest @ solved), size
        direction = solved + size / before * direction
    return None


def _newton_step(samples: Samples, hessian: Floats, rest: Floats, gradient: Floats, power: float) -> Floats:
    alone = solved_by(rest, gradient[:-1])
    along = solved_by(rest, hessian[:-1, -1])
    left = hessian[-1, -1] - hessian[-1, :-1] @ along  # curvature of the power, the rest being optimal
    slope = gradient[-1] - hessian[-1, :-1] @ alone
    move = -slope / left if left > 1e-12 * hessian[-1, -1] else 0.0
    move = np.clip(move, samples.powers[0] - power, samples.powers[1] - power)
    return np.append(-alone - along * move, move)


def _by_gradient(samples: Samples, penalty: float, start: Point) -> Point:
    """L-BFGS, for Hessians that are too large.

    Slopes are in units of a bound of the Hessian (Böhning 1992), which is the same for all contrasts and makes them
    about equally curved: half the scatter of the features, plus the penalty.
    """
    shape, n = start.slopes.shape, samples.weights.sum()
    root = samples.design * np.sqrt(0.5 * samples.weights)[:, None]
    bound = root.T @ root
    np.fill_diagonal(bound, bound.diagonal() + samples.penalties(penalty) + SMALLEST * bound.diagonal().max())
    lower = np.tril(cholesky(bound))

    def slopes_of(scaled: Floats) -> Floats:
        found: Floats = dtrtrs(lower, scaled.reshape(shape), lower=True, trans=True)[0]
        return found

    def value(parameters: Floats) -> tuple[float, Floats]:
        point = Point(slopes_of(parameters[:-1]), float(parameters[-1]))
        log_proba = samples.log_proba(samples.contrasts(point))
        gradient = samples.gradient(point, penalty, np.exp(log_proba))
        scaled = dtrtrs(lower, gradient[:-1].reshape(shape[::-1]).T, lower=True)[0]
        return samples.loss(point, penalty, log_proba) / n, np.append(scaled.ravel(), gradient[-1]) / n

    found = minimize(
        value,
        np.append((lower.T @ start.slopes).ravel(), start.power),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * start.slopes.size + [samples.powers],
        options={"maxiter": 1000, "maxcor": 10, "ftol": 1e-9, "gtol": 1e-6},
    )
    return Point(slopes_of(found.x[:-1]), float(found.x[-1]))


def for_pairs(function: Callable[[tuple[int, int]], None], n: int, design: Floats) -> None:
    """Call a function of two of ``n`` contrasts for all pairs, in threads where it multiplies large matrices."""
    from cgnlearn.kernels.compilation import in_threads

    pairs = [(a, b) for a in range(n) for b in range(a + 1)]
    if design.size * design.shape[1] < IN_THREADS:
        for pair in pairs:
            function(pair)
    else:
        in_threads(function, pairs)


def cholesky(matrix: Floats) -> Floats:
    """Lower Cholesky factor of a positive definite matrix; what is above the diagonal is not defined."""
    factor, info = dpotrf(matrix, lower=True)  # LAPACK itself: of small matrices SciPy's checks take longer
    if info:
        raise np.linalg.LinAlgError("the Hessian of a logistic regression is not positive definite")
    found: Floats = factor
    return found


def solved_by(factor: Floats, right: Floats) -> Floats:
    """Solution of a system with this Cholesky factor."""
    found: Floats = dpotrs(factor, right, lower=True)[0]
    return found
