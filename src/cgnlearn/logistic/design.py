"""Design matrices of logistic regressions, and log odds that are linear in features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from cgnlearn.data.arrays import Columns, Floats, contrasts_of
from cgnlearn.data.table import Table
from cgnlearn.logistic.optimiser import Point, Samples

CHUNK = 1 << 22  # numbers in one batch of a prediction
CONSTANT = 8 * np.finfo(float).eps  # deviation of a constant feature, relative to its greatest absolute value


class Features(NamedTuple):
    """Features of samples."""

    owner: Columns  # the column of X that each belongs to
    values: Floats  # (samples, features), NaN where one is missing

    @classmethod
    def joined(cls, parts: list[Features], n_samples: int) -> Features:
        """Concatenate features of the same samples."""
        owner = np.concatenate([np.zeros(0, np.intp), *(part.owner for part in parts)])
        return cls(owner, np.concatenate([np.zeros((n_samples, 0)), *(part.values for part in parts)], axis=1))


@dataclass(frozen=True, eq=False)
class LinearOdds:
    """Log odds between the classes; "..." is an axis of penalties, or nothing."""

    centre: Floats  # (features,)
    slopes: Floats  # (..., features, classes), of features that are not standardised; 0 where one is constant
    intercept: Floats  # (..., classes)

    def __getitem__(self, which: int | list[int]) -> LinearOdds:
        """Log odds of one penalty or of some."""
        return LinearOdds(self.centre, self.slopes[which], self.intercept[which])

    def total(self, factors: Floats) -> LinearOdds:
        """The sum of the penalties' log odds, each times a factor, as those of one penalty."""
        slopes, intercept = (np.tensordot(factors, part, 1)[None] for part in (self.slopes, self.intercept))
        return LinearOdds(self.centre, slopes, intercept)

    def log_odds(self, features: Callable[[Table], Features], table: Table) -> Floats:
        """Log odds of samples: (..., samples, classes)."""
        *several, n_classes = self.intercept.shape
        found = np.empty((*several, table.n_samples, n_classes))
        for batch, part in self._batches(features, table):
            found[..., batch, :] = part.values @ self.slopes + self.intercept[..., None, :]
        return found

    def contributions(self, features: Callable[[Table], Features], table: Table) -> Floats:
        """Terms of every column for one penalty, without the intercept: (samples, columns of X, classes)."""
        found = np.zeros((table.n_samples, table.schema.n_columns, self.intercept.shape[-1]))
        for batch, part in self._batches(features, table):
            for label, slopes in enumerate(self.slopes.T):
                np.add.at(found[batch, :, label].T, part.owner, (part.values * slopes).T)
        return found

    def _batches(self, features: Callable[[Table], Features], table: Table) -> Iterator[tuple[slice, Features]]:
        """Batches of samples and their centred features; missing values are set to the mean."""
        size = max(1, CHUNK // max(1, len(self.centre)))
        for start in range(0, table.n_samples, size):
            batch = slice(start, min(start + size, table.n_samples))
            is_all = batch.stop - batch.start == table.n_samples
            owner, values = features(table if is_all else table.rows(np.arange(batch.start, batch.stop)))
            values -= self.centre
            values[np.isnan(values)] = 0.0
            yield batch, Features(owner, values)


class Design(NamedTuple):
    """Training samples of a regression, and the transform back to slopes of features."""

    samples: Samples
    values: Floats  # standardised features: (samples, features)
    centre: Floats  # (features,)
    scale: Floats  # (features,), infinite where one is constant
    basis: Floats | None  # of the samples' span, where features outnumber samples

    @classmethod
    def of(cls, values: Floats, table: Table, log_prior: Floats, offset: Floats | None = None) -> Design:
        """Standardise in place, and rotate into the samples' span if that is smaller, which leaves a ridge unchanged.

        Features are roughly in standard units: scaling up a rare indicator would leave it hardly penalised.
        """
        assert table.labels is not None
        centre, deviation = centred(values, table.weights)
        scale = np.maximum(deviation, 1.0)
        values /= scale
        basis, rotated = _span(values) if values.shape[1] > len(values) else (None, values[:, np.isfinite(scale)])
        return cls(Samples.of(rotated, table.labels, table.weights, log_prior, offset), values, centre, scale, basis)

    def coordinates(self, values: Floats) -> Floats:
        """Features of new samples as rows of the design matrix: (samples, 1 + features)."""
        standard = (values - self.centre) / self.scale
        standard[np.isnan(standard)] = 0.0  # missing values are at the mean
        inside = standard[:, np.isfinite(self.scale)] if self.basis is None else standard @ self.values.T @ self.basis
        return np.concatenate([np.ones((len(values), 1)), inside], axis=1)

    def odds(self, points: list[Point]) -> LinearOdds:
        """Log odds of several fits."""
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

    def slopes(self, odds: LinearOdds) -> Floats:
        """The slopes in the design matrix's coordinates, of log odds of one penalty: (features, contrasts)."""
        kept = np.isfinite(self.scale)
        standard = np.where(kept, self.scale, 0.0)[:, None] * odds.slopes @ contrasts_of(odds.slopes.shape[1]).T
        return standard[kept] if self.basis is None else self.basis.T @ (self.values @ standard)


def centred(values: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Centre values in place, with missing ones at the mean; return means and deviations, infinite for constants."""
    weights = np.ones(len(values)) if weights is None else weights
    missing = np.isnan(values)
    values[missing] = 0.0
    total = np.maximum(weights @ ~missing, np.finfo(float).tiny)
    greatest = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    # Measured from an observed value first, so that the mean of a constant is exact and one far out costs no digits.
    observed = np.argmax(~missing, axis=0) if len(values) else np.zeros(values.shape[1], np.intp)
    origin = values[observed, np.arange(values.shape[1])] if len(values) else np.zeros(values.shape[1])
    values -= origin
    values[missing] = 0.0
    rest = weights @ values / total
    values -= rest
    values[missing] = 0.0
    mean = origin + rest
    deviation = np.sqrt(weights @ np.square(values) / total)
    return mean, np.where(deviation > CONSTANT * greatest, deviation, np.inf)


def _span(values: Floats) -> tuple[Floats, Floats]:
    """Basis and coordinates of the samples' span; values.T @ basis maps slopes of coordinates to slopes of values."""
    squares, vectors = eigh(values @ values.T)
    kept = squares > 1e-12 * squares[-1]
    lengths = np.sqrt(squares[kept])
    return vectors[:, kept] / lengths, vectors[:, kept] * lengths
