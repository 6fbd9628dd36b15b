"""What a source of candidates is: models of one kind that are computed together, and what they say of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.table import Table
from cgnlearn.tuning.transforms import Views

Description = Mapping[str, Any]  # a candidate's parameters, by name


class Fit(ABC):
    """The candidates of a source, fitted to rows."""

    view: str  # the transform through which it sees rows
    has_density: bool = True  # whether log likelihoods are densities of the columns as this view has them

    @property
    def is_sum(self) -> bool:
        """Whether log likelihoods are sums over attributes."""
        return True

    @property
    def takes_holes(self) -> bool:
        """Whether it can say something of a row in which a value is missing."""
        return True

    @abstractmethod
    def log_likelihood(self, views: Views) -> Floats:
        """ln p(x | class), or what predictions need in its place: (candidates, rows, classes)."""

    @abstractmethod
    def left_out(self, views: Views) -> Floats:
        """The same of training rows, each without itself; raises `NotExact` where that takes refits."""

    @abstractmethod
    def contributions(self, views: Views, candidate: int) -> Floats:
        """What a candidate's is the sum of: (rows, columns of X, classes)."""

    @abstractmethod
    def kept(self, which: Sequence[int]) -> Fit:
        """Some of the candidates."""


class Scored(NamedTuple):
    """A fit to some rows, and what its candidates say of these rows without them, if that is known."""

    fit: Fit
    described: list[Description]
    left_out: Floats | None  # (candidates, rows, classes)
    by: list[str] | None = None  # how, candidate by candidate, where not all by leave-one-out


class Source(ABC):
    """A way to several candidates at once.

    Attributes
    ----------
    kind : str
    view : str
    has_density : bool
        As its fits have.
    is_additive : bool
        Whether a fit to all rows of a large table is cheap.
    """

    kind: str
    view: str
    has_density: bool = True
    is_additive: bool = True

    @abstractmethod
    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """Fitted to labelled rows; with ``leave_out`` each of these is scored without itself, if that is possible."""

    def held(self, views: Views) -> Source:
        """The same with everything fixed that must not differ between folds."""
        return self


def frequencies(table: Table, dirichlet: float) -> Floats:
    """Log probabilities of the classes: (classes,)."""
    assert table.labels is not None
    counts = np.bincount(table.labels, table.weights, minlength=table.schema.n_classes).astype(float)
    return densities.categorical(counts, dirichlet)


def frequencies_left_out(table: Table, dirichlet: float) -> Floats:
    """The same for every row without it: (rows, classes)."""
    assert table.labels is not None
    n_classes = table.schema.n_classes
    counts = np.bincount(table.labels, table.weights, minlength=n_classes)
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    lost = np.where(table.labels[:, None] == np.arange(n_classes), weights[:, None], 0.0)
    return densities.categorical(np.maximum(counts - lost, 0.0), dirichlet)
