"""What predicted probabilities are worth.

``log_proba`` (rows, classes) holds log probabilities, ``true`` (rows,) the positions of the true classes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from cgnlearn.model.densities import Floats, normalised, of_truth, right

N_BINS = 10  # of the calibration error
LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of the smallest positive double


def accuracy(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """The share of rows whose most probable class is the true one."""
    return float(right(log_proba, true).mean())


def cll(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """Conditional log likelihood per row: the mean log probability of the true class."""
    return float(of_truth(log_proba, true).mean())


def from_truth(log_proba: Floats, true: NDArray[np.intp]) -> Floats:
    """The squared distance from the truth summed over classes, from 0 to 2, row by row."""
    distance = np.exp(log_proba)
    distance[np.arange(len(true)), true] -= 1.0
    squared: Floats = (distance**2).sum(axis=1)
    return squared


def brier(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """Brier score: the mean squared distance from the truth, from 0 to 2."""
    return float(from_truth(log_proba, true).mean())


def calibration_error(log_proba: Floats, true: NDArray[np.intp], n_bins: int = N_BINS) -> float:
    """How far the probability of the predicted class lies from how often it is right, over bins weighted by rows."""
    bins = reliability(np.exp(log_proba.max(axis=1)), right(log_proba, true), n_bins)
    return float((bins.n * np.abs(bins.predicted - bins.observed)).sum() / bins.n.sum())


def auc(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """Area under the ROC curve of each class against the rest, averaged over the classes that occur.

    It is how often a row of the class is given a higher probability of it than another row; a tie counts half. Not a
    number where all rows are of one class.
    """
    areas = []
    for label in np.unique(true):
        inside = true == label
        n, rest = int(inside.sum()), int((~inside).sum())
        if rest:
            ranks = rankdata(log_proba[:, label])
            areas.append((ranks[inside].sum() - n * (n + 1) / 2) / (n * rest))
    return float(np.mean(areas)) if areas else float("nan")


class Reliability(NamedTuple):
    """Occupied bins of equal width over predicted probabilities."""

    n: NDArray[np.intp]
    predicted: Floats  # mean probability in the bin
    observed: Floats  # how often the event happened


def reliability(probability: Floats, happened: NDArray[np.bool_], n_bins: int = N_BINS) -> Reliability:
    """Predicted probabilities beside frequencies, in bins."""
    place = np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)
    n = np.bincount(place, minlength=n_bins)
    occupied = n > 0
    mean, share = (
        np.bincount(place, weights, minlength=n_bins)[occupied] / n[occupied]
        for weights in (probability, happened.astype(float))
    )
    return Reliability(n[occupied], mean, share)


METRICS = {"accuracy": accuracy, "cll": cll, "brier": brier, "calibration_error": calibration_error}


class Worth(NamedTuple):
    """What a fold's predictions are worth, in sums; infinite losses are kept out of them."""

    correct: int
    cll: float  # summed log probability of the true classes
    zeros: int  # true classes whose probability is no positive double, counted as the smallest one


def worth(log_joint: Floats, true: NDArray[np.intp]) -> Worth:
    """Of log joint probabilities (rows, classes), normalised or not."""
    log_proba = normalised(log_joint)
    truth = of_truth(log_proba, true)
    return Worth(
        correct=int(right(log_proba, true).sum()),
        cll=float(np.maximum(truth, LEAST).sum()),
        zeros=int((truth < LEAST).sum()),
    )
