"""`update`: a fitted model and labelled samples of another place, without the samples it was trained on.

The ladder, from the simplest step: as it is; new class frequencies; an intercept for each class; these and a slope;
the old statistics with a weight, plus those of the new samples; the new samples alone. Each step is scored on the new
samples, each held out from what it estimates: by exact leave-one-out where that exists, else in folds. Weights are
those of the mixture, half pseudo-BMA+ and half stacking.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cgnlearn.candidates.power import second_best
from cgnlearn.candidates.weights import Evidence
from cgnlearn.data.arrays import Floats
from cgnlearn.data.labels import target
from cgnlearn.data.levels import identity
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.classifier import CGNClassifier
from cgnlearn.estimators.mixture_classifier import CGNClassifierCV
from cgnlearn.estimators.prediction import COMPUTED
from cgnlearn.estimators.updated import Recalibrated, Rung, UpdatedClassifier
from cgnlearn.logistic.recalibration import bounded, recalibrate
from cgnlearn.networks.densities import normalised, true_class_log_proba
from cgnlearn.networks.estimation import SampleNotAcceptableError
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.typicality import Reference, subsample

AS_IT_IS, CLASS_PRIOR, INTERCEPTS, SLOPE = "as it is", "class prior", "intercepts", "intercepts and slope"
ALONE = "new samples alone"
WEIGHTS = 1.0, 0.3, 0.1, 0.03  # of an old sample, beside the new ones
SHARES = 0.25, 0.5, 0.75  # of the model of the new samples in a pool of two mixtures
STRENGTH = 2.0  # number of samples as which the old class frequencies count beside the new ones
PRECISION = 1.0  # of the prior of intercepts and slope around those of a perfect model
LEAST_WEIGHT = 0.005  # steps below are dropped
MOST_REFITS = 200  # recalibrations with one sample held out; of more samples in folds
N_FOLDS = 10
FEWEST = 10  # samples


class Step(NamedTuple):
    """A step of the ladder: held-out log probabilities of the new samples, and its parts of a mixture."""

    name: str
    held_out: Floats  # (samples, classes)
    parts: list[Recalibrated]


def update(
    model: Any,
    X: Any,
    y: Any,
    *,
    combine: Literal["mix", "pick"] = "mix",
    random_state: int = 0,
) -> UpdatedClassifier:
    """Update a fitted model with labelled samples of another place.

    Parameters
    ----------
    model : CGNClassifier, CGNClassifierCV or UpdatedClassifier
        The samples it was trained on are not needed.
    X : array or data frame (samples, features)
        At least ten samples.
    y : array (samples,)
        Classes of the model.
    combine : {"mix", "pick"}, default="mix"
        ``"mix"``: all steps, weighted by their held-out predictions. ``"pick"``: the simplest step whose held-out log
        loss is within a standard error of the lowest.
    random_state : int, default=0
        Seed of folds and weights.

    Returns
    -------
    UpdatedClassifier
        ``ladder_`` has the steps with their log losses and weights.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> def place(n, shift):
    ...     y = rng.integers(2, size=n)
    ...     return rng.normal(size=(n, 2)) + y[:, None] + shift, y
    >>> model = CGNClassifier().fit(*place(200, 0.0))
    >>> updated = update(model, *place(100, 2.0))
    >>> print(max(updated.ladder_, key=lambda rung: rung.weight).name)
    new samples alone
    """
    if combine not in ("mix", "pick"):
        raise ValueError(f'combine must be "mix" or "pick", not {combine!r}')
    if not isinstance(model, CGNClassifier | CGNClassifierCV | UpdatedClassifier):
        name = type(model).__name__
        raise TypeError(f"update needs a CGNClassifier, a CGNClassifierCV or one that was updated, not {name}")
    ladder = ladder_of(model, X, y, random_state)
    return assembled(ladder, _weights(ladder, combine, random_state))


class Ladder(NamedTuple):
    """The steps from a model, and what they are made of."""

    models: list[Any]  # the old one first
    steps: list[Step]
    table: Table  # the new samples with their labels

    @property
    def truth(self) -> Floats:
        """Held-out log probabilities of the true classes: (samples, steps)."""
        assert self.table.labels is not None
        return np.column_stack([true_class_log_proba(step.held_out, self.table.labels) for step in self.steps])


def ladder_of(model: Any, X: Any, y: Any, random_state: int = 0) -> Ladder:
    """All steps, scored on the new samples."""
    labels = _positions(y, model.classes_)
    if len(labels) < FEWEST:
        raise ValueError(f"an update needs at least {FEWEST} samples, not {len(labels)}: collect more")
    if len(np.unique(labels)) < 2:
        only = model.classes_.tolist()[labels[0]]
        raise ValueError(f"all {len(labels)} samples are of class {only!r}: an update needs samples of two classes")
    models: list[Any] = [model]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        log_proba = bounded(model.predict_log_proba(X))
        steps = list(_recalibrations(log_proba, labels, model.class_log_prior_, random_state))
        table = replace(_table(model, X), labels=labels)
        if isinstance(model, CGNClassifier):
            steps += _of_statistics(model, table, models, random_state)
        elif isinstance(model, CGNClassifierCV):
            steps += _of_mixtures(model, X, y, labels, models, steps[-1])
    return Ladder(models, steps, table)


def _positions(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of labels among the classes."""
    known = {identity(label): i for i, label in enumerate(classes.tolist())}
    labels = target(y)
    for label in np.unique(labels).tolist():
        if identity(label) not in known:
            listed = ", ".join(repr(one) for one in classes.tolist())
            raise ValueError(f"y has the class {label!r}, which the model does not know: its classes are {listed}")
    return np.array([known[identity(label)] for label in labels.tolist()], np.intp)


def _table(model: Any, X: Any) -> Table:
    while isinstance(model, UpdatedClassifier):
        model = model.models_[0]
    found: Table = model._table(X)
    return found


# ---- steps


def class_frequencies(labels: NDArray[np.intp], before: Floats) -> Floats:
    """Frequencies of the new samples, to which the old ones add a few."""
    counts = np.bincount(labels, minlength=len(before)) + STRENGTH * before
    found: Floats = counts / counts.sum()
    return found


def _recalibrations(log_proba: Floats, labels: NDArray[np.intp], class_log_prior: Floats, seed: int) -> Iterator[Step]:
    """The steps that keep the model and change its log probabilities."""
    n, n_classes = log_proba.shape
    nothing = (0.0,) * n_classes
    before = np.exp(class_log_prior)
    yield Step(AS_IT_IS, log_proba, [Recalibrated(0, nothing, 1.0, 1.0)])
    counts = np.bincount(labels, minlength=n_classes) + STRENGTH * before - np.eye(n_classes)[labels]
    shifted = normalised(log_proba + np.log(counts / counts.sum(axis=1, keepdims=True)) - class_log_prior)
    shift = np.log(class_frequencies(labels, before)) - class_log_prior
    yield Step(CLASS_PRIOR, shifted, [Recalibrated(0, tuple(shift.tolist()), 1.0, 1.0)])
    folds = [np.array([i]) for i in range(n)] if n <= MOST_REFITS else _folds(labels, seed)
    for name, slope in ((INTERCEPTS, 1.0), (SLOPE, None)):
        whole = recalibrate(log_proba, labels, slope, precision=PRECISION)
        held_out = np.empty_like(log_proba)
        for fold in folds:
            rest = np.setdiff1d(np.arange(n), fold)
            part = recalibrate(log_proba[rest], labels[rest], slope, whole, PRECISION)
            held_out[fold] = part(log_proba[fold])
        yield Step(name, held_out, [Recalibrated(0, tuple(whole.intercept.tolist()), whole.slope, 1.0)])


def _folds(labels: NDArray[np.intp], seed: int) -> list[NDArray[np.intp]]:
    return [test for _, test in stratified(labels, N_FOLDS, seed).pairs]


def _of_statistics(model: CGNClassifier, table: Table, models: list[Any], seed: int) -> Iterator[Step]:
    """The steps that add the statistics of the new samples to the old ones; those that do not exist are left away."""
    if model.estimation == "discriminative" or not model._learner.is_additive:
        return
    for weight in (*WEIGHTS, 0.0):
        combined = _combined(model, table, weight)
        try:
            try:
                held_out = normalised(combined._leave_one_out(table))
            except NotExactError:
                held_out = _in_folds(model, table, weight, seed)
        except SampleNotAcceptableError:  # maximum likelihood of few samples
            continue
        models.append(combined)
        name = f"old samples × {weight:g}" if weight else ALONE
        yield _whole(name, held_out, len(models) - 1)


def _whole(name: str, held_out: Floats, at: int) -> Step:
    return Step(name, bounded(held_out), [Recalibrated(at, (0.0,) * held_out.shape[1], 1.0, 1.0)])


def _combined(model: CGNClassifier, table: Table, weight: float) -> CGNClassifier:
    """The model of the new samples and of the old ones with a weight."""
    other: CGNClassifier = clone(model)
    other.__dict__.update({k: v for k, v in vars(model).items() if k not in (*COMPUTED, "_reference", "_samples")})
    new = collect(table, model.statistics_.families)
    other.statistics_ = (weight * model.statistics_ + new).recentred() if weight else new
    return other


def _in_folds(model: CGNClassifier, table: Table, weight: float, seed: int) -> Floats:
    """Log probabilities of samples that are held out in folds, where leave-one-out has no closed form."""
    assert table.labels is not None
    held_out = np.empty((table.n_samples, len(model.classes_)))
    for fold in _folds(table.labels, seed):
        rest = np.setdiff1d(np.arange(table.n_samples), fold)
        part = _combined(model, table.rows(rest), weight)
        held_out[fold] = normalised(part._log_scores(replace(table.rows(fold), labels=None)))
    return held_out


def _of_mixtures(
    model: CGNClassifierCV, X: Any, y: Any, labels: NDArray[np.intp], models: list[Any], recalibrated: Step
) -> Iterator[Step]:
    """The steps that fit the mixture to the new samples, alone and in a pool with the recalibrated old one."""
    counts = np.bincount(labels, minlength=len(model.classes_))
    if counts.min() < 2:  # a class cannot be both learned and held out
        return
    refit = clone(model).fit(X, y)
    if len(refit.tuning_indices_) < len(labels):  # so many samples that a part of them was compared
        held_out = np.empty((len(labels), len(counts)))
        for fold in _folds(labels, 0):
            rest = np.setdiff1d(np.arange(len(labels)), fold)
            held_out[fold] = clone(model).fit(*_rows(X, y, rest)).predict_log_proba(_rows(X, y, fold)[0])
    else:
        held_out = refit.oof_log_proba_
    models.append(refit)
    alone = _whole(ALONE, held_out, 1)
    for share in SHARES:
        pooled = np.logaddexp(np.log1p(-share) + recalibrated.held_out, np.log(share) + alone.held_out)
        parts = [replace(part, weight=1 - share) for part in recalibrated.parts]
        yield Step(f"pool with {share:.0%} of new", pooled, [*parts, replace(alone.parts[0], weight=share)])
    yield alone


def _rows(X: Any, y: Any, rows: NDArray[np.intp]) -> tuple[Any, Any]:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows), _safe_indexing(y, rows)


# ---- weights


def _weights(ladder: Ladder, combine: str, seed: int) -> Floats:
    """Weights of the steps."""
    truth, labels = ladder.truth, ladder.table.labels
    assert labels is not None
    if combine == "mix":
        wrong = [true_class_log_proba(of.held_out, second_best(of.held_out, labels)).mean() for of in ladder.steps]
        return Evidence.of(np.ones(len(labels)), np.random.RandomState(seed)).weights(truth, np.array(wrong))
    best, error = _losses(truth)
    weights = np.zeros(truth.shape[1])
    weights[int(np.flatnonzero(best <= best.min() + error)[0])] = 1.0
    return weights


def _losses(truth: Floats) -> tuple[Floats, Floats]:
    """Log losses of the steps, and standard errors of their differences to the lowest."""
    loss: Floats = -truth.mean(axis=0)
    away = truth - truth[:, [int(loss.argmin())]]
    return loss, away.std(axis=0, ddof=1) / np.sqrt(len(truth))


def assembled(ladder: Ladder, weights: Floats) -> UpdatedClassifier:
    """The updated model, of the steps that have a weight."""
    models, steps, table = ladder
    model = models[0]
    rungs = [
        Rung(step.name, float(loss), float(error), float(weight))
        for step, loss, error, weight in zip(steps, *_losses(ladder.truth), weights, strict=True)
    ]
    assert table.labels is not None
    parts = [
        replace(part, weight=float(part.weight * weight))
        for step, weight in zip(steps, weights, strict=True)
        for part in step.parts
        if weight > LEAST_WEIGHT
    ]
    total = sum(part.weight for part in parts)
    used = sorted({0, *(part.model for part in parts)})  # the first tells columns and classes
    updated = UpdatedClassifier()
    updated.classes_ = model.classes_
    updated.class_log_prior_ = np.log(class_frequencies(table.labels, np.exp(model.class_log_prior_)))
    updated.models_ = [models[at] for at in used]
    for combined in updated.models_[1:]:
        # By leave-one-out as it is: refits, where it leaks, would take longer than the update.
        if isinstance(combined, CGNClassifier) and combined._learner.has_leave_one_out:
            some = subsample(table)
            combined._reference = Reference.of(combined._generative, some, combined._without, leaks=False)
    updated.parts_ = [replace(part, model=used.index(part.model), weight=part.weight / total) for part in parts]
    updated.ladder_ = rungs
    heaviest = max(rungs, key=lambda rung: rung.weight)
    n_by_class = np.bincount(table.labels, minlength=len(model.classes_)).tolist()
    digest = sha256()
    for array in (table.values, table.codes, table.labels):
        digest.update(np.ascontiguousarray(array).tobytes())
    entry = {
        "what": f"updated: {heaviest.name} (weight {heaviest.weight:.2f} of {len(rungs)} steps)",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "samples": table.n_samples,
        "classes": dict(zip(map(str, model.classes_.tolist()), n_by_class, strict=True)),
        "samples_sha256": digest.hexdigest(),
        "log_loss_before": rungs[0].log_loss,
        "ladder": [vars(rung) for rung in rungs],
    }
    updated.history_ = [*getattr(model, "history_", []), entry]
    return updated
