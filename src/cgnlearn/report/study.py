"""What a report tells of one set of data: the settings, the results, and why rows were classified as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils import _safe_indexing

from cgnlearn.evaluation import FoldResult, Split, Summary, fitted, summarise
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import SampleNotAcceptable

BASELINE = "class frequencies"  # the classifier that looks at nothing; it has nothing to explain
N_REASONS = 3


@dataclass(frozen=True)
class Reason:
    """What one attribute adds to the log-odds of the predicted class against the next."""

    attribute: str
    log_odds: float


@dataclass(frozen=True)
class Row:
    """One row as the first repetition saw it from outside its training data."""

    index: int
    line: int
    true: str
    predicted: str
    probability: float  # of the predicted class
    probability_true: float
    log_odds: float  # of the predicted class against the next
    reasons: tuple[Reason, ...]

    @property
    def is_right(self) -> bool:
        """Whether the prediction is the truth."""
        return self.true == self.predicted


@dataclass(frozen=True, eq=False)
class Evidence:
    """What attributes say, out of fold.

    Parameters
    ----------
    joint : ndarray (rows, classes)
        Log joint probabilities.
    for_truth : ndarray (attributes,)
        Mean over rows of what each attribute adds to the log-odds of the true class against its strongest rival.
    top : ndarray of int (rows, reasons)
        The attributes that weigh most in each row, for the predicted class against the next.
    top_log_odds : ndarray (rows, reasons)
    """

    joint: Floats
    for_truth: Floats
    top: NDArray[np.intp]
    top_log_odds: Floats


@dataclass(frozen=True, eq=False)
class Study:
    """Everything about one evaluation.

    Parameters
    ----------
    name : str
        What the data are called.
    X : pandas.DataFrame
    y : ndarray of str
    models : mapping of str to classifier
    splits : sequence of Split
    results : list of FoldResult
    settings : mapping of str to str
        What the reader should know of how it was done.
    lines : ndarray of int, optional
        What each row is called; None: its index.
    positions : ndarray, optional
        Where the attributes stand along an axis, for spectra.
    axis : str
        What the positions are.
    marks : ndarray, optional
        Positions known to tell the classes apart, for simulated spectra.
    """

    name: str
    X: Any
    y: NDArray[np.str_]
    models: Mapping[str, Any]
    splits: Sequence[Split]
    results: list[FoldResult]
    settings: Mapping[str, str] = field(default_factory=dict)
    lines: NDArray[np.intp] | None = None
    positions: NDArray[np.float64] | None = None
    axis: str = "m/z"
    marks: NDArray[np.float64] | None = None

    @cached_property
    def classes(self) -> list[str]:
        """The classes, sorted."""
        return [str(label) for label in np.unique(self.y)]

    @cached_property
    def true(self) -> NDArray[np.intp]:
        """Each row's class as a position among the classes."""
        return np.searchsorted(self.classes, self.y).astype(np.intp)

    @cached_property
    def summaries(self) -> list[Summary]:
        """What the models' results are worth."""
        return summarise(self.results, self.true)

    @cached_property
    def chosen(self) -> str | None:
        """The model with the best CLL of those that answered in every fold; None if there is none."""
        able = [s for s in self.summaries if s.metrics and not s.n_without and s.model != BASELINE]
        return max(able, key=lambda s: s.metrics["cll"].mean).model if able else None

    @cached_property
    def names(self) -> list[str]:
        """The attributes."""
        return [str(name) for name in self.X.columns]

    @cached_property
    def final(self) -> Any:
        """The chosen model fitted on all rows: what would be used from now on."""
        assert self.chosen is not None
        return fitted(self.models[self.chosen], self.X, self.y, np.arange(len(self.y)))

    def unseen(self, row: int) -> Any:
        """The chosen model as it was when the first repetition predicted this row."""
        assert self.chosen is not None
        split = next(split for split in self.splits if row in split.test)
        return fitted(self.models[self.chosen], self.X, self.y, split.train)

    @cached_property
    def evidence(self) -> Evidence:
        """The chosen model's, from the folds of the first repetition fitted once more."""
        assert self.chosen is not None
        n, p = len(self.y), len(self.names)
        n_top = min(N_REASONS, p)
        joint = np.full((n, len(self.classes)), np.nan)
        total = np.zeros(p)
        top, top_log_odds = np.zeros((n, n_top), np.intp), np.zeros((n, n_top))
        seen = 0
        for split in self.splits:
            if split.repeat:
                continue
            try:
                model = fitted(self.models[self.chosen], self.X, self.y, split.train)
            except SampleNotAcceptable:
                continue
            for rows in np.array_split(split.test, max(1, len(split.test) * p // 2_000_000)):
                part = _safe_indexing(self.X, rows)
                parts = model.temperature_ * model.contributions(part)
                joint[rows] = model.predict_joint_log_proba(part)
                seen += len(rows)
                total += _between(parts, self.true[rows], _best_but(joint[rows], self.true[rows])).sum(axis=0)
                predicted = joint[rows].argmax(axis=1)
                odds = _between(parts, predicted, _best_but(joint[rows], predicted))
                top[rows] = np.argsort(-np.abs(odds), axis=1, kind="stable")[:, :n_top]
                top_log_odds[rows] = np.take_along_axis(odds, top[rows], axis=1)
        return Evidence(joint, total / max(seen, 1), top, top_log_odds)

    @cached_property
    def rows(self) -> list[Row]:
        """All rows, the least certain first."""
        joint = self.evidence.joint
        known = np.flatnonzero(np.isfinite(joint).all(axis=1))
        log_proba = joint - logsumexp(joint, axis=1, keepdims=True)
        predicted = np.zeros(len(joint), np.intp)
        predicted[known] = joint[known].argmax(axis=1)
        margin = np.zeros(len(joint))
        at = np.arange(len(known))
        margin[known] = joint[known][at, predicted[known]] - joint[known][at, _best_but(joint[known], predicted[known])]
        found = []
        for i in known[np.argsort(margin[known], kind="stable")].tolist():
            reasons = zip(self.evidence.top[i].tolist(), self.evidence.top_log_odds[i].tolist(), strict=True)
            found.append(
                Row(
                    index=i,
                    line=i if self.lines is None else int(self.lines[i]),
                    true=self.classes[self.true[i]],
                    predicted=self.classes[predicted[i]],
                    probability=float(np.exp(log_proba[i, predicted[i]])),
                    probability_true=float(np.exp(log_proba[i, self.true[i]])),
                    log_odds=float(margin[i]),
                    reasons=tuple(Reason(self.names[column], value) for column, value in reasons),
                )
            )
        return found

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Rows by true and predicted class, in the first repetition of the chosen model."""
        counts = np.zeros((len(self.classes),) * 2, np.intp)
        for row in self.rows:
            counts[self.classes.index(row.true), self.classes.index(row.predicted)] += 1
        return counts


def _between(parts: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Differences between two classes of each row: (rows, attributes)."""
    at = np.arange(len(parts))
    difference: Floats = parts[at, :, first] - parts[at, :, second]
    return difference


def _best_but(joint: Floats, left_out: NDArray[np.intp]) -> NDArray[np.intp]:
    """The most probable class of each row but one."""
    others = joint.copy()
    others[np.arange(len(joint)), left_out] = -np.inf
    return others.argmax(axis=1)
