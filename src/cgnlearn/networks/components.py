"""Features that hang together: what is missing of them is summed over, or integrated out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.elimination import bits, plans, with_observed_descendants, without
from cgnlearn.networks.estimation import Estimation, Posterior
from cgnlearn.networks.implied import Implied, Node, Tasks
from cgnlearn.networks.solver import Solver
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure

MOST_COMBINATIONS = 4096  # of the levels of missing features that are summed over
MOST_NODES = 2000  # whose joint distribution is held
FEW_NODES = 300  # of which all are taken, whatever is missing
ROWS = 1 << 14  # with one combination of levels each, that are held at once

Mask = NDArray[np.bool_]


class Whole(Protocol):
    """What is asked of a network, which says itself what it can of samples without missing values."""

    @property
    def structure(self) -> Structure:
        """Over columns of X."""

    @property
    def statistics(self) -> Statistics:
        """Of the structure's families."""

    @property
    def estimation(self) -> Estimation:
        """How parameters are estimated."""

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """One for each partition of the statistics' layout."""

    @property
    def solvers(self) -> tuple[Solver, ...]:
        """One for each partition."""

    def discrete_log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each discrete feature with its log probabilities: (samples, classes)."""

    def contributions(self, table: Table) -> Floats:
        """The log densities kept by_column: (samples, columns of X, classes)."""

    def restricted(self, structure: Structure) -> Whole:
        """The network of some of the families."""


@dataclass(frozen=True, eq=False)
class Component:
    """Features of a network that hang together, parents before children."""

    whole: Whole
    columns: list[int]
    parents_of: dict[int, tuple[int, ...]]
    cuts: dict[int, tuple[int, ...]]  # the discrete ones of these
    node_of: dict[int, Node]  # the continuous features

    @cached_property
    def place(self) -> dict[int, int]:
        """Where each column stands."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def parents(self) -> list[int]:
        """The parents of each one, as sets of places."""
        return [sum(1 << self.place[parent] for parent in self.parents_of[column]) for column in self.columns]

    @cached_property
    def nodes(self) -> list[Node]:
        """The continuous ones."""
        return [self.node_of[column] for column in self.columns if column in self.node_of]

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
        for i, posterior in enumerate(self.whole.posteriors):
            if posterior is self.nodes[0].posterior and (~posterior.absent).sum() == len(self.nodes):
                return None if posterior.separate else i
        return None

    @cached_property
    def network(self) -> Whole:
        """Of these features alone."""
        parents = {column: self.parents_of[column] for column in self.columns}
        return self.whole.restricted(Structure.from_parents(parents))

    def integrate(self, table: Table, rows: NDArray[np.intp], observed: Mask, by_column: Floats) -> None:
        """Put right what stands in ``by_column`` for samples in which an observed feature has a missing parent."""
        patterns, of_row = distinct(observed[rows])
        levels = table.schema.levels
        discrete = sum(1 << i for i, column in enumerate(self.columns) if levels[column] is not None)
        plain = np.ones(len(patterns), bool)
        for number, pattern in enumerate(patterns if discrete else ()):
            seen = as_set(pattern)
            summed = with_observed_descendants(self.parents, seen) & ~seen & discrete
            if summed:
                plain[number] = False
                self._sum(table, rows[of_row == number], [self.columns[i] for i in bits(summed)], seen, by_column)
        rows = rows[plain[of_row]]
        if len(rows):
            self._integrate_continuous(table, rows, by_column)

    def _sum(self, table: Table, rows: NDArray[np.intp], missing: list[int], seen: int, by_column: Floats) -> None:
        """Sum over the levels of missing discrete features, some samples at a time; all of them lack the same."""
        levels = sorted(len(table.schema.levels_of(column)) for column in missing)
        step = max(1, ROWS // prod(levels[-2:] if self.is_forest else levels))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            some = table.rows(part)
            found = self._sum_along(some, missing, seen) if self.is_forest else self._sum_over(some, missing)
            found[:, [self.place[column] for column in missing]] = 0.0
            by_column[part[:, None], self.columns] = found

    @cached_property
    def is_forest(self) -> bool:
        """Whether each one has at most one parent."""
        return all(len(self.parents_of[column]) <= 1 for column in self.columns)

    def _sum_over(self, table: Table, missing: list[int]) -> Floats:
        """Log densities by column, summed over levels of missing features: (samples, these columns, classes)."""
        levels = [len(table.schema.levels_of(column)) for column in missing]
        if prod(levels) > MOST_COMBINATIONS:
            raise ValueError(
                f"a sample lacks {len(missing)} discrete features on which others depend, whose levels have "
                f"{prod(levels)} combinations, more than {MOST_COMBINATIONS}: use a simpler structure or impute some"
            )
        after = np.zeros(len(self.columns))  # ln of the combinations that make no difference yet
        for column, n in zip(missing, levels, strict=True):
            after[: self.place[column]] += np.log(n)
        found = self._by_levels(table, missing, missing)
        found = found.reshape(table.n_samples, prod(levels), *found.shape[-2:])
        joint = logsumexp(np.cumsum(found, axis=2), axis=1) - after[:, None]
        return np.diff(joint, axis=1, prepend=0.0)

    def _sum_along(self, table: Table, missing: list[int], seen: int) -> Floats:
        """The same in a forest, from the leaves up: never more levels at once than of a feature and its parent."""
        # On which missing discrete one a column hangs, beyond continuous ones that are missing too.
        hangs_on: dict[int, int | None] = {}
        for column, parents in zip(self.columns, self.parents, strict=True):
            above = None if parents & seen else next((self.columns[i] for i in bits(parents)), None)
            hangs_on[column] = above if above is None or above in missing else hangs_on[above]
        own, below = {}, {}  # by level: of a feature given the one it hangs on, and of all columns
        for column in missing:
            upper = hangs_on[column]
            found = self._by_levels(table, [column] if upper is None else [upper, column], missing)
            found = found[:, None] if upper is None else found
            own[column], below[column] = found[:, :, :, self.place[column]], found[:, 0]
        found = np.zeros_like(below[missing[0]][:, 0])
        told = {column: np.zeros_like(own[column][:, 0]) for column in missing}
        before = np.zeros_like(found[:, 0])
        for i in bits(seen):
            upper = hangs_on[self.columns[i]]
            if upper is None:
                found[:, i] = below[missing[0]][:, 0, i]
                continue
            told[upper] += below[upper][:, :, i]
            joint, passed = np.zeros_like(before), dict(told)
            for column in reversed(missing):
                summed = logsumexp(own[column] + passed[column][:, None], axis=2)
                higher = hangs_on[column]
                if higher is None:
                    joint += summed[:, 0]
                else:
                    passed[higher] = passed[higher] + summed
            found[:, i], before = joint - before, joint
        return found

    def _by_levels(self, table: Table, varied: list[int], missing: list[int]) -> Floats:
        """Log densities by_column, with all levels of some and the first one of other missing ones.

        Returns
        -------
        ndarray (samples, levels of the first, ..., these columns, classes)
        """
        schema = table.schema
        levels = [len(schema.levels_of(column)) for column in varied]
        combinations = np.array(list(product(*map(range, levels))), np.int32)
        expanded = table.rows(np.repeat(np.arange(table.n_samples), len(combinations)))
        expanded.codes[:, [schema.position[column] for column in missing]] = 0
        expanded.codes[:, [schema.position[column] for column in varied]] = np.tile(combinations, (table.n_samples, 1))
        found = self.network.contributions(expanded)[:, self.columns]
        return found.reshape(table.n_samples, *levels, *found.shape[1:])

    # ---- continuous ones

    def _integrate_continuous(self, table: Table, rows: NDArray[np.intp], by_column: Floats) -> None:
        missing = np.isnan(table.values[rows][:, [node.value for node in self.nodes]])
        cut = sorted({column for node in self.nodes for column in self.cuts[node.column]})
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
                    [self.nodes[i] for i in nodes], [configurations[i] for i in nodes], self.whole.estimation
                )
                implied.log_densities(table, tasks, self.whole.estimation, by_column)

    def _configuration(self, node: Node, level: dict[int, int]) -> int:
        schema = self.whole.statistics.schema
        cut = sorted(self.cuts[node.column])
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
            others = [part for part in found if not part[0] & near]
            for part in found:
                if part[0] & near:
                    near |= part[0]
            found = [*others, (near, {})]
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


def distinct(masks: Mask) -> tuple[Mask, NDArray[np.intp]]:
    """The patterns that occur, and each sample's."""
    packed = np.packbits(masks, axis=1)
    _, first, of_row = np.unique(
        packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
    )
    return masks[first], of_row.ravel()


def as_set(pattern: Mask) -> int:
    """A pattern as a whole number, its first place being the lowest bit."""
    return int.from_bytes(np.packbits(pattern, bitorder="little").tobytes(), "little")
