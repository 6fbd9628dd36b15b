"""The command ``cgnlearn fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli import labels as labels_table
from cgnlearn.cli.inspect import description
from cgnlearn.cli.models import chosen
from cgnlearn.cli.parts import fitted_in_parts
from cgnlearn.cli.terminal import fitting, foretell, say, waiting


@click.command()
@options.data_options
@folder.labels_option
@folder.preset_options
@options.model_options(many=False)
@click.option(
    "-o",
    "--output",
    type=options.NEW_FILE,
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
@options.memory_option
@options.json_option
def fit(
    data: Path, target: str | None, row_id: str | None, groups: str | None, ignore: tuple[str, ...],
    categorical: tuple[str, ...], na: tuple[str, ...], drop_missing: bool, labels: Path | None, preset: str,
    width: float | None, skip_bad: bool, ordered: bool, structure: str | None,
    parameters: str | None, output: Path, minimum_cell: float, memory: int | None, as_json: bool, **model_options: Any,
) -> None:  # fmt: skip
    """Fit a classifier and save it.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels: then the model takes raw spectra, too.
    """
    of_statistics = output.suffix.lower() == ".stats"
    if minimum_cell and not of_statistics:
        raise click.UsageError("--minimum-cell is for statistics: let the output end in .stats")
    of_spectra = folder.is_folder(data)
    if of_spectra and of_statistics:
        raise click.UsageError("statistics are of tables: make one of the spectra first, with cgnlearn spectra")
    if of_spectra:
        folder.refuse_options_of_tables(
            id=row_id, ignore=ignore, categorical=categorical, na=na, drop_missing=drop_missing
        )
    of_classes = (target or labels_table.TARGET) if of_spectra else target
    roles = options.roles_of(data, of_classes, row_id, groups, ignore, categorical, na)
    if of_statistics and structure is None:
        structure = "naive_bayes"  # what can be merged
    model = chosen(structure, parameters, ordered=ordered or (of_spectra and structure is None), **model_options)
    from cgnlearn import save

    missing: dict[str, Any] = {}
    whole = None
    source = None if of_spectra else options.opened(data, [*roles.special.values()])
    if source is None:
        spectra = folder.training_spectra(
            data, labels, groups, target=target, preset=preset, width=width, skip_bad=skip_bad
        )
        foretell(model, spectra.X, spectra.y)
        with fitting(model):
            whole = spectra.fitted(model)
    elif options.is_beyond(source, memory):
        model, missing = fitted_in_parts(model, source, roles, drop_missing)
    else:
        read = options.training_data(source, roles, drop_missing)
        missing = read.missing
        foretell(model, read.X, read.y)
        with fitting(model):
            if of_statistics and hasattr(model, "partial_fit"):  # does not rotate, which leaves nothing to merge
                model.partial_fit(read.X, read.y, classes=read.y)
            else:
                model.fit(read.X, read.y, groups=read.groups)
    told = description(model)  # raises before anything is written if the sample does not allow a model
    with waiting("saving"):
        kept = model.statistics_ if of_statistics else whole or model
        save(kept, output, minimum_cell=minimum_cell, columns=roles.as_dict())
    n_rows = float(model.statistics_.classes.sum())
    if as_json:
        more = {"path": str(output), "rows": n_rows, "columns": roles.as_dict(), "missing": missing}
        click.echo(json.dumps(told | more, indent=1))
    else:
        parts = f"{told['parameters']} parameters" if "parameters" in told else f"{len(told['members'])} members"
        size = f"{n_rows:.0f} {'spectra' if of_spectra else 'rows'}, {model.n_features_in_} attributes, {parts}"
        say(f"{size}: saved {output}")
