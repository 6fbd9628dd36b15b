"""Messages about how a file is read: what is excluded, counts as missing, or may mean something else."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from cgnlearn.tables.columns import NULL, ColumnScan, numbers
from cgnlearn.tables.formats import Source, listed
from cgnlearn.tables.numerals import number
from cgnlearn.tables.options import option
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError
from cgnlearn.tables.words import ADVICE


def layout_remarks(source: Source) -> list[str]:
    """A line about separators, encoding and the like, if they are not the usual ones."""
    text = "as text " if source.is_text else ""
    return [f"{source.path} is read {text}{', '.join(source.layout)}"] if source.layout else []


def excluded_columns(unfit: Mapping[str, str], scans: Mapping[str, ColumnScan]) -> list[str]:
    """A line for each reason to exclude columns."""
    lines = []
    for what in dict.fromkeys(unfit.values()):
        names = [name for name, reason in unfit.items() if reason == what]
        head = f"excluded {'column' if len(names) == 1 else f'{len(names)} columns'} {listed(names)}"
        if what == "no value":
            lines.append(f"{head}: no row has a value there")
            continue
        example = f"{'holds' if len(names) == 1 else 'hold'} {what} such as {scans[names[0]].example!r}"
        levels, silent = option("--categorical", names[0]), option("--ignore", names[0])
        options = f"{levels} if they are levels, {silent} to silence this message"
        advice = ADVICE[what].format(na=option("--na", str(scans[names[0]].example)), id=option("--id", names[0]))
        lines.append(f"{head}, which {example}: {advice}; {options}")
    return lines


def absent_columns(source: Source, absent: Sequence[str], n_columns: int) -> list[str]:
    """One line about columns of the model that a file lacks; raises if these are more than half."""
    if not absent:
        return []
    names = f"column {absent[0]!r}" if len(absent) == 1 else f"{len(absent)} of {n_columns} columns, {listed(absent)}"
    which = f"{source.path} lacks {names} (of the model)"
    if 2 * len(absent) > n_columns:
        raise DataFileError(f"{which}{source.hint(absent[0])}")
    close = source.close(absent[0])
    meant = f"; did you mean {close!r}?" if close else ""
    return [f"{which}: {'its' if len(absent) == 1 else 'their'} values count as missing{meant}"]


def excluded_indexes(source: Source, roles: Roles) -> list[str]:
    """One line about the index of a frame."""
    names = [name for name in source.index if name not in {*roles.special.values(), *roles.ignore, *roles.categorical}]
    if not names:
        return []
    head = f"excluded {'column' if len(names) == 1 else 'columns'} {listed(names)}"
    return [f"{head}, the index of a pandas frame: if it is a feature, save the frame after reset_index()"]


def spellings_not_found(na: Collection[str], scans: Iterable[ColumnScan]) -> list[str]:
    """One line about spellings of a missing value that no cell has."""
    found = {spelling for scan in scans for spelling in scan.spellings}
    values = {value for value in map(number, found) if not math.isnan(value)}
    absent = [word for word in na if word not in found and number(word) not in values]
    if not absent:
        return []
    return [f"no cell is {' or '.join(map(repr, absent))}: check the {'words' if len(absent) > 1 else 'word'} of --na"]


def missing_values(missing: Mapping[str, Mapping[str, int]]) -> list[str]:
    """One line about the cells that count as missing."""
    if not missing:
        return []
    order = sorted(missing, key=lambda name: -sum(missing[name].values()))
    columns = []
    for name in order[:8]:
        counts = ((n, word if word == NULL else repr(word) if word else "empty") for word, n in missing[name].items())
        columns.append(f"{name} {', '.join(f'{n} {word}' for n, word in counts)}")
    more = f"; and {len(order) - 8} more" if len(order) > 8 else ""
    n_cells = sum(sum(counts.values()) for counts in missing.values())
    cells = f"{n_cells} cells are" if n_cells > 1 else "1 cell is"
    return [f"{cells} taken as missing: {'; '.join(columns)}{more}"]


def suspicions(features: Mapping[str, Any], scans: Mapping[str, ColumnScan]) -> list[str]:
    """Lines about columns that may mean something else."""
    numeric = [name for name, reader in features.items() if reader is numbers]
    few = [name for name in numeric if scans[name].has_few_whole_numbers]
    padded = [name for name in numeric if scans[name].has_leading_zeros and not scans[name].has_few_whole_numbers]
    lines = []
    for names, what in ((few, "few whole numbers"), (padded, "numbers with leading zeros")):
        if names:
            have = f"has {what} and is" if len(names) == 1 else f"have {what} and are"
            categorical = option("--categorical", *names[:8], more=len(names) > 8)
            lines.append(f"{listed(names)} {have} taken as numeric: if they are labels, add {categorical}")
    for code in dict.fromkeys(code for name in numeric for code in scans[name].codes.of_missing):
        names = [name for name in numeric if code in scans[name].codes.of_missing]
        lines.append(
            f"{listed(names)} {'has' if len(names) == 1 else 'have'} {code} several times, far from the other numbers: "
            f"if it stands for a missing value, add {option('--na', code)}"
        )
    for name, reader in features.items():
        if reader is not numbers:
            lines += differences_by_case(name, "levels", scans[name].distinct or ())
    return lines


def differences_by_case(name: str, what: str, words: Iterable[Any]) -> list[str]:
    """A line about levels or classes that differ by case only."""
    alike: dict[str, list[str]] = {}
    for word in sorted(map(str, words)):
        alike.setdefault(word.casefold(), []).append(word)
    for some in alike.values():
        if len(some) > 1:
            shown = " and ".join(map(repr, some))
            return [f"{shown} in column {name!r} are different {what}: if they are one, write them in the same way"]
    return []
