"""Why rows were classified as they were: what each attribute adds, summarised while the model is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.evaluation.metrics import Floats, right

N_REASONS = 3
CHUNK = 2_000_000  # contributions held at once, of each class


class Closeup(NamedTuple):
    """One row in detail: what speaks for the predicted class against the next."""

    against: int  # the next class
    log_odds: Floats  # (attributes,)
    prior_log_odds: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What attributes say of rows that the model has not seen.

    Parameters
    ----------
    for_truth : ndarray (attributes,)
        Mean over rows of what each attribute adds to the log-odds of the true class against its strongest rival.
    top : ndarray of int (rows, reasons)
        The attributes that weigh most in each row, for the predicted class against the next.
    top_log_odds : ndarray (rows, reasons)
    closeups : dict of Closeup
        Of the `remarkable` rows, by their positions.
    """

    for_truth: Floats
    top: NDArray[np.intp]
    top_log_odds: Floats
    closeups: dict[int, Closeup]


def evidence_of(model: Any, X: Any, log_proba: Floats, true: NDArray[np.intp]) -> Evidence:
    """What a fitted classifier's attributes say of the rows of X, of which it said ``log_proba``."""
    n, p = len(true), model.n_features_in_
    n_top = min(N_REASONS, p)
    for_truth = np.zeros(p)
    top, top_log_odds = np.zeros((n, n_top), np.intp), np.zeros((n, n_top))
    closeups = {}
    wanted = remarkable(log_proba, true).keys()
    rival = _best_but(log_proba, true)
    first, second = _best_two(log_proba)
    prior = model.class_log_prior_
    for rows in np.array_split(np.arange(n), max(1, n * p // CHUNK)):
        parts = model.temperature_ * model.contributions(_safe_indexing(X, rows))
        for_truth += _between(parts, true[rows], rival[rows]).sum(axis=0)
        odds = _between(parts, first[rows], second[rows])
        top[rows] = np.argsort(-np.abs(odds), axis=1, kind="stable")[:, :n_top]
        top_log_odds[rows] = np.take_along_axis(odds, top[rows], axis=1)
        for row in wanted & set(rows.tolist()):
            of_prior = float(prior[first[row]] - prior[second[row]])
            closeups[row] = Closeup(int(second[row]), odds[row - rows[0]].copy(), of_prior)
    return Evidence(for_truth / n, top, top_log_odds, closeups)


def together(parts: Sequence[tuple[NDArray[np.intp], Evidence]], n_rows: int, n_attributes: int) -> Evidence:
    """The evidence of parts, each with the rows that it is about, as that of all rows."""
    n_top = min(N_REASONS, n_attributes)
    n_seen = max(1, sum(len(rows) for rows, _ in parts))
    for_truth = np.zeros(n_attributes)
    top, top_log_odds = np.zeros((n_rows, n_top), np.intp), np.zeros((n_rows, n_top))
    closeups: dict[int, Closeup] = {}
    for rows, part in parts:
        for_truth += part.for_truth * (len(rows) / n_seen)
        top[rows], top_log_odds[rows] = part.top, part.top_log_odds
        closeups |= {int(rows[place]): closeup for place, closeup in part.closeups.items()}
    return Evidence(for_truth, top, top_log_odds, closeups)


def remarkable(log_proba: Floats, true: NDArray[np.intp]) -> dict[int, str]:
    """The rows a reader will ask for, and why; those of all rows are among those of the parts they are cut into."""
    order = by_certainty(log_proba)
    wrong = order[~right(log_proba, true)[order]]
    found: dict[int, str] = {}
    for words, rows in (
        ("The least certain row", order[:1]),
        ("The most confident error", wrong[-1:]),
        ("The most certain row", order[-1:]),
    ):
        found |= {row: words for row in rows.tolist() if row not in found}
    return found


def by_certainty(log_proba: Floats) -> NDArray[np.intp]:
    """Rows whose classes are all possible, the least certain first."""
    known = np.flatnonzero(np.isfinite(log_proba).all(axis=1))
    return known[np.argsort(margin(log_proba[known]), kind="stable")]


def margin(log_proba: Floats) -> Floats:
    """The log-odds of the predicted class against the next, row by row."""
    first, second = _best_two(log_proba)
    rows = np.arange(len(log_proba))
    return log_proba[rows, first] - log_proba[rows, second]


def _best_two(log_proba: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The most probable class of each row, and the next."""
    first = log_proba.argmax(axis=1)
    return first, _best_but(log_proba, first)


def _best_but(log_proba: Floats, left_out: NDArray[np.intp]) -> NDArray[np.intp]:
    """The most probable class of each row but one."""
    others = log_proba.copy()
    others[np.arange(len(others)), left_out] = -np.inf
    return others.argmax(axis=1)


def _between(parts: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
    """Differences between two classes of each row: (rows, attributes)."""
    at = np.arange(len(parts))
    difference: Floats = parts[at, :, first] - parts[at, :, second]
    return difference
