"""Why rows were classified as they were: what each attribute adds, summarised while the model is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.evaluation.metrics import right
from cgnlearn.model.densities import Floats

N_REASONS = 3
MOST_ROWS = 400  # told of one by one: half the least certain, half the most certain
CHUNK = 2_000_000  # contributions held at once, of each class


class Closeup(NamedTuple):
    """One row in detail: what speaks for the predicted class against the next."""

    against: int  # the next class
    log_odds: Floats  # (attributes,)
    prior_log_odds: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """What attributes say of rows that the model has not seen; of single rows only those that a report tells of."""

    for_truth: Floats  # what each adds to the log-odds of the true class against its strongest rival, mean over rows
    # Of the `listed` rows those that weigh most, and what they add to the log-odds of the predicted class.
    reasons: dict[int, list[tuple[int, float]]]
    closeups: dict[int, Closeup]  # of the `remarkable` rows

    def moved(self, places: NDArray[np.intp], n_attributes: int) -> Evidence:
        """The same about other attributes: each adds what it said to the one at its place."""

        def sums(values: Floats) -> Floats:
            found = np.zeros(n_attributes)
            np.add.at(found, places, values)
            return found

        reasons = {row: [(int(places[i]), odds) for i, odds in found] for row, found in self.reasons.items()}
        closeups = {row: found._replace(log_odds=sums(found.log_odds)) for row, found in self.closeups.items()}
        return Evidence(sums(self.for_truth), reasons, closeups)


def evidence_of(model: Any, X: Any, log_proba: Floats, true: NDArray[np.intp]) -> Evidence:
    """What a fitted classifier's attributes say of the rows of X, of which it said ``log_proba``."""
    n, p = len(true), model.n_features_in_
    found = Evidence(np.zeros(p), {}, {})
    wanted, in_detail = set(listed(log_proba).tolist()), remarkable(log_proba, true)
    rival = _best_but(log_proba, true)
    first, second = _best_two(log_proba)
    prior = model.class_log_prior_
    for rows in np.array_split(np.arange(n), max(1, n * p // CHUNK)):
        parts = model.temperature_ * model.contributions(_safe_indexing(X, rows))
        at = np.arange(len(rows))
        found.for_truth[:] += (parts[at, :, true[rows]] - parts[at, :, rival[rows]]).sum(axis=0) / n
        for row in wanted.intersection(rows.tolist()):
            odds = parts[row - rows[0], :, first[row]] - parts[row - rows[0], :, second[row]]
            top = np.argsort(-np.abs(odds), kind="stable")[:N_REASONS]
            found.reasons[row] = list(zip(top.tolist(), odds[top].tolist(), strict=True))
            if row in in_detail:
                found.closeups[row] = Closeup(int(second[row]), odds, float(prior[first[row]] - prior[second[row]]))
    return found


def together(parts: Sequence[tuple[NDArray[np.intp], Evidence]], n_attributes: int) -> Evidence:
    """The evidence of parts, each with the rows that it is about, as that of all rows."""
    n_seen = max(1, sum(len(rows) for rows, _ in parts))
    found = Evidence(np.zeros(n_attributes), {}, {})
    for rows, part in parts:
        found.for_truth[:] += part.for_truth * (len(rows) / n_seen)
        found.reasons.update((int(rows[place]), reasons) for place, reasons in part.reasons.items())
        found.closeups.update((int(rows[place]), closeup) for place, closeup in part.closeups.items())
    return found


def listed(log_proba: Floats) -> NDArray[np.intp]:
    """The rows told of one by one, the least certain first; those of all rows are among those of parts of them."""
    order = by_certainty(log_proba)
    half = MOST_ROWS // 2
    return order if len(order) <= MOST_ROWS else np.concatenate([order[:half], order[-half:]])


def remarkable(log_proba: Floats, true: NDArray[np.intp]) -> dict[int, str]:
    """The rows a reader will ask for, and why; likewise among those of parts."""
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
