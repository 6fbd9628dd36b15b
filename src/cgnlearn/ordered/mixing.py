"""Mixtures of the densities of all orders, compiled. Imported only where it runs, as it needs numba.

Nearly all the time would go into logarithms and exponentials, one of each for every term. Those of the C library take
numbers one by one, so they are written out here as polynomials, for which the compiler uses vector registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.ordered.recursion import _residuals

NEGLIGIBLE = 28.0  # nats: hundreds of terms so far below a sum change it by less than 1e-9
OVERFLOWING = 600.0  # nats: sums are measured anew before a term would overflow

LN2 = math.log(2.0)
MANTISSA = (1 << 52) - 1
ONE = 1023 << 52  # the bits of 1.0
WHOLE = 0x433 << 52  # the bits of 2^52, in which the last bit counts ones


@compiled
def add_densities(
    width: int,
    scale: Any,
    coefficients: Any,
    values: Any,
    centre: Any,
    n_parents: Any,
    log_weight: Any,
    law: Any,
    start: int,
    stop: int,
    mixture: Any,
) -> None:
    """Add the weighted densities of all orders to the mixtures of the nodes start..stop: ln, (nodes, rows).

    ``n_parents`` and ``log_weight`` (-inf: takes no part) are of every node and order. ``law`` is the density at
    f = 0 and h = F = 1, and ρ', for each number of parents; and the least h. Where a node's mixture is -inf nothing
    has been added to it yet.

    No density is above its peak, that at f = 0 and h = 1. So a term whose peak lies `NEGLIGIBLE` below what has been
    added already, in every row at hand, is left out: usually all but a few orders, and never one that would be seen.
    """
    found, sound, _ = coefficients
    base, shape, least = law
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    spread = found[2]
    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    term, root, work = np.zeros(orders * width), np.zeros(orders * width), np.zeros(orders * width + orders)
    reference, total, greatest = np.zeros(width), np.zeros(width), np.zeros(width)
    peak = np.zeros(orders)
    taken = np.zeros(orders, np.int64)
    for column in range(0, values.shape[1], width):
        for v in range(first, stop):
            _residuals(scale, values, centre, v, first, column, found, sound, state)
            i = v - first
            n_orders = min(orders, v + 1)
            best = int(np.argmax(log_weight[v, :n_orders]))
            if v < start or log_weight[v, best] == -np.inf:
                continue
            for j in range(n_orders):
                peak[j] = spread[i, j] if log_weight[v, j] > -np.inf else 1.0
            _logarithms(peak[:n_orders], work)
            for j in range(n_orders):
                peak[j] = log_weight[v, j] + base[n_parents[v, j]] - 0.5 * peak[j]
            # The mixture is exp(reference) times the total.
            begun = mixture[v, column] > -np.inf
            if begun:
                reference[:] = mixture[v, column : column + width]
                total[:] = 1.0
                lowest = reference.min()
            else:
                _ratios(state, best, 1.0 / spread[i, best], least, term[:width], root[:width])
                _logarithms(term[:width], work)
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
                    _ratios(state, j, 1.0 / spread[i, j], least, term[at : at + width], root[at : at + width])
                    n += 1
            _logarithms(term[: n * width], work)
            greatest[:] = 0.0
            for s in range(n):
                part = term[s * width : (s + 1) * width]
                rho, top = shape[n_parents[v, taken[s]]], peak[taken[s]]
                for r in range(width):
                    part[r] = rho * part[r] + top - reference[r]
                for r in range(width):
                    greatest[r] = max(greatest[r], part[r])
            if greatest.max() > OVERFLOWING:
                _measure_anew(term[: n * width], greatest, reference, total)
            _exponentials(term[: n * width], work)
            for s in range(n):
                part, part_root = term[s * width : (s + 1) * width], root[s * width : (s + 1) * width]
                for r in range(width):
                    total[r] += part[r] * part_root[r]
            _logarithms(total, work)
            for r in range(width):
                mixture[v, column + r] = reference[r] + total[r]


@compiled
def _ratios(state: Any, j: int, inverse: float, least: float, ratio: Any, root: Any) -> None:
    """With h = ``least`` + q and g = h + f²/F: h/g, which Student's density has to the power ρ', and g^(-1/2)."""
    f, q = state[1][j], state[2][j]
    for r in range(len(ratio)):
        h = least + q[r]
        of_g = 1.0 / (h + f[r] * f[r] * inverse)
        ratio[r] = h * of_g
        root[r] = math.sqrt(of_g)


@compiled
def _measure_anew(term: Any, greatest: Any, reference: Any, total: Any) -> None:
    """Raise the references by the greatest of the terms, which are measured from them."""
    width = len(reference)
    for r in range(width):
        reference[r] += greatest[r]
        total[r] = max(total[r] * math.exp(-greatest[r]), np.finfo(np.float64).tiny)
        term[r::width] -= greatest[r]


@compiled
def _logarithms(values: Any, work: Any) -> None:
    """Natural logarithms of positive numbers, in place and to the last digits."""
    bits, work_bits = values.view(np.int64), work.view(np.int64)
    for r in range(len(values)):
        work_bits[r] = (bits[r] >> 52) + WHOLE
        bits[r] = (bits[r] & MANTISSA) | ONE
    for r in range(len(values)):
        exponent, x = work[r] - (4503599627370496.0 + 1023.0), values[r]
        high = x > 1.4142135623730951
        x = 0.5 * x if high else x
        exponent = exponent + 1.0 if high else exponent
        s = (x - 1.0) / (x + 1.0)  # at most 0.172
        t = s * s
        series = 1 / 21
        series = series * t + 1 / 19
        series = series * t + 1 / 17
        series = series * t + 1 / 15
        series = series * t + 1 / 13
        series = series * t + 1 / 11
        series = series * t + 1 / 9
        series = series * t + 1 / 7
        series = series * t + 1 / 5
        series = series * t + 1 / 3
        values[r] = exponent * LN2 + 2.0 * s * (1.0 + t * series)


@compiled
def _exponentials(values: Any, work: Any) -> None:
    """Exponentials of numbers up to 700, in place; to twelve digits and more where they are above 1e-30."""
    work_bits = work.view(np.int64)
    for r in range(len(values)):
        x = max(values[r], -700.0)
        power = math.floor(x * (1.0 / LN2) + 0.5)
        x -= power * LN2  # at most 0.347
        work[r] = power + (4503599627370496.0 + 1023.0)
        series = 1 / 39916800
        series = series * x + 1 / 3628800
        series = series * x + 1 / 362880
        series = series * x + 1 / 40320
        series = series * x + 1 / 5040
        series = series * x + 1 / 720
        series = series * x + 1 / 120
        series = series * x + 1 / 24
        series = series * x + 1 / 6
        series = series * x + 1 / 2
        series = series * x + 1.0
        values[r] = series * x + 1.0
    for r in range(len(values)):
        work_bits[r] = work_bits[r] << 52  # the power of two itself
    for r in range(len(values)):
        values[r] *= work[r]
