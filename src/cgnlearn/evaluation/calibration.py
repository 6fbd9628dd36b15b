"""Calibration of predicted probabilities: intercept, slope, observed / expected, and what they say.

Intervals are those of the profile likelihood, at 95%; that of the slope has a quantile of Student's t, as few samples
of the rarer outcome tell little about it. The test of perfect calibration is simulated from the predicted probabilities
themselves, so that it holds for few samples and for rare classes.
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
from cgnlearn.evaluation.perfect_calibration import p_value, scores_of, sums_by_group
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.logistic.recalibration import SMALLEST, bounded, recalibrate

ALL_EQUAL = "no slope: all samples have the same probabilities"
FEWEST_EVENTS = 10  # in either class, for a statement about calibration
CERTAIN_EVENTS, UNCERTAIN = 100, "not assessed with certainty"  # with fewer in the rarer class
MANY = 2000  # samples of either class from which on normal approximations serve
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
        if self.is_small:
            n = min(self.n_events, self.n - self.n_events)
            return f"too few samples to tell: {n} of the rarer outcome, where {FEWEST_EVENTS} are needed"
        if self.slope is None:
            return ALL_EQUAL
        if self.is_open:
            return _open(self.slope, self.p_value, self.observed_expected)
        return _unflagged(self.slope, min(self.n_events, self.n - self.n_events), "events")

    @property
    def is_open(self) -> bool:
        """Whether an interval excludes 1, although perfect calibration is not rejected."""
        return not self.is_flagged and any(_excludes_one(of) for of in (self.slope, self.observed_expected))

    def as_dict(self) -> dict[str, object]:
        """The figures, for JSON."""
        found = {name: value._asdict() if isinstance(value, Estimate) else value for name, value in vars(self).items()}
        return found | {"flagged": self.is_flagged, "words": self.words}


def with_interval(name: str, estimate: Estimate, form: str = "{:.2f}") -> str:
    """An estimate in words, such as "slope 0.61 (0.42–0.83)"."""
    span = estimate.span(form.format, to="–")
    return f"{name} {form.format(estimate.value)}" + (f" ({span})" if span else "")


def _excludes_one(of: Estimate | None) -> bool:
    return of is not None and of.low is not None and of.high is not None and not of.low <= 1 <= of.high


def _open(slope: Estimate | None, p_value: float | None, ratio: Estimate | None = None) -> str:
    """What intervals that exclude 1 say, if the test of everything together does not reject."""
    named = {"slope": slope, "observed/expected": ratio}
    outside = " and ".join(with_interval(name, of) for name, of in named.items() if of and _excludes_one(of))
    test = (
        "there is no test"
        if p_value is None
        else f"the joint test of intercept and slope does not reject (p = {p_value:.2f})"
    )
    return f"undecided: {outside} excludes 1, but {test}"


def _unflagged(slope: Estimate, n: int, of: str) -> str:
    """That there is no sign of a fault, which few samples do not vouch for."""
    told = f"{UNCERTAIN} ({n} {of})" if n < CERTAIN_EVENTS else "no sign of miscalibration"
    return f"{told}: {with_interval('slope', slope)}"


def _fault(slope: Estimate | None, p_value: float | None, ratio: Estimate | None = None) -> str:
    """What is wrong with probabilities that are not calibrated."""
    found = []
    if slope is not None and _excludes_one(slope):
        how = "too extreme" if slope.value < 1 else "too moderate"
        found.append(f"{how}, {with_interval('slope', slope)}")
    if ratio is not None and _excludes_one(ratio):
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
    'probabilities are too extreme, slope 0.49 (0.36–0.62)'
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
        if self.by_class and all(of.is_small for of in self.by_class.values()):
            return f"too few samples to tell: every class needs {FEWEST_EVENTS}"
        if self.slope is None:
            return ALL_EQUAL
        if self.is_open:
            return _open(self.slope, self.p_value)
        return _unflagged(self.slope, min(of.n_events for of in self.by_class.values()), "in the rarest class")

    @property
    def is_open(self) -> bool:
        """Whether the interval of the slope excludes 1, although perfect calibration is not rejected."""
        return not self.is_flagged and _excludes_one(self.slope)

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
        last = recalibrate(log_proba, true, b, min(best, last, key=lambda known: abs(known.slope - b)))
        return best.log_likelihood - last.log_likelihood

    few = np.sort(np.bincount(true))[
        -2:
    ].min()  # of the rarer outcome: a slope knows no more than twice as many samples
    quantile = float(stats.t.isf(ALPHA / 2, max(1, 2 * few - 2)))
    if not np.isfinite(best.slope):
        effect, error = Effect(inflation(n_folds), quantile), 1.0
    else:
        scores = scores_of(best(log_proba), bounded(log_proba), true)
        effect = Effect.of(scores, best.curvature, groups, n_folds, quantile)
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
    def of(
        cls, scores: Floats, curvature: Floats, groups: NDArray[Any] | None, n_folds: int, quantile: float = Z
    ) -> Effect:
        """The effect of groups, never below 1, and of folds on the last parameter; a quantile of single samples."""
        if groups is None:
            return cls(inflation(n_folds), quantile)
        sums = sums_by_group(scores, groups)
        n_groups = len(sums)
        if n_groups < FEWEST_GROUPS:
            return cls(None)
        inverse = np.linalg.inv(curvature)
        robust = inverse @ (sums.T @ sums) @ inverse * n_groups / (n_groups - 1)
        ratio = float(robust[-1, -1] / inverse[-1, -1])
        return cls(max(ratio, 1.0) * inflation(n_folds), max(quantile, float(stats.t.isf(ALPHA / 2, n_groups - 1))))


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
        if below_best(inside) > rise:  # all of the interval is farther
            ends.append(inside)
            continue
        far = inside + sign * half
        while below_best(far) <= rise and abs(far - inside) < FARTHEST:
            far = inside + 2 * (far - inside)
        if abs(far - inside) >= FARTHEST:
            ends.append(sign * np.inf)
        else:
            ends.append(float(brentq(lambda at: below_best(at) - rise, inside, far, xtol=1e-6, rtol=1e-8)))
    return Estimate(value, *ends)
