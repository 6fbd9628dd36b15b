"""TAN: the best tree of attributes, from the statistics of all pairs."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Estimation, Units
from cgnlearn.model.families import Families, Family
from cgnlearn.model.layout import Pairs, Partition
from cgnlearn.model.moments import Moments
from cgnlearn.model.network import Network
from cgnlearn.model.prior import Prior
from cgnlearn.model.schema import Schema
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.structures.learner import Learner

MOST_BYTES = 2 << 30  # of the moments of all pairs, and of what is made of them
CHUNK = 1 << 18  # pairs that are scored together


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

    forgets = False

    def __init__(self, score: Literal["evidence", "mutual_information"] = "evidence") -> None:
        self.score = score

    def families(self, schema: Schema) -> Families:
        """Every attribute alone and, once for each pair that may be joined, with a parent."""
        if self.score not in ("evidence", "mutual_information"):
            raise ValueError(f'Tree\'s score must be "evidence" or "mutual_information", not {self.score!r}')
        m = len(schema.continuous)
        n_bytes = 8 * m * m * (2 * schema.n_classes + 3)  # moments, posterior; gains, costs and their sparse copy
        if n_bytes > MOST_BYTES:
            raise ValueError(
                f"a tree over {m} continuous columns needs about {n_bytes / 2**30:.0f} GB for their covariances: "
                "select columns first, or use Band, Box or naive Bayes"
            )
        alone = [Family(child, ()) for child in schema.discrete]
        joined = [
            Family(child, (parent,))
            for parent in schema.discrete
            for child in range(schema.n_columns)
            if child != parent
        ]
        return Families.of(alone + joined, schema.continuous, max(m, 1))

    def model(self, statistics: Statistics, how: Estimation) -> Network:
        """The best tree's."""
        schema, layout = statistics.schema, statistics.layout
        by_evidence = self.score == "evidence"
        prior = how.prior if how.prior.is_coherent else replace(how.prior, location="pooled")
        n = schema.n_columns
        alone = np.full(n, np.nan)  # stays so where an attribute is absent
        joined = np.full((n, n), np.nan)  # from parent to child
        for family, counts in zip(layout.discrete, statistics.counts, strict=True):
            found = densities.categorical_evidence(counts, prior.dirichlet) if by_evidence else _log_maximum(counts)
            if family.cells.columns:
                joined[family.cells.columns[0], family.column] = found.sum()
            else:
                alone[family.column] = found.sum()
        for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
            scored = (
                _by_evidence(partition, moments, schema, prior)
                if by_evidence
                else _by_maximum(partition, moments, schema, prior)
            )
            columns, present = partition.columns, scored.present
            if partition.cells.columns:
                joined[partition.cells.columns[0], columns[present]] = scored.score(present)
                continue
            alone[columns[present]] = scored.score(present)
            first, second = np.triu_indices(len(present), 1)
            for start in range(0, len(first), CHUNK):
                parent, child = (present[places[start : start + CHUNK]] for places in (first, second))
                joined[columns[parent], columns[child]] = scored.score(child, parent)
        gain = np.where(np.isfinite(joined), joined - alone, 0.0)
        parents = _tree_parents(gain, schema, set(np.flatnonzero(np.isfinite(alone)).tolist()))
        return Network.of(Structure.tree(parents), statistics, how)


class _Scored(NamedTuple):
    """Scores of the continuous attributes of a partition, up to a constant of the child."""

    present: NDArray[np.intp]
    score: Callable[..., Floats]  # of some attributes, alone or each given another, summed over the cells


def _by_evidence(partition: Partition, moments: Moments, schema: Schema, prior: Prior) -> _Scored:
    """Log evidences."""
    posterior = Bayes(prior).posterior(moments, partition, schema)
    before = prior.standard_scale(partition.columns, posterior.units.unit)
    n, log_strength = posterior.n[..., None], np.log(prior.strength / posterior.strength)[..., None]

    def score(child: NDArray[np.intp], parent: NDArray[np.intp] | None = None) -> Floats:
        spread, log_det_ratio, n_parents = posterior.scale[..., child], np.zeros(len(child)), 0
        if parent is not None:
            spread = _left(posterior.scale, posterior.pairs, child, parent)
            log_det_ratio, n_parents = np.log(before[parent] / posterior.scale[..., parent]), 1
        shape = prior.shape + n_parents / 2
        found = densities.regression_evidence(n, shape, before[child], spread, log_det_ratio, log_strength)
        return found.sum(axis=(0, 1))

    return _Scored(np.flatnonzero(~posterior.absent), score)


def _by_maximum(partition: Partition, moments: Moments, schema: Schema, prior: Prior) -> _Scored:
    """Greatest log likelihoods, which know of no prior."""
    standard = moments.standardised(Units.of(moments, partition, schema).unit)
    variance = standard.scatter / np.where(moments.n > 0, moments.n, 1.0)[..., None]

    def score(child: NDArray[np.intp], parent: NDArray[np.intp] | None = None) -> Floats:
        left = variance[..., child] if parent is None else _left(variance, moments.pairs, child, parent)
        # A cell without variance would be infinitely sure of itself: at most ten digits of the attribute's.
        found: Floats = -0.5 * (moments.n[..., None] * np.log(np.maximum(left, 1e-20))).sum(axis=(0, 1))
        return found

    return _Scored(np.flatnonzero(~moments.constant()), score)


def _left(scale: Floats, pairs: Pairs, child: NDArray[np.intp], parent: NDArray[np.intp]) -> Floats:
    """What is left of the child's scale once the parent is known."""
    of_parent = scale[..., parent]
    between = scale[..., pairs.place(parent, child)]
    left: Floats = scale[..., child] - between**2 / np.where(of_parent > 0, of_parent, np.inf)
    return left


def _log_maximum(counts: Floats) -> Floats:
    """The greatest log likelihood of counts: (…, levels), 0 where there are none."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 0, counts * np.log(counts / total), 0.0)


def _tree_parents(gain: Floats, schema: Schema, scored: Container[int]) -> list[int | None]:
    """The best tree's parent of every column, given what each arc gains; what is constant stands alone."""
    parents: list[int | None] = [None] * len(gain)
    discrete, continuous = schema.discrete, [column for column in schema.continuous if column in scored]
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
