"""Compiled loops over mixtures of two densities: one that depends on the class, one that does not.

Importing this module imports numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.exponentials import exponentials, logarithms

WIDTH = 512  # attributes that are gone through together; as many factors of at most 2 do not overflow


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
    standard = np.empty(m)
    leverage = np.empty(m)
    log_free = np.empty(m)
    log_own = np.empty(m)
    odds = np.empty(m)
    factor = np.empty(m)
    for t in range(len(rows)):
        row = values[rows[t]]
        for j in range(m):
            standard[j] = min(max((row[columns[j]] - origin[j]) * per_unit[j], -farthest), farthest)
        middle, scale, lowest = centre[0], shrink[0], least[0]
        for j in range(m):
            white = (standard[j] - middle[j]) * scale[j]
            leverage[j] = lowest + white * white
        logarithms(leverage, log_free)
        common, strength, height = 0.0, power[0], constant[0]
        for j in range(m):
            log_free[j] = height[j] - strength * log_free[j]
            common += log_free[j]
        for c in range(1, n_densities):
            middle, scale, lowest = centre[c], shrink[c], least[c]
            for j in range(m):
                white = (standard[j] - middle[j]) * scale[j]
                leverage[j] = lowest + white * white
            logarithms(leverage, log_own)
            strength, height = power[c], constant[c]
            gain = 0.0
            for j in range(m):
                ratio = height[j] - strength * log_own[j] - log_free[j]
                gain += max(ratio, 0.0)
                odds[j] = -abs(ratio)
            exponentials(odds, factor, leverage)
            product = 1.0
            for j in range(m):
                product *= 1.0 + factor[j]
            total[c - 1, t] += common + gain + np.log(product)
