"""What a comparison came to: the members of a mixture, and the table of all settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.candidates.candidate import HeldOut, Settings, Skipped
from cgnlearn.candidates.comparison import Scores
from cgnlearn.data.arrays import Floats


class Member(NamedTuple):
    """A setting that has weight in the mixture."""

    settings: Settings
    likelihood_power: float
    weight: float
    log_loss: float  # of held-out samples

    def __str__(self) -> str:
        return ", ".join(
            str(value) if isinstance(value, str) else f"{name} {value:.3g}"
            for name, value in self.settings.items()
            if (name, value) != ("transform", "none")
        )


def members(held_out: Sequence[HeldOut], scores: Scores, weight: Floats) -> list[Member]:
    """All settings, whatever their weight."""
    settings = [settings for each in held_out for settings in each.candidate.settings]
    columns = (scores.power.tolist(), weight.tolist(), scores.log_loss.tolist())
    return [Member(*values) for values in zip(settings, *columns, strict=True)]


def results(
    held_out: Sequence[HeldOut], scores: Scores, weight: Floats, skipped: Sequence[Skipped] = ()
) -> dict[str, NDArray[Any]]:
    """A table with a row for each of the settings, and for each candidate that was not tried."""
    rows: list[Settings] = [settings for each in held_out for settings in each.candidate.settings]
    n_tried = len(rows)
    rows += [{"candidate": each.name, "transform": each.transform} for each in skipped]
    found: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        given = next(row[name] for row in rows if name in row)
        absent = "" if isinstance(given, str) else np.nan
        found[f"param_{name}"] = np.array([row.get(name, absent) for row in rows])
    found["by"] = np.array([by for each in held_out for by in each.by] + [""] * len(skipped))
    for name, values in scores.as_columns().items():
        absent = n_tried + 1 if name.startswith("rank") else np.nan
        found[name] = np.append(values, [absent] * len(skipped)).astype(values.dtype)
    found["weight"] = np.append(weight, [0.0] * len(skipped))
    found["reason"] = np.array([""] * n_tried + [each.reason for each in skipped])
    return found
