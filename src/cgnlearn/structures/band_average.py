"""BandAverage: every column with as many of those just before it as parents as the data say, averaged over all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.model import LeaveOneOut, NotExactError
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure, check_order
from cgnlearn.structures.band import every_family, refuse_missing_in_order
from cgnlearn.structures.learner import Learner


class BandAverage(Learner):
    """The exact average over bands: each continuous column over its order, and over whether the class matters to it.

    A column has the j just before it as parents, j = 0, 1, …, ``k_max`` - 1 as far as there are so many, and its
    regression on them is each class's own, shared by the classes except for the intercept (as with ``sharing=1``), or
    the same for all classes. Of these up to 3 × ``k_max`` regressions, equally probable beforehand, the predictive
    density is the mixture, weighted by how probable the training data make each one. Discrete columns depend on the
    class alone.

    Needs ``estimation="bayes"`` and a prior location that is ``"pooled"`` or an array; the classifier's ``sharing``
    plays no part and is left at 0.

    Parameters
    ----------
    k_max : int, default=50
        The order goes up to ``k_max - 1``.

    Examples
    --------
    >>> from cgnlearn import BandAverage, CGNClassifier
    >>> from cgnlearn.datasets import make_spectra
    >>> spectra = make_spectra(80, 60, random_state=0)
    >>> model = CGNClassifier(BandAverage(k_max=5)).fit(spectra.data, spectra.target)
    >>> model.order_probability_.shape, model.inclusion_probability_.shape
    ((60, 5), (60,))
    """

    has_leave_one_out = accepts_missing = False

    def __init__(self, k_max: int = 50) -> None:
        self.k_max = k_max

    def families(self, schema: Schema) -> Families:
        """What has to be counted."""
        check_order(self.k_max, "k_max")
        return every_family(schema, self.k_max)

    def model(self, statistics: Statistics, estimation: Estimation) -> AveragedBand:
        """The average, from statistics of these families."""
        return AveragedBand.of(statistics, estimation, self.k_max)


@dataclass(frozen=True, eq=False)
class AveragedBand:
    """The average over orders and kinds of regression, from three lattices of the same statistics.

    Parameters
    ----------
    statistics : Statistics
        Of `every_family`.
    how : Bayes
    k_max : int
    discrete : Network
        The discrete columns by themselves.
    lattices : tuple of Lattice
        Free of the class, shared by the classes, and each class's own; none if no column is continuous.
    """

    statistics: Statistics
    estimation: Bayes
    k_max: int
    discrete: Network
    lattices: tuple[Lattice, ...]

    @classmethod
    def of(cls, statistics: Statistics, estimation: Estimation, k_max: int) -> AveragedBand:
        """The average, if the estimation has the evidences that it weighs by."""
        if not isinstance(estimation, Bayes):
            raise ValueError('BandAverage weighs orders by their evidence: use estimation="bayes"')
        if not estimation.prior.is_coherent:
            raise ValueError(
                f'BandAverage needs a prior that has an evidence: use location="pooled" or an array, '
                f"not {estimation.prior.location!r}"
            )
        if estimation.sharing != 0:
            raise ValueError(
                f"BandAverage averages over what classes share: leave sharing at 0, not {estimation.sharing:g}"
            )
        refuse_missing_in_order(statistics.incomplete, statistics.schema)
        discrete = Network.of(
            Structure.jan([[column] for column in statistics.schema.discrete]), statistics, estimation
        )
        return cls(statistics, estimation, k_max, discrete, _lattices(statistics, estimation))

    # ---- weights

    @cached_property
    def _log_joint(self) -> Floats:
        """ln p(order, kind) p(training data | order, kind) of each feature: (kinds, features, orders)."""
        found = np.array([lattice.every_log_evidence() for lattice in self.lattices])
        exists = np.array([lattice.exists for lattice in self.lattices])
        n_orders = np.minimum(np.arange(found.shape[1]) + 1, found.shape[2])
        return np.where(exists, found - np.log(len(found) * n_orders)[:, None], -np.inf)

    @cached_property
    def _log_evidence(self) -> Floats:
        """The log evidence of each feature, over all its orders and kinds: (features,), 0 for absent ones."""
        absent = self.lattices[0].posterior.absent
        return np.where(absent, 0.0, _log_sum(self._log_joint))

    @cached_property
    def _log_weight(self) -> Floats:
        """ln of the probability of each order and kind: (kinds, features, orders); -inf for absent features."""
        weight: Floats = self._log_joint - self._log_evidence[:, None]
        return weight

    @cached_property
    def order_probability(self) -> Floats:
        """Of each column of X, the probability of every order: (columns, k_max).

        Discrete columns have order 0; a column that is constant in the training data has none, a sample of zeros.
        """
        found = np.zeros((self.statistics.schema.n_columns, self.k_max))
        found[self.statistics.schema.discrete, 0] = 1.0
        for lattice in self.lattices[:1]:
            found[lattice.partition.columns, : lattice.orders] = np.exp(self._log_weight).sum(axis=0)
        return found

    @cached_property
    def inclusion_probability(self) -> Floats:
        """Of each column of X, the probability that it depends on the class at all: (columns,).

        It is 1 for discrete columns, which always do, and 0 for a column that is constant in the training data.
        """
        found = np.zeros(self.statistics.schema.n_columns)
        found[self.statistics.schema.discrete] = 1.0
        for lattice in self.lattices[:1]:
            found[lattice.partition.columns] = np.exp(self._log_weight[1:]).sum(axis=(0, 2))
        return found

    # ---- what a model says

    @cached_property
    def structure(self) -> Structure:
        """Each column with its most probable number of parents."""
        schema = self.statistics.schema
        nodes = (*schema.discrete, *schema.continuous)
        return Structure.of_preceding(nodes, self.order_probability.argmax(axis=1)[list(nodes)])

    @property
    def n_parameters(self) -> int:
        """Free parameters of the most probable structure, each class with regressions of its own."""
        schema = self.statistics.schema
        levels = {column: len(schema.levels_of(column)) for column in schema.discrete}
        return self.structure.n_parameters(schema.n_classes, levels)

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a sample."""
        return self.discrete.class_log_prior

    @property
    def log_evidence(self) -> float:
        """ln p(training data), the classes included."""
        return self.discrete.log_evidence + sum(float(self._log_evidence.sum()) for _ in self.lattices[:1])

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every sample and class."""
        total = self.discrete.log_likelihood(table)
        for rows, _, found in self._log_densities(table):
            total[rows] += found.sum(axis=1).T
        return total

    def contributions(self, table: Table) -> Floats:
        """The log mixtures kept apart: (samples, columns of X, classes); 0 for a column that is absent."""
        apart = self.discrete.contributions(table)
        for rows, columns, found in self._log_densities(table):
            apart[rows, columns] = found.transpose(2, 1, 0)
        return apart

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        """Not exact: the weights of the orders change with every sample."""
        raise NotExactError("an average over bands weighs its orders anew without every sample: take folds")

    def _log_densities(self, table: Table) -> Iterator[tuple[slice, NDArray[np.intp], Floats]]:
        """Samples and columns of X, and the log mixtures there: (classes, columns, samples)."""
        refuse_missing_in_order(table.incomplete, table.schema)
        if not self.lattices:
            return
        own = self.lattices[-1]
        present = np.flatnonzero(~own.posterior.absent)
        log_unit = np.log(own.posterior.units.unit[present, None])
        for rows, width, values in own.batches(table):
            mixtures = np.full((1, *values.shape), -np.inf)
            for lattice, log_weight in zip(self.lattices, self._log_weight, strict=True):
                if len(mixtures) < len(lattice.centre):  # up to here all classes have been alike
                    mixtures = np.repeat(mixtures, len(lattice.centre), axis=0)
                lattice.add_densities((width, values), log_weight, mixtures)
            yield rows, own.partition.columns[present], mixtures[:, present, : rows.stop - rows.start] - log_unit


def _lattices(statistics: Statistics, estimation: Bayes) -> tuple[Lattice, ...]:
    """Free of the class, shared by the classes, and each class's own."""
    if not statistics.moments:
        return ()
    found = []
    for kind, by in (
        (statistics.class_free(), estimation),
        (statistics, replace(estimation, sharing=1.0)),
        (statistics, estimation),
    ):
        (partition,), (moments,) = kind.layout.partitions, kind.moments
        found.append((partition, by.posterior(moments, partition, kind.schema), by))
    absent = np.any([posterior.absent for _, posterior, _ in found], axis=0)  # rounding may see it in one of them only
    return tuple(Lattice(partition, replace(posterior, absent=absent), by) for partition, posterior, by in found)


def _log_sum(log_joint: Floats) -> Floats:
    """ln of the sum over kinds and orders; -inf where there is nothing to sum."""
    greatest = log_joint.max(axis=(0, 2))
    highest = np.where(np.isfinite(greatest), greatest, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = highest + np.log(np.exp(log_joint - highest[:, None]).sum(axis=(0, 2)))
    return total
