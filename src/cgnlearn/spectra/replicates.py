"""Several spectra of one sample: combined predictions, and the correlation of replicates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from cgnlearn.data.arrays import Floats
from cgnlearn.spectra.spectrum import Spectrum


class OfSamples(NamedTuple):
    """Predictions for samples, combined over their spectra.

    Examples
    --------
    >>> of_samples = by_sample(np.log([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]]), ["a", "a", "b"])
    >>> of_samples.samples.tolist(), of_samples.n_spectra.tolist()
    (['a', 'b'], [2, 1])
    """

    samples: NDArray[Any]  # (samples,), sorted
    n_spectra: NDArray[np.intp]
    log_proba: Floats  # (samples, classes)


def sample_ids(spectra: Iterable[Spectrum]) -> NDArray[np.str_]:
    """Return the sample of each spectrum from its metadata, as groups for cross-validation.

    Examples
    --------
    >>> spectra = [Spectrum([1.0], [2.0], {"sample": name}) for name in "aab"]
    >>> sample_ids(spectra).tolist()
    ['a', 'a', 'b']
    """
    samples = []
    for number, spectrum in enumerate(spectra):
        if "sample" not in spectrum.metadata:
            raise ValueError(f"spectrum {number} ({spectrum.name}) has no 'sample' in its metadata: add it")
        samples.append(str(spectrum.metadata["sample"]))
    return np.array(samples, dtype=str)


def by_sample(
    log_proba: ArrayLike, samples: ArrayLike, class_log_prior: ArrayLike | None = None, *, correlation: float = 1.0
) -> OfSamples:
    """Combine the predictions for spectra into predictions for their samples.

    The evidence of spectrum j is log p(c | x_j) - log p(c). The sum over the r spectra of a sample is divided by
    1 + (r - 1) ρ and added to log p(c). Replicates that are independent given the class (ρ = 0) count in full;
    identical ones (ρ = 1) are averaged. The result is exact for log odds that are normal with correlation ρ within a
    class.

    Parameters
    ----------
    log_proba : array (spectra, classes)
    samples : array (spectra,)
        Sample of each spectrum.
    class_log_prior : array (classes,), optional
        ``class_log_prior_`` of the classifier; needed if the correlation is below 1.
    correlation : float from 0 to 1
        ρ, which `replicate_correlation` estimates from held-out predictions.

    Examples
    --------
    >>> spectra, even = np.log([[0.8, 0.2], [0.8, 0.2]]), np.log([0.5, 0.5])
    >>> [np.exp(by_sample(spectra, ["a", "a"], even, correlation=r).log_proba).round(3).tolist() for r in (1, 0)]
    [[[0.8, 0.2]], [[0.941, 0.059]]]
    """
    log_proba = np.asarray(log_proba, dtype=np.float64)
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must be a number from 0 to 1, not {correlation!r}")
    if class_log_prior is None:
        if correlation < 1:
            raise ValueError("a correlation below 1 needs class_log_prior: give the classifier's class_log_prior_")
        class_log_prior = np.zeros(log_proba.shape[1])  # averages of log odds do not depend on it
    prior = np.asarray(class_log_prior, dtype=np.float64)
    names, position, n_spectra = np.unique(np.asarray(samples), return_inverse=True, return_counts=True)
    if len(position) != len(log_proba):
        raise ValueError(f"there are {len(log_proba)} predictions and {len(position)} samples: give one for each")
    evidence = np.zeros((len(names), log_proba.shape[1]))
    lowest = np.finfo(float).min / 1e6  # finite in place of minus infinity
    np.add.at(evidence, position, np.maximum(log_proba, lowest) - prior)
    evidence /= (1 + (n_spectra - 1) * correlation)[:, None]
    return OfSamples(names, n_spectra, log_softmax(evidence + prior, axis=1))


def replicate_correlation(log_proba: ArrayLike, y: ArrayLike, samples: ArrayLike) -> float:
    """Estimate the intraclass correlation of the log odds of a sample's spectra.

    Parameters
    ----------
    log_proba : array (spectra, classes)
        Held-out predictions, as from cross-validation.
    y : array (spectra,)
        True classes as column indices of ``log_proba``.
    samples : array (spectra,)

    Returns
    -------
    float
        From 0 to 1; 1 if no sample has two spectra or the log odds do not vary.

    Examples
    --------
    >>> replicate_correlation(np.log([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]]), [0, 0, 0, 0], list("aabb"))
    1.0
    """
    log_proba, true = np.asarray(log_proba, dtype=np.float64), np.asarray(y)
    rows = np.arange(len(log_proba))
    others = log_proba.copy()
    others[rows, true] = -np.inf
    odds = np.clip(log_proba[rows, true] - others.max(axis=1), -700, 700)  # true class against the best other one
    for label in np.unique(true):
        odds[true == label] -= odds[true == label].mean()
    _, position, n = np.unique(np.asarray(samples), return_inverse=True, return_counts=True)
    n_samples, n_spectra = len(n), len(odds)
    if n_spectra == n_samples or n_samples < 2:
        return 1.0
    mean = np.bincount(position, odds) / n
    within = float(np.sum((odds - mean[position]) ** 2) / (n_spectra - n_samples))
    between = float(np.sum(n * mean**2) / (n_samples - 1))
    per_sample = (n_spectra - np.sum(n**2) / n_spectra) / (n_samples - 1)  # effective number of spectra of a sample
    variance = max(0.0, (between - within) / per_sample)  # of samples
    return float(variance / (variance + within)) if variance + within > 0 else 1.0
