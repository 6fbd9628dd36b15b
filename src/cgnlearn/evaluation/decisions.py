"""Decisions based on probabilities: one class against the others, decision curves, and costs.

``probability`` (samples,) is that of the positive class, ``happened`` (samples,) whether a sample belongs to it. 95%
confidence intervals assume independent samples. For a repeated cross-validation, values are means over the repetitions,
with intervals as wide as those of one repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import rankdata

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.estimates import Estimate, Z, share
from cgnlearn.evaluation.study import FoldResult, Study, pooled

THRESHOLD = 0.5
THRESHOLDS = np.round(np.arange(0.01, 1.0, 0.01), 2)  # of a decision curve

Part = tuple[Floats, NDArray[np.bool_]]  # probability and happened in one repetition
Predictions = list[tuple[Floats, NDArray[np.intp]]]  # log probabilities and true classes of each repetition


def predictions_by_model(study: Study) -> dict[str, Predictions]:
    """The predictions of each model, by repetition."""
    of_models: dict[str, dict[int, list[FoldResult]]] = {name: {} for name in study.models}
    for result in study.results:
        if result.log_proba is not None:
            of_models[result.unit.name].setdefault(result.unit.repeat, []).append(result)
    return {name: [pooled(own[r], study.true) for r in sorted(own)] for name, own in of_models.items() if own}


def one_class(predictions: Predictions, position: int) -> list[Part]:
    """The predictions for one class against the others."""
    return [(np.exp(log_proba[:, position]), true == position) for log_proba, true in predictions]


@dataclass(frozen=True)
class Decisions:
    """Measures of decisions; samples with a probability of at least 1/2 are called positive."""

    n_positive: int  # samples of the class
    n_negative: int
    prevalence: float  # for the predictive values
    auc: Estimate
    sensitivity: Estimate
    specificity: Estimate
    positive_predictive_value: Estimate | None  # None if no sample is called positive
    negative_predictive_value: Estimate | None

    def as_dict(self) -> dict[str, object]:
        return {name: value._asdict() if isinstance(value, Estimate) else value for name, value in vars(self).items()}


def decisions(parts: Sequence[Part], prevalence: float | None = None) -> Decisions:
    """Measures over the repetitions of a cross-validation; None: with the prevalence of the samples."""
    parts = [part for part in parts if 0 < part[1].sum() < len(part[1])]  # an interrupted run may have others
    if not parts:
        raise ValueError("no repetition has samples of the class and samples of others: finish the evaluation first")
    happened = np.concatenate([happened for _, happened in parts])
    called = np.concatenate([probability >= THRESHOLD for probability, _ in parts])
    n_parts = len(parts)
    n_positive, n_negative = float(happened.sum()) / n_parts, float((~happened).sum()) / n_parts
    hits, rejections = float((called & happened).sum()) / n_parts, float((~called & ~happened).sum()) / n_parts
    false_alarms, misses = n_negative - rejections, n_positive - hits
    if prevalence is None:
        positive_value = share(hits, hits + false_alarms) if hits + false_alarms else None
        negative_value = share(rejections, rejections + misses) if rejections + misses else None
    else:
        positive_value = predictive_value(hits, n_positive, rejections, n_negative, prevalence)
        negative_value = predictive_value(rejections, n_negative, hits, n_positive, 1 - prevalence)
    own_prevalence = n_positive / (n_positive + n_negative) if prevalence is None else prevalence
    shares = share(hits, n_positive), share(rejections, n_negative), positive_value, negative_value
    return Decisions(round(n_positive), round(n_negative), own_prevalence, auc(parts), *shares)


def predictive_value(
    n_right: float, n_of: float, n_right_others: float, n_others: float, prevalence: float
) -> Estimate | None:
    """Probability of a class given a call of it, at a stated prevalence; None without calls.

    The interval is that of the logarithm of the ratio of the two shares, with half a sample added (Gart and Nam 1988).
    """
    n_false = n_others - n_right_others
    right, false = n_right / n_of, n_false / n_others
    if not right and not false:
        return None
    value = right * prevalence / (right * prevalence + false * (1 - prevalence))
    middle = np.log((n_right + 0.5) / (n_of + 0.5)) - np.log((n_false + 0.5) / (n_others + 0.5)) + logit(prevalence)
    variance = 1 / (n_right + 0.5) - 1 / (n_of + 0.5) + 1 / (n_false + 0.5) - 1 / (n_others + 0.5)
    low, high = (float(expit(middle + sign * Z * np.sqrt(variance))) for sign in (-1, 1))
    return Estimate(value, min(value, low), max(value, high))


def auc(parts: Sequence[Part]) -> Estimate:
    """Probability that a sample of the class has a higher probability than another one; a tie counts half.

    The interval is that of DeLong, DeLong and Clarke-Pearson (1988) on the logit scale, or that of Newcombe (2006,
    method 5) if the former has no width, as without errors.
    """
    values, variances = zip(*(_auc_and_variance(*part) for part in parts), strict=True)
    value, variance = float(np.mean(values)), float(np.mean(variances))
    happened = parts[0][1]
    if variance <= 0 or not 0 < value < 1:
        return Estimate(value, *_score_interval(value, int(happened.sum()), int((~happened).sum())))
    half = Z * np.sqrt(variance) / (value * (1 - value))
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))


def _auc_and_variance(probability: Floats, happened: NDArray[np.bool_]) -> tuple[float, float]:
    """DeLong's variance by ranks (Sun and Xu 2014)."""
    of, others = probability[happened], probability[~happened]
    m, n = len(of), len(others)
    ranks = rankdata(np.concatenate([of, others]))
    beaten = (ranks[:m] - rankdata(of)) / n  # share of the others below each sample of the class
    above = 1 - (ranks[m:] - rankdata(others)) / m
    variance = sum(float(shares.var(ddof=1)) / len(shares) for shares in (beaten, above) if len(shares) > 1)
    return float(beaten.mean()), variance


def _score_interval(value: float, m: int, n: int) -> tuple[float, float]:
    def distance(theta: float) -> float:
        half = (m + n) / 2 - 1
        variance = theta * (1 - theta) * (1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (m * n)
        return (value - theta) ** 2 - Z**2 * variance

    tiny = 1e-12
    low = 0.0 if value <= tiny else float(brentq(distance, tiny, value * (1 - tiny)))
    high = 1.0 if value >= 1 - tiny else float(brentq(distance, value + (1 - value) * tiny, 1 - tiny))
    return low, high


# ---- decision curve


class DecisionCurve(NamedTuple):
    """Net benefit (Vickers and Elkin 2006) of treating samples above a threshold; that of treating none is 0."""

    thresholds: Floats
    net_benefit: Floats
    act_on_all: Floats


def decision_curve(
    parts: Sequence[Part], prevalence: float | None = None, thresholds: Floats = THRESHOLDS
) -> DecisionCurve:
    """True positives minus false positives weighted by the odds of the threshold, per sample."""
    happened = np.concatenate([happened for _, happened in parts])
    probability = np.concatenate([probability for probability, _ in parts])
    if prevalence is None:
        prevalence = float(happened.mean())
    true, false = (
        1 - np.searchsorted(np.sort(of), thresholds) / len(of) for of in (probability[happened], probability[~happened])
    )
    rate = (1 - prevalence) * thresholds / (1 - thresholds)
    return DecisionCurve(thresholds, true * prevalence - false * rate, prevalence - rate)


# ---- costs


@dataclass(frozen=True, eq=False)
class Costs:
    """The cost of each decision in each class."""

    decisions: tuple[str, ...]
    matrix: Floats  # (classes, decisions)

    def least(self, log_proba: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Position of the decision with the lowest expected cost for each sample, and that cost."""
        expected = np.exp(log_proba) @ self.matrix
        best = expected.argmin(axis=1)
        return best, expected[np.arange(len(best)), best]

    def mean(self, predictions: Predictions) -> Estimate:
        """The mean cost per sample of these decisions."""
        parts = [self.matrix[true, self.least(log_proba)[0]] for log_proba, true in predictions]
        value = float(np.mean([costs.mean() for costs in parts]))
        error = float(np.mean([costs.std(ddof=1) / np.sqrt(len(costs)) if len(costs) > 1 else 0 for costs in parts]))
        return Estimate(value, value - Z * error, value + Z * error)
