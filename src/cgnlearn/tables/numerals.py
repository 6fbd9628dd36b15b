"""Numbers as text: which mark is decimal and which stands between thousands, by column and by file, never by cell.

``0,69`` and ``1,037,200`` can be read in one way, ``1,037`` in two. Cells of the first kind decide for their column,
and if such columns agree, for the columns that have cells of the second kind only. Others are ambiguous.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MINUS = "\u2212"  # typographic
BODY = re.compile(rf"[-+{MINUS}]?([\d.,]*\d[\d.,]*)([eE][-+{MINUS}]?\d+)?", re.ASCII)
GROUPED = {mark: re.compile(rf"[1-9]\d{{0,2}}(\{mark}\d{{3}})+", re.ASCII) for mark in ".,"}
OTHER = {".": ",", ",": "."}
FEW = 0.1  # a mark in at most this share of a column's cells is a slip
SIGNS = {".": "points", ",": "commas"}


class Numeral(NamedTuple):
    """How the numbers of a column are written."""

    decimal: str = "."  # empty: unknown
    thousands: str = ""  # empty: none

    def number(self, cell: str) -> float:
        """A cell as a number, or NaN."""
        found = None if self == POINT else BODY.fullmatch(cell)
        if found is None:
            return number(cell)
        if not self.decimal:  # some value: the column is refused
            return number(cell.replace(",", ".")) if found[1].count(".") + found[1].count(",") < 2 else math.nan
        if self.thousands and self.thousands in cell:
            if not GROUPED[self.thousands].fullmatch(found[1].partition(self.decimal)[0]):
                return math.nan
            cell = cell.replace(self.thousands, "")
        if self.decimal == ",":
            cell = "" if "." in cell else cell.replace(",", ".")
        return number(cell)


POINT = Numeral()
UNKNOWN = Numeral("")


def number(text: str) -> float:
    """A cell with a decimal point as a number, or NaN."""
    text = text.replace(MINUS, "-")
    try:
        # Python also accepts 1_000 and non-ASCII digits, which are not numbers in a data file.
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


@dataclass
class Marks:
    """The marks in the cells of a column."""

    decimal: Counter[str] = field(default_factory=Counter)  # cells by the mark that must be decimal
    thousands: set[str] = field(default_factory=set)  # marks that must stand between thousands
    either: dict[str, str] = field(default_factory=dict)  # marks that may be one or the other, with an example
    n_others: int = 0  # cells with digits and marks that are no numbers, such as dates

    def add(self, cell: str) -> None:
        """Take a cell with a point or a comma into account."""
        cell = cell.strip()
        found = BODY.fullmatch(cell)
        if found is None:
            self.n_others += any(sign.isdigit() for sign in cell)
            return
        body, exponent = found.groups()
        last = max(".,", key=body.rfind)
        whole, _, _ = body.rpartition(last)
        if OTHER[last] in body:  # 1.037,5
            if GROUPED[OTHER[last]].fullmatch(whole):
                self.decimal[last] += 1
                self.thousands.add(OTHER[last])
            else:
                self.n_others += 1
        elif exponent or (body.count(last) == 1 and not GROUPED[last].fullmatch(body)):  # 0,69 and 12,5 and 1037,200
            self.decimal[last] += 1
        elif body.count(last) == 1:  # 1,037
            self.either.setdefault(last, cell)
        elif GROUPED[last].fullmatch(body):  # 1,037,200
            self.decimal[OTHER[last]] += 1
            self.thousands.add(last)
        else:
            self.n_others += 1

    def __or__(self, more: Marks) -> Marks:
        """The marks of two files."""
        either = {**more.either, **self.either}
        decimal = self.decimal + more.decimal
        return Marks(decimal, self.thousands | more.thousands, either, self.n_others + more.n_others)

    @property
    def certain(self) -> str:
        """The mark that must be decimal in nearly all cells; empty: none."""
        mark, n = self.decimal.most_common(1)[0] if self.decimal else ("", 0)
        return (
            mark
            if n and self.decimal.total() - n + self.n_others <= FEW * (self.decimal.total() + self.n_others)
            else ""
        )


def numerals(columns: Mapping[str, Marks], *, by_semicolons: bool) -> dict[str, Numeral]:
    """How the numbers of each column are written; where semicolons separate cells, a point may not be decimal."""
    agreed = {marks.certain for marks in columns.values()} - {""}
    of_file = agreed.pop() if len(agreed) == 1 else ""
    found = {}
    for name, marks in columns.items():
        if marks.certain:
            found[name] = Numeral(marks.certain, "".join(marks.thousands & {OTHER[marks.certain]}))
        elif marks.decimal or len(marks.either) > 1:
            found[name] = UNKNOWN
        elif marks.either:
            [mark] = marks.either
            if of_file:
                found[name] = Numeral(of_file, "" if mark == of_file else mark)
            else:
                is_usual = mark == "." and not by_semicolons and not agreed
                found[name] = POINT if is_usual else UNKNOWN
        else:
            found[name] = POINT
    return found


def in_words(found: Mapping[str, Numeral], columns: Mapping[str, Marks]) -> Iterable[str]:
    """What is unusual about numbers, for a message."""
    if any(numeral.decimal == "," for numeral in found.values()):
        yield "with decimal commas"
    for mark, sign in SIGNS.items():
        names = [name for name, numeral in found.items() if numeral.thousands == mark]
        if names:
            example = columns[names[0]].either.get(mark)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            shown = f" ({example} is {found[names[0]].number(example):.0f})" if example else ""
            yield f"with {sign} between thousands in column {names[0]!r}{more}{shown}"
