"""Comparison of models: one panel for each metric, with a dot and an interval for each model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import CALIBRATION_ERROR, MEANS, Metric
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.evaluation.verdict import Standing, calibration, n_folds, standings


class Dot(NamedTuple):
    """One model on the axis of a panel."""

    of: Standing
    place: Estimate  # positions of the dot and of the ends of its interval, in per cent
    is_out: bool  # so much worse than the others that it is off the scale
    is_chosen: bool
    part: str  # number of folds with predictions, if not all


class Panel(NamedTuple):
    """One metric."""

    metric: Metric
    dots: list[Dot]
    ends: tuple[float, float]
    baseline: float | None  # position of the class frequencies, in per cent


def panels(study: Study) -> list[Panel]:
    """One panel for each metric, with all models that have predictions in some fold."""
    found = [_panel(study, metric, standings(study, name)) for name, metric in MEANS.items()]
    return [*found, _panel(study, CALIBRATION_ERROR, _calibrations(study))]


def _calibrations(study: Study) -> list[Standing]:
    """Calibration errors in the first repetition (folds are too small), with the error expected by chance."""
    found = []
    for summary in study.summaries:
        if any(r.log_proba is not None and not r.unit.repeat for r in study.results if r.unit.name == summary.model):
            own = calibration(study, summary.model)
            value, n_predicted = Estimate(own.error, 0.0, own.by_chance), summary.n_folds - summary.n_without
            found.append(Standing(summary.model, value, n_predicted, False, own.judgement == "miscalibrated"))
    return found


def _panel(study: Study, metric: Metric, found: list[Standing]) -> Panel:
    low, high = _ends(found, metric)
    n_all = n_folds(study) * (1 + max(split.repeat for split in study.splits))

    def place(value: float) -> float:
        return round(float(np.clip(100 * (value - low) / (high - low), 0, 100)), 1)

    dots = []
    for of in found:
        part = "" if of.n_predicted == n_all else f"{of.n_predicted} of {n_all} folds"
        is_out = not low <= of.value.value <= high
        dots.append(Dot(of, of.value.through(place), is_out, of.model == study.chosen, part))
    base = next((dot.place.value for dot in dots if dot.of.model == BASELINE and not dot.is_out), None)
    return Panel(metric, dots, (low, high), None if metric.in_bins else base)


def _ends(found: list[Standing], metric: Metric) -> tuple[float, float]:
    """Ends of the axis; models much worse than the baseline do not count, so that the others stay distinct."""
    ends = np.array([of.value for of in found], dtype=float)  # (models, 3): value, low, high
    values = ends[:, 0]
    usable = np.isfinite(values)
    if not usable.any():
        return 0.0, 1.0
    if metric.in_bins:
        return 0.0, float(np.nanmax(ends))
    best = float((metric.sign * values[usable]).max())
    base = next((metric.sign * of.value.value for of in found if of.model == BASELINE), best)
    worst = best - 2.5 * max(abs(best - base), 0.02)  # beyond it a model is off the scale
    shown = usable & (metric.sign * values >= worst)
    low, high = max(float(np.nanmin(ends[shown])), 0.0), min(float(np.nanmax(ends[shown])), metric.most)
    return (low, high) if high > low else (low - 0.01, high + 0.01)
