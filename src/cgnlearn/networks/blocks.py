"""The solver that factorises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Terms
from cgnlearn.networks.families import Family
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.moments import COMPILED_PAYS
from cgnlearn.networks.regressions import Regressions
from cgnlearn.networks.solver import Singular


@dataclass(frozen=True, eq=False)
class Blocks:
    """The solver that factorises: all blocks of a partition, those of one shape together.

    Parameters
    ----------
    how : Estimation
    posterior : Posterior
    regressions : tuple of Regressions
    compiled_from : float
        How many multiplications are worth the compiled loops.
    """

    estimation: Estimation
    posterior: Posterior
    regressions: tuple[Regressions, ...]
    compiled_from: float = COMPILED_PAYS

    @classmethod
    def of(
        cls, partition: Partition, posterior: Posterior, estimation: Estimation, compiled_from: float = COMPILED_PAYS
    ) -> Blocks:
        """Factorise every block, without the features that are absent."""
        found = tuple(
            Regressions.of(partition, kept, posterior, always=estimation.averages)
            for stack in partition.stacks
            for kept in stack.without(posterior.absent)
        )
        return cls(estimation, posterior, found, compiled_from)

    def terms(self, table: Table) -> Iterator[Terms]:
        """What the log density of every sample, feature and class is made of, in parts."""
        for stack in self.regressions:
            yield from stack.terms(table)

    def log_likelihood(self, table: Table) -> Floats:
        """The log densities, summed over the features: (samples, classes)."""
        total = np.zeros((table.schema.n_classes, table.n_samples)).T  # sums over classes are then long loops
        for stack in self.regressions:
            n_products = total.size * len(stack.columns) * stack.size**2
            if n_products >= self.compiled_from and stack.shift is None and not stack.separate:
                total += stack.log_likelihood(table, self.estimation)
                continue
            for part in stack.terms(table):
                total[part.rows, part.label] += self.estimation.log_density(part).sum(axis=0)
        return total

    def leave_one_out(self, table: Table) -> Floats:
        """The log densities of training samples, each by the regressions without it: (samples, classes)."""
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        for stack in self.regressions:
            if not stack.separate:
                total += stack.leave_one_out(table, self.posterior, self.estimation)
                continue
            for number, members in enumerate(stack.members):
                # Samples in which some of the block is missing were not seen by it.
                block, seen = stack.block(number), stack.observed(table, number)
                total[seen] += block.leave_one_out(table.rows(seen), self.posterior.of_block(members), self.estimation)
        return total

    def log_evidences(self) -> Iterator[tuple[Family, float]]:
        """The log evidence of every family."""
        assert isinstance(self.estimation, Bayes)
        for stack in self.regressions:
            for members, evidences in zip(
                stack.columns.tolist(), stack.log_evidence(self.estimation).tolist(), strict=True
            ):
                for position, evidence in enumerate(evidences, start=stack.n_given):
                    yield Family(members[position], (*stack.cells.columns, *members[:position])), evidence

    def singular(self) -> Singular | None:
        """The first feature whose maximum likelihood regression does not exist, if there is one."""
        return next((found for stack in self.regressions if (found := stack.singular()) is not None), None)
