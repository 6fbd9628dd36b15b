"""A file's rows as a frame of attributes with their classes, ids and groups.

What hardly is an attribute as it stands (dates, names of rows, numbers written 1,037 or 5%) is left out and told of,
with the option that decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.cli.columns import NULL, Cells, labels, numbers, understood
from cgnlearn.cli.datafile import Source, WrongCall, listed, number, source_of
from cgnlearn.cli.roles import Roles
from cgnlearn.cli.textfile import DataFileError

if TYPE_CHECKING:
    import pandas as pd

FEW_NUMBERS = 10  # a column of whole numbers with no more different ones may be one of labels
MOST_NUMBERS = 20  # a target with more different numbers measures something
ADVICE = {
    "dates or times": "turn them into numbers, such as days since a first one",
    "numbers with signs between the digits": "write them as plain numbers",
    "percentages": "write them without the sign",
    "names of rows": "carry one as --id",
}


@dataclass(frozen=True, eq=False)
class Data:
    """Rows of a file, as far as they are used."""

    source: Source
    X: pd.DataFrame  # (rows, attributes): floats, and categoricals of text; missing values are NaN
    rows: NDArray[np.intp]  # which of the source's
    y: NDArray[np.str_] | None = None
    groups: NDArray[np.str_] | None = None
    ids: NDArray[np.str_] | None = None
    missing: dict[str, dict[str, int]] = field(default_factory=dict)  # cells by column and spelling
    remarks: tuple[str, ...] = ()  # what the person should know, a line each

    @property
    def path(self) -> Path:
        """The file."""
        return self.source.path

    @property
    def lines(self) -> NDArray[np.intp]:
        """Where in the file each row stands."""
        return self.source.lines[self.rows]

    @property
    def n_dropped(self) -> int:
        """Rows of the file that are left out."""
        return len(self.source.lines) - len(self.rows)

    def place(self, row: int) -> str:
        """How messages speak of a row."""
        return self.source.place(int(self.rows[row]))


def training_data(path: Path, roles: Roles, *, drop_missing: bool = False) -> Data:
    """A file's rows to learn from; every column is an attribute unless it has another part or is unfit."""
    source = source_of(path, arrays=[*roles.special.values()])
    roles.check(source)
    remarks = [f"{path} is read as text {', '.join(source.found)}"] if source.found else []
    assert roles.target is not None
    aside = {*roles.special.values(), *roles.ignore}
    found = {name: understood(source, name, roles) for name in source.columns if name not in aside}
    remarks += _left_out(source, {name: cells for name, cells in found.items() if cells.unfit})
    found = {name: cells for name, cells in found.items() if not cells.unfit}
    if not found:
        raise DataFileError(f"{path} has no columns besides the classes that could be attributes: give it some")
    target = labels(source, roles.target, roles)
    kept = ~target.missing
    if not kept.any():
        raise DataFileError(f"{path}: column {roles.target!r} names no class in any row: name another with --target")
    if not kept.all():
        remarks.append(f"left out {_n_rows(~kept)} without a class in column {roles.target!r}")
    _check_target(path, roles, target.values[kept])
    if drop_missing:
        whole = kept & ~np.logical_or.reduce([cells.missing for cells in found.values()])
        if not whole.any():
            raise DataFileError(f"{path}: every row has an empty cell: go without --drop-missing")
        remarks += [f"left out {_n_rows(kept & ~whole)} with missing values"] if (kept & ~whole).any() else []
        kept = whole
    else:
        remarks += _missing_told({name: cells.spellings for name, cells in found.items()})
    remarks += _few_numbers(found, kept)
    groups = None
    if roles.groups is not None:
        of_groups = labels(source, roles.groups, roles)
        if (of_groups.missing & kept).any():
            raise source.fault(roles.groups, "has no value", of_groups.missing & kept, "say to which group it belongs")
        groups = of_groups.values[kept].astype(str)
    return Data(
        source, _frame(found, kept), np.flatnonzero(kept), target.values[kept].astype(str), groups,
        _ids(source, roles, kept), {name: cells.spellings for name, cells in found.items() if cells.spellings},
        tuple(remarks),
    )  # fmt: skip


def head_of(path: Path, roles: Roles) -> Source:
    """The first rows of a file that is to be read in parts, if it can be."""
    source = source_of(path, head=True)
    if source.found or roles.na:
        why = "--na is given" if roles.na else f"the text is {', '.join(source.found)}"
        raise WrongCall(f"{path} cannot be read in parts, as {why}: give more --memory, or write it as parquet")
    return source


def judged_columns(path: Path, roles: Roles) -> tuple[list[str], list[str], list[str]]:
    """The attributes of a file that is read in parts, those of them that have levels, and what the person should know.

    Judged by its first rows.
    """
    source = head_of(path, roles)
    roles.check(source)
    aside = {*roles.special.values(), *roles.ignore}
    found = {name: understood(source, name, roles) for name in source.columns if name not in aside}
    unfit = {name: cells for name, cells in found.items() if cells.unfit not in (None, "no value")}
    attributes = [name for name in found if name not in unfit]
    levels = [name for name in attributes if not found[name].is_numeric]
    return attributes, levels, _left_out(source, unfit)


def prediction_data(
    path: Path, roles: Roles, columns: Sequence[str] | None, discrete: Sequence[str] = (), *, needs_id: bool = False
) -> Data:
    """A file's rows in the columns of a model, in their order; None: all but those with another part, as numbers.

    ``needs_id``: the column of ids must be there; else it is carried along only where it is.
    """
    source = source_of(path, [] if roles.id is None or not needs_id else [roles.id])
    if needs_id:
        source.refuse_unknown((roles.id, "--id"))
    for name in columns or ():
        if name not in source.columns:
            raise DataFileError(f"{path} has no column {name!r} (a column of the model): {source.instead_of(name)}")
    remarks = [f"{path} is read as text {', '.join(source.found)}"] if source.found else []
    if roles.id is not None and roles.id not in source.columns:
        remarks.append(f"{path} has no column {roles.id!r}, which named the rows in training: they are numbered only")
        roles = replace(roles, id=None)
    aside = {*roles.special.values(), *roles.ignore}
    names = [name for name in source.columns if name not in aside] if columns is None else columns
    found = {name: labels(source, name, roles) if name in discrete else numbers(source, name, roles) for name in names}
    remarks += _missing_told({name: cells.spellings for name, cells in found.items()})
    kept = np.ones(len(source.lines), bool)
    return Data(
        source, _frame(found, kept), np.arange(len(kept)), ids=_ids(source, roles, kept),
        missing={name: cells.spellings for name, cells in found.items() if cells.spellings}, remarks=tuple(remarks),
    )  # fmt: skip


def _check_target(path: Path, roles: Roles, classes: NDArray[Any]) -> None:
    """Ask back if the classes can hardly be meant."""
    assert roles.target is not None
    different = set(classes.tolist())
    n, is_number = len(different), not any(math.isnan(number(label)) for label in different)
    if roles.target in roles.categorical:
        return
    if is_number and (n > MOST_NUMBERS or (n > FEW_NUMBERS and any("." in label for label in different))):
        raise WrongCall(
            f"{path}: column {roles.target!r} has {n} different numbers and seems to measure something, so it cannot be"
            f" the class: name another with --target, or, if they are classes, add --categorical {roles.target}"
        )
    if n > max(2, len(classes) // 2):
        raise WrongCall(
            f"{path}: column {roles.target!r} has {n} different values in {len(classes)} rows and cannot be the class:"
            " name another with --target"
        )


def _ids(source: Source, roles: Roles, kept: NDArray[np.bool_]) -> NDArray[np.str_] | None:
    if roles.id is None:
        return None
    cells = labels(source, roles.id, roles)
    return np.where(cells.missing, "", cells.values)[kept].astype(str)


def _frame(found: dict[str, Cells], kept: NDArray[np.bool_]) -> pd.DataFrame:
    import pandas as pd

    def column(cells: Cells) -> Any:
        values, missing = cells.values[kept], cells.missing[kept]
        if cells.is_numeric:
            return values
        values = values.copy()
        values[missing] = None
        return pd.Categorical(values, sorted(set(values[~missing])))

    return pd.DataFrame({name: column(cells) for name, cells in found.items()})


# ---- what the person should know


def _left_out(source: Source, unfit: dict[str, Cells]) -> list[str]:
    """A line for each kind of column that is no attribute as it stands."""
    by_kind: dict[str, list[str]] = {}
    for name, cells in unfit.items():
        assert cells.unfit is not None
        by_kind.setdefault(cells.unfit, []).append(name)
    lines = []
    for what, names in by_kind.items():
        head = f"left out {'column' if len(names) == 1 else f'{len(names)} columns'} {listed(names)}"
        if what == "no value":
            lines.append(f"{head}: no row has a value there")
            continue
        column = source.columns[names[0]]
        first = next(cell for cell, none in zip(column, unfit[names[0]].missing, strict=True) if not none)
        example = f" such as {first!r}"
        options = f"--categorical {names[0]} if they are levels, --ignore {names[0]} to leave it unsaid"
        lines.append(
            f"{head}, which {'holds' if len(names) == 1 else 'hold'} {what}{example}: {ADVICE[what]}; {options}"
        )
    return lines


def _missing_told(spellings: dict[str, dict[str, int]]) -> list[str]:
    """One line that says what was taken as missing where."""
    counts = {name: own for name, own in spellings.items() if own}
    if not counts:
        return []
    order = sorted(counts, key=lambda name: -sum(counts[name].values()))

    def told(name: str) -> str:
        own = counts[name]
        words = ", ".join(
            f"{n} {'empty' if not word else word if word == NULL else repr(word)}" for word, n in own.items()
        )
        return f"{name} {words}"

    more = f"; and {len(order) - 8} more" if len(order) > 8 else ""
    n_cells = sum(sum(own.values()) for own in counts.values())
    cells = f"{n_cells} cells are" if n_cells > 1 else "1 cell is"
    return [f"{cells} taken as missing: {'; '.join(told(name) for name in order[:8])}{more}"]


def _few_numbers(found: dict[str, Cells], kept: NDArray[np.bool_]) -> list[str]:
    """One line about columns of few whole numbers."""
    names = []
    for name, cells in found.items():
        if cells.is_numeric:
            present = cells.values[kept & ~cells.missing]
            few = present[:1000]  # most columns show at once that they have more
            if len(np.unique(few)) <= FEW_NUMBERS and (present % 1 == 0).all():
                n_different = len(np.unique(present))
                if 2 <= n_different <= FEW_NUMBERS and len(present) >= 5 * n_different:
                    names.append(name)
    if not names:
        return []
    option = ",".join(names[:8]) + (",…" if len(names) > 8 else "")
    have = "has few whole numbers and is" if len(names) == 1 else "have few whole numbers and are"
    return [f"{listed(names)} {have} taken as measured: if they are mere labels, add --categorical {option}"]


def _n_rows(where: NDArray[np.bool_]) -> str:
    n = int(where.sum())
    return f"{n} of {len(where)} rows"
