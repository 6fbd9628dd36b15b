"""Simulated spectra show what was planted, and survive being written; damaged files are refused or read aright."""

import shutil
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

from cgnlearn.spectra import Baseline, Bin, SpectrumError, make_raw_spectra, read
from cgnlearn.spectra.writers import FORMATS


def test_the_truth_is_in_the_spectra():
    made = make_raw_spectra(60, n_peaks=12, n_markers=3, effect=2.0, calibration_error=0.0, random_state=1)
    X = Baseline(150).transform(made.spectra)
    heights = np.array([[s.intensity[np.abs(s.mz - peak) < 0.002 * peak].max() for peak in made.peaks] for s in X])
    log = np.log(heights)
    found = log[made.target == "case"].mean(axis=0) - log[made.target == "control"].mean(axis=0)
    np.testing.assert_allclose(found, made.effects, atol=0.75)
    markers = made.effects != 0
    assert markers.sum() == 3
    assert np.abs(found[markers]).min() > np.abs(found[~markers]).max()


def test_peaks_widen_with_mass_neighbours_vary_together_and_replicates_are_alike():
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
        near = [np.abs(s.mz / made.peaks[0] - 1) < 0.01 for s in made.spectra]
        return (
            np.array(
                [np.average(s.mz[at], weights=s.intensity[at] ** 2) for s, at in zip(made.spectra, near, strict=True)]
            )
            / made.peaks[0]
        )

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
def test_what_is_written_is_read_back(tmp_path, format):
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
    """The content after one of the things that happen to files."""
    at = int(rng.integers(len(content)))
    if kind == "cut":
        return content[:at]
    if kind == "hole":
        return content[:at] + content[at + int(rng.integers(1, 200)) :]
    if kind == "zeros":
        return content[:at] + b"\0" * 50 + content[at + 50 :]
    if kind == "noise":
        return content[:at] + rng.bytes(30) + content[at + 30 :]
    return rng.bytes(len(content))


def read_or_why(place):
    try:
        return read(place), ""
    except SpectrumError as error:
        return [], str(error)


def test_five_hundred_damaged_files_give_one_line_or_a_right_answer(tmp_path, rng):
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
    checked = ("mzML", "csv.gz", "a.zip", "a.tar.gz")  # these carry checksums of what they hold
    refused = 0
    for number in range(500):
        name = list(originals)[number % len(originals)]
        kind = ("cut", "hole", "zeros", "noise", "other")[number // len(originals) % 5]
        file, content = originals[name]
        file.write_bytes(damaged(content, kind, rng))
        place = file.parent if name == "bruker" else file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spectra, why = read_or_why(place)
        if why:
            refused += 1
            assert "\n" not in why
            assert str(file.parent) in why or "a.txt" in why or name == "bruker"
        for spectrum in spectra:  # what is given is a spectrum, and the right one wherever the format can tell
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
