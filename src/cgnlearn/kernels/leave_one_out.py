"""Leave-one-out leverages of training samples of one class, compiled.

With w = L⁻¹e (e as in `downdate`) q_kk = |w|²; with d = L⁻¹(centre of the own class - that of another), q_cc = |w + d|²
and q_ck = w·(w + d). So one forward substitution serves both, and all classes that have one scale. To avoid divisions,
the products of h g and of g over the blocks are kept apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels import downdate
from cgnlearn.kernels.arguments import Members, Removed, Scales
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.leverages import multiply, singles, whiten
from cgnlearn.kernels.limits import FARTHEST, FULL, SINGULAR
from cgnlearn.kernels.tiles import ROWS, TILE, fill

left_of_determinant = compiled(downdate.left_of_determinant)
own_leverage = compiled(downdate.own_leverage)
other_leverage = compiled(downdate.other_leverage)


def leave_one_out_leverages(
    values: Any, rows: Any, members: Members, scales: Scales, removed: Removed, n_given: int, logs: bool, sums: Any
) -> None:
    """Add leave-one-out leverages of samples of one class, over all blocks, to ``sums`` (…, classes, samples).

    The sums are those of ln h g and of ln g after the block's own members and, if members are given, before them;
    without ``logs`` h instead of ln h g, infinite where nothing is left of the own class's scale. The classes may have
    one factor in common.
    """
    if scales.centre.shape[2] > 1:
        _of_blocks(values, rows, members, scales, removed, n_given, logs, sums)
        return
    for of_window in singles(members, scales):
        _of_singles(values, rows, *of_window, removed, logs, sums)


@compiled
def _of_singles(
    values: Any, rows: Any, members: Members, scales: Scales, removed: Removed, logs: bool, sums: Any
) -> None:
    """Blocks of one member with nothing given, along the sample."""
    columns, origin, per_unit = members
    centre, factor = scales
    label, before, down, growth, crossing = removed
    n_classes, m = centre.shape
    tile = np.empty((ROWS, m))
    shrink = 1.0 / factor
    own_middle = centre[label]
    same = np.zeros(ROWS, np.int64)  # origin for all
    alike = len(growth) == 1
    # For weight 1 and a pooled location, h g of the own class does not depend on the sample.
    constant = logs and alike and abs(growth[0] ** 2 - before[label, 0] * down[label, 0]) <= 1e-14 * growth[0] ** 2
    log_constant = m * np.log(before[label, 0])
    products = np.ones((2, ROWS))
    for start in range(0, len(rows), ROWS):
        n = min(ROWS, len(rows) - start)
        fill(tile, values, rows[start : start + n], columns, np.expand_dims(origin, 0), same)
        for t in range(n):
            row = tile[t]
            for j in range(m):
                row[j] = min(max(row[j] * per_unit[j], -FARTHEST), FARTHEST)
        for c in range(n_classes):
            middle, scale = centre[c], shrink[min(c, len(shrink) - 1)]
            for t in range(n if logs and c == label else 0):
                row, at = tile[t], 0 if alike else start + t
                least, loss, grown = before[c, at], down[c, at], growth[at]
                left = 1.0
                for j in range(m):
                    white = (row[j] - middle[j]) * scale[j]
                    left *= left_of_determinant(loss, white * white)
                whole = 1.0
                if not constant:
                    for j in range(m):
                        white = (row[j] - middle[j]) * scale[j]
                        kept = left_of_determinant(loss, white * white)
                        whole *= own_leverage(least, grown, white * white, kept)
                products[0, t], products[1, t] = whole, left
            for t in range(n if logs and crossing and c != label else 0):
                row, at = tile[t], 0 if alike else start + t
                least, loss = before[c, at], down[c, at]
                whole, left = 1.0, 1.0
                for j in range(m):
                    far, white = (row[j] - middle[j]) * scale[j], (row[j] - own_middle[j]) * scale[j]
                    kept = left_of_determinant(loss, white * white)
                    whole *= other_leverage(least, loss, far * far, far * white, kept)
                    left *= kept
                products[0, t], products[1, t] = whole, left
            for t in range(n if logs and not crossing and c != label else 0):
                row = tile[t]
                least = before[c, 0 if alike else start + t]
                whole = 1.0
                for j in range(m):
                    white = (row[j] - middle[j]) * scale[j]
                    whole *= least + white * white
                products[0, t], products[1, t] = whole, 1.0
            for t in range(n):
                whole, left, to = products[0, t], products[1, t], start + t
                if logs and 1.0 / FULL < whole < FULL and left > 1.0 / FULL:
                    sums[0, c, to] += log_constant if constant and c == label else np.log(whole)
                    if left != 1.0:
                        sums[1, c, to] += np.log(left)
                    continue
                row, at = tile[t], 0 if alike else start + t
                least, loss = before[c, at], down[c, at]
                for j in range(m):
                    far, white = (row[j] - middle[j]) * scale[j], (row[j] - own_middle[j]) * scale[j]
                    whole, kept = least + far * far, 1.0
                    if c == label or crossing:
                        kept = left_of_determinant(loss, white * white)
                        whole = other_leverage(least, loss, far * far, far * white, kept)
                    if c == label:
                        whole = own_leverage(least, growth[at], white * white, kept)
                    sums[0, c, to] += np.log(whole) if logs else _leverage(whole, kept, c == label, 1)
                    sums[1, c, to] += np.log(kept)


@compiled
def _leverage(whole: float, kept: float, own: bool, size: int) -> float:
    """h from h g and g."""
    return np.inf if own and kept <= SINGULAR * size else whole / kept


@compiled
def _of_blocks(
    values: Any, rows: Any, members: Members, scales: Scales, removed: Removed, n_given: int, logs: bool, sums: Any
) -> None:
    """Blocks of several members, many samples side by side."""
    columns, origin, per_unit = members
    centre, factor = scales
    label, before, down, growth, crossing = removed
    n_classes, n_blocks, size = centre.shape
    shared = crossing and len(factor) == 1
    alike = len(growth) == 1
    nowhere = np.zeros(size)
    apart = np.zeros((n_classes if crossing else 0, n_blocks, size, 1))
    for c in range(len(apart)):
        for block in range(n_blocks):
            away = np.expand_dims(centre[label, block] - centre[c, block], 1)
            for i in range(size):
                whiten(i, away, 1, nowhere, factor[0 if shared else c, block], apart[c, block])
    standard, white = np.empty((size, TILE)), np.empty((size, TILE))
    least, loss, grown = np.ones((n_classes, TILE)), np.zeros((n_classes, TILE)), np.ones(TILE)
    q, own_q, cross = np.zeros(TILE), np.zeros(TILE), np.zeros(TILE)
    whole, kept = np.ones(TILE), np.ones(TILE)
    products = np.empty((len(sums), n_classes, TILE))
    for start in range(0, len(rows), TILE):
        n = min(TILE, len(rows) - start)
        products[:] = 1.0
        for t in range(n):
            at = 0 if alike else start + t
            grown[t] = growth[at]
            for c in range(n_classes):
                least[c, t], loss[c, t] = before[c, at], down[c, at]
        for block in range(n_blocks):
            for i in range(size):
                column, zero, scale = columns[block, i], origin[block, i], per_unit[block, i]
                for t in range(n):
                    y = (values[rows[start + t], column] - zero) * scale
                    standard[i, t] = min(max(y, -FARTHEST), FARTHEST)
            for c in range(n_classes):
                if c == 0 or not shared:
                    for i in range(size):
                        whiten(i, standard, n, centre[label if crossing else c, block], factor[c, block], white)
                of_class, loss_of_class = least[c], loss[c]
                q[:n] = 0.0
                own_q[:n] = 0.0
                cross[:n] = 0.0
                first = 0
                for place in range(len(sums) - 2, -1, -2):
                    last = n_given if place else size
                    for i in range(first, last):
                        own = white[i]
                        if crossing and c != label:
                            away = apart[c, block, i, 0]
                            for t in range(n):
                                own_q[t] += own[t] * own[t]
                            for t in range(n):
                                far = own[t] + away
                                q[t] += far * far
                                cross[t] += own[t] * far
                        else:
                            for t in range(n):
                                q[t] += own[t] * own[t]
                    first = last
                    if c == label:
                        for t in range(n):
                            kept[t] = left_of_determinant(loss_of_class[t], q[t])
                        for t in range(n):
                            whole[t] = own_leverage(of_class[t], grown[t], q[t], kept[t])
                    elif crossing:
                        for t in range(n):
                            kept[t] = left_of_determinant(loss_of_class[t], own_q[t])
                        for t in range(n):
                            whole[t] = other_leverage(of_class[t], loss_of_class[t], q[t], cross[t], kept[t])
                    else:
                        for t in range(n):
                            whole[t] = of_class[t] + q[t]
                    if c == label or crossing:
                        if not logs:
                            for t in range(n):
                                whole[t] = _leverage(whole[t], kept[t], c == label and place == 0, size)
                        multiply(kept, n, products[place + 1, c], sums[place + 1, c, start : start + n])
                    if logs:
                        multiply(whole, n, products[place, c], sums[place, c, start : start + n])
                    else:
                        for t in range(n):
                            sums[place, c, start + t] += whole[t]
        for place in range(len(sums)):
            for c in range(n_classes):
                if logs if place % 2 == 0 else c == label or crossing:
                    for t in range(n):
                        sums[place, c, start + t] += np.log(products[place, c, t])
