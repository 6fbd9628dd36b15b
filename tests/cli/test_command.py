"""What holds for all commands: outputs replace no input, names are printed as they stand, help is in sections."""

import io
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cgnlearn.cli import terminal
from cgnlearn.cli.console import console
from cgnlearn.cli.main import main
from tests.cli.running import run

QUICK = ("-s", "naive_bayes", "-p", "bayes")


@pytest.fixture
def made(tmp_path):
    """A table, a model and statistics."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    frame = pd.DataFrame(
        {"x": rng.normal(size=40) + 2 * y, "z": rng.normal(size=40), "k": np.array(["ill", "well"])[y]}
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "costs.csv").write_text("k,treat,wait\nill,0,5\nwell,1,0\n")
    for name in ("m.skops", "m.stats"):
        assert run("fit", tmp_path / "data.csv", "-t", "k", *QUICK, "-o", tmp_path / name).exit_code == 0
    return tmp_path


# ---- outputs and inputs


def test_no_output_replaces_an_input(made, monkeypatch):
    monkeypatch.chdir(made)
    (made / "link.csv").symlink_to("data.csv")
    os.link("m.skops", "hard.skops")
    (made / "rows.csv").write_bytes((made / "data.csv").read_bytes())
    before = {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}
    fit, evaluate = (("fit", "data.csv", "-t", "k", *QUICK), ("evaluate", "data.csv", "-t", "k", *QUICK))
    predict = ("predict", "m.skops", "data.csv")
    for words in (
        (*fit, "-o", "data.csv"), (*fit, "-o", made / "data.csv"), (*fit, "-o", "link.csv"),
        (*fit, "-o", f"./../{made.name}/data.csv"),
        ("fit", "link.csv", "-t", "k", *QUICK, "-o", "data.csv"),
        (*predict, "-o", "data.csv"), (*predict, "-o", "m.skops"), (*predict, "-o", "hard.skops"),
        (*predict, "--cost", "costs.csv", "-o", "costs.csv"),
        (*evaluate, "--report", "data.csv"), (*evaluate, "--cost", "costs.csv", "--report", "costs.csv"),
        ("evaluate", "rows.csv", "-t", "k", *QUICK, "-o", "."), (*evaluate, "-o", "new", "--report", "new/rows.csv"),
        ("merge", "m.stats", "m.stats", "-o", "m.stats"), ("inspect", "m.skops", "--graph", "m.skops"),
    ):  # fmt: skip
        found = run(*words)
        assert (found.exit_code, found.stdout) == (2, ""), words
        assert "would overwrite" in found.stderr, words
        assert found.stderr.count("\n") == 1
    assert before == {path.name: path.read_bytes() for path in made.iterdir() if path.is_file()}
    assert run(*predict, "-o", "new.csv").exit_code == 0
    assert run(*predict, "-o", "new.csv").exit_code == 0  # an output of before may be replaced


def test_no_output_replaces_a_spectrum(made, monkeypatch):
    monkeypatch.chdir(made)
    (made / "spectra").mkdir()
    for name in "abcd":
        (made / "spectra" / f"{name}.csv").write_text("\n".join(f"{1000 + i},{i}" for i in range(30)))
    (made / "labels.csv").write_text("file,label\n" + "".join(f"{name}.csv,{name in 'ab'}\n" for name in "abcd"))
    for command in ("spectra", "fit"):
        for output in ("labels.csv", "spectra/a.csv"):
            found = run(command, "spectra", "--labels", "labels.csv", "-o", output)
            assert found.exit_code == 2
            assert "would overwrite" in found.stderr


# ---- what is printed


def test_without_a_word_the_help_is_printed():
    for words in ((), ("--debug",)):
        found = run(*words)
        assert found.exit_code == 0
        assert found.stdout == run("--help").stdout
        assert len(found.stdout.splitlines()) > 10
        assert found.stderr == ""


def test_help_has_sections():
    sections = re.findall(r"^(\w+):$", run("evaluate", "--help").stdout, flags=re.MULTILINE)
    assert sections == ["Data", "Model", "Evaluation", "Output", "Spectra", "Structure"]
    assert "Prediction:" in run("predict", "--help").stdout
    for name, command in main.commands.items():
        said = run(name, "--help").stdout
        assert not re.findall(r"^  [A-Z]+$", said, flags=re.MULTILINE), name  # an argument is no option
        for option in [opt for param in command.params for opt in param.opts if opt.startswith("--")] + ["--help"]:
            assert len(re.findall(rf"^  .*{option}\b", said, flags=re.MULTILINE)) >= 1, (name, option)


def test_brackets_in_names_are_no_markup(tmp_path):
    rng = np.random.default_rng(0)
    classes = np.array(["[red]", "[/b]", ":smile:"])[np.arange(45) % 3]
    path = tmp_path / "data[bold].csv"
    pd.DataFrame({"[x]": rng.normal(size=45), "k": classes}).to_csv(path, index=False)
    found = run("evaluate", path, "-t", "k", *QUICK, "--cv", "3", "--positive", "[/b]")
    assert found.exit_code == 0, found.stderr
    assert "data[bold].csv: stratified" in found.stdout
    assert "[/b] against the others" in found.stdout
    model = tmp_path / "m[b].skops"
    assert str(model) in run("fit", path, "-t", "k", *QUICK, "-o", model).stderr
    assert "probability_:smile:" in run("predict", model, path).stdout


def test_bars_take_brackets_for_what_they_are(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(terminal, "console", lambda **_: console(file=shown, force_terminal=True, width=80))
    with terminal.waiting("reading data[/b].csv") as more:
        more("[red]")
    with terminal.counted("counting data[/b].csv") as progress:
        progress(1, 2)
    assert list(terminal.with_progress(["a"], "[/b]", 0, terminal.Pace(["a"]))) == ["a"]
    assert "data[/b].csv" in shown.getvalue()


CYRILLIC = (
    ("evaluate", "Ω.csv", "-t", "k", *QUICK, "--cv", "2", "--positive", "кашель"),
    ("fit", "Ω.csv", "-t", "k", *QUICK, "-o", "Ω.skops"),
    ("predict", "Ω.skops", "Ω.csv"),
    ("inspect", "Ω.skops"),
    ("evaluate", "Ω.csv", "-t", "ж"),
)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_signs_that_the_terminal_lacks_are_replaced(made, encoding, monkeypatch):
    monkeypatch.chdir(made)
    (made / "Ω.csv").write_bytes((made / "data.csv").read_text().replace("ill", "кашель").encode())
    for words in CYRILLIC:
        found = CliRunner(charset=encoding).invoke(main, words, prog_name="cgnlearn")
        assert isinstance(found.exception, SystemExit | None), found.exception
        assert found.exit_code == (2 if words[-1] == "ж" else 0), found.stderr
        if "--positive" in words:
            assert (" +- 0." if encoding == "ascii" else " ± 0.") in found.stdout
            assert ("кашель" if encoding == "utf-8" else "\\u043a\\u0430\\u0448") in found.stdout


@pytest.mark.slow
def test_a_terminal_of_ascii(made):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    (made / "Ω.csv").write_bytes((made / "data.csv").read_text().replace("ill", "кашель").encode())
    for words in CYRILLIC:
        found = subprocess.run(
            [sys.executable, "-m", "cgnlearn", *words], cwd=made, env=environment, capture_output=True, check=False
        )
        assert found.returncode == (2 if words[-1] == "ж" else 0), found.stderr
        assert b"Traceback" not in found.stderr
        assert "--positive" not in words or b" +- 0." in found.stdout


def test_formulas_are_defused(made):
    frame = pd.read_csv(made / "data.csv")
    frame["k"] = np.where(frame["k"] == "ill", "=1+1", "-1")
    frame["name"] = [f"@SUM({i})" if i % 2 else str(-i) for i in range(40)]
    frame.to_csv(made / "data.csv", index=False)
    call = (made / "data.csv", "-t", "k", "--id", "name", *QUICK)
    assert run("fit", *call, "-o", made / "m.skops").exit_code == 0
    rows = pd.read_csv(io.StringIO(run("predict", made / "m.skops", made / "data.csv").stdout), dtype=str)
    assert set(rows["predicted"]) == {"'=1+1", "-1"} == set(rows["k"])  # numbers are no formulas
    assert rows["id"][:3].tolist() == ["0", "'@SUM(1)", "-2"]
    for _ in range(2):  # and a run is continued
        found = run("evaluate", *call, "--cv", "2", "-o", made / "out")
        assert found.exit_code == 0, found.stderr
    assert "continuing from 4 of 4" in found.stderr
    rows = pd.read_csv(made / "out" / "rows.csv", dtype=str)
    assert set(rows["true"]) == {"'=1+1", "-1"}
    assert not rows.apply(lambda column: column.str.startswith(("=", "@"))).to_numpy().any()
