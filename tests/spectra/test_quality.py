"""Quality of spectra: figures, outliers, and classes that were measured apart."""

import numpy as np
import pytest
from scipy import stats

from cgnlearn.spectra import Spectrum, make_raw_spectra
from cgnlearn.spectra.quality import Quality, _association, confounded, quality, remarks


def test_noise_is_that_of_the_simulation():
    rng = np.random.default_rng(0)
    mz = np.linspace(2000, 4000, 20_000)
    slope = 500 - 0.1 * (mz - 2000)
    spectrum = Spectrum(mz, slope + rng.normal(0, 3, len(mz)))
    found = quality(spectrum, spectrum)
    assert found.noise == pytest.approx(3, rel=0.03)
    assert found.total == pytest.approx(spectrum.intensity.sum())


def test_outliers_are_named_by_what_is_unusual():
    usual = [Quality(1000 + 10 * i, 2 + 0.02 * i, 50 + i % 5) for i in range(20)]
    found = remarks([*usual, Quality(10, 2.1, 52), Quality(1100, 40.0, 52), Quality(1100, 2.1, 2), Quality(0, 0, 50)])
    assert found[:20] == [""] * 20
    assert found[20:] == ["total intensity low", "noise high", "number of peaks low", "total intensity low, noise low"]
    assert remarks([Quality(1, 1, 1)] * 4) == [""] * 4


def test_simulated_spectra_have_no_outlier():
    spectra = make_raw_spectra(20, n_points=3000, random_state=0).spectra
    assert sum(map(bool, remarks([quality(spectrum, spectrum) for spectrum in spectra]))) <= 2


def test_association_is_cramers_v_without_its_bias():
    rng = np.random.default_rng(0)
    first, second = rng.integers(3, size=60).astype(str), rng.integers(2, size=60).astype(str)
    v, p = _association(first, second)
    table = np.array([[((first == a) & (second == b)).sum() for b in np.unique(second)] for a in np.unique(first)])
    chi2 = ((table - np.outer(table.sum(1), table.sum(0)) / 60) ** 2 / np.outer(table.sum(1), table.sum(0)) * 60).sum()
    assert p == pytest.approx(stats.chi2.sf(chi2, 2))
    assert v < stats.contingency.association(table) < 0.4


def test_a_class_that_goes_with_the_day_is_told_once_by_sample():
    labels, samples = np.repeat(["a", "b"], 12), np.repeat(np.arange(8), 3)
    day = np.repeat(["1", "2"], 12).tolist()
    [told] = confounded(labels, samples, {"date": day, "batch": [None] * 24, "m/z axis": list(map(str, range(24)))})
    assert told.startswith("The class goes with the date (Cramér’s V 1.00)")
    mixed = np.tile(["1", "2"], 12).tolist()
    assert confounded(labels, np.arange(24), {"date": mixed}) == []
    assert confounded(labels, np.arange(24), {"date": ["1"] * 24}) == []
