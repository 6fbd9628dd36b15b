"""Typicality of a sample: the rank of its density among those of held-out training samples.

Densities of samples in which different values are observed cannot be compared: they have different dimensions. Each is
then replaced by its standing among samples drawn from the model in which the same values are observed, and standings
are ranked. Between two samples with the same values observed, the order of standings is that of densities.

Real samples have low standings more often than drawn ones, the more so the more features the model has to get right
together; for a single feature hardly. The standings of training samples are therefore moved towards those that the
model expects (or away), in proportion to the number of observed values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.splits import stratified_sample
from cgnlearn.data.table import Table
from cgnlearn.networks.components import Mask
from cgnlearn.networks.estimation import SampleNotAcceptableError
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.model import Model, NotExactError
from cgnlearn.networks.moments import numeric_libraries

MOST_ROWS = 1000  # resolves a tail of one in a thousand; the samples are kept until they have been scored
MOST_REFITS = 100  # of training samples held out by refits; the others are corrected by their line
LEAST_REFITS = 20
REFITTED = 10_000_000  # samples × columns of all refits
MOST_DRAWS = 1000  # samples drawn from the model
LEAST_DRAWS = 200
DRAWN = 2_000_000  # values of all of them
ENDS = 0.02, 0.98  # of the drawn densities: beyond, their distribution is continued by an exponential one
TAIL = 0.1  # share of the drawn densities from which the scale of that is learned
QUANTILES = 0.0, 0.05, 0.5, 0.95, 1.0  # of values, which tell the range of the training samples
FARTHEST = 1e300  # instead of infinite log densities, between which nothing can be interpolated

Refit = Callable[[NDArray[np.intp]], Model]  # the model without the training samples with these indexes


def subsample(table: Table) -> Table:
    """A copy of at most `MOST_ROWS` samples, at random within each class."""
    assert table.labels is not None
    return table.rows(stratified_sample(table.labels, MOST_ROWS))


def value_quantiles(table: Table) -> Floats:
    """`QUANTILES` of the observed values, NaN of a column without any: (continuous columns, quantiles)."""
    found = np.full((table.values.shape[1], len(QUANTILES)), np.nan)
    complete = ~np.isnan(table.values).any(axis=0)
    if table.n_samples:
        found[complete] = np.quantile(table.values[:, complete], QUANTILES, axis=0).T
    for column in np.flatnonzero(~complete).tolist():
        values = table.values[:, column]
        if len(observed := values[~np.isnan(values)]):
            found[column] = np.quantile(observed, QUANTILES)
    return found


def n_draws(n_columns: int) -> int:
    """Number of samples to draw from a model."""
    return int(np.clip(DRAWN // max(n_columns, 1), LEAST_DRAWS, MOST_DRAWS))


def spread_labels(class_log_prior: Floats, n: int) -> NDArray[np.intp]:
    """Class codes of drawn samples, as often as the classes are expected."""
    share = np.cumsum(np.exp(class_log_prior - logsumexp(class_log_prior)))
    return np.minimum(np.searchsorted(share, (np.arange(n) + 0.5) / n), len(share) - 1)


@dataclass(frozen=True, eq=False)
class Reference:
    """Results of held-out training samples."""

    log_likelihood: Floats  # (samples, classes)
    class_log_prior: Floats  # (samples, classes)
    weights: Floats  # (samples,)
    observed: Mask  # which values the samples have: (samples, columns of X)
    quantiles: Floats | None = None  # of the values, at `QUANTILES`: (continuous columns, quantiles)

    @classmethod
    def of(cls, model: Model, table: Table, refit: Refit, leaks: bool) -> Reference:
        """Reference from training samples, by exact leave-one-out.

        By refits where that has no closed form or leaks: of many samples, which are not all kept, each hardly matters.
        """
        is_all = table.n_samples < MOST_ROWS
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        try:
            log_likelihood, class_log_prior = model.leave_one_out(table)
        except NotExactError:
            log_likelihood, leaks = model.log_likelihood(replace(table, labels=None)), True
            class_log_prior = np.tile(model.class_log_prior, (table.n_samples, 1))
        if leaks and is_all:
            log_likelihood, class_log_prior = _refitted(log_likelihood, class_log_prior, table, refit)
        return cls(log_likelihood, np.array(class_log_prior), weights, observed_cells(table), value_quantiles(table))

    def log_density(self, class_prior: Sequence[float] | Floats | None) -> Floats:
        """ln p(x) of the held-out samples; ``class_prior`` None: as learned."""
        prior = self.class_log_prior if class_prior is None else np.log(class_prior)
        return np.asarray(logsumexp(self.log_likelihood + prior, axis=1))


def _refitted(log_likelihood: Floats, class_log_prior: Floats, table: Table, refit: Refit) -> tuple[Floats, Floats]:
    """Results of samples that are held out by refits: of some, by which those of the others are corrected."""
    assert table.labels is not None
    most = int(np.clip(REFITTED // max(table.values.size + table.codes.size, 1), LEAST_REFITS, MOST_REFITS))
    log_likelihood, class_log_prior = log_likelihood.copy(), np.array(class_log_prior)
    before = np.asarray(logsumexp(log_likelihood + class_log_prior, axis=1))
    rows = []
    for row in stratified_sample(table.labels, most):
        part = replace(table.rows(np.array([row])), labels=None, weights=None)
        try:
            model = refit(np.array([row]))
        except SampleNotAcceptableError:  # without it, there is no maximum likelihood
            continue
        log_likelihood[row], class_log_prior[row] = model.log_likelihood(part)[0], model.class_log_prior
        rows.append(row)
    after = np.asarray(logsumexp(log_likelihood + class_log_prior, axis=1))
    finite = [row for row in rows if np.isfinite(before[row]) and np.isfinite(after[row])]
    if len(rows) < len(before) and len(finite) > 2:
        others = np.setdiff1d(np.arange(len(before)), rows)
        centre = before[finite].mean()
        away, change = before[finite] - centre, after[finite] - before[finite]
        slope = away @ change / max(away @ away, np.finfo(float).tiny)
        log_likelihood[others] += (change.mean() + slope * (before[others] - centre))[:, None]
    return log_likelihood, class_log_prior


@dataclass(frozen=True, eq=False)
class Ranking:
    """Ranks of samples among the reference."""

    reference: Reference
    class_prior: Sequence[float] | None
    log_density: Callable[[Table], Floats]  # ln p(x): (samples,)
    draw: Callable[[], Table]  # complete samples of the model

    def typicality_of(self, table: Table) -> Floats:
        """Share of the training samples that are less typical than each sample, which counts itself."""
        log_density, typicality = self.log_density(table), np.empty(table.n_samples)
        with numeric_libraries().limit(limits=1, user_api="blas"):  # many small products
            for observed, rows in _by_pattern(observed_cells(table)):
                typicality[rows] = self.of_log_density(log_density[rows], observed)
        return typicality

    def of_log_density(self, log_density: Floats, observed: Mask) -> Floats:
        """The typicality of samples with these log densities, in which these columns are observed."""
        reference = self.reference
        if (reference.observed == observed).all():
            return _Ranks.of(reference.log_density(self.class_prior), reference.weights)(log_density)
        share = (observed.sum() - 1) / max(reference.observed.sum(axis=1).mean() - 1, 1.0)
        return self._ranks.moved(share)(self._standing(observed)(log_density))

    def expected_share(self, least: float, frequencies: Floats) -> float:
        """The share of samples with a typicality below ``least`` where the classes have other frequencies.

        A rare class is less typical: where it is frequent, more samples are. Held-out training samples count as often
        as they would occur there.
        """
        reference = self.reference
        there = reference.log_density(np.maximum(frequencies, np.finfo(float).tiny))
        log_ratio = there - reference.log_density(None)
        weights = reference.weights * np.exp(log_ratio - log_ratio.max())
        return float(weights[self._of_reference < least].sum() / weights.sum())

    @cached_property
    def _of_reference(self) -> Floats:
        """The typicality of the held-out training samples themselves."""
        log_density, typicality = self.reference.log_density(self.class_prior), np.empty(len(self.reference.weights))
        with numeric_libraries().limit(limits=1, user_api="blas"):
            for observed, rows in _by_pattern(self.reference.observed):
                typicality[rows] = self.of_log_density(log_density[rows], observed)
        return typicality

    @cached_property
    def _drawn(self) -> Table:
        return self.draw()

    @cached_property
    def _ranks(self) -> _Ranks:
        """Ranks of standings."""
        reference = self.reference
        log_density = reference.log_density(self.class_prior)
        standing = np.empty(len(log_density))
        for observed, rows in _by_pattern(reference.observed):
            standing[rows] = self._standing(observed)(log_density[rows])
        return _Ranks.of(standing, reference.weights)

    def _standing(self, observed: Mask) -> _Standing:
        """Standings of samples in which these columns are observed."""
        table = self._drawn
        values, codes = table.values.copy(), table.codes.copy()
        values[:, ~observed[list(table.schema.continuous)]] = np.nan
        codes[:, ~observed[list(table.schema.discrete)]] = MISSING
        return _Standing.of(self.log_density(replace(table, values=values, codes=codes, labels=None)))


def _by_pattern(observed: Mask) -> Iterator[tuple[Mask, NDArray[np.intp]]]:
    """Each distinct row of a mask, and where it is."""
    is_complete = observed.all(axis=1)  # mostly many, which need not be sorted
    if is_complete.any():
        yield np.ones(observed.shape[1], bool), np.flatnonzero(is_complete)
    others = np.flatnonzero(~is_complete)
    packed = np.packbits(observed[others], axis=1)
    codes = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(first) + 1))
    for i, row in enumerate(first):
        yield observed[others[row]], others[order[starts[i] : starts[i + 1]]]


@dataclass(frozen=True, eq=False)
class _Standing:
    """Log odds of having a density as low, by samples drawn from the model."""

    log_density: Floats  # distinct ones of the drawn samples, in ascending order
    log_odds: Floats
    scales: tuple[float, float]  # of the log densities beyond the lower and the upper end

    @classmethod
    def of(cls, log_density: Floats) -> _Standing:
        """From log densities of drawn samples."""
        ranked = np.sort(log_density)
        distinct, last = np.unique(ranked[::-1], return_index=True)
        share = (len(ranked) - last) / (len(ranked) + 1)
        tail = max(1, int(TAIL * len(ranked)))
        # In nats 1 is the scale of the tail of normal distributions, and of probabilities of discrete features.
        scales = max(1.0, ranked[tail] - ranked[:tail].mean()), max(1.0, ranked[-tail:].mean() - ranked[-tail - 1])
        ends = [ranked[int(end * len(ranked))] for end in ENDS]
        inside = (distinct >= ends[0]) & (distinct <= ends[1])
        return cls(distinct[inside], logit(share[inside]), scales)

    def __call__(self, log_density: Floats) -> Floats:
        inside = np.interp(log_density, self.log_density, self.log_odds)
        below = np.minimum(log_density - self.log_density[0], 0.0) / self.scales[0]
        above = np.maximum(log_density - self.log_density[-1], 0.0) / self.scales[1]
        return np.asarray(inside + below + above)


@dataclass(frozen=True, eq=False)
class _Ranks:
    """Ranks among scores with weights."""

    scores: Floats  # distinct, in ascending order
    weight: Floats  # of the samples up to each score
    one: float  # weight of one sample

    @classmethod
    def of(cls, scores: Floats, weights: Floats) -> _Ranks:
        distinct, place = np.unique(_finite(scores), return_inverse=True)
        weight = np.cumsum(np.bincount(place, weights))
        return cls(distinct, weight.astype(float), float(weights @ weights / weights.sum()))

    def moved(self, share: float) -> _Ranks:
        """Ranks among standings of which this share of the distance to the expected ones is left."""
        expected = logit(self.weight / (self.weight[-1] + self.one))
        moved = np.maximum.accumulate(expected + max(share, 0.0) * (self.scores - expected))
        return _Ranks(moved, self.weight, self.one)

    def __call__(self, scores: Floats) -> Floats:
        """(rank + 1) / (n + 1) at each score of the reference, interpolated between them."""
        total = self.weight[-1] + self.one
        weight = np.interp(_finite(scores), self.scores, self.weight, right=total)
        return np.asarray(np.maximum(weight, self.one) / total)


def _finite(scores: Floats) -> Floats:
    return np.clip(scores, -FARTHEST, FARTHEST)
