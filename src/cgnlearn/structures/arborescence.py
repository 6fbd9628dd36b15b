"""Sums over directed forests, in logarithms and without a subtraction.

A forest gives every node one parent, another node or the root, without a cycle; it weighs the product of its arcs.
Weights are kept as logarithms (1 + nodes, nodes), from parent to child, the root first; -inf where an arc may not be.
Eliminating a node v hands its children on to its parents: with D = Σ_u w(u→v), every w(u→a) grows by
w(u→v) w(v→a) / D. The sum over forests is the product of all D (the scheme of Grassmann, Taksar and Heyman for the
determinant of the matrix-tree theorem): nothing cancels, however far the weights lie apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.kernels.arguments import Elimination


def eliminated(log_weights: Floats) -> Elimination:
    """The sum over all forests, with the shares of every step."""
    n = log_weights.shape[1]
    weights = log_weights
    parents, kept, passed = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    total = 0.0
    for v in reversed(range(n)):
        pivot, before, way = _passed_on(weights, v)
        after = np.logaddexp(before, way)
        total += pivot.log_sum
        parents.append(np.exp(pivot.log_shares))
        with np.errstate(invalid="ignore"):  # an arc that may not be has no shares
            for shares, part in ((kept, before), (passed, way)):
                shares.append(np.where(np.isfinite(after), np.exp(part - after), 0.0).ravel())
        weights = after
    return Elimination(total, *(np.concatenate(shares[::-1]) for shares in (parents, kept, passed)))


class _Pivot(NamedTuple):
    log_sum: float
    log_shares: Floats  # of the root and of every earlier node


def _passed_on(weights: Floats, v: int) -> tuple[_Pivot, Floats, Floats]:
    """Eliminate the last of v + 1 nodes: itself, the weights among the others, and those of the ways through it."""
    into = weights[: v + 1, v]
    log_sum = logsumexp(into)
    log_shares = into - log_sum
    way = log_shares[:, None] + weights[v + 1, :v]
    np.fill_diagonal(way[1:], -np.inf)
    return _Pivot(float(log_sum), log_shares), weights[: v + 1, :v], way


def log_arc_probabilities(log_weights: Floats) -> Floats:
    """ln of the share of every arc in the sum over forests, in the same places.

    A forest with the arc u→v is one in which u does not descend from v, with that arc added. So an arc's share goes by
    its weight and by how often u then hangs from the root.
    """
    found = log_weights + np.vstack([np.zeros(log_weights.shape[1]), _log_from_root(log_weights).T])
    total: Floats = found - logsumexp(found, axis=0, keepdims=True) if found.size else found
    return total


def _log_from_root(weights: Floats) -> Floats:
    """(v, u): ln of the share of forests over all but v, now a second root, in which u hangs from the first.

    Nodes are eliminated by halves, so that each v is spared in turn at the price of a few eliminations in all.
    """
    n = weights.shape[1]
    found = np.full((n, n), -np.inf)
    if n < 2:
        return found
    halves = np.arange(n // 2), np.arange(n // 2, n)
    for spared, out in (halves, halves[::-1]):
        order = np.concatenate([spared, out])
        left = weights[np.concatenate([[0], 1 + order])][:, order]
        pivots = []
        for v in reversed(range(len(spared), n)):
            pivot, before, way = _passed_on(left, v)
            left = np.logaddexp(before, way)
            pivots.append(pivot.log_shares)
        reached = np.full((len(spared), 1 + n), 0.0)  # the root hangs from itself
        reached[:, 1 : 1 + len(spared)] = _log_from_root(left)
        for v, log_shares in zip(range(len(spared), n), reversed(pivots), strict=True):
            reached[:, 1 + v] = logsumexp(log_shares + reached[:, : 1 + v], axis=1)
        found[np.ix_(spared, order)] = reached[:, 1:]
    return found


def heaviest_parents(log_weights: Floats) -> NDArray[np.intp]:
    """The parent of every node in the heaviest forest, 0 for the root and 1 + u for node u.

    By Edmonds (1967): let every node take its best parent; where this makes a cycle, see it as one node, into which an
    arc comes at the price of the arc that it replaces.
    """
    n = log_weights.shape[1]
    parents = np.argmax(log_weights, axis=0) if n else np.zeros(0, np.intp)
    cycles = _cycles(parents)
    if not cycles:
        return parents
    inside = {node for cycle in cycles for node in cycle}
    groups = [*cycles, *([node] for node in range(n) if node not in inside)]
    price = np.where([node in inside for node in range(n)], log_weights[parents, np.arange(n)], 0.0)
    relative = log_weights - price
    # Of all arcs between two groups the best: first over the children's group, then over the parents'.
    into = np.column_stack([relative[:, group].max(axis=1) for group in groups])
    entry = np.column_stack([np.array(group)[relative[:, group].argmax(axis=1)] for group in groups])
    rows = [np.zeros(1, np.intp), *(1 + np.array(group) for group in groups)]
    between = np.vstack([into[row].max(axis=0) for row in rows])
    leaving = np.vstack([row[into[row].argmax(axis=0)] for row in rows])
    between[1 + np.arange(len(groups)), np.arange(len(groups))] = -np.inf
    for group, above in enumerate(heaviest_parents(between).tolist()):
        parent = leaving[above, group]
        parents[entry[parent, group]] = parent
    return parents


def _cycles(parents: NDArray[np.intp]) -> list[list[int]]:
    """The cycles that following parents up runs into."""
    above = (parents - 1).tolist()
    met: dict[int, int] = {}
    cycles = []
    for start in range(len(above)):
        node = start
        while node >= 0 and node not in met:
            met[node] = start
            node = above[node]
        if node >= 0 and met[node] == start:
            cycle = [node]
            while above[cycle[-1]] != node:
                cycle.append(above[cycle[-1]])
            cycles.append(cycle)
    return cycles
