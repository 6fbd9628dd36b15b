"""Learners: what turns the columns of the training data into a structure.

Each is a scikit-learn estimator in its parameters alone, so that ``structure__k`` works in a grid search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from sklearn.base import BaseEstimator

from cgnlearn.model.blocks import Units
from cgnlearn.model.layout import Layout
from cgnlearn.model.network import Network
from cgnlearn.model.prior import Prior
from cgnlearn.model.statistics import Floats, Statistics, collect
from cgnlearn.model.structure import Family, Node, Structure, check_order
from cgnlearn.model.table import Encoder, Table
from cgnlearn.ordered.band import ordered_structure


class Learner(ABC, BaseEstimator):  # type: ignore[misc]
    """A way to a structure over the columns of X."""

    @property
    def needs_rows(self) -> bool:
        """Whether the structure depends on more than the columns' kinds."""
        return False

    @abstractmethod
    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""


class NaiveBayes(Learner):
    """Every attribute depends on the class alone."""

    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""
        return Structure.naive_bayes(len(encoder.levels))


class Complete(Learner):
    """Every attribute depends on all before it, the discrete ones first."""

    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""
        return Structure.jan([[*encoder.discrete, *encoder.continuous]])


class Jan(Learner):
    """Groups of attributes, complete inside and independent between.

    Parameters
    ----------
    groups : list of lists
        Names or indexes of columns. A group's discrete attributes form one cell, on which its continuous ones are
        conditioned. Columns in no group are not in the model.
    """

    def __init__(self, groups: Iterable[Iterable[Node]]) -> None:
        self.groups = groups

    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""
        groups = [[column_index(encoder, node) for node in group] for group in self.groups]
        return Structure.jan([discrete_first(group, encoder) for group in groups])


class Ordered(Learner):
    """The continuous columns in their order; discrete ones depend on the class alone."""

    family: ClassVar[str]

    def __init__(
        self,
        k: int | Literal["cv"] = 1,
        *,
        k_max: int = 50,
        cv: int = 5,
        scoring: Literal["cll", "accuracy"] = "cll",
    ) -> None:
        self.k = k
        self.k_max = k_max
        self.cv = cv
        self.scoring = scoring

    @property
    def needs_rows(self) -> bool:
        """Whether k is to be chosen."""
        return isinstance(self.k, str)

    def check(self) -> None:
        """Refuse parameters that cannot be meant."""
        if self.k != "cv":
            check_order(self.k, otherwise=' or "cv"')
        check_order(self.k_max, "k_max")
        check_order(self.cv, "cv", least=2)
        if self.scoring not in ("cll", "accuracy"):
            raise ValueError(f'scoring must be "cll" or "accuracy", not {self.scoring!r}')

    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""
        self.check()
        if isinstance(self.k, str):
            raise ValueError(f"{self!r} chooses k while a CGNClassifier is fitted: give it to one, or give k a number")
        return ordered_structure(self.family, self.k, encoder)


class Box(Ordered):
    """k-BOX: contiguous groups of ``k`` continuous columns. The parameters are those of `Band`."""

    family = "box"


class Band(Ordered):
    """k-BAND: every continuous column depends on the ``k - 1`` before it.

    Parameters
    ----------
    k : int or "cv", default=1
        ``"cv"``: the best in a stratified cross-validation inside the training data, in which all k cost little more
        than one; the classifier then has ``k_`` and ``cv_results_``.
    k_max : int, default=50
        The greatest k tried.
    cv : int, default=5
        How many folds; fewer where the rarest class has not so many rows, but at least 2.
    scoring : {"cll", "accuracy"}, default="cll"
        What the best k is best at: mean log probability of the true class, or accuracy. Equal ones go by the other
        score, then to the smaller k.
    """

    family = "band"


class Tree(Learner):
    """TAN (Friedman, Geiger and Goldszmidt 1997): the tree of attributes that says most given the class.

    A pair's weight is what knowing one attribute adds to the prediction of the other. Discrete attributes form a
    tree of their own on which the continuous ones grow, so that none of these is the parent of a discrete one.
    Between discrete attributes the evidence differs a little with the direction; the mean of both counts. What is
    constant in the training data stands alone.

    Parameters
    ----------
    score : {"evidence", "mutual_information"}
        ``"evidence"``: the difference of log evidences; ``"mutual_information"``: the conditional mutual information
        given the class, at the maximum likelihood.
    """

    needs_rows = True

    def __init__(self, score: Literal["evidence", "mutual_information"] = "evidence") -> None:
        self.score = score

    def learn(self, table: Table, encoder: Encoder, n_classes: int, prior: Prior) -> Structure:
        """The structure, its nodes being indexes of columns."""
        if self.score not in ("evidence", "mutual_information"):
            raise ValueError(f'Tree\'s score must be "evidence" or "mutual_information", not {self.score!r}')
        n = len(encoder.levels)
        layout = Layout.of(_singles_and_pairs(encoder), encoder, n_classes)
        statistics = collect(table, layout)
        if self.score == "evidence":
            coherent = prior if prior.is_coherent else replace(prior, location="pooled")
            scores = _log_evidences(statistics, encoder, n_classes, coherent)
        else:
            scores = _log_maxima(statistics)
        alone: dict[int, float] = {}
        gain = np.zeros((n, n))  # from parent to child
        pairs: list[tuple[int, int, float]] = []
        for (child, parents), score in scores:
            if parents:
                pairs.append((parents[0], child, score))
            else:
                alone[child] = score
        for parent, child, score in pairs:
            gain[parent, child] = score - alone[child]
        return Structure.tree(_tree_parents(gain, encoder, alone.keys()))


def _singles_and_pairs(encoder: Encoder) -> Iterator[Family]:
    """Every attribute alone and, once for each pair that may be joined, with a parent."""
    n = len(encoder.levels)
    discrete = set(encoder.discrete)
    for child in range(n):
        yield Family(child, ())
    for parent in encoder.discrete:
        for child in range(n):
            if child != parent:
                yield Family(child, (parent,))
    for child in encoder.continuous:  # between continuous attributes the gain is the same both ways
        for parent in range(child):
            if parent not in discrete:
                yield Family(child, (parent,))


def _log_evidences(
    statistics: Statistics, encoder: Encoder, n_classes: int, prior: Prior
) -> Iterator[tuple[Family, float]]:
    network = Network.of(statistics, encoder, np.arange(n_classes), prior=prior)
    return network.family_log_evidences()


def _log_maxima(statistics: Statistics) -> Iterator[tuple[Family, float]]:
    """Each family's greatest log likelihood, up to a constant of the child."""
    layout = statistics.layout
    for family, counts in zip(layout.discrete, statistics.counts, strict=True):
        total = counts.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(counts > 0, counts * np.log(counts / total), 0.0)
        yield Family(family.column, family.cells.columns), float(terms.sum())
    for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
        standard = moments.standardised(Units.of(moments).unit)
        varying = ~moments.constant()
        n = np.where(moments.n > 0, moments.n, 1.0)[..., None]
        variance = standard.scatter[..., : partition.n_attributes] / n
        for stack in partition.stacks:
            for position in range(stack.n_given, stack.size):  # 0 or, with a parent, 1
                child, parent = stack.members[:, position], stack.members[:, 0]
                left = variance[..., child]
                if position:
                    between = standard.scatter[..., partition.pair_index(stack)[:, 0, 1]] / n
                    left = left - between**2 / np.where(variance[..., parent] > 0, variance[..., parent], np.inf)
                # A cell without variance would be infinitely sure of itself: at most ten digits of the attribute's.
                score = -0.5 * (moments.n[..., None] * np.log(np.maximum(left, 1e-20))).sum(axis=(0, 1))
                for block in np.flatnonzero(varying[child] & varying[parent]).tolist():
                    *before, column = partition.columns[stack.members[block, : position + 1]].tolist()
                    yield Family(column, (*partition.cells.columns, *before)), float(score[block])


def _tree_parents(gain: Floats, encoder: Encoder, scored: Container[int]) -> list[int | None]:
    """The best tree's parent of every column, given what each arc gains; what is constant stands alone."""
    parents: list[int | None] = [None] * len(gain)
    discrete, continuous = encoder.discrete, [column for column in encoder.continuous if column in scored]
    if len(discrete) > 1:
        both = gain[np.ix_(discrete, discrete)]
        for child, parent in _grown(both + both.T).items():  # the two directions differ by the prior only
            parents[discrete[child]] = discrete[parent]
    if not continuous:
        return parents
    among = gain[np.ix_(continuous, continuous)]
    among = among + among.T  # of the two directions one was scored
    if not discrete:
        for child, parent in _grown(among).items():
            parents[continuous[child]] = continuous[parent]
        return parents
    # All discrete attributes stand as one root, each continuous one joined to the best of them.
    best = np.array(discrete)[np.argmax(gain[np.ix_(discrete, continuous)], axis=0)]
    joined = np.zeros((len(continuous) + 1,) * 2)
    joined[1:, 1:] = among
    joined[0, 1:] = joined[1:, 0] = gain[best, continuous]
    for child, parent in _grown(joined).items():
        parents[continuous[child - 1]] = int(best[child - 1]) if parent == 0 else continuous[parent - 1]
    return parents


def _grown(gain: Floats) -> dict[int, int]:
    """Child → parent in the maximum spanning tree, grown from node 0."""
    if len(gain) < 2:
        return {}
    # SciPy takes 0 for "no edge" and seeks the least sum: turn the gains into positive costs.
    cost = gain.max() - gain + 1.0
    np.fill_diagonal(cost, 0.0)
    spanning = minimum_spanning_tree(csr_array(cost))
    order, before = breadth_first_order(spanning, 0, directed=False)
    return {int(child): int(before[child]) for child in order[1:]}


def column_index(encoder: Encoder, node: Node) -> int:
    """The column that a node of a structure names."""
    n = len(encoder.levels)
    if isinstance(node, int | np.integer) and not isinstance(node, bool):
        if 0 <= node < n:
            return int(node)
        raise ValueError(f"the structure names column {node}, but X has {n} columns")
    if encoder.names is None:
        raise ValueError(f"the structure names {node!r}, but X has no column names: use indexes")
    if node not in encoder.names:
        raise ValueError(f"the structure names {node!r}, which is not a column of X")
    return encoder.names.index(node)


def structure_of(
    learner: Learner | Structure, table: Table, encoder: Encoder, n_classes: int, prior: Prior
) -> Structure:
    """The structure that a learner learns, or a given one, its nodes being indexes of columns."""
    if isinstance(learner, Learner):
        return learner.learn(table, encoder, n_classes, prior)
    return learner.renamed({node: column_index(encoder, node) for node in learner.nodes})


def discrete_first(group: list[int], encoder: Encoder) -> list[int]:
    """The same columns, the discrete ones ahead, as no continuous one may be their parent."""
    return sorted(group, key=lambda column: encoder.levels[column] is None)
