"""Decisions about one class at every threshold, from which the page shows the one that the reader selects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cgnlearn.evaluation.decisions import (
    THRESHOLD,
    THRESHOLDS,
    Decisions,
    decision_curve,
    decisions,
    grouping,
    one_class,
    predictions_by_model,
)
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.study import Study

MEASURES = {
    "sensitivity": "Sensitivity (share of cases found)",
    "specificity": "Specificity (share of others recognised)",
    "positive_predictive_value": "PPV (share of positive results that are correct)",
    "negative_predictive_value": "NPV (share of negative results that are correct)",
}


class Thresholds(NamedTuple):
    """Decisions of some models about one class."""

    positive: str
    start: float  # the threshold that is shown first
    is_by_costs: bool  # the start is the threshold of least expected cost
    prevalence: float
    of_models: dict[str, Decisions]  # at the start
    net_benefit: dict[str, float]
    costs: dict[str, float]  # mean cost per sample; empty without costs of two decisions
    values: dict[str, Any]  # plain values of all thresholds, for the page


def thresholds(study: Study, models: list[str]) -> Thresholds | None:
    """Decisions of these models; None without a positive class, or without samples of it and of others."""
    label = study.positive_class
    if label is None:
        return None
    code, predictions = study.classes.index(label), predictions_by_model(study)
    by_costs = None if study.costs is None else study.costs.threshold(code)
    start = THRESHOLD if by_costs is None else float(np.clip(round(by_costs, 2), 0.01, 0.99))
    of_models, net_benefit, costs, lists = {}, {}, {}, {}
    for model in models:
        parts, own = one_class(predictions[model], code), grouping(study, model)
        if not any(0 < happened.sum() < len(happened) for _, happened in parts):
            return None
        first = decisions(parts, study.prevalence, own, start)
        at = [decisions(parts, study.prevalence, own, float(t), first.auc) for t in THRESHOLDS]
        curve = decision_curve(parts, study.prevalence)
        place = int(np.argmin(np.abs(THRESHOLDS - start)))
        of_models[model], net_benefit[model] = first, float(curve.net_benefit[place])
        lists[model] = {name: [_rounded(getattr(found, name)) for found in at] for name in MEASURES}
        lists[model]["net_benefit"] = [[round(float(value), 4)] for value in curve.net_benefit]
        if by_costs is not None:
            mean = _mean_costs(study, predictions[model], code)
            costs[model] = mean[place]
            lists[model]["cost"] = [[round(value, 4)] for value in mean]
    prevalence = next(iter(of_models.values())).prevalence
    values = {"start": start, "thresholds": THRESHOLDS.tolist(), "models": list(lists.values())}
    return Thresholds(label, start, by_costs is not None, prevalence, of_models, net_benefit, costs, values)


def _mean_costs(study: Study, predictions: Any, code: int) -> list[float]:
    """Mean cost per sample at each threshold."""
    assert study.costs is not None
    calls = study.costs.calls(code)
    assert calls is not None
    parts = one_class(predictions, code)
    called = (np.concatenate([p for p, _ in parts])[:, None] >= THRESHOLDS).astype(np.intp)
    true = np.concatenate([true for _, true in predictions])
    decided = np.array(calls[::-1])[called]
    return [float(value) for value in study.costs.matrix[true[:, None], decided].mean(axis=0)]


def _rounded(estimate: Estimate | None) -> list[float]:
    return [] if estimate is None else [round(end, 4) for end in estimate if end is not None]
