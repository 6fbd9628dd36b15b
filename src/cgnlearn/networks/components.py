"""Connected features of a network: discrete ones that are missing are summed over, continuous ones integrated out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats, rows_by_cell
from cgnlearn.data.table import Table
from cgnlearn.networks.elimination import Plan, bits, plans, with_observed_descendants, without
from cgnlearn.networks.implied import Implied, Node, Tasks

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

MOST_COMBINATIONS = 4096  # of the levels of missing features that are summed over
MOST_NODES = 2000  # whose joint distribution is computed
FEW_NODES = 300  # up to which the joint distribution of all serves several patterns of missing values
ROWS = 1 << 14  # samples, repeated for each combination of levels, that are held at once

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Component:
    """Connected features of a network, parents before children."""

    network: Network
    columns: list[int]
    parents_of: dict[int, tuple[int, ...]]
    node_of: dict[int, Node]  # the continuous features

    @cached_property
    def place(self) -> dict[int, int]:
        """Position of each column in the component."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def parents(self) -> list[int]:
        """The parents of each column, as a set of positions."""
        return [sum(1 << self.place[parent] for parent in self.parents_of[column]) for column in self.columns]

    @cached_property
    def nodes(self) -> list[Node]:
        """The continuous features."""
        return [self.node_of[column] for column in self.columns if column in self.node_of]

    @cached_property
    def continuous_parents(self) -> list[int]:
        """The continuous parents of each node, as a set of positions among the nodes."""
        position = {node.column: i for i, node in enumerate(self.nodes)}
        return [sum(1 << position[parent] for parent in node.parents) for node in self.nodes]

    @cached_property
    def children(self) -> list[int]:
        """The continuous children of each node, as a set of positions among the nodes."""
        children = [0] * len(self.nodes)
        for child, parents in enumerate(self.continuous_parents):
            for parent in bits(parents):
                children[parent] |= 1 << child
        return children

    @cached_property
    def is_complete(self) -> bool:
        """Whether each node depends on all nodes before it."""
        return all(parents == (1 << i) - 1 for i, parents in enumerate(self.continuous_parents))

    @cached_property
    def is_forest(self) -> bool:
        """Whether each feature has at most one parent."""
        return all(len(self.parents_of[column]) <= 1 for column in self.columns)

    @cached_property
    def partition(self) -> int | None:
        """The partition that consists of the nodes, if they are complete and there is one."""
        if not self.is_complete or not self.nodes:
            return None
        for i, posterior in enumerate(self.network.posteriors):
            if posterior is self.nodes[0].posterior and (~posterior.absent).sum() == len(self.nodes):
                return None if posterior.separate else i
        return None

    @cached_property
    def restricted(self) -> Network:
        """The network of these features alone."""
        return self.network.restricted(self.columns)

    def integrate(self, table: Table, rows: NDArray[np.intp], observed: Mask, by_column: Floats) -> None:
        """Correct the log densities of samples in which an observed feature has a missing parent."""
        patterns, of_row = distinct(observed[rows])
        levels = table.schema.levels
        discrete = sum(1 << i for i, column in enumerate(self.columns) if levels[column] is not None)
        has_sum = np.zeros(len(patterns), bool)
        for number, pattern in enumerate(patterns if discrete else ()):
            seen = as_set(pattern)
            summed = with_observed_descendants(self.parents, seen) & ~seen & discrete
            if summed:
                has_sum[number] = True
                self._sum(table, rows[of_row == number], [self.columns[i] for i in bits(summed)], seen, by_column)
        rows = rows[~has_sum[of_row]]
        if len(rows):
            self._integrate_continuous(table, rows, by_column)

    # ---- sums over discrete features

    def _sum(self, table: Table, rows: NDArray[np.intp], missing: list[int], seen: int, by_column: Floats) -> None:
        """Sum over the levels of missing discrete features; all samples have the same pattern."""
        levels = sorted(len(table.schema.levels_of(column)) for column in missing)
        step = max(1, ROWS // prod(levels[-2:] if self.is_forest else levels))
        for start in range(0, len(rows), step):
            index = rows[start : start + step]
            part = table.rows(index)
            summed = self._sum_along(part, missing, seen) if self.is_forest else self._sum_over(part, missing)
            summed[:, [self.place[column] for column in missing]] = 0.0
            by_column[index[:, None], self.columns] = summed

    def _sum_over(self, table: Table, missing: list[int]) -> Floats:
        """Log densities summed over all combinations of levels: (samples, columns of the component, classes)."""
        levels = [len(table.schema.levels_of(column)) for column in missing]
        if prod(levels) > MOST_COMBINATIONS:
            raise ValueError(
                f"a sample has missing values in {len(missing)} discrete features on which others depend, with "
                f"{prod(levels)} combinations of levels, more than {MOST_COMBINATIONS}: "
                "use a simpler structure or impute some of them"
            )
        after = np.zeros(len(self.columns))  # ln of the number of combinations of features that come later
        for column, n in zip(missing, levels, strict=True):
            after[: self.place[column]] += np.log(n)
        by_level = self._by_levels(table, missing, missing)
        by_level = by_level.reshape(table.n_samples, prod(levels), *by_level.shape[-2:])
        joint = logsumexp(np.cumsum(by_level, axis=2), axis=1) - after[:, None]
        return np.diff(joint, axis=1, prepend=0.0)

    def _sum_along(self, table: Table, missing: list[int], seen: int) -> Floats:
        """`_sum_over` in a forest, from the leaves up, with the levels of a feature and its parent at a time."""
        # The missing discrete feature on which the scale of each column depends, through any continuous features, and
        # that on which its density does: none if its parent is observed.
        of_scale: dict[int | None, int | None] = {None: None}
        ancestor: dict[int, int | None] = {}
        for column, parents in zip(self.columns, self.parents, strict=True):
            above = next((self.columns[i] for i in bits(parents)), None)
            of_scale[column] = column if column in missing else of_scale[above] if column in self.node_of else None
            ancestor[column] = None if parents & seen else of_scale[above]
        own, below = {}, {}  # log densities of a missing feature given its ancestor, and of all columns given it
        for column in missing:
            upper = ancestor[column]
            by_level = self._by_levels(table, [column] if upper is None else [upper, column], missing)
            by_level = by_level[:, None] if upper is None else by_level
            own[column], below[column] = by_level[:, :, :, self.place[column]], by_level[:, 0]
        total = np.zeros_like(below[missing[0]][:, 0])
        messages = {column: np.zeros_like(own[column][:, 0]) for column in missing}
        before = np.zeros_like(total[:, 0])
        for i in bits(seen):
            upper = ancestor[self.columns[i]]
            if upper is None:
                total[:, i] = below[missing[0]][:, 0, i]
                continue
            messages[upper] += below[upper][:, :, i]
            joint, passed = np.zeros_like(before), dict(messages)
            for column in reversed(missing):
                summed = logsumexp(own[column] + passed[column][:, None], axis=2)
                higher = ancestor[column]
                if higher is None:
                    joint += summed[:, 0]
                else:
                    passed[higher] = passed[higher] + summed
            total[:, i], before = joint - before, joint
        return total

    def _by_levels(self, table: Table, varied: list[int], missing: list[int]) -> Floats:
        """Log densities with all levels of ``varied`` and the first level of other missing features.

        The shape is (samples, levels of the first varied, ..., columns of the component, classes).
        """
        schema = table.schema
        levels = [len(schema.levels_of(column)) for column in varied]
        combinations = np.array(list(product(*map(range, levels))), np.int32)
        expanded = table.rows(np.repeat(np.arange(table.n_samples), len(combinations)))
        expanded.codes[:, [schema.position[column] for column in missing]] = 0
        expanded.codes[:, [schema.position[column] for column in varied]] = np.tile(combinations, (table.n_samples, 1))
        by_column = self.restricted.contributions(expanded)[:, self.columns]
        return by_column.reshape(table.n_samples, *levels, *by_column.shape[1:])

    # ---- integrals over continuous features

    def _integrate_continuous(self, table: Table, rows: NDArray[np.intp], by_column: Floats) -> None:
        missing = np.isnan(table.values[rows][:, [node.value for node in self.nodes]])
        filled = replace(table, codes=np.maximum(table.codes, 0))
        codes = sorted({code for node in self.nodes for code in node.cells.codes})
        of_row = np.zeros(len(rows), np.intp)
        if codes:
            of_row = np.unique(filled.codes[rows][:, codes], axis=0, return_inverse=True)[1].ravel()
        for _, here in rows_by_cell(of_row, int(of_row.max()) + 1):
            first = filled.rows(rows[here[:1]])
            configurations = [int(node.cells.index(first)[0]) for node in self.nodes]
            patterns, pattern_of_row = distinct(~missing[here])
            for nodes, tasks in self._tasks(patterns, pattern_of_row, rows[here]):
                of_nodes = [configurations[i] for i in nodes]
                implied = Implied.of([self.nodes[i] for i in nodes], of_nodes, self.network.estimation)
                implied.log_densities(table, tasks, by_column)

    def _tasks(
        self, patterns: Mask, of_row: NDArray[np.intp], rows: NDArray[np.intp]
    ) -> Iterator[tuple[list[int], Tasks]]:
        """Sets of nodes whose joint distribution is needed, with the tasks for it."""
        every = list(range(len(self.nodes)))
        if self.is_complete:
            wanted = patterns if self.partition is not None else patterns & (np.cumsum(~patterns, axis=1) > 0)
            yield every, Tasks(np.broadcast_to(np.array(every), patterns.shape), patterns, wanted, of_row, rows)
            return
        families = [self._families(as_set(pattern)) for pattern in patterns]
        if len(every) <= FEW_NODES and len(patterns) > 1:
            yield from self._batched(every, list(enumerate(families)), of_row, rows)
            return
        for number, of_pattern in enumerate(families):
            for nodes, of_cluster in self._clusters(as_set(patterns[number]), of_pattern):
                yield from self._batched(list(bits(nodes)), [(number, of_cluster)], of_row, rows)

    def _families(self, observed: int) -> dict[int, int]:
        """Observed nodes that depend on missing ones, with the observed nodes on which they then depend."""
        kept = with_observed_descendants(self.continuous_parents, observed)
        return without(kept & ~observed, observed, self.continuous_parents, self.children)

    def _batched(
        self,
        nodes: list[int],
        families: list[tuple[int, dict[int, int]]],
        of_row: NDArray[np.intp],
        rows: NDArray[np.intp],
    ) -> Iterator[tuple[list[int], Tasks]]:
        """Families of patterns as tasks, those of similar size together."""
        place = {node: i for i, node in enumerate(nodes)}
        by_size: dict[int, list[tuple[int, Plan]]] = {}
        for number, of_pattern in families:
            for plan in plans(of_pattern):
                by_size.setdefault(1 << (len(plan.members) - 1).bit_length(), []).append((number, plan))
        rows_of = {number: np.flatnonzero(of_row == number) for number, _ in families}
        for size, listed in by_size.items():
            members = np.zeros((len(listed), size), np.intp)
            present, wanted = np.zeros((2, len(listed), size), bool)
            for i, (_, plan) in enumerate(listed):
                n = len(plan.members)
                members[i, :n] = [place[node] for node in plan.members]
                present[i, :n] = True
                wanted[i, plan.n_given : n] = True
            task_rows = [rows_of[number] for number, _ in listed]
            task_of_row = np.repeat(np.arange(len(listed)), [len(part) for part in task_rows])
            yield nodes, Tasks(members, present, wanted, task_of_row, rows[np.concatenate(task_rows)])

    def _clusters(self, observed: int, families: dict[int, int]) -> list[tuple[int, dict[int, int]]]:
        """Disjoint sets of nodes of a large network whose joint distributions are needed, with their families."""
        kept = with_observed_descendants(self.continuous_parents, observed)
        clusters: list[int] = []
        for node in bits(kept & ~observed):
            near = 1 << node | self.continuous_parents[node]
            for child in bits(self.children[node] & kept):
                near |= 1 << child | self.continuous_parents[child]
            others = [cluster for cluster in clusters if not cluster & near]
            for cluster in clusters:
                if cluster & near:
                    near |= cluster
            clusters = [*others, near]
        return [
            (self._closed(cluster), {child: given for child, given in families.items() if cluster >> child & 1})
            for cluster in clusters
        ]

    def _closed(self, nodes: int) -> int:
        """The nodes with their ancestors, unless all parents among them are joined and ancestors are not needed."""
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
                f"so many values are missing that {nodes.bit_count()} columns have to be integrated together, "
                f"more than {MOST_NODES}: use naive Bayes, a Box or fewer columns, or impute them"
            )
        return nodes


def distinct(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """The patterns that occur, and the pattern of each sample."""
    packed = np.packbits(masks, axis=1)
    _, first, of_row = np.unique(
        packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
    )
    return masks[first], of_row.ravel()


def as_set(pattern: Mask) -> int:
    """A pattern as a set of positions: the first position is the lowest bit."""
    return int.from_bytes(np.packbits(pattern, bitorder="little").tobytes(), "little")
