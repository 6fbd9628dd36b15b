"""The class frequencies of a place from samples without labels.

Where only the class frequencies differ from training, the density of the samples is Σ_c π_c p(x | c), and p(x | c) is
proportional to p(c | x) / p(c). The frequencies π that maximise the likelihood are found by EM (Saerens, Latinne and
Decaestecker 2002), with one sample added to each class; the log likelihood is concave in them.

Two things make the estimate uncertain: which samples came, and that the model was learned from few. At the true
frequencies the score u_c = p(x | c) / Σ_k π_k p(x | k) has mean 1 in each class if the model is right. How far its mean
over a place may be off for a model that is not is seen in held-out training samples, class by class: its variance is
Σ_k π_k² Cov_k(u) / n_k, beside that of the samples themselves, and the likelihood counts for less accordingly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq

from cgnlearn.data.arrays import Floats, contrasts_of
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


class HeldOutRatios(NamedTuple):
    """What a model says of its training samples, each held out."""

    log_ratio: Floats  # ln p(x | class) up to a constant of each sample: (samples, classes)
    labels: NDArray[np.intp]


def estimated(
    log_ratio: Floats, classes: NDArray[Any], level: float, held_out: HeldOutRatios | None = None
) -> ClassPrior:
    """The frequencies from ln p(x | class) up to a constant of each sample: (samples, classes).

    Without held-out samples, intervals know of the draw of the samples alone.
    """
    if len(log_ratio) < FEWEST:
        raise ValueError(f"class frequencies need at least {FEWEST} samples, not {len(log_ratio)}: collect more")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")
    ratio, n_classes = _ratio(log_ratio), len(classes)
    value = _em(ratio, np.full(n_classes, 1 / n_classes))
    low, high = np.zeros(n_classes), np.ones(n_classes)
    times = np.ones(n_classes) if held_out is None else 1 + _excess(ratio, held_out, value)
    lowest = _height(ratio, value) - times * stats.chi2.ppf(level, 1) / 2
    for label in range(n_classes):

        def above(share: float, label: int = label) -> float:
            return _profile(ratio, label, share, value) - float(lowest[label])

        if above(LEAST) < 0:
            low[label] = brentq(above, LEAST, value[label], xtol=1e-5)
        if above(1 - LEAST) < 0:
            high[label] = brentq(above, value[label], 1 - LEAST, xtol=1e-5)
    return ClassPrior(classes, value, low, high, level)


def _ratio(log_ratio: Floats) -> Floats:
    return np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True))


def _excess(ratio: Floats, held_out: HeldOutRatios, value: Floats) -> Floats:
    """Variance of each frequency from the model, as a multiple of that from the samples."""
    contrasts = contrasts_of(len(value))  # the frequencies have one sum
    score = ratio @ contrasts.T / (ratio @ value)[:, None]
    ratio = _ratio(held_out.log_ratio)
    held_out_score = ratio @ contrasts.T / (ratio @ value)[:, None]
    of_model = np.zeros((len(contrasts), len(contrasts)))
    for label, share in enumerate(value):
        own = held_out_score[held_out.labels == label]
        own = own - own.mean(axis=0)
        of_model += np.square(share * len(score)) * own.T @ own / (len(own) * max(1, len(own) - 1))
    by_sample = np.linalg.pinv(score.T @ score, hermitian=True) @ contrasts
    variance = np.einsum("ic,ic->c", contrasts, by_sample)
    return np.einsum("ic,ij,jc->c", by_sample, of_model, by_sample) / np.maximum(variance, np.finfo(float).tiny)


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
