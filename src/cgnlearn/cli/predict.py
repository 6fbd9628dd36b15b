"""The command ``cgnlearn predict``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder
from cgnlearn.cli.options import DATA, EXISTING, NEW_FILE, is_beyond, json_option, memory_option
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    import pandas as pd

    from cgnlearn.cli.datafile import Data


@click.command()
@click.argument("model", type=EXISTING)
@click.argument("data", type=DATA)
@click.option("-o", "--output", type=NEW_FILE, help="A csv file; default: stdout.")
@folder.labels_option
@folder.skip_option
@click.option("--by-sample", is_flag=True, help="Of spectra: a line for each sample, its replicates combined.")
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Of the replicates of a sample: 1 averages their log odds, 0 adds them.",
)
@memory_option
@json_option
def predict(
    model: Path, data: Path, output: Path | None, labels: Path | None, skip_bad: bool, by_sample: bool,
    correlation: float, memory: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Predict the rows of a file, or the spectra of a folder, with a saved model.

    For each row: the most probable class, the probability of every class, and the log density of the row, which is
    low where it is unlike the training data.
    """
    from cgnlearn import load

    if folder.is_folder(data):
        with waiting("predicting"):
            found = folder.predicted(
                _of_spectra(model, data), data, labels, skip_bad=skip_bad, by_sample=by_sample, correlation=correlation
            )
        _told(found, output, as_json)
        return
    if is_beyond(data, memory):
        if output is None or as_json:
            raise click.UsageError("the file is too great for --json and stdout: give --output, or more --memory")
        with waiting("predicting"):
            n_rows = _in_parts(load(model), data, output)
        say(f"{n_rows} rows: {output}")
        return
    with waiting("predicting"):
        found = predicted(load(model), data)
    _told(found, output, as_json)


def _of_spectra(path: Path, data: Path) -> Any:
    """The model, if it was trained on spectra."""
    from cgnlearn import load
    from cgnlearn.spectra.presets import takes_spectra

    model = load(path)
    if not takes_spectra(model):
        raise click.UsageError(f"{data} is a folder or an archive, but {path} was trained on a table: give it a table")
    return model


def _told(found: pd.DataFrame, output: Path | None, as_json: bool) -> None:
    """Write predictions where they are wanted."""
    from cgnlearn.files import write_whole

    if as_json:
        text = json.dumps(found.to_dict("records"), indent=1) + "\n"
    else:
        text = found.to_csv(index=False, lineterminator="\n")
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text)
        say(f"{len(found)} rows: {output}")


def predicted(model: Any, path: Path) -> pd.DataFrame:
    """A line for each row of a file that has the columns the model was trained on, and maybe others."""
    from cgnlearn.persistence import classifier_of
    from cgnlearn.spectra.presets import takes_spectra

    classifier_of(model)  # refuses statistics
    if takes_spectra(model):
        raise click.UsageError(f"the model takes raw spectra: give a folder, a zip or a tar file of them, not {path}")
    return _lines(model, _matching(model, path))


def _in_parts(model: Any, path: Path, output: Path) -> int:
    """Write the predictions for a file that does not fit into memory, and return how many there are."""
    import numpy as np

    from cgnlearn.cli.datafile import Data
    from cgnlearn.files import whole_file
    from cgnlearn.persistence import classifier_of
    from cgnlearn.streams import Stream

    wanted, levels = _columns(model, classifier_of(model))
    if wanted is None:
        raise click.UsageError("the model was trained on columns without names: give more --memory")
    discrete = [name for name, own in zip(wanted, levels, strict=True) if own is not None]
    stream = Stream.of(path, discrete, wanted)
    n_done = 0
    with whole_file(output) as file:
        for batch, n_read in stream.batches(wanted):
            places = np.arange(n_done, n_read) + (2 if path.suffix.lower() in (".csv", ".tsv") else 0)
            part = Data(path, "", stream.as_frame(batch).to_pandas(), None, None, places)
            lines = _lines(model, _in_form(model, part, wanted, levels), n_done)
            file.write(lines.to_csv(index=False, header=not n_done, lineterminator="\n").encode())
            n_done = n_read
    return n_done


def _lines(model: Any, X: Any, first: int = 0) -> pd.DataFrame:
    """A line for each row, counted from the first."""
    import numpy as np
    import pandas as pd

    log_proba = model.predict_log_proba(X)
    classes = np.array([str(label) for label in model.classes_.tolist()])
    columns = {"row": np.arange(first, first + len(log_proba)), "predicted": classes[log_proba.argmax(axis=1)]}
    columns |= {f"p({label})": proba for label, proba in zip(classes, np.exp(log_proba).T, strict=True)}
    return pd.DataFrame(columns | {"log_density": model.score_samples(X)})


def _columns(model: Any, classifier: Any) -> tuple[list[str] | None, Sequence[Any]]:
    """The names of the columns that a model needs, if they have any, and their levels."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None, ()
    # What a pipeline does to its columns before the classifier sees them is its own affair.
    return [str(name) for name in names], (
        classifier.statistics_.schema.levels if classifier is model else (None,) * len(names)
    )


def _matching(model: Any, path: Path) -> Any:
    """The file's columns in the form of the training data."""
    from cgnlearn.cli import datafile
    from cgnlearn.persistence import classifier_of

    wanted, levels = _columns(model, classifier_of(model))
    if wanted is None:
        data = datafile.read(path)
        if data.X.shape[1] != model.n_features_in_ or any(str(kind) == "category" for kind in data.X.dtypes):
            raise datafile.DataFileError(
                f"{path}: the model was trained on {model.n_features_in_} columns of numbers without names: "
                "give a file with exactly these"
            )
        return data.X.to_numpy()
    discrete = [name for name, own in zip(wanted, levels, strict=True) if own is not None]
    return _in_form(model, datafile.read(path, columns=wanted, categorical=discrete), wanted, levels)


def _in_form(model: Any, data: Data, wanted: Sequence[str], levels: Sequence[Any]) -> Any:
    """Columns that have been read in the form of the training data."""
    from cgnlearn.cli.datafile import DataFileError
    from cgnlearn.persistence import classifier_of

    if classifier_of(model) is not model:
        return data.X
    for name, own in zip(wanted, levels, strict=True):
        if own is not None:
            data.X[name] = _recoded(data, name, own)
        elif str(data.X[name].dtype) == "category":
            raise DataFileError(
                f"{data.path}: column {name!r} holds {data.X[name].iloc[0]!r} in {data.place(0)}, "
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
