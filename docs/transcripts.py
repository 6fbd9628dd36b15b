"""Write transcripts.md: python docs/transcripts.py FOLDER, with the public data sets in FOLDER."""

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
from click.testing import CliRunner

from cgnlearn.cli import terminal
from cgnlearn.cli.main import main as command_line

LONG = re.compile(r"-?\d+\.\d{5,}")
OWN_MACHINE = re.compile("written by|training checksum")
PAGE = Path(__file__).parent / "transcripts.md"
INTRODUCTION = """# Transcripts

The output of the commands for typical files, good and bad results alike. `python docs/transcripts.py FOLDER` writes this page, and a test runs the
same commands again. The first four data sets are public: UCI's heart disease (Hungarian) and credit approval, Singh's prostate cancer (102 samples, a quarter of the
12,600 features), and 96 MALDI-TOF spectra of four species; the others are simulated by the script. Few folds keep the test short; the default is ten.
Long numbers are rounded here, not in the files. Log loss is the mean of minus the log probability that a model gave to the true class: 0 is
perfect, and a model with a higher log loss than the class frequencies is worse than none.
"""


class Session(NamedTuple):
    """A file and the commands run on it."""

    title: str
    description: str
    prepare: Callable[[Path | None, Path], None]  # copies or writes files into the folder of the session
    commands: tuple[str, ...]
    needs_data: bool = True


def copied(source: str, n_new: int = 0) -> Callable[[Path | None, Path], None]:
    """Return a function that copies a file, and its first rows as new.csv."""

    def prepare(data: Path | None, folder: Path) -> None:
        assert data is not None
        path = Path(shutil.copy(data / source, folder))
        if n_new:
            lines = path.read_text().splitlines(keepends=True)
            (folder / "new.csv").write_text("".join(lines[: n_new + 1]))

    return prepare


def prostate(data: Path | None, folder: Path) -> None:
    """Write the classes and every fourth feature of the prostate data under a short name."""
    assert data is not None
    whole = pd.read_csv(data / "micro/singh_prostate_102x12600.csv.gz")
    features = whole.columns.drop("class")[::4]
    whole[[*features, "class"]].to_csv(folder / "prostate.csv.gz", index=False)


def species(data: Path | None, folder: Path) -> None:
    """Unpack raw spectra of four species, and write their table of labels."""
    assert data is not None
    with tarfile.open(data / "spectra/species4_raw_bruker/species_bruker_flex.tar.gz") as archive:
        archive.extractall(folder / "spectra", filter="data")
    lines = ["file,sample,label"]
    for fid in sorted((folder / "spectra").rglob("fid")):
        name = fid.parent.relative_to(folder / "spectra")
        lines.append(f"{name.as_posix()},{name.parts[0]}-{name.parts[1]},{name.parts[0]}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def visits(_: Path | None, folder: Path) -> None:
    """Simulate three visits of each of 30 patients, and those of a new patient."""
    rng = np.random.default_rng(0)
    lines = ["visit,patient,sex,marker,pressure,diagnosis"]
    for patient in range(31):
        ill = patient % 2
        own = rng.normal(size=2)
        for visit in range(3):
            marker, pressure = 2 * ill + own + 0.3 * rng.normal(size=2)
            sex, diagnosis = ("f", "m")[patient // 2 % 2], ("healthy", "ill")[ill]
            lines.append(
                f"V{3 * patient + visit:03},P{patient:02},{sex},{marker:.2f},{120 + 10 * pressure:.0f},{diagnosis}"
            )
    (folder / "visits.csv").write_text("\n".join(lines[:91]) + "\n")
    (folder / "new.csv").write_text("\n".join([lines[0], *lines[91:]]) + "\n")


def clinic(_: Path | None, folder: Path) -> None:
    """Simulate a table from a German Excel: semicolons, decimal commas, dates, missing values."""
    rng = np.random.default_rng(0)
    lines = ["Patient;Datum;Größe;Blutgruppe;CRP;Diagnose"]
    for i in range(63):
        ill = i % 3 == 0
        crp = f"{np.exp(rng.normal(1 + 1.5 * ill)):.1f}".replace(".", ",")
        height, blood = f"1,{rng.integers(55, 95)}", rng.choice(["A", "B", "0", "AB"])
        if i % 7 == 0:
            crp, height = "", "k.A." if i % 2 else height
        lines.append(f"P-{i:03};{i % 28 + 1}.3.2024;{height};{blood};{crp};{'krank' if ill else 'gesund'}")
    (folder / "klinik.csv").write_text("\n".join(lines[:61]) + "\n", encoding="latin-1")
    (folder / "neu.csv").write_text("\n".join([lines[0], *lines[61:]]) + "\n", encoding="latin-1")


SESSIONS = (
    Session(
        "Missing values: heart-hungarian.csv",
        "One value in five is missing, and in three columns most. Nothing has to be imputed. Maximum likelihood has no estimate where a class lacks\n"
        "a level of some column, and the message names it.",
        copied("mixed/heart-hungarian.csv", 3),
        (
            "evaluate heart-hungarian.csv --target class --cv 2",
            "fit heart-hungarian.csv --target class --output heart.skops",
            "predict heart.skops new.csv",
        ),
    ),
    Session(
        "Text and numbers: credit-approval.csv",
        "Nine columns of text, six of numbers. Sensitivity, specificity and predictive values for decisions:",
        copied("mixed/credit-approval.csv"),
        ("evaluate credit-approval.csv --target class --positive + --cv 2",),
    ),
    Session(
        "More features than samples: prostate.csv.gz",
        "102 samples, 3,150 features. Candidates that need pairs of features are skipped; `inspect` lists the members of the mixture.",
        prostate,
        ("fit prostate.csv.gz --target class --output prostate.skops", "inspect prostate.skops"),
    ),
    Session(
        "Spectra: a folder of raw files",
        "Bruker folders as the instrument writes them, three spectra of each sample; bins and all other steps are learned within the folds.",
        species,
        (
            "evaluate spectra --labels labels.csv --groups sample --structure naive_bayes --estimation bayes --width 20 --cv 2",
        ),
    ),
    Session(
        "Ids and groups: visits.csv",
        "Three visits of each patient. `--id` identifies the samples, `--groups` keeps a patient's visits together, here and inside the fit.",
        visits,
        (
            "evaluate visits.csv --target diagnosis --id visit --groups patient --structure complete --estimation bayes --cv 5",
            "fit visits.csv --target diagnosis --id visit --groups patient --structure complete --output visits.skops",
            "predict visits.skops new.csv",
        ),
        needs_data=False,
    ),
    Session(
        "From a German Excel: klinik.csv",
        "Semicolons, decimal commas, Latin-1, dates, patient identifiers, and `k.A.` for missing values.",
        clinic,
        (
            "fit klinik.csv --target Diagnose --id Patient --structure naive_bayes --output klinik.skops",
            "fit klinik.csv --target Diagnose --id Patient --na k.A. --structure naive_bayes --output klinik.skops",
            "predict klinik.skops neu.csv",
        ),
        needs_data=False,
    ),
)


def transcript(session: Session, data: Path | None, folder: Path) -> str:
    """Return the commands of a session and their output, as in the page."""
    before = Path.cwd()
    session.prepare(data, folder)
    os.chdir(folder)
    try:
        parts = []
        for command in session.commands:
            result = CliRunner().invoke(command_line, command.split(), prog_name="cgnlearn")
            lines = (result.stderr + result.stdout).strip().splitlines()
            shown = (LONG.sub(lambda number: f"{float(number[0]):.3g}", line.rstrip()) for line in lines)
            parts.append("\n".join([f"$ cgnlearn {command}", *(line for line in shown if not OWN_MACHINE.match(line))]))
    finally:
        os.chdir(before)
    return "\n".join(parts)


def in_page(session: Session) -> str:
    """Return the transcript of a session that is in the page."""
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(session.title)}\n.*?```console\n(.*?)\n```", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"{PAGE.name} lacks {session.title}: write it again"
    return found[1]


def main(data: Path) -> None:
    """Write the page."""
    # Lines about time differ between runs.
    terminal.SECONDS_BETWEEN_LINES = terminal.MINUTES_FROM = 1e6
    parts = [INTRODUCTION]
    for session in SESSIONS:
        with TemporaryDirectory() as folder:
            text = transcript(session, data, Path(folder))
        parts.append(f"## {session.title}\n\n{session.description}\n\n```console\n{text}\n```\n")
    PAGE.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
