"""What predicted probabilities are worth: one table of metrics, for terminal, report, streams and benchmarks.

``log_proba`` (samples, classes) holds log probabilities, ``true`` (samples,) the positions of the true classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.densities import is_correct, true_class_log_proba

Labels = NDArray[np.intp]
N_BINS = 10  # of the calibration error


@dataclass(frozen=True)
class Metric:
    """A score of predicted probabilities, made of sums over samples, and what a reader is told of it."""

    name: str  # in files and results
    label: str  # in tables
    title: str  # in plain words
    meaning: str
    sign: int  # 1 where more is better, else -1
    most: float  # the largest value that is possible; the least is 0
    of_samples: Callable[[Floats, Labels], Floats]  # (samples,): its value in each, or what is summed within bins
    in_bins: bool = False  # whether sums within bins of the highest probability count, without regard to their signs

    def totals(self, log_proba: Floats, true: Labels) -> Floats:
        """Sums over samples, one or one for each bin; those of parts of a data set add."""
        values = self.of_samples(log_proba, true)
        if not self.in_bins:
            return values.sum(keepdims=True)
        return np.bincount(bin_of(np.exp(log_proba.max(axis=1))), values, N_BINS).astype(np.float64)

    def value(self, totals: Floats, n: int) -> float:
        """The metric of n samples by their sums."""
        return float(np.abs(totals).sum() / n)

    def __call__(self, log_proba: Floats, true: Labels) -> float:
        """The metric of all samples."""
        return self.value(self.totals(log_proba, true), len(true))


def _is_right(log_proba: Floats, true: Labels) -> Floats:
    return is_correct(log_proba, true).astype(float)


def _loss(log_proba: Floats, true: Labels) -> Floats:
    return 0.0 - true_class_log_proba(log_proba, true)  # no negative zero


def _squared_distance(log_proba: Floats, true: Labels) -> Floats:
    distance = np.exp(log_proba)
    distance[np.arange(len(true)), true] -= 1.0
    squared: Floats = (distance**2).sum(axis=1)
    return squared


def _excess(log_proba: Floats, true: Labels) -> Floats:
    return np.exp(log_proba.max(axis=1)) - is_correct(log_proba, true)


ACCURACY = Metric(
    "accuracy",
    "accuracy",
    "Right answers",
    "The share of samples for which the most probable class is the true one. More is better.",
    sign=1,
    most=1.0,
    of_samples=_is_right,
)
LOG_LOSS = Metric(
    "log_loss",
    "log loss",
    "Probability given to the truth",
    "The mean of minus the logarithm of the probability that a model gave to the true class. 0 is perfect; a confident "
    "error costs much.",
    sign=-1,
    most=np.inf,
    of_samples=_loss,
)
BRIER = Metric(
    "brier",
    "Brier score",
    "Distance from the truth",
    "The mean squared distance between the probabilities and the truth: 0 is perfect, 2 is certain and wrong.",
    sign=-1,
    most=2.0,
    of_samples=_squared_distance,
)
CALIBRATION_ERROR = Metric(
    "calibration_error",
    "calibration error",
    "Gap between promise and fact",
    "How far the probability of the predicted class lies from how often it is right. 0 is perfect; the band is what "
    "chance alone would show.",
    sign=-1,
    most=1.0,
    of_samples=_excess,
    in_bins=True,
)
METRICS = {metric.name: metric for metric in (ACCURACY, LOG_LOSS, BRIER, CALIBRATION_ERROR)}
MEANS = {name: metric for name, metric in METRICS.items() if not metric.in_bins}  # means over samples


@dataclass(frozen=True, eq=False)
class Tally:
    """Sums over samples of which every metric is made; they add."""

    n: int
    totals: dict[str, Floats]  # by metric

    @classmethod
    def of(cls, log_proba: Floats, true: Labels) -> Tally:
        """Of some samples."""
        return cls(len(true), {name: metric.totals(log_proba, true) for name, metric in METRICS.items()})

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n + other.n, {name: found + other.totals[name] for name, found in self.totals.items()})

    def value(self, metric: Metric) -> float:
        """The metric of these samples."""
        return metric.value(self.totals[metric.name], self.n)


# ---- reliability


class Reliability(NamedTuple):
    """Occupied bins of equal width over predicted probabilities."""

    n: NDArray[np.intp]
    predicted: Floats  # mean probability in the bin
    observed: Floats  # how often the event happened


def bin_of(probability: Floats, n_bins: int = N_BINS) -> NDArray[np.intp]:
    """The bin of each probability."""
    return np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)


def reliability(probability: Floats, happened: NDArray[np.bool_], n_bins: int = N_BINS) -> Reliability:
    """Predicted probabilities beside frequencies, in bins."""
    bins = bin_of(probability, n_bins)
    n, predicted, observed = (np.bincount(bins, of, n_bins) for of in (None, probability, happened.astype(float)))
    occupied = n > 0
    return Reliability(n[occupied], predicted[occupied] / n[occupied], observed[occupied] / n[occupied])
