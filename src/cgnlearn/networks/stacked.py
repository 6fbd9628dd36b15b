"""The posterior of log densities under networks of one structure that differ in their estimation, all at once.

Cumulants are sums over features (`cgnlearn.networks.uncertainty`). Of few samples the time is that of the calls, not of
the numbers: the networks are one more dimension of the same arrays, and what does not depend on samples is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cgnlearn.data.arrays import Floats, rows_by_cell
from cgnlearn.data.levels import MISSING
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.components import Mask
from cgnlearn.networks.estimation import Units
from cgnlearn.networks.factors import sums_before, whitened
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.layout import Cells, DiscreteFamily
from cgnlearn.networks.nodes import Nodes, Rows, Sums, nodes_of_terms, of_inclusion
from cgnlearn.networks.regressions import Regressions
from cgnlearn.networks.solver import Solver, standard_values
from cgnlearn.networks.uncertainty import (
    Cumulants,
    LogDensities,
    NoPosteriorError,
    categorical_cumulants,
    correlation_of,
    scale_cumulants,
)

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

CHUNK = 1 << 20  # numbers that are held at once
MOST_STACKED = 1 << 18  # numbers of factors up to which networks are stacked


def grouped(networks: Sequence[Network], inclusion: Floats | None = None) -> list[Stacked]:
    """Networks that can be stacked as one, others one by one; ``inclusion`` as `Stacked` has it."""
    if len(networks) > 1 and _are_alike(networks):
        return [Stacked(tuple(networks), inclusion)]
    return [Stacked((network,), None if inclusion is None else inclusion[[i]]) for i, network in enumerate(networks)]


def _are_alike(networks: Sequence[Network]) -> bool:
    """Whether networks are few small blocks of the same features."""
    if any(network.structure != networks[0].structure for network in networks):
        return False
    stacks = [[stack for solver in network.solvers for stack in _stacks_of(solver)] for network in networks]
    kinds = [[stack.values.tolist() for stack in each] for each in stacks]
    if any(kind != kinds[0] for kind in kinds):
        return False
    return sum(stack.factor.size for each in stacks for stack in each) <= MOST_STACKED


def _stacks_of(solver: Solver) -> tuple[Regressions, ...]:
    return solver.regressions if isinstance(solver, Blocks) else ()


@dataclass(frozen=True, eq=False)
class Stacked:
    """Networks with the same families."""

    networks: tuple[Network, ...]
    # Of naive Bayes: probabilities that columns depend on the class (networks, columns).
    inclusion: Floats | None = None

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> list[LogDensities]:
        """The posterior of the log densities, by network.

        ``log_likelihood`` (networks, samples, classes) is that of the networks; None: it is computed if needed.

        Missing values are integrated out of the mean. Where an observed feature has a missing parent, the other
        cumulants are those with a continuous parent at its mean and a discrete one at its most frequent level.
        """
        sums = self.sums(table)
        mean = sums.mean
        if table.incomplete and self.inclusion is None:
            if log_likelihood is None:
                log_likelihood = np.stack([network.log_likelihood(table) for network in self.networks])
            mean = log_likelihood - (sums.predictive - mean)
        return sums.with_mean(mean)

    def sums(self, table: Table) -> Sums:
        """Sums over the features that are observed and, by chance, included."""
        if not all(network.estimation.averages for network in self.networks):
            raise NoPosteriorError(
                'estimation="ml" has no posterior, and so no intervals: use estimation="bayes", or predict_set'
            )
        observed = None
        if table.incomplete:
            observed, table = observed_cells(table), _filled(self.networks[0], table)
        shape = len(self.networks), table.n_samples, table.schema.n_classes
        sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros((*shape, shape[2])), np.zeros(shape), np.zeros(shape))
        for part in self._discrete:
            part.add_to(sums, table, observed, self.inclusion)
        sharing = np.array([network.estimation.sharing for network in self.networks])
        for networks, rows, nodes in self._nodes(table):
            chance = None if self.inclusion is None else self.inclusion[networks][:, nodes.columns]
            seen = None if observed is None else observed[np.ix_(rows, nodes.columns)].T
            nodes.add_to(sums.of(networks), rows, chance, seen, sharing[networks])
        return sums

    @cached_property
    def _discrete(self) -> list[_Levels]:
        first, found = self.networks[0].statistics, []
        for i, family in enumerate(first.layout.discrete):
            given = [(network.statistics.counts[i], network.estimation.dirichlet) for network in self.networks]
            cumulants = Cumulants(*map(np.stack, zip(*(categorical_cumulants(*each) for each in given), strict=True)))
            found.append(_Levels(family, cumulants, np.stack([densities.categorical(*each) for each in given])))
        return found

    @cached_property
    def _stacks(self) -> list[list[_Stack] | None]:
        """Of each partition; None where a solver has no blocks."""
        found: list[list[_Stack] | None] = []
        for place, solver in enumerate(self.networks[0].solvers):
            if not isinstance(solver, Blocks):
                found.append(None)
                continue
            solvers = [network.solvers[place] for network in self.networks]
            posteriors = [network.posteriors[place] for network in self.networks]
            cells = self.networks[0].statistics.layout.partitions[place].cells
            correlation = np.stack(
                [
                    [correlation_of(posterior, configuration, network.estimation) for configuration in range(cells.n)]
                    for network, posterior in zip(self.networks, posteriors, strict=True)
                ]
            )
            same = zip(*(_stacks_of(each) for each in solvers), strict=True)
            found.append([_Stack.of(cells, stacks, correlation) for stacks in same])
        return found

    def _nodes(self, table: Table) -> Iterator[tuple[slice, Rows, Nodes]]:
        """Networks, samples of one configuration, and the features of some blocks."""
        first, n_classes = self.networks[0].statistics.layout, table.schema.n_classes
        for place, (partition, stacks) in enumerate(zip(first.partitions, self._stacks, strict=True)):
            of_sample = len(self.networks) * partition.n_features * n_classes * max(1, n_classes // 2)
            step = max(1, CHUNK // max(1, of_sample))
            for configuration, all_rows in rows_by_cell(partition.cells.index(table), partition.cells.n):
                for start in range(0, len(all_rows), step):
                    rows = all_rows[start : start + step]
                    if stacks is not None:
                        for stack in stacks:
                            yield slice(None), rows, stack.nodes(table, rows, configuration)
                        continue
                    part = table.rows(rows)
                    for i, network in enumerate(self.networks):
                        yield slice(i, i + 1), rows, nodes_of_terms(network, place, partition, configuration, part)


class _Levels(NamedTuple):
    """A discrete feature: (networks, classes, configurations, levels)."""

    family: DiscreteFamily
    cumulants: Cumulants
    log_proba: Floats  # ln of the mean probability

    def add_to(self, sums: Sums, table: Table, observed: Mask | None, inclusion: Floats | None) -> None:
        column = self.family.column
        at = slice(None), slice(None), self.family.cells.index(table), table.codes[:, self.family.code]
        mean, variance, third = (part[at].swapaxes(1, 2) for part in self.cumulants)
        seen: Any = None if observed is None else observed[:, column, None]
        if seen is not None:
            mean, variance, third = mean * seen, variance * seen, third * seen
            sums.predictive[:] += self.log_proba[at].swapaxes(1, 2) * seen
        if inclusion is not None:
            chance = inclusion[:, column, None, None]
            sums.covariance[:] += of_inclusion(mean[..., None], chance[..., None])
            mean, variance, third = mean * chance, variance * chance, third * chance
        sums.mean[:] += mean
        sums.variance[:] += variance
        sums.third[:] += third


@dataclass(frozen=True, eq=False)
class _Stack:
    """Blocks in all networks; "…" stands for (networks, configurations, classes)."""

    cells: Cells
    values: Rows  # positions of the members among the values of a table: (blocks × members,)
    columns: Rows  # of the own members: (features,)
    n_given: int
    units: Units  # (blocks × members,)
    centre: Floats  # (…, blocks, members)
    factor: Floats  # (…, blocks, members, members)
    least: Floats  # h - 1 at the centre: (…, blocks)
    shift: Floats | None  # (…, blocks, members)
    shape: Floats  # ρ': (…, features, 1)
    spread: Floats  # F: (…, features, 1)
    scale: Cumulants  # (…, features, 1)
    correlation: Floats  # (networks, configurations, classes, classes)

    @classmethod
    def of(cls, cells: Cells, same: Sequence[Regressions], correlation: Floats) -> _Stack:
        first = same[0]
        own = slice(first.n_given, None)
        n_blocks = len(first.values)
        centre, factor, spread = (
            np.stack([getattr(each, name) for each in same]) for name in ("centre", "factor", "spread")
        )
        least, shape = (
            np.stack(part) for part in zip(*((1 / each.strength, each.shape) for each in same), strict=True)
        )
        if not first.separate:
            least = np.broadcast_to(least[..., None], (*least.shape, n_blocks))
            shape = np.broadcast_to(shape[..., None, :], (*shape.shape[:-1], n_blocks, shape.shape[-1]))
        features = (*least.shape[:-1], -1, 1)
        shape, spread = shape[..., own].reshape(features), spread[..., own].reshape(features)
        return cls(
            cells,
            first.values.ravel(),
            first.columns[:, own].ravel(),
            first.n_given,
            Units(*(part.ravel() for part in first.units)),
            centre,
            factor,
            least,
            None if first.shift is None else np.stack([each.shift for each in same if each.shift is not None]),
            shape,
            spread,
            scale_cumulants(shape, spread),
            correlation,
        )

    def nodes(self, table: Table, rows: Rows, configuration: int) -> Nodes:
        """The own members of samples of a configuration."""
        n_blocks, size = self.centre.shape[-2:]
        standard = standard_values(table, rows, self.values, self.units).reshape(n_blocks, size, -1)
        n_networks, _, n_classes = self.centre.shape[:3]
        residual, extra = self._of(standard, configuration)
        at = slice(None), configuration
        features = n_networks, n_classes, -1
        least = np.broadcast_to(self.least[at][..., None], (n_networks, n_classes, n_blocks, size - self.n_given))
        return Nodes(
            self.columns,
            (residual.reshape(*features, len(rows))) / np.sqrt(self.spread[at]),
            extra.reshape(*features, len(rows)),
            least.reshape(*features, 1),
            self.shape[at],
            self.spread[at],
            Cumulants(*(part[at] for part in self.scale)),
            self.units.unit.reshape(n_blocks, size)[:, self.n_given :].reshape(-1, 1),
            self._apart(configuration),
            self.correlation[at],
        )

    def _of(self, standard: Floats, configuration: int, label: Any = slice(None)) -> tuple[Floats, Floats]:
        """Residuals and h - 1 of own members: (networks, classes, blocks, members, samples)."""
        at = slice(None), configuration, label
        factor = self.factor[at]
        white = whitened(factor, standard - self.centre[at][..., None])
        extra = self.least[at][..., None, None] + sums_before(np.square(white), axis=-2)
        residual = white * np.diagonal(factor, axis1=-2, axis2=-1)[..., None]
        if self.shift is not None:
            residual += self.shift[at][..., None]
        return residual[..., self.n_given :, :], extra[..., self.n_given :, :]

    @cached_property
    def _known(self) -> dict[int, Floats]:
        return {}

    def _apart(self, configuration: int) -> Floats:
        """As `Nodes` has it, of samples at the centres, which is kept for the next call."""
        if configuration not in self._known:
            centre = self.centre[:, configuration]  # (networks, classes, blocks, members)
            n_networks, n_classes = centre.shape[:2]
            found = np.empty((n_networks, n_classes, len(self.columns), n_classes))
            for label in range(n_classes):
                extra = self._of(np.moveaxis(centre, 1, -1), configuration, label)[1]
                least = self.least[:, configuration, label, :, None, None]
                found[:, label] = (extra - least).reshape(n_networks, -1, n_classes)
            self._known[configuration] = (found + found.swapaxes(1, 3)) / 2
        return self._known[configuration]


def _filled(network: Network, table: Table) -> Table:
    """The table with the mean, or the most frequent level, in place of missing values."""
    values, codes = table.values.copy(), table.codes.copy()
    for partition, posterior in zip(network.statistics.layout.partitions, network.posteriors, strict=True):
        mean = posterior.overall * posterior.units.unit + posterior.units.origin
        here = values[:, partition.values]
        values[:, partition.values] = np.where(np.isnan(here), mean, here)
    values[np.isnan(values)] = 0.0  # of columns that no feature depends on
    for family, counts in zip(network.statistics.layout.discrete, network.statistics.counts, strict=True):
        of_column = codes[:, family.code]
        of_column[of_column == MISSING] = counts.sum(axis=(0, 1)).argmax()
    return replace(table, values=values, codes=np.maximum(codes, 0))


def around(network: Network, table: Table, log_likelihood: Floats) -> LogDensities:
    """The posterior of an average with these log densities, as certain as one of its networks."""
    sums = network.stacked.sums(table)
    own = sums.predictive if table.incomplete else network.log_likelihood(table)[None]
    return sums.with_mean(log_likelihood - (own - sums.mean))[0]
