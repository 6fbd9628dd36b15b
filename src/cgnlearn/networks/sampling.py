"""Samples drawn from the predictive distribution of a network."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.table import Table
from cgnlearn.networks import densities
from cgnlearn.networks.indicators import without_indicators
from cgnlearn.networks.layout import Stack
from cgnlearn.networks.model import Model
from cgnlearn.networks.network import Network
from cgnlearn.networks.regressions import Regressions


def drawable(model: Model) -> Network:
    """The network whose samples stand for those of a model: of selective naive Bayes that of all features."""
    features = without_indicators(model)
    network = getattr(features, "own", features)
    if not isinstance(network, Network):
        raise ValueError("samples can only be drawn from a single structure, neither averaged nor rotated")
    return network


def draw(network: Network, labels: NDArray[np.intp], rng: Any) -> Table:
    """Draw one sample per class code, parents before children."""
    statistics, schema = network.statistics, network.statistics.schema
    layout = statistics.layout
    values = np.zeros((len(labels), len(schema.continuous)))
    codes = np.zeros((len(labels), len(schema.discrete)), np.int32)
    table = Table(schema, values, codes, labels)
    tables = {
        family.column: (family, counts) for family, counts in zip(layout.discrete, statistics.counts, strict=True)
    }
    blocks = {
        int(partition.columns[feature]): (number, members, feature)
        for number, partition in enumerate(layout.partitions)
        for stack in partition.stacks
        for members in map(tuple, stack.members.tolist())
        for feature in members[stack.n_given :]
    }

    @lru_cache(maxsize=1)  # members of a block are mostly drawn one after another
    def regressions(number: int, members: tuple[int, ...]) -> Regressions:
        posterior = network.posteriors[number]
        (stack,) = Stack(np.array([members]), 0).without(posterior.absent)
        return Regressions.of(layout.partitions[number], stack, posterior, always=network.estimation.averages)

    for column in network.structure.nodes:
        if column in tables:
            family, counts = tables[column]
            probabilities = np.exp(densities.categorical(counts, network.estimation.dirichlet))
            rows = probabilities[labels, family.cells.index(table)]
            below = np.cumsum(rows, axis=1) < rng.random(len(labels))[:, None] * rows.sum(axis=1)[:, None]
            codes[:, family.code] = below.sum(axis=1)
            continue
        number, members, feature = blocks[column]
        posterior = network.posteriors[number]
        origin, unit = (part[feature] for part in posterior.units)
        standard = 0.0 if posterior.absent[feature] else _drawn(regressions(number, members), column, table, rng)
        values[:, schema.position[column]] = standard * unit + origin
    return table


def _drawn(regressions: Regressions, column: int, table: Table, rng: Any) -> Any:
    """Draw values of a member of a block, in standard units, given those of the members before it."""
    assert table.labels is not None
    configuration = regressions.cells.index(table)
    member = regressions.columns[0].tolist().index(column)
    drawn = np.empty(table.n_samples)
    for at in sorted(set(zip(configuration.tolist(), table.labels.tolist(), strict=True))):
        rows = np.flatnonzero((configuration == at[0]) & (table.labels == at[1]))
        location, spread, leverage = regressions.predictive(0, member, table, rows, at)
        freedom = 2 * regressions.shape[(*regressions.at_block(at, 0), member)]
        if np.isfinite(regressions.strength[regressions.at_block(at, 0)]):
            noise = rng.standard_t(freedom, len(rows)) * np.sqrt(spread * leverage / freedom)
        else:
            noise = rng.standard_normal(len(rows)) * np.sqrt(spread)
        drawn[rows] = location + noise
    return drawn
