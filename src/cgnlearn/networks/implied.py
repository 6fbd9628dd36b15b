"""The joint distribution that a network implies for its continuous features, and densities of some given others.

The mean and the scale of all features follow from the regressions, parents before children:
Σ[v, A] = β Σ[pa, A] and Σ[v, v] = F + β Σ[pa, pa] βᵀ. In a group counted from one set of samples the scale is a
multiple of Ψ'; by maximum likelihood it is the covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels import arguments
from cgnlearn.kernels.limits import FARTHEST
from cgnlearn.networks.estimation import Estimation, Posterior, Terms
from cgnlearn.networks.factors import factorised, sums_before, whitened
from cgnlearn.networks.layout import Cells
from cgnlearn.networks.moments import COMPILED_PAYS

CHUNK = 1 << 20  # entries of factors that are held at once


class Node(NamedTuple):
    """A continuous feature with its family."""

    column: int  # of X
    value: int  # its position among the values of a table
    posterior: Posterior
    parents: tuple[int, ...]  # columns of X
    given: NDArray[np.intp]  # positions of the parents among the features of the partition
    own: int  # position of the feature itself
    cells: Cells  # the configurations of its discrete parents

    def of_cell(self, part: Floats, configuration: int) -> Floats:
        """``n``, ``shape`` or ``least_leverage`` of the posterior in a configuration: (classes,)."""
        of_classes: Floats = part[configuration]
        return of_classes[:, self.own] if self.posterior.separate else of_classes

    @property
    def units(self) -> tuple[float, float]:
        """Origin and unit."""
        return float(self.posterior.units.origin[self.own]), float(self.posterior.units.unit[self.own])


class Tasks(NamedTuple):
    """Ordered sets of nodes, each with the samples whose log densities are wanted."""

    members: NDArray[np.intp]  # positions among the nodes, filled up to the longest: (tasks, members)
    present: NDArray[np.bool_]  # false for members that only fill up
    wanted: NDArray[np.bool_]  # members whose densities, given all present before them, are wanted
    task_of_row: NDArray[np.intp]  # the task of each sample
    rows: NDArray[np.intp]  # the samples, as positions in the table


class Implied(NamedTuple):
    """Mean and scale of nodes, each in its own standard units; arrays are (classes, nodes) unless stated."""

    nodes: Sequence[Node]
    estimation: Estimation
    mean: Floats
    scale: Floats  # per unit of ``rows_behind``: (classes, nodes, nodes)
    rows_behind: Floats  # factor from ``scale`` to the scale of the family of a node
    shape: Floats
    least_leverage: Floats
    shift: Floats
    own_spread: Floats

    @classmethod
    def of(
        cls,
        nodes: Sequence[Node],
        configurations: Sequence[int],
        estimation: Estimation,
        kept: Sequence[int] | None = None,
    ) -> Implied:
        """The distribution of nodes, parents before children, given the configuration of each.

        Parents that are not among the nodes are ignored. ``kept`` are the positions of those that are wanted; the
        others are forgotten after their last child.
        """
        n_classes = nodes[0].posterior.n.shape[1]
        shared = _shared_scale(nodes, configurations)
        slots, n = _slots(nodes, kept) if kept is not None else (list(range(len(nodes))), len(nodes))
        place = {node.column: slot for node, slot in zip(nodes, slots, strict=True)}
        mean, rows_behind, shape, least, unit = np.ones((5, n_classes, n))
        shift, own_spread, origin = np.zeros((3, n_classes, n))
        scale = np.zeros((n_classes, n, n))
        for i, node, configuration in zip(slots, nodes, configurations, strict=True):
            posterior = node.posterior
            shape[:, i] = node.of_cell(posterior.shape, configuration)
            if estimation.averages:
                rows_behind[:, i] = 2 * shape[:, i]
            least[:, i] = node.of_cell(posterior.least_leverage, configuration)
            if posterior.shift is not None and posterior.own_spread is not None:
                shift[:, i] = posterior.shift[configuration, :, node.own]
                own_spread[:, i] = posterior.own_spread[configuration, :, node.own]
            origin[:, i], unit[:, i] = node.units
            mean[:, i] = posterior.centre[configuration][:, node.own]
            if shared is not None:
                continue
            there = np.array([column in place for column in node.parents], bool)
            before = [place[column] for column in node.parents if column in place]
            members = np.array([*node.given[there], node.own], np.intp)
            own = posterior.scale[configuration][:, posterior.pairs.place(members[:, None], members)]
            slopes, spread = _regression(own, estimation)
            if before:
                # Units of a column may differ between families.
                theirs = posterior.units.unit[members[:-1]]
                centre = posterior.centre[configuration][:, members[:-1]] * theirs
                centre = (centre + posterior.units.origin[members[:-1]] - origin[:, before]) / unit[:, before]
                slopes = slopes * (unit[:, before] / theirs)
                mean[:, i] += (slopes * (mean[:, before] - centre)).sum(axis=1)
            across = (slopes[:, None] @ scale[:, before])[:, 0]
            scale[:, i] = scale[:, :, i] = across
            scale[:, i, i] = spread / rows_behind[:, i] + (across[:, before] * slopes).sum(axis=1)
        n_kept = len(nodes if kept is None else kept)
        nodes = nodes if kept is None else [nodes[i] for i in kept]
        if shared is not None:
            at = np.arange(n_kept) if kept is None else np.array(kept)
            scale = shared[:, at[:, None], at] / rows_behind[:, :1, None]
        else:
            scale = np.ascontiguousarray(scale[:, :n_kept, :n_kept])
        laws = (each[:, :n_kept] for each in (rows_behind, shape, least, shift, own_spread))
        return cls(nodes, estimation, mean[:, :n_kept], scale, *map(np.ascontiguousarray, laws))

    def log_density(self, standard: Floats, members: NDArray[np.intp], n_given: int) -> Floats:
        """Log density of the last of some nodes given the first: (classes, samples).

        ``standard`` are the values in standard units, (samples, nodes), and none of those members' is missing.
        """
        factor = factorised(self.scale[:, members[:, None], members], always=self.estimation.averages)
        centred = standard[:, members].T - self.mean[:, members, None]
        white = whitened(factor, centred)
        wanted = members[n_given:]
        pivot = np.diagonal(factor, axis1=1, axis2=2)[:, n_given:, None]
        behind = self.rows_behind[:, wanted, None]
        terms = Terms(
            slice(None),
            np.array([self.nodes[i].column for i in wanted]),
            0,
            white[:, n_given:] * pivot + self.shift[:, wanted, None],
            np.square(pivot) * behind + self.own_spread[:, wanted, None],
            self.least_leverage[:, wanted, None] + sums_before(np.square(white), axis=1)[:, n_given:] / behind,
            self.shape[:, wanted, None] + np.arange(n_given, len(members))[:, None] / 2,
            np.array([self.nodes[i].units[1] for i in wanted])[:, None],
        )
        return self.estimation.log_density(terms).sum(axis=1)

    def standard(self, table: Table, rows: NDArray[np.intp]) -> Floats:
        """Values in standard units, 0 where they are missing: (samples, nodes)."""
        origin, unit = np.array([node.units for node in self.nodes]).T
        values = table.values[rows][:, [node.value for node in self.nodes]]
        with np.errstate(over="ignore"):
            standard = np.clip((values - origin) / unit, -FARTHEST, FARTHEST)
        return np.where(np.isnan(values), 0.0, standard)

    def log_densities(self, table: Table, tasks: Tasks, out: Floats) -> None:
        """Put the wanted log densities into ``out``: (samples of the table, columns of X, classes)."""
        size, n_classes = tasks.members.shape[1], len(self.mean)
        order = np.argsort(tasks.task_of_row, kind="stable")
        step = max(1, CHUNK // (n_classes * size**2))
        for start in range(0, len(order), step):
            here = order[start : start + step]
            part = tasks._replace(task_of_row=tasks.task_of_row[here], rows=tasks.rows[here])
            values = self.standard(table, part.rows)
            if values.size * size**2 < COMPILED_PAYS or not self._put_compiled(values, part, out):
                self._put(values, part, out)

    def _put_compiled(self, values: Floats, tasks: Tasks, out: Floats) -> bool:
        """Put log densities into ``out`` by compiled loops; False if rounding has made a scale singular."""
        from cgnlearn.kernels.subsets import put_densities

        subsets = arguments.Subsets(tasks.members, tasks.present, tasks.wanted)
        joint = self.arguments(tasks.members.shape[1])
        return put_densities(values, tasks.rows, tasks.task_of_row, subsets, joint, out)

    def arguments(self, most: int) -> arguments.Joint:
        """What compiled loops need, for sets of at most so many nodes."""
        none, one = np.zeros(0, np.intp), np.ones(1)
        shapes = self.shape[..., None] + np.arange(most) / 2
        highest = self.estimation.log_density(Terms(none, none, 0, np.zeros(1), one, 1.0, shapes, one))
        columns = np.array([node.column for node in self.nodes])
        log_unit = np.log([node.units[1] for node in self.nodes])
        behind = self.rows_behind, self.shape, self.least_leverage, self.shift, self.own_spread
        highest = np.broadcast_to(highest, shapes.shape)
        return arguments.Joint(self.mean, self.scale, columns, log_unit, *behind, highest, self.estimation.averages)

    def _put(self, values: Floats, tasks: Tasks, out: Floats) -> None:
        """Put log densities into ``out``; tasks are sorted."""
        of_row = tasks.task_of_row
        members, present = tasks.members[of_row[0] : of_row[-1] + 1], tasks.present[of_row[0] : of_row[-1] + 1]
        both = present[:, :, None] & present[:, None, :]
        scale = self.scale[:, members[:, :, None], members[:, None, :]].swapaxes(0, 1)
        scale = np.where(both[:, None], scale, np.eye(members.shape[1]))  # 1 for members that are not present
        factor = factorised(scale, always=self.estimation.averages)[of_row - of_row[0]]
        members, present = tasks.members[of_row], tasks.present[of_row]
        centred = np.take_along_axis(values, members, axis=1)[:, None] - self.mean[:, members].swapaxes(0, 1)
        centred = np.where(present[:, None], centred, 0.0)  # (samples, classes, members)
        residual, white = np.empty_like(centred), np.empty_like(centred)
        for j in range(members.shape[1]):
            residual[..., j] = centred[..., j] - np.einsum("rci,rci->rc", factor[..., j, :j], white[..., :j])
            white[..., j] = residual[..., j] / factor[..., j, j]
        distance = sums_before(np.square(white))
        spread = np.square(np.diagonal(factor, axis1=-2, axis2=-1))
        row, at = np.nonzero(tasks.wanted[of_row])
        which = members[row, at]
        n_before = (np.cumsum(present, axis=1) - 1)[row, at]
        behind = self.rows_behind[:, which].T
        columns = np.array([node.column for node in self.nodes])[which]
        terms = Terms(
            tasks.rows[row],
            columns,
            0,
            residual[row, :, at] + self.shift[:, which].T,
            spread[row, :, at] * behind + self.own_spread[:, which].T,
            self.least_leverage[:, which].T + distance[row, :, at] / behind,
            self.shape[:, which].T + n_before[:, None] / 2,
            np.array([node.units[1] for node in self.nodes])[which, None],
        )
        out[tasks.rows[row], columns] = self.estimation.log_density(terms)


def _slots(nodes: Sequence[Node], kept: Sequence[int]) -> tuple[list[int], int]:
    """Where the moments of each node are held, those that are kept first, and the number of places."""
    last = {parent: i for i, node in enumerate(nodes) for parent in node.parents}
    ending: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        ending.setdefault(last.get(node.column, i), []).append(i)
    slot = {i: at for at, i in enumerate(kept)}
    free: list[int] = []
    n = len(slot)
    for i in range(len(nodes)):
        if i not in slot:
            slot[i] = free.pop() if free else n
            n = max(n, 1 + slot[i])
        free += [slot[j] for j in ending.get(i, ()) if slot[j] >= len(kept)]
    return [slot[i] for i in range(len(nodes))], n


def _shared_scale(nodes: Sequence[Node], configurations: Sequence[int]) -> Floats | None:
    """Ψ' of nodes that are a group counted from one set of samples, else None: (classes, nodes, nodes)."""
    posterior = nodes[0].posterior
    if posterior.separate or any(
        node.posterior is not posterior or len(node.given) < i or configuration != configurations[0]
        for i, (node, configuration) in enumerate(zip(nodes, configurations, strict=True))
    ):
        return None
    own = np.array([node.own for node in nodes])
    return posterior.scale[configurations[0]][:, posterior.pairs.place(own[:, None], own)]


def _regression(scale: Floats, estimation: Estimation) -> tuple[Floats, Floats]:
    """Slopes and residual scale of the last member on the others, from scales (classes, members, members)."""
    factor = factorised(scale, always=estimation.averages)
    spread = np.square(factor[:, -1, -1])
    n_given = scale.shape[-1] - 1
    slopes = np.zeros((len(scale), n_given))
    for label in range(len(scale) if n_given else 0):
        slopes[label] = cho_solve((factor[label, :-1, :-1], True), scale[label, :-1, -1])
    return slopes, spread
