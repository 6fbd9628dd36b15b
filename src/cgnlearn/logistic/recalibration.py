"""Recalibration: class intercepts and one slope on log probabilities, by maximum likelihood.

logit_c = a_c + b · ln p_c with a of the first class 0. For two classes this is logistic regression on the log odds. The
log likelihood is concave; it has no maximum where the classes are separated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, log_softmax, xlogy

from cgnlearn.data.arrays import Floats

SMALLEST = -700.0  # stands for the logarithm of a probability of zero
MOST_STEPS = 200
LARGEST_STEP = 20.0  # in log odds: where all probabilities are extreme, the curvature says nothing
ENOUGH = 1e-16  # of the squared Newton decrement: distances to the maximum in standard errors are below 1e-8
NEAR = 1e-4  # of the same: here every step leads closer, while the rise drowns in rounding
FLAT = 1e-10  # smallest relative curvature; below it the likelihood has no maximum

SMALLEST_CURVATURE = 1e-100  # where all probabilities are 0 or 1


class Recalibration(NamedTuple):
    """Intercepts and slope that turn log probabilities into others."""

    intercept: Floats  # (classes,), that of the first class that occurs is 0; -inf for classes that do not occur
    slope: float  # infinite where the classes are separated, NaN if all samples have the same log odds
    log_likelihood: float  # its supremum where there is no maximum
    curvature: Floats  # negative second derivatives by the other intercepts, then by the slope if it was fitted

    def __call__(self, log_proba: Floats) -> Floats:
        """The recalibrated log probabilities."""
        found: Floats = log_softmax(self.intercept + self.slope * bounded(log_proba), axis=1)
        return found


def bounded(log_proba: Floats) -> Floats:
    """Log probabilities without infinities."""
    return np.maximum(log_proba, SMALLEST)


def recalibrate(
    log_proba: Floats,
    true: NDArray[np.intp],
    slope: float | None = None,
    start: Recalibration | None = None,
    precision: float = 0.0,
) -> Recalibration:
    """Fit intercepts and slope, or the intercepts for a given slope.

    Parameters
    ----------
    log_proba : array (samples, classes)
    true : array (samples,)
        Positions of the true classes.
    slope : float, optional
        None: fitted.
    start : Recalibration, optional
        Of nearly the same samples, or with nearly the same slope, from which to start.
    precision : float
        Of a normal prior of the intercepts around 0 and of the slope around 1, with which they are always finite; 0:
        maximum likelihood.

    Examples
    --------
    >>> log_proba = np.log([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]])
    >>> found = recalibrate(log_proba, np.array([0, 0, 1, 1, 0]))
    >>> round(found.slope, 4), found.intercept.round(4)
    (0.1577, array([ 0.    , -0.3466]))
    """
    n_classes = log_proba.shape[1]
    present = np.flatnonzero(np.bincount(true, minlength=n_classes) + precision)
    intercept = np.full(n_classes, -np.inf)
    if len(present) == 1:
        intercept[present] = 0.0
        return Recalibration(intercept, np.nan if slope is None else slope, 0.0, np.zeros((0, 0)))
    position = np.searchsorted(present, true)
    x = bounded(log_proba)[:, present]
    x = x - x[:, :1]
    begin, from_slope = np.zeros(len(present)), 0.0  # where every sample has curvature
    if start is not None and np.isfinite(start.intercept[present]).all() and np.isfinite(start.slope):
        begin, from_slope = start.intercept[present] - start.intercept[present[0]], start.slope
    found = None if slope is not None or len(present) > 2 or precision else _separated(x[:, 1], position == 1)
    if found is None:
        found = _fit(x, position, slope, np.append(begin[1:], from_slope), precision)
    intercept[present] = found.intercept
    return found._replace(intercept=intercept)


def _separated(x: Floats, happened: NDArray[np.bool_]) -> Recalibration | None:
    """The limit where a threshold of the log odds separates two classes, but for ties at it; None elsewhere."""
    below, above = x[~happened], x[happened]
    if below.max() == below.min() == above.max() == above.min():
        slope, threshold = np.nan, below[0]
    elif below.max() <= above.min():
        slope, threshold = np.inf, above.min()
    elif above.max() <= below.min():
        slope, threshold = -np.inf, below.min()
    else:
        return None
    m, n = float((above == threshold).sum()), float((below == threshold).sum())
    height = float(xlogy(m, m / (m + n)) + xlogy(n, n / (m + n)))
    return Recalibration(np.full(2, np.nan), slope, height, np.zeros((2, 2)))


def _fit(x: Floats, position: NDArray[np.intp], slope: float | None, begin: Floats, precision: float) -> Recalibration:
    """Newton's method; each step rises."""
    n, k = x.shape
    fits_slope = slope is None
    samples, x = np.arange(n), np.ascontiguousarray(x.T)  # classes first: sums over samples are then fast
    reach, of_truth = float(np.abs(x).max()), np.bincount(position, minlength=k).astype(float)
    truth_of_slope = float(x[position, samples].sum())
    at = begin if fits_slope else begin[:-1]
    expected = np.append(np.zeros(k - 1), [1.0] if fits_slope else [])

    def value(at: Floats) -> tuple[float, Floats]:
        logits = np.append(0.0, at[: k - 1])[:, None] + (at[-1] if slope is None else slope) * x
        logits -= logits.max(axis=0)
        height = float(logits[position, samples].sum())
        p = np.exp(logits, out=logits)
        total = p.sum(axis=0)
        height -= float(np.log(total).sum()) + precision / 2 * float(((at - expected) ** 2).sum())
        return height, np.divide(p, total, out=p)

    height, p = value(at)
    has_maximum, before = True, np.inf
    for _ in range(MOST_STEPS):
        gradient, curvature = _derivatives(p, x, of_truth, truth_of_slope if fits_slope else None)
        gradient -= precision * (at - expected)
        curvature += precision * np.eye(len(at))
        size = np.sqrt(np.maximum(np.diag(curvature), SMALLEST_CURVATURE))
        relative = curvature / np.outer(size, size)
        is_flat = bool(np.linalg.eigvalsh(relative)[0] < FLAT)
        # Above -ln 2 every true class has a probability above 1/2: the classes are separated.
        has_maximum = not fits_slope or precision > 0 or (height < -np.log(2) and not is_flat)
        step = np.linalg.solve(relative + FLAT * is_flat * np.eye(len(size)), gradient / size) / size
        decrement = float(gradient @ step)
        if decrement <= ENOUGH or (decrement < NEAR and decrement >= before):
            break
        before = decrement
        largest = float(np.abs(step[: k - 1]).max())
        if fits_slope:
            largest = max(largest, abs(float(step[-1])) * reach)
        step *= min(1.0, LARGEST_STEP / largest)
        for halving in range(30):
            new_height, new_p = value(at + step * 0.5**halving)
            if new_height > height or decrement < NEAR:
                break
        else:
            break  # it rises no more but for rounding
        at, height, p = at + step * 0.5**halving, new_height, new_p
    else:
        has_maximum = False
        if slope is not None and k == 2 and not precision:
            at = np.array([_intercept_at(slope * x[1], of_truth[1])])
            height, p = value(at)
            curvature = _derivatives(p, x, of_truth, None)[1]
    found = at[-1] if slope is None else slope
    if fits_slope and not has_maximum:
        found = np.copysign(np.inf, found)
    return Recalibration(np.append(0.0, at[: k - 1]), float(found), height, curvature)


def _intercept_at(log_odds: Floats, n_events: float) -> float:
    """The intercept with which as many events are expected, where Newton's steps are too short for the way to it."""
    room = float(np.log(len(log_odds))) + 1.0
    ends = -float(log_odds.max()) - room, -float(log_odds.min()) + room
    return float(brentq(lambda a: float(expit(log_odds + a).sum()) - n_events, *ends, xtol=1e-12))


def _derivatives(p: Floats, x: Floats, of_truth: Floats, truth_of_slope: float | None) -> tuple[Floats, Floats]:
    """Gradient and negative second derivatives by the intercepts but the first, and by the slope unless None."""
    inner = p[1:]
    totals = inner.sum(axis=1)
    of_intercepts = np.diag(totals) - inner @ inner.T
    gradient = of_truth[1:] - totals
    if truth_of_slope is None:
        return gradient, of_intercepts
    weighted = p * x
    mean = weighted.sum(axis=0)
    mixed = weighted[1:].sum(axis=1) - inner @ mean
    of_slope = float(np.vdot(weighted, x) - mean @ mean)
    curvature = np.block([[of_intercepts, mixed[:, None]], [mixed[None, :], np.array([[of_slope]])]])
    return np.append(gradient, truth_of_slope - float(mean.sum())), curvature
