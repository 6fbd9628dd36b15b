"""Samples with missing values: what is missing is integrated out.

A feature on which nothing observed depends leaves no trace. Of the others, the continuous ones are integrated out of
the joint distribution that the network implies (`cgnlearn.networks.implied`), and the discrete ones are summed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.components import Component, Mask, Whole
from cgnlearn.networks.implied import Node

CHUNK = 1 << 22  # densities that are held at once


@dataclass(frozen=True, eq=False)
class Integration:
    """What a network says of samples with missing values."""

    network: Whole

    # ---- what there is to integrate over

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The continuous features that are not absent, by their columns."""
        found = {}
        layout = self.network.statistics.layout
        for partition, posterior in zip(layout.partitions, self.network.posteriors, strict=True):
            there = ~posterior.absent
            for stack in partition.stacks:
                for members in stack.members:
                    for j in range(stack.n_given, stack.size):
                        if there[members[j]]:
                            given = members[:j][there[members[:j]]]
                            columns = tuple(partition.columns[given].tolist())
                            column, value = int(partition.columns[members[j]]), int(partition.values[members[j]])
                            found[column] = Node(column, value, posterior, columns, given, int(members[j]))
        return found

    @cached_property
    def cuts(self) -> dict[int, tuple[int, ...]]:
        """The discrete parents of every feature in the model."""
        schema = self.network.statistics.schema
        return {
            child: tuple(parent for parent in parents if schema.levels[parent] is not None)
            for child, parents in self.network.structure.families
            if schema.levels[child] is not None or child in self.nodes
        }

    @cached_property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """All parents of every feature in the model."""
        return {
            child: (*cut, *(self.nodes[child].parents if child in self.nodes else ()))
            for child, cut in self.cuts.items()
        }

    @cached_property
    def components(self) -> list[Component]:
        """Features that hang together, of those that have parents or children."""
        root = {child: child for child in self.parents}

        def top(node: int) -> int:
            while root[node] != node:
                root[node] = node = root[root[node]]
            return node

        for child, parents in self.parents.items():
            for parent in parents:
                root[top(parent)] = top(child)
        found: dict[int, list[int]] = {}
        for child in self.parents:
            found.setdefault(top(child), []).append(child)
        return [
            Component(self.network, columns, self.parents, self.cuts, self.nodes)
            for columns in found.values()
            if len(columns) > 1
        ]

    # ---- densities

    def contributions(self, table: Table) -> Floats:
        """Every feature's log density given what is observed before it: (samples, columns of X, classes)."""
        return self._by_column(table, range(len(self.network.solvers)))

    def log_likelihood(self, table: Table) -> Floats:
        """The same, summed over the features: (samples, classes)."""
        incomplete = set(table.incomplete)
        partitions = self.network.statistics.layout.partitions
        touched = [
            i
            for i, partition in enumerate(partitions)
            if not incomplete.isdisjoint((*partition.columns.tolist(), *partition.cells.columns))
        ]
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        for i, solver in enumerate(self.network.solvers):
            if i not in touched:
                total += solver.log_likelihood(table)
        step = max(1, CHUNK // (table.schema.n_classes * table.schema.n_columns))
        for start in range(0, table.n_samples, step):
            rows = np.arange(start, min(start + step, table.n_samples))
            total[rows] += self._by_column(table.rows(rows), touched).sum(axis=1)
        return total

    def affected(self, table: Table) -> NDArray[np.intp]:
        """The samples in which an observed feature has a missing parent."""
        observed = observed_cells(table)
        return np.flatnonzero((observed & ~self._whole(observed)).any(axis=1))

    def _whole(self, observed: Mask) -> Mask:
        """Of which features all of the family is observed: (samples, columns of X)."""
        by_column = np.ascontiguousarray(observed.T)
        whole = by_column.copy()
        incomplete = np.asarray(~by_column.all(axis=1))
        for child, parents in self.parents.items():
            for parent in parents:
                if incomplete[parent]:
                    whole[child] &= by_column[parent]
        return whole.T

    def _by_column(self, table: Table, solvers: Sequence[int]) -> Floats:
        """The log densities of the discrete features and of those of some solvers."""
        network, schema = self.network, table.schema
        by_column = np.zeros((table.n_samples, schema.n_columns, schema.n_classes))
        observed = observed_cells(table)
        whole = self._whole(observed)
        filled = replace(table, codes=np.maximum(table.codes, 0))
        for column, found in network.discrete_log_densities(filled):
            by_column[:, column] = np.where(whole[:, column, None], found, 0.0)
        incomplete = observed & ~whole
        affected = [np.flatnonzero(incomplete[:, component.columns].any(axis=1)) for component in self.components]
        alone = {component.partition: i for i, component in enumerate(self.components)}
        for i in solvers:
            kept, seen, into = filled, whole, by_column
            if i in alone and len(affected[alone[i]]):  # those are done below, and all at once
                rows = np.setdiff1d(np.arange(table.n_samples), affected[alone[i]])
                kept, seen, into = filled.rows(rows), whole[rows], by_column[rows]
            for part in network.solvers[i].terms(kept):
                of_class = into[part.rows, :, part.label]
                found = network.estimation.log_density(part).T
                of_class[:, part.columns] = np.where(seen[part.rows][:, part.columns], found, 0.0)
                into[part.rows, :, part.label] = of_class
            if into is not by_column:
                by_column[rows] = into
        for component, rows in zip(self.components, affected, strict=True):
            if len(rows):
                component.integrate(table, rows, observed[:, component.columns], by_column)
        return by_column


def observed_cells(table: Table) -> Mask:
    """What is observed: (samples, columns of X)."""
    observed = np.ones((table.n_samples, table.schema.n_columns), bool)
    observed[:, table.schema.continuous] = ~np.isnan(table.values)
    observed[:, table.schema.discrete] = table.codes >= 0
    return observed
