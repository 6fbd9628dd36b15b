"""Exact leave-one-out without refits: what a posterior loses when a training sample is removed.

The formulas are in `cgnlearn.kernels.downdate`. The prior, the standard units and the absent features do not change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats, rows_by_cell
from cgnlearn.data.table import Table
from cgnlearn.kernels import downdate
from cgnlearn.kernels.arguments import Removed, Scales
from cgnlearn.kernels.limits import SINGULAR
from cgnlearn.networks.estimation import Estimation, Posterior
from cgnlearn.networks.factors import whitened
from cgnlearn.networks.layout import Cells

Rows = NDArray[np.intp]


def leverages_of_few(
    standard: Floats, scales: Scales, removed: Removed, n_given: int, logs: bool, sums: Floats
) -> None:
    """`cgnlearn.kernels.leave_one_out.leave_one_out_leverages` of few samples in standard units, without compiling.

    ``standard`` is (blocks, members, samples).
    """
    centre, factor = scales
    n_blocks, size, n_samples = standard.shape
    own_residual = standard - centre[removed.label, :, :, None]
    for label in range(len(centre)):
        own = label == removed.label
        lost = own or removed.crossing
        of_class = factor[min(label, len(factor) - 1)]
        before, loss = removed.before[label], removed.loss[label]
        residual = own_residual if own else standard - centre[label, :, :, None]
        far = whitened(of_class, residual.copy())
        near = whitened(of_class, own_residual.copy()) if lost and not own else far
        for place, last in ((0, size), (2, n_given))[: len(sums) // 2]:
            q_cc, q_ck, q_kk = (
                np.einsum("bms,bms->bs", left[:, :last], right[:, :last])
                for left, right in ((far, far), (far, near), (near, near))
            )
            g = downdate.left_of_determinant(loss, q_kk) if lost else np.ones((n_blocks, n_samples))
            if own:
                whole = downdate.own_leverage(before, removed.growth, q_kk, g)
            else:
                whole = downdate.other_leverage(before, loss, q_cc, q_ck, g) if lost else before + q_cc
            if logs:
                whole = np.log(whole)
            elif lost:
                whole = np.where(own and place == 0, np.where(g <= SINGULAR * size, np.inf, whole / g), whole / g)
            sums[place, label] += whole.sum(axis=0)
            sums[place + 1, label] += np.log(g).sum(axis=0)


class Removal(NamedTuple):
    """The removal of each of some samples of one configuration."""

    labels: Rows  # (samples,)
    before: Floats  # h of a sample at the centre: (classes, samples)
    down: Floats  # the multiple of e eᵀ that the scale loses: (classes, samples)
    growth: Floats  # a: the factor by which the distance to the centre of the own class increases: (samples,)
    lighter: Floats  # what n loses: (classes, samples)
    alone: NDArray[np.bool_]  # whether it is the only sample of its class, then centred at the overall mean: (samples,)

    @classmethod
    def of(cls, table: Table, rows: Rows, configuration: int, posterior: Posterior, estimation: Estimation) -> Removal:
        """The removal of labelled samples of one configuration."""
        assert table.labels is not None
        weight = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        return cls._of(table.labels[rows], weight, configuration, posterior, estimation)

    @classmethod
    def by_cell(
        cls, table: Table, cells: Cells, most: int, posterior: Posterior, estimation: Estimation
    ) -> Iterator[tuple[int, int, Rows, Removal]]:
        """Configuration, class, samples (at most ``most``) and their removal, cell by cell.

        Samples that are the only ones of their class come separately. Without weights, all samples of a cell have the
        same removal, which is returned once.
        """
        assert table.labels is not None
        n_classes = posterior.n.shape[1]
        by_configuration: dict[int, Removal] = {}
        for place, rows in rows_by_cell(cells.index(table) * n_classes + table.labels, cells.n * n_classes):
            configuration, label = divmod(place, n_classes)
            if table.weights is None:
                if configuration not in by_configuration:
                    one = np.where(posterior.own_n[configuration] > 0, 1.0, 0.0)  # 0 where a class has no samples
                    of_classes = cls._of(np.arange(n_classes), one, configuration, posterior, estimation)
                    by_configuration[configuration] = of_classes
                of_class = by_configuration[configuration].only(slice(label, label + 1))
                for start in range(0, len(rows), most):
                    yield configuration, label, rows[start : start + most], of_class
                continue
            removal = cls._of(table.labels[rows], table.weights[rows], configuration, posterior, estimation)
            for same in (np.flatnonzero(removal.alone), np.flatnonzero(~removal.alone)):
                for start in range(0, len(same), most):
                    part = same[start : start + most]
                    yield configuration, label, rows[part], removal.only(part)

    def only(self, rows: Rows | slice) -> Removal:
        """The removal of some of the samples."""
        parts: Iterator[Any] = (part[..., rows] for part in self)
        return Removal(*parts)

    def leverages(self, label: int, q_kk: Floats, q_ck: Floats, q_cc: Floats) -> tuple[Floats, Floats]:
        """g and h after a block, for one class, from the products defined in `cgnlearn.kernels.downdate`."""
        before, down = self.before[label], self.down[label]
        g = downdate.left_of_determinant(down, q_kk)
        own = downdate.own_leverage(before, self.growth, q_kk, g)
        return g, np.where(self.labels == label, own, downdate.other_leverage(before, down, q_cc, q_ck, g)) / g

    @classmethod
    def _of(
        cls, labels: Rows, weight: Floats, configuration: int, posterior: Posterior, estimation: Estimation
    ) -> Removal:
        own = labels == np.arange(posterior.n.shape[1])[:, None]
        shares = np.where(own, 1.0, estimation.sharing)
        behind = (posterior.strength if posterior.follows_prior else posterior.own_n)[configuration][labels]
        left = behind - weight
        alone = left <= 1e-9 * behind
        growth = np.where(alone, 1.0, behind / np.where(alone, 1.0, left))
        strength = posterior.strength[configuration][:, None] - np.where(own, weight, 0.0)
        if posterior.prior is not None:
            strength = np.maximum(strength, posterior.prior.strength[:, None])  # rounding may leave less
        down = shares * np.where(alone, 0.0, weight * growth)
        if not estimation.averages:
            down /= posterior.n[configuration][:, None]  # where the scale is a variance
        return cls(labels, 1 + 1 / strength, down, growth, shares * weight, alone)
