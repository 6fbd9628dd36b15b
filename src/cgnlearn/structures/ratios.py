"""What one feature says of another: for all pairs, the density of one given the other over its density alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import PairStudents
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Bayes, Units
from cgnlearn.networks.layout import DiscreteFamily
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values
from cgnlearn.networks.statistics import Statistics
from cgnlearn.structures.pairs import conditional_scale


@dataclass(frozen=True, eq=False)
class Ratios:
    """Of all pairs of nodes.

    Parameters
    ----------
    statistics : Statistics
        Of all pairs.
    how : Bayes
    alone : Network
        Naive Bayes: every feature without a parent.
    nodes : ndarray (nodes,)
        The columns that take part.
    """

    statistics: Statistics
    estimation: Bayes
    alone: Network
    nodes: NDArray[np.intp]

    @cached_property
    def pairs(self) -> Pairs:
        """The continuous features among the nodes."""
        return Pairs.of(self.statistics, self.estimation, self.nodes)

    @cached_property
    def _given_discrete(self) -> list[tuple[int, Blocks]]:
        """Every discrete node with the regressions of the continuous columns, in a cell for each of its levels."""
        layout, schema = self.statistics.layout, self.statistics.schema
        found = []
        for partition, moments in zip(layout.partitions, self.statistics.moments, strict=True):
            if partition.cells.columns and partition.cells.columns[0] in self.nodes:
                posterior = self.estimation.posterior(moments, partition, schema)
                found.append((partition.cells.columns[0], Blocks.of(partition, posterior, self.estimation)))
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
        """ln p(x_v | x_u, class) - ln p(x_v | class) for discrete u: (classes, 1 + nodes, nodes, samples)."""
        n_nodes, place = len(self.nodes), self._place
        found = np.zeros((table.schema.n_classes, 1 + n_nodes, n_nodes, table.n_samples))
        alone = self.alone.contributions(table)[:, self.nodes].transpose(2, 1, 0)
        for family, counts in self._among_discrete:
            given = densities.categorical(counts, self.estimation.dirichlet)
            child, parent = place[family.column], place[family.cells.columns[0]]
            found[:, 1 + parent, child] = given[:, family.cells.index(table), table.codes[:, family.code]]
            found[:, 1 + parent, child] -= alone[:, child]
        for column_of_parent, solver in self._given_discrete:
            parent = place[column_of_parent]
            for part in solver.terms(table):
                densities_of_part = self.estimation.log_density(part)
                for i, column in enumerate(part.columns.tolist()):
                    if column in place:
                        at = part.label, 1 + parent, place[column]
                        found[at][part.rows] = densities_of_part[i] - alone[part.label, place[column], part.rows]
        return found


class Pairs(NamedTuple):
    """The continuous nodes, and the regressions of each on each in every class."""

    values: NDArray[np.intp]  # positions among a table's values
    places: NDArray[np.intp]  # positions among the nodes
    units: Units
    students: list[PairStudents]  # by class

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes, nodes: NDArray[np.intp]) -> Pairs:
        """From the statistics of all pairs."""
        schema, layout = statistics.schema, statistics.layout
        whole = [i for i, partition in enumerate(layout.partitions) if not partition.cells.columns]
        if not whole:
            none, empty = np.zeros(0, np.intp), np.zeros(0)
            square = np.zeros((0, 0))
            students = [PairStudents(empty, empty, square, square, square, 1.0, 1.0)] * schema.n_classes
            return cls(none, none, Units(empty, empty), students)
        partition = layout.partitions[whole[0]]
        posterior = estimation.posterior(statistics.moments[whole[0]], partition, schema)
        present = np.flatnonzero(~posterior.absent)
        first, second = np.triu_indices(len(present), 1)
        parent, child = present[first], present[second]
        scale = posterior.scale[0]
        spread = conditional_scale(scale, posterior.pairs, child, parent)
        spread = np.maximum(spread, np.finfo(float).eps * scale[:, child])  # rounding may leave less than nothing
        between = scale[:, posterior.pairs.place(parent, child)]
        shape, least = posterior.shape[0], posterior.least_leverage[0]
        # Of `densities.multivariate_student` of two features less that of each.
        of_class = gammaln(shape + 1) + gammaln(shape) - 2 * gammaln(shape + 0.5) - shape * np.log(least)
        constant = of_class[:, None] - 0.5 * np.log(spread / scale[:, child])

        def square_of(entries: Floats) -> Floats:
            found = np.zeros((len(present), len(present)))
            found[first, second] = entries
            return found

        students = [
            PairStudents(
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
        return cls(partition.values[present], places, units, students)

    def standard(self, table: Table, rows: slice) -> Floats:
        """Values in standard units: (features, samples)."""
        if not len(self.values):
            return np.zeros((0, rows.stop - rows.start))
        return np.ascontiguousarray(standard_values(table, rows, self.values, self.units))
