"""The network: structure, statistics and prior (or maximum likelihood) put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model import densities
from cgnlearn.model.blocks import LogDensities, Regressions, Units
from cgnlearn.model.layout import Cells, DiscreteFamily, Partition
from cgnlearn.model.prior import Posterior, Prior, maximum_likelihood
from cgnlearn.model.statistics import Floats, Moments, Statistics
from cgnlearn.model.structure import Family
from cgnlearn.model.table import Encoder, Table
from cgnlearn.ordered.lattice import Windows, regressions_of

Parameters = Literal["bayes", "ml"]


class SampleNotAcceptable(ValueError):
    """Maximum likelihood parameters do not exist for this sample (Definition 1 of the paper)."""


@dataclass(frozen=True, eq=False)
class Network:
    """Per-attribute log densities under each class.

    Parameters
    ----------
    statistics : Statistics
    prior : Prior
    sharing : float
    class_log_prior : ndarray (classes,)
    tables : tuple of ndarray (classes, configurations, levels)
        Log probabilities, one for each discrete family of the statistics' layout.
    regressions : tuple of tuple of Regressions or Windows
        One for each stack of each partition.
    """

    statistics: Statistics
    prior: Prior
    sharing: float
    class_log_prior: Floats
    tables: tuple[Floats, ...]
    regressions: tuple[tuple[Regressions | Windows, ...], ...]

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        encoder: Encoder,
        classes: NDArray[Any],
        *,
        parameters: Parameters = "bayes",
        prior: Prior | None = None,
        sharing: float = 0.0,
        class_prior: Floats | None = None,
    ) -> Network:
        """Parameters from statistics.

        ``encoder`` and ``classes`` serve to name what is wrong; ``class_prior`` replaces the learned one.
        """
        prior = prior or Prior()
        naming = _Naming(encoder, classes)
        weight = prior.dirichlet if parameters == "bayes" else 0.0
        if class_prior is not None:
            class_log_prior = np.log(class_prior)
        else:
            if parameters == "ml" and not (statistics.classes > 0).all():
                empty = classes.tolist()[np.argmin(statistics.classes)]
                raise SampleNotAcceptable(
                    f"maximum likelihood needs rows of every class, and there are none of {empty!r}: "
                    'add some or use parameters="bayes"'
                )
            class_log_prior = densities.categorical(statistics.classes, weight)
        layout = statistics.layout
        for family, counts in zip(layout.discrete, statistics.counts, strict=True):
            if parameters == "ml" and not (counts > 0).all():
                raise naming.empty_level(family, counts)
        tables = tuple(densities.categorical(counts, weight) for counts in statistics.counts)
        regressions = []
        for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
            if parameters == "ml" and not (moments.n > 0).all():
                child = partition.columns[partition.stacks[0].members[0, -1]]
                raise naming.empty_cell(child, partition.cells, moments.n)
            posterior, units = posterior_of(partition, moments, encoder, parameters, prior, sharing)
            # What is constant says nothing of the class. By maximum likelihood it is an error, found below.
            left_out = moments.constant() if parameters == "bayes" else np.zeros(partition.n_attributes, bool)
            stacks = tuple(
                found
                for stack in partition.stacks
                for found in regressions_of(partition, stack, posterior, units, prior, left_out)
            )
            if parameters == "ml":
                for found in stacks:
                    broken = found.singular()
                    if broken is not None:
                        where = naming.cell(partition.cells, broken.configuration, broken.label)
                        raise naming.not_acceptable(broken.column, where, broken.n, broken.n_parents)
            regressions.append(stacks)
        return cls(statistics, prior, sharing, class_log_prior, tables, tuple(regressions))

    def __repr__(self) -> str:
        return f"Network({self.statistics!r})"

    def log_densities(self, table: Table) -> Iterator[LogDensities]:
        """Log density of every row, attribute and class, in parts; attributes left out of it add nothing."""
        yield from self._discrete_log_densities(table)
        for stacks in self.regressions:
            for stack in stacks:
                yield from stack.log_densities(table)

    def _discrete_log_densities(self, table: Table) -> Iterator[LogDensities]:
        for family, probabilities in zip(self.statistics.layout.discrete, self.tables, strict=True):
            configuration, code = family.cells.index(table), table.codes[:, family.code]
            for label, of_class in enumerate(probabilities):
                found = of_class[configuration, code][None]
                yield LogDensities(slice(0, table.n_rows), np.array([family.column]), label, found)

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every row and class."""
        total = np.zeros((len(self.class_log_prior), table.n_rows)).T
        for part in self._discrete_log_densities(table):
            total[:, part.label] += part.values[0]
        for stacks in self.regressions:
            for stack in stacks:
                total += stack.log_likelihood(table)
        return total

    def contributions(self, table: Table, n_columns: int) -> Floats:
        """The log densities kept apart: (rows, columns of X, classes)."""
        apart = np.zeros((table.n_rows, n_columns, len(self.class_log_prior)))
        for part in self.log_densities(table):
            of_class = apart[part.rows, :, part.label]
            of_class[:, part.columns] = part.values.T
            apart[part.rows, :, part.label] = of_class
        return apart

    def family_log_evidences(self) -> Iterator[tuple[Family, float]]:
        """The log evidence of every family, as columns of X."""
        layout = self.statistics.layout
        shared = self.sharing == 1
        for family, counts in zip(layout.discrete, self.statistics.counts, strict=True):
            evidence = float(densities.categorical_evidence(counts, self.prior.dirichlet).sum())
            yield Family(family.column, family.cells.columns), evidence
        for partition, moments, stacks in zip(
            layout.partitions, self.statistics.moments, self.regressions, strict=True
        ):
            for stack in stacks:
                found = stack.log_evidence(self.prior, moments.n, shared=shared)
                for members, evidences in zip(stack.columns.tolist(), found.tolist(), strict=True):
                    for position, evidence in enumerate(evidences, start=stack.n_given):
                        parents = (*partition.cells.columns, *members[:position])
                        yield Family(members[position], parents), evidence

    def log_evidence(self, *, class_learned: bool) -> float:
        """ln p(training data), the classes included."""
        if class_learned:
            total = float(densities.categorical_evidence(self.statistics.classes, self.prior.dirichlet))
        else:
            total = float(self.statistics.classes @ self.class_log_prior)
        return total + sum(evidence for _, evidence in self.family_log_evidences())

    def draw(self, labels: NDArray[np.intp], encoder: Encoder, order: list[int], rng: Any) -> Table:
        """One row per label from the predictive; ``order`` lists columns of X, parents first."""
        values = np.zeros((len(labels), len(encoder.continuous)))
        codes = np.zeros((len(labels), len(encoder.discrete)), np.int32)
        table = Table(values, codes, labels)
        layout = self.statistics.layout
        place = {column: i for i, column in enumerate(encoder.continuous)}
        discrete = {
            family.column: (family, probabilities)
            for family, probabilities in zip(layout.discrete, self.tables, strict=True)
        }
        regressed = {
            column: (stack, block, member)
            for stacks in self.regressions
            for stack in stacks
            for block, members in enumerate(stack.columns.tolist())
            for member, column in enumerate(members)
            if member >= stack.n_given
        }
        constants = {
            column: value
            for partition, moments in zip(layout.partitions, self.statistics.moments, strict=True)
            for column, value in zip(partition.columns.tolist(), moments.origin.tolist(), strict=True)
        }
        for column in order:
            if column in discrete:
                family, probabilities = discrete[column]
                rows = np.exp(probabilities[labels, family.cells.index(table)])
                below = np.cumsum(rows, axis=1) < rng.random(len(labels))[:, None] * rows.sum(axis=1)[:, None]
                codes[:, family.code] = below.sum(axis=1)
            else:
                if column not in regressed:  # constant in the training data
                    values[:, place[column]] = constants[column]
                    continue
                stack, block, member = regressed[column]
                configuration = stack.cells.index(table)
                for at in sorted(set(zip(configuration.tolist(), labels.tolist(), strict=True))):
                    chosen = np.flatnonzero((configuration == at[0]) & (labels == at[1]))
                    values[chosen, place[column]] = stack.draw(block, member, table, chosen, at, rng)
        return table


def posterior_of(
    partition: Partition, moments: Moments, encoder: Encoder, parameters: str, prior: Prior, sharing: float
) -> tuple[Posterior, Units]:
    """The posterior of a partition, or the likeliest point, and the units in which it speaks."""
    units = standard_units(moments, partition, encoder)
    standard = moments.standardised(units.unit)
    if parameters == "bayes":
        return prior.posterior(standard, partition.columns, units.origin, units.unit, sharing), units
    return maximum_likelihood(standard, sharing), units


def standard_units(moments: Moments, partition: Partition, encoder: Encoder) -> Units:
    """Units in which the training data have mean 0 and variance 1, if such can be represented."""
    units = Units.of(moments)
    if not np.isfinite(units.unit).all():
        column = partition.columns[np.argmin(np.isfinite(units.unit))]
        raise ValueError(f"the squares of {encoder.name(column)} overflow: divide it by a constant")
    return units


@dataclass(frozen=True)
class _Naming:
    """Words for the cells at which maximum likelihood breaks down."""

    encoder: Encoder
    classes: NDArray[Any]

    def cell(self, cells: Cells, configuration: int, label: int) -> str:
        parts = [f"class {self.classes.tolist()[label]!r}"]
        codes = np.unravel_index(configuration, cells.levels) if cells.levels else ()
        for column, code in zip(cells.columns, codes, strict=True):
            levels = self.encoder.levels[column]
            assert levels is not None
            parts.append(f"{self.encoder.name(column)} = {levels[int(code)]!r}")
        return ", ".join(parts)

    def not_acceptable(self, column: int, where: str, n: float, n_parents: int) -> SampleNotAcceptable:
        return SampleNotAcceptable(
            f"maximum likelihood does not exist for {self.encoder.name(column)} in the cell {where}: "
            f"{n:g} rows, {n_parents} continuous parents, and no variance left; "
            'use parameters="bayes", more rows or fewer parents'
        )

    def empty_level(self, family: DiscreteFamily, counts: Floats) -> SampleNotAcceptable:
        label, configuration, code = (int(i) for i in np.argwhere(counts == 0)[0])
        levels = self.encoder.levels[family.column]
        assert levels is not None
        return SampleNotAcceptable(
            f"maximum likelihood does not exist for {self.encoder.name(family.column)} in the cell "
            f"{self.cell(family.cells, configuration, label)}: 0 rows have the level {levels[code]!r} "
            f"({len(family.cells.columns)} discrete parents besides the class); "
            'use parameters="bayes", more rows or fewer levels'
        )

    def empty_cell(self, column: int, cells: Cells, n: Floats) -> SampleNotAcceptable:
        configuration, label = (int(i) for i in np.argwhere(n == 0)[0])
        return SampleNotAcceptable(
            f"maximum likelihood does not exist for {self.encoder.name(column)} in the cell "
            f"{self.cell(cells, configuration, label)}: 0 rows; "
            'use parameters="bayes", more rows or fewer parents'
        )
