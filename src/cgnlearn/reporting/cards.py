"""One card for each feature, or peak: its distribution in the classes, and its contribution."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.study import Study
from cgnlearn.plots import EffectDisplay
from cgnlearn.reporting.effects import common_view, drawing, effects_of

MOST_CARDS = 20
MOST_EFFECTS = 10  # cards with an effect curve
MOST_LISTED = 300  # names below the cards
MOST_BINS, MOST_LEVELS, MOST_CLASSES = 24, 6, 8
TYPICAL = (0.05, 0.95)  # quantiles that bound the typical values of a class


class Values(NamedTuple):
    """A column: numbers, or levels as text; missing values are NaN or None."""

    of_samples: NDArray[Any]
    is_number: bool

    @property
    def missing(self) -> NDArray[np.bool_]:
        if self.is_number:
            return np.isnan(self.of_samples)
        return np.array([value is None for value in self.of_samples], dtype=bool)


def column(X: Any, number: int) -> Values:
    """A column of a data frame."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    series = X.iloc[:, number]
    if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
        return Values(series.to_numpy(dtype=float, na_value=np.nan), True)
    levels = [None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
    return Values(np.array(levels, dtype=object), False)


def shortened(value: Any) -> str:
    """A value as the page shows it: a number with four digits."""
    if value is None or value != value:
        return "missing"
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4g}"
    return (f"{float(short):.0f}" if "e+" in short and abs(value) < 1e9 else short).replace("-", "−")


class Histogram(NamedTuple):
    """Shares of the samples of each class in common bins."""

    shapes: list[tuple[int, str, Markup]]  # position and name of the class, and its bars
    labels: list[str]  # of the levels, or of the lowest and the highest number
    are_levels: bool
    ends: tuple[float, float] | None  # of numbers; None: of levels, or of a single number


class Card(NamedTuple):
    """One feature or peak."""

    name: str
    evidence: float  # mean contribution to the log odds of the true class
    share: float  # of the sum of all sizes
    bar: tuple[float, float]  # start and length in per cent, to the right of zero or to the left
    n_missing: int
    histogram: Histogram | None
    effect: Markup | None = None


class Cards(NamedTuple):
    """All features, the strongest first."""

    shown: list[Card]
    folded: list[Card]
    n_more: int
    of_more: float  # total contribution of those that are not listed
    between: float | None  # contribution of the bins between the peaks of spectra
    zero: float  # place of zero on the bars, in per cent
    effects: list[EffectDisplay]
    view: tuple[float, float] | None  # log odds at the bottom and top of all effects


def cards(chosen: Chosen) -> Cards | None:
    """The cards of a study; None if the model has no contributions."""
    if chosen.evidence is None:
        return None
    study, (names, columns, _) = chosen.study, chosen.study.features
    evidence = study.features.sums(chosen.evidence.for_truth)
    between = next((float(value) for value, at in zip(evidence, columns, strict=True) if at is None), None)
    order = np.argsort(-np.abs(evidence), kind="stable")
    order = np.array([feature for feature in order.tolist() if columns[feature] is not None], dtype=np.intp)
    total = float(np.abs(evidence).sum()) or 1.0
    most, least = max(float(evidence[order].max(initial=0.0)), 0.0), min(float(evidence[order].min(initial=0.0)), 0.0)
    span = (most - least) or 1.0
    n_missing = study.X.isna().to_numpy().sum(axis=0)
    largest_classes = np.argsort(-np.bincount(study.true), kind="stable")[:MOST_CLASSES]

    def card(feature: int, drawn: bool) -> Card:
        at, value = columns[feature], float(evidence[feature])
        assert at is not None
        histogram = histogram_of(column(study.X, at), study, sorted(largest_classes.tolist())) if drawn else None
        bar = 100 * (min(value, 0.0) - least) / span, 100 * abs(value) / span
        return Card(names[feature], value, abs(value) / total, bar, int(n_missing[at]), histogram)

    first, rest, more = order[:MOST_CARDS], order[MOST_CARDS:][:MOST_LISTED], order[MOST_CARDS + MOST_LISTED :]
    shown, folded = [card(i, True) for i in first], [card(i, False) for i in rest]
    places = [columns[i] for i in first.tolist()]
    shown, effects, view = _with_effects(chosen, shown, places, sorted(largest_classes.tolist()))
    sums = float(evidence[more].sum()), between, -100 * least / span
    return Cards(shown, folded, len(more), *sums, effects, view)


def _with_effects(
    chosen: Chosen, shown: list[Card], columns: list[int | None], classes: list[int]
) -> tuple[list[Card], list[EffectDisplay], tuple[float, float] | None]:
    """The cards, the first ones with effect curves; the effects, and the log odds at the bottom and top of all."""
    study = chosen.study
    known = [(at, card.histogram) for at, card in zip(columns, shown, strict=True)]
    ends = {at: of.ends for at, of in known if at is not None and of is not None and (of.are_levels or of.ends)}
    effects = effects_of(chosen, dict(list(ends.items())[:MOST_EFFECTS]))
    if not effects:
        return shown, [], None
    if len(study.classes) == 2 and study.positive_class is not None:
        classes = [study.classes.index(study.positive_class)]
    view = common_view(list(effects.values()))
    curves = {label: curve for curve, label in enumerate(next(iter(effects.values())).classes)}
    drawn = [(code, curves[study.classes[code]]) for code in classes if study.classes[code] in curves]
    found = []
    for card, (at, histogram) in zip(shown, known, strict=True):
        if at is not None and at in effects and histogram is not None:
            card = card._replace(effect=drawing(effects[at], histogram, view, drawn))
        found.append(card)
    return found, list(effects.values()), view


def histogram_of(values: Values, study: Study, classes: list[int]) -> Histogram | None:
    """The histogram of a column in these classes; None if all values are missing."""
    known = ~values.missing
    if not known.any():
        return None
    bins = _number_bins if values.is_number else _level_bins
    place, n_bins, labels, ends = bins(values.of_samples[known])
    counts = np.zeros((len(study.classes), n_bins))
    np.add.at(counts, (study.true[known], place), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    highest = float(shares[classes].max()) or 1.0
    gap = 0.0 if values.is_number else 0.12
    shapes = [(code, study.classes[code], _bars(shares[code] / highest, gap)) for code in classes]
    return Histogram(shapes, labels, not values.is_number, ends)


Bins = tuple[NDArray[np.intp], int, list[str], tuple[float, float] | None]  # of each value; their number, labels, ends


def _number_bins(known: NDArray[Any]) -> Bins:
    """Bins of equal width between extreme quantiles; values beyond them go into the outermost bins."""
    known = known.astype(float)
    low, high = np.quantile(known, (0.005, 0.995), method="closest_observation")
    beyond_low, beyond_high = known.min() < low, known.max() > high
    if not high > low:
        low, high = known.min(), known.max()
    n_bins = min(MOST_BINS, len(np.unique(known)))
    if not high > low or not np.isfinite(high - low):
        return np.zeros(len(known), np.intp), 1, [shortened(float(low))], None
    place = np.clip(((known - low) / (high - low) * n_bins).astype(np.intp), 0, n_bins - 1)
    signs = "≤ " if beyond_low else "", "≥ " if beyond_high else ""
    labels = [sign + shortened(float(end)) for sign, end in zip(signs, (low, high), strict=True)]
    return place, n_bins, labels, (float(low), float(high))


def _level_bins(known: NDArray[Any]) -> Bins:
    """The most frequent levels, and one bin for the others."""
    levels, place, n = np.unique(known.astype(str), return_inverse=True, return_counts=True)
    if len(levels) <= MOST_LEVELS:
        return place, len(levels), levels.tolist(), None
    kept = np.sort(np.argsort(-n, kind="stable")[: MOST_LEVELS - 1])
    number = np.full(len(levels), len(kept))
    number[kept] = np.arange(len(kept))
    return number[place], MOST_LEVELS, [*levels[kept].tolist(), f"{len(levels) - len(kept)} others"], None


def _bars(heights: Floats, gap: float) -> Markup:
    """Bars as one shape that stretches to any width."""
    path = "".join(
        f"M{i + gap:g} 10V{10 - 10 * height:.2f}H{i + 1 - gap:g}V10" for i, height in enumerate(heights) if height > 0
    )
    return Markup(f'<svg viewBox="0 0 {len(heights)} 10" preserveAspectRatio="none"><path d="{path}"/></svg>')


# ---- typical values


class TypicalValues(NamedTuple):
    """Typical values of each class: a range of numbers, or the share of each level."""

    ranges: list[tuple[float, float] | None] | None = None
    shares: list[dict[str, float]] | None = None

    def text(self, code: int, value: Any) -> str:
        """The typical values of one class, shown beside a measured value."""
        if self.ranges is not None:
            ends = self.ranges[code]
            return "no values" if ends is None else f"{shortened(ends[0])} to {shortened(ends[1])}"
        assert self.shares is not None
        return "—" if value is None else f"{100 * self.shares[code].get(str(value), 0.0):.0f}% of samples"


def typical_values(values: Values, study: Study) -> TypicalValues:
    """The typical values of a column."""
    known = ~values.missing
    by_class = [values.of_samples[known & (study.true == code)] for code in range(len(study.classes))]
    if values.is_number:
        ends = [np.quantile(own, TYPICAL, method="closest_observation") if len(own) else None for own in by_class]
        return TypicalValues(ranges=[None if two is None else (float(two[0]), float(two[1])) for two in ends])
    shares = []
    for own in by_class:
        levels, n = np.unique(own.astype(str), return_counts=True)
        shares.append(dict(zip(levels.tolist(), (n / max(1, n.sum())).tolist(), strict=True)))
    return TypicalValues(shares=shares)
