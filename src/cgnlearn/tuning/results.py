"""What a comparison came to: temperatures, scores and weights of all candidates, and the table of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.densities import Floats, normalised, of_truth, right
from cgnlearn.model.table import Table
from cgnlearn.tuning.candidates import Omitted
from cgnlearn.tuning.comparison import Judged
from cgnlearn.tuning.source import Description
from cgnlearn.tuning.weights import (
    HALF_DOUBT,
    not_worse_than,
    pseudo_bma,
    second_best,
    stacking,
    tempered,
    worth_keeping,
)

WORDS = ("kind", "transform", "terms")
NUMBERS = ("sharing", "prior_scale", "dirichlet", "backoff", "k", "penalty")


class Member(NamedTuple):
    """A candidate that has weight in the mixture."""

    description: Description
    temperature: float
    weight: float
    cll: float  # of rows left out

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value:.3g}" if name in NUMBERS else str(value)
            for name, value in self.description.items()
            if (name, value) != ("transform", "none")
        )


@dataclass(frozen=True, eq=False)
class Weighed:
    """Of all candidates, in the order in which they were judged; arrays (candidates,).

    Parameters
    ----------
    described : list of Description
    by : list of str
        How rows were held out.
    temperature, cll, accuracy, weight : ndarray
    """

    described: list[Description]
    by: list[str]
    temperature: Floats
    cll: Floats
    accuracy: Floats
    weight: Floats

    @classmethod
    def of(cls, judged: Sequence[Judged], table: Table, combine: str, random_state: np.random.RandomState) -> Weighed:
        """Temperatures first, then weights; ``combine="best"``: all of it to the best.

        Weights are judged as if part of a row more were of the class that comes second, as temperatures are.
        """
        assert table.labels is not None
        labels = table.labels
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        temperatures, truths, seconds, accuracies = [], [], [], []
        for each in judged:
            for likelihood in each.log_likelihood:
                temperature = tempered(likelihood, each.class_log_prior, labels, weights)
                log_proba = normalised(temperature * likelihood + each.class_log_prior)
                temperatures.append(temperature)
                truths.append(of_truth(log_proba, labels))
                seconds.append(weights @ of_truth(log_proba, second_best(log_proba, labels)) / weights.sum())
                accuracies.append(float(np.average(right(log_proba, labels), weights=weights)))
        described = [description for each in judged for description in each.described]
        truth = np.stack(truths, axis=1)
        cll = np.average(truth, axis=0, weights=weights)
        if combine == "best":
            weight = (np.arange(len(cll)) == cll.argmax()).astype(float)
        else:
            truth, weights = np.vstack([truth, seconds]), np.append(weights, HALF_DOUBT)
            weight = (pseudo_bma(truth, weights, random_state) + stacking(truth, weights)) / 2
            weight = np.where(worth_keeping(weight), weight, 0.0)
            weight /= weight.sum()
            if (
                floor := next((i for i, each in enumerate(described) if each["kind"] == "frequencies"), None)
            ) is not None:
                weight = not_worse_than(floor, weight, truth, weights)
        by = [how for each in judged for how in each.by]
        return cls(described, by, np.array(temperatures), cll, np.array(accuracies), weight)

    @property
    def candidates(self) -> list[Member]:
        """All of them, whatever their weight."""
        columns = (self.temperature.tolist(), self.weight.tolist(), self.cll.tolist())
        return [Member(*row) for row in zip(self.described, *columns, strict=True)]

    def results(self, omitted: Sequence[Omitted]) -> dict[str, NDArray[Any]]:
        """A table with a row for each candidate, and for each that was not tried."""
        rows = [dict(description) for description in self.described]
        rows += [{"kind": each.kind, "transform": each.view} for each in omitted]
        results: dict[str, NDArray[Any]] = {}
        for name in WORDS:
            results[f"param_{name}"] = np.array([row.get(name, "") for row in rows])
        for name in NUMBERS:
            results[f"param_{name}"] = np.array([row.get(name, np.nan) for row in rows], float)
        none = [np.nan] * len(omitted)
        results["by"] = np.array(self.by + [""] * len(omitted))
        results["temperature"] = np.append(self.temperature, none)
        results["mean_test_cll"] = np.append(self.cll, none)
        results["mean_test_accuracy"] = np.append(self.accuracy, none)
        rank = 1 + np.searchsorted(np.sort(-self.cll), -self.cll)
        results["rank_test_cll"] = np.append(rank, [len(rank) + 1] * len(omitted)).astype(int)
        results["weight"] = np.append(self.weight, [0.0] * len(omitted))
        results["reason"] = np.array([""] * len(self.described) + [each.reason for each in omitted])
        return results
