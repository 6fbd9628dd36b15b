"""How loops are compiled, kept on disk and run side by side."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Cache(FunctionCache):
    """Compiled code kept on disk, which does without the disk as soon as that fails.

    A full or read-only disk and damaged files would else stop the call that met them. Compiled code holds that of the
    functions it calls, which stand in this folder too: a change of any file here is a reason to compile anew.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = _stamp()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for a signature; None, and a new start, if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # damaged files raise whatever their bytes happen to mean
            self._forget()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if that is possible."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception:
            self._forget()
            self.disable()  # type: ignore[no-untyped-call]
            _warn_of_the_disk()

    def _forget(self) -> None:
        """Remove the index, which works on a full disk: it may name files that are damaged or of older code."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


@cache
def _stamp() -> str:
    """A checksum of all files of this folder."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _warn_of_the_disk() -> None:
    """Once, not for every function."""
    warnings.warn(
        "compiled code cannot be kept on disk, so every process compiles it anew: "
        "set NUMBA_CACHE_DIR to a folder that can be written",
        stacklevel=1,
    )


def compiled(function: Function) -> Function:
    """Compile on the first call and keep the result on disk; without a place to write, only in memory."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(function)
    try:
        dispatcher._cache = _Cache(function)
    except (RuntimeError, OSError):
        _warn_of_the_disk()
    return cast(Function, dispatcher)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results for all items, in order, computed side by side.

    Threads of our own, as those of numba's cheapest layer abort the process when two Python threads meet in it.
    ``NUMBA_NUM_THREADS`` limits their number.
    """
    listed = list(items)
    n_threads = min(len(listed), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if n_threads < 2:
        return [function(item) for item in listed]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, listed))
