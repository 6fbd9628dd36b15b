"""Contributions of features, or peaks of spectra, to held-out predictions, summarised by fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.peaks import peak_regions

N_REASONS = 8
MOST_SAMPLES = 400  # listed one by one: half the least certain, half the most certain
CHUNK = 2_000_000  # contributions in memory at once, for each class
BETWEEN = "between the peaks"


class Features(NamedTuple):
    """Features, the column that represents each, and the feature of each column."""

    names: list[str]
    shown: list[int | None]  # the highest bin of a peak; None for the bins between the peaks
    of_column: NDArray[np.intp]

    def sums(self, by_column: Floats) -> Floats:
        """Sums over the columns of each feature."""
        return np.bincount(self.of_column, by_column, len(self.names)).astype(np.float64)


def single_columns(names: Sequence[str]) -> Features:
    """Each column as its own feature."""
    return Features(list(names), list(range(len(names))), np.arange(len(names)))


def peaks(X: Any, positions: Floats, axis: str) -> Features:
    """The peaks of the mean spectrum, found in its square root so that a high peak does not hide low ones."""
    profile = np.nan_to_num(mean_spectrum(np.asarray(X, dtype=float)))
    tops, region = peak_regions(np.sqrt(profile - profile.min()))
    digits = max(0, int(np.ceil(-np.log10(np.diff(positions).min())))) if len(positions) > 1 else 1
    names = [f"{axis} {positions[top]:.{min(digits, 4)}f}" for top in tops]
    return Features([*names, BETWEEN], [*tops.tolist(), None], np.where(region < 0, len(tops), region))


def mean_spectrum(values: Floats) -> Floats:
    """The mean of the finite values of each column; NaN without any."""
    known = np.isfinite(values)
    n = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, n, out=np.full(values.shape[1], np.nan), where=n > 0)


# ---- evidence


@dataclass(frozen=True, eq=False)
class Evidence:
    """Contributions of the features to held-out predictions."""

    for_truth: Floats  # (columns,): to the log odds of the true class against its strongest rival, mean over samples
    # For the `listed` samples the features with the largest contributions to the log odds of the predicted class.
    reasons: dict[int, list[tuple[int, float]]]


UNEXPLAINED = Evidence(np.zeros(0), {})  # of a model without contributions


def evidence_of(
    model: Any, X: Any, log_proba: Floats, true: NDArray[np.intp], feature: NDArray[np.intp] | None = None
) -> Evidence:
    """Evidence of a fitted classifier for the samples of X, for which it predicted ``log_proba``.

    Reasons are summed by ``feature``, the feature of each column (such as the peak of each bin of a spectrum); None:
    each column is its own feature. The contributions of a mixture are means over its members, whose log odds exceed
    those of the mixture: they are scaled to the log odds of the mixture.
    """
    n, p = len(true), model.n_features_in_
    feature = np.arange(p) if feature is None else feature
    for_truth = np.zeros(p)
    reasons: dict[int, list[tuple[int, float]]] = {}
    wanted = set(listed(log_proba).tolist())
    rival = _best_but(log_proba, true)
    first, second = best_two(log_proba)
    total = np.zeros(n)
    for rows in np.array_split(np.arange(n), max(1, n * p // CHUNK)):
        parts = getattr(model, "likelihood_power_", 1.0) * model.contributions(_safe_indexing(X, rows))
        at = np.arange(len(rows))
        total[rows] = (parts[at, :, first[rows]] - parts[at, :, second[rows]]).sum(axis=1)
        for_truth += (parts[at, :, true[rows]] - parts[at, :, rival[rows]]).sum(axis=0) / n
        for row in wanted.intersection(rows.tolist()):
            odds = parts[row - rows[0], :, first[row]] - parts[row - rows[0], :, second[row]]
            sums = np.bincount(feature, odds)
            top = np.argsort(-np.abs(sums), kind="stable")[:N_REASONS]
            reasons[row] = list(zip(top.tolist(), sums[top].tolist(), strict=True))
    if hasattr(model, "contributions_remainder"):
        prior = model.class_log_prior_
        scale = _slope(total, margin(log_proba) - prior[first] + prior[second])
        reasons = {row: [(one, scale * odds) for one, odds in own] for row, own in reasons.items()}
        for_truth *= scale
    return Evidence(for_truth, reasons)


def _slope(log_odds: Floats, target: Floats) -> float:
    """Least-squares factor, from 0 to 1, of the log odds to those of the target."""
    known = np.isfinite(log_odds) & np.isfinite(target)
    square = float((log_odds[known] ** 2).sum())
    return min(max(float((log_odds[known] * target[known]).sum()) / square, 0.0), 1.0) if square else 1.0


def combined(parts: Sequence[tuple[NDArray[np.intp], Evidence]], n_columns: int) -> Evidence:
    """The evidence of all samples from that of parts, each with the indices of its samples."""
    n = max(1, sum(len(rows) for rows, _ in parts))
    total = Evidence(np.zeros(n_columns), {})
    for rows, part in parts:
        total.for_truth[:] += part.for_truth * (len(rows) / n)
        total.reasons.update((int(rows[place]), reasons) for place, reasons in part.reasons.items())
    return total


def listed(log_proba: Floats) -> NDArray[np.intp]:
    """Indices of the samples to list, the least certain first; those of a set are among those of its parts."""
    order = by_certainty(log_proba)
    half = MOST_SAMPLES // 2
    return order if len(order) <= MOST_SAMPLES else np.concatenate([order[:half], order[-half:]])


def by_certainty(log_proba: Floats) -> NDArray[np.intp]:
    """Indices of the samples with finite log probabilities, the least certain first."""
    known = np.flatnonzero(np.isfinite(log_proba).all(axis=1))
    return known[np.argsort(margin(log_proba[known]), kind="stable")]


def margin(log_proba: Floats) -> Floats:
    """Log odds (samples,) of the most probable class against the second."""
    first, second = best_two(log_proba)
    rows = np.arange(len(log_proba))
    return log_proba[rows, first] - log_proba[rows, second]


def best_two(log_proba: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The most probable and the second most probable class of each sample."""
    first = log_proba.argmax(axis=1)
    return first, _best_but(log_proba, first)


def _best_but(log_proba: Floats, excluded: NDArray[np.intp]) -> NDArray[np.intp]:
    """The most probable class of each sample, except the excluded one."""
    others = log_proba.copy()
    others[np.arange(len(others)), excluded] = -np.inf
    return others.argmax(axis=1)
