"""What an evaluation comes to: which model, how much better than the class frequencies, and whether to trust it.

All comparisons are of two models on the folds that both answered, and every word about them follows from a number that
stands beside it. Values are means over samples; their intervals are of 95 %, from the differences between samples, or
between groups of them, made wider because the folds share training samples.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.decisions import answers
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import CALIBRATION_ERROR, MEANS, N_BINS, bin_of
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, Study, pooled
from cgnlearn.networks.densities import is_correct, true_class_log_proba

N_DRAWS = 500
SMALL = 0.05  # a calibration error that few decisions depend on
LARGE = 0.1  # one that many do: samples by which it may be chance are too few to vouch for probabilities
TRUST = {  # what is made of the calibration: in the headline, and below the number
    "trusted": ("its probabilities can be trusted", "probabilities can be trusted"),
    "untold": ("the samples are too few to tell whether its probabilities can be trusted", "too few samples to tell"),
    "nearly": ("its probabilities can nearly be trusted", "probabilities nearly right"),
    "not": ("its probabilities cannot be trusted", "probabilities cannot be trusted"),
}


# ---- models beside each other


def answered(study: Study, model: str) -> set[tuple[int, int]]:
    """Repetition and fold of those that the model answered."""
    return {result.unit[1:] for result in study.results if result.unit.name == model and result.log_proba is not None}


def n_folds(study: Study) -> int:
    """How many folds a repetition has."""
    return 1 + max(split.fold for split in study.splits)


def by_row(study: Study, model: str, metric: str, folds: Collection[tuple[int, int]]) -> Floats:
    """A metric's value in each sample, a mean over repetitions; not a number in samples of none of these folds."""
    total, n = np.zeros(len(study.true)), np.zeros(len(study.true))
    for result in study.results:
        if result.unit.name == model and result.log_proba is not None and result.unit[1:] in folds:
            total[result.rows] += MEANS[metric].of_samples(result.log_proba, study.true[result.rows])
            n[result.rows] += 1
    with np.errstate(invalid="ignore"):
        values: Floats = total / n
    return values


def units(study: Study, values: Floats) -> Floats:
    """Values of samples as those of what is independent: the samples with one, or their groups, with the same mean."""
    there = ~np.isnan(values)
    values = values[there]
    if study.groups is None or not np.isfinite(values).all():
        return values
    number = np.unique(np.asarray(study.groups)[there], return_inverse=True)[1]
    mean = values.mean()
    found: Floats = mean + np.bincount(number, values - mean) / np.bincount(number).mean()
    return found


def value(study: Study, model: str, metric: str) -> Estimate:
    """A model by a mean over samples; of a share the interval is Wilson's.

    Log loss and Brier score have none where no sample is named wrongly: what an error would cost has then not been
    seen.
    """
    folds = answered(study, model)
    found = units(study, by_row(study, model, metric, folds))
    if metric == "accuracy":
        n = len(found) / estimates.inflation(n_folds(study))
        return estimates.share(float(found.mean()) * n, n)
    if np.nanmin(by_row(study, model, "accuracy", folds)) == 1:
        return Estimate(float(found.mean()))
    mean = estimates.mean(found, n_folds(study))
    return mean if mean.low is None else mean._replace(low=max(mean.low, 0.0))


def beside(study: Study, model: str, other: str, metric: str) -> Estimate | None:
    """How much better a model is than another one, on the folds that both answered; None without such a fold."""
    common = answered(study, model) & answered(study, other)
    if not common:
        return None
    first, second = (by_row(study, name, metric, common) for name in (model, other))
    with np.errstate(invalid="ignore"):
        difference = MEANS[metric].sign * (first - second)
    difference[first == second] = 0.0  # both may be infinite
    found = units(study, difference)
    widest = max(1.0 if metric == "accuracy" else 0.0, float(np.abs(found).max()))
    return estimates.difference(found, n_folds(study), widest)


class Standing(NamedTuple):
    """One model by one metric."""

    model: str
    value: Estimate
    n_answered: int  # folds
    is_best: bool  # better than every other model, beyond what the folds leave to chance
    is_worse: bool  # than the class frequencies, on the folds that both answered


def standings(study: Study, metric: str) -> list[Standing]:
    """The models that answered in some fold, in their order, by a mean over samples."""
    models = [summary.model for summary in study.summaries if summary.metrics]
    found = []
    for model in models:
        others = [beside(study, model, other, metric) for other in models if other != model]
        base = beside(study, model, BASELINE, metric) if model != BASELINE and BASELINE in models else None
        is_best = bool(others) and all(margin is not None and margin.sign > 0 for margin in others)
        is_worse = base is not None and base.value < 0
        found.append(Standing(model, value(study, model, metric), len(answered(study, model)), is_best, is_worse))
    return found


# ---- calibration


class Calibration(NamedTuple):
    """Whether probabilities mean what they say: those of the predicted class beside how often it is right."""

    error: float
    by_chance: float  # the error that probabilities that are exactly right stay below in 95 of 100 such samples
    said: float  # mean probability of the predicted class
    right: float  # share of samples in which it is right

    @property
    def judgement(self) -> str:
        """One of `TRUST`: within chance, or so where chance leaves much room; or beyond it by little; or neither."""
        if self.error <= self.by_chance:
            return "trusted" if self.by_chance <= LARGE else "untold"
        return "nearly" if self.error <= SMALL else "not"


def calibration(study: Study, model: str) -> Calibration:
    """Of a model's first repetition: samples of another one would count the same sample twice."""
    first = [result for result in study.results if result.unit.name == model and not result.unit.repeat]
    log_proba, true = pooled(first, study.true)
    said = np.exp(log_proba.max(axis=1))
    error = CALIBRATION_ERROR(log_proba, true)
    return Calibration(error, _error_by_chance(said), float(said.mean()), float(is_correct(log_proba, true).mean()))


def _error_by_chance(said: Floats) -> float:
    """The 95th percentile of the calibration error if each answer were right with just the probability it states."""
    place = bin_of(said)
    rng = np.random.default_rng(0)
    errors = np.empty(N_DRAWS)
    for draw in range(N_DRAWS):
        happened = rng.random(len(said)) < said
        errors[draw] = np.abs(np.bincount(place, said - happened, N_BINS)).sum() / len(said)
    return float(np.quantile(errors, 0.95))


# ---- the verdict


class Figure(NamedTuple):
    """A number to remember, with its interval and with what to hold beside it."""

    name: str
    value: str
    interval: str
    beside: str


@dataclass(frozen=True)
class Verdict:
    """Of one study, about its chosen model."""

    study: Study

    @property
    def model(self) -> str:
        """The model that it is about."""
        assert self.study.chosen is not None
        return self.study.chosen

    @cached_property
    def over(self) -> dict[str, dict[str, Estimate]]:
        """By metric: how much better it is than each other model that has a fold in common with it."""
        others = [s.model for s in self.study.summaries if s.metrics and s.model != self.model]
        found = {metric: {o: beside(self.study, self.model, o, metric) for o in others} for metric in MEANS}
        return {metric: {o: m for o, m in of.items() if m is not None} for metric, of in found.items()}

    @cached_property
    def accuracy(self) -> Estimate:
        """The share of samples named rightly."""
        return value(self.study, self.model, "accuracy")

    @cached_property
    def log_loss(self) -> Estimate:
        """The mean of minus the log probability of the truth."""
        return value(self.study, self.model, "log_loss")

    @cached_property
    def calibration(self) -> Calibration:
        """Whether its probabilities mean what they say."""
        return calibration(self.study, self.model)

    @property
    def is_good(self) -> bool:
        """Whether it tells more than the class frequencies, by what probability it gave the truth."""
        margin = self.over["log_loss"].get(BASELINE)
        return margin is None or margin.value > 0

    @property
    def headline(self) -> str:
        """One sentence: what the model does, whether that is better than doing without it, and whether to trust it."""
        accuracy = f"{_share(self.accuracy.value)} of the samples it had not seen ({_interval(self.accuracy, _share)})"
        if not self.is_good:
            return (
                f"Do not use it: {self.model}, which names the right class for {accuracy}, gives the truth less "
                "probability than the class frequencies do, which look at nothing."
            )
        over = self.over["log_loss"]
        beside = [_standing(over[other], _called(other)) for other in (BASELINE, LOGISTIC) if other in over]
        trust, _ = TRUST[self.calibration.judgement]
        called = f"The {self.model}" if self.model == self.study.proposed else self.model
        judged = f"{', '.join(beside)}; {trust}" if beside else trust
        return f"{called} names the right class for {accuracy}: {judged}."

    @property
    def sentences(self) -> list[str]:
        """What the headline rests on: beside the class frequencies, beside the others, and its calibration."""
        found = [self._beside(other) for other in (BASELINE, LOGISTIC) if other in self.over["accuracy"]]
        found += self._better
        return [*found, self._trust]

    def _beside(self, other: str) -> str:
        accuracy, saved = self.over["accuracy"][other], self.over["log_loss"][other]
        words = f"Beside {_called(other)} it is right {_points(accuracy)}"
        words += f", and gives the truth {_times(saved)}{_judged(saved)}"
        own, of_other = (answered(self.study, model) for model in (self.model, other))
        part = f" (on the {len(own & of_other)} of {len(own)} folds that both answered)" if own - of_other else ""
        return f"{words}{part}."

    @property
    def _better(self) -> list[str]:
        """Others that are clearly better: the reader must know."""
        told = (BASELINE, LOGISTIC)
        better = [other for other, margin in self.over["log_loss"].items() if margin.sign < 0 and other not in told]
        if not better:
            return []
        return [f"Better on the same folds, by the probability given to the truth: {', '.join(better)}."]

    @property
    def _trust(self) -> str:
        found = self.calibration
        said = f"on average it said {_share(found.said)} and was right in {_share(found.right)} of the samples"
        measure = f"calibration error {found.error:.3f}, where up to {found.by_chance:.3f} is chance"
        if found.judgement == "trusted":
            return f"Its probabilities can be taken at their word: {said} ({measure})."
        if found.judgement == "untold":
            return f"Nothing speaks against its probabilities, but the samples are few: {said} ({measure})."
        way = "high" if found.said > found.right else "low"
        if found.judgement == "nearly":
            return f"Its probabilities are a little too {way}: {said} ({measure})."
        return f"Its probabilities cannot be taken at their word, they are too {way}: {said} ({measure})."

    @property
    def figures(self) -> list[Figure]:
        """Three numbers."""
        found, typical = self.calibration, self.log_loss.through(_typical)
        named_rightly = self.accuracy.value == 1  # then how far off an error would be has not been seen
        least = min(true_class_log_proba(log_proba, true).min() for log_proba, true in answers(self.study)[self.model])
        interval = f"in no sample less than {_share(np.exp(least))}" if named_rightly else _interval(typical, _share)
        base = dict.fromkeys(("accuracy", "log_loss"), "")
        if answered(self.study, BASELINE):
            accuracy, log_loss = (value(self.study, BASELINE, metric).value for metric in base)
            base["accuracy"] = f"class frequencies: {_share(accuracy)}"
            base["log_loss"] = f"class frequencies: {_share(_typical(log_loss))}"
        chance = f"chance alone: up to {found.by_chance:.3f}"
        shares = _share(self.accuracy.value), _interval(self.accuracy, _share)
        return [
            Figure("right answers", *shares, base["accuracy"]),
            Figure("typical probability of the truth", _share(typical.value), interval, base["log_loss"]),
            Figure("calibration error", f"{found.error:.3f}", chance, TRUST[found.judgement][1]),
        ]


# ---- words


def _share(value: float) -> str:
    """A share in per cent; what is not all of the samples is not rounded to all of them."""
    percent = min(max(100 * value, 0.0), 100.0)
    digits = 1 if percent in (0.0, 100.0) or 0.05 <= percent < 99.95 else 2
    if 0 < percent < 0.005:
        return "less than 0.01 %"
    if 99.995 <= percent < 100:
        return "more than 99.99 %"
    return f"{percent:.{0 if percent in (0.0, 100.0) else digits}f} %"


def _typical(log_loss: float) -> float:
    return float(np.exp(-log_loss))


def _interval(found: Estimate, form: Callable[[float], str]) -> str:
    span = found.span(form)
    return f"95 % interval {span}" if span else ""


def _points(margin: Estimate) -> str:
    points = margin.through(lambda value: 100 * value)
    words, unit = f"in {abs(points.value):.1f} {'more' if points.value > 0 else 'fewer'} of 100 samples", ""
    if round(abs(points.value), 1) == 0:
        words, unit = "just as often", " of 100 samples"
    span = points.span(_signed)
    return f"{words} ({span}{unit})" if span else words


def _times(margin: Estimate) -> str:
    if not np.isfinite(margin.value):
        return "incomparably more probability" if margin.value > 0 else "incomparably less probability"
    span = margin.span(_factor)
    return f"{_factor(margin.value)} times the probability" + (f" ({span})" if span else "")


def _factor(log: float) -> str:
    """A factor by its logarithm, in as many digits as say something."""
    if abs(log) > np.log(1000):
        return "more than 1000" if log > 0 else "less than 0.001"
    factor = float(np.exp(log))
    return f"{factor:.2f}" if factor < 10 else f"{factor:.0f}"


def _called(model: str) -> str:
    return f"the {model}" if model == BASELINE else model


def _standing(margin: Estimate, other: str) -> str:
    """What a difference says, in words."""
    if margin.sign:
        return f"clearly {'better' if margin.sign > 0 else 'worse'} than {other}"
    return f"not clearly {'better than' if other == _called(BASELINE) else 'different from'} {other}"


def _judged(margin: Estimate) -> str:
    return {1: ": clearly better", 0: ": no clear difference", -1: ": clearly worse"}[margin.sign]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
