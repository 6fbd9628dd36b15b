"""Rows and columns picked from arrays, copied only where they must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEW_CELLS = 4  # whose rows are found by going through all once for each, sooner than by sorting


def columns_of(array: NDArray[Any], columns: NDArray[np.intp]) -> NDArray[Any]:
    """Columns of an array: a view where they stand side by side, else a copy."""
    return array[:, _span(columns)]


def take(array: NDArray[Any], rows: NDArray[np.intp] | slice, columns: NDArray[np.intp]) -> NDArray[Any]:
    """Rows and columns of an array: a copy, unless both stand side by side."""
    span = _span(columns)
    if (
        isinstance(span, slice)
        and not isinstance(rows, slice)
        and len(columns) == array.shape[1]
        and (array.flags.c_contiguous)
    ):
        return array.take(rows, axis=0)  # whole rows: several times as fast as by index
    if isinstance(span, slice) or isinstance(rows, slice):
        return array[rows, span]
    return array[rows[:, None], columns]


def _span(columns: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """The slice that these indexes fill, if they do."""
    if not len(columns):
        return slice(0, 0)
    first, last = int(columns[0]), int(columns[-1])
    side_by_side = last - first == len(columns) - 1 and bool(np.all(np.diff(columns) == 1))
    return slice(first, last + 1) if side_by_side else columns


def rows_by_cell(cell: NDArray[np.intp], n_cells: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each occupied cell with the indexes of its rows, in their order."""
    narrow = cell.astype(np.min_scalar_type(max(n_cells - 1, 0)), copy=False)  # 8 and 16 bits sort by radix
    if n_cells <= FEW_CELLS:
        for place in range(n_cells):
            if len(rows := np.flatnonzero(narrow == place)):
                yield place, rows
        return
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    for place in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield place, order[ends[place - 1] if place else 0 : ends[place]]
