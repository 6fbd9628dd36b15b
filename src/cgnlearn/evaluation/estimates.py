"""Estimates with 95% confidence intervals: shares, and means and differences over the samples of a cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from cgnlearn.data.arrays import Floats

Codes = NDArray[Any]  # the group of each sample

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


# ---- means over the samples of a cross-validation

# Measured by bench/intervals.py, whose page shows how often the intervals below contain the truth.
FEWEST_GROUPS = 3  # for an interval
LEAST_INFLATION = 1.25
LARGEST = 20.0  # logarithm of the factor between a loss and the ends of its interval
UNSEEN = (
    24  # over the square of the number of groups: variance between them that so few may not show, in that of samples
)


def inflation(n_folds: int, least: float = LEAST_INFLATION) -> float:
    """Factor by which the variance of a mean over cross-validated samples exceeds that of independent ones.

    Folds share training samples, so their errors are correlated; the samples of one test set (one fold) are not.
    """
    return 1.0 if n_folds < 2 else max(least, n_folds / (n_folds - 1))


def half_width(values: Floats, n_folds: int, groups: Codes | None = None, least: float = 0.0) -> float | None:
    """Half the width of the interval of a mean, from the variation between samples or groups; None without one.

    Groups: Student's t with the variance and the degrees of freedom of Bell and McCaffrey (2002), which hold for few
    groups of unequal sizes; never narrower than for independent samples. For few groups, which may agree by chance and
    whose models share most of the others, both the least width and what exceeds the variance of independent samples
    are greater. ``least`` is the smallest variance of a sample.
    """
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return None
    variance = max(float(values.var(ddof=1)), least)
    if groups is None:
        return float(stats.t.isf(ALPHA / 2, n - 1) * np.sqrt(inflation(n_folds) * variance / n))
    number = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(number).astype(float)
    if len(sizes) < FEWEST_GROUPS:
        return None
    weights = 1 / (1 - sizes / n)
    between = float((weights * np.bincount(number, values - values.mean()) ** 2).sum()) / n**2
    excess, more = max(between - variance / n, 0.0), _by_chance(len(sizes))
    t = stats.t.isf(ALPHA / 2, _degrees_of_freedom(sizes, weights))
    of_groups = t * np.sqrt(inflation(n_folds) * (between - excess + more * excess))
    return float(max(of_groups, Z * np.sqrt(more * variance / n)))


def _by_chance(n_groups: int) -> float:
    """Factor of variances for what few groups do not show."""
    return 1 + UNSEEN / n_groups**2


def _degrees_of_freedom(sizes: Floats, weights: Floats) -> float:
    """Satterthwaite's, of the weighted sum of squares of the groups' residuals if samples were independent."""
    n = sizes.sum()
    u = weights * sizes / n
    q = float((u * sizes / n).sum())
    trace = float((sizes * (weights - 2 * u + q)).sum())
    of_pairs = (n * q) ** 2 + 2 * n * (sizes * u**2).sum() - 4 * q * n * (sizes * u).sum() + 2 * (sizes * u).sum() ** 2
    of_groups = (sizes**2 * ((weights + q - 2 * u) ** 2 - (q - 2 * u) ** 2)).sum()
    return trace**2 / float(of_pairs + of_groups)


def effective_number(values: Floats, n_folds: int, groups: Codes | None = None) -> float | None:
    """Number of independent samples by which a share would be known as precisely; None without an interval."""
    half, p = half_width(values, n_folds, groups), float(values.mean())
    if half is None:
        return None
    most = len(values) / (inflation(n_folds) if groups is None else _by_chance(len(np.unique(groups))))
    return min(Z**2 * p * (1 - p) / half**2, most) if half > 0 and 0 < p < 1 else most


def share_of(values: Floats, n_folds: int, groups: Codes | None = None) -> Estimate:
    """The share of successes (1, or 0) with Wilson's interval of an effective number of samples."""
    p, n = float(values.mean()), effective_number(values, n_folds, groups)
    return Estimate(p) if n is None else share(p * n, n)


def loss(values: Floats, n_folds: int, groups: Codes | None = None, dispersion: float = 0.0) -> Estimate:
    """The mean of losses, which are never negative and mostly small, with a score interval as for rare events.

    The variance is taken to grow with the mean; with groups, which differ in how difficult they are, the standard
    deviation is. ``dispersion`` is the smallest ratio of the variance and the mean.
    """
    mean = float(values.mean())
    half = half_width(values, n_folds, groups, dispersion * mean)
    if half is None or mean <= 0:
        return Estimate(mean)
    factor = float(np.exp(2 * np.arcsinh(half / (2 * mean)) if groups is None else min(half / mean, LARGEST)))
    return Estimate(mean, mean / factor, mean * factor)


def share_difference(values: Floats, n_folds: int, groups: Codes | None = None) -> Estimate:
    """The mean difference of two shares (1, 0 or -1 in each sample); at least one sample is taken to differ."""
    mean, half = float(values.mean()), half_width(values, n_folds, groups, 1 / len(values))
    return Estimate(mean) if half is None else Estimate(mean, max(mean - half, -1.0), min(mean + half, 1.0))


def loss_difference(first: Estimate, second: Estimate, correlation: float) -> Estimate:
    """The second mean minus the first from the intervals of both (Zou and Donner 2008), as these are skewed."""
    value = second.value - first.value
    if not np.isfinite(value) or (first.low is None and first.value > 0) or (second.low is None and second.value > 0):
        return Estimate(value)
    (below, above), (second_below, second_above) = (
        (0.0, 0.0) if of.low is None or of.high is None else (of.value - of.low, of.high - of.value)
        for of in (first, second)
    )

    def joined(a: float, b: float) -> float:
        return float(np.sqrt(max(a**2 + b**2 - 2 * correlation * a * b, 0.0)))

    return Estimate(value, value - joined(second_below, above), value + joined(second_above, below))


def correlation(first: Floats, second: Floats, groups: Codes | None = None) -> float:
    """Correlation of two values over samples, or of their sums over groups; 0 if one of them is constant."""
    x, y = first - first.mean(), second - second.mean()
    if groups is not None:
        number = np.unique(groups, return_inverse=True)[1]
        x, y = np.bincount(number, x), np.bincount(number, y)
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float(np.clip((x * y).sum() / size, -1, 1)) if size > 0 else 0.0
