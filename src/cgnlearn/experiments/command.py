"""The command ``cgnlearn reproduce``."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgnlearn.terminal import say, with_progress

if TYPE_CHECKING:
    from cgnlearn.experiments.protocol import Experiment

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_NEW_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("experiment", type=click.Choice(("uci", "ovarian")))
@click.option("--quick", is_flag=True, help="A small version on embedded data, in less than a minute.")
@click.option("--data-dir", type=_FOLDER, help="Folder with uci/NAME.csv and ms/ovarian_216x4000.npz.")
@click.option("--raw", type=_FOLDER, help="ovarian: raw spectra, text files in one folder for each class.")
@click.option("--download", is_flag=True, help="uci: fetch from OpenML what is found nowhere else.")
@click.option("-j", "--jobs", type=int, default=-1, show_default=True, help="Processes; -1 takes all cores.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Where chance starts.")
@click.option("-o", "--output", type=_NEW_FOLDER, default=Path("results"), show_default=True,
              help="Folder for the results; an interrupted run goes on where it stopped.")  # fmt: skip
def reproduce(
    experiment: str,
    quick: bool,
    data_dir: Path | None,
    raw: Path | None,
    download: bool,
    jobs: int,
    seed: int,
    output: Path,
) -> None:
    """Run one of the paper's experiments and set its results beside ours.

    uci: three structure searches on nine sets. ovarian: k-BAND and k-BOX for k = 1 to 50 on spectra of ovarian
    cancer, or on simulated ones where no data are given.
    """
    if quick and (data_dir or raw or download):
        raise click.UsageError("--quick takes embedded data: leave out --data-dir, --raw and --download")
    if raw and (experiment == "uci" or data_dir):
        raise click.UsageError("--raw is for ovarian, in place of --data-dir")
    if download and (experiment == "ovarian" or data_dir):
        raise click.UsageError("--download is for uci, in place of --data-dir")
    if jobs == 0:
        raise click.UsageError("--jobs must be a number of processes, or -1 for all cores")
    folder = output / experiment
    if experiment == "uci":
        _uci(folder, quick, data_dir, download, jobs, seed)
    else:
        _ovarian(folder, quick, data_dir, raw, jobs, seed)
    say(f"results: {folder}")


def _uci(folder: Path, quick: bool, data_dir: Path | None, download: bool, jobs: int, seed: int) -> None:
    from cgnlearn.experiments import uci
    from cgnlearn.experiments.protocol import read_rows
    from cgnlearn.experiments.rowfile import csv_text
    from cgnlearn.experiments.tables import uci_page
    from cgnlearn.results import write_whole

    sets = uci.quick_sets() if quick else uci.sets(data_dir, download=download)
    n_folds, n_repetitions = (5, 2) if quick else (10, 10)
    _finish(uci.experiment(sets, n_folds=n_folds, n_repetitions=n_repetitions, seed=seed), folder, jobs)
    cells = uci.cells(read_rows(folder / "rows.csv"), n_folds=n_folds)
    write_whole(folder / "comparisons.csv", csv_text(uci.CELL_COLUMNS, map(uci.cell_row, cells)))
    page = uci_page(cells)
    write_whole(folder / "tables.md", page)
    click.echo(page, nl=False)


def _ovarian(folder: Path, quick: bool, data_dir: Path | None, raw: Path | None, jobs: int, seed: int) -> None:
    from cgnlearn.datasets import load
    from cgnlearn.experiments import figures, ovarian
    from cgnlearn.experiments.protocol import read_rows
    from cgnlearn.experiments.rowfile import csv_text
    from cgnlearn.experiments.tables import ovarian_page
    from cgnlearn.results import write_whole

    if raw:
        data = ovarian.read_raw(raw)
    elif data_dir:
        data = load("ovarian", data_dir)
    else:
        data = ovarian.simulated(quick=quick)
    k_max, n_folds, n_repetitions = (10, 5, 2) if quick else (50, 10, 5)
    _finish(
        ovarian.experiment(data, k_max=k_max, n_folds=n_folds, n_repetitions=n_repetitions, seed=seed), folder, jobs
    )
    n_classes = len(set(data.target.tolist()))
    points = ovarian.points(read_rows(folder / "rows.csv"), n_attributes=data.data.shape[1], n_classes=n_classes)
    write_whole(folder / "points.csv", csv_text(ovarian.Point._fields, points))
    page = ovarian_page(points, f"Spectra ({data.source}): {data.data.shape[0]} × {data.data.shape[1]}")
    write_whole(folder / "tables.md", page)
    figures.draw(points, folder)
    click.echo(page, nl=False)


def _finish(experiment: Experiment, folder: Path, jobs: int) -> None:
    """Run to the end, with the time left."""
    from cgnlearn.experiments.protocol import run

    states = run(experiment, folder, jobs)
    first = next(states)
    if first.done:
        say(f"going on from {first.done} of {first.total} finished folds")
    # After Ctrl-C joblib says how much of the work was in vain: that is the person's own wish.
    warnings.filterwarnings("ignore", ".*tasks.*", UserWarning, "joblib")
    done = first.done
    try:
        for progress in with_progress(states, "folds", first.done, first.total):
            done = progress.done
    except KeyboardInterrupt:
        say(f"interrupted after {done} of {first.total} folds; call again to go on from {folder}")
        raise click.exceptions.Exit(1) from None
