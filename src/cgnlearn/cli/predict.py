"""The command ``cgnlearn predict``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.command import Command
from cgnlearn.cli.predictor import (
    NO_CLASS,
    Predictor,
    heading,
    matching,
    predictor_of,
    typicality_columns,
    typicality_or_reason,
    with_class_prior,
)
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    import pandas as pd

    from cgnlearn.spectra.folders import Folder
    from cgnlearn.tables.read import Data

CLASS_PRIOR = "Class probabilities where the samples come from, or estimate them from these samples."
INTERVAL = (
    "Add an interval of the probability of the predicted class, at this level, such as 0.9: columns low and high."
)
SETS = "Add the classes that cannot be ruled out: a set that contains the true one with this chance, such as 0.9."
THRESHOLD = "Predict CLASS from this probability on, and else the most probable of the others, such as case=0.2."
NOT_CSV = (".xlsx", ".xls", ".parquet", ".npz", ".gz", ".zip")
NEXT = "Add which missing column of each row to measure next, and the expected fall of entropy or cost."
TEST_COSTS = "Costs of the measurements that --next may choose; default: all, with equal costs."


@click.command(cls=Command)
@click.argument("model", type=options.EXISTING)
@click.argument("data", type=options.DATA)
@options.id_option
@options.na_option
@click.option("--threshold", type=options.probabilities, metavar="CLASS=P", help=THRESHOLD)
@click.option("--class-prior", type=options.probabilities_or_estimate, metavar="CLASS=P,...|estimate", help=CLASS_PRIOR)
@options.cost_option
@click.option("--interval", type=options.share, metavar="LEVEL", help=INTERVAL)
@click.option("--sets", type=options.share, metavar="COVERAGE", help=SETS)
@click.option("--log-density", is_flag=True, help="Add the log density of each row.")
@click.option("--next", "next_test", is_flag=True, help=NEXT)
@click.option("--test-costs", type=options.positive_numbers, metavar="COLUMN=COST,...", help=TEST_COSTS)
@options.sheet_option
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
    correlation: float | None,
    sheet: str | None,
    output: Path | None,
    memory: int | None,
    as_json: bool,
    **changes: Any,
) -> None:
    """Predict the rows of a file, or the spectra of a folder, with a saved model.

    For each row: the most probable class, the probability of every class, and the typicality (share of the training
    samples with no higher density). Rows with a typicality below 1% are marked as unusual. The typicality of a sample
    is that of its least typical spectrum, times their number.

    A set of all classes is called "cannot tell"; "none" fits no class.
    """
    from cgnlearn.files import whole_file, write_whole
    from cgnlearn.tables.read import BATCH_ROWS

    if output is not None and output.suffix.lower() in NOT_CSV:
        raise click.UsageError(f"{output}: predictions are written as csv: use a name that ends in .csv")
    estimates = changes["class_prior"] == options.ESTIMATE
    if estimates:
        changes["class_prior"] = None
    predictor = predictor_of(model, row_id, **changes)
    of_spectra = folder.checked(predictor.model, data)
    if estimates and of_spectra:
        raise click.UsageError("--class-prior estimate is for tables, and the data are spectra: give CLASS=P")
    if by_sample and (predictor.interval is not None or predictor.sets is not None):
        raise click.UsageError("--interval and --sets are for single spectra: omit them, or --by-sample")
    if not of_spectra:
        options.refuse_on_table(labels=labels, skip_bad=skip_bad, by_sample=by_sample, correlation=correlation)
    elif sheet is not None:
        raise click.UsageError("--sheet is for tables, and the data are spectra: omit it")
    source = None if of_spectra else options.opened(data, [] if row_id is None else [row_id], memory, sheet)
    if estimates and source is not None and options.exceeds(source, memory):
        raise click.UsageError("--class-prior estimate needs all rows in memory: increase --memory, or give CLASS=P")
    if source is not None and options.exceeds(source, memory):
        if output is None or as_json:
            raise click.UsageError("the file is too large for --json and stdout: add --output, or increase --memory")
        n_samples, n_unusual, counts = 0, 0, Counter[str]()
        with waiting("predicting"), whole_file(output) as file:
            for part in matching(predictor, source, needs_id=row_id is not None, n_rows=BATCH_ROWS):
                predicted = predictor.frame(part, is_first=not n_samples)
                file.write(_csv(predicted, header=not n_samples).encode())
                n_unusual += _n_unusual(predicted)
                n_samples += len(predicted)
                counts.update(predicted.get("set", ()))
    else:
        with waiting("predicting"):
            if source is None:
                spectra = folder.opened(data, labels, needed=False, skip_bad=skip_bad)
                predicted = _of_spectra(
                    predictor, spectra, (1.0 if correlation is None else correlation) if by_sample else None
                )
            else:
                [read] = matching(predictor, source, needs_id=row_id is not None)
                if estimates:
                    predictor = _with_estimate(predictor, read)
                predicted = predictor.frame(read)
        n_samples, n_unusual, counts = len(predicted), _n_unusual(predicted), Counter(predicted.get("set", ()))
        if output is not None:
            write_whole(output, _csv(predicted))
        elif not as_json:
            click.echo(_csv(predicted), nl=False)
        if as_json:
            click.echo(json.dumps(_as_dict(predictor, predicted, output), indent=1))
    if counts:
        say(_abstentions(counts, predictor.classes))
    if n_unusual:
        unusual = f"{n_unusual} of {n_samples} samples are unlike the training data (typicality below 1%)"
        say(f"{unusual}: do not rely on their predictions")
    if output is not None:
        say(f"{n_samples} samples: {output}")


def _with_estimate(predictor: Predictor, data: Data) -> Predictor:
    """The predictor with the class frequencies that the samples have, which are told."""
    from cgnlearn.evaluation.grouped import steps_before

    X = data.X if hasattr(predictor.model, "feature_names_in_") else data.X.to_numpy()
    for step in steps_before(predictor.model):
        X = step.transform(X)
    found = predictor.classifier.estimate_class_prior(X)
    say(f"class frequencies estimated from {len(data.X)} samples, with 95% intervals: {found}")
    model = with_class_prior(predictor.model, found.value)
    from cgnlearn.persistence import classifier_of

    return predictor._replace(model=model, classifier=classifier_of(model))


def _abstentions(counts: Counter[str], classes: Sequence[str]) -> str:
    """How often the sets have one class, several or none."""
    n, n_one = counts.total(), sum(counts[label] for label in classes)
    several = n - n_one - counts[NO_CLASS]
    return f"sets of {n} samples: {n_one} have one class, {several} more than one, {counts[NO_CLASS]} none"


def _n_unusual(predicted: pd.DataFrame) -> int:
    return int(predicted["unusual"].eq(True).sum())


def _csv(predicted: pd.DataFrame, header: bool = True) -> str:
    from cgnlearn.files import defused

    safe = {name: column.map(defused) for name, column in predicted.items() if column.dtype.kind not in "fiub"}
    plain = predicted.assign(**safe).rename(columns=defused)
    return str(plain.to_csv(index=False, header=header, lineterminator="\n", float_format="%.6g"))


def _as_dict(predictor: Predictor, predicted: pd.DataFrame, output: Path | None) -> dict[str, Any]:
    """The predictions in plain values; only their counts if they are in a file."""
    counts = {str(label): int(n) for label, n in predicted["predicted"].value_counts(sort=False).items()}
    result: dict[str, Any] = {"rows": len(predicted), "rows_unusual": _n_unusual(predicted), "predicted": counts}
    if output is not None:
        return result | {"path": str(output)}
    plain = predicted.astype(object).where(predicted.notna(), None).to_dict("records")
    for row in plain:
        row["probabilities"] = {label: row.pop(heading(label)) for label in predictor.classes}
    return result | {"predictions": plain}


def _of_spectra(predictor: Predictor, source: Folder, correlation: float | None) -> pd.DataFrame:
    """Predictions for spectra, or for samples if there is a correlation of their spectra."""
    import numpy as np
    import pandas as pd

    from cgnlearn.spectra import by_sample
    from cgnlearn.spectra.presets import flat
    from cgnlearn.tables.read import Data

    *steps, _ = (step for _, step in flat(predictor.model))
    X = source.features(steps)
    model = predictor.classifier
    predictor = predictor._replace(model=model)
    if correlation is None:
        predicted = predictor.frame(Data(source.path, X, np.arange(len(X)) + 1, ids=np.array(source.files)))
        predicted.insert(2, "sample", source.samples)
        return predicted.rename(columns={"id": "file"})
    samples = by_sample(model.predict_log_proba(X), source.samples, model.class_log_prior_, correlation=correlation)
    columns = {"sample": samples.samples, "spectra": samples.n_spectra}
    typicality, reason = typicality_or_reason(model, X)
    if typicality is not None:
        # Bonferroni: the minimum over several spectra.
        least = [typicality[source.samples == sample].min() for sample in samples.samples]
        typicality = np.minimum(least * samples.n_spectra, 1.0)
    return pd.DataFrame(columns | predictor.predictions(samples.log_proba) | typicality_columns(typicality, reason))
