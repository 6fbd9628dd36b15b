"""Compiled loops over the samples of cells: weights, means and centred squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.kernels.compilation import compiled, in_threads
from cgnlearn.kernels.tiles import ROWS, WIDTH, fill

Floats = NDArray[np.float64]

RUN = 2048  # samples of a column that fit in the first-level cache
PARTS = 8  # of the samples, for threads


def diagonal_moments(
    values: NDArray[Any],
    columns: NDArray[np.intp],
    cell: NDArray[np.intp],
    weights: Floats | None,
    n_cells: int,
    origin: Floats,
) -> tuple[Floats, Floats, Floats]:
    """Weight (cells,), mean measured from the origin and centred squares (cells, columns) of every cell's samples.

    The parts depend on the data alone, so the number of threads does not change the result.
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
    """The first row of each cell with weight, or -1: differences from it lose no digits."""
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
    """Add samples to the cells' weights, means (measured from ``near``) and centred squares.

    Squares are centred at the tile's own means, which makes them as accurate as those of two passes.
    """
    n, mean, scatter = moments
    n_cells, m = near.shape
    tile = np.empty((ROWS, m))
    tile_n = np.zeros(n_cells)
    tile_mean = np.zeros((n_cells, m))
    tile_scatter = np.zeros((n_cells, m))
    occupied = np.empty(ROWS, np.int64)
    for first in range(start, stop, ROWS):
        n_samples = min(ROWS, stop - first)
        fill(tile, values, np.arange(first, first + n_samples), columns, near, cell[first : first + n_samples])
        n_occupied = 0
        for t in range(n_samples):
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
        for t in range(n_samples):
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
    """`_add_rows` for values stored column by column: along each column, by cell."""
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
    """Sort the samples that have weight by cell; return the number of occupied cells.

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
    """Mean, measured from ``near``, and centred squares of samples of a column."""
    # Separate loops are vectorised.
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
    """Copy some rows and columns into ``centred`` (columns, samples), each column measured from ``near`` (columns,)."""
    for j in range(len(columns)):
        column, zero, own = values[:, columns[j]], near[j], centred[j]
        for t in range(len(rows)):
            own[t] = column[rows[t]] - zero


@compiled
def _add_cells(moments: Any, others: Any) -> None:
    """Add the moments of other samples."""
    n, mean, scatter = moments
    other_n, other_mean, other_scatter = others
    for c in range(len(n)):
        if other_n[c] > 0:
            n[c] = _merge(n[c], mean[c], scatter[c], other_n[c], other_mean[c], other_scatter[c])


@compiled
def _merge(n: float, mean: Any, scatter: Any, other_n: float, other_mean: Any, other_scatter: Any) -> float:
    """Add one cell's moments to another's; return their total weight."""
    share = other_n / (n + other_n)
    for j in range(len(mean)):
        step = other_mean[j] - mean[j]
        mean[j] += step * share
        scatter[j] += other_scatter[j]
        if n > 0:  # else nothing times a square that may have overflowed
            scatter[j] += n * share * (step * step)
    return n + other_n
