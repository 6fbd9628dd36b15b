"""Mixtures of the densities of all orders, compiled.

Nearly all the time goes into logarithms and exponentials, one of each for every term.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import MixedLaw, Stretch
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms
from cgnlearn.kernels.lattice import residuals

NEGLIGIBLE = 28.0  # nats: hundreds of terms so far below a sum change it by less than 1e-9
OVERFLOWING = 600.0  # nats: the reference of a sum is raised before a term overflows


@compiled
def add_densities(width: int, stretch: Stretch, values: Any, centre: Any, law: MixedLaw, mixture: Any) -> None:
    """Add the weighted densities of all orders to the mixtures of a stretch's nodes: ln, (nodes, samples).

    Where a node's mixture is -inf nothing has been added to it yet.

    No density is above its peak, that at f = 0 and h = 1. So a term whose peak is `NEGLIGIBLE` below the sum so far, in
    every sample of the tile, is skipped: usually all but a few orders.
    """
    base, shape, least, n_parents, log_weight = law
    first, start, stop, spread = stretch.first, stretch.start, stretch.stop, stretch.spread
    orders = stretch.scale.shape[1]
    past, f, q = np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width))
    term, root, work = np.zeros(orders * width), np.zeros(orders * width), np.zeros(orders * width + orders)
    reference, total, greatest = np.zeros(width), np.zeros(width), np.zeros(width)
    peak = np.zeros(orders)
    taken = np.zeros(orders, np.int64)
    for column in range(0, values.shape[1], width):
        for v in range(first, stop):
            residuals(stretch, values, centre, v, column, 0.0, past, f, q)
            i = v - first
            n_orders = min(orders, v + 1)
            best = int(np.argmax(log_weight[v, :n_orders]))
            if v < start or log_weight[v, best] == -np.inf:
                continue
            for j in range(n_orders):
                peak[j] = spread[i, j] if log_weight[v, j] > -np.inf else 1.0
            logarithms(peak[:n_orders], work)
            for j in range(n_orders):
                peak[j] = log_weight[v, j] + base[n_parents[v, j]] - 0.5 * peak[j]
            # The mixture is exp(reference) times the total.
            begun = mixture[v, column] > -np.inf
            if begun:
                reference[:] = mixture[v, column : column + width]
                total[:] = 1.0
                lowest = reference.min()
            else:
                _ratios(f[best], q[best], 1.0 / spread[i, best], least, term[:width], root[:width])
                logarithms(term[:width], work)
                rho, top = shape[n_parents[v, best]], peak[best]
                for r in range(width):
                    reference[r] = rho * term[r] + top
                    total[r] = root[r]
                lowest = reference.min() + math.log(total.min())
            n = 0
            for j in range(n_orders):
                if peak[j] >= lowest - NEGLIGIBLE and (begun or j != best):
                    taken[n] = j
                    at = n * width
                    _ratios(f[j], q[j], 1.0 / spread[i, j], least, term[at : at + width], root[at : at + width])
                    n += 1
            logarithms(term[: n * width], work)
            greatest[:] = 0.0
            for s in range(n):
                part = term[s * width : (s + 1) * width]
                rho, top = shape[n_parents[v, taken[s]]], peak[taken[s]]
                for r in range(width):
                    part[r] = rho * part[r] + top - reference[r]
                for r in range(width):
                    greatest[r] = max(greatest[r], part[r])
            if greatest.max() > OVERFLOWING:
                _raise_reference(term[: n * width], greatest, reference, total)
            exponentials(term[: n * width], work)
            for s in range(n):
                part, part_root = term[s * width : (s + 1) * width], root[s * width : (s + 1) * width]
                for r in range(width):
                    total[r] += part[r] * part_root[r]
            logarithms(total, work)
            for r in range(width):
                mixture[v, column + r] = reference[r] + total[r]


@compiled
def _ratios(f: Any, q: Any, inverse: float, least: float, ratio: Any, root: Any) -> None:
    """With h = ``least`` + q and g = h + f²/F: h/g, which Student's density has to the power ρ', and g^(-1/2)."""
    for r in range(len(ratio)):
        h = least + q[r]
        of_g = 1.0 / (h + f[r] * f[r] * inverse)
        ratio[r] = h * of_g
        root[r] = math.sqrt(of_g)


@compiled
def _raise_reference(term: Any, greatest: Any, reference: Any, total: Any) -> None:
    """Raise the references by the greatest terms."""
    width = len(reference)
    for r in range(width):
        reference[r] += greatest[r]
        total[r] = max(total[r] * math.exp(-greatest[r]), np.finfo(np.float64).tiny)
        term[r::width] -= greatest[r]
