"""Reference ranges: what is known of a feature in a class, as an interval that holds 95 % of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from cgnlearn.data.levels import identity, plain
from cgnlearn.data.schema import Schema

WIDTH = 2 * 1.959963984540054  # standard deviations that hold 95 % of a normal


class Range(NamedTuple):
    """The range that holds 95 % of a feature in a class, and how many samples this knowledge is worth."""

    label: Any
    feature: Any
    low: float
    high: float
    worth: float

    @classmethod
    def checked(cls, label: Any, feature: Any, low: Any, high: Any, worth: Any) -> Self:
        """Return the range; raise ValueError unless low < high and the worth is positive."""
        at = f"the range of {feature!r} in class {label!r}"
        try:
            low, high, worth = float(low), float(high), float(worth)
        except (TypeError, ValueError):
            raise ValueError(f"{at} must be numbers, not {(low, high, worth)!r}") from None
        if not np.isfinite([low, high]).all():
            raise ValueError(f"{at} must be finite, not from {low:g} to {high:g}")
        if not low < high:
            raise ValueError(f"{at} goes from {low:g} to {high:g}: give the lower limit first")
        if not 0 < worth < np.inf:
            raise ValueError(
                f"{at} has a worth of {worth:g}: give the number of samples that it counts as, or omit the range"
            )
        return cls(plain(label), plain(feature), low, high, worth)

    @property
    def mean(self) -> float:
        """The middle of the range."""
        return (self.low + self.high) / 2

    @property
    def deviation(self) -> float:
        """The standard deviation of the normal of which the range holds 95 %."""
        return (self.high - self.low) / WIDTH

    def place(self, schema: Schema) -> tuple[int, int]:
        """Class code and column; raise ValueError if there are none such."""
        classes = list(schema.classes)
        named = [i for i, label in enumerate(classes) if identity(label) == identity(self.label)]
        if not named:
            listed = ", ".join(str(label) for label in classes[:6])
            raise ValueError(f"the prior has a range for class {self.label!r}, but the classes are {listed}")
        names: Sequence[Any] = schema.names or range(schema.n_columns)
        columns = [i for i, name in enumerate(names) if str(name) == str(self.feature)]
        if not columns:
            what = "which is no column of X" if schema.names else f"but X has columns 0 to {schema.n_columns - 1}"
            raise ValueError(f"the prior has a range for {self.feature!r}, {what}")
        if schema.levels[columns[0]] is not None:
            raise ValueError(f"the prior has a range for {self.feature!r}, which is discrete: ranges are for numbers")
        return named[0], columns[0]


def ranges_of(ranges: Mapping[Any, Mapping[Any, Sequence[float]]], worth: float) -> tuple[Range, ...]:
    """Ranges from (low, high) or (low, high, worth) by class and feature."""
    found = []
    if not isinstance(ranges, Mapping) or not all(isinstance(inner, Mapping) for inner in ranges.values()):
        raise ValueError('ranges must be by class and feature, such as {"healthy": {"K": (3.5, 5.1)}}')
    for label, of_class in ranges.items():
        for feature, limits in of_class.items():
            if np.ndim(limits) != 1 or len(limits) not in (2, 3):
                raise ValueError(f"the range of {feature!r} in class {label!r} must be (low, high), not {limits!r}")
            found.append(Range.checked(label, feature, *limits, *(() if len(limits) == 3 else (worth,))))
    if not found:
        raise ValueError("there are no ranges: give at least one")
    return tuple(found)
