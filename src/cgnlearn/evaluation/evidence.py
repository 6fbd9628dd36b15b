"""Contributions of features, or peaks of spectra, to held-out predictions, summarised by fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
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
LEVEL = 0.9  # of the intervals of probabilities
MOST_EXACT, N_ORDERS = 8, 8  # features of which all sets are evaluated for Shapley values; orders of more
MOST_SHAPLEY = 100  # features
N_PILOT = 8  # sets of features, whose predictions show what others take
PILOT_EXCESS = 3.0  # times by which predictions take longer than Shapley values, which need no sample to be read
FIRST = 4  # samples whose time decides about others; then that many times as many
SECONDS = (2.0, 10.0)  # of a processor, for the Shapley values of a fold: as its fit took, between these


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
    """What the features contribute to held-out predictions, and how certain these are."""

    for_truth: Floats  # (columns,): to the log odds of the true class against its strongest rival, mean over samples
    # For the `listed` samples the features with the largest contributions to the log odds of the predicted class.
    reasons: dict[int, list[tuple[int, float]]]
    intervals: dict[int, tuple[float, float]]  # of the probability of the predicted class, for the `listed` samples
    shapley: Evidence | None = None  # the same by Shapley values; None where they take too long
    is_shapley: bool = False


UNEXPLAINED = Evidence(np.zeros(0), {}, {})  # of a model without contributions


def evidence_of(
    model: Any,
    X: Any,
    log_proba: Floats,
    true: NDArray[np.intp],
    feature: NDArray[np.intp] | None = None,
    seconds: float = 0.0,
) -> Evidence:
    """Evidence of a fitted classifier, whose fit took some seconds, for the samples that it gave ``log_proba``.

    Reasons are summed by ``feature``, the feature of each column (such as the peak of each bin of a spectrum); None:
    each column is its own feature. The contributions of a mixture are means over its members, whose log odds exceed
    those of the mixture: they are scaled to the log odds of the mixture.
    """
    n, p = len(true), model.n_features_in_
    are_columns = feature is None or len(np.unique(feature)) == p
    feature = np.arange(p) if feature is None else feature
    first, second = best_two(log_proba)
    total = np.zeros(n)
    summed = _Summed(log_proba, true, feature)
    for rows in np.array_split(np.arange(n), max(1, n * p // CHUNK)):
        parts = getattr(model, "likelihood_power_", 1.0) * model.contributions(_safe_indexing(X, rows))
        at = np.arange(len(rows))
        total[rows] = (parts[at, :, first[rows]] - parts[at, :, second[rows]]).sum(axis=1)
        summed.add(rows, parts)
    scale = 1.0
    if hasattr(model, "contributions_remainder"):
        prior = model.class_log_prior_
        scale = _slope(total, margin(log_proba) - prior[first] + prior[second])
    budget = float(np.clip(seconds, *SECONDS))
    values = _shapley(model, X, n, budget) if are_columns else None
    by_shapley = None
    if values is not None:
        again = _Summed(log_proba, true, feature)
        again.add(np.arange(n), values)
        by_shapley = Evidence(again.for_truth, again.reasons, {}, is_shapley=True)
    reasons = {row: [(one, scale * odds) for one, odds in own] for row, own in summed.reasons.items()}
    return Evidence(scale * summed.for_truth, reasons, _intervals(model, X, log_proba), by_shapley)


def without_shifts(model: Any, X: Any, sites: Any) -> Any:
    """Samples without the shifts of their sites, of which a fitted classifier can be asked what it would with sites."""
    table = model._placed(X, sites).table
    found: Any = X.copy() if hasattr(X, "columns") else np.array(X, dtype=float)
    for place, column in enumerate(table.schema.continuous):
        found[found.columns[column] if hasattr(X, "columns") else (slice(None), column)] = table.values[:, place]
    return found


class _Summed:
    """Sums of attributions, of one part of the samples after the other."""

    def __init__(self, log_proba: Floats, true: NDArray[np.intp], feature: NDArray[np.intp]) -> None:
        self.true, self.rival, self.feature = true, _best_but(log_proba, true), feature
        self.first, self.second = best_two(log_proba)
        self.wanted = set(listed(log_proba).tolist())
        self.for_truth: Floats = np.zeros(len(feature))
        self.reasons: dict[int, list[tuple[int, float]]] = {}

    def add(self, rows: NDArray[np.intp], parts: Floats) -> None:
        """Add those of successive samples: (rows, columns, classes)."""
        at = np.arange(len(rows))
        odds = parts[at, :, self.true[rows]] - parts[at, :, self.rival[rows]]
        self.for_truth += odds.sum(axis=0) / len(self.true)
        for row in self.wanted.intersection(rows.tolist()):
            one = parts[row - rows[0]]
            sums = np.bincount(self.feature, one[:, self.first[row]] - one[:, self.second[row]])
            top = np.argsort(-np.abs(sums), kind="stable")[:N_REASONS]
            self.reasons[row] = list(zip(top.tolist(), sums[top].tolist(), strict=True))


def _shapley(model: Any, X: Any, n: int, seconds: float) -> Floats | None:
    """Shapley values (samples, features, classes), by a few random orders of many features.

    None where the model has none, or where they take longer than some seconds of a processor: features that are hidden
    are integrated out, and how long that takes depends on the model.
    """
    p = model.n_features_in_
    if not hasattr(model, "shapley") or p > MOST_SHAPLEY:
        return None
    hidden = _hiding(_safe_indexing(X, np.zeros(N_PILOT, np.intp)))
    n_sets = 1 << p if p <= MOST_EXACT else N_ORDERS * (1 + p)
    found, start, size = [], 0, FIRST
    try:
        model.predict_proba(hidden)  # the first one prepares the next ones
        started = process_time()
        model.predict_proba(hidden)
        if n_sets * (process_time() - started) > N_PILOT * PILOT_EXCESS * seconds:
            return None
        while start < n:
            part = _safe_indexing(X, np.arange(start, min(start + size, n)))
            found.append(model.shapley(part, n_permutations=N_ORDERS, max_exact=MOST_EXACT))
            if start == 0:  # the first ones may have waited for a compiler
                started = process_time()
            start, size = start + size, FIRST * size
            if start < n and process_time() - started > seconds:
                return None
    except ValueError:  # no member accepts missing values
        return None
    return np.concatenate(found)


def _hiding(X: Any) -> Any:
    """A copy of samples, of each of which other features are missing, always the same."""
    shown = np.random.default_rng(0).random(X.shape) < 0.5
    return X.where(shown) if hasattr(X, "columns") else np.where(shown, np.asarray(X, dtype=float), np.nan)


def _intervals(model: Any, X: Any, log_proba: Floats) -> dict[int, tuple[float, float]]:
    """Intervals of the probability of the predicted class of the listed samples; empty without a posterior."""
    if not hasattr(model, "predict_interval"):
        return {}
    rows = np.sort(listed(log_proba))
    try:
        found = model.predict_interval(_safe_indexing(X, rows), LEVEL)
    except ValueError:  # maximum likelihood has no posterior
        return {}
    ends = found[np.arange(len(rows)), log_proba[rows].argmax(axis=1)]
    return dict(zip(rows.tolist(), map(tuple, ends.tolist()), strict=True))


def _slope(log_odds: Floats, target: Floats) -> float:
    """Least-squares factor, from 0 to 1, of the log odds to those of the target."""
    known = np.isfinite(log_odds) & np.isfinite(target)
    square = float((log_odds[known] ** 2).sum())
    return min(max(float((log_odds[known] * target[known]).sum()) / square, 0.0), 1.0) if square else 1.0


def combined(parts: Sequence[tuple[NDArray[np.intp], Evidence]], n_columns: int) -> Evidence:
    """The evidence of all samples from that of parts, each with the indices of its samples.

    It is by Shapley values if that of all parts is, and has intervals if all have.
    """
    n = max(1, sum(len(rows) for rows, _ in parts))
    total, intervals = np.zeros(n_columns), dict[int, tuple[float, float]]()
    reasons: dict[int, list[tuple[int, float]]] = {}
    is_shapley = all(part.shapley is not None for _, part in parts)
    have_intervals = all(part.intervals for _, part in parts)
    for rows, part in parts:
        own = part.shapley if is_shapley and part.shapley is not None else part
        total += own.for_truth * (len(rows) / n)
        reasons.update((int(rows[place]), of) for place, of in own.reasons.items())
        if have_intervals:
            intervals.update((int(rows[place]), ends) for place, ends in part.intervals.items())
    return Evidence(total, reasons, intervals, is_shapley=is_shapley)


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
