"""Intervals of the probabilities of a mixture.

All members learned from the same samples and err together: one standard normal draw of each contrast is shared by all
of them. The weights are drawn as well, from the Bayesian bootstraps by which they were found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cgnlearn.candidates.candidate import Samples, Training
from cgnlearn.candidates.mixture import Mixture, Part, chunks
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.intervals import Intervals, mixed_intervals
from cgnlearn.networks.uncertainty import LogDensities, class_frequencies, total_comonotone


def mixture_intervals(
    mixture: Mixture, table: Table, level: float, training: Training | None, class_mass: Floats | None
) -> Intervals:
    """Intervals of the class probabilities, which contain the predicted ones.

    ``class_mass`` are pseudo-counts of the classes; None: the class prior was given.
    """
    found = Intervals(*np.empty((3, table.n_samples, table.schema.n_classes)))
    of_classes = None if class_mass is None else class_frequencies(class_mass)
    for which, samples, able in chunks(Samples(table, mixture.transforms), mixture.parts):
        weights = mixture.weight_draws[:, [mixture.parts.index(part) for part in able]]
        weights = weights / weights.sum(axis=1, keepdims=True)
        likelihoods = [[fitted.log_likelihood(samples) for fitted in part.fits] for part in able]
        of_parts = [
            _scores(part, samples, own, training, mixture.class_log_prior, of_classes)
            for part, own in zip(able, likelihoods, strict=True)
        ]
        low, high, std = mixed_intervals(of_parts, weights, mixture.power, mixture.class_log_prior, level)
        proba = np.exp(mixture.log_proba_of(likelihoods, able))
        found.low[which], found.high[which] = np.minimum(low, proba), np.maximum(high, proba)
        found.log_odds_std[which] = std
    return found


def _scores(
    part: Part,
    samples: Samples,
    likelihoods: Sequence[Floats],  # of its fits
    training: Training | None,
    class_log_prior: Floats,
    of_classes: LogDensities | None,
) -> LogDensities:
    """The posterior of the scores of the classes by one member."""
    total_power = float(sum(powers.sum() for powers in part.powers))
    found = total_comonotone(
        [
            # As `LogDensities.times`, for the power of all settings together.
            setting.scaled(power, power / np.sqrt(min(total_power, 1.0)))
            for fitted, powers, own in zip(part.fits, part.powers, likelihoods, strict=True)
            for setting, power in zip(fitted.log_densities(samples, own, training), powers.tolist(), strict=True)
        ]
    )
    if of_classes is None:
        return LogDensities(found.mean + class_log_prior, found.covariance, found.third)
    return found + of_classes
