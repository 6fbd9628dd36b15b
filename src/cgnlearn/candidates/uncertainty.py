"""Intervals of the probabilities of a mixture.

All members learned from the same samples and err together: one standard normal draw of each contrast is shared by all
of them. The weights are drawn as well, from the Bayesian bootstraps by which they were found.
"""

from __future__ import annotations

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
    proba = np.exp(mixture.log_proba(table))
    for which, samples, able in chunks(Samples(table, mixture.transforms), mixture.parts):
        weights = mixture.weight_draws[:, [mixture.parts.index(part) for part in able]]
        weights = weights / weights.sum(axis=1, keepdims=True)
        of_parts = [_scores(part, samples, training, mixture.class_log_prior, class_mass) for part in able]
        low, high, std = mixed_intervals(of_parts, weights, mixture.power, mixture.class_log_prior, level)
        found.low[which], found.high[which] = np.minimum(low, proba[which]), np.maximum(high, proba[which])
        found.log_odds_std[which] = std
    return found


def _scores(
    part: Part, samples: Samples, training: Training | None, class_log_prior: Floats, class_mass: Floats | None
) -> LogDensities:
    """The posterior of the scores of the classes by one member."""
    total_power = float(sum(powers.sum() for powers in part.powers))
    found = total_comonotone(
        [
            # As `LogDensities.times`, for the power of all settings together.
            setting.scaled(power, power / np.sqrt(min(total_power, 1.0)))
            for fitted, powers in zip(part.fits, part.powers, strict=True)
            for setting, power in zip(fitted.log_densities(samples, training), powers.tolist(), strict=True)
        ]
    )
    if class_mass is None:
        return LogDensities(found.mean + class_log_prior, found.covariance, found.third)
    return found + class_frequencies(class_mass)
