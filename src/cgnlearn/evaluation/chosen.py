"""The chosen model of a study: fitted on all samples, with its held-out predictions and their explanation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import evidence
from cgnlearn.evaluation.evidence import Evidence
from cgnlearn.evaluation.grouped import last_step
from cgnlearn.evaluation.study import EXPLAINS, FoldResult, Study, fitted


@dataclass(frozen=True)
class HeldOutSample:
    """One sample as predicted in the first repetition, when it was held out."""

    index: int
    line: int
    name: str  # its id, or else its line
    true: str
    predicted: str
    probability: float  # of the predicted class
    probability_true: float
    log_odds: float  # of the predicted class against the second most probable one
    against: str  # the second most probable class
    reasons: list[tuple[int, float]]  # positions in `Study.features`, with their contributions to the log odds
    interval: tuple[float, float] | None = None  # of the probability, at 90%


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen model of a study, with the predictions of the first repetition."""

    study: Study
    final: Any  # the model, or the last step of a pipeline, fitted on all samples
    evidence: Evidence | None  # None if the model has no contributions

    @classmethod
    def of(cls, study: Study) -> Chosen:
        """Fit the chosen model on all samples, and the folds without stored evidence once more."""
        assert study.chosen is not None
        X, model = study.X if study.raw is None else study.raw, study.models[study.chosen]
        if not study.are_fitted:
            model = fitted(model, X, study.y, np.arange(len(study.y)), study.groups, study.sites)
        return cls(study, last_step(model), explained(study))

    @cached_property
    def log_proba(self) -> Floats:
        """(samples, classes); NaN for samples without a prediction."""
        log_proba = np.full((len(self.study.y), len(self.study.classes)), np.nan)
        for result in _first(self.study):
            log_proba[result.rows] = result.log_proba
        return log_proba

    @cached_property
    def samples(self) -> list[HeldOutSample]:
        """All samples, or the least and the most certain of many, the least certain first."""
        return [self._sample(row) for row in evidence.listed(self.log_proba).tolist()]

    def _sample(self, row: int) -> HeldOutSample:
        study = self.study
        log_proba, true = self.log_proba[row], study.true[row]
        (first,), (second,) = evidence.best_two(log_proba[None])
        line = row if study.lines is None else int(study.lines[row])
        return HeldOutSample(
            index=row,
            line=line,
            name=str(line if study.ids is None else study.ids[row]),
            true=study.classes[true],
            predicted=study.classes[first],
            probability=float(np.exp(log_proba[first])),
            probability_true=float(np.exp(log_proba[true])),
            log_odds=float(log_proba[first] - log_proba[second]),
            against=study.classes[second],
            reasons=[] if self.evidence is None else self.evidence.reasons.get(row, []),
            interval=None if self.evidence is None else self.evidence.intervals.get(row),
        )

    @cached_property
    def remarkable(self) -> list[tuple[str, HeldOutSample]]:
        """The extreme samples, each once, with a title."""
        order = evidence.by_certainty(self.log_proba)
        wrong = order[self.log_proba[order].argmax(axis=1) != self.study.true[order]]
        extremes = {
            "Least certain sample": order[:1],
            "Most confident error": wrong[-1:],
            "Most certain sample": order[-1:],
        }
        titles: dict[int, str] = {}
        for title, rows in extremes.items():
            titles |= {row: title for row in rows.tolist() if row not in titles}
        return [(title, self._sample(row)) for row, title in titles.items()]

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Numbers of samples (true classes, predicted classes)."""
        known, labels = evidence.by_certainty(self.log_proba), range(len(self.study.classes))
        return confusion_matrix(self.study.true[known], self.log_proba[known].argmax(axis=1), labels=labels)


def explained(study: Study) -> Evidence | None:
    """The evidence of all folds; None if the model has no contributions.

    Folds finished by an earlier run have no stored evidence and are fitted again.
    """
    if study.chosen is None or not hasattr(last_step(study.models[study.chosen]), EXPLAINS):
        return None
    work = study.work(explained=True)
    results = (r if r.evidence else work.compute(*work.arguments(r.unit)) for r in _first(study))
    parts = [(result.rows, result.evidence) for result in results if result.evidence]
    if any(not len(part.for_truth) for _, part in parts):
        return None
    return evidence.combined(parts, len(study.names))


def _first(study: Study) -> list[FoldResult]:
    """The results of the chosen model in the first repetition."""
    return [result for result in study.results if result.unit.name == study.chosen and not result.unit.repeat]
