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
def _leverages(
    j: int, inverse: float, label: int, starts: Any, crossing: bool, row: int, forgotten: Any, states: Any, found: Any
) -> None:
    """Leverages before and after a node of order j, and what its F is multiplied by, for rows from ``row`` on.

    ``starts`` say where the rows of each class begin. ``states`` are those of the rows, of the rows less the centre of
    their own class, and of the differences between the class's centres: three sides of a triangle give its angles.
    Whole arrays are handed on with an index, as a slice of an array costs more here than a few rows do.
    """
    before, down, growth = forgotten
    (_, f, q), (_, own_f, own_q), (_, apart_f, apart_q) = states
    h, g, left = found
    width = q.shape[1]
    for c in range(len(starts) - 1):
        low, high = min(max(starts[c] - row, 0), width), min(max(starts[c + 1] - row, 0), width)
        if c == label:
            for r in range(low, high):
                longer = q[j, r] + f[j, r] * f[j, r] * inverse
                first, second = 1.0 - down[row + r] * q[j, r], 1.0 - down[row + r] * longer
                first = first if first > LEAST_LEFT else LEAST_LEFT
                second = second if second > LEAST_LEFT else LEAST_LEFT
                both = 1.0 / (first * second)  # one division for all three
                far = growth[row + r] * growth[row + r] * both
                h[j, r] = before[row + r] + far * second * q[j, r]
                g[j, r] = before[row + r] + far * first * longer
                left[j, r] = second * second * both
        elif crossing:
            between = apart_q[j, c]
            farther = between + apart_f[j, c] * apart_f[j, c] * inverse
            for r in range(low, high):
                longer = q[j, r] + f[j, r] * f[j, r] * inverse
                own_longer = own_q[j, r] + own_f[j, r] * own_f[j, r] * inverse
                first, second = 1.0 - down[row + r] * own_q[j, r], 1.0 - down[row + r] * own_longer
                first = first if first > LEAST_LEFT else LEAST_LEFT
                second = second if second > LEAST_LEFT else LEAST_LEFT
                both = 1.0 / (first * second)
                cross, longer_cross = q[j, r] + own_q[j, r] - between, longer + own_longer - farther
                quarter = 0.25 * down[row + r] * both
                h[j, r] = before[row + r] + q[j, r] + quarter * second * cross * cross
                g[j, r] = before[row + r] + longer + quarter * first * longer_cross * longer_cross
                left[j, r] = second * second * both
        else:
            for r in range(low, high):
                h[j, r] = before[row + r] + q[j, r]
                g[j, r] = before[row + r] + q[j, r] + f[j, r] * f[j, r] * inverse
                left[j, r] = 1.0


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
    over rows: h at the centre, down, growth. ``law`` is ρ' for each number of parents, twice what it loses or,
    for maximum likelihood, the share of rows kept (rows,), whether the density is Student's, whether other classes
    forget the row, the class, and where the rows of each class start. ``sums`` are: -½ ln F - ln unit, alike for all
    rows (shapes, k); the rest but what ρ' alone decides (shapes, k, rows); the number of nodes with so many parents
    (shapes, k, parents); of regressions that do not exist (shapes, k).
    """
    found, sound, existing = coefficients
    rows, own_rows, centres = values
    offset, absent = nodes
    _, lighter, bayes, crossing, label, starts = law
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
    states = (state, own_state, apart)
    h, g, left = np.ones((orders, width)), np.ones((orders, width)), np.ones((orders, width))
    leverages = (h, g, left)
    greatest, least = np.ones(width), np.ones(width)
    least_order = 0 if wanted[1] else lowest - 1  # a box has nodes of every order
    h_product, g_product = np.ones((2, orders, orders, width)), np.ones((2, orders, orders, width))
    left_product = np.ones((2, orders, width))
    occupied = np.zeros((2, orders, orders), np.bool_)  # by a product
    products = (h_product, g_product, left_product, occupied)
    for column in range(0, rows.shape[1], width):
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
            greatest[:] = 1.0
            least[:] = 1.0
            for j in range(min(least_order, v), n_orders):
                inverse = 1.0 / spread[i, j]
                _leverages(j, inverse, label, starts, crossing, column, forgotten, states, leverages)
                for r in range(width):  # the leverage only grows from parents to child
                    greatest[r] = g[j, r] if g[j, r] > greatest[r] else greatest[r]
                for r in range(width):
                    least[r] = left[j, r] if left[j, r] < least[r] else least[r]
            bound = max(greatest.max(), 1.0 / least.min())
            if bound > room:
                _emptied(products, lowest, wanted, law, column, varying)
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
                        occupied[form, k - 1, count] = True
                        for r in range(width):
                            h_product[form, k - 1, count, r] *= h[j, r]
                        for r in range(width):
                            g_product[form, k - 1, count, r] *= g[j, r]
                    else:
                        for r in range(width):
                            varying[form, k - 1, column + r] -= 0.5 * (g[j, r] - h[j, r]) * lighter[column + r]
        _emptied(products, lowest, wanted, law, column, varying)


@compiled
def _emptied(products: Any, lowest: int, wanted: Any, law: Any, column: int, varying: Any) -> None:
    """Turn the products into logarithms and start them anew."""
    h_product, g_product, left_product, occupied = products
    shape, lighter, _, _, _, _ = law
    width = left_product.shape[2]
    for form in range(2):
        for k in range(lowest, varying.shape[1] + 1 if wanted[form] else 0):
            for count in range(k):
                if occupied[form, k - 1, count]:
                    for r in range(width):
                        rho = shape[count] - lighter[column + r] / 2
                        h, g = h_product[form, k - 1, count, r], g_product[form, k - 1, count, r]
                        varying[form, k - 1, column + r] += rho * math.log(h) - (rho + 0.5) * math.log(g)
                    h_product[form, k - 1, count] = 1.0
                    g_product[form, k - 1, count] = 1.0
                    occupied[form, k - 1, count] = False
            for r in range(width):
                varying[form, k - 1, column + r] -= 0.5 * math.log(left_product[form, k - 1, r])
            left_product[form, k - 1] = 1.0
