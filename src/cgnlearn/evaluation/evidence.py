"""Why samples were classified as they were: what each feature adds, summarised while the model is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.densities import is_correct

N_REASONS = 8
MOST_ROWS = 400  # told of one by one: half the least certain, half the most certain
CHUNK = 2_000_000  # contributions held at once, of each class


@dataclass(frozen=True, eq=False)
class Evidence:
    """What features say of samples that the model has not seen; of single samples only those that a report tells of."""

    for_truth: Floats  # what each adds to the log-odds of the true class against its strongest rival, mean over samples
    # Of the `listed` samples those features that weigh most, and what they add to the log-odds of the predicted class.
    reasons: dict[int, list[tuple[int, float]]]


UNEXPLAINED = Evidence(np.zeros(0), {})  # by a model that cannot say what its features add


def evidence_of(
    model: Any, X: Any, log_proba: Floats, true: NDArray[np.intp], feature: NDArray[np.intp] | None = None
) -> Evidence:
    """What a fitted classifier's features say of the samples of X, of which it said ``log_proba``.

    Reasons are told by `feature`, the number of the one that each feature belongs to (as the bins of a spectrum to a
    peak); None: each feature is its own.

    A mixture is less sure than its members are on average, of whose contributions its own are made: these are told on
    the scale of its log-odds.
    """
    n, p = len(true), model.n_features_in_
    feature = np.arange(p) if feature is None else feature
    found = Evidence(np.zeros(p), {})
    wanted = set(listed(log_proba).tolist())
    rival = _best_but(log_proba, true)
    first, second = best_two(log_proba)
    total = np.zeros(n)
    for rows in np.array_split(np.arange(n), max(1, n * p // CHUNK)):
        parts = getattr(model, "likelihood_power_", 1.0) * model.contributions(_safe_indexing(X, rows))
        at = np.arange(len(rows))
        total[rows] = (parts[at, :, first[rows]] - parts[at, :, second[rows]]).sum(axis=1)
        found.for_truth[:] += (parts[at, :, true[rows]] - parts[at, :, rival[rows]]).sum(axis=0) / n
        for row in wanted.intersection(rows.tolist()):
            odds = parts[row - rows[0], :, first[row]] - parts[row - rows[0], :, second[row]]
            gathered = np.bincount(feature, odds)
            top = np.argsort(-np.abs(gathered), kind="stable")[:N_REASONS]
            found.reasons[row] = list(zip(top.tolist(), gathered[top].tolist(), strict=True))
    if hasattr(model, "contributions_remainder"):
        prior = model.class_log_prior_
        return _scaled(found, _slope(total, margin(log_proba) - prior[first] + prior[second]))
    return found


def _slope(told: Floats, meant: Floats) -> float:
    """By how much log-odds must be multiplied, at most 1, to be on the scale of others of the same samples."""
    known = np.isfinite(told) & np.isfinite(meant)
    square = float((told[known] ** 2).sum())
    return min(max(float((told[known] * meant[known]).sum()) / square, 0.0), 1.0) if square else 1.0


def _scaled(found: Evidence, by: float) -> Evidence:
    reasons = {row: [(feature, by * odds) for feature, odds in of_row] for row, of_row in found.reasons.items()}
    return Evidence(by * found.for_truth, reasons)


def together(parts: Sequence[tuple[NDArray[np.intp], Evidence]], n_features: int) -> Evidence:
    """The evidence of parts, each with the samples that it is about, as that of all samples."""
    n_seen = max(1, sum(len(rows) for rows, _ in parts))
    found = Evidence(np.zeros(n_features), {})
    for rows, part in parts:
        found.for_truth[:] += part.for_truth * (len(rows) / n_seen)
        found.reasons.update((int(rows[place]), reasons) for place, reasons in part.reasons.items())
    return found


def listed(log_proba: Floats) -> NDArray[np.intp]:
    """The samples shown one by one, the least certain first; a selection over all samples is in one over its parts."""
    order = by_certainty(log_proba)
    half = MOST_ROWS // 2
    return order if len(order) <= MOST_ROWS else np.concatenate([order[:half], order[-half:]])


def remarkable(log_proba: Floats, true: NDArray[np.intp]) -> dict[int, str]:
    """The samples a reader will ask for, and why."""
    order = by_certainty(log_proba)
    wrong = order[~is_correct(log_proba, true)[order]]
    found: dict[int, str] = {}
    for words, rows in (
        ("The least certain sample", order[:1]),
        ("The most confident error", wrong[-1:]),
        ("The most certain sample", order[-1:]),
    ):
        found |= {row: words for row in rows.tolist() if row not in found}
    return found


def by_certainty(log_proba: Floats) -> NDArray[np.intp]:
    """Samples whose classes are all possible, the least certain first."""
    known = np.flatnonzero(np.isfinite(log_proba).all(axis=1))
    return known[np.argsort(margin(log_proba[known]), kind="stable")]


def margin(log_proba: Floats) -> Floats:
    """The log-odds of the predicted class against the next, row by row."""
    first, second = best_two(log_proba)
    rows = np.arange(len(log_proba))
    return log_proba[rows, first] - log_proba[rows, second]


def best_two(log_proba: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The most probable class of each sample, and the next."""
    first = log_proba.argmax(axis=1)
    return first, _best_but(log_proba, first)


def _best_but(log_proba: Floats, left_out: NDArray[np.intp]) -> NDArray[np.intp]:
    """The most probable class of each sample but one."""
    others = log_proba.copy()
    others[np.arange(len(others)), left_out] = -np.inf
    return others.argmax(axis=1)
