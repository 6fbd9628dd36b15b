"""The transcripts in the documents are what the commands say."""

import re
from pathlib import Path
from runpy import run_path

import click
import pytest
import sklearn
from click.testing import CliRunner
from sklearn.datasets import load_wine
from sklearn.utils.fixes import parse_version

from cgnlearn.cli.main import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "command-line.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
TRANSCRIPTS = [
    (command, said.strip())
    for block in BLOCKS
    for command, said in re.findall(r"\$ cgnlearn (.*)\n((?:(?!\$ ).*\n)*)", block)
]
SESSIONS = run_path(str(DOCS / "transcripts.py"))
# Who wrote a file, and progress, which only a slow machine shows.
OWN_MACHINE = re.compile(r"^written by .*$|^training checksum .*$|^cgnlearn: .* left\n", flags=re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    wine = load_wine(as_frame=True).frame.rename(columns={"target": "cultivar"})
    wine.to_csv(folder / "wine.csv", index=False)
    lines = (folder / "wine.csv").read_text().splitlines(keepends=True)
    (folder / "few.csv").write_text("".join(lines[:8] + lines[-5:]))
    lines[14] = "l" + lines[14][1:]
    (folder / "typo.csv").write_text("".join(lines))
    SESSIONS["clinic"](None, folder)
    header, *rows = (folder / "klinik.csv").read_text(encoding="latin-1").splitlines()
    (folder / "neu.csv").write_text("\n".join([header, *rows[:3]]), encoding="latin-1")
    (folder / "kosten.csv").write_text("Klasse;behandeln;warten\nkrank;0;20\ngesund;1;0\n")
    return folder


def test_transcripts_hold(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert len(TRANSCRIPTS) >= 12
    for command, expected in TRANSCRIPTS:
        if "cut.skops" in command:
            (folder / "cut.skops").write_bytes((folder / "wine.skops").read_bytes()[:2000])
        found = CliRunner().invoke(main, command.split(), prog_name="cgnlearn")
        said = "\n".join(line.rstrip() for line in (found.stdout + found.stderr).strip().splitlines())
        assert OWN_MACHINE.sub("", said) == OWN_MACHINE.sub("", expected), command


def test_every_option_of_every_command_is_listed():
    tables = PAGE.split("## Options")[1]
    listed = {
        (command, option)
        for options, commands in re.findall(r"^\| (`-.*?`) \| (.*?) \|", tables, flags=re.MULTILINE)
        for command in commands.split(", ")
        for option in re.findall(r"`(.*?)`", options)
    }
    context = click.Context(main)
    commands = {name: main.get_command(context, name).params for name in main.list_commands(context)}
    options = {(name, option) for name, params in commands.items() for param in params for option in param.opts}
    assert listed == {(name, option) for name, option in options if option.startswith("-")}
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE.split("## Data")[0], flags=re.MULTILINE)) == set(commands)


def test_options_of_commands_in_the_pages_exist():
    context, found = click.Context(main), 0
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        text = page.read_text(encoding="utf-8")
        for name, words in re.findall(r"^(?:\$ )?cgnlearn ([a-z]+)([^#\n]*)", text, flags=re.MULTILINE):
            command = main.get_command(context, name)
            assert command is not None, f"{page.name}: {name}"
            known = {option for param in command.params for option in param.opts}
            assert {word for word in words.split() if word.startswith("-")} <= known, f"{page.name}: {name}{words}"
            found += 1
    assert found > 60


# Folds that keep groups together, and logistic regressions, differ between scikit-learn's versions.
as_the_page_was_made = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.9"), reason="the page was made with scikit-learn 1.9"
)


@as_the_page_was_made
@pytest.mark.parametrize("session", [each for each in SESSIONS["SESSIONS"] if not each.needs_data])
@pytest.mark.slow
def test_the_page_of_transcripts_holds(session, tmp_path):
    assert SESSIONS["transcript"](session, None, tmp_path) == SESSIONS["in_page"](session)


@as_the_page_was_made
@pytest.mark.shared
@pytest.mark.filterwarnings("default")  # which commands say
@pytest.mark.parametrize("session", [each for each in SESSIONS["SESSIONS"] if each.needs_data])
@pytest.mark.slow
def test_the_page_of_transcripts_holds_for_public_files(session, tmp_path, shared):
    assert SESSIONS["transcript"](session, shared / "data", tmp_path) == SESSIONS["in_page"](session)


def test_every_picture_and_page_that_is_linked_is_there():
    for page in DOCS.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            name = "GALLERY_HEADER.rst" if link == "gallery/index" else f"{Path(link).name}.py"
            made = DOCS / "examples" / name  # of which the gallery is made
            there = made.exists() if link.startswith("gallery/") else (DOCS / link).exists()
            assert link.startswith("http") or there, f"{page.name} links to {link}"


def test_what_we_aim_at_ourselves_is_not_published():
    aims = re.compile(r"\(wanted: |, (met|missed)$|\| limit \|", re.MULTILINE)
    assert [page.name for page in DOCS.glob("*.md") if aims.search(page.read_text(encoding="utf-8"))] == []
