"""Details of single samples: measured values, typical values of the classes, and contributions."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from cgnlearn.evaluation.chosen import Chosen, HeldOutSample
from cgnlearn.reporting.cards import TypicalValues, Values, column, shortened, typical_values


class Strip(NamedTuple):
    """Positions of a value and of two typical ranges on a line, in per cent of its length."""

    value: float
    of: tuple[float, float]
    against: tuple[float, float]


class Item(NamedTuple):
    """One feature, or peak, of one sample."""

    feature: int
    name: str
    log_odds: float
    value: str = ""
    number: float | None = None  # the value, if numeric
    typical_for: str = ""  # in the predicted class
    typical_against: str = ""  # in the second most probable class
    strip: Strip | None = None


class View(NamedTuple):
    """The details of a sample."""

    sample: HeldOutSample
    items: list[Item]
    rest: float  # log odds of the other features and of the class prior


class Viewer:
    """Details of the samples of a study; the typical values of a feature are computed once."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen, self.study = chosen, chosen.study
        self.column = cache(self._column)

    def _column(self, feature: int) -> tuple[Values, TypicalValues] | None:
        shown = self.study.features.shown[feature]
        if shown is None:
            return None
        values = column(self.study.X, shown)
        return values, typical_values(values, self.study)

    def view(self, sample: HeldOutSample) -> View:
        """The details of one sample."""
        of, against = (self.study.classes.index(label) for label in (sample.predicted, sample.against))
        items = [self._item(sample.index, feature, odds, of, against) for feature, odds in sample.reasons]
        return View(sample, items, sample.log_odds - sum(item.log_odds for item in items))

    def _item(self, index: int, feature: int, odds: float, of: int, against: int) -> Item:
        item, known = Item(feature, self.study.features.names[feature], odds), self.column(feature)
        if known is None:
            return item
        values, typical = known
        value = values.of_samples[index]
        number = float(value) if values.is_number and not values.missing[index] else None
        ranges = None if number is None else typical.ranges
        return item._replace(
            value=shortened(float(value) if values.is_number else value),
            number=number,
            typical_for=typical.text(of, value),
            typical_against=typical.text(against, value),
            strip=None if number is None or ranges is None else strip_of(number, ranges[of], ranges[against]),
        )

    def as_dict(self) -> dict[str, Any]:
        """The listed samples as plain values, from which the page builds the selected view."""
        study = self.study
        views = [self.view(sample) for sample in self.chosen.samples]
        features: dict[int, Any] = {}
        for feature in sorted({item.feature for view in views for item in view.items}):
            known, ranges, shares = self.column(feature), None, None
            if known is not None and known[1].ranges is not None:
                ranges = [None if of is None else [four_digits(end) for end in of] for of in known[1].ranges]
            if known is not None and known[1].shares is not None:
                shares = [{level: round(100 * share) for level, share in of.items()} for of in known[1].shares]
            features[feature] = {"name": study.features.names[feature], "ranges": ranges, "shares": shares}
        samples = []
        for sample, view_items, _ in views:
            entry: dict[str, Any] = {"name": sample.name, "line": sample.line, "probability": sample.probability}
            entry |= {name: study.classes.index(getattr(sample, name)) for name in ("true", "predicted", "against")}
            items = [
                [item.feature, item.value if item.number is None else four_digits(item.number), round(item.log_odds, 3)]
                for item in view_items
            ]
            if sample.interval is not None:
                entry["interval"] = [four_digits(end) for end in sample.interval]
            entry["probability"] = four_digits(sample.probability) if sample.probability < 0.99 else sample.probability
            samples.append(entry | {"logOdds": round(sample.log_odds, 3), "items": items})
        return {"classes": study.classes, "features": features, "samples": samples}


def four_digits(value: float) -> float:
    """The value as precise as the page shows it."""
    return float(f"{value:.4g}")


def strip_of(value: float, of: tuple[float, float] | None, against: tuple[float, float] | None) -> Strip | None:
    """Both ranges and the value on one line; None if a class has no values."""
    if of is None or against is None:
        return None
    low, high = min(value, of[0], against[0]), max(value, of[1], against[1])
    if not high > low:
        return Strip(50.0, (48.0, 52.0), (48.0, 52.0))

    def place(at: float) -> float:
        return round(4 + 92 * (at - low) / (high - low), 1)

    return Strip(place(value), (place(of[0]), place(of[1])), (place(against[0]), place(against[1])))
