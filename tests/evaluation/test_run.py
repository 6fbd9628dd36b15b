"""The resumable run, with parts that cost nothing; and killed at random moments with parts that do."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cgnlearn
from cgnlearn.evaluation.run import OtherResultsError, Run, Unit, Work, csv_text, read_rows
from tests.evaluation.kills import N_KILLS, small_experiment

UNITS = [Unit("b", 0, 0), Unit("a", 0, 0), Unit("b", 0, 1)]


def rows_of(unit):
    return [("ml", 0.1 * unit.fold + 1 / 3), ("bayes", -1e-7)]


WORK = Work(
    columns=("dataset", "repetition", "fold", "model", "score"),
    sizes=dict.fromkeys(UNITS, 2),
    compute=rows_of,
    arguments=lambda unit: (unit,),
    settings={"seed": 0},
)


def finished_bytes(folder, work=WORK, jobs=1):
    for _ in Run(work, folder).go_on(jobs):
        pass
    return (folder / "rows.csv").read_bytes()


def test_the_finished_file_is_in_the_units_order_whatever_the_order_of_work(tmp_path):
    content = finished_bytes(tmp_path / "clean")
    lines = content.decode().splitlines()
    assert lines[0] == "dataset,repetition,fold,model,score"
    assert lines[1:3] == ["b,0,0,ml,0.3333333333", "b,0,0,bayes,-1e-07"]
    assert [line[0] for line in lines[1:]] == list("bbaabb")
    backwards = replace(WORK, sizes=dict(reversed(WORK.sizes.items())))
    unit = next(Run(backwards, tmp_path / "part").go_on())
    assert unit == UNITS[2]
    assert Run(WORK, tmp_path / "part").missing == UNITS[:2]
    assert finished_bytes(tmp_path / "part") == content


def test_only_the_units_named_are_computed_and_the_others_stay(tmp_path):
    assert list(Run(WORK, tmp_path).go_on(among={UNITS[1]})) == [UNITS[1]]
    assert list(Run(WORK, tmp_path).go_on(among={UNITS[1], UNITS[2]})) == [UNITS[2]]
    assert Run(WORK, tmp_path).missing == [UNITS[0]]
    assert list(Run(WORK).go_on(among=())) == []


def test_whatever_length_a_killed_process_leaves_the_end_is_the_same(tmp_path):
    whole = finished_bytes(tmp_path)
    for length in range(len(whole) + 1):
        (tmp_path / "rows.csv").write_bytes(whole[:length])
        # A unit is taken up only with its last line's end.
        assert len(Run(WORK, tmp_path).missing) == 3 - max(0, whole[:length].count(b"\n") - 1) // 2
        assert finished_bytes(tmp_path) == whole


def test_lines_that_are_no_rows_and_units_that_stand_twice_are_computed_again(tmp_path):
    whole = finished_bytes(tmp_path)
    more = b"\0\0\0\0\n" + b"a,0,0,ml,0.3333333333\n" + b"\xff\xfe,,\nc,0,0,ml,1\nc,0,0,ml,1\n"
    (tmp_path / "rows.csv").write_bytes(whole + more)
    assert Run(WORK, tmp_path).missing == [Unit("a", 0, 0)]
    assert finished_bytes(tmp_path) == whole
    (tmp_path / "rows.csv").write_bytes(whole.replace(b"a,0,0,ml", b'a,0,0,"ml') + b"x" * 200_000 + b"\n")
    assert Run(WORK, tmp_path).missing == [Unit("a", 0, 0), Unit("b", 0, 1)]
    assert finished_bytes(tmp_path) == whole


def test_a_file_with_other_columns_is_refused_and_left_alone(tmp_path):
    finished_bytes(tmp_path)
    (tmp_path / "rows.csv").write_text("dataset,other\n1,2\n")
    with pytest.raises(OtherResultsError, match="other columns"):
        Run(WORK, tmp_path)
    assert (tmp_path / "rows.csv").read_text() == "dataset,other\n1,2\n"


def test_rows_that_would_break_the_file_are_refused(tmp_path):
    for rows in ([("ml", 1.0)], [("ml", 1.0, 2.0), ("bayes", 1.0, 2.0)]):
        run = Run(replace(WORK, compute=lambda unit, rows=rows: rows), tmp_path)
        with pytest.raises(ValueError, match="do not match"):
            next(run.go_on())
        assert len(run.missing) == 3


def test_commas_quotes_and_line_ends_inside_a_field_survive(tmp_path):
    work = replace(WORK, compute=lambda unit: [('"ml", tempered', 1.0), ("two\nlines", 0.5)])
    whole = finished_bytes(tmp_path, work)
    assert Run(work, tmp_path).missing == []
    assert [row["model"] for row in read_rows(tmp_path / "rows.csv")] == ['"ml", tempered', "two\nlines"] * 3
    for length in range(whole.index(b"\n") + 1, len(whole)):
        (tmp_path / "rows.csv").write_bytes(whole[:length])
        assert finished_bytes(tmp_path, work) == whole


def test_csv_text_has_ten_digits():
    assert csv_text(("a", "b"), (1, 2 / 3)) == "a,b\n1,0.6666666667\n"


def test_a_finished_run_computes_nothing(tmp_path):
    calls = []
    work = replace(WORK, compute=lambda unit: calls.append(unit) or rows_of(unit))
    assert list(Run(work, tmp_path).go_on()) == UNITS
    again = Run(work, tmp_path)
    assert (again.missing, list(again.go_on())) == ([], [])
    assert calls == UNITS
    assert [session["units"] for session in json.loads((tmp_path / "manifest.json").read_text())["sessions"]] == [3, 0]


def test_without_a_folder_results_are_in_memory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(WORK)
    assert list(run.go_on()) == UNITS
    assert run.results == [rows_of(unit) for unit in UNITS]
    assert list(tmp_path.iterdir()) == []


def test_results_of_other_settings_or_another_version_are_refused(tmp_path, monkeypatch):
    before = finished_bytes(tmp_path)
    with pytest.raises(OtherResultsError, match=r"another seed \(0, not 1\): choose another folder"):
        Run(replace(WORK, settings={"seed": 1}), tmp_path)
    with pytest.raises(OtherResultsError, match=r"another data \(None, not a\.csv\)"):
        Run(replace(WORK, settings={"seed": 0, "data": "a.csv"}), tmp_path)
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text())
    content["settings"]["cgnlearn"] = "0.0.9"
    manifest.write_text(json.dumps(content))
    with pytest.raises(OtherResultsError, match=rf"another cgnlearn \(0\.0\.9, not {cgnlearn.__version__}\)"):
        Run(WORK, tmp_path)
    for text in ("{}", "{", "[]", "\xff"):
        manifest.write_bytes(text.encode("latin-1"))
        with pytest.raises(OtherResultsError, match="is not a manifest of cgnlearn"):
            Run(WORK, tmp_path)
    manifest.unlink()
    with pytest.raises(OtherResultsError, match=r"no manifest.json beside it"):
        Run(WORK, tmp_path)
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_other_versions_of_other_software_are_written_down_and_no_reason_to_refuse(tmp_path):
    run = Run(WORK, tmp_path)
    next(run.go_on())
    manifest = tmp_path / "manifest.json"
    content = json.loads(manifest.read_text())
    now = dict(content["sessions"][0]["software"])
    content["sessions"][0]["software"]["numpy"] = "1.0"
    manifest.write_text(json.dumps(content))
    assert len(Run(WORK, tmp_path).missing) == 2
    finished_bytes(tmp_path)
    sessions = json.loads(manifest.read_text())["sessions"]
    assert [session["software"] for session in sessions] == [now | {"numpy": "1.0"}, now]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_killed_ten_times_and_resumed_equals_a_clean_run(tmp_path):
    """And the clean run, made here by two processes, equals the one made there by one."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    script = Path(__file__).with_name("kills.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=environment, capture_output=True, text=True, check=True
    )
    left = json.loads(done.stdout)
    assert len(left) == N_KILLS
    killed = [lines for was_killed, lines in left if was_killed]
    assert len(killed) >= 5, "too few processes were alive when they were killed"
    assert len(set(killed)) >= 3, "the kills came all at the same moment"
    clean, resumed = ((tmp_path / name / "rows.csv").read_bytes() for name in ("clean", "killed"))
    assert resumed == clean
    assert finished_bytes(tmp_path / "two", small_experiment(), jobs=2) == clean
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("clean", "killed")]
    sessions = [manifest.pop("sessions") for manifest in manifests]
    assert manifests[0] == manifests[1]
    assert len(sessions[0]) == 1
    assert len(sessions[1]) > len(killed) - 3  # some are killed before they can write a word
    assert sessions[1][-1]["seconds"] >= 0
    assert sessions[0][0]["units"] == len(small_experiment().sizes)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.slow
def test_killed_at_every_point_it_ends_the_same(tmp_path):
    """The parent at every file that it opens or renames, then beside two workers; and one of these."""
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    script = Path(__file__).with_name("points.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["parent"]) > 8, "too few points"
    assert [killed for killed, _ in told["parent"]] == [True] * (len(told["parent"]) - 1) + [0]
    assert told["pair"][0][0] is True
    assert told["worker"][0][0] == 1  # it says so, and keeps what is done
    assert all(same for part in told.values() for _, same in part)
