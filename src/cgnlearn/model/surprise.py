"""How unlike the training data a row is: its density among those of training rows that were left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.model.densities import Floats
from cgnlearn.model.model import Model, NotExact
from cgnlearn.model.table import Table

MOST_ROWS = 1000  # a tail of a thousandth is told; and the rows are kept until they have been scored


def spread_out(table: Table) -> Table:
    """A copy of the rows, or of `MOST_ROWS` of them that are spread evenly over all."""
    return table.rows(evenly(table.n_rows, MOST_ROWS))


def evenly(n_rows: int, most: int) -> NDArray[np.intp]:
    """The indexes of all rows, or of as many of them as are allowed, spread over all."""
    n = min(n_rows, most)
    return np.arange(n) * n_rows // max(n, 1)  # whole numbers: steps of floats may lead beyond the last row


@dataclass(frozen=True, eq=False)
class Reference:
    """Training rows, each as the model without it sees it.

    Parameters
    ----------
    log_likelihood, class_log_prior : ndarray (rows, classes)
    weights : ndarray (rows,)
    """

    log_likelihood: Floats
    class_log_prior: Floats
    weights: Floats

    @classmethod
    def of(cls, model: Model, table: Table) -> Reference:
        """Of training rows; raises `NotExact` where leaving them out takes refits."""
        found = model.leave_one_out(table)
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        return cls(found.log_likelihood, np.array(found.class_log_prior), weights)

    def share_below(self, log_density: Floats, class_prior: Sequence[float] | None) -> Floats:
        """The share of the rows with a lower ln p(x); None: under the class probabilities that were learned."""
        prior = self.class_log_prior if class_prior is None else np.log(class_prior)
        seen = logsumexp(self.log_likelihood + prior, axis=1)
        order = np.argsort(seen)
        below = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        share: Floats = below[np.searchsorted(seen[order], log_density)] / below[-1]
        return share


@dataclass(frozen=True)
class Unscored:
    """Stands for training rows that could not be left out, and says why."""

    why: str = "only fit has them"

    def share_below(self, log_density: Floats, class_prior: Sequence[float] | None) -> Floats:
        """There is none."""
        raise NotExact(f"surprise needs training rows as models without them see them, and {self.why}")


def scored(reference: Table | Reference | Unscored | None, model: Model) -> Reference | Unscored:
    """The training rows that were kept, as models without them see them, if that was not done before."""
    if reference is None:
        return Unscored()
    if not isinstance(reference, Table):
        return reference
    try:
        return Reference.of(model, reference)
    except NotExact as error:
        return Unscored(str(error))
