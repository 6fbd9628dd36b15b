"""What a model is: log densities of rows under each class, from statistics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from cgnlearn.model.densities import Floats
from cgnlearn.model.schema import Schema
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table


class LeftOut(NamedTuple):
    """What models that have not seen a row say of it; arrays (rows, classes)."""

    log_likelihood: Floats
    class_log_prior: Floats


class NotExact(ValueError):
    """Leaving rows out has no closed form for this model: take folds."""


def refuse_holes(columns: Iterable[int], schema: Schema, why: str, otherwise: str = "leave the column out") -> None:
    """Say, if there are any, that columns in which values are missing are not to be had, why, and what to do."""
    for column in columns:
        raise ValueError(f"{schema.name(column)} has missing values, and {why}: impute them or {otherwise}")


class Model(Protocol):
    """A structure with its parameters, or an average over several."""

    @property
    def structure(self) -> Structure:
        """Over columns of X; of an average the most probable one."""

    @property
    def n_parameters(self) -> int:
        """Free parameters of the structure, the class's own included."""

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""

    @property
    def log_evidence(self) -> float:
        """ln p(training data), the classes included; an AttributeError where it is not defined."""

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every row and class."""

    def contributions(self, table: Table) -> Floats:
        """The log densities kept apart: (rows, columns of X, classes)."""

    def leave_one_out(self, table: Table) -> LeftOut:
        """The training rows again, each seen by the model without it; raises `NotExact` where that takes refits."""
