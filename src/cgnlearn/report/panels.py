"""The models beside each other: one panel for each metric, a dot with its interval for each model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgnlearn.evaluation.significance import Interval
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.evaluation.verdict import Standing, calibration, n_folds, standings

WORDS = {  # what a metric is called in plain words and by those who know, and what it means
    "accuracy": (
        "Right answers", "accuracy",
        "The share of rows for which the most probable class is the true one. More is better.",
    ),
    "cll": (
        "Probability given to the truth", "CLL",
        "The mean logarithm of the probability that a model gave to the true class. 0 is perfect; a confident error "
        "costs much.",
    ),
    "brier": (
        "Distance from the truth", "Brier score",
        "The mean squared distance between the probabilities and the truth: 0 is perfect, 2 is certain and wrong.",
    ),
    "calibration_error": (
        "Gap between promise and fact", "calibration error",
        "How far the probability of the predicted class lies from how often it is right. 0 is perfect; the band is "
        "what chance alone would show.",
    ),
}  # fmt: skip
LESS_IS_BETTER = {"brier", "calibration_error"}


class Dot(NamedTuple):
    """One model: its value, and where on the panel's line the dot and the interval's ends stand, in per cent."""

    model: str
    value: float
    place: float
    low: float | None
    high: float | None
    is_out: bool  # so far worse than the others that the line does not reach it, but its end
    is_best: bool
    is_worse: bool
    is_chosen: bool
    part: str  # of the folds, where not all were answered


class Panel(NamedTuple):
    """One metric."""

    metric: str
    title: str
    jargon: str
    meaning: str
    dots: list[Dot]
    ends: tuple[float, float]
    baseline: float | None  # where the class frequencies stand, in per cent


def panels(study: Study) -> list[Panel]:
    """Those of a study, each with all models that answered in some fold."""
    total = n_folds(study) * (1 + max(split.repeat for split in study.splits))
    found = [_panel(study, metric, standings(study, metric), total) for metric in ("accuracy", "cll", "brier")]
    return [*found, _panel(study, "calibration_error", _calibrations(study), total)]


def _calibrations(study: Study) -> list[Standing]:
    """A fold is too small to tell: all rows of the first repetition do, beside what chance would show."""
    found = []
    for summary in study.summaries:
        if any(r.log_proba is not None and not r.unit.repeat for r in study.results if r.unit.name == summary.model):
            of = calibration(study, summary.model)
            value = Interval(of.error, 0.0, of.by_chance)
            answered = summary.n_folds - summary.n_without
            found.append(Standing(summary.model, value, answered, is_best=False, is_worse=of.judgement == "not"))
    return found


def _panel(study: Study, metric: str, found: list[Standing], n_all: int) -> Panel:
    low, high = _ends(found, metric)

    def place(value: float) -> float:
        return round(float(np.clip(100 * (value - low) / (high - low), 0, 100)), 1)

    dots = [
        Dot(
            of.model, of.value.mean, place(of.value.mean),
            None if of.value.low is None else place(of.value.low),
            None if of.value.high is None else place(of.value.high),
            not low <= of.value.mean <= high, of.is_best, of.is_worse, of.model == study.chosen,
            "" if of.n_answered == n_all else f"{of.n_answered} of {n_all} folds",
        )
        for of in found
    ]  # fmt: skip
    base = next((dot.place for dot in dots if dot.model == BASELINE and not dot.is_out), None)
    return Panel(metric, *WORDS[metric], dots, (low, high), None if metric == "calibration_error" else base)


def _ends(found: list[Standing], metric: str) -> tuple[float, float]:
    """A line that reaches all models, but none so far off that the others could not be told apart."""
    ends = np.array([[of.value.low, of.value.mean, of.value.high] for of in found], dtype=float)
    means = ends[:, 1]
    usable = np.isfinite(means)
    if not usable.any():
        return -1.0, 0.0
    if metric == "calibration_error":
        return 0.0, float(np.nanmax(ends))
    sign = -1.0 if metric in LESS_IS_BETTER else 1.0
    best = float((sign * means[usable]).max())
    base = next((sign * of.value.mean for of in found if of.model == BASELINE), best)
    worst = best - 2.5 * max(abs(best - base), 0.02)  # beyond it a model is out of sight
    seen = usable & (sign * means >= worst)
    low, high = float(np.nanmin(ends[seen])), float(np.nanmax(ends[seen]))
    if metric == "accuracy":
        low, high = max(low, 0.0), min(high, 1.0)
    if metric in LESS_IS_BETTER:
        low = max(low, 0.0)
    if metric == "cll":
        high = min(high, 0.0)
    return (low, high) if high > low else (low - 0.01, high + 0.01)
