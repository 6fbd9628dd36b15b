"""Cumulants of log densities from the terms of regressions, summed over features (formulas in ``docs/model.md``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.components import Mask
from cgnlearn.networks.estimation import Posterior, Terms
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.solver import Solver
from cgnlearn.networks.uncertainty import (
    Cumulants,
    LogDensities,
    correlation_of,
    regression_cumulants,
    scale_cumulants,
)

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

Rows = NDArray[np.intp]

COMPILED = 1 << 11  # networks × classes × features × samples from which on loops are compiled


class Sums(NamedTuple):
    """Sums over features: (networks, samples, classes)."""

    mean: Floats
    variance: Floats
    covariance: Floats  # between classes: (networks, samples, classes, classes)
    third: Floats
    predictive: Floats  # the logarithm of the mean density; 0 where no value is missing

    def of(self, networks: slice) -> Sums:
        """Those of some networks, which are views."""
        return Sums(*(part[networks] for part in self))

    def with_mean(self, mean: Floats) -> list[LogDensities]:
        """The posterior with other means, by network."""
        n, n_samples, n_classes = mean.shape
        covariance = self.covariance + self.variance[..., None] * np.eye(n_classes)
        shape = n * n_samples, n_classes
        found = LogDensities.of(mean.reshape(shape), covariance.reshape(*shape, n_classes), self.third.reshape(shape))
        own = [slice(i * n_samples, (i + 1) * n_samples) for i in range(n)]
        return [LogDensities(found.mean[rows], found.covariance[rows], found.third[rows]) for rows in own]


class Nodes(NamedTuple):
    """Regressions of features, for samples of one configuration; "…" stands for (networks, classes, features)."""

    columns: Rows  # of X: (features,)
    residual: Floats  # f / √F: (…, samples)
    extra: Floats  # h - 1: (…, samples)
    least: Floats  # h - 1 at the centre of the class: (…, 1)
    shape: Floats  # ρ': (…, 1)
    spread: Floats  # F: (…, 1)
    scale: Cumulants  # of ln σ: (…, 1)
    unit: Floats  # (features, 1)
    apart: (
        Floats | None
    )  # squared distance of the parents' centres in two classes: (networks, classes, features, classes)
    correlation: Floats  # of parameters of two classes: (networks, classes, classes)

    def add_to(self, sums: Sums, rows: Rows, chance: Floats | None, seen: Mask | None, sharing: Floats) -> None:
        """Add the cumulants of these samples.

        ``chance`` are those of inclusion (networks, features), ``seen`` is whether values are observed (features,
        samples).
        """
        if seen is None and self.residual.size >= COMPILED:
            self._add_by_loops(sums, rows, chance, sharing)
            return
        found = regression_cumulants(np.square(self.residual), self.extra, self.shape, self.scale)
        weight: Any = seen
        if chance is not None:
            weight = chance[:, None, :, None] if seen is None else chance[:, None, :, None] * seen
            mean = found.mean if seen is None else found.mean * seen
            sums.covariance[:, rows] += of_inclusion(mean.transpose(0, 3, 1, 2), chance[:, None, None, :])

        def total(part: Floats) -> Floats:
            return (part if weight is None else part * weight).sum(axis=2).swapaxes(1, 2)

        log_unit = np.log(self.unit)
        sums.mean[:, rows] += total(found.mean - log_unit)
        sums.variance[:, rows] += total(found.variance)
        sums.third[:, rows] += (1 - sharing)[:, None, None] * total(found.third)
        if seen is not None:
            spread = self.spread * (1 + self.extra)
            predictive = densities.student(self.residual * np.sqrt(self.spread), spread, self.shape)
            sums.predictive[:, rows] += total(predictive - log_unit)
        if self.apart is not None and sharing.any():
            sums.covariance[:, rows] += self._shared_covariance(self.apart, weight)

    def _add_by_loops(self, sums: Sums, rows: Rows, chance: Floats | None, sharing: Floats) -> None:
        """`add_to` of many complete samples, for which loops are worth compiling."""
        from cgnlearn.kernels.cumulants import add_regressions, add_shared_covariance

        n, n_classes, n_features, n_samples = self.residual.shape
        residual, extra = np.ascontiguousarray(self.residual), np.ascontiguousarray(self.extra)
        shape, *scale = (np.ascontiguousarray(part[..., 0]) for part in (self.shape, *self.scale))
        scale[0] = scale[0] - np.log(self.unit[:, 0])
        chances = np.ones((n, n_features)) if chance is None else np.ascontiguousarray(chance)
        found, covariance = np.zeros((n, 3, n_classes, n_samples)), np.zeros((n, n_classes, n_classes, n_samples))
        add_regressions(residual, extra, shape, np.stack(scale), chances, sharing, found, covariance)
        if self.apart is not None and sharing.any():
            least, apart = np.ascontiguousarray(self.least[..., 0]), np.ascontiguousarray(self.apart)
            shared = shape, apart, np.ascontiguousarray(self.correlation), chances, covariance
            add_shared_covariance(residual, extra, least, np.sqrt(scale[1]), *shared)
        for total, part in zip((sums.mean, sums.variance, sums.third), found.swapaxes(0, 1), strict=True):
            total[:, rows] += part.swapaxes(1, 2)
        above = np.triu_indices(n_classes, 1)
        covariance[:, above[0], above[1]] = covariance[:, above[1], above[0]]
        sums.covariance[:, rows] += np.moveaxis(covariance, 3, 1)

    def _shared_covariance(self, apart: Floats, weight: Any) -> Floats:
        """Covariance between the log densities of different classes: (networks, samples, classes, classes)."""
        n, n_classes, _, n_samples = self.residual.shape
        found = np.zeros((n, n_samples, n_classes, n_classes))
        length = np.maximum(self.extra - self.least, 0.0)  # squared, of the parents' distance to their centre
        log_scale = 2 * np.sqrt(self.scale.variance)
        square = np.square(self.residual)
        own = 1.0 if weight is None else weight
        c, d = np.tril_indices(n_classes, -1)  # all pairs at once
        correlation, shape = self.correlation[:, c, d, None, None], np.sqrt(self.shape[:, c] * self.shape[:, d])
        both = log_scale[:, c] * log_scale[:, d] / 4 - (square[:, c] + square[:, d]) / 2
        both += shape * (square[:, c] * square[:, d])
        both *= correlation
        if length.any():  # there are parents
            most = np.sqrt(length[:, c] * length[:, d])
            product = np.clip(
                (length[:, c] + length[:, d] - apart[:, c, :, d].swapaxes(0, 1)[..., None]) / 2, -most, most
            )
            product *= correlation
            both += product * (2 * shape * (self.residual[:, c] * self.residual[:, d]) + product / 2)
        found[:, :, c, d] = found[:, :, d, c] = (both * own).sum(axis=2).swapaxes(1, 2)
        return found


def of_inclusion(mean: Floats, chance: Floats) -> Floats:
    """Covariance that is due to features that depend on the class by chance: (networks, samples, classes, classes).

    ``mean`` are log densities if they do: (networks, samples, classes, features). If they do not, those of all classes
    are equal.
    """
    apart = mean - mean.mean(axis=2, keepdims=True)
    found: Floats = (apart * (chance * (1 - chance))) @ apart.swapaxes(2, 3)
    return found


def nodes_of_terms(network: Network, place: int, partition: Partition, configuration: int, table: Table) -> Nodes:
    """The features of a partition of one network, for samples of a configuration."""
    solver, posterior = network.solvers[place], network.posteriors[place]
    here = _Gathered.of(solver.terms(table), partition, table)
    n_classes, apart = table.schema.n_classes, None
    least = here.extra[:, :, :1]
    if network.estimation.sharing and n_classes > 1:
        first = table.rows(np.zeros(n_classes, np.intp))
        at_centres = _Gathered.of(
            _terms_at_centres(solver, partition, posterior, configuration, first), partition, first
        )
        least = np.einsum("cvc->cv", at_centres.extra)[:, :, None]
        beyond = at_centres.extra - least
        apart = (beyond + beyond.swapaxes(0, 2))[None] / 2
    correlation = correlation_of(posterior, configuration, network.estimation)
    return Nodes(
        here.columns,
        here.residual[None],
        here.extra[None],
        least[None],
        here.shape[None],
        here.spread[None],
        scale_cumulants(here.shape[None], here.spread[None]),
        here.unit,
        apart,
        correlation[None],
    )


class _Gathered(NamedTuple):
    """Terms of the features of a partition that have a density; "…" stands for (classes, features)."""

    columns: Rows  # of X: (features,)
    residual: Floats  # f / √F: (…, samples)
    extra: Floats  # h - 1: (…, samples)
    shape: Floats  # ρ': (…, 1)
    spread: Floats  # F: (…, 1)
    unit: Floats  # (features, 1)

    @classmethod
    def of(cls, every: Iterator[Terms], partition: Partition, table: Table) -> _Gathered:
        n_classes, m = table.schema.n_classes, partition.n_features
        place = np.zeros(table.schema.n_columns, np.intp)
        place[partition.columns] = np.arange(m)
        residual, extra = np.zeros((2, n_classes, m, table.n_samples))
        shape, spread = np.ones((2, n_classes, m, 1))
        unit, present = np.ones((m, 1)), np.zeros(m, bool)
        for terms in every:
            at = place[terms.columns]
            here = (terms.label, at[:, None], np.arange(table.n_samples)[terms.rows])
            residual[here] = terms.residual / np.sqrt(terms.spread)
            extra[here] = np.asarray(terms.leverage) - 1
            shape[terms.label, at], spread[terms.label, at] = terms.shape, terms.spread
            unit[at], present[at] = terms.unit, True
        if not present.all():
            residual, extra, shape, spread = (part[:, present] for part in (residual, extra, shape, spread))
        return cls(partition.columns[present], residual, extra, shape, spread, unit[present])


def _terms_at_centres(
    solver: Solver, partition: Partition, posterior: Posterior, configuration: int, table: Table
) -> Iterator[Terms]:
    """Terms of samples of a configuration, one for each class, whose values are at the centre of the class."""
    units, centre = posterior.units, posterior.centre[configuration]
    values = np.zeros(table.values.shape)
    values[:, partition.values] = centre * units.unit + units.origin
    yield from solver.terms(replace(table, values=values, labels=None, weights=None))
