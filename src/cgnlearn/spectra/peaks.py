"""Peaks of one spectrum, and those that many have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from cgnlearn.spectra.spectrum import Spectrum

Floats = NDArray[np.float64]


def noise_level(spectrum: Spectrum) -> float:
    """The median absolute deviation of the intensities, scaled to be a standard deviation of normal noise."""
    return float(stats.median_abs_deviation(spectrum.intensity, scale="normal"))


def find_peaks(spectrum: Spectrum, half_window: int, noise: float) -> NDArray[np.intp]:
    """Points that are the highest within ``half_window`` to either side, and ``noise`` times as high as the noise.

    Examples
    --------
    >>> intensity = np.ones(99)
    >>> intensity[[20, 25, 70]] = 9, 5, 7
    >>> find_peaks(Spectrum(range(99), intensity), half_window=10, noise=2.0).tolist()
    [20, 70]
    """
    lowest = max(noise * noise_level(spectrum), np.finfo(float).tiny)
    floor = float(np.median(spectrum.intensity))
    found, _ = signal.find_peaks(spectrum.intensity, height=lowest, distance=max(1, half_window))
    return found[spectrum.intensity[found] > floor].astype(np.intp)


def peaks_in_common(
    spectra: Iterable[Spectrum], *, half_window: int, noise: float, tolerance: float, share: float
) -> Floats:
    """m/z of the peaks that `find_peaks` finds in many spectra, by the rule of `common_peaks`."""
    found = [spectrum.mz[find_peaks(spectrum, half_window, noise)] for spectrum in spectra]
    return common_peaks(found, tolerance, share)


def common_peaks(found: Sequence[Floats], tolerance: float, share: float) -> Floats:
    """Where peaks of many spectra stand together: within a relative ``tolerance``, in at least a ``share`` of them.

    Peaks are put in order and cut at gaps until every group is as narrow as the tolerance allows and holds no spectrum
    twice; a group stands at its mean.

    Examples
    --------
    >>> common_peaks([np.array([100.0, 200.0]), np.array([100.1, 300.0])], tolerance=0.002, share=1.0).round(2).tolist()
    [100.05]
    """
    mz = np.concatenate([np.empty(0), *found])
    owner = np.repeat(np.arange(len(found)), [len(peaks) for peaks in found])
    order = np.argsort(mz, kind="stable")
    mz, owner = mz[order], owner[order]
    groups, waiting = [], [(0, len(mz))] if len(mz) else []
    while waiting:
        first, after = waiting.pop()
        group, owners = mz[first:after], owner[first:after]
        middle = group.mean()
        wide = (np.abs(group - middle) > tolerance * middle).any() or len(np.unique(owners)) < len(owners)
        if wide and group[-1] > group[0]:
            cut = first + int(np.argmax(np.diff(group))) + 1
            waiting += [(first, cut), (cut, after)]
        elif len(np.unique(owners)) >= share * len(found):
            groups.append(middle)
    return np.sort(np.array(groups))


def nearest_within(own: Floats, reference: Floats, tolerance: float) -> tuple[Floats, Floats]:
    """Pairs of a peak and a reference that are each other's nearest and within a relative tolerance.

    Examples
    --------
    >>> nearest_within(np.array([99.9, 100.1, 150.0]), np.array([100.08, 200.0]), tolerance=0.002)
    (array([100.1]), array([100.08]))
    """
    if not len(own) or not len(reference):
        return np.empty(0), np.empty(0)
    to_own = _nearest(reference, own)
    kept = np.flatnonzero(
        (_nearest(own, reference)[to_own] == np.arange(len(reference)))
        & (np.abs(own[to_own] - reference) <= tolerance * reference)
    )
    return own[to_own[kept]], reference[kept]


def _nearest(of: Floats, among: Floats) -> NDArray[np.intp]:
    after = np.clip(np.searchsorted(among, of), 1, max(1, len(among) - 1))
    if len(among) == 1:
        return np.zeros(len(of), dtype=np.intp)
    return np.where(of - among[after - 1] <= among[after] - of, after - 1, after).astype(np.intp)


def peak_regions(profile: Floats, prominence: float = 0.01) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The peaks of a profile and the positions that belong to each.

    Parameters
    ----------
    profile : ndarray (positions,)
        Such as the mean of many binned spectra.
    prominence : float
        How far a peak must rise above its surroundings, as a share of the highest one.

    Returns
    -------
    tops : ndarray (peaks,)
        The highest position of each.
    region : ndarray (positions,)
        The number of the peak that each position belongs to; -1 between the peaks.

    Examples
    --------
    >>> tops, region = peak_regions(np.array([0.0, 0.0, 5.0, 1.0, 0.5, 1.0, 9.0, 0.0, 0.0]))
    >>> tops.tolist(), region.tolist()
    ([2, 6], [-1, -1, 0, 0, -1, 1, 1, -1, -1])
    """
    tops, _ = signal.find_peaks(profile, prominence=prominence * float(np.ptp(profile)))
    region = np.full(len(profile), -1, dtype=np.intp)
    if not len(tops):
        return tops.astype(np.intp), region
    _, _, left, right = signal.peak_widths(profile, tops, rel_height=0.95)  # its foot would never end in noise
    valleys = [int(first + np.argmin(profile[first:second])) for first, second in pairwise(tops)]
    starts = np.maximum(np.ceil(left).astype(np.intp), [0, *(valley + 1 for valley in valleys)])
    stops = np.minimum(np.floor(right).astype(np.intp), [*valleys, len(profile) - 1])
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        region[start : stop + 1] = number
    return tops.astype(np.intp), region


def region_ranks(mz: Floats, profile: Floats, evidence: Floats, marks: Floats) -> NDArray[np.intp]:
    """How high the regions around some m/z stand among all, by the evidence of their positions together.

    Parameters
    ----------
    mz, profile, evidence : ndarray (positions,)
        As of binned spectra: where they are, their mean, and what each says on average for the truth.
    marks : ndarray (marks,)
        m/z, such as the true markers of simulated spectra.

    Returns
    -------
    ndarray (marks,)
        1 for the `peak_regions` with most evidence; what is in no region comes after all of them.

    Examples
    --------
    >>> profile, evidence = np.array([0.0, 5.0, 0.0, 9.0, 0.0]), np.array([0.0, 2.0, 0.1, 0.5, 0.0])
    >>> region_ranks(np.arange(5.0), profile, evidence, np.array([1.2, 2.9, 4.0])).tolist()
    [1, 2, 3]
    """
    tops, region = peak_regions(profile)
    inside = region >= 0
    sums = np.bincount(region[inside], evidence[inside], len(tops))
    rank = np.empty(len(tops) + 1, dtype=np.intp)
    rank[np.argsort(-sums, kind="stable")] = np.arange(1, len(tops) + 1)
    rank[-1] = len(tops) + 1  # where -1 points to
    return rank[region[_nearest(marks, mz)]]
