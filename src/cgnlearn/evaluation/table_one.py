"""Table 1 of a paper: the features by class, with their missing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_LEVELS = 6  # listed; rarer ones are one line


class TableRow(NamedTuple):
    """A feature, or a level of one."""

    name: str  # empty for all levels but the first
    what: str  # "median (quartiles)", or the level
    overall: str
    by_class: list[str]
    n_missing: int
    missing_by_class: list[float]  # shares


def table_one(X: Any, true: NDArray[np.intp], n_classes: int, columns: Sequence[int] | None = None) -> list[TableRow]:
    """Rows of Table 1 of a data frame; ``true`` has the class of each sample as a position; None: all columns.

    Numbers: median and quartiles. Levels: count and share of the known values, the most frequent first.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [50.0, 60.0, 70.0, None], "sex": ["f", "m", "f", "f"]})
    >>> for row in table_one(X, np.array([0, 0, 1, 1]), 2):
    ...     print(row.name, row.what, row.overall, row.by_class, row.n_missing)
    age median (quartiles) 60 (55 to 65) ['55 (52.5 to 57.5)', '70 (70 to 70)'] 1
    sex f 3 (75%) ['1 (50%)', '2 (100%)'] 0
     m 1 (25%) ['1 (50%)', '0 (0%)'] 0
    """
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    masks = [true == code for code in range(n_classes)]
    rows = []
    for position in range(X.shape[1]) if columns is None else columns:
        series = X.iloc[:, position]
        missing = series.isna().to_numpy()
        n_missing = int(missing.sum())
        shares = [float(missing[of].mean()) if of.any() else 0.0 for of in masks]
        name = str(X.columns[position])
        if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
            values = series.to_numpy(dtype=float, na_value=np.nan)
            cells = [_quartiles(values[of & ~missing]) for of in (np.ones(len(values), bool), *masks)]
            rows.append(TableRow(name, "median (quartiles)", cells[0], cells[1:], n_missing, shares))
            continue
        words = np.array([None if gone else str(value) for value, gone in zip(series, missing, strict=True)], object)
        levels, n = np.unique(words[~missing].astype(str), return_counts=True)
        order = np.argsort(-n, kind="stable")
        listed = levels[order[:MOST_LEVELS]].tolist() if len(levels) > MOST_LEVELS + 1 else levels[order].tolist()
        others = len(levels) - len(listed)
        for number, level in enumerate([*listed, *([None] if others else [])]):
            has = np.isin(words, [*listed, None], invert=True) if level is None else words == level
            cells = [_share(has[of], ~missing[of]) for of in (np.ones(len(words), bool), *masks)]
            what = f"{others} others" if level is None else str(level)
            more = (n_missing, shares) if not number else (0, [0.0] * n_classes)
            rows.append(TableRow("" if number else name, what, cells[0], cells[1:], *more))
        if not len(levels):
            rows.append(TableRow(name, "no values", "—", ["—"] * n_classes, n_missing, shares))
    return rows


def _quartiles(values: NDArray[np.float64]) -> str:
    if not len(values):
        return "—"
    low, middle, high = (_short(value) for value in np.quantile(values, [0.25, 0.5, 0.75]).tolist())
    return f"{middle} ({low} to {high})"


def _short(value: float) -> str:
    """A number with four digits, without an exponent where that is readable."""
    short = f"{value:.4g}"
    return (f"{float(short):,.0f}" if "e+" in short and abs(value) < 1e9 else short).replace("-", "−")


def _share(has: NDArray[np.bool_], known: NDArray[np.bool_]) -> str:
    n, n_known = int(has.sum()), int(known.sum())
    return f"{n:,} ({100 * n / n_known:.0f}%)" if n_known else "—"
