"""Whether a value is missing, as an attribute of its own that depends on the class alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Estimation, SampleNotAcceptable
from cgnlearn.model.model import LeftOut, Model
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import MISSING, Table


@dataclass(frozen=True, eq=False)
class Indicators:
    """The columns that had holes in training, and how often they had them in each class.

    Parameters
    ----------
    columns : tuple of int
        Columns of X.
    counts : ndarray (columns, classes, 2)
        Weight of the rows in which the column was observed, and in which it was missing.
    dirichlet : float
        Added to each count.
    """

    columns: tuple[int, ...]
    counts: Floats
    dirichlet: float

    @classmethod
    def of(cls, statistics: Statistics, how: Estimation) -> Indicators:
        """Of columns with holes; by maximum likelihood every class must have rows with and without each."""
        missing = statistics.missing
        columns = np.flatnonzero(missing.any(axis=0))
        counts = np.stack([statistics.classes[:, None] - missing, missing], axis=-1)[:, columns].transpose(1, 0, 2)
        counts = np.maximum(counts, 0.0)  # what is left of weights that add up may be rounding below 0
        if not how.averages and not counts.all():
            which, label, state = np.argwhere(counts == 0)[0].tolist()
            schema = statistics.schema
            raise SampleNotAcceptable(
                f"maximum likelihood needs rows of class {schema.classes[label]!r} in which "
                f"{schema.name(int(columns[which]))} is {('observed', 'missing')[state]}: "
                'use parameters="bayes" or missing_indicator=False'
            )
        return cls(tuple(columns.tolist()), counts, how.dirichlet)

    def log_densities(self, table: Table) -> Iterator[tuple[int, Floats]]:
        """Each column with the log probabilities of its being observed, or missing, as it is: (rows, classes)."""
        for column, counts in zip(self.columns, self.counts, strict=True):
            yield column, densities.categorical(counts, self.dirichlet).T[table.missing(column).astype(np.intp)]

    def log_likelihood(self, table: Table) -> Floats:
        """The same for all columns."""
        total = np.zeros((table.n_rows, table.schema.n_classes))
        for _, found in self.log_densities(table):
            total += found
        return total

    def left_out(self, table: Table) -> Floats:
        """The same for training rows, each without itself."""
        assert table.labels is not None
        rows = np.arange(table.n_rows)
        weights = 1.0 if table.weights is None else table.weights
        total = np.zeros((table.n_rows, table.schema.n_classes))
        for column, counts in zip(self.columns, self.counts, strict=True):
            state = table.missing(column).astype(np.intp)
            cell = np.repeat(counts[None], table.n_rows, axis=0)
            cell[rows, table.labels, state] -= weights
            with np.errstate(divide="ignore"):  # by maximum likelihood what no other row shows has probability 0
                total += densities.categorical(np.maximum(cell, 0.0), self.dirichlet)[rows, :, state]
        return total

    def punched(self, table: Table, rng: Any) -> Table:
        """Drawn rows with holes where, by chance and by class, they are."""
        assert table.labels is not None
        values, codes = table.values.copy(), table.codes.copy()
        for column, counts in zip(self.columns, self.counts, strict=True):
            share = np.exp(densities.categorical(counts, self.dirichlet))[:, 1]
            holes = rng.random(table.n_rows) < share[table.labels]
            position = table.schema.position[column]
            if table.schema.levels[column] is None:
                values[holes, position] = np.nan
            else:
                codes[holes, position] = MISSING
        return replace(table, values=values, codes=codes)


@dataclass(frozen=True, eq=False)
class Indicated:
    """A model of what is observed, and beside it whether it is.

    Parameters
    ----------
    attributes : Model
    indicators : Indicators
    """

    attributes: Model
    indicators: Indicators

    @property
    def structure(self) -> Structure:
        """Of the attributes."""
        return self.attributes.structure

    @property
    def n_parameters(self) -> int:
        """Free parameters, the class's own and the indicators' included."""
        return self.attributes.n_parameters + self.indicators.counts[..., 0].size

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self.attributes.class_log_prior

    @property
    def log_evidence(self) -> float:
        """ln p(training data, and where it has holes), the classes included."""
        of_holes = densities.categorical_evidence(self.indicators.counts, self.indicators.dirichlet)
        return self.attributes.log_evidence + float(of_holes.sum())

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(what is observed, and that it is | class) of every row and class."""
        return self.attributes.log_likelihood(table) + self.indicators.log_likelihood(table)

    def contributions(self, table: Table) -> Floats:
        """The log densities kept apart, that of a column's indicator added to its own: (rows, columns, classes)."""
        apart = self.attributes.contributions(table)
        for column, found in self.indicators.log_densities(table):
            apart[:, column] += found
        return apart

    def leave_one_out(self, table: Table) -> LeftOut:
        """The training rows again, each seen by the model without it."""
        found = self.attributes.leave_one_out(table)
        return found._replace(log_likelihood=found.log_likelihood + self.indicators.left_out(table))


def without_indicators(model: Model) -> Model:
    """The model of the attributes alone."""
    return model.attributes if isinstance(model, Indicated) else model
