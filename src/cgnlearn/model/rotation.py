"""The rotation of a complete group with more members than there are rows.

In units in which Ψ0 is a multiple of the identity, rows and location span a space of no more dimensions than there are
rows, and outside of it Ψ' stays Ψ0 for every class. In an orthonormal basis of that space all that was learned is a
block of so many dimensions; of the rest of a row only its length counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from cgnlearn.model import densities
from cgnlearn.model.blocks import factorised, whiten
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Units
from cgnlearn.model.families import Families, Family
from cgnlearn.model.layout import Cells, Layout, Partition
from cgnlearn.model.moments import CHUNK, Moments, moments_of, rows_by_cell
from cgnlearn.model.prior import Prior
from cgnlearn.model.schema import Schema
from cgnlearn.model.solver import standard_values
from cgnlearn.model.statistics import Statistics, collect
from cgnlearn.model.table import Table


@dataclass(frozen=True, eq=False)
class Rotation:
    """From the continuous columns to the space that the training rows span, and the length of what is outside.

    Parameters
    ----------
    columns, values : ndarray (attributes,)
        Those with variance, as columns of X and as positions among a table's values.
    origin, unit : ndarray (attributes,)
        One of the rows, and units in which Ψ0 is a multiple of the identity.
    basis : ndarray (attributes, dimensions)
        Orthonormal.
    """

    columns: NDArray[np.intp]
    values: NDArray[np.intp]
    origin: Floats
    unit: Floats
    basis: Floats

    @classmethod
    def of(cls, table: Table, prior: Prior) -> Rotation:
        """The space of the rows of a labelled table and of the prior's location.

        An unpivoted QR decomposition: any basis of the space will do, also one of a space a little larger, and this one
        is as orthonormal as that of a singular value decomposition at a third of its cost.
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
        """How many attributes are rotated."""
        return len(self.columns)

    def of_point(self, point: Floats) -> Floats:
        """A point of the space, given by a value for every column of X."""
        rotated: Floats = ((point[self.columns] - self.origin) / self.unit) @ self.basis
        return rotated

    def parts(self, table: Table) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some of the rows at a time, rotated (dimensions, rows), with the squared length of what is outside."""
        step = max(64, (CHUNK << 6) // max(self.size, 1))
        for start in range(0, table.n_rows, step):
            rows = slice(start, min(start + step, table.n_rows))
            outside = standard_values(table, rows, self.values, Units(self.origin, self.unit))
            inside = self.basis.T @ outside
            outside -= self.basis @ inside  # not |x|² - |z|², which would leave rounding of a row inside
            yield rows, inside, np.einsum("ar,ar->r", outside, outside)

    def statistics(self, table: Table) -> Statistics:
        """The rows of a labelled table, rotated and counted: a complete group within each cell of discrete columns."""
        schema = table.schema
        n, discrete = self.basis.shape[1], range(len(schema.discrete))
        levels = (*(schema.levels[column] for column in schema.discrete), *(None,) * n)
        values = np.concatenate([inside.T for _, inside, _ in self.parts(table)])
        rotated = Table(Schema(None, levels, schema.classes), values, table.codes, table.labels, table.weights)
        group = range(len(discrete), len(levels))
        if not discrete:
            return collect(rotated, Families.of((), group, max(n, 1)))
        return collect(rotated, Families.of(Family(child, (*discrete, *group[:i])) for i, child in enumerate(group)))


class _Forgotten(NamedTuple):
    """What taking rows of one cell out of it does, each row by itself: (rows,)."""

    label: int
    weight: Floats
    gain: Floats  # u a, by which e eᵀ leaves the scale
    residual: Floats  # e: (dimensions, rows)
    own: Floats  # from where the class then is: (dimensions, rows)


@dataclass(frozen=True, eq=False)
class RotatedBlock:
    """All continuous attributes as one block, from their rotated statistics; arrays over (configurations, classes).

    Parameters
    ----------
    rotation : Rotation
    how : Bayes
    cells : Cells
        The configurations of the discrete attributes.
    multiple : float
        Ψ0, of the identity.
    n, own : ndarray
        The rows behind the regressions, and those of the cell alone.
    strength, shape : ndarray
        κ', and ρ' of the first member.
    overall : ndarray (dimensions,)
        The mean over all training data.
    centre : ndarray (…, dimensions)
        m'.
    factor : ndarray (…, dimensions, dimensions)
        L.
    """

    rotation: Rotation
    how: Bayes
    cells: Cells
    multiple: float
    n: Floats
    own: Floats
    strength: Floats
    shape: Floats
    overall: Floats
    centre: Floats
    factor: Floats

    @classmethod
    def of(cls, rotation: Rotation, partition: Partition, moments: Moments, how: Bayes) -> RotatedBlock:
        """The posterior of the rotated columns, factorised."""
        prior, n = how.prior, partition.n_attributes
        units = Units(moments.origin, np.ones(n))
        location = None
        if not isinstance(prior.location, str):
            location = rotation.of_point(np.array(prior.location)) - moments.origin
        multiple = 1.0 if prior.multiple is None else prior.multiple
        # Rotated columns on which all rows agree are no constants: the location may lie elsewhere.
        posterior = how.posterior_in(units, moments, np.zeros(n, bool), location, multiple)
        member = np.arange(n)
        scale = posterior.scale[..., posterior.pairs.place(member[:, None], member[None, :])]
        return cls(
            rotation,
            how,
            partition.cells,
            multiple,
            n=posterior.n,
            own=moments.n,
            strength=posterior.strength,
            shape=posterior.shape,
            overall=moments.origin + moments.overall()[0],
            centre=moments.origin + posterior.centre,
            factor=factorised(scale, always=True),
        )

    @property
    def log_det_ratio(self) -> Floats:
        """ln|Ψ0| - ln|Ψ'| in the rotation's units: (configurations, classes)."""
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
        """ln p(the continuous attributes of the training data | the discrete ones, the classes)."""
        log_strength, regressions = self.how.log_strength_ratio(self.strength)
        evidence = densities.block_evidence(
            self.n[:, regressions],
            self.how.prior.shape,
            self.rotation.size,
            self.log_det[:, regressions],
            self.log_det_ratio[:, regressions],
            log_strength,
        )
        return float(evidence.sum())

    def _cells(self, table: Table, labels: Any = None) -> Iterator[tuple[NDArray[np.intp], int, int, Floats, Floats]]:
        """Rows by cell (the class is that of ``labels``, or 0), the same rotated, and their squared lengths outside."""
        n_classes = self.n.shape[1]
        cell = self.cells.index(table) * n_classes + (0 if labels is None else labels)
        for part, inside, outside in self.rotation.parts(table):
            for place, rows in rows_by_cell(cell[part], self.cells.n * n_classes):
                configuration, label = divmod(place, n_classes)
                yield part.start + rows, configuration, label, inside[:, rows], outside[rows]

    def log_likelihood(self, table: Table) -> Floats:
        """The log densities of all attributes together: (rows, classes)."""
        found = np.empty((self.n.shape[1], table.n_rows)).T
        for rows, configuration, _, inside, outside in self._cells(table):
            for label in range(self.n.shape[1]):
                at = (configuration, label)
                distance = outside / self.multiple + _squares(whiten(self.factor[at], self._residual(at, inside)))
                found[rows, label] = self._log_density(at, 1 / self.strength[at], distance)
        return found

    def leave_one_out(self, table: Table) -> Floats:
        """The same for training rows, each seen by the block without it."""
        found = np.empty((self.n.shape[1], table.n_rows)).T
        for rows, configuration, own, inside, _ in self._cells(table, table.labels):
            weight = np.ones(len(rows)) if table.weights is None else table.weights[rows]
            forgotten = self._forgotten((configuration, own), inside, weight)
            for label in range(self.n.shape[1]):
                found[rows, label] = self._left_out((configuration, label), inside, forgotten)
        return found

    def _forgotten(self, at: tuple[int, int], inside: Floats, weight: Floats) -> _Forgotten:
        """Take rows of the cell ``at`` out of it."""
        residual = self._residual(at, inside)
        before = self.strength[at] if self.how.prior.is_coherent else self.own[at]
        left = before - weight
        emptied = left <= 8 * np.finfo(float).eps * before  # only where the location is the cell's own mean
        ratio = before / np.where(emptied, np.inf, left)
        from_own = ratio * residual
        if emptied.any():
            total = self.own.sum()
            others = (total * self.overall[:, None] - weight * inside) / (total - weight)
            from_own = np.where(emptied, inside - others, from_own)
        return _Forgotten(at[1], weight, weight * ratio, residual, from_own)

    def _left_out(self, at: tuple[int, int], inside: Floats, forgotten: _Forgotten) -> Floats:
        """Log densities under the class of ``at`` once each row is forgotten: its scale loses a matrix of rank one."""
        own = at[1] == forgotten.label
        share = 1.0 if own else self.how.sharing
        residual = forgotten.own if own else self._residual(at, inside)
        white = whiten(self.factor[at], residual.copy())
        distance = _squares(white)
        left: Floats = np.ones_like(distance)
        if share:
            gone = whiten(self.factor[at], forgotten.residual.copy())
            left = 1 - share * forgotten.gain * _squares(gone)
            distance = distance + share * forgotten.gain * np.einsum("ar,ar->r", white, gone) ** 2 / left
        strength = self.strength[at] - (forgotten.weight if own else 0.0)
        return self._log_density(at, 1 / strength, distance, np.log(left), share * forgotten.weight)

    def _residual(self, at: tuple[int, int], inside: Floats) -> Floats:
        return inside - self.centre[at][:, None]

    def _log_density(
        self, at: tuple[int, int], of_centre: Any, distance: Floats, log_left: Any = 0.0, n_gone: Any = 0.0
    ) -> Floats:
        """Student's, for rows at a squared distance, after the determinant and the rows have shrunk as stated."""
        return self.how.log_density_of_blocks(
            np.log1p(of_centre),
            np.log(1 + of_centre + distance),
            self.log_det[at] + log_left,
            self.rotation.size,
            self.shape[at] - n_gone / 2,
        )


def _squares(white: Floats) -> Floats:
    """Squared lengths of columns."""
    return np.einsum("ar,ar->r", white, white)
