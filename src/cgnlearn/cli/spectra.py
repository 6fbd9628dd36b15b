"""The command ``cgnlearn spectra``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgnlearn.cli import folder as folders
from cgnlearn.cli.command import Command
from cgnlearn.cli.options import DATA, NEW_FILE, column_errors
from cgnlearn.cli.terminal import say, waiting


@click.command(cls=Command)
@click.argument("folder", type=DATA)
@click.option("-t", "--target", help="Column of the classes in the table of labels; default: label.")
@folders.labels_option
@folders.preset_options
@click.option("--peaks", is_flag=True, help="Heights of the peaks common to a quarter of the spectra, not bins.")
@click.option("-o", "--output", type=NEW_FILE, required=True, help="Path of the table: .parquet or .csv.")
def spectra(
    folder: Path,
    labels: Path | None,
    preset: str | None,
    width: float | None,
    peaks: bool,
    output: Path,
    **options: Any,
) -> None:
    """Convert raw spectra to a table of features.

    FOLDER, or a zip or tar file, contains mzML, mzXML, MGF, two-column text or Bruker flex spectra. The table has a
    row for each spectrum: its bins or peaks, named by m/z, its file, its sample and its label.
    """
    import pandas as pd

    from cgnlearn.files import defused, whole_file

    if output.suffix not in (".parquet", ".csv"):
        raise click.UsageError(f"{output}: the table can be written as .parquet or .csv")
    if labels is None:
        raise click.UsageError("name the table of labels: add --labels TABLE, or --labels folders")
    if peaks and width is not None:
        raise click.UsageError("--width is for bins: omit it, or --peaks")
    source = folders.opened(folder, labels, ignore=[output], **options)
    with column_errors(), waiting(f"reading {folder}"):
        X = source.features(list(folders.steps_of(preset, width, peaks=peaks)), fit=True)
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
