"""Learners: what names the families to count before a row is seen, and makes a model of their statistics.

Each is a scikit-learn estimator in its parameters alone, so that ``structure__k`` works in a grid search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from sklearn.base import BaseEstimator

from cgnlearn.evaluation.splits import stratified
from cgnlearn.model.estimation import Bayes, Estimation
from cgnlearn.model.families import Columns, Families
from cgnlearn.model.model import Model
from cgnlearn.model.schema import Schema
from cgnlearn.model.statistics import Statistics, all_but_each, collect
from cgnlearn.model.table import Table
from cgnlearn.structures.selection import Choice, Scored, choose

Temperature = float | Literal["cv"]
Watch = Callable[[Iterable[Any]], Iterable[Any]]  # passes on the states of a search and tells of them

FOLDS = 5  # in which a temperature is chosen, where the learner does not say


class Resolved(NamedTuple):
    """What has been decided by looking at rows."""

    learner: Learner  # needs no more rows
    temperature: float
    found: dict[str, Any]  # what was learned on the way, by the names of the classifier's attributes


def with_evidence(how: Estimation, who: str) -> Bayes:
    """The same estimation, if structures can be weighted by their evidence under it."""
    if not isinstance(how, Bayes) or not how.has_evidence:
        raise ValueError(
            f'{who} weights structures by their evidence: it needs parameters="bayes", sharing 0 or 1, and a prior '
            'location that is "pooled" or an array'
        )
    return how


class Learner(ABC, BaseEstimator):  # type: ignore[misc]
    """A way to a model over the columns of X."""

    @property
    def needs_rows(self) -> bool:
        """Whether something has to be decided by looking at rows before they are counted."""
        return False

    @abstractmethod
    def families(self, schema: Schema) -> Families:
        """What has to be counted."""

    @abstractmethod
    def model(self, statistics: Statistics, how: Estimation) -> Model:
        """The model, from statistics of these families."""

    def resolved(
        self, table: Table, how: Estimation, temperature: Temperature = 1.0, random_state: Any = 0, watch: Watch = iter
    ) -> Resolved:
        """Decide all that needs rows: what this learner leaves open, and the temperature if it is ``"cv"``."""
        if temperature != "cv":
            return Resolved(self, temperature, {})
        choice = self._choice(table, how, temperature, random_state, FOLDS)
        return Resolved(self, choice.temperature, {"cv_results_": choice.results})

    def _choice(
        self, table: Table, how: Estimation, temperature: Temperature, random_state: Any, n_folds: int, **more: Any
    ) -> Choice:
        assert table.labels is not None
        cuts = [outside for _, outside in stratified(table.labels, n_folds, random_state).pairs]
        return choose(self._out_of_fold(table, cuts, how), cuts, table, temperature, **more)

    def _out_of_fold(self, table: Table, cuts: Sequence[Columns], how: Estimation) -> Iterator[Scored]:
        """What a model of all other rows says of the rows of each fold."""
        families = self.families(table.schema)
        parts = [table.rows(cut) for cut in cuts]
        for part, outside in zip(parts, all_but_each([collect(part, families) for part in parts]), strict=True):
            yield Scored.by(self.model(outside, how), part)
