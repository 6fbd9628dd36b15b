"""Leverages of blocks, compiled: forward substitution and products over many blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Members, Scales
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.limits import FARTHEST, FULL
from cgnlearn.kernels.tiles import ROWS, TILE, WIDTH, fill


def singles(members: Members, scales: Scales) -> Iterator[tuple[Members, Scales]]:
    """Blocks of one member, in windows, without the dimension of members."""
    for start in range(0, len(members.columns), WIDTH):
        window = slice(start, start + WIDTH)
        centre, factor = scales.centre[:, window, 0], scales.factor[:, window, 0, 0]
        yield (
            Members(*(part[window, 0] for part in members)),
            Scales(np.ascontiguousarray(centre), np.ascontiguousarray(factor)),
        )


def gathered_leverages(
    values: Any, rows: Any, members: Members, scales: Scales, least: Any, n_given: int, logs: bool, sums: Any
) -> None:
    """Add to ``sums`` (2, classes, samples), over all blocks, the leverage h before and after the block's own members.

    That is Σ ln h if ``logs``, else Σ h. Before any member h is ``least`` (classes,).
    """
    if scales.centre.shape[2] > 1:
        _block_leverages(values, rows, members, scales, least, n_given, logs, sums)
        return
    for of_window in singles(members, scales):
        _single_leverages(values, rows, *of_window, least, logs, sums[1])


@compiled
def _single_leverages(
    values: Any, rows: Any, members: Members, scales: Scales, least: Any, logs: bool, whole: Any
) -> None:
    """Blocks of one member with nothing given, along the sample."""
    n_classes, m = scales.centre.shape
    tile = np.empty((ROWS, m))
    shrink = 1.0 / scales.factor
    per_unit = members.per_unit
    same = np.zeros(ROWS, np.int64)  # origin for all
    for start in range(0, len(rows), ROWS):
        n = min(ROWS, len(rows) - start)
        fill(tile, values, rows[start : start + n], members.columns, np.expand_dims(members.origin, 0), same)
        for t in range(n):
            row = tile[t]
            for j in range(m):
                row[j] = min(max(row[j] * per_unit[j], -FARTHEST), FARTHEST)
        for c in range(n_classes):
            middle, scale, lowest = scales.centre[c], shrink[c], least[c]
            for t in range(n):
                row = tile[t]
                total = 0.0
                if logs:
                    product = 1.0
                    for j in range(m):
                        white = (row[j] - middle[j]) * scale[j]
                        product *= lowest + white * white
                    if product < FULL:
                        total = np.log(product)
                    else:
                        for j in range(m):
                            white = (row[j] - middle[j]) * scale[j]
                            total += np.log(lowest + white * white)
                else:
                    for j in range(m):
                        white = (row[j] - middle[j]) * scale[j]
                        total += lowest + white * white
                whole[c, start + t] += total


@compiled
def _block_leverages(
    values: Any, rows: Any, members: Members, scales: Scales, least: Any, n_given: int, logs: bool, sums: Any
) -> None:
    """Blocks of several members, many samples side by side."""
    columns, origin, per_unit = members
    centre, factor = scales
    n_classes, n_blocks, size = centre.shape
    standard = np.empty((size, TILE))
    white = np.empty((size, TILE))
    leverage = np.empty(TILE)
    products = np.empty((2, n_classes, TILE))
    for start in range(0, len(rows), TILE):
        n = min(TILE, len(rows) - start)
        products[:] = 1.0
        for block in range(n_blocks):
            for i in range(size):
                column, zero, scale = columns[block, i], origin[block, i], per_unit[block, i]
                for t in range(n):
                    y = (values[rows[start + t], column] - zero) * scale
                    standard[i, t] = min(max(y, -FARTHEST), FARTHEST)
            for c in range(n_classes):
                leverage[:n] = least[c]
                for i in range(size):
                    if i == n_given and i > 0:
                        _gather(leverage, n, products[0, c], sums[0, c, start : start + n], logs)
                    whiten(i, standard, n, centre[c, block], factor[c, block], white)
                    own = white[i]
                    for t in range(n):
                        leverage[t] += own[t] * own[t]
                _gather(leverage, n, products[1, c], sums[1, c, start : start + n], logs)
        if logs:
            for c in range(n_classes):
                for t in range(n):
                    if n_given:
                        sums[0, c, start + t] += np.log(products[0, c, t])
                    sums[1, c, start + t] += np.log(products[1, c, t])


@compiled
def whiten(i: int, standard: Any, n: int, centre: Any, factor: Any, white: Any) -> None:
    """Member i of L⁻¹ (sample - centre), for n samples side by side, after the members before it."""
    middle, slopes, own = centre[i], factor[i], white[i]
    for t in range(n):
        own[t] = standard[i, t] - middle
    in_fours = i - i % 4  # four products for each store
    for j in range(0, in_fours, 4):
        s0, s1, s2, s3 = slopes[j], slopes[j + 1], slopes[j + 2], slopes[j + 3]
        w0, w1, w2, w3 = white[j], white[j + 1], white[j + 2], white[j + 3]
        for t in range(n):
            own[t] -= s0 * w0[t] + s1 * w1[t] + s2 * w2[t] + s3 * w3[t]
    for j in range(in_fours, i):
        slope, earlier = slopes[j], white[j]
        for t in range(n):
            own[t] -= slope * earlier[t]
    shrink = 1.0 / slopes[i]
    for t in range(n):
        own[t] *= shrink


@compiled
def _gather(leverage: Any, n: int, product: Any, total: Any, logs: bool) -> None:
    """Multiply into the product (a logarithm costs ten times as much), or add to the total."""
    if logs:
        multiply(leverage, n, product, total)
        return
    for t in range(n):
        total[t] += leverage[t]


@compiled
def multiply(factors: Any, n: int, product: Any, total: Any) -> None:
    """Multiply into the product or, where that might overflow or underflow, add its logarithm to the total."""
    n_out = 0
    for t in range(n):
        further = product[t] * factors[t]
        n_out += (further > FULL) | (further < 1.0 / FULL)
    if n_out == 0:
        for t in range(n):
            product[t] *= factors[t]
        return
    for t in range(n):
        total[t] += np.log(product[t]) + np.log(factors[t])
        product[t] = 1.0
