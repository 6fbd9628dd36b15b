"""How certain log odds of a logistic regression are: a normal posterior with the Hessian of the penalised loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.logistic.design import Design
from cgnlearn.logistic.path import inverse_of, leverages


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
