"""On a full disk every writer leaves the good file that was there and nothing half-written, and says so in a line."""

import errno
import os
import subprocess
import sys
from itertools import repeat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cgnlearn import CGNClassifier, save
from cgnlearn.cli.main import main
from cgnlearn.evaluation.run import Run
from cgnlearn.files import NotWrittenError, add_whole, write_whole
from cgnlearn.spectra import make_raw_spectra
from cgnlearn.spectra.simulation import FORMATS
from tests.evaluation.test_run import UNITS, WORK


class Disk:
    """A folder that can be filled: a small file system, or, where none can be mounted, a stand-in."""

    def __init__(self, folder, monkeypatch, *, is_real):
        self.folder = folder
        self._patch = monkeypatch
        self._is_real = is_real

    def fill(self):
        if not self._is_real:
            self._patch.setattr(os, "fsync", self._full)
            return
        with open(self.folder / "ballast", "wb", buffering=0) as file:
            for size in (1 << 16, 1):
                with pytest.raises(OSError, match="No space left"):
                    file.writelines(repeat(bytes(size)))

    def _full(self, descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def make_room(self):
        (self.folder / "ballast").unlink(missing_ok=True)
        self._patch.undo()

    @property
    def files(self):
        """All files by their paths, hidden ones too."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and path.name != "ballast")
        return {path.relative_to(self.folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(params=["mounted", "stand-in"])
def disk(request, tmp_path, monkeypatch):
    if request.param == "stand-in":
        yield Disk(tmp_path, monkeypatch, is_real=False)
        return
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "cgnlearn", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield Disk(tmp_path, monkeypatch, is_real=True)
    subprocess.run(["umount", tmp_path], check=True)


def test_a_full_disk_leaves_the_good_file_and_nothing_else(disk):
    path = disk.folder / "file.txt"
    for good in (None, "good"):
        if good is not None:
            write_whole(path, good)
        before = disk.files
        disk.fill()
        with pytest.raises(NotWrittenError, match=r"file\.txt cannot be written \(No space left on device\)") as raised:
            write_whole(path, "x" * 100_000)
        assert "\n" not in str(raised.value)
        assert disk.files == before
        disk.make_room()


# ---- the library's writers


@pytest.fixture
def model(mixed):
    X, y, _ = mixed
    return CGNClassifier("tan").fit(X, y)


def write_model(model, path):
    save(model, path)


def write_statistics(model, path):
    save(model.statistics_, path)


def write_report(model, path):
    from cgnlearn.reporting import write_report

    write_report(path, [])


def write_graph(model, path):
    from cgnlearn.cli.inspect import _draw

    _draw(model, path)


def write_figures(model, path):
    from cgnlearn.experiments import figures
    from cgnlearn.experiments.ovarian import Point

    figures.draw([Point("band", k, "bayes paper", 9 * k, 0.5, 0.1, -k, 0.1, 0, 0) for k in (1, 2)], path.parent)


WRITERS = {
    "model.skops": write_model, "part.stats": write_statistics, "report.html": write_report, "graph.svg": write_graph,
    "graph.png": write_graph, "graph.dot": write_graph, "accuracy.svg cll.svg": write_figures,
}  # fmt: skip


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.slow
def test_every_writer_leaves_the_good_file(name, disk, model):
    path, *_ = paths = [disk.folder / own for own in name.split()]
    for own in paths:
        own.write_bytes(b"good")
    before = disk.files
    disk.fill()
    with pytest.raises(NotWrittenError, match="No space left"):
        WRITERS[name](model, path)
    assert disk.files == before
    disk.make_room()
    WRITERS[name](model, path)
    assert disk.files.keys() == before.keys()
    assert b"good" not in disk.files.values()


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.slow
def test_every_format_of_spectra_leaves_the_good_files(format, disk):
    pytest.importorskip("psims" if format == "mzML" else "pyteomics")
    first, second = (make_raw_spectra(2, n_points=200, random_state=seed) for seed in (0, 1))
    first.write(disk.folder, format)
    before = disk.files
    disk.fill()
    with pytest.raises(NotWrittenError, match="No space left"):
        second.write(disk.folder, format)
    assert disk.files == before
    disk.make_room()
    second.write(disk.folder, format)
    assert disk.files.keys() == before.keys()
    assert all(disk.files[name] != before[name] for name in before if not name.endswith(("acqus", "labels.csv")))


# ---- a run that adds samples as it goes


def test_a_run_on_a_full_disk_keeps_what_it_had(disk):
    first = Run(WORK, disk.folder).go_on()
    next(first)
    first.close()
    before = disk.files
    disk.fill()
    with pytest.raises(NotWrittenError, match="No space left"):
        list(Run(WORK, disk.folder).go_on())
    assert disk.files == before
    disk.make_room()
    assert len(list(Run(WORK, disk.folder).go_on())) == len(UNITS) - 1


def test_rows_are_added_whole_or_not_at_all(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "rows.csv"
    add_whole(path, "a,b\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))  # as if the disk had so many bytes left
    try:
        for text in ("1,2\n3,4\n5,6\n", "7,8\n"):
            if len(text) > 4:
                with pytest.raises(NotWrittenError, match=r"rows\.csv cannot be written"):
                    add_whole(path, text)
            else:
                add_whole(path, text)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "a,b\n7,8\n"


# ---- commands


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Files to work on, which lie on another disk."""
    folder = tmp_path_factory.mktemp("given")
    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    rows = pd.DataFrame(rng.normal(size=(60, 3)) + label[:, None], columns=list("abc")).assign(y=label)
    rows.to_csv(folder / "rows.csv", index=False)
    rows.to_parquet(folder / "samples.parquet")
    model = CGNClassifier().fit(rows[list("abc")], label.astype(str))
    save(model, folder / "model.skops")
    save(model.statistics_, folder / "part.stats")
    make_raw_spectra(8, n_points=500, random_state=0).write(folder, "txt")
    return folder


DATA = ["rows.csv", "--target", "y", "-s", "naive_bayes"]
PARTS = ["samples.parquet", "--target", "y", "-s", "naive_bayes", "--memory", "1KB"]
COMMANDS = {  # a word that begins with @ is a path on the full disk
    "fit": ["fit", *DATA, "-o", "@model.skops"],
    "fit, statistics": ["fit", *DATA, "-o", "@part.stats"],
    "fit, in parts": ["fit", *PARTS, "-o", "@model.skops"],
    "predict": ["predict", "model.skops", "rows.csv", "-o", "@predictions.csv"],
    "predict, in parts": ["predict", "model.skops", "samples.parquet", "--memory", "1KB", "-o", "@predictions.csv"],
    "evaluate": ["evaluate", *DATA, "--cv", "2", "-o", "@results"],
    "evaluate, report": ["evaluate", *DATA, "--cv", "2", "--report", "@report.html"],
    "evaluate, in parts": ["evaluate", *PARTS, "--cv", "2", "-o", "@results"],
    "merge": ["merge", "part.stats", "part.stats", "-o", "@model.skops"],
    "merge, statistics": ["merge", "part.stats", "part.stats", "-o", "@sum.stats"],
    "spectra": ["spectra", "spectra", "--labels", "labels.csv", "--width", "200", "-o", "@table.csv"],
    "spectra, parquet": ["spectra", "spectra", "--labels", "labels.csv", "--width", "200", "-o", "@table.parquet"],
    "inspect": ["inspect", "model.skops", "--graph", "@graph.svg"],
    "reproduce": ["reproduce", "ovarian", "--quick", "--jobs", "1", "-o", "@results"],
    "demo": ["demo", "-o", "@report.html"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.slow
def test_every_command_leaves_the_good_files(name, disk, given, monkeypatch):
    monkeypatch.chdir(given)
    demonstration = "cgnlearn.reporting.demonstration"
    monkeypatch.setattr(f"{demonstration}.comparisons", list)  # of which nothing is written
    monkeypatch.setattr(f"{demonstration}.raw_spectra", lambda: make_raw_spectra(2, n_points=200, random_state=0))
    words = [str(disk.folder / word[1:]) if word.startswith("@") else word for word in COMMANDS[name]]
    if name.startswith("evaluate") and "-o" in words:
        assert CliRunner().invoke(main, words).exit_code == 0
        assert "results/summary.csv" in disk.files
    elif name not in ("demo", "reproduce"):
        Path(words[-1]).write_bytes(b"good")
    before = disk.files
    disk.fill()
    found = CliRunner().invoke(main, words)
    assert found.exit_code in (1, 2)
    *_, last = found.stderr.splitlines()
    assert last.startswith("cgnlearn: error: ")
    assert "No space left" in last
    assert "Traceback" not in found.stderr
    assert disk.files == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_what_is_printed_onto_a_full_disk_is_an_error(given):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-m", "cgnlearn", "inspect", given / "model.skops", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == "cgnlearn: error: [Errno 28] No space left on device\n"
