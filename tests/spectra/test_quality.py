"""Quality of spectra: figures, outliers, and classes that were measured apart."""

import numpy as np
import pytest
from scipy import stats

from cgnlearn.spectra import Spectrum, make_raw_spectra
from cgnlearn.spectra.quality import Quality, _association, confounded, limit, quality, remarks


def figures(**changed):
    usual = {"n_points": 5000, "start": 1000.0, "stop": 9000.0, "total": 1000.0, "noise": 2.0, "signal_to_noise": 30.0}
    usual |= {"baseline": 0.5, "n_peaks": 50, "n_saturated": 0, "is_empty": False}
    return Quality(**usual | changed)


def words(found, labels=None):
    return [[remark.what for remark in of] for of in remarks(found, labels)]


def test_figures_are_those_of_a_known_spectrum():
    rng = np.random.default_rng(0)
    mz = np.linspace(2000, 4000, 20_000)
    slope = 500 - 0.1 * (mz - 2000)
    heights = 60.0 * np.arange(1, 13)
    peaks = sum(
        h * np.exp(-0.5 * ((mz - m) / 2) ** 2) for h, m in zip(heights, np.linspace(2100, 3900, 12), strict=True)
    )
    spectrum = Spectrum(mz, slope + peaks + rng.normal(0, 3, len(mz)))
    found = quality(spectrum)
    assert found.noise == pytest.approx(3, rel=0.1)  # peaks rise between points
    assert found.total == pytest.approx(spectrum.intensity.sum())
    assert found.signal_to_noise == pytest.approx(np.median(heights[2:]) / 3, rel=0.1)
    assert found.baseline == pytest.approx(slope.sum() / spectrum.intensity.sum(), rel=0.03)
    assert 12 <= found.n_peaks <= 14  # noise may reach six times its level, rarely
    assert (found.n_saturated, found.is_empty) == (0, False)
    clipped = quality(Spectrum(mz, np.minimum(spectrum.intensity, 900)))
    assert clipped.n_saturated == pytest.approx((spectrum.intensity >= 900).sum(), abs=10)


def test_outliers_are_named_by_what_is_unusual():
    usual = [figures(total=1000 + 10 * i, noise=2 + 0.02 * i, n_peaks=50 + i % 5) for i in range(20)]
    odd = [figures(total=10), figures(noise=40), figures(n_peaks=2), figures(baseline=0.9, n_saturated=4)]
    found = words([*usual, *odd, figures(signal_to_noise=0.0), figures(is_empty=True, total=0, n_peaks=0)])
    assert found[:20] == [[]] * 20
    expected = [["total ion current low"], ["noise high"], ["few peaks"], ["saturated", "baseline high"]]
    assert found[20:] == [*expected, ["signal low"], ["empty"]]
    assert words([figures()] * 4) == [[]] * 4
    assert words([figures(total=t) for t in (1000, 1010, 990, 1005, 1400)])[-1] == []  # by less than a factor of 1.5


def test_spectra_are_compared_within_their_class_if_it_is_large_enough():
    rich, poor = [figures(n_peaks=100 + i) for i in range(20)], [figures(n_peaks=20 + i) for i in range(6)]
    labels = ["rich"] * 20 + ["poor"] * 6
    assert words([*rich, *poor])[20:] == [["few peaks"]] * 6
    assert words([*rich, *poor], labels) == [[]] * 26
    assert words([*rich, *poor[:4]], labels[:24])[20:] == [["few peaks"]] * 4
    [[remark]] = remarks([*rich, figures(n_peaks=3)], [*labels[:20], "rich"])[20:]
    assert remark.why.startswith("3; usually in rich at least ")


@pytest.mark.parametrize("n", [10, 40])
def test_the_limit_of_few_spectra_is_as_rare_as_that_of_many(n):
    values = np.random.default_rng(0).normal(size=(40_000, n))
    spread = stats.median_abs_deviation(values, axis=1, scale="normal")
    z = np.abs(values - np.median(values, axis=1)[:, None]) / spread[:, None]
    assert (z > limit(n)).mean() == pytest.approx(2 * stats.norm.sf(3.5), rel=0.5)
    assert (z > 3.5).mean() > 4 * stats.norm.sf(3.5)


def test_simulated_spectra_have_no_outlier():
    spectra = make_raw_spectra(20, n_points=3000, random_state=0).spectra
    assert sum(map(bool, remarks([quality(spectrum) for spectrum in spectra]))) <= 1


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
