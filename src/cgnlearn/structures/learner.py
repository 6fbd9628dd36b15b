"""Learners: what names the families to count before a row is seen, and makes a model of their statistics.

Each is a scikit-learn estimator in its parameters alone, so that ``structure__k`` works in a grid search.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from cgnlearn.data.splits import stratified
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Bayes, Estimation
from cgnlearn.model.families import Columns, Families
from cgnlearn.model.indicators import Indicators
from cgnlearn.model.model import Model, NotExact
from cgnlearn.model.schema import Schema
from cgnlearn.model.statistics import Statistics, all_but_each, collect
from cgnlearn.model.table import Table
from cgnlearn.structures.selection import SHARINGS, Choice, Scored, choose

Temperature = float | Literal["cv"]
Watch = Callable[[Iterable[Any]], Iterable[Any]]  # passes on the states of a search and tells of them

FOLDS = 5  # in which a temperature is chosen, where the learner does not say


class Wish(NamedTuple):
    """What a user leaves to be chosen by looking at rows."""

    temperature: Temperature = 1.0
    sharing: bool = False  # whether it is open
    random_state: Any = 0
    groups: Any = None  # rows of one group are never on both sides of a fold
    watch: Watch = iter
    missing_indicator: bool = False  # whether candidates stand beside indicators, which are the same for all

    @property
    def is_open(self) -> bool:
        """Whether there is anything."""
        return self.temperature == "cv" or self.sharing

    def estimations(self, how: Estimation) -> list[Estimation]:
        """The candidates for how parameters are estimated."""
        return [replace(how, sharing=sharing) for sharing in SHARINGS] if self.sharing else [how]


NOTHING_OPEN = Wish()


class Resolved(NamedTuple):
    """What has been decided by looking at rows."""

    learner: Learner  # needs no more rows
    how: Estimation
    temperature: float
    found: dict[str, Any]  # what was learned on the way, by the names of the classifier's attributes
    statistics: Statistics | None = None  # of all rows and at least the learner's families, if they were needed


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

    @property
    def is_additive(self) -> bool:
        """Whether the model is all in the statistics, so that more rows can be added to them."""
        return True

    @abstractmethod
    def families(self, schema: Schema) -> Families:
        """What has to be counted."""

    @abstractmethod
    def model(self, statistics: Statistics, how: Estimation) -> Model:
        """The model, from statistics of these families."""

    forgets: ClassVar[bool] = True  # whether a model without a row is known without learning a structure anew

    def resolved(self, table: Table, how: Estimation, wish: Wish = NOTHING_OPEN) -> Resolved:
        """Decide all that needs rows: what this learner leaves open, and what the user does."""
        if not wish.is_open:
            return Resolved(self, how, float(wish.temperature), {})
        hows = wish.estimations(how)
        choice, statistics = self._choice(table, hows, wish)
        chosen = hows[choice.candidate]
        return Resolved(self, chosen, choice.temperature, {"cv_results_": choice.results}, statistics)

    def _choice(
        self,
        table: Table,
        hows: Sequence[Estimation],
        wish: Wish,
        n_folds: int = FOLDS,
        scoring: str = "cll",
        names: Mapping[str, Sequence[Any]] | None = None,
    ) -> tuple[Choice, Statistics | None]:
        """By leave-one-out, if that is exact and the rows have no groups, else by folds."""
        assert table.labels is not None
        if wish.sharing:
            names = {"sharing": [how.sharing for how in hows]} if names is None else names
        chosen = partial(choose, table=table, temperature=wish.temperature, scoring=scoring, names=names or {})
        if self.forgets and wish.groups is None:
            statistics = collect(table, self._counted(table.schema))
            with suppress(NotExact):
                scored = self._scored(statistics, table, hows, left_out=True)
                if wish.missing_indicator:
                    scored = scored.plus(Indicators.of(statistics, hows[0]).left_out(table))
                return chosen([scored], [np.arange(table.n_rows)]), statistics
        pairs = stratified(table.labels, n_folds, wish.random_state, wish.groups).pairs
        cuts = [outside for _, outside in pairs]
        found = self._out_of_fold(table, cuts, hows, wish)
        if wish.missing_indicator:
            found = map(Scored.plus, found, _of_indicators(table, pairs, hows[0]))
        return chosen(found, cuts), None

    def _counted(self, schema: Schema) -> Families:
        """What all candidates need counted."""
        return self.families(schema)

    def _scored(self, statistics: Statistics, table: Table, hows: Sequence[Estimation], *, left_out: bool) -> Scored:
        """What all candidates say of rows."""
        return Scored.by([self.model(statistics, how) for how in hows], table, left_out=left_out)

    def _out_of_fold(
        self, table: Table, cuts: Sequence[Columns], hows: Sequence[Estimation], wish: Wish
    ) -> Iterator[Scored]:
        """What models of all other rows say of the rows of each fold."""
        families = self._counted(table.schema)
        parts = [table.rows(cut) for cut in cuts]
        counted = [collect(part, families, table.incomplete) for part in parts]
        for part, outside in zip(parts, all_but_each(counted), strict=True):
            yield self._scored(outside, part, hows, left_out=False)


def _of_indicators(table: Table, pairs: Iterable[tuple[Columns, Columns]], how: Estimation) -> Iterator[Floats]:
    """What indicators of all other rows say of the rows of each fold."""
    for inside, outside in pairs:
        counted = collect(table.rows(inside), Families.of(()))
        yield Indicators.of(counted, how).log_likelihood(table.rows(outside))
