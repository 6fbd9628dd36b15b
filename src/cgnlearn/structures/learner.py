"""Learners: name the families to count before a sample is seen, and turn their statistics into a model.

Each is a scikit-learn estimator in its parameters alone, so that ``structure__k`` works in a grid search.
"""

from __future__ import annotations

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
    """Return the estimation, if structures can be weighted by their evidence under it."""
    if not isinstance(estimation, Bayes) or not estimation.has_evidence:
        raise ValueError(
            f'{who} weights structures by their evidence: it needs estimation="bayes", sharing 0 or 1, and a prior '
            'location that is "pooled" or an array'
        )
    return estimation


class Learner(BaseEstimator):  # type: ignore[misc]
    """Learner of a model over the columns of X."""

    has_leave_one_out: ClassVar[bool] = True  # whether the structure does not depend on the samples
    accepts_missing: ClassVar[bool] = True  # whether models predict samples with missing values
    is_sum: ClassVar[bool] = True  # whether log likelihoods are sums over features
    is_additive: ClassVar[bool] = True  # whether the statistics determine the model, so that samples can be added

    @property
    def needs_samples(self) -> bool:
        """Whether `resolved` has to see the samples before they are counted."""
        return False

    def families(self, schema: Schema) -> Families:
        """Families to count."""
        raise self._unresolved()

    def model(self, statistics: Statistics, estimation: Estimation) -> Model:
        """Model from statistics of these families."""
        raise self._unresolved()

    def _unresolved(self) -> ValueError:
        return ValueError(f"{self!r} needs samples to choose a structure: fit a CGNClassifier with it")

    def models(self, statistics: Statistics, estimations: Sequence[Estimation]) -> list[Model]:
        """Model for each estimation, from the same statistics."""
        return [self.model(statistics, estimation) for estimation in estimations]

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> Learner:
        """Return a learner that needs no more samples; the folds of a search keep each of ``groups`` together."""
        return self
