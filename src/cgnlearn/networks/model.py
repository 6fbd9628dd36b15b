"""What a model is: log densities of samples under each class, from statistics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities


class LeaveOneOut(NamedTuple):
    """Leave-one-out results, of models fitted to all other samples: (samples, classes)."""

    log_likelihood: Floats
    class_log_prior: Floats


class NotExactError(ValueError):
    """Leave-one-out has no closed form for this model: use folds."""


def require_complete(columns: Iterable[int], schema: Schema, why: str, otherwise: str = "drop the column") -> None:
    """Raise an error if any of the columns has missing values."""
    for column in columns:
        raise ValueError(f"{schema.name(column)} has missing values, and {why}: impute them or {otherwise}")


class Model(Protocol):
    """A structure with its parameters, or an average over structures."""

    @property
    def structure(self) -> Structure:
        """Structure over columns of X; of an average the most probable one."""

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, those of the class included."""

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes."""

    @property
    def log_evidence(self) -> float:
        """ln p(training data), the classes included; raises AttributeError where it is not defined."""

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class): (samples, classes)."""

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        """The posterior of ln p(x | class, parameters); raises `NoPosteriorError` where there is none.

        ``log_likelihood`` is that of the same samples, if it is known.
        """

    def contributions(self, table: Table) -> Floats:
        """Log density of each feature: (samples, columns of X, classes)."""

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        """Leave-one-out results of the training samples; raises `NotExactError` where they would need refits."""
