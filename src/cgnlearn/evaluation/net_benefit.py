"""Bands of decision curves, of one model and of the difference of two.

A band holds the whole curve with 95% probability: its half-width is the standard error times the quantile of the
largest standardised deviation over all thresholds, drawn from their joint normal distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.decisions import THRESHOLDS, Part, decision_curve
from cgnlearn.evaluation.estimates import ALPHA
from cgnlearn.evaluation.perfect_calibration import sums_by_group

N_DRAWS = 2000


class Band(NamedTuple):
    """Net benefit per sample, or a difference of it, with a simultaneous 95% band."""

    thresholds: Floats
    value: Floats
    low: Floats
    high: Floats


def net_benefit(
    parts: Sequence[Part],
    prevalence: float | None = None,
    thresholds: Floats = THRESHOLDS,
    groups: NDArray[Any] | None = None,
) -> Band:
    """The decision curve over the repetitions of a cross-validation, with a band as wide as that of the first.

    Parameters
    ----------
    parts : list of (probability, happened)
        Of each repetition, or of one validation.
    prevalence : float, optional
        Where decisions will be made; None: that of the samples.
    thresholds : array
    groups : array (samples,), optional
        Samples of the first repetition that belong together.
    """
    value = decision_curve(parts, prevalence, thresholds).net_benefit
    if groups is None:
        return _band(value, _covariance(parts[0], prevalence, thresholds), thresholds)
    influence = _influence(parts[0], prevalence, thresholds)
    return _band(value, _covariance_of_sums(influence, groups), thresholds)


def net_benefit_difference(
    first: Part,
    second: Part,
    prevalence: float | None = None,
    thresholds: Floats = THRESHOLDS,
    groups: NDArray[Any] | None = None,
) -> Band:
    """The net benefit of the first model minus that of the second, for the same samples in the same order."""
    if not np.array_equal(first[1], second[1]):
        raise ValueError("the two models must have predictions of the same samples in the same order")
    values = [decision_curve([part], prevalence, thresholds).net_benefit for part in (first, second)]
    influence = _influence(first, prevalence, thresholds) - _influence(second, prevalence, thresholds)
    return _band(values[0] - values[1], _covariance_of_sums(influence, groups), thresholds)


def _influence(part: Part, prevalence: float | None, thresholds: Floats) -> Floats:
    """What each sample adds to the net benefit, away from its mean: (samples, thresholds)."""
    probability, happened = part
    called = probability[:, None] >= thresholds
    odds = thresholds / (1 - thresholds)
    if prevalence is None:
        gained: Floats = called.astype(float) * np.where(happened[:, None], 1.0, -odds)
        return gained - gained.mean(axis=0)
    found: Floats = np.zeros(called.shape)
    share = float(happened.mean())
    for of, weight in ((happened, prevalence / share), (~happened, -(1 - prevalence) / (1 - share) * odds)):
        found[of] = (called[of] - called[of].mean(axis=0)) * weight
    return found


def _covariance(part: Part, prevalence: float | None, thresholds: Floats) -> Floats:
    """That of the net benefits of independent samples: who is called at two thresholds is called at the higher one."""
    probability, happened = part
    n, odds = len(happened), thresholds / (1 - thresholds)
    order = np.argsort(thresholds)
    higher = np.maximum.outer(np.argsort(order), np.argsort(order))
    found: Floats = np.zeros((len(thresholds), len(thresholds)))
    means: Floats = np.zeros(len(thresholds))
    for of, weight in ((happened, np.ones(len(odds))), (~happened, -odds)):
        called = (len(probability[of]) - np.searchsorted(np.sort(probability[of]), thresholds)) / n
        both = called[order][higher]
        if prevalence is None:
            found += both * np.outer(weight, weight)
            means += called * weight
        else:
            share = float(of.mean())
            stated = weight * (prevalence if of is happened else 1 - prevalence) / share
            found += (both - np.outer(called, called) / share) * np.outer(stated, stated)
    return (found - np.outer(means, means)) / n


def _covariance_of_sums(influence: Floats, groups: NDArray[Any] | None) -> Floats:
    """That of the net benefits of independent samples, or of independent groups of samples."""
    n, factor = len(influence), 1.0
    if groups is not None:
        influence = sums_by_group(influence, groups)
        factor = len(influence) / max(len(influence) - 1, 1)
    covariance: Floats = factor * influence.T @ influence / n**2
    return covariance


def _band(value: Floats, covariance: Floats, thresholds: Floats) -> Band:
    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    varies = error > 1e-12
    quantile = 0.0
    if varies.any():
        correlation = (covariance / np.outer(error, error).clip(1e-300))[np.ix_(varies, varies)]
        values, vectors = np.linalg.eigh(correlation)
        draws = np.random.default_rng(0).normal(size=(N_DRAWS, len(values)))
        drawn = draws * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        quantile = float(np.quantile(np.abs(drawn).max(axis=1), 1 - ALPHA))
    return Band(thresholds, value, value - quantile * error, value + quantile * error)
