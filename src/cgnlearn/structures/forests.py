"""The average over all directed forests of attributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.model import densities
from cgnlearn.model.blocks import Blocks
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Estimation, Units
from cgnlearn.model.families import Families
from cgnlearn.model.model import LeftOut, NotExact, refuse_holes
from cgnlearn.model.network import Network
from cgnlearn.model.schema import Schema
from cgnlearn.model.solver import standard_values
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table
from cgnlearn.structures.arborescence import (
    Elimination,
    eliminated,
    heaviest_parents,
    log_arc_probabilities,
)
from cgnlearn.structures.learner import Learner, with_evidence
from cgnlearn.structures.pairs import conditional_scale, pair_families, pair_scores

MOST_COLUMNS = 700  # whose elimination takes 2 GB
MOST_RATIOS = 1 << 23  # numbers that are held for one batch of rows
CHUNK = 1 << 15  # densities of one tile of rows under one class: they stay in the second-level cache
TILE = 64  # rows


class TreeAverage(Learner):
    """The exact average over all directed forests, in which each attribute has at most one attribute as parent.

    Every forest is equally likely beforehand and counts by its evidence (Cerquides and López de Mántaras 2005); that
    there are more than p^p of them does not matter, as sums over all forests come by elimination. Discrete attributes
    never have a continuous parent; what is constant in the training data stands alone. It needs
    ``parameters="bayes"``, a prior location that is ``"pooled"`` or an array, and sharing 0 or 1. ``structure_`` is
    the most probable forest, ``edge_probability_`` how probable each arc is, from parent (row) to child (column); the
    rest to 1 is the probability that the child has no parent. An average over forests is no product over attributes,
    so there are no ``contributions``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, TreeAverage
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGNClassifier(TreeAverage()).fit(X, y)
    >>> model.edge_probability_.round(2)
    array([[0.  , 0.75, 0.5 , 0.  ],
           [0.25, 0.  , 0.  , 0.  ],
           [0.5 , 0.  , 0.  , 0.75],
           [0.  , 0.  , 0.25, 0.  ]])
    """

    def families(self, schema: Schema) -> Families:
        """Every attribute alone and, once for each pair that may be joined, with a parent."""
        if schema.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"an average over the trees of {schema.n_columns} columns is out of reach: select at most "
                f"{MOST_COLUMNS}, or use Tree"
            )
        return pair_families(schema)

    def model(self, statistics: Statistics, how: Estimation) -> ForestAverage:
        """The average."""
        return ForestAverage.of(statistics, with_evidence(how, "TreeAverage"))


@dataclass(frozen=True, eq=False)
class ForestAverage:
    """The average over all forests of the attributes that are present.

    Parameters
    ----------
    statistics : Statistics
        Of all pairs.
    how : Bayes
    alone : Network
        Naive Bayes: every attribute without a parent.
    nodes : ndarray (nodes,)
        The columns that take part.
    log_weights : ndarray (1 + nodes, nodes)
        Log evidences of every node without a parent and with each that it may have, relative to its greatest.
    elimination : Elimination
        Of these weights.
    """

    statistics: Statistics
    how: Bayes
    alone: Network
    nodes: NDArray[np.intp]
    log_weights: Floats
    elimination: Elimination

    @classmethod
    def of(cls, statistics: Statistics, how: Bayes) -> ForestAverage:
        """From statistics of all pairs."""
        schema = statistics.schema
        refuse_holes(statistics.loose, schema, "TreeAverage weighs forests by the same rows", "take a Tree")
        alone, joined = pair_scores(statistics, how)
        says_something = [levels is None or len(levels) > 1 for levels in schema.levels]
        nodes = np.flatnonzero(np.isfinite(alone) & says_something)
        # Of the two directions of a continuous pair one was scored; with a coherent prior both gain the same.
        turned = np.where(np.isnan(joined), (joined - alone).T + alone, joined)
        is_discrete = np.array([levels is not None for levels in schema.levels])
        turned[np.isnan(turned) | (~is_discrete[:, None] & is_discrete)] = -np.inf
        np.fill_diagonal(turned, -np.inf)
        log_weights = np.vstack([alone[nodes], turned[np.ix_(nodes, nodes)]])
        log_weights -= log_weights.max(axis=0, initial=-np.inf)
        naive = Network.of(Structure.naive_bayes(schema.n_columns), statistics, how)
        return cls(statistics, how, naive, nodes, log_weights, eliminated(log_weights))

    @cached_property
    def _heaviest(self) -> Network:
        """The most probable forest's."""
        parents: list[int | None] = [None] * self.statistics.schema.n_columns
        for child, above in enumerate(heaviest_parents(self.log_weights).tolist()):
            parents[self.nodes[child]] = int(self.nodes[above - 1]) if above else None
        return Network.of(Structure.tree(parents), self.statistics, self.how)

    @property
    def structure(self) -> Structure:
        """The most probable forest."""
        return self._heaviest.structure

    @property
    def n_parameters(self) -> int:
        """Free parameters of the most probable forest, the class's own included."""
        return self._heaviest.n_parameters

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self.alone.class_log_prior

    @cached_property
    def edge_probability(self) -> Floats:
        """How probable each arc is, from parent (row) to child (column): (columns, columns)."""
        n = self.statistics.schema.n_columns
        found = np.zeros((n, n))
        found[np.ix_(self.nodes, self.nodes)] = np.exp(log_arc_probabilities(self.log_weights)[1:])
        return found

    @property
    def log_evidence(self) -> float:
        """ln p(training data), averaged over the forests, the classes included."""
        n_forests = eliminated(np.where(np.isfinite(self.log_weights), 0.0, -np.inf)).log_total
        relative = self.elimination.log_total - float(self.log_weights[0].sum())  # to no arcs at all
        return self.alone.log_evidence + relative - n_forests

    # ---- prediction

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every row and class."""
        from cgnlearn.model.compilation import in_threads
        from cgnlearn.structures.elimination import log_forest_means

        refuse_holes(table.incomplete, table.schema, "a sum over forests leaves none out in closed form", "take a Tree")
        total = self.alone.log_likelihood(table)
        n_nodes = len(self.nodes)
        if n_nodes < 2:
            return total
        step = max(8, min(TILE, CHUNK // n_nodes**2))
        shares = tuple(self.elimination)
        pairs = self._pairs

        def add(part: Table, of_part: Floats, ratios: Floats | None, rows: slice) -> None:
            standard = pairs.standard(part, rows)
            for label, students in enumerate(pairs.students):
                logs = np.zeros((1 + n_nodes, n_nodes, rows.stop - rows.start))
                if ratios is not None:
                    logs[:] = ratios[label, :, :, rows]
                found = np.empty(logs.shape[2])
                log_forest_means(standard, pairs.places, students, logs, self.log_weights, shares, found)
                of_part[rows, label] += found

        for start in range(0, table.n_rows, batch := max(step, MOST_RATIOS // (total.shape[1] * n_nodes**2))):
            stop = min(start + batch, table.n_rows)
            part, of_part = table.rows(np.arange(start, stop)), total[start:stop]
            ratios = self._discrete_ratios(part) if table.schema.discrete else None
            tiles = [slice(first, min(first + step, part.n_rows)) for first in range(0, part.n_rows, step)]
            in_threads(partial(add, part, of_part, ratios), tiles)
        return total

    @cached_property
    def _pairs(self) -> _Pairs:
        """The continuous attributes among the nodes."""
        return _Pairs.of(self.statistics, self.how, self.nodes)

    @cached_property
    def _given_discrete(self) -> list[tuple[int, Blocks]]:
        """For every discrete node the regressions of the continuous columns, in a cell for each of its levels."""
        layout, schema = self.statistics.layout, self.statistics.schema
        return [
            (partition.cells.columns[0], Blocks.of(partition, self.how.posterior(moments, partition, schema), self.how))
            for partition, moments in zip(layout.partitions, self.statistics.moments, strict=True)
            if partition.cells.columns and partition.cells.columns[0] in self.nodes
        ]

    def _discrete_ratios(self, table: Table) -> Floats:
        """ln p(x_v | x_u, class) - ln p(x_v | class) for discrete u: (classes, 1 + nodes, nodes, rows)."""
        n_nodes, layout = len(self.nodes), self.statistics.layout
        place = {int(column): i for i, column in enumerate(self.nodes)}
        found = np.zeros((table.schema.n_classes, 1 + n_nodes, n_nodes, table.n_rows))
        alone = self.alone.contributions(table)[:, self.nodes].transpose(2, 1, 0)
        for family, counts in zip(layout.discrete, self.statistics.counts, strict=True):
            if not {family.column, *family.cells.columns} <= place.keys() or not family.cells.columns:
                continue
            given = densities.categorical(counts, self.how.dirichlet)
            child, parent = place[family.column], place[family.cells.columns[0]]
            found[:, 1 + parent, child] = given[:, family.cells.index(table), table.codes[:, family.code]]
            found[:, 1 + parent, child] -= alone[:, child]
        for column, solver in self._given_discrete:
            for part in solver.terms(table):
                densities_of_part = self.how.log_density(part)
                for i, child in enumerate(part.columns.tolist()):
                    if child in place:
                        at = part.label, 1 + place[column], place[child]
                        found[at][part.rows] = densities_of_part[i] - alone[part.label, place[child], part.rows]
        return found

    def contributions(self, table: Table) -> Floats:
        """There are none: the average is no product over attributes."""
        raise ValueError("an average over forests has no contributions by attribute: fit its structure_ and ask that")

    def leave_one_out(self, table: Table) -> LeftOut:
        """Not in closed form yet."""
        raise NotExact("TreeAverage goes by folds: its weights change with every row that is left out")


class _Pairs(NamedTuple):
    """The continuous nodes, and the regressions of each on each in every class."""

    values: NDArray[np.intp]  # positions among a table's values
    places: NDArray[np.intp]  # positions among the nodes
    units: Units
    students: list[tuple[Any, ...]]  # by class: what `pair_ratios` reads

    @classmethod
    def of(cls, statistics: Statistics, how: Bayes, nodes: NDArray[np.intp]) -> _Pairs:
        """From the statistics of all pairs."""
        schema, layout = statistics.schema, statistics.layout
        whole = [i for i, partition in enumerate(layout.partitions) if not partition.cells.columns]
        if not whole:
            none, empty = np.zeros(0, np.intp), np.zeros(0)
            square = np.zeros((0, 0))
            students = [(empty, empty, square, square, square, 1.0, 1.0)] * schema.n_classes
            return cls(none, none, Units(empty, empty), students)
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
        # `densities.multivariate_student` of two attributes less that of each.
        constant = (gammaln(shape + 1) + gammaln(shape) - 2 * gammaln(shape + 0.5) - shape * np.log(least))[:, None]
        constant = constant - 0.5 * np.log(spread / scale[:, child])

        def square_of(entries: Floats) -> Floats:
            found = np.zeros((len(present), len(present)))
            found[first, second] = entries
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
        return cls(partition.values[present], places, Units(*(part[present] for part in posterior.units)), students)

    def standard(self, table: Table, rows: slice) -> Floats:
        """Values in standard units: (attributes, rows)."""
        if not len(self.values):
            return np.zeros((0, rows.stop - rows.start))
        return np.ascontiguousarray(standard_values(table, rows, self.values, self.units))
