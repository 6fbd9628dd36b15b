"""Learners whose structure follows from the columns alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation, SampleNotAcceptableError, no_variance
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.rotation import RotatedBlock, RotatedNetwork, Rotation
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.learner import Learner, Watch

FEW_COLUMNS = 300  # whose pairs are always counted: it takes no time, and statistics that add are worth it
MOST_COLUMNS = 5000  # whose pairs fit into memory


class Fixed(Learner, ABC):
    """Learner whose structure follows from the columns alone."""

    @abstractmethod
    def structure(self, schema: Schema) -> Structure:
        """Structure over indexes of columns."""

    def families(self, schema: Schema) -> Families:
        return self.structure(schema).as_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Network:
        return Network.of(self.structure(statistics.schema), statistics, estimation)


class Given(Fixed):
    """A structure given by the user, over names or indexes of columns."""

    def __init__(self, given: Structure) -> None:
        self.given = given

    def structure(self, schema: Schema) -> Structure:
        return self.given.over(schema)


class NaiveBayes(Fixed):
    """Every feature depends on the class alone.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, NaiveBayes
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(NaiveBayes()).fit(X, y).structure_.parents
    {0: (), 1: (), 2: (), 3: ()}
    """

    def structure(self, schema: Schema) -> Structure:
        return Structure.naive_bayes(schema.n_columns)


class Complete(Fixed):
    """Every feature depends on all before it, the discrete ones first.

    With more continuous columns than training samples, and more than 300, a classifier is fitted by rotation into the
    space of the samples: exact, without counting pairs of columns, but without ``partial_fit`` and ``contributions``.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, Complete
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(Complete()).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (0, 1), 3: (0, 1, 2)}
    """

    def structure(self, schema: Schema) -> Structure:
        m = len(schema.continuous)
        if m > MOST_COLUMNS:
            raise ValueError(
                f"a complete structure over {m} continuous columns has {m * (m - 1) // 2} pairs of them to count, too "
                "many unless fit has fewer samples than columns: select columns or use a Band"
            )
        return Structure.jan([[*schema.discrete, *schema.continuous]])

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        if len(table.schema.continuous) > max(table.n_samples, FEW_COLUMNS):
            why = "a complete structure with more columns than samples needs complete samples"
            require_complete(table.incomplete, table.schema, why)
            if not isinstance(estimation, Bayes):
                raise _no_maximum_likelihood(table, estimation)
            return RotatedComplete.of(table, estimation)
        if table.incomplete:
            return Jan([range(table.schema.n_columns)]).resolved(table, estimation)
        return self


class RotatedComplete(Learner):
    """`Complete`, resolved to the space that the training samples span: its model is of these samples only."""

    accepts_missing = is_sum = is_additive = False

    def __init__(self, rotation: Rotation, rotated: Statistics) -> None:
        self.rotation = rotation
        self.rotated = rotated  # statistics of the rotated training samples

    @classmethod
    def of(cls, table: Table, estimation: Estimation) -> RotatedComplete:
        """Learner from the training samples."""
        prior = estimation.prior
        if prior.location == "paper" or prior.by_class or prior.is_uneven:
            why = 'the prior location "paper": use "pooled" or "cell"'
            if prior.location != "paper":
                why = "a prior by class, nor a strength or shape by feature: use another structure, or fewer columns"
            raise ValueError(
                f"a complete structure over {len(table.schema.continuous)} columns and {table.n_samples} samples is "
                f"fitted by rotation, which does not support {why}"
            )
        rotation = Rotation.of(table, estimation.prior)
        return cls(rotation, rotation.statistics(table))

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        return RotatedComplete.of(table, estimation)

    def families(self, schema: Schema) -> Families:
        # Besides the rotated ones: the discrete columns, and each continuous one alone.
        return Families.of(_of_discrete(schema).families, schema.continuous)

    def model(self, statistics: Statistics, estimation: Estimation) -> RotatedNetwork:
        assert isinstance(estimation, Bayes)
        pairs = zip(self.rotated.layout.partitions, self.rotated.moments, strict=True)
        return RotatedNetwork(
            Network.of(_of_discrete(statistics.schema), statistics, estimation),
            tuple(RotatedBlock.of(self.rotation, partition, moments, estimation) for partition, moments in pairs),
        )


def _of_discrete(schema: Schema) -> Structure:
    return Structure.jan([schema.discrete] if schema.discrete else [])


def _no_maximum_likelihood(table: Table, estimation: Estimation) -> SampleNotAcceptableError:
    """Why more continuous columns than samples have no maximum likelihood, without counting their pairs."""
    schema = table.schema
    assert table.labels is not None
    statistics = collect(table, Structure.jan([[*schema.discrete, schema.continuous[0]]]).as_families(schema))
    estimation.check(statistics)  # an empty cell has a message of its own
    (partition,) = statistics.layout.partitions
    inside = (partition.cells.index(table) == 0) & ((table.labels == 0) | (estimation.sharing > 0))
    n_parents = int(inside.sum()) - len(np.unique(table.labels[inside]))  # after each class's mean nothing is left
    return no_variance(schema, schema.continuous[n_parents], partition.cells, (0, 0), inside.sum(), n_parents)


class Jan(Fixed):
    """Groups of features, complete inside and independent between.

    Parameters
    ----------
    groups : list of lists
        Names or indexes of columns. A group's discrete features form one cell, on which its continuous ones are
        conditioned. Columns in no group are not in the model.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, Jan
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(Jan([[0, 1], [2, 3]])).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (), 3: (2,)}
    """

    def __init__(self, groups: Iterable[Iterable[Any]]) -> None:
        self.groups = groups

    def structure(self, schema: Schema) -> Structure:
        return Structure.jan([schema.discrete_first(group) for group in self._columns(schema)])

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        if not table.incomplete:
            return self
        # Order each group so that most samples count in most of its families. A column without a value would leave
        # the families of its children without samples, so it is nobody's parent.
        groups = []
        for group in self._columns(table.schema):
            without_values = [column for column in group if table.missing(column).all()]
            observed = [column for column in group if column not in without_values]
            groups += [table.most_complete_first(observed)] if observed else []
            groups += [[column] for column in without_values]
        return Jan(groups)

    def _columns(self, schema: Schema) -> list[list[int]]:
        return [[schema.column(node) for node in group] for group in self.groups]
