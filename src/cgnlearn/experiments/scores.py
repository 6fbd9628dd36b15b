"""Scores of a fold in the paper: correct predictions and conditional log likelihood (CLL), summed over samples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.densities import is_correct, normalised, true_class_log_proba

LEAST = float(np.log(np.nextafter(0.0, 1.0)))  # log of the smallest positive double


class Scores(NamedTuple):
    """Sums over the test samples of a fold."""

    correct: int
    cll: float  # summed log probability of the true classes
    zeros: int  # true classes with a probability below the smallest positive double, counted as that


def fold_scores(log_joint: Floats, true: NDArray[np.intp]) -> Scores:
    """Scores of log joint or log conditional probabilities (samples, classes)."""
    log_proba = normalised(log_joint)
    truth = true_class_log_proba(log_proba, true)
    n_right, n_zeros = is_correct(log_proba, true).sum(), (truth < LEAST).sum()
    return Scores(int(n_right), float(np.maximum(truth, LEAST).sum()), int(n_zeros))
