"""What the measurement of a missing feature is expected to tell about the class.

A feature that is not yet measured has the predictive distribution Σ_c p(c | x) p(x_j | x, c). The risk after the
measurement, an entropy or an expected cost, is averaged over it: over the levels of a discrete feature, by
one-dimensional quadrature for a continuous one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.densities import normalised

ROWS = 1 << 16  # samples, with values of the feature, that are evaluated at once
WIDEST = np.sinh(np.linspace(-6.0, 6.0, 49))  # places at which a density is looked for first, in standard units
CLOSER = np.linspace(-1.5, 1.5, 17)  # and then, in units of the last spacing
MOST_STEPS = 12
RESOLVED = 0.5  # fall of a log density from the best place to those beside it
STEP = 0.25
NODES = np.arange(-20, 21) * STEP  # of the trapezoidal rule, after x = centre + scale · sinh(node)

Risk = Callable[[Floats], Floats]  # of log probabilities (…, classes)


def entropy(log_proba: Floats) -> Floats:
    """Entropy of the classes in nats.

    Examples
    --------
    >>> entropy(np.log([[0.5, 0.5], [0.9, 0.1]])).round(3)
    array([0.693, 0.325])
    """
    proba = np.exp(log_proba)
    found: Floats = -np.where(proba > 0, proba * np.maximum(log_proba, -1e300), 0.0).sum(axis=-1)
    return found


class Values(NamedTuple):
    """Values that a feature may take, with their probabilities in each class."""

    values: Floats  # or codes of levels: (samples, values)
    proba: Floats  # given the observed features: (samples, values, classes)


@dataclass(frozen=True, eq=False)
class Measurement:
    """The measurement of a feature that is missing in all of some samples."""

    table: Table
    column: int
    log_density: Callable[[Table], Floats]  # ln p(x | class)
    log_scores: Callable[[Table], Floats]  # ln p(class | x) up to a constant of the sample
    typical: Floats  # usual values of the feature, from which the scale is taken

    def expected_risk(self, risk: Risk) -> Floats:
        """The mean of the risk after the measurement: (samples,)."""
        before = normalised(self.log_scores(self.table))
        found = self._levels() if self.table.schema.levels[self.column] is not None else self._quadrature()
        if found is None:
            return risk(before)
        of_values = risk(normalised(self._evaluated(self.log_scores, found.values)))
        proba = (found.proba * np.exp(before)[:, None]).sum(axis=-1)
        return np.asarray((of_values * proba).sum(axis=1))

    def _evaluated(self, function: Callable[[Table], Floats], values: Floats) -> Floats:
        """A function of samples with values of the feature: (samples, values, classes)."""
        n, n_values = values.shape
        found = np.empty((n, n_values, self.table.schema.n_classes))
        step = max(1, ROWS // n_values)
        position = self.table.schema.position[self.column]
        is_discrete = self.table.schema.levels[self.column] is not None
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            part = self.table.rows(np.repeat(rows, n_values))
            cells = (part.codes if is_discrete else part.values).copy()
            cells[:, position] = values[rows].ravel()
            part = replace(part, codes=cells) if is_discrete else replace(part, values=cells)
            found[rows] = function(part).reshape(len(rows), n_values, -1)
        return found

    @cached_property
    def _base(self) -> Floats:
        """Log densities of what is observed: (samples, 1, classes)."""
        return self.log_density(self.table)[:, None]

    def _log_given(self, values: Floats) -> Floats:
        """Log density of values given what is observed: (samples, values, classes)."""
        return self._evaluated(self.log_density, values) - self._base

    def _levels(self) -> Values:
        n_levels = len(self.table.schema.levels_of(self.column))
        codes = np.tile(np.arange(n_levels, dtype=np.float64), (self.table.n_samples, 1))
        log_given = self._log_given(codes)
        return Values(codes, np.exp(log_given - logsumexp(log_given, axis=1, keepdims=True)))

    def _quadrature(self) -> Values | None:
        """Values around the density of each class; None for a feature that no density depends on."""
        low, middle, high = np.quantile(self.typical, [0.1, 0.5, 0.9])
        unit = max((high - low) / 2, abs(middle) * 1e-9, 1e-300)
        grid = np.tile(middle + unit * WIDEST, (self.table.n_samples, 1))
        log_given = self._log_given(grid)
        if not np.ptp(log_given, axis=1).any():
            return None
        centre, scale = self._located(grid, log_given)
        values = (centre[:, None] + scale[:, None] * np.sinh(NODES)[:, None]).reshape(len(grid), -1)
        log_given = self._log_given(values)
        # Where several classes have nodes, each node counts by the share of its own class.
        own = np.tile(np.arange(centre.shape[1]), len(NODES))
        share = np.exp(log_given[:, np.arange(len(own)), own] - logsumexp(log_given, axis=2))
        width = (scale[:, None] * np.cosh(NODES)[:, None]).reshape(len(grid), -1) * STEP
        proba = np.exp(log_given) * (share * width)[..., None]
        return Values(values, proba / proba.sum(axis=1, keepdims=True))

    def _located(self, grid: Floats, log_given: Floats) -> tuple[Floats, Floats]:
        """Mode and scale of the density in each class: (samples, classes)."""
        rows, n_classes = np.arange(len(grid)), log_given.shape[2]
        centre, scale = np.empty((2, len(grid), n_classes))
        for label in range(n_classes):
            places, found = grid, log_given[..., label]
            for _ in range(MOST_STEPS):
                best = found.argmax(axis=1)
                beside = np.clip(best + np.array([[-1], [1]]), 0, places.shape[1] - 1)
                centre[:, label] = places[rows, best]
                if (found[rows, best] - found[rows, beside] < RESOLVED).all():
                    break
                spacing = np.abs(places[rows, beside] - centre[:, label]).max(axis=0)
                places = centre[:, label, None] + spacing[:, None] * CLOSER
                found = self._log_given(places)[..., label]
            scale[:, label] = np.exp(-found.max(axis=1)) / np.sqrt(2 * np.pi)  # as of a normal density
        return centre, scale
