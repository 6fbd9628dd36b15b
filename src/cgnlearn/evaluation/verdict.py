"""The conclusion of an evaluation: the chosen model compared with others and with the class frequencies.

Two models are compared on the folds in which both have predictions. Values are means over samples with 95% confidence
intervals from the variation between samples, or between groups, widened because the folds share training samples. One
test decides which is better: whether the interval of their difference in log loss excludes zero.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.calibration import (
    CERTAIN_EVENTS,
    Calibration,
    MulticlassCalibration,
    cross_validated,
    slope_of,
)
from cgnlearn.evaluation.decisions import auc_by_model, grouping, predictions_by_model
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import MEANS
from cgnlearn.evaluation.perfect_calibration import p_value
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, Study, pooled

RARE = 0.3  # share of a class below which accuracy does not lead


# ---- comparison of models


def predicted_folds(study: Study, model: str) -> set[tuple[int, int]]:
    """Repetition and fold of those in which the model has predictions."""
    return {result.unit[1:] for result in study.results if result.unit.name == model and result.log_proba is not None}


def n_folds(study: Study) -> int:
    """Number of folds of a repetition."""
    return 1 + max(split.fold for split in study.splits)


def by_sample(study: Study, model: str, metric: str, folds: Collection[tuple[int, int]]) -> Floats:
    """The metric of each sample, averaged over the repetitions; NaN for samples outside these folds."""
    total, n = np.zeros(len(study.true)), np.zeros(len(study.true))
    for result in study.results:
        if result.unit.name == model and result.log_proba is not None and result.unit[1:] in folds:
            total[result.rows] += MEANS[metric].of_samples(result.log_proba, study.true[result.rows])
            n[result.rows] += 1
    with np.errstate(invalid="ignore"):
        values: Floats = total / n
    return values


def _dispersion(study: Study, model: str, metric: str, folds: Collection[tuple[int, int]]) -> float:
    """Variance of a loss divided by its mean, over samples, if the probabilities of the model were true.

    Few errors do not show how much errors cost: the model's own probabilities do.
    """
    results = [r for r in study.results if r.unit.name == model and r.log_proba is not None and r.unit[1:] in folds]
    log_proba, _ = pooled(results, study.true)
    first, second = np.zeros(len(log_proba)), np.zeros(len(log_proba))
    for code in range(len(study.classes)):
        p = np.exp(log_proba[:, code])
        cost = np.where(p > 0, MEANS[metric].of_samples(log_proba, np.full(len(log_proba), code)), 0.0)
        first, second = first + p * cost, second + p * cost**2
    mean = float(first.mean())
    return (float(second.mean()) - mean**2) / mean if mean > 0 else 0.0


def _estimate(
    study: Study, model: str, metric: str, folds: Collection[tuple[int, int]]
) -> tuple[Estimate, Floats, NDArray[np.bool_]]:
    """The mean of a metric over the samples of some folds, its value in each sample, and which samples have one."""
    values = by_sample(study, model, metric, folds)
    known = ~np.isnan(values)
    own, groups = values[known], _groups(study, known)
    if metric == "accuracy":
        return estimates.share_of(own, n_folds(study), groups), own, known
    return estimates.loss(own, n_folds(study), groups, _dispersion(study, model, metric, folds)), own, known


def _groups(study: Study, known: NDArray[np.bool_]) -> NDArray[Any] | None:
    return None if study.groups is None else np.asarray(study.groups)[known]


def value(study: Study, model: str, metric: str) -> Estimate:
    """The mean of a metric over samples."""
    return _estimate(study, model, metric, predicted_folds(study, model))[0]


def improvement(study: Study, model: str, other: str, metric: str) -> Estimate | None:
    """By how much a model is better than another one on their common folds; None without such a fold."""
    common = predicted_folds(study, model) & predicted_folds(study, other)
    if not common:
        return None
    (own, first, known), (others, second, _) = (_estimate(study, name, metric, common) for name in (model, other))
    groups = _groups(study, known)
    if metric == "accuracy":
        return estimates.share_difference(first - second, n_folds(study), groups)
    if not np.isfinite([own.value, others.value]).all():
        with np.errstate(invalid="ignore"):
            difference = np.where(first == second, 0.0, second - first)  # both may be infinite
        return Estimate(float(np.nan_to_num(difference.mean(), nan=0.0, posinf=np.inf, neginf=-np.inf)))
    return estimates.loss_difference(own, others, estimates.correlation(first, second, groups))


class Standing(NamedTuple):
    """One model by one metric."""

    model: str
    value: Estimate
    n_predicted: int  # folds
    is_best: bool  # significantly better than every other model
    is_worse: bool  # than the class frequencies, on the common folds


def standings(study: Study, metric: str) -> list[Standing]:
    """The models with predictions in some fold, in their order, by a mean over samples."""
    models = [summary.model for summary in study.summaries if summary.metrics]
    found = []
    for model in models:
        margins = {other: improvement(study, model, other, metric) for other in models if other != model}
        is_best = bool(margins) and all(margin is not None and margin.sign > 0 for margin in margins.values())
        base, n_predicted = margins.get(BASELINE), len(predicted_folds(study, model))
        is_worse = base is not None and base.value < 0
        found.append(Standing(model, value(study, model, metric), n_predicted, is_best, is_worse))
    return found


# ---- calibration


def calibration(study: Study, model: str) -> Calibration | MulticlassCalibration:
    """Calibration of the positive one of two classes, or of all of more."""
    predictions, own = predictions_by_model(study)[model], grouping(study, model)
    if len(study.classes) == 2 and study.positive_class is not None:
        return cross_validated(predictions, study.classes.index(study.positive_class), own)
    log_proba, true = predictions[0]
    return MulticlassCalibration(slope_of(log_proba, true, *own), p_value(log_proba, true, own.groups), {})


def judgement(study: Study, found: Calibration | MulticlassCalibration) -> str:
    """What can be said about the calibration, in a clause; few samples vouch for nothing."""
    n, noun = min(study.counts.values()), "events" if len(study.classes) == 2 else "samples in the rarest class"
    if found.is_flagged:
        return found.words
    if n < CERTAIN_EVENTS or found.slope is None:
        return f"calibration not assessed with certainty ({n} {noun}; {CERTAIN_EVENTS} are needed)"
    if found.is_open:
        return f"calibration {found.words}"
    return f"no sign of miscalibration ({n} {noun})"


# ---- the verdict


class Figure(NamedTuple):
    """A key figure, with its interval and a reference value."""

    name: str
    value: str
    interval: str
    reference: str


@dataclass(frozen=True)
class Verdict:
    """The conclusion about the chosen model of a study."""

    study: Study

    @property
    def model(self) -> str:
        assert self.study.chosen is not None
        return self.study.chosen

    @cached_property
    def over(self) -> dict[str, dict[str, Estimate]]:
        """By metric: by how much it is better than each other model that has a fold in common with it."""
        others = [s.model for s in self.study.summaries if s.metrics and s.model != self.model]
        found = {metric: {o: improvement(self.study, self.model, o, metric) for o in others} for metric in MEANS}
        return {metric: {o: m for o, m in of.items() if m is not None} for metric, of in found.items()}

    @cached_property
    def accuracy(self) -> Estimate:
        return value(self.study, self.model, "accuracy")

    @cached_property
    def log_loss(self) -> Estimate:
        return value(self.study, self.model, "log_loss")

    @cached_property
    def auc(self) -> Estimate | None:
        """Of the positive one of two classes, or the mean over the classes; None if a class has no prediction."""
        return auc_by_model(self.study).get(self.model)

    @cached_property
    def calibration(self) -> Calibration | MulticlassCalibration:
        return calibration(self.study, self.model)

    @property
    def is_good(self) -> bool:
        """Whether its log loss is lower than that of the class frequencies."""
        margin = self.over["log_loss"].get(BASELINE)
        return margin is None or margin.value > 0

    @property
    def _has_rare_class(self) -> bool:
        return min(self.study.counts.values()) < RARE * len(self.study.y)

    @property
    def headline(self) -> str:
        """One short sentence: how well the classes are told apart, and whether that is better than knowing nothing."""
        if not self.is_good:
            return f"Do not use {self.model}: its log loss is above that of the class frequencies."
        classes, auc = self.study.classes, self.auc
        model = f"The {self.model}" if self.model == self.study.proposed == MIXTURE else self.model
        if len(classes) == 2 and auc is not None:
            positive = self.study.positive_class
            other = next(label for label in classes if label != positive)
            told = f"{model} tells {positive} from {other}: AUC {auc.value:.2f}"
        elif self._has_rare_class and auc is not None:
            told = f"{model} tells {len(classes)} classes apart: macro AUC {auc.value:.2f}"
        else:
            told = f"{model} classifies {_percent(self.accuracy.value)} of held-out samples correctly"
        margin = self.over["log_loss"].get(BASELINE)
        return f"{told}." if margin is None else f"{told}, {_comparison(margin, BASELINE)}."

    @property
    def remarks(self) -> list[str]:
        """Calibration, and the comparison with the other models, each in a short sentence."""
        words = judgement(self.study, self.calibration)
        by_result: dict[str, list[str]] = {}
        for other in self.over["log_loss"]:
            if other != BASELINE:
                by_result.setdefault(self.result(other), []).append(other)
        joined = {"clearly better": "than", "clearly worse": "than", "no clear difference": "from"}
        parts = [f"{result} {joined.get(result, 'from')} {', '.join(names)}" for result, names in by_result.items()]
        return [f"{_capital(words)}.", *([f"{_capital('; '.join(parts))}."] if parts else [])]

    @property
    def sentences(self) -> list[str]:
        """The comparisons and the calibration behind the headline."""
        share = f"{_percent(self.accuracy.value)}{_ci(self.accuracy, _percent)} of held-out samples are classified"
        references = [other for other in (BASELINE, LOGISTIC) if other in self.over["accuracy"]]
        sentences = [f"{share} correctly.", *(self._compared(other) for other in references)]
        margins = self.over["log_loss"].items()
        better = [other for other, margin in margins if margin.sign < 0 and other not in references]
        if better:
            sentences.append(f"Lower log loss on the same folds: {', '.join(better)}.")
        return [*sentences, self._calibrated]

    def _compared(self, other: str) -> str:
        accuracy, loss = self.over["accuracy"][other], self.over["log_loss"][other]
        own, of_other = (predicted_folds(self.study, model) for model in (self.model, other))
        part = f" (on the {len(own & of_other)} of {len(own)} folds with predictions of both)" if own - of_other else ""
        return f"Compared with {_called(other)}: {_points(accuracy)}; {_times(loss)}: {self.result(other)}{part}."

    def result(self, other: str) -> str:
        """The comparison with another model in words, by the one test: the difference in log loss."""
        loss = self.over["log_loss"][other]
        return {1: "clearly better", 0: _undecided(loss), -1: "clearly worse"}[loss.sign]

    @property
    def _calibrated(self) -> str:
        found, slope = self.calibration, self.calibration.slope
        text = f"Calibration: {judgement(self.study, found)}."
        if slope is not None:
            text += f" Slope {_plain(slope.value)}{_ci(slope, _plain)} (1 is perfect, below 1 too extreme)."
        if isinstance(found, Calibration):
            ratio = found.observed_expected
            text += f" Observed/expected {_plain(ratio.value)}{_ci(ratio, _plain)}."
            intercept = found.intercept
            text += f" Intercept {_plain(intercept.value)}{_ci(intercept, _plain)} (0 is perfect, above 0 too low)."
        return text + ("" if found.p_value is None else f" Test of perfect calibration: p = {found.p_value:.3f}.")

    @property
    def figures(self) -> list[Figure]:
        """Two classes: AUC, log loss, calibration slope. More: accuracy, log loss, macro AUC.

        Accuracy does not come first where a class is rare.
        """
        is_binary = len(self.study.classes) == 2
        auc = None
        if self.auc is not None:
            name = "AUC (area under the ROC curve)" if is_binary else "macro AUC (each class against the rest)"
            auc = Figure(name, f"{self.auc.value:.3f}", _interval(self.auc, "{:.3f}".format), "0.5 is chance")
        loss, base = self.log_loss, dict.fromkeys(("accuracy", "log_loss"), "")
        if predicted_folds(self.study, BASELINE):
            forms: dict[str, Callable[[float], str]] = {"accuracy": _percent, "log_loss": "{:.3f}".format}
            base = {m: f"{BASELINE}: {form(value(self.study, BASELINE, m).value)}" for m, form in forms.items()}
        log_loss = Figure("log loss", f"{loss.value:.3f}", _interval(loss, "{:.3f}".format), base["log_loss"])
        accuracy = Figure(
            "accuracy", _percent(self.accuracy.value), _interval(self.accuracy, _percent), base["accuracy"]
        )
        if is_binary:
            slope = self.calibration.slope
            third = Figure("calibration slope", "unknown", "", "1 is perfect")
            if slope is not None:
                third = Figure("calibration slope", _plain(slope.value), _interval(slope, _plain), "1 is perfect")
            found = [auc, log_loss, third]
        else:
            found = [auc, log_loss, accuracy] if self._has_rare_class else [accuracy, log_loss, auc]
        return [figure for figure in found if figure is not None]


# ---- texts


def _percent(share: float) -> str:
    """A share in per cent; only 0 and 1 are written as 0% and 100%."""
    percent = min(max(100 * share, 0.0), 100.0)
    if 0 < percent < 0.005:
        return "less than 0.01%"
    if 99.995 <= percent < 100:
        return "more than 99.99%"
    if percent in (0.0, 100.0):
        return f"{percent:.0f}%"
    return f"{percent:.{1 if 0.05 <= percent < 99.95 else 2}f}%"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _plain(number: float) -> str:
    """Two decimals, with a true minus and infinity."""
    if np.isinf(number):
        return "∞" if number > 0 else "−∞"
    return f"{number:.2f}".replace("-", "−")


def _interval(estimate: Estimate, form: Callable[[float], str]) -> str:
    return _ci(estimate, form).strip(" ()")


def _ci(estimate: Estimate, form: Callable[[float], str]) -> str:
    span = estimate.span(lambda end: form(end).removesuffix("%"))
    return f" (95% CI {span})" if span else ""


def _points(margin: Estimate) -> str:
    points = margin.through(lambda share: 100 * share)
    text = f"accuracy {abs(points.value):.1f} percentage points {'higher' if points.value > 0 else 'lower'}"
    if round(abs(points.value), 1) == 0:
        text = "same accuracy"
    return text + _ci(points, lambda end: f"{end:+.1f}".replace("-", "−"))


def _times(margin: Estimate) -> str:
    if not np.isfinite(margin.value):
        return f"log loss infinitely {'lower' if margin.value > 0 else 'higher'}"
    return f"typical probability of the true class {_factor(margin.value)} times as high{_ci(margin, _factor)}"


def _factor(log: float) -> str:
    """A factor from its logarithm, with three digits."""
    if abs(log) > np.log(1000):
        return "more than 1000" if log > 0 else "less than 0.001"
    factor = float(np.exp(log))
    return f"{factor:.2f}" if factor < 10 else f"{factor:.0f}"


def _called(model: str) -> str:
    return f"the {model}" if model == BASELINE else model


def _undecided(margin: Estimate) -> str:
    return "too few groups to tell" if _lacks_groups(margin) else "no clear difference"


def _lacks_groups(margin: Estimate) -> bool:
    return margin.low is None and bool(np.isfinite(margin.value))


def _comparison(margin: Estimate, other: str) -> str:
    if margin.sign:
        return f"clearly {'better' if margin.sign > 0 else 'worse'} than {_called(other)}"
    if _lacks_groups(margin):
        return f"too few groups to compare it with {_called(other)}"
    return f"not clearly {'better than' if other == BASELINE else 'different from'} {_called(other)}"
