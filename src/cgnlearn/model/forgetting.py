"""What a posterior that forgets one of its rows needs of that row: exact leave-one-out without a refit.

A conjugate posterior loses a row of weight u by a change of rank one. With e the row less the centre of its own class k
and a = κ'/(κ' - u), the scale that a class c uses becomes Ψ' - s u a e eᵀ, where s is 1 for the row's own class and the
sharing for others. The prior, the standard units and the absent attributes are held as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Estimation, Posterior
from cgnlearn.model.table import Table

Rows = NDArray[np.intp]


class Forgotten(NamedTuple):
    """Of some rows of one configuration; arrays over (classes, rows) or (rows,)."""

    labels: Rows
    before: Floats  # h of a row at the centre: (classes, rows)
    down: Floats  # how much of e eᵀ the scale loses: (classes, rows)
    growth: Floats  # a: the row is so much farther from the centre of its class without it: (rows,)
    lighter: Floats  # what n loses: (classes, rows)
    alone: NDArray[np.bool_]  # the only rows of their class, whose centre then is that of all rows: (rows,)

    @classmethod
    def of(cls, table: Table, rows: Rows, configuration: int, posterior: Posterior, how: Estimation) -> Forgotten:
        """Of labelled rows of one configuration."""
        assert table.labels is not None
        weight = np.ones(len(rows)) if table.weights is None else table.weights[rows]
        return cls._of(table.labels[rows], weight, configuration, posterior, how)

    @classmethod
    def alike(
        cls, table: Table, rows: Rows, label: int, configuration: int, posterior: Posterior, how: Estimation
    ) -> Iterator[tuple[Forgotten, Rows]]:
        """Of rows of one cell: those that are alone apart, and one for all where they have no weights."""
        if table.weights is None:
            yield cls._of(np.array([label]), np.ones(1), configuration, posterior, how), rows
            return
        alone = cls._of(np.full(len(rows), label), table.weights[rows], configuration, posterior, how).alone
        for same in (rows[alone], rows[~alone]):
            if len(same):
                yield cls._of(np.full(len(same), label), table.weights[same], configuration, posterior, how), same

    @classmethod
    def _of(cls, labels: Rows, weight: Floats, configuration: int, posterior: Posterior, how: Estimation) -> Forgotten:
        own = labels == np.arange(posterior.n.shape[1])[:, None]
        shares = np.where(own, 1.0, how.sharing)
        behind = (posterior.strength if posterior.follows_prior else posterior.own_n)[configuration][labels]
        left = behind - weight
        alone = left <= 1e-9 * behind
        growth = np.where(alone, 1.0, behind / np.where(alone, 1.0, left))
        strength = posterior.strength[configuration][:, None] - np.where(own, weight, 0.0)
        down = shares * np.where(alone, 0.0, weight * growth)
        if not how.averages:
            down /= posterior.n[configuration][:, None]  # where the scale is a variance
        return cls(labels, 1 + 1 / strength, down, growth, shares * weight, alone)
