"""Leave-one-out log likelihoods of every order along the lattice, compiled.

See `downdate` for the removal of a sample, and `lattice_path` for windows, cliques and boxes. Residuals are linear in
the sample: those of a sample less the centre of another class are those of the sample less its own centre plus those of
the difference of the centres. So one recursion of the samples and one of the differences serve all classes of a scale.
Each loop stores into one array: with more the compiler does not use vector registers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Chain, Gathered, LeaveOneOutSums, RemovedPath, Stretch
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import logarithms
from cgnlearn.kernels.lattice import ROOM, factorise, residuals, whiten_parents
from cgnlearn.kernels.leave_one_out import left_of_determinant, other_leverage, own_leverage
from cgnlearn.kernels.limits import SINGULAR


@compiled
def _add_far(
    stretch: Stretch, removed: RemovedPath, nowhere: Any, v: int, column: int, past: Any, apart_past: Any, far: Any
) -> None:
    """q (classes, orders, samples) of the samples less the centres of other classes, before `residuals` of node v.

    ``past`` and ``apart_past`` are the backward residuals of the samples and of the centres.
    """
    orders, width = past.shape
    n_classes = far.shape[0]
    i, place = v - stretch.first, (-v) % orders
    n_orders = min(orders, v + 1)
    if i >= n_orders - 1 and stretch.sound[i] < n_orders:
        factor, row, spread = np.zeros((orders, orders)), np.zeros(orders), np.zeros(orders)
        white, apart_white = np.zeros((orders, width)), np.zeros((orders, n_classes))
        last = factorise(stretch.scale, v, n_orders, factor, row, spread)
        whiten_parents(factor, removed.rows, nowhere, v, column, last - 1, white)
        whiten_parents(factor, removed.apart, nowhere, v, 0, last - 1, apart_white)
        for j in range(1, last):
            for c in range(n_classes):
                for r in range(width):
                    far[c, j, r] = far[c, j - 1, r] + (white[j - 1, r] + apart_white[j - 1, c]) ** 2
        return
    for j in range(1, min(orders, i + 1)):
        place = place + 1 if place + 1 < orders else 0
        b = stretch.back_spread[i - 1, j - 1]
        inverse = 1.0 / b if b > 0.0 else 0.0
        behind = past[place]
        for c in range(n_classes):
            if c == removed.owner:
                continue
            away, shorter, longer = apart_past[place, c], far[c, j - 1], far[c, j]
            for r in range(width):
                x = behind[r] + away
                longer[r] = shorter[r] + x * x * inverse


@compiled
def _lengthen(f: Any, q: Any, away: float, inverse: float, longer: Any) -> None:
    """q with the node itself; its residuals are shifted."""
    for r in range(len(longer)):
        x = f[r] + away
        longer[r] = q[r] + x * x * inverse


@compiled
def _keep(loss: Any, q: Any, kept: Any) -> None:
    for r in range(len(kept)):
        kept[r] = left_of_determinant(loss[r], q[r])


@compiled
def _own_leverages(before: Any, growth: Any, q: Any, kept: Any, whole: Any) -> None:
    for r in range(len(whole)):
        whole[r] = own_leverage(before[r], growth[r], q[r], kept[r])


@compiled
def _other_leverages(before: Any, loss: Any, q: Any, kept: Any, far: Any, between: float, whole: Any) -> None:
    """q_ck from the three sides of the triangle of the sample and both centres."""
    for r in range(len(whole)):
        whole[r] = other_leverage(before[r], loss[r], far[r], 0.5 * (far[r] + q[r] - between), kept[r])


@compiled
def _multiply(factor: Any, product: Any) -> None:
    for r in range(len(product)):
        product[r] *= factor[r]


@compiled
def _add_ratio(whole: Any, kept: Any, total: Any) -> None:
    for r in range(len(total)):
        total[r] += whole[r] / kept[r]


@compiled
def every_order_leave_one_out(
    width: int, stretch: Stretch, removed: RemovedPath, chain: Chain, wanted: Any, lowest: int, sums: LeaveOneOutSums
) -> None:
    """Leave-one-out `lattice_path.every_order` of samples of the class ``owner`` under classes of one scale."""
    rows, apart, owner, before, down, growth, shape, lighter, bayes = removed
    first, start, stop, spread, existing = stretch.first, stretch.start, stretch.stop, stretch.spread, stretch.existing
    offset, absent = chain.log_unit, chain.absent
    constant, varying, counts, missing = sums
    orders, n_classes, crossing = stretch.scale.shape[1], len(shape), apart.shape[1] > 0
    last = stretch.scale.shape[0] - 1
    nowhere = np.zeros(stretch.scale.shape[0])
    n_empty = np.zeros((2, orders))  # regressions without parents, whose h is that at the centre
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
    past, f, q = np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width))
    apart_past, apart_f = np.zeros((orders, n_apart)), np.zeros((orders, n_apart))
    apart_q = np.zeros((orders, n_apart))
    far = np.zeros((n_apart, orders, width))
    longer, farther, kept, whole = np.zeros(width), np.zeros(width), np.ones(width), np.ones((n_classes, width))
    # A band needs the windows one shorter too, and a box those of every length.
    shortest = 0 if wanted[1] else max(0, lowest - 2)
    # Products for each length and number of nodes present; by maximum likelihood sums of h.
    n_bins = orders * (orders + 3) // 2
    n_forms = 2 if wanted[1] else 1
    wholes, keeps = np.empty((n_forms, n_classes, n_bins, width)), np.empty((n_forms, n_bins, width))
    gathered = Gathered(wholes, keeps, np.zeros((n_forms, n_bins), np.bool_))
    of_tile, grown, loss = np.ones((n_classes, width)), np.ones(width), np.ones(width)
    for column in range(0, rows.shape[1], width):
        room = ROOM
        for r in range(width):
            loss[r] = down[column + r]
            grown[r] = growth[column + r] if owner >= 0 else 1.0
            for c in range(n_classes):
                of_tile[c, r] = before[c, column + r]
        for v in range(first, stop):
            if crossing:
                _add_far(stretch, removed, nowhere, v, column, past, apart_past, far)
                residuals(stretch, apart, nowhere, v, 0, 0.0, apart_past, apart_f, apart_q)
            residuals(stretch, rows, nowhere, v, column, 0.0, past, f, q)
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
                        _own_leverages(of_tile[c], grown, longer, kept, whole[c])
                    else:
                        _lengthen(f[j], far[c, j], apart_f[j, c], inverse, farther)
                        between = apart_q[j, c] + apart_f[j, c] * apart_f[j, c] * inverse
                        _other_leverages(of_tile[c], loss, longer, kept, farther, between, whole[c])
                _gather(whole, kept, bayes, 0, j * (j + 3) // 2 + size, gathered)
                if j + 1 < orders and v in (j, last):  # no two cliques share the first and the last window
                    _take_away(whole, kept, size, removed, column, varying[:, 0, j + 1])
                if wanted[1]:
                    for k in range(j + 1, orders + 1 if v == last else j + 2):
                        if v % k == j:
                            _gather(whole, kept, bayes, 1, (k - 1) * (k + 2) // 2 + size, gathered)
                if not bayes and owner >= 0:
                    _forbid(kept, j, v, last, column, varying[owner])
            # Leverages and losses of a scale only grow with the window.
            bound = 1.0
            for r in range(width):
                bound = max(bound, 1.0 / kept[r])
                for c in range(n_classes if bayes else 0):
                    bound = max(bound, whole[c, r] / kept[r])
            room /= bound
            if not room >= 1.0:
                _empty(gathered, removed, column, varying)
                room = ROOM
        _empty(gathered, removed, column, varying)
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
def _gather(whole: Any, kept: Any, bayes: bool, form: int, place: int, gathered: Gathered) -> None:
    """Multiply a window into its products, or add it to the sums of h."""
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
    """By maximum likelihood: log likelihood -inf where a window has no variance without the sample."""
    for r in range(len(kept)):
        if kept[r] <= SINGULAR * (j + 1):
            varying[0, j, column + r] = -np.inf
            for k in range(j + 1, varying.shape[1] + 1):
                if v % k == j and (j == k - 1 or v == last):
                    varying[1, k - 1, column + r] = -np.inf


@compiled
def _take_away(whole: Any, kept: Any, size: int, removed: RemovedPath, column: int, varying: Any) -> None:
    """Subtract the terms of a window with ``size`` nodes present."""
    shape, lighter = removed.shape, removed.lighter
    for c in range(len(whole)):
        for r in range(len(kept)):
            x = column + r
            if removed.bayes:
                rho = shape[c] + 0.5 * size - lighter[c, x] / 2
                worth = rho * math.log(whole[c, r]) - (rho - 0.5) * math.log(kept[r])
            else:
                worth = 0.5 * (lighter[c, x] * whole[c, r] / kept[r] + math.log(kept[r]))
            varying[c, x] -= worth


@compiled
def _empty(gathered: Gathered, removed: RemovedPath, column: int, varying: Any) -> None:
    """Turn the products into terms of the log likelihood and start them again."""
    wholes, keeps, begun = gathered
    shape, lighter, bayes = removed.shape, removed.lighter, removed.bayes
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
                logarithms(log_kept, work)
                for c in range(len(shape)):
                    log_whole[:] = wholes[form, c, place]
                    light = lighter[c, column : column + width]
                    if bayes:
                        logarithms(log_whole, work)
                        for r in range(width):
                            rho = shape[c] + 0.5 * size - light[r] / 2
                            log_whole[r] = rho * log_whole[r] - (rho - 0.5) * log_kept[r]
                    else:
                        for r in range(width):
                            log_whole[r] = 0.5 * (light[r] * log_whole[r] + log_kept[r])
                    varying[c, form, j, column : column + width] -= log_whole
                    if form == 0 and j + 1 < orders:
                        varying[c, form, j + 1, column : column + width] += log_whole
