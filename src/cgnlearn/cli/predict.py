"""The command ``cgnlearn predict``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.command import Command
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    import pandas as pd

    from cgnlearn.evaluation.decisions import Costs
    from cgnlearn.spectra.folders import Folder
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles

CLASS_PRIOR = "Class probabilities where the samples come from, or estimate them from these samples."
INTERVAL = (
    "Add an interval of the probability of the predicted class, at this level, such as 0.9: columns low and high."
)
SETS = "Add the classes that cannot be ruled out: a set that contains the true one with this chance, such as 0.9."
CANNOT_TELL, NO_CLASS = "cannot tell", "none"  # sets of all classes, and of none
THRESHOLD = "Predict CLASS from this probability on, and else the most probable of the others, such as case=0.2."
NOT_CSV = (".xlsx", ".xls", ".parquet", ".npz", ".gz", ".zip")
NEXT = "Add which missing column of each row to measure next, and the expected fall of entropy or cost."
TEST_COSTS = "Costs of the measurements that --next may choose; default: all, with equal costs."


class Predictor(NamedTuple):
    """A fitted model, or pipeline, with the options of the command."""

    model: Any
    classifier: Any  # the last step
    roles: Roles
    costs: Costs | None
    threshold: tuple[str, float] | None = None  # of a class
    log_density: bool = False
    interval: float | None = None  # level
    sets: float | None = None  # coverage
    na: Sequence[str] = ()  # given with the command
    next_test: bool = False  # whether to name the next feature to measure
    test_costs: dict[str, float] | None = None  # of measurements

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in self.classifier.classes_.tolist()]

    def predictions(self, log_proba: Any) -> dict[str, Any]:
        """Columns of the output for log probabilities."""
        import numpy as np

        classes = np.array(self.classes)
        best = log_proba.argmax(axis=1)
        if self.threshold is not None:
            label, least = self.threshold
            place = self.classes.index(label)
            others = np.where(np.arange(len(classes)) == place, -np.inf, log_proba).argmax(axis=1)
            best = np.where(np.exp(log_proba[:, place]) >= least, place, others)
        columns: dict[str, Any] = {"predicted": classes[best]}
        if self.costs is not None:
            best, expected = self.costs.least(log_proba)
            columns |= {"decision": np.array(self.costs.decisions)[best], "expected_cost": expected}
        return columns | dict(zip(map(_heading, self.classes), np.exp(log_proba).T, strict=True))

    def _interval(self, X: Any, predicted: Any) -> dict[str, Any]:
        """Ends of the interval of the probability of the predicted class."""
        import numpy as np

        found = self.classifier.predict_interval(_features(self.model, X), self.interval)
        at = np.array([self.classes.index(label) for label in predicted], np.intp)
        return dict(zip(("low", "high"), found[np.arange(len(at)), at].T, strict=True))

    def _sets(self, X: Any) -> list[str]:
        """Classes of each prediction set, in words."""
        found = self.classifier.predict_set(_features(self.model, X), self.sets)
        return [
            _in_words([label for label, is_in in zip(self.classes, row, strict=True) if is_in], len(row))
            for row in found
        ]

    def frame(self, data: Data, *, is_first: bool = True) -> pd.DataFrame:
        """Predictions for samples; a message comes with the first of them only."""
        import pandas as pd

        X = data.X if hasattr(self.model, "feature_names_in_") else data.X.to_numpy()
        columns: dict[str, Any] = {"row": data.lines}
        if data.ids is not None:
            columns["id"] = data.ids
        at = {} if data.sites is None else {"sites": data.sites}
        predicted = self.predictions(self.model.predict_log_proba(X, **at))
        if at and (self.interval is not None or self.sets is not None):
            raise click.UsageError("intervals and sets know no sites: omit them, or fit the model without --site")
        if self.interval is not None:
            predicted |= self._interval(X, predicted["predicted"])
        if self.sets is not None:
            predicted["set"] = self._sets(X)
        if self.log_density:
            predicted["log_density"] = self.model.score_samples(X, **at)
        typicality, reason = _typicality(self.model, X, **at)
        predicted |= _typicality_columns(typicality, reason if is_first else None)
        if self.next_test:
            predicted |= self._next(X)
        if data.y is not None:
            target = str(self.roles.target)
            columns[target if target not in {*columns, *predicted} else f"{target} of the file"] = data.y
        return pd.DataFrame(columns | predicted)

    def _next(self, X: Any) -> dict[str, Any]:
        """Columns about the next feature to measure: its name, empty to stop, and what it is expected to tell."""
        import numpy as np

        decision_costs = None if self.costs is None else self.costs.matrix.T
        found = self.model.next_measurement(X, self.test_costs, decision_costs=decision_costs)
        schema = self.classifier.statistics_.schema
        names = np.array([*(schema.names or map(str, range(schema.n_columns))), ""], object)
        fall = found.fall[np.arange(len(found.feature)), found.feature]
        return {"next_measurement": names[found.feature], "expected_fall": np.where(found.feature < 0, np.nan, fall)}


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


def predictor_of(
    path: Path,
    row_id: str | None,
    na: Sequence[str],
    class_prior: dict[str, float] | None = None,
    threshold: dict[str, float] | None = None,
    cost: Path | None = None,
    log_density: bool = False,
    interval: float | None = None,
    sets: float | None = None,
    next_test: bool = False,
    test_costs: dict[str, float] | None = None,
) -> Predictor:
    """The model of a file with the options of a command."""
    import numpy as np

    from cgnlearn.cli.costs import read_costs
    from cgnlearn.estimators.explanation import column_of
    from cgnlearn.persistence import classifier_of, load, read_header
    from cgnlearn.tables.options import listed_values
    from cgnlearn.tables.roles import Roles

    model = load(path)
    roles = Roles.from_header(read_header(path).get("columns"))
    roles = replace(roles, id=row_id or roles.id, na=(*roles.na, *listed_values(na)))
    predictor = Predictor(model, classifier_of(model), roles, None)
    classes = predictor.classes
    if class_prior is not None:
        prior = np.array(_completed(class_prior, classes))
        model = _with_class_prior(model, prior / prior.sum())
    costs = None if cost is None else read_costs(cost, classes)
    if test_costs is not None and not next_test:
        raise click.UsageError("--test-costs are those of the measurements that --next chooses: add --next")
    if next_test and model is not classifier_of(model):
        raise click.UsageError("--next is for tables, and this model has steps before the classifier: omit it")
    if next_test:
        with options.usage_errors():
            model._check_integrates("--next")
            for name in test_costs or ():
                column_of(name, model.statistics_.schema)
    least = None if threshold is None else _threshold(threshold, classes)
    more = least, log_density, interval, sets, listed_values(na), next_test, test_costs
    return Predictor(model, classifier_of(model), roles, costs, *more)


def _threshold(given: dict[str, float], classes: Sequence[str]) -> tuple[str, float]:
    """The one class with a threshold."""
    [(label, least), *more] = given.items()
    if more or label not in classes:
        raise click.UsageError(f"--threshold must name one class, such as {classes[-1]}=0.2: {', '.join(classes)}")
    return label, least


def _completed(given: dict[str, float], classes: Sequence[str]) -> list[float]:
    """A probability for each class; that of one may be omitted."""
    absent, total = [label for label in classes if label not in given], sum(given.values())
    foreign = [label for label in given if label not in classes]
    if foreign or len(absent) > 1:
        raise click.UsageError(f"--class-prior must name each class once, or all but one: {', '.join(classes)}")
    if (absent and total >= 1) or (not absent and abs(total - 1) > 0.001):
        raise click.UsageError(f"--class-prior: the probabilities sum to {total:g}, not to 1")
    return [given.get(label, 1 - total) for label in classes]


def _with_estimate(predictor: Predictor, data: Data) -> Predictor:
    """The predictor with the class frequencies that the samples have, which are told."""
    from cgnlearn.evaluation.grouped import steps_before

    X = data.X if hasattr(predictor.model, "feature_names_in_") else data.X.to_numpy()
    for step in steps_before(predictor.model):
        X = step.transform(X)
    found = predictor.classifier.estimate_class_prior(X)
    say(f"class frequencies estimated from {len(data.X)} samples, with 95% intervals: {found}")
    model = _with_class_prior(predictor.model, found.value)
    from cgnlearn.persistence import classifier_of

    return predictor._replace(model=model, classifier=classifier_of(model))


def _with_class_prior(model: Any, prior: Any) -> Any:
    """The same model, or pipeline, with another class prior."""
    from sklearn.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return model.with_class_prior(prior)
    *steps, (name, last) = model.steps
    return Pipeline([*steps, (name, _with_class_prior(last, prior))])


def _features(model: Any, X: Any) -> Any:
    """Samples as the last step of a pipeline reads them."""
    from sklearn.pipeline import Pipeline

    return _features(model[-1], model[:-1].transform(X)) if isinstance(model, Pipeline) else X


def _in_words(labels: list[str], n_classes: int) -> str:
    """A prediction set."""
    if len(labels) == n_classes:
        return CANNOT_TELL
    return " or ".join(labels) if labels else NO_CLASS


def _abstentions(counts: Counter[str], classes: Sequence[str]) -> str:
    """How often the sets have one class, several or none."""
    n, n_one = counts.total(), sum(counts[label] for label in classes)
    several = n - n_one - counts[NO_CLASS]
    return f"sets of {n} samples: {n_one} have one class, {several} more than one, {counts[NO_CLASS]} none"


def _typicality(model: Any, X: Any, **at: Any) -> tuple[Any, str | None]:
    """Typicality of samples under a model, or why it is not defined."""
    from sklearn.pipeline import Pipeline

    from cgnlearn.networks.model import NotExactError

    if isinstance(model, Pipeline):
        return _typicality(model[-1], model[:-1].transform(X))
    try:
        return model.typicality(X, **at), None
    except NotExactError as error:
        return None, str(error)


def _typicality_columns(typicality: Any, reason: str | None) -> dict[str, Any]:
    """Typicality and whether samples are unusual, or a message why it is not defined."""
    import numpy as np

    from cgnlearn.networks.unusual import UNUSUAL

    if reason:
        say(f"the column typicality is empty: {reason}")
    if typicality is None:
        return {"typicality": np.nan, "unusual": None}
    return {"typicality": typicality, "unusual": typicality < UNUSUAL}


def _n_unusual(predicted: pd.DataFrame) -> int:
    return int(predicted["unusual"].eq(True).sum())


def _heading(label: str) -> str:
    return f"probability_{label}"


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
        row["probabilities"] = {label: row.pop(_heading(label)) for label in predictor.classes}
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
    typicality, reason = _typicality(model, X)
    if typicality is not None:
        # Bonferroni: the minimum over several spectra.
        least = [typicality[source.samples == sample].min() for sample in samples.samples]
        typicality = np.minimum(least * samples.n_spectra, 1.0)
    return pd.DataFrame(columns | predictor.predictions(samples.log_proba) | _typicality_columns(typicality, reason))


def matching(
    predictor: Predictor,
    source: Source,
    *,
    needs_id: bool,
    n_rows: int | None = None,
    others: Sequence[str] = (),
) -> Iterator[Data]:
    """The file's columns in the form of the training data, ``n_rows`` at once; None: all."""
    from cgnlearn.tables.read import prediction_parts
    from cgnlearn.tables.text import DataFileError

    model, schema = predictor.model, predictor.classifier.statistics_.schema
    names = getattr(model, "feature_names_in_", None)
    columns = None if names is None else [str(name) for name in names]
    levels: dict[str, Any] = {}
    if columns is not None and model is predictor.classifier:  # a pipeline recodes its columns itself
        levels = {name: own for name, own in zip(columns, schema.levels, strict=True) if own is not None}
    more: dict[str, Any] = {
        "needs_id": needs_id,
        "na": predictor.na,
        "n_rows": n_rows,
        "others": others,
        "message": say,
    }
    parts = prediction_parts(source, predictor.roles, columns, levels, **more)
    with options.column_errors():
        for data in parts:
            if columns is None and data.X.shape[1] != model.n_features_in_:
                raise DataFileError(
                    f"{source.path}: the model was trained on {model.n_features_in_} columns of numbers without names: "
                    "use a file with exactly these"
                )
            recoded: dict[str, Any] = {}
            n_unknown: dict[str, int] = {}
            for name, known in levels.items():
                recoded[name], unknown = _recoded(data, name, known)
                if unknown:
                    n_unknown[name] = int(recoded[name].isna().sum() - data.X[name].isna().sum())
                if unknown and getattr(model, "handle_unknown", "missing") == "error":
                    raise DataFileError(f"{data.path}: {unknown}: correct it")
                if unknown:
                    say(f"{unknown}: it counts as missing")
            yield replace(data, X=data.X.assign(**recoded), unknown=n_unknown)


def _recoded(data: Data, name: str, levels: Sequence[Any]) -> tuple[Any, str | None]:
    """A column of text in the levels of the model, and a message about unknown ones."""
    import pandas as pd

    from cgnlearn.data.levels import identity

    known_level = {identity(level): level for level in levels}
    column = data.X[name]
    missing = column.isna().to_numpy()
    cells = [
        None if is_missing else known_level.get(identity(value))
        for value, is_missing in zip(column.astype(str), missing, strict=True)
    ]
    recoded = pd.Categorical(cells, categories=list(levels))
    unknown = [row for row, level in enumerate(cells) if level is None and not missing[row]]
    if not unknown:
        return recoded, None
    known = ", ".join(repr(str(level)) for level in levels[:8]) + (", …" if len(levels) > 8 else "")
    more = f" (and others in {len(unknown) - 1} more rows)" if len(unknown) > 1 else ""
    cell = f"{str(column.iloc[unknown[0]])!r} in {data.place(unknown[0])}{more}"
    return recoded, f"column {name!r} has {cell}, which is not a level of the training data (they are {known})"
