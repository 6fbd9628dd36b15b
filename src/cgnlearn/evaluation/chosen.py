"""The chosen model of a study up close: fitted on all samples, and what it said of samples that it had not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import evidence as why
from cgnlearn.evaluation.evidence import Evidence
from cgnlearn.evaluation.grouped import last_step
from cgnlearn.evaluation.study import EXPLAINS, FoldResult, Study, fitted, fold_result


@dataclass(frozen=True)
class SeenRow:
    """One sample as the first repetition saw it from outside its training data."""

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
class Chosen:
    """What a report shows of the chosen model; its predictions are those of the first repetition."""

    study: Study
    final: Any  # the model, or the last step of it, fitted on all samples: what would be used from now on
    evidence: Evidence | None  # None if the model cannot be explained

    @classmethod
    def of(cls, study: Study) -> Chosen:
        """Fit the chosen model on all samples, and once more the folds whose evidence has not been kept."""
        assert study.chosen is not None
        X = study.X if study.raw is None else study.raw
        model = fitted(study.models[study.chosen], X, study.y, np.arange(len(study.y)), study.groups)
        return cls(study, last_step(model), explained(study))

    @cached_property
    def log_proba(self) -> Floats:
        """What it said of each sample; NaN where it has not been asked."""
        found = np.full((len(self.study.y), len(self.study.classes)), np.nan)
        for result in _first(self.study):
            found[result.rows] = result.log_proba
        return found

    @cached_property
    def rows(self) -> list[SeenRow]:
        """All samples, or the least and the most certain of many, the least certain first."""
        return [self._seen(row) for row in why.listed(self.log_proba).tolist()]

    def _seen(self, row: int) -> SeenRow:
        study = self.study
        said, true = self.log_proba[row], study.true[row]
        (first,), (second,) = why.best_two(said[None])
        line = row if study.lines is None else int(study.lines[row])
        return SeenRow(
            index=row,
            line=line,
            name=str(line if study.ids is None else study.ids[row]),
            true=study.classes[true],
            predicted=study.classes[first],
            probability=float(np.exp(said[first])),
            probability_true=float(np.exp(said[true])),
            log_odds=float(why.margin(said[None])[0]),
            against=study.classes[second],
            reasons=[] if self.evidence is None else self.evidence.reasons[row],
        )

    @cached_property
    def remarkable(self) -> list[tuple[str, SeenRow]]:
        """The samples a reader will ask for, each once, with what is remarkable about them."""
        by_index = {row.index: row for row in self.rows}
        return [(words, by_index[i]) for i, words in why.remarkable(self.log_proba, self.study.true).items()]

    @cached_property
    def confusion(self) -> NDArray[np.intp]:
        """Samples by true and predicted class."""
        known, labels = why.by_certainty(self.log_proba), range(len(self.study.classes))
        return confusion_matrix(self.study.true[known], self.log_proba[known].argmax(axis=1), labels=labels)


def explained(study: Study) -> Evidence | None:
    """The evidence of all folds together, by sample; those that an earlier run finished kept none, and are fitted
    again.

    None if the model cannot be explained.
    """
    if study.chosen is None or not hasattr(last_step(study.models[study.chosen]), EXPLAINS):
        return None
    arguments = study.work(explained=True).arguments
    again = (result if result.evidence else fold_result(*arguments(result.unit)) for result in _first(study))
    parts = [(result.rows, result.evidence) for result in again if result.evidence]
    if any(not len(part.for_truth) for _, part in parts):
        return None
    return why.together(parts, len(study.names))


def _first(study: Study) -> list[FoldResult]:
    """The chosen model's results of the first repetition."""
    return [result for result in study.results if result.unit.name == study.chosen and not result.unit.repeat]
