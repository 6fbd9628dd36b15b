"""One set of data, cross-validated: what the folds gave, what that is worth, and what a report tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from cgnlearn import SampleNotAcceptable
from cgnlearn.evaluation import evidence as why
from cgnlearn.evaluation.evidence import Closeup, Evidence, evidence_of
from cgnlearn.evaluation.grouped import fit_options, last_step, steps_before
from cgnlearn.evaluation.metrics import METRICS, calibration_error
from cgnlearn.evaluation.run import Row, Unit, Work, csv_text
from cgnlearn.evaluation.splits import Split
from cgnlearn.model.densities import Floats

BASELINE = "class frequencies"  # the classifier that looks at nothing; it has nothing to explain


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What one model said of the rows of one fold."""

    unit: Unit  # the model's name, the repetition and the fold
    rows: NDArray[np.intp]
    log_proba: Floats | None  # (rows, classes); None where maximum likelihood does not exist
    evidence: Evidence | None = None  # if it was asked for


def fold_result(
    unit: Unit, model: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None, split: Split, explained: bool,
    positions: Floats | None,
) -> FoldResult:  # fmt: skip
    """Fit a copy of the model on the fold's training rows and let it predict the others."""
    try:
        trained = fitted(model, X, y, groups, split.train)
    except SampleNotAcceptable:
        return FoldResult(unit, split.test, None)
    part = _safe_indexing(X, split.test)
    for step in steps_before(trained):
        part = step.transform(part)
    last = last_step(trained)
    log_proba = last.predict_log_proba(part)
    evidence = None
    if explained and hasattr(last, "contributions"):
        evidence = evidence_of(last, part, log_proba, np.searchsorted(last.classes_, y[split.test]))
        if last is not trained and positions is not None:  # a fold's features are its own, and may lie a little aside
            evidence = evidence.moved(_nearest(np.array(last.feature_names_in_, float), positions), len(positions))
    return FoldResult(unit, split.test, log_proba, evidence)


def _nearest(of: Floats, among: Floats) -> NDArray[np.intp]:
    """The place of the nearest among rising numbers."""
    return np.searchsorted((among[1:] + among[:-1]) / 2, of).astype(np.intp)


def fitted(model: Any, X: Any, y: NDArray[Any], groups: NDArray[Any] | None, rows: NDArray[np.intp]) -> Any:
    """A copy of the model, fitted on these rows; what it chooses within them parts no group."""
    copy, groups = clone(model), None if groups is None else groups[rows]
    return copy.fit(_safe_indexing(X, rows), y[rows], **fit_options(copy, y[rows], groups))


# ---- summaries


class Spread(NamedTuple):
    """A metric's mean and its standard deviation between folds (of the calibration error: between repetitions)."""

    mean: float
    sd: float | None  # None where there is one value only


@dataclass(frozen=True)
class Summary:
    """What one model's results are worth."""

    model: str
    n_folds: int  # that have been done
    n_without: int  # those of them in which maximum likelihood does not exist; the metrics leave them out
    metrics: dict[str, Spread]  # by the names in `METRICS`; empty if no fold has an answer

    def as_dict(self) -> dict[str, Any]:
        """In plain values."""
        counts = {"model": self.model, "folds": self.n_folds, "folds_without_answer": self.n_without}
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
            parts = _repetitions(answered) if metric is calibration_error else [[result] for result in answered]
            values = [metric(*pooled(part, true)) for part in parts]
            sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
            metrics[name] = Spread(float(np.mean(values)), sd)
        summaries.append(Summary(model, len(found), len(found) - len(answered), metrics))
    return summaries


def _repetitions(results: Sequence[FoldResult]) -> list[list[FoldResult]]:
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
    true: str
    predicted: str
    probability: float  # of the predicted class
    probability_true: float
    log_odds: float  # of the predicted class against the next
    reasons: list[tuple[str, float]]  # attributes, with what they add to these log-odds


@dataclass(frozen=True, eq=False)
class Study:
    """Everything about one evaluation."""

    name: str  # what the data are called
    X: Any  # a data frame: what the report tells of
    y: NDArray[np.str_]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    results: list[FoldResult] = field(default_factory=list)  # those of a `Run` of the study's `work`
    settings: Mapping[str, str] = field(default_factory=dict)  # what the reader should know of how it was done
    lines: NDArray[np.intp] | None = None  # what each row is called; None: its index
    positions: NDArray[np.float64] | None = None  # where the attributes stand along an axis, for spectra
    axis: str = "m/z"  # what the positions are
    marks: NDArray[np.float64] | None = None  # positions known to tell the classes apart, for simulated spectra
    groups: NDArray[Any] | None = None  # which rows belong together, for what models choose within a fold
    raw: Any = None  # what the models, then pipelines, are fitted on if it is not X, such as spectra

    def work(self, settings: Mapping[str, Any] | None = None, *, explained: bool = False) -> Work[FoldResult]:
        """All models on all folds; ``explained`` for a report: the folds of the first repetition give their evidence.

        ``settings`` are all that the results depend on, for results that are kept.
        """

        def rows(unit: Unit, result: FoldResult) -> list[Row]:
            # Numbers in full: a result must be the same when it is read again.
            said = [[""] * len(self.classes)] * len(result.rows)
            if result.log_proba is not None:
                said = [list(map(repr, of_row)) for of_row in result.log_proba.tolist()]
            return [
                (str(row), str(self._line(row)), self.y[row], *of_row)
                for row, of_row in zip(result.rows.tolist(), said, strict=True)
            ]

        def result(unit: Unit, rows: Sequence[Sequence[str]]) -> FoldResult | None:
            said = [row[3:] for row in rows]
            try:
                return FoldResult(unit, self._splits[unit[1:]].test, np.array(said, float) if any(said[0]) else None)
            except ValueError:
                return None

        return Work(
            columns=("model", "repeat", "fold", "row", "line", "true", *(f"log p({label})" for label in self.classes)),
            sizes={Unit(name, s.repeat, s.fold): len(s.test) for s in self.splits for name in self.models},
            compute=fold_result,
            arguments=lambda unit: (
                unit, self.models[unit.name], self._given, self.y, self.groups, self._splits[unit[1:]],
                explained and not unit.repeat, self.positions,
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
    def summaries(self) -> list[Summary]:
        """What the models' results are worth."""
        return summarise(self.results, self.true)

    @property
    def able(self) -> list[Summary]:
        """Those of models that answered in every fold and can be explained."""
        explained = [name for name, model in self.models.items() if hasattr(last_step(model), "contributions")]
        return [s for s in self.summaries if s.metrics and not s.n_without and s.model in explained]

    @cached_property
    def chosen(self) -> str | None:
        """The model with the best CLL of those that answered in every fold; None if there is none."""
        return max(self.able, key=lambda summary: summary.metrics["cll"].mean).model if self.able else None

    @cached_property
    def final(self) -> Any:
        """The chosen model, or the last step of it, fitted on all rows: what would be used from now on."""
        assert self.chosen is not None
        model = self.models[self.chosen]
        return last_step(fitted(model, self._given, self.y, self.groups, np.arange(len(self.y))))

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
    def evidence(self) -> Evidence:
        """Of all folds together, by row; those that an earlier run finished kept none, and are fitted once more."""
        arguments = self.work(explained=True).arguments
        again = (result if result.evidence else fold_result(*arguments(result.unit)) for result in self._first)
        return why.together([(result.rows, result.evidence) for result in again if result.evidence], len(self.names))

    @cached_property
    def rows(self) -> list[SeenRow]:
        """All rows, or the least and the most certain of many, the least certain first."""
        return [self._seen(row) for row in why.listed(self.log_proba).tolist()]

    def _seen(self, row: int) -> SeenRow:
        said, true = self.log_proba[row], self.true[row]
        return SeenRow(
            row, self._line(row), self.classes[true], self.classes[said.argmax()],
            float(np.exp(said.max())), float(np.exp(said[true])), float(why.margin(said[None])[0]),
            [(self.names[column], value) for column, value in self.evidence.reasons[row]],
        )  # fmt: skip

    @cached_property
    def closeups(self) -> list[tuple[str, SeenRow, Closeup]]:
        """The rows a reader will ask for, each once, with what is remarkable about them."""
        by_index = {row.index: row for row in self.rows}
        wanted = why.remarkable(self.log_proba, self.true)
        return [(words, by_index[i], self.evidence.closeups[i]) for i, words in wanted.items()]

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Rows by true and predicted class."""
        counts = np.zeros((len(self.classes),) * 2, np.intp)
        known = why.by_certainty(self.log_proba)
        np.add.at(counts, (self.true[known], self.log_proba[known].argmax(axis=1)), 1)
        return counts
