"""The joint distribution that a network implies for its continuous attributes, and densities of some given others.

A network says how each attribute depends on its parents. In the order of the network follow the mean and the scale of
all of them: Σ[v, A] = β Σ[pa, A] and Σ[v, v] = F + β Σ[pa, pa] βᵀ. In a group that was counted by one set of rows that
is Ψ' itself, up to a factor; by maximum likelihood it is the covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Estimation, Posterior, Terms
from cgnlearn.model.regressions import factorised
from cgnlearn.model.solver import FARTHEST
from cgnlearn.model.table import Table

CHUNK = 1 << 20  # numbers of the factors that are held at once


class Node(NamedTuple):
    """A continuous attribute with its family, as attributes of a partition."""

    column: int  # X's
    value: int  # the table's
    posterior: Posterior
    parents: tuple[int, ...]  # columns of X
    given: NDArray[np.intp]  # the parents, in the partition
    own: int  # the attribute itself, in the partition

    def of_cell(self, part: Floats, configuration: int) -> Floats:
        """Numbers like n, of all classes."""
        found: Floats = part[configuration]
        return found[:, self.own] if self.posterior.apart else found

    @property
    def units(self) -> tuple[float, float]:
        """Origin and unit."""
        return float(self.posterior.units.origin[self.own]), float(self.posterior.units.unit[self.own])


class Tasks(NamedTuple):
    """Sets of nodes, each with the rows whose densities are wanted."""

    members: NDArray[np.intp]  # (tasks, most members): positions among the nodes
    present: NDArray[np.bool_]  # which of them count
    wanted: NDArray[np.bool_]  # whose densities, given all present before them, are wanted
    task_of_row: NDArray[np.intp]
    rows: NDArray[np.intp]


class Implied(NamedTuple):
    """Mean and scale of some nodes, in each one's own standard units; arrays over (classes, nodes)."""

    nodes: Sequence[Node]
    mean: Floats
    scale: Floats  # (classes, nodes, nodes), of one row
    rows_behind: Floats  # by which an attribute's scale is multiplied to give that of its own family
    shape: Floats
    least_leverage: Floats
    shift: Floats
    own_spread: Floats

    @classmethod
    def of(cls, nodes: Sequence[Node], configurations: Sequence[int], how: Estimation) -> Implied:
        """Of nodes with parents before children, in cells by node; parents that are not among them are left out."""
        n, n_classes = len(nodes), nodes[0].posterior.n.shape[1]
        place = {node.column: i for i, node in enumerate(nodes)}
        mean, rows_behind, shape, least = np.ones((4, n_classes, n))
        shift, own_spread = np.zeros((2, n_classes, n))
        scale = np.zeros((n_classes, n, n))
        for i, (node, configuration) in enumerate(zip(nodes, configurations, strict=True)):
            posterior = node.posterior
            shape[:, i] = node.of_cell(posterior.shape, configuration)
            if how.averages:
                rows_behind[:, i] = 2 * shape[:, i]
            least[:, i] = node.of_cell(posterior.least_leverage, configuration)
            if posterior.shift is not None and posterior.own_spread is not None:
                shift[:, i] = posterior.shift[configuration, :, node.own]
                own_spread[:, i] = posterior.own_spread[configuration, :, node.own]
            kept = [(place[column], at) for column, at in zip(node.parents, node.given, strict=True) if column in place]
            before = [where for where, _ in kept]
            members = np.array([*(at for _, at in kept), node.own], np.intp)
            own = posterior.scale[configuration][:, posterior.pairs.place(members[:, None], members)]
            centre = posterior.centre[configuration][:, members]
            slopes, spread = _regression(own, how)
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
        return cls(nodes, mean, scale, rows_behind, shape, least, shift, own_spread)

    def standard(self, table: Table, rows: NDArray[np.intp]) -> Floats:
        """The rows' values in the nodes' units, 0 where they are missing: (rows, nodes)."""
        origin, unit = np.array([node.units for node in self.nodes]).T
        values = table.values[rows][:, [node.value for node in self.nodes]]
        with np.errstate(over="ignore"):
            standard = np.clip((values - origin) / unit, -FARTHEST, FARTHEST)
        return np.where(np.isnan(values), 0.0, standard)

    def log_densities(self, table: Table, tasks: Tasks, how: Estimation, out: Floats) -> None:
        """Put the wanted densities into ``out``: (rows of the table, columns of X, classes)."""
        size, n_classes = tasks.members.shape[1], len(self.mean)
        per_task = n_classes * size**2
        order = np.argsort(tasks.task_of_row, kind="stable")
        bounds = np.searchsorted(tasks.task_of_row[order], np.arange(len(tasks.members) + 1))
        step = max(1, CHUNK // per_task)
        for start in range(0, len(tasks.members), step):
            stop = min(start + step, len(tasks.members))
            factor = self._factors(tasks.members[start:stop], tasks.present[start:stop], how)
            here = order[bounds[start] : bounds[stop]]
            for first in range(0, len(here), step):
                part = here[first : first + step]
                self._add(table, tasks, part, factor[tasks.task_of_row[part] - start], how, out)

    def _factors(self, members: NDArray[np.intp], present: NDArray[np.bool_], how: Estimation) -> Floats:
        """Cholesky factors, 1 where a member does not count: (tasks, classes, members, members)."""
        both = present[:, :, None] & present[:, None, :]
        scale = self.scale[:, members[:, :, None], members[:, None, :]].swapaxes(0, 1)
        return factorised(np.where(both[:, None], scale, np.eye(members.shape[1])), always=how.averages)

    def _add(
        self, table: Table, tasks: Tasks, part: NDArray[np.intp], factor: Floats, how: Estimation, out: Floats
    ) -> None:
        """Of some rows with the factors of each one's task: (rows, classes, members, members)."""
        rows, of_task = tasks.rows[part], tasks.task_of_row[part]
        members, present, wanted = tasks.members[of_task], tasks.present[of_task], tasks.wanted[of_task]
        values = np.take_along_axis(self.standard(table, rows), members, axis=1)
        centred = values[:, None] - self.mean[:, members].swapaxes(0, 1)  # (rows, classes, members)
        centred = np.where(present[:, None], centred, 0.0)
        white = np.zeros_like(centred)
        distance = np.zeros(centred.shape[:2])
        n_before: NDArray[np.intp] = np.cumsum(present, axis=1) - present
        columns = np.array([node.column for node in self.nodes])
        log_unit = np.log([node.units[1] for node in self.nodes])
        for j in range(members.shape[1]):
            residual = centred[..., j] - np.einsum("rci,rci->rc", factor[..., j, :j], white[..., :j])
            pivot = factor[..., j, j]
            white[..., j] = residual / pivot
            ask = np.flatnonzero(wanted[:, j])
            if len(ask):
                which = members[ask, j]
                behind = self.rows_behind[:, which].T
                terms = Terms(
                    ask,
                    columns[which],
                    0,
                    residual[ask] + self.shift[:, which].T,
                    np.square(pivot[ask]) * behind + self.own_spread[:, which].T,
                    self.least_leverage[:, which].T + distance[ask] / behind,
                    self.shape[:, which].T + n_before[ask, j, None] / 2,
                    np.ones(1),
                )
                out[rows[ask], columns[which]] = how.log_density(terms) - log_unit[which, None]
            distance += np.square(white[..., j])


def _regression(scale: Floats, how: Estimation) -> tuple[Floats, Floats]:
    """Slopes on all members but the last, and what is left of its scale; of matrices (classes, members, members)."""
    factor = factorised(scale, always=how.averages)
    spread = np.square(factor[:, -1, -1])
    n_given = scale.shape[-1] - 1
    slopes = np.zeros((len(scale), n_given))
    for label in range(len(scale) if n_given else 0):
        slopes[label] = cho_solve((factor[label, :-1, :-1], True), scale[label, :-1, -1])
    return slopes, spread
