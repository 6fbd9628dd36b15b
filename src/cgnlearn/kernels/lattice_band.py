"""Log likelihood of one band, of the highest order along the lattice, compiled.

With h = ``least`` + q and g = h + f²/F the log of the Student density at ρ' is that at f = 0, h = 1, plus
ρ' ln h - (ρ' + ½) ln g. Nodes with equally many parents have the same ρ': h and g are multiplied over them, and one
logarithm serves hundreds of nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Chain, PathLaw, Stretch
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import logarithms
from cgnlearn.kernels.lattice import ROOM, last_residuals


@compiled
def band(
    width: int, stretch: Stretch, values: Any, chain: Chain, law: PathLaw, n_parents: Any, existing: Any, total: Any
) -> None:
    """Add the terms of a stretch's ``existing`` nodes that differ between samples: (samples,)."""
    orders = stretch.scale.shape[1]
    past, f, q = np.zeros((orders, width)), np.zeros(width), np.zeros(width)
    h_product, g_product = np.ones((orders, width)), np.ones((orders, width))  # by number of parents
    for column in range(0, values.shape[1], width):
        room = ROOM
        for v in range(stretch.first, stretch.stop):
            last_residuals(stretch, values, chain.centre, v, column, law.least, past, f, q)
            if v < stretch.start or not existing[v]:
                continue
            inverse = 1.0 / (stretch.spread[v - stretch.first, min(orders - 1, v)] + chain.own_spread[v])
            moved = chain.shift[v]
            if not law.bayes:
                for r in range(width):
                    total[column + r] -= 0.5 * f[r] * f[r] * inverse
                continue
            for r in range(width):
                x = f[r] + moved
                f[r] = q[r] + x * x * inverse
            bound = f.max()
            if bound > room:
                _empty(h_product, g_product, law.shape, total[column : column + width])
                room = ROOM
            room /= bound
            n = n_parents[v]
            for r in range(width):
                h_product[n, r] *= q[r]
            for r in range(width):
                g_product[n, r] *= f[r]
        _empty(h_product, g_product, law.shape, total[column : column + width])


@compiled
def _empty(h_product: Any, g_product: Any, shape: float, total: Any) -> None:
    """Turn the products into terms of the log likelihood and start them again."""
    scratch = np.empty(len(total))
    for n in range(len(h_product)):
        if g_product[n].max() > 1.0:
            rho = shape + 0.5 * n
            logarithms(h_product[n], scratch)
            logarithms(g_product[n], scratch)
            for r in range(len(total)):
                total[r] += rho * h_product[n, r] - (rho + 0.5) * g_product[n, r]
            h_product[n] = 1.0
            g_product[n] = 1.0
