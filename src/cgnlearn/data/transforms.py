"""Transforms of the columns of a table, learned without the classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table, evenly_spaced

LARGEST = 300.0  # exponent of a transformed value, whose square does not overflow
POWERS = (-4.0, 6.0)  # the range of Yeo-Johnson powers
GOLDEN = (np.sqrt(5) - 1) / 2
N_STEPS = 28  # of a golden section search: the power is then known to 1e-5
MOST_ROWS = 2000  # evenly spaced samples from which powers and quantiles are learned
PIECE = 1 << 15  # values that are transformed at once: a quarter of a megabyte
ROUNDED = 1e-12  # of the squared mean: a smaller variance may be rounding


class Transform(Protocol):
    """A transform of tables."""

    def __call__(self, table: Table) -> Table:
        """The samples, transformed."""

    def log_jacobian(self, table: Table) -> Floats | None:
        """ln |dy/dx| of every value: (samples, continuous columns); None where densities cannot be compared."""


@dataclass(frozen=True)
class Unchanged:
    """The identity."""

    def __call__(self, table: Table) -> Table:
        return table

    def log_jacobian(self, table: Table) -> Floats | None:
        return np.zeros((table.n_samples, len(table.schema.continuous)))


@dataclass(frozen=True, eq=False)
class Power:
    """Power transform of Yeo and Johnson (2000) of each continuous column, by normal maximum likelihood."""

    powers: Floats  # (continuous columns,)

    @classmethod
    def of(cls, table: Table) -> Power:
        """Powers by golden section search."""
        from cgnlearn.kernels.compilation import in_threads

        values, weights = _some_rows(table)
        step = max(1, PIECE // max(1, len(values)))
        parts = [values[:, start : start + step] for start in range(0, values.shape[1], step)]
        return cls(np.concatenate([np.zeros(0), *in_threads(lambda part: cls._powers(part, weights), parts)]))

    @staticmethod
    def _powers(values: Floats, weights: Floats) -> Floats:
        logs, positive = np.log1p(np.abs(values)), values >= 0
        observed = ~np.isnan(values)
        weights = np.where(observed, weights[:, None], 0.0)
        weights = weights / np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
        logs = np.where(observed, logs, 0.0)
        longest = [np.where(side & observed, logs, 0.0).max(axis=0, initial=0.0) for side in (positive, ~positive)]
        with np.errstate(divide="ignore"):
            most = np.minimum(POWERS[1], LARGEST / longest[0])
            least = np.maximum(POWERS[0], 2 - LARGEST / longest[1])
        signed = (weights * np.where(positive, logs, -logs)).sum(axis=0)

        def likelihood(power: Floats) -> Floats:
            moved = _moved(logs, positive, power)
            mean = (weights * moved).sum(axis=0)
            variance = (weights * np.square(moved - mean)).sum(axis=0)
            varies = variance > ROUNDED * np.square(mean)
            return np.where(varies, (power - 1) * signed - 0.5 * np.log(np.where(varies, variance, 1.0)), -np.inf)

        low, high = np.minimum(least, 1.0), np.maximum(most, 1.0)
        inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_inner, at_outer = likelihood(inner), likelihood(outer)
        for _ in range(N_STEPS):
            left = at_inner >= at_outer
            low, high = np.where(left, low, inner), np.where(left, outer, high)
            tried = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            at_tried = likelihood(tried)
            inner, outer = np.where(left, tried, outer), np.where(left, inner, tried)
            at_inner, at_outer = np.where(left, at_tried, at_outer), np.where(left, at_inner, at_tried)
        best = (low + high) / 2
        return np.where(likelihood(best) > likelihood(np.ones_like(best)), best, 1.0)

    def __call__(self, table: Table) -> Table:
        from cgnlearn.kernels.compilation import in_threads

        values = np.asarray(table.values, float)
        moved = np.empty_like(values)

        def fill(rows: slice) -> None:
            part = values[rows]
            moved[rows] = _moved(np.log1p(np.abs(part)), part >= 0, self.powers)

        step = max(1, PIECE // max(1, values.shape[1]))
        in_threads(fill, [slice(start, start + step) for start in range(0, len(values), step)])
        return replace(table, values=moved)

    def log_jacobian(self, table: Table) -> Floats | None:
        values = np.asarray(table.values, float)
        log_jacobian: Floats = (self.powers - 1) * np.sign(values) * np.log1p(np.abs(values))
        return np.where(np.isnan(log_jacobian), 0.0, log_jacobian)


def _moved(logs: Floats, positive: NDArray[np.bool_], power: Floats) -> Floats:
    """Transformed values from ln(1 + |x|) and the sign of x; values far outside of the training data are clipped."""
    exponent = np.where(positive, power, 2 - power)
    flat = np.abs(exponent) < 1e-8
    exponent = np.where(flat, 1.0, exponent)
    powers = np.expm1(np.minimum(exponent * logs, LARGEST)) / exponent
    return np.where(positive, 1.0, -1.0) * np.where(flat, logs, powers)


@dataclass(frozen=True, eq=False)
class Bins:
    """Continuous columns as discrete ones, by bins between quantiles."""

    edges: tuple[Floats, ...]  # of each continuous column: the least values of its bins except the first

    @classmethod
    def of(cls, table: Table, n_bins: int) -> Bins:
        """Bins of about equal weight; fewer where many samples have the same value."""
        values, weights = _some_rows(table)
        return cls(tuple(_edges(column, weights, n_bins) for column in values.T))

    def __call__(self, table: Table) -> Table:
        schema = table.schema
        codes = np.empty((table.n_samples, schema.n_columns), np.int32)
        codes[:, schema.discrete] = table.codes
        levels: list[Any] = list(schema.levels)
        for column, edges, values in zip(schema.continuous, self.edges, table.values.T, strict=True):
            codes[:, column] = np.where(np.isnan(values), MISSING, np.searchsorted(edges, values, side="right"))
            levels[column] = tuple(range(len(edges) + 1))
        binned = Schema(schema.names, tuple(levels), schema.classes, schema.frame)
        return replace(table, schema=binned, values=np.empty((table.n_samples, 0)), codes=codes)

    def log_jacobian(self, table: Table) -> Floats | None:
        return None  # probabilities of bins are not densities


def _edges(values: Floats, weights: Floats, n_bins: int) -> Floats:
    observed = ~np.isnan(values)
    order = np.argsort(values[observed], kind="stable")
    ranked = values[observed][order]
    if not len(ranked):
        return np.empty(0)
    share = np.cumsum(weights[observed][order])
    at = np.searchsorted(share, share[-1] * np.arange(1, n_bins) / n_bins, side="left")
    # The next greater value, so that equal values are in one bin.
    after = np.searchsorted(ranked, ranked[np.minimum(at, len(ranked) - 1)], side="right")
    edges = np.unique(ranked[np.minimum(after, len(ranked) - 1)])
    return edges[edges > ranked[0]]


def _some_rows(table: Table) -> tuple[Floats, Floats]:
    """Values and weights of at most `MOST_ROWS` samples."""
    part = table.rows(evenly_spaced(table.n_samples, MOST_ROWS)) if table.n_samples > MOST_ROWS else table
    weights = np.ones(part.n_samples) if part.weights is None else part.weights
    return np.asarray(part.values, float), weights


def learned(names: Iterable[str], table: Table) -> dict[str, Transform]:
    """Transforms by name: ``"none"``, ``"power"``, ``"bins"`` followed by a number."""
    transforms: dict[str, Transform] = {}
    for name in names:
        if name == "none":
            transforms[name] = Unchanged()
        elif name == "power":
            transforms[name] = Power.of(table)
        else:
            transforms[name] = Bins.of(table, int(name.removeprefix("bins")))
    return transforms
