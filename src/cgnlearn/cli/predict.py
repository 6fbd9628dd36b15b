"""The command ``cgnlearn predict``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.options import EXISTING, NEW_FILE, json_option
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    from cgnlearn.cli.datafile import Data


@click.command()
@click.argument("model", type=EXISTING)
@click.argument("data", type=EXISTING)
@click.option("-o", "--output", type=NEW_FILE, help="A csv file; default: stdout.")
@json_option
def predict(model: Path, data: Path, output: Path | None, as_json: bool) -> None:
    """Predict the rows of a file with a saved model.

    For each row: the most probable class, the probability of every class, and the log density of the row, which is
    low where it is unlike the training data.
    """
    from cgnlearn import load
    from cgnlearn.files import write_whole

    with waiting("predicting"):
        header, rows = predict_file(load(model), data)
    if as_json:
        text = json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=1) + "\n"
    else:
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([header, *rows])
        text = buffer.getvalue()
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        say(f"{len(rows)} rows: {output}")


def predict_file(model: Any, path: Path) -> tuple[list[str], list[list[Any]]]:
    """A header, and a line for each row of a file that has the columns the model was trained on, and maybe others."""
    import numpy as np

    from cgnlearn.persistence import classifier_of

    classifier_of(model)  # refuses statistics
    X = _matching(model, path)
    log_proba = model.predict_log_proba(X)
    classes = [str(label) for label in model.classes_.tolist()]
    rows = [
        [row, classes[best], *probabilities, density]
        for row, (best, probabilities, density) in enumerate(
            zip(log_proba.argmax(axis=1).tolist(), np.exp(log_proba).tolist(), model.score_samples(X).tolist(),
                strict=True)
        )
    ]  # fmt: skip
    return ["row", "predicted", *(f"p({label})" for label in classes), "log_density"], rows


def _matching(model: Any, path: Path) -> Any:
    """The file's columns in the form of the training data."""
    from cgnlearn.cli import datafile
    from cgnlearn.persistence import classifier_of

    names = getattr(model, "feature_names_in_", None)
    if names is None:
        data = datafile.read(path)
        if data.X.shape[1] != model.n_features_in_ or any(str(kind) == "category" for kind in data.X.dtypes):
            raise datafile.DataFileError(
                f"{path}: the model was trained on {model.n_features_in_} columns of numbers without names: "
                "give a file with exactly these"
            )
        return data.X.to_numpy()
    wanted = [str(name) for name in names]
    classifier = classifier_of(model)
    # What a pipeline does to its columns before the classifier sees them is its own affair.
    levels = classifier.statistics_.schema.levels if classifier is model else (None,) * len(wanted)
    discrete = [name for name, own in zip(wanted, levels, strict=True) if own is not None]
    data = datafile.read(path, columns=wanted, categorical=discrete)
    if classifier is not model:
        return data.X
    for name, own in zip(wanted, levels, strict=True):
        if own is not None:
            data.X[name] = _recoded(data, name, own)
        elif str(data.X[name].dtype) == "category":
            raise datafile.DataFileError(
                f"{path}: column {name!r} holds {data.X[name].iloc[0]!r} in {data.place(0)}, "
                "but the model was trained on numbers there: correct the column"
            )
    return data.X


def _recoded(data: Data, name: str, levels: Sequence[Any]) -> Any:
    """A column of text as the levels it stands for."""
    import pandas as pd

    from cgnlearn.cli.datafile import DataFileError

    meant: dict[str, Any] = {_as_number(str(level)): level for level in levels}
    meant |= {str(level): level for level in levels}
    text = data.X[name].astype(str)
    found = [meant.get(value, meant.get(_as_number(value))) for value in text]
    for row, level in enumerate(found):
        if level is None:
            known = ", ".join(repr(str(level)) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
            raise DataFileError(
                f"{data.path}: column {name!r} has {text.iloc[row]!r} in {data.place(row)}, which the model has not "
                f"seen in training (it knows {known}): correct it or leave the row out"
            )
    return pd.Categorical(found, categories=list(levels))


def _as_number(text: str) -> str:
    """One spelling for all of a number's: 1 and 1.0 are the same level."""
    try:
        return repr(float(text))
    except ValueError:
        return text
