"""A file's rows as features with their classes, ids and groups, at once or in parts.

What hardly is a feature as it stands (dates, names of rows, numbers written 1,037 or 5%) is left out and told of,
with the option that decides. What a column is goes by all of its cells, however many rows are read at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.tables.columns import NULL, Labels, Seen, labels, number_levels, numbers
from cgnlearn.tables.formats import ColumnError, Rows, Source, listed
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError, number

if TYPE_CHECKING:
    import pandas as pd

BATCH_ROWS = 1 << 16
FEW_CLASSES, MOST_CLASSES = 10, 20  # a target with more different fractions, or numbers, measures something
ADVICE = {
    "dates or times": "turn them into numbers, such as days since a first one",
    "numbers with signs between the digits": "write them as plain numbers",
    "percentages": "write them without the sign",
    "names of rows": "carry one as --id",
}
Tell = Callable[[str], Any]  # gets what the person should know, a line each time


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of a file, as far as they are used."""

    path: Path
    X: pd.DataFrame  # (rows, features): floats, and categoricals of text; missing values are NaN
    lines: NDArray[np.intp]  # where in the file each row stands
    is_text: bool = False  # lines are lines, not numbers of rows
    y: NDArray[np.str_] | None = None
    groups: NDArray[np.str_] | None = None
    ids: NDArray[np.str_] | None = None
    sha256: str = ""
    n_dropped: int = 0  # rows of the file that are left out
    missing: dict[str, dict[str, int]] = field(default_factory=dict)  # cells by column and spelling
    remarks: tuple[str, ...] = ()  # what the person should know, a line each

    def place(self, row: int) -> str:
        """How messages speak of a row."""
        return f"{'line' if self.is_text else 'row'} {self.lines[row]}"


class Part(NamedTuple):
    """Some rows, their columns understood."""

    rows: Rows
    kept: NDArray[np.bool_]  # with a class, and complete if only such rows are wanted
    features: dict[str, NDArray[Any] | Labels]
    target: Labels
    groups: Labels | None


@dataclass(frozen=True, eq=False)
class Plan:
    """How the rows of a source are read to learn from them."""

    source: Source
    roles: Roles
    target: Callable[[Rows, str, Collection[str]], Labels]  # how the classes are read
    features: Mapping[str, Callable[[Rows, str, Collection[str]], Any]]  # and each feature
    drop_missing: bool
    missing: dict[str, dict[str, int]]
    remarks: tuple[str, ...]

    @property
    def discrete(self) -> list[str]:
        """The features with levels."""
        return [name for name, how in self.features.items() if how is not numbers]

    def parts(self, n_samples: int | None, *, levels_only: bool = False) -> Iterator[Part]:
        """All rows, so many at once; ``levels_only``: without the columns of numbers, unless a gap in them counts."""
        names = self.discrete if levels_only and not self.drop_missing else list(self.features)
        special = [name for name in (self.roles.target, self.roles.groups) if name is not None]
        for rows in self.source.batches([*names, *special], n_samples):
            yield self.part(rows, names)

    def part(self, rows: Rows, names: Sequence[str]) -> Part:
        """Some rows, some of their columns understood."""
        assert self.roles.target is not None
        na = self.roles.na
        found = {name: self.features[name](rows, name, na) for name in names}
        target = self.target(rows, self.roles.target, na)
        kept = target.present
        if self.drop_missing:
            for own in found.values():
                kept = kept & (own.present if isinstance(own, Labels) else ~np.isnan(own.values))
        groups = None
        if self.roles.groups is not None:
            groups = labels(rows, self.roles.groups, na)
            if (kept & ~groups.present).any():
                seen = Seen(self.roles.groups, path=rows.path)
                without = kept & ~groups.present
                first = seen.sight(rows, without)
                raise seen.fault("has no value", first, int(without.sum()), "say to which group it belongs")
        plain = {name: own if isinstance(own, Labels) else own.values for name, own in found.items()}
        return Part(rows, kept, plain, target, groups)

    def told_of_rows(self, classes: Mapping[Any, int], n_read: int, n_labelled: int) -> list[str]:
        """What is to be said of rows that are left out; refuses a target that cannot be meant."""
        path, target, n_kept = self.source.path, self.roles.target, sum(classes.values())
        remarks = []
        if not n_labelled:
            raise DataFileError(f"{path}: column {target!r} names no class in any row: name another target")
        if n_labelled < n_read:
            remarks.append(f"left out {n_read - n_labelled} of {n_read} rows without a class in column {target!r}")
        if not n_kept:
            raise DataFileError(f"{path}: every row has an empty cell: keep such rows, without --drop-missing")
        if n_kept < n_labelled:
            remarks.append(f"left out {n_labelled - n_kept} of {n_read} rows with missing values")
        return remarks


def planned(source: Source, roles: Roles, *, drop_missing: bool = False, n_samples: int | None = None) -> Plan:
    """How to read a file to learn from it; every column is a feature unless it has another part or is unfit."""
    roles.check(source)
    remarks = [f"{source.path} is read as text {', '.join(source.found)}"] if source.found else []
    aside = {*roles.special.values(), *roles.ignore}
    seen = {name: Seen(name) for name in source.names if name not in aside}
    for rows in source.batches(seen, n_samples):
        for name, own in seen.items():
            own.add(rows, roles.na, as_labels=name in roles.categorical)
    found = {name: (False, None) if name in roles.categorical else own.judged() for name, own in seen.items()}
    remarks += _left_out({name: what for name, (_, what) in found.items() if what}, seen)
    features = {name: numbers if numeric else labels for name, (numeric, what) in found.items() if not what}
    if not features:
        raise DataFileError(f"{source.path} has no columns besides the classes that could be features: give it some")
    missing = {name: dict(seen[name].spellings) for name in features if seen[name].spellings}
    if not drop_missing:
        remarks += missing_told(missing)
    remarks += _few_numbers([name for name in features if features[name] is numbers], seen)
    return Plan(source, roles, labels, features, drop_missing, missing, tuple(remarks))


def training_data(source: Source, roles: Roles, *, drop_missing: bool = False) -> Data:
    """All rows of a file to learn from."""
    plan = planned(source, roles, drop_missing=drop_missing)
    [part] = plan.parts(None)
    kept = part.kept
    y = part.target.cells(kept).astype(str)
    remarks = plan.told_of_rows(Counter(y.tolist()), len(kept), int(part.target.present.sum()))
    check_target(source.path, roles, Counter(y.tolist()))
    return Data(
        source.path,
        frame_of_columns(part.features, kept),
        part.rows.places[kept],
        source.is_text,
        y,
        None if part.groups is None else part.groups.cells(kept).astype(str),
        None if roles.id is None else labels(part.rows, roles.id, roles.na).cells(kept).astype(str),
        source.sha256,
        int((~kept).sum()),
        plan.missing,
        (*plan.remarks, *remarks),
    )


def prediction_parts(
    source: Source,
    roles: Roles,
    columns: Sequence[str] | None,
    discrete: Collection[str] = (),
    *,
    needs_id: bool = False,
    n_samples: int | None = None,
    tell: Tell = lambda remark: None,
) -> Iterator[Data]:
    """A file's rows in the columns of a model, in their order; None: all but those with another part, as numbers.

    ``needs_id``: the column of ids must be there; else it is carried along only where it is.
    """
    if needs_id:
        source.refuse_unknown((roles.id, "--id"))
    for name in columns or ():
        if name not in source.names:
            message = f"{source.path} has no column {name!r} (a column of the model): {source.instead_of(name)}"
            raise DataFileError(message)
    if source.found:
        tell(f"{source.path} is read as text {', '.join(source.found)}")
    if roles.id is not None and roles.id not in source.names:
        tell(f"{source.path} has no column {roles.id!r}, which named the rows in training: they are numbered only")
        roles = replace(roles, id=None)
    aside = {*roles.special.values(), *roles.ignore}
    names = [name for name in source.names if name not in aside] if columns is None else list(columns)
    seen = {name: Seen(name) for name in names}
    carried = [] if roles.id is None else [roles.id]
    for rows in source.batches([*names, *carried], n_samples):
        for name, own in seen.items():
            own.add(rows, roles.na, as_labels=name in discrete)
            own.refuse_words("the model was trained on numbers there")
        found = {
            name: labels(rows, name, roles.na) if name in discrete else numbers(rows, name, roles.na).values
            for name in names
        }
        every = np.ones(len(rows.places), bool)
        ids = None if roles.id is None else labels(rows, roles.id, roles.na).cells(every).astype(str)
        yield Data(rows.path, frame_of_columns(found, every), rows.places, rows.is_text, ids=ids)
    for remark in missing_told({name: dict(own.spellings) for name, own in seen.items() if own.spellings}):
        tell(remark)


def model_frames(source: Source, levels: Mapping[str, Sequence[Any] | None], n_samples: int) -> Iterator[pd.DataFrame]:
    """A file's rows as frames, each column read as the levels of a model, or None for numbers, ask for."""
    source.refuse_unknown(*((name, "a column of the model") for name in levels))
    for rows in source.batches(levels, n_samples):
        found: dict[str, Any] = {}
        for name, own in levels.items():
            if own is None:
                seen = Seen(name)
                seen.add(rows, ())
                seen.refuse_words("the model was trained on numbers there")
                found[name] = numbers(rows, name).values
            else:
                is_text = all(isinstance(level, str) for level in own)
                found[name] = labels(rows, name) if is_text else number_levels(rows, name)
        yield frame_of_columns(found, np.ones(len(rows.places), bool))


def frame_of_columns(found: Mapping[str, NDArray[Any] | Labels], kept: NDArray[np.bool_]) -> pd.DataFrame:
    """Columns of numbers, and categorical ones with the levels that these rows have, in order."""
    import pandas as pd

    def column(own: NDArray[Any] | Labels) -> Any:
        if not isinstance(own, Labels):
            return own[kept]
        present = own.codes[kept & own.present]
        return pd.Categorical(own.cells(kept, None), sorted({own.levels[code] for code in np.unique(present)}))

    return pd.DataFrame({name: column(own) for name, own in found.items()})


def check_target(path: Any, roles: Roles, classes: Mapping[str, int]) -> None:
    """Ask back if the classes, with how many rows each has, can hardly be meant."""
    n, n_samples = len(classes), sum(classes.values())
    is_number = not any(math.isnan(number(label)) for label in classes)
    if roles.target in roles.categorical:
        return
    if is_number and (n > MOST_CLASSES or (n > FEW_CLASSES and any("." in label for label in classes))):
        raise ColumnError(
            f"{path}: column {roles.target!r} has {n} different numbers and seems to measure something, so it cannot be"
            f" the class: name another with --target, or, if they are classes, add --categorical {roles.target}"
        )
    if n > max(2, n_samples // 2):
        raise ColumnError(
            f"{path}: column {roles.target!r} has {n} different values in {n_samples} rows and cannot be the class:"
            " name another with --target"
        )


# ---- what the person should know


def _left_out(unfit: Mapping[str, str], seen: Mapping[str, Seen]) -> list[str]:
    """A line for each kind of column that is no feature as it stands."""
    lines = []
    for what in dict.fromkeys(unfit.values()):
        names = [name for name, own in unfit.items() if own == what]
        head = f"left out {'column' if len(names) == 1 else f'{len(names)} columns'} {listed(names)}"
        if what == "no value":
            lines.append(f"{head}: no row has a value there")
            continue
        example = f" such as {seen[names[0]].example!r}"
        options = f"--categorical {names[0]} if they are levels, --ignore {names[0]} to leave it unsaid"
        holds = "holds" if len(names) == 1 else "hold"
        lines.append(f"{head}, which {holds} {what}{example}: {ADVICE[what]}; {options}")
    return lines


def missing_told(missing: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One line that says what was taken as missing where."""
    if not missing:
        return []
    order = sorted(missing, key=lambda name: -sum(missing[name].values()))

    def told(name: str) -> str:
        words = (
            f"{n} {'empty' if not word else word if word == NULL else repr(word)}" for word, n in missing[name].items()
        )
        return f"{name} {', '.join(words)}"

    more = f"; and {len(order) - 8} more" if len(order) > 8 else ""
    n_cells = sum(sum(own.values()) for own in missing.values())
    cells = f"{n_cells} cells are" if n_cells > 1 else "1 cell is"
    return [f"{cells} taken as missing: {'; '.join(told(name) for name in order[:8])}{more}"]


def _few_numbers(names: Sequence[str], seen: Mapping[str, Seen]) -> list[str]:
    """One line about columns of few whole numbers."""
    names = [name for name in names if seen[name].has_few_whole_numbers]
    if not names:
        return []
    option = ",".join(names[:8]) + (",…" if len(names) > 8 else "")
    have = "has few whole numbers and is" if len(names) == 1 else "have few whole numbers and are"
    return [f"{listed(names)} {have} taken as measured: if they are mere labels, add --categorical {option}"]
