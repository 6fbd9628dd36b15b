"""Files of any size as a stream of batches in the model's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from cgnlearn.data.frames import chosen_columns
from cgnlearn.data.levels import MISSING, MOST_LEVELS, NO_LEVELS, Levels
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table, table_of
from cgnlearn.tables.columns import ColumnScan, Labels, labels, number_levels, numbers
from cgnlearn.tables.formats import TYPES, Source, source_of
from cgnlearn.tables.read import BATCH_ROWS, Part, Plan, check_target, planned
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.words import UNCLEAR


class Survey(NamedTuple):
    """Levels, classes and counts over all rows of a stream."""

    schema: Schema
    counts: dict[Any, int]  # samples of each class
    n_read: int
    n_labelled: int  # rows with a class
    remarks: tuple[str, ...]  # messages for the user

    @property
    def n_samples(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, eq=False)
class Stream:
    """A plan, carried out batch by batch."""

    plan: Plan
    batch_rows: int = BATCH_ROWS

    @cached_property
    def survey(self) -> Survey:
        """Levels and classes over all rows: a first pass over the file."""
        plan, levels_of = self.plan, {name: set[Any]() for name in self.plan.discrete}
        counts: Counter[Any] = Counter()
        n_read = n_labelled = 0
        for part in plan.parts(self.batch_rows, levels_only=True):
            n_read += len(part.kept)
            n_labelled += int(part.target.present.sum())
            counts.update(_counts(part.target, part.kept))
            for name, levels in levels_of.items():
                column = part.features[name]
                assert isinstance(column, Labels)
                levels.update(_counts(column, part.kept))
                if len(levels) > MOST_LEVELS:
                    raise ValueError(f"column {name!r} has more than {MOST_LEVELS:,} levels: exclude it")
        remarks = (*plan.remarks, *plan.dropped_rows(counts, n_read, n_labelled))
        classes = tuple(sorted(counts))
        if not isinstance(classes[0], str):
            check_classification_targets(np.array(classes))
        sorted_levels = {name: tuple(sorted(levels)) or NO_LEVELS for name, levels in levels_of.items()}
        schema = Schema(tuple(plan.features), tuple(map(sorted_levels.get, plan.features)), classes, "pandas")
        return Survey(schema, {label: counts[label] for label in classes}, n_read, n_labelled, remarks)

    def parts(self) -> Iterator[Part]:
        """All rows, batch by batch, for `table`."""
        return self.plan.parts(self.batch_rows)

    def table(self, part: Part) -> Table:
        """The samples of a batch, with their classes, in the model's form."""
        schema, names, kept = self.survey.schema, list(part.features), part.kept
        values = _side_by_side([part.features[names[i]] for i in schema.continuous], len(kept))
        codes = np.empty((len(kept), len(schema.discrete)), np.int32)
        for position, i in enumerate(schema.discrete):
            codes[:, position] = _codes(part.features[names[i]], schema.levels_of(i))
        classes = _codes(part.target, schema.classes).astype(np.intp)
        if not kept.all():
            values, codes, classes = values[kept], codes[kept], classes[kept]
        try:
            return table_of(schema, values, codes, classes)
        except ValueError as error:
            first, last = part.rows.place(0), part.rows.place(-1)
            raise ValueError(f"{part.rows.path}, between {first} and {last}: {error}") from None


def group_numbers(part: Part) -> NDArray[np.uint64] | None:
    """For each sample a number of its group, the same in every batch and every file."""
    if part.groups is None:
        return None
    digests = [blake2b(group.encode(), digest_size=8).digest() for group in part.groups.levels]
    return np.array([int.from_bytes(digest) for digest in digests], np.uint64)[part.groups.codes[part.kept]]


def training_stream(source: Source, roles: Roles, *, drop_missing: bool = False) -> Stream:
    """A training file that does not fit into memory, read as `training_data` reads others."""
    stream = Stream(planned(source, roles, drop_missing=drop_missing, n_rows=BATCH_ROWS))
    check_target(source.path, roles, stream.survey.counts)
    return stream


def stream_of(
    source: Any,
    target: str,
    columns: Sequence[str] | None,
    categorical: Collection[str],
    model_categorical: Any,
    *,
    groups: str | None = None,
    drop_missing: bool,
    batch_rows: int,
) -> Stream:
    """A stream for the Python interface.

    Columns of text have levels, and so have those named in ``categorical``, whose numbers are read as text. Columns
    named in ``model_categorical`` (`CGNClassifier`'s ``categorical_features``) and the target keep numeric levels.
    """
    file = source_of(source)
    special = [name for name in (target, groups) if name is not None]
    chosen = [name for name in file.names if name not in (*special, *file.index)] if columns is None else list(columns)
    file.refuse_unknown(*((name, "asked for") for name in (*chosen, *categorical, *special)))
    if not chosen:
        raise ValueError(f"{file.path} has no columns besides the classes: add features")
    numeric_levels = {chosen[i] for i in chosen_columns(model_categorical, chosen, len(chosen)) or []}
    undeclared = [name for name in (*chosen, target) if name not in categorical]
    types = (file.types or _types(file, undeclared, batch_rows)) | dict.fromkeys(categorical, "text")
    features: dict[str, Any] = {}
    for name in chosen:
        if types[name] not in TYPES:
            advice = "convert it to numbers, exclude it, or name it in categorical_features"
            raise ValueError(f"{file.path}: column {name!r} holds {types[name]}: {advice}")
        is_number = types[name] == "numbers" and name not in numeric_levels
        features[name] = numbers if is_number else labels if types[name] == "text" else number_levels
    roles = Roles(target, groups=groups, categorical=tuple(categorical))
    read_target = number_levels if types[target] in ("numbers", "levels") else labels
    return Stream(Plan(file, roles, read_target, features, drop_missing, {}, ()), batch_rows)


def _types(source: Source, names: Sequence[str], n_rows: int) -> dict[str, str]:
    """What the columns of a text file hold."""
    types = {}
    for name, scan in ColumnScan.all_of(source, names, n_rows).items():
        is_numeric, unfit = scan.verdict()
        numeric = is_numeric and unfit != UNCLEAR  # numbers of rows, too, if the caller wants them
        types[name] = "numbers" if numeric else unfit or "text"
    return types


def _counts(column: Labels, kept: NDArray[np.bool_]) -> Counter[Any]:
    """How often each level occurs in the rows that are kept."""
    counts = np.bincount(column.codes[kept & column.present], minlength=len(column.levels)).tolist()
    return Counter({level: n for level, n in zip(column.levels, counts, strict=True) if n})


def _codes(column: Any, levels: Levels) -> NDArray[np.int32]:
    """Codes of a batch's levels among those of all rows; arbitrary in rows that are not kept."""
    place = {level: i for i, level in enumerate(levels)}
    return np.array([*(place.get(level, MISSING) for level in column.levels), MISSING], np.int32)[column.codes]


def _side_by_side(columns: Sequence[Any], n_rows: int) -> NDArray[Any]:
    """Columns of numbers in column order, as in the files: transposing costs more than counting."""
    is_narrow = bool(columns) and all(column.dtype == np.float32 for column in columns)
    values = np.empty((n_rows, len(columns)), np.float32 if is_narrow else np.float64, order="F")
    for i, column in enumerate(columns):
        values[:, i] = column
    return values
