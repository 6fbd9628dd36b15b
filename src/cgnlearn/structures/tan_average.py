"""The average over all directed forests of features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Elimination
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import LeaveOneOut, NotExactError, require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.arborescence import eliminated, heaviest_parents, log_arc_probabilities
from cgnlearn.structures.learner import Learner, with_evidence
from cgnlearn.structures.pairs import pair_families, pair_scores
from cgnlearn.structures.ratios import Ratios

MOST_COLUMNS = 700  # whose elimination takes 2 GB
MOST_RATIOS = 1 << 23  # numbers that are held for one batch of samples
CHUNK = 1 << 15  # densities of one tile of samples under one class: they stay in the second-level cache
TILE = 64  # samples


class TANAverage(Learner):
    """The exact average over all directed forests, in which each feature has at most one feature as parent.

    Every forest is equally likely beforehand and counts by its evidence (Cerquides and López de Mántaras 2005); that
    there are more than p^p of them does not matter, as sums over all forests come by elimination. Discrete features
    never have a continuous parent; what is constant in the training data stands alone. It needs
    ``estimation="bayes"``, a prior location that is ``"pooled"`` or an array, and sharing 0 or 1. ``structure_`` is
    the most probable forest, ``edge_probability_`` how probable each arc is, from parent (row) to child (column); the
    rest to 1 is the probability that the child has no parent. An average over forests is no product over features, so
    there are no ``contributions``.

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
        """Every feature alone and, once for each pair that may be joined, with a parent."""
        if schema.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"an average over the trees of {schema.n_columns} columns is out of reach: select at most "
                f"{MOST_COLUMNS}, or use Tree"
            )
        return pair_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> ForestAverage:
        """The average."""
        return ForestAverage.of(statistics, with_evidence(estimation, "TANAverage"))


@dataclass(frozen=True, eq=False)
class ForestAverage:
    """The average over all forests of the features that are present.

    Parameters
    ----------
    statistics : Statistics
        Of all pairs.
    how : Bayes
    alone : Network
        Naive Bayes: every feature without a parent.
    nodes : ndarray (nodes,)
        The columns that take part.
    log_weights : ndarray (1 + nodes, nodes)
        Log evidences of every node without a parent and with each that it may have, relative to its greatest.
    elimination : Elimination
        Of these weights.
    """

    statistics: Statistics
    estimation: Bayes
    alone: Network
    nodes: NDArray[np.intp]
    log_weights: Floats
    elimination: Elimination

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes) -> ForestAverage:
        """From statistics of all pairs."""
        schema = statistics.schema
        require_complete(statistics.incomplete, schema, "TANAverage weighs forests by the same samples", "take a Tree")
        alone, joined = pair_scores(statistics, estimation)
        says_something = [levels is None or len(levels) > 1 for levels in schema.levels]
        nodes = np.flatnonzero(np.isfinite(alone) & says_something)
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
        """The most probable forest's."""
        parents: list[int | None] = [None] * self.statistics.schema.n_columns
        for child, above in enumerate(heaviest_parents(self.log_weights).tolist()):
            parents[self.nodes[child]] = int(self.nodes[above - 1]) if above else None
        return Network.of(Structure.tree(parents), self.statistics, self.estimation)

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
        """Log probabilities of the classes before anything is seen of a sample."""
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
        """ln p(x | class) of every sample and class."""
        from cgnlearn.kernels.compilation import in_threads
        from cgnlearn.kernels.forests import log_forest_means, pair_ratios

        require_complete(
            table.incomplete, table.schema, "a sum over forests leaves none out in closed form", "take a Tree"
        )
        total = self.alone.log_likelihood(table)
        pairs = self._ratios.pairs

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
            given = self._ratios.discrete(part) if table.schema.discrete else None
            in_threads(partial(add, part, start, given), range(0, part.n_samples, step))
        return total

    @cached_property
    def _ratios(self) -> Ratios:
        return Ratios(self.statistics, self.estimation, self.alone, self.nodes)

    def contributions(self, table: Table) -> Floats:
        """There are none: the average is no product over features."""
        raise ValueError("an average over forests has no contributions by feature: fit its structure_ and ask that")

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        """Not exact: the weights of the forests change with every sample."""
        raise NotExactError("an average over forests weighs them anew without every sample: take folds")
