"""Log densities of few samples under networks of one structure that differ in their estimation, all at once.

For one sample the time of `Network.log_likelihood` is that of its calls, not of its numbers: here the networks are one
more dimension of the same arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Bayes, Units
from cgnlearn.networks.factors import whitened
from cgnlearn.networks.layout import Cells, DiscreteFamily
from cgnlearn.networks.network import Network
from cgnlearn.networks.regressions import Regressions
from cgnlearn.networks.solver import rows_by_configuration, standard_values

MOST_NUMBERS = 1 << 18  # of samples and factors up to which it is worth its memory


@dataclass(frozen=True, eq=False)
class _Stack:
    """A stack of blocks in all networks; "…" stands for (networks, configurations, classes)."""

    cells: Cells
    values: Columns  # positions of the members among the values of a table: (blocks, members)
    n_given: int
    units: Units  # (blocks, members)
    centre: Floats  # (…, blocks, members)
    factor: Floats  # (…, blocks, members, members)
    least: Floats  # h of a sample at the centre: (…)
    log_det: Floats  # Σ ln F over all own members: (…)
    shape: Floats  # ρ' of the first own member: (…)

    @classmethod
    def of(cls, same: Sequence[Regressions]) -> _Stack | None:
        first = same[0]
        if any(other.values.shape != first.values.shape or (other.values != first.values).any() for other in same):
            return None
        return cls(
            first.cells,
            first.values,
            first.n_given,
            first.units,
            np.stack([each.centre for each in same]),
            np.stack([each.factor for each in same]),
            np.stack([each.least_leverage for each in same]),
            np.stack([each.log_det for each in same]),
            np.stack([each.shape[..., each.n_given] for each in same]),
        )

    def log_densities(self, table: Table) -> Iterator[tuple[Any, Floats]]:
        """Samples of one configuration, and the log densities of the own members: (networks, classes, samples)."""
        n_blocks, size = self.values.shape
        n_own = size - self.n_given
        log_unit = np.log(self.units.unit[:, self.n_given :]).sum()
        units = Units(*(part.ravel() for part in self.units))
        for configuration, rows in rows_by_configuration(self.cells, table):
            standard = standard_values(table, rows, self.values.ravel(), units).reshape(n_blocks, size, -1)
            white = whitened(self.factor[:, configuration], standard - self.centre[:, configuration, ..., None])
            least = self.least[:, configuration, :, None]
            squares = np.square(white, out=white)
            given = n_blocks * np.log(least)
            leverage = least[:, :, None]
            if self.n_given:
                leverage = leverage + squares[..., : self.n_given, :].sum(axis=-2)
                given = np.log(leverage).sum(axis=2)
            whole = np.log(leverage + squares[..., self.n_given :, :].sum(axis=-2)).sum(axis=2)
            log_det, shape = (part[:, configuration, :, None] for part in (self.log_det, self.shape))
            yield rows, densities.multivariate_student(given, whole, log_det, n_own, shape, n_blocks) - log_unit


@dataclass(frozen=True, eq=False)
class Together:
    """Networks with the same families, of Bayesian estimations."""

    discrete: tuple[tuple[DiscreteFamily, Floats], ...]  # ln p(level): (networks, classes, configurations, levels)
    stacks: tuple[_Stack, ...]
    shape: tuple[int, int]  # networks, classes

    @classmethod
    def of(cls, models: Sequence[Any]) -> Together | None:
        """The models together; None where some are no networks or differ in more than their estimation."""
        if not all(isinstance(model, Network) and model.structure == models[0].structure for model in models):
            return None
        groups = [stacks for model in models if (stacks := _stacks_of(model)) is not None]
        if len(groups) < len(models) or any(len(group) != len(groups[0]) for group in groups):
            return None
        if sum(stack.factor.size for group in groups for stack in group) > MOST_NUMBERS:
            return None
        stacks_of = [stack for same in zip(*groups, strict=True) if (stack := _Stack.of(same)) is not None]
        if len(stacks_of) < len(groups[0]):
            return None
        statistics = models[0].statistics
        discrete = []
        for i, family in enumerate(statistics.layout.discrete):
            of_models = [densities.categorical(each.statistics.counts[i], each.estimation.dirichlet) for each in models]
            discrete.append((family, np.stack(of_models)))
        return cls(tuple(discrete), tuple(stacks_of), (len(models), statistics.schema.n_classes))

    def suits(self, table: Table) -> bool:
        """Whether the samples are complete and so few that it is faster than one network after another."""
        n_numbers = table.n_samples * sum(stack.centre[:, 0].size for stack in self.stacks)
        return not table.incomplete and n_numbers <= MOST_NUMBERS

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of complete samples: (networks, samples, classes)."""
        n_networks, n_classes = self.shape
        total = np.zeros((n_networks, n_classes, table.n_samples))
        for family, log_proba in self.discrete:
            total += log_proba[:, :, family.cells.index(table), table.codes[:, family.code]]
        for stack in self.stacks:
            for rows, log_density in stack.log_densities(table):
                total[:, :, rows] += log_density
        return total.transpose(0, 2, 1)


def _stacks_of(model: Network) -> list[Regressions] | None:
    """The stacks of a network; None where their densities have other terms."""
    if not all(isinstance(solver, Blocks) for solver in model.solvers) or not isinstance(model.estimation, Bayes):
        return None
    found = [stack for solver in model.solvers if isinstance(solver, Blocks) for stack in solver.regressions]
    return None if any(stack.shift is not None or stack.separate for stack in found) else found
