"""The models of a study in one table, the best first, with the place of each on an axis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgnlearn.evaluation.decisions import auc_by_model
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import MEANS
from cgnlearn.evaluation.study import BASELINE, Seconds, Study
from cgnlearn.evaluation.verdict import Standing, Verdict, calibration, n_folds, standings


class Place(NamedTuple):
    """Positions of a dot and of the ends of its interval on an axis, in per cent."""

    at: Estimate
    is_out: bool  # so much worse than the others that it is off the scale


class Line(NamedTuple):
    """One model."""

    model: str
    is_chosen: bool
    part: str  # number of folds with predictions, if not all
    metrics: dict[str, Standing]  # accuracy, log loss, Brier score
    place: Place  # of its log loss
    auc: Estimate | None
    slope: Estimate | None  # of the calibration of two classes
    seconds: Seconds | None
    margin: Estimate | None  # by how much the log loss of the chosen model is lower
    result: str  # of the chosen model compared with it


class Leaderboard(NamedTuple):
    """All models with predictions in some fold, by log loss."""

    lines: list[Line]
    baseline: float | None  # place of the class frequencies
    has_slopes: bool
    has_seconds: bool
    notes: list[str]  # about models without predictions in some folds


def leaderboard(study: Study, verdict: Verdict | None) -> Leaderboard:
    """The models of a study, by log loss."""
    found = {name: {s.model: s for s in standings(study, name)} for name in MEANS}
    aucs, is_binary = auc_by_model(study), len(study.classes) == 2
    low, high = _ends(list(found["log_loss"].values()))
    n_all = n_folds(study) * (1 + max(split.repeat for split in study.splits))

    def place(value: float) -> float:
        return round(float(np.clip(100 * (value - low) / (high - low), 0, 100)), 1)

    lines = []
    for model, loss in found["log_loss"].items():
        margin = None if verdict is None else verdict.over["log_loss"].get(model)
        lines.append(
            Line(
                model,
                model == study.chosen,
                "" if loss.n_predicted == n_all else f"{loss.n_predicted} of {n_all} folds",
                {name: of[model] for name, of in found.items()},
                Place(loss.value.through(place), not low <= loss.value.value <= high),
                aucs.get(model),
                calibration(study, model).slope if is_binary and model != BASELINE else None,
                study.seconds(model),
                margin,
                "" if verdict is None or margin is None else verdict.result(model),
            )
        )
    lines.sort(key=lambda line: (line.metrics["log_loss"].value.value, line.model))
    base = next((line.place.at.value for line in lines if line.model == BASELINE and not line.place.is_out), None)
    return Leaderboard(lines, base, is_binary, any(line.seconds for line in lines), _notes(study))


def _notes(study: Study) -> list[str]:
    found = []
    for summary in study.summaries:
        if summary.n_without:
            before, _, reason = (summary.reason or "maximum likelihood does not exist").rpartition("; use ")
            compared = " (compared on the other folds)" if summary.metrics else ""
            folds = f"{summary.n_without} of {summary.n_folds} folds{compared}"
            found.append(f"{summary.model} has no predictions in {folds}: {before or reason}.")
    return found


def _ends(found: list[Standing]) -> tuple[float, float]:
    """Ends of the axis of log losses; models much worse than the baseline do not count: others stay distinct."""
    ends = np.array([of.value for of in found], dtype=float).reshape(-1, 3)  # value, low, high
    values = ends[:, 0]
    usable = np.isfinite(values)
    if not usable.any():
        return 0.0, 1.0
    best = float(values[usable].min())
    base = next((of.value.value for of in found if of.model == BASELINE), best)
    worst = best + 2.5 * max(abs(base - best), 0.02)  # beyond it a model is off the scale
    shown = usable & (values <= worst)
    low, high = max(float(np.nanmin(ends[shown])), 0.0), float(np.nanmax(ends[shown]))
    return (low, high) if high > low else (low - 0.01, high + 0.01)
