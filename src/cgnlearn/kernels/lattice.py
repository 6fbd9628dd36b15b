"""The lattice recursion, compiled.

For one class, from the banded scale ``scale[v, d]`` = Ψ'[v, v-d] in standard units, it computes the regression of
every node v on the j nodes before it, for every order j at once: the forward residual f of v given them, with spread F,
and the backward residual b of the node j places back given the nodes between, with spread B (see ``docs/ordered.md``).
A node needs only the backward side of the node before it, which fits in the first-level cache. A stretch of nodes
starts K - 1 nodes early and is then the same as in one pass over all nodes.

``width`` samples are processed side by side. It is an argument, as for a constant the compiler would unroll the loops
over samples instead of using vector registers.

The recursion subtracts, so it estimates the loss of digits. Orders that lose too many are computed from a Cholesky
factor of the node's own window instead.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Stretch
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.limits import EPS, SINGULAR

ROOM = 2.0**500  # products are turned into logarithms before they pass the square of this
TRUSTED = 1e-9  # estimated relative error of a spread up to which the recursion is used


@compiled
def _recur(
    scale: Any, start: int, stop: int, forward: Any, backward: Any, spread: Any, back_spread: Any, sound: Any
) -> None:
    """Reflection coefficients and spreads of the nodes start..stop, at every order that starts there too.

    Fills kf, kb, F and B (nodes, orders), and the number of orders, from 0 up, that have kept their digits (nodes,).
    """
    orders = scale.shape[1]
    # back[(j - v) % orders, t]: the backward coefficients of order j of the node v, on the feature v - j + t. What
    # order j - 1 of the node before left there is just what order j of the next one starts from.
    back = np.zeros((orders, orders))
    error = np.zeros(orders)  # of the same orders
    ahead = np.zeros(orders)  # the forward coefficients, on the feature v - orders + 1 + s at s
    along = np.zeros(orders)  # the scale of v with that feature
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
            # Views with indexes from 0, as the compiler does not vectorise indexes that might be negative.
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
def factorise(scale: Any, v: Any, orders: Any, factor: Any, row: Any, spread: Any) -> int:
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
def regressions(scale: Any, start: int, stop: int) -> Stretch:
    """Regressions of the nodes start..stop and the K - 1 before; spreads are recomputed where digits are lost."""
    orders = scale.shape[1]
    first = max(0, start - orders + 1)
    shape = (stop - first, orders)
    forward, backward, spread, back_spread = np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    sound, existing = np.zeros(shape[0], np.int64), np.zeros(shape[0], np.int64)
    _recur(scale, first, stop, forward, backward, spread, back_spread, sound)
    factor = np.zeros((orders, orders))
    row = np.zeros(orders)
    for v in range(start, stop):
        i = v - first
        existing[i] = orders if scale[v, 0] > 0.0 else 0
        n_orders = min(orders, v + 1)
        if sound[i] < n_orders:
            reached = factorise(scale, v, n_orders, factor, row, spread[i])
            if reached < n_orders:
                existing[i] = min(existing[i], reached)
        spread[i, n_orders:] = spread[i, n_orders - 1]  # of the first nodes: all before take part already
    return Stretch(scale, first, start, stop, forward, backward, spread, back_spread, sound, existing)


@compiled
def log_dets(stretch: Stretch, log_det: Any) -> None:
    """ln|Ψ'| of the parents of a stretch's nodes at every order: (nodes, orders)."""
    orders = stretch.scale.shape[1]
    factor = np.zeros((orders, orders))
    row, spread = np.zeros(orders), np.zeros(orders)
    for v in range(stretch.start, stretch.stop):
        i = v - stretch.first
        n_orders = min(orders, v + 1)
        mended = stretch.sound[i] < n_orders
        reached = factorise(stretch.scale, v, n_orders, factor, row, spread) if mended else n_orders
        total = 0.0
        for j in range(1, reached):
            pivot = factor[j - 1, j - 1] ** 2 if mended else stretch.back_spread[i - 1, j - 1]
            total += math.log(pivot) if pivot > 0.0 else 0.0
            log_det[v, j] = total
        log_det[v, n_orders:] = log_det[v, n_orders - 1]


@compiled
def whiten_parents(factor: Any, values: Any, centre: Any, v: int, column: int, n: int, white: Any) -> None:
    """The parents of v, nearest first, given those before them, in units of their spread; zero if absent."""
    width = white.shape[1]
    for j in range(n):
        if factor[j, j] > 0.0:
            parent = v - 1 - j
            for r in range(width):
                white[j, r] = values[parent, column + r] - centre[parent]
            for c in range(j):
                for r in range(width):
                    white[j, r] -= factor[j, c] * white[c, r]
            shrink = 1.0 / factor[j, j]
            for r in range(width):
                white[j, r] *= shrink


@compiled
def residuals(
    stretch: Stretch, values: Any, centre: Any, v: int, column: int, least: float, past: Any, all_f: Any, all_q: Any
) -> None:
    """Residual and leverage of a few samples at node v, in arrays (orders, samples).

    ``past`` is the backward residual of order j, which is found at (j - v) % orders, where order j - 1 of the node
    before left it; f and q are the forward residual and the leverage of every order, which begins at ``least``.
    """
    orders, width = all_f.shape
    i = v - stretch.first
    place = (-v) % orders
    for r in range(width):
        x = values[v, column + r] - centre[v]
        past[place, r] = x
        all_f[0, r] = x
        all_q[0, r] = least
    for j in range(1, min(orders, i + 1)):
        place = place + 1 if place + 1 < orders else 0
        b = stretch.back_spread[i - 1, j - 1]
        inverse = 1.0 / b if b > 0.0 else 0.0
        kf, kb = stretch.forward[i, j], stretch.backward[i, j]
        # Two loops of three arrays each: with more the compiler gives up on vector registers.
        for r in range(width):
            all_q[j, r] = all_q[j - 1, r] + past[place, r] * past[place, r] * inverse
        for r in range(width):
            before = past[place, r]
            all_f[j, r] = all_f[j - 1, r] - kf * before
            past[place, r] = before - kb * all_f[j - 1, r]
    n_orders = min(orders, v + 1)
    if i >= n_orders - 1 and stretch.sound[i] < n_orders:
        factor, white = np.zeros((orders, orders)), np.zeros((orders, width))
        row, spread = np.zeros(orders), np.zeros(orders)
        existing = factorise(stretch.scale, v, n_orders, factor, row, spread)
        whiten_parents(factor, values, centre, v, column, existing - 1, white)
        for j in range(existing - 1):
            for r in range(width):
                all_f[j + 1, r] = all_f[j, r] - row[j] * white[j, r]
                all_q[j + 1, r] = all_q[j, r] + white[j, r] * white[j, r]


@compiled
def last_residuals(
    stretch: Stretch, values: Any, centre: Any, v: int, column: int, least: float, past: Any, f: Any, q: Any
) -> None:
    """`residuals` at the highest order only, in arrays (samples,): twice as fast, as no order is stored."""
    orders, width = past.shape
    i = v - stretch.first
    place = (-v) % orders
    for r in range(width):
        x = values[v, column + r] - centre[v]
        past[place, r] = x
        f[r] = x
        q[r] = least
    for j in range(1, min(orders, i + 1)):
        place = place + 1 if place + 1 < orders else 0
        b = stretch.back_spread[i - 1, j - 1]
        inverse = 1.0 / b if b > 0.0 else 0.0
        kf, kb = stretch.forward[i, j], stretch.backward[i, j]
        for r in range(width):
            q[r] += past[place, r] * past[place, r] * inverse
        for r in range(width):
            before, ahead = past[place, r], f[r]
            f[r] = ahead - kf * before
            past[place, r] = before - kb * ahead
    n_orders = min(orders, v + 1)
    if i >= n_orders - 1 and stretch.sound[i] < n_orders:
        factor, white = np.zeros((orders, orders)), np.zeros((orders, width))
        row, spread = np.zeros(orders), np.zeros(orders)
        existing = factorise(stretch.scale, v, n_orders, factor, row, spread)
        whiten_parents(factor, values, centre, v, column, existing - 1, white)
        for r in range(width):
            f[r] = values[v, column + r] - centre[v]
            q[r] = least
        for j in range(existing - 1):
            for r in range(width):
                f[r] -= row[j] * white[j, r]
                q[r] += white[j, r] * white[j, r]


@compiled
def last_order(width: int, stretch: Stretch, values: Any, centre: Any, residual: Any, leverage: Any) -> None:
    """f and q of every sample at the highest order, for the nodes of a stretch: (nodes, samples)."""
    past, f, q = np.zeros((stretch.scale.shape[1], width)), np.zeros(width), np.zeros(width)
    for column in range(0, values.shape[1], width):
        for v in range(stretch.first, stretch.stop):
            last_residuals(stretch, values, centre, v, column, 0.0, past, f, q)
            if v >= stretch.start:
                residual[v, column : column + width] = f
                leverage[v, column : column + width] = q
