"""Features of logistic regressions: of a network's structure, and of the columns themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.data.transforms import FEW, edges_passed, edges_reached
from cgnlearn.kernels.limits import FARTHEST
from cgnlearn.logistic.design import Features, LinearOdds, centred
from cgnlearn.networks.layout import Cells, Partition
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values

ONE_THREAD = 1 << 18  # multiplications of a product of matrices below which threads take longer than they save
LEAST_ROWS = 64  # of a matrix at once


@dataclass(frozen=True, eq=False)
class Expansion:
    """Features of the columns.

    Terms are ``"linear"``: the columns and an indicator for every level; ``"squares"``: also their squares;
    ``"products"``: also the products of two continuous columns; ``"pairs"``: also those of any two, indicators
    included; ``"steps"``: instead of the continuous columns, indicators of values at or above edges.
    Values in squares and products are clipped to the range of the training data, outside of which they would dominate.
    """

    terms: str
    mean: Floats  # (continuous columns,), as the following
    deviation: Floats
    least: Floats  # in standard units
    most: Floats
    edges: tuple[Floats, ...] | None

    @classmethod
    def of(cls, table: Table, terms: str, edges: tuple[Floats, ...] | None = None) -> Expansion:
        """Learn from training samples; ``"steps"`` needs the ``edges`` of every continuous column."""
        values = np.array(table.values, float)
        mean, deviation = centred(values, table.weights)
        values /= deviation  # 0 for a constant column
        return cls(terms, mean, deviation, values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0), edges)

    def _standard(self, table: Table) -> Floats:
        """Continuous columns in standard units."""
        with np.errstate(over="ignore"):
            values = np.subtract(table.values, self.mean, dtype=float)
            values /= self.deviation
        return np.clip(values, -FARTHEST, FARTHEST, out=values)

    def __call__(self, table: Table) -> Features:
        """Features of samples."""
        continuous = np.array(table.schema.continuous, np.intp)
        values = self._standard(table)
        indicators = _levels(table)
        if self.edges is not None:
            counts = list(map(len, self.edges))
            missing = np.repeat(np.isnan(table.values), counts, axis=1)
            reached = np.where(missing, np.nan, edges_passed(table.values, self.edges))
            return Features.joined([Features(np.repeat(continuous, counts), reached), *indicators], table.n_samples)
        parts = [Features(continuous, values), *indicators]
        if self.terms == "linear":
            return Features.joined(parts, table.n_samples)
        clipped = Features(continuous, np.clip(values, self.least, self.most))
        parts.append(Features(continuous, np.square(clipped.values)))
        if self.terms != "squares":
            paired = [clipped, *indicators] if self.terms == "pairs" else [clipped]
            owner, values = Features.joined(paired, table.n_samples)
            first, second = _products(owner)
            products = np.empty((table.n_samples, len(first)))
            for one, (start, stop) in enumerate(pairwise(np.searchsorted(first, np.arange(len(owner) + 1)))):
                np.multiply(values[:, [one]], values[:, second[start:stop]], out=products[:, start:stop])
            parts.append(Features(owner[first], products))
        return Features.joined(parts, table.n_samples)

    def log_odds(self, odds: LinearOdds, table: Table) -> Floats:
        """`LinearOdds.log_odds` of the features: (penalties, samples, classes).

        Squares and products of complete samples are never written out: they are quadratic forms, and steps are looked
        up, which takes a tenth of the time.
        """
        if not table.incomplete:
            return self._of_complete(odds, table)
        found = np.empty((len(odds.intercept), table.n_samples, odds.intercept.shape[1]))
        complete = ~(np.isnan(table.values).any(axis=1) | (table.codes < 0).any(axis=1))
        for rows, log_odds in ((complete, self._of_complete), (~complete, self._of_incomplete)):
            if len(which := np.flatnonzero(rows)):
                found[:, which] = log_odds(odds, table.rows(which))
        return found

    def _of_incomplete(self, odds: LinearOdds, table: Table) -> Floats:
        return odds.log_odds(self, table)

    def _of_complete(self, odds: LinearOdds, table: Table) -> Floats:
        n_penalties, n_features, n_classes = odds.slopes.shape
        slopes = odds.slopes.transpose(1, 0, 2).reshape(n_features, -1)
        found = np.tile(odds.intercept.ravel() - odds.centre @ slopes, (table.n_samples, 1))
        size, levels = len(self.mean), [len(table.schema.levels_of(column)) for column in table.schema.discrete]
        if self.edges is not None:
            used = sum(map(len, self.edges))
            if table.n_samples <= FEW:
                found += edges_passed(table.values, self.edges) @ slopes[:used]
            else:
                found += _looked_up(table.values, self.edges, slopes[:used])
        else:
            values = self._standard(table)
            found += _product(values, slopes[:size])
            used = size
        for codes, n_levels in zip(table.codes.T, levels, strict=True):
            found += slopes[used + codes]
            used += n_levels
        if used < n_features:
            found += self._quadratic(np.clip(values, self.least, self.most), table, slopes[used:])
        return found.reshape(table.n_samples, n_penalties, n_classes).transpose(1, 0, 2)

    def _quadratic(self, clipped: Floats, table: Table, slopes: Floats) -> Floats:
        """The share of squares and products in log odds, of complete samples: (samples, slopes of a feature)."""
        if self.terms == "squares":
            return _product(np.square(clipped), slopes)
        n_squares = clipped.shape[1]
        owner, values = np.array(table.schema.continuous, np.intp), clipped
        if self.terms == "pairs":
            owner, values = Features.joined([Features(owner, clipped), *_levels(table)], table.n_samples)
        form = np.zeros((slopes.shape[1], len(owner), len(owner)))
        squares = np.arange(n_squares)
        form[:, squares, squares] = slopes[:n_squares].T
        form[:, *_products(owner)] = slopes[n_squares:].T
        return np.stack([np.einsum("sf,sf->s", _product(values, of_one), values) for of_one in form], axis=1)


def _looked_up(values: Floats, edges: tuple[Floats, ...], slopes: Floats) -> Floats:
    """Product of `edges_passed` with the slopes, without writing it out: (samples, slopes of a feature)."""
    found, start = np.zeros((len(values), slopes.shape[1])), 0
    for own, reached in zip(edges, edges_reached(values, edges).T, strict=True):
        sums = np.zeros((len(own) + 1, slopes.shape[1]))
        np.cumsum(slopes[start : start + len(own)], axis=0, out=sums[1:])
        found += sums[reached]
        start += len(own)
    return found


def _product(values: Floats, right: Floats) -> Floats:
    """Product of matrices of many rows and few columns, in parts that BLAS keeps in one thread and the cache."""
    found = np.empty((len(values), right.shape[1]))
    step = max(LEAST_ROWS, ONE_THREAD // max(1, right.size))
    for start in range(0, len(values), step):
        np.matmul(values[start : start + step], right, out=found[start : start + step])
    return found


def _levels(table: Table) -> list[Features]:
    """An indicator of every level of the discrete columns."""
    return [
        _indicators(codes, codes >= 0, len(table.schema.levels_of(column)), column)
        for column, codes in zip(table.schema.discrete, table.codes.T, strict=True)
    ]


def _products(owner: Columns) -> tuple[Columns, Columns]:
    """The factors of all products of features, given their columns of X."""
    first, second = _below_diagonal(len(owner))
    differs = owner[first] != owner[second]  # the product of two levels of one column is 0
    return first[differs], second[differs]


@lru_cache
def _below_diagonal(n: int) -> tuple[Columns, Columns]:
    """Indexes of the pairs of ``n`` features, which take longer to list than the products of one sample."""
    return np.tril_indices(n, -1)


def features_of(network: Network, table: Table) -> Features:
    """Features of samples in which the log odds between the classes of a network are linear.

    Continuous families have the columns and, unless the classes share their variances, the squares and the products of
    columns of one family, separately for every configuration of the discrete parents. Discrete families have an
    indicator for every level and configuration. Columns are centred and in standard units, so that scaling or shifting
    one changes nothing. A product belongs to the later column; parents are always earlier.
    """
    return Features.joined(list(_parts(network, table)), table.n_samples)


def _parts(network: Network, table: Table) -> Iterator[Features]:
    layout = network.statistics.layout
    filled = replace(table, codes=np.maximum(table.codes, 0))
    for family in layout.discrete:
        seen = family.cells.observed(table) & (table.codes[:, family.code] >= 0)
        code = family.cells.index(filled) * family.n_levels + table.codes[:, family.code]
        yield _indicators(code, seen, family.cells.n * family.n_levels, family.column)
    for cells in joint_cells(network):
        yield _indicators(cells.index(filled), cells.observed(table), cells.n, cells.columns[-1])
    order = {column: place for place, column in enumerate(network.structure.nodes)}
    for partition, posterior in zip(layout.partitions, network.posteriors, strict=True):
        kept, pairs = own_features(partition)
        owner, columns = partition.columns[kept], partition.columns
        every = standard_values(table, slice(0, table.n_samples), partition.values, posterior.units).T
        every -= posterior.overall
        values = every[:, kept]
        if network.estimation.sharing < 1:
            first, second = partition.pairs.first[pairs], partition.pairs.second[pairs]
            place = np.array([order[column] for column in columns.tolist()], np.intp)
            later = np.where(place[first] > place[second], first, second)
            owner = np.concatenate([owner, columns[later]])
            values = np.concatenate([values, every[:, first] * every[:, second]], axis=1)
        if partition.cells.n == 1:
            yield Features(owner, values)
            continue
        configuration = partition.cells.index(filled)[:, None]
        seen = partition.cells.observed(table)[:, None]
        for which in range(partition.cells.n):
            found = np.where(configuration == which, values, np.where(np.isnan(values), np.nan, 0.0))
            yield Features(owner, np.where(seen, found, np.nan))


def joint_cells(network: Network) -> Iterator[Cells]:
    """Configurations of continuous families that no discrete family distinguishes."""
    layout = network.statistics.layout
    distinguished = [{family.column, *family.cells.columns} for family in layout.discrete]
    for partition in layout.partitions:
        parents = set(partition.cells.columns)
        if parents and not any(parents <= columns for columns in distinguished):
            yield partition.cells


def own_features(partition: Partition) -> tuple[Columns, Columns]:
    """Positions of the columns and pairs that are features of no other partition.

    These are the children and their products for families that are counted separately without cells, else all.
    """
    if not partition.separate or partition.cells.columns:
        return np.arange(partition.n_features), np.arange(len(partition.pairs))
    children = partition.blocks[:, -1]
    theirs = np.isin(partition.pairs.first, children) | np.isin(partition.pairs.second, children)
    return children, np.flatnonzero(theirs)


def _indicators(code: Columns, seen: NDArray[np.bool_], n: int, owner: int) -> Features:
    """An indicator of every code."""
    found = (code[:, None] == np.arange(n)).astype(float)
    return Features(np.full(n, owner, np.intp), np.where(seen[:, None], found, np.nan))
