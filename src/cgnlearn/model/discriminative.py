"""Discriminative parameters: a network corrected so that it predicts the class best, and penalised towards itself.

    ln p(c | x) = ln p(c) + τ · s_c(x) + b_c + δ_c · φ(x) + const,        penalty λ/2 ‖δ‖²

with s the Bayesian log densities and φ the structure's features.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, helmert

from cgnlearn.data.splits import stratified
from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.families import Columns
from cgnlearn.model.features import features, n_features
from cgnlearn.model.logistic import Point, Rows, fitted, left_out, penalty_leaving
from cgnlearn.model.model import LeftOut, Model, NotExact
from cgnlearn.model.moments import numeric_libraries
from cgnlearn.model.network import Network
from cgnlearn.model.statistics import collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table

MOST_BYTES = 2 << 30  # of the features of all training rows
CHUNK = 1 << 22  # features held at once in a prediction
FOLDS = 5  # by which rows are scored that cannot be left out one by one
SMALL = 300  # parameters for which one thread is as fast as several
CONSTANT = 1e-9  # deviation of a feature that says nothing, relative to its greatest value
WEAKEST = 0.01  # penalty: slopes of ten to a standard deviation are then nothing unusual
N_PENALTIES = 10
LEAST_EFFECTIVE = 0.5  # parameters to a contrast, at the strongest penalty
ROWS_TO_A_PARAMETER = 4  # at the weakest penalty: below it the leave-one-out flatters


@dataclass(frozen=True, eq=False)
class Correction:
    """What makes a network discriminative.

    Parameters
    ----------
    temperature : float
        τ, from 0 to 1.
    offset : ndarray (classes,)
        b; its sum is 0.
    slopes : ndarray (classes, features)
        δ, of features that are not standardised; 0 where they are constant. Sums over the classes are 0.
    centre : ndarray (features,)
        The features' means.
    penalty : float
        λ, infinite where no correction beyond τ and b predicts better.
    penalties, left_out_cll : ndarray (penalties,)
        The path, and the mean log probability of the true class of rows left out.
    """

    temperature: float
    offset: Floats
    slopes: Floats
    centre: Floats
    penalty: float
    penalties: Floats
    left_out_cll: Floats


@dataclass(frozen=True, eq=False)
class Discriminative:
    """A network and its correction."""

    network: Network
    correction: Correction

    @property
    def structure(self) -> Structure:
        """The network's."""
        return self.network.structure

    @property
    def n_parameters(self) -> int:
        """The network's."""
        return self.network.n_parameters

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a row."""
        return self.network.class_log_prior

    @property
    def log_evidence(self) -> float:
        """Not defined: conditional likelihood says nothing of the attributes' own probability."""
        raise AttributeError('log_evidence_ is not defined for parameters="discriminative": take "bayes"')

    def log_likelihood(self, table: Table) -> Floats:
        """τ s + b + δ φ of every row and class: no density, but what predictions need in its place."""
        total = self.network.log_likelihood(table)
        total *= self.correction.temperature
        total += self.correction.offset
        size = max(1, CHUNK // max(1, n_features(self.network)))
        for start in range(0, table.n_rows, size):
            rows = np.arange(start, min(start + size, table.n_rows))
            for _, slopes, values in self._parts(table.rows(rows)):
                total[rows] += values @ slopes.T
        return total

    def contributions(self, table: Table) -> Floats:
        """The same kept apart by attributes, b in equal parts: (rows, columns of X, classes)."""
        apart = self.network.contributions(table)
        apart *= self.correction.temperature
        nodes = list(self.structure.nodes)
        apart[:, nodes] += self.correction.offset / max(1, len(nodes))
        for owner, slopes, values in self._parts(table):
            for label, of_class in enumerate(slopes):
                np.add.at(apart[:, :, label].T, owner, (values * of_class).T)
        return apart

    def leave_one_out(self, table: Table) -> LeftOut:
        """Not exact."""
        raise NotExact('leaving rows out takes refits with parameters="discriminative": take folds')

    def _parts(self, table: Table) -> Iterator[tuple[Columns, Floats, Floats]]:
        """Some features' owners, slopes, and centred values."""
        done = 0
        for owner, values in features(self.network, table):
            here = slice(done, done + len(owner))
            centred = values - self.correction.centre[here]
            yield owner, self.correction.slopes[:, here], np.where(np.isnan(centred), 0.0, centred)
            done += len(owner)


def fit_discriminative(model: Model, table: Table) -> Correction:
    """The correction of most conditional likelihood, its penalty chosen by leave-one-out."""
    if not isinstance(model, Network):
        raise ValueError('parameters="discriminative" needs one structure, not an average: fit its structure_')
    values, centre, scale = _standardised(model, table)
    kept = scale > 0
    basis = None
    rotated = values[:, kept]
    if rotated.shape[1] > len(rotated):
        basis, rotated = row_space(rotated)
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    # Predictions add the log prior that the user gives; the sample has its own.
    frequencies = densities.categorical(model.statistics.classes, model.how.dirichlet)
    assert table.labels is not None
    rows = Rows.of(rotated, _left_out_scores(model, table), frequencies, table.labels, weights)
    # Matrices this small only lose by being cut up for several threads.
    limit = numeric_libraries().limit(limits=1, user_api="blas") if rows.n_parameters < SMALL else nullcontext()
    with limit:
        candidates = list(path(rows))
    best = max(candidates, key=lambda candidate: candidate.cll)  # of equals the first, which has most penalty
    across = helmert(table.schema.n_classes).T
    slopes = np.zeros((len(across), len(centre)))
    if np.isfinite(best.penalty):
        found = best.point.slopes[1:]
        if basis is not None:
            found = values[:, kept].T @ (basis @ found)
        slopes[:, kept] = across @ found.T / scale[kept]
    return Correction(
        best.point.temperature,
        across @ best.point.slopes[0],
        slopes,
        centre,
        float(best.penalty),
        np.array([candidate.penalty for candidate in candidates]),
        np.array([candidate.cll for candidate in candidates]),
    )


class Candidate(NamedTuple):
    """A penalty, its parameters, and the mean log probability of the true class of rows left out."""

    penalty: float
    point: Point
    cll: float


def path(rows: Rows) -> Iterator[Candidate]:
    """Ever weaker penalties, from infinite on, each fit starting at the one before."""
    n = rows.n_contrasts
    alone = rows.without_features()
    point = fitted(alone, 0.0, Point(np.zeros((1, n)), 1.0))
    yield Candidate(np.inf, point, _cll(rows, left_out(alone, 0.0, point)))
    point = Point(np.concatenate([point.slopes, np.zeros((rows.design.shape[1] - 1, n))]), point.temperature)
    for penalty in _penalties(rows):
        point = fitted(rows, penalty, point)
        yield Candidate(penalty, point, _cll(rows, left_out(rows, penalty, point)))


def _cll(rows: Rows, log_proba: Floats) -> float:
    return float(np.average(log_proba[np.arange(len(rows.labels)), rows.labels], weights=rows.weights))


def _penalties(rows: Rows) -> list[float]:
    """From one that leaves next to nothing to one that leaves a parameter to every four rows."""
    if not rows.design.shape[1] > 1:
        return []
    strongest = penalty_leaving(rows, LEAST_EFFECTIVE)
    weakest = max(WEAKEST, penalty_leaving(rows, rows.weights.sum() / ROWS_TO_A_PARAMETER / rows.n_contrasts))
    return np.geomspace(strongest, weakest, N_PENALTIES).tolist() if strongest > weakest else []


def _left_out_scores(network: Network, table: Table) -> Floats:
    """The log densities of the training rows, each by the network without it; of a row twice, one is left out."""
    once = table if table.weights is None else replace(table, weights=np.minimum(table.weights, 1.0))
    try:
        return network.leave_one_out(once).log_likelihood
    except NotExact:
        if table.incomplete:
            return _out_of_fold_scores(network, table)
        raise ValueError(
            'parameters="discriminative" leaves rows out in closed form, which the prior location "paper" has not: '
            'use Prior(location="pooled")'
        ) from None


def _out_of_fold_scores(network: Network, table: Table) -> Floats:
    """The same by folds."""
    assert table.labels is not None
    scores = np.empty((table.n_rows, table.schema.n_classes))
    for inside, outside in stratified(table.labels, FOLDS, 0).pairs:
        others = collect(table.rows(inside), network.statistics.families, network.statistics.incomplete)
        scores[outside] = Network.of(network.structure, others, network.how).log_likelihood(table.rows(outside))
    return scores


def _standardised(network: Network, table: Table) -> tuple[Floats, Floats, Floats]:
    """The features with mean 0 and variance 1, their means, and their deviations, 0 where one is constant."""
    n_bytes = 8 * table.n_rows * n_features(network)
    if n_bytes > MOST_BYTES:
        raise ValueError(
            f"the features of this structure take {n_bytes / 2**30:.0f} GB: use sharing=1, which needs no squares and "
            "products, or fewer parents"
        )
    values = np.concatenate([np.zeros((table.n_rows, 0)), *(part for _, part in features(network, table))], axis=1)
    missing = np.isnan(values)
    values[missing] = 0.0
    centre = np.average(values, axis=0, weights=table.weights)
    if missing.any():
        seen = np.average(~missing, axis=0, weights=table.weights)
        centre /= np.where(seen > 0, seen, 1.0)
    greatest = np.abs(values).max(axis=0)
    values -= centre
    values[missing] = 0.0  # at its mean what is missing says nothing
    scale = np.sqrt(np.average(np.square(values), axis=0, weights=table.weights))
    scale[scale <= CONSTANT * greatest] = 0.0
    values /= np.where(scale > 0, scale, 1.0)
    return values, centre, scale


def row_space(values: Floats) -> tuple[Floats, Floats]:
    """Coordinates of the rows in their own span, which a ridge cannot tell from the values; values.T @ basis @ slopes
    of these are slopes of those.
    """
    squares, vectors = eigh(values @ values.T)
    kept = squares > 1e-12 * squares[-1]
    lengths = np.sqrt(squares[kept])
    return vectors[:, kept] / lengths, vectors[:, kept] * lengths
