"""Whole numbers that measure nothing: numbers of rows, days such as 20240131, and codes of a missing value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

COUNTED_FROM = 20  # as many whole numbers that rise evenly from row to row count the rows
NUMBERS_ROWS = re.compile(  # names of columns that number the rows, in whatever order
    r"(?i:unnamed: ?\d+|#|index|idx|[a-z]?id|mrn|nr\.?|no\.|rownames?|row|(.*[ _.-])?(id|idx|nr|rownames?)"
    r"|(case|patient|person|record|row|sample|subject|customer|passenger)s?(id|nr|no|index|number))|.*[a-z](Id|ID|Nr|No)"
)
NUMBERS_KEPT = 1_000_000  # of such a column, to see whether they are different
FIRST_YEAR, LAST_YEAR = 1900, 2099
NINES = tuple(10.0**n - 1 for n in range(1, 7))  # 9, 99, ...; below 0 or far above all others they may be codes
FAR = 3.0  # times the largest other number
CODE_FROM = 3  # rows with a code


@dataclass
class Codes:
    """What the numbers of a column may stand for, collected over batches."""

    name: str
    n: int = 0
    is_whole: bool = True
    is_even: bool = True  # rising by the same step from row to row
    step: float | None = None
    last: float = math.nan
    is_dated: bool = True  # numbers such as 20240131 only
    kept: list[NDArray[Any]] = field(default_factory=list)  # numbers of a column whose name says that it numbers rows
    found: dict[float, int] = field(default_factory=dict)  # rows with codes
    lowest: float = math.inf  # of the other numbers
    highest: float = -math.inf

    def __post_init__(self) -> None:
        self.is_named_so = NUMBERS_ROWS.fullmatch(self.name.strip()) is not None

    def add(self, values: NDArray[Any]) -> None:
        """Take more rows into account, NaN where a value is missing."""
        finite = np.isfinite(values)
        present = values if finite.all() else values[finite]
        if not len(present):
            self.is_even &= not len(values)
            return
        first = values[:3].tolist()
        if self.is_even and (len(first) < 3 or first[1] - first[0] == first[2] - first[1]):  # mostly suffices
            with np.errstate(over="ignore", invalid="ignore"):
                steps = np.diff(values, prepend=self.last)[0 if self.n else 1 :]
            if len(steps):
                self.step = float(steps[0]) if self.step is None else self.step
                self.is_even = self.step > 0 and bool((steps == self.step).all())
            self.last = float(values[-1])
        else:
            self.is_even = False
        self.is_whole = self.is_whole and not float(present[0]) % 1 and not (present % 1).any()
        self.is_dated = self.is_dated and self.is_whole and _are_days(present)
        if self.is_named_so and self.is_whole and self.n < NUMBERS_KEPT:
            self.kept.append(present)
        self.n += len(values)
        self._note_codes(present)

    def _note_codes(self, present: NDArray[Any]) -> None:
        for _ in range(2 * len(NINES)):
            if not len(present):
                return
            low, high = float(present.min()), float(present.max())
            code = low if -low in NINES else high if high in NINES else None
            if code is None:
                break
            self.found[code] = self.found.get(code, 0) + int((present == code).sum())
            present = present[present != code]
        self.lowest, self.highest = min(self.lowest, low), max(self.highest, high)

    @property
    def counts_rows(self) -> bool:
        if not self.is_whole or self.n < 2:
            return False
        if self.is_even and self.n >= COUNTED_FROM:
            return True
        numbers = np.concatenate(self.kept) if self.kept else np.array([])
        return self.is_named_so and min(self.n, NUMBERS_KEPT) <= len(numbers) == len(np.unique(numbers))

    @property
    def are_days(self) -> bool:
        return self.is_dated and self.n > 1

    @property
    def of_missing(self) -> list[str]:
        """Numbers that may stand for a missing value: negative ones among others from 0 on, or far above all others."""
        if not math.isfinite(self.lowest):
            return []
        many = [code for code, n in self.found.items() if n >= CODE_FROM]
        above = FAR * max(abs(self.lowest), abs(self.highest), 9)
        return [f"{code:.0f}" for code in many if (code < 0 <= self.lowest) or code > above]


def _are_days(numbers: NDArray[Any]) -> bool:
    if not (numbers.min() >= 1e7 and numbers.max() < 1e8):
        return False
    year, rest = np.divmod(numbers, 10_000)
    month, day = np.divmod(rest, 100)
    ranges = ((year, FIRST_YEAR, LAST_YEAR), (month, 1, 12), (day, 1, 31))
    return bool(all(((low <= part) & (part <= high)).all() for part, low, high in ranges))
