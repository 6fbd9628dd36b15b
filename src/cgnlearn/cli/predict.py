"""The command ``cgnlearn predict``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    import pandas as pd

    from cgnlearn.evaluation.decisions import Costs
    from cgnlearn.spectra.folders import Folder
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles

CLASS_PRIOR = "How frequent the classes are where the rows come from, if otherwise than in training."
UNUSUAL = 0.01  # a row with less typicality is unlike the training data


class Predictor(NamedTuple):
    """A model as it is asked."""

    model: Any
    roles: Roles
    costs: Costs | None


@click.command()
@click.argument("model", type=options.EXISTING)
@click.argument("data", type=options.DATA)
@options.id_option
@options.na_option
@click.option("--class-prior", type=options.probabilities, metavar="CLASS=P,...", help=CLASS_PRIOR)
@options.cost_option
@folder.labels_option
@folder.skip_option
@folder.sample_options
@click.option("-o", "--output", type=options.NEW_FILE, help="A csv file; default: stdout.")
@options.memory_option
@options.json_option
def predict(
    model: Path,
    data: Path,
    row_id: str | None,
    labels: Path | None,
    skip_bad: bool,
    by_sample: bool,
    correlation: float,
    output: Path | None,
    memory: int | None,
    as_json: bool,
    **changes: Any,
) -> None:
    """Predict the rows of a file, or the spectra of a folder, with a saved model.

    For each row: the most probable class, the probability of every class, the log density of the row, and its
    typicality: the share of the training rows that are less likely than it. Rows with less than 1 % are marked as
    unusual. Of a sample it is that of its least typical spectrum, times their number.
    """
    from cgnlearn.files import write_whole

    asked = _asked(model, row_id, **changes)
    of_spectra = folder.checked(asked.model, data)
    source = None if of_spectra else options.opened(data, [] if row_id is None else [row_id])
    if source is not None and options.is_beyond(source, memory):
        if output is None or as_json:
            raise click.UsageError("the file is too great for --json and stdout: give --output, or more --memory")
        with waiting("predicting"):
            n_samples, n_unusual = _in_parts(asked, source, output, is_asked=row_id is not None)
    else:
        with waiting("predicting"):
            if source is None:
                spectra = folder.opened(data, labels, needed=False, skip_bad=skip_bad)
                found = _of_spectra(asked, spectra, correlation if by_sample else None)
            else:
                [read] = _matching(asked, source, is_asked=row_id is not None)
                found = _lines(asked, read)
        n_samples, n_unusual = len(found), _n_unusual(found)
        if output is not None:
            write_whole(output, _csv(found))
        elif not as_json:
            click.echo(_csv(found), nl=False)
        if as_json:
            click.echo(json.dumps(_as_dict(asked, found, output), indent=1))
    if n_unusual:
        say(
            f"{n_unusual} of {n_samples} rows are unlike the training data (typicality below 1 %): their class is a "
            "guess"
        )
    if output is not None:
        say(f"{n_samples} rows: {output}")


def _asked(
    path: Path, row_id: str | None, na: Sequence[str], class_prior: dict[str, float] | None, cost: Path | None
) -> Predictor:
    """The model of a file, made to what the options say."""
    import numpy as np

    from cgnlearn.cli.costs import read_costs
    from cgnlearn.persistence import classifier_of, load, read_header
    from cgnlearn.tables.roles import Roles

    model = load(path)
    classifier = classifier_of(model)  # refuses statistics
    roles = Roles.remembered(read_header(path).get("columns"))
    roles = replace(roles, id=row_id or roles.id, na=(*roles.na, *options.listed_columns(na)))
    classes = [str(label) for label in classifier.classes_.tolist()]
    if class_prior is not None:
        if set(class_prior) != set(classes):
            raise click.UsageError(f"--class-prior must name each class once: {', '.join(classes)}")
        prior = np.array([class_prior[label] for label in classes])
        model = _with_class_prior(model, prior / prior.sum())
    return Predictor(model, roles, None if cost is None else read_costs(cost, classes))


def _with_class_prior(model: Any, prior: Any) -> Any:
    """The same model, or pipeline, for other frequencies of the classes."""
    from sklearn.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return model.with_class_prior(prior)
    *steps, (name, last) = model.steps
    return Pipeline([*steps, (name, _with_class_prior(last, prior))])


def _typicality(model: Any, X: Any) -> tuple[Any, str | None]:
    """Typicality of samples under a model, or why it is not defined."""
    from sklearn.pipeline import Pipeline

    from cgnlearn.networks.model import NotExactError

    if isinstance(model, Pipeline):
        return _typicality(model[-1], model[:-1].transform(X))
    try:
        return model.typicality(X), None
    except NotExactError as error:
        return None, str(error)


def _n_unusual(found: pd.DataFrame) -> int:
    return int(found["unusual"].eq(True).sum())


def _csv(found: pd.DataFrame, header: bool = True) -> str:
    return str(found.to_csv(index=False, header=header, lineterminator="\n"))


def _as_dict(asked: Predictor, found: pd.DataFrame, output: Path | None) -> dict[str, Any]:
    """What was found, in plain values; the rows themselves unless they are in a file."""
    plain = found.astype(object).where(found.notna(), None).to_dict("records")
    told: dict[str, Any] = {
        "rows": len(found),
        "rows_unusual": _n_unusual(found),
        "predicted": {str(label): int(n) for label, n in found["predicted"].value_counts(sort=False).items()},
    }
    if output is not None:
        return told | {"path": str(output)}
    classes = [str(label) for label in asked.model.classes_.tolist()]
    return told | {
        "predictions": [
            {key: value for key, value in row.items() if not key.startswith("p(")}
            | {"probabilities": {label: row[f"p({label})"] for label in classes}}
            for row in plain
        ]
    }


def _in_parts(asked: Predictor, source: Source, output: Path, is_asked: bool) -> tuple[int, int]:
    """Write the predictions for a file that does not fit into memory, and return how many there are."""
    from cgnlearn.files import whole_file
    from cgnlearn.tables.read import BATCH_ROWS

    n_done = n_unusual = 0
    with whole_file(output) as file:
        for part in _matching(asked, source, is_asked=is_asked, n_samples=BATCH_ROWS):
            lines = _lines(asked, part, n_done)
            file.write(_csv(lines, header=not n_done).encode())
            n_unusual += _n_unusual(lines)
            n_done += len(lines)
    return n_done, n_unusual


def _of_spectra(asked: Predictor, source: Folder, correlation: float | None) -> pd.DataFrame:
    """A line for each spectrum, or for each sample if there is a correlation to combine its spectra by."""
    import numpy as np
    import pandas as pd

    from cgnlearn.persistence import classifier_of
    from cgnlearn.spectra import by_sample
    from cgnlearn.spectra.presets import flat
    from cgnlearn.tables.read import Data

    *steps, _ = (step for _, step in flat(asked.model))
    X = source.features(steps)
    asked = asked._replace(model=classifier_of(asked.model))
    if correlation is None:
        found = _lines(asked, Data(source.path, X, np.arange(len(X)), ids=np.array(source.files)))
        found.insert(2, "sample", source.samples)
        return found.rename(columns={"id": "file"})
    log_proba = asked.model.predict_log_proba(X)
    samples = by_sample(log_proba, source.samples, asked.model.class_log_prior_, correlation=correlation)
    columns = {"sample": samples.samples, "spectra": samples.n_spectra}
    typicality, why = _typicality(asked.model, X)
    if typicality is not None:
        # The least typical spectrum of several is one of several: it may be so by chance that many times as often.
        least = [typicality[source.samples == sample].min() for sample in samples.samples]
        typicality = np.minimum(least * samples.n_spectra, 1.0)
    return pd.DataFrame(columns | _said(asked, samples.log_proba) | _usual(typicality, why))


def _said(asked: Predictor, log_proba: Any) -> dict[str, Any]:
    """What log probabilities come to."""
    import numpy as np

    classes = np.array([str(label) for label in asked.model.classes_.tolist()])
    columns: dict[str, Any] = {"predicted": classes[log_proba.argmax(axis=1)]}
    if asked.costs is not None:
        best, expected = asked.costs.least(log_proba)
        columns |= {"decision": np.array(asked.costs.decisions)[best], "expected_cost": expected}
    return columns | {f"p({label})": proba for label, proba in zip(classes, np.exp(log_proba).T, strict=True)}


def _lines(asked: Predictor, data: Data, first: int = 0) -> pd.DataFrame:
    """A line for each row, counted from the first."""
    import numpy as np
    import pandas as pd

    model = asked.model
    named = hasattr(model, "feature_names_in_")
    X = data.X if named else data.X.to_numpy()
    log_proba = model.predict_log_proba(X)
    columns: dict[str, Any] = {"row": np.arange(first, first + len(log_proba))}
    if data.ids is not None:
        columns["id"] = data.ids
    columns |= _said(asked, log_proba)
    columns["log_density"] = model.score_samples(X)
    typicality, why = _typicality(model, X)
    return pd.DataFrame(columns | _usual(typicality, None if first else why))


def _usual(typicality: Any, why: str | None) -> dict[str, Any]:
    """Typicality in words and whether it is unusual, or why it is not defined."""
    import numpy as np

    if why:
        say(f"the column typicality is empty: {why}")
    if typicality is None:
        return {"typicality": np.nan, "unusual": None}
    return {"typicality": typicality, "unusual": typicality < UNUSUAL}


def _columns(model: Any, classifier: Any) -> tuple[list[str] | None, Sequence[Any]]:
    """The names of the columns that a model needs, if they have any, and their levels."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None, ()
    # What a pipeline does to its columns before the classifier sees them is its own affair.
    return [str(name) for name in names], (
        classifier.statistics_.schema.levels if classifier is model else (None,) * len(names)
    )


def _matching(asked: Predictor, source: Source, is_asked: bool, n_samples: int | None = None) -> Iterator[Data]:
    """The file's columns in the form of the training data, so many rows at once; None: all."""
    from cgnlearn.persistence import classifier_of
    from cgnlearn.tables.read import prediction_parts
    from cgnlearn.tables.text import DataFileError

    wanted, levels = _columns(asked.model, classifier_of(asked.model))
    discrete = [] if wanted is None else [name for name, own in zip(wanted, levels, strict=True) if own is not None]
    parts = prediction_parts(source, asked.roles, wanted, discrete, needs_id=is_asked, n_samples=n_samples, tell=say)
    with options.wrong_columns():
        for data in parts:
            if wanted is None and data.X.shape[1] != asked.model.n_features_in_:
                raise DataFileError(
                    f"{source.path}: the model was trained on {asked.model.n_features_in_} columns of numbers without "
                    "names: give a file with exactly these"
                )
            yield data if wanted is None else _in_form(asked, data, wanted, levels)


def _in_form(asked: Predictor, data: Data, wanted: Sequence[str], levels: Sequence[Any]) -> Data:
    """Columns that have been read, with the levels of the training data."""
    from cgnlearn.persistence import classifier_of
    from cgnlearn.tables.text import DataFileError

    if classifier_of(asked.model) is not asked.model:
        return data
    recoded: dict[str, Any] = {}
    for name, own in zip(wanted, levels, strict=True):
        if own is not None:
            recoded[name], remark = _recoded(data, name, own)
            if remark and getattr(asked.model, "handle_unknown", "missing") == "error":
                raise DataFileError(f"{data.path}: {remark}: correct it")
            if remark:
                say(f"{remark}: it counts as missing")
    return replace(data, X=data.X.assign(**recoded))


def _recoded(data: Data, name: str, levels: Sequence[Any]) -> tuple[Any, str | None]:
    """A column of text as the levels it stands for, and what to say of those that the model does not know."""
    import pandas as pd

    meant: dict[str, Any] = {_as_number(str(level)): level for level in levels}
    meant |= {str(level): level for level in levels}
    column = data.X[name]
    missing = column.isna().to_numpy()
    found = [
        None if none else meant.get(value, meant.get(_as_number(value)))
        for value, none in zip(column.astype(str), missing, strict=True)
    ]
    unknown = [row for row, level in enumerate(found) if level is None and not missing[row]]
    if not unknown:
        return pd.Categorical(found, categories=list(levels)), None
    known = ", ".join(repr(str(level)) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
    more = f" (and others in {len(unknown) - 1} more rows)" if len(unknown) > 1 else ""
    return pd.Categorical(found, categories=list(levels)), (
        f"column {name!r} has {str(column.iloc[unknown[0]])!r} in {data.place(unknown[0])}{more}, which the model has "
        f"not seen in training (it knows {known})"
    )


def _as_number(text: str) -> str:
    """One spelling for all of a number's: 1 and 1.0 are the same level."""
    try:
        return repr(float(text))
    except ValueError:
        return text
