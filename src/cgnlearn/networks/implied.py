"""The joint distribution that a network implies for its continuous features, and densities of some given others.

A network says how each feature depends on its parents. In the order of the network follow the mean and the scale of
all of them: Σ[v, A] = β Σ[pa, A] and Σ[v, v] = F + β Σ[pa, pa] βᵀ. In a group that was counted by one set of samples
that is Ψ' itself, up to a factor; by maximum likelihood it is the covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels import arguments
from cgnlearn.kernels.limits import FARTHEST
from cgnlearn.networks.estimation import Estimation, Posterior, Terms
from cgnlearn.networks.factors import factorised
from cgnlearn.networks.moments import COMPILED_PAYS

CHUNK = 1 << 20  # numbers of the factors that are held at once


class Node(NamedTuple):
    """A continuous feature with its family, as features of a partition."""

    column: int  # X's
    value: int  # the table's
    posterior: Posterior
    parents: tuple[int, ...]  # columns of X
    given: NDArray[np.intp]  # the parents, in the partition
    own: int  # the feature itself, in the partition

    def of_cell(self, part: Floats, configuration: int) -> Floats:
        """Numbers like n, of all classes."""
        found: Floats = part[configuration]
        return found[:, self.own] if self.posterior.separate else found

    @property
    def units(self) -> tuple[float, float]:
        """Origin and unit."""
        return float(self.posterior.units.origin[self.own]), float(self.posterior.units.unit[self.own])


class Tasks(NamedTuple):
    """Sets of nodes, each with the samples whose densities are wanted."""

    members: NDArray[np.intp]  # (tasks, most members): positions among the nodes
    present: NDArray[np.bool_]  # which of them count
    wanted: NDArray[np.bool_]  # whose densities, given all present before them, are wanted
    task_of_row: NDArray[np.intp]
    rows: NDArray[np.intp]


class Implied(NamedTuple):
    """Mean and scale of some nodes, in each one's own standard units; arrays over (classes, nodes)."""

    nodes: Sequence[Node]
    mean: Floats
    scale: Floats  # (classes, nodes, nodes), of one sample
    rows_behind: Floats  # by which a feature's scale is multiplied to give that of its own family
    shape: Floats
    least_leverage: Floats
    shift: Floats
    own_spread: Floats

    @classmethod
    def of(cls, nodes: Sequence[Node], configurations: Sequence[int], estimation: Estimation) -> Implied:
        """Of nodes with parents before children, in cells by node; parents that are not among them are left out."""
        n, n_classes = len(nodes), nodes[0].posterior.n.shape[1]
        place = {node.column: i for i, node in enumerate(nodes)}
        mean, rows_behind, shape, least = np.ones((4, n_classes, n))
        shift, own_spread = np.zeros((2, n_classes, n))
        scale = np.zeros((n_classes, n, n))
        shared = _shared_scale(nodes, configurations)
        for i, (node, configuration) in enumerate(zip(nodes, configurations, strict=True)):
            posterior = node.posterior
            shape[:, i] = node.of_cell(posterior.shape, configuration)
            if estimation.averages:
                rows_behind[:, i] = 2 * shape[:, i]
            least[:, i] = node.of_cell(posterior.least_leverage, configuration)
            if posterior.shift is not None and posterior.own_spread is not None:
                shift[:, i] = posterior.shift[configuration, :, node.own]
                own_spread[:, i] = posterior.own_spread[configuration, :, node.own]
            if shared is not None:
                mean[:, i] = posterior.centre[configuration][:, node.own]
                continue
            kept = [(place[column], at) for column, at in zip(node.parents, node.given, strict=True) if column in place]
            before = [where for where, _ in kept]
            members = np.array([*(at for _, at in kept), node.own], np.intp)
            own = posterior.scale[configuration][:, posterior.pairs.place(members[:, None], members)]
            centre = posterior.centre[configuration][:, members]
            slopes, spread = _regression(own, estimation)
            mean[:, i] = centre[:, -1]
            scale[:, i, i] = spread / rows_behind[:, i]
            if not kept:
                continue
            # The same column may have other units in another family.
            origin, unit = np.array([nodes[where].units for where in before]).T
            theirs = posterior.units.unit[members[:-1]]
            centre = (centre[:, :-1] * theirs + posterior.units.origin[members[:-1]] - origin) / unit
            slopes = slopes * (unit / theirs)
            mean[:, i] += (slopes * (mean[:, before] - centre)).sum(axis=1)
            across = (slopes[:, None] @ scale[:, before, :i])[:, 0]
            scale[:, i, :i] = scale[:, :i, i] = across
            scale[:, i, i] += (across[:, before] * slopes).sum(axis=1)
        if shared is not None:
            scale = shared / rows_behind[:, :1, None]
        return cls(nodes, mean, scale, rows_behind, shape, least, shift, own_spread)

    def standard(self, table: Table, rows: NDArray[np.intp]) -> Floats:
        """The samples' values in the nodes' units, 0 where they are missing: (samples, nodes)."""
        origin, unit = np.array([node.units for node in self.nodes]).T
        values = table.values[rows][:, [node.value for node in self.nodes]]
        with np.errstate(over="ignore"):
            standard = np.clip((values - origin) / unit, -FARTHEST, FARTHEST)
        return np.where(np.isnan(values), 0.0, standard)

    def log_densities(self, table: Table, tasks: Tasks, estimation: Estimation, out: Floats) -> None:
        """Put the wanted densities into ``out``: (rows of the table, columns of X, classes)."""
        size, n_classes = tasks.members.shape[1], len(self.mean)
        order = np.argsort(tasks.task_of_row, kind="stable")
        step = max(1, CHUNK // (n_classes * size**2))
        for start in range(0, len(order), step):
            here = order[start : start + step]
            rows, of_task = tasks.rows[here], tasks.task_of_row[here]
            values = self.standard(table, rows)
            if values.size * size**2 < COMPILED_PAYS or not self._compiled(
                values, rows, of_task, tasks, estimation, out
            ):
                self._put(rows, of_task, tasks, self._whitened(values, of_task, tasks, estimation), estimation, out)

    def _compiled(
        self,
        values: Floats,
        rows: NDArray[np.intp],
        of_task: NDArray[np.intp],
        tasks: Tasks,
        estimation: Estimation,
        out: Any,
    ) -> bool:
        """The same by compiled loops; False if rounding has made a scale singular."""
        from cgnlearn.kernels.subsets import put_densities

        one = np.ones(1)
        shapes = self.shape[..., None] + np.arange(tasks.members.shape[1]) / 2
        highest = estimation.log_density(Terms(of_task, of_task, 0, np.zeros(1), one, 1.0, shapes, one))
        columns = np.array([node.column for node in self.nodes])
        log_unit = np.log([node.units[1] for node in self.nodes])
        behind = self.rows_behind, self.shape, self.least_leverage, self.shift, self.own_spread
        highest = np.broadcast_to(highest, shapes.shape)
        joint = arguments.Joint(self.mean, self.scale, columns, log_unit, *behind, highest, estimation.averages)
        subsets = arguments.Subsets(tasks.members, tasks.present, tasks.wanted)
        return put_densities(values, rows, of_task, subsets, joint, out)

    def _whitened(self, values: Floats, of_task: NDArray[np.intp], tasks: Tasks, estimation: Estimation) -> _Whitened:
        first, last = int(of_task[0]), int(of_task[-1])
        factor = self._factors(tasks.members[first : last + 1], tasks.present[first : last + 1], estimation)[
            of_task - first
        ]
        members, present = tasks.members[of_task], tasks.present[of_task]
        centred = np.take_along_axis(values, members, axis=1)[:, None] - self.mean[:, members].swapaxes(0, 1)
        centred = np.where(present[:, None], centred, 0.0)  # (samples, classes, members)
        residual, white = np.empty_like(centred), np.empty_like(centred)
        for j in range(members.shape[1]):
            residual[..., j] = centred[..., j] - np.einsum("rci,rci->rc", factor[..., j, :j], white[..., :j])
            white[..., j] = residual[..., j] / factor[..., j, j]
        distance = np.zeros_like(white)
        np.cumsum(np.square(white[..., :-1]), axis=-1, out=distance[..., 1:])
        spread = np.square(np.diagonal(factor, axis1=-2, axis2=-1))
        return _Whitened(*(part.swapaxes(1, 2) for part in (residual, spread, distance)))

    def _factors(self, members: NDArray[np.intp], present: NDArray[np.bool_], estimation: Estimation) -> Floats:
        """Cholesky factors, 1 where a member does not count: (tasks, classes, members, members)."""
        both = present[:, :, None] & present[:, None, :]
        scale = self.scale[:, members[:, :, None], members[:, None, :]].swapaxes(0, 1)
        return factorised(np.where(both[:, None], scale, np.eye(members.shape[1])), always=estimation.averages)

    def _put(
        self,
        rows: NDArray[np.intp],
        of_task: NDArray[np.intp],
        tasks: Tasks,
        found: _Whitened,
        estimation: Estimation,
        out: Floats,
    ) -> None:
        """The wanted densities of some samples."""
        ask, at = np.nonzero(tasks.wanted[of_task])
        which = tasks.members[of_task[ask], at]
        n_before = (np.cumsum(tasks.present, axis=1) - 1)[of_task[ask], at]
        behind = self.rows_behind[:, which].T
        columns = np.array([node.column for node in self.nodes])[which]
        unit = np.array([node.units[1] for node in self.nodes])[which, None]
        terms = Terms(
            rows[ask],
            columns,
            0,
            found.residual[ask, at] + self.shift[:, which].T,
            found.spread[ask, at] * behind + self.own_spread[:, which].T,
            self.least_leverage[:, which].T + found.distance[ask, at] / behind,
            self.shape[:, which].T + n_before[:, None] / 2,
            unit,
        )
        out[rows[ask], columns] = estimation.log_density(terms)


class _Whitened(NamedTuple):
    """What densities of samples are made of: (samples, members, classes)."""

    residual: Floats
    spread: Floats
    distance: Floats  # of the members present before


def _shared_scale(nodes: Sequence[Node], configurations: Sequence[int]) -> Floats | None:
    """Ψ' of nodes that are a group, counted by one set of samples: (classes, nodes, nodes)."""
    posterior = nodes[0].posterior
    if posterior.separate or any(
        node.posterior is not posterior or len(node.given) < i or configuration != configurations[0]
        for i, (node, configuration) in enumerate(zip(nodes, configurations, strict=True))
    ):
        return None
    own = np.array([node.own for node in nodes])
    return posterior.scale[configurations[0]][:, posterior.pairs.place(own[:, None], own)]


def _regression(scale: Floats, estimation: Estimation) -> tuple[Floats, Floats]:
    """Slopes on all members but the last, and what is left of its scale; of matrices (classes, members, members)."""
    factor = factorised(scale, always=estimation.averages)
    spread = np.square(factor[:, -1, -1])
    n_given = scale.shape[-1] - 1
    slopes = np.zeros((len(scale), n_given))
    for label in range(len(scale) if n_given else 0):
        slopes[label] = cho_solve((factor[label, :-1, :-1], True), scale[label, :-1, -1])
    return slopes, spread
