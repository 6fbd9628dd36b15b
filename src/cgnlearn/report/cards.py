"""What a page shows of each feature, or of each peak: how its values lie in the classes, and what it adds."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.study import Study

MOST_CARDS = 20
MOST_LISTED = 300  # names below the cards
MOST_BINS, MOST_LEVELS, MOST_CLASSES = 24, 6, 8
USUAL = (0.05, 0.95)  # quantiles between which values of a class are usual


class Values(NamedTuple):
    """A column: numbers, or levels as text; what is missing is NaN or None."""

    of_rows: NDArray[Any]
    is_number: bool

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which cells are empty."""
        if self.is_number:
            return np.isnan(self.of_rows)
        return np.array([value is None for value in self.of_rows], dtype=bool)


def column(X: Any, number: int) -> Values:
    """A column of a data frame."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    series = X.iloc[:, number]
    if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
        return Values(series.to_numpy(dtype=float, na_value=np.nan), True)
    levels = [None if gone else str(value) for value, gone in zip(series, series.isna(), strict=True)]
    return Values(np.array(levels, dtype=object), False)


def told(value: Any) -> str:
    """A cell as the page shows it."""
    if value is None or value != value:
        return "missing"
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.4g}"
    return (f"{float(short):.0f}" if "e+" in short and abs(value) < 1e9 else short).replace("-", "−")


class Histogram(NamedTuple):
    """Shares of each class's samples in the same bins."""

    shapes: list[tuple[int, str, Markup]]  # the class's number, its name and its bars
    labels: list[str]  # of the levels; or of the lowest and the highest number
    are_levels: bool


class Card(NamedTuple):
    """One feature or peak."""

    name: str
    evidence: float  # mean log-odds that it adds to the truth
    length: float  # of its bar, from 0 to 1
    n_missing: int
    histogram: Histogram | None


class Cards(NamedTuple):
    """All of them, the strongest first."""

    shown: list[Card]
    folded: list[Card]
    n_more: int
    of_more: float  # what those that are not even listed add together
    between: float | None  # what lies between the peaks of spectra adds


def cards(chosen: Chosen) -> Cards | None:
    """Of every feature of a study; None where the model cannot be explained."""
    if chosen.evidence is None:
        return None
    study, features = chosen.study, chosen.study.features
    evidence = features.gathered(chosen.evidence.for_truth)
    of_between = [float(value) for value, at in zip(evidence, features.shown, strict=True) if at is None]
    order = np.argsort(-np.abs(evidence), kind="stable")
    order = np.array([feature for feature in order.tolist() if features.shown[feature] is not None], dtype=np.intp)
    largest = float(np.abs(evidence[order]).max(initial=0.0)) or 1.0
    n_missing = study.X.isna().to_numpy().sum(axis=0)
    rank = list(range(len(study.classes)))
    if len(rank) > MOST_CLASSES:
        rank = sorted(np.argsort(-np.bincount(study.true), kind="stable")[:MOST_CLASSES].tolist())

    def card(feature: int, drawn: bool) -> Card:
        at = features.shown[feature]
        assert at is not None
        histogram = histogram_of(column(study.X, at), study, rank) if drawn else None
        value = float(evidence[feature])
        return Card(features.names[feature], value, abs(value) / largest, int(n_missing[at]), histogram)

    first, rest, more = order[:MOST_CARDS], order[MOST_CARDS:][:MOST_LISTED], order[MOST_CARDS + MOST_LISTED :]
    shown, folded = [card(i, True) for i in first], [card(i, False) for i in rest]
    return Cards(shown, folded, len(more), float(evidence[more].sum()), of_between[0] if of_between else None)


def histogram_of(values: Values, study: Study, classes: list[int]) -> Histogram | None:
    """Of one column in these classes; None where no cell has a value."""
    there = ~values.missing
    if not there.any():
        return None
    known, true = values.of_rows[there], study.true[there]
    if values.is_number:
        place, n_bins, labels = _number_bins(known.astype(float))
    else:
        place, n_bins, labels = _level_bins(known)
    counts = np.zeros((len(study.classes), n_bins))
    np.add.at(counts, (true, place), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    highest = float(shares[classes].max()) or 1.0
    shapes = [(code, study.classes[code], _bars(shares[code] / highest, not values.is_number)) for code in classes]
    return Histogram(shapes, labels, not values.is_number)


def _number_bins(known: Floats) -> tuple[NDArray[np.intp], int, list[str]]:
    """Bins of equal width; what lies far out goes into the outermost ones."""
    low, high = np.quantile(known, (0.005, 0.995), method="closest_observation")  # as it was written down
    beyond_low, beyond_high = known.min() < low, known.max() > high
    if not high > low:
        low, high = known.min(), known.max()
    distinct = len(np.unique(known))
    n_bins = int(min(MOST_BINS, max(distinct, 1)))
    if not high > low or not np.isfinite(high - low):
        return np.zeros(len(known), np.intp), 1, [told(float(low))]
    place = np.clip(((known - low) / (high - low) * n_bins).astype(np.intp), 0, n_bins - 1)
    labels = [("≤ " if beyond_low else "") + told(float(low)), ("≥ " if beyond_high else "") + told(float(high))]
    return place, n_bins, labels


def _level_bins(known: NDArray[Any]) -> tuple[NDArray[np.intp], int, list[str]]:
    """The most frequent levels, and one bin for the others."""
    levels, place, n = np.unique(known.astype(str), return_inverse=True, return_counts=True)
    if len(levels) <= MOST_LEVELS:
        return place, len(levels), levels.tolist()
    kept = np.sort(np.argsort(-n, kind="stable")[: MOST_LEVELS - 1])
    number = np.full(len(levels), len(kept))
    number[kept] = np.arange(len(kept))
    return number[place], MOST_LEVELS, [*levels[kept].tolist(), f"{len(levels) - len(kept)} others"]


def _bars(heights: Floats, apart: bool) -> Markup:
    """Bars as one shape, to be stretched to any width."""
    gap = 0.12 if apart else 0.0
    path = "".join(
        f"M{i + gap:g} 10V{10 - 10 * height:.2f}H{i + 1 - gap:g}V10" for i, height in enumerate(heights) if height > 0
    )
    return Markup(f'<svg viewBox="0 0 {len(heights)} 10" preserveAspectRatio="none"><path d="{path}"/></svg>')


# ---- what is usual


class Usual(NamedTuple):
    """What is usual in each class: a range of numbers, or the share of each level."""

    ranges: list[tuple[float, float] | None] | None
    shares: list[dict[str, float]] | None

    def words(self, code: int, value: Any) -> str:
        """For one class, beside a measured value."""
        if self.ranges is not None:
            found = self.ranges[code]
            return "none measured" if found is None else f"{told(found[0])} to {told(found[1])}"
        assert self.shares is not None
        if value is None:
            return "—"
        return f"{100 * self.shares[code].get(str(value), 0.0):.0f} % of samples"


def usual(values: Values, study: Study) -> Usual:
    """Of one column."""
    there = ~values.missing
    by_class = [values.of_rows[there & (study.true == code)] for code in range(len(study.classes))]
    if not values.is_number:
        shares = []
        for known in by_class:
            levels, n = np.unique(known.astype(str), return_counts=True)
            shares.append(dict(zip(levels.tolist(), (n / max(1, n.sum())).tolist(), strict=True)))
        return Usual(None, shares)
    ranges = [
        tuple(np.quantile(known, USUAL, method="closest_observation").tolist()) if len(known) else None
        for known in by_class
    ]
    return Usual(ranges, None)
