"""Columns of a file: numbers, levels, or what cannot be a feature."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.levels import MOST_LEVELS, names_samples
from cgnlearn.tables.codes import Codes
from cgnlearn.tables.formats import Column, Rows, Source
from cgnlearn.tables.numerals import POINT, UNKNOWN, Numeral, number
from cgnlearn.tables.options import option
from cgnlearn.tables.text import DataFileError, Strings
from cgnlearn.tables.words import DATES, MIXED, ROW_NAMES, ROW_NUMBERS, UNCLEAR, Words

NO_VALUE = frozenset(["", "na", "NA", "n/a", "N/A", "#N/A", "<NA>", "nan", "NaN", "NAN", "null", "NULL", "Null", "?"])
NULL = "null"  # spelling of a missing value that has none; one of NO_VALUE
MOSTLY = 0.9  # a column with at least this share of numbers is numeric, and its words are errors
FEW_NUMBERS = 10  # a column with at most as many different whole numbers may hold labels
PADDED = re.compile(r"0\d+")
WHOLE = re.compile(r"([-+]?\d+)\.0*")


class Numbers(NamedTuple):
    """A column as floats, NaN where a cell is missing or no number."""

    values: NDArray[Any]
    words: NDArray[np.bool_] | None = None  # cells that are neither numbers nor missing; None: there are none
    spellings: dict[str, int] = {}  # noqa: RUF012 - of the missing values that have one


class Labels(NamedTuple):
    """A column as levels."""

    levels: list[Any]
    codes: NDArray[np.intp]  # -1 where a cell is missing
    spellings: dict[str, int]

    @property
    def present(self) -> NDArray[np.bool_]:
        return self.codes >= 0

    def cells(self, kept: Any = slice(None), missing: Any = "") -> NDArray[np.object_]:
        """The levels of rows."""
        return np.array([*self.levels, missing], dtype=object)[self.codes[kept]]


def labels(rows: Rows, name: str, na: Collection[str] = ()) -> Labels:
    """A column of labels; 1 and 1.0 are the same."""
    cells, index = _distinct(rows.columns[name])
    names = [_label(cell) for cell in cells]
    levels = {level: i for i, level in enumerate(dict.fromkeys(one for one in names if not _is_missing(one, na)))}
    codes = np.array([*(levels.get(one, -1) for one in names), -1])
    return Labels(list(levels), codes[index], _spellings(names, index, [one not in levels for one in names]))


def numbers(rows: Rows, name: str, na: Collection[str] = ()) -> Numbers:
    """A column as numbers, parsed once."""
    if name not in rows.parsed:
        column = rows.columns[name]
        if isinstance(column, np.ndarray):
            parsed = _of_numbers(column, na)
        else:
            parsed = _of_text(column, na, rows.numerals.get(name, POINT))
        rows.parsed[name] = parsed
    return rows.parsed[name]


def number_levels(rows: Rows, name: str, na: Collection[str] = ()) -> Labels:
    """A column whose levels are numbers."""
    column, values = rows.columns[name], numbers(rows, name, na).values
    if isinstance(column, np.ndarray) and column.dtype.kind in "iub" and not na:
        values = column
    distinct, codes = np.unique(values, return_inverse=True)
    levels: list[Any] = [level for level in distinct.tolist() if level == level]
    if not isinstance(column, np.ndarray) and all(level.is_integer() for level in levels):
        levels = [int(level) for level in levels]
    return Labels(levels, np.where(codes < len(levels), codes, -1), {})


def only_numbers(rows: Rows, name: str, why: str) -> NDArray[np.float64]:
    """A column that must hold numbers."""
    scan = ColumnScan(name)
    scan.add(rows)
    scan.refuse_words(why)
    return numbers(rows, name).values


def _of_numbers(column: NDArray[Any], na: Collection[str]) -> Numbers:
    values = column if column.dtype.kind == "f" else column.astype(np.float64)
    spellings: dict[str, int] = {}
    for word in na:
        named = values == number(word)
        if named.any():
            values = np.where(named, np.nan, values)
            spellings[word] = int(named.sum())
    return Numbers(values, None, spellings)


def _of_text(column: Strings, na: Collection[str], numeral: Numeral) -> Numbers:
    if numeral == POINT and not na:
        values = column.floats()
        if values is not None and not np.isnan(values).any():
            return Numbers(values)
    cells, index = _distinct(column)
    parsed = np.array([*(numeral.number(cell) for cell in cells), math.nan])
    named = {number(word) for word in na}
    none = np.array([*(_is_missing(cell, na) or parsed[i] in named for i, cell in enumerate(cells)), True])
    parsed[none] = np.nan
    values = parsed[index]
    return Numbers(values, np.isnan(values) & ~none[index], _spellings(cells, index, none[:-1]))


def _distinct(column: Column) -> tuple[list[str], NDArray[Any]]:
    """The distinct cells of a column, and the index of each row's cell."""
    if isinstance(column, Strings):
        return column.distinct
    values, index = np.unique(column, return_inverse=True)
    return [_written(value) for value in values.tolist()], index


def _written(value: Any) -> str:
    if value != value:
        return NULL
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value)


def _label(cell: str) -> str:
    whole = WHOLE.fullmatch(cell)
    return whole[1] if whole else cell


def _is_missing(cell: str, na: Collection[str]) -> bool:
    return cell in NO_VALUE or cell in na


def _spellings(cells: list[str], index: NDArray[Any], missing: Any) -> dict[str, int]:
    """How often each spelling of a missing value occurs."""
    counts = np.bincount(index + 1, minlength=len(cells) + 1).tolist()
    found = Counter({NULL: counts[0]})
    for cell, is_missing, n in zip(cells, missing, counts[1:], strict=True):
        found[cell] += n if is_missing else 0
    return {cell: n for cell, n in found.items() if n}


class Cell(NamedTuple):
    """The first cell of some kind."""

    text: str
    place: str


@dataclass
class ColumnScan:
    """What a column holds, collected over batches."""

    name: str
    n_present: int = 0
    n_words: int = 0
    n_infinite: int = 0
    path: Any = None
    is_typed: bool = True  # the file declares numbers
    example: str = ""
    first_word: Cell | None = None
    first_infinite: Cell | None = None
    words: Words = field(default_factory=Words)
    spellings: Counter[str] = field(default_factory=Counter)  # of missing values
    distinct: set[Hashable] | None = field(default_factory=set)  # None: too many
    first_unclear: Cell | None = None  # whose mark may be decimal or stand between thousands

    def __post_init__(self) -> None:
        self.codes = Codes(self.name)

    @classmethod
    def all_of(
        cls,
        source: Source,
        names: Iterable[str],
        n_rows: int | None,
        na: Collection[str] = (),
        categorical: Collection[str] = (),
    ) -> dict[str, ColumnScan]:
        """Scan columns of a file."""
        scans = {name: cls(name) for name in names}
        for rows in source.batches(scans, n_rows):
            for name, scan in scans.items():
                scan.add(rows, na, as_labels=name in categorical)
        return scans

    def add(self, rows: Rows, na: Collection[str] = (), *, as_labels: bool = False) -> None:
        """Scan more rows; ``as_labels``: every cell is a level."""
        self.path, column = rows.path, rows.columns[self.name]
        if as_labels:
            levels = labels(rows, self.name, na)
            self.n_present += int(levels.present.sum())
            self.spellings.update(levels.spellings)
            return
        values, words, spellings = numbers(rows, self.name, na)
        missing = np.isnan(values) if words is None else np.isnan(values) & ~words
        if isinstance(column, np.ndarray) and missing.any():
            self.spellings[NULL] += int(missing.sum()) - sum(spellings.values())
        self.spellings.update(spellings)
        self.n_present += int((~missing).sum())
        self.codes.add(values)
        infinite = np.isinf(values)
        if infinite.any():
            self.n_infinite += int(infinite.sum())
            self.first_infinite = self.first_infinite or self.first(rows, infinite)
        if not self.example and not missing.all():
            self.example = self.first(rows, ~missing).text
        if isinstance(column, np.ndarray):
            for some in (values[~missing][:1000], values[~missing]):  # a thousand mostly suffice
                if self.distinct is not None:
                    self._add_distinct(np.unique(some).tolist(), FEW_NUMBERS)
            return
        self.is_typed = False
        if words is not None and words.any():
            self.n_words += int(words.sum())
            self.first_word = self.first_word or self.first(rows, words)
            cells, index = _distinct(column)
            for i, n in zip(*np.unique(index[words], return_counts=True), strict=True):
                self.words.add(cells[i], int(n))
        if self.distinct is not None and words is None and len(np.unique(values)) > MOST_LEVELS:
            self.distinct = None
        if self.distinct is not None:
            present = (_label(cell) for cell in column.distinct[0] if not _is_missing(cell, na))
            self._add_distinct(present, MOST_LEVELS)
        if rows.numerals.get(self.name) == UNKNOWN:
            marked = [i for i, cell in enumerate(column.distinct[0]) if "." in cell or "," in cell]
            if marked and self.first_unclear is None:
                self.first_unclear = self.first(rows, np.isin(column.distinct[1], marked))

    def _add_distinct(self, cells: Any, most: int) -> None:
        if self.distinct is not None:
            self.distinct.update(cells)
            if len(self.distinct) > most:
                self.distinct = None

    def first(self, rows: Rows, where: NDArray[np.bool_]) -> Cell:
        row = int(where.argmax())
        return Cell(str(rows.columns[self.name][row]), rows.place(row))

    def error(self, what: str, first: Cell, n: int, advice: str) -> DataFileError:
        others = f" (and in {n - 1} more)" if n > 1 else ""
        return DataFileError(f"{self.path}: column {self.name!r} {what} in {first.place}{others}: {advice}")

    def refuse_words(self, why: str) -> None:
        """Raise if a cell is not a finite number."""
        self.refuse_infinite()
        if self.first_unclear is not None:
            unclear = f"holds {self.first_unclear.text!r}, whose mark may be decimal or stand between thousands,"
            raise self.error(unclear, self.first_unclear, 1, "write the numbers of the column without marks between")
        if self.first_word is not None:
            raise self.error(f"holds {self.first_word.text!r}", self.first_word, self.n_words, f"{why}, correct it")

    def refuse_infinite(self) -> None:
        if self.first_infinite is not None:
            raise self.error("is infinite", self.first_infinite, self.n_infinite, "correct it")

    def verdict(self) -> tuple[bool, str | None]:
        """Whether the column holds numbers (otherwise levels), and what it holds if that cannot be a feature."""
        self.refuse_infinite()
        if not self.n_present:
            return True, "no value"
        if not self.n_words and (self.codes.counts_rows or self.codes.are_days):
            return True, ROW_NUMBERS if self.codes.counts_rows else DATES
        if self.is_typed:
            return True, None
        if self.first_unclear is not None and self.n_words <= (1 - MOSTLY) * self.n_present:
            self.example = self.first_unclear.text
            return True, UNCLEAR
        if self.first_word is None:
            return True, None
        if self.n_words <= (1 - MOSTLY) * self.n_present:
            word = self.first_word.text
            advice = (
                f"correct it, declare it missing ({option('--na', word)}), or the column categorical "
                f"({option('--categorical', self.name)})"
            )
            raise self.error(f"has {word!r} among numbers", self.first_word, self.n_words, advice)
        n_different = MOST_LEVELS + 1 if self.distinct is None else len(self.distinct)
        form = self.words.form_of(MOSTLY * self.n_words)
        if form is None and names_samples(n_different, self.n_present):
            form = MIXED if 2 * self.n_words <= self.n_present else ROW_NAMES
        self.example = self.first_word.text
        return False, form

    @property
    def has_leading_zeros(self) -> bool:
        """Whether whole numbers begin with a zero, as codes do."""
        return any(isinstance(one, str) and PADDED.fullmatch(one) for one in self.distinct or ())

    @property
    def has_few_whole_numbers(self) -> bool:
        """Whether the numbers may be labels."""
        if self.distinct is None or len(self.distinct) > 5 * FEW_NUMBERS:
            return False
        different = {number(str(one)) for one in self.distinct}
        few = 2 <= len(different) <= FEW_NUMBERS and self.n_present >= 5 * len(different)
        return few and all(one % 1 == 0 for one in different)
