"""Inspection of folders: planted faults are found and named, usual spectra are not."""

import numpy as np
import pytest

from cgnlearn.spectra import Spectrum, make_raw_spectra
from cgnlearn.spectra.folders import Folder
from cgnlearn.spectra.inspection import inspected, lowest_usual
from cgnlearn.spectra.simulation import FORMATS
from cgnlearn.spectra.spectrum import SpectrumError

N_POINTS = 6000


def written(spectra, groups, target, folder):
    (folder / "spectra").mkdir()
    lines = ["file,sample,label"]
    for spectrum, sample, label in zip(spectra, groups, target, strict=True):
        name = FORMATS["txt"](spectrum, folder / "spectra", spectrum.metadata["id"])
        lines.append(f"{name},{sample},{label}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def planted():
    """Spectra, three of each sample, with a fault in the first of some samples."""
    made = make_raw_spectra(20, n_replicates=3, n_points=N_POINTS, random_state=0)
    other = make_raw_spectra(2, n_points=N_POINTS, random_state=99).spectra[0]
    rng = np.random.default_rng(0)
    spectra = list(made.spectra)
    noise = 40 + rng.normal(0, 5, N_POINTS)
    raw = [spectra[3 * i] for i in range(7)]
    weak = np.median(raw[0].intensity) + 0.04 * (raw[0].intensity - np.median(raw[0].intensity))
    short = raw[5].mz < 6000
    high = raw[6].intensity + 8 * raw[6].intensity.mean()
    faults = [
        (raw[0].mz, weak + rng.normal(0, 4, N_POINTS)),
        (raw[1].mz, np.maximum(noise, 0)),
        (raw[2].mz, np.minimum(raw[2].intensity, np.quantile(raw[2].intensity, 0.98))),
        (raw[3].mz, np.zeros(N_POINTS)),
        (raw[4].mz * 1.006, raw[4].intensity),
        (raw[5].mz[short], raw[5].intensity[short]),
        (raw[6].mz, high + rng.normal(0, np.sqrt(high))),
        (raw[6].mz, other.intensity),
    ]
    for i, (mz, intensity) in enumerate(faults):
        spectra[3 * i] = Spectrum(mz, intensity, spectra[3 * i].metadata)
    return made, spectra


EXPECTED = {
    1: {"signal low", "few peaks", "unlike the others"},
    2: {"signal low", "few peaks", "unlike the others", "unlike its replicates"},
    3: {"saturated"},
    4: {"empty"},
    5: {"m/z shifted", "unlike its replicates"},
    6: {"other m/z range"},
    7: {"baseline high", "total ion current high"},
    8: {"unlike the others", "unlike its replicates"},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    made, spectra = planted()
    written(spectra, made.groups, made.target, folder)
    (folder / "spectra" / "broken.txt").write_text("nothing")
    return inspected(Folder(folder / "spectra", folder / "labels.csv", needed=False))


def test_planted_faults_are_named_and_no_others(found):
    told = {of.file: {remark.what for remark in of.remarks} for of in found.spectra if of.remarks}
    assert set(told) == {f"sample{i}_1.txt" for i in EXPECTED}
    for i, expected in EXPECTED.items():
        assert expected <= told[f"sample{i}_1.txt"], i
    [refused] = found.refused
    assert str(refused).startswith("broken.txt: ")
    assert found.formats == {"text": 60}
    shifted = next(of for of in found.spectra if of.file == "sample5_1.txt")
    assert any(remark.why.startswith("about +0.6% of m/z off") for remark in shifted.remarks)


def test_least_similar_replicates_and_frequent_faults_come_first(found):
    assert len(found.replicates) == 20
    assert set(list(found.replicates)[:2]) <= {"sample2", "sample4", "sample5", "sample8"}
    counts = [len(own) for own in found.faults().values()]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == sum(len(of.remarks) for of in found.spectra)


def test_correlations_are_those_of_numpy(found):
    whole = np.isfinite(found.profiles).all(axis=1)
    whole &= np.array([not of.quality.is_empty for of in found.spectra])
    own = next(i for i, of in enumerate(found.spectra) if of.file == "sample20_2.txt")
    me = found.spectra[own]
    beside = [
        np.corrcoef(found.profiles[own], found.profiles[i])[0, 1]
        for i, of in enumerate(found.spectra)
        if whole[i] and of.label == me.label and of.sample != me.sample
    ]
    assert me.correlation == pytest.approx(np.median(beside), abs=0.01)


def test_clean_spectra_without_classes_do_not_stand_out(tmp_path):
    made = make_raw_spectra(40, n_points=N_POINTS, random_state=5)
    written(made.spectra, made.groups, made.target, tmp_path)
    found = inspected(Folder(tmp_path / "spectra", needed=False))
    assert len(found.unusual) <= 1
    assert found.labels == [None] * 40
    assert not found.replicates


def test_the_lowest_usual_correlation_is_apart_from_the_median():
    assert lowest_usual(np.array([0.9, 0.91])) is None
    assert lowest_usual(np.full(20, 0.9)) == pytest.approx(0.8)
    wide = np.tanh(np.random.default_rng(0).normal(1.0, 0.3, 500))
    assert lowest_usual(wide) == pytest.approx(np.tanh(1.0 - 3.5 * 0.3), abs=0.1)


def test_scans_peak_lists_and_single_spectra(tmp_path):
    scan = "BEGIN IONS\nTITLE={0}\nPEPMASS=1\n100.0 1\n200.0 5\n300.0 2\nEND IONS\n"
    (tmp_path / "two.mgf").write_text(scan.format("a") + scan.format("b"))
    found = inspected(Folder(tmp_path, needed=False))
    assert [of.file for of in found.spectra] == ["two.mgf, scan 1", "two.mgf, scan 2"]
    assert found.formats == {"MGF": 2}
    assert [of.quality.n_peaks for of in found.spectra] == [3, 3]
    assert not found.unusual


def test_a_folder_without_a_spectrum_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("nothing")
    with pytest.raises(SpectrumError, match="none of its 1 files is a spectrum"):
        inspected(Folder(tmp_path, needed=False))
