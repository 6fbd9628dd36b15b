"""What a model's folds come to: every metric as a mean with its spread, the same of tables and of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgnlearn.evaluation.metrics import METRICS, Tally
from cgnlearn.evaluation.run import Row, csv_text

Place = tuple[int, int]  # repetition and fold


class Spread(NamedTuple):
    """A metric's mean and its standard deviation between folds (of the calibration error: between repetitions)."""

    mean: float
    sd: float | None  # None where there is one value only, or an infinite one

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value for each fold, or repetition."""
        sd = float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None
        return cls(float(np.mean(values)), sd)


@dataclass(frozen=True)
class Summary:
    """What one model's results are worth."""

    model: str
    n_folds: int  # that have been done
    n_without: int  # those of them in which maximum likelihood does not exist; the metrics leave them out
    metrics: dict[str, Spread]  # by the names in `METRICS`; empty if no fold has an answer
    reason: str | None = None  # why the first of the folds without an answer has none

    @classmethod
    def of(cls, model: str, n_folds: int, tallies: Mapping[Place, Tally], reason: str | None = None) -> Summary:
        """By the folds that the model answered."""
        repetitions: dict[int, Tally] = {}
        for (repeat, _), found in tallies.items():
            repetitions[repeat] = repetitions[repeat] + found if repeat in repetitions else found
        metrics: dict[str, Spread] = {}
        for name, metric in METRICS.items() if tallies else ():
            # A fold is too small to tell how well calibrated a model is: all samples of a repetition do.
            parts = repetitions.values() if metric.in_bins else tallies.values()
            metrics[name] = Spread.of([part.value(metric) for part in parts])
        return cls(model, n_folds, n_folds - len(tallies), metrics, reason)

    def as_dict(self) -> dict[str, Any]:
        """In plain values."""
        counts = {"model": self.model, "folds": self.n_folds, "folds_without_answer": self.n_without}
        counts["reason_without_answer"] = self.reason
        return counts | {name: spread._asdict() for name, spread in self.metrics.items()}


def summary_text(summaries: Sequence[Summary]) -> str:
    """The summaries as csv."""
    columns = [f"{name}{part}" for name in METRICS for part in ("", "_sd")]
    rows: list[Row] = [["model", "folds", "folds_without_answer", *columns]]
    for summary in summaries:
        spreads = [summary.metrics.get(name, (None, None)) for name in METRICS]
        values = ["" if value is None else repr(value) for spread in spreads for value in spread]
        rows.append([summary.model, summary.n_folds, summary.n_without, *values])
    return csv_text(*rows)
