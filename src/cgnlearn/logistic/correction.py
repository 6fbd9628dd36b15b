"""Discriminative parameters: a network with a penalised correction of its log odds.

    ln p(c | x) = ln p(c) + τ · s_c(x) + b_c + δ_c · φ(x) + const,        penalty λ/2 ‖δ‖²

with s the Bayesian log densities and φ the structure's features: logistic regression with s as its offset.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from cgnlearn.data.arrays import Floats, contrasts_of
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import Table
from cgnlearn.logistic.design import Design, LinearOdds
from cgnlearn.logistic.features import features_of
from cgnlearn.logistic.optimiser import Point, fitted
from cgnlearn.logistic.path import N_FOLDS, leave_one_out, penalties, steps
from cgnlearn.logistic.uncertainty import Curved
from cgnlearn.networks import densities
from cgnlearn.networks.densities import true_class_log_proba
from cgnlearn.networks.model import LeaveOneOut, Model, NotExactError
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities, NoSamplesError

MOST_BYTES = 2 << 30  # of the features of all training samples
LEAST_POWER = 1e-4  # likelihood power of a network for the spread of its log odds
SMALL = 300  # parameters for which one thread is as fast as several


@dataclass(frozen=True, eq=False)
class Correction(LinearOdds):
    """Correction that makes a network discriminative: δ and b, each of sum 0 over the classes, and τ."""

    likelihood_power: float  # τ, from 0 to 1
    penalty: float  # λ, infinite if δ = 0 predicts best
    penalties: Floats  # the path
    held_out_log_loss: Floats  # mean over the samples, at each of these penalties


@dataclass(frozen=True, eq=False)
class Discriminative:
    """A network and its correction."""

    network: Network
    correction: Correction
    training: Table | None = None  # training samples, for `log_densities`

    @property
    def structure(self) -> Structure:
        return self.network.structure

    @property
    def n_parameters(self) -> int:
        return self.network.n_parameters

    @property
    def class_log_prior(self) -> Floats:
        return self.network.class_log_prior

    @property
    def log_evidence(self) -> float:
        raise AttributeError('log_evidence_ is not defined for estimation="discriminative": use "bayes"')

    def log_likelihood(self, table: Table) -> Floats:
        """τ s + b + δ φ: (samples, classes); no densities, but predictions use them as such."""
        total = self.network.log_likelihood(table)
        total *= self.correction.likelihood_power
        total += self.correction.log_odds(partial(features_of, self.network), table)
        return total

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        """Normal, with the Hessian of the penalised loss; where δ = 0, that of the network with its power."""
        mean = self.log_likelihood(table) if log_likelihood is None else log_likelihood
        power = self.correction.likelihood_power
        if np.isinf(self.correction.penalty):
            return replace(self.network.log_densities(table).times(max(power, LEAST_POWER)), mean=mean)
        offset = self.network.log_likelihood(table) @ contrasts_of(mean.shape[1]).T
        covariance = self._curved.covariance(features_of(self.network, table).values, offset)
        return LogDensities(mean, covariance, np.zeros_like(mean))

    @cached_property
    def _refitted(self) -> tuple[Design, Point, Floats]:
        """The regression, its solution and leave-one-out log probabilities."""
        if self.training is None:
            raise NoSamplesError(
                'with estimation="discriminative", intervals and prediction sets need the training samples, which this '
                "model does not hold: fit it again, or save it with them"
            )
        samples, penalty = (design := design_of(self.network, self.training)).samples, self.correction.penalty
        point = fitted(samples, penalty, samples.origin)
        return design, point, leave_one_out(samples, penalty, point).log_proba

    @cached_property
    def _curved(self) -> Curved:
        design, point, log_proba = self._refitted
        times = float(self.network.statistics.classes.sum() / design.samples.weights.sum())
        # The curvature is that at held-out probabilities: at its own, a fit that separates the classes has none.
        return Curved.of(design, np.exp(log_proba), self.correction.penalty, point.power, max(1.0, times))

    @property
    def held_out_log_proba(self) -> Floats:
        """Leave-one-out log probabilities of the training samples, with the network's densities held out too."""
        return self._refitted[2]

    def contributions(self, table: Table) -> Floats:
        contributions = self.network.contributions(table)
        contributions *= self.correction.likelihood_power
        contributions += self.correction.contributions(partial(features_of, self.network), table)
        nodes = list(self.structure.nodes)
        contributions[:, nodes] += self.correction.intercept / max(1, len(nodes))  # b in equal parts
        return contributions

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        raise NotExactError('leave-one-out with estimation="discriminative" needs refits: use folds')


def fit_discriminative(model: Model, table: Table) -> Correction:
    """Correction of greatest penalised conditional likelihood, with the penalty chosen by held-out log loss."""
    if not isinstance(model, Network):
        raise ValueError('estimation="discriminative" needs one structure, not an average: fit its structure_')
    samples = (design := design_of(model, table)).samples
    # Matrices this small are slower with several threads.
    limit = numeric_libraries().limit(limits=1, user_api="blas") if samples.n_parameters < SMALL else nullcontext()
    with limit:
        path = list(steps(samples, penalties(samples)))
    losses = [
        -np.average(true_class_log_proba(step.log_proba, samples.labels), weights=samples.weights) for step in path
    ]
    best = path[np.argmin(losses)]  # the strongest penalty of equal ones
    odds = design.odds([best.point])[0]
    tried = np.array([step.penalty for step in path])
    return Correction(odds.centre, odds.slopes, odds.intercept, best.point.power, best.penalty, tried, np.array(losses))


def design_of(network: Network, table: Table) -> Design:
    """Regression whose solution is the correction."""
    n_bytes = 8 * table.n_samples * features_of(network, table.rows(np.arange(1))).values.size
    if n_bytes > MOST_BYTES:
        raise ValueError(
            f"the features of this structure need {n_bytes / 2**30:.0f} GB: use sharing=1, which needs no squares and "
            "products, or fewer parents"
        )
    # Predictions add the user's log prior; the training samples have their own.
    frequencies = densities.categorical(network.statistics.classes, network.estimation.dirichlet)
    return Design.of(features_of(network, table).values, table, frequencies, _held_out_scores(network, table))


def _held_out_scores(network: Network, table: Table) -> Floats:
    """Leave-one-out log densities of the training samples, or out-of-fold ones where values are missing."""
    try:
        return network.leave_one_out(table).log_likelihood
    except NotExactError:
        if not table.incomplete:
            raise ValueError(
                'estimation="discriminative" needs leave-one-out in closed form, which the prior location "paper" does '
                'not have: use Prior(location="pooled")'
            ) from None
    assert table.labels is not None
    scores = np.empty((table.n_samples, table.schema.n_classes))
    for train, test in stratified(table.labels, N_FOLDS, 0).pairs:
        statistics = collect(table.rows(train), network.statistics.families, network.statistics.incomplete)
        scores[test] = Network.of(network.structure, statistics, network.estimation).log_likelihood(table.rows(test))
    return scores
