"""The command ``cgnlearn reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import options
from cgnlearn.cli.command import Command
from cgnlearn.cli.terminal import finish, say

if TYPE_CHECKING:
    from cgnlearn.evaluation.run import Work

OUTPUT = "Folder for the results; an interrupted run continues there.  [default: results]"
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiment", type=click.Choice(("uci", "ovarian")))
@click.option("--quick", is_flag=True, help="A small version on embedded data, in less than a minute.")
@click.option("--data-dir", type=_FOLDER, help="Folder with uci/NAME.csv and ms/ovarian_216x4000.npz.")
@click.option("--raw", type=_FOLDER, help="ovarian: raw spectra, text files in one folder for each class.")
@click.option("--download", is_flag=True, help="uci: download missing data from OpenML.")
@options.jobs_option(-1)
@options.seed_option
@click.option("-o", "--output", type=options.NEW_FOLDER, default=Path("results"), help=OUTPUT)
def reproduce(
    experiment: str, quick: bool, data_dir: Path | None, raw: Path | None, download: bool, output: Path, **run: int
) -> None:
    """Run one of the paper's experiments and compare its results with ours.

    uci: three structure searches on nine sets. ovarian: k-BAND and k-BOX for k = 1 to 50 on spectra of ovarian
    cancer, or on simulated ones without data.
    """
    if quick and (data_dir or raw or download):
        raise click.UsageError("--quick uses embedded data: omit --data-dir, --raw and --download")
    if raw and (experiment == "uci" or data_dir):
        raise click.UsageError("--raw is for ovarian, in place of --data-dir")
    if download and (experiment == "ovarian" or data_dir):
        raise click.UsageError("--download is for uci, in place of --data-dir")
    folder = output / experiment
    if experiment == "uci":
        _uci(folder, quick, data_dir, download, **run)
    else:
        _ovarian(folder, quick, data_dir, raw, **run)
    say(f"results: {folder}")


def _uci(folder: Path, quick: bool, data_dir: Path | None, download: bool, jobs: int, seed: int) -> None:
    from cgnlearn.datasets import UCI, load
    from cgnlearn.evaluation.run import csv_text
    from cgnlearn.experiments import uci
    from cgnlearn.experiments.tables import uci_page

    sets = uci.quick_sets() if quick else [load(name, data_dir, download=download) for name in UCI]
    n_folds, n_repetitions = (5, 2) if quick else (10, 10)
    work = uci.experiment(sets, n_folds=n_folds, n_repetitions=n_repetitions, seed=seed)
    cells = uci.cells(_rows(work, folder, jobs), n_folds=n_folds)
    _write(folder, uci_page(cells), {"comparisons.csv": csv_text(uci.CELL_COLUMNS, *map(uci.cell_row, cells))})


def _ovarian(folder: Path, quick: bool, data_dir: Path | None, raw: Path | None, jobs: int, seed: int) -> None:
    from cgnlearn.datasets import load
    from cgnlearn.evaluation.run import csv_text
    from cgnlearn.experiments import figures, ovarian
    from cgnlearn.experiments.tables import ovarian_page

    if raw:
        data = ovarian.read_raw(raw)
    elif data_dir:
        data = load("ovarian", data_dir)
    else:
        data = ovarian.simulated(quick=quick)
    k_max, n_folds, n_repetitions = (10, 5, 2) if quick else (50, 10, 5)
    work = ovarian.experiment(data, k_max=k_max, n_folds=n_folds, n_repetitions=n_repetitions, seed=seed)
    n_samples, n_features = data.data.shape
    n_classes = len(set(data.target.tolist()))
    points = ovarian.points(_rows(work, folder, jobs), n_features=n_features, n_classes=n_classes)
    page = ovarian_page(points, f"Spectra ({data.source}): {n_samples} × {n_features}")
    _write(folder, page, {"points.csv": csv_text(ovarian.Point._fields, *points)})
    figures.draw(points, folder)


def _rows(work: Work[Any], folder: Path, jobs: int) -> list[dict[str, str]]:
    """The rows of the finished run."""
    from cgnlearn.evaluation.run import Run, read_rows

    if not finish(Run(work, folder), "folds", jobs):
        raise click.exceptions.Exit(1)
    return read_rows(folder / "rows.csv")


def _write(folder: Path, page: str, files: dict[str, str]) -> None:
    from cgnlearn.files import write_whole

    for name, text in (files | {"tables.md": page}).items():
        write_whole(folder / name, text)
    click.echo(page, nl=False)
