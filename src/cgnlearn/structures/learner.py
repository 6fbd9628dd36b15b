"""Learners: what names the families to count before a sample is seen, and makes a model of their statistics.

Each is a scikit-learn estimator in its parameters alone, so that ``structure__k`` works in a grid search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import Model
from cgnlearn.networks.statistics import Statistics

Watch = Callable[[Iterable[Any]], Iterable[Any]]  # passes on the states of a search and reports them


def with_evidence(estimation: Estimation, who: str) -> Bayes:
    """The same estimation, if structures can be weighted by their evidence under it."""
    if not isinstance(estimation, Bayes) or not estimation.has_evidence:
        raise ValueError(
            f'{who} weights structures by their evidence: it needs estimation="bayes", sharing 0 or 1, and a prior '
            'location that is "pooled" or an array'
        )
    return estimation


class Learner(ABC, BaseEstimator):  # type: ignore[misc]
    """A way to a model over the columns of X."""

    has_leave_one_out: ClassVar[bool] = True  # whether the structure does not depend on the samples
    accepts_missing: ClassVar[bool] = True  # whether models predict samples with missing values
    is_sum: ClassVar[bool] = True  # whether log likelihoods are sums over features

    @property
    def needs_samples(self) -> bool:
        """Whether something has to be decided by looking at samples before they are counted."""
        return False

    @property
    def is_additive(self) -> bool:
        """Whether the model is all in the statistics, so that more samples can be added to them."""
        return True

    @abstractmethod
    def families(self, schema: Schema) -> Families:
        """What has to be counted."""

    @abstractmethod
    def model(self, statistics: Statistics, estimation: Estimation) -> Model:
        """The model, from statistics of these families."""

    def models(self, statistics: Statistics, estimations: Sequence[Estimation]) -> list[Model]:
        """A model for each estimation, from the same statistics."""
        return [self.model(statistics, estimation) for estimation in estimations]

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        """A learner that needs no more samples.

        Parameters
        ----------
        table : Table
        estimation : Estimation
        groups : array (samples,), optional
            No fold of a search has samples of one group on both sides.
        watch : callable
            Passes on the states of a search.
        """
        return self
