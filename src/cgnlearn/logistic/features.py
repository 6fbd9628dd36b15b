"""Features of logistic regressions: of a network's structure, and of the columns themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels.limits import FARTHEST
from cgnlearn.logistic.design import Features, centred
from cgnlearn.networks.layout import Cells, Partition
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values


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

    def __call__(self, table: Table) -> Features:
        """Features of samples."""
        continuous = np.array(table.schema.continuous, np.intp)
        with np.errstate(over="ignore"):
            values = (np.asarray(table.values, float) - self.mean) / self.deviation
        values = np.clip(values, -FARTHEST, FARTHEST)
        indicators = [
            _indicators(codes, codes >= 0, len(table.schema.levels_of(column)), column)
            for column, codes in zip(table.schema.discrete, table.codes.T, strict=True)
        ]
        if self.edges is not None:
            steps = []
            for column, edges, known in zip(table.schema.continuous, self.edges, table.values.T, strict=True):
                reached = np.where(np.isnan(known)[:, None], np.nan, known[:, None] >= edges)
                steps.append(Features(np.full(len(edges), column), reached))
            return Features.joined([*steps, *indicators], table.n_samples)
        parts = [Features(continuous, values), *indicators]
        if self.terms == "linear":
            return Features.joined(parts, table.n_samples)
        clipped = Features(continuous, np.clip(values, self.least, self.most))
        parts.append(Features(continuous, np.square(clipped.values)))
        if self.terms != "squares":
            paired = [clipped, *indicators] if self.terms == "pairs" else [clipped]
            owner, values = Features.joined(paired, table.n_samples)
            first, second = np.tril_indices(len(owner), -1)
            differs = owner[first] != owner[second]  # the product of two levels of one column is 0
            first, second = first[differs], second[differs]
            parts.append(Features(owner[first], values[:, first] * values[:, second]))
        return Features.joined(parts, table.n_samples)


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
