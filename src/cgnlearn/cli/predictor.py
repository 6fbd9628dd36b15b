"""A saved model with the options of a command, and its predictions for a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgnlearn.cli import options
from cgnlearn.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from cgnlearn.evaluation.decisions import Costs
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles

CANNOT_TELL, NO_CLASS = "cannot tell", "none"  # sets of all classes, and of none


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
        return columns | dict(zip(map(heading, self.classes), np.exp(log_proba).T, strict=True))

    def _interval(self, X: Any, predicted: Any, **at: Any) -> dict[str, Any]:
        """Ends of the interval of the probability of the predicted class."""
        import numpy as np

        found = self.classifier.predict_interval(_features(self.model, X), self.interval, **at)
        place = np.array([self.classes.index(label) for label in predicted], np.intp)
        return dict(zip(("low", "high"), found[np.arange(len(place)), place].T, strict=True))

    def _sets(self, X: Any, **at: Any) -> list[str]:
        """Classes of each prediction set, in words."""
        found = self.classifier.predict_set(_features(self.model, X), self.sets, **at)
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
        if self.interval is not None:
            predicted |= self._interval(X, predicted["predicted"], **at)
        if self.sets is not None:
            predicted["set"] = self._sets(X, **at)
        if self.log_density:
            predicted["log_density"] = self.model.score_samples(X, **at)
        typicality, reason = typicality_or_reason(self.model, X, **at)
        predicted |= typicality_columns(typicality, reason if is_first else None)
        if self.next_test:
            predicted |= self._next(X, **at)
        if data.y is not None:
            target = str(self.roles.target)
            columns[target if target not in {*columns, *predicted} else f"{target} of the file"] = data.y
        return pd.DataFrame(columns | predicted)

    def _next(self, X: Any, **at: Any) -> dict[str, Any]:
        """Columns about the next feature to measure: its name, empty to stop, and what it is expected to tell."""
        import numpy as np

        decision_costs = None if self.costs is None else self.costs.matrix.T
        found = self.model.next_measurement(X, self.test_costs, decision_costs=decision_costs, **at)
        schema = self.classifier.statistics_.schema
        names = np.array([*(schema.names or map(str, range(schema.n_columns))), ""], object)
        fall = found.fall[np.arange(len(found.feature)), found.feature]
        return {"next_measurement": names[found.feature], "expected_fall": np.where(found.feature < 0, np.nan, fall)}


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
        model = with_class_prior(model, prior / prior.sum())
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


def with_class_prior(model: Any, prior: Any) -> Any:
    """The same model, or pipeline, with another class prior."""
    from sklearn.pipeline import Pipeline

    if not isinstance(model, Pipeline):
        return model.with_class_prior(prior)
    *steps, (name, last) = model.steps
    return Pipeline([*steps, (name, with_class_prior(last, prior))])


def _features(model: Any, X: Any) -> Any:
    """Samples as the last step of a pipeline reads them."""
    from sklearn.pipeline import Pipeline

    return _features(model[-1], model[:-1].transform(X)) if isinstance(model, Pipeline) else X


def _in_words(labels: list[str], n_classes: int) -> str:
    """A prediction set."""
    if len(labels) == n_classes:
        return CANNOT_TELL
    return " or ".join(labels) if labels else NO_CLASS


def typicality_or_reason(model: Any, X: Any, **at: Any) -> tuple[Any, str | None]:
    """Typicality of samples under a model, or why it is not defined."""
    from sklearn.pipeline import Pipeline

    from cgnlearn.networks.model import NotExactError

    if isinstance(model, Pipeline):
        return typicality_or_reason(model[-1], model[:-1].transform(X))
    try:
        return model.typicality(X, **at), None
    except NotExactError as error:
        return None, str(error)


def typicality_columns(typicality: Any, reason: str | None) -> dict[str, Any]:
    """Typicality and whether samples are unusual, or a message why it is not defined."""
    import numpy as np

    from cgnlearn.networks.unusual import UNUSUAL

    if reason:
        say(f"the column typicality is empty: {reason}")
    if typicality is None:
        return {"typicality": np.nan, "unusual": None}
    return {"typicality": typicality, "unusual": typicality < UNUSUAL}


def heading(label: str) -> str:
    """The column of a class in the output."""
    return f"probability_{label}"
