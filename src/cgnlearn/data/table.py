"""X and y as floats, level codes, class codes and sample weights."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from cgnlearn.data.frames import as_array, as_frame, chosen_columns, is_missing
from cgnlearn.data.labels import class_codes, labels_of, target
from cgnlearn.data.schema import NO_LEVELS, Levels, Schema
from cgnlearn.data.warning import DataWarning

MISSING = -1  # the code of a missing level
_UNKNOWN = -2  # of a level unknown from training, until the warning has counted it
_DATES = "holds dates or times: convert them to numbers, such as days since a reference date"

HandleUnknown = Literal["missing", "error"]


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in the form that models read."""

    schema: Schema
    values: NDArray[Any]  # (samples, continuous columns); NaN: missing
    codes: NDArray[np.int32]  # of levels (samples, discrete columns); -1: missing
    labels: NDArray[np.intp] | None = None  # class codes
    weights: NDArray[np.float64] | None = None  # None: 1 each

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.codes)

    @cached_property
    def incomplete(self) -> tuple[int, ...]:
        """Columns of X with missing values."""
        columns: list[int] = []
        with np.errstate(over="ignore", invalid="ignore"):
            has_nan = np.isnan(self.values.sum())  # far cheaper than a test of each value
        if has_nan:
            columns += np.array(self.schema.continuous, np.intp)[np.isnan(self.values).any(axis=0)].tolist()
        if self.codes.min(initial=0) < 0:
            columns += np.array(self.schema.discrete, np.intp)[(self.codes < 0).any(axis=0)].tolist()
        return tuple(sorted(columns))

    def missing(self, column: int) -> NDArray[np.bool_]:
        """Whether each sample's value of a column of X is missing."""
        position = self.schema.position[column]
        if self.schema.levels[column] is None:
            return np.isnan(self.values[:, position])
        missing: NDArray[np.bool_] = self.codes[:, position] == MISSING
        return missing

    def most_complete_first(self, columns: list[int]) -> list[int]:
        """The columns of X, discrete ones first and then by their number of missing values."""
        n_missing = {column: int(self.missing(column).sum()) for column in columns if column in self.incomplete}
        return self.schema.discrete_first(sorted(columns, key=lambda column: n_missing.get(column, 0)))

    def rows(self, index: NDArray[np.intp]) -> Table:
        """The samples with these indexes."""
        part = replace(
            self,
            values=self.values[index],
            codes=self.codes[index],
            labels=None if self.labels is None else self.labels[index],
            weights=None if self.weights is None else self.weights[index],
        )
        if self.__dict__.get("incomplete") == ():
            part.__dict__["incomplete"] = ()
        return part


def evenly_spaced(n_samples: int, most: int) -> NDArray[np.intp]:
    """Indexes of at most ``most`` evenly spaced samples."""
    n = min(n_samples, most)
    return np.arange(n) * n_samples // max(n, 1)  # in integers: steps of floats may lead beyond the last sample


def read_training(
    X: Any, y: Any, sample_weight: Any = None, categorical_features: Any = "from_dtype", classes: Any = None
) -> tuple[Table, NDArray[Any]]:
    """Return training samples, of which names, levels and classes are learned, and the classes in the type of y.

    ``classes`` lists all classes if more samples will follow.
    """
    y = target(y)
    distinct, labels = np.unique(y, return_inverse=True)
    check_classification_targets(distinct)
    if classes is None:
        classes = distinct
    else:
        classes = unique_labels(target(classes, "classes"))
        labels = class_codes(distinct, classes)[labels]
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: a classifier needs samples of at least two classes"
        )
    schema = schema_of(X, classes, categorical_features)
    return table_of(schema, *_cells(X, schema), labels, sample_weight), classes


def schema_of(X: Any, classes: NDArray[Any], categorical_features: Any) -> Schema:
    """Return the schema of training data."""
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
            levels[i] = _levels_of_series(frame[:, i], f"column {columns[i]!r}") or NO_LEVELS
        return Schema(names, tuple(levels), labels, frame.implementation.value)
    array = as_array(X)
    chosen = chosen_columns(categorical_features, None, array.shape[1]) or []
    levels = [None] * array.shape[1]
    for i in chosen:
        levels[i] = tuple(_distinct(array[:, i], f"column {i}")[1]) or NO_LEVELS
    return Schema(None, tuple(levels), labels)


def read(
    X: Any, schema: Schema, y: Any = None, sample_weight: Any = None, handle_unknown: HandleUnknown = "error"
) -> Table:
    """Return X as a table, with labels and weights if y is given."""
    values, codes = _cells(X, schema, handle_unknown)
    if y is None:
        return table_of(schema, values, codes)
    return table_of(schema, values, codes, labels_of(target(y), np.array(schema.classes)), sample_weight)


def _cells(X: Any, schema: Schema, handle_unknown: HandleUnknown = "error") -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the values and the codes of X."""
    frame = as_frame(X)
    if frame is None:
        values, codes = _read_array(as_array(X), schema, handle_unknown)
    else:
        codes = np.empty((len(frame), len(schema.discrete)), np.int32)
        for position, i in enumerate(schema.discrete):
            codes[:, position] = _codes_of_series(i, frame[:, i], schema, handle_unknown)
        values = _numbers_of_frame(frame, schema)
    if codes.min(initial=0) == _UNKNOWN:
        _warn_of_unknown(codes, schema)
        np.maximum(codes, MISSING, out=codes)
    return values, codes


def table_of(
    schema: Schema,
    values: NDArray[Any],
    codes: NDArray[np.int32],
    labels: NDArray[np.intp] | None = None,
    sample_weight: Any = None,
) -> Table:
    """Return a table after checks of weights and finiteness."""
    weights = None
    if labels is not None:
        check_consistent_length(codes, labels)
        if sample_weight is not None:
            if not np.asarray(sample_weight).any():
                raise ValueError("all of sample_weight is zero: give some samples a positive weight")
            weights = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
    table = Table(schema, values, codes, labels, weights)
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(values.sum())  # far cheaper than a test of each value
    if not is_finite:
        for row, position in np.argwhere(np.isinf(values)):
            name = schema.name(schema.continuous[position])
            raise ValueError(f"{name} holds infinity in sample {row}: impute it or drop the sample")
    elif codes.min(initial=0) > MISSING:
        table.__dict__["incomplete"] = ()
    return table


def _warn_of_unknown(codes: NDArray[np.int32], schema: Schema) -> None:
    counts = (codes == _UNKNOWN).sum(axis=0)
    listed = [f"{n} in {schema.name(i)}" for i, n in zip(schema.discrete, counts.tolist(), strict=True) if n]
    more = f" and more in {len(listed) - 8} other columns" if len(listed) > 8 else ""
    message = f"levels unknown from training count as missing: {', '.join(listed[:8])}{more}"
    warnings.warn(message, DataWarning, stacklevel=6)


def _numbers_of_frame(frame: nw.DataFrame[Any], schema: Schema) -> NDArray[Any]:
    if not schema.continuous:
        return np.empty((len(frame), 0))
    numbers = frame if not schema.discrete else frame[:, list(schema.continuous)]
    if all(kind.is_numeric() or kind == nw.Boolean for kind in numbers.schema.values()):
        values: NDArray[Any] = numbers.to_numpy()
        if values.dtype not in (np.float32, np.float64):
            values = numbers.with_columns(nw.all().cast(nw.Float64)).to_numpy()
        if values.dtype != object:  # which pandas returns for columns whose missing values are not NaN
            return values
    return np.column_stack([_numbers_of_series(schema.name(i), frame[:, i]) for i in schema.continuous])


def _numbers_of_series(name: str, series: nw.Series[Any]) -> NDArray[np.float64]:
    """Return a column as floats, also if it holds numbers, or only missing values, as objects."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    if series.null_count() == len(series):
        return np.full(len(series), np.nan)
    cells = [np.nan if is_missing(cell) else cell for cell in series.to_list()]
    if series.dtype != nw.Object or not all(isinstance(cell, Real | np.bool_) for cell in cells):
        raise ValueError(_not_numbers(name, series))
    return np.array(cells, np.float64)


def _not_numbers(name: str, series: nw.Series[Any]) -> str:
    """Return why a column has no numbers, and what to do."""
    if series.dtype.is_temporal():
        return f"{name} {_DATES}"
    native = str(getattr(series.to_native(), "dtype", ""))
    if native.startswith("Sparse"):
        return f"{name} is sparse ({native}): make it dense, in pandas with .sparse.to_dense()"
    return (
        f"{name} holds {series.dtype} and is not categorical: "
        "cast it to a categorical dtype or name it in categorical_features"
    )


def _read_array(
    array: NDArray[Any], schema: Schema, handle_unknown: HandleUnknown
) -> tuple[NDArray[Any], NDArray[np.int32]]:
    if array.dtype.kind not in "fiub":
        array = _numbers_of_objects(array, schema)
    if not schema.discrete:
        values = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
        return values, np.empty((len(array), 0), np.int32)
    codes = np.full((len(array), len(schema.discrete)), MISSING, np.int32)
    for position, i in enumerate(schema.discrete):
        present, distinct, inverse = _distinct(array[:, i], schema.name(i))
        codes[present, position] = _codes_of_levels(i, distinct, schema, handle_unknown)[inverse]
    return array[:, schema.continuous].astype(np.float64), codes


def _numbers_of_objects(array: NDArray[Any], schema: Schema) -> NDArray[Any]:
    """Return an array with its continuous columns as floats."""
    array = array.astype(object)
    for i in schema.continuous:
        if any(isinstance(cell, date | np.datetime64 | timedelta) for cell in array[:, i]):
            raise ValueError(f"{schema.name(i)} {_DATES}")
        try:
            array[:, i] = _floats(array[:, i])
        except OverflowError:
            raise ValueError(
                f"{schema.name(i)} holds a number too large for floating point: divide it by a constant"
            ) from None
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"{schema.name(i)} holds values that are not numbers ({error}) and is not categorical: "
                "name it in categorical_features"
            ) from None
    return array if schema.discrete else array.astype(np.float64)


def _floats(cells: NDArray[Any]) -> NDArray[np.float64]:
    try:
        return cells.astype(np.float64)
    except TypeError:  # NumPy converts None, but not the NA of pandas
        return np.array([np.nan if is_missing(cell) else cell for cell in cells], object).astype(np.float64)


def _codes_of_series(
    column: int, series: nw.Series[Any], schema: Schema, handle_unknown: HandleUnknown
) -> NDArray[np.int32]:
    if series.null_count() or (series.dtype.is_float() and series.is_nan().any()):
        present = ~series.is_null().to_numpy().astype(bool)
        if series.dtype.is_float():
            present &= ~np.isnan(series.to_numpy().astype(np.float64))
        codes = np.full(len(series), MISSING, np.int32)
        if present.any():
            codes[present] = _codes_of_series(column, series.filter(present.tolist()), schema, handle_unknown)
        return codes
    distinct = series.unique()
    codes = _codes_of_levels(column, distinct.to_list(), schema, handle_unknown)
    if series.dtype in (nw.Categorical, nw.Enum):  # not every backend maps categoricals themselves
        series, distinct = series.cast(nw.String), distinct.cast(nw.String)
    return series.replace_strict(distinct.to_list(), codes.tolist(), return_dtype=nw.Int32).to_numpy()


def _codes_of_levels(
    column: int, distinct: list[Hashable], schema: Schema, handle_unknown: HandleUnknown
) -> NDArray[np.int32]:
    levels = schema.levels_of(column)
    code = {level: i for i, level in enumerate(levels)}
    codes = np.array([code.get(level, _UNKNOWN) for level in distinct], np.int32)
    if handle_unknown == "error" and (codes == _UNKNOWN).any():
        unknown = distinct[int(np.argmin(codes))]
        known = ", ".join(repr(level) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
        raise ValueError(
            f"{schema.name(column)} has the level {unknown!r}, unknown from training "
            f"(known: {'none' if levels == NO_LEVELS else known}): "
            "declare it in the training data's categorical dtype or drop these samples"
        )
    return codes


def to_training_type(table: Table) -> Any:
    """Return samples in the type of the training data (the inverse of `read`)."""
    schema = table.schema
    columns: list[Any] = [None] * schema.n_columns
    for position, i in enumerate(schema.continuous):
        columns[i] = table.values[:, position]
    for position, i in enumerate(schema.discrete):
        columns[i] = np.array([*schema.levels_of(i), None], dtype=object)[
            table.codes[:, position]
        ]  # MISSING is the last
    if schema.names is None:
        numeric = all(isinstance(level, int | float) for levels in schema.levels if levels for level in levels)
        return np.column_stack(columns).astype(float if numeric else object)
    named = dict(zip(schema.names, columns, strict=True))
    if schema.frame == "pandas":
        import pandas as pd

        return pd.DataFrame(
            {
                name: column
                if levels is None
                else pd.Categorical(column, categories=[level for level in levels if level is not None])
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


def _distinct(column: NDArray[Any], name: str) -> tuple[NDArray[np.bool_], list[Hashable], NDArray[np.intp]]:
    """Return which samples have a level, the distinct levels, and the index of each sample's level among them."""
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    if column.dtype.kind == "O":
        missing[:] = [not isinstance(cell, str) and is_missing(cell) for cell in column]
    present = column[~missing]
    _refuse_mixture(present.tolist(), name)
    distinct, inverse = np.unique(present, return_inverse=True)
    return ~missing, distinct.tolist(), inverse


def _levels_of_series(series: nw.Series[Any], name: str) -> Levels:
    """Levels that the dtype of a column declares, or else its values, sorted."""
    if isinstance(series.dtype, nw.Enum) and series.implementation.is_polars():
        return tuple(series.dtype.categories)
    if series.dtype in (nw.Categorical, nw.Enum) and not series.implementation.is_polars():
        levels = [level for level in series.cat.get_categories().to_list() if not is_missing(level)]
        _refuse_mixture(levels, name)
        return tuple(levels)
    # A polars Categorical shares its pool of levels with other columns: only values that occur are its own.
    levels = [level for level in series.unique().to_list() if not is_missing(level)]
    _refuse_mixture(levels, name)
    return tuple(sorted(levels))


def _refuse_mixture(levels: list[Any], name: str) -> None:
    if len({isinstance(level, str) for level in levels}) > 1:
        raise ValueError(f"{name} mixes levels of different types: convert all to text or all to numbers")
