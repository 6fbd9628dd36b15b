"""Abstention: how many errors are left if the least certain samples are not decided, and prediction sets."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.decisions import grouping
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.study import FoldResult, Study, pooled
from cgnlearn.networks.conformal import held_out_p_values

COVERAGE = 0.9  # of prediction sets


class RiskCoverage(NamedTuple):
    """Share of errors among the samples that are decided, against their share of all."""

    coverage: Floats
    risk: Floats

    def at(self, coverage: float) -> float:
        """The share of errors if at least this share of the samples is decided."""
        return float(self.risk[np.searchsorted(self.coverage, coverage - 1e-12)])


def risk_coverage(log_proba: Floats, true: NDArray[np.intp]) -> RiskCoverage:
    """The curve of predictions (samples, classes), the most certain decided first; equally certain ones together.

    Examples
    --------
    >>> log_proba = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]])
    >>> risk_coverage(log_proba, np.array([0, 1, 1, 1]))
    RiskCoverage(coverage=array([0.25, 0.5 , 1.  ]), risk=array([0.  , 0.  , 0.25]))
    """
    certainty, wrong = log_proba.max(axis=1).round(12), log_proba.argmax(axis=1) != true
    order = np.argsort(-certainty, kind="stable")
    n_wrong, n = np.cumsum(wrong[order]), np.arange(1, len(true) + 1)
    last = np.append(np.diff(certainty[order]) != 0, True)  # of equally certain samples
    return RiskCoverage(n[last] / len(true), n_wrong[last] / n[last])


class PredictionSets(NamedTuple):
    """What prediction sets of held-out samples look like; shares of the samples."""

    level: float  # chance with which they are meant to contain the true class
    covered: Estimate  # the sets contain the true class
    by_class: dict[str, Estimate]  # the same, of the samples of each class
    single: float  # one class: a decision
    correct: float | None  # of those, the share in which it is the true class
    several: float  # cannot tell
    empty: float  # unlike every class
    size: float  # mean number of classes

    @property
    def abstains(self) -> float:
        """Share of the samples without a decision."""
        return self.several + self.empty


def first_repetition(study: Study, model: str) -> list[FoldResult]:
    """The predictions of a model in its first repetition."""
    own = [result for result in study.results if result.unit.name == model and result.log_proba is not None]
    first = min((result.unit.repeat for result in own), default=0)
    return [result for result in own if result.unit.repeat == first]


def prediction_sets(study: Study, model: str, level: float = COVERAGE) -> PredictionSets | None:
    """Prediction sets of the held-out samples of each fold, from the held-out predictions of all other folds.

    They are those of `predict_set` of a mixture, made without a fit. None for a test set, or if a class has samples in
    one fold only.
    """
    folds = first_repetition(study, model)
    if len(folds) < 2:
        return None
    sets, n_classes = [], len(study.classes)
    for fold in folds:
        log_proba, true = pooled([other for other in folds if other is not fold], study.true)
        if len(np.unique(true)) < n_classes:
            return None
        assert fold.log_proba is not None
        sets.append(held_out_p_values(log_proba, true, fold.log_proba, True) > 1 - level)
    _, true = pooled(folds, study.true)
    found = np.concatenate(sets)
    hit, size = found[np.arange(len(true)), true], found.sum(axis=1)
    groups, n_folds = grouping(study, model)

    def share(of: NDArray[np.bool_]) -> Estimate:
        return estimates.share_of(hit[of].astype(float), n_folds, None if groups is None else groups[of])

    by_class = {label: share(true == code) for code, label in enumerate(study.classes)}
    single = size == 1
    return PredictionSets(
        level,
        share(np.ones(len(true), bool)),
        by_class,
        float(single.mean()),
        float(hit[single].mean()) if single.any() else None,
        float((size > 1).mean()),
        float((size == 0).mean()),
        float(size.mean()),
    )
