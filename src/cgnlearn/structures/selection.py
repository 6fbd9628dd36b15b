"""Choices by what models say of rows that they have not seen: of a candidate, such as a k, and of the temperature."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.evaluation.metrics import normalised, of_truth, right
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import SampleNotAcceptable
from cgnlearn.model.families import Columns
from cgnlearn.model.model import Model
from cgnlearn.model.table import Table

TEMPERATURES = np.geomspace(1e-4, 10, 101)  # twenty to the decade, 1 among them
AS_GOOD = 1e-3  # nats of mean CLL that are no reason to leave temperature 1


class Scored(NamedTuple):
    """What the candidates, trained on all other rows, say of the rows of one fold."""

    log_likelihood: Floats  # (candidates, rows, classes)
    class_log_prior: Floats  # (classes,)
    exists: NDArray[np.bool_]  # (candidates,)

    @classmethod
    def by(cls, model: Model, table: Table) -> Scored:
        """By one candidate."""
        return cls(model.log_likelihood(table)[None], model.class_log_prior, np.ones(1, bool))


class Choice(NamedTuple):
    """What was chosen, and from what."""

    candidate: int
    temperature: float
    results: dict[str, NDArray[Any]]


def choose(
    scored: Iterable[Scored],
    cuts: Sequence[Columns],
    table: Table,
    temperature: float | Literal["cv"],
    *,
    scoring: str = "cll",
    ks: Sequence[int] | None = None,
) -> Choice:
    """The best candidate and the best temperature, if ``"cv"``, chosen together.

    Equal candidates go by the other score, then to the first; ``ks`` name them in the results.
    """
    temperatures = TEMPERATURES if temperature == "cv" else np.array([float(temperature)])
    parts, exists, weights = [], [], []
    for found, cut in zip(scored, cuts, strict=True):
        of_fold = table.rows(cut)
        weights.append(len(cut) if of_fold.weights is None else of_fold.weights.sum())
        parts.append(_scores(found, of_fold, temperatures))
        exists.append(found.exists)
    able = np.all(exists, axis=0)
    if not able.any():
        raise SampleNotAcceptable(
            "maximum likelihood exists for no k in the inner folds, as some attribute has no variance in some class: "
            'use parameters="bayes", more rows or fewer columns'
        )
    scores = dict(zip(("cll", "accuracy"), np.stack(parts, axis=1), strict=True))  # (folds, candidates, temperatures)
    mean = {name: np.average(values, axis=0, weights=weights) for name, values in scores.items()}
    for values in mean.values():
        values[~able] = -np.inf
    candidate = _best(mean, scoring)
    of_best = mean["cll"][candidate]
    as_good = np.flatnonzero(of_best >= of_best.max() - AS_GOOD)
    place = as_good[np.argmin(np.abs(np.log(temperatures[as_good])))]
    deviation = {name: values.std(axis=0) for name, values in scores.items()}
    return Choice(candidate, float(temperatures[place]), _results(mean, deviation, scoring, temperatures, ks))


def _scores(found: Scored, table: Table, temperatures: Floats) -> Floats:
    """Mean CLL and accuracy of every candidate and temperature on the rows of one fold."""
    assert table.labels is not None
    scores = np.zeros((2, len(found.exists), len(temperatures)))
    for candidate in np.flatnonzero(found.exists).tolist():
        for place, temperature in enumerate(temperatures):
            log_proba = normalised(temperature * found.log_likelihood[candidate] + found.class_log_prior)
            of_rows = np.stack([of_truth(log_proba, table.labels), right(log_proba, table.labels)])
            scores[:, candidate, place] = np.average(of_rows, axis=1, weights=table.weights)
    return scores


def _best(mean: dict[str, Floats], scoring: str) -> int:
    """The best candidate at its best temperature; equal ones go by the other score, then to the first."""
    at = np.argmax(mean["cll"], axis=1)
    rows = np.arange(len(at))
    scores = {name: score[rows, at] for name, score in mean.items()}
    other = "accuracy" if scoring == "cll" else "cll"
    return int(np.lexsort((rows, -scores[other], -scores[scoring]))[0])


def _results(
    mean: dict[str, Floats],
    deviation: dict[str, Floats],
    scoring: str,
    temperatures: Floats,
    ks: Sequence[int] | None,
) -> dict[str, NDArray[Any]]:
    """The whole curve, as scikit-learn's searches give it: a row for every k and temperature."""
    results: dict[str, NDArray[Any]] = {}
    if ks is not None:
        results["param_k"] = np.repeat(ks, len(temperatures))
    results["param_temperature"] = np.tile(temperatures, len(mean["cll"]))
    for name in ("cll", "accuracy"):
        results[f"mean_test_{name}"] = mean[name].ravel()
        results[f"std_test_{name}"] = deviation[name].ravel()
    score = results[f"mean_test_{scoring}"]
    results[f"rank_test_{scoring}"] = 1 + np.searchsorted(np.sort(-score), -score)
    return results
