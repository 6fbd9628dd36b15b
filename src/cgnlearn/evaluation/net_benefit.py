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
    return _band(value, _influence(parts[0], prevalence, thresholds), thresholds, groups)


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
    return _band(values[0] - values[1], influence, thresholds, groups)


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


def _band(value: Floats, influence: Floats, thresholds: Floats, groups: NDArray[Any] | None) -> Band:
    n, factor = len(influence), 1.0
    if groups is not None:
        number = np.unique(groups, return_inverse=True)[1]
        sums = np.zeros((number.max() + 1, influence.shape[1]))
        np.add.at(sums, number, influence)
        influence, factor = sums, len(sums) / max(len(sums) - 1, 1)
    covariance = factor * influence.T @ influence / n**2
    error = np.sqrt(np.diag(covariance))
    varies = error > 1e-12
    quantile = 0.0
    if varies.any():
        correlation = (covariance / np.outer(error, error).clip(1e-300))[np.ix_(varies, varies)]
        values, vectors = np.linalg.eigh(correlation)
        draws = np.random.default_rng(0).normal(size=(N_DRAWS, len(values)))
        drawn = draws * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        quantile = float(np.quantile(np.abs(drawn).max(axis=1), 1 - ALPHA))
    return Band(thresholds, value, value - quantile * error, value + quantile * error)
