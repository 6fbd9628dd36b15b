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
def _longer(low: int, high: int, per_spread: Any, f: Any, q: Any, away: Any, longer: Any) -> None:
    """q with the node itself, of orders low to high, the residuals moved by so much."""
    for j in range(low, high):
        inverse, moved = per_spread[j], away[j]
        for r in range(f.shape[1]):
            x = f[j, r] + moved
            longer[j, r] = q[j, r] + x * x * inverse


@compiled
def _per_kept(down: Any, q: Any, per_kept: Any) -> None:
    """One over what is left of |Ψ'|."""
    for x in range(len(q)):
        kept = 1.0 - down[x] * q[x]
        per_kept[x] = 1.0 / (kept if kept > LEAST_LEFT else LEAST_LEFT)


@compiled
def _own_leverages(before: Any, grown: Any, q: Any, per_kept: Any, h: Any) -> None:
    """Leverages in the rows' own class."""
    for x in range(len(h)):
        h[x] = before[x] + grown[x] * q[x] * per_kept[x]


@compiled
def _other_leverages(before: Any, quarter: Any, q: Any, per_kept: Any, far: Any, between: Any, h: Any) -> None:
    """Leverages in another class: three sides of a triangle, the row and both centres, give its angles."""
    for x in range(len(h)):
        h[x] = far[x] + q[x] - between[x]
    for x in range(len(h)):
        h[x] = h[x] * h[x] * per_kept[x]
    for x in range(len(h)):
        h[x] = h[x] * quarter[x] + before[x] + far[x]


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

    ``values`` are arrays over nodes: the rows less the centre of their own class, and it less each class's; or,
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

    n_apart, flat = apart.shape[1], orders * width
    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    past, f, q = state
    of_apart = (np.zeros((orders, n_apart)), np.zeros((orders, n_apart)), np.zeros((orders, n_apart)))
    far = np.zeros((n_apart, orders, width))
    longer, farther, between = np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width))
    per_first, per_second, left = np.ones(flat), np.ones(flat), np.ones((orders, width))
    h, g = np.ones((orders, width)), np.ones((orders, width))
    per_spread, still = np.zeros(orders), np.zeros(orders)
    least_order = 0 if wanted[1] else lowest - 1  # a box has nodes of every order
    n_bins = orders * (orders + 1) // 2  # for each k and number of parents
    h_product, g_product = np.ones((n_classes, 2, n_bins, width)), np.ones((n_classes, 2, n_bins, width))
    occupied = np.zeros((n_classes, 2, n_bins), np.bool_)  # by a product
    left_product = np.ones((2, orders, width))
    products = (h_product, g_product, left_product, occupied)
    # The same for all orders, so that loops go over these and the rows at once.
    of_tile, quarter, grown, loss = np.ones((n_classes, flat)), np.ones(flat), np.ones(flat), np.ones(flat)
    for column in range(0, rows.shape[1], width):
        room = ROOM
        for x in range(flat):
            at = column + x % width
            loss[x], quarter[x], grown[x] = down[at], 0.25 * down[at], growth[at] * growth[at]
            for c in range(n_classes):
                of_tile[c, x] = before[c, at]
        for v in range(first, stop):
            if crossing:
                _add_far(scale, values, v, first, column, coefficients, (past, of_apart[0], far))
                _residuals(scale, apart, nowhere, v, first, 0, found, sound, of_apart)
            _residuals(scale, rows, nowhere, v, first, column, found, sound, state)
            i = v - first
            n_orders = min(orders, v + 1, existing[i])
            if v < start or absent[v] or n_orders == 0:
                continue
            low = min(least_order, v)
            part = slice(low * width, n_orders * width)
            for j in range(low, n_orders):
                per_spread[j] = 1.0 / spread[i, j]
            _longer(low, n_orders, per_spread, f, q, still, longer)
            some_q, some_longer = q.reshape(-1)[part], longer.reshape(-1)[part]
            some_h, some_g = h.reshape(-1)[part], g.reshape(-1)[part]
            first_kept, second_kept = per_first[part], per_second[part]
            _per_kept(loss[part], some_q, first_kept)
            _per_kept(loss[part], some_longer, second_kept)
            some_left = left.reshape(-1)[part]
            for x in range(len(some_left)):
                some_left[x] = first_kept[x] / second_kept[x]
            # Leverages, and what is taken from a scale, only grow with the order.
            least = per_second[(n_orders - 1) * width : n_orders * width].max()
            for c in range(n_classes):
                some_before = of_tile[c, part]
                if c == owner:
                    _own_leverages(some_before, grown[part], some_q, first_kept, some_h)
                    _own_leverages(some_before, grown[part], some_longer, second_kept, some_g)
                    for x in range(0 if bayes else len(some_g)):
                        if second_kept[x] * (SINGULAR * (x // width + low + 1)) >= 1.0:
                            some_g[x] = np.inf  # without such a row nothing is left of the spread: it cannot be
                elif crossing:
                    _, apart_f, apart_q = of_apart
                    _longer(low, n_orders, per_spread, f, far[c], apart_f[:, c], farther)
                    some_far, some_farther = far[c].reshape(-1)[part], farther.reshape(-1)[part]
                    some_between = between.reshape(-1)[part]
                    for j in range(low, n_orders):
                        between[j] = apart_q[j, c]
                    _other_leverages(some_before, quarter[part], some_q, first_kept, some_far, some_between, some_h)
                    for j in range(low, n_orders):
                        between[j] = apart_q[j, c] + apart_f[j, c] * apart_f[j, c] * per_spread[j]
                    _other_leverages(
                        some_before, quarter[part], some_longer, second_kept, some_farther, some_between, some_g
                    )
                else:
                    for x in range(len(some_h)):
                        some_h[x] = some_before[x] + some_q[x]
                    for x in range(len(some_g)):
                        some_g[x] = some_before[x] + some_longer[x]
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
                                varying[c, form, k - 1, column + r] -= (
                                    0.5 * (g[j, r] - h[j, r]) * lighter[c, column + r]
                                )
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
