"""The protocol of solvers, which compute the regressions of the features of a partition.

There are two, `Blocks` and `Lattice`; `cgnlearn.networks.network.solver_for` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Columns, Floats, rows_by_cell, take
from cgnlearn.data.table import Table
from cgnlearn.kernels.limits import FARTHEST
from cgnlearn.networks.estimation import Terms, Units
from cgnlearn.networks.layout import Cells

Rows = NDArray[np.intp] | slice  # a slice has a start and a stop


class Singular(NamedTuple):
    """A feature whose regression does not exist by maximum likelihood."""

    column: int
    configuration: int
    label: int
    n: float
    n_parents: int


class Solver(Protocol):
    """The regressions of the features of a partition on their parents."""

    def terms(self, table: Table) -> Iterator[Terms]:
        """Terms of the log density of every sample, feature and class, in parts."""

    def log_likelihood(self, table: Table) -> Floats:
        """Log densities, summed over the features: (samples, classes)."""

    def leave_one_out(self, table: Table) -> Floats:
        """Leave-one-out log densities of training samples, summed over the features: (samples, classes)."""

    def log_evidences(self) -> Iterator[tuple[Columns, Floats]]:
        """Features, as columns of X, and the log evidences of their families; where the estimation has one."""

    def singular(self) -> Singular | None:
        """The first feature whose maximum likelihood regression does not exist, if any."""


def rounding(centre: Floats) -> Floats:
    """The variance that rounding gives to a constant far from the origin."""
    return np.square(8 * np.finfo(float).eps * centre)


def standard_values(table: Table, rows: Rows, positions: NDArray[np.intp], units: Units) -> Floats:
    """Values of a table in standard units: (positions, samples), because inner loops over samples are faster."""
    values = take(table.values, rows, positions).T
    standard: Floats = np.empty(values.shape)
    np.subtract(values, units.origin[:, None], out=standard)
    with np.errstate(over="ignore"):
        standard /= units.unit[:, None]
    return np.clip(standard, -FARTHEST, FARTHEST, out=standard)


def rows_by_configuration(cells: Cells, table: Table) -> Iterator[tuple[int, Rows]]:
    """Each configuration that has samples, with these."""
    if not cells.columns:
        yield 0, slice(0, table.n_samples)
    else:
        yield from rows_by_cell(cells.index(table), cells.n)


def n_of(rows: Rows) -> int:
    """Number of samples."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def parts_of(rows: Rows, step: int) -> Iterator[Rows]:
    """Samples (or blocks), at most ``step`` at a time."""
    for start in range(0, n_of(rows), step):
        if isinstance(rows, slice):
            yield slice(rows.start + start, min(rows.start + start + step, rows.stop))
        else:
            yield rows[start : start + step]
