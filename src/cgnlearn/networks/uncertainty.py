"""How certain log densities are: the posterior distribution of ln p(x | class, θ), in closed form.

Parameters of different features, and of different classes without sharing, are independent in the posterior, so that
cumulants of log densities are sums over features. Only differences between classes matter: covariances are kept in
*contrasts* (`cgnlearn.data.arrays.contrasts_of`). The formulas are in ``docs/model.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma, psi

from cgnlearn.data.arrays import Floats, contrasts_of, rows_by_cell
from cgnlearn.data.levels import MISSING
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.components import Mask
from cgnlearn.networks.estimation import Estimation, Posterior, Terms
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.solver import Solver

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

CHUNK = 1 << 20  # numbers that are held at once


class NoPosteriorError(ValueError):
    """The model has no posterior distribution of its parameters."""


class NoSamplesError(ValueError):
    """The model does not hold the training samples that are needed."""


class Cumulants(NamedTuple):
    """The first three cumulants of a log density."""

    mean: Floats
    variance: Floats
    third: Floats


def regression_cumulants(excess: Any, extra: Any, shape: Any, spread: Any) -> Cumulants:
    """Cumulants of ln N(y | zᵀβ, σ²) under the posterior of β and σ².

    ``excess`` is e²/F of the residual e at the posterior mean of β, ``extra`` is the leverage less 1.
    """
    excess, extra = np.asarray(excess), np.asarray(extra)
    of_scale = Cumulants(
        psi(shape) / 2 - np.log(np.pi * np.asarray(spread)) / 2, polygamma(1, shape) / 4, polygamma(2, shape) / 8
    )
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
    joint = regression_cumulants(distance, extra, last, 1.0)  # of one feature, which has the terms of the distance
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


def categorical_cumulants(mass: Floats) -> Cumulants:
    """Cumulants of ln p(level) under a Dirichlet distribution with these pseudo-counts: (…, levels)."""
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
        contrasts = np.einsum("ac,scd,bd->sab", across, covariance, across)
        return cls(mean, contrasts, third @ (centring**3).T)

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
    roots = np.sum([square_roots(part.covariance) for part in parts], axis=0)
    third = np.sum([np.cbrt(part.third) for part in parts], axis=0) ** 3
    return LogDensities(np.sum([part.mean for part in parts], axis=0), roots @ roots, third)


def square_roots(covariance: Floats) -> Floats:
    """Symmetric square roots: (…, contrasts, contrasts)."""
    if covariance.shape[-1] == 1:
        return np.sqrt(np.maximum(covariance, 0.0))
    values, vectors = np.linalg.eigh(covariance)
    roots: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ vectors.swapaxes(-1, -2)
    return roots


def log_densities_of(network: Network, table: Table, inclusion: Floats | None = None) -> LogDensities:
    """The posterior of a network's log densities.

    ``inclusion`` are, for naive Bayes, probabilities that columns of X depend on the class: (columns,).

    Missing values are integrated out of the mean. Where an observed feature has a missing parent, the other cumulants
    are those with a continuous parent at its mean and a discrete one at its most frequent level.
    """
    if not network.estimation.averages:
        raise NoPosteriorError(
            'estimation="ml" has no posterior, and so no intervals: use estimation="bayes", or predict_set'
        )
    observed = observed_cells(table) if table.incomplete else None
    sums = _sums(network, _filled(network, table) if table.incomplete else table, observed, inclusion)
    mean = sums.mean
    if observed is not None and inclusion is None:
        mean = network.log_likelihood(table) - (sums.predictive - mean)
    return LogDensities.of(mean, sums.covariance, sums.third)


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


def around(log_likelihood: Floats, network: Network, table: Table) -> LogDensities:
    """The posterior of an average with these log densities, as certain as one of its networks."""
    found = log_densities_of(network, table)
    return replace(found, mean=log_likelihood - (network.log_likelihood(table) - found.mean))


class _Sums(NamedTuple):
    """Sums over features: (samples, classes)."""

    mean: Floats
    covariance: Floats  # (samples, classes, classes)
    third: Floats
    predictive: Floats  # the logarithm of the mean density; 0 where no value is missing


def _sums(network: Network, table: Table, observed: Mask | None, inclusion: Floats | None) -> _Sums:
    """Sums for complete samples over the features that are observed (None: all) and, by chance, included."""
    chance = np.ones(table.schema.n_columns) if inclusion is None else inclusion
    estimation = network.estimation
    n, n_classes = shape = table.n_samples, table.schema.n_classes
    sums = _Sums(np.zeros(shape), np.zeros((n, n_classes, n_classes)), np.zeros(shape), np.zeros(shape))
    variance = np.einsum("scc->sc", sums.covariance)  # a view
    for family, counts in zip(network.statistics.layout.discrete, network.statistics.counts, strict=True):
        at = slice(None), family.cells.index(table), table.codes[:, family.code]
        found = categorical_cumulants(counts + estimation.dirichlet)
        seen: Any = 1.0 if observed is None else observed[:, family.column, None]
        for total, part in zip((sums.mean, variance, sums.third), found, strict=True):
            total += chance[family.column] * seen * part[at].T
        if inclusion is not None:
            own = chance[[family.column]]
            sums.covariance[:] += _of_inclusion((seen * found.mean[at].T)[:, :, None], own)
        if observed is not None:
            sums.predictive[:] += seen * densities.categorical(counts, estimation.dirichlet)[at].T
    parts = zip(network.solvers, network.statistics.layout.partitions, network.posteriors, strict=True)
    for solver, partition, posterior in parts:
        step = max(1, CHUNK // max(1, n_classes * partition.n_features))
        for configuration, all_rows in rows_by_cell(partition.cells.index(table), partition.cells.n):
            centres = None
            for start in range(0, len(all_rows), step):
                rows = all_rows[start : start + step]
                part_table = table.rows(rows)
                nodes = _Nodes.of(solver.terms(part_table), partition, part_table)
                own = chance[nodes.columns]
                seen = own[:, None] if observed is None else own[:, None] * observed[np.ix_(rows, nodes.columns)].T
                found = regression_cumulants(np.square(nodes.residual), nodes.extra, nodes.shape, nodes.spread)
                sums.mean[rows] += ((found.mean - np.log(nodes.unit)) * seen).sum(axis=1).T
                variance[rows] += (found.variance * seen).sum(axis=1).T
                sums.third[rows] += (1 - estimation.sharing) * (found.third * seen).sum(axis=1).T
                if observed is not None:
                    spread = nodes.spread * (1 + nodes.extra)
                    predictive = densities.student(nodes.residual * np.sqrt(nodes.spread), spread, nodes.shape)
                    sums.predictive[rows] += ((predictive - np.log(nodes.unit)) * seen).sum(axis=1).T
                if inclusion is not None:
                    is_seen = 1.0 if observed is None else observed[np.ix_(rows, nodes.columns)].T
                    sums.covariance[rows] += _of_inclusion((found.mean * is_seen).transpose(2, 0, 1), own)
                if estimation.sharing and n_classes > 1:
                    if centres is None:
                        first = part_table.rows(np.zeros(n_classes, np.intp))
                        terms = _terms_at_centres(solver, partition, posterior, configuration, first)
                        centres = _Nodes.of(terms, partition, first)
                    correlation = correlation_of(posterior, configuration, estimation)
                    sums.covariance[rows] += nodes.shared_covariance(centres, correlation, seen)
    return sums


def _of_inclusion(mean: Floats, chance: Floats) -> Floats:
    """Covariance that is due to features that depend on the class by chance: (samples, classes, classes).

    ``mean`` are log densities if they do: (samples, classes, features). If they do not, those of all classes are equal.
    """
    apart = mean - mean.mean(axis=1, keepdims=True)
    found: Floats = (apart * (chance * (1 - chance))) @ apart.swapaxes(1, 2)
    return found


class _Nodes(NamedTuple):
    """The regressions of the features of a partition that have a density, for samples of one configuration."""

    columns: NDArray[np.intp]  # of X: (features,)
    residual: Floats  # f / √F: (classes, features, samples)
    extra: Floats  # h - 1: (classes, features, samples)
    shape: Floats  # ρ': (classes, features, 1)
    spread: Floats  # F: (classes, features, 1)
    unit: Floats  # (features, 1)

    @classmethod
    def of(cls, every: Iterable[Terms], partition: Partition, table: Table) -> _Nodes:
        """Gather the terms of the samples of a table."""
        n_classes, m = table.schema.n_classes, partition.n_features
        place = np.zeros(table.schema.n_columns, np.intp)
        place[partition.columns] = np.arange(m)
        residual, extra = np.zeros((2, n_classes, m, table.n_samples))
        shape, spread = np.ones((2, n_classes, m, 1))
        unit, present = np.ones((m, 1)), np.zeros(m, bool)
        for terms in every:
            at = place[terms.columns]
            consecutive = len(at) == m and bool((np.diff(at) == 1).all())
            if consecutive and isinstance(terms.rows, slice):  # without copies of the indexes
                here: Any = (terms.label, slice(None), terms.rows)
            else:
                here = (terms.label, at[:, None], np.arange(table.n_samples)[terms.rows])
            residual[here] = terms.residual / np.sqrt(terms.spread)
            extra[here] = np.asarray(terms.leverage) - 1
            shape[terms.label, at], spread[terms.label, at] = terms.shape, terms.spread
            unit[at], present[at] = terms.unit, True
        if not present.all():
            residual, extra, shape, spread = (part[:, present] for part in (residual, extra, shape, spread))
        return cls(partition.columns[present], residual, extra, shape, spread, unit[present])

    def shared_covariance(self, centres: _Nodes, correlation: Floats, seen: Any) -> Floats:
        """Covariance between the log densities of different classes: (samples, classes, classes).

        ``centres`` are the nodes of samples at the centres of the classes, ``correlation`` is that of their parameters.
        """
        n_classes, _, n_samples = self.residual.shape
        found = np.zeros((n_samples, n_classes, n_classes))
        least = np.einsum("cvc->cv", centres.extra)[:, :, None]
        # With missing values a parent has a centre for each child, and the last is taken: less than 0 is possible.
        length = np.maximum(self.extra - least, 0.0)  # squared, of the parents' distance to their centre
        log_scale = np.sqrt(polygamma(1, self.shape))
        for c in range(n_classes):
            for d in range(c):
                shape = np.sqrt(self.shape[c] * self.shape[d])
                apart = (centres.extra[c, :, d] - least[c, :, 0] + centres.extra[d, :, c] - least[d, :, 0]) / 2
                most = np.sqrt(length[c] * length[d])
                product = np.clip((length[c] + length[d] - apart[:, None]) / 2, -most, most) * correlation[c, d]
                a, b = self.residual[c], self.residual[d]
                of_variance = log_scale[c] * log_scale[d] / 4 - (a**2 + b**2) / 2 + shape * a**2 * b**2
                both = correlation[c, d] * of_variance + product * (2 * shape * a * b + product / 2)
                found[:, c, d] = found[:, d, c] = (both * seen).sum(axis=0)
        return found


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


def _terms_at_centres(
    solver: Solver, partition: Partition, posterior: Posterior, configuration: int, table: Table
) -> Iterator[Terms]:
    """Terms of samples of a configuration, one for each class, whose values are at the centre of the class."""
    units, centre = posterior.units, posterior.centre[configuration]
    table = replace(table, labels=None, weights=None)

    def at_centres(members: Any) -> Table:
        values = np.zeros(table.values.shape)
        values[:, partition.values[members]] = centre[:, members] * units.unit[members] + units.origin[members]
        return replace(table, values=values)

    if len(np.unique(partition.columns)) == partition.n_features or not isinstance(solver, Blocks):
        yield from solver.terms(at_centres(slice(None)))
        return
    for stack in solver.regressions:  # families that count different samples have different centres of one parent
        for number, members in enumerate(stack.members):
            yield from stack.block(number).terms(at_centres(members))


def _filled(network: Network, table: Table) -> Table:
    """The table with the mean, or the most frequent level, in place of missing values."""
    values, codes = table.values.copy(), table.codes.copy()
    for partition, posterior in zip(network.statistics.layout.partitions, network.posteriors, strict=True):
        mean = posterior.overall * posterior.units.unit + posterior.units.origin
        here = values[:, partition.values]
        values[:, partition.values] = np.where(np.isnan(here), mean, here)
    values[np.isnan(values)] = 0.0  # of columns that no feature depends on
    for family, counts in zip(network.statistics.layout.discrete, network.statistics.counts, strict=True):
        of_column = codes[:, family.code]
        of_column[of_column == MISSING] = counts.sum(axis=(0, 1)).argmax()
    return replace(table, values=values, codes=np.maximum(codes, 0))
