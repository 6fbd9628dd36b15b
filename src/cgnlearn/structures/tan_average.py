"""TANAverage: the average over all directed forests of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Elimination, PairStudents
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Bayes, Estimation, Units
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import LeaveOneOut, NotExactError, require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values
from cgnlearn.networks.stacked import around
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.arborescence import eliminated, heaviest_parents, log_arc_probabilities
from cgnlearn.structures.learner import Learner, with_evidence
from cgnlearn.structures.pairs import conditional_scale, pair_families, pair_scores

MOST_COLUMNS = 700  # whose elimination takes 2 GB
MOST_RATIOS = 1 << 23  # numbers that are held for one batch of samples
CHUNK = 1 << 15  # densities of one tile of samples under one class: they stay in the second-level cache
TILE = 64  # samples


class TANAverage(Learner):
    """The exact average over all directed forests, in which each feature has at most one feature as parent.

    Every forest is equally likely a priori and is weighted by its evidence (Cerquides and López de Mántaras 2005).
    Sums over all forests, of which there are more than p^p, are computed by elimination. Discrete features never have
    a continuous parent; constant features have no arcs. It needs ``estimation="bayes"``, a prior location that is
    ``"pooled"`` or an array, and sharing 0 or 1. ``structure_`` is the most probable forest; ``edge_probability_`` has
    the probability of each arc, from parent (row) to child (column), whose sums over parents fall short of 1 by the
    probability that the child has no parent. An average over forests is no product over features, so there are no
    ``contributions``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, TANAverage
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGNClassifier(TANAverage()).fit(X, y)
    >>> model.edge_probability_.round(2)
    array([[0.  , 0.75, 0.5 , 0.  ],
           [0.25, 0.  , 0.  , 0.  ],
           [0.5 , 0.  , 0.  , 0.75],
           [0.  , 0.  , 0.25, 0.  ]])
    """

    has_leave_one_out = accepts_missing = is_sum = False

    def families(self, schema: Schema) -> Families:
        if schema.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"an average over the forests of {schema.n_columns} columns needs too much memory: select at most "
                f"{MOST_COLUMNS} columns, or use TAN"
            )
        return pair_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> ForestAverage:
        return ForestAverage.of(statistics, with_evidence(estimation.even(statistics.schema), "TANAverage"))


@dataclass(frozen=True, eq=False)
class ForestAverage:
    """The average over all forests of the features that are present."""

    statistics: Statistics  # of all pairs
    estimation: Bayes
    alone: Network  # naive Bayes: every feature without a parent
    nodes: NDArray[np.intp]  # the columns in the forests
    log_weights: Floats  # log evidences without a parent and with each, relative to the greatest: (1 + nodes, nodes)
    elimination: Elimination  # of these weights

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes) -> ForestAverage:
        """Average from statistics of all pairs."""
        schema = statistics.schema
        require_complete(statistics.incomplete, schema, "TANAverage needs complete samples", "use TAN")
        alone, joined = pair_scores(statistics, estimation)
        varies = [levels is None or len(levels) > 1 for levels in schema.levels]
        nodes = np.flatnonzero(np.isfinite(alone) & varies)
        # Of the two directions of a continuous pair one was scored; with a coherent prior both gain the same.
        turned = np.where(np.isnan(joined), (joined - alone).T + alone, joined)
        is_discrete = np.array([levels is not None for levels in schema.levels])
        turned[np.isnan(turned) | (~is_discrete[:, None] & is_discrete)] = -np.inf
        np.fill_diagonal(turned, -np.inf)
        log_weights = np.vstack([alone[nodes], turned[np.ix_(nodes, nodes)]])
        log_weights -= log_weights.max(axis=0, initial=-np.inf)
        naive = Network.of(Structure.naive_bayes(schema.n_columns), statistics, estimation)
        return cls(statistics, estimation, naive, nodes, log_weights, eliminated(log_weights))

    @cached_property
    def _heaviest(self) -> Network:
        """Network of the most probable forest."""
        parents: list[int | None] = [None] * self.statistics.schema.n_columns
        for child, above in enumerate(heaviest_parents(self.log_weights).tolist()):
            parents[self.nodes[child]] = int(self.nodes[above - 1]) if above else None
        return Network.of(Structure.tree(parents), self.statistics, self.estimation)

    @property
    def structure(self) -> Structure:
        return self._heaviest.structure

    @property
    def n_parameters(self) -> int:
        return self._heaviest.n_parameters

    @property
    def class_log_prior(self) -> Floats:
        return self.alone.class_log_prior

    @cached_property
    def edge_probability(self) -> Floats:
        """Probability of each arc, from parent (row) to child (column): (columns, columns)."""
        n = self.statistics.schema.n_columns
        found = np.zeros((n, n))
        found[np.ix_(self.nodes, self.nodes)] = np.exp(log_arc_probabilities(self.log_weights)[1:])
        return found

    @property
    def log_evidence(self) -> float:
        n_forests = eliminated(np.where(np.isfinite(self.log_weights), 0.0, -np.inf)).log_total
        relative = self.elimination.log_total - float(self.log_weights[0].sum())  # to no arcs at all
        return self.alone.log_evidence + relative - n_forests

    # ---- prediction

    def log_likelihood(self, table: Table) -> Floats:
        from cgnlearn.kernels.compilation import in_threads
        from cgnlearn.kernels.forests import log_forest_means, pair_ratios

        require_complete(table.incomplete, table.schema, "TANAverage needs complete samples", "use TAN")
        total = self.alone.log_likelihood(table)
        pairs = self._continuous_pairs
        n_nodes, n_classes = len(self.nodes), total.shape[1]
        if n_nodes < 2:
            return total
        step = max(8, min(TILE, CHUNK // n_nodes**2))
        batch = max(step, MOST_RATIOS // (n_classes * n_nodes**2))

        def add(part: Table, start: int, given: Floats | None, first: int) -> None:
            tile = slice(first, min(first + step, part.n_samples))
            n, standard = tile.stop - tile.start, pairs.standard(part, tile)
            for label, students in enumerate(pairs.students):
                logs = np.zeros((1 + n_nodes, n_nodes, n)) if given is None else given[label][..., tile].copy()
                pair_ratios(standard, pairs.places, students, logs)
                found = np.empty(n)
                log_forest_means(logs, self.log_weights, self.elimination, found)
                total[start + tile.start : start + tile.stop, label] += found

        for start in range(0, table.n_samples, batch):
            part = table.rows(np.arange(start, min(start + batch, table.n_samples)))
            given = self._discrete_log_ratios(part) if table.schema.discrete else None
            in_threads(partial(add, part, start, given), range(0, part.n_samples, step))
        return total

    @cached_property
    def _continuous_pairs(self) -> _ContinuousPairs:
        return _ContinuousPairs.of(self.statistics, self.estimation, self.nodes)

    @cached_property
    def _given_discrete(self) -> list[tuple[int, Blocks]]:
        """Every discrete node with the regressions of the continuous columns in a cell for each of its levels."""
        layout, schema = self.statistics.layout, self.statistics.schema
        found = []
        for partition, moments in zip(layout.partitions, self.statistics.moments, strict=True):
            if partition.cells.columns and partition.cells.columns[0] in self.nodes:
                posterior = self.estimation.posterior(moments, partition, schema)
                found.append((partition.cells.columns[0], Blocks.of(partition, posterior, self.estimation)))
        return found

    def _discrete_log_ratios(self, table: Table) -> Floats:
        """ln p(x_v | x_u, class) - ln p(x_v | class) for discrete u: (classes, 1 + nodes, nodes, samples)."""
        place = {int(column): i for i, column in enumerate(self.nodes)}
        found = np.zeros((table.schema.n_classes, 1 + len(place), len(place), table.n_samples))
        alone = self.alone.contributions(table)[:, self.nodes].transpose(2, 1, 0)
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            if family.cells.columns and {family.column, *family.cells.columns} <= place.keys():
                given = densities.categorical(counts, self.estimation.dirichlet)
                child, parent = place[family.column], place[family.cells.columns[0]]
                found[:, 1 + parent, child] = given[:, family.cells.index(table), table.codes[:, family.code]]
                found[:, 1 + parent, child] -= alone[:, child]
        for column_of_parent, solver in self._given_discrete:
            parent = place[column_of_parent]
            for part in solver.terms(table):
                log_densities = self.estimation.log_density(part)
                for i, column in enumerate(part.columns.tolist()):
                    if column in place:
                        at = part.label, 1 + parent, place[column]
                        found[at][part.rows] = log_densities[i] - alone[part.label, place[column], part.rows]
        return found

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        """Those of the most probable structure, around the average."""
        known = self.log_likelihood(table) if log_likelihood is None else log_likelihood
        return around(self._heaviest, table, known)

    def contributions(self, table: Table) -> Floats:
        raise ValueError("an average over forests has no contributions by feature: fit its structure_ instead")

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        raise NotExactError("leave-one-out of an average over forests has no closed form: use folds")


class _ContinuousPairs(NamedTuple):
    """The continuous nodes, and their pairwise regressions in every class."""

    values: NDArray[np.intp]  # positions among a table's values
    places: NDArray[np.intp]  # positions among the nodes
    units: Units
    students: list[PairStudents]  # by class

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes, nodes: NDArray[np.intp]) -> _ContinuousPairs:
        """Regressions from statistics of all pairs."""
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
        # From `densities.multivariate_student` of two features minus that of each.
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
