"""What one attribute says of another: for all pairs, the density of one given the other over its density alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.model import densities
from cgnlearn.model.blocks import Blocks
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Posterior, Units
from cgnlearn.model.forgetting import Forgotten
from cgnlearn.model.layout import DiscreteFamily, Partition
from cgnlearn.model.network import Network
from cgnlearn.model.picking import rows_by_cell
from cgnlearn.model.solver import standard_values
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.table import Table
from cgnlearn.structures.pairs import conditional_scale
from cgnlearn.structures.single import left_out_continuous, left_out_discrete, left_out_singly


@dataclass(frozen=True, eq=False)
class Ratios:
    """Of all pairs of nodes.

    Parameters
    ----------
    statistics : Statistics
        Of all pairs.
    how : Bayes
    alone : Network
        Naive Bayes: every attribute without a parent.
    nodes : ndarray (nodes,)
        The columns that take part.
    """

    statistics: Statistics
    how: Bayes
    alone: Network
    nodes: NDArray[np.intp]

    @cached_property
    def pairs(self) -> Pairs:
        """The continuous attributes among the nodes."""
        return Pairs.of(self.statistics, self.how, self.nodes)

    @cached_property
    def _given_discrete(self) -> list[tuple[Partition, Posterior, Blocks]]:
        """For every discrete node the regressions of the continuous columns, in a cell for each of its levels."""
        layout, schema = self.statistics.layout, self.statistics.schema
        found = []
        for partition, moments in zip(layout.partitions, self.statistics.moments, strict=True):
            if partition.cells.columns and partition.cells.columns[0] in self.nodes:
                posterior = self.how.posterior(moments, partition, schema)
                found.append((partition, posterior, Blocks.of(partition, posterior, self.how)))
        return found

    @cached_property
    def _among_discrete(self) -> list[tuple[DiscreteFamily, Floats]]:
        """The counts of every discrete node with each other as its parent."""
        found = zip(self.statistics.layout.discrete, self.statistics.counts, strict=True)
        return [
            (family, counts)
            for family, counts in found
            if family.cells.columns and {family.column, *family.cells.columns} <= self._place.keys()
        ]

    @cached_property
    def _place(self) -> dict[int, int]:
        """Where a column stands among the nodes."""
        return {int(column): i for i, column in enumerate(self.nodes)}

    def discrete(self, table: Table) -> Floats:
        """ln p(x_v | x_u, class) - ln p(x_v | class) for discrete u: (classes, 1 + nodes, nodes, rows)."""
        n_nodes, place = len(self.nodes), self._place
        found = np.zeros((table.schema.n_classes, 1 + n_nodes, n_nodes, table.n_rows))
        alone = self.alone.contributions(table)[:, self.nodes].transpose(2, 1, 0)
        for family, counts in self._among_discrete:
            given = densities.categorical(counts, self.how.dirichlet)
            child, parent = place[family.column], place[family.cells.columns[0]]
            found[:, 1 + parent, child] = given[:, family.cells.index(table), table.codes[:, family.code]]
            found[:, 1 + parent, child] -= alone[:, child]
        for partition, _, solver in self._given_discrete:
            parent = place[partition.cells.columns[0]]
            for part in solver.terms(table):
                densities_of_part = self.how.log_density(part)
                for i, column in enumerate(part.columns.tolist()):
                    if column in place:
                        at = part.label, 1 + parent, place[column]
                        found[at][part.rows] = densities_of_part[i] - alone[part.label, place[column], part.rows]
        return found

    def discrete_left_out(self, table: Table) -> tuple[Floats, Floats]:
        """Of training rows, by the others: what the log evidence of v loses with a row more if u is its parent, and
        `discrete`: (1 + nodes, nodes, rows) and (classes, 1 + nodes, nodes, rows).
        """
        n_nodes, place = len(self.nodes), self._place
        ratios = np.zeros((table.schema.n_classes, 1 + n_nodes, n_nodes, table.n_rows))
        losses = np.zeros(ratios.shape[1:])
        alone = left_out_singly(self.alone, table)
        for family, counts in self._among_discrete:
            log_density, log_evidence = left_out_discrete(counts, family, table, self.how)
            at = 1 + place[family.cells.columns[0]], place[family.column]
            ratios[:, *at] = log_density - alone.log_density[family.column]
            losses[at] = log_evidence - alone.log_evidence[family.column]
        for partition, posterior, _ in self._given_discrete:
            members = np.flatnonzero(~posterior.absent & np.isin(partition.columns, self.nodes))
            columns, parent = partition.columns[members], 1 + place[partition.cells.columns[0]]
            children = [place[column] for column in columns.tolist()]
            for cell, rows in rows_by_cell(partition.cells.index(table), partition.cells.n):
                found = left_out_continuous(
                    posterior, members, table.rows(rows), partition.values[members], self.how, cell
                )
                for i, child in enumerate(children):
                    ratios[:, parent, child, rows] = found.log_density[i] - alone.log_density[columns[i]][:, rows]
                    losses[parent, child, rows] = found.log_evidence[i] - alone.log_evidence[columns[i], rows]
        return losses, ratios


class Pairs(NamedTuple):
    """The continuous nodes, and the regressions of each on each in every class."""

    how: Bayes
    posterior: Posterior | None  # None if there are none
    values: NDArray[np.intp]  # positions among a table's values
    places: NDArray[np.intp]  # positions among the nodes
    units: Units
    students: list[tuple[Any, ...]]  # by class: what `pair_ratios` reads
    overall: Floats  # where all rows are centred: (attributes,)
    log_spread: Floats  # ln of the share of a scale that is left once the other is known: (classes, …, attributes)

    @classmethod
    def of(cls, statistics: Statistics, how: Bayes, nodes: NDArray[np.intp]) -> Pairs:
        """From the statistics of all pairs."""
        schema, layout = statistics.schema, statistics.layout
        whole = [i for i, partition in enumerate(layout.partitions) if not partition.cells.columns]
        if not whole:
            none, empty = np.zeros(0, np.intp), np.zeros(0)
            square = np.zeros((0, 0))
            students = [(empty, empty, square, square, square, 1.0, 1.0)] * schema.n_classes
            return cls(how, None, none, none, Units(empty, empty), students, empty, np.zeros((schema.n_classes, 0, 0)))
        partition = layout.partitions[whole[0]]
        posterior = how.posterior(statistics.moments[whole[0]], partition, schema)
        present = np.flatnonzero(~posterior.absent)
        first, second = np.triu_indices(len(present), 1)
        parent, child = present[first], present[second]
        scale = posterior.scale[0]
        spread = conditional_scale(scale, posterior.pairs, child, parent)
        spread = np.maximum(spread, np.finfo(float).eps * scale[:, child])  # rounding may leave less than nothing
        between = scale[:, posterior.pairs.place(parent, child)]
        shape, least = posterior.shape[0], posterior.least_leverage[0]
        log_spread = np.log(spread / scale[:, child])
        constant = _constant(shape, least)[:, None] - 0.5 * log_spread

        def square_of(entries: Floats) -> Floats:
            found = np.zeros((*entries.shape[:-1], len(present), len(present)))
            found[..., first, second] = entries
            return found

        students = [
            (
                posterior.centre[0, label, present],
                1 / np.sqrt(scale[label, present]),
                square_of(between[label] / scale[label, parent]),
                square_of(1 / np.sqrt(spread[label])),
                square_of(constant[label]),
                float(least[label]),
                float(shape[label] + 0.5),
            )
            for label in range(schema.n_classes)
        ]
        places = np.searchsorted(nodes, partition.columns[present])
        units = Units(*(part[present] for part in posterior.units))
        values, overall = partition.values[present], posterior.overall[present]
        return cls(how, posterior, values, places, units, students, overall, square_of(log_spread))

    def standard(self, table: Table, rows: slice) -> Floats:
        """Values in standard units: (attributes, rows)."""
        if not len(self.values):
            return np.zeros((0, rows.stop - rows.start))
        return np.ascontiguousarray(standard_values(table, rows, self.values, self.units))

    def alone(self, table: Table) -> NDArray[np.bool_]:
        """Which training rows are the only ones of their class."""
        if self.posterior is None:
            return np.zeros(table.n_rows, bool)
        return Forgotten.of(table, np.arange(table.n_rows), 0, self.posterior, self.how).alone


class LeftOutPairs(NamedTuple):
    """`Pairs` of training rows of one class, each by the others."""

    pairs: Pairs
    table: Table
    label: int
    students: tuple[Any, ...]  # of that class
    forgotten: Forgotten
    half: Floats  # of the weights
    shape: Floats  # ρ⁻: (rows,)
    constant: Floats  # of what evidence loses: (rows,)

    @classmethod
    def of(cls, pairs: Pairs, table: Table, label: int) -> LeftOutPairs | None:
        """Of rows which are all alone in their class or none is; None if no node is continuous."""
        if pairs.posterior is None:
            return None
        forgotten = Forgotten.of(table, np.arange(table.n_rows), 0, pairs.posterior, pairs.how)
        students = pairs.students[label]
        if forgotten.alone.all():  # without its only row a class is centred where all rows are
            students = (pairs.overall, *students[1:])
        half = forgotten.lighter[label] / 2
        before = float(pairs.posterior.shape[0, label])
        shape = before - half
        constant = gammaln(before + 0.5) - gammaln(before) - gammaln(shape + 0.5) + gammaln(shape)
        return cls(pairs, table, label, students, forgotten, half, shape, constant)

    def fill(self, rows: slice, losses: Floats) -> Floats:
        """What log evidences lose with a row more if one is given the other, into all arcs; and standard values."""
        from cgnlearn.structures.elimination import pair_losses

        standard = self.pairs.standard(self.table, rows)
        lost = self.constant[rows], self.forgotten.down[self.label, rows], self.half[rows], self.shape[rows]
        pair_losses(standard, self.pairs.places, self.students, self.pairs.log_spread[self.label], lost, losses)
        return standard

    def fill_ratios(self, rows: slice, standard: Floats, label: int, losses: Floats, logs: Floats) -> None:
        """The log ratios under a class, without each row, into all arcs."""
        from cgnlearn.structures.elimination import pair_ratios, pair_ratios_left_out

        pairs = self.pairs
        own = label == self.label
        if not own and pairs.how.sharing == 0:
            pair_ratios(standard, pairs.places, pairs.students[label], logs)
            return
        shape, least = self.shape[rows], self.forgotten.before[label, rows]
        growth = self.forgotten.growth[rows]
        pair_ratios_left_out(
            standard, pairs.places, self.students, self.students[0] if own else pairs.students[label][0],
            pairs.log_spread[self.label],
            (self.constant[rows], self.forgotten.down[self.label, rows], self.half[rows], shape),
            (_constant(shape, least), least, growth**2, own), losses, logs,
        )  # fmt: skip


def _constant(shape: Floats, least: Floats) -> Floats:
    """Of `densities.multivariate_student` of two attributes less that of each."""
    found: Floats = gammaln(shape + 1) + gammaln(shape) - 2 * gammaln(shape + 0.5) - shape * np.log(least)
    return found
