"""Whether reference ranges are believed: they are set aside where held-out samples speak against them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from cgnlearn.candidates.candidate import HeldOut, Samples
from cgnlearn.candidates.comparison import Comparison, Scores
from cgnlearn.candidates.networks import LearnerCandidate
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.networks.estimation import Bayes
from cgnlearn.networks.prior import Prior
from cgnlearn.structures.fixed import NaiveBayes

# Nats by which all held-out samples together must be predicted better without ranges: 7 to 1 against them.
DOUBT = 2.0
# Samples of a class that are counted: without its only one, the default prior, whose mean is that of all samples, would
# still know of it.
FEWEST = 2


def believed(prior: Prior, table: Table, groups: Any, seed: int) -> Prior:
    """The prior, without its ranges if held-out samples are predicted clearly better so.

    A naive Bayes predicts them, as a range is about one feature, each time with the likelihood power that suits best.
    """
    if not prior.ranges or prior.binding:
        return prior
    without = replace(prior, ranges=())
    estimations = Bayes(prior.resolved(table.schema)), Bayes(without.resolved(table.schema))
    candidate = LearnerCandidate(NaiveBayes(), "none", estimations, (), False, "naive_bayes")
    samples = Samples.learning(["none"], table, groups)
    (held_out,) = Comparison(samples, [candidate], prior.dirichlet, cv=None, seed=seed).held_out()
    if not isinstance(held_out, HeldOut):
        return prior
    assert table.labels is not None
    counted = (np.bincount(table.labels) >= FEWEST)[table.labels] * table.effective_weights
    if not counted.any():
        return prior
    loss, loss_without = -(counted @ Scores.of([held_out], table).truth) / counted.sum()
    if (loss - loss_without) * counted.sum() < DOUBT:
        return prior
    warnings.warn(
        f"the reference ranges are set aside, as held-out samples are predicted better without them (log loss "
        f"{loss_without:.3f}, with them {loss:.3f}): prior_agreement_ says which conflict; "
        "Prior(binding=True) keeps them",
        DataWarning,
        stacklevel=5,
    )
    return without
