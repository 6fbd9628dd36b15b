"""Real files are read as documented or refused with a reason; hostile files are refused in one line."""

import base64
import gzip
import io
import os
import re
import tarfile
import warnings
import zipfile
import zlib
from itertools import product

import numpy as np
import pytest

from cgnlearn.spectra import Spectrum, SpectrumError, make_raw_spectra, read, stream, text

POINTS = {
    "MALDIquantForeign/ascii.txt": [5],
    "MALDIquantForeign/brukerflex": [5],
    "MALDIquantForeign/compressed/csv.tar.gz": [5],
    "MALDIquantForeign/compressed/csv.zip": [5],
    "MALDIquantForeign/compressed/csv1.csv.gz": [5],
    "MALDIquantForeign/csv1.csv": [5],
    "MALDIquantForeign/csv2.csv": [5],
    "MALDIquantForeign/tiny1-centroided.mzML1.1.mzML": [5, 5],
    "MALDIquantForeign/tiny1-centroided.mzXML3.0.mzXML": [5],
    "MALDIquantForeign/tiny1-compressed.mzML1.1.mzML": [5, 5],
    "MALDIquantForeign/tiny1-compressed.mzXML3.0.mzXML": [5],
    "MALDIquantForeign/tiny1.mzML1.1.mzML": [5, 5],
    "MALDIquantForeign/tiny1.mzXML3.0.mzXML": [5],
    "MaldiAMRKit/1s.txt": [20712],
    "MaldiAMRKit/bruker_sample": [21331],
    "caMassClass/IMAC_normal_01_1.csv": [11883],
    "caMassClass/test1.mzXML": [30, 12],
    "matchms/pesticides.mgf": 76,
    "matchms/testdata.mzXML": 5,
    "matchms/testdata.mzml": 12,
    "msProcess/W924A.txt": [17804],
    "msProcess/W924B.txt": [17804],
    "ms_deisotope/microscans.mzXML": 4,
    "ms_deisotope/only_ms2_mzml.mzML": [1000],
    "ms_deisotope/three_test_scans.mzML.gz": [27826, 3493, 5390],
    "mzdata/three_test_scans.mzML": [27826, 3493, 5390],
    "openms-doc/peakpicker_tutorial_2.mzML": [21936],
    "pymzml/example.mzML.gz": 11,
    "pyteomics/test.mgf": 2,
    "pyteomics/test.mzML": [19914, 19914],
    "pyteomics/test.mzXML": [1313, 43],
    "pyteomics/tiny.pwiz.1.1.mzML": 3,  # and one without points
    "readBrukerFlexData/2010_05_19_Gibb_C8_A1": [22431, 22431],
    "readBrukerFlexData/hpc/fid": [113811],
    "readBrukerFlexData/hpc/mzXML/hpc.mzXML": [24860],
    "species4_raw_bruker/species_bruker_flex.tar.gz": [20882] * 96,
}
REFUSED = {
    "MALDIquantForeign/ciphergen/tiny.xml": "convert it",
    "MALDIquantForeign/tiny.cdf": ".cdf files are not read",
    "MALDIquantForeign/tiny1.msd": ".msd files are not read",
    "MALDIquantForeign/tiny_continuous.imzML": "files are not read",
    "MALDIquantForeign/tiny_continuous.ibd": "files are not read",
    "MALDIquantForeign/tiny_processed.imzML": "files are not read",
    "MALDIquantForeign/tiny_processed.ibd": "files are not read",
    "msProcess/W924A.xml": "convert it",
    "mzdata/three_test_scans.converted.mzMLb": ".mzmlb files are not read",
    "pymzml/mini_numpress.chrom.mzML": "has no spectra",
}


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:.*(negative|no points).*")
def test_every_file_has_the_expected_points(shared):
    folder = shared / "data" / "spectra"
    for name, points in POINTS.items():
        found = [len(spectrum) for spectrum in read(folder / name)]
        assert (len(found) if isinstance(points, int) else found) == points, name
    for name, reason in REFUSED.items():
        with pytest.raises(SpectrumError, match=reason) as error:
            read(folder / name)
        assert "\n" not in str(error.value)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    named = {*POINTS, *REFUSED}
    assert {name for name in files if not any(name.startswith(known) for known in named)} == set()


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:.*negative.*")
def test_a_folder_gives_the_spectra_of_its_files(shared):
    folder = shared / "data" / "spectra" / "MALDIquantForeign"
    spectra, refused = read(folder, skip_bad=True)
    known = {name: points for name, points in POINTS.items() if name.startswith("MALDIquantForeign")}
    in_archives = 2  # which a folder does not open
    assert len(spectra) == sum(len(points) for points in known.values()) - in_archives
    assert len(refused) == sum(name.startswith("MALDIquantForeign") for name in REFUSED) + in_archives
    with pytest.raises(SpectrumError):
        read(folder)


@pytest.mark.shared
def test_bruker_spectra_equal_the_vendors_export(shared):
    folder = shared / "data" / "spectra" / "readBrukerFlexData" / "hpc"
    (ours,), (vendors,) = read(folder / "fid"), read(folder / "mzXML" / "hpc.mzXML")
    kept = (ours.intensity > 0) & (ours.mz >= 700) & (ours.mz <= 4000)  # as the export was made
    np.testing.assert_array_equal(ours.intensity[kept], vendors.intensity)
    away = np.abs(ours.mz[kept] - vendors.mz)
    assert away.max() < 1e-3
    assert np.median(away) < 5e-5  # half of the rounding of its 32-bit floats
    assert (away > 2e-4).sum() < 10


@pytest.mark.shared
def test_bruker_spectra_of_an_archive_equal_a_reference(shared):
    known = dict(np.load(shared / "data" / "ms" / "species4_bacteria.npz"))
    spectra = read(shared / "data" / "spectra" / "species4_raw_bruker" / "species_bruker_flex.tar.gz")
    by_place = {}
    for spectrum in spectra:
        species, _, replicate, _ = spectrum.metadata["file"].split("/")
        by_place[species, spectrum.metadata["spot"], int(replicate)] = spectrum
    assert len(by_place) == 96
    for row in range(96):
        spectrum = by_place[str(known["y"][row]), str(known["spot"][row]), int(known["replicate"][row])]
        np.testing.assert_array_equal(spectrum.intensity, known["X"][row])
        np.testing.assert_allclose(spectrum.mz, known["mz_grids"][known["grid_index"][row]], rtol=1e-12)


@pytest.mark.parametrize(
    "content",
    [
        "1000.5 3\n1001 8\n",
        "1000.5,3\n1001,8\n",
        "1000.5;3\n1001;8\n",
        "1000.5\t3\n1001\t8\n",
        "1000,5;3\n1001,0;8\n",
        "M/Z,Intensity\n1000.5,3\n1001,8\n",
        '# made by x\n"mass","int"\n1000.5,3\n1001,8\n',
        "\ufeffmz;i\n1000.5;3\n1001;8\n",
        "1000.5, 3\n1001, 8\n",
        "1000.5  3\r\n1001  8\r\n",
        "1.0005e3 3\n1001 8\n\n",
    ],
)
def test_two_columns_of_text_of_any_kind(tmp_path, content):
    file = tmp_path / "a.txt"
    file.write_text(content, encoding="utf-8", newline="")
    (spectrum,) = read(file)
    assert spectrum.mz.tolist() == [1000.5, 1001.0]
    assert spectrum.intensity.tolist() == [3.0, 8.0]
    assert spectrum.metadata["sample"] == "a"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        ("hello\nworld\n", "no two columns of numbers found"),
        ("1000 3\n1001 x\n", "line 2 has 'x'"),
        ("1000 3\n1001\n", "line 2 has another number of columns"),
        ("1000 3 1\n1001 4 1\n", "3 columns"),
        ("1001 3\n1000 4\n", "m/z decreases at point 2"),
        ("1000 nan\n1001 4\n", "intensity of point 1 is not a finite"),
        ("1000 3\ninf 4\n", "m/z of point 2 is not a finite"),
        ("-3 3\n-2 4\n", "every m/z is negative"),
        ("1000 3\n\0\0\0\n", "binary zeros"),
    ],
)
def test_bad_text_is_refused_in_one_line_that_names_the_file(tmp_path, content, reason):
    file = tmp_path / "bad.txt"
    file.write_text(content)
    (tmp_path / "good.txt").write_text("1000 3\n1001 4\n")
    with pytest.raises(SpectrumError, match=reason) as error:
        read(file)
    assert "bad.txt" in str(error.value)
    assert "\n" not in str(error.value)
    spectra, refused = read(tmp_path, skip_bad=True)
    assert [spectrum.metadata["file"] for spectrum in spectra] == ["good.txt"]
    assert len(refused) == 1
    assert "bad.txt" in str(refused[0])


def test_unusual_values_give_one_warning(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("-2 9\n1000 3\n1001 -4\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spectra = read(tmp_path)
    assert [len(spectrum) for spectrum in spectra] == [2, 2, 2]
    assert sorted(str(warning.message) for warning in caught) == [
        "a.txt and 2 more: points at negative m/z are dropped",
        "a.txt and 2 more: some intensities are negative",
    ]
    (tmp_path / "cut.csv").write_text("1000,3\n1001,4")
    with pytest.warns(UserWarning, match="may be truncated"):
        read(tmp_path / "cut.csv")


def test_a_table_of_labels_can_be_ignored(tmp_path):
    (tmp_path / "a.txt").write_text("1000 3\n1001 4\n")
    (tmp_path / "labels.csv").write_text("sample,label\na,ill\n")
    with pytest.raises(SpectrumError, match=r"labels\.csv"):
        read(tmp_path)
    assert len(list(stream(tmp_path, ignore=[tmp_path / "labels.csv"]))) == 1


def test_paths_without_spectra_are_refused(tmp_path):
    with pytest.raises(SpectrumError, match="no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(SpectrumError, match="has no files"):
        read(tmp_path)
    (tmp_path / "a.doc").write_text("1 2\n")
    with pytest.raises(SpectrumError, match="ending"):
        read(tmp_path / "a.doc")
    (tmp_path / "fid").write_bytes(b"\0" * 8)
    with pytest.raises(SpectrumError, match="neither acqu nor acqus"):
        read(tmp_path)


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:/evil.txt"])
def test_archives_do_not_leave_their_folder(tmp_path, name):
    (tmp_path / "in").mkdir()
    with pytest.raises(SpectrumError, match="points outside"):
        read(zipped(tmp_path / "in" / "a.zip", {name: "1 2\n3 4\n"}))
    with tarfile.open(tmp_path / "in" / "a.tar", "w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size = 8
        tar.addfile(entry, io.BytesIO(b"1 2\n3 4\n"))
    with pytest.raises(SpectrumError, match="points outside"):
        read(tmp_path / "in" / "a.tar")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar", "a.zip", "in"]


def test_links_in_archives_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        entry = tarfile.TarInfo("a.txt")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    with pytest.raises(SpectrumError, match="link or a device"):
        read(tmp_path / "a.tar")


def test_bombs_are_refused(tmp_path):
    zeros = b"1000 0\n" * (4 * 2**20)
    with pytest.raises(SpectrumError, match="bomb"):
        read(zipped(tmp_path / "a.zip", {"a.txt": zeros}))
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(zeros))
    with pytest.raises(SpectrumError, match="bomb"):
        read(tmp_path / "a.txt.gz")
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(b"\0" * 2**25))
    with pytest.raises(SpectrumError, match="bomb"):
        read(tmp_path / "b.tar.gz")
    laughs = '<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><mzML>&b;</mzML>'
    for name in ("a.mzML", "a.mzXML"):
        (tmp_path / name).write_text(laughs)
        with pytest.raises(SpectrumError, match="document type or entities"):
            read(tmp_path / name)
    (tmp_path / "c.mzML").write_text(laughs, encoding="utf-16")
    with pytest.raises(SpectrumError, match="UTF-16"):
        read(tmp_path / "c.mzML")


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("cgnlearn.spectra.archives.MAX_FILES", 2)
    folder = tmp_path / "folder"
    folder.mkdir()
    for n_files in (2, 3):
        (folder / f"{n_files}.txt").write_text("1 2\n")
        (folder / "1.txt").write_text("1 2\n")
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed, tarfile.open(tmp_path / "a.tar", "w") as tar:
            for file in sorted(folder.iterdir()):
                packed.write(file, file.name)
                tar.add(file, file.name)
        for path in (folder, tmp_path / "a.zip", tmp_path / "a.tar"):
            if n_files == 2:
                assert len(read(path)) == 2
            else:
                with pytest.raises(SpectrumError, match="more than 2 files"):
                    read(path)


def test_archives_within_archives_are_refused(tmp_path):
    inner = zipped(tmp_path / "inner.zip", {"a.txt": "1 2\n3 4\n"}).read_bytes()
    with pytest.raises(SpectrumError, match="archive within an archive"):
        read(zipped(tmp_path / "outer.zip", {"inner.zip": inner}))
    (tmp_path / "none.zip").write_bytes(b"no zip at all")
    with pytest.raises(SpectrumError, match="damaged, or not a readable archive"):
        read(tmp_path / "none.zip")


def test_a_spectrum_is_immutable():
    import copy
    import pickle

    mz, intensity = np.arange(3.0), np.ones(3)
    spectrum = Spectrum(mz, intensity, {"sample": "a"})
    mz[0] = 9
    assert spectrum.mz.tolist() == [0, 1, 2]
    with pytest.raises(ValueError):
        spectrum.mz[0] = 5
    with pytest.raises(TypeError):
        spectrum.metadata["sample"] = "b"
    with pytest.raises(AttributeError):
        spectrum.mz = mz
    for other in (pickle.loads(pickle.dumps(spectrum)), copy.deepcopy(spectrum)):
        assert other.metadata == spectrum.metadata
        np.testing.assert_array_equal(other.mz, spectrum.mz)
    with pytest.raises(SpectrumError, match="equal length"):
        Spectrum([1.0, 2.0], [1.0])
    with pytest.raises(SpectrumError, match="no points"):
        Spectrum([], [])


def test_both_text_parsers_agree(rng):
    mz, heights = np.cumsum(rng.uniform(0.1, 0.3, 500)) + 1000, rng.lognormal(3, 2, 500)
    rows = [(repr(float(m)), repr(float(h))) for m, h in zip(mz, heights, strict=True)]
    for separator, point, header, end in product(
        (";", "\t", ",", " "), (".", ","), ("", "mz{0}intensity{1}", "Probe \x85 \x0c 7{1}{1}# x{1}"), ("\n", "\r\n")
    ):
        if point == "," and separator in ", ":
            continue
        lines = [separator.join(pair).replace(".", point) for pair in rows]
        content = (header.format(separator, end) + end.join(lines) + end).encode("latin-1")
        n_before, start, _ = text._first_pair(content, "a")
        assert n_before == len(re.findall(end, content[:start].decode("latin-1")))
        body = memoryview(content)[start:]
        quick, strict = (
            text._parsed_by_arrow(body, separator, point),
            text._parsed_by_numpy(body, separator, point, "a", n_before),
        )
        assert quick is not None
        np.testing.assert_array_equal(quick, strict)
        np.testing.assert_array_equal(quick, [mz, heights])
        np.testing.assert_array_equal(text.parse(content, "a").mz, mz)
    for body in (b"1 2\n2 x\n", b"1 2\n2\n", b"1 2\n2 3 4\n", b"1  2\n2  3\n", b"1 2\n# 3\n", b'1 2\n2 "3"\n', b"1 \n"):
        assert text._parsed_by_arrow(memoryview(body), None, ".") is None  # left to NumPy


def test_a_bomb_within_an_mzml_file_is_refused(tmp_path):
    make_raw_spectra(2, n_points=100, random_state=0).write(tmp_path, "mzML")
    file = tmp_path / "spectra" / "sample1_1.mzML"
    bomb = base64.b64encode(zlib.compress(bytes(81_000_000)))
    file.write_bytes(re.sub(rb"<binary>[^<]*</binary>", b"<binary>" + bomb + b"</binary>", file.read_bytes()))
    with pytest.raises(SpectrumError, match="has more than 80000000 bytes"):
        read(file)


@pytest.mark.filterwarnings("default")
def test_a_named_pipe_is_skipped_with_a_warning(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")  # reading it would wait for ever
    (tmp_path / "a.txt").write_text("1000 1\n1001 2\n")
    with pytest.warns(UserWarning, match=r"pipe\.txt is not a regular file and is skipped"):
        assert [len(spectrum) for spectrum in read(tmp_path)] == [2]
