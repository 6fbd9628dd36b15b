"""X as arrays, or as data frames of any library."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.validation import check_array


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame if it is an eager data frame of any library, else None."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        raise ValueError(f"X has columns of the same name: rename them ({' '.join(str(error).split())})") from None
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__arrow_c_array__"):  # not known to narwhals
        frame = _from_arrow(frame)
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame: collect() it first")
    if not isinstance(frame, nw.DataFrame):
        return None
    for number, what in zip(frame.shape, ("sample", "feature"), strict=True):
        if not number:  # the message of scikit-learn for arrays
            raise ValueError(
                f"Found data frame with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 is required."
            )
    return frame


def _from_arrow(X: Any) -> Any:
    """Arrow's batches, and what other libraries offer in its form, as a frame."""
    if isinstance(X, nw.DataFrame):
        return X
    with suppress(ImportError, TypeError, ValueError):
        import pyarrow as pa

        return nw.from_native(pa.table(X))
    return X


def as_array(X: Any) -> NDArray[Any]:
    """X as a two-dimensional NumPy array of numbers or objects; `read` checks that it is finite."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        return X
    if isinstance(X, list | tuple) and any(isinstance(cell, str) for row in X for cell in np.atleast_1d(row)):
        X = np.array(X, dtype=object)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan) if X.dtype.kind in "fiu" else as_cells(X)
    try:
        array: NDArray[Any] = check_array(
            X, dtype=None, ensure_all_finite=False, ensure_min_samples=1, estimator="CGNClassifier"
        )
    except ValueError as error:
        if "2D array" in str(error):
            raise ValueError(
                f"Expected 2D array of samples and features, not one of {np.ndim(X)} dimensions. Reshape your data "
                "using X.reshape(-1, 1) if it is one feature or X.reshape(1, -1) if it is one sample"
            ) from None
        raise ValueError(str(error).split("\n")[0]) from None
    if array.dtype.kind in "UST":
        array = array.astype(object)
    return array


def as_cells(values: Any) -> NDArray[Any]:
    """Labels or groups as an array in which missing ones are still missing: NumPy spells None and NaN beside text."""
    if isinstance(values, np.ma.MaskedArray):
        cells: NDArray[Any] = values.data.astype(object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    cells = np.asarray(values)
    if cells.dtype.kind == "T":
        return cells.astype(object)
    is_spelled = cells.dtype.kind == "U" and cells.ndim == 1 and isinstance(values, list | tuple)
    return np.array(values, object) if is_spelled and not all(isinstance(cell, str) for cell in values) else cells


def readable(X: Any) -> Any:
    """X as a data frame that keeps its names, if it is one of any kind, else as a NumPy array."""
    frame = as_frame(X)
    return as_array(X) if frame is None else frame.to_native()


def headings(X: Any) -> list[str] | None:
    """Headings of a data frame that are not all text, and so are no names of features, as text."""
    frame = as_frame(X)
    if frame is None or all(isinstance(name, str) for name in frame.columns):
        return None
    return [str(name) for name in frame.columns]


def is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, pandas' NA, or not a time."""
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    if isinstance(cell, datetime):
        return cell != cell  # pandas' NaT is a datetime that does not equal itself
    return cell is None or is_pandas_na(cell) or is_scalar_nan(cell)


def chosen_columns(categorical_features: Any, names: Sequence[str] | None, n_columns: int) -> list[int] | None:
    """Indexes of the columns that `categorical_features` names; None: the dtypes decide."""
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return None
        raise ValueError(
            f'categorical_features must be "from_dtype" or a list of columns, not {categorical_features!r}'
        )
    if categorical_features is None:
        return []
    chosen = np.asarray(categorical_features)
    if chosen.size == 0:
        return []
    if chosen.ndim != 1:
        raise ValueError("categorical_features must be a flat list of names or indexes, or a mask")
    if chosen.dtype == bool:
        if len(chosen) != n_columns:
            raise ValueError(f"categorical_features masks {len(chosen)} columns, but X has {n_columns}")
        return np.flatnonzero(chosen).tolist()
    if chosen.dtype.kind in "iu":
        outside = [i for i in chosen.tolist() if not 0 <= i < n_columns]
        if outside:
            raise ValueError(f"categorical_features names column {outside[0]}, but X has {n_columns} columns")
        return sorted(set(chosen.tolist()))
    if names is None:
        raise ValueError("categorical_features has names, but X has no column names: give indexes or a mask")
    unknown = [name for name in chosen.tolist() if name not in names]
    if unknown:
        raise ValueError(f"categorical_features names {unknown[0]!r}, which is not a column of X")
    return sorted({names.index(name) for name in chosen.tolist()})
