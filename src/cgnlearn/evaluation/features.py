"""What a report tells of: the columns of a table, or the peaks of spectra to which their bins are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.peaks import peak_regions

BETWEEN = "between the peaks"


class Features(NamedTuple):
    """Names of what is told of, with the column that shows each, and to which of them each column belongs."""

    names: list[str]
    shown: list[int | None]  # a peak is shown by its highest bin; what lies between the peaks by none
    of_column: NDArray[np.intp]

    def gathered(self, by_column: Floats) -> Floats:
        """Sums over the columns of each feature."""
        return np.bincount(self.of_column, by_column, len(self.names)).astype(np.float64)


def columns(names: Sequence[str]) -> Features:
    """Every column by itself."""
    return Features(list(names), list(range(len(names))), np.arange(len(names)))


def peaks(X: Any, positions: Floats, axis: str) -> Features:
    """The peaks of the mean of all spectra, found in its square root: else one high peak would hide all low ones.

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
    """The mean of each column over the cells that are there; NaN where there is none."""
    there = np.isfinite(values)
    n = there.sum(axis=0)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0)
