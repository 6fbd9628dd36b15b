"""Several spectra of one sample: which belong together, and what they say of it together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from cgnlearn.spectra.spectrum import Spectrum

Floats = NDArray[np.float64]


class OfSamples(NamedTuple):
    """What the spectra of each sample say together.

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
    """The sample that each spectrum is of, as its metadata have it: the groups of a cross-validation.

    Examples
    --------
    >>> spectra = [Spectrum([1.0], [2.0], {"sample": name}) for name in "aab"]
    >>> sample_ids(spectra).tolist()
    ['a', 'a', 'b']
    """
    found = []
    for number, spectrum in enumerate(spectra):
        if "sample" not in spectrum.metadata:
            raise ValueError(f"spectrum {number} ({spectrum.name}) does not say of which sample it is")
        found.append(str(spectrum.metadata["sample"]))
    return np.array(found, dtype=str)


def by_sample(
    log_proba: ArrayLike, samples: ArrayLike, class_log_prior: ArrayLike | None = None, *, correlation: float = 1.0
) -> OfSamples:
    """Predictions for samples from those for their spectra: log odds added, and tempered.

    What spectrum j says is its log probabilities less those of the classes beforehand, log p(c | x_j) - log p(c).
    Of r spectra of a sample these are added, multiplied by 1 / (1 + (r - 1) ρ), and added to log p(c). Replicates that
    are independent but for the class (ρ = 0) count in full; replicates that repeat each other (ρ = 1) are averaged, and
    make no one more certain. In between it is exact for log odds that are normal with correlation ρ within a class.

    Parameters
    ----------
    log_proba : array (spectra, classes)
    samples : array (spectra,)
        Which sample each is of.
    class_log_prior : array (classes,), optional
        A classifier's ``class_log_prior_``; needed where the correlation is below 1.
    correlation : float from 0 to 1
        ρ; `replicate_correlation` finds it from predictions for spectra that a model has not seen.

    Examples
    --------
    >>> spectra, even = np.log([[0.8, 0.2], [0.8, 0.2]]), np.log([0.5, 0.5])
    >>> [np.exp(by_sample(spectra, ["a", "a"], even, correlation=r).log_proba).round(3).tolist() for r in (1, 0)]
    [[[0.8, 0.2]], [[0.941, 0.059]]]
    """
    said = np.asarray(log_proba, dtype=np.float64)
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must be a number from 0 to 1, not {correlation!r}")
    if class_log_prior is None:
        if correlation < 1:
            raise ValueError("a correlation below 1 needs class_log_prior: give the classifier's class_log_prior_")
        class_log_prior = np.zeros(said.shape[1])  # averages of log odds do not depend on it
    prior = np.asarray(class_log_prior, dtype=np.float64)
    found, of_sample, n_spectra = np.unique(np.asarray(samples), return_inverse=True, return_counts=True)
    if len(of_sample) != len(said):
        raise ValueError(f"there are {len(said)} predictions and {len(of_sample)} samples: give one for each")
    together = np.zeros((len(found), said.shape[1]))
    np.add.at(together, of_sample, np.maximum(said, np.finfo(float).min / 1e6) - prior)  # minus infinity, yet a number
    together /= (1 + (n_spectra - 1) * correlation)[:, None]
    return OfSamples(found, n_spectra, log_softmax(together + prior, axis=1))


def replicate_correlation(log_proba: ArrayLike, y: ArrayLike, samples: ArrayLike) -> float:
    """How much the log odds of a sample's spectra vary together within its class: the intraclass correlation.

    Parameters
    ----------
    log_proba : array (spectra, classes)
        For spectra that the model has not seen, as from cross-validation.
    y : array (spectra,)
        True classes, each a position among the columns of ``log_proba``.
    samples : array (spectra,)

    Returns
    -------
    float
        From 0 to 1; 1 where no sample has two spectra, or nothing varies.

    Examples
    --------
    >>> replicate_correlation(np.log([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]]), [0, 0, 0, 0], list("aabb"))
    1.0
    """
    said, true = np.asarray(log_proba, dtype=np.float64), np.asarray(y)
    rows = np.arange(len(said))
    others = said.copy()
    others[rows, true] = -np.inf
    odds = np.clip(said[rows, true] - others.max(axis=1), -700, 700)  # of the truth against its strongest rival
    for label in np.unique(true):
        odds[true == label] -= odds[true == label].mean()
    _, of_sample, n = np.unique(np.asarray(samples), return_inverse=True, return_counts=True)
    n_samples, n_spectra = len(n), len(odds)
    if n_spectra == n_samples or n_samples < 2:
        return 1.0
    mean = np.bincount(of_sample, odds) / n
    within = float(np.sum((odds - mean[of_sample]) ** 2) / (n_spectra - n_samples))
    between = float(np.sum(n * mean**2) / (n_samples - 1))
    usual = (n_spectra - np.sum(n**2) / n_spectra) / (n_samples - 1)  # spectra of a sample, where they differ in number
    of_samples = max(0.0, (between - within) / usual)
    return float(of_samples / (of_samples + within)) if of_samples + within > 0 else 1.0
