"""The command ``cgnlearn spectra``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder as folders
from cgnlearn.cli.command import Command
from cgnlearn.cli.options import DATA, NEW_FILE, column_errors, report_option
from cgnlearn.cli.terminal import print_rows, say, waiting

if TYPE_CHECKING:
    from cgnlearn.spectra.folders import Folder

MOST_PRINTED = 20  # spectra that stand out


@click.command(cls=Command)
@click.argument("folder", type=DATA)
@click.option("-t", "--target", help="Column of the classes in the table of labels; default: label.")
@folders.labels_option
@folders.preset_options
@click.option("--peaks", is_flag=True, help="Heights of the peaks common to a quarter of the spectra, not bins.")
@click.option("-o", "--output", type=NEW_FILE, help="Path of the table: .parquet or .csv.")
@report_option
def spectra(
    folder: Path,
    labels: Path | None,
    preset: str | None,
    width: float | None,
    peaks: bool,
    output: Path | None,
    report: Path | None,
    target: str | None,
    skip_bad: bool,
) -> None:
    """Convert raw spectra to a table of features, or report on their quality.

    FOLDER, or a zip or tar file, contains mzML, mzXML, MGF, two-column text or Bruker flex spectra. The table (-o) has
    a row for each spectrum: its bins or peaks, named by m/z, its file, its sample and its label. The report (--report)
    names the spectra that stand out, why, and what to do; it needs no labels.
    """
    if output is None and report is None:
        raise click.UsageError("name what to write: a table with -o FILE, or a page on the quality with --report FILE")
    if output is not None and output.suffix not in (".parquet", ".csv"):
        raise click.UsageError(f"{output}: the table can be written as .parquet or .csv")
    if output is not None and labels is None:
        raise click.UsageError("name the table of labels: add --labels TABLE, or --labels folders")
    if peaks and width is not None:
        raise click.UsageError("--width is for bins: omit it, or --peaks")
    given = {"--preset": preset, "--width": width, "--peaks": peaks or None}
    only_table = next((name for name, value in given.items() if value is not None), None)
    if output is None and only_table is not None:
        raise click.UsageError(f"{only_table} is for the table: add -o FILE, or omit it")
    ignore = [path for path in (output, report) if path is not None]
    if report is not None:
        _write_report(folder, labels, target, report, ignore)
    if output is not None:
        source = folders.opened(folder, labels, target=target, skip_bad=skip_bad, ignore=ignore)
        _write_table(source, list(folders.steps_of(preset, width, peaks=peaks)), output, peaks=peaks)


def _write_table(source: Folder, steps: list[Any], output: Path, *, peaks: bool) -> None:
    import pandas as pd

    from cgnlearn.files import defused, whole_file

    with column_errors(), waiting(f"reading {source.path}"):
        X = source.features(steps, fit=True)
    found = [label.label for label in source.matched]
    special = pd.DataFrame({"file": source.files, "sample": source.samples, "label": found})
    if output.suffix == ".csv":
        special = special.map(defused)
    table = pd.concat([special, X], axis=1)
    with whole_file(output) as file:
        (table.to_csv if output.suffix == ".csv" else table.to_parquet)(file, index=False)
    n_samples = len(set(special["sample"]))
    say(f"{len(table)} spectra of {n_samples} samples, {X.shape[1]} {'peaks' if peaks else 'bins'}: wrote {output}")
    if n_samples < len(table):
        say("samples have several spectra: evaluate with --groups sample")


def _write_report(folder: Path, labels: Path | None, target: str | None, report: Path, ignore: list[Path]) -> None:
    """Inspect the spectra, list those that stand out, and write the page."""
    from cgnlearn.reporting.spectra_quality import write_spectra_report
    from cgnlearn.spectra.inspection import inspected

    source = folders.opened(folder, labels, target=target, needed=False, ignore=ignore)
    with column_errors(), waiting(f"reading {folder}"):
        found = inspected(source)
    rows = []
    for i in found.unusual[:MOST_PRINTED]:
        told = "; ".join(f"{remark.what} ({remark.why})" for remark in found.spectra[i].remarks)
        rows.append([found.spectra[i].file, told])
    n = len(found.unusual)
    if rows:
        print_rows(f"{n} of {len(found.spectra)} spectra stand out", ["spectrum", "unusual"], [], rows)
    else:
        total = len(found.spectra)
        click.echo(f"none of {total} spectra stands out" if total > 1 else "one spectrum, with none to compare it with")
    if n > len(rows):
        say(f"{n - len(rows)} more are in the report")
    for error in found.refused:
        say(f"skipped {error}")
    settings = {"Folder": folder.resolve().name} | ({"Labels": labels.name} if labels is not None else {})
    with waiting("writing the report"):
        write_spectra_report(report, found, f"Quality of spectra: {folder.resolve().name}", settings)
    say(f"report: {report}")
