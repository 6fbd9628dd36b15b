"""Knowledge from elsewhere as files: reference ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.prior import Prior
from cgnlearn.tables.columns import labels, only_numbers
from cgnlearn.tables.formats import Rows, Source, source_of

RANGES = ("class", "feature", "low", "high", "worth")
DEFAULT_WORTH = 20.0


def read_prior(path: Path) -> Prior:
    """Read reference ranges: a row for each class and feature, with low, high and worth (by default 20)."""
    source = source_of(path)
    _require(source, path, RANGES[:4], RANGES)
    rows = source.whole
    classes, features = (_words(rows, name) for name in RANGES[:2])
    low, high = (_numbers(rows, name, "limits are numbers") for name in RANGES[2:4])
    worth = np.full(len(low), np.nan)
    if "worth" in source.names:
        worth = only_numbers(rows, "worth", "it is a number of samples")
    worth = np.where(np.isnan(worth), DEFAULT_WORTH, worth)
    seen: set[tuple[str, str]] = set()
    for row, pair in enumerate(zip(classes, features, strict=True)):
        if pair in seen:
            raise ValueError(
                f"{path}, {rows.place(row)}: class {pair[0]!r} has another range for {pair[1]!r}: keep one"
            )
        seen.add(pair)
    try:
        return Prior(ranges=list(zip(classes, features, low.tolist(), high.tolist(), worth.tolist(), strict=True)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _require(source: Source, path: Path, needed: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Raise ValueError unless the file has the needed columns and no unknown ones."""
    for name in needed:
        if name not in source.names:
            raise ValueError(f"{path}: there is no column {name!r}: its columns must be {', '.join(known)}")
    for name in source.names:
        if name not in known:
            raise ValueError(f"{path}: the column {name!r} is unknown: its columns must be {', '.join(known)}")


def _words(rows: Rows, name: str) -> list[str]:
    """A column that must hold a word in every row."""
    found = labels(rows, name)
    _refuse_empty(rows, name, found.codes < 0)
    return [str(found.levels[code]) for code in found.codes]


def _numbers(rows: Rows, name: str, why: str) -> Floats:
    """A column that must hold a number in every row."""
    found = only_numbers(rows, name, why)
    _refuse_empty(rows, name, np.isnan(found))
    return found


def _refuse_empty(rows: Rows, name: str, empty: NDArray[np.bool_]) -> None:
    if empty.any():
        at = rows.place(int(np.argmax(empty)))
        raise ValueError(f"{rows.path}, {at}: the column {name!r} has no value: fill it in")
