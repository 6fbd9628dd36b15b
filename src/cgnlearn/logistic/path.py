"""Paths of regressions with decreasing penalties, and their held-out predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri
from scipy.optimize import brentq

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.splits import stratified
from cgnlearn.logistic.optimiser import Curvature, Point, Samples, cholesky, fitted, for_pairs
from cgnlearn.logistic.parts import fitted_parts
from cgnlearn.networks.densities import true_class_log_proba

Fold = tuple[Columns, Columns]  # training and test samples

LEAST_EFFECTIVE, LEAST_SHARE = 1.5, 0.75  # effective parameters per contrast at the strongest penalty; per feature
WEAKEST = 1e-3  # penalty, of samples of weight 1
LEAST_PENALTY = 1e-5  # in the search for the strongest penalty, likewise
N_PENALTIES = 10  # from the strongest to the weakest
FEW_PENALTIES, MANY_SAMPLES = 8, 2000  # with many samples neighbours hardly differ, and fits are expensive
LEAST_SPREAD = 0.2  # deviation of the log odds at the strongest penalty
SAMPLES_TO_A_PARAMETER = 4  # with fewer, leave-one-out in one step is optimistic
N_FOLDS = 5
HOPELESS = 10.0  # nats behind the best penalty
ALIKE = 0.1  # nats, over all samples, between two penalties that predict the same
WORTH = 1e-3  # nats a sample, which a weaker penalty must gain where a likelihood power alone makes up for it
BEGUN = 1.0  # nats away from the offset alone, before which the path does not stop


class Step(NamedTuple):
    """A penalty, its fit to all samples, and held-out predictions."""

    penalty: float
    point: Point
    log_proba: Floats  # (samples, classes)
    held_out_by: str  # "leave-one-out", or the number of folds


def penalties(samples: Samples) -> list[float]:
    """Penalties of a path, the strongest first; with an offset, infinity comes before them.

    They are in proportion to the weight of a sample: the path of samples of equal weights does not depend on it.
    """
    found = [np.inf] if samples.has_power else []
    features = samples.design[:, 1:]
    of_one = float(samples.weights.sum() / samples.effective_weights.sum())
    strongest = _penalty_leaving(samples, min(LEAST_EFFECTIVE, LEAST_SHARE * features.shape[1]), LEAST_PENALTY * of_one)
    weakest = WEAKEST * of_one
    if strongest <= weakest:
        return found
    spread = samples.weights @ np.square(features).sum(axis=1) / samples.effective_weights.sum()
    path = np.geomspace(strongest, weakest, FEW_PENALTIES if len(features) > MANY_SAMPLES else N_PENALTIES)
    return found + path[path <= max(spread / LEAST_SPREAD**2, weakest)].tolist()


def _penalty_leaving(samples: Samples, effective: float, smallest: float) -> float:
    """Penalty with this effective number of parameters per contrast; 0 if none has as many.

    The number is that of a ridge regression, Σ d/(d + λ), with d the eigenvalues of the features' scatter divided by C:
    the weights of samples are greatest where all C classes are equally probable.
    """
    features = samples.design[:, 1:]
    scatter = np.linalg.eigvalsh(features.T @ (features * samples.weights[:, None])).clip(min=0.0)
    scatter /= samples.n_contrasts + 1

    def excess(log_penalty: float) -> float:
        return float((scatter / (scatter + np.exp(log_penalty))).sum() - effective)

    least = np.log(smallest)
    if not len(scatter) or excess(least) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, least, np.log(scatter.sum() / effective) + 1)))


def fits(samples: Samples, path: Sequence[float]) -> Iterator[Point]:
    """Fit at every penalty, each starting from those before."""
    trail: list[Point] = []
    for penalty in path:
        trail.append(_fitted(samples, penalty, _start(samples, trail)))
        yield trail[-1]


def _fitted(samples: Samples, penalty: float, start: Point, near: Curvature | None = None) -> Point:
    if samples.is_dense or samples.has_power:
        return fitted(samples, penalty, start, near)
    slopes = fitted_parts(samples, samples.weights[:, None], penalty, start.slopes[:, None])
    return Point(slopes[:, 0], start.power)


def _start(samples: Samples, trail: Sequence[Point]) -> Point:
    """Where the next fit of a path is expected, from the fits before.

    As penalties decrease by the same factor, the slopes move about as before.
    """
    if len(trail) > 1 and not samples.has_power:
        return Point(2 * trail[-1].slopes - trail[-2].slopes, trail[-1].power)
    return trail[-1] if trail else samples.origin


def steps(
    samples: Samples, path: Sequence[float], log_likelihood: Callable[[Floats], float] | None = None
) -> Iterator[Step]:
    """Fits with held-out predictions, up to where weaker penalties are no better.

    The path ends where a penalty is hopeless by ``log_likelihood`` of the held-out predictions, or where they are the
    same as at the penalty before; of many samples also where they are hopeless as they are and ``log_likelihood``,
    which may temper them, gains next to nothing. Predictions are by leave-one-out in one step while that is not
    optimistic, and by folds thereafter, or from the beginning where the Hessian is large.
    """
    trail: list[Point] = []
    near: Curvature | None = None
    if not can_fold(samples) and not samples.is_dense:
        return
    folds = None if samples.is_dense else _Folds(samples)
    ending = Ending(samples, log_likelihood)
    for penalty in path:
        point = _start(samples, trail)
        if folds is None:
            point = _fitted(samples, penalty, point, near)
            left_out = leave_one_out(samples, penalty, point)
            log_proba, near = left_out.log_proba, left_out.curvature
            if can_fold(samples) and left_out.is_optimistic(samples):
                folds = _Folds(samples)
        if folds is not None:
            point, log_proba = folds.held_out(penalty, point)
        trail.append(point)
        yield Step(penalty, point, log_proba, "leave-one-out" if folds is None else f"{len(folds.pairs)} folds")
        if ending.reached(penalty, log_proba):
            return


def can_fold(samples: Samples) -> bool:
    """Whether a class has two samples."""
    return bool(np.bincount(samples.labels).max() > 1)


class Ending:
    """Where a path ends, as `steps` says, from the held-out predictions at its penalties in order."""

    def __init__(self, samples: Samples, log_likelihood: Callable[[Floats], float] | None) -> None:
        self.labels, self.weights, self.log_likelihood = samples.labels, samples.effective_weights, log_likelihood
        self.best = self.best_untempered = -np.inf
        self.before: Floats | None = None
        self.offset_alone: Floats | None = None

    def reached(self, penalty: float, log_proba: Floats) -> bool:
        """Whether weaker penalties than this one are no better."""
        weights = self.weights
        truth = true_class_log_proba(log_proba, self.labels)
        untempered = float(weights @ truth)
        value = untempered if self.log_likelihood is None else self.log_likelihood(log_proba)
        self.best_untempered = max(self.best_untempered, untempered)
        gains_nothing = value < self.best + WORTH * weights.sum() and len(weights) > MANY_SAMPLES
        is_overfitted = untempered < self.best_untempered - HOPELESS and gains_nothing
        self.best = max(self.best, value)
        has_begun = self.offset_alone is None or _gap(truth, self.offset_alone, weights) > BEGUN
        # Without a likelihood power, which may hide a difference from the penalty before.
        is_like_before = self.before is not None and _gap(truth, self.before, weights) < ALIKE
        if value < self.best - HOPELESS or is_overfitted or (has_begun and is_like_before):
            return True
        self.before = truth
        self.offset_alone = truth if np.isinf(penalty) else self.offset_alone
        return False


def _gap(truth: Floats, other: Floats, weights: Floats) -> float:
    """Distance of log probabilities, in sum and sample by sample."""
    moved = truth - other
    return float(max(abs(weights @ moved), np.sqrt(weights @ np.square(moved))))


class _Folds:
    """Fits to the training samples of folds, each started from those of the penalties before.

    Only the first may start at the fit to all samples, and only by Newton's method, which does not end early: another
    fit would remember the samples that it must not have seen.
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.pairs = stratified(samples.labels, N_FOLDS, 0).pairs
        self._trails: list[list[Point]] = [[] for _ in self.pairs]

    def held_out(self, penalty: float, point: Point) -> tuple[Point, Floats]:
        """The fit to all samples, started at ``point``, and out-of-fold predictions: (samples, classes)."""
        samples = self.samples
        first = samples.origin if samples.has_power else point
        starts = [_start(samples, trail) if trail else first for trail in self._trails]
        if samples.has_power:
            point = fitted(samples, penalty, point)
            training = (samples.rows(train) for train, _ in self.pairs)
            points = [fitted(part, penalty, start) for part, start in zip(training, starts, strict=True)]
        else:
            point, *points = self._at_once(penalty, [point, *starts])
        found = np.empty((len(samples.labels), samples.n_contrasts + 1))
        for (_, test), own, trail in zip(self.pairs, points, self._trails, strict=True):
            trail.append(own)
            part = samples.rows(test)
            found[test] = part.log_proba(part.contrasts(own))
        return point, found

    def _at_once(self, penalty: float, starts: list[Point]) -> list[Point]:
        samples = self.samples
        weights = np.repeat(samples.weights[:, None], len(starts), axis=1)
        for place, (_, test) in enumerate(self.pairs, start=1):
            weights[test, place] = 0.0
        start = np.stack([each.slopes for each in starts], axis=1)
        slopes = fitted_parts(samples, weights, penalty, start)
        return [Point(slopes[:, place], samples.powers[1]) for place in range(len(starts))]


class LeaveOneOut(NamedTuple):
    """Leave-one-out predictions of a fit."""

    log_proba: Floats  # (samples, classes)
    effective: float  # number of parameters: the more for each sample, the more optimistic one step is
    curvature: Curvature | None  # of the fit to all samples, where the whole Hessian is computed

    def is_optimistic(self, samples: Samples) -> bool:
        """Whether there are too few samples to a parameter."""
        return bool(SAMPLES_TO_A_PARAMETER * self.effective > samples.effective_weights.sum())


def leave_one_out(samples: Samples, penalty: float, point: Point) -> LeaveOneOut:
    """Leave-one-out by one Newton step from the fit to all samples (Rad and Maleki 2020).

    A sample is removed with its whole weight.
    """
    if np.isinf(penalty):
        alone = leave_one_out(samples.without_features(), 0.0, Point(point.slopes[:1], point.power))
        return alone._replace(curvature=None)
    contrasts = samples.contrasts(point)
    proba = np.exp(samples.log_proba(contrasts))
    curvature = samples.curvature(proba)
    hessian = samples.hessian(curvature, penalty)
    moves = samples.powers[0] < point.power < samples.powers[1]  # at a bound the likelihood power is fixed
    leverage = leverages(samples.design, samples.offset, inverse_of(hessian if moves else hessian[:-1, :-1]), moves)
    leverage *= samples.weights[:, None, None]
    effective = float(np.einsum("sab,sba->", leverage, curvature))
    system = np.eye(samples.n_contrasts) - leverage @ curvature
    moved = np.linalg.solve(system, leverage @ samples.excess(proba)[:, :, None])[:, :, 0]
    near = Curvature(hessian[:-1, :-1], penalty)
    return LeaveOneOut(samples.log_proba(contrasts + moved), effective, near)


def leverages(design: Floats, offset: Floats, inverse: Floats, has_power: bool) -> Floats:
    """Covariance of the contrasts of every sample under an inverse Hessian: (samples, contrasts, contrasts).

    ``has_power``: the last parameter is the likelihood power.
    """
    size, n = design.shape[1], offset.shape[1]
    found = np.zeros((len(design), n, n))

    def fill(pair: tuple[int, int]) -> None:
        a, b = pair
        block = inverse[a * size : (a + 1) * size, b * size : (b + 1) * size]
        found[:, a, b] = found[:, b, a] = np.einsum("sf,sf->s", design @ block, design)

    for_pairs(fill, n, design)
    if has_power:
        across = design @ inverse[-1, :-1].reshape(n, size).T
        found += across[:, :, None] * offset[:, None, :] + offset[:, :, None] * across[:, None, :]
        found += inverse[-1, -1] * offset[:, :, None] * offset[:, None, :]
    return found


def inverse_of(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix."""
    return inverse_by(cholesky(matrix))


def inverse_by(factor: Floats) -> Floats:
    """Inverse of the matrix with this Cholesky factor."""
    lower = np.tril(dpotri(factor, lower=True)[0])
    found: Floats = lower + np.tril(lower, -1).T
    return found
