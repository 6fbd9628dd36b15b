"""Samples of several sites: their shifts in training, and those of sites that training did not have."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.sites import FEWEST, SiteCells, SiteShift, site_numbers
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning
from cgnlearn.networks.densities import normalised

PRIOR_SAMPLES = 50.0  # as which the class frequencies of training count at a new site: what tells them from a shift
MOST_SAMPLES = 2000  # of a new site, from which its shift is learned
N_STEPS = 60
CLOSE = 1e-3  # change of a shift in standard deviations, at which it is found
OTHERWISE = 0.1  # mean difference of probabilities of two solutions that are not the same
CONFOUNDED = 0.3  # share of the variance of a class that is between sites, from which it is reported
AS_LIKELY = 3.0  # nats by which another solution may be less likely


class Classifier(Protocol):
    """What has to be known of a fitted classifier."""

    class_log_prior_: Floats
    _given_class_prior: tuple[float, ...] | None
    _log_scores: Callable[[Table], Floats]
    _log_density: Callable[[Table], Floats]


class Placed(NamedTuple):
    """Samples without the shifts of their sites."""

    table: Table
    log_odds: Floats | None  # what the class frequencies of new sites add to scores: (samples, classes)


def learned(table: Table, sites: Any) -> tuple[Table, SiteShift]:
    """Training samples without the shifts of their sites, and the shifts."""
    assert table.labels is not None
    numbers, names = site_numbers(sites, table.n_samples)
    if not table.schema.continuous:
        raise ValueError("sites shift continuous columns, and there are none: omit sites")
    if len(names) == table.n_samples:
        raise ValueError("each sample has a site of its own, so that a site cannot be told from its sample: omit sites")
    weights = np.ones(table.n_samples) if table.weights is None else table.weights
    counts = np.zeros((len(names), table.schema.n_classes))
    np.add.at(counts, (numbers, table.labels), weights)
    _check_confounding(counts, names, table.schema.classes)
    shift = SiteShift.of(SiteCells.of(table, numbers, names), counts)
    return _moved(table, shift.shifts[numbers]), shift


def _check_confounding(counts: Floats, names: Sequence[Any], classes: Sequence[Any]) -> None:
    """Raise ValueError if no chain of common classes joins all sites; warn of sites with one class."""
    n_sites, n_classes = counts.shape
    classes_at = counts > 0
    graph = np.block([[np.eye(n_sites, dtype=bool), classes_at], [classes_at.T, np.eye(n_classes, dtype=bool)]])
    present = np.concatenate([np.ones(n_sites, bool), classes_at.any(axis=0)])
    _, part = connected_components(graph[np.ix_(present, present)], directed=False)
    if part.max() > 0:
        other = int(np.argmax(part[:n_sites] != part[0]))
        here, there = (
            f"site {names[site]!r} has {', '.join(str(classes[i]) for i in np.flatnonzero(classes_at[site]).tolist())}"
            for site in (0, other)
        )
        raise ValueError(
            f"sites and classes cannot be told apart: {here}, {there}, and no site joins them: omit sites, or add "
            "samples of other classes"
        )
    single = classes_at.sum(axis=1) == 1
    if single.any() and n_sites > 1:
        at = int(np.argmax(single))
        label = classes[int(np.argmax(counts[at]))]
        warnings.warn(
            f"site {names[at]!r} has samples of class {label!r} only: its shift rests on the class means elsewhere",
            DataWarning,
            stacklevel=7,
        )


def placed(model: Classifier, shift: SiteShift | None, table: Table, sites: Any, *, known: bool = False) -> Placed:
    """Samples without the shifts of their sites; new sites get theirs from these samples, unless all must be known."""
    if shift is None:
        raise ValueError("the model was fitted without sites: fit it with sites, or omit them here")
    numbers, names = site_numbers(sites, table.n_samples)
    shifts = np.zeros(table.values.shape)
    log_odds = np.zeros((table.n_samples, table.schema.n_classes))
    for number, name in enumerate(names):
        rows, place = np.flatnonzero(numbers == number), shift.place(name)
        if place is not None:
            shifts[rows] = shift.shifts[place]
            continue
        if known:
            raise ValueError(f"site {name!r} is not one of the training samples'")
        found = _of_new_site(model, shift, table.rows(rows))
        if isinstance(found, str):
            message = f"site {name!r} is new, and {found}: its samples are predicted without a shift"
            warnings.warn(message, DataWarning, stacklevel=4)
            continue
        shifts[rows], log_odds[rows] = found.shift, found.class_log_prior - model.class_log_prior_
    return Placed(_moved(table, shifts), log_odds)


def _moved(table: Table, shifts: Floats) -> Table:
    return replace(table, values=np.asarray(table.values, float) - shifts)


class _Solution(NamedTuple):
    """The shift and the class frequencies of a new site, with the class probabilities of its samples."""

    shift: Floats  # (continuous columns,)
    class_log_prior: Floats
    log_proba: Floats  # (samples, classes)
    log_posterior: float  # up to a constant


def _of_new_site(model: Classifier, shift: SiteShift, table: Table) -> _Solution | str:
    """The solution of a site without labels, or why there is none.

    A shift that looks like another mixture of classes cannot be told from it. So solutions are sought from several
    starts: the class frequencies of training, and all samples being of one class.
    """
    if table.n_samples < FEWEST:
        return f"has {table.n_samples} samples, of the {FEWEST} that its shift needs"
    if table.n_samples > MOST_SAMPLES:
        table = table.rows(np.sort(np.random.default_rng(0).permutation(table.n_samples)[:MOST_SAMPLES]))
    n, n_classes = table.n_samples, table.schema.n_classes
    first = _solved(model, shift, table, None)
    for label in range(n_classes):
        start = np.full((n, n_classes), 0.02 / max(n_classes - 1, 1))
        start[:, label] = 0.98
        other = _solved(model, shift, table, start)
        differs = float(np.abs(np.exp(other.log_proba) - np.exp(first.log_proba)).mean()) * n_classes / 2
        if differs > OTHERWISE and other.log_posterior > first.log_posterior - AS_LIKELY:
            return (
                "its shift cannot be told from its class frequencies: two explanations that differ in "
                f"{differs:.0%} of the predictions are about as likely"
            )
    return first


def _solved(model: Classifier, shift: SiteShift, table: Table, proba: Floats | None) -> _Solution:
    """Expectation and maximisation of the shift and of the class frequencies, by turns."""
    values, n = np.asarray(table.values, float), table.n_samples
    observed = ~np.isnan(values)
    counted = observed.sum(axis=0).astype(float)
    usual = np.exp(model.class_log_prior_ - logsumexp(model.class_log_prior_))
    own, frequencies = np.zeros(values.shape[1]), usual

    def log_proba() -> Floats:
        scores = model._log_scores(_moved(table, own))
        return normalised(scores - model.class_log_prior_ + np.log(frequencies))

    for _ in range(N_STEPS):
        proba = np.exp(log_proba()) if proba is None else proba
        if model._given_class_prior is None:
            frequencies = (PRIOR_SAMPLES * usual + proba.sum(axis=0)) / (PRIOR_SAMPLES + n)
        away = np.where(observed, values - proba @ shift.means, 0.0).sum(axis=0) / np.maximum(counted, 1.0)
        before, own = own, shift.of_residuals(away, counted)
        proba = None
        if np.abs((own - before) / shift.deviation).max(initial=0.0) < CLOSE:
            break
    density = getattr(model, "likelihood_power_", 1.0) * model._log_density(_moved(table, own))
    log_posterior = float(logsumexp(density + np.log(frequencies), axis=1).sum())
    log_posterior += PRIOR_SAMPLES * float(usual @ np.log(frequencies)) + shift.log_prior(own)
    return _Solution(own, np.log(frequencies), log_proba(), log_posterior)


def in_words(shift: SiteShift, columns: NDArray[Any] | list[str]) -> list[str]:
    """What sites do to the columns, those with the greatest shares first, and whether they tell the classes."""
    share = shift.variance_share
    order = np.argsort(-share)[:5]
    shown = ", ".join(f"{columns[column]} {share[column]:.0%}" for column in order)
    found = [f"{len(shift.names)} sites; their share of the variance within classes: {shown}"]
    if shift.confounding > CONFOUNDED:
        found.append(f"classes and sites are confounded: sites tell {shift.confounding:.0%} of a class's variance")
    return found
