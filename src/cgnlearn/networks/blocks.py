"""The solver that factorises blocks of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Terms
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.moments import COMPILED_PAYS
from cgnlearn.networks.regressions import Regressions
from cgnlearn.networks.solver import Singular


@dataclass(frozen=True, eq=False)
class Blocks:
    """A `Solver` with one `Regressions` for all blocks of one shape."""

    estimation: Estimation
    posterior: Posterior
    regressions: tuple[Regressions, ...]
    compiled_from: float = COMPILED_PAYS  # number of multiplications from which compiled loops are faster

    @classmethod
    def of(
        cls, partition: Partition, posterior: Posterior, estimation: Estimation, compiled_from: float = COMPILED_PAYS
    ) -> Blocks:
        """Factorise every block, without the features that are absent."""
        regressions = tuple(
            Regressions.of(partition, kept, posterior, always=estimation.averages)
            for stack in partition.stacks
            for kept in stack.without(posterior.absent)
        )
        return cls(estimation, posterior, regressions, compiled_from)

    def terms(self, table: Table) -> Iterator[Terms]:
        for stack in self.regressions:
            yield from stack.terms(table)

    def log_likelihood(self, table: Table) -> Floats:
        total = np.zeros((table.schema.n_classes, table.n_samples)).T  # transposed: inner loops run over samples
        for stack in self.regressions:
            n_products = total.size * len(stack.columns) * stack.size**2
            if n_products >= self.compiled_from and stack.shift is None and not stack.separate:
                total += stack.log_likelihood(table, self.estimation)
                continue
            for part in stack.terms(table):
                total[part.rows, part.label] += self.estimation.log_density(part).sum(axis=0)
        return total

    def leave_one_out(self, table: Table) -> Floats:
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        for stack in self.regressions:
            if not stack.separate:
                total += stack.leave_one_out(table, self.posterior, self.estimation, self.compiled_from)
                continue
            for number, members in enumerate(stack.members):
                # A block has not counted the samples in which one of its members is missing.
                (rows, others), posterior = stack.observed(table, number), self.posterior.of_block(members)
                block = stack.block(number)
                total[rows] += block.leave_one_out(table.rows(rows), posterior, self.estimation)
                for part in block.terms(table.rows(others)):
                    total[others[part.rows], part.label] += self.estimation.log_density(part).sum(axis=0)
        return total

    def log_evidences(self) -> Iterator[tuple[Columns, Floats]]:
        assert isinstance(self.estimation, Bayes)
        for stack in self.regressions:
            yield stack.columns[:, stack.n_given :].ravel(), stack.log_evidence(self.estimation).ravel()

    def singular(self) -> Singular | None:
        return next((singular for stack in self.regressions if (singular := stack.singular()) is not None), None)
