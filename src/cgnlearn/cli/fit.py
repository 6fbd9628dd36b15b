"""The command ``cgnlearn fit``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.folder import is_folder, labels_option, preset_options, training_spectra
from cgnlearn.cli.inspect import description
from cgnlearn.cli.options import (
    NEW_FILE,
    classifier,
    data_options,
    is_beyond,
    json_option,
    listed_columns,
    memory_option,
    model_options,
    target_of,
    training_data,
)
from cgnlearn.cli.terminal import counted, say, waiting


@click.command()
@data_options
@labels_option
@preset_options
@click.option("--groups", help="For spectra: column of the labels that says which belong together; default: sample.")
@model_options(many=False)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    required=True,
    help="Where the model goes, such as model.skops; what ends in .stats gets the statistics, to be merged.",
)
@click.option(
    "--minimum-cell",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="For .stats: refuse cells with fewer rows, but some.",
)
@memory_option
@json_option
def fit(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool, labels: Path | None, preset: str,
    width: float | None, skip_bad: bool, groups: str | None, structure: str, parameters: str,
    output: Path, minimum_cell: float, memory: int | None, as_json: bool, **model_options: Any,
) -> None:  # fmt: skip
    """Fit a classifier and save it.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels: then the model takes raw spectra, too.
    """
    of_statistics = output.suffix.lower() == ".stats"
    if minimum_cell and not of_statistics:
        raise click.UsageError("--minimum-cell is for statistics: let the output end in .stats")
    model = classifier(structure, parameters, **model_options)
    from cgnlearn import save

    whole = model
    if is_folder(data):
        if of_statistics:
            raise click.UsageError("statistics are of tables: make one of the spectra first, with cgnlearn spectra")
        from cgnlearn.evaluation.grouped import fit_options

        spectra = training_spectra(data, labels, groups, preset=preset, width=width, skip_bad=skip_bad)
        with waiting("fitting"):
            pipeline = spectra.before(model)
            pipeline.fit(spectra.spectra, spectra.y, **fit_options(pipeline, spectra.y, spectra.groups))
        whole = spectra.whole(pipeline)
    elif is_beyond(data, memory):
        whole = model = _in_parts(model, data, target_of(data, target), listed_columns(categorical), drop_missing)
    else:
        read = training_data(data, target, categorical, drop_missing)
        with waiting("fitting"):
            if of_statistics and hasattr(model, "partial_fit"):  # does not rotate, which leaves nothing to merge
                model.partial_fit(read.X, read.y, classes=read.y)
            else:
                model.fit(read.X, read.y)
    n_parameters = model.n_parameters_  # raises before anything is written if the sample does not allow a model
    with waiting("saving"):
        save(model.statistics_ if of_statistics else whole, output, minimum_cell=minimum_cell)
    if as_json:
        click.echo(json.dumps(description(model) | {"path": str(output)}, indent=1))
    else:
        n_rows = f"{model.statistics_.classes.sum():.0f}"
        say(f"{n_rows} rows, {model.n_features_in_} attributes, {n_parameters} parameters: saved {output}")


def _in_parts(model: Any, data: Path, target: str, categorical: Sequence[str], drop_missing: bool) -> Any:
    """The model, fitted to a file that does not fit into memory."""
    from cgnlearn import fit_stream

    with counted(f"counting {data}") as progress:
        as_text = {*categorical, target}
        return fit_stream(model, data, target, as_text=as_text, drop_missing=drop_missing, progress=progress)
