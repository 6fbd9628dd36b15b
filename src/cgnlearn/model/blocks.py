"""The regressions of a stack of blocks: each member of a block on the members before it.

With L the Cholesky factor of Ψ' over a block and w = L⁻¹(y - m'), member j has the residual L_jj w_j, the spread
F = L_jj² and the leverage h = 1 + 1/κ' + Σ_{i<j} w_i² given the members before it. One factorisation so serves all
members, and forward substitution is all that prediction needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from cgnlearn.model import densities
from cgnlearn.model.layout import Cells, Partition, Stack
from cgnlearn.model.prior import Posterior, Prior
from cgnlearn.model.statistics import CHUNK, COMPILED_PAYS, Floats, Moments, rows_by_cell, take
from cgnlearn.model.table import Table

Rows = NDArray[np.intp] | slice  # a slice has a start and a stop

FARTHEST = 1e140  # in standard units: squares of values farther out would overflow
SINGULAR = 64 * np.finfo(float).eps  # relative to the attribute's variance and per member


class Units(NamedTuple):
    """Where each attribute of a partition has its zero and how long its unit is."""

    origin: Floats
    unit: Floats

    @classmethod
    def of(cls, moments: Moments) -> Units:
        """Standard units: the moments' origin and the standard deviation over all training data (1 if that is 0)."""
        return cls(moments.origin, np.where(moments.constant(), 1.0, np.sqrt(moments.overall()[1])))


class LogDensities(NamedTuple):
    """Log densities of some rows, for some attributes, under one class."""

    rows: Rows
    columns: NDArray[np.intp]
    label: int
    values: Floats  # (columns, rows)


class Singular(NamedTuple):
    """A member whose regression does not exist by maximum likelihood."""

    column: int
    configuration: int
    label: int
    n: float
    n_parents: int


@dataclass(frozen=True, eq=False)
class Regressions:
    """A stack's posterior, factorised; arrays over (configurations, classes, blocks, members).

    Parameters
    ----------
    cells : Cells
        The configurations of the discrete parents.
    values, columns : ndarray (blocks, members)
        The members as positions among a table's values, and as columns of X.
    n_given : int
        The first so many members are parents only.
    units : Units
        Of the members: (blocks, members).
    centre, spread : ndarray (…, blocks, members)
        m' and F.
    factor : ndarray (…, blocks, members, members)
        L.
    n : ndarray (configurations, classes)
        The rows behind each regression.
    shape : ndarray (configurations, classes, members)
        ρ'; meaningless for maximum likelihood.
    strength : ndarray (configurations, classes) or None
        κ'; None for maximum likelihood.
    shift : ndarray (…, blocks, members) or None
        What separates the centre from the expectation of the member as a child.
    """

    cells: Cells
    values: NDArray[np.intp]
    columns: NDArray[np.intp]
    n_given: int
    units: Units
    centre: Floats
    spread: Floats
    factor: Floats
    n: Floats
    shape: Floats
    strength: Floats | None
    shift: Floats | None

    @classmethod
    def of(cls, partition: Partition, stack: Stack, posterior: Posterior, units: Units, prior: Prior) -> Regressions:
        """Factorise the blocks of a stack."""
        members = stack.members
        scale = posterior.scale[..., partition.pair_index(stack)]  # (…, blocks, size, size)
        factor = factorised(scale, always=posterior.strength is not None)
        spread = np.square(np.diagonal(factor, axis1=-2, axis2=-1))
        if posterior.own_spread is not None:
            spread = spread + posterior.own_spread[..., members]
        return cls(
            cells=partition.cells,
            values=partition.values[members],
            columns=partition.columns[members],
            n_given=stack.n_given,
            units=Units(units.origin[members], units.unit[members]),
            centre=posterior.centre[..., members],
            spread=spread,
            factor=factor,
            n=posterior.n,
            shape=prior.shape + (np.arange(stack.size) + posterior.n[..., None]) / 2,
            strength=posterior.strength,
            shift=None if posterior.shift is None else posterior.shift[..., members],
        )

    @property
    def size(self) -> int:
        """Members of each block."""
        return int(self.columns.shape[1])

    def singular(self) -> Singular | None:
        """The first member whose maximum likelihood regression does not exist, if there is one."""
        # The factor's row j has the member's variance as its squared length.
        variance = np.square(np.tril(self.factor)).sum(axis=-1)
        bad = ~(self.spread > np.maximum(SINGULAR * self.size * variance, rounding(self.centre)))
        bad[..., : self.n_given] = False
        if not bad.any():
            return None
        configuration, label, block, member = (int(i) for i in np.argwhere(bad)[0])
        return Singular(int(self.columns[block, member]), configuration, label, self.n[configuration, label], member)

    # ---- densities

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(own members | given ones, class), summed over the blocks: (rows, classes)."""
        n_classes, n_blocks = self.n.shape[1], len(self.columns)
        total = np.zeros((n_classes, table.n_rows)).T  # whose columns are long: what follows goes over classes
        per_row = n_classes * n_blocks * self.size**2
        if table.n_rows * per_row < COMPILED_PAYS or self.shift is not None:
            for part in self.log_densities(table):
                total[part.rows, part.label] += part.values.sum(axis=0)
            return total
        from cgnlearn.model.compilation import in_threads

        parts = [
            (configuration, part)
            for configuration, rows in _rows_by_configuration(self.cells, table)
            for part in _parts(rows, max(1024, CHUNK // self.size, 64 * COMPILED_PAYS // per_row))  # worth a thread
        ]

        def fill(of: tuple[int, Rows]) -> None:
            total[of[1]] = self._log_likelihood_compiled(table, *of)

        in_threads(fill, parts)
        return total

    def _log_likelihood_compiled(self, table: Table, configuration: int, rows: Rows) -> Floats:
        """The same for rows of one configuration, with one logarithm for many factors."""
        from cgnlearn.model.kernels import gathered_leverages

        indexes = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        n_classes = self.n.shape[1]
        given = np.zeros((n_classes, len(indexes)))
        whole = np.zeros_like(given)
        least = np.array([self._least_leverage((configuration, label)) for label in range(n_classes)])
        bayes = self.strength is not None
        gathered_leverages(
            table.values,
            indexes,
            self.values,
            self.units.origin,
            1 / self.units.unit,
            FARTHEST,
            self.centre[configuration],
            self.factor[configuration],
            least,
            self.n_given,
            bayes,
            given,
            whole,
        )
        own = slice(self.n_given, None)
        if self.n_given == 0:
            given = len(self.columns) * (np.log(least) if bayes else least)  # the same for all rows
        found = np.empty((n_classes, len(indexes))).T
        for label in range(n_classes):
            spread = self.spread[configuration, label][:, own]
            log_det = np.log(spread).sum()
            if bayes:
                n_blocks, size = spread.shape
                shape = self.shape[configuration, label, self.n_given]
                found[:, label] = densities.multivariate_student(
                    given[label], whole[label], log_det, size, shape, n_blocks
                )
            else:
                found[:, label] = densities.multivariate_normal(whole[label] - given[label], log_det, spread.size)
        found -= np.log(self.units.unit[:, own]).sum()
        return found

    def log_densities(self, table: Table) -> Iterator[LogDensities]:
        """ln p(member | members before it, cell) of every row, own member and class, in parts."""
        n_blocks = len(self.columns)
        # Long blocks go one by one through BLAS; short ones side by side, a member at a time.
        by_block = self.size > 8 or self.size**2 > 8 * n_blocks
        for configuration, rows in _rows_by_configuration(self.cells, table):
            if by_block:
                for part in _parts(rows, max(1024, CHUNK // self.size)):
                    for block in range(n_blocks):
                        yield from self._of_block(table, part, configuration, block)
            else:
                for part in _parts(rows, max(1024, CHUNK // n_blocks)):
                    for blocks in _parts(slice(0, n_blocks), max(1, CHUNK // _length(part))):
                        yield from self._of_positions(table, part, configuration, blocks)

    def _of_positions(self, table: Table, rows: Rows, configuration: int, blocks: Any) -> Iterator[LogDensities]:
        standard = [self._standard(table, rows, (blocks, j)) for j in range(self.size)]
        for label in range(self.n.shape[1]):
            at = (configuration, label)
            leverage: Any = self._least_leverage(at)
            whitened: list[Floats] = []
            for j, value in enumerate(standard):
                member = (*at, blocks, j)
                residual = value - self.centre[member][:, None]
                for i, earlier in enumerate(whitened):
                    residual -= earlier * self.factor[(*member, i)][:, None]
                if j >= self.n_given:
                    found = self._density(residual, leverage, member)
                    yield LogDensities(rows, self.columns[blocks, j], label, found)
                if j < self.size - 1:
                    residual /= self.factor[(*member, j)][:, None]
                    whitened.append(residual)
                    leverage = leverage + np.square(residual)

    def _of_block(self, table: Table, rows: Rows, configuration: int, block: int) -> Iterator[LogDensities]:
        own = slice(self.n_given, None)
        standard = self._standard(table, rows, block)
        for label in range(self.n.shape[1]):
            at = (configuration, label)
            factor = self.factor[(*at, block)]
            whitened = _whitened(factor, standard - self.centre[(*at, block)][:, None])
            leverage = self._least_leverage(at) + _before(np.square(whitened), axis=0)
            residual = whitened * np.diagonal(factor)[:, None]
            found = self._density(residual[own], leverage[own], (*at, block, own))
            yield LogDensities(rows, self.columns[block, own], label, found)

    def _standard(self, table: Table, rows: Rows, members: Any) -> Floats:
        """Values of these members in standard units, (members, rows)."""
        return standard_values(table, rows, self.values[members], Units(*(part[members] for part in self.units)))

    def _least_leverage(self, at: tuple[int, int]) -> float:
        return 1.0 if self.strength is None else float(1 + 1 / self.strength[at])

    def _density(self, residual: Floats, leverage: Floats | float, at: tuple[Any, ...]) -> Floats:
        """Log densities in the attributes' own units, for the members that ``at`` selects: (members, rows)."""
        spread = self.spread[at][:, None]
        if self.strength is None:
            found = densities.normal(residual, spread)
        else:
            if self.shift is not None:
                residual = residual + self.shift[at][:, None]
            shape = np.atleast_1d(self.shape[(*at[:2], at[3])])[:, None]
            found = densities.student(residual, spread * leverage, shape)
        return found - np.log(self.units.unit[at[2:]])[:, None]

    # ---- evidence and draws

    def log_evidence(self, prior: Prior, own_n: Floats, *, shared: bool) -> Floats:
        """ln m of every own member: (blocks, members - n_given).

        ``own_n`` (configurations, classes) are the classes' own rows; ``shared`` says that all classes have one
        regression, which then has one evidence.
        """
        scale = prior.standard_scale(self.columns, self.units.unit)
        log_diagonal = np.log(np.diagonal(self.factor, axis1=-2, axis2=-1))
        log_det_ratio = _before(np.log(scale)) - 2 * _before(log_diagonal)
        log_strength = np.log(prior.strength / (prior.strength + own_n))
        regressions = slice(0, 1) if shared else slice(None)  # of the classes, those that count apart
        if shared:
            log_strength = log_strength.sum(axis=1, keepdims=True)
        n = self.n[:, regressions, None, None]
        evidence: Floats = densities.regression_evidence(
            n,
            prior.shape + np.arange(self.size) / 2,
            scale,
            self.spread[:, regressions],
            log_det_ratio[:, regressions],
            log_strength[..., None, None],
        ) - n * np.log(self.units.unit)
        total: Floats = evidence.sum(axis=(0, 1))[:, self.n_given :]
        return total

    def draw(
        self, block: int, member: int, table: Table, rows: NDArray[np.intp], at: tuple[int, int], rng: Any
    ) -> Floats:
        """Values of a member drawn from its predictive, given the rows' earlier members."""
        place = (*at, block, member)
        before = slice(0, member)
        factor = self.factor[(*at, block)]
        location = np.full(len(rows), self.centre[place])
        leverage: Any = self._least_leverage(at)
        if member:
            residual = self._standard(table, rows, (block, before)) - self.centre[(*at, block, before)][:, None]
            whitened = _whitened(factor[before, before], residual)
            location += factor[member, before] @ whitened
            leverage = leverage + np.square(whitened).sum(axis=0)
        if self.strength is None:
            noise = rng.standard_normal(len(rows)) * np.sqrt(self.spread[place])
        else:
            if self.shift is not None:
                location -= self.shift[place]
            shape = self.shape[(*at, member)]
            noise = rng.standard_t(2 * shape, len(rows)) * np.sqrt(self.spread[place] * leverage / (2 * shape))
        drawn: Floats = (location + noise) * self.units.unit[block, member] + self.units.origin[block, member]
        return drawn


def rounding(centre: Floats) -> Floats:
    """The variance that a constant far from the origin seems to have."""
    return np.square(8 * np.finfo(float).eps * centre)


def standard_values(table: Table, rows: Rows, positions: NDArray[np.intp], units: Units) -> Floats:
    """Some of a table's values in standard units, (positions, rows): long loops over rows are fast ones."""
    values = take(table.values, rows, positions).T
    standard: Floats = np.empty(values.shape)
    np.subtract(values, units.origin[:, None], out=standard)
    with np.errstate(over="ignore"):
        standard /= units.unit[:, None]
    return np.clip(standard, -FARTHEST, FARTHEST, out=standard)


def _whitened(factor: Floats, residual: Floats) -> Floats:
    """L⁻¹ times (members, rows)."""
    # Seen in Fortran's order, C's (members, rows) is (rows, members) and L is its transpose: no copies are made.
    white: Floats = dtrsm(1.0, factor.T, residual.T, side=1, overwrite_b=1).T
    return white


def _before(terms: Floats, axis: int = -1) -> Floats:
    """Sums over the members before each one."""
    # Not the sums with each one less itself: a huge term would swallow the small ones before it.
    terms = np.moveaxis(terms, axis, 0)
    sums = np.zeros_like(terms)
    np.cumsum(terms[:-1], axis=0, out=sums[1:])
    return np.moveaxis(sums, 0, axis)


def factorised(scale: Floats, *, always: bool) -> Floats:
    """Lower Cholesky factors of stacked matrices.

    A matrix that rounding has made singular gets a little more of its diagonal if ``always``; else its factor ends
    in zeros from the member on at which it broke down.
    """
    if scale.shape[-1] == 1:
        return np.sqrt(np.maximum(scale, 0.0))
    try:
        return np.linalg.cholesky(scale).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        pass
    factor = np.empty_like(scale)
    for at in np.ndindex(scale.shape[:-2]):
        found, broken = dpotrf(scale[at], lower=1, clean=1)
        more = np.finfo(float).eps
        while broken and always:
            more *= 8
            found, broken = dpotrf(scale[at] + more * np.diag(np.diagonal(scale[at])), lower=1, clean=1)
        if broken:
            found[:, broken - 1 :] = 0.0
        factor[at] = found
    return factor


def _rows_by_configuration(cells: Cells, table: Table) -> Iterator[tuple[int, Rows]]:
    if not cells.columns:
        yield 0, slice(0, table.n_rows)
    else:
        yield from rows_by_cell(cells.index(table), cells.n)


def _length(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def _parts(rows: Rows, step: int) -> Iterator[Rows]:
    """The same rows (or blocks), so many at a time."""
    for start in range(0, _length(rows), step):
        if isinstance(rows, slice):
            yield slice(rows.start + start, min(rows.start + start + step, rows.stop))
        else:
            yield rows[start : start + step]
