"""Quality of raw spectra: how each compares with the others, and whether the classes were measured alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.peaks import find_peaks
from cgnlearn.spectra.spectrum import Spectrum

FAR = 3.5  # robust standard deviations beyond which a spectrum is an outlier (Iglewicz and Hoaglin 1993)
STRONG = 0.5  # Cramér's V of a variable that may stand in for the class
PER_LEVEL = 3  # samples of a level, on average; rarer levels tell nothing


class Quality(NamedTuple):
    """Figures of one spectrum."""

    total: float  # sum of the raw intensities (total ion current)
    noise: float  # robust standard deviation of the differences of neighbouring raw points, divided by √2
    n_peaks: int  # of the processed spectrum


def quality(raw: Spectrum, processed: Spectrum) -> Quality:
    """The figures of a spectrum before and after the steps that learn nothing.

    Examples
    --------
    >>> flat = Spectrum(range(100), np.full(100, 7.0))
    >>> quality(flat, flat)
    Quality(total=700.0, noise=0.0, n_peaks=0)
    """
    rises = np.diff(raw.intensity)
    noise = float(stats.median_abs_deviation(rises, scale="normal") / np.sqrt(2)) if len(rises) else 0.0
    return Quality(float(raw.intensity.sum()), noise, len(find_peaks(processed, half_window=20, noise=2.0)))


def remarks(found: Sequence[Quality]) -> list[str]:
    """What is unusual about each spectrum, such as "total intensity low"; empty for the others."""
    total, noise, n_peaks = np.array(found, dtype=float).T
    words: list[list[str]] = [[] for _ in found]
    with np.errstate(divide="ignore"):
        measures = {"total intensity": np.log(np.maximum(total, 0)), "noise": np.log(noise), "number of peaks": n_peaks}
    for name, values in measures.items():
        for row, z in enumerate(_robust_z(values)):
            if abs(z) > FAR:
                words[row].append(f"{name} {'high' if z > 0 else 'low'}")
    return [", ".join(of) for of in words]


def _robust_z(values: Floats) -> Floats:
    """Distances from the median in robust standard deviations; 0 where most values are equal."""
    finite = np.isfinite(values)
    if not finite.any():
        return np.zeros(len(values))
    spread = float(stats.median_abs_deviation(values[finite], scale="normal"))
    away = np.where(finite, values, np.nanmin(values[finite]) - 10 * (spread + 1)) - np.median(values[finite])
    return away / spread if spread > 0 else np.zeros(len(values))


def confounded(labels: Sequence[str], samples: Sequence[str], by: Mapping[str, Sequence[str | None]]) -> list[str]:
    """Sentences about variables, such as the date, that go with the class: a model may recognise them instead.

    The first spectrum of each sample counts; Cramér's V without its bias (Bergsma 2013).

    Examples
    --------
    >>> confounded(list("aaaabbbb"), range(8), {"date": ["Mon"] * 4 + ["Tue"] * 4})
    ['The class goes with the date (Cramér’s V 1.00): a model may recognise the date instead of the class.']
    """
    first = np.unique(np.asarray(samples).astype(str), return_index=True)[1]
    classes = np.asarray(labels).astype(str)[first]
    found = []
    for name, values in by.items():
        levels = np.array([str(value) for value in values])[first]
        n_levels = len(np.unique(levels))
        if any(value is None for value in values) or not 1 < n_levels <= len(first) / PER_LEVEL:
            continue
        v, p = _association(classes, levels)
        if v >= STRONG and p < 0.01:
            found.append(
                f"The class goes with the {name} (Cramér’s V {v:.2f}): a model may recognise the {name} instead of "
                "the class."
            )
    return found


def _association(first: NDArray[np.str_], second: NDArray[np.str_]) -> tuple[float, float]:
    """Cramér's V of two variables, corrected for its bias, and the p value of independence."""
    rows, columns = (np.unique(of, return_inverse=True)[1] for of in (first, second))
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    n, (r, k) = table.sum(), table.shape
    if min(r, k) < 2:
        return 0.0, 1.0
    chi2, p, _, _ = stats.chi2_contingency(table, correction=False)
    phi = max(0.0, chi2 / n - (r - 1) * (k - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return float(min(np.sqrt(phi / most), 1.0)) if most > 0 else 0.0, float(p)


class Survey(NamedTuple):
    """What a report says about raw spectra."""

    files: list[str]
    quality: list[Quality]
    remarks: list[str]  # one for each spectrum, empty if nothing is unusual
    warnings: list[str]
    example: list[tuple[str, Spectrum]]  # the first spectrum, raw and after each step
