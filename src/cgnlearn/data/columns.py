"""Columns of arrays and of data frames: what they hold, as numbers, or as levels and their codes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.frames import is_missing
from cgnlearn.data.levels import (
    MISSING,
    MOST_WORDS,
    TRUTHS,
    Levels,
    distinct_levels,
    kind_of,
    names_samples,
    sorted_levels,
    spells_number,
)
from cgnlearn.data.schema import Schema
from cgnlearn.data.warning import DataWarning

Column = nw.Series[Any] | NDArray[Any]

CATEGORICAL = ("categories", "text", "truths")  # contents of columns that are discrete by their dtype
NUMERIC = ("numbers", "truths", "nothing")
DATES = "dates or times: convert them to numbers, such as days since a reference date"
NAMES = "almost as many different texts as samples, such as ids: drop them, or name them in categorical_features"
NUMBERS = 'numbers as text: convert them, in pandas with pd.to_numeric(column, errors="coerce")'
MOSTLY = 0.9  # text with at least this share of numbers is taken for numbers
REFUSED = {
    "times": DATES,
    "text and numbers": "text and numbers: convert all to text or all to numbers",
    "sparse values": "sparse values: make them dense, in pandas with .sparse.to_dense()",
    "objects": "objects, but every argument must be of strings or numbers: convert them",  # as scikit-learn's checks
}


def content(column: Column) -> str:
    """What a column holds: one of `CATEGORICAL`, of `NUMERIC` or of `REFUSED`."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind != "O":
            return {"b": "truths", "M": "times", "m": "times"}.get(column.dtype.kind, "numbers")
        found = _content_of_cells(column.tolist())
        return "numbers" if found == "text" and _as_floats(column) is not None else found  # NumPy reads "1.5"
    kind = column.dtype
    if kind.is_numeric():
        return "numbers"
    if kind in (nw.Categorical, nw.Enum):
        return "categories"
    if kind.is_temporal():
        return "times"
    if column.null_count() == len(column):
        return "nothing"
    if kind == nw.Boolean:
        return "truths"
    if kind in (nw.String, nw.Binary):
        return "text"
    if str(getattr(column.to_native(), "dtype", "")).startswith("Sparse"):
        return "sparse values"
    return _content_of_cells(column.to_list()) if kind == nw.Object else "objects"


def _content_of_cells(cells: list[Any]) -> str:
    kinds = {kind_of(cell) for cell in cells if not is_missing(cell)}
    if kinds == {"numbers", "truths"}:
        return "numbers"
    if len(kinds) < 2:
        return kinds.pop() if kinds else "nothing"
    return next((kind for kind in ("objects", "times") if kind in kinds), "text and numbers")


def refuse_others(contents: dict[int, str], schema: Schema, text: str = "where training had numbers:") -> None:
    """Raise unless columns hold numbers; ``text`` is what to say about text and categories."""
    wrong = {i: what for i, what in contents.items() if what not in NUMERIC}
    for kind in dict.fromkeys(wrong.values()):
        names = [schema.name(i) for i, what in wrong.items() if what == kind]
        error = TypeError if kind == "objects" else ValueError
        raise error(f"{_holding(names)} {REFUSED.get(kind) or f'{kind} {text} convert to numbers'}")


def check_text(columns: dict[str, Column]) -> None:
    """Refuse text that names samples, or numbers as text of so many values; warn of numbers as fewer ones."""
    refused: dict[str, list[str]] = {NAMES: [], NUMBERS: []}
    doubtful = []
    for name, column in columns.items():
        codes, levels = codes_and_levels(column, name)
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        different, n_present = int(np.count_nonzero(counts)), int(counts.sum())
        if different <= MOST_WORDS:
            continue
        are_numbers = counts @ np.array([spells_number(level) for level in levels]) >= MOSTLY * n_present
        if names_samples(different, n_present):
            refused[NUMBERS if are_numbers else NAMES].append(name)
        elif are_numbers:
            doubtful.append(name)
    if any(refused.values()):
        raise ValueError("; ".join(f"{_holding(names)} {what}" for what, names in refused.items() if names))
    if doubtful:
        warnings.warn(f"{_holding(doubtful)} {NUMBERS}, unless levels are meant", DataWarning, stacklevel=8)


def _holding(names: Sequence[str]) -> str:
    """Subject and verb of a message about columns, all of which it names."""
    if len(names) == 1:
        return f"{names[0]} holds"
    return f"columns {', '.join(name.removeprefix('column ') for name in names)} hold"


# ---- numbers


def numbers_of_frame(frame: nw.DataFrame[Any], schema: Schema) -> NDArray[Any]:
    """The continuous columns of a frame."""
    if not schema.continuous:
        return np.empty((len(frame), 0))
    numbers = frame if not schema.discrete else frame[:, list(schema.continuous)]
    kinds = numbers.schema.values()
    if any(kind in (nw.Int128, nw.UInt128) for kind in kinds):  # unknown to NumPy
        numbers = numbers.with_columns(nw.all().cast(nw.Float64))
    if all(kind.is_numeric() or kind == nw.Boolean for kind in kinds):
        values: NDArray[Any] = numbers.to_numpy()
        if values.dtype not in (np.float32, np.float64):
            values = numbers.with_columns(nw.all().cast(nw.Float64)).to_numpy()
        if values.dtype != object:  # which pandas returns for columns whose missing values are not NaN
            return values
    columns = {i: frame[:, i] for i in schema.continuous}
    refuse_others({i: content(column) for i, column in columns.items()}, schema)
    return np.column_stack([_numbers_of_series(column) for column in columns.values()])


def _numbers_of_series(series: nw.Series[Any]) -> NDArray[np.float64]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    return np.array([np.nan if is_missing(cell) else cell for cell in series.to_list()], np.float64)


def numbers_of_array(array: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """The continuous columns of an array, not copied if it holds nothing else."""
    if array.dtype.kind in "fiub":
        if schema.discrete:
            return array[:, schema.continuous].astype(np.float64)
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    refuse_others({i: content(array[:, i]) for i in schema.continuous}, schema)
    values = np.empty((len(array), len(schema.continuous)))
    for position, i in enumerate(schema.continuous):
        try:
            values[:, position] = _floats(array[:, i])
        except OverflowError:
            raise ValueError(
                f"{schema.name(i)} holds a number too large for floating point: divide it by a constant"
            ) from None
    return values


def _as_floats(cells: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        return _floats(cells)
    except ValueError:
        return None


def _floats(cells: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return cells.astype(np.float64)
    except TypeError:  # NumPy converts None, but not the NA of pandas
        return np.array([np.nan if is_missing(cell) else cell for cell in cells], object).astype(np.float64)


# ---- levels


def codes_and_levels(column: Column, name: str) -> tuple[NDArray[np.intp], list[Any]]:
    """Code of each sample among the different levels, which are also returned; `MISSING` where there is none."""
    try:
        codes, levels = _of_array(column) if isinstance(column, np.ndarray) else _of_series(column)
    except TypeError:
        raise TypeError(f"{name} holds {REFUSED['objects']}") from None
    absent = [i for i, level in enumerate(levels) if is_missing(level)]
    return np.where(np.isin(codes, absent), MISSING, codes) if absent else codes, levels


def _of_array(column: NDArray[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    if column.dtype.kind == "O":
        code: dict[Hashable, int] = {}
        codes = [MISSING if is_missing(cell) else code.setdefault(cell, len(code)) for cell in column.tolist()]
        return np.array(codes, np.intp), list(code)
    distinct, inverse = np.unique(column, return_inverse=True)
    if column.dtype.kind in "Mm":  # finer units become plain numbers
        distinct = distinct.astype(f"{column.dtype.kind}8[us]")
    return inverse, distinct.tolist()


def _of_series(series: nw.Series[Any]) -> tuple[NDArray[np.intp], list[Any]]:
    if series.implementation.is_pandas():
        codes, distinct = series.to_native().factorize()
        return codes, distinct.tolist()
    if series.dtype == nw.Object:
        return _of_array(np.array([*series.to_list(), None], object)[:-1])  # None: cells may be lists
    if series.dtype in (nw.Categorical, nw.Enum):  # not every backend maps categoricals themselves
        series = series.cast(nw.String)
    present = ~series.is_null().to_numpy().astype(bool)
    if series.dtype.is_float():
        present &= ~np.isnan(series.to_numpy().astype(np.float64))
    codes = np.full(len(series), MISSING, np.intp)
    if not present.any():
        return codes, []
    observed = series if present.all() else series.filter(present.tolist())
    levels = observed.unique().to_list()
    codes[present] = observed.replace_strict(levels, list(range(len(levels))), return_dtype=nw.Int64).to_numpy()
    return codes, levels


def declared_levels(column: Column, name: str) -> Levels | None:
    """Levels that the dtype of a column declares."""
    if isinstance(column, np.ndarray):
        return TRUTHS if content(column) == "truths" else None
    if isinstance(column.dtype, nw.Enum) and column.implementation.is_polars():
        return tuple(column.dtype.categories)
    # A polars Categorical shares its pool of levels with other columns: only values that occur are its own.
    if column.dtype in (nw.Categorical, nw.Enum) and not column.implementation.is_polars():
        if hasattr(column.to_native(), "cat") or not column.implementation.is_pandas():  # none of Arrow in pandas
            categories = column.cat.get_categories().to_list()
            return distinct_levels([level for level in categories if not is_missing(level)], name)
        return None
    return TRUTHS if content(column) == "truths" else None


def levels_of(column: Column, name: str) -> Levels:
    """Levels that the dtype of a column declares, or else its values, sorted."""
    return declared_levels(column, name) or sorted_levels(
        [level for level in codes_and_levels(column, name)[1] if not is_missing(level)], name
    )
