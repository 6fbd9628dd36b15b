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
from cgnlearn.networks.intervals import CHUNK, N_DRAWS, Intervals, normal_draws, probabilities, scores_at, summary
from cgnlearn.networks.uncertainty import LogDensities, class_frequencies, total_comonotone


def mixture_intervals(
    mixture: Mixture, table: Table, level: float, training: Training | None, class_mass: Floats | None
) -> Intervals:
    """Intervals of the class probabilities, which contain the predicted ones.

    ``class_mass`` are pseudo-counts of the classes; None: the class prior was given.
    """
    n_classes = table.schema.n_classes
    found = Intervals(*np.empty((3, table.n_samples, n_classes)))
    proba = np.exp(mixture.log_proba(table))
    normal = normal_draws(n_classes - 1)
    step = max(1, CHUNK // (N_DRAWS * n_classes))
    for which, samples, able in chunks(Samples(table, mixture.transforms), mixture.parts):
        weights = mixture.weight_draws[:, [mixture.parts.index(part) for part in able]]
        weights = weights / weights.sum(axis=1, keepdims=True)
        of_parts = [_scores(part, samples, training, mixture.class_log_prior, class_mass) for part in able]
        for start in range(0, len(which), step):
            rows = slice(start, start + step)
            total = np.zeros((len(which[rows]), n_classes, N_DRAWS))
            for scores, weight in zip(of_parts, weights.T, strict=True):
                part = LogDensities(scores.mean[rows], scores.covariance[rows], scores.third[rows])
                total += weight * probabilities(scores_at(normal, part))
            low, high, std = summary(_raised(total, mixture.class_log_prior, mixture.power), level)
            here = which[rows]
            found.low[here], found.high[here] = np.minimum(low, proba[here]), np.maximum(high, proba[here])
            found.log_odds_std[here] = std
    return found


def _raised(proba: Floats, class_log_prior: Floats, power: float) -> Floats:
    """As `cgnlearn.candidates.mixture.raised`, of probabilities: (samples, classes, draws)."""
    if power == 1:
        return proba
    log_proba = np.log(np.maximum(proba, np.finfo(float).tiny))
    return probabilities(power * log_proba + ((1 - power) * class_log_prior)[:, None])


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
