"""Compiled loops over mixtures of two densities: one that depends on the class, one that does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Students
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms
from cgnlearn.kernels.limits import FARTHEST, FULL

WIDTH = 512  # features at once: as many factors of at most 2 do not overflow
TILE = 128  # samples side by side
NEAR = 1 / 256  # up to which a series of seven terms of ln(1 + x) has all digits


@compiled
def add_mixtures(values: Any, rows: Any, students: Students, total: Any) -> None:
    """Add to ``total`` (classes, samples) the sums over features of ln(e^l0 + e^lc), or of lc if ``sure``."""
    columns, origin, per_unit, sure, centre, shrink, constant, least, power = students
    n_densities, m = centre.shape
    standard = np.empty(TILE)
    leverage = np.empty(TILE)
    log_free = np.empty(TILE)
    log_own = np.empty(TILE)
    odds = np.empty(TILE)
    greater = np.empty((n_densities, TILE))
    product = np.empty((n_densities, TILE))
    whole = np.empty((n_densities, TILE))  # the product of sure features
    log_least = np.log(least)
    sure_constant = np.zeros(n_densities)
    for j in range(m):
        if sure[j]:
            sure_constant += constant[:, j]
    for start in range(0, len(rows), TILE):
        n = min(TILE, len(rows) - start)
        standard[n:] = 0.0
        greater[:] = 0.0
        product[:] = 1.0
        whole[:] = 1.0
        for j in range(m):
            column, zero, scale = columns[j], origin[j], per_unit[j]
            for t in range(n):
                standard[t] = min(max((values[rows[start + t], column] - zero) * scale, -FARTHEST), FARTHEST)
            if sure[j]:
                for c in range(1, n_densities):
                    _leverages(standard, centre[c, j], shrink[c, j], least[c], leverage)
                    _multiply(leverage, whole[c], power[c], greater[c])
                continue
            _log_leverages(standard, centre[0, j], shrink[0, j], least[0], log_least[0], leverage, log_free)
            strength, height = power[0], constant[0, j]
            for t in range(TILE):
                log_free[t] = height - strength * log_free[t]
            for c in range(1, n_densities):
                _log_leverages(standard, centre[c, j], shrink[c, j], least[c], log_least[c], leverage, log_own)
                strength, height, total_of_class, product_of_class = power[c], constant[c, j], greater[c], product[c]
                for t in range(TILE):
                    odds[t] = height - strength * log_own[t] - log_free[t]
                for t in range(TILE):
                    total_of_class[t] += log_free[t] + max(odds[t], 0.0)
                for t in range(TILE):
                    odds[t] = -abs(odds[t])
                exponentials(odds, leverage)
                for t in range(TILE):
                    product_of_class[t] *= 1.0 + odds[t]
        for c in range(1, n_densities):
            logarithms(product[c], leverage)
            logarithms(whole[c], leverage)
            height, strength = sure_constant[c], power[c]
            for t in range(n):
                total[c - 1, start + t] += greater[c, t] + height + product[c, t] - strength * whole[c, t]


@compiled
def _leverages(standard: Any, centre: float, shrink: float, least: float, leverage: Any) -> None:
    for t in range(len(standard)):
        white = (standard[t] - centre) * shrink
        leverage[t] = least + white * white


@compiled
def _multiply(leverage: Any, product: Any, power: float, total: Any) -> None:
    """Multiply into the product, or where that might leave the range of numbers, into its logarithm, the total."""
    n_full = 0
    for t in range(len(product)):
        n_full += product[t] * leverage[t] > FULL
    for t in range(len(product) if n_full else 0):
        total[t] -= power * (np.log(product[t]) + np.log(leverage[t]))
        product[t] = leverage[t] = 1.0
    for t in range(len(product)):
        product[t] *= leverage[t]


@compiled
def _log_leverages(
    standard: Any, centre: float, shrink: float, least: float, log_least: float, scratch: Any, logs: Any
) -> None:
    """ln h: by a short series if all samples are near the centre, as after many training samples."""
    steep = shrink / np.sqrt(least)
    n_far = 0
    for t in range(len(standard)):
        white = (standard[t] - centre) * steep
        logs[t] = white * white
    for t in range(len(standard)):
        n_far += logs[t] > NEAR
    if n_far == 0:
        for t in range(len(standard)):
            x = logs[t]
            series = 1 / 7 * x - 1 / 6
            series = series * x + 1 / 5
            series = series * x - 1 / 4
            series = series * x + 1 / 3
            series = series * x - 1 / 2
            logs[t] = log_least + (x + x * x * series)
        return
    for t in range(len(standard)):
        logs[t] = least * (1.0 + logs[t])
    logarithms(logs, scratch)
