"""Compiled loops over rows. They hold no formula of the model: only sums, forward substitution and products.

Importing this module imports numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.compilation import compiled, in_threads

Floats = NDArray[np.float64]

TILE = 64  # rows whose numbers stay in the first-level cache together
ROWS = 128  # rows that are gone through one by one, along their columns, and kept in the cache for a second time
WIDTH = 128  # columns of such a tile
RUN = 2048  # rows of a column whose numbers stay in the first-level cache together
PARTS = 8  # of the rows, for threads
FULL = 1e150  # a product beyond this is turned into a logarithm before it can overflow


def diagonal_moments(
    values: NDArray[Any],
    columns: NDArray[np.intp],
    cell: NDArray[np.intp],
    weights: Floats | None,
    n_cells: int,
    origin: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Weight (cells,), mean measured from the origin and centred squares (cells, columns) of every cell's rows.

    Cut into parts by the data alone, so that the number of threads changes nothing.
    """
    if weights is None:
        weights = np.ones(len(cell))
    first = _first_rows(cell, weights, n_cells)
    near = np.where(first[:, None] < 0, origin, values[first[:, None], columns].astype(np.float64))
    n_parts = max(1, min(PARTS, len(cell) // max(64 * n_cells, 4096)))
    bounds = np.linspace(0, len(cell), n_parts + 1).astype(np.intp)

    def of_part(job: tuple[slice, int]) -> tuple[Floats, Floats, Floats]:
        window, part = job
        here = np.ascontiguousarray(near[:, window])
        found = np.zeros(n_cells), np.zeros_like(here), np.zeros_like(here)
        add(values, bounds[part], bounds[part + 1], columns[window], cell, weights, here, found)
        return found

    add = _add_columns if abs(values.strides[0]) < abs(values.strides[1]) else _add_rows

    windows = [slice(start, start + WIDTH) for start in range(0, len(columns), WIDTH)]
    found = in_threads(of_part, [(window, part) for window in windows for part in range(n_parts)])
    wholes = found[::n_parts]
    for i, part in enumerate(found):
        if i % n_parts:
            _add_cells(wholes[i // n_parts], part)
    mean, scatter = (np.hstack([whole[place] for whole in wholes]) for place in (1, 2))
    return wholes[0][0], mean + (near - origin), scatter


@compiled
def _first_rows(cell: Any, weights: Any, n_cells: int) -> Any:
    """The first row of each cell that counts, or -1: in its neighbourhood differences lose no digits."""
    first = np.full(n_cells, -1)
    missing = n_cells
    for row in range(len(cell)):
        if first[cell[row]] < 0 and weights[row] > 0:
            first[cell[row]] = row
            missing -= 1
            if missing == 0:
                break
    return first


@compiled
def _add_rows(
    values: Any, start: int, stop: int, columns: Any, cell: Any, weights: Any, near: Any, moments: Any
) -> None:
    """Add rows to the cells' weights, means (measured from ``near``) and centred squares.

    A tile's squares are taken about the tile's own means, which makes them as good as those of two passes.
    """
    n, mean, scatter = moments
    n_cells, m = near.shape
    tile = np.empty((ROWS, m))
    tile_n = np.zeros(n_cells)
    tile_mean = np.zeros((n_cells, m))
    tile_scatter = np.zeros((n_cells, m))
    occupied = np.empty(ROWS, np.int64)
    for first in range(start, stop, ROWS):
        n_rows = min(ROWS, stop - first)
        _fill(tile, values, np.arange(first, first + n_rows), columns, near, cell[first : first + n_rows])
        n_occupied = 0
        for t in range(n_rows):
            c, weight = cell[first + t], weights[first + t]
            if weight > 0:
                if tile_n[c] == 0:
                    occupied[n_occupied] = c
                    n_occupied += 1
                tile_n[c] += weight
                row, total = tile[t], tile_mean[c]
                for j in range(m):
                    total[j] += weight * row[j]
        for c in occupied[:n_occupied]:
            tile_mean[c] /= tile_n[c]
        for t in range(n_rows):
            c, weight = cell[first + t], weights[first + t]
            if weight > 0:
                row, centre, total = tile[t], tile_mean[c], tile_scatter[c]
                for j in range(m):
                    away = row[j] - centre[j]
                    total[j] += weight * (away * away)
        for c in occupied[:n_occupied]:
            n[c] = _merge(n[c], mean[c], scatter[c], tile_n[c], tile_mean[c], tile_scatter[c])
            tile_n[c] = 0.0
            tile_mean[c] = 0.0
            tile_scatter[c] = 0.0


@compiled
def _add_columns(
    values: Any, start: int, stop: int, columns: Any, cell: Any, weights: Any, near: Any, moments: Any
) -> None:
    """The same of values that are stored column by column: along each column, the rows of a cell together."""
    n, mean, scatter = moments
    n_cells, m = near.shape
    order, weight, away = np.empty(RUN, np.int64), np.empty(RUN), np.empty(RUN)
    ends = np.zeros(n_cells, np.int64)
    occupied, bounds, run_n = np.empty(RUN, np.int64), np.zeros(RUN + 1, np.int64), np.empty(RUN)
    for first in range(start, stop, RUN):
        last = min(first + RUN, stop)
        n_occupied = _sort(cell[first:last], weights[first:last], ends, occupied, bounds, order, weight)
        for place in range(n_occupied):
            run_n[place] = weight[bounds[place] : bounds[place + 1]].sum()
        for j in range(m):
            column = values[first:last, columns[j]]
            for place in range(n_occupied):
                c, part = occupied[place], slice(bounds[place], bounds[place + 1])
                centre, squares = _squares(column, order[part], weight[part], run_n[place], near[c, j], away)
                step, share = centre - mean[c, j], run_n[place] / (n[c] + run_n[place])
                mean[c, j] += step * share
                scatter[c, j] += squares
                if n[c] > 0:  # else nothing times a square that may have overflowed
                    scatter[c, j] += n[c] * share * (step * step)
        for place in range(n_occupied):
            n[occupied[place]] += run_n[place]


@compiled
def _sort(cell: Any, weights: Any, ends: Any, occupied: Any, bounds: Any, order: Any, weight: Any) -> int:
    """Put rows that count, and their weights, in the order of their cells; how many cells are occupied.

    ``ends`` is zero for each cell, before and afterwards.
    """
    n_occupied = 0
    for row in range(len(cell)):
        if weights[row] > 0:
            if ends[cell[row]] == 0:
                occupied[n_occupied] = cell[row]
                n_occupied += 1
            ends[cell[row]] += 1
    for place in range(n_occupied):
        bounds[place + 1] = bounds[place] + ends[occupied[place]]
        ends[occupied[place]] = bounds[place]
    for row in range(len(cell)):
        if weights[row] > 0:
            place = ends[cell[row]]
            order[place], weight[place] = row, weights[row]
            ends[cell[row]] = place + 1
    for place in range(n_occupied):
        ends[occupied[place]] = 0
    return n_occupied


@compiled
def _squares(column: Any, rows: Any, weight: Any, n: float, near: float, away: Any) -> tuple[float, float]:
    """Mean, measured from ``near``, and centred squares of some rows of a column."""
    # In loops of their own the sums go several numbers at a time.
    for t in range(len(rows)):
        away[t] = column[rows[t]] - near
    total, squares = 0.0, 0.0
    for t in range(len(rows)):
        total += weight[t] * away[t]
    centre = total / n
    for t in range(len(rows)):
        beyond = away[t] - centre
        squares += weight[t] * (beyond * beyond)
    return centre, squares


@compiled
def centred_columns(values: Any, rows: Any, columns: Any, near: Any, centred: Any) -> None:
    """Copy some rows and columns into ``centred`` (columns, rows), each column measured from ``near`` (columns,)."""
    for j in range(len(columns)):
        column, zero, own = values[:, columns[j]], near[j], centred[j]
        for t in range(len(rows)):
            own[t] = column[rows[t]] - zero


@compiled
def _add_cells(moments: Any, others: Any) -> None:
    """Add the moments of other rows."""
    n, mean, scatter = moments
    other_n, other_mean, other_scatter = others
    for c in range(len(n)):
        if other_n[c] > 0:
            n[c] = _merge(n[c], mean[c], scatter[c], other_n[c], other_mean[c], other_scatter[c])


@compiled
def _merge(n: float, mean: Any, scatter: Any, other_n: float, other_mean: Any, other_scatter: Any) -> float:
    """Add one cell's moments to another's; their weight together."""
    share = other_n / (n + other_n)
    for j in range(len(mean)):
        step = other_mean[j] - mean[j]
        mean[j] += step * share
        scatter[j] += other_scatter[j]
        if n > 0:  # else nothing times a square that may have overflowed
            scatter[j] += n * share * (step * step)
    return n + other_n


@compiled
def _fill(tile: Any, values: Any, rows: Any, columns: Any, origin: Any, place: Any) -> None:
    """Copy some rows into a tile, each measured from ``origin[place]``, along the way in which they are stored."""
    m, first = len(columns), columns[0]
    side_by_side = True
    for j in range(m):
        side_by_side &= columns[j] == first + j
    if abs(values.strides[0]) < abs(values.strides[1]):
        for j in range(m):
            for t in range(len(rows)):
                tile[t, j] = values[rows[t], columns[j]] - origin[place[t], j]
    elif side_by_side:
        for t in range(len(rows)):
            row, source, zero = tile[t], values[rows[t]][first : first + m], origin[place[t]]
            for j in range(m):
                row[j] = source[j] - zero[j]
    else:
        for t in range(len(rows)):
            row, source, zero = tile[t], values[rows[t]], origin[place[t]]
            for j in range(m):
                row[j] = source[columns[j]] - zero[j]


def gathered_leverages(
    values: Any,
    rows: Any,
    columns: Any,
    origin: Any,
    per_unit: Any,
    farthest: float,
    centre: Any,
    factor: Any,
    least: Any,
    n_given: int,
    logs: bool,
    given: Any,
    whole: Any,
) -> None:
    """Add to ``given`` and ``whole`` (classes, rows), over all blocks, the leverage h before and after the block's
    own members: Σ ln h if ``logs``, else Σ h.

    ``values`` is the table; ``columns``, ``origin`` and ``per_unit`` are (blocks, members); ``centre`` (classes,
    blocks, members); ``factor`` (classes, blocks, members, members); ``least`` (classes,).
    """
    if centre.shape[2] > 1:
        units, cells = (columns, origin, per_unit, farthest), (centre, factor, least)
        _block_leverages(values, rows, units, cells, n_given, logs, given, whole)
        return
    for start in range(0, len(columns), WIDTH):
        window = slice(start, start + WIDTH)
        units = columns[window, 0], origin[window, 0], per_unit[window, 0], farthest
        cells = np.ascontiguousarray(centre[:, window, 0]), np.ascontiguousarray(factor[:, window, 0, 0]), least
        _single_leverages(values, rows, units, cells, logs, whole)


@compiled
def _single_leverages(values: Any, rows: Any, units: Any, cells: Any, logs: bool, whole: Any) -> None:
    """Blocks of one member with nothing given, along the row; all arrays are without the members' dimensions."""
    columns, origin, per_unit, farthest = units
    centre, factor, least = cells
    n_classes, m = centre.shape
    tile = np.empty((ROWS, m))
    shrink = 1.0 / factor
    same = np.zeros(ROWS, np.int64)  # origin for all
    for start in range(0, len(rows), ROWS):
        n = min(ROWS, len(rows) - start)
        _fill(tile, values, rows[start : start + n], columns, np.expand_dims(origin, 0), same)
        for t in range(n):
            row = tile[t]
            for j in range(m):
                row[j] = min(max(row[j] * per_unit[j], -farthest), farthest)
        for c in range(n_classes):
            middle, scale, lowest = centre[c], shrink[c], least[c]
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
    values: Any, rows: Any, units: Any, cells: Any, n_given: int, logs: bool, given: Any, whole: Any
) -> None:
    """Blocks of several members, many rows side by side."""
    columns, origin, per_unit, farthest = units
    centre, factor, least = cells
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
                    standard[i, t] = min(max(y, -farthest), farthest)
            for c in range(n_classes):
                leverage[:n] = least[c]
                for i in range(size):
                    if i == n_given and i > 0:
                        _gather(leverage, n, products[0, c], given[c, start : start + n], logs)
                    _whiten(i, standard, n, centre[c, block], factor[c, block], white)
                    own = white[i]
                    for t in range(n):
                        leverage[t] += own[t] * own[t]
                _gather(leverage, n, products[1, c], whole[c, start : start + n], logs)
        if logs:
            for c in range(n_classes):
                for t in range(n):
                    if n_given:
                        given[c, start + t] += np.log(products[0, c, t])
                    whole[c, start + t] += np.log(products[1, c, t])


@compiled
def _whiten(i: int, standard: Any, n: int, centre: Any, factor: Any, white: Any) -> None:
    """Member i of L⁻¹ times what lies beyond the centre, of n rows side by side, after the members before it."""
    middle, slopes, own = centre[i], factor[i], white[i]
    for t in range(n):
        own[t] = standard[i, t] - middle
    in_fours = i - i % 4  # earlier members; so many products for one store keep the processor busy
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
    if not logs:
        for t in range(n):
            total[t] += leverage[t]
        return
    full = 0
    for t in range(n):
        full += product[t] * leverage[t] > FULL
    if full == 0:
        for t in range(n):
            product[t] *= leverage[t]
        return
    for t in range(n):
        total[t] += np.log(product[t]) + np.log(leverage[t])
        product[t] = 1.0
