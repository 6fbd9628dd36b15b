"""Single samples: what was measured, what is usual in the classes, and what it adds."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from cgnlearn.evaluation.chosen import Chosen, SeenRow
from cgnlearn.report.cards import Usual, Values, column, told, usual


class Item(NamedTuple):
    """One feature, or peak, of one sample."""

    feature: int
    name: str
    value: str
    number: float | None  # the value, if it is one
    usual_for: str  # in the predicted class
    usual_against: str  # in the next
    strip: Strip | None
    log_odds: float


class Strip(NamedTuple):
    """Where a value lies beside what is usual in two classes, in per cent of a line's length."""

    value: float
    of: tuple[float, float]
    against: tuple[float, float]


class View(NamedTuple):
    """A sample up close."""

    row: SeenRow
    items: list[Item]
    rest: float  # what all else adds, the classes' own frequencies among it


class Viewer:
    """Looks at samples of one study; what is usual is found once for each feature."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen, self.study = chosen, chosen.study
        self.values = cache(self._values)
        self.usual = cache(self._usual)

    def _values(self, feature: int) -> Values | None:
        at = self.study.features.shown[feature]
        return None if at is None else column(self.study.X, at)

    def _usual(self, feature: int) -> Usual | None:
        values = self.values(feature)
        return None if values is None else usual(values, self.study)

    def view(self, row: SeenRow) -> View:
        """One sample."""
        of, against = (self.study.classes.index(label) for label in (row.predicted, row.against))
        items = [self._item(row, feature, odds, of, against) for feature, odds in row.reasons]
        return View(row, items, row.log_odds - sum(item.log_odds for item in items))

    def _item(self, row: SeenRow, feature: int, odds: float, of: int, against: int) -> Item:
        name = self.study.features.names[feature]
        values, found = self.values(feature), self.usual(feature)
        if values is None or found is None:
            return Item(feature, name, "", None, "", "", None, odds)
        value = values.of_rows[row.index]
        is_there = not values.missing[row.index]
        number = float(value) if values.is_number and is_there else None
        strip = None
        if number is not None and found.ranges is not None:
            strip = strip_of(number, found.ranges[of], found.ranges[against])
        usual_for, usual_against = (found.words(code, value) for code in (of, against))
        shown = told(float(value) if values.is_number else value)
        return Item(feature, name, shown, number, usual_for, usual_against, strip, odds)

    def plain(self) -> dict[str, Any]:
        """All listed samples in plain values, for the page to choose from."""
        study = self.study
        number = {label: code for code, label in enumerate(study.classes)}
        views = [self.view(row) for row in self.chosen.rows]
        features: dict[int, Any] = {}
        for feature in sorted({item.feature for view in views for item in view.items}):
            found, ranges, shares = self.usual(feature), None, None
            if found is not None and found.ranges is not None:
                ranges = [None if of is None else [round_off(end) for end in of] for of in found.ranges]
            if found is not None and found.shares is not None:
                shares = [{level: round(100 * part) for level, part in of.items()} for of in found.shares]
            features[feature] = {"name": study.features.names[feature], "ranges": ranges, "shares": shares}
        rows = []
        for view in views:
            row = view.row
            codes = {name: number[getattr(row, name)] for name in ("true", "predicted", "against")}
            said = {"probability": row.probability, "logOdds": round(row.log_odds, 3)}
            items = [
                [one.feature, one.value if one.number is None else round_off(one.number), round(one.log_odds, 3)]
                for one in view.items
            ]
            rows.append({"name": row.name, "line": row.line, **codes, **said, "items": items})
        return {"classes": study.classes, "features": features, "samples": rows}


def round_off(value: float) -> float:
    """To four digits: the page shows no more."""
    return float(f"{value:.4g}")


def strip_of(value: float, of: tuple[float, float] | None, against: tuple[float, float] | None) -> Strip | None:
    """Both ranges and the value on one line; None where a class has no values."""
    if of is None or against is None:
        return None
    low, high = min(value, of[0], against[0]), max(value, of[1], against[1])
    if not high > low:
        return Strip(50.0, (48.0, 52.0), (48.0, 52.0))

    def place(at: float) -> float:
        return round(4 + 92 * (at - low) / (high - low), 1)

    return Strip(place(value), (place(of[0]), place(of[1])), (place(against[0]), place(against[1])))
