"""TAN: the tree of features with the best score, from the statistics of all pairs."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
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
from cgnlearn.structures.arborescence import heaviest_parents
from cgnlearn.structures.edges import Arc, Edges, arcs_of, check_forest
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.pairs import costs_of_lost_samples, pair_families, pair_scores


class TAN(Learner):
    """Tree-augmented naive Bayes (Friedman, Geiger and Goldszmidt 1997): the tree of features with the best score.

    The score of a tree is the sum over its edges. Discrete features form a tree of their own to which the continuous
    ones are attached, so that no continuous feature is the parent of a discrete one. Between discrete features the
    evidence depends slightly on the direction; their mean is used. Constant features have no edges. Where values are
    missing, an edge counts by the samples in which both features are observed, less what the child loses by the
    others: one that loses samples and is not worth them is not taken, and a feature may be left without a parent.

    Parameters
    ----------
    score : {"evidence", "mutual_information"}
        ``"evidence"``: the difference of log evidences; ``"mutual_information"``: the conditional mutual information
        given the class, at the maximum likelihood.
    required, forbidden : sequence of (parent, child), optional
        Edges that the tree must have, and edges that it must not have, as names or indexes of columns. An edge that is
        forbidden in one direction may be taken in the other: forbid both to keep two features apart. Edges of features
        that are constant in training are ignored.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, TAN
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(TAN()).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (0,), 3: (2,)}
    >>> CGNClassifier(TAN(required=[(3, 1)], forbidden=[(0, 2), (2, 0)])).fit(X, y).structure_.parents
    {3: (), 1: (3,), 2: (3,), 0: (1,)}
    """

    has_leave_one_out = False

    def __init__(
        self,
        score: Literal["evidence", "mutual_information"] = "evidence",
        required: Edges = (),
        forbidden: Edges = (),
    ) -> None:
        self.score = score
        self.required = required
        self.forbidden = forbidden

    def families(self, schema: Schema) -> Families:
        if self.score not in ("evidence", "mutual_information"):
            raise ValueError(f'TAN\'s score must be "evidence" or "mutual_information", not {self.score!r}')
        self._arcs(schema)
        return pair_families(schema)

    def _arcs(self, schema: Schema) -> tuple[list[Arc], list[Arc]]:
        """Required and forbidden arcs between columns."""
        required, forbidden = (
            arcs_of(edges, schema, f"TAN's {what}")
            for edges, what in ((self.required, "required"), (self.forbidden, "forbidden"))
        )
        check_forest(required, forbidden, schema)
        return required, forbidden

    def model(self, statistics: Statistics, estimation: Estimation) -> Network:
        return Network.of(self._structure(statistics, estimation.prior), statistics, estimation)

    def models(self, statistics: Statistics, estimations: Sequence[Estimation]) -> list[Model]:
        # One tree for each prior: the sharing does not enter the scores.
        priors = dict.fromkeys(estimation.prior for estimation in estimations)
        trees = {prior: self._structure(statistics, prior) for prior in priors}
        return [Network.of(trees[estimation.prior], statistics, estimation) for estimation in estimations]

    def _structure(self, statistics: Statistics, prior: Prior) -> Structure:
        # Ranges by class say nothing about which features depend on each other.
        prior = (prior if prior.is_coherent else replace(prior, location="pooled")).class_free
        alone, joined = pair_scores(statistics, Bayes(prior) if self.score == "evidence" else None)
        without_values = set(statistics.without_values)
        varies = [levels is None or len(levels) > 1 for levels in statistics.schema.levels]
        scored = np.setdiff1d(np.flatnonzero(np.isfinite(alone) & varies), list(without_values))
        required, forbidden = self._arcs(statistics.schema)
        is_complete = without_values.issuperset(statistics.incomplete)
        if is_complete and not required and not forbidden:
            gain = np.where(np.isfinite(joined), joined - alone, 0.0)
            parents = _tree_parents(gain, statistics.schema, set(scored.tolist()))
        else:
            cost = np.zeros_like(joined) if is_complete else costs_of_lost_samples(statistics)
            parents = _forest_parents(joined - alone, cost, statistics.schema, scored, required, forbidden)
        return Structure.tree(parents)


def _forest_parents(
    gain: Floats,
    cost: Floats,
    schema: Schema,
    scored: NDArray[np.intp],
    required: Sequence[Arc],
    forbidden: Sequence[Arc],
) -> list[int | None]:
    """Parent of every column in the best forest, given gain and cost of each arc.

    No arc that costs samples is taken unless it gains more; a column that has arcs without a cost takes one of these,
    as in a tree, if it can.
    """
    is_discrete = np.array([levels is not None for levels in schema.levels])
    gain = np.where(np.isnan(gain), gain.T, gain)  # of the two directions of a continuous pair one was scored
    worth = np.where(np.isnan(gain) | (~is_discrete[:, None] & is_discrete), -np.inf, gain - cost)
    worth = np.where((cost > 0) & (worth <= 0), -np.inf, worth)
    np.fill_diagonal(worth, -np.inf)
    for parent, child in forbidden:
        worth[parent, child] = -np.inf
    kept = {(parent, child) for parent, child in required if parent in scored and child in scored}
    for parent, child in kept:
        worth[:, child] = np.where(np.arange(len(worth)) == parent, np.nan_to_num(gain[parent, child]), -np.inf)
    worth = worth[np.ix_(scored, scored)]
    some = np.isfinite(worth)
    is_free = (some & (cost[np.ix_(scored, scored)] == 0)).any(axis=0)
    alone = np.where(is_free, -1.0 - 2 * np.abs(worth[some]).sum(), 0.0)
    alone[np.isin(scored, [child for _, child in kept])] = -np.inf
    parents: list[int | None] = [None] * len(gain)
    for child, above in enumerate(heaviest_parents(np.vstack([alone, worth])).tolist()):
        parents[scored[child]] = int(scored[above - 1]) if above else None
    return parents


def _tree_parents(gain: Floats, schema: Schema, scored: Container[int]) -> list[int | None]:
    """Parent of every column in the best tree, given the gain of each arc; columns that are not scored have none."""
    parents: list[int | None] = [None] * len(gain)
    discrete, continuous = (
        [column for column in kind if column in scored] for kind in (schema.discrete, schema.continuous)
    )
    if len(discrete) > 1:
        both = gain[np.ix_(discrete, discrete)]
        for child, parent in _spanning_parents(both + both.T).items():  # the two directions differ by the prior only
            parents[discrete[child]] = discrete[parent]
    if not continuous:
        return parents
    among = gain[np.ix_(continuous, continuous)]
    among = among + among.T  # of the two directions one was scored
    if not discrete:
        for child, parent in _spanning_parents(among).items():
            parents[continuous[child]] = continuous[parent]
        return parents
    # All discrete features together are the root; a continuous one attaches to the best of them.
    best = np.array(discrete)[np.argmax(gain[np.ix_(discrete, continuous)], axis=0)]
    joined = np.zeros((len(continuous) + 1,) * 2)
    joined[1:, 1:] = among
    joined[0, 1:] = joined[1:, 0] = gain[best, continuous]
    for child, parent in _spanning_parents(joined).items():
        parents[continuous[child - 1]] = int(best[child - 1]) if parent == 0 else continuous[parent - 1]
    return parents


def _spanning_parents(gain: Floats) -> dict[int, int]:
    """Child → parent in the maximum spanning tree rooted at node 0."""
    if len(gain) < 2:
        return {}
    # SciPy reads 0 as "no edge" and minimises: turn the gains into positive costs.
    cost = gain.max() - gain + 1.0
    np.fill_diagonal(cost, 0.0)
    spanning = minimum_spanning_tree(csr_array(cost))
    order, before = breadth_first_order(spanning, 0, directed=False)
    return {int(child): int(before[child]) for child in order[1:]}
