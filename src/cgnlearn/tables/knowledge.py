"""Knowledge from elsewhere as files: reference ranges, and published tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.ranges import Range
from cgnlearn.networks.statistics import Statistics
from cgnlearn.tables.columns import labels, only_numbers
from cgnlearn.tables.formats import Rows, Source, source_of

RANGES = ("class", "feature", "low", "high", "worth")
DEFAULT_WORTH = 20.0
SUMMARY = ("class", "feature", "level", "n", "mean", "sd")


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
        each = zip(classes, features, low.tolist(), high.tolist(), worth.tolist(), strict=True)
        return Prior(ranges=tuple(Range.checked(*one) for one in each))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_summary(path: Path, schema: Schema | None = None) -> Statistics:
    """Read a published table: a row for each class and feature, or each class, feature and level.

    ``n`` is the number of samples of the class or, where there is a level, of those that have it. Standard deviations
    have the divisor n - 1.
    """
    source = source_of(path)
    _require(source, path, ("class", "feature", "n"), SUMMARY)
    rows = source.whole
    classes, features = _words(rows, "class"), _words(rows, "feature")
    n = _numbers(rows, "n", "it is a number of samples")
    empty = np.full(len(n), np.nan)
    mean, sd = (only_numbers(rows, name, "it is a number") if name in source.names else empty for name in SUMMARY[4:])
    found = labels(rows, "level") if "level" in source.names else None
    of_class: dict[str, float] = {}
    means: dict[str, dict[str, float]] = {}
    deviations: dict[str, dict[str, float]] = {}
    counts: dict[str, dict[str, dict[str, float]]] = {}
    for row, (label, feature) in enumerate(zip(classes, features, strict=True)):
        level = None if found is None or found.codes[row] < 0 else str(found.levels[found.codes[row]])
        where = f"{path}, {rows.place(row)}"
        if (level is None) == bool(np.isnan(mean[row])):
            raise ValueError(f"{where}: a row has either a mean and an sd, or a level")
        into = means.setdefault(feature, {}) if level is None else counts.setdefault(feature, {}).setdefault(level, {})
        if label in into:
            raise ValueError(f"{where}: class {label!r} has another row for {feature!r}: keep one")
        into[label] = float(n[row] if level is not None else mean[row])
        if level is None:
            deviations.setdefault(feature, {})[label] = float(sd[row])
            if of_class.setdefault(label, float(n[row])) != n[row]:
                raise ValueError(
                    f"{where}: class {label!r} has {n[row]:g} samples here and {of_class[label]:g} before: features "
                    "with missing values cannot be taken from a table, so remove the feature"
                )
    for label in dict.fromkeys(classes):
        # Without a continuous feature, the levels of the first discrete one say how many there are.
        first = next(iter(counts.values()), {})
        of_class.setdefault(label, sum(by_class.get(label, 0.0) for by_class in first.values()))
    for by_level in counts.values():
        for by_class in by_level.values():
            for label in of_class:
                by_class.setdefault(label, 0.0)  # tables often omit a level that a class does not have
    try:
        return Statistics.from_summary(of_class, means, deviations, counts, schema=schema)
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
