"""A smooth curve of observed frequencies against predicted probabilities, with the band of a calibrated model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.estimates import ALPHA

N_SIMULATIONS = 999
MOST_GROUPS = 500  # of samples with similar probabilities, in simulations
N_POINTS = 101  # of a curve


class CalibrationCurve(NamedTuple):
    """A smooth curve of observed frequencies, with the band in which 95% of the curves of a calibrated model lie."""

    at: Floats  # predicted probabilities
    observed: Floats
    low: Floats  # of the band, for the curve as a whole
    high: Floats

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Where the curve leaves the band."""
        return (self.observed < self.low - 1e-12) | (self.observed > self.high + 1e-12)


def calibration_curve(probability: Floats, happened: NDArray[np.bool_]) -> CalibrationCurve:
    """The curve of the probabilities of an event.

    The diagonal plus a kernel mean of the residuals, so that smoothing has no bias where the probabilities are right.
    The band is the narrowest one of equal ranks that holds 95% of the curves simulated from the probabilities (a global
    envelope, Myllymäki et al. 2017); samples are taken to be independent.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probability = rng.random(200)
    >>> curve = calibration_curve(probability, rng.random(200) < probability)
    >>> bool(curve.outside.any())
    False
    """
    order = np.argsort(probability, kind="stable")
    p, y = probability[order], happened[order].astype(float)
    starts = np.unique(np.linspace(0, len(p), min(len(p), MOST_GROUPS) + 1).astype(np.intp))[:-1]
    n = np.diff(np.append(starts, len(p))).astype(float)
    mean = np.add.reduceat(p, starts) / n
    residual = np.add.reduceat(y - p, starts)
    width = float(p.std()) * len(p) ** -0.2 or 1.0
    at = np.linspace(p[0], p[-1], N_POINTS) if p[-1] > p[0] else p[:1]
    exponent = -0.5 * ((at[:, None] - mean) / width) ** 2
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weights /= weights @ n[:, None]
    rng = np.random.default_rng(0)
    drawn = rng.binomial(n.astype(np.int64), np.clip(mean, 0, 1), (N_SIMULATIONS, len(n))) - n * mean
    low, high = _envelope(drawn @ weights.T)
    observed, low, high = (np.clip(at + part, 0.0, 1.0) for part in (weights @ residual, low, high))
    return CalibrationCurve(at, observed, low, high)


def _envelope(curves: Floats) -> tuple[Floats, Floats]:
    """The narrowest band between equal ranks at each point that holds 95% of the curves (simulations, points)."""
    ordered = np.sort(curves, axis=0)
    low, high = ordered[0], ordered[-1]
    for rank in range(1, int(len(curves) * ALPHA / 2) + 1):
        inner = ordered[rank], ordered[-1 - rank]
        if ((curves >= inner[0]) & (curves <= inner[1])).all(axis=1).mean() < 1 - ALPHA:
            break
        low, high = inner
    return low, high
