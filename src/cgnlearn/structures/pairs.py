"""Scores of all pairs of features, and the families to count for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Bayes, Units
from cgnlearn.networks.families import Families, Family
from cgnlearn.networks.layout import Cells, Pairs, Partition
from cgnlearn.networks.moments import Moments
from cgnlearn.networks.statistics import Statistics

MOST_BYTES = 2 << 30  # of the moments and scores of all pairs
CHUNK = 1 << 18  # pairs scored at a time
LEAST_SHARED = 3.0  # samples of a class that a parent which loses others needs: as many as a line has parameters


class PairScores(NamedTuple):
    """Score of every feature alone and given each other one; nan where it is absent or the arc is not allowed.

    Where values are missing, the gain of a parent is that in the samples in which both are observed.
    """

    alone: Floats  # (columns,)
    joined: Floats  # (columns, columns), from parent to child; the parent of a continuous pair is the earlier one


def pair_families(schema: Schema) -> Families:
    """Every feature alone and, once for each pair of features, with a parent."""
    m = len(schema.continuous)
    n_bytes = 8 * m * m * (2 * schema.n_classes + 3)  # moments, posterior; gains, costs and their sparse copy
    if n_bytes > MOST_BYTES:
        raise ValueError(
            f"a TAN of {m} continuous columns needs about {n_bytes / 2**30:.0f} GB for their covariances: "
            "select columns first, or use Band, Box or naive Bayes"
        )
    alone = [Family(child, ()) for child in schema.discrete]
    joined = [
        Family(child, (parent,)) for parent in schema.discrete for child in range(schema.n_columns) if child != parent
    ]
    return Families.of(alone + joined, schema.continuous, max(m, 1), pairwise=True)


def pair_scores(statistics: Statistics, estimation: Bayes | None) -> PairScores:
    """Log evidences; without an estimation maximum log likelihoods, up to a constant of the child."""
    schema, layout = statistics.schema, statistics.layout
    n = schema.n_columns
    alone = np.full(n, np.nan)
    joined = np.full((n, n), np.nan)
    gains: list[tuple[int | NDArray[np.intp], int | NDArray[np.intp], float | Floats]] = []  # parents, children
    incomplete = set(statistics.incomplete)

    def scored_discrete(counts: Floats) -> float:
        if estimation is None:
            return float(_maximum_log_likelihood(counts).sum())
        return float(densities.categorical_evidence(counts, estimation.dirichlet).sum())

    def scored_continuous(partition: Partition, moments: Moments) -> _Scored:
        if estimation is None:
            return _by_maximum(partition, moments, schema)
        return _by_evidence(partition, moments, schema, estimation)

    for family, counts in zip(layout.discrete, statistics.counts, strict=True):
        found = scored_discrete(counts)
        if not family.cells.columns:
            alone[family.column] = found
        elif incomplete.isdisjoint((family.column, *family.cells.columns)):
            joined[family.cells.columns[0], family.column] = found
        else:
            without = scored_discrete(counts.sum(axis=1, keepdims=True))
            gains.append((family.cells.columns[0], family.column, found - without))
    for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
        scored = scored_continuous(partition, moments)
        columns, present = partition.columns, scored.present
        if partition.separate and partition.cells.columns:
            uncut = replace(partition, cells=Cells((), (), ()))
            without_cells = scored_continuous(uncut, moments.marginal(partition.cells, uncut.cells))
            present = np.intersect1d(present, without_cells.present)
            gained = scored.score(present) - without_cells.score(present)
            gains.append((partition.cells.columns[0], columns[present], gained))
            continue
        if partition.separate and partition.blocks.shape[1] == 2:
            both = partition.blocks[np.isin(partition.blocks, present).all(axis=1)]
            for start in range(0, len(both), CHUNK):
                parent, child = both[start : start + CHUNK].T
                gained = scored.score(child, parent) - scored.score(child)
                gains.append((columns[parent], columns[child], gained))
            continue
        if partition.cells.columns:
            joined[partition.cells.columns[0], columns[present]] = scored.score(present)
            continue
        alone[columns[present]] = scored.score(present)
        if partition.separate:
            continue
        first, second = np.triu_indices(len(present), 1)
        for start in range(0, len(first), CHUNK):
            parent, child = (present[places[start : start + CHUNK]] for places in (first, second))
            joined[columns[parent], columns[child]] = scored.score(child, parent)
    for parents, children, gain in gains:
        joined[parents, children] = alone[children] + gain
    return PairScores(alone, joined)


def costs_of_lost_samples(statistics: Statistics) -> Floats:
    """What each arc loses by the samples of the child in which the parent is missing: (columns, columns).

    The parameters of the child are estimated from s instead of n samples of a class, of which each costs
    (n / s - 1) / 2 nats in the predictions of n samples. 0 if none is lost, infinite if too few are left.
    """
    schema, layout = statistics.schema, statistics.layout
    n = statistics.classes[:, None] - statistics.missing  # (classes, columns)
    shared = np.repeat(n[:, None], schema.n_columns, axis=1)  # (classes, parents, children)
    for family, counts in zip(layout.discrete, statistics.counts, strict=True):
        if family.cells.columns:
            shared[:, family.cells.columns[0], family.column] = counts.sum(axis=(1, 2))
    for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
        if not partition.separate:
            continue
        of_features, columns = moments.n.sum(axis=0), partition.columns
        if partition.cells.columns:
            shared[:, partition.cells.columns[0], columns] = of_features
        elif partition.blocks.shape[1] == 2:
            first, second = partition.blocks.T
            for parent, child in ((first, second), (second, first)):
                shared[:, columns[parent], columns[child]] = of_features[:, child]
    n_parameters = np.array([2.0 if levels is None else len(levels) - 1.0 for levels in schema.levels])
    lost = n[:, None] - shared
    loses = lost > 1e-9 * n[:, None]  # the rest is rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(loses, n_parameters / 2 * lost / shared, 0.0)
    return np.asarray(np.where(loses & (shared < LEAST_SHARED), np.inf, cost).sum(axis=0))


class _Scored(NamedTuple):
    """Scores of the continuous features of a partition."""

    present: NDArray[np.intp]
    score: Callable[..., Floats]  # of features, alone or each given a parent, summed over the cells


def _by_evidence(partition: Partition, moments: Moments, schema: Schema, estimation: Bayes) -> _Scored:
    """Log evidences."""
    posterior = estimation.posterior(moments, partition, schema)
    prior = posterior.prior
    assert prior is not None
    log_strength, regressions = estimation.log_strength_ratio(prior.strength, posterior.strength)
    scale, before, own_shape = posterior.scale[:, regressions], prior.scale[regressions], prior.shape[regressions]

    def score(child: NDArray[np.intp], parent: NDArray[np.intp] | None = None) -> Floats:
        n, log_ratio = (
            part[..., child] if posterior.separate else part[..., None]
            for part in (posterior.n[:, regressions], log_strength)
        )
        spread, log_det_ratio, n_parents = scale[..., child], np.zeros(len(child)), 0
        if parent is not None:
            spread = conditional_scale(scale, posterior.pairs, child, parent)
            log_det_ratio, n_parents = np.log(before[:, parent] / scale[..., parent]), 1
        shape = (own_shape[:, child] if prior.separate else own_shape[:, None]) + n_parents / 2
        found = densities.regression_evidence(n, shape, before[:, child], spread, log_det_ratio, log_ratio)
        return (found - n * np.log(posterior.units.unit[child])).sum(axis=(0, 1))

    return _Scored(np.flatnonzero(~posterior.absent), score)


def _by_maximum(partition: Partition, moments: Moments, schema: Schema) -> _Scored:
    """Maximum log likelihoods, up to a constant of the child."""
    standard = moments.standardised(Units.of(moments, partition, schema).unit)
    variance = standard.scatter / moments.by_pair(np.where(moments.n > 0, moments.n, 1.0))

    def score(child: NDArray[np.intp], parent: NDArray[np.intp] | None = None) -> Floats:
        left = variance[..., child] if parent is None else conditional_scale(variance, moments.pairs, child, parent)
        # A cell without variance would have an infinite density: its deviation counts as 1e-10 of the feature's.
        n = moments.n[..., child] if partition.separate else moments.n[..., None]
        found: Floats = -0.5 * (n * np.log(np.maximum(left, 1e-20))).sum(axis=(0, 1))
        return found

    return _Scored(np.flatnonzero(~moments.constant()), score)


def conditional_scale(scale: Floats, pairs: Pairs, child: NDArray[np.intp], parent: NDArray[np.intp]) -> Floats:
    """Scale of the child given the parent."""
    of_parent = scale[..., parent]
    between = scale[..., pairs.place(parent, child)]
    left: Floats = scale[..., child] - between**2 / np.where(of_parent > 0, of_parent, np.inf)
    return left


def _maximum_log_likelihood(counts: Floats) -> Floats:
    """Maximum log likelihood of counts (…, levels), 0 where there are none."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 0, counts * np.log(counts / total), 0.0)
