"""Columns of a file as numbers or as levels, or as what is no attribute as it stands."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.cli.datafile import Source, number
from cgnlearn.cli.roles import Roles
from cgnlearn.rowfiles import NO_VALUE

MOSTLY = 0.9  # a column with this share of numbers is one of numbers, and its words are faults
MOST_WORDS = 20  # a column of more different words, most of them alone in their row, names rows
NULL = "null"  # how a missing value is called that has no spelling; one of NO_VALUE
WRITTEN = {
    "dates or times": re.compile(
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}\S*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( \d{1,2}:\d{2}\S*)?"
        r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?"
    ),
    "numbers with signs between the digits": re.compile(r"[-+]?[$€£]?\s?\d{1,3}([,.' ]\d{3})+([.,]\d+)?"),
    "percentages": re.compile(r"[-+]?\d+([.,]\d+)?\s?%"),
}
POINTS_BETWEEN = re.compile(r"[-+]?\d{1,3}(\.\d{3})+")  # thousands, where the decimal sign is a comma
WHOLE = re.compile(r"([-+]?\d+)\.0*")


class Cells(NamedTuple):
    """A column as it is understood."""

    values: NDArray[Any]  # floats with NaN, or objects that are text
    missing: NDArray[np.bool_]
    spellings: dict[str, int]  # of the missing values
    unfit: str | None = None  # what it holds, if that is no attribute as it stands

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.values.dtype != object


def labels(source: Source, name: str, roles: Roles) -> Cells:
    """A column of mere labels; 1 and 1.0 are one."""
    column = source.columns[name]
    if column.dtype.kind == "f":
        text = [f"{value:.0f}" if float(value).is_integer() else repr(float(value)) for value in column]
        said = [NULL if value != value else cell for value, cell in zip(column.tolist(), text, strict=True)]
    else:
        said = [NULL if value is None else str(value) for value in column.tolist()]
    said = [whole[1] if (whole := WHOLE.fullmatch(cell)) else cell for cell in said]
    none = {*NO_VALUE, *roles.na}
    missing = np.array([cell in none for cell in said])
    return Cells(np.array(said, dtype=object), missing, dict(Counter(np.array(said, dtype=object)[missing].tolist())))


def numbers(source: Source, name: str, roles: Roles, why: str = "the model was trained on numbers there") -> Cells:
    """A column that must hold numbers."""
    cells = _parsed(source, name, roles)
    words = np.isnan(cells.values) & ~cells.missing
    if words.any():
        first = source.columns[name][words][0]
        raise source.fault(name, f"holds {first!r}", words, f"{why}, correct it")
    return cells


def _parsed(source: Source, name: str, roles: Roles) -> Cells:
    """A column as floats, NaN where a cell is missing or no number."""
    column = source.columns[name]
    if column.dtype.kind in "fiub":
        values = column.astype(np.float64)
        missing = np.isnan(values)
        spellings = {NULL: int(missing.sum())} if missing.any() else {}
        for word in roles.na:
            named = values == number(word)
            missing |= named
            spellings |= {word: int(named.sum())} if named.any() else {}
    else:
        none = {*NO_VALUE, *roles.na}
        said = [NULL if cell is None else cell for cell in column.tolist()]
        spellings = dict(Counter(cell for cell in said if cell in none))
        missing = np.array([cell in none for cell in said])
        values = np.array([number(cell, source.decimal) for cell in said])
    values[missing] = np.nan
    infinite = np.isinf(values)
    if infinite.any():
        raise source.fault(name, "is infinite", infinite, "correct it")
    return Cells(values, missing, spellings)


def understood(source: Source, name: str, roles: Roles) -> Cells:
    """A column as numbers or as levels, or what it holds instead."""
    if name in roles.categorical:
        return labels(source, name, roles)
    cells = _parsed(source, name, roles)
    present = ~cells.missing
    if not present.any():
        return cells._replace(unfit="no value")
    if source.columns[name].dtype != object:
        return cells
    words = np.isnan(cells.values) & present
    said = source.columns[name]
    if not words.any():
        between = source.decimal == "," and all(POINTS_BETWEEN.fullmatch(cell) for cell in said[present])
        return cells._replace(unfit="numbers with signs between the digits") if between else cells
    for what, form in WRITTEN.items():
        if sum(bool(form.fullmatch(cell)) for cell in said[words]) >= MOSTLY * words.sum():
            return cells._replace(unfit=what)
    if words.sum() <= (1 - MOSTLY) * present.sum():
        word = str(said[words][0])
        advice = f"correct it, add --na {word} if it means no value, or declare the column with --categorical {name}"
        raise source.fault(name, f"has {word!r} among numbers", words, advice)
    levels = labels(source, name, roles)
    n_different = len(set(levels.values[present]))
    return levels._replace(unfit="names of rows") if n_different > max(MOST_WORDS, present.sum() / 2) else levels
