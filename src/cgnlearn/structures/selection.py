"""Choices by what models say of rows that they have not seen: of a candidate, such as a k, and of the temperature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.densities import Floats, normalised, of_truth, right
from cgnlearn.model.estimation import SampleNotAcceptable
from cgnlearn.model.families import Columns
from cgnlearn.model.model import Model
from cgnlearn.model.table import Table

TEMPERATURES = np.geomspace(1e-4, 1, 81)  # twenty to the decade; where no row is wrong, more would never be enough
TEMPERED = 0.2  # of a row: how little a logarithm of the temperature's square is held against it
DOUBT = 0.5  # rows more, as if they were of the class that came second: where none is wrong, none would be too sure
AT_ONCE = 1 << 20  # numbers that are normalised together
SHARINGS = (0.0, 0.03, 0.1, 0.3, 1.0)


class Scored(NamedTuple):
    """What the candidates, trained on all other rows, say of the rows of one fold."""

    log_likelihood: Floats  # (candidates, rows, classes)
    class_log_prior: Floats  # (classes,), or (rows, classes)
    exists: NDArray[np.bool_]  # (candidates,)

    @classmethod
    def by(cls, models: Sequence[Model], table: Table, *, left_out: bool) -> Scored:
        """By models of other rows, or of the rows themselves, each of which is then left out."""
        if left_out:
            found = [model.leave_one_out(table) for model in models]
            prior = found[0].class_log_prior
            return cls(np.stack([part.log_likelihood for part in found]), prior, np.ones(len(models), bool))
        likelihood = np.stack([model.log_likelihood(table) for model in models])
        return cls(likelihood, models[0].class_log_prior, np.ones(len(models), bool))

    def plus(self, log_likelihood: Floats) -> Scored:
        """With what is said of the same rows, (rows, classes), whatever the candidate."""
        return self._replace(log_likelihood=self.log_likelihood + log_likelihood)


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
    names: Mapping[str, Sequence[Any]],
) -> Choice:
    """The best candidate and the best temperature, if ``"cv"``, chosen together.

    A temperature is judged with a weak log-normal prior around 1, and as if half a row more were wrong: of the class
    that comes second. Of equal ones the smaller is taken, as it costs more to be too sure than too unsure. Equal
    candidates go by the other score, then to the first; ``names`` name them.
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
            "maximum likelihood exists for no k without some of the rows, as some attribute has no variance in some "
            'class: use parameters="bayes", more rows or fewer columns'
        )
    names_of_scores = ("cll", "accuracy", "second")
    scores = dict(zip(names_of_scores, np.stack(parts, axis=1), strict=True))  # (folds, candidates, temperatures)
    mean = {name: np.average(values, axis=0, weights=weights) for name, values in scores.items()}
    second = mean.pop("second")
    for values in mean.values():
        values[~able] = -np.inf
    judged = mean["cll"].copy()
    if temperature == "cv":
        judged += (DOUBT * second - TEMPERED * np.log(temperatures) ** 2) / sum(weights)
    at = np.argmax(judged, axis=1)
    rows = np.arange(len(at))
    of_best = {"cll": judged[rows, at], "accuracy": mean["accuracy"][rows, at]}
    other = "accuracy" if scoring == "cll" else "cll"
    candidate = int(np.lexsort((rows, -of_best[other], -of_best[scoring]))[0])
    results: dict[str, NDArray[Any]] = {
        f"param_{name}": np.repeat(values, len(temperatures)) for name, values in names.items()
    }
    results["param_temperature"] = np.tile(temperatures, len(at))
    for name, values in mean.items():
        results[f"mean_test_{name}"] = values.ravel()
        if len(cuts) > 1:
            results[f"std_test_{name}"] = scores[name].std(axis=0).ravel()
    score = results[f"mean_test_{scoring}"]
    results[f"rank_test_{scoring}"] = 1 + np.searchsorted(np.sort(-score), -score)
    return Choice(candidate, float(temperatures[at[candidate]]), results)


def _scores(found: Scored, table: Table, temperatures: Floats) -> Floats:
    """Mean CLL, accuracy and log probability of the likeliest wrong class, of every candidate and temperature on the
    rows of one fold.
    """
    assert table.labels is not None
    others = np.arange(table.schema.n_classes)[None, :, None] != table.labels[:, None, None]
    scores = np.zeros((3, len(found.exists), len(temperatures)))
    step = max(1, AT_ONCE // found.log_likelihood[0].size)
    for candidate in np.flatnonzero(found.exists).tolist():
        for start in range(0, len(temperatures), step):
            part = slice(start, start + step)
            joint = temperatures[part, None, None] * found.log_likelihood[candidate] + found.class_log_prior
            log_proba = normalised(joint).transpose(1, 2, 0)  # (rows, classes, temperatures)
            second = np.max(log_proba, axis=1, initial=-np.inf, where=others)
            of_rows = np.stack([of_truth(log_proba, table.labels), right(log_proba, table.labels[:, None]), second])
            scores[:, candidate, part] = np.average(of_rows, axis=1, weights=table.weights)
    return scores
