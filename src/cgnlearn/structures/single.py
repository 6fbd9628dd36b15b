"""Every attribute of a naive Bayes by itself, as the model without a row sees that row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgnlearn.model import densities
from cgnlearn.model.densities import LEAST_LEFT, Floats
from cgnlearn.model.estimation import Units
from cgnlearn.model.forgetting import Forgotten
from cgnlearn.model.network import Network
from cgnlearn.model.solver import standard_values
from cgnlearn.model.table import Table


class LeftOutSingly(NamedTuple):
    """Of training rows; 0 for columns that are absent."""

    log_density: Floats  # without the row: (columns of X, classes, rows)
    log_evidence: Floats  # what the attribute's log evidence loses with the row: (columns of X, rows)


def left_out_singly(network: Network, table: Table) -> LeftOutSingly:
    """From a naive Bayes with an evidence, of training rows."""
    assert table.labels is not None
    n, n_classes, n_columns = table.n_rows, table.schema.n_classes, table.schema.n_columns
    rows, labels, how = np.arange(n), table.labels, network.how
    weight = np.ones(n) if table.weights is None else table.weights
    found = LeftOutSingly(np.zeros((n_columns, n_classes, n)), np.zeros((n_columns, n)))
    layout, statistics = network.statistics.layout, network.statistics
    for family, counts in zip(layout.discrete, statistics.counts, strict=True):
        code = table.codes[:, family.code]
        left = np.repeat(counts, n, axis=1)  # (classes, rows, levels)
        with_row = densities.categorical_evidence(left[labels, rows], how.dirichlet)
        left[labels, rows, code] = np.maximum(left[labels, rows, code] - weight, 0.0)
        found.log_evidence[family.column] = with_row - densities.categorical_evidence(left[labels, rows], how.dirichlet)
        found.log_density[family.column] = densities.categorical(left, how.dirichlet)[:, rows, code]
    for partition, posterior in zip(layout.partitions, network.posteriors, strict=True):
        present = np.flatnonzero(~posterior.absent)
        columns, units = partition.columns[present], Units(*(part[present] for part in posterior.units))
        standard = standard_values(table, slice(0, n), partition.values[present], units)  # (attributes, rows)
        centre, scale = posterior.centre[0][:, present, None], posterior.scale[0][:, present, None]
        forgotten = Forgotten.of(table, rows, 0, posterior, how)
        log_unit = np.log(units.unit)[:, None]
        gone = np.square(standard - centre[labels, :, 0].T)
        for label in range(n_classes):
            own, down, before = labels == label, forgotten.down[label], forgotten.before[label]
            far, lost = np.square(standard - centre[label]) / scale[label], gone / scale[label]
            left = np.maximum(1 - down * lost, LEAST_LEFT)
            after = before + np.where(own, forgotten.growth**2 * lost, far * left + down * far * lost) / left
            shape = posterior.shape[0, label] - forgotten.lighter[label] / 2
            log_det = np.log(scale[label]) + np.log(left)
            log_density = how.log_density_of_blocks(np.log(before), np.log(after), log_det, 1, shape)
            found.log_density[columns, label] = log_density - log_unit
            of_row = densities.evidence_of_row(
                weight[own], posterior.shape[0, label], scale[label], left[:, own], posterior.strength[0, label]
            )
            found.log_evidence[np.ix_(columns, own)] = of_row - weight[own] * log_unit
    return found
