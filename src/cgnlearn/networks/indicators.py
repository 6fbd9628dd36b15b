"""Missing indicators: whether a value is missing, as a feature that depends on the class alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.coalitions import Likelihoods, Players, additive, coalitions_of
from cgnlearn.networks.estimation import Estimation, SampleNotAcceptableError
from cgnlearn.networks.model import LeaveOneOut, Model
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import Cumulants, LogDensities, categorical_cumulants


@dataclass(frozen=True, eq=False)
class Indicators:
    """Indicators of the columns with missing values in training."""

    columns: tuple[int, ...]  # of X
    counts: Floats  # weight of the samples with and without a value: (columns, classes, 2)
    dirichlet: float  # added to each count

    @classmethod
    def of(cls, statistics: Statistics, estimation: Estimation) -> Indicators:
        """Indicators from statistics; maximum likelihood needs both states of each in every class."""
        missing = statistics.missing
        columns = np.flatnonzero(missing.any(axis=0))
        counts = np.stack([statistics.classes[:, None] - missing, missing], axis=-1)[:, columns].transpose(1, 0, 2)
        counts = np.maximum(counts, 0.0)  # differences of weights may round to below 0
        if not estimation.averages and not counts.all():
            which, label, state = np.argwhere(counts == 0)[0].tolist()
            schema = statistics.schema
            raise SampleNotAcceptableError(
                f"maximum likelihood needs samples of class {schema.classes[label]!r} in which "
                f"{schema.name(int(columns[which]))} is {('observed', 'missing')[state]}: "
                'use estimation="bayes" or missing_indicator=False'
            )
        return cls(tuple(columns.tolist()), counts, estimation.dirichlet)

    def log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each column with the log probabilities of its indicator: (samples, classes)."""
        for column, counts in zip(self.columns, self.counts, strict=True):
            yield column, densities.categorical(counts, self.dirichlet).T[table.missing(column).astype(np.intp)]

    def log_likelihood(self, table: Table) -> Floats:
        """Sum of the log probabilities over the columns: (samples, classes)."""
        total = np.zeros((table.n_samples, table.schema.n_classes))
        for _, log_density in self.log_densities(table):
            total += log_density
        return total

    def posterior(self, table: Table) -> LogDensities:
        """The posterior of the sum of the log probabilities."""
        total = np.zeros((3, table.n_samples, table.schema.n_classes))
        for column, counts in zip(self.columns, self.counts, strict=True):
            state = table.missing(column).astype(np.intp)
            total += [part.T[state] for part in categorical_cumulants(counts, self.dirichlet)]
        return LogDensities.independent(Cumulants(*total))

    def leave_one_out(self, table: Table) -> Floats:
        """Leave-one-out log probabilities of training samples, summed over the columns: (samples, classes)."""
        assert table.labels is not None
        weights = 1.0 if table.weights is None else table.weights
        total = np.zeros((table.n_samples, table.schema.n_classes))
        for column, counts in zip(self.columns, self.counts, strict=True):
            state = table.missing(column).astype(np.intp)
            of_samples = np.repeat(counts[None], table.n_samples, axis=0)
            total += densities.categorical_leave_one_out(of_samples, self.dirichlet, table.labels, state, weights)
        return total

    def with_missing_values(self, table: Table, rng: Any) -> Table:
        """Drawn samples in which values are missing at random, given the class."""
        assert table.labels is not None
        values, codes = table.values.copy(), table.codes.copy()
        for column, counts in zip(self.columns, self.counts, strict=True):
            share = np.exp(densities.categorical(counts, self.dirichlet))[:, 1]
            is_missing = rng.random(table.n_samples) < share[table.labels]
            position = table.schema.position[column]
            if table.schema.levels[column] is None:
                values[is_missing, position] = np.nan
            else:
                codes[is_missing, position] = MISSING
        return replace(table, values=values, codes=codes)


@dataclass(frozen=True, eq=False)
class Indicated:
    """A `Model` of the features and of missing indicators, which are independent given the class."""

    features: Model
    indicators: Indicators

    @property
    def structure(self) -> Structure:
        return self.features.structure

    @property
    def n_parameters(self) -> int:
        return self.features.n_parameters + self.indicators.counts[..., 0].size

    @property
    def class_log_prior(self) -> Floats:
        return self.features.class_log_prior

    @property
    def log_evidence(self) -> float:
        evidence = densities.categorical_evidence(self.indicators.counts, self.indicators.dirichlet)
        return self.features.log_evidence + float(evidence.sum())

    def log_likelihood(self, table: Table) -> Floats:
        return self.features.log_likelihood(table) + self.indicators.log_likelihood(table)

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        known = None if log_likelihood is None else log_likelihood - self.indicators.log_likelihood(table)
        return self.features.log_densities(table, known) + self.indicators.posterior(table)

    def contributions(self, table: Table) -> Floats:
        by_column = self.features.contributions(table)
        for column, log_density in self.indicators.log_densities(table):
            by_column[:, column] += log_density
        return by_column

    def coalitions(self, table: Table, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of features; of a hidden one it is not known either whether it is missing."""
        by_column = np.zeros((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        for column, log_density in self.indicators.log_densities(table):
            by_column[:, column] = log_density
        return coalitions_of(self.features, table, players) + additive(by_column, players)

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        held_out = self.features.leave_one_out(table)
        return held_out._replace(log_likelihood=held_out.log_likelihood + self.indicators.leave_one_out(table))


def without_indicators(model: Model) -> Model:
    """The model of the features alone."""
    return model.features if isinstance(model, Indicated) else model
