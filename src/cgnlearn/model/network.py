"""The network: one structure, with parameters from its statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model import densities
from cgnlearn.model.blocks import Blocks
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Estimation, Posterior, no_variance
from cgnlearn.model.families import Family
from cgnlearn.model.integration import Integration
from cgnlearn.model.layout import Partition
from cgnlearn.model.model import LeftOut, NotExact
from cgnlearn.model.solver import Solver
from cgnlearn.model.statistics import Statistics, collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table
from cgnlearn.ordered.lattice import Lattice

MOST_REFITS = 2000  # regressions that are factorised anew, one row after the other being left out
WORTH_A_LATTICE = 100_000  # numbers in a chain's windows; below it factorising them takes no time to speak of

SolverChoice = Callable[[Partition, Posterior, Estimation], Solver]


def solver_for(partition: Partition, posterior: Posterior, how: Estimation) -> Solver:
    """The lattice for a long chain, unless rounding has made its scale singular; else blocks, which mend that."""
    m, k = partition.n_attributes, partition.k
    if k is not None and 1 < k < m and m * k * k >= WORTH_A_LATTICE:
        lattice = Lattice(partition, posterior, how)
        if not how.averages or lattice.is_regular:
            return lattice
    return Blocks.of(partition, posterior, how)


@dataclass(frozen=True, eq=False)
class Network:
    """Log densities of the attributes under each class, given their parents.

    Parameters
    ----------
    structure : Structure
        Over columns of X.
    statistics : Statistics
        Of the structure's families.
    how : Estimation
    posteriors : tuple of Posterior
    solvers : tuple of Solver
        One for each partition of the statistics' layout.
    """

    structure: Structure
    statistics: Statistics
    how: Estimation
    posteriors: tuple[Posterior, ...]
    solvers: tuple[Solver, ...]

    @classmethod
    def of(
        cls, structure: Structure, statistics: Statistics, how: Estimation, solver: SolverChoice = solver_for
    ) -> Network:
        """Parameters from statistics that hold the structure's families."""
        schema = statistics.schema
        statistics = statistics.restricted(structure.as_families(schema))
        how.check(statistics)
        posteriors, solvers = [], []
        for partition, moments in zip(statistics.layout.partitions, statistics.moments, strict=True):
            posteriors.append(how.posterior(moments, partition, schema))
            solvers.append(solver(partition, posteriors[-1], how))
            if not how.averages and (broken := solvers[-1].singular()) is not None:
                at = broken.configuration, broken.label
                raise no_variance(schema, broken.column, partition.cells, at, broken.n, broken.n_parents)
        return cls(structure, statistics, how, tuple(posteriors), tuple(solvers))

    def restricted(self, structure: Structure) -> Network:
        """The network of some of the families."""
        return Network.of(structure, self.statistics, self.how)

    def __repr__(self) -> str:
        return f"Network({self.structure!r}, {self.statistics!r})"

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self.how.class_log_prior(self.statistics)

    @property
    def n_parameters(self) -> int:
        """Free parameters, the class's own included."""
        schema = self.statistics.schema
        levels = {i: len(schema.levels_of(i)) for i in self.structure.nodes if schema.levels[i] is not None}
        return self.structure.n_parameters(schema.n_classes, levels, sharing=self.how.sharing)

    def discrete_log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each discrete attribute with its log probabilities: (rows, classes)."""
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            probabilities = densities.categorical(counts, self.how.dirichlet)
            yield family.column, probabilities[:, family.cells.index(table), table.codes[:, family.code]].T

    @cached_property
    def integration(self) -> Integration:
        """What it says of rows with holes."""
        return Integration(self)

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every row and class."""
        if table.incomplete:
            return self.integration.log_likelihood(table)
        total = np.zeros((table.schema.n_classes, table.n_rows)).T  # sums over classes are then long loops
        for _, found in self.discrete_log_densities(table):
            total += found
        for solver in self.solvers:
            total += solver.log_likelihood(table)
        return total

    def leave_one_out(self, table: Table) -> LeftOut:
        """The training rows again, each seen by the network without it."""
        if isinstance(self.how, Bayes) and self.how.prior.location == "paper":
            raise NotExact('leaving rows out has no closed form with the prior location "paper": take folds')
        assert table.labels is not None
        unseen = set(table.incomplete).difference(self.statistics.incomplete).intersection(self.structure.nodes)
        if unseen:
            raise ValueError(f"{table.schema.name(min(unseen))} has missing values that it had not in training")
        rows, n_classes = np.arange(table.n_rows), table.schema.n_classes
        total = np.zeros((n_classes, table.n_rows)).T
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            seen, held = rows, table
            if table.incomplete:
                seen = np.flatnonzero(family.cells.observed(table) & (table.codes[:, family.code] >= 0))
                held = table.rows(seen)
            cell = counts[:, family.cells.index(held)].transpose(1, 0, 2)  # (rows, classes, levels)
            code, every = held.codes[:, family.code], np.arange(len(seen))
            cell[every, held.labels, code] -= 1.0 if held.weights is None else held.weights
            with np.errstate(divide="ignore"):  # by maximum likelihood a level whose only row is gone has probability 0
                total[seen] += densities.categorical(np.maximum(cell, 0.0), self.how.dirichlet)[every, :, code]
        for solver in self.solvers:
            total += solver.left_out(table)
        if table.incomplete:
            self._leave_out_one_by_one(table, total)
        return LeftOut(total, self.class_log_prior_left_out(table.labels, table.weights))

    def class_log_prior_left_out(self, labels: NDArray[np.intp], weights: Floats | None) -> Floats:
        """Log probabilities of the classes without each row: (rows, classes)."""
        classes = self.statistics.classes
        if self.how.class_prior is not None:
            return np.broadcast_to(self.class_log_prior, (len(labels), len(classes)))
        if weights is None:  # rows of one class are alike
            of_class = self.class_log_prior_left_out(np.arange(len(classes)), np.ones(len(classes)))
            return np.take(of_class.T, labels, axis=1).T
        left = np.repeat(classes[None], len(labels), axis=0)
        left[np.arange(len(labels)), labels] -= weights
        with np.errstate(divide="ignore"):  # by maximum likelihood a class whose only row is gone has probability 0
            return densities.categorical(np.maximum(left, 0.0), self.how.dirichlet)

    def _leave_out_one_by_one(self, table: Table, total: Floats) -> None:
        """Rows in which an observed attribute has a missing parent: what is integrated out changes without the row."""
        rows = self.integration.affected(table)
        if len(rows) and not isinstance(self.how, Bayes):
            raise NotExact(
                "by maximum likelihood rows with missing parents have no closed form to be left out: take folds"
            )
        if len(rows) * len(self.solvers) > MOST_REFITS:
            raise NotExact(f"{len(rows)} rows lack a parent of what they have, too many to be left out: take folds")
        for row in rows:
            part = table.rows(np.array([row]))
            total[row] = self.without(part).log_likelihood(replace(part, labels=None))[0]

    def without(self, table: Table) -> Network:
        """The network that has not seen some of its training rows, its prior being held."""
        assert isinstance(self.how, Bayes)
        theirs = collect(table, self.statistics.families, self.statistics.incomplete)
        statistics = replace(
            self.statistics,
            classes=np.maximum(self.statistics.classes - theirs.classes, 0.0),
            counts=tuple(np.maximum(a - b, 0.0) for a, b in zip(self.statistics.counts, theirs.counts, strict=True)),
            moments=tuple(a.less(b) for a, b in zip(self.statistics.moments, theirs.moments, strict=True)),
        )
        posteriors, solvers = list(self.posteriors), list(self.solvers)
        for i, partition in enumerate(statistics.layout.partitions):
            if theirs.moments[i].n.any():
                posteriors[i] = self.how.with_prior_of(self.posteriors[i], statistics.moments[i], partition)
                solvers[i] = Blocks.of(partition, posteriors[i], self.how)
        return replace(self, statistics=statistics, posteriors=tuple(posteriors), solvers=tuple(solvers))

    def contributions(self, table: Table) -> Floats:
        """The log densities kept apart: (rows, columns of X, classes); 0 for an attribute that is absent or missing."""
        if table.incomplete:
            return self.integration.contributions(table)
        apart = np.zeros((table.n_rows, table.schema.n_columns, table.schema.n_classes))
        for column, found in self.discrete_log_densities(table):
            apart[:, column] = found
        for solver in self.solvers:
            for part in solver.terms(table):
                of_class = apart[part.rows, :, part.label]
                of_class[:, part.columns] = self.how.log_density(part).T
                apart[part.rows, :, part.label] = of_class
        return apart

    def family_log_evidences(self) -> Iterator[tuple[Family, float]]:
        """The log evidence of every family, as columns of X."""
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            evidence = float(densities.categorical_evidence(counts, self.how.dirichlet).sum())
            yield Family(family.column, family.cells.columns), evidence
        for solver in self.solvers:
            yield from solver.log_evidences()

    @property
    def log_evidence(self) -> float:
        """ln p(training data), the classes included."""
        if not isinstance(self.how, Bayes) or not self.how.has_evidence:
            raise AttributeError(
                'log_evidence_ is defined for parameters="bayes", sharing 0 or 1, and a prior location that is '
                '"pooled" or an array'
            )
        classes = self.statistics.classes
        if self.how.class_prior is None:
            total = float(densities.categorical_evidence(classes, self.how.dirichlet))
        else:
            total = float(classes @ self.class_log_prior)
        return total + sum(evidence for _, evidence in self.family_log_evidences())
