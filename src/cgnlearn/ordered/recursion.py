"""The lattice recursion, compiled. Imported only where it runs, as it needs numba.

For one class, from the banded scale ``scale[v, d]`` = Ψ'[v, v-d] in standard units, it finds the regression of every
node v on the j nodes before it, for every order j at once: the forward residual f of v given them, with spread F, and
the backward residual b of the node j places back given the nodes between, with spread B (see ``docs/ordered.md``).
Nodes are taken one by one; all that a node needs of the past is the backward side of the node just before it, which
fits in the first-level cache. A block of nodes starts K - 1 nodes early, and is then as if all nodes before had been
seen.

``width`` rows go through it side by side. It is no constant, as the compiler would then unroll the loops over rows
instead of using vector registers.

The recursion subtracts, so it keeps an estimate of the digits lost. Orders at which too many are gone are taken from
a Cholesky factor of the node's own window instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled

ROOM = 2.0**500  # products are turned into logarithms before they pass the square of this
TRUSTED = 1e-9  # the estimated relative error of a spread beyond which the recursion is not believed
EPS = float(np.finfo(float).eps)
SINGULAR = 64 * EPS  # as in `solver`: relative to the attribute's variance and per member


@compiled
def _coefficients(scale: Any, start: int, stop: int, found: Any, sound: Any) -> None:
    """Reflection coefficients and spreads of the nodes start..stop, at every order that starts there too.

    ``found`` are four arrays (nodes, orders): kf, kb, F and B. ``sound[i]`` is the number of orders, from 0 up, that
    have kept their digits.
    """
    forward, backward, spread, back_spread = found
    orders = scale.shape[1]
    # back[(j - v) % orders, t]: the backward coefficients of order j of the node v, on the attribute v - j + t. What
    # order j - 1 of the node before left there is just what order j of the next one starts from.
    back = np.zeros((orders, orders))
    error = np.zeros(orders)  # of the same orders
    ahead = np.zeros(orders)  # the forward coefficients, on the attribute v - orders + 1 + s at s
    along = np.zeros(orders)  # the scale of v with that attribute
    for v in range(start, stop):
        i = v - start
        f = scale[v, 0]
        for s in range(orders):
            ahead[s] = 0.0
            along[s] = scale[v, orders - 1 - s]
        ahead[orders - 1] = 1.0
        place = (-v) % orders
        back[place, 0] = 1.0
        error[place] = 0.0
        spread[i, 0] = f
        back_spread[i, 0] = f
        sound[i] = orders
        lost = 0.0
        for j in range(1, min(orders, i + 1)):
            place = place + 1 if place + 1 < orders else 0
            # Views with indexes from 0: the compiler reckons with negative ones otherwise, and takes one by one.
            ahead_of, along_of = ahead[orders - 1 - j :], along[orders - 1 - j :]
            b = back_spread[i - 1, j - 1]
            r = 0.0
            size = 0.0
            for t in range(j):
                term = back[place, t] * along_of[t]
                r += term
                size += abs(term)
            kf = kb = 0.0
            lost = max(lost, error[place])
            if f > 0.0 and b > 0.0:
                kf = r / b
                kb = r / f
                left = 1.0 - kf * kb
                if left > 0.0:
                    lost = (lost + EPS * (1.0 + size / math.sqrt(f * b))) / left
                else:
                    kf = kb = 0.0
                    lost = np.inf
            elif scale[v, 0] > 0.0 and scale[v - j, 0] > 0.0:  # neither is absent: all digits are gone
                lost = np.inf
            for t in range(j):
                before = back[place, t]
                back[place, t] = before - kb * ahead_of[t]
                ahead_of[t] -= kf * before
            back[place, j] = -kb
            error[place] = lost
            f -= kf * r
            forward[i, j] = kf
            backward[i, j] = kb
            spread[i, j] = f
            back_spread[i, j] = b - kb * r
            if lost > TRUSTED and sound[i] == orders:
                sound[i] = j


@compiled
def _factorise(scale: Any, v: Any, orders: Any, factor: Any, row: Any, spread: Any) -> int:
    """The regressions of v on the nodes before it, nearest first, from the Cholesky factor of its window.

    Absent nodes (scale 0) have a zero pivot. Returns how many orders exist up to rounding.
    """
    f = scale[v, 0]
    spread[0] = f
    for j in range(orders - 1):  # the parent v - 1 - j, on those nearer to v
        parent = v - 1 - j
        length = scale[parent, 0]
        rest = length
        for a in range(j):
            entry = scale[v - 1 - a, j - a]
            for c in range(a):
                entry -= factor[j, c] * factor[a, c]
            pivot = factor[a, a]
            entry = entry / pivot if pivot > 0.0 else 0.0
            factor[j, a] = entry
            rest -= entry * entry
        if length > 0.0 and not rest > SINGULAR * (j + 2) * length:
            return j + 1
        factor[j, j] = math.sqrt(rest) if length > 0.0 else 0.0
        entry = scale[v, j + 1]
        for c in range(j):
            entry -= factor[j, c] * row[c]
        row[j] = entry / factor[j, j] if length > 0.0 else 0.0
        f -= row[j] * row[j]
        spread[j + 1] = f
        if scale[v, 0] > 0.0 and not f > SINGULAR * (j + 2) * scale[v, 0]:
            return j + 1
    return orders


@compiled
def coefficients(scale: Any, start: int, stop: int) -> Any:
    """Coefficients of the nodes from K - 1 before start to stop, with spreads mended where digits were lost.

    Four arrays (nodes, orders) as in `_coefficients`; and (nodes,) how many orders are sound, and how many have a
    regression at all.
    """
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    shape = (stop - first, orders)
    found = (np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))
    sound, existing = np.zeros(shape[0], np.int64), np.zeros(shape[0], np.int64)
    _coefficients(scale, first, stop, found, sound)
    spread = found[2]
    factor = np.zeros((orders, orders))
    row = np.zeros(orders)
    for v in range(start, stop):
        i = v - first
        existing[i] = orders if scale[v, 0] > 0.0 else 0
        n_orders = min(orders, v + 1)
        if sound[i] < n_orders:
            reached = _factorise(scale, v, n_orders, factor, row, spread[i])
            if reached < n_orders:
                existing[i] = min(existing[i], reached)
        spread[i, n_orders:] = spread[i, n_orders - 1]  # of the first nodes: all before take part already
    return found, sound, existing


@compiled
def log_dets(scale: Any, start: int, stop: int, found: Any, sound: Any, log_det: Any) -> None:
    """ln|Ψ'| of the parents of the nodes start..stop at every order: (nodes, orders)."""
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    back_spread = found[3]
    factor = np.zeros((orders, orders))
    row, spread = np.zeros(orders), np.zeros(orders)
    for v in range(start, stop):
        i = v - first
        n_orders = min(orders, v + 1)
        mended = sound[i] < n_orders
        reached = _factorise(scale, v, n_orders, factor, row, spread) if mended else n_orders
        total = 0.0
        for j in range(1, reached):
            pivot = factor[j - 1, j - 1] ** 2 if mended else back_spread[i - 1, j - 1]
            total += math.log(pivot) if pivot > 0.0 else 0.0
            log_det[v, j] = total
        log_det[v, n_orders:] = log_det[v, n_orders - 1]


@compiled
def _residuals(
    scale: Any, values: Any, centre: Any, v: int, first: int, column: int, found: Any, sound: Any, state: Any
) -> None:
    """Residual and leverage of a few rows at node v.

    ``state`` are three arrays (orders, rows): the backward residual of order j, which is found at (j - v) % orders,
    where order j - 1 of the node before left it; and for every order the forward residual f and the leverage q.
    """
    forward, backward, _, back_spread = found
    past, all_f, all_q = state
    orders, width = all_f.shape
    i = v - first
    place = (-v) % orders
    for r in range(width):
        x = values[v, column + r] - centre[v]
        past[place, r] = x
        all_f[0, r] = x
        all_q[0, r] = 0.0
    for j in range(1, min(orders, i + 1)):
        place = place + 1 if place + 1 < orders else 0
        b = back_spread[i - 1, j - 1]
        inverse = 1.0 / b if b > 0.0 else 0.0
        kf, kb = forward[i, j], backward[i, j]
        # Two loops of three arrays each: with more the compiler gives up on vector registers.
        for r in range(width):
            all_q[j, r] = all_q[j - 1, r] + past[place, r] * past[place, r] * inverse
        for r in range(width):
            before = past[place, r]
            all_f[j, r] = all_f[j - 1, r] - kf * before
            past[place, r] = before - kb * all_f[j - 1, r]
    n_orders = min(orders, v + 1)
    if i >= n_orders - 1 and sound[i] < n_orders:
        factor, white = np.zeros((orders, orders)), np.zeros((orders, width))
        row, spread = np.zeros(orders), np.zeros(orders)
        existing = _factorise(scale, v, n_orders, factor, row, spread)
        for j in range(existing - 1):
            parent = v - 1 - j
            if factor[j, j] > 0.0:
                for r in range(width):
                    white[j, r] = values[parent, column + r] - centre[parent]
                for c in range(j):
                    for r in range(width):
                        white[j, r] -= factor[j, c] * white[c, r]
                shrink = 1.0 / factor[j, j]
                for r in range(width):
                    white[j, r] *= shrink
            for r in range(width):  # where the parent is absent, white is zero
                all_f[j + 1, r] = all_f[j, r] - row[j] * white[j, r]
                all_q[j + 1, r] = all_q[j, r] + white[j, r] * white[j, r]


@compiled
def last_order(
    width: int, scale: Any, coefficients: Any, values: Any, centre: Any, start: int, stop: int, terms: Any
) -> None:
    """f and q of every row at the highest order, for the nodes start..stop: (nodes, rows)."""
    found, sound, _ = coefficients
    residual, leverage = terms
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    for column in range(0, values.shape[1], width):
        for v in range(first, stop):
            _residuals(scale, values, centre, v, first, column, found, sound, state)
            if v >= start:
                j = min(orders - 1, v)
                for r in range(width):
                    residual[v, column + r] = state[1][j, r]
                    leverage[v, column + r] = state[2][j, r]


@compiled
def every_order(
    width: int,
    scale: Any,
    coefficients: Any,
    values: Any,
    nodes: Any,
    law: Any,
    wanted: Any,
    lowest: int,
    start: int,
    stop: int,
    sums: Any,
) -> None:
    """Log likelihoods of all k from ``lowest`` up, of both shapes, summed over the nodes start..stop.

    ``nodes`` are arrays over all nodes: centre, shift, own spread, ln unit, absent. ``law`` is the density at f = 0 and
    h = F = 1, and ρ', for each number of parents; the least h; whether it is Student's; whether boxes telescope.
    ``wanted`` says which shapes are: the band, the box. ``sums`` are three arrays: what is alike for all rows is
    added to (shapes, k), the rest to (shapes, k, rows); the last, (shapes, k), counts regressions that do not exist.

    With h = ``least`` + q and g = h + f²/F the Student density at ρ' is that at f = 0, h = 1, plus
    ρ' ln h - (ρ' + ½) ln g. So h and g are multiplied over nodes with equally many parents, whose ρ' is the same, and
    one logarithm serves hundreds of them. If F is the regression's own (``telescopes``), g is the next member's h: of a
    box only the first h, ``least``, and the last g remain.
    """
    found, sound, existing = coefficients
    centre, shift, own_spread, offset, absent = nodes
    base, shape, least, bayes, telescopes = law
    constant, varying, missing = sums
    orders = scale.shape[1]
    last = scale.shape[0] - 1
    first = max(0, start - orders + 1)
    spread = found[2]
    telescoping = telescopes and bayes and wanted[1]
    least_order = 0 if wanted[1] else lowest - 1  # a box has nodes of every order
    n_parents = np.zeros((stop - first, orders), np.int64)  # those present
    log_spread = np.zeros(orders)
    for v in range(start, stop):
        i = v - first
        n_orders = min(orders, v + 1)
        for j in range(1, n_orders):
            n_parents[i, j] = n_parents[i, j - 1] + (0 if absent[v - j] else 1)
        for k in range(lowest, orders + 1 if telescoping else 0):
            j = v % k
            if (j == k - 1 or v == last) and n_parents[i, j] + (0 if absent[v] else 1) > 0:
                constant[1, k - 1] += shape[0] * math.log(least)
        if absent[v]:
            continue
        for j in range(min(least_order, v), min(n_orders, existing[i])):
            log_spread[j] = math.log(spread[i, j] + own_spread[v])
        for form in range(2):
            for k in range(lowest, orders + 1):
                j = min(k - 1, v) if form == 0 else v % k
                if j >= existing[i]:
                    missing[form, k - 1] += 1
                elif wanted[form]:
                    constant[form, k - 1] += base[n_parents[i, j]] - 0.5 * log_spread[j] - offset[v]

    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    all_f, all_q = state[1], state[2]
    remainder = np.zeros(orders + 1, np.int64)  # of v, divided by each k
    greatest = np.zeros(width)
    n_bins = orders * (orders + 1) // 2
    h_product, g_product = np.ones((2, n_bins, width)), np.ones((2, n_bins, width))
    alone = False
    for column in range(0, values.shape[1], width):
        room = ROOM
        for k in range(1, orders + 1):
            remainder[k] = first % k
        for v in range(first, stop):
            _residuals(scale, values, centre, v, first, column, found, sound, state)
            if v >= start and (telescoping or not absent[v]):
                i = v - first
                n_orders = min(orders, v + 1)
                if not absent[v]:
                    n_orders = min(n_orders, existing[i])
                # From here on all_f is g and all_q is h, or for maximum likelihood all_f is f²/F.
                greatest[:] = 1.0
                moved = shift[v]
                for j in range(min(least_order, v), n_orders):
                    inverse = 0.0 if absent[v] else 1.0 / (spread[i, j] + own_spread[v])
                    for r in range(width):
                        x = all_f[j, r] + moved
                        all_f[j, r] = x * x * inverse
                    if bayes:
                        for r in range(width):
                            h = least + all_q[j, r]
                            all_q[j, r] = h
                            all_f[j, r] += h
                        for r in range(width):
                            greatest[r] = max(greatest[r], all_f[j, r])
                if bayes:
                    bound = greatest.max()
                    if bound > room:
                        _emptied(h_product, g_product, lowest, wanted, shape, column, varying, ROOM)
                        room = ROOM
                    alone = bound > room
                    room /= 1.0 if alone else bound
                for form in range(2):
                    whole = telescoping and form == 1
                    if absent[v] and not whole:
                        continue
                    for k in range(lowest, orders + 1 if wanted[form] else 0):
                        j = min(k - 1, v) if form == 0 else remainder[k]
                        count = n_parents[i, j] - (1 if absent[v] else 0)  # parents of the box's last member present
                        if j >= n_orders or (whole and (count < 0 or (j < k - 1 and v < last))):
                            continue
                        if bayes and not alone:
                            place = k * (k - 1) // 2 + count
                            for r in range(0 if whole else width):
                                h_product[form, place, r] *= all_q[j, r]
                            for r in range(width):
                                g_product[form, place, r] *= all_f[j, r]
                        elif bayes:
                            rho = shape[count]
                            for r in range(width):
                                logs = 0.0 if whole else rho * math.log(all_q[j, r])
                                varying[form, k - 1, column + r] += logs - (rho + 0.5) * math.log(all_f[j, r])
                        else:
                            for r in range(width):
                                varying[form, k - 1, column + r] -= 0.5 * all_f[j, r]
            for k in range(1, orders + 1):
                remainder[k] = remainder[k] + 1 if remainder[k] + 1 < k else 0
        if bayes:
            _emptied(h_product, g_product, lowest, wanted, shape, column, varying, 1.0)


@compiled
def _emptied(
    h_product: Any, g_product: Any, lowest: int, wanted: Any, shape: Any, column: int, varying: Any, limit: float
) -> None:
    """Turn the products with a factor above ``limit`` into logarithms and start them anew."""
    width = h_product.shape[2]
    for form in range(2):
        for k in range(lowest, varying.shape[1] + 1 if wanted[form] else 0):
            total = varying[form, k - 1]
            for count in range(k):
                h, g = h_product[form, k * (k - 1) // 2 + count], g_product[form, k * (k - 1) // 2 + count]
                if g.max() > limit:
                    rho = shape[count]
                    for r in range(width):
                        total[column + r] += rho * math.log(h[r]) - (rho + 0.5) * math.log(g[r])
                    h[:] = 1.0
                    g[:] = 1.0
