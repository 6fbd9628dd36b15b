"""Levels of discrete columns: the same level whatever holds it, and in a form that files can hold."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

Levels = tuple[Hashable, ...]

MISSING = -1  # the code of a missing level
NO_LEVELS: Levels = (None,)  # stands for the levels of a column without any observed level
TRUTHS: Levels = (False, True)  # declared by every boolean dtype
MOST_WORDS = 20  # a column with more different words, most of them unique, names samples
MOST_LEVELS = 10_000  # a column with more different words names samples in any case
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,99}))(?:\.0*)?")
_DIGITS = re.compile(r"[-+.e0-9]{1,30}")
_SPELLED = {text: truth for truth in (False, True) for text in (str(truth), str(truth).lower(), str(truth).upper())}


def identity(level: Any) -> Hashable:
    """What levels that are the same have in common, whatever holds them: text, truths, numbers or times.

    Examples
    --------
    >>> identity(True) == identity("true") == identity(1) == identity("1.0") == identity(np.float32(1))
    True
    >>> identity("007"), identity("1.10"), identity(datetime(2026, 5, 1))
    ('007', '1.10', '2026-05-01')
    """
    level = plain(level)
    if isinstance(level, str):
        return _SPELLED.get(level, _number(level))
    if isinstance(level, datetime):  # at midnight the same as the date
        return datetime.isoformat(level, " ").removesuffix(" 00:00:00")  # without nanoseconds, as in files
    return level


def _number(text: str) -> str | float:
    """The number that a text spells, or the text: "007", "1.10" and "1_1", which Python reads too, are codes."""
    if whole := _WHOLE.fullmatch(text):
        return int(whole[1])  # exactly, as ids may be long
    with suppress(ValueError):
        if _DIGITS.fullmatch(text) and repr(number := float(text)) == text:
            return number
    return text


def spells_number(cell: Any) -> bool:
    """Whether a text is a number in any spelling."""
    with suppress(ValueError):
        return "_" not in cell and math.isfinite(float(cell))
    return False


def plain(level: Any) -> Any:
    """The level as text, truth, number or time: all that model files hold."""
    if isinstance(level, np.generic):
        level = level.item()
    if level is None or isinstance(level, str | bool | int | float | datetime):
        return level
    if isinstance(level, Real | Decimal):
        return float(level)
    return level.decode(errors="replace") if isinstance(level, bytes) else str(level)


def distinct_levels(levels: Iterable[Any], name: str) -> Levels:
    """Levels in the order given, each once; levels of several types raise an error."""
    found: dict[Hashable, Any] = {}
    for level in map(plain, levels):
        found.setdefault(identity(level), level)
    if len({kind_of(level).replace("truths", "numbers") for level in found.values()}) > 1:
        raise ValueError(f"{name} mixes levels of different types: convert all to text or all to numbers")
    return tuple(found.values()) or NO_LEVELS


def sorted_levels(levels: Iterable[Any], name: str) -> Levels:
    """Sorted levels, each once."""
    found = distinct_levels(levels, name)
    return tuple(sorted(found)) if len(found) > 1 else found  # type: ignore[type-var]


def kind_of(cell: Any) -> str:
    """What a cell holds, in one word."""
    if isinstance(cell, str | bytes):
        return "text"
    if isinstance(cell, bool | np.bool_):
        return "truths"
    if isinstance(cell, Real | Decimal):
        return "numbers"
    return "times" if isinstance(cell, date | time | timedelta | np.datetime64 | np.timedelta64) else "objects"


def names_samples(n_different: int, n_present: int) -> bool:
    """Whether words are so many that they name samples (ids, free text) rather than group them."""
    return n_different > max(MOST_WORDS, n_present / 2) or n_different > MOST_LEVELS
