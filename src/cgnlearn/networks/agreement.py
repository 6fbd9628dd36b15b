"""How a prior by class agrees with the data: what they moved, and where the two conflict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Posterior
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure

# Natural logarithms of the Bayes factor of the default prior against the one given, as in Kass and Raftery (1995). By
# Markov's inequality a prior that is right meets them in fewer than 1 in 20 and 1 in 148 cases.
WORDS = ((5.0, "conflict strongly"), (3.0, "conflict"), (-np.inf, "agree"))


class Agreement(NamedTuple):
    """A prior of a feature in a class beside what the samples say."""

    label: Any
    feature: Any
    expected: float  # the prior's mean
    expected_deviation: float
    worth: float  # the samples that the prior's mean counts as
    n: float  # weight of the samples of the class
    mean: float  # after the data
    deviation: float
    log_bayes_factor: float  # of this prior against the default one; negative: the data speak against it

    @property
    def moved(self) -> float:
        """How far the data have moved the mean, in standard deviations of the prior."""
        return (self.mean - self.expected) / self.expected_deviation

    @property
    def words(self) -> str:
        """Whether prior and data agree."""
        return next(words for least, words in WORDS if -self.log_bayes_factor >= least)

    @property
    def is_conflict(self) -> bool:
        """Whether the data speak against the prior."""
        return -self.log_bayes_factor >= WORDS[-2][0]

    def __str__(self) -> str:
        return (
            f"{self.feature} in {self.label}: expected {self.expected:.4g} ± {self.expected_deviation:.3g} (worth "
            f"{self.worth:g}), after {self.n:g} samples {self.mean:.4g} ± {self.deviation:.3g}, moved by "
            f"{self.moved:.1f} SD; prior and data {self.words} (log Bayes factor {self.log_bayes_factor:.1f})"
        )


def agreements(statistics: Statistics, prior: Prior) -> list[Agreement]:
    """Every feature and class of which a prior knows location and scale, those that conflict most first.

    Evidence is that of each feature by itself, under this prior and under the one with the default in its place.
    """
    schema = statistics.schema
    prior = prior.resolved(schema)
    known: Any = np.isfinite(prior.known(schema.n_classes, schema.n_columns)).all(axis=0)
    if not prior.is_coherent or not known.any():
        return []
    families = Structure.naive_bayes(schema.n_columns).as_families(schema)
    statistics = statistics.restricted(families)
    found = [each for each in _agreements(statistics, prior) if known[each[0]]]
    names = schema.names or range(schema.n_columns)
    listed = [Agreement(schema.classes[label], names[column], *values) for (label, column), values in found]
    return sorted(listed, key=lambda each: each.log_bayes_factor)


def _agreements(statistics: Statistics, prior: Prior) -> Iterator[tuple[tuple[int, int], tuple[float, ...]]]:
    """Class and column with what is known of them."""
    schema = statistics.schema
    given, default = Bayes(prior), Bayes(Prior(prior.dirichlet))
    for partition, moments in zip(statistics.layout.partitions, statistics.moments, strict=True):
        posterior, vague = (each.posterior(moments, partition, schema) for each in (given, default))
        before = posterior.prior
        assert before is not None
        assert before.location is not None
        origin, unit = posterior.units
        after_scale = posterior.scale[0][:, : partition.n_features]
        parts = (
            before.location * unit + origin,
            np.sqrt(before.scale / (2 * _by_feature(before.shape))) * unit,
            _by_feature(before.strength),
            _by_feature(posterior.n[0]),
            posterior.centre[0] * unit + origin,
            np.sqrt(after_scale / (2 * _by_feature(posterior.shape[0]))) * unit,
            _evidence(posterior) - _evidence(vague),
        )
        values = np.array(np.broadcast_arrays(*parts))  # (values, classes, features)
        for feature in np.flatnonzero(~posterior.absent).tolist():
            for label in range(schema.n_classes):
                yield (label, int(partition.columns[feature])), tuple(values[:, label, feature].tolist())


def _by_feature(part: Floats) -> Floats:
    """An array by class, and perhaps feature, to be broadcast with (classes, features)."""
    return part if part.ndim == 2 else part[:, None]


def _evidence(posterior: Posterior) -> Floats:
    """Log evidence of each feature by itself in each class, up to a constant of its unit: (classes, features)."""
    prior = posterior.prior
    assert prior is not None
    log_strength = np.log(_by_feature(prior.strength) / _by_feature(posterior.strength[0]))
    n, shape = _by_feature(posterior.n[0]), _by_feature(prior.shape)
    spread = posterior.scale[0][:, : posterior.centre.shape[-1]]
    evidence: Floats = densities.regression_evidence(n, shape, prior.scale, spread, 0.0, log_strength)
    return evidence
