"""Peaks of one spectrum, and those that many have in common."""

from __future__ import annotations

from collections.abc import Sequence

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
