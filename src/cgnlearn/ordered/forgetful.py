"""A lattice in which rows of one class are forgotten, each by itself, while its orders are mixed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.forgetting import Forgotten
from cgnlearn.model.table import Table
from cgnlearn.ordered.lattice import STRETCH, Lattice


class Forgetful(NamedTuple):
    """What `reweighing` needs of the rows of a batch, all of one class, and of the lattice without each."""

    lattice: Lattice
    label: int
    values: Floats  # less the centre of the class: (attributes, rows, filled up)
    centre: Floats  # of each scale, less that one: (scales, attributes)
    apart: Floats  # that one less those of the classes, where these forget the row too: (attributes, classes)
    forgotten: tuple[Floats, Floats, Floats, Floats]  # h at the centre, down, growth² and half the weight
    law: tuple[Floats, Floats, Floats, Floats]  # ρ', density at its peak, loss of evidence, density over that

    @classmethod
    def of(cls, lattice: Lattice, table: Table, label: int, values: Floats) -> Forgetful:
        """Of rows of one class, which are all alone in it or none is, with their standard values."""
        posterior, how = lattice.posterior, lattice.how
        n, n_classes = table.n_rows, len(lattice.centre)
        weight = np.ones(n) if table.weights is None else table.weights
        forgotten = Forgotten.of(replace(table, labels=np.full(n, label)), np.arange(n), 0, posterior, how)
        centre = lattice.centre.copy()
        if forgotten.alone.all():  # without its only row a class is centred where all rows are
            centre[label] = np.where(posterior.absent, 0.0, posterior.overall)
        crossing = how.sharing == 1
        filled = values - centre[label][:, None]
        filled[:, n:] = 0.0

        def padded(part: Floats, by: float) -> Floats:
            return np.concatenate([part, np.full((*part.shape[:-1], values.shape[1] - n), by)], axis=-1)

        half, sizes = weight / 2, np.arange(lattice.orders) / 2
        with_row = posterior.shape[0, label] + sizes[:, None]
        strength = posterior.strength[0, label]
        without = np.maximum(strength - weight, how.prior.strength)
        lost = gammaln(with_row) - gammaln(with_row - half) - half * np.log(np.pi) + 0.5 * np.log(without / strength)
        gained = densities.student(0.0, 1.0, with_row - half) - lost
        shape = posterior.shape[0][:, None] + sizes
        return cls(
            lattice,
            label,
            filled,
            centre - centre[label] if len(lattice.scale) == n_classes else np.zeros((1, len(values))),
            np.ascontiguousarray((centre[label] - centre).T[:, : n_classes if crossing else 0]),
            (
                padded(forgotten.before, 2.0),
                padded(forgotten.down[label], 0.0),
                padded(forgotten.growth**2, 1.0),
                padded(half, 0.5),
            ),
            (posterior.shape[0], densities.student(0.0, 1.0, shape), padded(lost, 0.0), padded(gained, 0.0)),
        )

    def add(self, width: int, log_weight: Floats, sums: tuple[Floats, Floats], *, mix_own: bool) -> None:
        """Add to ln of the weights (attributes, rows), and of the mixtures (classes, attributes, rows), of all orders.

        ``mix_own``: also under the rows' own class.
        """
        from cgnlearn.model.compilation import in_threads
        from cgnlearn.ordered import reweighing

        lattice, (m, n_padded) = self.lattice, self.values.shape
        scale = np.ascontiguousarray(lattice.scale)
        stretches = {
            start: (
                np.array([lattice.coefficients[at, start].found for at in range(len(lattice.scale))]),
                np.array([lattice.coefficients[at, start].sound for at in range(len(lattice.scale))]),
            )
            for start in range(0, m, STRETCH)
        }

        def of_stretch(job: tuple[int, int]) -> None:
            start, column = job
            reweighing.add_left_out(
                width, scale, stretches[start], (self.values, self.centre, self.apart), self.forgotten,
                (*self.law, self.label, not mix_own), lattice.n_parents, log_weight,
                (start, min(start + STRETCH, m), column), sums,
            )  # fmt: skip

        in_threads(of_stretch, [(start, column) for start in stretches for column in range(0, n_padded, width)])
