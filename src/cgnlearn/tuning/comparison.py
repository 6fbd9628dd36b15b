"""The comparison of candidates: what each says of rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from cgnlearn.data.splits import stratified
from cgnlearn.model.densities import Floats
from cgnlearn.model.table import Table
from cgnlearn.tuning.candidates import Omitted
from cgnlearn.tuning.source import Description, Fit, Source, frequencies, frequencies_left_out
from cgnlearn.tuning.transforms import Views, learned

FOLDS = 5
NOTHING = "the rows weigh so little, or the columns vary so little, that nothing can be learned"


class Judged(NamedTuple):
    """The candidates of one source, and what they say of rows without them."""

    source: Source
    fit: Fit | None  # to all rows compared in, where leaving them out was part of it
    described: list[Description]
    log_likelihood: Floats  # (candidates, rows, classes)
    class_log_prior: Floats  # (rows, classes)
    by: list[str]  # how rows were held out, candidate by candidate


class Comparison:
    """Rows, whole and cut into folds, through all transforms.

    Parameters
    ----------
    table : Table
    views : Views
        Of the same rows, their transforms being learned from all rows.
    sources : sequence of Source
    dirichlet : float
    cv : int or None
        How many folds; None: leave-one-out where it is exact, else 5.
    groups : array or None
        Rows of one group are never on both sides of a fold; leave-one-out would part them.
    random_state : int or RandomState
    """

    def __init__(
        self,
        views: Views,
        sources: Sequence[Source],
        dirichlet: float,
        *,
        cv: int | None,
        groups: NDArray[Any] | None,
        random_state: Any,
    ) -> None:
        self.views = views
        self.sources = sources
        self.dirichlet = dirichlet
        self.cv = cv
        self.groups = groups
        self.random_state = random_state

    @property
    def table(self) -> Table:
        """The rows."""
        return self.views.table

    @property
    def leaves_one_out(self) -> bool:
        """Whether rows may be left out one by one."""
        return self.cv is None and self.groups is None

    @cached_property
    def folds(self) -> list[tuple[NDArray[np.intp], Views, Views]]:
        """For each fold its rows, and training and test rows through transforms that are learned from the former."""
        assert self.table.labels is not None
        cut = stratified(self.table.labels, self.cv or FOLDS, self.random_state, self.groups)
        found = []
        for train, test in cut.pairs:
            inside = self.table.rows(train)
            transforms = learned({source.view for source in self.sources}, inside)
            found.append((test, Views(inside, transforms), Views(self.table.rows(test), transforms)))
        return found

    @property
    def _has_folds(self) -> bool:
        """Whether the rows can be cut; where all candidates need folds, it is an error if not."""
        assert self.table.labels is not None
        return not self.leaves_one_out or bool((np.bincount(self.table.labels) > 1).any())

    def judged(self, n_jobs: int | None) -> Iterator[Judged | Omitted]:
        """All sources, in their order, one after the other or side by side."""
        if n_jobs in (None, 1):
            yield from map(self._judged, self.sources)
            return
        _ = self._has_folds and self.folds  # not by several threads at once
        for view in sorted({source.view for source in self.sources}):
            _ = self.views[view]
        run = Parallel(n_jobs, prefer="threads", return_as="generator")
        yield from run(delayed(self._judged)(source) for source in self.sources)

    def _judged(self, source: Source) -> Judged | Omitted:
        if self.leaves_one_out:
            scored = source.scored(self.views, leave_out=True)
            if not scored.described:
                return Omitted(source.kind, source.view, NOTHING)
            if scored.left_out is not None:
                prior = frequencies_left_out(self.table, self.dirichlet)
                by = scored.by or ["leave-one-out"] * len(scored.described)
                return Judged(source, scored.fit, scored.described, scored.left_out, prior, by)
        if not self._has_folds:
            return Omitted(source.kind, source.view, "no class has two rows, so that none can be held out")
        source = source.held(self.views)
        table = self.table
        prior = np.empty((table.n_rows, table.schema.n_classes))
        likelihood = None
        described: list[Description] = []
        for test, inside, outside in self.folds:
            scored = source.scored(inside, leave_out=False)
            found = scored.fit.log_likelihood(outside)
            if likelihood is None:
                likelihood = np.empty((len(found), table.n_rows, table.schema.n_classes))
            likelihood[:, test] = found
            prior[test] = frequencies(inside.table, self.dirichlet)
            described = scored.described
        assert likelihood is not None
        if not described:
            return Omitted(source.kind, source.view, NOTHING)
        by = [f"{len(self.folds)} folds"] * len(described)
        return Judged(source, None, described, likelihood, prior, by)
