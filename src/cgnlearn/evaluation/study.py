"""The cross-validation of several models on one data set."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, clone
from sklearn.utils import _safe_indexing

from cgnlearn import SampleNotAcceptableError
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import Split, are_divisible
from cgnlearn.data.warning import DataWarning
from cgnlearn.evaluation.evidence import (
    UNEXPLAINED,
    Evidence,
    Features,
    evidence_of,
    peaks,
    single_columns,
    without_shifts,
)
from cgnlearn.evaluation.grouped import fit_options, last_step, steps_before
from cgnlearn.evaluation.metrics import Summary, Tally
from cgnlearn.evaluation.run import Row, Unit, Work

if TYPE_CHECKING:
    from cgnlearn.evaluation.decisions import Costs
    from cgnlearn.spectra.quality import Survey

BASELINE = "class frequencies"  # the classifier that ignores all features
EXPLAINS = "contributions"  # the method of models with an explanation
LOGISTIC = "logistic regression"  # the common reference


def in_order(labels: Iterable[str]) -> list[str]:
    """Distinct labels in the order of a table: by number if all are numbers, else by name.

    Examples
    --------
    >>> in_order(["10", "9", "1", "9"]), in_order(["b", "10", "9"])
    (['1', '9', '10'], ['10', '9', 'b'])
    """
    distinct = sorted({str(label) for label in labels})
    try:
        numbers = [float(label) for label in distinct]
    except ValueError:
        return distinct
    return sorted(distinct, key=float) if all(map(isfinite, numbers)) else distinct


class Seconds(NamedTuple):
    """Time of a fold, in one process."""

    fit: float
    predict: float


@dataclass(frozen=True, eq=False)
class FoldResult:
    """The predictions of one model for one fold; files of results have neither reasons nor times."""

    unit: Unit  # the model's name, the repetition and the fold
    rows: NDArray[np.intp]
    log_proba: Floats | None  # (samples, classes); None where maximum likelihood does not exist
    evidence: Evidence | None = None  # if requested
    reason: str | None = None  # why there are no predictions
    seconds: Seconds | None = None


class Columns(NamedTuple):
    """The columns of a study, to which the evidence of a fold is assigned."""

    feature: NDArray[np.intp]  # of each column
    positions: Floats | None  # of the columns, if each fold has its own


class Samples(NamedTuple):
    """The samples of a study."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    classes: list[str]  # in the order of the predictions
    sites: NDArray[Any] | None = None


def fold_result(unit: Unit, model: Any, samples: Samples, split: Split, columns: Columns | None) -> FoldResult:
    """Fit a copy of the model to the training samples and predict the others, with evidence if ``columns`` is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        started = perf_counter()
        try:
            trained = fitted(model, samples.X, samples.y, split.train, samples.groups, samples.sites)
        except SampleNotAcceptableError as error:
            return FoldResult(unit, split.test, None, reason=str(error))
        return held_out_result(unit, trained, samples, split.test, columns, perf_counter() - started)


def held_out_result(
    unit: Unit, trained: Any, samples: Samples, rows: NDArray[np.intp], columns: Columns | None, seconds: float = 0.0
) -> FoldResult:
    """Predictions of a fitted model, whose fit took some seconds, for these samples."""
    started = perf_counter()
    part, last = _safe_indexing(samples.X, rows), last_step(trained)
    for step in steps_before(trained):
        part = step.transform(part)
    sites = None if samples.sites is None else samples.sites[rows]
    log_proba = log_proba_of(last, part, sites)
    took = Seconds(seconds, perf_counter() - started)
    own = [str(label) for label in last.classes_.tolist()]
    place = {label: code for code, label in enumerate(own)}
    known = np.array([place.get(label, -1) for label in samples.classes])
    predicted = np.where(known >= 0, log_proba[:, known], -np.inf)  # of a class without training samples
    evidence = None
    if columns is not None and hasattr(last, EXPLAINS):
        true = np.array([place.get(str(label), 0) for label in samples.y[rows]], dtype=np.intp)
        is_one_to_one = all(isinstance(step, OneToOneFeatureMixin) for step in steps_before(trained))
        if sites is not None and hasattr(last, "site_shift_"):
            part = without_shifts(last, part, sites)
        known_columns = columns.positions is not None or is_one_to_one
        evidence = _explained(last, part, log_proba, true, columns, seconds) if known_columns else UNEXPLAINED
    return FoldResult(unit, rows, predicted, evidence, seconds=took)


def log_proba_of(model: Any, X: Any, sites: NDArray[Any] | None = None) -> Floats:
    """Log probabilities of any classifier; of one that was fitted with sites, at these."""
    with np.errstate(divide="ignore"):  # scikit-learn's take the logarithm of 0
        if hasattr(model, "site_shift_") and sites is not None:
            return np.asarray(model.predict_log_proba(X, sites=sites))
        if hasattr(model, "predict_log_proba"):
            return np.asarray(model.predict_log_proba(X))
        return np.log(model.predict_proba(X))


def _explained(
    model: Any, X: Any, log_proba: Floats, true: NDArray[np.intp], columns: Columns, seconds: float
) -> Evidence:
    """The evidence, assigned to the columns of the study by position if a pipeline computed those of the fold."""
    feature, positions = columns
    places = np.arange(len(feature))
    if positions is not None:
        own = np.array(model.feature_names_in_, dtype=float)
        places = np.searchsorted((positions[1:] + positions[:-1]) / 2, own).astype(np.intp)
    try:
        evidence = evidence_of(model, X, log_proba, true, feature[places], seconds)
    except ValueError:  # some models have contributions for some data only
        return UNEXPLAINED
    return replace(evidence, for_truth=np.bincount(places, evidence.for_truth, len(feature)).astype(np.float64))


def fitted(
    model: Any,
    X: Any,
    y: NDArray[Any],
    rows: NDArray[np.intp],
    groups: NDArray[Any] | None = None,
    sites: NDArray[Any] | None = None,
) -> Any:
    """A copy of the model, fitted to these samples; inner folds keep groups together.

    If the model accepts unknown levels, its levels are those of these samples.
    """
    part = _safe_indexing(X, rows)
    if getattr(model, "handle_unknown", None) == "missing":
        discrete = [name for name, kind in getattr(part, "dtypes", {}).items() if str(kind) == "category"]
        if discrete:
            part = part.assign(**{name: part[name].cat.remove_unused_categories() for name in discrete})
    copy = clone(model)
    of_rows = (None if each is None else each[rows] for each in (groups, sites))
    return copy.fit(part, y[rows], **fit_options(copy, y[rows], *of_rows))


# ---- summaries


def summarise(results: Iterable[FoldResult], true: NDArray[np.intp]) -> list[Summary]:
    """A summary of each model, in the order in which they first occur."""
    by_model: dict[str, list[FoldResult]] = {}
    for result in results:
        by_model.setdefault(result.unit.name, []).append(result)
    summaries = []
    for model, found in by_model.items():
        tallies = {r.unit[1:]: Tally.of(r.log_proba, true[r.rows]) for r in found if r.log_proba is not None}
        reason = next((result.reason for result in found if result.reason), None)
        summaries.append(Summary.of(model, len(found), tallies, reason))
    return summaries


def pooled(results: Sequence[FoldResult], true: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Log probabilities and true classes of all samples of some folds."""
    predicted = [(result.rows, result.log_proba) for result in results if result.log_proba is not None]
    rows, log_proba = zip(*predicted, strict=True)
    return np.concatenate(log_proba), true[np.concatenate(rows)]


# ---- the study


@dataclass(frozen=True, eq=False)
class Study:
    """Everything about one evaluation."""

    name: str  # of the data
    X: Any  # a data frame
    y: NDArray[np.str_]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    results: list[FoldResult] = field(default_factory=list)  # of a `Run` of the study's `work`
    settings: Mapping[str, str] = field(default_factory=dict)  # for the reader of a report
    lines: NDArray[np.intp] | None = None  # of each sample in its file; None: its index
    ids: NDArray[Any] | None = None  # of the samples; None: their lines
    groups: NDArray[Any] | None = None  # such as the subject of each sample
    sites: NDArray[Any] | None = None  # where each sample was measured; each is then a fold
    by: Mapping[str, Any] = field(default_factory=dict)  # columns whose levels are subgroups, by name
    proposed: str | None = None  # the model to describe, chosen before any result; None: the best one
    positive: str | None = None  # the positive class; None: the rarer one of two
    prevalence: float | None = None  # of the positive class in use; None: as in the data
    costs: Costs | None = None  # of the decisions
    positions: NDArray[np.float64] | None = None  # of the columns of spectra along their axis
    axis: str = "m/z"  # label of the positions
    marks: NDArray[np.float64] | None = None  # positions of the markers of simulated spectra
    raw: Any = None  # data, such as spectra, for models that are pipelines; None: X
    spectra: Survey | None = None  # what is known about raw spectra
    are_fitted: bool = False  # the models are, to other samples: the one fold is a test set

    def work(self, settings: Mapping[str, Any] | None = None, *, explained: bool = False) -> Work[FoldResult]:
        """All models on all folds; with ``explained`` those of the first repetition have evidence.

        ``settings`` identify results that are kept in a folder.
        """
        X = self.X if self.raw is None else self.raw
        columns = None
        if explained:
            columns = Columns(self.features.of_column, None if self.raw is None else self.positions)
        names = [[str(row if self.lines is None else self.lines[row])] for row in range(len(self.y))]
        if self.ids is not None:
            names = [[line, str(name)] for [line], name in zip(names, self.ids, strict=True)]

        samples = Samples(X, self.y, self.groups, self.classes, self.sites)

        def arguments(unit: Unit) -> tuple[Any, ...]:
            split = self._splits[unit[1:]]
            where = split.test if self.are_fitted else split
            is_shown = unit.repeat == 0 and self.proposed in (None, unit.name)
            return unit, self.models[unit.name], samples, where, columns if is_shown else None

        def rows(unit: Unit, result: FoldResult) -> list[Row]:
            values = [[""] * len(self.classes)] * len(result.rows)
            if result.log_proba is not None:  # in full precision, to be read again without a change
                values = [list(map(repr, of_sample)) for of_sample in result.log_proba.tolist()]
            own = zip(result.rows.tolist(), values, strict=True)
            return [(str(row), *names[row], self.y[row], *of_sample) for row, of_sample in own]

        def result(unit: Unit, rows: Sequence[Sequence[str]]) -> FoldResult | None:
            values = [row[-len(self.classes) :] for row in rows]
            try:
                log_proba = np.array(values, float) if any(values[0]) else None
            except ValueError:
                return None
            return FoldResult(unit, self._splits[unit[1:]].test, log_proba)

        named = ["model", "repeat", "fold", "sample", "line", *([] if self.ids is None else ["id"]), "true"]
        sizes = {Unit(name, s.repeat, s.fold): len(s.test) for s in self.splits for name in self.models}
        header = (*named, *(f"log p({label})" for label in self.classes))
        compute = held_out_result if self.are_fitted else fold_result
        return Work(header, sizes, compute, arguments, settings or {}, rows, result)

    @cached_property
    def _splits(self) -> dict[tuple[int, int], Split]:
        return {(split.repeat, split.fold): split for split in self.splits}

    @cached_property
    def undivided(self) -> str | None:
        """That folds are trained on too few groups to be divided again, if so."""
        if self.groups is None or self.are_fitted:
            return None
        n = sum(not are_divisible(self.y[split.train], self.groups[split.train]) for split in self.splits)
        where = f"{n} of {len(self.splits)} folds are trained on one group of each class"
        return f"{where}: settings tuned there are compared on held-out samples, not on held-out groups" if n else None

    @cached_property
    def classes(self) -> list[str]:
        """In the order of a table: numbers by size."""
        return in_order(self.y.tolist())

    @cached_property
    def true(self) -> NDArray[np.intp]:
        """The class of each sample as a position among the classes."""
        place = {label: code for code, label in enumerate(self.classes)}
        return np.array([place[label] for label in self.y.tolist()], dtype=np.intp)

    @property
    def counts(self) -> dict[str, int]:
        return dict(zip(self.classes, np.bincount(self.true).tolist(), strict=True))

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.X.columns]

    @cached_property
    def features(self) -> Features:
        """The columns, or the peaks of spectra."""
        return single_columns(self.names) if self.positions is None else peaks(self.X, self.positions, self.axis)

    @property
    def positive_class(self) -> str | None:
        """The given class or the rarer one of two; None if there are more classes."""
        if self.positive is not None or len(self.classes) != 2:
            return self.positive
        return min(reversed(self.counts.items()), key=lambda item: item[1])[0]

    @property
    def has_replicates(self) -> bool:
        """Whether the figures are by spectrum, of which a sample may have several."""
        return self.spectra is not None and self.groups is not None

    @property
    def n_groups(self) -> int | None:
        return None if self.groups is None else len(np.unique(np.asarray(self.groups)))

    def seconds(self, model: str) -> Seconds | None:
        """Median times of the folds of a model; None if an earlier run computed them."""
        own = [result.seconds for result in self.results if result.unit.name == model and result.seconds]
        return Seconds(*np.median(own, axis=0).tolist()) if own else None

    @cached_property
    def summaries(self) -> list[Summary]:
        return summarise(self.results, self.true)

    @cached_property
    def eligible(self) -> list[Summary]:
        """The summaries of the models with predictions in every fold and contributions, and of the proposed one."""
        complete = [summary for summary in self.summaries if summary.metrics and not summary.n_without]
        return [s for s in complete if s.model == self.proposed or hasattr(last_step(self.models[s.model]), EXPLAINS)]

    @cached_property
    def chosen(self) -> str | None:
        """The proposed model, or else the one with the lowest log loss, of the `eligible` ones; None without one."""
        if self.proposed in [summary.model for summary in self.eligible]:
            return self.proposed
        return min(self.eligible, key=lambda summary: summary.metrics["log_loss"].mean).model if self.eligible else None
