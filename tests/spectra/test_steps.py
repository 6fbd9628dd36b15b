"""Preprocessing steps and features: their values, and that they learn in fit only."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from cgnlearn import CGNClassifier
from cgnlearn.spectra import (
    Align,
    Baseline,
    Bin,
    Normalise,
    Peaks,
    Smooth,
    Spectrum,
    SpectrumError,
    SquareRoot,
    Trim,
    make_raw_spectra,
    preset,
)


@pytest.fixture(scope="module")
def made():
    return make_raw_spectra(24, n_replicates=2, n_points=6000, n_markers=6, effect=2.0, random_state=0)


def peaked(*centres, mz=None, width=2.0, height=100.0):
    mz = np.arange(1000.0, 3000.0, 0.5) if mz is None else mz
    return Spectrum(mz, 1 + sum(height * np.exp(-0.5 * ((mz - centre) / width) ** 2) for centre in centres))


def test_bins_are_means(rng):
    for scale, width in (("uniform", 7.3), ("proportional", 0.004), ("uniform", 0.11)):
        spectra = [Spectrum(np.sort(rng.uniform(900, 1100, 400)), rng.normal(size=400)) for _ in range(5)]
        bins = Bin(width, scale)
        with pytest.warns(UserWarning, match="5 different m/z axes"):
            X = bins.fit_transform(spectra)
        start = max(spectrum.mz[0] for spectrum in spectra)
        stop = min(spectrum.mz[-1] for spectrum in spectra)
        assert bins.edges_[0] == start
        assert bins.edges_[-2] < stop <= bins.edges_[-1]
        steps = np.diff(bins.edges_) / (bins.edges_[:-1] if scale == "proportional" else 1)
        np.testing.assert_allclose(steps, width, rtol=1e-8)
        for row, spectrum in zip(X, spectra, strict=True):
            for value, low, high in zip(row, bins.edges_[:-1], bins.edges_[1:], strict=True):
                inside = (spectrum.mz >= low) & (spectrum.mz < high)
                if inside.any():
                    assert value == pytest.approx(spectrum.intensity[inside].mean())
                else:
                    assert value == pytest.approx(np.interp((low + high) / 2, spectrum.mz, spectrum.intensity))


def test_bins_match_spectra_by_mz_not_by_index():
    one, other = peaked(1502.5), peaked(1502.5, mz=np.arange(800.0, 3000.0, 0.3))
    with pytest.warns(UserWarning, match="2 different m/z axes"):
        X = Bin(5.0).fit_transform([one, other])
    assert X[0].argmax() == X[1].argmax()
    np.testing.assert_allclose(X[0], X[1], atol=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Bin(5.0).fit_transform([one, one])


def test_a_spectrum_that_is_too_short_gives_a_warning():
    bins = Bin(5.0).fit([peaked(1500.0)])
    short = peaked(1500.0, mz=np.arange(1400.0, 1600.0))
    with pytest.warns(UserWarning, match="does not cover"):
        X = bins.transform([short])
    assert np.isfinite(X).all()


def test_feature_names_and_data_frames(made):
    for features in (Bin(10.0), Peaks(), preset("maldi").set_params(trim__start=1500.0)):
        frame = clone(features).set_output(transform="pandas").fit_transform(list(made.spectra))
        fitted = features.fit(list(made.spectra))
        assert isinstance(frame, pd.DataFrame)
        assert list(frame.columns) == list(fitted.get_feature_names_out())
        assert len(set(frame.columns)) == frame.shape[1]
        last = fitted[-1] if hasattr(fitted, "steps") else fitted
        np.testing.assert_allclose([float(name) for name in frame.columns], last.mz_, atol=0.01)


def test_steps_learn_in_fit_only(made):
    train, test = list(made.spectra[:30]), list(made.spectra[30:])
    for step in (Align(), Normalise("pqn")):
        step.fit(train)
        before = dict(vars(step))
        together = step.transform(test)
        alone = [step.transform([spectrum])[0] for spectrum in test]
        assert dict(vars(step)) == before
        for one, other in zip(together, alone, strict=True):
            np.testing.assert_array_equal(one.mz, other.mz)
            np.testing.assert_array_equal(one.intensity, other.intensity)
    for features in (Bin(10.0), Peaks(), preset("maldi", align=True)):
        features.fit(train)
        whole = features.transform(test)
        rows = np.concatenate([features.transform([spectrum]) for spectrum in test])
        np.testing.assert_array_equal(whole, rows)


def test_normalising_removes_the_gain(made):
    raw = list(made.spectra[:6])
    scaled = [spectrum.with_intensity(3.7 * spectrum.intensity) for spectrum in raw]
    for method in ("tic", "median", "pqn"):
        step = Normalise(method).fit(raw)
        for one, other in zip(step.transform(raw), step.transform(scaled), strict=True):
            np.testing.assert_allclose(one.intensity, other.intensity, rtol=1e-10)
    for spectrum in Normalise().transform(raw):
        area = np.trapezoid(spectrum.intensity, spectrum.mz)
        assert area / (spectrum.mz[-1] - spectrum.mz[0]) == pytest.approx(1)
    for spectrum in Normalise("median").transform(raw):
        assert np.median(spectrum.intensity) == pytest.approx(1)


def test_quotients_are_robust_against_one_large_peak():
    # One peak changes the total, but not the median of the quotients.
    plain, spiked = peaked(1500.0, 2500.0), peaked(1500.0, 2500.0)
    spiked = spiked.with_intensity(spiked.intensity + 5000 * (np.abs(spiked.mz - 2000) < 1))
    step = Normalise("pqn").fit([plain, plain, plain])
    a, b = step.transform([plain, spiked])
    far = np.abs(plain.mz - 2000) > 5
    np.testing.assert_allclose(a.intensity[far], b.intensity[far], rtol=1e-9)


def test_baseline_is_removed_and_peaks_are_kept():
    clean = peaked(1500.0, 2200.0, width=3.0)
    slope = 50 * np.exp(-(clean.mz - 1000) / 500)
    corrected = Baseline(50).transform([clean.with_intensity(clean.intensity + slope)])[0]
    assert (corrected.intensity >= 0).all()
    assert corrected.intensity[np.abs(clean.mz - 1800) < 50].max() < 1
    for centre in (1500, 2200):
        assert corrected.intensity[np.abs(clean.mz - centre) < 1].max() == pytest.approx(100, rel=0.05)


def test_smoothing_lowers_noise_and_keeps_polynomials(rng):
    line = Spectrum(np.arange(200.0), 0.001 * (np.arange(200.0) - 50) ** 3 + 200)
    np.testing.assert_allclose(Smooth().transform([line])[0].intensity, line.intensity, atol=1e-8)
    noise = Spectrum(np.arange(2000.0), 100 + rng.normal(size=2000))
    assert Smooth().transform([noise])[0].intensity.std() < 0.5
    assert (Smooth().transform([peaked(1500.0, width=0.3)])[0].intensity >= 0).all()


def test_aligning_moves_peaks_to_their_reference():
    centres = np.array([1100.0, 1500.0, 1900.0, 2400.0, 2900.0])
    spectra = [peaked(*(centres * (1 + error))) for error in (-8e-4, -3e-4, 0, 2e-4, 6e-4)]
    aligned = Align(order=1).fit_transform(spectra)
    assert isinstance(aligned[0], Spectrum)

    def spread(spectra):
        def top(spectrum, centre):
            near = np.abs(spectrum.mz - centre) < 10
            return spectrum.mz[near][spectrum.intensity[near].argmax()]

        return np.ptp([[top(spectrum, centre) for centre in centres] for spectrum in spectra], axis=0).max()

    assert spread(spectra) > 2
    assert spread(aligned) < 1
    far = peaked(1300.0)
    with pytest.warns(UserWarning, match="too few reference peaks"):
        assert Align(order=1).fit(spectra).transform([far])[0] is far


def test_peaks_are_found():
    spectra = [peaked(1200.0, 1500.0 + shift, 2500.0) for shift in (-0.5, 0, 0.5)]
    peaks = Peaks().fit(spectra)
    np.testing.assert_allclose(peaks.mz_, [1200, 1500, 2500], atol=0.3)
    np.testing.assert_allclose(peaks.transform(spectra), 101, rtol=0.01)
    with pytest.raises(SpectrumError, match="no peak"):
        Peaks().fit([Spectrum(np.arange(99.0), np.ones(99))])


def test_presets_classify_raw_spectra_and_keep_replicates_together(made):
    model = make_pipeline(
        preset("maldi").set_params(trim__start=1000.0, bin__width=10.0), CGNClassifier(likelihood_power="cv")
    )
    scores = cross_val_score(model, list(made.spectra), made.target, groups=made.groups, cv=GroupKFold(4))
    assert scores.mean() > 0.8
    assert preset("seldi").fit_transform(list(made.spectra)).shape[1] == 11_000


def test_invalid_input_is_refused():
    spectrum = peaked(1500.0)
    with pytest.raises(SpectrumError, match="no points from m/z 5000"):
        Trim(5000, 6000).transform([spectrum])
    with pytest.raises(SpectrumError, match="fewer than the 21"):
        Smooth().transform([Spectrum([1.0, 2.0], [1.0, 1.0])])
    with pytest.raises(ValueError, match="too few for order"):
        Smooth(half_window=1).transform([spectrum])
    with pytest.raises(SpectrumError, match="cannot be normalised"):
        Normalise().transform([spectrum.with_intensity(np.zeros(len(spectrum)))])
    with pytest.raises(ValueError, match="method must be"):
        Normalise("sum").fit([spectrum])
    with pytest.raises(ValueError, match="wider"):
        Bin(1e-6).fit([spectrum])
    with pytest.raises(ValueError, match="positive"):
        Bin(-1.0).fit([spectrum])
    with pytest.raises(SpectrumError, match="overlap"):
        Bin().fit([peaked(1.0, mz=np.arange(10.0)), spectrum])
    with pytest.raises(ValueError, match="no spectra"):
        Bin().fit([])
    with pytest.raises(ValueError, match="there is no preset 'x'"):
        preset("x")
    assert SquareRoot().transform([]) == []
