"""Compiled loops over mixtures of two densities: one that depends on the class, one that does not.

Importing this module imports numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.exponentials import exponentials, logarithms

WIDTH = 512  # attributes that are gone through together; as many factors of at most 2 do not overflow
TILE = 512  # densities of a few rows that are gone through together


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
    step = max(1, TILE // m)
    standard = np.empty((step, m))
    leverage = np.empty((step, m))
    log_free = np.empty((step, m))
    log_own = np.empty((step, m))
    odds = np.empty((step, m))
    for start in range(0, len(rows), step):
        n = min(step, len(rows) - start)
        for t in range(n):
            row, found = values[rows[start + t]], standard[t]
            for j in range(m):
                found[j] = min(max((row[columns[j]] - origin[j]) * per_unit[j], -farthest), farthest)
        _leverages(standard, centre[0], shrink[0], least[0], n, leverage)
        logarithms(leverage.ravel(), log_free.ravel())
        strength, height = power[0], constant[0]
        for t in range(n):
            free = log_free[t]
            for j in range(m):
                free[j] = height[j] - strength * free[j]
        for c in range(1, n_densities):
            _leverages(standard, centre[c], shrink[c], least[c], n, leverage)
            logarithms(leverage.ravel(), log_own.ravel())
            strength, height = power[c], constant[c]
            for t in range(n):
                own, free, found = log_own[t], log_free[t], odds[t]
                greater = 0.0
                for j in range(m):
                    density = height[j] - strength * own[j]
                    greater += max(density, free[j])
                    found[j] = -abs(density - free[j])
                total[c - 1, start + t] += greater
            exponentials(odds.ravel(), log_own.ravel(), leverage.ravel())
            for t in range(n):
                less = log_own[t]
                product = 1.0
                for j in range(m):
                    product *= 1.0 + less[j]
                total[c - 1, start + t] += np.log(product)


@compiled
def _leverages(standard: Any, centre: Any, shrink: Any, least: float, n: int, leverage: Any) -> None:
    """Of n rows; those beyond them keep 1, which harms no logarithm."""
    leverage[n:] = 1.0
    for t in range(n):
        row, found = standard[t], leverage[t]
        for j in range(len(centre)):
            white = (row[j] - centre[j]) * shrink[j]
            found[j] = least + white * white
