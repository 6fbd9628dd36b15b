"""Quality of raw spectra: how each compares with the others, and whether the classes were measured alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.peaks import find_peaks
from cgnlearn.spectra.spectrum import Spectrum
from cgnlearn.spectra.steps import Baseline, Smooth, SquareRoot

FAR = 3.5  # robust standard deviations of many spectra beyond which one is an outlier (Iglewicz and Hoaglin 1993)
FACTOR = 1.5  # by which an outlier differs at least from the median, as smaller differences matter to nobody
FEWEST = 5  # spectra that one can be compared with
PEAK_LIST = 200  # points; fewer are taken for peaks that were picked, without noise or baseline
N_HIGHEST = 10  # peaks whose median height is the signal
PEAK_NOISE = 6.0  # height of a peak as a multiple of the noise of the processed spectrum
PLATEAU = 3  # neighbouring points at the maximum of a saturated spectrum
STRONG = 0.5  # Cramér's V of a variable that may stand in for the class
PER_LEVEL = 3  # samples of a level, on average; rarer levels tell nothing


class Quality(NamedTuple):
    """Figures of one spectrum; nan where a list of peaks does not tell."""

    n_points: int
    start: float  # m/z of the first and of the last point
    stop: float
    total: float  # sum of the raw intensities (total ion current)
    noise: float  # robust standard deviation of the differences of neighbouring raw points, divided by √2
    signal_to_noise: float  # median height of the ten highest peaks above the baseline, by noise
    baseline: float  # share of the total
    n_peaks: int  # after square roots, smoothing and subtraction of the baseline
    n_saturated: int  # points on plateaus at the maximum
    is_empty: bool  # all intensities are equal


class Remark(NamedTuple):
    """What is unusual about a spectrum."""

    what: str  # a few words, the same for all spectra with this fault
    why: str  # the figures
    advice: str


MEASURES = {  # of which side is a fault, its name, and what to do about it
    "total": {
        -1: ("total ion current low", "Little sample on the spot, or few laser shots: measure it again."),
        1: ("total ion current high", "More sample or laser energy than usual: check for saturation."),
    },
    "noise": {1: ("noise high", "Check the detector gain and the number of shots that were summed.")},
    "signal_to_noise": {-1: ("signal low", "Sum more laser shots, or prepare the spot again.")},
    "baseline": {
        1: ("baseline high", "Too much matrix or salt: wash or dilute the sample, and lower the laser energy.")
    },
    "n_peaks": {-1: ("few peaks", "The spot may hold matrix only: prepare it again, or remove the spectrum.")},
}
WORDS = {
    "total": "total ion current",
    "noise": "noise",
    "signal_to_noise": "signal to noise",
    "baseline": "baseline",
    "n_peaks": "number of peaks",
}
_SCALES = {"baseline": (special.logit, special.expit), "n_peaks": (np.log1p, np.expm1)}
EMPTY = Remark("empty", "all intensities are equal", "Remove the file, or measure the spot again.")


def quality(raw: Spectrum) -> Quality:
    """The figures of a spectrum.

    Examples
    --------
    >>> flat = Spectrum(range(1000), np.full(1000, 7.0))
    >>> quality(flat).total, quality(flat).n_peaks, quality(flat).is_empty
    (7000.0, 0, True)
    """
    return measured(raw)[0]


def measured(raw: Spectrum) -> tuple[Quality, Spectrum]:
    """The figures of a spectrum, and its square roots, smooth and without baseline, that they are of."""
    intensity = raw.intensity
    total, is_empty = float(intensity.sum()), bool(np.ptp(intensity) == 0)
    (roots,) = SquareRoot().transform([raw])
    if len(raw) < PEAK_LIST:
        noise = signal = share = np.nan
        n_peaks, processed = int((intensity > 0).sum()), roots
    else:
        noise = float(stats.median_abs_deviation(np.diff(intensity), scale="normal") / np.sqrt(2))
        (smooth,) = Smooth().transform([roots])
        (processed,) = Baseline().transform([smooth])
        below = np.maximum(smooth.intensity - processed.intensity, 0) ** 2
        tops = find_peaks(processed, half_window=20, noise=PEAK_NOISE)
        heights = np.zeros(N_HIGHEST)  # where there are fewer peaks, the others have no height
        highest = np.sort(smooth.intensity[tops] ** 2 - below[tops])[::-1][:N_HIGHEST]
        heights[: len(highest)] = highest
        signal = float(np.median(heights) / noise) if noise > 0 else np.nan
        share = float(min(below.sum() / total, 1.0)) if total > 0 else np.nan
        n_peaks = 0 if is_empty else len(tops)  # rounding alone may have peaks
    saturated = 0 if is_empty or len(raw) < PEAK_LIST else _on_plateaus(intensity, noise)
    ends = float(raw.mz[0]), float(raw.mz[-1])
    return Quality(len(raw), *ends, total, noise, signal, share, n_peaks, saturated, is_empty), processed


def _on_plateaus(intensity: Floats, noise: float) -> int:
    """Points in runs of at least `PLATEAU` at the maximum, if that is far above the noise."""
    at_top = np.concatenate([[0], intensity == intensity.max(), [0]]).astype(np.int8)
    starts, stops = np.flatnonzero(np.diff(at_top) == 1), np.flatnonzero(np.diff(at_top) == -1)
    lengths = stops - starts
    if intensity.max() < np.median(intensity) + 10 * noise:
        return 0
    return int(lengths[lengths >= PLATEAU].sum())


class Usual(NamedTuple):
    """Between which values spectra are usual."""

    median: float
    low: float
    high: float


def limit(n: int) -> float:
    """Robust standard deviations beyond which one of ``n`` normal values lies as rarely as beyond `FAR` of many.

    The median absolute deviation of few values is itself uncertain: Student's t with half as many degrees of freedom,
    which simulation confirms.

    Examples
    --------
    >>> [round(limit(n), 1) for n in (10, 100, 1000)]
    [9.1, 3.7, 3.5]
    """
    return float(stats.t.isf(stats.norm.sf(FAR), (n - 1) / 2))


def usual(values: Floats, least: float) -> Usual | None:
    """The median and the limits of finite values, at least ``least`` away from it; None if there are too few."""
    finite = values[np.isfinite(values)]
    if len(finite) < FEWEST:
        return None
    median = float(np.median(finite))
    away = max(least, limit(len(finite)) * float(stats.median_abs_deviation(finite, scale="normal")))
    return Usual(median, median - away, median + away)


def figures(found: Sequence[Quality], name: str) -> Floats:
    """A figure of all spectra, nan of empty ones."""
    return np.array([np.nan if of.is_empty else getattr(of, name) for of in found], dtype=float)


def limits(values: Floats, name: str) -> Usual | None:
    """Between which values a figure is usual: logarithms, the log odds of a share, are compared; None if too few."""
    forward, back = _SCALES.get(name, (np.log, np.exp))
    with np.errstate(divide="ignore", invalid="ignore"):
        of = usual(forward(values), np.log(FACTOR))
    if of is None:
        return None
    median, low, high = back(np.array(of)).tolist()
    return Usual(median, float(np.ceil(low)), float(np.floor(high))) if name == "n_peaks" else Usual(median, low, high)


def companions(labels: Sequence[str | None] | None, n: int) -> Iterator[tuple[str | None, NDArray[np.intp]]]:
    """Yield each class and its spectra; None for a class of fewer than `FEWEST`, which are compared with all."""
    names = np.array([""] * n if labels is None else [label or "" for label in labels], dtype=str)
    for name in np.unique(names):
        own = np.flatnonzero(names == name)
        yield (str(name) if name and len(own) >= FEWEST else None), own


def remarks(found: Sequence[Quality], labels: Sequence[str | None] | None = None) -> list[list[Remark]]:
    """What is unusual about each spectrum beside the others, of its class where there are enough.

    Examples
    --------
    >>> spectra = [quality(Spectrum(range(1000), np.arange(1000) % 7 * (1 + (i == 0)) * 5.0)) for i in range(20)]
    >>> [remark.what for remark in remarks(spectra)[0]]
    ['total ion current high']
    """
    told: list[list[Remark]] = [[EMPTY] if of.is_empty else [] for of in found]
    for i, of in enumerate(found):
        if of.n_saturated:
            why = f"{of.n_saturated} points at the highest intensity, side by side"
            told[i].append(Remark("saturated", why, "Lower the laser energy or the gain, and measure it again."))
    for label, own in companions(labels, len(found)):
        for name, sides in MEASURES.items():
            values = figures(found, name)
            between = limits(values if label is None else values[own], name)
            if between is None:
                continue
            for i, value in zip(own.tolist(), values[own].tolist(), strict=True):
                side = -1 if value < between.low else 1 if value > between.high else 0
                if side in sides:
                    what, advice = sides[side]
                    told[i].append(Remark(what, f"{shown(name, value)}; {in_words(name, between, label)}", advice))
    return told


def in_words(name: str, between: Usual, label: str | None = None) -> str:
    """The limits of a figure as words, such as "usually 20 to 60"."""
    of = f" in {label}" if label is not None else ""
    low, high = (shown(name, max(value, 0.0)) for value in (between.low, between.high))
    ends = f"{low} to {high}" if len(MEASURES[name]) == 2 else f"at least {low}" if -1 in MEASURES[name] else ""
    return f"usually{of} {ends or f'at most {high}'}"


def shown(name: str, value: float) -> str:
    """A figure with as many digits as make sense."""
    if not np.isfinite(value):
        return "—"
    if name == "baseline":
        return f"{100 * value:.0f}%"
    return f"{value:,.0f}" if name == "n_peaks" or abs(value) >= 100 else f"{value:.3g}"


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
