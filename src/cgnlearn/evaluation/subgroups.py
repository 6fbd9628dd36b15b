"""Performance in subgroups of the samples, such as by sex, site or age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import as_cells, is_missing
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.calibration import FEWEST_EVENTS, Calibration, calibration, log_odds_of
from cgnlearn.evaluation.decisions import Grouping, decisions, grouping, predictions_by_model
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import LOG_LOSS
from cgnlearn.evaluation.study import Study

MOST_LEVELS = 12  # of a column of labels; the rarest of more are one group
N_QUANTILES = 4  # groups of a column of numbers with more values than that
MISSING = "missing"


@dataclass(frozen=True)
class Subgroup:
    """The figures of the samples with one level of a column."""

    column: str
    level: str
    n: int
    n_events: int  # samples of the positive class; with several classes and none positive, of the most frequent one
    log_loss: Estimate
    calibration: Calibration | None  # None with too few events, or without a positive class
    auc: Estimate | None
    sensitivity: Estimate | None
    specificity: Estimate | None

    @property
    def is_small(self) -> bool:
        """Whether there are too few samples to tell."""
        return self.calibration is None

    def as_dict(self) -> dict[str, object]:
        """The figures, for tables and JSON."""
        found: dict[str, object] = {"column": self.column, "level": self.level, "n": self.n, "events": self.n_events}
        slope = None if self.calibration is None else self.calibration.slope
        ratio = None if self.calibration is None else self.calibration.observed_expected
        named = {"log_loss": self.log_loss, "calibration_slope": slope, "observed_expected": ratio, "auc": self.auc}
        named |= {"sensitivity": self.sensitivity, "specificity": self.specificity}
        for name, of in named.items():
            for part, value in zip(("", "_low", "_high"), (None,) * 3 if of is None else of, strict=True):
                found[name + part] = value
        return found | {"too_small": self.is_small}


def levels_of(column: Any) -> NDArray[np.str_]:
    """The group of each sample: its level, or the quarter of its number."""
    cells = as_cells(column)
    missing = np.array([is_missing(cell) for cell in cells], bool)
    found = np.full(len(cells), MISSING, dtype=object)
    known = cells[~missing]
    numbers = _as_numbers(known)
    if numbers is not None and len(np.unique(numbers)) > MOST_LEVELS:
        ends = np.unique(np.quantile(numbers, np.linspace(0, 1, N_QUANTILES + 1)[1:-1]))
        group = np.searchsorted(ends, numbers, side="right")
        names = [f"below {ends[0]:.4g}", *(f"{a:.4g} to {b:.4g}" for a, b in pairwise(ends))]
        names.append(f"{ends[-1]:.4g} and above")
        found[~missing] = np.array(names, dtype=object)[group]
        return found.astype(str)
    text = known.astype(str)
    levels, number, n = np.unique(text, return_inverse=True, return_counts=True) if len(text) else (text, text, text)
    if len(levels) > MOST_LEVELS:
        rare = np.argsort(-n, kind="stable")[MOST_LEVELS - 1 :]
        levels = levels.astype(object)
        levels[rare] = f"{len(rare)} others"
        text = levels[number]
    found[~missing] = text
    return found.astype(str)


def _as_numbers(cells: NDArray[Any]) -> Floats | None:
    try:
        return cells.astype(float)
    except (TypeError, ValueError):
        return None


def subgroups(
    log_proba: Floats,
    true: NDArray[np.intp],
    columns: Mapping[str, Any],
    position: int | None,
    *,
    groups: NDArray[Any] | None = None,
    n_folds: int = 1,
    threshold: float = 0.5,
) -> list[Subgroup]:
    """Figures by the levels of each column.

    Parameters
    ----------
    log_proba : array (samples, classes)
    true : array (samples,)
        Positions of the true classes.
    columns : mapping from names to arrays (samples,)
        Numbers with many values are divided into quarters.
    position : int or None
        Of the positive class; None: log loss alone.
    groups : array (samples,), optional
        Samples that belong together.
    n_folds : int
        Of a cross-validation; 1: fresh samples.
    """
    found = []
    for name, column in columns.items():
        level_of = levels_of(column)
        if len(level_of) != len(true):
            raise ValueError(f"by {name!r} has {len(level_of)} values for {len(true)} samples: give one for each")
        for level in _in_order(level_of):
            rows = np.flatnonzero(level_of == level)
            own = None if groups is None else groups[rows]
            found.append(_subgroup(name, level, log_proba[rows], true[rows], position, own, n_folds, threshold))
    return found


def subgroups_of(study: Study, model: str, threshold: float = 0.5) -> list[Subgroup]:
    """The subgroups of an evaluation by its columns ``by``, for the first repetition of a model."""
    if not study.by or model not in (found := predictions_by_model(study)):
        return []
    log_proba, true = found[model][0]
    own = [r for r in study.results if r.unit.name == model and r.log_proba is not None]
    first = min(result.unit.repeat for result in own)
    rows = np.concatenate([result.rows for result in own if result.unit.repeat == first])
    columns = {name: np.asarray(column)[rows] for name, column in study.by.items()}
    groups, n_folds = grouping(study, model)
    label = study.positive_class
    position = None if label is None else study.classes.index(label)
    return subgroups(log_proba, true, columns, position, groups=groups, n_folds=n_folds, threshold=threshold)


def _in_order(level_of: NDArray[np.str_]) -> Sequence[str]:
    """Levels by name, quarters by value, missing ones last."""

    def key(level: str) -> tuple[bool, bool, float, str]:
        first = level.split(" to ")[0].removesuffix(" and above")
        number = _as_numbers(np.array([first]))
        return level == MISSING, not level.startswith("below "), 0.0 if number is None else float(number[0]), level

    return sorted(np.unique(level_of).tolist(), key=key)


def _subgroup(
    name: str,
    level: str,
    log_proba: Floats,
    true: NDArray[np.intp],
    position: int | None,
    groups: NDArray[Any] | None,
    n_folds: int,
    threshold: float,
) -> Subgroup:
    losses = LOG_LOSS.of_samples(log_proba, true)
    log_loss = estimates.loss(losses, n_folds, groups)
    if position is None:
        return Subgroup(name, level, len(true), int(np.bincount(true).max()), log_loss, None, None, None, None)
    happened = true == position
    n_events = int(happened.sum())
    if min(n_events, len(true) - n_events) < FEWEST_EVENTS:
        return Subgroup(name, level, len(true), n_events, log_loss, None, None, None, None)
    own = None if groups is None and n_folds == 1 else Grouping(groups, n_folds)
    decided = decisions([(np.exp(log_proba[:, position]), happened)], None, own, threshold)
    calibrated = calibration(log_odds_of(log_proba, position), happened, groups, n_folds)
    values = decided.auc, decided.sensitivity, decided.specificity
    return Subgroup(name, level, len(true), n_events, log_loss, calibrated, *values)
