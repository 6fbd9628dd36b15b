"""What an evaluation comes to: which model, how much better than the class frequencies, and whether to trust it.

All comparisons are of two models on the folds that both answered, and every word about them follows from a number that
stands beside it. Values are means over rows; their intervals are of 95 %, from the differences between rows, or between
groups of them, made wider because the folds share training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.evaluation.decisions import answers, share
from cgnlearn.evaluation.metrics import calibration_error, from_truth
from cgnlearn.evaluation.significance import Interval, difference_interval, inflation, mean_interval
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, Study, pooled
from cgnlearn.model.densities import Floats, of_truth, right

SIGNS = {"accuracy": 1, "cll": 1, "brier": -1}  # of metrics that are means over rows: 1 where more is better
ROW_METRICS: dict[str, Callable[[Floats, NDArray[np.intp]], NDArray[Any]]] = {
    "accuracy": right,
    "cll": of_truth,
    "brier": from_truth,
}
N_DRAWS = 500
SMALL = 0.05  # a calibration error that few decisions depend on
LARGE = 0.1  # one that many do: rows by which it may be chance are too few to vouch for probabilities


# ---- models beside each other


def answered(study: Study, model: str) -> set[tuple[int, int]]:
    """Repetition and fold of those that the model answered."""
    return {result.unit[1:] for result in study.results if result.unit.name == model and result.log_proba is not None}


def n_folds(study: Study) -> int:
    """How many folds a repetition has."""
    return 1 + max(split.fold for split in study.splits)


def by_row(study: Study, model: str, metric: str, folds: Collection[tuple[int, int]]) -> Floats:
    """A metric's value in each row, a mean over repetitions; not a number in rows of none of these folds."""
    total, n = np.zeros(len(study.true)), np.zeros(len(study.true))
    for result in study.results:
        if result.unit.name == model and result.log_proba is not None and result.unit[1:] in folds:
            total[result.rows] += ROW_METRICS[metric](result.log_proba, study.true[result.rows])
            n[result.rows] += 1
    with np.errstate(invalid="ignore"):
        values: Floats = total / n
    return values


def units(study: Study, values: Floats) -> Floats:
    """Values of rows as those of what is independent: the rows with one, or their groups, with the same mean."""
    there = ~np.isnan(values)
    values = values[there]
    if study.groups is None or not np.isfinite(values).all():
        return values
    number = np.unique(np.asarray(study.groups)[there], return_inverse=True)[1]
    mean = values.mean()
    found: Floats = mean + np.bincount(number, values - mean) / np.bincount(number).mean()
    return found


def value(study: Study, model: str, metric: str) -> Interval:
    """A model by one of the `SIGNS`, as a mean over rows; of a share the interval is Wilson's.

    CLL and Brier score have none where no row is named wrongly: what an error would cost has then not been seen.
    """
    folds = answered(study, model)
    found = units(study, by_row(study, model, metric, folds))
    mean = float(found.mean())
    if metric == "accuracy":
        n = len(found) / inflation(n_folds(study))
        return Interval(*share(mean * n, n))
    if np.nanmin(by_row(study, model, "accuracy", folds)) == 1:
        return Interval(mean, None, None)
    _, low, high = mean_interval(found, n_folds(study))
    if low is None or high is None:
        return Interval(mean, None, None)
    return Interval(mean, low, min(high, 0.0)) if metric == "cll" else Interval(mean, max(low, 0.0), high)


def beside(study: Study, model: str, other: str, metric: str) -> Interval | None:
    """How much better a model is than another one, on the folds that both answered; None without such a fold."""
    common = answered(study, model) & answered(study, other)
    if not common:
        return None
    first, second = (by_row(study, name, metric, common) for name in (model, other))
    with np.errstate(invalid="ignore"):
        difference = SIGNS[metric] * (first - second)
    difference[first == second] = 0.0  # both may be minus infinity
    found = units(study, difference)
    widest = max(1.0 if metric == "accuracy" else 0.0, float(np.abs(found).max()))
    return difference_interval(found, n_folds(study), widest)


class Standing(NamedTuple):
    """One model by one metric."""

    model: str
    value: Interval
    n_answered: int  # folds
    is_best: bool  # better than every other model, beyond what the folds leave to chance
    is_worse: bool  # than the class frequencies, on the folds that both answered


def standings(study: Study, metric: str) -> list[Standing]:
    """The models that answered in some fold, in their order, by one of the `SIGNS`."""
    models = [summary.model for summary in study.summaries if summary.metrics]
    found = []
    for model in models:
        others = [beside(study, model, other, metric) for other in models if other != model]
        base = beside(study, model, BASELINE, metric) if model != BASELINE and BASELINE in models else None
        found.append(
            Standing(
                model, value(study, model, metric), len(answered(study, model)),
                is_best=bool(others) and all(margin is not None and margin.sign > 0 for margin in others),
                is_worse=base is not None and base.mean < 0,
            )
        )  # fmt: skip
    return found


# ---- calibration


class Calibration(NamedTuple):
    """Whether probabilities mean what they say: those of the predicted class beside how often it is right."""

    error: float
    by_chance: float  # the error that probabilities that are exactly right stay below in 95 of 100 such samples
    said: float  # mean probability of the predicted class
    right: float  # share of rows in which it is right

    @property
    def judgement(self) -> Literal["trusted", "untold", "nearly", "not"]:
        """Within chance, or so where chance leaves room for much; or beyond it by little; or neither."""
        if self.error <= self.by_chance:
            return "trusted" if self.by_chance <= LARGE else "untold"
        return "nearly" if self.error <= SMALL else "not"


def calibration(study: Study, model: str) -> Calibration:
    """Of a model's first repetition: rows of another one would count the same row twice."""
    first = [result for result in study.results if result.unit.name == model and not result.unit.repeat]
    log_proba, true = pooled(first, study.true)
    said = np.exp(log_proba.max(axis=1))
    return Calibration(
        calibration_error(log_proba, true), _error_by_chance(said),
        float(said.mean()), float(right(log_proba, true).mean()),
    )  # fmt: skip


def _error_by_chance(said: Floats) -> float:
    """The 95th percentile of the calibration error if each answer were right with just the probability it states."""
    place = np.minimum((said * 10).astype(np.intp), 9)
    rng = np.random.default_rng(0)
    errors = np.empty(N_DRAWS)
    for draw in range(N_DRAWS):
        happened = rng.random(len(said)) < said
        errors[draw] = np.abs(np.bincount(place, said - happened)).sum() / len(said)
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
    def over(self) -> dict[str, dict[str, Interval]]:
        """By metric: how much better it is than each other model that has a fold in common with it."""
        others = [s.model for s in self.study.summaries if s.metrics and s.model != self.model]
        found = {metric: {o: beside(self.study, self.model, o, metric) for o in others} for metric in SIGNS}
        return {metric: {o: m for o, m in of.items() if m is not None} for metric, of in found.items()}

    @cached_property
    def accuracy(self) -> Interval:
        """The share of rows named rightly."""
        return value(self.study, self.model, "accuracy")

    @cached_property
    def cll(self) -> Interval:
        """The mean log probability of the truth."""
        return value(self.study, self.model, "cll")

    @cached_property
    def calibration(self) -> Calibration:
        """Whether its probabilities mean what they say."""
        return calibration(self.study, self.model)

    @property
    def is_good(self) -> bool:
        """Whether it tells more than the class frequencies, by what probability it gave the truth."""
        margin = self.over["cll"].get(BASELINE)
        return margin is None or margin.mean > 0

    @property
    def headline(self) -> str:
        """One sentence: what the model does, whether that is better than doing without it, and whether to trust it."""
        accuracy = f"{_share(self.accuracy.mean)} of the rows it had not seen{_range(self.accuracy, _share)}"
        if not self.is_good:
            return (
                f"Do not use it: {self.model}, which names the right class for {accuracy}, gives the truth less "
                "probability than the class frequencies do, which look at nothing."
            )
        beside = [_standing(self.over["cll"][o], _called(o)) for o in (BASELINE, LOGISTIC) if o in self.over["cll"]]
        trust = {
            "trusted": "its probabilities can be trusted",
            "untold": "the rows are too few to tell whether its probabilities can be trusted",
            "nearly": "its probabilities can nearly be trusted",
            "not": "its probabilities cannot be trusted",
        }[self.calibration.judgement]
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
        accuracy, cll = self.over["accuracy"][other], self.over["cll"][other]
        words = f"Beside {_called(other)} it is right {_points(accuracy)}"
        words += f", and gives the truth {_times(cll)}{_judged(cll)}"
        own, of_other = (answered(self.study, model) for model in (self.model, other))
        part = f" (on the {len(own & of_other)} of {len(own)} folds that both answered)" if own - of_other else ""
        return f"{words}{part}."

    @property
    def _better(self) -> list[str]:
        """Others that are clearly better: the reader must know."""
        told = (BASELINE, LOGISTIC)
        better = [other for other, margin in self.over["cll"].items() if margin.sign < 0 and other not in told]
        if not better:
            return []
        return [f"Better on the same folds, by the probability given to the truth: {', '.join(better)}."]

    @property
    def _trust(self) -> str:
        found = self.calibration
        said = f"on average it said {_share(found.said)} and was right in {_share(found.right)} of the rows"
        measure = f"calibration error {found.error:.3f}, where up to {found.by_chance:.3f} is chance"
        if found.judgement == "trusted":
            return f"Its probabilities can be taken at their word: {said} ({measure})."
        if found.judgement == "untold":
            return f"Nothing speaks against its probabilities, but the rows are few: {said} ({measure})."
        way = "high" if found.said > found.right else "low"
        if found.judgement == "nearly":
            return f"Its probabilities are a little too {way}: {said} ({measure})."
        return f"Its probabilities cannot be taken at their word, they are too {way}: {said} ({measure})."

    @property
    def _never_less(self) -> str:
        """What stands for an interval where no row was named wrongly, else nothing."""
        if self.accuracy.mean < 1:
            return ""
        least = min(of_truth(log_proba, true).min() for log_proba, true in answers(self.study)[self.model])
        return f"in no row less than {_share(np.exp(least))}"

    @property
    def figures(self) -> list[Figure]:
        """Three numbers."""
        has_base = bool(answered(self.study, BASELINE))
        base = {metric: value(self.study, BASELINE, metric).mean for metric in ("accuracy", "cll") if has_base}
        found = self.calibration
        return [
            Figure(
                "right answers", _share(self.accuracy.mean), _range(self.accuracy, _share, brackets=False),
                f"class frequencies: {_share(base['accuracy'])}" if base else "",
            ),
            Figure(
                "typical probability of the truth", _share(np.exp(self.cll.mean)),
                self._never_less or _range(self.cll, lambda value: _share(np.exp(value)), brackets=False),
                f"class frequencies: {_share(np.exp(base['cll']))}" if base else "",
            ),
            Figure(
                "calibration error", f"{found.error:.3f}", f"chance alone: up to {found.by_chance:.3f}",
                {
                    "trusted": "probabilities can be trusted", "nearly": "probabilities nearly right",
                    "untold": "too few rows to tell",
                }.get(found.judgement, "probabilities cannot be trusted"),
            ),
        ]  # fmt: skip


# ---- words


def _share(value: float) -> str:
    """A share in per cent; what is not all of the rows is not rounded to all of them."""
    percent = min(max(100 * value, 0.0), 100.0)
    digits = 1 if percent in (0.0, 100.0) or 0.05 <= percent < 99.95 else 2
    if 0 < percent < 0.005:
        return "less than 0.01 %"
    if 99.995 <= percent < 100:
        return "more than 99.99 %"
    return f"{percent:.{0 if percent in (0.0, 100.0) else digits}f} %"


def _range(found: Interval, form: Callable[[float], str], brackets: bool = True) -> str:
    if found.low is None or found.high is None:
        return ""
    words = f"95 % interval {form(found.low)} to {form(found.high)}"
    return f" ({words})" if brackets else words


def _points(margin: Interval) -> str:
    points = 100 * margin.mean
    if round(abs(points), 1) == 0:
        words = "just as often"
    else:
        words = f"in {abs(points):.1f} {'more' if points > 0 else 'fewer'} of 100 rows"
    if margin.low is None or margin.high is None:
        return words
    unit = "" if "100" in words else " of 100 rows"
    return f"{words} ({_signed(100 * margin.low)} to {_signed(100 * margin.high)}{unit})"


def _times(margin: Interval) -> str:
    if not np.isfinite(margin.mean):
        return "incomparably more probability" if margin.mean > 0 else "incomparably less probability"
    words = f"{_factor(margin.mean)} times the probability"
    if margin.low is None or margin.high is None:
        return words
    return f"{words} ({_factor(margin.low)} to {_factor(margin.high)})"


def _factor(log: float) -> str:
    """A factor by its logarithm, in as many digits as say something."""
    if abs(log) > np.log(1000):
        return "more than 1000" if log > 0 else "less than 0.001"
    factor = float(np.exp(log))
    return f"{factor:.2f}" if factor < 10 else f"{factor:.0f}"


def _called(model: str) -> str:
    return f"the {model}" if model == BASELINE else model


def _standing(margin: Interval, other: str) -> str:
    """What a difference says, in words."""
    if margin.sign:
        return f"clearly {'better' if margin.sign > 0 else 'worse'} than {other}"
    return f"not clearly {'better than' if other == _called(BASELINE) else 'different from'} {other}"


def _judged(margin: Interval) -> str:
    return {1: ": clearly better", 0: ": no clear difference", -1: ": clearly worse"}[margin.sign]


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")
