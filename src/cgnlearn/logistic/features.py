"""Features of a structure: what the log odds between the classes of its network are linear in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns
from cgnlearn.data.table import Table
from cgnlearn.logistic.design import Features
from cgnlearn.networks.layout import Cells, Partition
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values


def features_of(network: Network, table: Table) -> Features:
    """All features of some samples.

    Of continuous families the columns themselves and, where the classes do not share their variances, the squares
    and the products of those that stand together in a family; all apart for every configuration of the discrete
    parents. Of discrete families an indicator for every level and configuration. Columns are centred and in
    standard units, so that scaling or shifting one changes nothing. A product belongs to the later column, a
    parent always being earlier.
    """
    return Features.joined(list(_parts(network, table)), table.n_samples)


def _parts(network: Network, table: Table) -> Iterator[Features]:
    layout = network.statistics.layout
    filled = replace(table, codes=np.maximum(table.codes, 0))
    for family in layout.discrete:
        seen = family.cells.observed(table) & (table.codes[:, family.code] >= 0)
        code = family.cells.index(filled) * family.n_levels + table.codes[:, family.code]
        yield _indicators(code, seen, family.cells.n * family.n_levels, family.column)
    for cells in _joint_cells(network):
        yield _indicators(cells.index(filled), cells.observed(table), cells.n, cells.columns[-1])
    order = {column: place for place, column in enumerate(network.structure.nodes)}
    for partition, posterior in zip(layout.partitions, network.posteriors, strict=True):
        kept, pairs = _own(partition)
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


def _joint_cells(network: Network) -> Iterator[Cells]:
    """The configurations by which continuous families are cut and that no discrete family tells apart."""
    layout = network.statistics.layout
    told = [{family.column, *family.cells.columns} for family in layout.discrete]
    for partition in layout.partitions:
        cut = set(partition.cells.columns)
        if cut and not any(cut <= columns for columns in told):
            yield partition.cells


def _own(partition: Partition) -> tuple[Columns, Columns]:
    """Columns and pairs, by their places, that are features of no other partition: of families that lie apart, uncut,
    the child and its products, else all.
    """
    if not partition.separate or partition.cells.columns:
        return np.arange(partition.n_features), np.arange(len(partition.pairs))
    children = partition.blocks[:, -1]
    theirs = np.isin(partition.pairs.first, children) | np.isin(partition.pairs.second, children)
    return children, np.flatnonzero(theirs)


def _indicators(code: Columns, seen: NDArray[np.bool_], n: int, owner: int) -> Features:
    found = (code[:, None] == np.arange(n)).astype(float)
    return Features(np.full(n, owner, np.intp), np.where(seen[:, None], found, np.nan))
