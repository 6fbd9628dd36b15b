"""Regressions at ever weaker penalties, and what each says of the samples held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.splits import stratified
from cgnlearn.logistic.leave_one_out import leave_one_out
from cgnlearn.logistic.optimiser import Curvature, Point, Samples, fitted
from cgnlearn.networks.densities import true_class_log_proba

Fold = tuple[Columns, Columns]  # training and test samples

LEAST_EFFECTIVE, LEAST_SHARE = 1.5, 0.75  # parameters to a contrast, at the strongest penalty; of one feature so much
WEAKEST = 1e-3  # penalty
LEAST_PENALTY = 1e-5  # that leaves a number of parameters: none below is looked for
N_PENALTIES = 12  # from one that leaves next to nothing to the weakest
FEW_PENALTIES, MANY_SAMPLES = 8, 2000  # with many samples neighbours are hardly told apart, and a fit is dear
LEAST_SPREAD = 0.2  # of log odds that the strongest penalty expects
SAMPLES_TO_A_PARAMETER = 4  # with fewer the fit knows the samples by heart, and leave-one-out in one step flatters
N_FOLDS = 5
HOPELESS = 10.0  # nats behind the best penalty
ALIKE = 0.1  # nats of all samples together: two penalties that say the same
BEGUN = 1.0  # nats away from an offset alone: with less it is too early to say that penalties are alike


class Step(NamedTuple):
    """A penalty, its fit to all samples, and predictions of each sample by a fit without it."""

    penalty: float
    point: Point
    log_proba: Floats  # (samples, classes)
    by: str  # "leave-one-out", or how many folds


def penalties(samples: Samples) -> list[float]:
    """The strongest first; of many samples none that would hide what they say. An offset is also tried alone."""
    found = [np.inf] if samples.has_power else []
    features = samples.design[:, 1:]
    strongest = _penalty_leaving(samples, min(LEAST_EFFECTIVE, LEAST_SHARE * features.shape[1]))
    if strongest <= WEAKEST:
        return found
    spread = samples.weights @ np.square(features).sum(axis=1) / samples.effective_weights.sum()
    path = np.geomspace(strongest, WEAKEST, FEW_PENALTIES if len(features) > MANY_SAMPLES else N_PENALTIES)
    return found + path[path <= max(spread / LEAST_SPREAD**2, WEAKEST)].tolist()


def _penalty_leaving(samples: Samples, effective: float) -> float:
    """The penalty that leaves so many parameters to a contrast; 0 if none leaves as many.

    The effective number of parameters is that of a ridge regression with the weights that samples have where all
    classes are equally probable, which are the greatest: (C - 1) Σ d/(d + λ), d the eigenvalues of the features'
    scatter divided by C.
    """
    features = samples.design[:, 1:]
    scatter = np.linalg.eigvalsh(features.T @ (features * samples.weights[:, None])).clip(min=0.0)
    scatter /= samples.n_contrasts + 1

    def excess(log_penalty: float) -> float:
        return float((scatter / (scatter + np.exp(log_penalty))).sum() - effective)

    least = np.log(LEAST_PENALTY)
    if not len(scatter) or excess(least) <= 0:
        return 0.0
    return float(np.exp(brentq(excess, least, np.log(scatter.sum() / effective) + 1)))


def fits(samples: Samples, path: Sequence[float]) -> Iterator[Point]:
    """At every penalty, each starting at the one before."""
    point = samples.origin
    for penalty in path:
        point = fitted(samples, penalty, point)
        yield point


def steps(
    samples: Samples, path: Sequence[float], log_likelihood: Callable[[Floats], float] | None = None
) -> Iterator[Step]:
    """The same with held-out predictions, up to where weaker penalties are no better.

    That is where one is hopeless, by a log likelihood of held-out predictions that can be given, or says the same as
    the one before. Samples are left out in one step as long as that does not flatter, and from there on by folds.
    """
    weights = samples.effective_weights
    point = samples.origin
    near: Curvature | None = None
    folds: list[Fold] = []
    can_fold = np.bincount(samples.labels).max() > 1
    before = offset_alone = None
    best = -np.inf
    for penalty in path:
        point = fitted(samples, penalty, point, near)
        if not folds:
            log_proba, effective, near = leave_one_out(samples, penalty, point)
            if can_fold and SAMPLES_TO_A_PARAMETER * effective > weights.sum():
                folds = stratified(samples.labels, N_FOLDS, 0).pairs
        if folds:
            log_proba = _out_of_fold(samples, folds, penalty, point, near)
        yield Step(penalty, point, log_proba, f"{len(folds)} folds" if folds else "leave-one-out")
        truth = true_class_log_proba(log_proba, samples.labels)
        value = float(weights @ truth) if log_likelihood is None else log_likelihood(log_proba)
        best = max(best, value)
        has_begun = offset_alone is None or _gap(truth, offset_alone, weights) > BEGUN
        # As they are: the next may be better than two of which only a likelihood power makes the same.
        is_like_before = before is not None and _gap(truth, before, weights) < ALIKE
        if value < best - HOPELESS or (has_begun and is_like_before):
            return
        before = truth
        offset_alone = truth if np.isinf(penalty) else offset_alone


def _gap(truth: Floats, other: Floats, weights: Floats) -> float:
    """How far log probabilities are apart, in sum and sample by sample."""
    moved = truth - other
    return float(max(abs(weights @ moved), np.sqrt(weights @ np.square(moved))))


def _out_of_fold(samples: Samples, folds: list[Fold], penalty: float, start: Point, near: Curvature | None) -> Floats:
    """Predictions of every sample by a fit to the other folds, which begins at the fit to all: (samples, classes)."""
    found = np.empty((len(samples.labels), samples.n_contrasts + 1))
    for train, test in folds:
        point = fitted(samples.some(train), penalty, start, near)
        held_out = samples.some(test)
        found[test] = held_out.log_proba(held_out.contrasts(point))
    return found
