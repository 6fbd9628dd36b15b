"""Summaries of models over folds: the mean and the spread of every metric, for tables and streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cgnlearn.evaluation.metrics import METRICS, Tally
from cgnlearn.evaluation.run import Row, csv_text

Place = tuple[int, int]  # repetition and fold


class Spread(NamedTuple):
    """Mean and standard deviation of a metric over folds (over repetitions for the calibration error)."""

    mean: float
    sd: float | None  # None for a single value or infinite ones

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        sd = float(np.std(values, ddof=1)) if len(values) > 1 and np.isfinite(values).all() else None
        return cls(float(np.mean(values)), sd)


@dataclass(frozen=True)
class Summary:
    """The metrics of one model."""

    model: str
    n_folds: int  # finished ones
    n_without: int  # folds without predictions, which the metrics exclude: maximum likelihood does not exist
    metrics: dict[str, Spread]  # by the names in `METRICS`; empty if no fold has predictions
    reason: str | None = None  # of the first fold without predictions

    @classmethod
    def of(cls, model: str, n_folds: int, tallies: Mapping[Place, Tally], reason: str | None = None) -> Summary:
        """The summary of the folds with predictions."""
        repetitions: dict[int, Tally] = {}
        for (repeat, _), tally in tallies.items():
            repetitions[repeat] = repetitions[repeat] + tally if repeat in repetitions else tally
        metrics: dict[str, Spread] = {}
        for name, metric in METRICS.items() if tallies else ():
            # Folds are too small for a calibration error; repetitions are not.
            parts = repetitions.values() if metric.in_bins else tallies.values()
            metrics[name] = Spread.of([part.value(metric) for part in parts])
        return cls(model, n_folds, n_folds - len(tallies), metrics, reason)

    def as_dict(self) -> dict[str, Any]:
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
