"""What is built for others to install: it is whole, and the README's three commands work with it."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_wine

from cgnlearn.cli.main import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
UV = (sys.executable, "-m", "uv")
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout")


def run(*command, **options):
    found = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    pytest.importorskip("build", reason="needs build")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
    return folder


@pytest.mark.slow
def test_files_pass_twine(built):
    pytest.importorskip("twine", reason="needs twine")
    assert run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built.iterdir())).count("PASSED") == 2


def test_the_readmes_links_lead_somewhere():
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README)]
    assert [link for link in links if not link.startswith("https://") and not (ROOT / link).exists()] == []


def test_versions_agree():
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/cgnlearn/__init__.py").read_text(encoding="utf-8"))[1]
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'version = "{version}"' in (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_placeholder_is_listed():
    listed = set(re.findall(r"PLACEHOLDER_[A-Z0-9_]+", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    places = [
        ROOT / "conda" / "meta.yaml",
        *(ROOT / ".github").rglob("*.yml"),
        *(ROOT / "paper").glob("*"),
        ROOT / "pyproject.toml",
    ]
    found = {
        name for place in places for name in re.findall(r"PLACEHOLDER_[A-Z0-9_]+", place.read_text(encoding="utf-8"))
    }
    assert found == listed


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    """An interpreter with nothing beside it, where packages can be had; by uv, which does in seconds what pip does."""
    pytest.importorskip("uv", reason="needs uv")
    folder = tmp_path_factory.mktemp("clean") / "venv"
    run(*UV, "venv", "--quiet", "--python", sys.executable, str(folder))
    python = str(folder / "bin" / "python")
    try:
        run(*UV, "pip", "install", "--quiet", "--python", python, "click")
    except AssertionError:
        pytest.skip("no package index can be reached")
    return python


@pytest.mark.slow
def test_the_readmes_three_commands_on_a_file_of_ones_own(built, clean_python, tmp_path):
    # Built by way of the sdist, so that the wheel has what that has.
    section = README.partition("## Three commands on a file of your own")[2].partition("```")[2].partition("```")[0]
    commands = [shlex.split(line, comments=True) for line in section.strip().splitlines()]
    assert [command[:2] for command in commands] == [["pip", "install"], ["cgnlearn", "evaluate"], ["cgnlearn", "fit"]]
    wine = load_wine()
    columns, classes = wine.data[::4, :4].round(3).astype(str), wine.target_names[wine.target[::4]]
    lines = [[*wine.feature_names[:4], "class"], *np.column_stack([columns, classes]).tolist()]
    (tmp_path / "data.csv").write_text("\n".join(",".join(line) for line in lines), encoding="utf-8")
    bin_folder = str(Path(clean_python).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]])}
    environment.pop("PYTHONPATH", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is not compiled yet
    (_, *install), evaluate, fit = commands
    run(*UV, "pip", install[0], "--python", clean_python, "--find-links", str(built), *install[1:], env=environment)
    for program, *arguments in (
        [*evaluate, "--cv", "2"],
        fit,
        ["cgnlearn", "predict", "model.skops", "data.csv", "-o", "out.csv"],
    ):
        run(f"{bin_folder}/{program}", *arguments, cwd=tmp_path, env=environment)
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == len(lines)
    where = run(clean_python, "-c", "import cgnlearn; print(cgnlearn.__file__)", cwd=tmp_path, env=environment)
    assert Path(where.strip()).is_relative_to(Path(clean_python).parents[1])


def commands_of(block):
    """The words of each command; one goes on while its quotation marks are open."""
    begun = ""
    for line in block.splitlines(keepends=True):
        begun += line
        try:
            words = shlex.split(begun, comments=True)
        except ValueError:
            continue
        begun = ""
        if words:
            yield words


@pytest.mark.slow
def test_the_whole_way_in_commands(tmp_path, monkeypatch):
    """Those of the page on how to start, on fewer rows and spectra, and in the process of the tests."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8").partition("## The whole way")[2]
    commands = [command for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) for command in commands_of(block)]
    verbs = "-c evaluate fit predict validate update export -c simulated spectra evaluate fit predict"
    assert [command[1] for command in commands] == verbs.split()
    fewer = {"[:300]": "[:60]", "[300:]": "[60:120]", "data.assign": "data.iloc[:, -5:].assign", "(30, ": "(8, "}
    for program, *arguments in commands:
        for usual, small in fewer.items():
            arguments = [argument.replace(usual, small) for argument in arguments]
        more = ["--structure", "naive_bayes"] if arguments[0] in ("evaluate", "fit") else []
        more += ["--cv", "2"] if arguments[0] == "evaluate" else []
        if program == "cd":
            monkeypatch.chdir(tmp_path / arguments[0])
        elif program == "cgnlearn":
            found = CliRunner().invoke(main, [*arguments, *more], prog_name="cgnlearn")
            assert found.exit_code == 0, found.output
        else:
            run(sys.executable, *arguments)
    for name in ("report", "there", "calculator", "simulated/quality", "simulated/report"):
        assert "<html" in (tmp_path / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_first_example_needs_what_every_install_brings_and_no_more():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    absent = sorted({re.match(r"\w+", need)[0] for needs in extras for need in needs} - {"cgnlearn"})
    assert "pandas" in absent
    first = README.partition("## Two commands")[0]
    run(sys.executable, "-c", WITHOUT, first, *absent)


WITHOUT = """
import doctest, sys
class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in sys.argv[2:]:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
examples = doctest.DocTestParser().get_doctest(sys.argv[1], {}, "README", None, 0)
assert len(examples.examples) > 8
sys.exit(doctest.DocTestRunner().run(examples).failed)
"""
