"""The command ``cgnlearn update``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.command import Command
from cgnlearn.cli.terminal import print_rows, say, waiting
from cgnlearn.cli.validate import TARGET, finite, labelled_data, tell_known_ids

OUTPUT = "Path of the updated model, such as new.skops."
PICK = "Take the simplest step within a standard error of the best, instead of a mixture of all."


@click.command(cls=Command)
@click.argument("model", type=options.EXISTING)
@click.argument("data", type=options.DATA)
@click.option("-t", "--target", help=TARGET)
@options.id_option
@options.na_option
@options.sheet_option
@folder.labels_option
@folder.skip_option
@click.option("--pick", is_flag=True, help=PICK)
@options.seed_option
@click.option("-o", "--output", type=options.NEW_FILE, required=True, help=OUTPUT)
@options.memory_option
@options.json_option
def update(
    model: Path,
    data: Path,
    target: str | None,
    pick: bool,
    seed: int,
    output: Path,
    as_json: bool,
    **given: Any,
) -> None:
    """Update a saved model with labelled samples of another place.

    The samples that it was trained on are not needed. Steps from new class frequencies to a new fit are compared on the
    new samples, each held out, and mixed by how well they predict. The new file keeps the history of the model.
    """
    from sklearn.pipeline import Pipeline

    from cgnlearn import save
    from cgnlearn import update as updated
    from cgnlearn.evaluation.grouped import steps_before

    predictor, labelled = labelled_data(model, data, target, (), groups=None, **given)
    if labelled.ids is not None:
        tell_known_ids(model, labelled.ids)
    X = labelled.X
    for step in steps_before(predictor.model):
        X = step.transform(X)
    with waiting("updating"):
        found = updated(predictor.classifier, X, labelled.y, combine="pick" if pick else "mix", random_state=seed)
    found.history_[-1] |= {"file": data.name, "file_sha256": labelled.sha256, "model": model.name}
    whole: Any = found
    if isinstance(predictor.model, Pipeline):
        whole = Pipeline([*predictor.model.steps[:-1], (predictor.model.steps[-1][0], found)])
    with waiting("saving"):
        save(whole, output, columns=predictor.roles.as_dict(), ids=labelled.ids)
    rungs = found.ladder_
    if as_json:
        ladder = [vars(rung) for rung in rungs]
        click.echo(json.dumps(finite({"path": str(output), "ladder": ladder, "history": found.history_}), indent=1))
    else:
        rows = [[of.name, f"{of.log_loss:.3f}", f"{of.error:.3f}", f"{of.weight:.2f}"] for of in rungs]
        title = f"{model.name} with {len(labelled.y)} samples of {data.name}: held-out log loss of each step"
        print_rows(title, ["step"], ["log loss", "± from the best", "weight"], rows)
    heaviest = max(rungs, key=lambda rung: rung.weight)
    why = "the simplest within a standard error of the best" if pick else f"weight {heaviest.weight:.2f} in the mixture"
    said = f"{heaviest.name} ({why}); log loss {rungs[0].log_loss:.3f} as it is, {heaviest.log_loss:.3f} by this step"
    say(f"{said}: saved {output}")
