"""TAN: the best tree of features, from the statistics of all pairs."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import Model
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.pairs import pair_families, pair_scores


class TAN(Learner):
    """TAN (Friedman, Geiger and Goldszmidt 1997): the tree of features that says most given the class.

    A pair's weight is what knowing one feature adds to the prediction of the other. Discrete features form a
    tree of their own on which the continuous ones grow, so that none of these is the parent of a discrete one.
    Between discrete features the evidence differs a little with the direction; the mean of both counts. What is
    constant in the training data stands alone.

    Parameters
    ----------
    score : {"evidence", "mutual_information"}
        ``"evidence"``: the difference of log evidences; ``"mutual_information"``: the conditional mutual information
        given the class, at the maximum likelihood.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, TAN
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(TAN()).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (0,), 3: (2,)}
    """

    has_leave_one_out = False

    def __init__(self, score: Literal["evidence", "mutual_information"] = "evidence") -> None:
        self.score = score

    def families(self, schema: Schema) -> Families:
        """Every feature alone and, once for each pair that may be joined, with a parent."""
        if self.score not in ("evidence", "mutual_information"):
            raise ValueError(f'Tree\'s score must be "evidence" or "mutual_information", not {self.score!r}')
        return pair_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Network:
        """The best tree's."""
        return Network.of(self._structure(statistics, estimation.prior), statistics, estimation)

    def models(self, statistics: Statistics, estimations: Sequence[Estimation]) -> list[Model]:
        """One tree for each prior: what classes share plays no part in it."""
        priors = dict.fromkeys(estimation.prior for estimation in estimations)
        trees = {prior: self._structure(statistics, prior) for prior in priors}
        return [Network.of(trees[estimation.prior], statistics, estimation) for estimation in estimations]

    def _structure(self, statistics: Statistics, prior: Prior) -> Structure:
        prior = prior if prior.is_coherent else replace(prior, location="pooled")
        alone, joined = pair_scores(statistics, Bayes(prior) if self.score == "evidence" else None)
        gain = np.where(np.isfinite(joined), joined - alone, 0.0)
        parents = _tree_parents(gain, statistics.schema, set(np.flatnonzero(np.isfinite(alone)).tolist()))
        return Structure.tree(parents)


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
    # All discrete features stand as one root, each continuous one joined to the best of them.
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
