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

from cgnlearn import densities
from cgnlearn.layout import Cells, Partition, Stack
from cgnlearn.prior import Posterior, Prior
from cgnlearn.statistics import CHUNK, Floats, Moments, rows_by_cell, take
from cgnlearn.table import Table

FARTHEST = 1e140  # in standard units: squares of values farther out would overflow
SINGULAR = 64 * np.finfo(float).eps  # relative to the attribute's variance and per member


class Units(NamedTuple):
    """Where each attribute of a partition has its zero and how long its unit is."""

    origin: Floats
    unit: Floats
    constant: NDArray[np.bool_]

    @classmethod
    def of(cls, moments: Moments) -> Units:
        """Standard units: mean and standard deviation over all training data."""
        origin, variance = moments.overall()
        constant = variance <= (8 * np.finfo(float).eps * np.abs(origin)) ** 2
        return cls(origin, np.where(constant, 1.0, np.sqrt(variance)), constant)


class LogDensities(NamedTuple):
    """Log densities of some rows, for some attributes, under one class."""

    rows: NDArray[np.intp] | slice
    columns: NDArray[np.intp]
    label: int
    values: Floats  # (rows, columns)


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
    shape : ndarray (…, blocks or 1, members)
        ρ'; meaningless for maximum likelihood.
    strength : ndarray (configurations, classes) or None
        κ'; None for maximum likelihood.
    shift : ndarray (…, blocks, members) or None
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
    def of(
        cls, partition: Partition, stack: Stack, posterior: Posterior, units: Units, prior: Prior
    ) -> Regressions:
        """Factorise the blocks of a stack."""
        members = stack.members
        units = Units(*(part[members] for part in units))
        scale = posterior.scale[..., partition.pair_index(stack)]  # (…, blocks, size, size)
        constant = units.constant
        if constant.any():  # no one's parent: as if it were independent of all
            kept = ~(constant[:, :, None] | constant[:, None, :])
            scale = np.where(kept, scale, np.eye(stack.size)) if posterior.strength is not None else scale
            n_parents = np.cumsum(~constant, axis=1) - ~constant
        else:
            n_parents = np.arange(stack.size)[None]
        factor = _factorised(scale, always=posterior.strength is not None)
        diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
        spread = np.square(diagonal)
        if posterior.own_spread is not None:
            spread = spread + posterior.own_spread[..., members]
        return cls(
            cells=partition.cells,
            values=partition.values[members],
            columns=partition.columns[members],
            n_given=stack.n_given,
            units=units,
            centre=posterior.centre[..., members],
            spread=spread,
            factor=factor,
            n=posterior.n,
            shape=prior.shape + n_parents / 2 + posterior.n[..., None, None] / 2,
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
        bad = ~(self.spread > SINGULAR * self.size * variance)
        bad |= (self.n == 0)[..., None, None]
        bad[..., : self.n_given] = False
        if not bad.any():
            return None
        configuration, label, block, member = (int(i) for i in np.argwhere(bad)[0])
        return Singular(
            int(self.columns[block, member]), configuration, label, self.n[configuration, label], member
        )

    def log_densities(self, table: Table) -> Iterator[LogDensities]:
        """ln p(member | members before it, cell) of every row, member and class, in parts."""
        n_blocks, n_classes = len(self.columns), self.n.shape[1]
        # Long blocks go one by one through BLAS; short ones side by side, a member at a time.
        by_block = self.size > 8 or self.size**2 > 8 * n_blocks
        of_rows = self._of_blocks if by_block else self._of_positions
        width = self.size if by_block else n_blocks
        for configuration, rows in _rows_by_configuration(self.cells, table):
            for part in _parts(rows, table.n_rows, width):
                yield from of_rows(table, part, configuration, range(n_classes))

    def _of_positions(
        self, table: Table, rows: NDArray[np.intp] | slice, configuration: int, labels: range
    ) -> Iterator[LogDensities]:
        standard = [self._standard(table, rows, (slice(None), j)) for j in range(self.size)]
        for label in labels:
            at = (configuration, label)
            leverage: Any = self._least_leverage(at)
            whitened: list[Floats] = []
            for j, value in enumerate(standard):
                member = (*at, slice(None), j)
                residual = value - self.centre[member]
                for i, earlier in enumerate(whitened):
                    residual -= earlier * self.factor[(*member, i)]
                if j >= self.n_given:
                    found = self._density(residual, leverage, member)
                    yield LogDensities(rows, self.columns[:, j], label, found)
                if j < self.size - 1:
                    residual /= self.factor[(*member, j)]
                    whitened.append(residual)
                    leverage = leverage + np.square(residual)

    def _of_blocks(
        self, table: Table, rows: NDArray[np.intp] | slice, configuration: int, labels: range
    ) -> Iterator[LogDensities]:
        for block in range(len(self.columns)):
            standard = self._standard(table, rows, block)
            for label in labels:
                at = (configuration, label)
                factor = self.factor[(*at, block)]
                # As LAPACK sees it the C-ordered (rows, members) is (members, rows), and L is its transpose.
                residual = standard - self.centre[(*at, block)]
                whitened = dtrsm(1.0, factor.T, residual.T, trans_a=1, overwrite_b=1).T
                leverage = np.cumsum(np.square(whitened), axis=1)
                leverage -= np.square(whitened)
                leverage += self._least_leverage(at)
                own = slice(self.n_given, None)
                found = self._density(
                    (whitened * np.diagonal(factor))[:, own], leverage[:, own], (*at, block, own)
                )
                yield LogDensities(rows, self.columns[block, own], label, found)

    def _standard(self, table: Table, rows: NDArray[np.intp] | slice, members: Any) -> Floats:
        """Values of these members in standard units, (rows, members)."""
        standard = take(table.values, rows, self.values[members]) - self.units.origin[members]
        with np.errstate(over="ignore"):
            standard /= self.units.unit[members]
        clipped: Floats = np.clip(standard, -FARTHEST, FARTHEST, out=standard)
        return np.where(self.units.constant[members], 0.0, clipped) if self.units.constant.any() else clipped

    def _least_leverage(self, at: tuple[int, int]) -> float:
        return 1.0 if self.strength is None else float(1 + 1 / self.strength[at])

    def _density(self, residual: Floats, leverage: Floats | float, at: tuple[Any, ...]) -> Floats:
        """Log densities in the attributes' own units, for the members that ``at`` selects."""
        members = at[2:]
        if self.strength is None:
            found = densities.normal(residual, self.spread[at])
        else:
            if self.shift is not None:
                residual = residual + self.shift[at]
            shape = self.shape[at] if self.shape.shape[2] > 1 else self.shape[(*at[:2], 0, at[3])]
            found = densities.student(residual, self.spread[at] * leverage, shape)
        found -= np.log(self.units.unit[members])
        if self.units.constant[members].any():
            found[:, self.units.constant[members]] = 0.0
        return found

    def log_evidence(self, prior: Prior, own_n: Floats, *, shared: bool) -> Floats:
        """ln m of every own member: (blocks, members - n_given).

        ``own_n`` (configurations, classes) are the classes' own rows; ``shared`` says that all classes have one
        regression, which then has one evidence.
        """
        assert self.strength is not None
        scale = np.ones(self.columns.shape)
        for position in range(self.size):
            scale[:, position] = prior.standard_scale(self.columns[:, position], self.units.unit[:, position])
        scale = np.where(self.units.constant, 1.0, scale)
        log_diagonal = np.log(np.diagonal(self.factor, axis1=-2, axis2=-1))
        log_det = _before(np.log(scale)) - 2 * _before(log_diagonal)
        log_strength = np.log(prior.strength / (prior.strength + own_n))
        n = self.n
        parts: list[Floats] = [n, self.shape - n[..., None, None] / 2, self.spread, log_det]
        if shared:
            n, shape, spread, log_det = (part[:, :1] for part in parts)
            log_strength = log_strength.sum(axis=1, keepdims=True)
        else:
            n, shape, spread, log_det = parts
        n = n[..., None, None]
        evidence: Floats = densities.regression_evidence(
            n, shape, scale, spread, log_det, log_strength[..., None, None]
        ) - n * np.log(self.units.unit)
        total = np.where(self.units.constant, 0.0, evidence.sum(axis=(0, 1)))
        return total[:, self.n_given :]

    def draw(
        self, block: int, member: int, table: Table, rows: NDArray[np.intp], at: tuple[int, int], rng: Any
    ) -> Floats:
        """Values of a member drawn from its predictive, given the rows' earlier members."""
        place = (*at, block, member)
        if self.units.constant[block, member]:
            return np.full(len(rows), self.units.origin[block, member])
        before = slice(0, member)
        factor = self.factor[(*at, block)]
        residual = self._standard(table, rows, (block, before)) - self.centre[(*at, block, before)] if member else None
        location = np.full(len(rows), self.centre[place])
        leverage: Any = self._least_leverage(at)
        if residual is not None:
            whitened = dtrsm(1.0, factor[before, before].T, residual.T, trans_a=1).T
            location += whitened @ factor[member, before]
            leverage = leverage + np.square(whitened).sum(axis=1)
        if self.strength is None:
            noise = rng.standard_normal(len(rows)) * np.sqrt(self.spread[place])
        else:
            if self.shift is not None:
                location -= self.shift[place]
            shape = self.shape[(*at, block if self.shape.shape[2] > 1 else 0, member)]
            noise = rng.standard_t(2 * shape, len(rows)) * np.sqrt(self.spread[place] * leverage / (2 * shape))
        drawn: Floats = (location + noise) * self.units.unit[block, member] + self.units.origin[block, member]
        return drawn


def _before(terms: Floats) -> Floats:
    """Sums over the members before each one."""
    sums: Floats = np.cumsum(terms, axis=-1) - terms
    return sums


def _factorised(scale: Floats, *, always: bool) -> Floats:
    """Lower Cholesky factors of stacked matrices.

    A matrix that rounding has made singular gets a little more of its diagonal if ``always``; else its factor ends
    in zeros from the member on at which it broke down.
    """
    if scale.shape[-1] == 1:
        return np.sqrt(np.maximum(scale, 0.0))
    try:
        return np.linalg.cholesky(scale)
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


def _rows_by_configuration(
    cells: Cells, table: Table
) -> Iterator[tuple[int, NDArray[np.intp] | slice]]:
    if not cells.columns:
        yield 0, slice(0, table.n_rows)
        return
    yield from rows_by_cell(cells.index(table), cells.n)


def _parts(
    rows: NDArray[np.intp] | slice, n_rows: int, width: int
) -> Iterator[NDArray[np.intp] | slice]:
    step = max(32, CHUNK // width)
    if isinstance(rows, slice):
        for start in range(0, n_rows, step):
            yield slice(start, min(start + step, n_rows))
    else:
        for start in range(0, len(rows), step):
            yield rows[start : start + step]
