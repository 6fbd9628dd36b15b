"""Files are written whole or not at all, and one run at a time works in a folder."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from cgnlearn import CGNClassifier, load, save
from cgnlearn.cli.main import main
from cgnlearn.evaluation.run import Run
from cgnlearn.files import FolderInUseError, NotWrittenError, check_writable, held, whole_file, write_whole
from tests.evaluation.test_run import UNITS, WORK


@pytest.fixture
def model(mixed):
    X, y, _ = mixed
    return CGNClassifier("tan").fit(X, y)


def test_what_fails_half_way_leaves_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_text("good")
    with pytest.raises(ValueError, match="invalid literal"), whole_file(path) as file:
        file.writelines(int(text).to_bytes() for text in ("1", "two"))
    assert path.read_text() == "good"
    assert os.listdir(tmp_path) == ["file"]


def test_links_modes_and_long_names_are_kept(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    write_whole(tmp_path / ("n" * 250), ["a", "b"])
    assert (tmp_path / ("n" * 250)).read_text() == "ab"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs devices")
def test_devices_are_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    check_writable(pipe)
    write_whole(pipe, "through")
    assert reader.communicate()[0] == b"through"
    assert pipe.is_fifo()


def test_outputs_are_tried_beforehand(tmp_path, monkeypatch):
    with pytest.raises(NotWrittenError, match="there is no folder"):
        check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path / "a" / "b", makes_folder=True)
    (tmp_path / "file").touch()
    with pytest.raises(NotWrittenError, match="is not a folder"):
        check_writable(tmp_path / "file" / "b")
    assert os.listdir(tmp_path) == ["file"]

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(NotWrittenError, match=r"Permission denied\)"):
        check_writable(tmp_path / "other")


@pytest.mark.parametrize("words", [["fit", "-o", "absent/m.skops"], ["evaluate", "--report", "file/r.html"],
                                   ["evaluate", "-o", "file/results"]])  # fmt: skip
def test_commands_try_their_outputs_before_they_read_a_row(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "data.csv").write_text("this is no table")
    found = CliRunner().invoke(main, [words[0], "data.csv", "--target", "y", *words[1:]])
    assert found.exit_code == 2
    assert "cannot be written" in found.stderr
    assert found.stderr.count("\n") == 1


# ---- one run at a time


def test_a_second_run_is_refused_while_the_first_lives(tmp_path):
    first = Run(WORK, tmp_path).go_on()
    next(first)
    second = Run(WORK, tmp_path)
    with pytest.raises(FolderInUseError, match="in use by another run"):
        next(second.go_on())
    list(first)
    assert list(second.go_on()) == []  # and it computes nothing twice
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == len(set(lines)) == 1 + 2 * len(UNITS)
    assert {path.name for path in tmp_path.iterdir()} == {"rows.csv", "manifest.json"}


def test_a_lock_that_was_removed_is_no_lock(tmp_path):
    with held(tmp_path):
        (tmp_path / ".lock").unlink()
        with held(tmp_path):
            pass


HOLD = "import sys, time; from pathlib import Path; from cgnlearn.files import held\n" \
       "with held(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)\n"  # fmt: skip


def test_a_killed_process_keeps_out_nobody(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(FolderInUseError), held(tmp_path):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / ".lock").exists()
    with held(tmp_path):
        pass


TWO = """
import sys
from dataclasses import replace
from pathlib import Path
from cgnlearn.evaluation.run import Run
from tests.evaluation.test_run import WORK, rows_of
import time
def slow(unit):
    time.sleep(0.15)
    return rows_of(unit)
print("ready", flush=True)
list(Run(replace(WORK, compute=slow), Path(sys.argv[1])).go_on())
"""


@pytest.mark.slow
def test_a_run_killed_beside_a_second_one_ends_the_same(tmp_path):
    """At many moments: the first is killed, the second, refused or not, is called until it is done."""
    clean = tmp_path / "clean"
    list(Run(WORK, clean).go_on())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])}
    for number, moment in enumerate((0.0, 0.1, 0.25, 0.4)):
        folder = tmp_path / str(number)
        words = [sys.executable, "-c", TWO, folder]
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout.readline() == b"ready\n"
            time.sleep(moment)
            try:
                list(Run(WORK, folder).go_on())
            except FolderInUseError:
                process.send_signal(signal.SIGKILL)
            process.wait()
        list(Run(WORK, folder).go_on())
        assert (folder / "rows.csv").read_bytes() == (clean / "rows.csv").read_bytes()
        assert json.loads((folder / "manifest.json").read_text())["settings"]


def test_save_replaces_a_model_in_one_step(model, tmp_path, mixed):
    path = tmp_path / "model.skops"
    save(model, path)
    with open(path, "rb") as reader:  # who reads the old file goes on reading the old file
        save(model, path)
        old = reader.read()
    assert old[:2] == b"PK"
    np.testing.assert_array_equal(load(path).predict(mixed[2]), model.predict(mixed[2]))
    with pytest.raises(NotWrittenError, match="No such file"):
        save(model, tmp_path / "absent" / "model.skops")
