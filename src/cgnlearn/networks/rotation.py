"""Networks of a complete structure with more continuous columns than training samples, fitted by rotation.

In units in which Ψ0 is a multiple of the identity, samples and location span a space of no more dimensions than there
are samples, and outside of it Ψ' is Ψ0 for every class. In an orthonormal basis of that space the posterior is a block
of as many dimensions; of the part of a sample outside, only the length matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from math import prod
from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from cgnlearn.data.arrays import Floats, rows_by_cell
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Posterior, Units
from cgnlearn.networks.factors import factorised, whiten
from cgnlearn.networks.families import Families, Family
from cgnlearn.networks.layout import Cells, Layout, Partition
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.model import LeaveOneOut, require_complete
from cgnlearn.networks.moments import CHUNK, Moments, moments_of
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Hyperparameters, Prior
from cgnlearn.networks.solver import standard_values
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities, block_covariance, block_cumulants, correlation_of


@dataclass(frozen=True, eq=False)
class Rotation:
    """The projection of the continuous columns onto the space that the training samples span."""

    columns: NDArray[np.intp]  # of X, those with variance: (features,)
    values: NDArray[np.intp]  # their positions among the values of a table: (features,)
    origin: Floats  # one of the samples: (features,)
    unit: Floats  # units in which Ψ0 is a multiple of the identity: (features,)
    basis: Floats  # orthonormal: (features, dimensions)

    @classmethod
    def of(cls, table: Table, prior: Prior) -> Rotation:
        """The space of the samples of a labelled table and of the location of the prior.

        The basis is from a QR decomposition without pivoting. Any basis of the space, or of a slightly larger one,
        would do; this one costs a third of a singular value decomposition.
        """
        schema = table.schema
        (partition,) = Layout.of(Families.of((), schema.continuous), schema).partitions
        moments = moments_of(table, partition, schema.n_classes)
        units = Units.of(moments, partition, schema)
        present = np.flatnonzero(~moments.constant())
        columns, origin = partition.columns[present], units.origin[present]
        unit = units.unit[present]
        if prior.multiple is None:
            unit = unit * np.sqrt(prior.standard_scale(columns, unit))
        spanning = table.values[:, partition.values[present]]
        if not isinstance(prior.location, str):
            spanning = np.vstack([spanning, np.array(prior.location)[columns]])
        spanning = (spanning - origin) / unit
        basis: NDArray[Any] = np.zeros((len(present), 0))
        if len(present):
            moved = spanning.any(axis=1)  # the origin itself spans nothing
            basis = qr(spanning[moved].T, overwrite_a=True, mode="economic", check_finite=False)[0]
        return cls(columns, partition.values[present], origin, unit, basis)

    @property
    def size(self) -> int:
        """Number of features that are rotated."""
        return len(self.columns)

    def parts(self, table: Table) -> Iterable[tuple[slice, Floats, Floats]]:
        """Samples in parts: which, rotated (dimensions, samples), and the squared length of the part outside.

        Those of labelled samples are kept for the next call: all settings of a candidate hold out the same ones.
        """
        if table.labels is None:
            return self._parts(table)
        known: tuple[ref[Table], list[tuple[slice, Floats, Floats]]] | None = self.__dict__.get("_known")
        if known is None or known[0]() is not table:
            known = self.__dict__["_known"] = ref(table), list(self._parts(table))
        return known[1]

    def _parts(self, table: Table) -> Iterator[tuple[slice, Floats, Floats]]:
        step = max(64, (CHUNK << 6) // max(self.size, 1))
        for start in range(0, table.n_samples, step):
            rows = slice(start, min(start + step, table.n_samples))
            outside = standard_values(table, rows, self.values, Units(self.origin, self.unit))
            inside = self.basis.T @ outside
            outside -= self.basis @ inside  # not |x|² - |z|², whose rounding errors are larger
            yield rows, inside, np.einsum("ar,ar->r", outside, outside)

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without samples

    def statistics(self, table: Table) -> Statistics:
        """Statistics of the rotated samples: a complete group within each cell of discrete columns."""
        schema = table.schema
        n, discrete = self.basis.shape[1], range(len(schema.discrete))
        levels = (*(schema.levels[column] for column in schema.discrete), *(None,) * n)
        values = np.concatenate([inside.T for _, inside, _ in self.parts(table)])
        rotated = Table(Schema(None, levels, schema.classes), values, table.codes, table.labels, table.weights)
        group = range(len(discrete), len(levels))
        if not discrete:
            return collect(rotated, Families.of((), group, max(n, 1)))
        return collect(rotated, Families.of(Family(child, (*discrete, *group[:i])) for i, child in enumerate(group)))


@dataclass(frozen=True, eq=False)
class RotatedBlock:
    """All continuous features as one block, from their rotated statistics."""

    rotation: Rotation
    estimation: Bayes
    cells: Cells  # the configurations of the discrete features
    posterior: Posterior  # of the rotated columns
    factor: Floats  # L: (configurations, classes, dimensions, dimensions)
    multiple: float  # Ψ0 is this multiple of the identity

    @classmethod
    def of(cls, rotation: Rotation, partition: Partition, moments: Moments, estimation: Bayes) -> RotatedBlock:
        """The posterior of the rotated columns, factorised."""
        prior, n = estimation.prior, partition.n_features
        units = Units(moments.origin, np.ones(n))
        location = None
        if not isinstance(prior.location, str):
            point = np.array(prior.location)[rotation.columns]
            location = ((point - rotation.origin) / rotation.unit) @ rotation.basis - moments.origin
        multiple = 1.0 if prior.multiple is None else prior.multiple
        # Rotated columns that are equal in all samples are not absent: the location may be elsewhere.
        before = Hyperparameters(
            None if location is None else location[None],
            np.full((1, n), multiple),
            np.atleast_1d(np.asarray(prior.strength, float)),
            np.atleast_1d(np.asarray(prior.shape, float)),
        )
        posterior = estimation.posterior_in(units, moments, np.zeros(n, bool), before)
        member = np.arange(n)
        scale = posterior.scale[..., posterior.pairs.place(member[:, None], member[None, :])]
        return cls(rotation, estimation, partition.cells, posterior, factorised(scale, always=True), multiple)

    @property
    def log_det_ratio(self) -> Floats:
        """ln|Ψ0| - ln|Ψ'|: (configurations, classes)."""
        diagonal = np.diagonal(self.factor, axis1=-2, axis2=-1)
        ratio: Floats = (np.log(self.multiple) - 2 * np.log(diagonal)).sum(axis=-1)
        return ratio

    @property
    def log_det(self) -> Floats:
        """ln|Ψ'| in the columns' own units: (configurations, classes)."""
        size = self.rotation.size
        return size * np.log(self.multiple) - self.log_det_ratio + 2 * np.log(self.rotation.unit).sum()

    @property
    def log_evidence(self) -> float:
        """ln p(continuous features of the training data | discrete features, classes)."""
        prior = self.posterior.prior
        assert prior is not None
        log_strength, regressions = self.estimation.log_strength_ratio(prior.strength, self.posterior.strength)
        evidence = densities.block_evidence(
            self.posterior.n[:, regressions],
            float(prior.shape[0]),
            self.rotation.size,
            self.log_det[:, regressions],
            self.log_det_ratio[:, regressions],
            log_strength,
        )
        return float(evidence.sum())

    def log_likelihood(self, table: Table) -> Floats:
        """Joint log densities of all features: (samples, classes)."""
        log_density = np.empty((table.schema.n_classes, table.n_samples)).T
        for rows, configuration, inside, outside in self._parts(table):
            for label, before in enumerate(self.posterior.least_leverage[configuration]):
                at = (configuration, label)
                white = whiten(self.factor[at], inside - self.posterior.centre[at][:, None])
                after = before + outside / self.multiple + _products(white, white)
                log_density[rows, label] = self._log_density(at, before, after)
        return log_density

    def log_densities(self, table: Table) -> LogDensities:
        """The posterior of the joint log densities."""
        n_classes, size = table.schema.n_classes, self.rotation.size
        mean, third = np.empty((2, table.n_samples, n_classes))
        covariance = np.empty((table.n_samples, n_classes, n_classes))
        for rows, configuration, inside, outside in self._parts(table):
            strength, first = self.posterior.strength[configuration], self.posterior.shape[configuration]
            white = np.stack(
                [
                    whiten(factor, inside - centre[:, None])
                    for factor, centre in zip(
                        self.factor[configuration], self.posterior.centre[configuration], strict=True
                    )
                ]
            )
            products = np.einsum("car,dar->rcd", white, white) + outside[:, None, None] / self.multiple
            found = block_cumulants(
                np.einsum("rcc->rc", products), 1 / strength, first, self.log_det[configuration], size
            )
            mean[rows], third[rows] = found.mean, (1 - self.estimation.sharing) * found.third
            covariance[rows] = block_covariance(products, first, size) * correlation_of(
                self.posterior, configuration, self.estimation
            )
            np.einsum("rcc->rc", covariance)[rows] = found.variance
        return LogDensities.of(mean, covariance, third)

    def leave_one_out(self, table: Table) -> Floats:
        """Leave-one-out log densities of training samples, which are all inside: (samples, classes)."""
        log_density = np.empty((table.schema.n_classes, table.n_samples)).T
        for rows, configuration, inside, _ in self._parts(table):
            removal = Removal.of(table, rows, configuration, self.posterior, self.estimation)
            centre = self.posterior.centre[configuration]  # (classes, dimensions)
            own_centre = centre[removal.labels].T
            for label, before in enumerate(removal.before):
                at = (configuration, label)
                own = removal.labels == label
                residual = inside - centre[label][:, None]
                residual[:, own & removal.alone] = inside[:, own & removal.alone] - self.posterior.overall[:, None]
                white = whiten(self.factor[at], residual)
                # Without sharing only the own class loses the sample, and the two residuals are equal.
                gone = whiten(self.factor[at], inside - own_centre) if self.estimation.sharing else white
                products = _products(gone, gone), _products(white, gone), _products(white, white)
                g, after = removal.leverages(label, *products)
                log_density[rows, label] = self._log_density(at, before, after, np.log(g), removal.lighter[label])
        return log_density

    def _parts(self, table: Table) -> Iterator[tuple[NDArray[np.intp], int, Floats, Floats]]:
        """Samples by configuration: which, the configuration, rotated values and squared lengths outside."""
        configurations = self.cells.index(table)
        for part, inside, outside in self.rotation.parts(table):
            inside = inside - self.posterior.units.origin[:, None]
            for configuration, rows in rows_by_cell(configurations[part], self.cells.n):
                yield part.start + rows, configuration, inside[:, rows], outside[rows]

    def _log_density(
        self, at: tuple[int, int], before: Floats, after: Floats, gained: Any = 0.0, lighter: Any = 0.0
    ) -> Floats:
        """Student log densities from the leverages, with changes of ln|Ψ'| and n by a removal."""
        shape = self.posterior.shape[at] - lighter / 2
        log_det = self.log_det[at] + gained
        return self.estimation.log_density_of_blocks(np.log(before), np.log(after), log_det, self.rotation.size, shape)


def _products(a: Floats, b: Floats) -> Floats:
    """Inner products of the columns of two matrices."""
    return np.einsum("ar,ar->r", a, b)


@dataclass(frozen=True, eq=False)
class RotatedNetwork:
    """A `Model` of discrete features as in any network, and of all continuous ones in a rotated block."""

    discrete: Network
    blocks: tuple[RotatedBlock, ...]  # one, or none if all continuous features are constant

    @property
    def structure(self) -> Structure:
        """Structure over columns of X, which takes gigabytes if there are tens of thousands."""
        schema = self.discrete.statistics.schema
        return Structure.jan([[*schema.discrete, *schema.continuous]])

    @property
    def n_parameters(self) -> int:
        schema = self.discrete.statistics.schema
        m, n_cells = len(schema.continuous), prod(len(schema.levels_of(column)) for column in schema.discrete)
        regressions = schema.n_classes if self.discrete.estimation.sharing < 1 else 1
        return self.discrete.n_parameters + n_cells * (m * schema.n_classes + regressions * m * (m + 1) // 2)

    @property
    def class_log_prior(self) -> Floats:
        return self.discrete.class_log_prior

    @property
    def log_evidence(self) -> float:
        return self.discrete.log_evidence + sum(block.log_evidence for block in self.blocks)

    def log_likelihood(self, table: Table) -> Floats:
        _require_complete(table)
        total = self.discrete.log_likelihood(table)
        for block in self.blocks:
            total += block.log_likelihood(table)
        return total

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        _require_complete(table)
        total = self.discrete.log_densities(table)
        for block in self.blocks:
            total += block.log_densities(table)
        return total

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        _require_complete(table)
        total, class_log_prior = self.discrete.leave_one_out(table)
        for block in self.blocks:
            total = total + block.leave_one_out(table)
        return LeaveOneOut(total, class_log_prior)

    def contributions(self, table: Table) -> Floats:
        raise ValueError(
            "a complete structure over more columns than training samples is fitted by rotation, which has no "
            "contributions by feature: use another structure, such as Band(10), or fewer columns"
        )


def _require_complete(table: Table) -> None:
    why = "a complete structure over more columns than training samples needs complete samples"
    require_complete(table.incomplete, table.schema, why)
