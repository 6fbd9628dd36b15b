"""Peaks and their regions in small examples computed by hand."""

import numpy as np

from cgnlearn.spectra import Spectrum, preset
from cgnlearn.spectra.peaks import common_peaks, find_peaks, nearest_within, peak_regions, region_ranks
from cgnlearn.spectra.presets import parted


def test_a_peak_is_the_highest_of_its_window():
    intensity = np.ones(99)
    intensity[[20, 25, 70]] = 9, 5, 7
    assert find_peaks(Spectrum(range(99), intensity), half_window=10, noise=2.0).tolist() == [20, 70]


def test_common_peaks_are_those_within_the_tolerance():
    peaks = [np.array([100.0, 200.0]), np.array([100.1, 300.0])]
    assert common_peaks(peaks, tolerance=0.002, share=1.0).round(2).tolist() == [100.05]


def test_only_mutually_nearest_peaks_are_paired():
    own, reference = nearest_within(np.array([99.9, 100.1, 150.0]), np.array([100.08, 200.0]), tolerance=0.002)
    assert (own.tolist(), reference.tolist()) == ([100.1], [100.08])


def test_regions_end_at_the_valley_between_peaks():
    tops, region = peak_regions(np.array([0.0, 0.0, 5.0, 1.0, 0.5, 1.0, 9.0, 0.0, 0.0]))
    assert tops.tolist() == [2, 6]
    assert region.tolist() == [-1, -1, 0, 0, -1, 1, 1, -1, -1]


def test_regions_rank_by_their_evidence():
    profile, evidence = np.array([0.0, 5.0, 0.0, 9.0, 0.0]), np.array([0.0, 2.0, 0.1, 0.5, 0.0])
    assert region_ranks(np.arange(5.0), profile, evidence, np.array([1.2, 2.9, 4.0])).tolist() == [1, 2, 3]


def test_all_steps_of_the_maldi_preset_but_the_bins_learn_nothing():
    first, others = parted(preset("maldi"))
    assert (len(first), list(others.named_steps)) == (5, ["bin"])
