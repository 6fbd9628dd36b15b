"""Options of the command line in messages, ready to be pasted into a shell, and the lists of names in them."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Collection, Sequence
from itertools import chain

PLAIN = re.compile(r"[\w@%+=:,./-]+")  # means itself in a shell


def option(name: str, *values: str, more: bool = False) -> str:
    """An option with one value or a list of them; ``more``: of which these are the first."""
    written = io.StringIO()
    csv.writer(written, lineterminator="").writerow(values)
    text = written.getvalue()
    return f"{name} {text if PLAIN.fullmatch(text) else shlex.quote(text)}{',…' if more else ''}"


def listed_values(given: Sequence[str], names: Collection[str] = ()) -> tuple[str, ...]:
    """The values of a list separated by commas, or of several; quotes keep a comma, as does being one of ``names``."""
    found: list[str] = []
    for values in given:
        lines = csv.reader(io.StringIO(values, newline=""), skipinitialspace=True)
        split = [values] if values.strip() in names else chain.from_iterable(lines)
        found += [value.strip() for value in split if value.strip()]
    return tuple(found)
