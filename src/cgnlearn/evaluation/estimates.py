"""Estimates with 95% confidence intervals: means and differences over a cross-validation, and shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from cgnlearn.data.arrays import Floats

ALPHA = 0.05
Z = 1.959963984540054  # of the standard normal distribution, 97.5 %


class Estimate(NamedTuple):
    """A value with its 95% confidence interval; without one for fewer than two values or infinite ones."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies above or below zero, else 0."""
        if self.low is None or self.high is None:
            return 0
        return int(self.low > 0) - int(self.high < 0)

    def through(self, function: Callable[[float], float]) -> Estimate:
        """The estimate transformed by a monotone function."""
        if self.low is None or self.high is None:
            return Estimate(function(self.value))
        return Estimate(function(self.value), *sorted((function(self.low), function(self.high))))

    def span(self, form: Callable[[float], str], to: str = " to ") -> str:
        """The interval as text; empty without one."""
        return "" if self.low is None or self.high is None else f"{form(self.low)}{to}{form(self.high)}"


def share(n_of: float, n_all: float) -> Estimate:
    """A share with Wilson's interval."""
    p = n_of / n_all
    low, high = wilson(p, n_all)
    return Estimate(p, float(low) if n_of else 0.0, float(high) if n_of < n_all else 1.0)


def wilson(p: Floats | float, n: Floats | float) -> tuple[Floats | float, Floats | float]:
    """Wilson's interval of shares p of n."""
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * np.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return centre - half, centre + half


def inflation(n_folds: int) -> float:
    """Factor by which the variance of a mean over cross-validated samples exceeds that of independent ones.

    Folds share training samples, so their errors are correlated. This is the correction of Nadeau and Bengio (2003),
    applied to samples instead of folds: the variance between few folds is too imprecise.
    """
    return 1 + n_folds / (n_folds - 1)


def mean(units: Floats, n_folds: int) -> Estimate:
    """The mean over the independent units (samples or groups) of a cross-validation."""
    centre = float(units.mean())
    if len(units) < 2 or not np.isfinite(units).all():
        return Estimate(centre)
    half = _half_width(inflation(n_folds) * units.var(ddof=1) / len(units), len(units))
    return Estimate(centre, centre - half, centre + half)


def difference(units: Floats, n_folds: int, widest: float) -> Estimate:
    """The mean difference of two models, with an interval of positive length even if all units agree.

    Two units are added, one without a difference and half a unit with the widest difference in each direction, as by
    Agresti and Min (2005) for differences of shares.
    """
    value = float(units.mean())
    if len(units) < 2 or not np.isfinite(units).all():
        return Estimate(value)
    factor = inflation(n_folds)
    n = len(units) / factor  # effective number of independent units
    centre = value * n / (n + 2)
    square = (float((units**2).sum()) / factor + widest**2) / (n + 2)
    half = _half_width(max(square - centre**2, 0.0) / (n + 2), len(units))
    return Estimate(value, centre - half, centre + half)


def _half_width(variance: float, n: int) -> float:
    return float(stats.t.isf(ALPHA / 2, n - 1) * np.sqrt(variance))
