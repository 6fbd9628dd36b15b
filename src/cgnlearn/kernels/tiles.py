"""Tiles of samples that stay in the cache while they are processed."""

from __future__ import annotations

from typing import Any

from cgnlearn.kernels.compilation import compiled

TILE = 64  # samples side by side in the first-level cache
ROWS = 128  # samples one by one, along their columns, that stay in the cache for a second pass
WIDTH = 128  # columns of such a tile


@compiled
def fill(tile: Any, values: Any, rows: Any, columns: Any, origin: Any, place: Any) -> None:
    """Copy samples less ``origin[place]`` into a tile, in the order in which they are stored."""
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
