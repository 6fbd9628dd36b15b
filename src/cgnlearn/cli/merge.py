"""The command ``cgnlearn merge``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.command import Command
from cgnlearn.cli.inspect import description
from cgnlearn.cli.models import chosen
from cgnlearn.cli.options import EXISTING, NEW_FILE, json_option, model_options
from cgnlearn.cli.terminal import say, waiting

OUTPUT = "Path of the model, such as model.skops; a path that ends in .stats gets the sum of the statistics."


@click.command(cls=Command)
@click.argument("parts", type=EXISTING, nargs=-1, required=True)
@model_options(many=False, of_samples=False)
@click.option("-o", "--output", type=NEW_FILE, required=True, help=OUTPUT)
@json_option
def merge(
    parts: tuple[Path, ...], structure: str | None, estimation: str | None, output: Path, as_json: bool, **model: Any
) -> None:
    """Fit one model to the statistics of several files, as if all their samples were in one.

    The files are written by `cgnlearn fit DATA -o part.stats`: sums over samples, no samples. All must have the same
    columns, levels and classes, and the same structure; the structure of the model may be a part of it.

    A published table counts as such a file, for naive Bayes: its columns are class, feature, n, mean and sd, or class,
    feature, level and n.
    """
    from cgnlearn import CGNClassifier, Statistics, Structure, load, save
    from cgnlearn.persistence import read_header
    from cgnlearn.tables.knowledge import read_summary

    wanted = chosen(structure or "naive_bayes", estimation, ordered=False, **model)
    tables = [path for path in parts if path.suffix.lower() not in (".stats", ".skops")]
    if tables and wanted.structure != "naive_bayes":
        raise click.UsageError(f"{tables[0]} is a table of means, which is for naive Bayes: omit --structure")
    total: Any = 0
    columns = None
    with waiting("merging"):
        for path in sorted(parts, key=tables.__contains__):  # tables follow the columns of the others
            statistics: Any
            if path in tables:
                statistics = read_summary(path, total.schema if total else None)
            else:
                statistics = load(path)
                columns = columns or read_header(path).get("columns")
            if not isinstance(statistics, Statistics):
                raise click.UsageError(f"{path} holds a model, not statistics: use cgnlearn fit -o NAME.stats")
            if tables:
                naive = Structure.naive_bayes(statistics.schema.n_columns)
                statistics = statistics.restricted(naive.as_families(statistics.schema))
            try:
                total = total + statistics
            except ValueError as error:
                raise click.ClickException(f"{path} does not match {parts[0]}: {error}") from None
        merged = CGNClassifier.from_statistics(total, **wanted.get_params(deep=False))
        save(total if output.suffix.lower() == ".stats" else merged, output, columns=columns)
    if as_json:
        click.echo(json.dumps(description(merged) | {"path": str(output)}, indent=1))
    else:
        files = "1 file" if len(parts) == 1 else f"{len(parts)} files"
        say(f"{files}, {total.classes.sum():g} samples, {merged.n_parameters_} parameters: saved {output}")
