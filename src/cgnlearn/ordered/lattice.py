"""The lattice: the regressions of each attribute of an ordered row on any number of those just before it.

In a k-BAND an attribute's parents are the k - 1 before it, in a k-BOX those before it in its own stretch of k. So both
families, for every k up to K, need only the K orders 0..K-1 of each attribute, and the recursion over orders gives
them all at the cost of the last one (``docs/ordered.md``). The loops stand in `recursion`; here they are
fed from the same posterior as every other structure, cut into blocks of attributes that run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model import densities
from cgnlearn.model.blocks import LogDensities, Regressions, Singular, Units, rounding, standard_values
from cgnlearn.model.layout import Cells, Partition, Stack
from cgnlearn.model.prior import Posterior, Prior
from cgnlearn.model.statistics import Floats
from cgnlearn.model.table import Table

FAMILIES = ("band", "box")
BLOCK = 2048  # attributes of one job; each job repeats the K - 1 before its own
ROWS = 32  # that go through the recursion side by side, at most
BATCH = 1 << 22  # numbers of the rows that are predicted together: 32 megabytes


class Spreads(NamedTuple):
    """What the rows of the training data say of every order; arrays over (classes, attributes, orders)."""

    spread: Floats  # F
    log_det: Floats  # ln|Ψ'| of the parents
    existing: NDArray[np.int64]  # (classes, attributes): how many orders have a regression


class EveryOrder(NamedTuple):
    """Log likelihoods of both families at every k."""

    log_likelihood: Floats  # (families, k, rows, classes)
    exists: NDArray[np.bool_]  # (families, k): false where some regression does not exist up to rounding


@dataclass(frozen=True, eq=False)
class Lattice:
    """The posterior of a band, from which the regressions of any order follow.

    Parameters
    ----------
    partition : Partition
        Of a band; its width is the number of orders.
    posterior : Posterior
    units : Units
    prior : Prior
    absent : ndarray of bool (attributes,)
        Attributes that are left out, because they are constant.
    """

    partition: Partition
    posterior: Posterior
    units: Units
    prior: Prior
    absent: NDArray[np.bool_]

    @property
    def orders(self) -> int:
        """How many orders there are: 0 is an attribute without parents."""
        assert self.partition.bandwidth is not None
        return self.partition.bandwidth + 1

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return self.posterior.n.shape[1]

    @cached_property
    def scale(self) -> Floats:
        """Ψ'[v, v-d]: (classes, attributes, distances d), zero wherever an absent attribute takes part.

        By maximum likelihood also where a class has no variance: no regression of it exists.
        """
        child = np.arange(self.partition.n_attributes)[:, None]
        parent = child - np.arange(self.orders)
        there = (parent >= 0) & ~self.absent[child] & ~self.absent[parent]
        place = self.partition.banded_index(np.maximum(parent, 0), child)
        scale = np.where(there, self.posterior.scale[0][:, place], 0.0)
        if not self.bayes:
            scale[scale[..., 0] <= rounding(self.posterior.centre[0])] = 0.0
        return scale

    @property
    def centre(self) -> Floats:
        """Where the attributes are centred: (classes, attributes), 0 for absent ones, whose values are 0 too."""
        return np.where(self.absent, 0.0, self.posterior.centre[0])

    @cached_property
    def n_parents(self) -> NDArray[np.intp]:
        """How many parents are present, (attributes, orders)."""
        present = np.concatenate([[0], np.cumsum(~self.absent)])
        child = np.arange(self.partition.n_attributes)[:, None]
        return present[child] - present[np.maximum(child - np.arange(self.orders), 0)]

    @property
    def bayes(self) -> bool:
        """Whether parameters are averaged over; else they are the likeliest."""
        return self.posterior.strength is not None

    def least_leverage(self, label: int) -> float:
        """The leverage h of a row at the centre."""
        return 1.0 if self.posterior.strength is None else float(1 + 1 / self.posterior.strength[0, label])

    def shape(self, label: int, n_parents: NDArray[np.intp]) -> Floats:
        """ρ' of attributes with so many parents."""
        return self.prior.shape + (n_parents + self.posterior.n[0, label]) / 2

    # ---- compiled loops

    def _over_blocks(self, function: Callable[[int, int, int], Any], first: int = 0) -> list[Any]:
        """Call ``function(label, start, stop)`` for all blocks of attributes of all classes, side by side."""
        from cgnlearn.model.compilation import in_threads

        m = self.partition.n_attributes
        jobs = [(label, start) for label in range(self.n_classes) for start in range(first, m, BLOCK)]
        return in_threads(lambda job: function(*job, min(job[1] + BLOCK, m)), jobs)

    def spreads(self) -> Spreads:
        """F and the parents' ln|Ψ'| at every order."""
        from cgnlearn.ordered import recursion

        found = Spreads(
            np.zeros(self.scale.shape), np.zeros(self.scale.shape), np.zeros(self.scale.shape[:2], np.int64)
        )
        self._over_blocks(
            lambda label, start, stop: recursion.spreads(
                self.scale[label], start, stop, *(part[label] for part in found)
            )
        )
        return found

    def _batches(self, table: Table) -> Iterator[tuple[slice, int, Floats]]:
        """Rows, how many of them go side by side, and their values in standard units: (attributes, rows, filled up)."""
        m = self.partition.n_attributes
        width = min(ROWS, -(-table.n_rows // 8) * 8)
        step = max(1, BATCH // (m * width)) * width
        for start in range(0, table.n_rows, step):
            rows = slice(start, min(start + step, table.n_rows))
            values = standard_values(table, rows, self.partition.values, self.units)
            filled = np.zeros((m, -(-values.shape[1] // width) * width))
            filled[:, : values.shape[1]] = values
            filled[self.absent] = 0.0
            yield rows, width, filled

    def every_order(
        self, table: Table, families: tuple[str, ...] = FAMILIES, *, lowest: int = 1, first: int = 0
    ) -> EveryOrder:
        """Log likelihoods of the rows under each family (``"band"``, ``"box"``) and each k, 1 to K.

        The attributes before ``first`` and the k below ``lowest`` are left out.
        """
        from cgnlearn.ordered import recursion

        orders, n_classes = self.orders, self.n_classes
        chosen = np.array([family in families for family in FAMILIES])
        total = np.zeros((2, orders, table.n_rows, n_classes))
        none = np.zeros(self.partition.n_attributes)
        offset = np.log(self.units.unit)
        exists = np.ones((2, orders), bool)
        scale, centre, shift, own_spread = self.scale, self.centre, self.posterior.shift, self.posterior.own_spread

        def of_rows(width: int, values: Floats) -> Callable[[int, int, int], tuple[int, Floats, NDArray[np.int64]]]:
            def of_block(label: int, start: int, stop: int) -> tuple[int, Floats, NDArray[np.int64]]:
                constant = np.zeros((2, orders))
                varying = np.zeros((2, orders, values.shape[1]))
                missing = np.zeros((2, orders), np.int64)
                shape = self.shape(label, np.arange(orders))
                recursion.every_order(
                    width,
                    scale[label],
                    values,
                    centre[label],
                    none if shift is None else shift[0, label],
                    none if own_spread is None else own_spread[0, label],
                    offset,
                    self.absent,
                    densities.student(0.0, 1.0, shape) if self.bayes else np.full(orders, densities.normal(0.0, 1.0)),
                    shape,
                    self.least_leverage(label),
                    self.bayes,
                    shift is None,
                    chosen,
                    lowest,
                    start,
                    stop,
                    constant,
                    varying,
                    missing,
                )
                return label, constant[:, :, None] + varying, missing

            return of_block

        for rows, width, values in self._batches(table):
            n = rows.stop - rows.start
            for label, found, missing in self._over_blocks(of_rows(width, values), first):
                total[:, :, rows, label] += found[:, :, :n]
                exists &= missing == 0
        places = [FAMILIES.index(family) for family in families]
        return EveryOrder(total[places], exists[places])

    def log_evidences(self, own_n: Floats, *, shared: bool, orders: slice = slice(None)) -> Floats:
        """ln m of every attribute at every order, summed over classes: (attributes, orders).

        ``own_n`` (classes,) are the classes' own rows; ``shared`` says that all classes have one regression, which
        then has one evidence.
        """
        found = self.spreads()
        scale = self.prior.standard_scale(self.partition.columns, self.units.unit)
        log_scale = np.concatenate([[0.0], np.cumsum(np.where(self.absent, 0.0, np.log(scale)))])
        child = np.arange(len(scale))[:, None]
        of_parents = (log_scale[child] - log_scale[np.maximum(child - np.arange(self.orders), 0)])[:, orders]
        log_strength = np.log(self.prior.strength / (self.prior.strength + own_n))
        regressions = slice(0, 1) if shared else slice(None)
        if shared:
            log_strength = log_strength.sum(keepdims=True)
        n = self.posterior.n[0, regressions, None, None]
        evidence = (
            densities.regression_evidence(
                n,
                self.prior.shape + self.n_parents[:, orders] / 2,
                scale[:, None],
                np.where(self.absent[:, None], 1.0, found.spread[regressions, :, orders]),
                of_parents - found.log_det[regressions, :, orders],
                log_strength[:, None, None],
            )
            - n * np.log(self.units.unit)[:, None]
        )
        return np.where(self.absent[:, None], 0.0, evidence.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Windows:
    """The regressions of a band's sliding windows, read off its lattice: what `Regressions` is to other stacks.

    Parameters
    ----------
    lattice : Lattice
    stack : Stack
        The windows.
    spread : ndarray (classes, attributes)
        F at the last order.
    existing : ndarray of int (classes, attributes)
        How many orders have a regression.
    """

    lattice: Lattice
    stack: Stack
    spread: Floats
    existing: NDArray[np.int64]

    @property
    def cells(self) -> Cells:
        """The configurations of the discrete parents, of which there are none."""
        return self.lattice.partition.cells

    @property
    def columns(self) -> NDArray[np.intp]:
        """The members as columns of X: (windows, members)."""
        return self.lattice.partition.columns[self.stack.members]

    @property
    def n_given(self) -> int:
        """The first so many members are parents only."""
        return self.stack.n_given

    def singular(self) -> Singular | None:
        """The first member whose maximum likelihood regression does not exist, if there is one."""
        bad = np.argwhere(self.existing[:, self.stack.size :] < self.stack.size)
        if not len(bad):
            return None
        label, window = (int(i) for i in bad[0])
        column = int(self.lattice.partition.columns[self.stack.size + window])
        return Singular(column, 0, label, self.lattice.posterior.n[0, label], self.n_given)

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(child | its window, class), summed over the windows: (rows, classes)."""
        size = self.stack.size
        return self.lattice.every_order(table, ("band",), lowest=size, first=size).log_likelihood[0, -1]

    def log_densities(self, table: Table) -> Iterator[LogDensities]:
        """ln p(child | its window, class) of every row, child and class, in parts."""
        lattice, posterior = self.lattice, self.lattice.posterior
        own = np.flatnonzero(~lattice.absent)
        own = own[own >= self.stack.size]
        columns = lattice.partition.columns[own]
        log_unit = np.log(lattice.units.unit[own, None])
        for rows, width, values in lattice._batches(table):
            n = rows.stop - rows.start
            residual, leverage = self._last_order(width, values)
            for label in range(lattice.n_classes):
                spread = self.spread[label, own, None]
                away = residual[label, own, :n]
                if posterior.shift is not None:
                    away += posterior.shift[0, label, own, None]
                if lattice.bayes:
                    h = lattice.least_leverage(label) + leverage[label, own, :n]
                    shape = lattice.shape(label, lattice.n_parents[own, -1:])
                    found = densities.student(away, spread * h, shape)
                else:
                    found = densities.normal(away, spread)
                yield LogDensities(rows, columns, label, found - log_unit)

    def _last_order(self, width: int, values: Floats) -> tuple[Floats, Floats]:
        """Residual f and leverage q of every row, attribute and class: (classes, attributes, rows)."""
        from cgnlearn.ordered import recursion

        lattice = self.lattice
        residual = np.zeros((lattice.n_classes, *values.shape))
        leverage = np.zeros_like(residual)
        centre = lattice.centre
        lattice._over_blocks(
            lambda label, start, stop: recursion.last_order(
                width,
                lattice.scale[label],
                values,
                centre[label],
                start,
                stop,
                residual[label],
                leverage[label],
            ),
            self.stack.size,
        )
        return residual, leverage

    def log_evidence(self, prior: Prior, own_n: Floats, *, shared: bool) -> Floats:
        """ln m of every child: (windows, 1)."""
        last = slice(self.stack.size - 1, None)
        return self.lattice.log_evidences(own_n[0], shared=shared, orders=last)[self.stack.size :]

    def draw(
        self, block: int, member: int, table: Table, rows: NDArray[np.intp], at: tuple[int, int], rng: Any
    ) -> Floats:
        """Values of a child drawn from its predictive, given the rows' values in its window."""
        lattice = self.lattice
        child = self.stack.members[block, member]
        if lattice.absent[child]:
            return np.full(len(rows), lattice.units.origin[child])
        (window,) = Stack(self.stack.members[block : block + 1], self.n_given).without(lattice.absent)
        regression = Regressions.of(lattice.partition, window, lattice.posterior, lattice.units, lattice.prior)
        return regression.draw(0, window.n_given, table, rows, at, rng)


def regressions_of(
    partition: Partition, stack: Stack, posterior: Posterior, units: Units, prior: Prior, left_out: NDArray[np.bool_]
) -> Iterator[Regressions | Windows]:
    """The regressions of a stack without some attributes, by the lattice where it is one of sliding windows."""
    if stack.sliding:
        lattice = Lattice(partition, posterior, units, prior, left_out)
        spread, _, existing = lattice.spreads()
        if not lattice.bayes or ((existing == lattice.orders) | left_out).all():
            own = 0.0 if posterior.own_spread is None else posterior.own_spread[0]
            yield Windows(lattice, stack, spread[..., -1] + own, existing)
            return
        stack = replace(stack, sliding=False)  # rounding has made a scale singular: `Regressions` mends it
    for kept in stack.without(left_out):
        yield Regressions.of(partition, kept, posterior, units, prior)
