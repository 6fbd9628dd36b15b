"""Learners whose structure follows from the columns alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from cgnlearn.model.estimation import Estimation
from cgnlearn.model.families import Families
from cgnlearn.model.network import Network
from cgnlearn.model.schema import Schema
from cgnlearn.model.statistics import Statistics
from cgnlearn.model.structure import Structure
from cgnlearn.structures.learner import Learner


class Fixed(Learner):
    """A learner whose structure follows from the columns alone."""

    @abstractmethod
    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""

    def families(self, schema: Schema) -> Families:
        """What has to be counted."""
        return self.structure(schema).as_families(schema)

    def model(self, statistics: Statistics, how: Estimation) -> Network:
        """The model, from statistics of these families."""
        return Network.of(self.structure(statistics.schema), statistics, how)


class Given(Fixed):
    """A structure that is given, over names or indexes of columns."""

    def __init__(self, given: Structure) -> None:
        self.given = given

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        return self.given.over(schema)


class NaiveBayes(Fixed):
    """Every attribute depends on the class alone."""

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        return Structure.naive_bayes(schema.n_columns)


class Complete(Fixed):
    """Every attribute depends on all before it, the discrete ones first."""

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        return Structure.jan([[*schema.discrete, *schema.continuous]])


class Jan(Fixed):
    """Groups of attributes, complete inside and independent between.

    Parameters
    ----------
    groups : list of lists
        Names or indexes of columns. A group's discrete attributes form one cell, on which its continuous ones are
        conditioned. Columns in no group are not in the model.
    """

    def __init__(self, groups: Iterable[Iterable[Any]]) -> None:
        self.groups = groups

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        groups = [[schema.column(node) for node in group] for group in self.groups]
        return Structure.jan([schema.discrete_first(group) for group in groups])
