"""Compilation of loops, their cache on disk, and threads."""

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
    """Cache of compiled code that falls back to memory if the disk fails.

    A full or read-only disk or damaged files must not stop a call. Compiled code includes that of the functions it
    calls, which are all in this folder: if any file here changes, everything is compiled again.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = _stamp()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled signature; None, after clearing the index, if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except Exception:  # damaged files raise whatever their bytes happen to mean
            self._clear()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled signature if possible."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception:
            self._clear()
            self.disable()  # type: ignore[no-untyped-call]
            _warn_of_the_disk()

    def _clear(self) -> None:
        """Remove the index, which works on a full disk: it may refer to damaged or outdated files."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


@cache
def _stamp() -> str:
    """Checksum of all files of this folder."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


@cache
def _warn_of_the_disk() -> None:
    """Warn once, not for every function."""
    warnings.warn(
        "compiled code cannot be cached on disk, so every process compiles it again: "
        "set NUMBA_CACHE_DIR to a writable folder",
        stacklevel=1,
    )


def compiled(function: Function) -> Function:
    """Compile on the first call and cache the result on disk, or in memory if the disk is not writable."""
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(function)
    try:
        dispatcher._cache = _Cache(function)
    except (RuntimeError, OSError):
        _warn_of_the_disk()
    return cast(Function, dispatcher)


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Return the results for all items, in order, computed in threads.

    Not in those of numba, whose default layer aborts the process if two Python threads enter it. ``NUMBA_NUM_THREADS``
    limits their number.
    """
    listed = list(items)
    n_threads = min(len(listed), numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if n_threads < 2:
        return [function(item) for item in listed]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, listed))
