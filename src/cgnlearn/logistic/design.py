"""Features as a regression sees them, and log odds that are linear in features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.logistic.optimiser import Point, Samples, contrasts_of

CHUNK = 1 << 22  # features held at once in a prediction
CONSTANT = 1e-9  # deviation of a feature that says nothing, relative to its greatest value


class Features(NamedTuple):
    """Features of samples."""

    owner: Columns  # the column of X that each belongs to
    values: Floats  # (samples, features), NaN where one is missing

    @classmethod
    def joined(cls, parts: list[Features], n_samples: int) -> Features:
        """Beside each other."""
        owners, values = [np.zeros(0, np.intp)], [np.zeros((n_samples, 0))]
        for part in parts:
            owners.append(part.owner)
            values.append(part.values)
        return cls(np.concatenate(owners), np.concatenate(values, axis=1))


@dataclass(frozen=True, eq=False)
class LinearOdds:
    """Log odds between the classes; "..." stands for several penalties, or for nothing."""

    centre: Floats  # (features,)
    slopes: Floats  # (..., features, classes), of features that are not standardised; 0 where one is constant
    intercept: Floats  # (..., classes)

    def __getitem__(self, which: int | list[int]) -> LinearOdds:
        """Of one penalty or of some."""
        return LinearOdds(self.centre, self.slopes[which], self.intercept[which])

    def log_odds(self, features: Callable[[Table], Features], table: Table) -> Floats:
        """Of samples: (..., samples, classes)."""
        *several, n_classes = self.intercept.shape
        found = np.empty((*several, table.n_samples, n_classes))
        for some, part in self._chunks(features, table):
            found[..., some, :] = part.values @ self.slopes + self.intercept[..., None, :]
        return found

    def contributions(self, features: Callable[[Table], Features], table: Table) -> Floats:
        """The terms of every column, of one penalty and without the intercept: (samples, columns of X, classes)."""
        found = np.zeros((table.n_samples, table.schema.n_columns, self.intercept.shape[-1]))
        for some, part in self._chunks(features, table):
            for label, slopes in enumerate(self.slopes.T):
                np.add.at(found[some, :, label].T, part.owner, (part.values * slopes).T)
        return found

    def _chunks(self, features: Callable[[Table], Features], table: Table) -> Iterator[tuple[slice, Features]]:
        """Centred features of some samples after the other; what is missing stands at the mean."""
        size = max(1, CHUNK // max(1, len(self.centre)))
        for start in range(0, table.n_samples, size):
            some = slice(start, min(start + size, table.n_samples))
            owner, values = features(table.rows(np.arange(some.start, some.stop)))
            values -= self.centre
            values[np.isnan(values)] = 0.0
            yield some, Features(owner, values)


class Design(NamedTuple):
    """Training samples as a regression sees them, and the way back to slopes of features."""

    samples: Samples
    values: Floats  # standardised features: (samples, features)
    centre: Floats  # (features,)
    scale: Floats  # (features,), infinite where one is constant
    basis: Floats | None  # of the samples' span, where features outnumber samples

    @classmethod
    def of(cls, values: Floats, table: Table, log_prior: Floats, offset: Floats | None = None) -> Design:
        """Standardised in place, and rotated into the samples' span, which a ridge does not notice, if it is smaller.

        Features are about in standard units already: none is stretched, since a rare indicator would then hardly be
        penalised.
        """
        assert table.labels is not None
        centre, deviation = centred(values, table.weights)
        scale = np.maximum(deviation, 1.0)
        values /= scale
        basis, rotated = _span(values) if values.shape[1] > len(values) else (None, values[:, np.isfinite(scale)])
        return cls(Samples.of(rotated, table.labels, table.weights, log_prior, offset), values, centre, scale, basis)

    def odds(self, points: list[Point]) -> LinearOdds:
        """Of each of several fits."""
        across = contrasts_of(self.samples.n_contrasts + 1)
        slopes = np.zeros((len(points), len(self.centre), across.shape[1]))
        for found, point in zip(slopes, points, strict=True):
            if self.basis is None:
                found[np.isfinite(self.scale)] = point.slopes[1:] @ across
            else:
                found[:] = self.values.T @ (self.basis @ point.slopes[1:]) @ across
        slopes /= self.scale[:, None]
        intercept = np.array([point.slopes[0] for point in points]).reshape(-1, len(across)) @ across
        return LinearOdds(self.centre, slopes, intercept)


def centred(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Means and standard deviations, infinite where a column is constant; what is missing then stands at the mean.

    Values are centred in place.
    """
    weights = np.ones(len(values)) if weights is None else weights
    missing = np.isnan(values)
    values[missing] = 0.0
    total = np.maximum(weights @ ~missing, np.finfo(float).tiny)
    greatest = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    mean = weights @ values / total
    values -= mean
    values[missing] = 0.0
    deviation = np.sqrt(weights @ np.square(values) / total)
    return mean, np.where(deviation > CONSTANT * greatest, deviation, np.inf)


def _span(values: Floats) -> tuple[Floats, Floats]:
    """A basis, and coordinates of the samples in their span; values.T @ basis @ slopes of these are slopes of those."""
    squares, vectors = eigh(values @ values.T)
    kept = squares > 1e-12 * squares[-1]
    lengths = np.sqrt(squares[kept])
    return vectors[:, kept] / lengths, vectors[:, kept] * lengths
