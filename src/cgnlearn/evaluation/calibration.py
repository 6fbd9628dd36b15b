"""Calibration of predicted probabilities: intercept, slope, observed / expected, a smooth curve, and what they say.

Intervals are those of the profile likelihood, at 95%. The test of perfect calibration and the band of the curve are
simulated from the predicted probabilities themselves, so that they hold for few samples and for rare classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.decisions import Grouping, Predictions, grouping, predictions_by_model
from cgnlearn.evaluation.estimates import ALPHA, FEWEST_GROUPS, Estimate, Z, inflation
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.logistic.recalibration import SMALLEST, bounded, recalibrate

FEWEST_EVENTS = 10  # in either class, for a statement about calibration
N_SIMULATIONS = 999
MANY = 2000  # samples of either class from which on normal approximations serve
ENOUGH_EVENTS = 200.0  # expected of every class, from which on the statistic of the test is chi-squared
MOST_DRAWN = 200_000  # probabilities of a simulation
MOST_GROUPS = 500  # of samples with similar probabilities, in simulations
N_POINTS = 101  # of a curve
FARTHEST = 1e4  # slopes and intercepts beyond are infinite


# ---- one class against the others


@dataclass(frozen=True)
class Calibration:
    """How the probabilities of one class agree with its frequency."""

    n: int
    n_events: int  # samples of the class
    observed_expected: Estimate  # their number by the sum of the probabilities
    intercept: Estimate  # to be added to the log odds; 0 is perfect (calibration in the large)
    slope: Estimate | None  # of the log odds; 1 is perfect, below 1 too extreme; infinite if separated; None if unknown
    p_value: float | None  # of perfect calibration; None without both outcomes or with too few groups

    @property
    def is_flagged(self) -> bool:
        """Whether perfect calibration is rejected at 5%."""
        return self.p_value is not None and self.p_value < ALPHA

    @property
    def is_small(self) -> bool:
        """Whether there are too few samples of the class, or of the others, to tell."""
        return min(self.n_events, self.n - self.n_events) < FEWEST_EVENTS

    @property
    def words(self) -> str:
        """What the figures say, in one clause."""
        if self.is_flagged:
            return _fault(self.slope, self.p_value, self.observed_expected)
        if self.is_small or self.slope is None:
            n = min(self.n_events, self.n - self.n_events)
            return f"too few samples to tell: {n} of the rarer outcome, where {FEWEST_EVENTS} are needed"
        return f"no sign of miscalibration: {with_interval('slope', self.slope)}"

    def as_dict(self) -> dict[str, object]:
        """The figures, for JSON."""
        found = {name: value._asdict() if isinstance(value, Estimate) else value for name, value in vars(self).items()}
        return found | {"flagged": self.is_flagged, "words": self.words}


def with_interval(name: str, estimate: Estimate, form: str = "{:.2f}") -> str:
    """An estimate in words, such as "slope 0.61 (0.42–0.83)"."""
    span = estimate.span(form.format, to="–")
    return f"{name} {form.format(estimate.value)}" + (f" ({span})" if span else "")


def _fault(slope: Estimate | None, p_value: float | None, ratio: Estimate | None = None) -> str:
    """What is wrong with probabilities that are not calibrated."""
    found = []
    if slope is not None and slope.low is not None and slope.high is not None and not slope.low <= 1 <= slope.high:
        how = "too extreme" if slope.value < 1 else "too moderate"
        found.append(f"{how}, {with_interval('slope', slope)}")
    if ratio is not None and ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high:
        how = "too low" if ratio.value > 1 else "too high"
        found.append(f"{how}, {with_interval('observed/expected', ratio)}")
    if not found:
        return f"probabilities differ from the observed frequencies (p = {p_value:.3f})"
    return f"probabilities are {', and '.join(found)}"


def calibration(
    log_odds: Floats, happened: NDArray[np.bool_], groups: NDArray[Any] | None = None, n_folds: int = 1
) -> Calibration:
    """Calibration of the probabilities of one class.

    Parameters
    ----------
    log_odds : array (samples,)
        Predicted log odds of the class; see `log_odds_of`.
    happened : array (samples,)
        Whether a sample belongs to the class.
    groups : array (samples,), optional
        Samples that belong together. Intervals are then those of the likelihood divided by the design effect of the
        groups, and the test is that of the groups' scores.
    n_folds : int
        Of a cross-validation, whose folds share training samples: intervals are widened. 1: fresh samples.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=400)
    >>> found = calibration(2 * log_odds, rng.random(400) < expit(log_odds))  # twice as sure as is right
    >>> found.words
    'probabilities are too extreme, slope 0.49 (0.37–0.62)'
    """
    x, true = np.clip(log_odds, SMALLEST, -SMALLEST), happened.astype(np.intp)
    log_proba = np.column_stack([log_expit(-x), log_expit(x)])
    n, n_events = len(true), int(true.sum())
    intercept = _intercept(x, happened, groups, n_folds)
    expected = float(expit(x).sum())
    ratio = intercept.through(lambda a: float(expit(x + a).sum()) / expected)
    return Calibration(
        n, n_events, ratio, intercept, slope_of(log_proba, true, groups, n_folds), p_value(log_proba, true, groups)
    )


def log_odds_of(log_proba: Floats, position: int) -> Floats:
    """Log odds of one class from log probabilities (samples, classes)."""
    others: Floats = logsumexp(np.delete(bounded(log_proba), position, axis=1), axis=1)
    found: Floats = bounded(log_proba)[:, position] - others
    return found


def cross_validated(predictions: Predictions, position: int, own: Grouping) -> Calibration:
    """The mean calibration over the repetitions of a cross-validation, with intervals as wide as those of one."""
    parts = [(log_odds_of(log_proba, position), true == position) for log_proba, true in predictions]
    if own.groups is not None:  # those of the first repetition
        return calibration(*parts[0], *own)
    found = [calibration(*part, None, own.n_folds) for part in parts]
    if len(found) == 1:
        return found[0]
    slopes, p_values = [c.slope for c in found if c.slope], [c.p_value for c in found if c.p_value is not None]
    return Calibration(
        found[0].n,
        found[0].n_events,
        _mean([c.observed_expected for c in found]),
        _mean([c.intercept for c in found]),
        _mean(slopes) if slopes else None,
        float(np.median(p_values)) if p_values else None,
    )


def calibration_by_model(study: Study) -> dict[str, Calibration | MulticlassCalibration]:
    """Calibration of each model but the class frequencies; with several classes that of the first repetition."""
    found: dict[str, Calibration | MulticlassCalibration] = {}
    label = study.positive_class
    for model, predicted in predictions_by_model(study).items():
        if model == BASELINE:
            continue
        own = grouping(study, model)
        if label is not None:
            found[model] = cross_validated(predicted, study.classes.index(label), own)
        else:
            found[model] = multiclass_calibration(*predicted[0], study.classes, *own)
    return found


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    values = (np.mean([getattr(of, name) for of in estimates]) for name in ("value", "low", "high"))
    if any(of.low is None for of in estimates):
        return Estimate(float(np.mean([of.value for of in estimates])))
    return Estimate(*map(float, values))


# ---- several classes


@dataclass(frozen=True)
class MulticlassCalibration:
    """How the probabilities of all classes agree with their frequencies."""

    slope: Estimate | None  # common to the log probabilities of all classes, with an intercept for each
    p_value: float | None
    by_class: dict[str, Calibration]  # each against the others

    @property
    def is_flagged(self) -> bool:
        """Whether perfect calibration of all classes is rejected at 5%."""
        return self.p_value is not None and self.p_value < ALPHA

    @property
    def words(self) -> str:
        """What the figures say, in one clause."""
        if self.is_flagged:
            return _fault(self.slope, self.p_value)
        if self.slope is None or all(of.is_small for of in self.by_class.values()):
            return f"too few samples to tell: every class needs {FEWEST_EVENTS}"
        return f"no sign of miscalibration: {with_interval('slope', self.slope)}"

    def as_dict(self) -> dict[str, object]:
        """The figures, for JSON."""
        of_classes = {name: of.as_dict() for name, of in self.by_class.items()}
        slope = None if self.slope is None else self.slope._asdict()
        return {"slope": slope, "p_value": self.p_value, "words": self.words, "by_class": of_classes}


def multiclass_calibration(
    log_proba: Floats,
    true: NDArray[np.intp],
    classes: Sequence[str],
    groups: NDArray[Any] | None = None,
    n_folds: int = 1,
) -> MulticlassCalibration:
    """Calibration of log probabilities (samples, classes); ``true`` are the positions of the true classes."""
    each = {
        label: calibration(log_odds_of(log_proba, position), true == position, groups, n_folds)
        for position, label in enumerate(classes)
    }
    return MulticlassCalibration(slope_of(log_proba, true, groups, n_folds), p_value(log_proba, true, groups), each)


# ---- estimates


def slope_of(
    log_proba: Floats, true: NDArray[np.intp], groups: NDArray[Any] | None = None, n_folds: int = 1
) -> Estimate | None:
    """The slope of log probabilities, with an intercept for each class; None where nothing can be said about it.

    Where the classes are separated it is infinite, and its interval has one end.
    """
    best = recalibrate(log_proba, true)
    if np.isnan(best.slope):
        return None
    last = best

    def below_best(b: float) -> float:
        nonlocal last
        last = recalibrate(log_proba, true, b, last)
        return best.log_likelihood - last.log_likelihood

    if not np.isfinite(best.slope):
        effect, error = Effect(inflation(n_folds)), 1.0
    else:
        scores = _scores(best(log_proba), bounded(log_proba), true)
        effect = Effect.of(scores, best.curvature, groups, n_folds)
        error = float(np.sqrt(np.linalg.inv(best.curvature)[-1, -1]))
    return _profile_interval(best.slope, error, effect, below_best, _are_many(true))


def _intercept(x: Floats, happened: NDArray[np.bool_], groups: NDArray[Any] | None, n_folds: int) -> Estimate:
    """The intercept to be added to log odds; infinite without both outcomes."""
    n_events = int(happened.sum())
    has_both = 0 < n_events < len(x)
    best = 0.0
    value = np.inf if n_events else -np.inf
    if has_both:
        found = recalibrate(np.column_stack([log_expit(-x), log_expit(x)]), happened.astype(np.intp), 1.0)
        value, best = float(found.intercept[1]), found.log_likelihood
    p = expit(x + value)
    information = float((p * (1 - p)).sum())
    effect = (
        Effect.of((happened - p)[:, None], np.array([[information]]), groups, n_folds)
        if has_both
        else Effect(inflation(n_folds))
    )

    def below_best(a: float) -> float:
        return best - float(log_expit(np.where(happened, x + a, -x - a)).sum())

    error = float(1 / np.sqrt(information)) if has_both else 1.0
    return _profile_interval(value, error, effect, below_best, _are_many(happened.astype(np.intp)))


class Effect(NamedTuple):
    """How many times the variance of an estimate exceeds that of independent samples, and its quantile."""

    variance: float | None = 1.0  # None with too few groups
    quantile: float = Z

    @classmethod
    def of(cls, scores: Floats, curvature: Floats, groups: NDArray[Any] | None, n_folds: int) -> Effect:
        """The effect of groups, never below 1, and of folds on the last parameter."""
        if groups is None:
            return cls(inflation(n_folds))
        sums = _sums(scores, groups)
        n_groups = len(sums)
        if n_groups < FEWEST_GROUPS:
            return cls(None)
        inverse = np.linalg.inv(curvature)
        robust = inverse @ (sums.T @ sums) @ inverse * n_groups / (n_groups - 1)
        ratio = float(robust[-1, -1] / inverse[-1, -1])
        return cls(max(ratio, 1.0) * inflation(n_folds), float(stats.t.isf(ALPHA / 2, n_groups - 1)))


def _sums(scores: Floats, groups: NDArray[Any]) -> Floats:
    number = np.unique(groups, return_inverse=True)[1]
    sums = np.zeros((number.max() + 1, scores.shape[1]))
    np.add.at(sums, number, scores)
    return sums


def _are_many(true: NDArray[np.intp]) -> bool:
    return int(np.sort(np.bincount(true))[-2:].min()) >= MANY and len(np.unique(true)) > 1


def _profile_interval(
    value: float, error: float, effect: Effect, below_best: Callable[[float], float], are_many: bool
) -> Estimate:
    """The values whose log likelihood is close to the best one; Wald's interval of many samples."""
    if effect.variance is None:
        return Estimate(value)
    half = effect.quantile * error * float(np.sqrt(effect.variance))
    if are_many and np.isfinite(value):
        return Estimate(value, value - half, value + half)
    rise = effect.variance * effect.quantile**2 / 2
    inside = value
    if np.isinf(value):
        inside = float(np.sign(value))
        while below_best(inside) > rise and abs(inside) < FARTHEST:
            inside *= 2
    ends = []
    for sign in (-1, 1):
        if np.isinf(value) and np.sign(value) == sign:
            ends.append(value)
            continue
        far = inside + sign * half
        while below_best(far) <= rise and abs(far - inside) < FARTHEST:
            far = inside + 2 * (far - inside)
        if abs(far - inside) >= FARTHEST:
            ends.append(sign * np.inf)
        else:
            ends.append(float(brentq(lambda at: below_best(at) - rise, inside, far, xtol=1e-6, rtol=1e-8)))
    return Estimate(value, *ends)


# ---- the test of perfect calibration


def p_value(log_proba: Floats, true: NDArray[np.intp], groups: NDArray[Any] | None = None) -> float | None:
    """Score test of intercepts 0 and slope 1, with the distribution of its statistic under the probabilities.

    The distribution is simulated; for many samples it is chi-squared. With groups it is the larger one of this and of
    Hotelling's test of the groups' scores. None with too few groups.
    """
    log_p = bounded(log_proba)
    p = np.exp(log_p)
    p /= p.sum(axis=1, keepdims=True)
    residual_mean = (p * log_p).sum(axis=1)
    away = log_p - residual_mean[:, None]
    inner = p[:, 1:]
    information = np.zeros((p.shape[1], p.shape[1]))
    information[:-1, :-1] = np.diag(inner.sum(axis=0)) - inner.T @ inner
    information[:-1, -1] = information[-1, :-1] = (inner * away[:, 1:]).sum(axis=0)
    information[-1, -1] = (p * away**2).sum()
    size = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(information / np.outer(size, size))
    kept = values > 1e-9  # without log odds that vary, the slope says nothing
    whitening = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None]

    def statistic(scores: Floats) -> Floats:
        found: Floats = ((scores @ whitening) ** 2).sum(axis=-1)
        return found

    scores = _scores(log_p, log_p, true)
    observed = float(statistic(scores.sum(axis=0)))
    least = float((p * (1 - p)).sum(axis=0).min())
    if least >= ENOUGH_EVENTS or p.size > MOST_DRAWN:
        found = float(stats.chi2.sf(observed, kept.sum()))
    else:
        simulated = statistic(_simulated_scores(p, log_p, residual_mean))
        found = float((1 + (simulated >= observed * (1 - 1e-9)).sum()) / (1 + N_SIMULATIONS))
    if groups is None:
        return found
    sums = _sums(scores @ whitening, groups)
    n_groups, n_free = sums.shape
    if n_groups < n_free + FEWEST_GROUPS:
        return None
    between = np.cov(sums.T).reshape(n_free, n_free)
    hotelling = float(n_groups * sums.mean(axis=0) @ np.linalg.pinv(between) @ sums.mean(axis=0))
    f = hotelling * (n_groups - n_free) / (n_free * (n_groups - 1))
    return max(found, float(stats.f.sf(f, n_free, n_groups - n_free)))


def _scores(log_p: Floats, x: Floats, true: NDArray[np.intp]) -> Floats:
    """Derivatives of each sample's log likelihood by the intercepts but the first, and by the slope of ``x``."""
    p, rows = np.exp(log_p), np.arange(len(true))
    residual = -p
    residual[rows, true] += 1.0
    return np.column_stack([residual[:, 1:], (residual * x).sum(axis=1)])


def _simulated_scores(p: Floats, log_p: Floats, mean: Floats) -> Floats:
    """Total scores (simulations, parameters) of classes drawn from the probabilities."""
    rng, n_classes = np.random.default_rng(0), p.shape[1]
    below, rows = p.cumsum(axis=1)[:, :-1], np.arange(len(p))
    found = np.empty((N_SIMULATIONS, n_classes))
    for number in range(N_SIMULATIONS):
        drawn = (rng.random(len(p))[:, None] >= below).sum(axis=1)
        found[number, :-1] = np.bincount(drawn, minlength=n_classes)[1:] - p[:, 1:].sum(axis=0)
        found[number, -1] = (log_p[rows, drawn] - mean).sum()
    return found


# ---- curve


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
