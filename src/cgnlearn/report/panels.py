"""The models beside each other: one panel for each metric, a dot with its interval for each model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import CALIBRATION_ERROR, MEANS, Metric
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.evaluation.verdict import Standing, calibration, n_folds, standings


class Dot(NamedTuple):
    """One model on the panel's line."""

    of: Standing
    place: Estimate  # where the dot and the interval's ends stand, in per cent
    is_out: bool  # so far worse than the others that the line does not reach it, but its end
    is_chosen: bool
    part: str  # of the folds, where not all were answered


class Panel(NamedTuple):
    """One metric."""

    metric: Metric
    dots: list[Dot]
    ends: tuple[float, float]
    baseline: float | None  # where the class frequencies stand, in per cent


def panels(study: Study) -> list[Panel]:
    """Those of a study, each with all models that answered in some fold."""
    found = [(metric, standings(study, name)) for name, metric in MEANS.items()]
    found += [(CALIBRATION_ERROR, _calibrations(study))]
    return [_panel(study, metric, of_models) for metric, of_models in found]


def _calibrations(study: Study) -> list[Standing]:
    """A fold is too small to tell: all samples of the first repetition do, beside what chance would show."""
    found = []
    for summary in study.summaries:
        if any(r.log_proba is not None and not r.unit.repeat for r in study.results if r.unit.name == summary.model):
            of = calibration(study, summary.model)
            value = Estimate(of.error, 0.0, of.by_chance)
            answered = summary.n_folds - summary.n_without
            found.append(Standing(summary.model, value, answered, is_best=False, is_worse=of.judgement == "not"))
    return found


def _panel(study: Study, metric: Metric, found: list[Standing]) -> Panel:
    low, high = _ends(found, metric)
    n_all = n_folds(study) * (1 + max(split.repeat for split in study.splits))

    def place(value: float) -> float:
        return round(float(np.clip(100 * (value - low) / (high - low), 0, 100)), 1)

    dots = []
    for of in found:
        part = "" if of.n_answered == n_all else f"{of.n_answered} of {n_all} folds"
        is_out = not low <= of.value.value <= high
        dots.append(Dot(of, of.value.through(place), is_out, of.model == study.chosen, part))
    base = next((dot.place.value for dot in dots if dot.of.model == BASELINE and not dot.is_out), None)
    return Panel(metric, dots, (low, high), None if metric.in_bins else base)


def _ends(found: list[Standing], metric: Metric) -> tuple[float, float]:
    """A line that reaches all models, but none so far off that the others could not be told apart."""
    ends = np.array([of.value for of in found], dtype=float)  # (models, 3): value, low, high
    values = ends[:, 0]
    usable = np.isfinite(values)
    if not usable.any():
        return 0.0, 1.0
    if metric.in_bins:
        return 0.0, float(np.nanmax(ends))
    best = float((metric.sign * values[usable]).max())
    base = next((metric.sign * of.value.value for of in found if of.model == BASELINE), best)
    worst = best - 2.5 * max(abs(best - base), 0.02)  # beyond it a model is out of sight
    seen = usable & (metric.sign * values >= worst)
    low, high = max(float(np.nanmin(ends[seen])), 0.0), min(float(np.nanmax(ends[seen])), metric.most)
    return (low, high) if high > low else (low - 0.01, high + 0.01)
