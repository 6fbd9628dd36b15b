"""Compiled loops over mixtures of two densities: one that depends on the class, one that does not.

Importing this module imports numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.exponentials import exponentials, logarithms

WIDTH = 512  # attributes that are gone through together; as many factors of at most 2 do not overflow
TILE = 128  # rows that are gone through together


@compiled
def add_mixtures(
    values: Any,
    rows: Any,
    columns: Any,
    origin: Any,
    per_unit: Any,
    farthest: float,
    centre: Any,
    shrink: Any,
    least: Any,
    power: Any,
    constant: Any,
    total: Any,
) -> None:
    """Add to ``total`` (classes, rows) the logarithms of e^l0 + e^lc, summed over attributes.

    l = constant - power · ln(least + ((standard value - centre) · shrink)²) is one log density; the arrays over
    (1 + classes, attributes) begin with the one that all classes have in common, and so do those over (1 + classes,).
    """
    n_densities, m = centre.shape
    standard = np.empty(TILE)
    leverage = np.empty(TILE)
    log_free = np.empty(TILE)
    log_own = np.empty(TILE)
    odds = np.empty(TILE)
    greater = np.empty((n_densities, TILE))
    product = np.empty((n_densities, TILE))
    for start in range(0, len(rows), TILE):
        n = min(TILE, len(rows) - start)
        standard[n:] = 0.0
        greater[:] = 0.0
        product[:] = 1.0
        for j in range(m):
            column, zero, scale = columns[j], origin[j], per_unit[j]
            for t in range(n):
                standard[t] = min(max((values[rows[start + t], column] - zero) * scale, -farthest), farthest)
            _leverages(standard, centre[0, j], shrink[0, j], least[0], leverage)
            logarithms(leverage, log_free)
            for t in range(TILE):
                log_free[t] = constant[0, j] - power[0] * log_free[t]
            for c in range(1, n_densities):
                _leverages(standard, centre[c, j], shrink[c, j], least[c], leverage)
                logarithms(leverage, log_own)
                strength, height, total_of_class = power[c], constant[c, j], greater[c]
                for t in range(TILE):
                    own = height - strength * log_own[t]
                    total_of_class[t] += max(own, log_free[t])
                    odds[t] = -abs(own - log_free[t])
                exponentials(odds, log_own, leverage)
                product_of_class = product[c]
                for t in range(TILE):
                    product_of_class[t] *= 1.0 + log_own[t]
        for c in range(1, n_densities):
            for t in range(n):
                total[c - 1, start + t] += greater[c, t] + np.log(product[c, t])


@compiled
def _leverages(standard: Any, centre: float, shrink: float, least: float, leverage: Any) -> None:
    for t in range(len(standard)):
        white = (standard[t] - centre) * shrink
        leverage[t] = least + white * white
