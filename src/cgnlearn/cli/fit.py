"""The command ``cgnlearn fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.candidates.registry import NETWORKS
from cgnlearn.cli import folder, options
from cgnlearn.cli.given import Given, given_data
from cgnlearn.cli.inspect import description
from cgnlearn.cli.models import chosen
from cgnlearn.cli.parts import fitted_in_parts
from cgnlearn.cli.terminal import fitting, foretell, say, waiting

OUTPUT = "Where the model goes, such as model.skops; what ends in .stats gets the statistics, to be merged."
MINIMUM = "For .stats: refuse cells with fewer rows, but some."


@click.command()
@given_data
@options.model_options(many=False)
@click.option("-o", "--output", type=options.NEW_FILE, required=True, help=OUTPUT)
@click.option("--minimum-cell", type=click.FloatRange(0), default=0.0, show_default=True, help=MINIMUM)
@options.memory_option
@options.json_option
def fit(given: Given, output: Path, minimum_cell: float, memory: int | None, as_json: bool, **asked: Any) -> None:
    """Fit a classifier and save it.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels: then the model takes raw spectra, too.
    """
    of_statistics = output.suffix.lower() == ".stats"
    if minimum_cell and not of_statistics:
        raise click.UsageError("--minimum-cell is for statistics: let the output end in .stats")
    if given.of_spectra and of_statistics:
        raise click.UsageError("statistics are of tables: make one of the spectra first, with cgnlearn spectra")
    roles = given.roles
    if of_statistics and asked["structure"] is None:
        asked["structure"] = "naive_bayes"  # what can be merged
    of_network = asked["structure"] in NETWORKS
    if of_statistics and not of_network:
        raise click.UsageError("only networks have statistics that can be merged: name one with --structure")
    model = chosen(**asked | {"ordered": asked["ordered"] or (given.of_spectra and not of_network)})
    from cgnlearn import save

    missing: dict[str, Any] = {}
    whole = None
    if given.of_spectra:
        spectra = given.spectra()
        foretell(model, spectra.X, spectra.y)
        with fitting(model):
            whole = folder.fitted_pipeline(spectra, model)
    elif given.is_beyond(memory):
        model, missing = fitted_in_parts(model, given)
    else:
        read = given.table()
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
    n_samples = float(model.statistics_.classes.sum())
    if as_json:
        more = {"path": str(output), "rows": n_samples, "columns": roles.as_dict(), "missing": missing}
        click.echo(json.dumps(told | more, indent=1))
    else:
        parts = f"{told['parameters']} parameters" if "parameters" in told else f"{len(told['members'])} members"
        size = f"{n_samples:.0f} {'spectra' if given.of_spectra else 'rows'}, {model.n_features_in_} features, {parts}"
        say(f"{size}: saved {output}")
