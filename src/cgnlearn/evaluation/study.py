"""One set of data, cross-validated: what the folds gave, and what that is worth."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from cgnlearn import SampleNotAcceptableError
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import Split
from cgnlearn.data.warning import DataWarning
from cgnlearn.evaluation.evidence import UNEXPLAINED, Evidence, evidence_of
from cgnlearn.evaluation.features import Features, columns, peaks
from cgnlearn.evaluation.grouped import fit_options, last_step, steps_before
from cgnlearn.evaluation.metrics import Tally
from cgnlearn.evaluation.run import Row, Unit, Work
from cgnlearn.evaluation.summaries import Summary

BASELINE = "class frequencies"  # the classifier that looks at nothing; it has nothing to explain
EXPLAINS = "contributions"  # the method of a model that can be explained
LOGISTIC = "logistic regression"  # what a statistician would try first


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What one model said of the samples of one fold."""

    unit: Unit  # the model's name, the repetition and the fold
    rows: NDArray[np.intp]
    log_proba: Floats | None  # (samples, classes); None where maximum likelihood does not exist
    evidence: Evidence | None = None  # if it was asked for
    reason: str | None = None  # why there is no answer, if that is known: files of results do not keep it


class Told(NamedTuple):
    """By what reasons are told: the feature of each column, and where the columns stand if a fold has its own."""

    feature: NDArray[np.intp]
    positions: Floats | None


def fold_result(
    unit: Unit, model: Any, X: Any, y: NDArray[Any], split: Split, groups: NDArray[Any] | None, told: Told | None
) -> FoldResult:
    """Fit a copy of the model on the fold's training samples and let it predict the others; None: without evidence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            trained = fitted(model, X, y, split.train, groups)
        except SampleNotAcceptableError as error:
            return FoldResult(unit, split.test, None, reason=str(error))
        part = _safe_indexing(X, split.test)
        for step in steps_before(trained):
            part = step.transform(part)
        last = last_step(trained)
        log_proba = last.predict_log_proba(part)
        evidence = None
        if told is not None and hasattr(last, EXPLAINS):
            evidence = _explained(last, part, log_proba, y[split.test], told)
    return FoldResult(unit, split.test, log_proba, evidence)


def _explained(model: Any, X: Any, log_proba: Floats, y: NDArray[Any], told: Told) -> Evidence:
    """The evidence, told of the study's columns: those of a fold are its own where X comes out of a pipeline."""
    feature, positions = told
    places = np.arange(len(feature))
    if positions is not None:
        own = np.array(model.feature_names_in_, dtype=float)
        places = np.searchsorted((positions[1:] + positions[:-1]) / 2, own).astype(np.intp)
    try:
        found = evidence_of(model, X, log_proba, np.searchsorted(model.classes_, y), feature[places])
    except ValueError:  # not every model that has contributions has them for every set
        return UNEXPLAINED
    return replace(found, for_truth=np.bincount(places, found.for_truth, len(feature)).astype(np.float64))


def fitted(model: Any, X: Any, y: NDArray[Any], rows: NDArray[np.intp], groups: NDArray[Any] | None = None) -> Any:
    """A copy of the model, fitted on these samples, which also say what levels there are, if others may come.

    What it chooses inside parts no group.
    """
    part = _safe_indexing(X, rows)
    if getattr(model, "handle_unknown", None) == "missing":
        levels = [name for name, kind in getattr(part, "dtypes", {}).items() if str(kind) == "category"]
        part = part.assign(**{name: part[name].cat.remove_unused_categories() for name in levels}) if levels else part
    copy = clone(model)
    return copy.fit(part, y[rows], **fit_options(copy, y[rows], None if groups is None else groups[rows]))


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


def repetitions(results: Sequence[FoldResult]) -> list[list[FoldResult]]:
    """The results of each repetition."""
    numbers = sorted({result.unit.repeat for result in results})
    return [[result for result in results if result.unit.repeat == number] for number in numbers]


def pooled(results: Sequence[FoldResult], true: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Log probabilities and true classes of all samples of some folds."""
    answered = [(result.rows, result.log_proba) for result in results if result.log_proba is not None]
    rows, log_proba = zip(*answered, strict=True)
    return np.concatenate(log_proba), true[np.concatenate(rows)]


# ---- the study


@dataclass(frozen=True, eq=False)
class Study:
    """Everything about one evaluation."""

    name: str  # what the data are called
    X: Any  # a data frame
    y: NDArray[np.str_]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    results: list[FoldResult] = field(default_factory=list)  # those of a `Run` of the study's `work`
    settings: Mapping[str, str] = field(default_factory=dict)  # what the reader should know of how it was done
    lines: NDArray[np.intp] | None = None  # where each sample stands in its file; None: its index
    ids: NDArray[Any] | None = None  # what each sample is called; None: its line
    groups: NDArray[Any] | None = None  # which samples belong together, such as a subject's
    proposed: str | None = None  # the model that is to be judged, chosen before any result; None: the best of them
    positive: str | None = None  # the class that is looked for; None: the rarer one of two
    prevalence: float | None = None  # of that class where decisions will be made; None: as in the data
    positions: NDArray[np.float64] | None = None  # where the features stand along an axis, for spectra
    axis: str = "m/z"  # what the positions are
    marks: NDArray[np.float64] | None = None  # positions known to tell the classes apart, for simulated spectra
    raw: Any = None  # what the models, then pipelines, are fitted on if it is not X, such as spectra

    def work(self, settings: Mapping[str, Any] | None = None, *, explained: bool = False) -> Work[FoldResult]:
        """All models on all folds; ``explained`` for a report: the folds of the first repetition give their evidence.

        ``settings`` are all that the results depend on, for results that are kept.
        """
        told = Told(self.features.of_column, None if self.raw is None else self.positions) if explained else None
        X = self.X if self.raw is None else self.raw
        names = [[str(row if self.lines is None else self.lines[row])] for row in range(len(self.y))]
        if self.ids is not None:
            names = [[line, str(name)] for [line], name in zip(names, self.ids, strict=True)]

        def arguments(unit: Unit) -> tuple[Any, ...]:
            asked = None if unit.repeat else told
            return unit, self.models[unit.name], X, self.y, self._splits[unit[1:]], self.groups, asked

        def rows(unit: Unit, result: FoldResult) -> list[Row]:
            # Numbers in full: a result must be the same when it is read again.
            said = [[""] * len(self.classes)] * len(result.rows)
            if result.log_proba is not None:
                said = [list(map(repr, of_row)) for of_row in result.log_proba.tolist()]
            own = zip(result.rows.tolist(), said, strict=True)
            return [(str(row), *names[row], self.y[row], *of_row) for row, of_row in own]

        def result(unit: Unit, rows: Sequence[Sequence[str]]) -> FoldResult | None:
            said = [row[-len(self.classes) :] for row in rows]
            try:
                return FoldResult(unit, self._splits[unit[1:]].test, np.array(said, float) if any(said[0]) else None)
            except ValueError:
                return None

        named = ["model", "repeat", "fold", "sample", "line", *([] if self.ids is None else ["id"]), "true"]
        sizes = {Unit(name, s.repeat, s.fold): len(s.test) for s in self.splits for name in self.models}
        columns = (*named, *(f"log p({label})" for label in self.classes))
        return Work(columns, sizes, fold_result, arguments, settings or {}, rows, result)

    @cached_property
    def _splits(self) -> dict[tuple[int, int], Split]:
        return {(split.repeat, split.fold): split for split in self.splits}

    @cached_property
    def classes(self) -> list[str]:
        """The classes, sorted."""
        return [str(label) for label in np.unique(self.y)]

    @cached_property
    def true(self) -> NDArray[np.intp]:
        """Each sample's class as a position among the classes."""
        return np.searchsorted(self.classes, self.y).astype(np.intp)

    @property
    def counts(self) -> dict[str, int]:
        """Samples of each class."""
        return dict(zip(self.classes, np.bincount(self.true).tolist(), strict=True))

    @cached_property
    def names(self) -> list[str]:
        """The features."""
        return [str(name) for name in self.X.columns]

    @cached_property
    def features(self) -> Features:
        """What is told of: the features, or the peaks of spectra."""
        return columns(self.names) if self.positions is None else peaks(self.X, self.positions, self.axis)

    @property
    def looked_for(self) -> str | None:
        """The class that is looked for; None where there are more than two and none is named."""
        if self.positive is not None or len(self.classes) != 2:
            return self.positive
        return min(reversed(self.counts.items()), key=lambda item: item[1])[0]

    @property
    def n_groups(self) -> int | None:
        """How many groups the samples belong to."""
        return None if self.groups is None else len(np.unique(np.asarray(self.groups)))

    @cached_property
    def summaries(self) -> list[Summary]:
        """What the models' results are worth."""
        return summarise(self.results, self.true)

    @cached_property
    def able(self) -> list[Summary]:
        """Those of models that answered in every fold and can be explained."""
        whole = [summary for summary in self.summaries if summary.metrics and not summary.n_without]
        return [s for s in whole if s.model == self.proposed or hasattr(last_step(self.models[s.model]), EXPLAINS)]

    @cached_property
    def chosen(self) -> str | None:
        """The proposed model, else that of least log loss, of those that answered in every fold; None without one."""
        if self.proposed in [summary.model for summary in self.able]:
            return self.proposed
        return min(self.able, key=lambda summary: summary.metrics["log_loss"].mean).model if self.able else None
