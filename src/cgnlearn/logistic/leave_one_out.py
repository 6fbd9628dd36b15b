"""Leave-one-out of a logistic regression by one Newton step from the fit to all samples (Rad and Maleki 2020)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotri

from cgnlearn.data.arrays import Floats
from cgnlearn.logistic.optimiser import Curvature, Point, Samples, cholesky


class LeaveOneOut(NamedTuple):
    """Leave-one-out predictions of a fit."""

    log_proba: Floats  # (samples, classes)
    effective: float  # number of parameters: the more for each sample, the more optimistic one step is
    curvature: Curvature | None  # of the fit to all samples, where the whole Hessian is computed


def leave_one_out(samples: Samples, penalty: float, point: Point) -> LeaveOneOut:
    """Predict each sample without it and its whole weight; blocks between contrasts of a large Hessian count as 0."""
    if np.isinf(penalty):
        alone = leave_one_out(samples.without_features(), 0.0, Point(point.slopes[:1], point.power))
        return alone._replace(curvature=None)
    contrasts = samples.contrasts(point)
    proba = np.exp(samples.log_proba(contrasts))
    curvature = samples.curvature(proba)
    hessian = samples.hessian(curvature, penalty) if samples.is_dense else None
    leverage = _leverage(samples, point, curvature, penalty, hessian)
    leverage *= samples.weights[:, None, None]
    effective = float(np.einsum("sab,sba->", leverage, curvature))
    system = np.eye(samples.n_contrasts) - leverage @ curvature
    moved = np.linalg.solve(system, leverage @ samples.excess(proba)[:, :, None])[:, :, 0]
    near = None if hessian is None else Curvature(hessian[:-1, :-1], penalty)
    return LeaveOneOut(samples.log_proba(contrasts + moved), effective, near)


def _leverage(samples: Samples, point: Point, curvature: Floats, penalty: float, hessian: Floats | None) -> Floats:
    """Leverage of every sample: (samples, contrasts, contrasts)."""
    design, offset, n = samples.design, samples.offset, samples.n_contrasts
    size = design.shape[1]
    found = np.zeros((len(design), n, n))
    if hessian is None:
        for a in range(n):
            inverse = _inverse(samples.block(curvature[:, a, a], penalty))
            found[:, a, a] = np.einsum("sf,sf->s", design @ inverse, design)
        return found
    moves = samples.powers[0] < point.power < samples.powers[1]  # at a bound the likelihood power is fixed
    inverse = _inverse(hessian if moves else hessian[:-1, :-1])
    for a in range(n):
        for b in range(a + 1):
            block = inverse[a * size : (a + 1) * size, b * size : (b + 1) * size]
            found[:, a, b] = found[:, b, a] = np.einsum("sf,sf->s", design @ block, design)
    if moves:
        across = design @ inverse[-1, :-1].reshape(n, size).T
        found += across[:, :, None] * offset[:, None, :] + offset[:, :, None] * across[:, None, :]
        found += inverse[-1, -1] * offset[:, :, None] * offset[:, None, :]
    return found


def _inverse(matrix: Floats) -> Floats:
    """Inverse of a positive definite matrix."""
    factor, _ = cholesky(matrix)
    lower = np.tril(dpotri(factor, lower=True)[0])
    found: Floats = lower + np.tril(lower, -1).T
    return found
