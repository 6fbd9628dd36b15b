"""One set of data, cross-validated: what the folds gave, what that is worth, and what a report tells of it."""

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

from cgnlearn import SampleNotAcceptable
from cgnlearn.data.splits import Split
from cgnlearn.evaluation import evidence as why
from cgnlearn.evaluation.evidence import UNEXPLAINED, Evidence, evidence_of
from cgnlearn.evaluation.features import Features, columns, peaks
from cgnlearn.evaluation.grouped import fit_options, last_step, steps_before
from cgnlearn.evaluation.metrics import METRICS, calibration_error
from cgnlearn.evaluation.run import Row, Unit, Work, csv_text
from cgnlearn.model.densities import Floats

BASELINE = "class frequencies"  # the classifier that looks at nothing; it has nothing to explain
EXPLAINS = "contributions"  # the method of a model that can be explained
LOGISTIC = "logistic regression"  # what a statistician would try first


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What one model said of the rows of one fold."""

    unit: Unit  # the model's name, the repetition and the fold
    rows: NDArray[np.intp]
    log_proba: Floats | None  # (rows, classes); None where maximum likelihood does not exist
    evidence: Evidence | None = None  # if it was asked for
    reason: str | None = None  # why there is no answer, if that is known: files of results do not keep it


def fold_result(
    unit: Unit, model: Any, X: Any, y: NDArray[Any], split: Split, explained: NDArray[np.intp] | None,
    groups: NDArray[Any] | None = None, positions: Floats | None = None,
) -> FoldResult:  # fmt: skip
    """Fit a copy of the model on the fold's training rows and let it predict the others.

    ``explained`` are the features of `evidence_of` for which reasons are told; None: nothing is explained.
    """
    with warnings.catch_warnings():
        # Rare levels, other axes and columns with many holes are the set's, and told of no fold.
        warnings.filterwarnings("ignore", "levels never seen", UserWarning)
        warnings.filterwarnings("ignore", "the spectra stand on", UserWarning)
        warnings.filterwarnings("ignore", ".* is observed in .* of the rows", UserWarning)
        try:
            trained = fitted(model, X, y, split.train, groups)
        except SampleNotAcceptable as error:
            return FoldResult(unit, split.test, None, reason=str(error))
        part = _safe_indexing(X, split.test)
        for step in steps_before(trained):
            part = step.transform(part)
        last = last_step(trained)
        log_proba = last.predict_log_proba(part)
        evidence = None
        if explained is not None and hasattr(last, EXPLAINS):
            evidence = _explained(last, part, log_proba, y[split.test], explained, positions)
    return FoldResult(unit, split.test, log_proba, evidence)


def _explained(
    model: Any, X: Any, log_proba: Floats, y: NDArray[Any], feature: NDArray[np.intp], positions: Floats | None
) -> Evidence:
    """The evidence, told of the study's columns: those of a fold are its own where X comes out of a pipeline."""
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
    """A copy of the model, fitted on these rows, which also say what levels there are, if others may come.

    What it chooses inside parts no group.
    """
    part = _safe_indexing(X, rows)
    if getattr(model, "unknown_levels", None) == "missing":
        levels = [name for name, kind in getattr(part, "dtypes", {}).items() if str(kind) == "category"]
        part = part.assign(**{name: part[name].cat.remove_unused_categories() for name in levels}) if levels else part
    copy = clone(model)
    return copy.fit(part, y[rows], **fit_options(copy, y[rows], None if groups is None else groups[rows]))


# ---- summaries


class Spread(NamedTuple):
    """A metric's mean and its standard deviation between folds (of the calibration error: between repetitions)."""

    mean: float
    sd: float | None  # None where there is one value only, or an infinite one

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value for each fold, or repetition."""
        sd = float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None
        return cls(float(np.mean(values)), sd)


@dataclass(frozen=True)
class Summary:
    """What one model's results are worth."""

    model: str
    n_folds: int  # that have been done
    n_without: int  # those of them in which maximum likelihood does not exist; the metrics leave them out
    metrics: dict[str, Spread]  # by the names in `METRICS`; empty if no fold has an answer
    reason: str | None = None  # why the first of the folds without an answer has none

    def as_dict(self) -> dict[str, Any]:
        """In plain values."""
        counts = {
            "model": self.model, "folds": self.n_folds, "folds_without_answer": self.n_without,
            "reason_without_answer": self.reason,
        }  # fmt: skip
        return counts | {name: spread._asdict() for name, spread in self.metrics.items()}


def summarise(results: Iterable[FoldResult], true: NDArray[np.intp]) -> list[Summary]:
    """A summary of each model, in the order in which they first occur."""
    by_model: dict[str, list[FoldResult]] = {}
    for result in results:
        by_model.setdefault(result.unit.name, []).append(result)
    summaries = []
    for model, found in by_model.items():
        answered = [result for result in found if result.log_proba is not None]
        metrics: dict[str, Spread] = {}
        for name, metric in METRICS.items() if answered else ():
            # A fold is too small to tell how well calibrated a model is: all rows of a repetition do.
            parts = repetitions(answered) if metric is calibration_error else [[result] for result in answered]
            metrics[name] = Spread.of([metric(*pooled(part, true)) for part in parts])
        reason = next((result.reason for result in found if result.reason), None)
        summaries.append(Summary(model, len(found), len(found) - len(answered), metrics, reason))
    return summaries


def repetitions(results: Sequence[FoldResult]) -> list[list[FoldResult]]:
    """The results of each repetition."""
    numbers = sorted({result.unit.repeat for result in results})
    return [[result for result in results if result.unit.repeat == number] for number in numbers]


def pooled(results: Sequence[FoldResult], true: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    """Log probabilities and true classes of all rows of some folds."""
    answered = [(result.rows, result.log_proba) for result in results if result.log_proba is not None]
    rows, log_proba = zip(*answered, strict=True)
    return np.concatenate(log_proba), true[np.concatenate(rows)]


def summary_text(summaries: Sequence[Summary]) -> str:
    """The summaries as csv."""
    rows: list[Row] = [
        ["model", "folds", "folds_without_answer", *(f"{name}{part}" for name in METRICS for part in ("", "_sd"))]
    ]
    for summary in summaries:
        spreads = [summary.metrics.get(name, (None, None)) for name in METRICS]
        values = ["" if value is None else repr(value) for spread in spreads for value in spread]
        rows.append([summary.model, summary.n_folds, summary.n_without, *values])
    return csv_text(*rows)


# ---- the study


@dataclass(frozen=True)
class SeenRow:
    """One row as the first repetition saw it from outside its training data."""

    index: int
    line: int
    name: str  # its id, or else its line
    true: str
    predicted: str
    probability: float  # of the predicted class
    probability_true: float
    log_odds: float  # of the predicted class against the next
    against: str  # the next class
    reasons: list[tuple[int, float]]  # numbers of `Study.features`, with what they add to these log-odds


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
    lines: NDArray[np.intp] | None = None  # where each row stands in its file; None: its index
    ids: NDArray[Any] | None = None  # what each row is called; None: its line
    groups: NDArray[Any] | None = None  # which rows belong together, such as a subject's
    proposed: str | None = None  # the model that is to be judged, chosen before any result; None: the best of them
    positive: str | None = None  # the class that is looked for; None: the rarer one of two
    prevalence: float | None = None  # of that class where decisions will be made; None: as in the data
    positions: NDArray[np.float64] | None = None  # where the attributes stand along an axis, for spectra
    axis: str = "m/z"  # what the positions are
    marks: NDArray[np.float64] | None = None  # positions known to tell the classes apart, for simulated spectra
    raw: Any = None  # what the models, then pipelines, are fitted on if it is not X, such as spectra

    def work(self, settings: Mapping[str, Any] | None = None, *, explained: bool = False) -> Work[FoldResult]:
        """All models on all folds; ``explained`` for a report: the folds of the first repetition give their evidence.

        ``settings`` are all that the results depend on, for results that are kept.
        """

        feature = self.features.of_column if explained else None

        def rows(unit: Unit, result: FoldResult) -> list[Row]:
            # Numbers in full: a result must be the same when it is read again.
            said = [[""] * len(self.classes)] * len(result.rows)
            if result.log_proba is not None:
                said = [list(map(repr, of_row)) for of_row in result.log_proba.tolist()]
            return [
                (str(row), str(self._line(row)), *self._id(row), self.y[row], *of_row)
                for row, of_row in zip(result.rows.tolist(), said, strict=True)
            ]

        def result(unit: Unit, rows: Sequence[Sequence[str]]) -> FoldResult | None:
            said = [row[-len(self.classes) :] for row in rows]
            try:
                return FoldResult(unit, self._splits[unit[1:]].test, np.array(said, float) if any(said[0]) else None)
            except ValueError:
                return None

        return Work(
            columns=(
                "model", "repeat", "fold", "row", "line", *([] if self.ids is None else ["id"]), "true",
                *(f"log p({label})" for label in self.classes),
            ),
            sizes={Unit(name, s.repeat, s.fold): len(s.test) for s in self.splits for name in self.models},
            compute=fold_result,
            arguments=lambda unit: (
                unit, self.models[unit.name], self._given, self.y, self._splits[unit[1:]],
                None if unit.repeat else feature, self.groups, None if self.raw is None else self.positions,
            ),
            settings=settings or {},
            rows=rows,
            result=result,
        )  # fmt: skip

    @cached_property
    def _splits(self) -> dict[tuple[int, int], Split]:
        return {(split.repeat, split.fold): split for split in self.splits}

    @property
    def _given(self) -> Any:
        return self.X if self.raw is None else self.raw

    def _line(self, row: int) -> int:
        return row if self.lines is None else int(self.lines[row])

    def _id(self, row: int) -> tuple[str, ...]:
        return () if self.ids is None else (str(self.ids[row]),)

    @cached_property
    def classes(self) -> list[str]:
        """The classes, sorted."""
        return [str(label) for label in np.unique(self.y)]

    @cached_property
    def true(self) -> NDArray[np.intp]:
        """Each row's class as a position among the classes."""
        return np.searchsorted(self.classes, self.y).astype(np.intp)

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each class."""
        return dict(zip(self.classes, np.bincount(self.true).tolist(), strict=True))

    @cached_property
    def names(self) -> list[str]:
        """The attributes."""
        return [str(name) for name in self.X.columns]

    @cached_property
    def features(self) -> Features:
        """What is told of: the attributes, or the peaks of spectra."""
        return columns(self.names) if self.positions is None else peaks(self.X, self.positions, self.axis)

    @property
    def looked_for(self) -> str | None:
        """The class that is looked for; None where there are more than two and none is named."""
        if self.positive is not None or len(self.classes) != 2:
            return self.positive
        return min(reversed(self.counts.items()), key=lambda item: item[1])[0]

    @property
    def n_groups(self) -> int | None:
        """How many groups the rows belong to."""
        return None if self.groups is None else len(np.unique(np.asarray(self.groups)))

    @cached_property
    def summaries(self) -> list[Summary]:
        """What the models' results are worth."""
        return summarise(self.results, self.true)

    @cached_property
    def able(self) -> list[Summary]:
        """Those of models that answered in every fold and can be explained."""
        return [
            s for s in self.summaries
            if s.metrics and not s.n_without
            and (s.model == self.proposed or hasattr(last_step(self.models[s.model]), EXPLAINS))
        ]  # fmt: skip

    @cached_property
    def chosen(self) -> str | None:
        """The proposed model, else that of the best CLL, of those that answered in every fold; None without one."""
        if self.proposed in [summary.model for summary in self.able]:
            return self.proposed
        return max(self.able, key=lambda summary: summary.metrics["cll"].mean).model if self.able else None

    @cached_property
    def final(self) -> Any:
        """The chosen model, or the last step of it, fitted on all rows: what would be used from now on."""
        assert self.chosen is not None
        return last_step(fitted(self.models[self.chosen], self._given, self.y, np.arange(len(self.y)), self.groups))

    # ---- the chosen model in the first repetition

    @cached_property
    def log_proba(self) -> Floats:
        """What it said of each row; NaN where it has not been asked."""
        found = np.full((len(self.y), len(self.classes)), np.nan)
        for result in self._first:
            found[result.rows] = result.log_proba
        return found

    @property
    def _first(self) -> list[FoldResult]:
        return [result for result in self.results if result.unit.name == self.chosen and not result.unit.repeat]

    @cached_property
    def evidence(self) -> Evidence | None:
        """Of all folds together, by row; those that an earlier run finished kept none, and are fitted once more.

        None if the model cannot be explained.
        """
        if self.chosen is None or not hasattr(last_step(self.models[self.chosen]), EXPLAINS):
            return None
        arguments = self.work(explained=True).arguments
        again = (result if result.evidence else fold_result(*arguments(result.unit)) for result in self._first)
        parts = [(result.rows, result.evidence) for result in again if result.evidence]
        if any(not len(part.for_truth) for _, part in parts):
            return None
        return why.together(parts, len(self.names))

    @cached_property
    def rows(self) -> list[SeenRow]:
        """All rows, or the least and the most certain of many, the least certain first."""
        return [self._seen(row) for row in why.listed(self.log_proba).tolist()]

    def _seen(self, row: int) -> SeenRow:
        said, true = self.log_proba[row], self.true[row]
        (first,), (second,) = why.best_two(said[None])
        name = str(self._line(row)) if self.ids is None else str(self.ids[row])
        return SeenRow(
            row, self._line(row), name, self.classes[true], self.classes[first],
            float(np.exp(said[first])), float(np.exp(said[true])), float(why.margin(said[None])[0]),
            self.classes[second], [] if self.evidence is None else self.evidence.reasons[row],
        )  # fmt: skip

    @cached_property
    def remarkable(self) -> list[tuple[str, SeenRow]]:
        """The rows a reader will ask for, each once, with what is remarkable about them."""
        by_index = {row.index: row for row in self.rows}
        return [(words, by_index[i]) for i, words in why.remarkable(self.log_proba, self.true).items()]

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Rows by true and predicted class."""
        counts = np.zeros((len(self.classes),) * 2, np.intp)
        known = why.by_certainty(self.log_proba)
        np.add.at(counts, (self.true[known], self.log_proba[known].argmax(axis=1)), 1)
        return counts
