import numpy as np
import pytest

from cgnlearn.datasets import make_balance_scale, make_spectra, make_waveform


def test_waveform_has_the_recipe_s_moments():
    X, y = make_waveform(60_000, random_state=0)
    np.testing.assert_allclose(np.bincount(y) / len(y), 1 / 3, atol=0.01)
    points = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(points - middle), 0) for middle in (11, 15, 7))
    for label, (a, b) in enumerate([(h1, h2), (h1, h3), (h2, h3)]):
        np.testing.assert_allclose(X[y == label].mean(axis=0), (a + b) / 2, atol=0.06)
        np.testing.assert_allclose(X[y == label].var(axis=0), 1 + (a - b) ** 2 / 12, atol=0.15)
    np.testing.assert_array_equal(make_waveform(5, 3)[0], make_waveform(5, 3)[0])
    with pytest.raises(ValueError, match="n_samples"):
        make_waveform(0)


def test_balance_scale_is_all_rows_once():
    X, y = make_balance_scale()
    assert len(np.unique(X, axis=0)) == len(X) == 625
    assert set(X.ravel()) == {1, 2, 3, 4, 5}
    assert ((X[:, 0] * X[:, 1] > X[:, 2] * X[:, 3]) == (y == "L")).all()


@pytest.mark.shared
def test_balance_scale_is_the_uci_set(shared):
    lines = (shared / "data" / "uci" / "balance-scale.csv").read_text().splitlines()[1:]
    theirs = sorted(tuple(line.replace('"', "").split(",")) for line in lines)
    X, y = make_balance_scale()
    ours = sorted((*(f"{int(v)}" for v in row), str(label)) for row, label in zip(X, y, strict=True))
    assert [tuple(f"{float(v):g}" for v in row[:-1]) + row[-1:] for row in theirs] == ours


def test_spectra_are_as_they_were_asked_for():
    spectra = make_spectra(60, 400, n_peaks=30, n_markers=4, random_state=0)
    assert spectra.data.shape == (60, 400)
    assert sorted(np.unique(spectra.target, return_counts=True)[1]) == [30, 30]
    assert (np.diff(spectra.mz) > 0).all()
    assert (np.diff(np.diff(spectra.mz)) > 0).all()  # bins of equal flight time widen in m/z
    assert (np.diff(spectra.peaks) > 0).all()
    assert sorted(np.abs(spectra.effects)) == [0.0] * 26 + [1.0] * 4
    np.testing.assert_array_equal(spectra.data, make_spectra(60, 400, n_peaks=30, n_markers=4, random_state=0).data)
    neighbours = np.corrcoef(spectra.data.T)
    assert np.median(np.diag(neighbours, 1)) > 0.5
    with pytest.raises(ValueError, match="n_markers"):
        make_spectra(n_peaks=3, n_markers=4)
    with pytest.raises(ValueError, match="at least 2 samples"):
        make_spectra(1)


def test_only_marker_peaks_tell_the_classes_apart():
    spectra = make_spectra(4000, 300, n_peaks=12, n_markers=2, effect=2.0, random_state=1)
    is_case = spectra.target == "case"
    heights = np.log(spectra.data[:, np.searchsorted(spectra.mz, spectra.peaks)])
    difference = heights[is_case].mean(axis=0) - heights[~is_case].mean(axis=0)
    markers = spectra.effects != 0
    assert (np.sign(difference[markers]) == np.sign(spectra.effects[markers])).all()
    assert np.abs(difference[markers]).min() > 5 * np.median(np.abs(difference[~markers]))
    nothing = make_spectra(4000, 300, n_peaks=12, n_markers=0, random_state=1)
    is_case = nothing.target == "case"
    t = (nothing.data[is_case].mean(axis=0) - nothing.data[~is_case].mean(axis=0)) / (
        nothing.data.std(axis=0) * np.sqrt(4 / 4000)
    )
    assert np.abs(t).max() < 4.5
