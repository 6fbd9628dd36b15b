"""Mixtures of the densities of all orders, compiled. Imported only where it runs, as it needs numba."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.ordered.recursion import _residuals

NEGLIGIBLE = 37.0  # nats: what lies so far below a sum does not change its last digit
OVERFLOWING = 600.0  # nats: sums are measured anew before a term would overflow


@compiled
def add_densities(
    width: int, scale: Any, coefficients: Any, values: Any, centre: Any, law: Any, start: int, stop: int, mixture: Any
) -> None:
    """Add the weighted densities of all orders to the mixtures of the nodes start..stop: ln, (nodes, rows).

    ``law`` are, for every node and order, the log of the weighted density at f = 0 and h = 1 (-inf: not taken part) and
    ρ', and the least h. Where a node's mixture is -inf nothing has been added to it yet.

    No density is above that at f = 0 and h = 1. So a term whose greatest value lies `NEGLIGIBLE` below what has been
    added already, in every row at hand, is left out: usually all but a few orders, and never one that would be seen.
    """
    found, sound, _ = coefficients
    peak, shape, least = law
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    spread = found[2]
    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    reference, total, term, root = np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width)
    for column in range(0, values.shape[1], width):
        for v in range(first, stop):
            _residuals(scale, values, centre, v, first, column, found, sound, state)
            n_orders = min(orders, v + 1)
            best = np.argmax(peak[v, :n_orders])
            if v < start or peak[v, best] == -np.inf:
                continue
            i = v - first
            begun = mixture[v, column] > -np.inf
            if begun:
                reference[:] = mixture[v, column : column + width]
            else:
                _term(state, best, 1.0 / spread[i, best], least, shape[v, best], term, root)
                for r in range(width):
                    reference[r] = peak[v, best] + term[r] + math.log(root[r])
            total[:] = 1.0
            lowest = reference.min() - NEGLIGIBLE
            for j in range(n_orders):
                if peak[v, j] < lowest or (j == best and not begun):
                    continue
                _term(state, j, 1.0 / spread[i, j], least, shape[v, j], term, root)
                greatest = -np.inf
                for r in range(width):
                    term[r] += peak[v, j] - reference[r]
                    greatest = max(greatest, term[r])
                if greatest > OVERFLOWING:
                    for r in range(width):
                        if term[r] > 0.0:
                            total[r] *= math.exp(-term[r])
                            reference[r] += term[r]
                            term[r] = 0.0
                for r in range(width):
                    total[r] += math.exp(term[r]) * root[r]
            for r in range(width):
                mixture[v, column + r] = reference[r] + math.log(total[r])


@compiled
def _term(state: Any, j: int, inverse: float, least: float, rho: float, term: Any, root: Any) -> None:
    """Of Student's density with h = ``least`` + q and g = h + f²/F, ρ' ln(h/g) and g^(-1/2) of a few rows."""
    all_f, all_q = state[1], state[2]
    for r in range(len(term)):
        h = least + all_q[j, r]
        g = h + all_f[j, r] * all_f[j, r] * inverse
        term[r] = h / g
        root[r] = 1.0 / math.sqrt(g)
    for r in range(len(term)):
        term[r] = rho * math.log(term[r])
