"""Sums over directed forests, in logarithms and without subtraction.

A forest gives every node one parent, another node or the root, without a cycle; its weight is the product of its arcs.
Weights are logarithms (1 + nodes, nodes), from parent to child, the root first; -inf where an arc is not allowed.
Eliminating a node v adds w(u→v) w(v→a) / D to every w(u→a), with D = Σ_u w(u→v). The sum over forests is the product
of all D (the scheme of Grassmann, Taksar and Heyman for the determinant of the matrix-tree theorem). Nothing cancels,
whatever the range of the weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.kernels.arguments import Elimination


def eliminated(log_weights: Floats) -> Elimination:
    """Eliminate all nodes: the sum over all forests, with the shares of every step."""
    n = log_weights.shape[1]
    weights = log_weights
    parents, kept, passed = [np.zeros(0)], [np.zeros(0)], [np.zeros(0)]
    total = 0.0
    for v in reversed(range(n)):
        log_sum, log_shares, direct, through = _eliminate(weights, v)
        after = np.logaddexp(direct, through)
        total += log_sum
        parents.append(np.exp(log_shares))
        with np.errstate(invalid="ignore"):  # arcs that are not allowed have no shares
            for shares, part in ((kept, direct), (passed, through)):
                shares.append(np.where(np.isfinite(after), np.exp(part - after), 0.0).ravel())
        weights = after
    return Elimination(total, *(np.concatenate(shares[::-1]) for shares in (parents, kept, passed)))


def _eliminate(weights: Floats, v: int) -> tuple[float, Floats, Floats, Floats]:
    """ln D of the last of v + 1 nodes, the shares of its parents, and arcs among the others: direct and through it."""
    into = weights[: v + 1, v]
    log_sum = float(logsumexp(into))
    log_shares = into - log_sum
    through = log_shares[:, None] + weights[v + 1, :v]
    np.fill_diagonal(through[1:], -np.inf)
    return log_sum, log_shares, weights[: v + 1, :v], through


def log_arc_probabilities(log_weights: Floats) -> Floats:
    """ln of the share of every arc in the sum over forests: (1 + nodes, nodes).

    A forest with the arc u→v is a forest of the others in which u does not descend from v, with that arc added. So an
    arc's share is proportional to its weight times the share of forests in which u then descends from the root.
    """
    log_shares = log_weights + np.vstack([np.zeros(log_weights.shape[1]), _log_from_root(log_weights).T])
    return log_shares - logsumexp(log_shares, axis=0, keepdims=True) if log_shares.size else log_shares


def _log_from_root(weights: Floats) -> Floats:
    """(v, u): ln of the share of forests, with v as a second root, in which u descends from the first root.

    Nodes are eliminated by halves, so that all v together cost only a few complete eliminations.
    """
    n = weights.shape[1]
    found = np.full((n, n), -np.inf)
    if n < 2:
        return found
    halves = np.arange(n // 2), np.arange(n // 2, n)
    for kept, removed in (halves, halves[::-1]):
        order = np.concatenate([kept, removed])
        remaining = weights[np.concatenate([[0], 1 + order])][:, order]
        log_shares = []
        for v in reversed(range(len(kept), n)):
            _, shares, direct, through = _eliminate(remaining, v)
            remaining = np.logaddexp(direct, through)
            log_shares.append(shares)
        reached = np.full((len(kept), 1 + n), 0.0)  # the root descends from itself
        reached[:, 1 : 1 + len(kept)] = _log_from_root(remaining)
        for v, shares in zip(range(len(kept), n), reversed(log_shares), strict=True):
            reached[:, 1 + v] = logsumexp(shares + reached[:, : 1 + v], axis=1)
        found[np.ix_(kept, order)] = reached[:, 1:]
    return found


def heaviest_parents(log_weights: Floats) -> NDArray[np.intp]:
    """Parent of every node in the heaviest forest, 0 for the root and 1 + u for node u.

    By Edmonds (1967): every node takes its best parent; a cycle is contracted to one node, and the weight of an arc
    into it is reduced by that of the arc it replaces.
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
    # The best arc between two groups: the maximum over the children's group, then over the parents'.
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
    """Cycles of the graph in which every node has one parent."""
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
