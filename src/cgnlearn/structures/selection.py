"""Selection of k and temperature by cross-validation inside the training data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cgnlearn.model.layout import Layout
from cgnlearn.model.network import Network, SampleNotAcceptable
from cgnlearn.model.prior import Prior
from cgnlearn.model.statistics import Floats, collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Encoder, Table
from cgnlearn.ordered.band import EveryK, ordered_layout
from cgnlearn.structures.learner import Learner, Ordered, structure_of

TEMPERATURES = np.geomspace(1e-4, 10, 101)  # twenty to the decade, 1 among them
AS_GOOD = 1e-3  # nats of mean CLL that are no reason to leave temperature 1
FOLDS = 5  # where the structure does not say


class Selection(NamedTuple):
    """What was chosen, and from what."""

    k: int | None
    temperature: float
    results: dict[str, NDArray[Any]]


class OutOfFold(NamedTuple):
    """Every row's log likelihoods under models that have not seen it."""

    log_likelihood: Floats  # (candidates, rows, classes)
    class_log_prior: Floats  # (rows, classes)
    exists: NDArray[np.bool_]  # (candidates,)
    fold: NDArray[np.intp]  # (rows,)


def wants_selection(learner: Learner | Structure, temperature: float | Literal["cv"]) -> bool:
    """Whether something is left to choose."""
    return temperature == "cv" or (isinstance(learner, Ordered) and learner.k == "cv")


def select(
    learner: Learner | Structure,
    temperature: float | Literal["cv"],
    table: Table,
    encoder: Encoder,
    classes: NDArray[Any],
    *,
    random_state: Any,
    prior: Prior,
    **settings: Any,
) -> Selection:
    """The best k, if ``learner`` leaves it open, and the best temperature, if ``"cv"``, chosen together.

    Folds are ``StratifiedKFold(cv, shuffle=True, random_state=random_state)``; ``settings`` are those of
    `Network.of`.
    """
    n_folds, scoring = FOLDS, "cll"
    every_k = False
    if isinstance(learner, Ordered):
        learner.check()
        every_k = learner.k == "cv"
        n_folds, scoring = learner.cv, learner.scoring
    found = _out_of_fold(
        learner, every_k, table, encoder, classes, _folds(table, n_folds, random_state), {"prior": prior, **settings}
    )
    if not found.exists.any():
        raise SampleNotAcceptable(
            "maximum likelihood exists for no k in the inner folds, as some attribute has no variance in some class: "
            'use parameters="bayes", more rows or fewer columns'
        )
    temperatures = TEMPERATURES if temperature == "cv" else np.array([float(temperature)])
    cll, accuracy = _scores(found, table, temperatures)  # (folds, candidates, temperatures)
    weights = np.bincount(found.fold, table.weights)
    mean = {"cll": np.average(cll, axis=0, weights=weights), "accuracy": np.average(accuracy, axis=0, weights=weights)}
    for scores in mean.values():
        scores[~found.exists] = -np.inf
    candidate = _best(mean, scoring)
    of_best = mean["cll"][candidate]
    as_good = np.flatnonzero(of_best >= of_best.max() - AS_GOOD)
    place = as_good[np.argmin(np.abs(np.log(temperatures[as_good])))]
    deviation = {"cll": cll.std(axis=0), "accuracy": accuracy.std(axis=0)}
    return Selection(
        candidate + 1 if every_k else None,
        float(temperatures[place]),
        _results(mean, deviation, scoring, temperatures, every_k),
    )


def _folds(table: Table, n_folds: int, random_state: Any) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    from sklearn.model_selection import StratifiedKFold  # a quarter of a second that most imports need not wait for

    assert table.labels is not None
    if table.n_rows < 2:
        raise ValueError('choosing by "cv" needs at least 2 rows: give numbers instead')
    rarest = np.bincount(table.labels)
    n_folds = max(2, min(n_folds, int(rarest[rarest > 0].min())))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # a class of one row will do
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        return list(splitter.split(np.zeros(table.n_rows), table.labels))


def _out_of_fold(
    learner: Learner | Structure,
    every_k: bool,
    table: Table,
    encoder: Encoder,
    classes: NDArray[Any],
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]],
    settings: dict[str, Any],
) -> OutOfFold:
    n_candidates = min(learner.k_max, max(1, len(encoder.continuous))) if every_k else 1  # type: ignore[union-attr]
    likelihood = np.empty((n_candidates, table.n_rows, len(classes)))
    class_log_prior = np.empty(likelihood.shape[1:])
    exists = np.ones(n_candidates, bool)
    fold = np.empty(table.n_rows, np.intp)
    for number, (train, test) in enumerate(folds):
        rows, others = table.rows(train), table.rows(test)
        if every_k:
            assert isinstance(learner, Ordered)
            statistics = collect(rows, ordered_layout(encoder, len(classes), n_candidates))
            of_k = EveryK.of(
                statistics, others, encoder, classes, k_max=n_candidates, families=(learner.family,), **settings
            )
            likelihood[:, test] = of_k.log_likelihood[0]
            class_log_prior[test] = of_k.class_log_prior
            exists &= of_k.exists[0]
        else:
            fresh = clone(learner) if isinstance(learner, Learner) else learner  # a search remembers its path
            structure = structure_of(fresh, rows, encoder, len(classes), settings["prior"])
            statistics = collect(rows, Layout.of(structure, encoder, len(classes)))
            network = Network.of(statistics, encoder, classes, **settings)
            likelihood[0, test] = network.log_likelihood(others)
            class_log_prior[test] = network.class_log_prior
        fold[test] = number
    return OutOfFold(likelihood, class_log_prior, exists, fold)


def _scores(found: OutOfFold, table: Table, temperatures: Floats) -> tuple[Floats, Floats]:
    """Mean CLL and accuracy of every fold, candidate and temperature."""
    assert table.labels is not None
    n_folds = int(found.fold.max()) + 1
    shape = (n_folds, len(found.log_likelihood), len(temperatures))
    cll, accuracy = np.zeros(shape), np.zeros(shape)
    weights = np.ones(table.n_rows) if table.weights is None else table.weights
    of_fold = (found.fold == np.arange(n_folds)[:, None]) * weights  # (folds, rows)
    total = of_fold.sum(axis=1, keepdims=True)
    of_fold /= np.where(total > 0, total, 1.0)
    rows = np.arange(table.n_rows)
    usable = np.where(found.exists[:, None, None], found.log_likelihood, 0.0)
    for place, temperature in enumerate(temperatures):
        for candidate, log_proba in enumerate(_log_proba(usable, found.class_log_prior, temperature)):
            true = log_proba[rows, table.labels]
            cll[:, candidate, place] = of_fold @ true
            accuracy[:, candidate, place] = of_fold @ (log_proba.argmax(axis=1) == table.labels)
    return cll, accuracy


def _log_proba(log_likelihood: Floats, class_log_prior: Floats, temperature: float) -> Iterator[Floats]:
    for of_candidate in log_likelihood:
        joint = temperature * of_candidate + class_log_prior
        joint -= joint.max(axis=1, keepdims=True)
        yield joint - np.log(np.exp(joint).sum(axis=1, keepdims=True))


def _best(mean: dict[str, Floats], scoring: str) -> int:
    """The best candidate at its best temperature; equal ones go by the other score, then to the smaller k."""
    at = np.argmax(mean["cll"], axis=1)
    rows = np.arange(len(at))
    scores = {name: score[rows, at] for name, score in mean.items()}
    other = "accuracy" if scoring == "cll" else "cll"
    return int(np.lexsort((rows, -scores[other], -scores[scoring]))[0])


def _results(
    mean: dict[str, Floats], deviation: dict[str, Floats], scoring: str, temperatures: Floats, every_k: bool
) -> dict[str, NDArray[Any]]:
    """The whole curve, as scikit-learn's searches give it: a row for every k and temperature."""
    n_candidates = len(mean["cll"])
    results: dict[str, NDArray[Any]] = {}
    if every_k:
        results["param_k"] = np.repeat(np.arange(1, n_candidates + 1), len(temperatures))
    results["param_temperature"] = np.tile(temperatures, n_candidates)
    for name in ("cll", "accuracy"):
        results[f"mean_test_{name}"] = mean[name].ravel()
        results[f"std_test_{name}"] = deviation[name].ravel()
    score = results[f"mean_test_{scoring}"]
    results[f"rank_test_{scoring}"] = 1 + np.searchsorted(np.sort(-score), -score)
    return results
