"""The lattice: the solver of ordered columns, whose parents are columns just before them.

In a k-BAND the parents of a feature are the k - 1 features before it, in a k-BOX those before it in its group of k.
Both shapes, for every k up to K, need the K orders 0..K-1 of each feature only, and the recursion over orders gives
all of them at the cost of the last one (``docs/ordered.md``). The loops are in `cgnlearn.kernels.lattice`; stretches of
features run in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns, Floats, rows_by_cell
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Chain, LeaveOneOutSums, MixedLaw, PathLaw, PathSums, RemovedPath, Stretch
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Terms
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.solver import Singular, rounding, standard_values

SHAPES = ("band", "box")
STRETCH = 2048  # features of one job; each job repeats the K - 1 features before its own
WIDTH = 32  # samples that a recursion processes together
WIDTH_LEAVE_ONE_OUT = 128  # the same for leave-one-out, which does more for each sample
BATCH = 1 << 22  # values of the samples that are predicted together: 32 megabytes


class EveryOrder(NamedTuple):
    """Log likelihoods of both shapes at every k."""

    log_likelihood: Floats  # (shapes, k, samples, classes)
    exists: NDArray[np.bool_]  # whether all regressions exist, up to rounding: (shapes, k)


@dataclass(frozen=True, eq=False)
class Lattice:
    """A `Solver` for a chain, with the regressions of the order of its windows and of all lower orders."""

    partition: Partition  # of a chain
    posterior: Posterior
    estimation: Estimation

    @property
    def orders(self) -> int:
        """Number of orders; order 0 has no parents."""
        assert self.partition.k is not None
        return self.partition.k

    @cached_property
    def scale(self) -> Floats:
        """Ψ'[v, v-d]: (classes, features, distances d), 0 for absent features.

        With maximum likelihood it is 0 also where a class has no variance, so that no regression exists. If all classes
        share one scale, the first axis has length 1.
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
        """Index of the scale of a class."""
        return min(label, len(self.scale) - 1)

    def _of_scale(self, at: int) -> NDArray[np.intp]:
        """The classes with this scale: all if they share one."""
        return np.arange(len(self.centre)) if len(self.scale) < len(self.centre) else np.array([at])

    @cached_property
    def centre(self) -> Floats:
        """m' of the features, 0 for absent ones: (classes, features)."""
        return np.where(self.posterior.absent, 0.0, self.posterior.centre[0])

    @cached_property
    def n_parents(self) -> NDArray[np.intp]:
        """Number of parents that are not absent: (features, orders)."""
        child = np.arange(self.partition.n_features)[:, None]
        return self._n_before[child] - self._n_before[np.maximum(child - np.arange(self.orders), 0)]

    @cached_property
    def _n_before(self) -> NDArray[np.intp]:
        """Number of features before each one that are not absent: (features + 1,)."""
        return np.concatenate([[0], np.cumsum(~self.posterior.absent)])

    @cached_property
    def stretches(self) -> dict[tuple[int, int], Stretch]:
        """Regressions of each stretch, by scale and start."""
        from cgnlearn.kernels.lattice import regressions

        found = self._in_threads(lambda at, *bounds: (at, regressions(self.scale[at], *bounds)), len(self.scale))
        return {(at, stretch.start): stretch for at, stretch in found}

    def _of_features(self, name: str) -> NDArray[Any]:
        """A field of the stretches for all features: (scales, features, …)."""
        parts: list[list[NDArray[Any]]] = [[] for _ in self.scale]
        for (at, _), stretch in self.stretches.items():
            parts[at].append(getattr(stretch, name)[stretch.start - stretch.first :])
        return np.array([np.concatenate(of_scale) for of_scale in parts])

    @cached_property
    def spread(self) -> Floats:
        """F of every order: (scales, features, orders)."""
        return self._of_features("spread")

    @cached_property
    def existing(self) -> NDArray[np.int64]:
        """Number of orders whose regression exists: (scales, features)."""
        return self._of_features("existing")

    @property
    def is_regular(self) -> bool:
        """Whether every regression exists: with a prior, unless rounding has made a scale singular."""
        return bool(((self.existing == self.orders) | self.posterior.absent).all())

    def singular(self) -> Singular | None:
        needed = np.minimum(np.arange(self.partition.n_features) + 1, self.orders)
        bad = np.argwhere(self.existing < needed)
        if not len(bad):
            return None
        label, at = (int(i) for i in bad[0])
        n = float(self.posterior.n[0, label])
        return Singular(int(self.partition.columns[at]), 0, label, n, int(needed[at]) - 1)

    # ---- compiled loops

    def _in_threads(self, function: Callable[[int, int, int], Any], n: int) -> list[Any]:
        """Call ``function(label, start, stop)`` for all stretches of features and n classes."""
        from cgnlearn.kernels.compilation import in_threads

        m = self.partition.n_features
        jobs = [(label, start) for label in range(n) for start in range(0, m, STRETCH)]
        return in_threads(lambda job: function(*job, min(job[1] + STRETCH, m)), jobs)

    def batches(self, table: Table, width: int = WIDTH) -> Iterator[tuple[slice, int, Floats]]:
        """Samples, the width, and values in standard units (features, samples), padded to a multiple of the width."""
        m = self.partition.n_features
        width = min(width, -(-table.n_samples // 8) * 8)
        step = max(1, BATCH // (m * width)) * width
        for start in range(0, table.n_samples, step):
            rows = slice(start, min(start + step, table.n_samples))
            values = standard_values(table, rows, self.partition.values, self.posterior.units)
            padded = np.zeros((m, -(-values.shape[1] // width) * width))
            padded[:, : values.shape[1]] = values
            padded[self.posterior.absent] = 0.0
            yield rows, width, padded

    def every_order(self, table: Table, shapes: tuple[str, ...] = SHAPES) -> EveryOrder:
        """Log likelihoods of the samples under each shape (``"band"``, ``"box"``) and each k up to K."""
        from cgnlearn.kernels.lattice_path import every_order

        orders, n_classes = self.orders, table.schema.n_classes
        wanted = np.array([shape in shapes for shape in SHAPES])
        requested = [SHAPES.index(shape) for shape in shapes]  # only these are allocated
        total = np.zeros((len(shapes), orders, table.n_samples, n_classes))
        exists = np.ones(total.shape[:2], bool)

        def of_stretch(width: int, values: Floats, label: int, start: int, _: int) -> tuple[int, PathSums]:
            stretch, chain, law = self.stretches[self._of_class(label), start], self._chain(label), self._law(label)
            constant, varying = np.zeros((2, orders)), np.zeros((2, orders, values.shape[1]))
            sums = PathSums(constant, varying, np.zeros((2, orders), np.int64))
            every_order(width, stretch, values, chain, law, wanted, sums)
            return label, sums

        for rows, width, values in self.batches(table):
            for label, sums in self._in_threads(partial(of_stretch, width, values), n_classes):
                by_order = sums.constant[requested][..., None] + sums.varying[requested]
                total[:, :, rows, label] += by_order[:, :, : rows.stop - rows.start]
                exists &= sums.missing[requested] == 0
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
        from cgnlearn.kernels.lattice_band import band

        n_classes, features = len(self.centre), np.arange(self.partition.n_features)
        n_parents = self.n_parents[:, -1].copy()
        existing = (self.existing > np.minimum(features, self.orders - 1)) & ~self.posterior.absent
        chains, laws = [self._chain(c) for c in range(n_classes)], [self._law(c) for c in range(n_classes)]
        total = np.zeros((n_classes, table.n_samples))
        for label in range(n_classes):
            at = self._of_class(label)
            there = existing[at]
            spread = self.spread[at, there, -1] + chains[label].own_spread[there]
            terms = laws[label].base[n_parents[there]] - 0.5 * np.log(spread) - chains[label].log_unit[there]
            total[label] = terms.sum()

        def of_stretch(width: int, values: Floats, label: int, start: int, _: int) -> tuple[int, Floats]:
            at, varying = self._of_class(label), np.zeros(values.shape[1])
            band(width, self.stretches[at, start], values, chains[label], laws[label], n_parents, existing[at], varying)
            return label, varying

        for rows, width, values in self.batches(table):
            for label, varying in self._in_threads(partial(of_stretch, width, values), n_classes):
                total[label, rows] += varying[: rows.stop - rows.start]
        return total.T

    def terms(self, table: Table) -> Iterator[Terms]:
        posterior = self.posterior
        present = np.flatnonzero(~posterior.absent)
        columns, unit = self.partition.columns[present], posterior.units.unit[present, None]
        n_parents = self.n_parents[present, -1:]
        for rows, width, values in self.batches(table):
            n = rows.stop - rows.start
            residual = np.zeros((table.schema.n_classes, *values.shape))
            leverage = np.zeros_like(residual)
            self._in_threads(partial(self._fill_last_order, width, values, residual, leverage), len(residual))
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
        """Leave-one-out `every_order` of training samples."""
        from cgnlearn.kernels.lattice_leave_one_out import every_order_leave_one_out

        orders, n_classes, averages = self.orders, table.schema.n_classes, self.estimation.averages
        posterior = self.posterior
        removal = Removal.of(table, np.arange(table.n_samples), 0, posterior, self.estimation)
        kept = np.maximum(1 - removal.lighter / posterior.n[0][:, None], 1e-300)  # share of n that remains
        wanted = np.array([shape in shapes for shape in SHAPES])
        total = np.zeros((2, orders, table.n_samples, n_classes))
        counts = np.zeros((2, orders, orders))
        exists = np.ones((2, orders), bool)

        def of_stretch(
            width: int, chain: Chain, removed: list[RemovedPath], at: int, start: int, _: int
        ) -> tuple[int, LeaveOneOutSums]:
            n_scale, n_padded = len(removed[at].shape), removed[at].rows.shape[1]
            varying, of_parents = np.zeros((n_scale, 2, orders, n_padded)), np.zeros((2, orders, orders))
            sums = LeaveOneOutSums(np.zeros((2, orders)), varying, of_parents, np.zeros((2, orders), np.int64))
            every_order_leave_one_out(width, self.stretches[at, start], removed[at], chain, wanted, lowest, sums)
            return at, sums

        for group, rows in rows_by_cell(2 * removal.labels + removal.alone, 2 * n_classes):
            owner, chain = group // 2, self._chain(group // 2)
            part, of_part = table.rows(rows), removal.only(rows)
            for batch, width, values in self.batches(part, WIDTH_LEAVE_ONE_OUT):
                of_batch = values, of_part.only(batch), kept[:, rows[batch]], owner
                removed = [self._removed(at, *of_batch) for at in range(len(self.scale))]
                counts[:] = 0.0
                for at, sums in self._in_threads(partial(of_stretch, width, chain, removed), len(self.scale)):
                    for label, varying in zip(self._of_scale(at), sums.varying, strict=True):
                        by_order = sums.constant[:, :, None] + varying[..., : batch.stop - batch.start]
                        total[:, :, rows[batch], label] += by_order
                    counts += sums.counts if at == 0 else 0.0
                    exists &= sums.missing == 0
        for label in range(n_classes):
            # The terms that depend on the number of parents alone, with the reduced n.
            lighter = removal.lighter[label]
            shape = posterior.shape[0, label] + np.arange(orders)[:, None] / 2 - lighter / 2
            if averages:
                base = densities.student(0.0, 1.0, shape)
            else:
                base = np.full(shape.shape, densities.normal(0.0, 1.0)) + 0.5 * np.log(kept[label])
            total[..., label] += counts @ base
            if not averages:  # a class without samples has no variance
                total[:, :, removal.alone & (removal.labels == label), label] = -np.inf
        places = [SHAPES.index(shape) for shape in shapes]
        return EveryOrder(total[places], exists[places])

    def _removed(self, at: int, values: Floats, removal: Removal, kept: Floats, owner: int) -> RemovedPath:
        """The removal of samples of one class from one scale; each is the only one of its class, or none is."""
        posterior, averages = self.posterior, self.estimation.averages
        n, n_padded = len(removal.labels), values.shape[1]
        labels = self._of_scale(at)
        # Without its only sample a class is centred at the mean over all samples.
        alone = bool(removal.alone[0])
        centre = np.where(posterior.absent, 0.0, posterior.overall) if alone else self.centre[owner]
        distance = (centre - self.centre[labels]).T.copy()
        if self.estimation.sharing == 0:
            distance = distance[:, :0]
            centre = centre if at == owner else self.centre[at]
        rows = values - centre[:, None]
        rows[:, n:] = 0.0

        def padded(part: Floats, value: float) -> Floats:
            return np.concatenate([part, np.full((*part.shape[:-1], n_padded - n), value)], axis=-1)

        return RemovedPath(
            rows,
            distance,
            int(np.flatnonzero(labels == owner)[0]) if owner in labels else -1,
            padded(removal.before[labels], 2.0),
            padded(removal.down[labels[0]], 0.0),  # the same for all classes of a scale
            padded(removal.growth, 1.0),
            posterior.shape[0, labels],
            padded((removal.lighter if averages else kept)[labels], 0.0),
            averages,
        )

    def leave_one_out(self, table: Table) -> Floats:
        return self.every_order_leave_one_out(table, ("band",), lowest=self.orders).log_likelihood[0, -1]

    # ---- mixtures of orders

    @cached_property
    def exists(self) -> NDArray[np.bool_]:
        """Whether a feature has as many features before it, and the regressions of all classes exist.

        The shape is (features, orders).
        """
        order, n_before = np.arange(self.orders), np.arange(self.partition.n_features)
        n_orders = np.minimum(self.existing.min(axis=0), n_before + 1)
        return (order < n_orders[:, None]) & ~self.posterior.absent[:, None]

    def add_densities(self, batch: tuple[int, Floats], log_weight: Floats, mixtures: Floats) -> None:
        """Add the densities of all orders to log mixtures (classes, features, samples).

        ``batch`` is a width and values from `batches`; ``log_weight`` (features, orders) is -inf where there is no
        regression. Mixtures start at -inf.
        """
        from cgnlearn.kernels.lattice_mixtures import add_densities

        width, values = batch

        def of_stretch(label: int, start: int, _: int) -> None:
            of_class, stretch = self._law(label), self.stretches[self._of_class(label), start]
            shape = of_class.shape + np.arange(self.orders) / 2
            law = MixedLaw(of_class.base, shape, of_class.least, self.n_parents, log_weight)
            add_densities(width, stretch, values, self.centre[label], law, mixtures[label])

        self._in_threads(of_stretch, len(mixtures))

    # ---- evidence

    def every_log_evidence(self) -> Floats:
        """Log evidence of every feature at every order, summed over classes: (features, orders)."""
        from cgnlearn.kernels.lattice import log_dets

        assert isinstance(self.estimation, Bayes)
        prior, posterior = self.posterior.prior, self.posterior
        assert prior is not None
        log_strength, regressions = self.estimation.log_strength_ratio(prior.strength, posterior.strength)
        n = posterior.n[0, regressions]
        shape = np.broadcast_to(prior.shape[regressions], n.shape)
        scale = np.broadcast_to(prior.scale[regressions], (len(n), self.partition.n_features))
        log_scale = np.cumsum(np.where(posterior.absent, 0.0, np.log(scale)), axis=1)
        log_scale = np.concatenate([np.zeros((len(n), 1)), log_scale], axis=1)
        log_gammas = densities.log_gamma_ratio(n[:, None], shape[:, None] + np.arange(self.orders) / 2)
        log_det = np.zeros(self.scale.shape)

        def of_stretch(at: int, start: int, stop: int) -> tuple[int, int, Floats]:
            log_dets(self.stretches[at, start], log_det[at])
            child = np.arange(start, stop)[:, None]
            of_parents = log_scale[at, child] - log_scale[at, np.maximum(child - np.arange(self.orders), 0)]
            spread = self.spread[at, start:stop]
            evidence = densities.regression_evidence(
                n[at],
                shape[at] + self.n_parents[start:stop] / 2,
                scale[at, child],
                np.where(spread > 0, spread, 1.0),  # not used where there is no regression
                of_parents - log_det[at, start:stop],
                log_strength[0, at],
                log_gammas[at][self.n_parents[start:stop]],
            )
            return start, stop, evidence - n[at] * np.log(posterior.units.unit[child])

        total = np.zeros(self.scale.shape[1:])
        for start, stop, evidence in self._in_threads(of_stretch, len(log_det)):
            total[start:stop] += evidence
        total[posterior.absent] = 0.0
        return total

    def log_evidences(self) -> Iterator[tuple[Columns, Floats]]:
        yield self.partition.columns, self.every_log_evidence()[:, -1]
