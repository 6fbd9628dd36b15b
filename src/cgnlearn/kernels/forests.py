"""Compiled loops of the average over forests: densities of all pairs of features, and sums over forests."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Elimination, PairStudents
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms

FARTHEST_APART = 600.0  # nats: factors that span more might underflow


@compiled
def log_forest_means(logs: Any, log_weights: Any, shares: Elimination, out: Any) -> None:
    """ln of the mean over forests of a product of factors: (samples,).

    ``logs`` (1 + nodes, nodes, samples) are the logarithms of the factors; those of the root's arcs are 0.
    """
    n_nodes, n_samples = logs.shape[1], logs.shape[2]
    highest = np.zeros((n_nodes, n_samples))
    apart = np.zeros(n_samples)
    lowest = np.empty(n_samples)
    for a in range(n_nodes):
        top = highest[a]
        lowest[:] = 0.0
        for u in range(1, 1 + n_nodes):
            if log_weights[u, a] > -np.inf:
                found = logs[u, a]
                for t in range(n_samples):
                    top[t] = max(top[t], found[t])
                    lowest[t] = min(lowest[t], found[t])
        for t in range(n_samples):
            apart[t] += top[t] - lowest[t]
    factors = np.empty_like(logs)
    scratch = np.empty(n_samples)
    for a in range(n_nodes):
        for u in range(1 + n_nodes):
            if log_weights[u, a] > -np.inf:
                for t in range(n_samples):
                    factors[u, a, t] = logs[u, a, t] - highest[a, t]
                exponentials(factors[u, a], scratch)
    _eliminate(factors, shares, out)
    for t in range(n_samples):
        if apart[t] > FARTHEST_APART:
            out[t] = _log_mean(logs[:, :, t], log_weights, shares.log_total)
        else:
            out[t] += highest[:, t].sum()


@compiled
def pair_ratios(standard: Any, places: Any, students: PairStudents, logs: Any) -> None:
    """ln p(x_v | x_u) - ln p(x_v) of all continuous pairs, the same in both directions, into ``logs``."""
    centre, shrink, slope, own_shrink, constant, least, power = students
    m, n_samples = standard.shape
    away = np.empty((m, n_samples))
    leverage = np.empty((m, n_samples))
    single = np.empty((m, n_samples))
    whole = np.empty(n_samples)
    scratch = np.empty(n_samples)
    for v in range(m):
        for t in range(n_samples):
            away[v, t] = standard[v, t] - centre[v]
            white = away[v, t] * shrink[v]
            leverage[v, t] = least + white * white
            single[v, t] = leverage[v, t]
        logarithms(single[v], scratch)
    for v in range(m):
        for u in range(v):
            tilt, scale, height = slope[u, v], own_shrink[u, v], constant[u, v]
            for t in range(n_samples):
                white = (away[v, t] - tilt * away[u, t]) * scale
                whole[t] = leverage[u, t] + white * white
            logarithms(whole, scratch)
            there, back = logs[1 + places[u], places[v]], logs[1 + places[v], places[u]]
            for t in range(n_samples):
                there[t] = height + power * (single[u, t] + single[v, t]) - (power + 0.5) * whole[t]
                back[t] = there[t]


@compiled
def _eliminate(factors: Any, shares: Elimination, out: Any) -> None:
    """ln of the ratio of sums over forests with and without factors (1 + nodes, nodes, samples) of the weights."""
    _, parents, kept, passed = shares
    n_nodes, n_samples = factors.shape[1], factors.shape[2]
    whole = np.empty(n_samples)
    product = np.ones(n_samples)
    ratio = np.empty(n_samples)
    for v in range(n_nodes - 1, -1, -1):
        of_parents = parents[v * (v + 1) // 2 :]
        whole[:] = 0.0
        for u in range(v + 1):
            share, into = of_parents[u], factors[u, v]
            if share > 0:
                for t in range(n_samples):
                    whole[t] += share * into[t]
        for t in range(n_samples):
            product[t] *= whole[t]
            whole[t] = 1.0 / whole[t]
        start = (v - 1) * v * (v + 1) // 3
        for a in range(v):
            below = factors[1 + v, a]
            for t in range(n_samples):
                ratio[t] = below[t] * whole[t]
            for u in range(v + 1):
                more = passed[start + u * v + a]
                if more > 0:
                    keep, into, found = kept[start + u * v + a], factors[u, v], factors[u, a]
                    if keep > 0:
                        for t in range(n_samples):
                            found[t] = keep * found[t] + more * (into[t] * ratio[t])
                    else:
                        for t in range(n_samples):
                            found[t] = more * (into[t] * ratio[t])
    for t in range(n_samples):
        out[t] = np.log(product[t])


@compiled
def _log_mean(logs: Any, log_weights: Any, log_total: float) -> float:
    """`log_forest_means` of one sample in logarithms: slow, and safe for densities of any size."""
    n_nodes = logs.shape[1]
    weights = log_weights + logs
    total = -log_total
    for v in range(n_nodes - 1, -1, -1):
        into = weights[: v + 1, v].copy()
        top = into.max()
        log_sum = top + np.log(np.exp(into - top).sum())
        total += log_sum
        for a in range(v):
            for u in range(v + 1):
                way = into[u] - log_sum + weights[1 + v, a]
                if u != 1 + a and way > -np.inf:
                    high, low = max(weights[u, a], way), min(weights[u, a], way)
                    weights[u, a] = high + np.log1p(np.exp(low - high))
    return total
