"""A user's X as level codes, floats, class codes and weights, and the encoder that remembers the levels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

Levels = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows in the form the model reads.

    Parameters
    ----------
    values : ndarray (rows, continuous columns)
    codes : ndarray of int (rows, discrete columns)
    labels : ndarray of int (rows,) or None
        The class of each row, as its position among the classes.
    weights : ndarray (rows,) or None
        None stands for one each.
    """

    values: NDArray[Any]
    codes: NDArray[np.int32]
    labels: NDArray[np.intp] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.codes)

    def rows(self, index: NDArray[np.intp]) -> Table:
        """The rows with these indexes."""
        return replace(
            self,
            values=self.values[index],
            codes=self.codes[index],
            labels=None if self.labels is None else self.labels[index],
            weights=None if self.weights is None else self.weights[index],
        )


@dataclass(frozen=True)
class Encoder:
    """What has to be remembered of the training columns to read other rows in the same way.

    Parameters
    ----------
    names : tuple of str or None
        Column names, where the training data had any.
    levels : tuple
        For each column its levels, in order, or None if it is continuous.
    frame : str or None
        Which data frame library the training data came from.
    """

    names: tuple[str, ...] | None
    levels: tuple[Levels | None, ...]
    frame: str | None = None

    @classmethod
    def learn(cls, X: Any, categorical_features: Any) -> Encoder:
        """Read names and levels off the training data."""
        frame = as_frame(X)
        if frame is not None:
            columns = frame.columns
            names = tuple(columns) if all(isinstance(name, str) for name in columns) else None
            chosen = _chosen_columns(categorical_features, columns, len(columns))
            if chosen is None:
                kinds = frame.schema.values()
                chosen = [i for i, kind in enumerate(kinds) if kind in (nw.Categorical, nw.Enum)]
            levels: list[Levels | None] = [None] * len(columns)
            for i in chosen:
                levels[i] = _levels_of_series(frame[columns[i]])
            return cls(names, tuple(levels), frame.implementation.value)
        array = as_array(X)
        chosen = _chosen_columns(categorical_features, None, array.shape[1]) or []
        levels = [None] * array.shape[1]
        for i in chosen:
            levels[i] = tuple(_distinct(array[:, i], f"column {i}")[0].tolist())
        return cls(None, tuple(levels))

    @property
    def continuous(self) -> list[int]:
        """Indexes of the continuous columns."""
        return [i for i, levels in enumerate(self.levels) if levels is None]

    @property
    def discrete(self) -> list[int]:
        """Indexes of the discrete columns."""
        return [i for i, levels in enumerate(self.levels) if levels is not None]

    def name(self, column: int) -> str:
        """How messages speak of a column."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    def encode(self, X: Any) -> Table:
        """Codes and floats of the rows of X; refuses what the model cannot read."""
        frame = as_frame(X)
        if frame is None:
            return self._encode_array(as_array(X))
        columns, kinds = frame.columns, list(frame.schema.values())
        for i in self.continuous:
            if not (kinds[i].is_numeric() or kinds[i] == nw.Boolean):
                raise ValueError(
                    f"{self.name(i)} holds {kinds[i]} and is not categorical: "
                    "cast it to a categorical dtype or name it in categorical_features"
                )
        if self.continuous:
            numbers = frame if not self.discrete else frame.select([columns[i] for i in self.continuous])
            values = numbers.to_numpy()
            if values.dtype not in (np.float32, np.float64):
                values = np.asarray(numbers.with_columns(nw.all().cast(nw.Float64)).to_numpy(), np.float64)
        else:
            values = np.empty((len(frame), 0))
        self._refuse_missing(values)
        codes = np.empty((len(frame), len(self.discrete)), np.int32)
        for position, i in enumerate(self.discrete):
            codes[:, position] = self._codes_of_series(i, frame[columns[i]])
        return Table(values, codes)

    def _encode_array(self, array: NDArray[Any]) -> Table:
        if array.dtype.kind not in "fiub":
            array = self._numbers_of_objects(array)
        if not self.discrete:
            values = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
            codes = np.empty((len(array), 0), np.int32)
        else:
            values = array[:, self.continuous].astype(np.float64)
            codes = np.empty((len(array), len(self.discrete)), np.int32)
            for position, i in enumerate(self.discrete):
                distinct, inverse = _distinct(array[:, i], self.name(i))
                codes[:, position] = self._codes_of_levels(i, distinct.tolist())[inverse]
        self._refuse_missing(values)
        return Table(values, codes)

    def _numbers_of_objects(self, array: NDArray[Any]) -> NDArray[Any]:
        """The same array, its continuous columns turned into floats."""
        array = array.astype(object)
        for i in self.continuous:
            try:
                array[:, i] = array[:, i].astype(np.float64)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"{self.name(i)} holds values that are not numbers ({error}) and is not categorical: "
                    "name it in categorical_features"
                ) from None
        return array if self.discrete else array.astype(np.float64)

    def _codes_of_series(self, column: int, series: nw.Series[Any]) -> NDArray[np.int32]:
        if series.null_count() or (series.dtype.is_float() and series.is_nan().any()):
            raise ValueError(f"{self.name(column)} has missing values: impute them or drop their rows")
        distinct = series.unique()
        codes = self._codes_of_levels(column, distinct.to_list())
        if series.dtype in (nw.Categorical, nw.Enum):  # not every backend maps categoricals themselves
            series, distinct = series.cast(nw.String), distinct.cast(nw.String)
        return series.replace_strict(distinct.to_list(), codes.tolist(), return_dtype=nw.Int32).to_numpy()

    def _codes_of_levels(self, column: int, distinct: list[Hashable]) -> NDArray[np.int32]:
        levels = self.levels[column]
        assert levels is not None
        code = {level: i for i, level in enumerate(levels)}
        unknown = [level for level in distinct if level not in code]
        if unknown:
            known = ", ".join(repr(level) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
            raise ValueError(
                f"{self.name(column)} has the level {unknown[0]!r}, unknown from training (known: {known}): "
                "declare it in the training data's categorical dtype or drop its rows"
            )
        return np.array([code[level] for level in distinct], np.int32)

    def _refuse_missing(self, values: NDArray[Any]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):  # far cheaper than looking at each, and almost always enough
                return
        finite = np.isfinite(values)
        if finite.all():
            return
        row, position = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(values[row, position]) else "infinity"
        raise ValueError(
            f"{self.name(self.continuous[position])} holds {what} in row {row}: impute such values or drop their rows"
        )

    def decode(self, values: NDArray[np.float64], codes: NDArray[np.int32]) -> Any:
        """Rows in the form the training data had (the inverse of `encode`)."""
        columns: list[Any] = [None] * len(self.levels)
        for position, i in enumerate(self.continuous):
            columns[i] = values[:, position]
        for position, i in enumerate(self.discrete):
            levels = np.array(self.levels[i], dtype=object)
            columns[i] = levels[codes[:, position]]
        if self.names is None:
            numeric = all(isinstance(level, int | float) for levels in self.levels if levels for level in levels)
            return np.column_stack(columns).astype(float if numeric else object)
        named = dict(zip(self.names, columns, strict=True))
        if self.frame == "pandas":
            import pandas as pd

            return pd.DataFrame(
                {
                    name: column if levels is None else pd.Categorical(column, categories=list(levels))
                    for (name, column), levels in zip(named.items(), self.levels, strict=True)
                }
            )
        frame = nw.from_dict({name: list(column) for name, column in named.items()}, backend=self.frame)  # type: ignore[arg-type]
        textual = {
            self.names[i]: levels
            for i, levels in enumerate(self.levels)
            if levels is not None and all(isinstance(level, str) for level in levels)
        }
        kind = nw.Enum if self.frame == "polars" else lambda _: nw.Categorical()
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
    return frame if isinstance(frame, nw.DataFrame) else None


def as_array(X: Any) -> NDArray[Any]:
    """X as a two-dimensional NumPy array of numbers or objects; finiteness is the encoder's to check."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        return X
    if isinstance(X, list | tuple) and any(isinstance(cell, str) for row in X for cell in np.atleast_1d(row)):
        X = np.array(X, dtype=object)
    array: NDArray[Any] = check_array(
        X, dtype=None, ensure_all_finite=False, ensure_min_samples=1, estimator="CGNClassifier"
    )
    if array.dtype.kind in "UST":
        array = array.astype(object)
    return array


def _distinct(column: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    if any(value is None or value != value for value in column if not isinstance(value, str)):
        raise ValueError(f"{name} has missing values: impute them or drop their rows")
    try:
        distinct, inverse = np.unique(column, return_inverse=True)
    except TypeError:
        raise ValueError(f"{name} mixes levels of different types: make them all text or all numbers") from None
    return distinct, inverse


def _levels_of_series(series: nw.Series[Any]) -> Levels:
    """The levels a column declares in its dtype, or else the ones it holds, sorted."""
    if isinstance(series.dtype, nw.Enum) and series.implementation.is_polars():
        return tuple(series.dtype.categories)
    if series.dtype in (nw.Categorical, nw.Enum) and not series.implementation.is_polars():
        return tuple(series.cat.get_categories().to_list())
    # A polars Categorical draws on a pool that other columns share, so only the levels held can be its own.
    return tuple(sorted(series.drop_nulls().unique().to_list()))


def _chosen_columns(categorical_features: Any, names: Sequence[str] | None, n_columns: int) -> list[int] | None:
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
