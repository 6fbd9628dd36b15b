"""The network: a structure with parameters from its statistics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.coalitions import Likelihoods, Players
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, no_variance
from cgnlearn.networks.integration import Integration
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.marginals import network_coalitions
from cgnlearn.networks.model import LeaveOneOut, NotExactError
from cgnlearn.networks.solver import Solver
from cgnlearn.networks.stacked import Stacked
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities

MOST_REFITS = 2000  # factorisations for leave-one-out, one for each sample and solver
WORTH_A_LATTICE = 100_000  # numbers in the windows of a chain; fewer are factorised in no time

SolverChoice = Callable[[Partition, Posterior, Estimation], Solver]


def solver_for(partition: Partition, posterior: Posterior, estimation: Estimation) -> Solver:
    """The lattice for a long chain, unless rounding has made its scale singular; else blocks, which handle that."""
    m, k = partition.n_features, partition.k
    if k is not None and 1 < k < m and m * k * k >= WORTH_A_LATTICE:
        lattice = Lattice(partition, posterior, estimation)
        if not estimation.averages or lattice.is_regular:
            return lattice
    return Blocks.of(partition, posterior, estimation)


def _without_absent_parents(partitions: Sequence[Partition], posteriors: Sequence[Posterior]) -> tuple[Posterior, ...]:
    """The posteriors with features that have no density of their own absent as parents too.

    A feature is constant, or without values, in the samples of its own family, but may vary in those of its children.
    """
    absent = {
        int(column)
        for partition, posterior in zip(partitions, posteriors, strict=True)
        for stack in partition.stacks
        for own in [stack.members[:, stack.n_given :]]
        for column in partition.columns[own[posterior.absent[own]]]
    }
    if not absent:
        return tuple(posteriors)
    return tuple(
        replace(posterior, absent=posterior.absent | np.isin(partition.columns, list(absent)))
        for partition, posterior in zip(partitions, posteriors, strict=True)
    )


@dataclass(frozen=True, eq=False)
class Network:
    """A `Model`: log densities of the features under each class, given their parents."""

    structure: Structure  # over columns of X
    statistics: Statistics  # of the families of the structure
    estimation: Estimation
    posteriors: tuple[Posterior, ...]  # one for each partition of the layout
    solvers: tuple[Solver, ...]

    @classmethod
    def of(
        cls, structure: Structure, statistics: Statistics, estimation: Estimation, solver: SolverChoice = solver_for
    ) -> Network:
        """The network with parameters from statistics that contain its families."""
        schema = statistics.schema
        statistics = statistics.restricted(structure.as_families(schema))
        estimation.check(statistics)
        partitions = statistics.layout.partitions
        posteriors = _without_absent_parents(
            partitions,
            [
                estimation.posterior(moments, partition, schema)
                for partition, moments in zip(partitions, statistics.moments, strict=True)
            ],
        )
        solvers = []
        for partition, posterior in zip(partitions, posteriors, strict=True):
            solvers.append(solver(partition, posterior, estimation))
            if not estimation.averages and (broken := solvers[-1].singular()) is not None:
                at = broken.configuration, broken.label
                raise no_variance(schema, broken.column, partition.cells, at, broken.n, broken.n_parents)
        return cls(structure, statistics, estimation, posteriors, tuple(solvers))

    def restricted(self, columns: Collection[int]) -> Network:
        """The network of some features and those from which they descend, under the same prior."""
        parents: dict[int, tuple[int, ...]] = {}
        waiting = list(columns)
        while waiting:
            column = waiting.pop()
            if column not in parents:
                parents[column] = self.structure.parents[column]
                waiting += parents[column]
        structure = Structure.from_parents(
            {column: parents[column] for column in self.structure.nodes if column in parents}
        )
        statistics = self.statistics.restricted(structure.as_families(self.statistics.schema))
        partitions = statistics.layout.partitions
        posteriors = tuple(self._posterior_of(partition) for partition in partitions)
        solvers = tuple(
            Blocks.of(partition, posterior, self.estimation)
            for partition, posterior in zip(partitions, posteriors, strict=True)
        )
        return Network(structure, statistics, self.estimation, posteriors, solvers)

    def _posterior_of(self, partition: Partition) -> Posterior:
        """The posterior of some families of a partition of this network."""
        for own, posterior in zip(self.statistics.layout.partitions, self.posteriors, strict=True):
            if own.cells.columns == partition.cells.columns and own.separate == partition.separate:
                places = own.places_of(partition)
                if places is not None:
                    return posterior.of_features(places, partition.pairs)
        raise AssertionError("the families of a part of a network are families of the network")

    def __repr__(self) -> str:
        return f"Network({self.structure!r}, {self.statistics!r})"

    @property
    def class_log_prior(self) -> Floats:
        return self.estimation.class_log_prior(self.statistics)

    @property
    def n_parameters(self) -> int:
        schema = self.statistics.schema
        levels = {i: len(schema.levels_of(i)) for i in self.structure.nodes if schema.levels[i] is not None}
        return self.structure.n_parameters(schema.n_classes, levels, sharing=self.estimation.sharing)

    def discrete_log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each discrete feature with its log probabilities: (samples, classes)."""
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            probabilities = densities.categorical(counts, self.estimation.dirichlet)
            yield family.column, probabilities[:, family.cells.index(table), table.codes[:, family.code]].T

    @cached_property
    def integration(self) -> Integration:
        """The integration over missing values."""
        return Integration(self)

    def log_likelihood(self, table: Table) -> Floats:
        if table.incomplete:
            return self.integration.log_likelihood(table)
        total = np.zeros((table.schema.n_classes, table.n_samples)).T  # transposed: inner loops run over samples
        for _, log_density in self.discrete_log_densities(table):
            total += log_density
        for solver in self.solvers:
            total += solver.log_likelihood(table)
        return total

    @cached_property
    def stacked(self) -> Stacked:
        """The posterior of its log densities."""
        return Stacked((self,))

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        known = None if log_likelihood is None else log_likelihood[None]
        return self.stacked.log_densities(table, known)[0]

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        if isinstance(self.estimation, Bayes) and self.estimation.prior.location == "paper":
            raise NotExactError('leave-one-out has no closed form with the prior location "paper": use folds')
        assert table.labels is not None
        unseen = set(table.incomplete).difference(self.statistics.incomplete).intersection(self.structure.nodes)
        if unseen:
            raise ValueError(f"{table.schema.name(min(unseen))} has missing values, but had none in training")
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        for family, counts in zip(self.statistics.layout.discrete, self.statistics.counts, strict=True):
            index, observed = np.arange(table.n_samples), table
            if table.incomplete:
                index = family.observed(table)
                observed = table.rows(index)
            of_samples = counts[:, family.cells.index(observed)].transpose(1, 0, 2)
            weights = 1.0 if observed.weights is None else observed.weights
            total[index] += densities.categorical_leave_one_out(
                of_samples, self.estimation.dirichlet, observed.labels, observed.codes[:, family.code], weights
            )
        for solver in self.solvers:
            total += solver.leave_one_out(table)
        if table.incomplete:
            self._refit_without_each(table, total)
        return LeaveOneOut(total, self.leave_one_out_class_log_prior(table.labels, table.weights))

    def leave_one_out_class_log_prior(self, labels: NDArray[np.intp], weights: Floats | None) -> Floats:
        """Leave-one-out log probabilities of the classes: (samples, classes)."""
        classes = self.statistics.classes
        if self.estimation.class_prior is not None:
            return np.broadcast_to(self.class_log_prior, (len(labels), len(classes)))
        if weights is None:  # the result is the same for all samples of a class
            of_class = self.leave_one_out_class_log_prior(np.arange(len(classes)), np.ones(len(classes)))
            return np.take(of_class.T, labels, axis=1).T
        remaining = np.repeat(classes[None], len(labels), axis=0)
        remaining[np.arange(len(labels)), labels] -= weights
        return densities.categorical(np.maximum(remaining, 0.0), self.estimation.dirichlet)

    def _refit_without_each(self, table: Table, total: Floats) -> None:
        """Replace the totals of samples in which an observed feature has a missing parent by those of refits."""
        rows = self.integration.affected(table)
        if len(rows) and not isinstance(self.estimation, Bayes):
            raise NotExactError(
                "by maximum likelihood, leave-one-out has no closed form with missing parents: use folds"
            )
        if len(rows) * len(self.solvers) > MOST_REFITS:
            raise NotExactError(f"{len(rows)} samples have missing parents, too many for leave-one-out: use folds")
        for row in rows:
            part = table.rows(np.array([row]))
            total[row] = self.without(part).log_likelihood(replace(part, labels=None))[0]

    def without(self, table: Table) -> Network:
        """The network without some of its training samples, under the same prior."""
        assert isinstance(self.estimation, Bayes)
        removed = collect(table, self.statistics.families, self.statistics.incomplete)
        statistics = replace(
            self.statistics,
            classes=np.maximum(self.statistics.classes - removed.classes, 0.0),
            counts=tuple(np.maximum(a - b, 0.0) for a, b in zip(self.statistics.counts, removed.counts, strict=True)),
            moments=tuple(a - b for a, b in zip(self.statistics.moments, removed.moments, strict=True)),
        )
        posteriors, solvers = list(self.posteriors), list(self.solvers)
        for i, partition in enumerate(statistics.layout.partitions):
            if removed.moments[i].n.any():
                posteriors[i] = self.estimation.with_prior_of(self.posteriors[i], statistics.moments[i])
                solvers[i] = Blocks.of(partition, posteriors[i], self.estimation)
        return replace(self, statistics=statistics, posteriors=tuple(posteriors), solvers=tuple(solvers))

    def contributions(self, table: Table) -> Floats:
        """Log density of each feature, 0 if it is missing or not in the model: (samples, columns of X, classes)."""
        if table.incomplete:
            return self.integration.contributions(table)
        by_column = np.zeros((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        for column, log_density in self.discrete_log_densities(table):
            by_column[:, column] = log_density
        for solver in self.solvers:
            for part in solver.terms(table):
                of_class = by_column[part.rows, :, part.label]
                of_class[:, part.columns] = self.estimation.log_density(part).T
                by_column[part.rows, :, part.label] = of_class
        return by_column

    def coalitions(self, table: Table, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of features."""
        return network_coalitions(self, table, players)

    def log_evidences(self) -> tuple[Columns, Floats]:
        """Features, as columns of X, and the log evidences of their families."""
        discrete, dirichlet = self.statistics.layout.discrete, self.estimation.dirichlet
        of_discrete = [densities.categorical_evidence(counts, dirichlet).sum() for counts in self.statistics.counts]
        parts = [each for solver in self.solvers for each in solver.log_evidences()]
        children = [np.array([family.column for family in discrete], np.intp), *(own for own, _ in parts)]
        return np.concatenate(children), np.concatenate([np.array(of_discrete, float), *(found for _, found in parts)])

    @property
    def log_evidence(self) -> float:
        if not isinstance(self.estimation, Bayes) or not self.estimation.has_evidence:
            raise AttributeError(
                'log_evidence_ is defined for estimation="bayes", sharing 0 or 1, and a prior location that is '
                '"pooled" or an array'
            )
        classes = self.statistics.classes
        if self.estimation.class_prior is None:
            total = float(densities.categorical_evidence(classes, self.estimation.dirichlet))
        else:
            total = float(classes @ self.class_log_prior)
        return total + float(self.log_evidences()[1].sum())
