"""Rows with holes: what is missing is integrated out.

An attribute on which nothing observed depends leaves no trace. Of the others, the continuous ones are integrated out of
the joint distribution that the network implies (`cgnlearn.model.implied`), and the discrete ones are summed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.model.densities import Floats
from cgnlearn.model.elimination import bits, plans, with_observed_descendants, without
from cgnlearn.model.estimation import Estimation, Posterior
from cgnlearn.model.implied import Implied, Node, Tasks
from cgnlearn.model.solver import Solver
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table

MOST_COMBINATIONS = 4096  # of the levels of missing attributes that are summed over
MOST_NODES = 2000  # whose joint distribution is held
FEW_NODES = 300  # of which all are taken, whatever is missing
ROWS = 1 << 14  # with one combination of levels each, that are held at once
CHUNK = 1 << 22  # densities that are held at once

Mask = NDArray[np.bool_]


class Whole(Protocol):
    """What is asked of a network, which says itself what it can of rows without holes."""

    @property
    def structure(self) -> Structure:
        """Over columns of X."""

    @property
    def statistics(self) -> Statistics:
        """Of the structure's families."""

    @property
    def how(self) -> Estimation:
        """How parameters are estimated."""

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """One for each partition of the statistics' layout."""

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """One for each partition."""

    def discrete_log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each discrete attribute with its log probabilities: (rows, classes)."""

    def contributions(self, table: Table) -> Floats:
        """The log densities kept apart: (rows, columns of X, classes)."""

    def restricted(self, structure: Structure) -> Whole:
        """The network of some of the families."""


@dataclass(frozen=True, eq=False)
class Integration:
    """What a network says of rows with holes."""

    network: Whole

    # ---- what there is to integrate over

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The continuous attributes that are not absent, by their columns."""
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
        """The discrete parents of every attribute in the model."""
        schema = self.network.statistics.schema
        return {
            child: tuple(parent for parent in parents if schema.levels[parent] is not None)
            for child, parents in self.network.structure.families
            if schema.levels[child] is not None or child in self.nodes
        }

    @cached_property
    def parents(self) -> dict[int, tuple[int, ...]]:
        """All parents of every attribute in the model."""
        return {
            child: (*cut, *(self.nodes[child].parents if child in self.nodes else ()))
            for child, cut in self.cuts.items()
        }

    @cached_property
    def components(self) -> list[Component]:
        """Attributes that hang together, of those that have parents or children."""
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
        return [Component(self, columns) for columns in found.values() if len(columns) > 1]

    # ---- densities

    def contributions(self, table: Table) -> Floats:
        """Every attribute's log density given what is observed before it: (rows, columns of X, classes)."""
        return self._apart(table, range(len(self.network.solvers)))

    def log_likelihood(self, table: Table) -> Floats:
        """The same, summed over the attributes: (rows, classes)."""
        holed = set(table.incomplete)
        partitions = self.network.statistics.layout.partitions
        touched = [
            i
            for i, partition in enumerate(partitions)
            if not holed.isdisjoint((*partition.columns.tolist(), *partition.cells.columns))
        ]
        total = np.zeros((table.schema.n_classes, table.n_rows)).T
        for i, solver in enumerate(self.network.solvers):
            if i not in touched:
                total += solver.log_likelihood(table)
        step = max(1, CHUNK // (table.schema.n_classes * table.schema.n_columns))
        for start in range(0, table.n_rows, step):
            rows = np.arange(start, min(start + step, table.n_rows))
            total[rows] += self._apart(table.rows(rows), touched).sum(axis=1)
        return total

    def affected(self, table: Table) -> NDArray[np.intp]:
        """The rows in which an observed attribute has a missing parent."""
        observed = observed_cells(table)
        return np.flatnonzero((observed & ~self._whole(observed)).any(axis=1))

    def _whole(self, observed: Mask) -> Mask:
        """Of which attributes all of the family is observed: (rows, columns of X)."""
        by_column = np.ascontiguousarray(observed.T)
        whole = by_column.copy()
        holed = np.asarray(~by_column.all(axis=1))
        for child, parents in self.parents.items():
            for parent in parents:
                if holed[parent]:
                    whole[child] &= by_column[parent]
        return whole.T

    def _apart(self, table: Table, solvers: Sequence[int]) -> Floats:
        """The log densities of the discrete attributes and of those of some solvers."""
        network, schema = self.network, table.schema
        apart = np.zeros((table.n_rows, schema.n_columns, schema.n_classes))
        observed = observed_cells(table)
        whole = self._whole(observed)
        filled = replace(table, codes=np.maximum(table.codes, 0))
        for column, found in network.discrete_log_densities(filled):
            apart[:, column] = np.where(whole[:, column, None], found, 0.0)
        holed = observed & ~whole
        affected = [np.flatnonzero(holed[:, component.columns].any(axis=1)) for component in self.components]
        alone = {component.partition: i for i, component in enumerate(self.components)}
        for i in solvers:
            kept, seen, into = filled, whole, apart
            if i in alone and len(affected[alone[i]]):  # those are done below, and all at once
                rows = np.setdiff1d(np.arange(table.n_rows), affected[alone[i]])
                kept, seen, into = filled.rows(rows), whole[rows], apart[rows]
            for part in network.solvers[i].terms(kept):
                of_class = into[part.rows, :, part.label]
                found = network.how.log_density(part).T
                of_class[:, part.columns] = np.where(seen[part.rows][:, part.columns], found, 0.0)
                into[part.rows, :, part.label] = of_class
            if into is not apart:
                apart[rows] = into
        for component, rows in zip(self.components, affected, strict=True):
            if len(rows):
                component.integrate(table, rows, observed[:, component.columns], apart)
        return apart


@dataclass(frozen=True, eq=False)
class Component:
    """Attributes that hang together, parents before children."""

    of: Integration
    columns: list[int]

    @cached_property
    def place(self) -> dict[int, int]:
        """Where each column stands."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def parents(self) -> list[int]:
        """The parents of each one, as sets of places."""
        return [sum(1 << self.place[parent] for parent in self.of.parents[column]) for column in self.columns]

    @cached_property
    def nodes(self) -> list[Node]:
        """The continuous ones."""
        return [self.of.nodes[column] for column in self.columns if column in self.of.nodes]

    @cached_property
    def continuous_parents(self) -> list[int]:
        """The continuous parents of the continuous ones, as sets of positions among these."""
        position = {node.column: i for i, node in enumerate(self.nodes)}
        return [sum(1 << position[parent] for parent in node.parents) for node in self.nodes]

    @cached_property
    def children(self) -> list[int]:
        """The same for their children."""
        found = [0] * len(self.nodes)
        for child, parents in enumerate(self.continuous_parents):
            for parent in bits(parents):
                found[parent] |= 1 << child
        return found

    @cached_property
    def is_complete(self) -> bool:
        """Whether each continuous one depends on all before it."""
        return all(parents == (1 << i) - 1 for i, parents in enumerate(self.continuous_parents))

    @cached_property
    def partition(self) -> int | None:
        """Which partition is made of the continuous ones, if these are a group and it has no others."""
        if not self.is_complete or not self.nodes:
            return None
        for i, posterior in enumerate(self.of.network.posteriors):
            if posterior is self.nodes[0].posterior and (~posterior.absent).sum() == len(self.nodes):
                return None if posterior.apart else i
        return None

    @cached_property
    def network(self) -> Whole:
        """Of these attributes alone."""
        parents = {column: self.of.parents[column] for column in self.columns}
        return self.of.network.restricted(Structure.from_parents(parents))

    def integrate(self, table: Table, rows: NDArray[np.intp], observed: Mask, apart: Floats) -> None:
        """Put right what stands in ``apart`` for rows in which an observed attribute has a missing parent."""
        patterns, of_row = distinct(observed[rows])
        levels = table.schema.levels
        discrete = sum(1 << i for i, column in enumerate(self.columns) if levels[column] is not None)
        plain = np.ones(len(patterns), bool)
        for number, pattern in enumerate(patterns if discrete else ()):
            seen = as_set(pattern)
            summed = with_observed_descendants(self.parents, seen) & ~seen & discrete
            if summed:
                plain[number] = False
                self._sum_over(table, rows[of_row == number], [self.columns[i] for i in bits(summed)], apart)
        rows = rows[plain[of_row]]
        if len(rows):
            self._integrate_continuous(table, rows, apart)

    def _sum_over(self, table: Table, rows: NDArray[np.intp], missing: list[int], apart: Floats) -> None:
        """Sum over the levels of missing discrete attributes."""
        schema = table.schema
        levels = [len(schema.levels_of(column)) for column in missing]
        if prod(levels) > MOST_COMBINATIONS:
            raise ValueError(
                f"row {rows[0]} lacks {len(missing)} discrete attributes on which others depend, whose levels have "
                f"{prod(levels)} combinations, more than {MOST_COMBINATIONS}: use a simpler structure or impute some"
            )
        combinations = np.array(list(product(*map(range, levels))), np.int32)
        codes = [schema.position[column] for column in missing]
        columns = self.columns
        after = np.zeros(len(columns))  # ln of the combinations that make no difference yet
        for column, n in zip(missing, levels, strict=True):
            after[: self.place[column]] += np.log(n)
        step = max(1, ROWS // len(combinations))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            expanded = table.rows(np.repeat(part, len(combinations)))
            expanded.codes[:, codes] = np.tile(combinations, (len(part), 1))
            found = self.network.contributions(expanded)[:, columns]
            found = found.reshape(len(part), len(combinations), *found.shape[1:])
            joint = logsumexp(np.cumsum(found, axis=2), axis=1) - after[:, None]
            joint[:, 1:] -= joint[:, :-1].copy()
            joint[:, [self.place[column] for column in missing]] = 0.0
            apart[part[:, None], columns] = joint

    # ---- continuous ones

    def _integrate_continuous(self, table: Table, rows: NDArray[np.intp], apart: Floats) -> None:
        missing = np.isnan(table.values[rows][:, [node.value for node in self.nodes]])
        cut = sorted({column for node in self.nodes for column in self.of.cuts[node.column]})
        codes = np.maximum(table.codes[rows][:, [table.schema.position[column] for column in cut]], 0)
        cells, of_row = np.unique(codes, axis=0, return_inverse=True) if cut else (codes[:1], np.zeros(len(rows), int))
        of_row = of_row.ravel()
        for number, cell in enumerate(cells):
            here = np.flatnonzero(of_row == number)
            level = dict(zip(cut, cell.tolist(), strict=True))
            configurations = [self._configuration(node, level) for node in self.nodes]
            patterns, pattern_of_row = distinct(~missing[here])
            for nodes, tasks in self._tasks(patterns, pattern_of_row, rows[here]):
                implied = Implied.of(
                    [self.nodes[i] for i in nodes], [configurations[i] for i in nodes], self.of.network.how
                )
                implied.log_densities(table, tasks, self.of.network.how, apart)

    def _configuration(self, node: Node, level: dict[int, int]) -> int:
        schema = self.of.network.statistics.schema
        cut = sorted(self.of.cuts[node.column])
        if not cut:
            return 0
        return int(np.ravel_multi_index([level[c] for c in cut], [len(schema.levels_of(c)) for c in cut]))

    def _tasks(
        self, patterns: Mask, of_row: NDArray[np.intp], rows: NDArray[np.intp]
    ) -> Iterator[tuple[list[int], Tasks]]:
        """What has to be computed of which nodes."""
        every = list(range(len(self.nodes)))
        if self.is_complete:
            wanted = patterns if self.partition is not None else patterns & (np.cumsum(~patterns, axis=1) > 0)
            yield every, Tasks(np.broadcast_to(np.array(every), patterns.shape), patterns, wanted, of_row, rows)
            return
        families = [self._families(as_set(pattern)) for pattern in patterns]
        if len(every) <= FEW_NODES:
            yield from self._batched(every, list(enumerate(families)), of_row, rows)
            return
        for number, found in enumerate(families):
            for part in self._clusters(as_set(patterns[number]), found):
                nodes = list(bits(part[0]))
                yield from self._batched(nodes, [(number, part[1])], of_row, rows)

    def _families(self, observed: int) -> dict[int, int]:
        """The observed nodes that depend on missing ones, with the observed ones that they then depend on."""
        kept = with_observed_descendants(self.continuous_parents, observed)
        return without(kept & ~observed, observed, self.continuous_parents, self.children)

    def _batched(
        self, nodes: list[int], wanted: list[tuple[int, dict[int, int]]], of_row: NDArray[np.intp], rows: Any
    ) -> Iterator[tuple[list[int], Tasks]]:
        """The same families in arrays."""
        place = {node: i for i, node in enumerate(nodes)}
        listed = [(number, plan) for number, found in wanted for plan in plans(found)]
        by_size: dict[int, list[tuple[int, Any]]] = {}
        for number, plan in listed:
            by_size.setdefault(1 << (len(plan.members) - 1).bit_length(), []).append((number, plan))
        rows_of = {number: np.flatnonzero(of_row == number) for number, _ in wanted}
        for size, found in by_size.items():
            members = np.zeros((len(found), size), np.intp)
            present, asked = np.zeros((2, len(found), size), bool)
            for i, (_, plan) in enumerate(found):
                n = len(plan.members)
                members[i, :n] = [place[node] for node in plan.members]
                present[i, :n] = True
                asked[i, plan.n_given : n] = True
            task_rows = [rows_of[number] for number, _ in found]
            task_of_row = np.repeat(np.arange(len(found)), [len(part) for part in task_rows])
            yield nodes, Tasks(members, present, asked, task_of_row, rows[np.concatenate(task_rows)])

    def _clusters(self, observed: int, wanted: dict[int, int]) -> list[tuple[int, dict[int, int]]]:
        """Nodes of a large network whose joint distribution has to be known, in sets that do not touch each other."""
        kept = with_observed_descendants(self.continuous_parents, observed)
        found: list[tuple[int, dict[int, int]]] = []
        around = {}
        for node in bits(kept & ~observed):
            near = 1 << node | self.continuous_parents[node]
            for child in bits(self.children[node] & kept):
                near |= 1 << child | self.continuous_parents[child]
            around[node] = near
        for near in around.values():
            apart = [part for part in found if not part[0] & near]
            for part in found:
                if part[0] & near:
                    near |= part[0]
            found = [*apart, (near, {})]
        for child, given in wanted.items():
            next(part for part in found if part[0] >> child & 1)[1][child] = given
        return [(self._closed(nodes), asked) for nodes, asked in found]

    def _closed(self, nodes: int) -> int:
        """With ancestors, unless parents are joined throughout, so that the nodes are known without them."""
        joined = all(
            not (before & nodes & ((1 << parent) - 1)) & ~self.continuous_parents[parent]
            for node in bits(nodes)
            for before in [self.continuous_parents[node]]
            for parent in bits(before & nodes)
        )
        if not joined:
            nodes = with_observed_descendants(self.continuous_parents, nodes)
        if nodes.bit_count() > MOST_NODES:
            raise ValueError(
                f"values are missing in so many places that {nodes.bit_count()} columns have to be taken together, "
                f"more than {MOST_NODES}: use naive Bayes, a Box or fewer columns, or impute them"
            )
        return nodes


def observed_cells(table: Table) -> Mask:
    """What is observed: (rows, columns of X)."""
    observed = np.ones((table.n_rows, table.schema.n_columns), bool)
    observed[:, table.schema.continuous] = ~np.isnan(table.values)
    observed[:, table.schema.discrete] = table.codes >= 0
    return observed


def distinct(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """The patterns that occur, and each row's."""
    packed = np.packbits(masks, axis=1)
    _, first, of_row = np.unique(
        packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
    )
    return masks[first], of_row.ravel()


def as_set(pattern: Mask) -> int:
    """A pattern as a whole number, its first place being the lowest bit."""
    return int.from_bytes(np.packbits(pattern, bitorder="little").tobytes(), "little")
