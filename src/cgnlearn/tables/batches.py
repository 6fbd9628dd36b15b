"""Files of any size as a stream of batches of rows in the model's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from cgnlearn.data.frames import chosen_columns
from cgnlearn.data.schema import NO_LEVELS, Levels, Schema
from cgnlearn.data.table import MISSING, Table, table_of
from cgnlearn.tables.columns import MOST_LEVELS, Labels, Seen, labels, number_levels, numbers
from cgnlearn.tables.formats import TYPES, Source, source_of
from cgnlearn.tables.read import BATCH_ROWS, Part, Plan, check_target, planned
from cgnlearn.tables.roles import Roles


class Agreed(NamedTuple):
    """What all rows have in common."""

    schema: Schema
    counts: dict[Any, int]  # rows of each class that are learned from
    n_read: int
    n_labelled: int  # rows with a class
    remarks: tuple[str, ...]  # what the person should know, a line each

    @property
    def n_samples(self) -> int:
        """The rows that are learned from."""
        return sum(self.counts.values())


@dataclass(frozen=True, eq=False)
class Stream:
    """A plan, carried out batch by batch."""

    plan: Plan
    batch_rows: int = BATCH_ROWS

    def agreed(self) -> Agreed:
        """Levels and classes, agreed over all rows."""
        plan, found = self.plan, {name: set[Any]() for name in self.plan.discrete}
        counts: Counter[Any] = Counter()
        n_read = n_labelled = 0
        for part in plan.parts(self.batch_rows, levels_only=True):
            n_read += len(part.kept)
            n_labelled += int(part.target.present.sum())
            counts.update(_counts(part.target, part.kept))
            for name, levels in found.items():
                own = part.features[name]
                assert isinstance(own, Labels)
                levels.update(_counts(own, part.kept))
                if len(levels) > MOST_LEVELS:
                    raise ValueError(f"column {name!r} has more than {MOST_LEVELS:,} levels: leave it out")
        remarks = plan.told_of_rows(counts, n_read, n_labelled)
        classes = tuple(sorted(counts))
        if not isinstance(classes[0], str):
            check_classification_targets(np.array(classes))
        if len(classes) < 2:
            raise ValueError(
                f"column {plan.roles.target!r} has one class only, {classes[0]!r}: two at least are needed"
            )
        levels_of = {name: tuple(sorted(levels)) or NO_LEVELS for name, levels in found.items()}
        schema = Schema(tuple(plan.features), tuple(map(levels_of.get, plan.features)), classes, "pandas")
        return Agreed(
            schema, {label: counts[label] for label in classes}, n_read, n_labelled, (*plan.remarks, *remarks)
        )

    def parts(self) -> Iterator[Part]:
        """All rows, batch by batch; what they are is worked out in `table`."""
        return self.plan.parts(self.batch_rows)

    def table(self, part: Part, schema: Schema) -> Table:
        """The rows of a batch that are learned from, with their classes, in the model's form."""
        names, kept = list(part.features), part.kept
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

    def group_numbers(self, part: Part) -> NDArray[np.uint64]:
        """For each row of a table a number of its group, the same in every batch and every file."""
        assert part.groups is not None
        digests = [blake2b(group.encode(), digest_size=8).digest() for group in part.groups.levels]
        return np.array([int.from_bytes(digest) for digest in digests], np.uint64)[part.groups.codes[part.kept]]


def training_stream(source: Source, roles: Roles, *, drop_missing: bool = False) -> tuple[Stream, Agreed]:
    """A file to learn from that does not fit into memory, read as `training_data` reads others."""
    stream = Stream(planned(source, roles, drop_missing=drop_missing, n_samples=BATCH_ROWS))
    agreed = stream.agreed()
    check_target(source.path, roles, agreed.counts)
    return stream, agreed


def stream_of(
    source: Any,
    target: str,
    columns: Sequence[str] | None = None,
    categorical: Collection[str] = (),
    model_categorical: Any = "from_dtype",
    *,
    groups: str | None = None,
    drop_missing: bool = False,
    batch_rows: int = BATCH_ROWS,
) -> Stream:
    """Files as a program names their columns.

    Columns of text have levels, and so have those named in ``categorical``, whose numbers are read as text. What
    ``model_categorical`` names, as `CGNClassifier` has it, keeps the levels that the file has; so do the classes.
    """
    found = source if isinstance(source, Source) else source_of(source)
    special = [name for name in (target, groups) if name is not None]
    chosen = [name for name in found.names if name not in special] if columns is None else list(columns)
    found.refuse_unknown(*((name, "asked for") for name in (*chosen, *categorical, *special)))
    if not chosen:
        raise ValueError(f"{found.path} has no columns besides the classes: give it features to learn from")
    named = {chosen[i] for i in chosen_columns(model_categorical, chosen, len(chosen)) or []}
    unsaid = [name for name in (*chosen, target) if name not in categorical]
    types = (found.types or _types(found, unsaid, batch_rows)) | dict.fromkeys(categorical, "text")
    features: dict[str, Any] = {}
    for name in chosen:
        if types[name] not in TYPES:
            advice = "turn it into numbers, leave it out, or name it in categorical_features"
            raise ValueError(f"{found.path}: column {name!r} holds {types[name]}: {advice}")
        is_number = types[name] == "numbers" and name not in named
        features[name] = numbers if is_number else labels if types[name] == "text" else number_levels
    roles = Roles(target, groups=groups, categorical=tuple(categorical))
    read_target = number_levels if types[target] in ("numbers", "levels") else labels
    return Stream(Plan(found, roles, read_target, features, drop_missing, {}, ()), batch_rows)


def _types(source: Source, names: Sequence[str], n_samples: int) -> dict[str, str]:
    """What the columns of a text file hold."""
    seen = {name: Seen(name) for name in names}
    for rows in source.batches(seen, n_samples):
        for own in seen.values():
            own.add(rows, ())
    found = {name: own.judged() for name, own in seen.items()}
    return {
        name: what if what and what != "no value" else "numbers" if is_numeric else "text"
        for name, (is_numeric, what) in found.items()
    }


def _counts(own: Labels, kept: NDArray[np.bool_]) -> Counter[Any]:
    """How often each level comes in the rows that are kept."""
    found = np.bincount(own.codes[kept & own.present], minlength=len(own.levels)).tolist()
    return Counter({level: n for level, n in zip(own.levels, found, strict=True) if n})


def _codes(own: Any, levels: Levels) -> NDArray[np.int32]:
    """The places of a batch's levels among those of all rows; of rows that are not kept any will do."""
    place = {level: i for i, level in enumerate(levels)}
    return np.array([*(place.get(level, MISSING) for level in own.levels), MISSING], np.int32)[own.codes]


def _side_by_side(columns: Sequence[Any], n_samples: int) -> NDArray[Any]:
    """Columns of numbers, stored column by column as the files have them: to turn them into rows costs more than to
    count them."""
    narrow = bool(columns) and all(column.dtype == np.float32 for column in columns)
    values = np.empty((n_samples, len(columns)), np.float32 if narrow else np.float64, order="F")
    for i, column in enumerate(columns):
        values[:, i] = column
    return values
