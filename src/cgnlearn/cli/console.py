"""The terminal as it is: names are printed as they stand, and signs that it lacks are written with those it has."""

from __future__ import annotations

import codecs
import sys
from typing import Any

INSTEAD = {"±": "+-", "–": "-", "−": "-", "—": "-", "…": "...", "×": "x", "·": ".", "’": "'", "“": '"', "”": '"'}


def console(*, stderr: bool = False, **more: Any) -> Any:
    """A console of rich that takes brackets and colons in names for what they are."""
    from rich.console import Console

    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, **more)


def text_column(text: str) -> Any:
    """A column of a progress bar, which takes brackets for what they are."""
    from rich.progress import TextColumn

    return TextColumn(text, markup=False)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    plain = "".join(INSTEAD.get(sign, sign) for sign in signs)
    return plain.encode(error.encoding, "backslashreplace").decode(error.encoding), error.end


def never_fail() -> None:
    """Let both streams replace what their encoding lacks, as results must not be lost for a sign."""
    codecs.register_error("cgnlearn", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.errors != "cgnlearn":
            stream.reconfigure(errors="cgnlearn")
