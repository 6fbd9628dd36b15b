"""Inspection of a folder of raw spectra: figures of each, their correlations, and who differs from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.binning import Bin
from cgnlearn.spectra.folders import Folder, class_warnings
from cgnlearn.spectra.quality import Quality, Remark, companions, measured, remarks, usual
from cgnlearn.spectra.readers import SCAN_ENDINGS, TEXT_ENDINGS
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError

WIDTH = 0.002  # of the bins in which spectra are compared, as a share of m/z: wider than usual errors of calibration
LOWEST = 0.01  # of the last m/z; below are mostly ions of the matrix
COVERED = 0.95  # share of the usual range of m/z that a spectrum has to cover
NEAREST = 5  # spectra of unknown class are compared with these
APART = 0.1  # by which a correlation differs at least from the median
MOST_SHIFTED = 10  # bins: errors of calibration up to 2% are recognised


class Inspected(NamedTuple):
    """One spectrum."""

    file: str
    sample: str
    label: str | None
    quality: Quality
    correlation: float  # with the others; nan if not known
    with_replicates: float  # with the replicate of its sample that is most like it; nan if there is none
    remarks: list[Remark]


@dataclass(frozen=True, eq=False)
class Inspection:
    """What is known about the spectra of a folder."""

    spectra: list[Inspected]
    refused: list[SpectrumError]
    formats: Counter[str]
    mz: Floats  # of the bins
    profiles: Floats  # (spectra, bins): square roots without baseline, of mean 1; nan beyond a spectrum's range
    warnings: list[str]

    @cached_property
    def labels(self) -> list[str | None]:
        """The class of each spectrum, None where it is not known."""
        return [of.label for of in self.spectra]

    @cached_property
    def unusual(self) -> list[int]:
        """Spectra with remarks, those with most first."""
        told = [i for i, of in enumerate(self.spectra) if of.remarks]
        return sorted(told, key=lambda i: -len(self.spectra[i].remarks))

    @cached_property
    def replicates(self) -> dict[str, list[int]]:
        """Samples with several spectra, those that are least alike first."""
        found: dict[str, list[int]] = {}
        for i, of in enumerate(self.spectra):
            found.setdefault(of.sample, []).append(i)
        several = {sample: own for sample, own in found.items() if len(own) > 1}

        def least(sample: str) -> float:
            known = [self.spectra[i].with_replicates for i in several[sample]]
            return min((r for r in known if np.isfinite(r)), default=-1.0)

        return {sample: several[sample] for sample in sorted(several, key=least)}

    def faults(self) -> dict[Remark, list[int]]:
        """The spectra of each kind of remark, most frequent first; the figures of the remarks are those of one."""
        found: dict[str, tuple[Remark, list[int]]] = {}
        for i, of in enumerate(self.spectra):
            for remark in of.remarks:
                found.setdefault(remark.what, (remark, []))[1].append(i)
        return dict(sorted(found.values(), key=lambda pair: -len(pair[1])))


def inspected(folder: Folder) -> Inspection:
    """Read the spectra of a folder one at a time, and compare them; files that cannot be read are listed."""
    found: list[Quality] = []
    binned: list[tuple[int, Floats]] = []
    formats: Counter[str] = Counter()
    axes: list[str] = []
    dates: list[str | None] = []
    scans: list[int | None] = []
    refused: list[SpectrumError] = []
    for raw in folder.spectra(refused=refused.append):
        of, processed = measured(raw)
        found.append(of)
        binned.append(_binned(processed))
        formats[_format(folder.files[-1])] += 1
        axes.append(str(hash(raw.mz.tobytes())))
        dates.append(raw.metadata.get("date"))
        scans.append(raw.metadata.get("scan"))
    if not found:
        raise SpectrumError(f"{folder.path}: none of its {len(refused)} files is a spectrum ({refused[0]})")
    first, after = _common(found)
    profiles = np.array([_placed(start, values, first, after) for start, values in binned])
    mz: Floats = np.power(1 + WIDTH, np.arange(first, after) + 0.5)
    labels = [label.label for label in folder.matched]
    samples = folder.samples
    told = remarks(found, labels)
    covered = np.isfinite(profiles).mean(axis=1)
    ends = [float(np.median([getattr(of, name) for of in found])) for name in ("start", "stop")]
    for i, of in enumerate(found):
        if len(found) > 2 and covered[i] < COVERED:
            why = f"m/z {of.start:,.0f} to {of.stop:,.0f}; usually {ends[0]:,.0f} to {ends[1]:,.0f}"
            told[i].append(Remark("other m/z range", why, "Measure with the same settings, or trim all spectra alike."))
    whole = (covered >= COVERED) & ~np.array([of.is_empty for of in found])
    r = _correlations(profiles, whole)
    others, within = _with_others(r, labels, samples), _with_replicates(r, samples)
    _remark_unlike(told, others, profiles, labels)
    _remark_replicates(told, within)
    several = Counter(folder.files)
    names = [
        f"{file}, scan {scan}" if several[file] > 1 else file for file, scan in zip(folder.files, scans, strict=True)
    ]
    spectra = [
        Inspected(names[i], str(samples[i]), labels[i], found[i], float(others[i]), float(within[i]), told[i])
        for i in range(len(found))
    ]
    dated = [of.date or date for of, date in zip(folder.matched, dates, strict=True)]
    known = [label is not None for label in labels]
    warnings = class_warnings(folder.matched, axes, dated) if all(known) else []
    return Inspection(spectra, refused, formats, mz, profiles, warnings)


def _format(file: str) -> str:
    """The format of a file by its ending; a Bruker spectrum is a folder."""
    place = PurePosixPath(file.lower().removesuffix(".gz"))
    if place.suffix in SCAN_ENDINGS:
        return SCAN_ENDINGS[place.suffix]
    return "text" if place.suffix in TEXT_ENDINGS else "Bruker flex"


def _binned(processed: Spectrum) -> tuple[int, Floats]:
    """Number of the first bin of an axis that is the same for all spectra, and means in the bins from there on."""
    stop = float(processed.mz[-1])
    start = max(float(processed.mz[0]), LOWEST * stop, 1.0)
    if not stop > start:
        return 0, np.empty(0)
    first, last = (int(np.floor(np.log(end) / np.log1p(WIDTH))) for end in (start, stop))
    bins = Bin(WIDTH, start=(1 + WIDTH) ** first, stop=(1 + WIDTH) ** (last + 1), scale="proportional").fit([])
    return first, bins.transform([processed])[0][: last + 1 - first]


def _common(found: Sequence[Quality]) -> tuple[int, int]:
    """The bins between the usual ends of the spectra."""
    stop = float(np.median([of.stop for of in found]))
    start = max(float(np.median([of.start for of in found])), LOWEST * stop, 1.0)
    first, last = (int(np.floor(np.log(max(end, 1.0)) / np.log1p(WIDTH))) for end in (start, stop))
    return first, max(last, first) + 1


def _placed(start: int, values: Floats, first: int, after: int) -> Floats:
    """The bins from ``first`` on, nan where a spectrum has none; the mean is 1 unless all are 0."""
    placed = np.full(after - first, np.nan)
    low, high = max(start, first), min(start + len(values), after)
    if low < high:
        placed[low - first : high - first] = values[low - start : high - start]
        mean = float(np.nanmean(placed))
        placed /= mean if mean > 0 else 1.0
    return placed


def _correlations(profiles: Floats, whole: NDArray[np.bool_]) -> Floats:
    """Correlations of the profiles that cover the range; nan for the others, and of a spectrum with itself."""
    found = np.full((len(profiles), len(profiles)), np.nan, dtype=np.float64)
    shared = np.isfinite(profiles[whole]).all(axis=0)
    if whole.sum() > 1 and shared.sum() > 2:
        centred = profiles[whole][:, shared]
        centred -= centred.mean(axis=1, keepdims=True)
        size = np.linalg.norm(centred, axis=1, keepdims=True)
        centred /= np.where(size > 0, size, 1.0)
        found[np.ix_(whole, whole)] = np.clip(centred @ centred.T, -1.0, 1.0)
    np.fill_diagonal(found, np.nan)
    return found


def _with_others(r: Floats, labels: Sequence[str | None], samples: NDArray[np.str_]) -> Floats:
    """Median correlation with the class, or with the most similar spectra if that is not known or small."""
    found = np.full(len(r), np.nan)
    for label, own in companions(labels, len(r)):
        for i in own:
            among = np.arange(len(r)) if label is None else own
            beside = r[i, among[samples[among] != samples[i]]]
            beside = np.sort(beside[np.isfinite(beside)])
            if len(beside):
                found[i] = np.median(beside if label is not None else beside[-NEAREST:])
    return found


def _with_replicates(r: Floats, samples: NDArray[np.str_]) -> Floats:
    """Correlation with the most similar spectrum of the same sample."""
    found = np.full(len(r), np.nan)
    for sample in np.unique(samples):
        own = np.flatnonzero(samples == sample)
        for i in own:
            beside = r[i, own]
            if np.isfinite(beside).any():
                found[i] = np.nanmax(beside)
    return found


def lowest_usual(correlations: Floats) -> float | None:
    """The correlation below which one is an outlier, by Fisher's transform; None if there are too few."""
    between = usual(np.arctanh(np.clip(correlations, -0.999999, 0.999999)), 0.0)
    return between and float(min(np.tanh(between.low), np.tanh(between.median) - APART))


def _remark_unlike(told: list[list[Remark]], others: Floats, profiles: Floats, labels: Sequence[str | None]) -> None:
    for label, own in companions(labels, len(told)):
        among = np.arange(len(told)) if label is None else own
        least = lowest_usual(others[among])
        if least is None:
            continue
        typical = np.nanmedian(profiles[among], axis=0)
        for i in own[others[own] < least]:
            beside = "" if label is None else f" in {label}"
            why = f"correlation {others[i]:.2f}; usually{beside} at least {least:.2f}".replace("-", "−")
            shift = _shift(profiles[i], typical, least)
            if shift:
                drift = f"about {100 * shift * WIDTH:+.1f}% of m/z off".replace("-", "−")
                told[i].append(
                    Remark("m/z shifted", f"{drift}; {why}", "Calibrate the instrument, or align the spectra (Align).")
                )
            else:
                advice = "Check the label, the species and the spot; look at it below."
                told[i].append(Remark("unlike the others", why, advice))


def _shift(profile: Floats, typical: Floats, least: float) -> int:
    """By how many bins a profile is shifted, if it is like the typical one without that; otherwise 0."""
    best, at = least, 0
    n = len(profile)
    for lag in range(-MOST_SHIFTED, MOST_SHIFTED + 1):
        own = profile[max(lag, 0) : n + min(lag, 0)]
        other = typical[max(-lag, 0) : n + min(-lag, 0)]
        both = np.isfinite(own) & np.isfinite(other)
        if both.sum() > 2 and own[both].std() > 0 and other[both].std() > 0:
            r = float(np.corrcoef(own[both], other[both])[0, 1])
            if r > best:
                best, at = r, lag
    return at


def _remark_replicates(told: list[list[Remark]], within: Floats) -> None:
    least = lowest_usual(within)
    for i in np.flatnonzero(within < (-1.0 if least is None else least)):
        why = f"correlation {within[i]:.2f} at best; usually at least {least:.2f}".replace("-", "−")
        advice = "Compare the replicates below; measure the sample again if none of them is clearly right."
        told[i].append(Remark("unlike its replicates", why, advice))
