"""Transforms of the columns of a table, learned without the classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.schema import Schema
from cgnlearn.data.splits import stratified_sample
from cgnlearn.data.table import Table
from cgnlearn.kernels.limits import FARTHEST

LARGEST = 300.0  # exponent of a transformed value, whose square does not overflow
POWERS = (-4.0, 6.0)  # the range of Yeo-Johnson powers
GOLDEN = (np.sqrt(5) - 1) / 2
N_STEPS = 20  # of a golden section search: the power is then known to 1e-3
MOST_ROWS = 2000  # samples from which powers and quantiles are learned
PIECE = 1 << 15  # values that are transformed at once: a quarter of a megabyte
FEW = 64  # samples whose bins are found for all columns at once
FLAT = 1e-8  # exponents below it are 0
ROUNDED = 1e-12  # of the squared mean: a smaller variance may be rounding


class Transform(Protocol):
    """A transform of tables."""

    def __call__(self, table: Table) -> Table:
        """The samples, transformed."""

    def inverse(self, table: Table) -> Table:
        """The samples whose transforms these are."""

    def log_jacobian(self, table: Table) -> Floats | None:
        """ln |dy/dx| of every value: (samples, continuous columns); None where densities cannot be compared."""


@dataclass(frozen=True)
class Unchanged:
    """The identity."""

    def __call__(self, table: Table) -> Table:
        return table

    def inverse(self, table: Table) -> Table:
        return table

    def log_jacobian(self, table: Table) -> Floats | None:
        return np.zeros((table.n_samples, len(table.schema.continuous)))


@dataclass(frozen=True, eq=False)
class Power:
    """Power transform of Yeo and Johnson (2000) of each continuous column, by normal maximum likelihood.

    It depends on origin and unit, which are the column's median and interquartile range: neither a shift nor another
    unit of the column changes anything.
    """

    origin: Floats  # (continuous columns,), as the following
    unit: Floats
    powers: Floats

    @classmethod
    def of(cls, table: Table) -> Power:
        """Powers by golden section search."""
        from cgnlearn.kernels.compilation import in_threads

        values, weights = _some_rows(table)
        origin, unit = _origin_and_unit(values, weights)
        values = _standard(values, origin, unit)
        step = max(1, PIECE // max(1, len(values)))
        parts = [values[:, start : start + step] for start in range(0, values.shape[1], step)]
        powers = np.concatenate([np.zeros(0), *in_threads(lambda part: cls._powers(part, weights), parts)])
        return cls(origin, unit, powers)

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
            part = _standard(values[rows], self.origin, self.unit)
            moved[rows] = _moved(np.log1p(np.abs(part)), part >= 0, self.powers)

        step = max(1, PIECE // max(1, values.shape[1]))
        in_threads(fill, [slice(start, start + step) for start in range(0, len(values), step)])
        return replace(table, values=moved)

    def inverse(self, table: Table) -> Table:
        positive = table.values >= 0
        exponent = np.where(positive, self.powers, 2 - self.powers)
        flat = np.abs(exponent) < FLAT
        exponent = np.where(flat, 1.0, exponent)
        # Values without an inverse are beyond the greatest that a bounded transform has.
        least = np.finfo(float).eps - 1
        logs = np.log1p(np.maximum(exponent * np.abs(table.values), least)) / exponent
        logs = np.minimum(np.where(flat, np.abs(table.values), logs), LARGEST)
        return replace(table, values=self.origin + self.unit * np.where(positive, 1.0, -1.0) * np.expm1(logs))

    def log_jacobian(self, table: Table) -> Floats | None:
        values = _standard(np.asarray(table.values, float), self.origin, self.unit)
        log_jacobian: Floats = (self.powers - 1) * np.sign(values) * np.log1p(np.abs(values)) - np.log(self.unit)
        return np.where(np.isnan(log_jacobian), 0.0, log_jacobian)


def _origin_and_unit(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Median and interquartile range of each column; instead of a range of 0 the root mean square deviation, or 1."""
    order = np.argsort(values, axis=0)  # missing values last
    ranked = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(np.where(np.isnan(ranked), 0.0, weights[order]), axis=0)

    def quantile(share: float) -> Floats:
        """The mean of the values at which the share is reached and passed, which are two if it falls between them."""
        wanted = share * below[-1]
        rounding = 1e-12 * below[-1]
        places = [(below < wanted - rounding).sum(axis=0), (below <= wanted + rounding).sum(axis=0)]
        reached, passed = (ranked[np.minimum(place, len(ranked) - 1), np.arange(ranked.shape[1])] for place in places)
        return np.asarray(reached / 2 + passed / 2)

    if not len(values):
        return np.zeros(values.shape[1]), np.ones(values.shape[1])
    origin, unit = quantile(0.5), quantile(0.75) - quantile(0.25)
    with np.errstate(over="ignore", invalid="ignore"):
        away = np.abs(values - origin)
        farthest = np.fmax.reduce(away, axis=0)
        of_farthest = np.square(away / np.where(farthest > 0, farthest, 1.0))
        deviation = farthest * np.sqrt(np.nansum(weights[:, None] * of_farthest, axis=0) / below[-1])
    unit = np.where(unit > 0, unit, deviation)
    usable = np.isfinite(unit) & (unit > np.finfo(float).tiny)
    return np.where(np.isfinite(origin), origin, 0.0), np.where(usable, unit, 1.0)


def _standard(values: Floats, origin: Floats, unit: Floats) -> Floats:
    """Values from an origin in a unit, clipped where they would overflow."""
    with np.errstate(over="ignore"):
        return np.clip((values - origin) / unit, -FARTHEST, FARTHEST)


def _moved(logs: Floats, positive: NDArray[np.bool_], power: Floats) -> Floats:
    """Transformed values from ln(1 + |x|) and the sign of x; values far outside of the training data are clipped."""
    exponent = np.where(positive, power, 2 - power)
    flat = np.abs(exponent) < FLAT
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
        for column, edges in zip(schema.continuous, self.edges, strict=True):
            levels[column] = tuple(range(len(edges) + 1))
        codes[:, schema.continuous] = np.where(np.isnan(table.values), MISSING, edges_reached(table.values, self.edges))
        binned = Schema(schema.names, tuple(levels), schema.classes, schema.frame)
        return replace(table, schema=binned, values=np.empty((table.n_samples, 0)), codes=codes)

    def inverse(self, table: Table) -> Table:
        raise NotImplementedError("a bin does not tell its values")

    def log_jacobian(self, table: Table) -> Floats | None:
        return None  # probabilities of bins are not densities


def edges_reached(values: Floats, edges: Sequence[Floats]) -> NDArray[np.intp]:
    """Number of a column's edges that are at most a value: (samples, columns); 0 of a missing value.

    >>> edges_reached(np.array([[0.5, 3.0], [1.0, 3.0], [7.0, 4.0]]), [np.array([1.0, 2.0]), np.array([4.0])])
    array([[0, 0],
           [1, 0],
           [2, 1]])
    """
    found = np.zeros(values.shape, np.intp)
    if len(values) <= FEW:
        ends = np.cumsum([len(own) for own in edges], dtype=np.intp)
        passed = np.zeros((len(values), 1 + sum(map(len, edges))), np.intp)
        np.cumsum(edges_passed(values, edges), axis=1, out=passed[:, 1:])
        found[:, 1:] = -passed[:, ends[:-1]]
        found += passed[:, ends]
        return found
    for column, own in enumerate(edges):
        known, reached = np.ascontiguousarray(values[:, column]), np.zeros(len(values), np.intp)
        for edge in own:  # they are few: faster than a search for each value
            reached += known >= edge
        found[:, column] = reached
    return found


def edges_passed(values: Floats, edges: Sequence[Floats]) -> NDArray[np.bool_]:
    """Whether each edge of each column is at most its value: (samples, edges of all columns)."""
    of_column = np.repeat(np.arange(len(edges)), [len(own) for own in edges])
    found: NDArray[np.bool_] = values[:, of_column] >= np.concatenate([np.zeros(0), *edges])
    return found


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
    assert table.labels is not None
    part = table.rows(stratified_sample(table.labels, MOST_ROWS)) if table.n_samples > MOST_ROWS else table
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
