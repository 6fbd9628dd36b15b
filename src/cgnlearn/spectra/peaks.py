"""Peaks of a spectrum, peaks common to many spectra, and regions around peaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.spectrum import Spectrum


def find_peaks(spectrum: Spectrum, half_window: int, noise: float) -> NDArray[np.intp]:
    """Points that are the highest of ``half_window`` on either side, and at least ``noise`` times the noise level."""
    level = float(stats.median_abs_deviation(spectrum.intensity, scale="normal"))
    height = max(noise * level, np.finfo(float).tiny)
    tops, _ = signal.find_peaks(spectrum.intensity, height=height, distance=max(1, half_window))
    return tops[spectrum.intensity[tops] > np.median(spectrum.intensity)].astype(np.intp)


def peaks_in_common(
    spectra: Iterable[Spectrum], *, half_window: int, noise: float, tolerance: float, share: float
) -> Floats:
    """m/z of the peaks common to many spectra: `find_peaks` in each, then `common_peaks`."""
    peaks = [spectrum.mz[find_peaks(spectrum, half_window, noise)] for spectrum in spectra]
    return common_peaks(peaks, tolerance, share)


def common_peaks(peaks: Sequence[Floats], tolerance: float, share: float) -> Floats:
    """Mean m/z of the groups of peaks within a relative ``tolerance`` that at least a ``share`` of spectra have.

    The sorted peaks are split at their widest distance until every group is within the tolerance and has at most one
    peak of a spectrum.
    """
    mz = np.concatenate([np.empty(0), *peaks])
    spectrum = np.repeat(np.arange(len(peaks)), [len(own) for own in peaks])
    order = np.argsort(mz, kind="stable")
    mz, spectrum = mz[order], spectrum[order]
    means, pending = [], [(0, len(mz))] if len(mz) else []
    while pending:
        start, stop = pending.pop()
        group, n_spectra = mz[start:stop], len(np.unique(spectrum[start:stop]))
        mean = group.mean()
        is_wide = (np.abs(group - mean) > tolerance * mean).any() or n_spectra < len(group)
        if is_wide and group[-1] > group[0]:
            middle = start + int(np.argmax(np.diff(group))) + 1
            pending += [(start, middle), (middle, stop)]
        elif n_spectra >= share * len(peaks):
            means.append(mean)
    return np.sort(np.array(means))


def nearest_within(own: Floats, reference: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Pairs of a peak and a reference peak that are mutually nearest and within a relative tolerance."""
    if not len(own) or not len(reference):
        return np.empty(0), np.empty(0)
    to_own = _nearest(reference, own)
    kept = np.flatnonzero(
        (_nearest(own, reference)[to_own] == np.arange(len(reference)))
        & (np.abs(own[to_own] - reference) <= tolerance * reference)
    )
    return own[to_own[kept]], reference[kept]


def _nearest(of: Floats, among: Floats) -> NDArray[np.intp]:
    if len(among) == 1:
        return np.zeros(len(of), dtype=np.intp)
    after = np.clip(np.searchsorted(among, of), 1, len(among) - 1)
    return np.where(of - among[after - 1] <= among[after] - of, after - 1, after).astype(np.intp)


def peak_regions(profile: Floats, prominence: float = 0.01) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The peaks of a profile, such as the mean of binned spectra, and the peak of each position, -1 between peaks.

    A peak has a prominence of at least a share of the profile's range.
    """
    tops, _ = signal.find_peaks(profile, prominence=prominence * float(np.ptp(profile)))
    region = np.full(len(profile), -1, dtype=np.intp)
    if not len(tops):
        return tops.astype(np.intp), region
    _, _, left, right = signal.peak_widths(profile, tops, rel_height=0.95)  # noise can hide the foot
    valleys = [int(first + np.argmin(profile[first:second])) for first, second in pairwise(tops)]
    starts = np.maximum(np.ceil(left).astype(np.intp), [0, *(valley + 1 for valley in valleys)])
    stops = np.minimum(np.floor(right).astype(np.intp), [*valleys, len(profile) - 1])
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        region[start : stop + 1] = number
    return tops.astype(np.intp), region


def region_ranks(mz: Floats, profile: Floats, evidence: Floats, marks: Floats) -> NDArray[np.intp]:
    """Ranks of the `peak_regions` at ``marks`` (m/z, such as true markers) by the sum of evidence over their positions.

    ``mz``, ``profile`` and ``evidence`` (positions,) are the axis of binned spectra, their mean, and the mean log
    evidence of each position for the true class. Rank 1 has most evidence; a mark in no region ranks after all.
    """
    tops, region = peak_regions(profile)
    inside = region >= 0
    sums = np.bincount(region[inside], evidence[inside], len(tops))
    rank = np.empty(len(tops) + 1, dtype=np.intp)
    rank[np.argsort(-sums, kind="stable")] = np.arange(1, len(tops) + 1)
    rank[-1] = len(tops) + 1  # of positions in no region, -1
    return rank[region[_nearest(marks, mz)]]
