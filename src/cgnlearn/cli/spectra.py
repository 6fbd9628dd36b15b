"""The command ``cgnlearn spectra``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.options import EXISTING, NEW_FILE
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    from cgnlearn.spectra import Spectrum, SpectrumError


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--labels",
    type=EXISTING,
    required=True,
    help="Table with the columns file (or sample) and label; a column sample beside file names replicates.",
)
@click.option(
    "--preset",
    "name",
    type=click.Choice(("maldi", "seldi")),
    default="maldi",
    show_default=True,
    help="maldi: the whole chain. seldi: binning only.",
)
@click.option("--width", type=click.FloatRange(0, min_open=True), help="Width of a bin in m/z.")
@click.option("--skip-bad", is_flag=True, help="Leave out what cannot be read, and say what it was.")
@click.option("-o", "--output", type=NEW_FILE, required=True, help="Where the table goes: .parquet or .csv.")
def spectra(
    folder: Path, labels: Path, name: str, width: float | None, skip_bad: bool, output: Path
) -> None:  # fmt: skip
    """Turn raw spectra into a table of features.

    FOLDER, or a zip or tar file, holds mzML, mzXML, MGF, two-column text or Bruker flex spectra. The table has a row
    for each spectrum: its bins, named by m/z, its file, its sample and its label.
    """
    import pandas as pd

    from cgnlearn.files import whole_file
    from cgnlearn.spectra import preset, stream

    if output.suffix not in (".parquet", ".csv"):
        raise click.UsageError(f"{output}: the table can be written as .parquet or .csv")
    known = _labels(labels)
    refused: list[SpectrumError] = []
    pipeline = preset(name)
    if width is not None:
        pipeline.set_params(bin__width=width)
    cleaning, bins = pipeline[:-1], pipeline[-1]
    found: list[tuple[str, str, str]] = []
    used: set[str] = set()

    def labelled() -> Iterator[Spectrum]:
        found.clear()
        refused.clear()
        for spectrum in stream(folder, refused=refused.append if skip_bad else None, ignore=[labels, output]):
            file = str(spectrum.metadata["file"])
            key = file if file in known else str(spectrum.metadata["sample"])
            if key not in known:
                raise ValueError(f"{spectrum.name}: {labels} has no label for it: add a line, or remove the spectrum")
            used.add(key)
            found.append((file, *known[key]))
            yield spectrum

    def cleaned(only: Any = None) -> Iterator[Spectrum]:
        steps = cleaning if only is None else only
        return (steps.transform([spectrum])[0] if len(steps) else spectrum for spectrum in labelled())

    with waiting(f"reading {folder}"):
        # Where the bins lie depends on the axes alone: the first pass trims, the second does everything.
        bins.fit(cleaned(cleaning[:1]))
        X = bins.transform(cleaned())
    missing = set(known) - used
    for error in refused:
        say(f"left out {error}")
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        message = f"{labels}: {min(missing)}{more} has a label but no spectrum in {folder}"
        if not skip_bad:
            raise ValueError(f"{message}: remove the line, or go on with --skip-bad")
        say(message)
    table = pd.DataFrame(X, columns=bins.get_feature_names_out())
    special = pd.DataFrame(found, columns=["file", "sample", "label"])
    table = pd.concat([special, table], axis=1)
    with whole_file(output) as file:
        (table.to_csv if output.suffix == ".csv" else table.to_parquet)(file, index=False)
    n_samples = len(set(special["sample"]))
    say(f"{len(table)} spectra of {n_samples} samples, {X.shape[1]} bins: wrote {output}")
    if n_samples < len(table):
        say("samples repeat: name the column when you evaluate, with --groups sample")


def _labels(path: Path) -> dict[str, tuple[str, str]]:
    """File or sample → its sample and label."""
    import csv

    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = set(rows[0]) if rows else set()
    key = "file" if "file" in columns else "sample"
    if key not in columns or "label" not in columns:
        raise ValueError(f"{path}: it needs a header line with the columns file (or sample) and label, and rows")
    known: dict[str, tuple[str, str]] = {}
    for number, row in enumerate(rows, start=2):
        name, label = (row[key] or "").strip(), (row["label"] or "").strip()
        if not name or not label:
            raise ValueError(f"{path}: line {number} lacks its {'label' if name else key}: fill it in")
        if name in known:
            raise ValueError(f"{path}: line {number} names {name!r} for the second time: remove it")
        known[name] = ((row.get("sample") or name).strip(), label)
    return known
