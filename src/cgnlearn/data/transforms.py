"""Transforms of the columns: from a table to a table, learned from samples without looking at their classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table, evenly_spaced

LARGEST = 300.0  # exponent of a power of a value: its square can still be written down
POWERS = (-4.0, 6.0)  # between which a Yeo-Johnson power is sought
GOLDEN = (np.sqrt(5) - 1) / 2
N_STEPS = 28  # of a golden section: the power is then known to 1e-5
MOST_ROWS = 2000  # spread evenly, from which powers and quantiles are learned
PIECE = 1 << 15  # values that are transformed at once: a quarter of a megabyte
ROUNDED = 1e-12  # of the squared mean: a variance that may be nothing but rounding


class Transform(Protocol):
    """What makes another table of a table."""

    def __call__(self, table: Table) -> Table:
        """The same samples, transformed."""

    def log_jacobian(self, table: Table) -> Floats | None:
        """ln |dy/dx| of every value: (samples, continuous columns); None where densities cannot be compared."""


@dataclass(frozen=True)
class Unchanged:
    """The columns as they are."""

    @classmethod
    def of(cls, table: Table) -> Unchanged:
        """Nothing is learned."""
        return cls()

    def __call__(self, table: Table) -> Table:
        """The same table."""
        return table

    def log_jacobian(self, table: Table) -> Floats | None:
        """Zeros."""
        return np.zeros((table.n_samples, len(table.schema.continuous)))


@dataclass(frozen=True, eq=False)
class Power:
    """Yeo and Johnson's powers (2000), one for each continuous column: the likeliest if the result were normal.

    Parameters
    ----------
    powers : ndarray (continuous columns,)
    """

    powers: Floats

    @classmethod
    def of(cls, table: Table) -> Power:
        """By golden sections, of some columns at once."""
        from cgnlearn.kernels.compilation import in_threads

        values, weights = _some_rows(table)
        step = max(1, PIECE // max(1, len(values)))
        parts = [values[:, start : start + step] for start in range(0, values.shape[1], step)]
        return cls(np.concatenate([np.zeros(0), *in_threads(lambda part: cls._powers(part, weights), parts)]))

    @staticmethod
    def _powers(values: Floats, weights: Floats) -> Floats:
        logs, positive = np.log1p(np.abs(values)), values >= 0
        there = ~np.isnan(values)
        weights = np.where(there, weights[:, None], 0.0)
        weights = weights / np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
        logs = np.where(there, logs, 0.0)
        longest = [np.where(side & there, logs, 0.0).max(axis=0, initial=0.0) for side in (positive, ~positive)]
        with np.errstate(divide="ignore"):
            most = np.minimum(POWERS[1], LARGEST / longest[0])
            least = np.maximum(POWERS[0], 2 - LARGEST / longest[1])
        signed = (weights * np.where(positive, logs, -logs)).sum(axis=0)

        def likelihood(power: Floats) -> Floats:
            moved = _moved(logs, positive, power)
            mean = (weights * moved).sum(axis=0)
            variance = (weights * np.square(moved - mean)).sum(axis=0)
            told = variance > ROUNDED * np.square(mean)
            return np.where(told, (power - 1) * signed - 0.5 * np.log(np.where(told, variance, 1.0)), -np.inf)

        low, high = np.minimum(least, 1.0), np.maximum(most, 1.0)
        inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_inner, at_outer = likelihood(inner), likelihood(outer)
        for _ in range(N_STEPS):
            left = at_inner >= at_outer
            low, high = np.where(left, low, inner), np.where(left, outer, high)
            tried = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            found = likelihood(tried)
            inner, outer = np.where(left, tried, outer), np.where(left, inner, tried)
            at_inner, at_outer = np.where(left, found, at_outer), np.where(left, at_inner, found)
        best = (low + high) / 2
        return np.where(likelihood(best) > likelihood(np.ones_like(best)), best, 1.0)

    def __call__(self, table: Table) -> Table:
        """The same samples, transformed; NaN stays."""
        from cgnlearn.kernels.compilation import in_threads

        values = np.asarray(table.values, float)
        moved = np.empty_like(values)

        def fill(rows: slice) -> None:
            some = values[rows]
            # A sample far outside of the training data may overflow: it is then as far out as can be.
            moved[rows] = _moved(np.log1p(np.abs(some)), some >= 0, self.powers)

        step = max(1, PIECE // max(1, values.shape[1]))
        in_threads(fill, [slice(start, start + step) for start in range(0, len(values), step)])
        return replace(table, values=moved)

    def log_jacobian(self, table: Table) -> Floats | None:
        """(power - 1) ln(1 + x), and the like for what is negative."""
        values = np.asarray(table.values, float)
        found: Floats = (self.powers - 1) * np.sign(values) * np.log1p(np.abs(values))
        return np.where(np.isnan(found), 0.0, found)


def _moved(logs: Floats, positive: NDArray[np.bool_], power: Floats) -> Floats:
    """Values from ln(1 + |x|) and the sign of x."""
    exponent = np.where(positive, power, 2 - power)
    flat = np.abs(exponent) < 1e-8
    exponent = np.where(flat, 1.0, exponent)
    risen = np.expm1(np.minimum(exponent * logs, LARGEST)) / exponent
    return np.where(positive, 1.0, -1.0) * np.where(flat, logs, risen)


@dataclass(frozen=True, eq=False)
class Bins:
    """Continuous columns cut at quantiles; each becomes a discrete one.

    Parameters
    ----------
    edges : tuple of ndarray
        For each continuous column the least values of its bins but the first.
    """

    edges: tuple[Floats, ...]

    @classmethod
    def of(cls, table: Table, n_bins: int) -> Bins:
        """Bins of about as many samples each; fewer where many samples have the same value."""
        values, weights = _some_rows(table)
        return cls(tuple(_edges(column, weights, n_bins) for column in values.T))

    def __call__(self, table: Table) -> Table:
        """The same samples, every column discrete; what is missing has the code -1."""
        schema = table.schema
        codes = np.empty((table.n_samples, schema.n_columns), np.int32)
        codes[:, schema.discrete] = table.codes
        levels: list[Any] = list(schema.levels)
        for column, edges, values in zip(schema.continuous, self.edges, table.values.T, strict=True):
            found = np.searchsorted(edges, values, side="right")
            codes[:, column] = np.where(np.isnan(values), -1, found)
            levels[column] = tuple(range(len(edges) + 1))
        binned = Schema(schema.names, tuple(levels), schema.classes, schema.frame)
        return replace(table, schema=binned, values=np.empty((table.n_samples, 0)), codes=codes)

    def log_jacobian(self, table: Table) -> Floats | None:
        """None: probabilities of bins are no densities."""
        return None


def _edges(values: Floats, weights: Floats, n_bins: int) -> Floats:
    there = ~np.isnan(values)
    order = np.argsort(values[there], kind="stable")
    ranked = values[there][order]
    if not len(ranked):
        return np.empty(0)
    share = np.cumsum(weights[there][order])
    at = np.searchsorted(share, share[-1] * np.arange(1, n_bins) / n_bins, side="left")
    # The next greater value, so that many equal ones stand below the edge together; if there is none, above it.
    after = np.searchsorted(ranked, ranked[np.minimum(at, len(ranked) - 1)], side="right")
    found = np.unique(ranked[np.minimum(after, len(ranked) - 1)])
    return found[found > ranked[0]]


def _some_rows(table: Table) -> tuple[Floats, Floats]:
    """Values and weights of at most `MOST_ROWS` samples."""
    some = table.rows(evenly_spaced(table.n_samples, MOST_ROWS)) if table.n_samples > MOST_ROWS else table
    weights = np.ones(some.n_samples) if some.weights is None else some.weights
    return np.asarray(some.values, float), weights


def learned(names: Iterable[str], table: Table) -> dict[str, Transform]:
    """The transforms of these names: ``"none"``, ``"power"``, ``"bins"`` with a number."""
    found: dict[str, Transform] = {}
    for name in names:
        if name == "none":
            found[name] = Unchanged.of(table)
        elif name == "power":
            found[name] = Power.of(table)
        else:
            found[name] = Bins.of(table, int(name.removeprefix("bins")))
    return found
