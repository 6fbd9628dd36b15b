"""The features of a report: the columns of a table, or the peaks of spectra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.peaks import peak_regions

BETWEEN = "between the peaks"


class Features(NamedTuple):
    """Features, the column that represents each, and the feature of each column."""

    names: list[str]
    shown: list[int | None]  # the highest bin of a peak; None for the bins between the peaks
    of_column: NDArray[np.intp]

    def sums(self, by_column: Floats) -> Floats:
        """Sums over the columns of each feature."""
        return np.bincount(self.of_column, by_column, len(self.names)).astype(np.float64)


def single_columns(names: Sequence[str]) -> Features:
    """Each column as its own feature."""
    return Features(list(names), list(range(len(names))), np.arange(len(names)))


def peaks(X: Any, positions: Floats, axis: str) -> Features:
    """The peaks of the mean spectrum, found in its square root so that a high peak does not hide low ones.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0, 9.0, 1.0, 0.0, 0.0, 7.0, 0.0]])
    >>> peaks(X, np.arange(100.0, 108.0), "m/z").names
    ['m/z 102', 'm/z 106', 'between the peaks']
    """
    profile = np.nan_to_num(mean_spectrum(np.asarray(X, dtype=float)))
    tops, region = peak_regions(np.sqrt(profile - profile.min()))
    digits = max(0, int(np.ceil(-np.log10(np.diff(positions).min())))) if len(positions) > 1 else 1
    names = [f"{axis} {positions[top]:.{min(digits, 4)}f}" for top in tops]
    return Features([*names, BETWEEN], [*tops.tolist(), None], np.where(region < 0, len(tops), region))


def mean_spectrum(values: Floats) -> Floats:
    """The mean of the finite values of each column; NaN without any."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0)
