"""The lattice recursion with rows left out, compiled: every order of training rows by a posterior without them.

See `cgnlearn.model.forgetting` for what forgetting a row does to a scale, and `recursion` for the rest. Residuals are
linear in the row: those of a row less the centre of another class are those of the row less its own centre plus those
of the two centres' difference. So one recursion of the rows and one of the few differences serve all classes of a
scale. Loops store into one array each: with more the compiler gives up on vector registers.

A node with the j before it is a window. All that a density needs is one number of each window, as what a regression is
given is the window one shorter of the node before. So a band is its windows of one length, the cliques, over those
one shorter that two of them share, and a box is some windows apart.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.model.densities import LEAST_LEFT
from cgnlearn.ordered.mixing import _logarithms
from cgnlearn.ordered.recursion import ROOM, SINGULAR, _factorise, _residuals


@compiled
def _add_far(
    scale: Any, values: Any, v: int, first: int, column: int, owner: int, coefficients: Any, states: Any
) -> None:
    """q of the rows less the centre of each class but the owner, before `_residuals` goes on to node v.

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
        behind = past[place]
        for c in range(n_classes):
            if c == owner:
                continue
            away, shorter, longer = apart_past[place, c], far[c, j - 1], far[c, j]
            for r in range(width):
                x = behind[r] + away
                longer[r] = shorter[r] + x * x * inverse


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
def _lengthen(f: Any, q: Any, away: float, inverse: float, longer: Any) -> None:
    """q with the node itself, the residuals moved by so much."""
    for r in range(len(longer)):
        x = f[r] + away
        longer[r] = q[r] + x * x * inverse


@compiled
def _keep(down: Any, q: Any, kept: Any) -> None:
    """What is left of |Ψ'|."""
    for r in range(len(kept)):
        left = 1.0 - down[r] * q[r]
        kept[r] = left if left > LEAST_LEFT else LEAST_LEFT


@compiled
def _own_leverage(before: Any, grown: Any, q: Any, kept: Any, whole: Any) -> None:
    """h, times what is kept, in the rows' own class."""
    for r in range(len(whole)):
        whole[r] = before[r] * kept[r] + grown[r] * q[r]


@compiled
def _other_leverage(before: Any, quarter: Any, q: Any, kept: Any, far: Any, between: float, whole: Any) -> None:
    """h, times what is kept, in another class: three sides of a triangle, the row and both centres, give its angles."""
    for r in range(len(whole)):
        angle = far[r] + q[r] - between
        whole[r] = (before[r] + far[r]) * kept[r] + quarter[r] * (angle * angle)


@compiled
def _multiply(factor: Any, product: Any) -> None:
    for r in range(len(product)):
        product[r] *= factor[r]


@compiled
def _add_ratio(whole: Any, kept: Any, total: Any) -> None:
    for r in range(len(total)):
        total[r] += whole[r] / kept[r]


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
    unit and absent. ``forgotten`` are h at the centre (classes, rows), and down and growth (rows,). ``law`` is ρ' of
    no parents (classes,); what twice it loses or, for maximum likelihood, the share of rows kept (classes, rows);
    whether the density is Student's; and the owner, -1 if it is not among the classes. ``sums`` are:
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
    last = scale.shape[0] - 1
    first = max(0, start - orders + 1)
    spread = found[2]
    nowhere = np.zeros(scale.shape[0])
    n_empty = np.zeros((2, orders))  # regressions on nothing, whose h is that at the centre
    n_parents = np.zeros((stop - first, orders), np.int64)
    for v in range(start, stop):
        i = v - first
        for j in range(1, min(orders, v + 1)):
            n_parents[i, j] = n_parents[i, j - 1] + (0 if absent[v - j] else 1)
        for form in range(2):
            for k in range(lowest, orders + 1 if wanted[form] else 0):
                j = min(k - 1, v) if form == 0 else v % k
                n_empty[form, k - 1] += 1 if j == 0 else 0
                if absent[v]:
                    continue
                if j >= existing[i]:
                    missing[form, k - 1] += 1
                else:
                    constant[form, k - 1] -= 0.5 * math.log(spread[i, j]) + offset[v]
                    counts[form, k - 1, n_parents[i, j]] += 1

    n_apart = apart.shape[1]
    state = (np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width)))
    past, f, q = state
    of_apart = (np.zeros((orders, n_apart)), np.zeros((orders, n_apart)), np.zeros((orders, n_apart)))
    apart_past, apart_f, apart_q = of_apart
    far = np.zeros((n_apart, orders, width))
    longer, farther, kept, whole = np.zeros(width), np.zeros(width), np.ones(width), np.ones((n_classes, width))
    # A band needs the windows one shorter too, and a box those of every length.
    shortest = 0 if wanted[1] else max(0, lowest - 2)
    # Products for each length and number of nodes present; sums of h for maximum likelihood.
    n_bins = orders * (orders + 3) // 2
    n_forms = 2 if wanted[1] else 1
    wholes, keeps = np.empty((n_forms, n_classes, n_bins, width)), np.empty((n_forms, n_bins, width))
    gathered = (wholes, keeps, np.zeros((n_forms, n_bins), np.bool_))  # the last: which are begun
    of_tile, quarter, grown, loss = np.ones((n_classes, width)), np.ones(width), np.ones(width), np.ones(width)
    for column in range(0, rows.shape[1], width):
        room = ROOM
        for r in range(width):
            loss[r], quarter[r] = down[column + r], 0.25 * down[column + r]
            grown[r] = growth[column + r] ** 2 if owner >= 0 else 1.0
            for c in range(n_classes):
                of_tile[c, r] = before[c, column + r]
        for v in range(first, stop):
            if crossing:
                _add_far(scale, values, v, first, column, owner, coefficients, (past, apart_past, far))
                _residuals(scale, apart, nowhere, v, first, 0, found, sound, of_apart)
            _residuals(scale, rows, nowhere, v, first, column, found, sound, state)
            i = v - first
            n_orders = min(orders, v + 1) if absent[v] else min(orders, v + 1, existing[i])
            if v < start or n_orders <= shortest:
                continue
            for j in range(shortest, n_orders):
                inverse = 0.0 if absent[v] else 1.0 / spread[i, j]
                size = n_parents[i, j] + (0 if absent[v] else 1)
                _lengthen(f[j], q[j], 0.0, inverse, longer)
                _keep(loss, longer, kept)
                for c in range(n_classes):
                    if c == owner or not crossing:
                        _own_leverage(of_tile[c], grown, longer, kept, whole[c])
                    else:
                        _lengthen(f[j], far[c, j], apart_f[j, c], inverse, farther)
                        between = apart_q[j, c] + apart_f[j, c] * apart_f[j, c] * inverse
                        _other_leverage(of_tile[c], quarter, longer, kept, farther, between, whole[c])
                _gather(whole, kept, bayes, 0, j * (j + 3) // 2 + size, gathered)
                if j + 1 < orders and v in (j, last):  # no two cliques share the first and the last window
                    _settle(whole, kept, bayes, size, law, column, -1.0, varying[:, 0, j + 1])
                if wanted[1]:
                    for k in range(j + 1, orders + 1 if v == last else j + 2):
                        if v % k == j:
                            _gather(whole, kept, bayes, 1, (k - 1) * (k + 2) // 2 + size, gathered)
                if not bayes and owner >= 0:
                    _forbid(kept, j, v, last, column, varying[owner])
            # Leverages, and what is taken from a scale, only grow with the window.
            bound = 1.0
            for r in range(width):
                bound = max(bound, 1.0 / kept[r])
                for c in range(n_classes if bayes else 0):
                    bound = max(bound, whole[c, r] / kept[r])
            room /= bound
            if not room >= 1.0:
                _empty(gathered, law, column, varying)
                room = ROOM
        _empty(gathered, law, column, varying)
    for c in range(n_classes):
        for x in range(rows.shape[1]):
            if bayes:
                alike = (shape[c] - lighter[c, x] / 2) * math.log(before[c, x])
            else:
                alike = 0.5 * lighter[c, x] * before[c, x]
            for form in range(2):
                for k in range(orders):
                    varying[c, form, k, x] += n_empty[form, k] * alike


@compiled
def _gather(whole: Any, kept: Any, bayes: bool, form: int, place: int, gathered: Any) -> None:
    """Multiply a window into its products; or add to the sums of h."""
    wholes, keeps, begun = gathered
    if not begun[form, place]:
        begun[form, place] = True
        keeps[form, place] = 1.0
        wholes[form, :, place] = 1.0 if bayes else 0.0
    _multiply(kept, keeps[form, place])
    for c in range(len(whole)):
        if bayes:
            _multiply(whole[c], wholes[form, c, place])
        else:
            _add_ratio(whole[c], kept, wholes[form, c, place])


@compiled
def _forbid(kept: Any, j: int, v: int, last: int, column: int, varying: Any) -> None:
    """Without a row that leaves nothing of a window's scale it cannot be, by maximum likelihood."""
    for r in range(len(kept)):
        if kept[r] <= SINGULAR * (j + 1):
            varying[0, j, column + r] = -np.inf
            for k in range(j + 1, varying.shape[1] + 1):
                if v % k == j and (j == k - 1 or v == last):
                    varying[1, k - 1, column + r] = -np.inf


@compiled
def _settle(whole: Any, kept: Any, bayes: bool, size: int, law: Any, column: int, sign: float, varying: Any) -> None:
    """Add or take away what windows of so many nodes present are worth; of ratios if ``whole`` is not a product."""
    shape, lighter, _, _ = law
    for c in range(len(whole)):
        for r in range(len(kept)):
            x = column + r
            if bayes:
                rho = shape[c] + 0.5 * size - lighter[c, x] / 2
                worth = rho * math.log(whole[c, r]) - (rho - 0.5) * math.log(kept[r])
            else:
                worth = 0.5 * (lighter[c, x] * whole[c, r] / kept[r] + math.log(kept[r]))
            varying[c, x] += sign * worth


@compiled
def _empty(gathered: Any, law: Any, column: int, varying: Any) -> None:
    """Turn the products into what they are worth, to be begun anew."""
    wholes, keeps, begun = gathered
    shape, lighter, bayes, _ = law
    orders, width = varying.shape[2], keeps.shape[2]
    log_kept, log_whole, work = np.zeros(width), np.zeros(width), np.zeros(width)
    for form in range(len(begun)):
        for j in range(orders):
            for size in range(j + 2):
                place = j * (j + 3) // 2 + size
                if not begun[form, place]:
                    continue
                begun[form, place] = False
                log_kept[:] = keeps[form, place]
                _logarithms(log_kept, work)
                for c in range(len(shape)):
                    log_whole[:] = wholes[form, c, place]
                    light = lighter[c, column : column + width]
                    if bayes:
                        _logarithms(log_whole, work)
                        for r in range(width):
                            rho = shape[c] + 0.5 * size - light[r] / 2
                            log_whole[r] = rho * log_whole[r] - (rho - 0.5) * log_kept[r]
                    else:
                        for r in range(width):
                            log_whole[r] = 0.5 * (light[r] * log_whole[r] + log_kept[r])
                    varying[c, form, j, column : column + width] -= log_whole
                    if form == 0 and j + 1 < orders:
                        varying[c, form, j + 1, column : column + width] += log_whole
