"""Every feature of a naive Bayes by itself, as the model without a sample sees that sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.estimation import Estimation, Posterior, Units
from cgnlearn.networks.layout import DiscreteFamily
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values


class LeftOutSingly(NamedTuple):
    """Of training samples; 0 for columns that are absent."""

    log_density: Floats  # without the sample: (columns of X, classes, samples)
    log_evidence: Floats  # what the feature's log evidence loses with the sample: (columns of X, samples)


def left_out_singly(network: Network, table: Table) -> LeftOutSingly:
    """From a naive Bayes with an evidence, of training samples; a missing feature says nothing and loses nothing."""
    assert table.labels is not None
    n, n_classes, n_columns = table.n_samples, table.schema.n_classes, table.schema.n_columns
    found = LeftOutSingly(np.zeros((n_columns, n_classes, n)), np.zeros((n_columns, n)))
    layout, statistics = network.statistics.layout, network.statistics
    for family, counts in zip(layout.discrete, statistics.counts, strict=True):
        seen = np.flatnonzero(table.codes[:, family.code] >= 0)
        log_density, log_evidence = _discrete(counts, family, table.rows(seen), network.estimation)
        found.log_density[family.column][:, seen] = log_density
        found.log_evidence[family.column, seen] = log_evidence
    for partition, posterior in zip(layout.partitions, network.posteriors, strict=True):
        present = np.flatnonzero(~posterior.absent)
        for members in present[:, None] if posterior.separate else (present,):
            seen = np.flatnonzero(~np.isnan(table.values[:, partition.values[members[:1]]]).any(axis=1))
            behind = posterior.of_block(members) if posterior.separate else posterior
            of_rows = _continuous(behind, members, table.rows(seen), partition.values[members], network.estimation)
            columns = partition.columns[members]
            found.log_density[columns[:, None, None], np.arange(n_classes)[:, None], seen] = of_rows.log_density
            found.log_evidence[np.ix_(columns, seen)] = of_rows.log_evidence
    return found


def _discrete(counts: Floats, family: DiscreteFamily, table: Table, estimation: Estimation) -> tuple[Floats, Floats]:
    """Of samples in which the feature and its parents are there: (classes, samples) and (samples,)."""
    assert table.labels is not None
    rows, labels, code = np.arange(table.n_samples), table.labels, table.codes[:, family.code]
    cell, n_levels = family.cells.index(table), counts.shape[-1]
    found = densities.categorical(counts, estimation.dirichlet)[:, cell, code]
    found[labels, rows], lost = densities.categorical_of_sample(
        _weight(table), counts[labels, cell, code], counts.sum(axis=-1)[labels, cell], n_levels, estimation.dirichlet
    )
    return found, lost


def _continuous(
    posterior: Posterior,
    members: NDArray[np.intp],
    table: Table,
    places: NDArray[np.intp],
    estimation: Estimation,
) -> LeftOutSingly:
    """Of samples that have the features: (features, classes, samples) and (features, samples)."""
    assert table.labels is not None
    n, n_classes, labels, weight = table.n_samples, table.schema.n_classes, table.labels, _weight(table)
    found = LeftOutSingly(np.empty((len(members), n_classes, n)), np.empty((len(members), n)))
    units = Units(*(part[members] for part in posterior.units))
    standard = standard_values(table, slice(0, n), places, units)  # (features, samples)
    centre, scale = (part[0][:, members, None] for part in (posterior.centre, posterior.scale))
    removal = Removal.of(table, np.arange(n), 0, posterior, estimation)
    log_unit = np.log(units.unit)[:, None]
    # Without its only sample a class is centred where all samples are.
    gone = standard - np.where(removal.alone, posterior.overall[members, None], centre[labels, :, 0].T)
    for label in range(n_classes):
        own, before, away = labels == label, removal.before[label], standard - centre[label]
        products = (product / scale[label] for product in (gone * gone, gone * away, away * away))
        left, after = removal.leverages(label, *products)
        shape = posterior.shape[0, label] - removal.lighter[label] / 2
        log_det = np.log(scale[label]) + np.log(left)
        log_density = estimation.log_density_of_blocks(np.log(before), np.log(after), log_det, 1, shape)
        found.log_density[:, label] = log_density - log_unit
        of_row = densities.evidence_of_sample(
            weight[own],
            posterior.shape[0, label],
            scale[label],
            left[:, own],
            posterior.strength[0, label],
        )
        found.log_evidence[:, own] = of_row - weight[own] * log_unit
    return found


def _weight(table: Table) -> Floats:
    return np.ones(table.n_samples) if table.weights is None else table.weights
