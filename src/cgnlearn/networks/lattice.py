"""The lattice: the solver of ordered columns, each with any number of those just before it as parents.

In a k-BAND a feature's parents are the k - 1 before it, in a k-BOX those before it in its own stretch of k. So both
shapes, for every k up to K, need only the K orders 0..K-1 of each feature, and the recursion over orders gives
them all at the cost of the last one (``docs/ordered.md``). The loops stand in `cgnlearn.kernels.lattice`; here they are
fed from the same posterior as every other structure, cut into stretches of features that run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.picking import rows_by_cell
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Chain, LeaveOneOutSums, MixedLaw, PathLaw, PathSums, RemovedPath, Stretch
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Terms
from cgnlearn.networks.families import Family
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.solver import Singular, rounding, standard_values

SHAPES = ("band", "box")
STRETCH = 2048  # features of one job; each job repeats the K - 1 before its own
ROWS = 32  # that go through the recursion side by side, at most
ROWS_LEFT_OUT = 128  # the same where there is more to do for each than the recursion
BATCH = 1 << 22  # numbers of the samples that are predicted together: 32 megabytes


class EveryOrder(NamedTuple):
    """Log likelihoods of both shapes at every k."""

    log_likelihood: Floats  # (shapes, k, samples, classes)
    exists: NDArray[np.bool_]  # (shapes, k): false where some regression does not exist up to rounding


@dataclass(frozen=True, eq=False)
class Lattice:
    """The regressions of a chain, of the order of its windows and of all below.

    Parameters
    ----------
    partition : Partition
        Of a chain.
    posterior : Posterior
    how : Estimation
    """

    partition: Partition
    posterior: Posterior
    estimation: Estimation

    @property
    def orders(self) -> int:
        """How many orders there are: 0 is a feature without parents."""
        assert self.partition.k is not None
        return self.partition.k

    @cached_property
    def scale(self) -> Floats:
        """Ψ'[v, v-d]: (classes, features, distances d), zero wherever an absent feature takes part.

        By maximum likelihood also where a class has no variance: no regression of it exists. If all classes share
        one scale it stands there once.
        """
        one = self.estimation.averages and self.estimation.sharing == 1
        scale = self.partition.pairs.banded(self.posterior.scale[0, : 1 if one else None])
        if self.posterior.absent.any():
            child = np.arange(self.partition.n_features)[:, None]
            gone = self.posterior.absent[np.maximum(child - np.arange(self.orders), 0)]
            scale[:, gone | gone[:, :1]] = 0.0
        if not self.estimation.averages:
            scale[scale[..., 0] <= rounding(self.posterior.centre[0])] = 0.0
        return scale

    def _of_class(self, label: int) -> int:
        """Where the scale of a class stands."""
        return min(label, len(self.scale) - 1)

    def _of_scale(self, at: int) -> NDArray[np.intp]:
        """The classes that a scale is of: all where they share one."""
        return np.arange(len(self.centre)) if len(self.scale) < len(self.centre) else np.array([at])

    @cached_property
    def centre(self) -> Floats:
        """Where the features are centred: (classes, features), 0 for absent ones, whose values are 0 too."""
        return np.where(self.posterior.absent, 0.0, self.posterior.centre[0])

    @cached_property
    def n_parents(self) -> NDArray[np.intp]:
        """How many parents are present, (features, orders)."""
        child = np.arange(self.partition.n_features)[:, None]
        return self._n_before[child] - self._n_before[np.maximum(child - np.arange(self.orders), 0)]

    @cached_property
    def _n_before(self) -> NDArray[np.intp]:
        """How many of those before each feature are present: (features + 1,)."""
        return np.concatenate([[0], np.cumsum(~self.posterior.absent)])

    @cached_property
    def stretches(self) -> dict[tuple[int, int], Stretch]:
        """Of each scale, by their starts; computed once, whatever is predicted."""
        from cgnlearn.kernels.lattice import regressions

        found = self._side_by_side(lambda at, *bounds: (at, regressions(self.scale[at], *bounds)), len(self.scale))
        return {(at, stretch.start): stretch for at, stretch in found}

    def _of_features(self, name: str) -> NDArray[Any]:
        """What the stretches hold of all features: (scales, features, …)."""
        found: list[list[NDArray[Any]]] = [[] for _ in self.scale]
        for (at, _), stretch in self.stretches.items():
            found[at].append(getattr(stretch, name)[stretch.start - stretch.first :])
        return np.array([np.concatenate(parts) for parts in found])

    @cached_property
    def spread(self) -> Floats:
        """F of every order: (scales, features, orders)."""
        return self._of_features("spread")

    @cached_property
    def existing(self) -> NDArray[np.int64]:
        """How many orders have a regression: (scales, features)."""
        return self._of_features("existing")

    @property
    def is_regular(self) -> bool:
        """Whether every regression exists; with a prior they do, unless rounding has made a scale singular."""
        return bool(((self.existing == self.orders) | self.posterior.absent).all())

    def singular(self) -> Singular | None:
        """The first feature whose maximum likelihood regression does not exist, if there is one."""
        needed = np.minimum(np.arange(self.partition.n_features) + 1, self.orders)
        bad = np.argwhere(self.existing < needed)
        if not len(bad):
            return None
        label, at = (int(i) for i in bad[0])
        n = float(self.posterior.n[0, label])
        return Singular(int(self.partition.columns[at]), 0, label, n, int(needed[at]) - 1)

    # ---- compiled loops

    def _side_by_side(self, function: Callable[[int, int, int], Any], n: int) -> list[Any]:
        """Call ``function(label, start, stop)`` for all stretches of features of n classes."""
        from cgnlearn.kernels.compilation import in_threads

        m = self.partition.n_features
        jobs = [(label, start) for label in range(n) for start in range(0, m, STRETCH)]
        return in_threads(lambda job: function(*job, min(job[1] + STRETCH, m)), jobs)

    def batches(self, table: Table, side_by_side: int = ROWS) -> Iterator[tuple[slice, int, Floats]]:
        """Samples, how many of them go side by side, and their values in standard units: (features, samples, filled
        up).
        """
        m = self.partition.n_features
        width = min(side_by_side, -(-table.n_samples // 8) * 8)
        step = max(1, BATCH // (m * width)) * width
        for start in range(0, table.n_samples, step):
            rows = slice(start, min(start + step, table.n_samples))
            values = standard_values(table, rows, self.partition.values, self.posterior.units)
            filled = np.zeros((m, -(-values.shape[1] // width) * width))
            filled[:, : values.shape[1]] = values
            filled[self.posterior.absent] = 0.0
            yield rows, width, filled

    def every_order(self, table: Table, shapes: tuple[str, ...] = SHAPES, *, lowest: int = 1) -> EveryOrder:
        """Log likelihoods of the samples under each shape (``"band"``, ``"box"``) and each k from ``lowest`` to K."""
        from cgnlearn.kernels.lattice_path import every_order

        orders, n_classes = self.orders, table.schema.n_classes
        wanted = np.array([shape in shapes for shape in SHAPES])
        # Of shapes and orders that are not wanted nothing is allocated or added.
        asked = np.ix_([SHAPES.index(shape) for shape in shapes], range(lowest - 1, orders))
        total = np.zeros((len(shapes), orders - lowest + 1, table.n_samples, n_classes))
        exists = np.ones(total.shape[:2], bool)

        def of_stretch(width: int, values: Floats, label: int, start: int, _: int) -> tuple[int, PathSums]:
            stretch, chain, law = self.stretches[self._of_class(label), start], self._chain(label), self._law(label)
            constant, varying = np.zeros((2, orders)), np.zeros((2, orders, values.shape[1]))
            sums = PathSums(constant, varying, np.zeros((2, orders), np.int64))
            every_order(width, stretch, values, chain, law, wanted, lowest, sums)
            return label, sums

        for rows, width, values in self.batches(table):
            for label, sums in self._side_by_side(partial(of_stretch, width, values), n_classes):
                found = sums.constant[asked][..., None] + sums.varying[asked]
                total[:, :, rows, label] += found[:, :, : rows.stop - rows.start]
                exists &= sums.missing[asked] == 0
        return EveryOrder(total, exists)

    def _chain(self, label: int) -> Chain:
        posterior, none = self.posterior, np.zeros(self.partition.n_features)
        shift = none if posterior.shift is None else posterior.shift[0, label]
        own_spread = none if posterior.own_spread is None else posterior.own_spread[0, label]
        log_unit = np.log(posterior.units.unit)
        return Chain(self.centre[label], shift, own_spread, log_unit, posterior.absent, self._n_before)

    def _law(self, label: int) -> PathLaw:
        averages, shape = self.estimation.averages, float(self.posterior.shape[0, label])
        least, shifted = float(self.posterior.least_leverage[0, label]), self.posterior.shift is not None
        shapes = shape + np.arange(self.orders) / 2
        base = densities.student(0.0, 1.0, shapes) if averages else np.full(self.orders, densities.normal(0.0, 1.0))
        return PathLaw(base, shape, least, averages, shifted)

    def log_likelihood(self, table: Table) -> Floats:
        """The log densities, summed over the features: (samples, classes)."""
        return self.every_order(table, ("band",), lowest=self.orders).log_likelihood[0, -1]

    def terms(self, table: Table) -> Iterator[Terms]:
        """What the log density of every sample, feature and class is made of, in parts."""
        posterior = self.posterior
        present = np.flatnonzero(~posterior.absent)
        columns, unit = self.partition.columns[present], posterior.units.unit[present, None]
        n_parents = self.n_parents[present, -1:]
        for rows, width, values in self.batches(table):
            n = rows.stop - rows.start
            residual = np.zeros((table.schema.n_classes, *values.shape))
            leverage = np.zeros_like(residual)

            self._side_by_side(partial(self._fill_last_order, width, values, residual, leverage), len(residual))
            for label in range(len(residual)):
                spread = self.spread[self._of_class(label), present, -1:]
                away = residual[label, present, :n]
                if posterior.shift is not None and posterior.own_spread is not None:
                    away += posterior.shift[0, label, present, None]
                    spread = spread + posterior.own_spread[0, label, present, None]
                h = posterior.least_leverage[0, label] + leverage[label, present, :n]
                yield Terms(rows, columns, label, away, spread, h, posterior.shape[0, label] + n_parents / 2, unit)

    def _fill_last_order(
        self, width: int, values: Floats, residual: Floats, leverage: Floats, label: int, start: int, _: int
    ) -> None:
        from cgnlearn.kernels.lattice import last_order

        stretch = self.stretches[self._of_class(label), start]
        last_order(width, stretch, values, self.centre[label], residual[label], leverage[label])

    def every_order_leave_one_out(
        self, table: Table, shapes: tuple[str, ...] = SHAPES, *, lowest: int = 1
    ) -> EveryOrder:
        """`every_order` of training samples, each by the regressions without it."""
        from cgnlearn.kernels.lattice_leave_one_out import every_order_leave_one_out

        orders, n_classes, averages = self.orders, table.schema.n_classes, self.estimation.averages
        posterior = self.posterior
        removal = Removal.of(table, np.arange(table.n_samples), 0, posterior, self.estimation)
        kept = np.maximum(1 - removal.lighter / posterior.n[0][:, None], 1e-300)  # of the samples behind a regression
        wanted = np.array([shape in shapes for shape in SHAPES])
        total = np.zeros((2, orders, table.n_samples, n_classes))
        counts = np.zeros((2, orders, orders))
        exists = np.ones((2, orders), bool)
        for group, rows in rows_by_cell(2 * removal.labels + removal.alone, 2 * n_classes):
            owner, chain = group // 2, self._chain(group // 2)
            part, of_part = table.rows(rows), removal.only(rows)
            for batch, width, values in self.batches(part, ROWS_LEFT_OUT):
                of_batch = values, of_part.only(batch), kept[:, rows[batch]], owner
                removed = [self._removed(at, *of_batch) for at in range(len(self.scale))]

                def of_stretch(
                    at: int,
                    start: int,
                    _: int,
                    width: int = width,
                    chain: Chain = chain,
                    removed: list[RemovedPath] = removed,
                ) -> tuple[int, LeaveOneOutSums]:
                    n_scale, n_padded = len(removed[at].shape), removed[at].rows.shape[1]
                    varying, of_parents = np.zeros((n_scale, 2, orders, n_padded)), np.zeros((2, orders, orders))
                    sums = LeaveOneOutSums(np.zeros((2, orders)), varying, of_parents, np.zeros((2, orders), np.int64))
                    stretch = self.stretches[at, start]
                    every_order_leave_one_out(width, stretch, removed[at], chain, wanted, lowest, sums)
                    return at, sums

                counts[:] = 0.0
                for at, sums in self._side_by_side(of_stretch, len(self.scale)):
                    for label, varying in zip(self._of_scale(at), sums.varying, strict=True):
                        found = sums.constant[:, :, None] + varying[..., : batch.stop - batch.start]
                        total[:, :, rows[batch], label] += found
                    counts += sums.counts if at == 0 else 0.0
                    exists &= sums.missing == 0
        for label in range(n_classes):
            # What the number of parents alone decides, with as many samples fewer behind it.
            lighter = removal.lighter[label]
            shape = posterior.shape[0, label] + np.arange(orders)[:, None] / 2 - lighter / 2
            if averages:
                base = densities.student(0.0, 1.0, shape)
            else:
                base = np.full(shape.shape, densities.normal(0.0, 1.0)) + 0.5 * np.log(kept[label])
            total[..., label] += counts @ base
            if not averages:  # without its only sample a class has no variance, and says that the sample cannot be
                total[:, :, removal.alone & (removal.labels == label), label] = -np.inf
        places = [SHAPES.index(shape) for shape in shapes]
        return EveryOrder(total[places], exists[places])

    def _removed(self, at: int, values: Floats, removal: Removal, kept: Floats, owner: int) -> RemovedPath:
        """Samples of one class, which are all alone in it or none is, as they leave one of the scales."""
        posterior, averages = self.posterior, self.estimation.averages
        n, n_padded = len(removal.labels), values.shape[1]
        labels = self._of_scale(at)
        # Without its only sample a class is centred where all samples are.
        alone = bool(removal.alone[0])
        centre = np.where(posterior.absent, 0.0, posterior.overall) if alone else self.centre[owner]
        distance = (centre - self.centre[labels]).T.copy()
        if self.estimation.sharing == 0:
            distance = distance[:, :0]
            centre = centre if at == owner else self.centre[at]
        rows = values - centre[:, None]
        rows[:, n:] = 0.0

        def padded(part: Floats, by: float) -> Floats:
            return np.concatenate([part, np.full((*part.shape[:-1], n_padded - n), by)], axis=-1)

        return RemovedPath(
            rows,
            distance,
            int(np.flatnonzero(labels == owner)[0]) if owner in labels else -1,
            padded(removal.before[labels], 2.0),
            padded(removal.down[labels[0]], 0.0),  # with one scale, that of all its classes
            padded(removal.growth, 1.0),
            posterior.shape[0, labels],
            padded((removal.lighter if averages else kept)[labels], 0.0),
            averages,
        )

    def leave_one_out(self, table: Table) -> Floats:
        """The log densities of training samples, each by the regressions without it: (samples, classes)."""
        return self.every_order_leave_one_out(table, ("band",), lowest=self.orders).log_likelihood[0, -1]

    # ---- mixtures of orders

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """Whether a feature has so many before it, and in all classes a regression on them: (features, orders)."""
        order, n_before = np.arange(self.orders), np.arange(self.partition.n_features)
        n_orders = np.minimum(self.existing.min(axis=0), n_before + 1)
        return (order < n_orders[:, None]) & ~self.posterior.absent[:, None]

    def add_densities(self, batch: tuple[int, Floats], log_weight: Floats, mixtures: Floats) -> None:
        """Add the densities of all orders to log mixtures (classes, features, samples).

        ``batch`` is a width and values as `batches` gives them; ``log_weight`` (features, orders) is -inf wherever
        there is no regression. Mixtures to which nothing has been added yet are -inf.
        """
        from cgnlearn.kernels.lattice_mixtures import add_densities

        width, values = batch

        def of_stretch(label: int, start: int, _: int) -> None:
            of_class, stretch = self._law(label), self.stretches[self._of_class(label), start]
            shape = of_class.shape + np.arange(self.orders) / 2
            law = MixedLaw(of_class.base, shape, of_class.least, self.n_parents, log_weight)
            add_densities(width, stretch, values, self.centre[label], law, mixtures[label])

        self._side_by_side(of_stretch, len(mixtures))

    # ---- evidence

    def every_log_evidence(self) -> Floats:
        """ln m of every feature at every order, summed over classes: (features, orders)."""
        from cgnlearn.kernels.lattice import log_dets

        assert isinstance(self.estimation, Bayes)
        prior, posterior = self.estimation.prior, self.posterior
        scale = prior.standard_scale(self.partition.columns, posterior.units.unit)
        log_scale = np.concatenate([[0.0], np.cumsum(np.where(posterior.absent, 0.0, np.log(scale)))])
        log_strength, regressions = self.estimation.log_strength_ratio(posterior.strength)
        n = posterior.n[0, regressions]
        log_gammas = densities.log_gamma_ratio(n[:, None], prior.shape + np.arange(self.orders) / 2)
        log_det = np.zeros(self.scale.shape)

        def of_stretch(at: int, start: int, stop: int) -> tuple[int, int, Floats]:
            log_dets(self.stretches[at, start], log_det[at])
            child = np.arange(start, stop)[:, None]
            of_parents = log_scale[child] - log_scale[np.maximum(child - np.arange(self.orders), 0)]
            spread = self.spread[at, start:stop]
            evidence = densities.regression_evidence(
                n[at],
                prior.shape + self.n_parents[start:stop] / 2,
                scale[child],
                np.where(spread > 0, spread, 1.0),  # of no account where there is no regression
                of_parents - log_det[at, start:stop],
                log_strength[0, at],
                log_gammas[at][self.n_parents[start:stop]],
            )
            return start, stop, evidence - n[at] * np.log(posterior.units.unit[child])

        total = np.zeros(self.scale.shape[1:])
        for start, stop, evidence in self._side_by_side(of_stretch, len(log_det)):
            total[start:stop] += evidence
        total[posterior.absent] = 0.0
        return total

    def log_evidences(self) -> Iterator[tuple[Family, float]]:
        """The log evidence of every family."""
        columns = self.partition.columns.tolist()
        for v, evidence in enumerate(self.every_log_evidence()[:, -1].tolist()):
            yield Family(columns[v], tuple(columns[max(0, v - self.orders + 1) : v])), evidence
