"""Densities of samples with missing values.

A missing feature without observed descendants is ignored. Of the others, continuous ones are integrated out of the
joint distribution that the network implies (`cgnlearn.networks.implied`), and discrete ones are summed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.components import Component, Mask
from cgnlearn.networks.implied import Node

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

CHUNK = 1 << 22  # densities that are held at once


@dataclass(frozen=True, eq=False)
class Integration:
    """Log densities of samples with missing values under a network."""

    network: Network

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The continuous features that are not absent, by column."""
        nodes = {}
        layout = self.network.statistics.layout
        for partition, posterior in zip(layout.partitions, self.network.posteriors, strict=True):
            for kept in (kept for stack in partition.stacks for kept in stack.without(posterior.absent)):
                for members in kept.members:
                    for j in range(kept.n_given, kept.size):
                        own, given = int(members[j]), members[:j]
                        columns = tuple(partition.columns[given].tolist())
                        column, value = int(partition.columns[own]), int(partition.values[own])
                        nodes[column] = Node(column, value, posterior, columns, given, own, partition.cells)
        return nodes

    @cached_property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """The parents of every feature in the model, without absent features."""
        levels, nodes = self.network.statistics.schema.levels, self.nodes
        return {
            child: parents if levels[child] is not None else (*nodes[child].cells.columns, *nodes[child].parents)
            for child, parents in self.network.structure.families
            if levels[child] is not None or child in nodes
        }

    @cached_property
    def components(self) -> list[Component]:
        """Connected features, except those without parents and children."""
        root = {child: child for child in self.parents}

        def top(node: int) -> int:
            while root[node] != node:
                root[node] = node = root[root[node]]
            return node

        for child, parents in self.parents.items():
            for parent in parents:
                root[top(parent)] = top(child)
        by_root: dict[int, list[int]] = {}
        for child in self.parents:
            by_root.setdefault(top(child), []).append(child)
        return [
            Component(self.network, columns, self.parents, self.nodes)
            for columns in by_root.values()
            if len(columns) > 1
        ]

    def contributions(self, table: Table) -> Floats:
        """Log density of each feature given the observed ones before it: (samples, columns of X, classes)."""
        return self._by_column(table, range(len(self.network.solvers)))

    def log_likelihood(self, table: Table) -> Floats:
        """Log densities, summed over the features: (samples, classes)."""
        incomplete = self._summed_with(table) | set(table.incomplete)
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        touched = []
        for i, partition in enumerate(self.network.statistics.layout.partitions):
            if incomplete.isdisjoint((*partition.columns.tolist(), *partition.cells.columns)):
                total += self.network.solvers[i].log_likelihood(table)
            else:
                touched.append(i)
        step = max(1, CHUNK // (table.schema.n_classes * table.schema.n_columns))
        for start in range(0, table.n_samples, step):
            rows = np.arange(start, min(start + step, table.n_samples))
            total[rows] += self._by_column(table.rows(rows), touched).sum(axis=1)
        return total

    def _summed_with(self, table: Table) -> set[int]:
        """Columns whose densities are computed together with a sum over a missing discrete feature."""
        levels, incomplete = table.schema.levels, set(table.incomplete)
        return {
            column
            for component in self.components
            if any(other in incomplete and levels[other] is not None for other in component.columns)
            for column in component.columns
        }

    def affected(self, table: Table) -> NDArray[np.intp]:
        """The samples in which an observed feature has a missing parent."""
        observed = observed_cells(table)
        return np.flatnonzero((observed & ~self._whole(observed)).any(axis=1))

    def _whole(self, observed: Mask) -> Mask:
        """Whether a feature and all its parents are observed: (samples, columns of X)."""
        by_column = np.ascontiguousarray(observed.T)
        whole = by_column.copy()
        incomplete = np.asarray(~by_column.all(axis=1))
        for child, parents in self.parents.items():
            for parent in parents:
                if incomplete[parent]:
                    whole[child] &= by_column[parent]
        return whole.T

    def _by_column(self, table: Table, solvers: Sequence[int]) -> Floats:
        """Log densities of the discrete features and of those of some solvers: (samples, columns of X, classes)."""
        network, schema = self.network, table.schema
        by_column = np.zeros((table.n_samples, schema.n_columns, schema.n_classes))
        observed = observed_cells(table)
        whole = self._whole(observed)
        filled = replace(table, codes=np.maximum(table.codes, 0))
        for column, log_density in network.discrete_log_densities(filled):
            by_column[:, column] = np.where(whole[:, column, None], log_density, 0.0)
        incomplete = observed & ~whole
        affected = [np.flatnonzero(incomplete[:, component.columns].any(axis=1)) for component in self.components]
        alone = {component.partition: i for i, component in enumerate(self.components)}
        for i in solvers:
            kept, seen, into = filled, whole, by_column
            if i in alone and len(affected[alone[i]]):  # these samples are integrated below, all features at once
                rows = np.setdiff1d(np.arange(table.n_samples), affected[alone[i]])
                kept, seen, into = filled.rows(rows), whole[rows], by_column[rows]
            for part in network.solvers[i].terms(kept):
                of_class = into[part.rows, :, part.label]
                log_density = network.estimation.log_density(part).T
                of_class[:, part.columns] = np.where(seen[part.rows][:, part.columns], log_density, 0.0)
                into[part.rows, :, part.label] = of_class
            if into is not by_column:
                by_column[rows] = into
        for component, rows in zip(self.components, affected, strict=True):
            if len(rows):
                component.integrate(table, rows, observed[:, component.columns], by_column)
        return by_column


def observed_cells(table: Table) -> Mask:
    """Whether each value is observed: (samples, columns of X)."""
    observed = np.ones((table.n_samples, table.schema.n_columns), bool)
    observed[:, table.schema.continuous] = ~np.isnan(table.values)
    observed[:, table.schema.discrete] = table.codes >= 0
    return observed
