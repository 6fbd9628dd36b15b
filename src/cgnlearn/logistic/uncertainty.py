"""How certain log odds of a logistic regression are: a normal posterior with the Hessian of the penalised loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.optimize import brentq

from cgnlearn.data.arrays import Floats
from cgnlearn.logistic.design import Design
from cgnlearn.logistic.path import inverse_of, leverages

LEAST_SIZE = 1e-6  # sum of squares of coefficients
MOST_EXACT = 40  # parameters of which every direction is kept
N_DIRECTIONS = 4  # that are kept of more


@dataclass(frozen=True, eq=False)
class Curved:
    """The inverse Hessian of a fit; of many parameters that of each contrast, taken as equal and independent."""

    design: Design
    inverse: Floats  # (parameters, parameters)
    has_power: bool  # whether the last parameter is the likelihood power

    @classmethod
    def of(cls, design: Design, proba: Floats, penalty: float, power: float | None, times: float) -> Curved:
        """From training samples and their probabilities; each sample stands for ``times`` as many."""
        samples = design.samples if np.isfinite(penalty) else design.samples.without_features()
        curvature = times * samples.curvature(proba)
        penalty = penalty if np.isfinite(penalty) else 0.0
        if not samples.is_dense:
            mean = np.einsum("saa->s", curvature) / samples.n_contrasts
            return cls(design, inverse_of(samples.block(mean, penalty)), False)
        hessian = samples.hessian(curvature, penalty)
        moves = power is not None and samples.powers[0] < power < samples.powers[1]
        return cls(design, inverse_of(hessian if moves else hessian[:-1, :-1]), moves)

    def curvatures(self, penalty: float) -> Floats:
        """Eigenvalues of the Hessian of the features' parameters, without their penalty; intercepts are free."""
        n_contrasts = self.design.samples.n_contrasts
        size = self.design.samples.design.shape[1]
        of_features = np.arange(len(self.inverse)) % size > 0
        variance = eigvalsh(self.inverse[np.ix_(of_features, of_features)])
        found = np.maximum(1 / np.maximum(variance, np.finfo(float).tiny) - penalty, 0.0)
        return found if len(self.inverse) > size else np.tile(found, n_contrasts)

    def covariance(self, features: Floats, offset: Floats | None = None) -> Floats:
        """Covariance of the contrasts of new samples: (samples, contrasts, contrasts).

        ``features`` are as they were before they were standardised, ``offset`` are contrasts.
        """
        n_contrasts = self.design.samples.n_contrasts
        points = self.design.coordinates(features)
        size = (len(self.inverse) - self.has_power) // n_contrasts
        if size == 1:  # the intercept alone
            points = points[:, :1]
        elif len(self.inverse) == points.shape[1] and n_contrasts > 1:
            of_one = np.einsum("sf,sf->s", points @ self.inverse, points)
            return of_one[:, None, None] * np.eye(n_contrasts)
        none = np.zeros((len(points), n_contrasts))
        return leverages(points, none if offset is None else offset, self.inverse, self.has_power)


def supported_penalty(eigenvalues: Floats, penalty: float, size: float) -> float:
    """The penalty that coefficients with a sum of squares ``size`` support, at least the given one (MacKay 1992).

    ``eigenvalues`` are those of the Hessian without penalty.

    >>> round(supported_penalty(np.array([8.0, 2.0, 0.0]), 0.1, 1.0), 3)  # 8 / (8 + λ) + 2 / (2 + λ)
    1.431
    """

    def excess(found: float) -> float:
        return float(found * size - (eigenvalues / (eigenvalues + found)).sum())

    if excess(penalty) >= 0:
        return penalty
    return float(brentq(excess, penalty, len(eigenvalues) / size))


@dataclass(frozen=True, eq=False)
class Directions:
    """An inverse Hessian in few numbers: the directions in which parameters are known best, and one variance beyond.

    That variance is such that the variances of the training samples are right on average. With up to `MOST_EXACT`
    parameters all directions are kept, and nothing is left beyond.
    """

    centre: Floats  # of the features: (features,)
    scale: Floats  # (features,), infinite where one is constant
    vectors: Floats  # orthonormal: (directions, contrasts, 1 + features)
    variance: Floats  # (directions,)
    rest: float  # the variance beyond

    @classmethod
    def of(cls, curved: Curved) -> Directions:
        """From the inverse Hessian of all contrasts."""
        design, inverse = curved.design, curved.inverse
        points, weights, n_contrasts = design.samples.design, design.samples.weights, design.samples.n_contrasts
        n_kept = len(inverse) if len(inverse) <= MOST_EXACT else N_DIRECTIONS
        variance, kept = eigh(inverse, subset_by_index=(0, n_kept - 1))
        vectors = kept.T.reshape(n_kept, n_contrasts, -1)
        rest = 0.0
        if n_kept < len(inverse):
            along = np.square(np.einsum("sf,daf->sda", points, vectors)).sum(axis=2)
            none = np.zeros((len(points), n_contrasts))
            whole = np.einsum("saa->s", leverages(points, none, inverse, has_power=False))
            beyond = n_contrasts * np.square(points).sum(axis=1) - along.sum(axis=1)
            rest = float(weights @ (whole - along @ variance) / (weights @ beyond))
        of_features = np.zeros((n_kept, n_contrasts, 1 + len(design.centre)))
        of_features[:, :, 0] = vectors[:, :, 0]
        if design.basis is None:
            of_features[:, :, 1:][:, :, np.isfinite(design.scale)] = vectors[:, :, 1:]
        else:
            of_features[:, :, 1:] = vectors[:, :, 1:] @ (design.values.T @ design.basis).T
        return cls(design.centre, design.scale, of_features, variance, rest)

    def covariance(self, features: Floats) -> Floats:
        """Covariance of the contrasts of new samples: (samples, contrasts, contrasts).

        ``features`` are as they were before they were standardised.
        """
        standard = (features - self.centre) / self.scale
        standard[np.isnan(standard)] = 0.0  # missing values are at the mean
        points = np.concatenate([np.ones((len(standard), 1)), standard], axis=1)
        n_directions, n_contrasts, n_features = self.vectors.shape
        along = (points @ self.vectors.reshape(-1, n_features).T).reshape(-1, n_directions, n_contrasts)
        beyond = self.rest * np.square(points).sum(axis=1)[:, None, None] * np.eye(n_contrasts)
        found: Floats = (along * (self.variance - self.rest)[:, None]).swapaxes(1, 2) @ along + beyond
        return found
