"""Types of the arrays that all rooms exchange; samples and columns of arrays, copied only where necessary."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

Floats = NDArray[np.float64]
Columns = NDArray[np.intp]  # indexes of columns, or of samples

FEW_CELLS = 4  # up to which one pass per cell is faster than sorting


@cache
def contrasts_of(n_classes: int) -> Floats:
    """Orthonormal coordinates of scores of the classes, up to a constant of each sample: (contrasts, classes)."""
    found: Floats = helmert(n_classes)
    found.flags.writeable = False
    return found


def effective(weights: Floats) -> Floats:
    """Weights scaled so that their sum is the effective number of samples (Kish 1965)."""
    found: Floats = weights * (weights.sum() / np.square(weights).sum())
    return found


def take(array: NDArray[Any], rows: NDArray[np.intp] | slice, columns: NDArray[np.intp]) -> NDArray[Any]:
    """Samples and columns of an array: a copy, unless both are contiguous."""
    span = _span(columns)
    if isinstance(rows, slice):
        return array[rows, span]
    if not isinstance(span, slice):
        return array[rows[:, None], columns]
    if len(columns) == array.shape[1] and array.flags.c_contiguous:
        return array.take(rows, axis=0)  # several times as fast as by index
    return array[rows, span]


def _span(columns: NDArray[np.intp]) -> NDArray[np.intp] | slice:
    """Contiguous indexes as a slice, others as they are."""
    if not len(columns):
        return slice(0, 0)
    first, last = int(columns[0]), int(columns[-1])
    is_contiguous = last - first == len(columns) - 1 and bool(np.all(np.diff(columns) == 1))
    return slice(first, last + 1) if is_contiguous else columns


def rows_by_cell(cell: NDArray[np.intp], n_cells: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Each cell that has samples, with their sorted indexes."""
    narrow = cell.astype(np.min_scalar_type(max(n_cells - 1, 0)), copy=False)  # NumPy sorts 8 and 16 bits by radix
    if n_cells <= FEW_CELLS:
        for place in range(n_cells):
            if len(rows := np.flatnonzero(narrow == place)):
                yield place, rows
        return
    order = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    for place in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        yield place, order[ends[place - 1] if place else 0 : ends[place]]
