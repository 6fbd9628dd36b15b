"""Repeated cross-validation: out-of-fold log probabilities of every row, and what they are worth."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split
from sklearn.utils import _safe_indexing

from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import SampleNotAcceptable

N_BINS = 10  # of the calibration error


class Split(NamedTuple):
    """Which rows one fold trains on and which it predicts."""

    repeat: int
    fold: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Task(NamedTuple):
    """One model on one fold."""

    model: str
    repeat: int
    fold: int


@dataclass(frozen=True, eq=False)
class FoldResult:
    """What one model said of the rows of one fold.

    Parameters
    ----------
    task : Task
    rows : ndarray of int
    log_proba : ndarray (rows, classes) or None
        None where maximum likelihood does not exist.
    """

    task: Task
    rows: NDArray[np.intp]
    log_proba: Floats | None


def cut(
    y: NDArray[Any], *, groups: NDArray[Any] | None = None, n_folds: int = 10, n_repeats: int = 1, seed: int = 0
) -> list[Split]:
    """The folds of a repeated stratified cross-validation.

    Parameters
    ----------
    y : ndarray (rows,)
    groups : ndarray (rows,), optional
        Rows of one group, such as the spectra of one person, never stand on both sides of a split.
    n_folds, n_repeats : int
    seed : int
        Repetition r is cut with ``seed + r``.

    Examples
    --------
    >>> splits = cut(np.repeat(["a", "b"], 10), n_folds=5, n_repeats=2)
    >>> len(splits), splits[0].test.size
    (10, 4)
    """
    unit = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    what = "rows" if groups is None else "groups"
    labels, codes = np.unique(y, return_inverse=True)
    if len(labels) < 2:
        raise ValueError(f"there is one class only, {labels[0]!s}: a classifier needs rows of at least two")
    for code, label in enumerate(labels.tolist()):
        n_units = len(np.unique(unit[codes == code]))
        if n_units < 2:
            raise ValueError(
                f"class {label!r} has 1 of the {what}, but must be both trained on and tested: "
                f"add {what} of it or remove it"
            )
    if n_folds < 2 or n_repeats < 1:
        raise ValueError(f"cross-validation needs at least 2 folds and 1 repetition, not {n_folds}x{n_repeats}")
    n_units = len(np.unique(unit))
    most = int(np.bincount(codes).max()) if groups is None else n_units
    if n_folds > most:
        raise ValueError(f"{n_folds} folds are more than the {most} {what} to spread over them: use fewer folds")
    splits = []
    for repeat in range(n_repeats):
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        folds = kind(n_folds, shuffle=True, random_state=seed + repeat)
        with warnings.catch_warnings():
            # A class with fewer rows than folds is tested in some folds only, which is no reason to refuse it.
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            pairs = list(folds.split(np.zeros(len(y)), codes, None if groups is None else unit))
        for fold, (train, test) in enumerate(pairs):
            if len(np.unique(codes[train])) < len(labels):
                gone = labels[np.setdiff1d(codes, codes[train])[0]]
                raise ValueError(f"a fold leaves no training rows of class {gone!s}: use other folds or more {what}")
            splits.append(Split(repeat, fold, train.astype(np.intp), test.astype(np.intp)))
    return splits


def scarce(splits: Sequence[Split], y: NDArray[Any], fraction: float) -> list[Split]:
    """The same folds with a stratified part of each one's training rows: how a model does with little data.

    Examples
    --------
    >>> y = np.repeat(["a", "b"], 50)
    >>> [(len(split.train), len(split.test)) for split in scarce(cut(y, n_folds=2), y, 0.2)]
    [(10, 50), (10, 50)]
    """
    return [
        split._replace(
            train=train_test_split(split.train, train_size=fraction, stratify=y[split.train], random_state=number)[0]
        )
        for number, split in enumerate(splits)
    ]


def evaluate(
    models: Mapping[str, Any],
    X: Any,
    y: NDArray[Any],
    splits: Sequence[Split],
    *,
    done: Collection[Task] = (),
    n_jobs: int | None = 1,
) -> Iterator[FoldResult]:
    """The results of all models on all folds, fold by fold as they finish, always in the same order.

    Parameters
    ----------
    models : mapping
        Classifiers by name; copies of them are fitted.
    X, y : the data
    splits : sequence of Split
    done : collection of Task
        What need not be done again.
    n_jobs : int, optional
        Processes to work in; the results do not depend on it.
    """
    from joblib import Parallel, delayed

    waiting = [
        (Task(name, split.repeat, split.fold), split)
        for split in splits
        for name in models
        if Task(name, split.repeat, split.fold) not in done
    ]
    work = (delayed(_fold_result)(task, models[task.model], X, y, split) for task, split in waiting)
    with interrupts_ignored():
        results = Parallel(n_jobs=n_jobs, return_as="generator")(work)
    yield from results


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Processes started meanwhile leave Ctrl-C, which a terminal sends to all of them, to this one."""
    if current_thread() is not main_thread():  # where no signals are handled anyway
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def fitted(model: Any, X: Any, y: NDArray[Any], rows: NDArray[np.intp]) -> Any:
    """A copy of the model, fitted on these rows."""
    return clone(model).fit(_safe_indexing(X, rows), y[rows])


def _fold_result(task: Task, model: Any, X: Any, y: NDArray[Any], split: Split) -> FoldResult:
    try:
        trained = fitted(model, X, y, split.train)
    except SampleNotAcceptable:
        return FoldResult(task, split.test, None)
    return FoldResult(task, split.test, trained.predict_log_proba(_safe_indexing(X, split.test)))


# ---- what predictions are worth; ``true`` holds positions among the classes


def accuracy(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """The share of rows whose most probable class is the true one."""
    return float(np.mean(log_proba.argmax(axis=1) == true))


def cll(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """Conditional log likelihood per row: the mean log probability of the true class."""
    return float(log_proba[np.arange(len(true)), true].mean())


def brier(log_proba: Floats, true: NDArray[np.intp]) -> float:
    """Brier score: squared distance from the truth summed over classes, from 0 to 2."""
    distance = np.exp(log_proba)
    distance[np.arange(len(true)), true] -= 1.0
    return float((distance**2).sum(axis=1).mean())


def calibration_error(log_proba: Floats, true: NDArray[np.intp], n_bins: int = N_BINS) -> float:
    """How far the probability of the predicted class lies from how often it is right, over bins weighted by rows."""
    bins = reliability(np.exp(log_proba.max(axis=1)), log_proba.argmax(axis=1) == true, n_bins)
    return float((bins.n * np.abs(bins.predicted - bins.observed)).sum() / bins.n.sum())


class Reliability(NamedTuple):
    """Occupied bins of equal width over predicted probabilities."""

    n: NDArray[np.intp]
    predicted: Floats  # mean probability in the bin
    observed: Floats  # how often the event happened


def reliability(probability: Floats, happened: NDArray[np.bool_], n_bins: int = N_BINS) -> Reliability:
    """Predicted probabilities beside frequencies, in bins."""
    place = np.minimum((probability * n_bins).astype(np.intp), n_bins - 1)
    n = np.bincount(place, minlength=n_bins)
    occupied = n > 0
    mean, share = (
        np.bincount(place, weights, minlength=n_bins)[occupied] / n[occupied]
        for weights in (probability, happened.astype(float))
    )
    return Reliability(n[occupied], mean, share)


METRICS = {"accuracy": accuracy, "cll": cll, "brier": brier, "calibration_error": calibration_error}


class Spread(NamedTuple):
    """A metric's mean and its standard deviation between folds (of the calibration error: between repetitions)."""

    mean: float
    sd: float | None  # None where there is one value only


@dataclass(frozen=True)
class Summary:
    """What one model's results are worth.

    Parameters
    ----------
    model : str
    n_folds : int
        Folds that have been done.
    n_without : int
        Those of them in which maximum likelihood does not exist; the metrics leave them out.
    metrics : dict of Spread
        By the names in `METRICS`; empty if no fold has an answer.
    """

    model: str
    n_folds: int
    n_without: int
    metrics: dict[str, Spread]


def summarise(results: Iterable[FoldResult], true: NDArray[np.intp]) -> list[Summary]:
    """A summary of each model, in the order in which they first occur."""
    by_model: dict[str, list[FoldResult]] = {}
    for result in results:
        by_model.setdefault(result.task.model, []).append(result)
    summaries = []
    for model, found in by_model.items():
        answered = [result for result in found if result.log_proba is not None]
        metrics: dict[str, Spread] = {}
        if answered:
            for name, metric in METRICS.items():
                # A fold is too small to tell how well calibrated a model is: all rows of a repetition do.
                parts = _repetitions(answered) if metric is calibration_error else [[result] for result in answered]
                values = [metric(*_pooled(part, true)) for part in parts]
                sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
                metrics[name] = Spread(float(np.mean(values)), sd)
        summaries.append(Summary(model, len(found), len(found) - len(answered), metrics))
    return summaries


def _repetitions(results: Sequence[FoldResult]) -> list[list[FoldResult]]:
    numbers = sorted({result.task.repeat for result in results})
    return [[result for result in results if result.task.repeat == number] for number in numbers]


def _pooled(results: Sequence[FoldResult], true: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp]]:
    log_proba = np.concatenate([result.log_proba for result in results if result.log_proba is not None])
    return log_proba, true[np.concatenate([result.rows for result in results])]
