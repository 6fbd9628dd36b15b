"""Decisions based on probabilities: one class against the others, decision curves, and costs.

``probability`` (samples,) is that of the positive class, ``happened`` (samples,) whether a sample belongs to it. 95%
confidence intervals are those of independent samples, or wider for the folds and groups of a `Grouping`. For a
repeated cross-validation, values are means over the repetitions, with intervals as wide as those of one repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit, logit

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.estimates import Estimate, Z, share
from cgnlearn.evaluation.study import FoldResult, Study, pooled

THRESHOLD = 0.5
THRESHOLDS = np.round(np.arange(0.01, 1.0, 0.01), 2)  # of a decision curve
LEAST_INFLATION_OF_AUC = 1.5  # by bench/intervals.py: 1.1 to 1.9 where features say little, 0.9 to 1.2 elsewhere

Part = tuple[Floats, NDArray[np.bool_]]  # probability and happened in one repetition
Predictions = list[tuple[Floats, NDArray[np.intp]]]  # log probabilities and true classes of each repetition


def predictions_by_model(study: Study) -> dict[str, Predictions]:
    """The predictions of each model, by repetition."""
    of_models: dict[str, dict[int, list[FoldResult]]] = {name: {} for name in study.models}
    for result in study.results:
        if result.log_proba is not None:
            of_models[result.unit.name].setdefault(result.unit.repeat, []).append(result)
    return {name: [pooled(own[r], study.true) for r in sorted(own)] for name, own in of_models.items() if own}


class Grouping(NamedTuple):
    """The groups of the samples of a model's first repetition, in the order of its predictions; None: no groups."""

    groups: NDArray[Any] | None
    n_folds: int  # 1: fresh samples, without a cross-validation

    def among(self, samples: NDArray[np.bool_]) -> NDArray[Any] | None:
        """The groups of some of the samples."""
        return None if self.groups is None else self.groups[samples]


def grouping(study: Study, model: str) -> Grouping:
    """The folds and the groups of a model's predictions."""
    n_folds = 1 + max(split.fold for split in study.splits)
    if study.groups is None:
        return Grouping(None, n_folds)
    own = [r for r in study.results if r.unit.name == model and r.log_proba is not None]
    first = [r for r in own if r.unit.repeat == min(result.unit.repeat for result in own)]
    return Grouping(np.asarray(study.groups)[np.concatenate([r.rows for r in first])], n_folds)


def one_class(predictions: Predictions, position: int) -> list[Part]:
    """The predictions for one class against the others."""
    return [(np.exp(log_proba[:, position]), true == position) for log_proba, true in predictions]


@dataclass(frozen=True)
class Decisions:
    """Measures of decisions; samples with a probability of at least the threshold are called positive."""

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


def decisions(
    parts: Sequence[Part],
    prevalence: float | None = None,
    grouping: Grouping | None = None,
    threshold: float = THRESHOLD,
    known_auc: Estimate | None = None,
) -> Decisions:
    """Measures over the repetitions of a cross-validation; None: with the prevalence of the samples.

    The AUC does not depend on the threshold and may be known from another one.
    """
    if grouping is not None and not 0 < parts[0][1].sum() < len(parts[0][1]):
        grouping = Grouping(None, grouping.n_folds)  # of an interrupted run
    parts = [part for part in parts if 0 < part[1].sum() < len(part[1])]
    if not parts:
        raise ValueError("no repetition has samples of the class and samples of others: finish the evaluation first")
    happened = np.concatenate([happened for _, happened in parts])
    called = np.concatenate([probability >= threshold for probability, _ in parts])
    n_parts = len(parts)
    n_positive, n_negative = float(happened.sum()) / n_parts, float((~happened).sum()) / n_parts
    hits, rejections = float((called & happened).sum()) / n_parts, float((~called & ~happened).sum()) / n_parts
    false_alarms, misses = n_negative - rejections, n_positive - hits
    own_prevalence = n_positive / (n_positive + n_negative) if prevalence is None else prevalence
    first_called, first_happened = parts[0][0] >= threshold, parts[0][1]
    right = first_called == first_happened

    def known(n_right: float, n_all: float, among: NDArray[np.bool_]) -> Estimate | None:
        if not n_all:
            return None
        size = _effective(right[among], among, grouping, n_all)
        return Estimate(n_right / n_all) if size is None else share(n_right * size / n_all, size)

    sensitivity = known(hits, n_positive, first_happened)
    specificity = known(rejections, n_negative, ~first_happened)
    assert sensitivity is not None
    assert specificity is not None
    if prevalence is None:
        positive_value = known(hits, hits + false_alarms, first_called)
        negative_value = known(rejections, rejections + misses, ~first_called)
    else:
        of, others = (_effective(right[a], a, grouping, 1.0) for a in (first_happened, ~first_happened))
        counts = hits, n_positive, rejections, n_negative
        scales = (1.0 if of is None else of), (1.0 if others is None else others)
        positive_value = predictive_value(*_scaled(counts, *scales), prevalence)
        negative_value = predictive_value(*_scaled((*counts[2:], *counts[:2]), *scales[::-1]), 1 - prevalence)
        if of is None or others is None:
            positive_value, negative_value = (v and Estimate(v.value) for v in (positive_value, negative_value))
    values = sensitivity, specificity, positive_value, negative_value
    area = known_auc or auc(parts, grouping)
    return Decisions(round(n_positive), round(n_negative), own_prevalence, area, *values)


def decisions_by_model(study: Study, label: str, threshold: float = THRESHOLD) -> dict[str, Decisions]:
    """Decisions of each model about one class, where samples of it and of others are predicted."""
    place, found = study.classes.index(label), {}
    for model, predictions in predictions_by_model(study).items():
        parts = one_class(predictions, place)
        if any(0 < happened.sum() < len(happened) for _, happened in parts):
            found[model] = decisions(parts, study.prevalence, grouping(study, model), threshold)
    return found


def _effective(right: NDArray[np.bool_], among: NDArray[np.bool_], grouping: Grouping | None, n: float) -> float | None:
    """The effective number, of ``n``, of samples among which a share is right; None with too few groups."""
    if grouping is None or not len(right):
        return n
    found = estimates.effective_number(right.astype(float), grouping.n_folds, grouping.among(among))
    return None if found is None else n * found / len(right)


def _scaled(counts: tuple[float, ...], of: float, others: float) -> tuple[float, float, float, float]:
    right, n, right_others, n_others = counts
    return right * of, n * of, right_others * others, n_others * others


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


def auc(parts: Sequence[Part], grouping: Grouping | None = None) -> Estimate:
    """Probability that a sample of the class has a higher probability than another one; a tie counts half.

    The interval is that of DeLong, DeLong and Clarke-Pearson (1988) on the logit scale, or that of Newcombe (2006,
    method 5) if the former has no width, as without errors. Cross-validated, it is widened as that of a mean, with
    a factor of its own. With groups it is that of Obuchowski (1997), with t.
    """
    values, variances = zip(*(_auc_and_variance(*_components(*part)) for part in parts), strict=True)
    happened = parts[0][1]
    value, half, widening = float(np.mean(values)), Z * float(np.sqrt(np.mean(variances))), _widening(grouping)
    if grouping is not None and grouping.groups is None:
        half *= float(stats.t.isf(estimates.ALPHA / 2, max(len(happened) - 2, 1)) / Z * np.sqrt(widening))
    elif grouping is not None:
        of_groups = estimates.half_width(_influence(*parts[0]), grouping.n_folds, grouping.groups)
        if of_groups is None:
            return Estimate(value)
        half = of_groups
    return _on_logit_scale(value, half, int(happened.sum()), int((~happened).sum()), widening)


def macro_auc(predictions: Predictions, grouping: Grouping | None = None) -> Estimate | None:
    """Mean over the classes of the `auc` of each against the rest; None if a class is all or none of the samples.

    The interval is that of the mean of the classes' influences in each sample.
    """
    n_classes = predictions[0][0].shape[1]
    by_class = [one_class(predictions, code) for code in range(n_classes)]
    if not all(0 < happened.sum() < len(happened) for parts in by_class for _, happened in parts):
        return None
    value = float(np.mean([_auc_and_variance(*_components(*part))[0] for parts in by_class for part in parts]))
    influence: Floats = np.mean([_influence(*parts[0]) for parts in by_class], axis=0)
    half: float | None = Z * float(np.sqrt((influence**2).sum())) / len(influence)
    if grouping is not None:
        half = estimates.half_width(influence, grouping.n_folds, grouping.groups)
    if half is None:
        return Estimate(value)
    widening = _widening(grouping)
    if grouping is not None and grouping.groups is None:
        half *= float(np.sqrt(widening / estimates.inflation(grouping.n_folds)))
    least = min(int(parts[0][1].sum()) for parts in by_class)
    return _on_logit_scale(value, half, least, len(influence) - least, widening)


def auc_by_model(study: Study) -> dict[str, Estimate]:
    """The AUC of each model that has predictions of all classes: of the positive of two, or else the `macro_auc`."""
    found: dict[str, Estimate | None] = {}
    for model, predictions in predictions_by_model(study).items():
        own = grouping(study, model)
        found[model] = macro_auc(predictions, own)
        if found[model] and len(study.classes) == 2 and study.positive_class is not None:
            found[model] = auc(one_class(predictions, study.classes.index(study.positive_class)), own)
    return {model: value for model, value in found.items() if value is not None}


def _widening(grouping: Grouping | None) -> float:
    """Factor of the variance of an AUC for folds that share training samples; groups have their own."""
    if grouping is None or grouping.groups is not None:
        return 1.0
    return estimates.inflation(grouping.n_folds, LEAST_INFLATION_OF_AUC)


def _influence(probability: Floats, happened: NDArray[np.bool_]) -> Floats:
    """Influence of each sample on the AUC: the variance of their mean is that of the AUC."""
    beaten, above = _components(probability, happened)
    influence = np.empty(len(happened))
    influence[happened] = (beaten - beaten.mean()) * len(happened) / len(beaten)
    influence[~happened] = (above - above.mean()) * len(happened) / len(above)
    return influence


def _on_logit_scale(value: float, half: float, m: int, n: int, widening: float) -> Estimate:
    """An AUC of m samples of the class and n others, half the width of whose interval is known."""
    if half <= 0 or not 0 < value < 1:
        return Estimate(value, *_score_interval(value, m, n, widening))
    half /= value * (1 - value)
    return Estimate(value, float(expit(logit(value) - half)), float(expit(logit(value) + half)))


def _components(probability: Floats, happened: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Share of the others below each sample of the class, and of the class above each other (Sun and Xu 2014)."""
    of, others = probability[happened], probability[~happened]
    m, n = len(of), len(others)
    ranks = stats.rankdata(np.concatenate([of, others]))
    return (ranks[:m] - stats.rankdata(of)) / n, 1 - (ranks[m:] - stats.rankdata(others)) / m


def _auc_and_variance(beaten: Floats, above: Floats) -> tuple[float, float]:
    """DeLong's variance."""
    variance = sum(float(shares.var(ddof=1)) / len(shares) for shares in (beaten, above) if len(shares) > 1)
    return float(beaten.mean()), variance


def _score_interval(value: float, m: int, n: int, widening: float) -> tuple[float, float]:
    def distance(theta: float) -> float:
        half = (m + n) / 2 - 1
        variance = theta * (1 - theta) * (1 + half * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (m * n)
        return (value - theta) ** 2 - Z**2 * widening * variance

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

    def mean(self, predictions: Predictions, grouping: Grouping | None = None) -> Estimate:
        """The mean cost per sample of these decisions."""
        parts = [self.matrix[true, self.least(log_proba)[0]] for log_proba, true in predictions]
        value = float(np.mean([costs.mean() for costs in parts]))
        half: float | None
        if grouping is not None:
            half = estimates.half_width(parts[0], grouping.n_folds, grouping.groups)
        else:
            errors = [costs.std(ddof=1) / np.sqrt(len(costs)) if len(costs) > 1 else 0 for costs in parts]
            half = Z * float(np.mean(errors))
        if half is None:
            return Estimate(value)
        return Estimate(value, max(value - half, float(self.matrix.min())), min(value + half, float(self.matrix.max())))

    def calls(self, position: int) -> tuple[int, int] | None:
        """For two classes and two decisions: those to take for and against the class at a position, if they differ."""
        if self.matrix.shape != (2, 2):
            return None
        call, other = (int(self.matrix[code].argmin()) for code in (position, 1 - position))
        return (call, other) if call != other else None

    def threshold(self, position: int) -> float | None:
        """Probability of the class from which on its call costs less; None without two classes and decisions."""
        calls = self.calls(position)
        if calls is None:
            return None
        false_alarm = self.matrix[1 - position, calls[0]] - self.matrix[1 - position, calls[1]]
        miss = self.matrix[position, calls[1]] - self.matrix[position, calls[0]]
        return float(false_alarm / (false_alarm + miss)) if false_alarm + miss > 0 else None

    def by_model(self, study: Study) -> dict[str, Estimate]:
        """The mean cost per sample of the decisions of each model."""
        found = predictions_by_model(study)
        return {model: self.mean(predicted, grouping(study, model)) for model, predicted in found.items()}
