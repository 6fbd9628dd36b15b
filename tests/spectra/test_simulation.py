"""Simulated spectra show the true effects and are read back; damaged files are refused or read correctly."""

import shutil
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

from cgnlearn.spectra import Baseline, Bin, SpectrumError, make_raw_spectra, read
from cgnlearn.spectra.simulation import FORMATS


def test_peak_heights_show_the_true_effects():
    made = make_raw_spectra(60, n_peaks=12, n_markers=3, effect=2.0, calibration_error=0.0, random_state=1)
    X = Baseline(150).transform(made.spectra)
    heights = np.array([[s.intensity[np.abs(s.mz - peak) < 0.002 * peak].max() for peak in made.peaks] for s in X])
    log = np.log(heights)
    found = log[made.target == "case"].mean(axis=0) - log[made.target == "control"].mean(axis=0)
    np.testing.assert_allclose(found, made.effects, atol=0.75)
    markers = made.effects != 0
    assert markers.sum() == 3
    assert np.abs(found[markers]).min() > np.abs(found[~markers]).max()


def test_replicates_correlate_and_points_are_equidistant_in_flight_time():
    made = make_raw_spectra(40, n_replicates=2, n_peaks=15, n_markers=0, random_state=3)
    X = Bin(5.0).fit_transform(made.spectra)
    correlation = np.corrcoef(np.log1p(X))
    same = made.groups[:, None] == made.groups
    np.fill_diagonal(same, False)
    assert correlation[same].mean() > correlation[~same].mean()
    assert len(set(made.groups)) == 40
    assert sorted(set(made.target)) == ["case", "control"]
    for spectrum in made.spectra[:5]:
        assert (spectrum.intensity >= 0).all()
        assert (spectrum.intensity == np.rint(spectrum.intensity)).all()
        steps = np.diff(np.sqrt(spectrum.mz))
        np.testing.assert_allclose(steps, steps[0], rtol=1e-6)


def test_calibration_errors_move_peaks():
    def tops(error):
        made = make_raw_spectra(20, n_points=50_000, n_peaks=1, n_markers=0, calibration_error=error, random_state=5)
        tops = []
        for spectrum in made.spectra:
            mz = spectrum.mz / made.peaks[0]
            tops.append(np.average(mz, weights=np.where(np.abs(mz - 1) < 0.01, spectrum.intensity**2, 0)))
        return np.array(tops)

    assert tops(0.0).std() < 2e-4
    assert 3e-4 < tops(1e-3).std() < 3e-3


def test_the_same_seed_gives_the_same_spectra():
    one, other = (make_raw_spectra(3, n_points=500, random_state=7) for _ in range(2))
    for a, b in zip(one.spectra, other.spectra, strict=True):
        np.testing.assert_array_equal(a.intensity, b.intensity)
    with pytest.raises(ValueError, match="at least 2 samples"):
        make_raw_spectra(1)
    with pytest.raises(ValueError, match="n_markers"):
        make_raw_spectra(n_peaks=3, n_markers=4)
    with pytest.raises(ValueError, match="format must be"):
        one.write("nowhere", "xls")


@pytest.mark.parametrize("format", FORMATS)
def test_written_spectra_are_read_back(tmp_path, format):
    made = make_raw_spectra(3, n_replicates=2, n_points=700, random_state=0)
    made.write(tmp_path, format)
    folder = tmp_path / "spectra"
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    shutil.make_archive(str(tmp_path / "packed"), "gztar", folder)
    labels = [line.split(",") for line in (tmp_path / "labels.csv").read_text().splitlines()[1:]]
    assert [label for _, _, label in labels] == made.target.tolist()
    for place in (folder, tmp_path / "packed.zip", tmp_path / "packed.tar.gz"):
        found = {spectrum.metadata["file"]: spectrum for spectrum in read(place)}
        assert list(found) == [file for file, _, _ in labels]
        for spectrum, (file, _, _) in zip(made.spectra, labels, strict=True):
            np.testing.assert_allclose(found[file].mz, spectrum.mz, rtol=1e-14)
            np.testing.assert_array_equal(found[file].intensity, spectrum.intensity)


def damaged(content, kind, rng):
    """The content after damage of one kind."""
    at = int(rng.integers(len(content)))
    if kind == "cut":
        return content[:at]
    if kind == "gap":
        return content[:at] + content[at + int(rng.integers(1, 200)) :]
    if kind == "zeros":
        return content[:at] + b"\0" * 50 + content[at + 50 :]
    if kind == "noise":
        return content[:at] + rng.bytes(30) + content[at + 30 :]
    return rng.bytes(len(content))


def read_or_reason(place):
    try:
        return read(place), ""
    except SpectrumError as error:
        return [], str(error)


@pytest.mark.slow
def test_five_hundred_damaged_files_are_refused_in_one_line_or_read_correctly(tmp_path, rng):
    made = make_raw_spectra(2, n_points=300, random_state=0)
    originals = {}
    for format in FORMATS:
        made.write(tmp_path / format, format)
        file = next(path for path in sorted((tmp_path / format / "spectra").rglob("*")) if path.is_file())
        originals[format] = (file, file.read_bytes())
    archives = tmp_path / "archives"
    archives.mkdir()
    with zipfile.ZipFile(archives / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", originals["txt"][1])
    with tarfile.open(archives / "a.tar.gz", "w:gz") as packed:
        packed.add(originals["txt"][0], "a.txt")
    originals |= {path.name: (path, path.read_bytes()) for path in archives.iterdir()}
    true = made.spectra[0]
    checked = ("mzML", "csv.gz", "a.zip", "a.tar.gz")  # these have checksums
    refused = 0
    for number in range(500):
        name = list(originals)[number % len(originals)]
        kind = ("cut", "gap", "zeros", "noise", "other")[number // len(originals) % 5]
        file, content = originals[name]
        file.write_bytes(damaged(content, kind, rng))
        place = file.parent if name == "bruker" else file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spectra, why = read_or_reason(place)
        if why:
            refused += 1
            assert "\n" not in why
            assert str(file.parent) in why or "a.txt" in why or name == "bruker"
        for spectrum in spectra:  # valid, and correct if the format has checksums
            assert np.isfinite(spectrum.intensity).all()
            assert (np.diff(spectrum.mz) >= 0).all()
            if name in checked:
                np.testing.assert_array_equal(spectrum.intensity, true.intensity)
                np.testing.assert_allclose(spectrum.mz, true.mz, rtol=1e-14)
            if name in ("txt", "csv") and kind == "cut" and len(spectrum) < len(true):
                lost = len(true) - len(spectrum)
                np.testing.assert_array_equal(spectrum.mz[:-1], true.mz[: -lost - 1])
        file.write_bytes(content)
    assert refused > 300
