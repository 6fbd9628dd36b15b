"""The lattice recursion with rows left out, compiled: every order of training rows by a posterior without them.

See `cgnlearn.model.forgetting` for what forgetting a row does to a scale, and `recursion` for the rest.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.densities import LEAST_LEFT
from cgnlearn.ordered.recursion import ROOM, _residuals


@compiled
def _levels(
    own: Any, crossing: bool, row: int, forgotten: Any, q: Any, own_q: Any, apart: Any, h: Any, left: Any
) -> None:
    """From squared lengths q to the leverage h and to what |Ψ'| is multiplied by, for rows from ``row`` on.

    ``own`` are the bounds of the class's own rows. ``own_q`` are the squared lengths of the rows less the centre of
    their own class, ``apart`` those of the differences between both centres: three sides of a triangle give its angles.
    """
    before, down, growth, labels = forgotten
    for r in range(len(q)):
        at = row + r
        if own[0] <= r < own[1]:
            left[r] = max(1.0 - down[at] * q[r], LEAST_LEFT)
            h[r] = before[at] + growth[at] * growth[at] * q[r] / left[r]
        elif crossing:
            cross = 0.5 * (q[r] + own_q[r] - apart[labels[at]])
            left[r] = max(1.0 - down[at] * own_q[r], LEAST_LEFT)
            h[r] = before[at] + q[r] + down[at] * cross * cross / left[r]
        else:
            left[r] = 1.0
            h[r] = before[at] + q[r]


@compiled
def every_order_left_out(
    width: int,
    scale: Any,
    coefficients: Any,
    values: Any,
    nodes: Any,
    forgotten: Any,
    law: Any,
    wanted: Any,
    lowest: int,
    start: int,
    stop: int,
    sums: Any,
) -> None:
    """As `recursion.every_order`, for one class, each row seen without itself; the rows are sorted by class.

    ``values`` are three arrays over (nodes, rows): the rows less the class's centre, the rows less that of their own
    class, and the centres of the classes less this one's. ``nodes`` are ln unit and absent. ``forgotten`` are arrays
    over rows: h at the centre, down, growth, labels. ``law`` is ρ' for each number of parents, twice what it loses or,
    for maximum likelihood, the share of rows kept (rows,), whether the density is Student's, whether other classes
    forget the row, and the bounds of the class's own rows. ``sums`` are: -½ ln F - ln unit, alike for all rows (shapes,
    k); the rest but what ρ' alone decides (shapes, k, rows); the number of nodes with so many parents (shapes, k,
    parents); of regressions that do not exist (shapes, k).
    """
    found, sound, existing = coefficients
    rows, own_rows, centres = values
    offset, absent = nodes
    _, lighter, bayes, crossing, bounds = law
    constant, varying, counts, missing = sums
    orders, n_classes = scale.shape[1], centres.shape[1]
    first = max(0, start - orders + 1)
    spread = found[2]
    nowhere = np.zeros(scale.shape[0])
    n_parents = np.zeros((stop - first, orders), np.int64)
    for v in range(start, stop):
        i = v - first
        for j in range(1, min(orders, v + 1)):
            n_parents[i, j] = n_parents[i, j - 1] + (0 if absent[v - j] else 1)
        if absent[v]:
            continue
        for form in range(2):
            for k in range(lowest, orders + 1 if wanted[form] else 0):
                j = min(k - 1, v) if form == 0 else v % k
                if j >= existing[i]:
                    missing[form, k - 1] += 1
                else:
                    constant[form, k - 1] -= 0.5 * math.log(spread[i, j]) + offset[v]
                    counts[form, k - 1, n_parents[i, j]] += 1

    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    own_state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    apart = (np.zeros((orders, n_classes)), np.zeros((orders, n_classes)), np.zeros((orders, n_classes)))
    h, g = np.ones((orders, width)), np.ones((orders, width))  # before and after the node
    left, left_after, after, own_after = np.ones((orders, width)), np.ones(width), np.ones(width), np.ones(width)
    apart_after = np.zeros(n_classes)
    h_product, g_product = np.ones((2, orders, orders, width)), np.ones((2, orders, orders, width))
    left_product = np.ones((2, orders, width))
    for column in range(0, rows.shape[1], width):
        own = (bounds[0] - column, bounds[1] - column)
        room = ROOM
        for v in range(first, stop):
            _residuals(scale, rows, nowhere, v, first, column, found, sound, state)
            if crossing:
                _residuals(scale, own_rows, nowhere, v, first, column, found, sound, own_state)
                _residuals(scale, centres, nowhere, v, first, 0, found, sound, apart)
            if v < start or absent[v]:
                continue
            i = v - first
            n_orders = min(orders, v + 1, existing[i])
            bound = 1.0
            for j in range(n_orders):
                inverse = 1.0 / spread[i, j]
                for r in range(width):
                    after[r] = state[2][j, r] + state[1][j, r] * state[1][j, r] * inverse
                    own_after[r] = own_state[2][j, r] + own_state[1][j, r] * own_state[1][j, r] * inverse
                for c in range(n_classes):
                    apart_after[c] = apart[2][j, c] + apart[1][j, c] * apart[1][j, c] * inverse
                _levels(own, crossing, column, forgotten, state[2][j], own_state[2][j], apart[2][j], h[j], left[j])
                _levels(own, crossing, column, forgotten, after, own_after, apart_after, g[j], left_after)
                for r in range(width):
                    left[j, r] = left_after[r] / left[j, r]
                    bound = max(bound, h[j, r], g[j, r], 1.0 / left[j, r])
            if bound > room:
                _emptied(h_product, g_product, left_product, lowest, wanted, law, column, varying)
                room = ROOM
            room /= bound
            for form in range(2):
                for k in range(lowest, orders + 1 if wanted[form] else 0):
                    j = min(k - 1, v) if form == 0 else v % k
                    if j >= n_orders:
                        continue
                    count = n_parents[i, j]
                    for r in range(width):
                        left_product[form, k - 1, r] *= left[j, r]
                    if bayes:
                        for r in range(width):
                            h_product[form, k - 1, count, r] *= h[j, r]
                        for r in range(width):
                            g_product[form, k - 1, count, r] *= g[j, r]
                    else:
                        for r in range(width):
                            varying[form, k - 1, column + r] -= 0.5 * (g[j, r] - h[j, r]) * lighter[column + r]
        _emptied(h_product, g_product, left_product, lowest, wanted, law, column, varying)


@compiled
def _emptied(
    h_product: Any, g_product: Any, left_product: Any, lowest: int, wanted: Any, law: Any, column: int, varying: Any
) -> None:
    """Turn the products into logarithms and start them anew."""
    shape, lighter, bayes, _, _ = law
    width = left_product.shape[2]
    for form in range(2):
        for k in range(lowest, varying.shape[1] + 1 if wanted[form] else 0):
            total = varying[form, k - 1]
            if bayes:
                for count in range(k):
                    h, g = h_product[form, k - 1, count], g_product[form, k - 1, count]
                    if g.max() > 1.0 or g.min() < 1.0:
                        for r in range(width):
                            rho = shape[count] - lighter[column + r] / 2
                            total[column + r] += rho * math.log(h[r]) - (rho + 0.5) * math.log(g[r])
                        h[:] = 1.0
                        g[:] = 1.0
            for r in range(width):
                total[column + r] -= 0.5 * math.log(left_product[form, k - 1, r])
            left_product[form, k - 1] = 1.0
