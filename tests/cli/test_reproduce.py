import json

import pytest
from click.testing import CliRunner

from cgnlearn.cli.reproduce import reproduce


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["uci", "--quick", "--download"], "embedded"),
        (["uci", "--raw", "."], "--raw is for ovarian"),
        (["ovarian", "--download"], "--download is for uci"),
        (["ovarian", "--raw", ".", "--data-dir", "."], "in place of --data-dir"),
        (["uci", "--jobs", "0"], "number of processes"),
        (["mnist"], "'uci'"),
    ],
)
def test_wrong_calls_are_told(arguments, message):
    done = CliRunner().invoke(reproduce, arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_missing_file_is_told(tmp_path):
    done = CliRunner().invoke(reproduce, ["uci", "--data-dir", str(tmp_path), "-o", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "balance-scale.csv does not exist" in str(done.exception)


def test_the_quick_ovarian_run_writes_tables_figures_and_a_manifest(tmp_path):
    arguments = ["ovarian", "--quick", "--jobs", "1", "-o", str(tmp_path)]
    first = CliRunner().invoke(reproduce, arguments, catch_exceptions=False)
    folder = tmp_path / "ovarian"
    names = {"rows.csv", "points.csv", "tables.md", "accuracy.svg", "cll.svg", "manifest.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert first.stdout == (folder / "tables.md").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["spectra"]["generated"] is True
    assert manifest["sessions"][0]["units"] == 10
    # Called again there is nothing to do, and the same is said and written.
    content = {name: (folder / name).read_bytes() for name in names - {"manifest.json"}}
    again = CliRunner().invoke(reproduce, arguments, catch_exceptions=False)
    assert "continuing from 10 of 10" in again.stderr
    assert again.stdout == first.stdout
    assert {name: (folder / name).read_bytes() for name in names - {"manifest.json"}} == content


@pytest.mark.slow
def test_the_quick_uci_run_sets_the_paper_s_marks_beside_ours(tmp_path):
    done = CliRunner().invoke(reproduce, ["uci", "--quick", "--jobs", "2", "-o", str(tmp_path)], catch_exceptions=False)
    assert {path.name for path in (tmp_path / "uci").iterdir()} == {
        "rows.csv",
        "comparisons.csv",
        "tables.md",
        "manifest.json",
    }
    assert "| bwGJAN | 1 balance-scale | 4 iris | 8 waveform | 9 wine |" in done.stdout
    # Averaging helps where rows are few: certain even on so small a version.
    assert "| CLL 20% ours, paper |" in done.stdout
    lines = (tmp_path / "uci" / "comparisons.csv").read_text().splitlines()
    columns = lines[0].split(",")
    cells = [dict(zip(columns, line.split(","), strict=True)) for line in lines[1:]]
    waveform = [c for c in cells if (c["dataset"], c["metric"], c["fraction"]) == ("waveform", "cll", "0.2")]
    assert len(waveform) == 9
    assert {c["mark"] for c in waveform} == {"win"}
