"""The regressions of a stack of blocks: each member of a block on the members before it.

With L the Cholesky factor of Ψ' over a block and w = L⁻¹(y - m'), member j has the residual L_jj w_j, the spread
F = L_jj² and the leverage h = 1 + 1/κ' + Σ_{i<j} w_i² given the members before it. One factorisation serves all
members, and prediction needs forward substitution only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Members, Removed, Scales
from cgnlearn.kernels.limits import SINGULAR
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Terms, Units
from cgnlearn.networks.factors import factorised, sums_before, whiten
from cgnlearn.networks.layout import Cells, Partition, Stack
from cgnlearn.networks.leave_one_out import Removal, leverages_of_few
from cgnlearn.networks.moments import CHUNK, COMPILED_PAYS
from cgnlearn.networks.prior import Hyperparameters
from cgnlearn.networks.solver import Rows, Singular, n_of, parts_of, rounding, rows_by_configuration, standard_values


@dataclass(frozen=True, eq=False)
class Regressions:
    """The factorised posterior of a stack; "…" stands for (configurations, classes).

    Where blocks have their own weights, ``n``, ``shape`` and ``strength`` have an axis of blocks after the classes.
    """

    cells: Cells  # the configurations of the discrete parents
    members: NDArray[np.intp]  # positions among the features of the partition: (blocks, members)
    values: NDArray[np.intp]  # the members as positions among the values of a table: (blocks, members)
    columns: NDArray[np.intp]  # the members as columns of X: (blocks, members)
    counted: NDArray[np.intp]  # as `values`, with members that are excluded: all were observed in the samples counted
    n_given: int  # the number of first members that are parents only
    units: Units  # (blocks, members)
    centre: Floats  # m': (…, blocks, members)
    spread: Floats  # F: (…, blocks, members)
    factor: Floats  # L: (…, blocks, members, members)
    n: Floats  # weight of the samples behind each regression: (…)
    shape: Floats  # ρ': (…, members)
    strength: Floats  # κ': (…)
    overall: Floats  # the mean over all samples: (blocks, members)
    prior: Hyperparameters | None  # its features are (blocks, members), strength and shape by class and perhaps block
    shift: Floats | None  # centre minus the expectation of the member as a child: (…, blocks, members)

    @classmethod
    def of(cls, partition: Partition, stack: Stack, posterior: Posterior, *, always: bool) -> Regressions:
        """Factorise the blocks of a stack; ``always``: also where rounding has made a scale singular."""
        members = stack.members
        n, shape, strength = (
            part[..., members[:, 0]] if posterior.separate else part
            for part in (posterior.n, posterior.shape, posterior.strength)
        )
        scale = posterior.scale[..., posterior.pairs.place(members[:, :, None], members[:, None, :])]
        factor = factorised(scale, always=always)  # (…, blocks, size, size)
        spread = np.square(np.diagonal(factor, axis1=-2, axis2=-1))
        if posterior.own_spread is not None:
            spread = spread + posterior.own_spread[..., members]
        return cls(
            cells=partition.cells,
            members=members,
            values=partition.values[members],
            columns=partition.columns[members],
            counted=partition.values[members if stack.counted is None else stack.counted],
            n_given=stack.n_given,
            units=Units(*(part[members] for part in posterior.units)),
            centre=posterior.centre[..., members],
            spread=spread,
            factor=factor,
            n=n,
            shape=shape[..., None] + np.arange(stack.size) / 2,
            strength=strength,
            overall=posterior.overall[members],
            prior=None if posterior.prior is None else posterior.prior.of_features(members),
            shift=None if posterior.shift is None else posterior.shift[..., members],
        )

    @property
    def size(self) -> int:
        """Number of members of each block."""
        return int(self.columns.shape[1])

    @property
    def least_leverage(self) -> Floats:
        """The leverage h of a sample at the centre, in the shape of ``strength``."""
        return 1 + 1 / self.strength

    @property
    def separate(self) -> bool:
        """Whether blocks have their own weights."""
        return self.n.ndim == 3

    def block(self, number: int) -> Regressions:
        """One of the blocks that have their own weights, as a stack of its own."""
        here = slice(number, number + 1)
        parts = {name: getattr(self, name)[here] for name in ("members", "values", "columns", "counted", "overall")}
        parts |= {name: getattr(self, name)[:, :, here] for name in ("centre", "spread", "factor")}
        parts |= {name: getattr(self, name)[:, :, number] for name in ("n", "shape", "strength")}
        shift = None if self.shift is None else self.shift[:, :, here]
        prior = self.prior
        if prior is not None:
            location = None if prior.location is None else prior.location[:, here]
            prior = (prior.of_block(number) if prior.separate else prior)._replace(
                location=location, scale=prior.scale[:, here]
            )
        return replace(self, units=Units(*(part[here] for part in self.units)), shift=shift, prior=prior, **parts)

    def observed(self, table: Table, number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The samples that a block has counted, and others in which its members and discrete parents are observed."""
        incomplete, not_counted = (
            np.isnan(table.values[:, values[number]]).any(axis=1) for values in (self.values, self.counted)
        )
        observed = self.cells.observed(table) & ~incomplete
        return np.flatnonzero(observed & ~not_counted), np.flatnonzero(observed & not_counted)

    def at_block(self, at: tuple[int, ...], block: Any) -> tuple[Any, ...]:
        """Index into ``n``, ``shape`` or ``strength`` for blocks in a cell (configuration, class)."""
        return (*at, block) if self.separate else at

    def singular(self) -> Singular | None:
        """The first member whose maximum likelihood regression does not exist, if any."""
        # The squared length of row j of the factor is the variance of member j.
        variance = np.square(np.tril(self.factor)).sum(axis=-1)
        bad = ~(self.spread > np.maximum(SINGULAR * self.size * variance, rounding(self.centre)))
        bad[..., : self.n_given] = False
        if not bad.any():
            return None
        configuration, label, block, member = (int(i) for i in np.argwhere(bad)[0])
        n = self.n[self.at_block((configuration, label), block)]
        return Singular(int(self.columns[block, member]), configuration, label, n, member)

    # ---- densities

    @cached_property
    def log_det(self) -> Floats:
        """Σ ln F over all own members: (configurations, classes)."""
        with np.errstate(divide="ignore"):  # maximum likelihood may have no variance left
            total: Floats = np.log(self.spread[..., self.n_given :]).sum(axis=(2, 3))
        return total

    @cached_property
    def _log_unit(self) -> float:
        """Σ ln of the units of all own members."""
        return float(np.log(self.units.unit[:, self.n_given :]).sum())

    @property
    def _samples_per_thread(self) -> int:
        per_row = self.n.shape[1] * len(self.columns) * self.size**2
        return max(1024, CHUNK // self.size, 64 * COMPILED_PAYS // per_row)

    def log_likelihood(self, table: Table, estimation: Estimation) -> Floats:
        """ln p(own members | given ones, class), summed over the blocks, by compiled loops: (samples, classes)."""
        from cgnlearn.kernels.compilation import in_threads
        from cgnlearn.kernels.leverages import gathered_leverages

        total = np.zeros((self.n.shape[1], table.n_samples)).T
        parts = [
            (configuration, part)
            for configuration, rows in rows_by_configuration(self.cells, table)
            for part in parts_of(rows, self._samples_per_thread)
        ]

        n_blocks, n_own = self.columns[:, self.n_given :].shape
        members = Members(self.values, self.units.origin, 1 / self.units.unit)

        def fill(part: tuple[int, Rows]) -> None:
            configuration, rows = part
            indexes = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            given, whole = sums = np.zeros((2, self.n.shape[1], len(indexes)))
            least = self.least_leverage[configuration]
            scales = Scales(self.centre[configuration], self.factor[configuration])
            gathered_leverages(table.values, indexes, members, scales, least, self.n_given, estimation.averages, sums)
            if self.n_given == 0:  # the same for all samples
                given = n_blocks * (np.log(least) if estimation.averages else least)
            log_det, shape = self.log_det[configuration], self.shape[configuration, :, self.n_given]
            for label, leverage in enumerate(whole):
                log_density = estimation.log_density_of_blocks(
                    given[label], leverage, log_det[label], n_own, shape[label], n_blocks
                )
                total[rows, label] = log_density - self._log_unit

        in_threads(fill, parts)
        return total

    def leave_one_out(
        self, table: Table, posterior: Posterior, estimation: Estimation, compiled_from: float = COMPILED_PAYS
    ) -> Floats:
        """Leave-one-out `log_likelihood` of training samples, by compiled loops from so many multiplications on."""
        from cgnlearn.kernels.compilation import in_threads

        total = np.zeros((self.n.shape[1], table.n_samples))
        parts = Removal.by_cell(table, self.cells, self._samples_per_thread, posterior, estimation)

        def fill(part: tuple[int, int, NDArray[np.intp], Removal]) -> None:
            for of_class, log_density in zip(
                total, self._leave_one_out(table, estimation, compiled_from, *part), strict=True
            ):
                of_class[part[2]] = log_density

        if table.n_samples > self._samples_per_thread:
            in_threads(fill, parts)
        else:
            for part in parts:
                fill(part)
        return total.T

    def _leave_one_out(
        self,
        table: Table,
        estimation: Estimation,
        compiled_from: float,
        configuration: int,
        label: int,
        rows: NDArray[np.intp],
        removal: Removal,
    ) -> Floats:
        """(classes, samples) of one cell; each sample is the only one of its class, or none is."""
        centre, factor = self.centre[configuration], self.factor[configuration]
        if alone := bool(removal.alone[0]):
            centre = centre.copy()
            centre[label] = self.overall  # without its only sample a class is centred at the mean over all samples
        shared, crossing = estimation.averages and estimation.sharing == 1, estimation.sharing > 0 and not alone
        sums = np.zeros((4 if self.n_given else 2, len(centre), len(rows)))
        scales = Scales(centre, factor[:1] if shared else factor)
        removed = Removed(label, removal.before, removal.down, removal.growth, crossing)
        if table.n_samples * self.factor[configuration].size < compiled_from:  # of all classes together
            units = Units(*(part.ravel() for part in self.units))
            standard = standard_values(table, rows, self.values.ravel(), units).reshape(*self.values.shape, -1)
            leverages_of_few(standard, scales, removed, self.n_given, estimation.averages, sums)
        else:
            from cgnlearn.kernels.leave_one_out import leave_one_out_leverages

            members = Members(self.values, self.units.origin, 1 / self.units.unit)
            leave_one_out_leverages(
                table.values, rows, members, scales, removed, self.n_given, estimation.averages, sums
            )
        whole, left, *before = sums
        n_blocks, n_own = self.columns[:, self.n_given :].shape
        lighter = slice(None) if crossing else slice(label, label + 1)  # the classes that lose the sample
        if estimation.averages:
            whole[lighter] -= left[lighter]
        if self.n_given == 0:
            given = n_blocks * (np.log(removal.before) if estimation.averages else removal.before)
        else:
            given, left_given = before
            left -= left_given
            if estimation.averages:
                given -= left_given
        log_det = self.log_det[configuration][:, None] + 2 * self._log_unit
        shape = self.shape[configuration, :, self.n_given, None] - removal.lighter / 2
        if not estimation.averages:
            # The scale is a variance, whose divisor decreases.
            kept = np.maximum(1 - removal.lighter / self.n[configuration][:, None], 0.0)
            with np.errstate(divide="ignore"):
                log_det = log_det - n_blocks * n_own * np.log(kept)
            whole = given + (whole - given) * kept
        log_density = estimation.log_density_of_blocks(given, whole, log_det, n_own, shape, n_blocks)
        log_density[lighter] -= left[lighter] / 2  # of ln|Ψ'|
        if alone and not estimation.averages:
            log_density[label] = -np.inf  # a class without samples has no variance
        return log_density

    def terms(self, table: Table) -> Iterator[Terms]:
        """Terms of ln p(member | members before it, cell) of every sample, own member and class, in parts."""
        n_blocks = len(self.columns)
        # Long blocks are whitened one by one with BLAS, short ones together, one member after another.
        by_block = self.size > 8 or self.size**2 > 8 * n_blocks
        for configuration, rows in rows_by_configuration(self.cells, table):
            if by_block:
                for part in parts_of(rows, max(1024, CHUNK // self.size)):
                    for block in range(n_blocks):
                        yield from self._of_block(table, part, configuration, block)
            else:
                for part in parts_of(rows, max(1024, CHUNK // n_blocks)):
                    for blocks in parts_of(slice(0, n_blocks), max(1, CHUNK // n_of(part))):
                        yield from self._of_positions(table, part, configuration, blocks)

    def _of_positions(self, table: Table, rows: Rows, configuration: int, blocks: Any) -> Iterator[Terms]:
        standard = [self._standard(table, rows, (blocks, j)) for j in range(self.size)]
        for label in range(self.n.shape[1]):
            at = (configuration, label)
            leverage: Any = np.atleast_1d(self.least_leverage[self.at_block(at, blocks)])[:, None]
            whitened: list[Floats] = []
            for j, value in enumerate(standard):
                member = (*at, blocks, j)
                residual = value - self.centre[member][:, None]
                for i, earlier in enumerate(whitened):
                    residual -= earlier * self.factor[(*member, i)][:, None]
                if j >= self.n_given:
                    yield self._terms(rows, residual, leverage, member)
                if j < self.size - 1:
                    residual = residual / self.factor[(*member, j)][:, None]
                    whitened.append(residual)
                    leverage = leverage + np.square(residual)

    def _of_block(self, table: Table, rows: Rows, configuration: int, block: int) -> Iterator[Terms]:
        own = slice(self.n_given, None)
        standard = self._standard(table, rows, block)
        for label in range(self.n.shape[1]):
            at = (configuration, label)
            factor = self.factor[(*at, block)]
            whitened = whiten(factor, standard - self.centre[(*at, block)][:, None])
            least = self.least_leverage[self.at_block(at, block)]
            leverage = least + sums_before(np.square(whitened), axis=0)
            residual = whitened * np.diagonal(factor)[:, None]
            yield self._terms(rows, residual[own], leverage[own], (*at, block, own))

    def _standard(self, table: Table, rows: Rows, members: Any) -> Floats:
        """Values of these members in standard units, (members, samples)."""
        return standard_values(table, rows, self.values[members], Units(*(part[members] for part in self.units)))

    def _terms(self, rows: Rows, residual: Floats, leverage: Floats | float, at: tuple[Any, ...]) -> Terms:
        """Terms of the members at (configuration, class, blocks, members)."""
        if self.shift is not None:
            residual = residual + self.shift[at][:, None]
        shape = np.atleast_1d(self.shape[(*self.at_block(at[:2], at[2]), at[3])])[:, None]
        unit = self.units.unit[at[2:]][:, None]
        return Terms(rows, self.columns[at[2:]], at[1], residual, self.spread[at][:, None], leverage, shape, unit)

    # ---- evidence and draws

    def log_evidence(self, estimation: Bayes) -> Floats:
        """Log evidence of every own member: (blocks, members - n_given)."""
        prior = self.prior
        assert prior is not None
        log_diagonal = np.log(np.diagonal(self.factor, axis1=-2, axis2=-1))
        log_det_ratio = sums_before(np.log(prior.scale)) - 2 * sums_before(log_diagonal)
        log_strength, regressions = estimation.log_strength_ratio(prior.strength, self.strength)
        shape = prior.shape[..., None] if prior.separate else prior.shape[..., None, None]
        n, log_strength = (
            part[..., None] if self.separate else part[..., None, None]
            for part in (self.n[:, regressions], log_strength)
        )
        evidence: Floats = densities.regression_evidence(
            n,
            shape[regressions] + np.arange(self.size) / 2,
            prior.scale[regressions],
            self.spread[:, regressions],
            log_det_ratio[:, regressions],
            log_strength,
        ) - n * np.log(self.units.unit)
        total: Floats = evidence.sum(axis=(0, 1))[:, self.n_given :]
        return total

    def predictive(
        self, block: int, member: int, table: Table, rows: NDArray[np.intp], at: tuple[int, int]
    ) -> tuple[Floats, float, Floats]:
        """Expectation, F and h of a member given the members before it, in standard units."""
        place = (*at, block, member)
        before = slice(0, member)
        factor = self.factor[(*at, block)]
        location = np.full(len(rows), self.centre[place])
        leverage: Any = self.least_leverage[self.at_block(at, block)]
        if member:
            residual = self._standard(table, rows, (block, before)) - self.centre[(*at, block, before)][:, None]
            whitened = whiten(factor[before, before], residual)
            location += factor[member, before] @ whitened
            leverage = leverage + np.square(whitened).sum(axis=0)
        if self.shift is not None:
            location -= self.shift[place]
        return location, float(self.spread[place]), leverage
