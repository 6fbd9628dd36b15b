"""A file's rows as features with their classes, ids and groups, in memory or in batches.

Columns that cannot be features as they are (dates, names of rows, numbers written 1,037 or 5%) are excluded with a
message that names the option to decide otherwise. All cells of a column determine what it is, however it is read.
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

from cgnlearn.tables.columns import ColumnScan, Labels, labels, numbers, only_numbers
from cgnlearn.tables.formats import ColumnError, Rows, Source
from cgnlearn.tables.numerals import number
from cgnlearn.tables.options import option
from cgnlearn.tables.remarks import (
    absent_columns,
    differences_by_case,
    excluded_columns,
    excluded_indexes,
    layout_remarks,
    missing_values,
    spellings_not_found,
    suspicions,
)
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError

if TYPE_CHECKING:
    import pandas as pd

BATCH_ROWS = 1 << 16
FEW_CLASSES, MOST_CLASSES = 10, 20  # a target with more different fractions, or numbers, is a measurement


@dataclass(frozen=True, eq=False)
class Data:
    """The samples of a file."""

    path: Path
    X: pd.DataFrame  # (samples, features): floats, and categoricals of text; missing values are NaN
    lines: NDArray[np.intp]  # the line or row of each sample in its file, as `Rows.places`
    is_text: bool = False
    y: NDArray[np.str_] | None = None
    groups: NDArray[np.str_] | None = None
    ids: NDArray[np.str_] | None = None
    sha256: str = ""
    excluded: dict[str, int] = field(default_factory=dict)  # rows of the file that are not used, by reason
    missing: dict[str, dict[str, int]] = field(default_factory=dict)  # cells by column and spelling
    remarks: tuple[str, ...] = ()  # messages for the user
    others: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # columns that are no features, as labels
    unknown: dict[str, int] = field(default_factory=dict)  # cells with a level that a model does not know, by column
    sites: NDArray[np.str_] | None = None

    def place(self, row: int) -> str:
        return f"{'line' if self.is_text else 'row'} {self.lines[row]}"


class Part(NamedTuple):
    """A batch of rows with parsed columns."""

    rows: Rows
    kept: NDArray[np.bool_]  # rows with a class, and complete ones only if incomplete ones are dropped
    features: dict[str, NDArray[Any] | Labels]
    target: Labels
    groups: Labels | None
    sites: Labels | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """How the training rows of a source are read."""

    source: Source
    roles: Roles
    target: Callable[[Rows, str, Collection[str]], Labels]  # reads the classes
    features: Mapping[str, Callable[[Rows, str, Collection[str]], Any]]  # reads each feature
    drop_missing: bool
    missing: dict[str, dict[str, int]]
    remarks: tuple[str, ...]

    @property
    def discrete(self) -> list[str]:
        return [name for name, reader in self.features.items() if reader is not numbers]

    def parts(self, n_rows: int | None, *, levels_only: bool = False) -> Iterator[Part]:
        """All rows, ``n_rows`` at once; ``levels_only``: without columns of numbers, unless missing values matter."""
        names = self.discrete if levels_only and not self.drop_missing else list(self.features)
        roles = self.roles
        special = dict.fromkeys(name for name in (roles.target, roles.groups, roles.site) if name is not None)
        for rows in self.source.batches([*names, *special], n_rows):
            yield self.part(rows, names)

    def part(self, rows: Rows, names: Sequence[str]) -> Part:
        """Parse some columns of a batch."""
        assert self.roles.target is not None
        na = self.roles.na
        target = self.target(rows, self.roles.target, na)
        kept = target.present
        features = {}
        for name in names:
            column = self.features[name](rows, name, na)
            features[name] = column if isinstance(column, Labels) else column.values
            if self.drop_missing:
                kept = kept & (column.present if isinstance(column, Labels) else ~np.isnan(column.values))
        found: dict[str, Labels | None] = {}
        for what, own in (("group", self.roles.groups), ("site", self.roles.site)):
            found[what] = None
            if own is not None:
                found[what] = column = labels(rows, own, na)
                without = kept & ~column.present
                if without.any():
                    scan = ColumnScan(own, path=rows.path)
                    n_without = int(without.sum())
                    raise scan.error("has no value", scan.first(rows, without), n_without, f"fill in the {what}")
        return Part(rows, kept, features, target, found["group"], found["site"])

    def dropped_rows(self, classes: Mapping[Any, int], n_read: int, n_labelled: int) -> list[str]:
        """Messages about rows that are not used; raises if none is left."""
        path, target, n_kept = self.source.path, self.roles.target, sum(classes.values())
        if not n_labelled:
            raise DataFileError(f"{path}: column {target!r} has no class in any row: name another target")
        if not n_kept:
            raise DataFileError(f"{path}: every row has a missing value: keep incomplete rows, without --drop-missing")
        if len(classes) < 2:
            [only] = classes
            raise DataFileError(f"{path}: column {target!r} has one class only, {str(only)!r}: at least two are needed")
        remarks = differences_by_case(str(target), "classes", classes)
        if n_labelled < n_read:
            remarks.append(f"excluded {n_read - n_labelled} of {n_read} rows without a class in column {target!r}")
        if n_kept < n_labelled:
            remarks.append(f"excluded {n_labelled - n_kept} of {n_read} rows with missing values")
        return remarks


def planned(source: Source, roles: Roles, *, drop_missing: bool = False, n_rows: int | None = None) -> Plan:
    """How to read a training file: every column is a feature unless it has another role or is unfit."""
    roles.check(source)
    remarks = layout_remarks(source)
    readable = [name for name in roles.features(source) if name not in source.unreadable]
    scans = ColumnScan.all_of(source, readable, n_rows, roles.na, roles.categorical)
    verdicts = {name: (False, None) if name in roles.categorical else scan.verdict() for name, scan in scans.items()}
    remarks += excluded_indexes(source, roles)
    remarks += [
        f"excluded column {name!r}, which holds {source.unreadable[name]}"
        for name in roles.features(source)
        if name in source.unreadable
    ]
    remarks += excluded_columns({name: unfit for name, (_, unfit) in verdicts.items() if unfit}, scans)
    features = {name: numbers if is_numeric else labels for name, (is_numeric, unfit) in verdicts.items() if not unfit}
    if not features:
        raise DataFileError(f"{source.path} has no columns besides the classes that could be features: add some")
    missing = {name: dict(scans[name].spellings) for name in features if scans[name].spellings}
    if not drop_missing:
        remarks += missing_values(missing)
    remarks += suspicions(features, scans)
    special = [name for name in (roles.target, roles.groups) if name is not None and roles.na]
    scans |= ColumnScan.all_of(source, special, n_rows, roles.na, special)
    remarks += spellings_not_found(roles.na, scans.values())
    return Plan(source, roles, labels, features, drop_missing, missing, tuple(remarks))


def training_data(source: Source, roles: Roles, *, drop_missing: bool = False, others: Collection[str] = ()) -> Data:
    """The training samples of a file, in memory; ``others``: columns to be read besides, as labels."""
    plan = planned(source, roles, drop_missing=drop_missing)
    [part] = plan.parts(None)
    kept = part.kept
    y = part.target.cells(kept).astype(str)
    counts = Counter(y.tolist())
    n_labelled = int(part.target.present.sum())
    remarks = plan.dropped_rows(counts, len(kept), n_labelled)
    excluded = {"without a class": len(kept) - n_labelled, "with missing values": n_labelled - len(y)}
    check_target(source.path, roles, counts)
    more = {}
    if others:
        [rows] = source.batches(list(others), None)
        more = {name: labels(rows, name, roles.na).cells(kept, missing=None) for name in others}
    return Data(
        source.path,
        frame_of_columns(part.features, kept),
        part.rows.places[kept],
        source.is_text,
        y,
        None if part.groups is None else part.groups.cells(kept).astype(str),
        None if roles.id is None else labels(part.rows, roles.id, roles.na).cells(kept).astype(str),
        source.sha256,
        {reason: n for reason, n in excluded.items() if n},
        plan.missing,
        (*plan.remarks, *remarks),
        more,
        sites=None if part.sites is None else part.sites.cells(kept).astype(str),
    )


def prediction_parts(
    source: Source,
    roles: Roles,
    columns: Sequence[str] | None,
    discrete: Collection[str] = (),
    *,
    needs_id: bool = False,
    na: Collection[str] = (),
    n_rows: int | None = None,
    others: Collection[str] = (),
    message: Callable[[str], Any] = lambda remark: None,
) -> Iterator[Data]:
    """A file's rows in the columns of a model, in their order; None: all without another role, as numbers.

    ``needs_id``: the column of ids must be present; otherwise it is copied where it is present. ``na``: spellings of a
    missing value that a cell should have. ``others``: columns to be read besides, as labels.
    """
    if needs_id:
        source.refuse_unknown((roles.id, "--id"))
    source.refuse_unreadable(*(columns or ()))
    absent = [name for name in columns or () if name not in source.names]
    for remark in (*layout_remarks(source), *absent_columns(source, absent, len(columns or ()))):
        message(remark)
    if roles.id is not None and roles.id not in source.names:
        message(f"{source.path} has no column {roles.id!r}, which named the rows in training: they are numbered only")
        roles = replace(roles, id=None)
    if roles.site is not None and roles.site not in source.names:
        message(f"{source.path} has no column {roles.site!r}, which named the sites: no shifts are subtracted")
        roles = replace(roles, site=None)
    names = roles.features(source) if columns is None else list(columns)
    names = [name for name in names if name not in absent]
    names = [name for name in names if name not in source.unreadable]
    is_copied = roles.target in source.names and roles.target not in {*names, *source.unreadable}
    target = roles.target if is_copied else None
    scans = {name: ColumnScan(name) for name in names}
    copied = list(dict.fromkeys(name for name in (roles.id, target, roles.site) if name is not None))
    read = list(dict.fromkeys([*names, *copied, *others]))
    for rows in source.batches(read, n_rows):
        for name, scan in scans.items():
            scan.add(rows, roles.na, as_labels=name in discrete)
            scan.refuse_words("the model was trained on numbers there")
        features = {
            name: _of_none(len(rows.places), name in discrete)
            if name in absent
            else labels(rows, name, roles.na)
            if name in discrete
            else numbers(rows, name, roles.na).values
            for name in columns or names
        }
        of_rows = {name: labels(rows, name, roles.na).cells().astype(str) for name in copied}
        ids, y, sites = (of_rows.get(name or "") for name in (roles.id, target, roles.site))
        more = {name: labels(rows, name, roles.na).cells(missing=None) for name in others}
        columns_of = frame_of_columns(features)
        yield Data(rows.path, columns_of, rows.places, rows.is_text, y, ids=ids, others=more, sites=sites)
    missing = {name: dict(scan.spellings) for name, scan in scans.items() if scan.spellings}
    for remark in (*missing_values(missing), *spellings_not_found(na, scans.values())):
        message(remark)


def _of_none(n_rows: int, is_discrete: bool) -> NDArray[Any] | Labels:
    """A column without a value."""
    return Labels([], np.full(n_rows, -1), {}) if is_discrete else np.full(n_rows, np.nan)


def model_frames(source: Source, levels: Mapping[str, Sequence[Any] | None], n_rows: int) -> Iterator[pd.DataFrame]:
    """A file's rows as frames in the columns of a model; ``levels``: of each column, None for numbers."""
    source.refuse_unknown(*((name, "a column of the model") for name in levels))
    for rows in source.batches(levels, n_rows):
        features: dict[str, Any] = {}
        for name, known in levels.items():
            if known is None:
                features[name] = only_numbers(rows, name, "the model was trained on numbers there")
            else:
                features[name] = labels(rows, name)  # a level is the same as text
        yield frame_of_columns(features)


def frame_of_columns(columns: Mapping[str, NDArray[Any] | Labels], kept: Any = slice(None)) -> pd.DataFrame:
    """Columns of numbers, and categorical ones with the sorted levels of the kept rows."""
    import pandas as pd

    def series(column: NDArray[Any] | Labels) -> Any:
        if not isinstance(column, Labels):
            return column[kept]
        codes = np.unique(column.codes[kept])
        return pd.Categorical(column.cells(kept, None), sorted({column.levels[code] for code in codes if code >= 0}))

    return pd.DataFrame({name: series(column) for name, column in columns.items()})


def check_target(path: Any, roles: Roles, classes: Mapping[str, int]) -> None:
    """Raise if the target, with so many rows of each class, is hardly a class."""
    n, n_rows = len(classes), sum(classes.values())
    is_number = not any(math.isnan(number(label)) for label in classes)
    if roles.target in roles.categorical:
        return
    if is_number and (n > MOST_CLASSES or (n > FEW_CLASSES and any("." in label for label in classes))):
        raise ColumnError(
            f"{path}: column {roles.target!r} has {n} different numbers and seems to be a measurement, not the class:"
            f" name another with --target, or, if they are classes, add {option('--categorical', str(roles.target))}"
        )
    if n > max(2, n_rows // 2):
        raise ColumnError(
            f"{path}: column {roles.target!r} has {n} different values in {n_rows} rows and cannot be the class:"
            " name another with --target"
        )
