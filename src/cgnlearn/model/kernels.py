"""Compiled loops over rows. They hold no formula of the model: only forward substitution and products.

Importing this module imports numba, which takes half a second: import it where a large job begins.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Result = TypeVar("Result")

TILE = 128  # rows whose numbers stay in the first-level cache together
FULL = 1e150  # a product beyond this is turned into a logarithm before it can overflow


def compiled(function: Function) -> Function:
    """Compile on the first call and keep the result on disk; without a place to write, only in memory."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        warnings.warn(  # as if from here, so that it is shown once and not for every function
            "compiled code cannot be kept on disk, so every process compiles it anew: "
            "set NUMBA_CACHE_DIR to a folder that can be written",
            stacklevel=1,
        )
        return numba.njit(**options)(function)


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


@compiled
def gathered_leverages(
    values: Any,
    rows: Any,
    columns: Any,
    origin: Any,
    per_unit: Any,
    farthest: float,
    centre: Any,
    factor: Any,
    least: Any,
    n_given: int,
    logs: bool,
    given: Any,
    whole: Any,
) -> None:
    """Add to ``given`` and ``whole`` (classes, rows), over all blocks, the leverage h before and after the block's
    own members: Σ ln h if ``logs``, else Σ h.

    ``values`` is the table; ``columns``, ``origin`` and ``per_unit`` are (blocks, members); ``centre`` (classes,
    blocks, members); ``factor`` (classes, blocks, members, members); ``least`` (classes,).
    """
    n_classes, n_blocks, size = centre.shape
    standard = np.empty((size, TILE))
    white = np.empty((size, TILE))
    leverage = np.empty(TILE)
    products = np.empty((2, n_classes, TILE))
    for start in range(0, len(rows), TILE):
        n = min(TILE, len(rows) - start)
        products[:] = 1.0
        for block in range(n_blocks):
            for i in range(size):
                column, zero, scale = columns[block, i], origin[block, i], per_unit[block, i]
                for t in range(n):
                    y = (values[rows[start + t], column] - zero) * scale
                    standard[i, t] = min(max(y, -farthest), farthest)
            for c in range(n_classes):
                leverage[:n] = least[c]
                for i in range(size):
                    if i == n_given and i > 0:
                        _gather(leverage, n, products[0, c], given[c, start : start + n], logs)
                    middle = centre[c, block, i]
                    for t in range(n):
                        white[i, t] = standard[i, t] - middle
                    for j in range(i):
                        slope = factor[c, block, i, j]
                        for t in range(n):
                            white[i, t] -= slope * white[j, t]
                    shrink = 1.0 / factor[c, block, i, i]
                    for t in range(n):
                        white[i, t] *= shrink
                        leverage[t] += white[i, t] * white[i, t]
                _gather(leverage, n, products[1, c], whole[c, start : start + n], logs)
        if logs:
            for c in range(n_classes):
                for t in range(n):
                    if n_given:
                        given[c, start + t] += np.log(products[0, c, t])
                    whole[c, start + t] += np.log(products[1, c, t])


@compiled
def _gather(leverage: Any, n: int, product: Any, total: Any, logs: bool) -> None:
    """Multiply into the product (a logarithm costs ten times as much), or add to the total."""
    if not logs:
        for t in range(n):
            total[t] += leverage[t]
        return
    full = 0
    for t in range(n):
        full += product[t] * leverage[t] > FULL
    if full == 0:
        for t in range(n):
            product[t] *= leverage[t]
        return
    for t in range(n):
        total[t] += np.log(product[t]) + np.log(leverage[t])
        product[t] = 1.0
