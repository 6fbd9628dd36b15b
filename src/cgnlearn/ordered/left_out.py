"""The lattice recursion with rows left out, compiled: every order of training rows by a posterior without them.

See `cgnlearn.model.forgetting` for what forgetting a row does to a scale, and `recursion` for the rest. Residuals are
linear in the row: those of a row less the centre of another class are those of the row less its own centre plus those
of the two centres' difference. So one recursion of the rows and one of the few differences serve all classes of a
scale. Loops have few arrays each: with more the compiler gives up on vector registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.densities import LEAST_LEFT
from cgnlearn.ordered.recursion import ROOM, SINGULAR, _factorise, _residuals


@compiled
def _add_far(scale: Any, values: Any, v: int, first: int, column: int, coefficients: Any, states: Any) -> None:
    """q of the rows less the centre of each class, before `_residuals` goes on from the node before to node v.

    ``values`` are the rows and the differences of centres, (nodes, …); ``states`` the backward residuals of both, and q
    (classes, orders, rows).
    """
    found, sound, _ = coefficients
    rows, apart = values
    past, apart_past, far = states
    orders, width = past.shape
    back_spread = found[3]
    n_classes = apart.shape[1]
    i, place = v - first, (-v) % orders
    n_orders = min(orders, v + 1)
    mended = i >= n_orders - 1 and sound[i] < n_orders
    for c in range(n_classes):
        for r in range(width):
            far[c, 0, r] = 0.0
    if mended:
        factor, row, spread = np.zeros((orders, orders)), np.zeros(orders), np.zeros(orders)
        white, apart_white = np.zeros((orders, width)), np.zeros((orders, n_classes))
        last = _factorise(scale, v, n_orders, factor, row, spread)
        _whiten(factor, rows, v, column, last - 1, white)
        _whiten(factor, apart, v, 0, last - 1, apart_white)
        for j in range(1, last):
            for c in range(n_classes):
                for r in range(width):
                    far[c, j, r] = far[c, j - 1, r] + (white[j - 1, r] + apart_white[j - 1, c]) ** 2
        return
    for j in range(1, min(orders, i + 1)):
        place = place + 1 if place + 1 < orders else 0
        b = back_spread[i - 1, j - 1]
        inverse = 1.0 / b if b > 0.0 else 0.0
        for c in range(n_classes):
            away = apart_past[place, c]
            for r in range(width):
                x = past[place, r] + away
                far[c, j, r] = far[c, j - 1, r] + x * x * inverse


@compiled
def _whiten(factor: Any, values: Any, v: int, column: int, n: int, white: Any) -> None:
    """The parents of v, nearest first, given those before them, in units of their spread; zero if absent."""
    width = white.shape[1]
    for j in range(n):
        if factor[j, j] > 0.0:
            for r in range(width):
                white[j, r] = values[v - 1 - j, column + r]
            for c in range(j):
                for r in range(width):
                    white[j, r] -= factor[j, c] * white[c, r]
            shrink = 1.0 / factor[j, j]
            for r in range(width):
                white[j, r] *= shrink


@compiled
def _add_kept(j: int, inverse: float, down: Any, state: Any, kept: Any) -> None:
    """Of a node of order j: q with it, what is left of |Ψ'| without and with it, inverted, and their ratio."""
    _, f, q = state
    longer, per_first, per_second, left = kept
    width = q.shape[1]
    for r in range(width):
        longer[j, r] = q[j, r] + f[j, r] * f[j, r] * inverse
    for r in range(width):
        first = 1.0 - down[r] * q[j, r]
        per_first[j, r] = 1.0 / (first if first > LEAST_LEFT else LEAST_LEFT)
    for r in range(width):
        second = 1.0 - down[r] * longer[j, r]
        second = second if second > LEAST_LEFT else LEAST_LEFT
        left[j, r] = second * per_first[j, r]
        per_second[j, r] = 1.0 / second


@compiled
def _own_leverages(j: int, tile: Any, state: Any, kept: Any, found: Any) -> None:
    """Leverages before and after a node of order j in the rows' own class."""
    before, grown = tile
    q = state[2]
    longer, per_first, per_second, _ = kept
    h, g = found
    width = q.shape[1]
    for r in range(width):
        h[j, r] = before[r] + grown[r] * q[j, r] * per_first[j, r]
    for r in range(width):
        g[j, r] = before[r] + grown[r] * longer[j, r] * per_second[j, r]


@compiled
def _other_leverages(j: int, c: int, inverse: float, tile: Any, state: Any, kept: Any, others: Any, found: Any) -> None:
    """The same in another class: three sides of a triangle, the row and both centres, give its angles."""
    before, quarter = tile
    _, f, q = state
    longer, per_first, per_second, _ = kept
    far, (_, apart_f, apart_q) = others
    h, g = found
    width = q.shape[1]
    away, between = apart_f[j, c], apart_q[j, c]
    farther = between + away * away * inverse
    for r in range(width):
        cross = far[c, j, r] + q[j, r] - between
        h[j, r] = quarter[r] * (cross * cross) * per_first[j, r]
    for r in range(width):
        h[j, r] += before[r] + far[c, j, r]
    for r in range(width):
        x = f[j, r] + away
        g[j, r] = far[c, j, r] + x * x * inverse
    for r in range(width):
        cross = g[j, r] + longer[j, r] - farther
        g[j, r] += quarter[r] * (cross * cross) * per_second[j, r]
    for r in range(width):
        g[j, r] += before[r]


@compiled
def _plain_leverages(j: int, before: Any, state: Any, kept: Any, found: Any) -> None:
    """The same in another class that does not forget the row."""
    q, longer = state[2], kept[0]
    h, g = found
    width = q.shape[1]
    for r in range(width):
        h[j, r] = before[r] + q[j, r]
    for r in range(width):
        g[j, r] = before[r] + longer[j, r]


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
    """As `recursion.every_order`, of rows of one class ``owner`` under classes of one scale, each row without itself.

    ``values`` are arrays over nodes: the rows less the centre of their own class, and that centre less each class's; or,
    where only the own class forgets a row, the rows less the centre of the one class, and nothing. ``nodes`` are ln
    unit and absent. ``forgotten`` are h at the centre (classes, rows), and down and growth (rows,). ``law`` is ρ' for
    each number of parents (classes, orders); what twice it loses or, for maximum likelihood, the share of rows kept
    (classes, rows); whether the density is Student's; and the owner, -1 if it is not among the classes. ``sums`` are:
    -½ ln F - ln unit, alike for all (shapes, k); the rest but what ρ' alone decides (classes, shapes, k, rows); the
    number of nodes with so many parents (shapes, k, parents); of regressions that do not exist (shapes, k).
    """
    found, sound, existing = coefficients
    rows, apart = values
    offset, absent = nodes
    before, down, growth = forgotten
    shape, lighter, bayes, owner = law
    constant, varying, counts, missing = sums
    orders, n_classes, crossing = scale.shape[1], len(shape), apart.shape[1] > 0
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
    of_apart = (np.zeros((orders, apart.shape[1])), np.zeros((orders, apart.shape[1])), np.zeros((orders, apart.shape[1])))
    far = np.zeros((apart.shape[1], orders, width))
    kept = (np.ones((orders, width)), np.ones((orders, width)), np.ones((orders, width)), np.ones((orders, width)))
    left = kept[3]
    h, g = np.ones((orders, width)), np.ones((orders, width))
    least_order = 0 if wanted[1] else lowest - 1  # a box has nodes of every order
    n_bins = orders * (orders + 1) // 2  # for each k and number of parents
    h_product, g_product = np.ones((n_classes, 2, n_bins, width)), np.ones((n_classes, 2, n_bins, width))
    occupied = np.zeros((n_classes, 2, n_bins), np.bool_)  # by a product
    left_product = np.ones((2, orders, width))
    products = (h_product, g_product, left_product, occupied)
    of_tile, quarter, grown, loss = np.ones((n_classes, width)), np.ones(width), np.ones(width), np.ones(width)
    for column in range(0, rows.shape[1], width):
        room = ROOM
        for r in range(width):
            loss[r], grown[r] = down[column + r], growth[column + r] * growth[column + r]
            quarter[r] = 0.25 * loss[r]
            for c in range(n_classes):
                of_tile[c, r] = before[c, column + r]
        for v in range(first, stop):
            if crossing:
                _add_far(scale, values, v, first, column, coefficients, (state[0], of_apart[0], far))
                _residuals(scale, apart, nowhere, v, first, 0, found, sound, of_apart)
            _residuals(scale, rows, nowhere, v, first, column, found, sound, state)
            if v < start or absent[v]:
                continue
            i = v - first
            n_orders = min(orders, v + 1, existing[i])
            if n_orders == 0:
                continue
            for j in range(min(least_order, v), n_orders):
                _add_kept(j, 1.0 / spread[i, j], loss, state, kept)
            least = kept[2][n_orders - 1].max()  # leverages, and what is taken from a scale, only grow with the order
            for c in range(n_classes):
                for j in range(min(least_order, v), n_orders):
                    if c == owner:
                        _own_leverages(j, (of_tile[c], grown), state, kept, (h, g))
                    elif crossing:
                        inverse = 1.0 / spread[i, j]
                        _other_leverages(j, c, inverse, (of_tile[c], quarter), state, kept, (far, of_apart), (h, g))
                    else:
                        _plain_leverages(j, of_tile[c], state, kept, (h, g))
                    if not bayes and c == owner:
                        for r in range(width):  # without such a row nothing is left of the spread: it cannot be
                            if kept[2][j, r] * (SINGULAR * (j + 1)) >= 1.0:
                                g[j, r] = np.inf
                bound = max(least, g[n_orders - 1].max()) if bayes else least
                if bound > room:
                    _empty(products, lowest, wanted, law, column, varying)
                    room = ROOM
                room /= bound
                for form in range(2):
                    for k in range(lowest, orders + 1 if wanted[form] else 0):
                        j = min(k - 1, v) if form == 0 else v % k
                        if j >= n_orders:
                            continue
                        if c == 0:
                            for r in range(width):
                                left_product[form, k - 1, r] *= left[j, r]
                        place = k * (k - 1) // 2 + n_parents[i, j]
                        if bayes:
                            occupied[c, form, place] = True
                            for r in range(width):
                                h_product[c, form, place, r] *= h[j, r]
                            for r in range(width):
                                g_product[c, form, place, r] *= g[j, r]
                        else:
                            for r in range(width):
                                varying[c, form, k - 1, column + r] -= 0.5 * (g[j, r] - h[j, r]) * lighter[c, column + r]
        _empty(products, lowest, wanted, law, column, varying)


@compiled
def _empty(products: Any, lowest: int, wanted: Any, law: Any, column: int, varying: Any) -> None:
    """Turn the products into logarithms and start them anew."""
    h_product, g_product, left_product, occupied = products
    shape, lighter, _, _ = law
    width = left_product.shape[2]
    for form in range(2):
        for k in range(lowest, varying.shape[2] + 1 if wanted[form] else 0):
            for c in range(len(shape)):
                for count in range(k):
                    place = k * (k - 1) // 2 + count
                    if occupied[c, form, place]:
                        for r in range(width):
                            rho = shape[c, count] - lighter[c, column + r] / 2
                            logs = rho * math.log(h_product[c, form, place, r])
                            logs -= (rho + 0.5) * math.log(g_product[c, form, place, r])
                            varying[c, form, k - 1, column + r] += logs
                        h_product[c, form, place] = 1.0
                        g_product[c, form, place] = 1.0
                        occupied[c, form, place] = False
                for r in range(width):
                    varying[c, form, k - 1, column + r] -= 0.5 * math.log(left_product[form, k - 1, r])
            left_product[form, k - 1] = 1.0
