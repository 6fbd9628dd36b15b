"""Moments of continuous features: weight, mean and centred scatter of every cell.

They are centred, because raw sums of squares lose all digits at a mean of 1e8 and unit variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from cgnlearn.data.arrays import Floats, rows_by_cell, take
from cgnlearn.data.table import Table
from cgnlearn.networks.layout import Cells, Pairs, Partition

CHUNK = 1 << 16  # numbers of one chunk of samples: half a megabyte, which stays in cache
ROWS_TO_A_COLUMN = 2  # of a chunk from which a full Gram matrix is computed
COMPILED_PAYS = 1 << 17  # multiplications; with fewer, loading compiled code takes longer than it saves
NEAR_ROWS = 64  # of a chunk, from which its mean is approximated
WINDOW = 64  # columns of one window of a band


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and centred scatter of every cell of a partition, on the needed pairs only."""

    pairs: Pairs
    n: Floats  # (configurations, classes), or, of blocks counted separately, (configurations, classes, features)
    mean: Floats  # measured from the origin: (configurations, classes, features)
    scatter: Floats  # (configurations, classes, pairs)
    origin: Floats  # close to the data, since a mean of 1e8 alone would keep few digits of the rest: (features,)

    @property
    def separate(self) -> bool:
        """Whether blocks are counted separately."""
        return self.n.ndim == self.mean.ndim

    def by_feature(self, of_cells: Floats) -> Floats:
        """An array in the shape of ``n``, to be broadcast with ``mean``."""
        return of_cells if self.separate else of_cells[..., None]

    def by_pair(self, of_cells: Floats) -> Floats:
        """An array in the shape of ``n``, to be broadcast with ``scatter``."""
        return np.take(of_cells, self.pairs.first, axis=-1) if self.separate else of_cells[..., None]

    def __add__(self, other: Moments) -> Moments:
        if not self.n.any():
            return other
        n = self.n + other.n
        share = other.n / np.where(n > 0, n, 1.0)
        origin = self.origin
        if self.separate:
            origin = np.where(self.n.any(axis=(0, 1)), self.origin, other.origin)
        # The difference of two origins is exact, or nearly exact, in floating point.
        theirs = other.mean + (other.origin - origin)
        if self.separate:
            theirs = np.where(other.n > 0, theirs, self.mean)  # a feature without samples has no origin
        some = self.by_feature(self.n) > 0
        step = np.where(some, theirs - self.mean, 0.0)
        return Moments(
            self.pairs,
            n,
            np.where(some, self.mean + step * self.by_feature(share), theirs),
            self.scatter + other.scatter + self.by_pair(self.n * share) * self.products(step),
            origin,
        )

    def __sub__(self, other: Moments) -> Moments:
        """The moments without some of the samples."""
        n = self.n - other.n
        n = np.where(n > 1e-9 * self.n, n, 0.0)  # the rest is rounding
        share = np.where(n > 0, other.n / np.where(n > 0, n, 1.0), 0.0)
        theirs = other.mean + (other.origin - self.origin)
        step = np.where(self.by_feature(other.n) > 0, theirs - self.mean, 0.0)
        scatter = self.scatter - other.scatter - self.by_pair(self.n * share) * self.products(step)
        scatter = np.where(self.by_pair(n) > 0, scatter, 0.0)
        return replace(self, n=n, mean=self.mean - step * self.by_feature(share), scatter=scatter)

    def __rmul__(self, weight: float) -> Moments:
        return replace(self, n=weight * self.n, scatter=weight * self.scatter)

    def recentred(self) -> Moments:
        """The moments measured from the cell mean nearest to the origin, which is no sample's value."""
        if not self.n.any():
            return self
        some = np.broadcast_to(self.by_feature(self.n) > 0, self.mean.shape).reshape(-1, self.mean.shape[-1])
        means = self.mean.reshape(some.shape)
        nearest = np.argmin(np.where(some, np.abs(means), np.inf), axis=0)
        origin = self.origin + np.where(some.any(axis=0), means[nearest, np.arange(len(nearest))], 0.0)
        mean = np.where(self.by_feature(self.n) > 0, self.mean - (origin - self.origin), 0.0)
        return replace(self, mean=mean, origin=origin)

    def products(self, vector: Floats) -> Floats:
        """v vᵀ on the pairs."""
        products: Floats = np.take(vector, self.pairs.first, axis=-1)
        products *= np.take(vector, self.pairs.second, axis=-1)
        return products

    def pooled(self, axis: int) -> Moments:
        """The moments of the cells along an axis (0: configurations, 1: classes) together."""
        n = self.n.sum(axis=axis, keepdims=True)
        total = (self.by_feature(self.n) * self.mean).sum(axis=axis, keepdims=True)
        mean = total / self.by_feature(np.where(n > 0, n, 1.0))
        between = self.by_pair(self.n) * self.products(self.mean - mean)
        return replace(self, n=n, mean=mean, scatter=(self.scatter + between).sum(axis=axis, keepdims=True))

    def marginal(self, cells: Cells, kept: Cells) -> Moments:
        """The moments of the configurations of fewer columns, ``kept``."""
        n_classes = self.n.shape[1]

        def reshaped(moments: Moments, n_before: int, *shape: int) -> Moments:
            n, mean, scatter = (
                part.reshape(*shape, n_classes, *part.shape[n_before + 1 :])
                for part in (moments.n, moments.mean, moments.scatter)
            )
            return replace(moments, n=n, mean=mean, scatter=scatter)

        by_level = reshaped(self, 1, *cells.levels)
        for axis, column in enumerate(cells.columns):
            if column not in kept.columns:
                by_level = by_level.pooled(axis)
        return reshaped(by_level, len(cells.levels), kept.n)

    def of_features(self, places: NDArray[np.intp], pairs: Pairs) -> Moments:
        """The moments of some features and pairs."""
        scatter = self.scatter[..., self.pairs.place(places[pairs.first], places[pairs.second])]
        n = self.n[..., places] if self.separate else self.n
        return Moments(pairs, n, self.mean[..., places], scatter, self.origin[places])

    def separated(self) -> Moments:
        """The moments in the form of blocks that are counted separately."""
        return self if self.separate else replace(self, n=np.repeat(self.n[..., None], self.mean.shape[-1], axis=-1))

    def overall(self) -> tuple[Floats, Floats]:
        """Mean (measured from the origin) and variance (divisor n) of every feature over all cells."""
        n = self.by_feature(self.n)
        total = np.maximum(n.sum(axis=(0, 1)), np.finfo(float).tiny) if self.separate else n.sum()
        mean = (n * self.mean).sum(axis=(0, 1)) / total
        with np.errstate(over="ignore"):
            within = self.scatter[..., : len(mean)].sum(axis=(0, 1))
            between = (n * (self.mean - mean) ** 2).sum(axis=(0, 1))
            return mean, (within + between) / total

    def constant(self) -> NDArray[np.bool_]:
        """Whether each feature has no variance, up to rounding."""
        mean, variance = self.overall()
        return np.sqrt(variance) <= 8 * np.finfo(float).eps * np.abs(self.origin + mean)

    def standardised(self, unit: Floats) -> Moments:
        """The moments of ``(y - origin) / unit``; an empty cell gets the mean over all cells."""
        mean = np.where(self.by_feature(self.n) > 0, self.mean, self.overall()[0])
        scatter = self.scatter / np.take(unit, self.pairs.first)
        scatter /= np.take(unit, self.pairs.second)
        return Moments(self.pairs, self.n, mean / unit, scatter, np.zeros_like(unit))


def moments_of(table: Table, partition: Partition, n_classes: int) -> Moments:
    """The moments of a labelled table, measured from a mean, so that they hold no sample's values."""
    with np.errstate(over="ignore", invalid="ignore"):  # `Units` raises an error on overflow
        return _moments_from_row(table, partition, n_classes).recentred()


def _moments_from_row(table: Table, partition: Partition, n_classes: int) -> Moments:
    """The moments of a labelled table, measured from a sample."""
    assert table.labels is not None
    if partition.separate:
        return _separate_moments(table, partition, n_classes)
    shape = (partition.cells.n, n_classes)
    m, pairs = partition.n_features, partition.pairs
    origin = _origin(table, partition.values)
    cell = partition.cells.index(table) * n_classes + table.labels
    if len(pairs) == m and table.n_samples * m >= COMPILED_PAYS:
        from cgnlearn.kernels.moments import diagonal_moments

        parts = diagonal_moments(table.values, partition.values, cell, table.weights, shape[0] * n_classes, origin)
        n, mean, scatter = (part.reshape(*shape, *part.shape[1:]) for part in parts)
        return Moments(pairs, n, mean, scatter, origin)
    n = np.zeros(shape)
    mean = np.zeros((*shape, m))
    scatter = np.zeros((*shape, len(pairs)))
    plan = _plan(pairs)
    size = CHUNK
    if isinstance(plan, _Windows):
        size = CHUNK << 6  # windows fit in cache by themselves
    elif plan is None:
        # Or the sum of the matrices would take as long as the products.
        size = min(max(CHUNK, ROWS_TO_A_COLUMN * m * m), CHUNK << 6)
    step = max(64, size // max(m, 1))

    def fill(of_cell: tuple[int, NDArray[np.intp]]) -> None:
        place, rows = of_cell
        chunks = (rows[start : start + step] for start in range(0, len(rows), step))
        total = reduce(add, (_chunk_moments(table, partition, origin, plan, chunk) for chunk in chunks))
        at = divmod(place, n_classes)
        n[at], mean[at], scatter[at] = total.n[0, 0], total.mean[0, 0], total.scatter[0, 0]

    cells = rows_by_cell(cell, shape[0] * n_classes)
    if isinstance(plan, _Windows) and table.n_samples * m >= COMPILED_PAYS:
        from cgnlearn.kernels.compilation import in_threads

        # Products as small as those of windows are slower in several threads; cells are not.
        with numeric_libraries().limit(limits=1, user_api="blas"):
            in_threads(fill, cells)
    else:
        for of_cell in cells:
            fill(of_cell)
    return Moments(pairs, n, mean, scatter, origin)


def _separate_moments(table: Table, partition: Partition, n_classes: int) -> Moments:
    """The moments of blocks, each of the samples in which all its members are observed."""
    assert table.labels is not None
    shape, pairs, blocks = (partition.cells.n, n_classes), partition.pairs, partition.blocks
    size = blocks.shape[1]
    kept = np.flatnonzero(partition.cells.observed(table))
    if table.weights is not None:
        kept = kept[table.weights[kept] > 0]
    table = table.rows(kept)
    assert table.labels is not None
    n = np.zeros((*shape, partition.n_features))
    mean = np.zeros_like(n)
    scatter = np.zeros((*shape, len(pairs)))
    origin = np.zeros(partition.n_features)
    if not table.n_samples:
        return Moments(pairs, n, mean, scatter, origin)
    cells = list(rows_by_cell(partition.cells.index(table) * n_classes + table.labels, shape[0] * n_classes))
    most = max(len(rows) for _, rows in cells)
    first, second = np.tril_indices(size)
    step = max(1, CHUNK // max(1, most * size))
    for members in (blocks[start : start + step] for start in range(0, len(blocks), step)):
        values = table.values[:, partition.values[members].T].astype(
            np.float64, copy=False
        )  # (samples, members, blocks)
        seen = np.asarray(~np.isnan(values).any(axis=1))  # (samples, blocks)
        here = np.argmax(seen, axis=0)
        of_block = np.where(seen.any(axis=0), values[here, :, np.arange(len(members))].T, 0.0)  # (members, blocks)
        origin[members] = of_block.T
        places = pairs.place(members[:, first], members[:, second])
        for place, rows in cells:
            at = divmod(place, n_classes)
            weight = seen[rows] * (1.0 if table.weights is None else table.weights[rows, None])  # (samples, blocks)
            total = weight.sum(axis=0)
            centred = np.where(seen[rows, None], values[rows] - of_block, 0.0)
            centre = np.einsum("rb,rmb->mb", weight, centred) / np.where(total > 0, total, 1.0)
            centred = (centred - centre).transpose(2, 1, 0)  # (blocks, members, samples)
            gram = (centred * weight.T[:, None]) @ centred.swapaxes(1, 2)
            n[at][members], mean[at][members] = total[:, None], centre.T
            scatter[at][places] = gram[:, first, second]
    return Moments(pairs, n, mean, scatter, origin)


def _origin(table: Table, columns: NDArray[np.intp]) -> Floats:
    """The first sample of positive weight, which is within √n standard deviations of the mean."""
    first = 0 if table.weights is None or not table.weights.any() else int(np.argmax(table.weights > 0))
    return table.values[first, columns].astype(np.float64) if table.n_samples else np.zeros(len(columns))


def _chunk_moments(table: Table, partition: Partition, origin: Floats, plan: Plan, rows: NDArray[np.intp]) -> Moments:
    """The moments of some samples of one cell."""
    columns, pairs = partition.values, partition.pairs
    weights = None if table.weights is None else table.weights[rows]
    n = float(len(rows) if weights is None else weights.sum())
    if n == 0:
        return Moments(pairs, np.zeros((1, 1)), np.zeros((1, 1, len(columns))), np.zeros((1, 1, len(pairs))), origin)
    # A point near the mean is enough: the rest, about an eighth of a standard deviation, is small beside the scatter
    # from which it is subtracted. Measured from a sample, a constant column is exact.
    some = take(table.values, rows[:: -(-len(rows) // NEAR_ROWS)], columns).astype(np.float64, copy=False)
    near = some[0] + (some - some[0]).mean(axis=0)
    centred = _centred(table.values, rows, columns, near)
    if weights is None:
        rest = np.ones(len(centred)) @ centred / n
        scatter = _scatter(centred, centred, pairs, plan) - n * rest[pairs.first] * rest[pairs.second]
    else:  # samples of great weight may be far from this point
        rest = weights @ centred / n
        centred -= rest
        scatter = _scatter(centred * weights[:, None], centred, pairs, plan)
    return Moments(pairs, np.full((1, 1), n), (near - origin + rest)[None, None], scatter[None, None], origin)


def _centred(values: NDArray[Any], rows: NDArray[np.intp], columns: NDArray[np.intp], near: Floats) -> Floats:
    """Samples and columns of a table, measured from a point."""
    by_column = abs(values.strides[0]) < abs(values.strides[1])
    if by_column and values.size >= COMPILED_PAYS:
        from cgnlearn.kernels.moments import centred_columns

        copied = np.empty((len(columns), len(rows)))
        centred_columns(values, rows, columns, near, copied)
        return copied.T
    centred: Floats = take(values, rows, columns).astype(np.float64, copy=False)
    centred -= near
    return centred


class _Windows(NamedTuple):
    """A plan for pairs of near columns: Gram matrices of overlapping windows."""

    reach: int  # the greatest distance
    bounds: NDArray[np.intp]  # where the pairs of each window begin
    places: NDArray[np.intp]  # positions of the pairs off the diagonal in the matrix of their window


Strides = list[NDArray[np.intp]]  # positions of the pairs of each distance
Plan = _Windows | Strides | None  # None: the Gram matrix of all columns


def _plan(pairs: Pairs) -> Plan:
    """The fastest plan for the products of these pairs of columns."""
    m = pairs.n
    n_pairs = len(pairs) - m  # off the diagonal
    if len(pairs) > max(m, m * m // 4):
        return None
    distance = pairs.second - pairs.first
    reach = int(distance.max(initial=0))
    if m * (reach + WINDOW) < 8 * n_pairs:  # a product costs less than an eighth inside a matrix product
        row = pairs.first[m:] & (WINDOW - 1)
        bounds = np.searchsorted(pairs.first[m:], np.arange(0, m + WINDOW, WINDOW)) + m
        # The last windows are narrower.
        width = np.minimum(WINDOW + reach, m - (pairs.first[m:] - row))
        return _Windows(reach, bounds, row * width + row + distance[m:])
    # In a narrow band the pairs of one distance are a few long slices, whose products are fast.
    order = np.argsort(distance, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(distance[order])) + 1)


def _scatter(weighted: Floats, centred: Floats, pairs: Pairs, plan: Plan) -> Floats:
    """Sums of products of the columns of each pair."""
    if plan is None:
        gram = weighted.T @ centred
        dense: Floats = gram[pairs.first, pairs.second]
        return dense
    scatter = np.empty(len(pairs))
    if isinstance(plan, _Windows):
        m = centred.shape[1]
        scatter[:m] = np.einsum("rp,rp->p", weighted, centred)
        windows = zip(range(0, m, WINDOW), plan.bounds[:-1], plan.bounds[1:], strict=True)
        for start, low, high in windows:
            gram = weighted[:, start : start + WINDOW].T @ centred[:, start : start + WINDOW + plan.reach]
            np.take(gram.ravel(), plan.places[low - m : high - m], out=scatter[low:high])
        return scatter
    every = slice(None)
    for places in plan:
        first, second = pairs.first[places], pairs.second[places]
        scatter[places] = np.einsum("rp,rp->p", take(weighted, every, first), take(centred, every, second))
    return scatter


@cache
def numeric_libraries() -> ThreadpoolController:
    """BLAS and similar libraries, whose threads can be limited."""
    return ThreadpoolController()
