"""A user's X and y as level codes, floats, class codes and weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length, column_or_1d

from cgnlearn.model.schema import Levels, Schema


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in the form the model reads.

    Parameters
    ----------
    schema : Schema
    values : ndarray (rows, continuous columns)
        NaN where there is no value.
    codes : ndarray of int (rows, discrete columns)
        -1 where there is no level.
    labels : ndarray of int (rows,) or None
        The class of each row, as its position among the classes.
    weights : ndarray (rows,) or None
        None stands for one each.
    """

    schema: Schema
    values: NDArray[Any]
    codes: NDArray[np.int32]
    labels: NDArray[np.intp] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    @cached_property
    def incomplete(self) -> tuple[int, ...]:
        """The columns of X in which something is missing."""
        with np.errstate(over="ignore", invalid="ignore"):
            holed = np.isnan(self.values.sum())  # far cheaper than looking at each, and almost always enough
        found = np.array(self.schema.continuous, np.intp)[np.isnan(self.values).any(axis=0)].tolist() if holed else []
        if self.codes.size and self.codes.min() < 0:
            found += np.array(self.schema.discrete, np.intp)[(self.codes < 0).any(axis=0)].tolist()
        return tuple(sorted(found))

    def rows(self, index: NDArray[np.intp]) -> Table:
        """The rows with these indexes."""
        part = replace(
            self,
            values=self.values[index],
            codes=self.codes[index],
            labels=None if self.labels is None else self.labels[index],
            weights=None if self.weights is None else self.weights[index],
        )
        if self.__dict__.get("incomplete") == ():
            part.__dict__["incomplete"] = ()  # a part of what is complete need not be looked through
        return part


def read_training(
    X: Any, y: Any, sample_weight: Any = None, categorical_features: Any = "from_dtype", classes: Any = None
) -> tuple[Table, NDArray[Any]]:
    """Training rows, from which names, levels and classes are learned; and the classes as they are in y.

    ``classes`` are all that will ever occur, if more rows are to come.
    """
    y = _target(y)
    distinct, labels = np.unique(y, return_inverse=True)
    check_classification_targets(distinct)
    if classes is None:
        classes = distinct
    else:
        classes = unique_labels(_target(classes, "classes"))
        labels = _codes(distinct, classes)[labels]
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: a classifier needs rows of at least two classes"
        )
    table = read(X, schema_of(X, classes, categorical_features))
    return _labelled(table, labels, sample_weight), classes


def _target(y: Any, name: str = "y") -> NDArray[Any]:
    """A flat array of labels of one kind, none of them missing."""
    cells = np.asarray(y)
    if cells.ndim == 1 and cells.dtype.kind in "fO":
        missing = np.isnan(cells) if cells.dtype.kind == "f" else np.array([is_missing(cell) for cell in cells], bool)
        if missing.any():
            raise ValueError(f"{name} has missing values (NaN), the first in row {np.argmax(missing)}: drop their rows")
        if len({isinstance(cell, str) for cell in cells.tolist()} if cells.dtype.kind == "O" else ()) > 1:
            raise ValueError(f"{name} mixes text and other labels: make them all text or all numbers")
    found: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(found, input_name=name)
    return found


def is_missing(cell: Any) -> bool:
    """Whether a cell says that there is no value."""
    return cell is None or is_pandas_na(cell) or is_scalar_nan(cell)


def schema_of(X: Any, classes: NDArray[Any], categorical_features: Any) -> Schema:
    """Read names and levels off the training data."""
    labels = tuple(classes.tolist())
    frame = as_frame(X)
    if frame is not None:
        columns = frame.columns
        names = tuple(columns) if all(isinstance(name, str) for name in columns) else None
        chosen = chosen_columns(categorical_features, columns, len(columns))
        if chosen is None:
            kinds = frame.schema.values()
            chosen = [i for i, kind in enumerate(kinds) if kind in (nw.Categorical, nw.Enum)]
        levels: list[Levels | None] = [None] * len(columns)
        for i in chosen:
            levels[i] = _levels_of_series(frame[columns[i]], f"column {columns[i]!r}")
        return Schema(names, tuple(levels), labels, frame.implementation.value)
    array = as_array(X)
    chosen = chosen_columns(categorical_features, None, array.shape[1]) or []
    levels = [None] * array.shape[1]
    for i in chosen:
        levels[i] = tuple(_distinct(array[:, i], f"column {i}")[0].tolist())
    return Schema(None, tuple(levels), labels)


def read(X: Any, schema: Schema, y: Any = None, sample_weight: Any = None) -> Table:
    """X in the model's form, with labels and weights if there is a y; refuses what the model cannot read."""
    frame = as_frame(X)
    values, codes = _read_array(as_array(X), schema) if frame is None else _read_frame(frame, schema)
    table = Table(schema, values, codes)
    if y is None:
        return table
    distinct, labels = np.unique(_target(y), return_inverse=True)
    return _labelled(table, _codes(distinct, np.array(schema.classes))[labels], sample_weight)


def _labelled(table: Table, labels: NDArray[np.intp], sample_weight: Any) -> Table:
    check_consistent_length(table.codes, labels)
    weights = None
    if sample_weight is not None:
        if not np.asarray(sample_weight).any():
            raise ValueError("all of sample_weight is zero: give some rows a positive weight")
        weights = _check_sample_weight(sample_weight, table.codes, dtype=np.float64, ensure_non_negative=True)
    return replace(table, labels=labels, weights=weights)


def _codes(distinct: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Where each label stands among the classes."""
    code = {label: i for i, label in enumerate(classes.tolist())}
    for label in distinct.tolist():
        if label not in code:
            raise ValueError(
                f"y has the class {label!r}, which is not among the classes {classes.tolist()}: "
                "name it in the first call of partial_fit"
            )
    return np.array([code[label] for label in distinct.tolist()], np.intp)


def _read_frame(frame: nw.DataFrame[Any], schema: Schema) -> tuple[NDArray[Any], NDArray[np.int32]]:
    columns, kinds = frame.columns, list(frame.schema.values())
    for i in schema.continuous:
        if not (kinds[i].is_numeric() or kinds[i] == nw.Boolean):
            raise ValueError(_not_numbers(schema.name(i), frame[columns[i]]))
    if schema.continuous:
        numbers = frame if not schema.discrete else frame.select([columns[i] for i in schema.continuous])
        values = numbers.to_numpy()
        if values.dtype not in (np.float32, np.float64):
            values = np.asarray(numbers.with_columns(nw.all().cast(nw.Float64)).to_numpy(), np.float64)
    else:
        values = np.empty((len(frame), 0))
    _refuse_missing(values, schema)
    codes = np.empty((len(frame), len(schema.discrete)), np.int32)
    for position, i in enumerate(schema.discrete):
        codes[:, position] = _codes_of_series(i, frame[columns[i]], schema)
    return values, codes


def _not_numbers(name: str, series: nw.Series[Any]) -> str:
    """Why a column cannot be read, and what to do."""
    if series.dtype.is_temporal():
        return f"{name} holds dates or times: turn them into numbers, such as days since a first one"
    native = str(getattr(series.to_native(), "dtype", ""))
    if native.startswith("Sparse"):
        return f"{name} is sparse ({native}): make it dense, in pandas with .sparse.to_dense()"
    return (
        f"{name} holds {series.dtype} and is not categorical: "
        "cast it to a categorical dtype or name it in categorical_features"
    )


def _read_array(array: NDArray[Any], schema: Schema) -> tuple[NDArray[Any], NDArray[np.int32]]:
    if array.dtype.kind not in "fiub":
        array = _numbers_of_objects(array, schema)
    if not schema.discrete:
        values = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        codes = np.empty((len(array), 0), np.int32)
    else:
        values = array[:, schema.continuous].astype(np.float64)
        codes = np.empty((len(array), len(schema.discrete)), np.int32)
        for position, i in enumerate(schema.discrete):
            distinct, inverse = _distinct(array[:, i], schema.name(i))
            codes[:, position] = _codes_of_levels(i, distinct.tolist(), schema)[inverse]
    _refuse_missing(values, schema)
    return values, codes


def _numbers_of_objects(array: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """The same array, its continuous columns turned into floats."""
    array = array.astype(object)
    for i in schema.continuous:
        if any(isinstance(cell, date | np.datetime64 | timedelta) for cell in array[:, i]):
            raise ValueError(
                f"{schema.name(i)} holds dates or times: turn them into numbers, such as days since a first one"
            )
        try:
            array[:, i] = array[:, i].astype(np.float64)
        except OverflowError:
            raise ValueError(
                f"{schema.name(i)} holds a number beyond floating point: divide it by a constant"
            ) from None
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{schema.name(i)} holds values that are not numbers ({error}) and is not categorical: "
                "name it in categorical_features"
            ) from None
    return array if schema.discrete else array.astype(np.float64)


def _codes_of_series(column: int, series: nw.Series[Any], schema: Schema) -> NDArray[np.int32]:
    if series.null_count() or (series.dtype.is_float() and series.is_nan().any()):
        raise ValueError(f"{schema.name(column)} has missing values: impute them or drop their rows")
    distinct = series.unique()
    codes = _codes_of_levels(column, distinct.to_list(), schema)
    if series.dtype in (nw.Categorical, nw.Enum):  # not every backend maps categoricals themselves
        series, distinct = series.cast(nw.String), distinct.cast(nw.String)
    return series.replace_strict(distinct.to_list(), codes.tolist(), return_dtype=nw.Int32).to_numpy()


def _codes_of_levels(column: int, distinct: list[Hashable], schema: Schema) -> NDArray[np.int32]:
    levels = schema.levels_of(column)
    code = {level: i for i, level in enumerate(levels)}
    unknown = [level for level in distinct if level not in code]
    if unknown:
        known = ", ".join(repr(level) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
        raise ValueError(
            f"{schema.name(column)} has the level {unknown[0]!r}, unknown from training (known: {known}): "
            "declare it in the training data's categorical dtype or drop its rows"
        )
    return np.array([code[level] for level in distinct], np.int32)


def _refuse_missing(values: NDArray[Any], schema: Schema) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # far cheaper than looking at each, and almost always enough
            return
    finite = np.isfinite(values)
    if finite.all():
        return
    row, position = np.argwhere(~finite)[0]
    what = "NaN" if np.isnan(values[row, position]) else "infinity"
    raise ValueError(
        f"{schema.name(schema.continuous[position])} holds {what} in row {row}: impute such values or drop their rows"
    )


def unread(table: Table) -> Any:
    """The rows in the form the training data had (the inverse of `read`)."""
    schema = table.schema
    columns: list[Any] = [None] * schema.n_columns
    for position, i in enumerate(schema.continuous):
        columns[i] = table.values[:, position]
    for position, i in enumerate(schema.discrete):
        columns[i] = np.array(schema.levels[i], dtype=object)[table.codes[:, position]]
    if schema.names is None:
        numeric = all(isinstance(level, int | float) for levels in schema.levels if levels for level in levels)
        return np.column_stack(columns).astype(float if numeric else object)
    named = dict(zip(schema.names, columns, strict=True))
    if schema.frame == "pandas":
        import pandas as pd

        return pd.DataFrame(
            {
                name: column if levels is None else pd.Categorical(column, categories=list(levels))
                for (name, column), levels in zip(named.items(), schema.levels, strict=True)
            }
        )
    frame = nw.from_dict({name: list(column) for name, column in named.items()}, backend=schema.frame)  # type: ignore[arg-type]
    textual = {
        schema.names[i]: levels
        for i, levels in enumerate(schema.levels)
        if levels is not None and all(isinstance(level, str) for level in levels)
    }
    kind = nw.Enum if schema.frame == "polars" else lambda _: nw.Categorical()
    return frame.with_columns(
        [nw.col(name).cast(kind([str(level) for level in levels])) for name, levels in textual.items()]
    ).to_native()


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame if it is an eager data frame of any library, else None."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        raise ValueError(f"X has columns of the same name: rename them ({' '.join(str(error).split())})") from None
    if isinstance(frame, nw.LazyFrame):
        raise ValueError("X is a lazy frame: collect() it first")
    if not isinstance(frame, nw.DataFrame):
        return None
    for number, what in zip(frame.shape, ("sample", "feature"), strict=True):
        if not number:  # in scikit-learn's words for arrays
            raise ValueError(
                f"Found data frame with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 is required."
            )
    return frame


def as_array(X: Any) -> NDArray[Any]:
    """X as a two-dimensional NumPy array of numbers or objects; finiteness is `read`'s to check."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        return X
    if isinstance(X, list | tuple) and any(isinstance(cell, str) for row in X for cell in np.atleast_1d(row)):
        X = np.array(X, dtype=object)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        array: NDArray[Any] = check_array(
            X, dtype=None, ensure_all_finite=False, ensure_min_samples=1, estimator="CGNClassifier"
        )
    except ValueError as error:
        if "2D array" in str(error):
            raise ValueError(
                f"Expected 2D array of rows and columns, not one of {np.ndim(X)} dimensions. Reshape your data "
                "using X.reshape(-1, 1) if it is one column or X.reshape(1, -1) if it is one row"
            ) from None
        raise ValueError(str(error).split("\n")[0]) from None
    if array.dtype.kind in "USTMm":
        array = array.astype(object)
    return array


def _distinct(column: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    if any(is_missing(cell) for cell in column if not isinstance(cell, str)):
        raise ValueError(f"{name} has missing values: impute them or drop their rows")
    _refuse_mixture(column.tolist(), name)
    return np.unique(column, return_inverse=True)


def _levels_of_series(series: nw.Series[Any], name: str) -> Levels:
    """The levels a column declares in its dtype, or else the ones it holds, sorted."""
    if isinstance(series.dtype, nw.Enum) and series.implementation.is_polars():
        return tuple(series.dtype.categories)
    if series.dtype in (nw.Categorical, nw.Enum) and not series.implementation.is_polars():
        levels = series.cat.get_categories().to_list()
        _refuse_mixture(levels, name)
        return tuple(levels)
    # A polars Categorical draws on a pool that other columns share, so only the levels held can be its own.
    levels = [level for level in series.unique().to_list() if not is_missing(level)]
    _refuse_mixture(levels, name)
    return tuple(sorted(levels))


def _refuse_mixture(levels: list[Any], name: str) -> None:
    if len({isinstance(level, str) for level in levels}) > 1:
        raise ValueError(f"{name} mixes levels of different types: make them all text or all numbers")


def chosen_columns(categorical_features: Any, names: Sequence[str] | None, n_columns: int) -> list[int] | None:
    """Indexes of the columns that `categorical_features` names; None leaves the choice to the dtypes."""
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
        raise ValueError("categorical_features holds names, but X has none: give indexes or a mask")
    unknown = [name for name in chosen.tolist() if name not in names]
    if unknown:
        raise ValueError(f"categorical_features names {unknown[0]!r}, which is not a column of X")
    return sorted({names.index(name) for name in chosen.tolist()})
