"""Faults of cgnlearn itself: exceptions that are no message about data, files or options."""

from __future__ import annotations

import platform
import shlex
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

MESSAGES = (ValueError, OSError, RuntimeError, ImportError, MemoryError)  # which libraries raise with a sentence
FAULTS = (NotImplementedError, RecursionError)
OURS = Path(__file__).parents[1]
NAME = "cgnlearn-traceback.txt"


def is_fault(error: Exception) -> bool:
    """Whether an exception, such as a KeyError, says nothing to a user."""
    from numpy.linalg import LinAlgError

    last = traceback.extract_tb(error.__traceback__)[-1:]
    if isinstance(error, (TypeError, AttributeError)):  # ours have a sentence, others do not
        return not any(Path(at.filename).is_relative_to(OURS) and (at.line or "").startswith("raise") for at in last)
    if any("scipy" in Path(at.filename).parts for at in last):
        return True  # its words are about arguments that no user has given
    return not isinstance(error, MESSAGES) or isinstance(error, (*FAULTS, LinAlgError))


def message_of(fault: Exception, words: Sequence[str]) -> str:
    """Write the traceback to a file and return the message that names it."""
    named = f"{type(fault).__name__}: {fault}".split("\n")[0]
    path = _written(fault, words)
    return f"a fault of cgnlearn ({named}): please report it" + (f" with the file {path}" if path else "")


def _written(fault: Exception, words: Sequence[str]) -> Path | None:
    """The file with the traceback: beside the output, in this folder, or among temporary files."""
    from cgnlearn import __version__
    from cgnlearn.files import NotWrittenError, write_whole

    system = f"cgnlearn {__version__}, Python {platform.python_version()}, {platform.platform()}"
    text = f"{system}\n{shlex.join(['cgnlearn', *words])}\n\n{''.join(traceback.format_exception(fault))}"
    beside = getattr(fault, "path", None)
    for folder in (*([] if beside is None else [Path(beside).parent]), Path(), Path(tempfile.gettempdir())):
        try:
            write_whole(folder / NAME, text)
        except NotWrittenError:
            continue
        return folder / NAME
    return None
