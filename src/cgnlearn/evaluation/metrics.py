"""Metrics of predicted probabilities and their summaries over folds, for tables, streams and benchmarks.

``log_proba`` (samples, classes) holds log probabilities, ``true`` (samples,) the positions of the true classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.run import Row, csv_text
from cgnlearn.networks.densities import is_correct, true_class_log_proba

Labels = NDArray[np.intp]
Place = tuple[int, int]  # repetition and fold
N_BINS = 10  # of the calibration error


@dataclass(frozen=True)
class Metric:
    """A score of predicted probabilities, computed from sums over samples, with its description."""

    name: str  # in files and results
    label: str  # in tables
    title: str  # in reports, with plain words in brackets
    meaning: str
    sign: int  # 1 if higher is better, else -1
    most: float  # the largest possible value; the smallest is 0
    of_samples: Callable[[Floats, Labels], Floats]  # (samples,): its value in each, or the terms summed within bins
    in_bins: bool = False  # a sum of absolute sums within bins of the highest probability

    def totals(self, log_proba: Floats, true: Labels) -> Floats:
        """Sums over samples, one in all or one for each bin; they are additive."""
        values = self.of_samples(log_proba, true)
        if not self.in_bins:
            return values.sum(keepdims=True)
        return np.bincount(bin_of(np.exp(log_proba.max(axis=1))), values, N_BINS).astype(np.float64)

    def value(self, totals: Floats, n: int) -> float:
        """The metric of n samples from their sums."""
        return float(np.abs(totals).sum() / n)

    def __call__(self, log_proba: Floats, true: Labels) -> float:
        return self.value(self.totals(log_proba, true), len(true))


def _squared_distance(log_proba: Floats, true: Labels) -> Floats:
    distance = np.exp(log_proba)
    distance[np.arange(len(true)), true] -= 1.0
    squared: Floats = (distance**2).sum(axis=1)
    return squared


ACCURACY = Metric(
    "accuracy",
    "accuracy",
    "Accuracy (share of correct predictions)",
    "Share of samples whose most probable class is the true one. Higher is better.",
    sign=1,
    most=1.0,
    of_samples=lambda log_proba, true: is_correct(log_proba, true).astype(float),
)
LOG_LOSS = Metric(
    "log_loss",
    "log loss",
    "Log loss (penalty for confident errors)",
    "Mean negative logarithm of the probability of the true class. Lower is better, 0 is perfect.",
    sign=-1,
    most=np.inf,
    of_samples=lambda log_proba, true: 0.0 - true_class_log_proba(log_proba, true),  # no negative zero
)
BRIER = Metric(
    "brier",
    "Brier score",
    "Brier score (squared error of the probabilities)",
    "Mean squared distance of the probabilities from the true class. Lower is better, from 0 (perfect) to 2.",
    sign=-1,
    most=2.0,
    of_samples=_squared_distance,
)
CALIBRATION_ERROR = Metric(
    "calibration_error",
    "calibration error",
    "Calibration error (probability minus accuracy)",
    "Mean difference between the probability of the predicted class and its accuracy. 0 is perfect; the band shows "
    "the error expected by chance.",
    sign=-1,
    most=1.0,
    of_samples=lambda log_proba, true: np.exp(log_proba.max(axis=1)) - is_correct(log_proba, true),
    in_bins=True,
)
METRICS = {metric.name: metric for metric in (ACCURACY, LOG_LOSS, BRIER, CALIBRATION_ERROR)}
MEANS = {name: metric for name, metric in METRICS.items() if not metric.in_bins}  # means over samples


@dataclass(frozen=True, eq=False)
class Tally:
    """Additive sums over samples from which every metric is computed."""

    n: int
    totals: dict[str, Floats]  # by metric

    @classmethod
    def of(cls, log_proba: Floats, true: Labels) -> Tally:
        return cls(len(true), {name: metric.totals(log_proba, true) for name, metric in METRICS.items()})

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n + other.n, {name: total + other.totals[name] for name, total in self.totals.items()})

    def value(self, metric: Metric) -> float:
        return metric.value(self.totals[metric.name], self.n)


# ---- summaries


class Spread(NamedTuple):
    """Mean of a metric over samples, as in reports, and standard deviation between folds.

    For the calibration error, which is not a mean over samples, both are over repetitions.
    """

    mean: float
    sd: float | None  # None for a single value or infinite ones

    @classmethod
    def of(cls, values: Sequence[float], mean: float | None = None) -> Spread:
        sd = float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None
        return cls(float(np.mean(values)) if mean is None else mean, sd)


@dataclass(frozen=True)
class Summary:
    """The metrics of one model."""

    model: str
    n_folds: int  # finished ones
    n_without: int  # folds without predictions, which the metrics exclude: maximum likelihood does not exist
    metrics: dict[str, Spread]  # by the names in `METRICS`; empty if no fold has predictions
    reason: str | None = None  # of the first fold without predictions

    @classmethod
    def of(cls, model: str, n_folds: int, tallies: Mapping[Place, Tally], reason: str | None = None) -> Summary:
        """The summary of the folds with predictions."""
        repetitions: dict[int, Tally] = {}
        for (repeat, _), tally in tallies.items():
            repetitions[repeat] = repetitions[repeat] + tally if repeat in repetitions else tally
        metrics: dict[str, Spread] = {}
        for name, metric in METRICS.items() if tallies else ():
            # Folds are too small for a calibration error; repetitions are not.
            parts = repetitions.values() if metric.in_bins else tallies.values()
            mean = None if metric.in_bins else reduce(add, repetitions.values()).value(metric)
            metrics[name] = Spread.of([part.value(metric) for part in parts], mean)
        return cls(model, n_folds, n_folds - len(tallies), metrics, reason)

    def as_dict(self) -> dict[str, Any]:
        counts = {"model": self.model, "folds": self.n_folds, "folds_without_answer": self.n_without}
        counts["reason_without_answer"] = self.reason
        return counts | {name: spread._asdict() for name, spread in self.metrics.items()}


def summary_text(summaries: Sequence[Summary]) -> str:
    """The summaries as csv."""
    columns = [f"{name}{part}" for name in METRICS for part in ("", "_sd")]
    rows: list[Row] = [["model", "folds", "folds_without_answer", *columns]]
    for summary in summaries:
        spreads = [summary.metrics.get(name, (None, None)) for name in METRICS]
        values = ["" if value is None else repr(value) for spread in spreads for value in spread]
        rows.append([summary.model, summary.n_folds, summary.n_without, *values])
    return csv_text(*rows)


# ---- reliability


class Reliability(NamedTuple):
    """Occupied bins of equal width over predicted probabilities."""

    n: NDArray[np.intp]
    predicted: Floats  # mean probability in the bin
    observed: Floats  # frequency of the event


def bin_of(probability: Floats, n_bins: int = N_BINS) -> NDArray[np.intp]:
    """The bin of each probability."""
    return np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)


def reliability(probability: Floats, happened: NDArray[np.bool_], n_bins: int = N_BINS) -> Reliability:
    """Mean predicted probabilities and observed frequencies in bins."""
    bins = bin_of(probability, n_bins)
    n, predicted, observed = (
        np.bincount(bins, weights, n_bins) for weights in (None, probability, happened.astype(float))
    )
    occupied = n > 0
    return Reliability(n[occupied], predicted[occupied] / n[occupied], observed[occupied] / n[occupied])
