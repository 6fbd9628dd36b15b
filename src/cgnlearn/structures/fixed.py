"""Learners whose structure follows from the columns alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.learner import Learner, Watch
from cgnlearn.structures.rotated import RotatedComplete, without_likelihood

FEW_COLUMNS = (
    300  # whose pairs are counted whatever the samples: it takes no time, and statistics that add are worth it
)
MOST_COLUMNS = 5000  # whose pairs fit into memory


class Fixed(Learner):
    """A learner whose structure follows from the columns alone."""

    @abstractmethod
    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""

    def families(self, schema: Schema) -> Families:
        """What has to be counted."""
        return self.structure(schema).as_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Network:
        """The model, from statistics of these families."""
        return Network.of(self.structure(statistics.schema), statistics, estimation)


class Given(Fixed):
    """A structure that is given, over names or indexes of columns."""

    def __init__(self, given: Structure) -> None:
        self.given = given

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
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
        """The structure, its nodes being indexes of columns."""
        return Structure.naive_bayes(schema.n_columns)


class Complete(Fixed):
    """Every feature depends on all before it, the discrete ones first.

    With more continuous columns than training samples, and more than 300, a classifier is fitted by rotation into the
    space of the samples: exact, and no pair of columns is counted. ``partial_fit`` and ``contributions`` cannot follow.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, Complete
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(Complete()).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (0, 1), 3: (0, 1, 2)}
    """

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        m = len(schema.continuous)
        if m > MOST_COLUMNS:
            raise ValueError(
                f"a complete structure over {m} continuous columns has {m * (m - 1) // 2} pairs of them to count, too "
                "many; only fit, and with fewer samples than columns, does without: take fewer columns or a Band"
            )
        return Structure.jan([[*schema.discrete, *schema.continuous]])

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        """Rotate, if the columns outnumber the samples; where values are missing, order the columns."""
        if len(table.schema.continuous) > max(table.n_samples, FEW_COLUMNS):
            require_complete(
                table.incomplete, table.schema, "more columns than samples are rotated, which takes whole samples"
            )
            if not isinstance(estimation, Bayes):
                raise without_likelihood(table, estimation)
            return RotatedComplete.of(table, estimation)
        if table.incomplete:
            return Jan([range(table.schema.n_columns)]).resolved(table, estimation)
        return self


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
        """The structure, its nodes being indexes of columns."""
        return Structure.jan([schema.discrete_first(group) for group in self._columns(schema)])

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        """Where values are missing, order each group so that most samples are seen by most of its families."""
        if not table.incomplete:
            return self
        return Jan([table.most_complete_first(group) for group in self._columns(table.schema)])

    def _columns(self, schema: Schema) -> list[list[int]]:
        """The groups as indexes of columns."""
        return [[schema.column(node) for node in group] for group in self.groups]
