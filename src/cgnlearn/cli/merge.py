"""The command ``cgnlearn merge``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.inspect import description
from cgnlearn.cli.models import chosen
from cgnlearn.cli.options import EXISTING, NEW_FILE, json_option, model_options
from cgnlearn.cli.terminal import say, waiting


@click.command()
@click.argument("parts", type=EXISTING, nargs=-1, required=True)
@model_options(many=False, of_rows=False)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    required=True,
    help="Where the model goes, such as model.skops; what ends in .stats gets the sum of the statistics.",
)
@json_option
def merge(
    parts: tuple[Path, ...], structure: str | None, estimation: str | None, output: Path, as_json: bool, **model: Any
) -> None:
    """Make one model of the statistics of several files, as if their rows stood in one.

    The files are what `cgnlearn fit DATA -o part.stats` writes: sums over rows, no rows. All must be of the same
    columns, levels and classes, and counted for the same structure; the model's may be one that this one contains.
    """
    from cgnlearn import CGNClassifier, load, save
    from cgnlearn.networks.statistics import Statistics
    from cgnlearn.persistence import read_header

    wanted = chosen(structure or "naive_bayes", estimation, ordered=False, **model)
    total: Any = 0
    with waiting("merging"):
        for path in parts:
            found = load(path)
            if not isinstance(found, Statistics):
                raise click.UsageError(f"{path} holds a model, no statistics: write it with cgnlearn fit -o NAME.stats")
            try:
                total = total + found
            except ValueError as error:
                raise click.ClickException(f"{path} does not fit {parts[0]}: {error}") from None
        merged = CGNClassifier.from_statistics(total, **wanted.get_params(deep=False))
        columns = read_header(parts[0]).get("columns")
        save(total if output.suffix.lower() == ".stats" else merged, output, columns=columns)
    if as_json:
        click.echo(json.dumps(description(merged) | {"path": str(output)}, indent=1))
    else:
        files = "1 file" if len(parts) == 1 else f"{len(parts)} files"
        counted = f"{files}, {total.classes.sum():g} rows, {merged.n_parameters_} parameters"
        say(f"{counted}: saved {output}")
