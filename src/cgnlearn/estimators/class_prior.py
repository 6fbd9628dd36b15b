"""The class frequencies of a place from samples without labels.

Where only the class frequencies differ from training, the density of the samples is Σ_c π_c p(x | c), and p(x | c) is
proportional to p(c | x) / p(c). The frequencies π that maximise the likelihood are found by EM (Saerens, Latinne and
Decaestecker 2002), with one sample added to each class; the log likelihood is concave in them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.unusual import UNUSUAL, Unusual

N_STEPS, SETTLED = 1000, 1e-8  # of EM
LEAST = 1e-9  # frequency
SMOOTHING = 1.0  # pseudo-count of each class: a frequency of exactly 0 is never believed
FEWEST = 20  # samples


class ClassPrior(NamedTuple):
    """Frequencies of the classes with their intervals, in the order of ``classes``."""

    classes: NDArray[Any]
    value: Floats
    low: Floats
    high: Floats
    level: float

    def __str__(self) -> str:
        parts = zip(self.classes.tolist(), self.value, self.low, self.high, strict=True)
        return ", ".join(f"{label} {value:.3f} ({low:.3f}–{high:.3f})" for label, value, low, high in parts)


def estimated(log_ratio: Floats, classes: NDArray[Any], level: float) -> ClassPrior:
    """The frequencies from ln p(x | class) up to a constant of each sample: (samples, classes)."""
    ratio = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))
    n_classes = ratio.shape[1]
    value = _em(ratio, np.full(n_classes, 1 / n_classes))
    low, high = np.zeros(n_classes), np.ones(n_classes)
    rise = _height(ratio, value) - stats.chi2.ppf(level, 1) / 2
    for label in range(n_classes):

        def above(share: float, label: int = label) -> float:
            return _profile(ratio, label, share, value) - rise

        if above(LEAST) < 0:
            low[label] = brentq(above, LEAST, value[label], xtol=1e-5)
        if above(1 - LEAST) < 0:
            high[label] = brentq(above, value[label], 1 - LEAST, xtol=1e-5)
    return ClassPrior(classes, value, low, high, level)


def _em(ratio: Floats, start: Floats, fixed: int | None = None) -> Floats:
    """Frequencies that maximise the likelihood; that of a fixed class stays."""
    prior = start
    for _ in range(N_STEPS):
        counts = prior * ((1 / (ratio @ prior)) @ ratio) + SMOOTHING
        if fixed is not None:
            counts[fixed] = 0.0
            counts *= (1 - start[fixed]) / counts.sum()
            counts[fixed] = start[fixed]
        before, prior = prior, counts / counts.sum()
        if np.abs(prior - before).max() < SETTLED:
            break
    return prior


def _height(ratio: Floats, prior: Floats) -> float:
    return float(np.log(ratio @ prior).sum()) + SMOOTHING * float(np.log(prior).sum())


def _profile(ratio: Floats, label: int, share: float, value: Floats) -> float:
    """The highest log likelihood with a given frequency of one class."""
    others = np.delete(value, label)
    start = np.insert(others / others.sum() * (1 - share), label, share)
    return _height(ratio, start if len(value) == 2 else _em(ratio, start, label))


def refuse_other_change(typicality: Floats, expected: float = UNUSUAL) -> None:
    """Refuse samples of which too many are unusual: more than the class frequencies has changed.

    ``expected`` is the share of them at these frequencies.
    """
    unusual = Unusual.of(typicality, expected)
    if unusual.are_many:
        raise ValueError(
            f"{unusual.n} of {unusual.n_all} samples have a typicality below 1%: more than the class "
            "frequencies has changed, so they cannot be estimated; label some samples and use update"
        )
