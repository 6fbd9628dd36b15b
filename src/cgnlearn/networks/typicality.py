"""Typicality of a sample: the rank of its density among leave-one-out densities of training samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table, evenly_spaced
from cgnlearn.networks.model import Model, NotExactError

MOST_ROWS = 1000  # resolves a tail of one in a thousand; the samples are kept until they have been scored


def subsample(table: Table) -> Table:
    """A copy of at most `MOST_ROWS` evenly spaced samples."""
    return table.rows(evenly_spaced(table.n_samples, MOST_ROWS))


@dataclass(frozen=True, eq=False)
class Reference:
    """Leave-one-out results of training samples."""

    log_likelihood: Floats  # (samples, classes)
    class_log_prior: Floats  # (samples, classes)
    weights: Floats  # (samples,)

    @classmethod
    def of(cls, model: Model, table: Table) -> Reference:
        """Reference from training samples; raises `NotExactError` where leave-one-out would need refits."""
        held_out = model.leave_one_out(table)
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        return cls(held_out.log_likelihood, np.array(held_out.class_log_prior), weights)

    def typicality_of(self, log_density: Floats, class_prior: Sequence[float] | None) -> Floats:
        """Share of the training samples with a lower ln p(x); ``class_prior`` None: as learned."""
        prior = self.class_log_prior if class_prior is None else np.log(class_prior)
        held_out = logsumexp(self.log_likelihood + prior, axis=1)
        order = np.argsort(held_out)
        weight_below = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        share: Floats = weight_below[np.searchsorted(held_out[order], log_density)] / weight_below[-1]
        return share


@dataclass(frozen=True)
class NoReference:
    """The reason why there is no reference."""

    why: str = "only fit computes them"

    def typicality_of(self, log_density: Floats, class_prior: Sequence[float] | None) -> Floats:
        raise NotExactError(f"typicality needs leave-one-out densities of training samples, and {self.why}")


def scored(reference: Table | Reference | NoReference | None, model: Model) -> Reference | NoReference:
    """The reference of a model, computed from the training samples kept if that was not done before."""
    if reference is None:
        return NoReference()
    if not isinstance(reference, Table):
        return reference
    try:
        return Reference.of(model, reference)
    except NotExactError as error:
        return NoReference(str(error))
