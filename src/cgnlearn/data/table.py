"""X and y as floats, level codes, class codes and sample weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from cgnlearn.data.arrays import effective
from cgnlearn.data.columns import (
    CATEGORICAL,
    Column,
    check_text,
    codes_and_levels,
    content,
    levels_of,
    numbers_of_array,
    numbers_of_frame,
    refuse_others,
)
from cgnlearn.data.frames import as_array, as_frame, chosen_columns
from cgnlearn.data.labels import check_classes, class_codes, labels_of, target
from cgnlearn.data.levels import MISSING, NO_LEVELS, Levels, identity
from cgnlearn.data.schema import Schema
from cgnlearn.data.warning import DataWarning

_UNKNOWN = -2  # the code of a level unknown from training, until the warning has counted it

HandleUnknown = Literal["missing", "error"]


@dataclass(frozen=True, eq=False)
class Table:
    """Samples in the form that models read."""

    schema: Schema
    values: NDArray[Any]  # (samples, continuous columns); NaN: missing
    codes: NDArray[np.int32]  # of levels (samples, discrete columns); -1: missing
    labels: NDArray[np.intp] | None = None  # class codes
    weights: NDArray[np.float64] | None = None  # None: 1 each

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without cached properties

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

    @property
    def effective_weights(self) -> NDArray[np.float64]:
        """Weights that sum to the effective number of samples."""
        return np.ones(self.n_samples) if self.weights is None else effective(self.weights)

    def without_excess_weight(self) -> Table:
        """The samples with weights that sum to at most their effective number: heavy ones count as one each."""
        if self.weights is None:
            return self
        return replace(self, weights=np.minimum(self.weights, self.effective_weights))

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


def concatenated(tables: Sequence[Table]) -> Table:
    """The samples of tables with the same columns, without weights."""
    parts = [table.values for table in tables], [table.codes for table in tables]
    return Table(tables[0].schema, np.concatenate(parts[0]), np.concatenate(parts[1]))


def read_training(
    X: Any, y: Any, sample_weight: Any = None, categorical_features: Any = "from_dtype", classes: Any = None
) -> tuple[Table, NDArray[Any]]:
    """Return training samples, of which names, levels and classes are learned, and the classes in the type of y.

    ``classes`` lists all classes if more samples will follow.
    """
    y = target(y)
    distinct, labels = np.unique(y, return_inverse=True)
    check_classes(distinct, len(y))
    if classes is None:
        classes = distinct
    else:
        classes = np.unique(target(classes, "classes"))
        labels = class_codes(distinct, classes)[labels]
    if len(classes) < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}: a classifier needs samples of at least two classes"
        )
    schema = schema_of(X, classes, categorical_features)
    return table_of(schema, *_cells(X, schema), labels, sample_weight), classes


def schema_of(X: Any, classes: NDArray[Any], categorical_features: Any) -> Schema:
    """Return the schema of training data."""
    frame = as_frame(X)
    source: Any = as_array(X) if frame is None else frame
    n_columns, names, library = source.shape[1], None, None
    if frame is None:
        is_numeric = [source.dtype.kind in "fiu"] * n_columns
    else:
        is_numeric = [kind.is_numeric() for kind in frame.schema.values()]
        library = frame.implementation.value
        if all(isinstance(name, str) for name in frame.columns):
            names = tuple(frame.columns)
    contents = ["numbers" if numeric else content(source[:, i]) for i, numeric in enumerate(is_numeric)]
    schema = Schema(names, (None,) * n_columns, tuple(classes.tolist()), library)
    chosen = chosen_columns(categorical_features, None if frame is None else frame.columns, n_columns)
    if chosen is None:
        chosen = [i for i, what in enumerate(contents) if what in CATEGORICAL]
        check_text({schema.name(i): source[:, i] for i in chosen if contents[i] == "text"})
    levels: dict[int, Levels | None] = {i: levels_of(source[:, i], schema.name(i)) for i in chosen}
    continuous = {i: what for i, what in enumerate(contents) if i not in levels}
    refuse_others(continuous, schema, 'that categorical_features does not name: add it there, use "from_dtype", or')
    return replace(schema, levels=tuple(levels.get(i) for i in range(n_columns)))


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
    source: Any = as_array(X) if frame is None else frame
    codes = np.empty((len(source), len(schema.discrete)), np.int32)
    for position, i in enumerate(schema.discrete):
        codes[:, position] = _codes(source[:, i], i, schema, handle_unknown)
    values = numbers_of_array(source, schema) if frame is None else numbers_of_frame(frame, schema)
    if codes.min(initial=0) == _UNKNOWN:
        _warn_of_unknown(codes, schema)
        np.maximum(codes, MISSING, out=codes)
    return values, codes


def _codes(column: Column, number: int, schema: Schema, handle_unknown: HandleUnknown) -> NDArray[np.int32]:
    """Return the codes of a column among the levels of the training data."""
    among, found = codes_and_levels(column, schema.name(number))
    levels = schema.levels_of(number)
    code = {identity(level): i for i, level in enumerate(levels)}
    codes = np.array([*(code.get(identity(level), _UNKNOWN) for level in found), MISSING], np.int32)[among]
    if handle_unknown == "error" and (codes == _UNKNOWN).any():
        unknown = found[among[np.argmin(codes)]]
        known = ", ".join(repr(level) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
        raise ValueError(
            f"{schema.name(number)} has the level {unknown!r}, unknown from training "
            f"(known: {'none' if levels == NO_LEVELS else known}): "
            "declare it in the training data's categorical dtype or drop these samples"
        )
    return codes


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

        for name, levels in zip(named, schema.levels, strict=True):
            if levels and all(isinstance(level, bool) for level in levels):
                named[name] = pd.array(named[name], dtype="boolean")
            elif levels is not None:
                named[name] = pd.Categorical(named[name], categories=[level for level in levels if level is not None])
        return pd.DataFrame(named)
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
