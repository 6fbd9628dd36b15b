"""How certain log densities are: the posterior distribution of ln p(x | class, θ), in closed form.

Parameters of different features, and of different classes without sharing, are independent in the posterior, so that
cumulants of log densities are sums over features. Only differences between classes matter: covariances are kept in
*contrasts* (`cgnlearn.data.arrays.contrasts_of`). The formulas are in ``docs/model.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import polygamma, psi

from cgnlearn.data.arrays import Floats, contrasts_of
from cgnlearn.networks.estimation import Estimation, Posterior

JEFFREYS = 0.5  # pseudo-count of a level, at least, where its share is uncertain


class NoPosteriorError(ValueError):
    """The model has no posterior distribution of its parameters."""


class NoSamplesError(ValueError):
    """The model does not hold the training samples that are needed."""


class Cumulants(NamedTuple):
    """The first three cumulants of a log density."""

    mean: Floats
    variance: Floats
    third: Floats


def scale_cumulants(shape: Any, spread: Any) -> Cumulants:
    """Cumulants of -ln σ - ½ ln 2π, under a posterior with ρ' and F."""
    return Cumulants(
        psi(shape) / 2 - np.log(np.pi * np.asarray(spread)) / 2, polygamma(1, shape) / 4, polygamma(2, shape) / 8
    )


def regression_cumulants(excess: Any, extra: Any, shape: Any, of_scale: Cumulants) -> Cumulants:
    """Cumulants of ln N(y | zᵀβ, σ²) under the posterior of β and σ².

    ``excess`` is e²/F of the residual e at the posterior mean of β, ``extra`` is the leverage less 1.
    """
    excess, extra = np.asarray(excess), np.asarray(extra)
    both, square = extra + excess, extra * extra
    weighted = shape * excess
    return Cumulants(
        of_scale.mean - extra / 2 - weighted,
        of_scale.variance + square / 2 - excess + weighted * (both + extra),
        of_scale.third
        - extra * square
        + excess * (1.5 * both + 1.5 * extra)
        - weighted * (6 * extra * both + 2 * excess * excess),
    )


def block_cumulants(distance: Floats, extra: Floats, shape: Floats, log_det: Floats, size: int) -> Cumulants:
    """Sum of `regression_cumulants` over a block of features, each given those before it: (samples, classes).

    ``distance`` is (y - m')ᵀ Ψ'⁻¹ (y - m'), ``extra`` 1/κ', ``shape`` ρ' of the first feature.
    """
    every = shape[:, None] + np.arange(size) / 2
    last = shape + (size - 1) / 2
    joint = regression_cumulants(
        distance, extra, last, scale_cumulants(last, 1.0)
    )  # of one feature, which has the terms of the distance
    more = size - 1
    of_shapes = [polygamma(order, every).sum(axis=1) - polygamma(order, last) for order in (0, 1, 2)]
    return Cumulants(
        joint.mean + of_shapes[0] / 2 - (log_det + more * np.log(np.pi)) / 2 - more * extra / 2,
        joint.variance + of_shapes[1] / 4 + more * extra**2 / 2,
        joint.third + of_shapes[2] / 8 - more * extra**3,
    )


def block_covariance(products: Floats, shape: Floats, size: int) -> Floats:
    """Covariance of the log densities of a block under two classes that share Ψ': (samples, classes, classes).

    ``products`` are (y - m'_c)ᵀ Ψ'⁻¹ (y - m'_d).
    """
    last = shape + (size - 1) / 2
    root = np.sqrt(polygamma(1, shape[:, None] + np.arange(size) / 2).sum(axis=1))
    distance = np.einsum("scc->sc", products)
    either = (distance[:, :, None] + distance[:, None, :]) / 2
    found: Floats = np.outer(root, root) / 4 - either + np.sqrt(np.outer(last, last)) * products**2
    return found


def categorical_cumulants(counts: Floats, dirichlet: float) -> Cumulants:
    """Cumulants of ln p(level) under a Dirichlet posterior: (…, levels).

    The pseudo-count is at least Jeffreys'. A smaller one, such as the default 0.01, smooths well, but says of a level
    that was never seen that its share is below 1e-20 as likely as not.
    """
    mass = counts + max(dirichlet, JEFFREYS)
    total = mass.sum(axis=-1, keepdims=True)
    return Cumulants(
        psi(mass) - psi(total), polygamma(1, mass) - polygamma(1, total), polygamma(2, mass) - polygamma(2, total)
    )


@dataclass(frozen=True, eq=False)
class LogDensities:
    """The posterior of the log densities of samples under each class, or of other scores of the classes."""

    mean: Floats  # (samples, classes)
    covariance: Floats  # of the contrasts: (samples, contrasts, contrasts)
    third: Floats  # third cumulant of each class less the mean over the classes: (samples, classes)

    @classmethod
    def of(cls, mean: Floats, covariance: Floats, third: Floats) -> LogDensities:
        """From the covariance between classes, and third cumulants of classes that are taken as independent."""
        n_classes = mean.shape[1]
        across = contrasts_of(n_classes)
        centring = np.eye(n_classes) - 1 / n_classes
        return cls(mean, across @ covariance @ across.T, third @ (centring**3).T)

    @classmethod
    def independent(cls, cumulants: Cumulants) -> LogDensities:
        """From cumulants of independent classes: (samples, classes)."""
        n_classes = cumulants.mean.shape[1]
        return cls.of(cumulants.mean, cumulants.variance[:, :, None] * np.eye(n_classes), cumulants.third)

    def __add__(self, other: LogDensities) -> LogDensities:
        """The sum of independent ones."""
        return LogDensities(self.mean + other.mean, self.covariance + other.covariance, self.third + other.third)

    def times(self, power: float) -> LogDensities:
        """With a likelihood power.

        A power below 1 says that the features hold less information than the model believes, about the parameters
        too: with the training samples under the same power, the variance of a score is that many times as large.
        """
        return self.scaled(power, power / np.sqrt(min(power, 1.0)))

    def scaled(self, mean: float, deviation: float) -> LogDensities:
        """With means and standard deviations times a factor each."""
        return LogDensities(mean * self.mean, deviation**2 * self.covariance, deviation**3 * self.third)


def total_comonotone(parts: list[LogDensities]) -> LogDensities:
    """The sum of log densities that err together, such as those of one structure under several priors."""
    if len(parts) == 1:
        return parts[0]
    roots = square_roots(np.stack([part.covariance for part in parts])).sum(axis=0)
    third = np.sum([np.cbrt(part.third) for part in parts], axis=0) ** 3
    return LogDensities(np.sum([part.mean for part in parts], axis=0), roots @ roots, third)


def square_roots(covariance: Floats) -> Floats:
    """Symmetric square roots: (…, contrasts, contrasts)."""
    if covariance.shape[-1] == 1:
        return np.sqrt(np.maximum(covariance, 0.0))
    if covariance.shape[-1] == 2:  # by Cayley and Hamilton, with d the determinant of the root
        a, b, c = covariance[..., 0, 0], covariance[..., 1, 1], covariance[..., 0, 1]
        d = np.sqrt(np.maximum(a * b - c * c, 0.0))
        trace = np.sqrt(np.maximum(a + b + 2 * d, np.finfo(float).tiny))
        return (covariance + d[..., None, None] * np.eye(2)) / trace[..., None, None]
    values, vectors = np.linalg.eigh(covariance)
    roots: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)
    return roots


def log_mean_exponential(variance: Floats, third: Floats) -> Floats:
    """ln E exp(l - E l) of a log density l with a gamma distribution, reflected and shifted.

    >>> log_mean_exponential(np.array([1.0]), np.array([-2.0])).round(3)  # exponential
    array([0.307])
    """
    skewness = np.maximum(-third, 0.0) / np.maximum(variance, 1e-200) ** 1.5  # less would underflow
    skewness = np.maximum(skewness, 1e-3)
    shape, scale = 4 / skewness**2, np.sqrt(variance) * skewness / 2
    found: Floats = shape * (scale - np.log1p(scale))
    return found


def class_frequencies(mass: Floats) -> LogDensities:
    """The posterior of the log probabilities of the classes from their pseudo-counts, for one sample.

    They are logarithms of independent gamma variables less that of their sum, which is the same for all classes.
    """
    return LogDensities.independent(Cumulants(*(polygamma(order, mass)[None] for order in (0, 1, 2))))


def correlation_of(posterior: Posterior, configuration: int, estimation: Estimation) -> Floats:
    """Correlation of the estimates of two classes, which use each other's samples; 0 of one with itself.

    The estimates of class c weigh its own n_c samples by 1 and those of others by the sharing.
    """
    own = posterior.own_n[configuration]
    own = own.mean(axis=1) if posterior.separate else own
    weights = np.where(np.eye(len(own), dtype=bool), 1.0, estimation.sharing)
    products = (weights * own) @ weights.T
    size = np.sqrt(np.maximum(np.diagonal(products), np.finfo(float).tiny))
    correlation: Floats = products / size[:, None] / size
    np.fill_diagonal(correlation, 0.0)
    return correlation
