"""The command ``cgnlearn fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.candidates.registry import NETWORKS
from cgnlearn.cli import folder, options
from cgnlearn.cli.command import Command
from cgnlearn.cli.given import Given, given_data
from cgnlearn.cli.inspect import description
from cgnlearn.cli.models import chosen
from cgnlearn.cli.terminal import counted, fitting, print_expected_time, say, waiting

OUTPUT = "Path of the model, such as model.skops; a path that ends in .stats gets the statistics, for merge."
WITHOUT = "Leave the training samples out of the file: predict --sets, and some intervals, need them."
MINIMUM = "For .stats: refuse non-empty cells with fewer samples."


@click.command(cls=Command)
@given_data
@options.model_options(many=False)
@click.option("-o", "--output", type=options.NEW_FILE, required=True, help=OUTPUT)
@click.option("--minimum-cell", type=click.FloatRange(0), default=0.0, show_default=True, help=MINIMUM)
@click.option("--without-samples", is_flag=True, help=WITHOUT)
@options.json_option
def fit(given: Given, output: Path, minimum_cell: float, without_samples: bool, as_json: bool, **asked: Any) -> None:
    """Fit a classifier and save it.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels; the model then predicts raw spectra.
    """
    of_statistics = output.suffix.lower() == ".stats"
    if minimum_cell and not of_statistics:
        raise click.UsageError("--minimum-cell is for statistics: use an output that ends in .stats")
    if given.of_spectra and of_statistics:
        raise click.UsageError("statistics need a table: convert the spectra first, with cgnlearn spectra")
    if of_statistics and given.site is not None:
        raise click.UsageError("statistics of several sites have no shifts: omit --site, or write a .skops file")
    roles = given.roles
    if of_statistics and asked["structure"] is None:
        asked["structure"] = "naive_bayes"  # the mixture has no statistics to merge
    of_network = asked["structure"] in NETWORKS
    if of_statistics and not of_network:
        raise click.UsageError("only networks have statistics that can be merged: name one with --structure")
    model = chosen(**asked | {"ordered": asked["ordered"] or (given.of_spectra and not of_network)})
    from cgnlearn import CGNClassifier, save

    missing: dict[str, Any] = {}
    whole, ids = None, None
    if given.of_spectra:
        spectra = given.spectra()
        print_expected_time(model, spectra.X, spectra.y)
        with fitting(model):
            whole = folder.fitted_pipeline(spectra, model)
    elif given.exceeds:
        from cgnlearn.estimators.classifier import counting_learner
        from cgnlearn.streams import fit_to

        if isinstance(model, CGNClassifier):
            counting_learner(model, "fit_stream")  # fail before anything is read
        stream = given.stream()
        with counted(f"counting {given.data}") as progress:
            model, missing = fit_to(stream, model, progress=progress), stream.plan.missing
    else:
        read = given.table()
        missing, ids = read.missing, read.ids
        print_expected_time(model, read.X, read.y)
        with fitting(model):
            if of_statistics and hasattr(model, "partial_fit"):  # without a rotation, after which nothing can be merged
                model.partial_fit(read.X, read.y, classes=read.y)
            else:
                model.fit(read.X, read.y, groups=read.groups, sites=read.sites)
    described = description(model)  # raises before anything is written if maximum likelihood does not exist
    with waiting("saving"):
        saved = model.statistics_ if of_statistics else whole or model
        kept: dict[str, Any] = {"columns": roles.as_dict(), "ids": ids, "with_samples": not without_samples}
        save(saved, output, minimum_cell=minimum_cell, **kept)
    n_samples = float(model.statistics_.classes.sum())
    if as_json:
        more = {"path": str(output), "rows": n_samples, "columns": roles.as_dict(), "missing": missing}
        click.echo(json.dumps(described | more, indent=1))
    else:
        n_members = len(described.get("members", ()))
        parts = f"{n_members} members" if n_members else f"{described['parameters']} parameters"
        unit = "spectra" if given.of_spectra else "samples"
        say(f"{n_samples:.0f} {unit}, {model.n_features_in_} features, {parts}: saved {output}")
