"""BandAverage: the average over the number of preceding columns that each column depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.families import Families
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.model import LeaveOneOut, NotExactError
from cgnlearn.networks.network import Network
from cgnlearn.networks.stacked import around
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure, check_order
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.band import discrete_network, every_family, require_complete_order
from cgnlearn.structures.learner import Learner, with_evidence


class BandAverage(Learner):
    """The exact average over bands: over the order of each continuous column and its dependence on the class.

    A column has the j columns before it as parents, j = 0, 1, …, ``k_max`` - 1 where there are that many. Its
    regression on them is separate for each class, shared by the classes except for the intercept (as with
    ``sharing=1``), or the same for all classes. These up to 3 × ``k_max`` regressions are equally probable a priori;
    the predictive density is their mixture, weighted by their posterior probabilities. Discrete columns depend on the
    class alone.

    Needs ``estimation="bayes"``, a prior location that is ``"pooled"`` or an array, and ``sharing=0``.

    Parameters
    ----------
    k_max : int, default=50
        Orders go up to ``k_max - 1``.

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
        check_order(self.k_max, "k_max")
        return every_family(schema, self.k_max)

    def model(self, statistics: Statistics, estimation: Estimation) -> AveragedBand:
        return AveragedBand.of(statistics, estimation, self.k_max)


@dataclass(frozen=True, eq=False)
class AveragedBand:
    """The average over orders and kinds of regression, from three lattices of the same statistics."""

    statistics: Statistics  # of `every_family`
    estimation: Bayes
    k_max: int
    discrete: Network  # of the discrete columns
    lattices: tuple[Lattice, ...]  # free of the class, shared, each class's own; none without continuous columns

    @classmethod
    def of(cls, statistics: Statistics, estimation: Estimation, k_max: int) -> AveragedBand:
        """Average, if the estimation defines an evidence."""
        if estimation.sharing != 0:
            raise ValueError(f"BandAverage averages over sharing: leave sharing at 0, not {estimation.sharing:g}")
        bayes = with_evidence(estimation.even(statistics.schema), "BandAverage")
        require_complete_order(statistics.incomplete, statistics.schema)
        return cls(statistics, bayes, k_max, discrete_network(statistics, bayes), _lattices(statistics, bayes))

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
        """Log evidence of each feature, summed over its orders and kinds: (features,), 0 for absent ones."""
        absent = self.lattices[0].posterior.absent
        return np.where(absent, 0.0, logsumexp(self._log_joint, axis=(0, 2)))

    @cached_property
    def log_weight(self) -> Floats:
        """ln p(order, kind | training data): (kinds, features, orders); -inf for absent features."""
        weight: Floats = self._log_joint - self._log_evidence[:, None]
        return weight

    @cached_property
    def order_probability(self) -> Floats:
        """Probability of every order: (columns of X, k_max).

        Discrete columns have order 0; columns that are constant in the training data have only zeros.
        """
        found = np.zeros((self.statistics.schema.n_columns, self.k_max))
        found[self.statistics.schema.discrete, 0] = 1.0
        for lattice in self.lattices[:1]:
            found[lattice.partition.columns, : lattice.orders] = np.exp(self.log_weight).sum(axis=0)
        return found

    @cached_property
    def inclusion_probability(self) -> Floats:
        """Probability that each column of X depends on the class: 1 for discrete columns, 0 for constant ones."""
        found = np.zeros(self.statistics.schema.n_columns)
        found[self.statistics.schema.discrete] = 1.0
        for lattice in self.lattices[:1]:
            found[lattice.partition.columns] = np.exp(self.log_weight[1:]).sum(axis=(0, 2))
        return found

    # ---- the model

    @cached_property
    def structure(self) -> Structure:
        schema = self.statistics.schema
        nodes = (*schema.discrete, *schema.continuous)
        return Structure.of_preceding(nodes, self.order_probability.argmax(axis=1)[list(nodes)])

    @property
    def n_parameters(self) -> int:
        # Each class has regressions of its own.
        schema = self.statistics.schema
        levels = {column: len(schema.levels_of(column)) for column in schema.discrete}
        return self.structure.n_parameters(schema.n_classes, levels)

    @property
    def class_log_prior(self) -> Floats:
        return self.discrete.class_log_prior

    @property
    def log_evidence(self) -> float:
        return self.discrete.log_evidence + sum(float(self._log_evidence.sum()) for _ in self.lattices[:1])

    def log_likelihood(self, table: Table) -> Floats:
        total = self.discrete.log_likelihood(table)
        for rows, _, found in self._log_densities(table):
            total[rows] += found.sum(axis=1).T
        return total

    @cached_property
    def _heaviest(self) -> Network:
        return Network.of(self.structure, self.statistics, self.estimation)

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        """Those of the most probable structure, around the average."""
        known = self.log_likelihood(table) if log_likelihood is None else log_likelihood
        return around(self._heaviest, table, known)

    def contributions(self, table: Table) -> Floats:
        contributions = self.discrete.contributions(table)
        for rows, columns, found in self._log_densities(table):
            contributions[rows, columns] = found.transpose(2, 1, 0)
        return contributions

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        raise NotExactError("leave-one-out of an average over bands has no closed form: use folds")

    def _log_densities(self, table: Table) -> Iterator[tuple[slice, NDArray[np.intp], Floats]]:
        """Samples and columns of X, and their log mixtures: (classes, columns, samples)."""
        require_complete_order(table.incomplete, table.schema)
        if not self.lattices:
            return
        own = self.lattices[-1]
        present = np.flatnonzero(~own.posterior.absent)
        log_unit = np.log(own.posterior.units.unit[present, None])
        for rows, width, values in own.batches(table):
            mixtures = np.full((1, *values.shape), -np.inf)
            for lattice, log_weight in zip(self.lattices, self.log_weight, strict=True):
                if len(mixtures) < len(lattice.centre):  # so far one density for all classes
                    mixtures = np.repeat(mixtures, len(lattice.centre), axis=0)
                lattice.add_densities((width, values), log_weight, mixtures)
            yield rows, own.partition.columns[present], mixtures[:, present, : rows.stop - rows.start] - log_unit


def _lattices(statistics: Statistics, bayes: Bayes) -> tuple[Lattice, ...]:
    """Lattices free of the class, shared by the classes, and with each class's own regressions."""
    if not statistics.moments:
        return ()
    parts = []
    for kind, estimation in (
        (statistics.class_free(), bayes.class_free),
        (statistics, replace(bayes, sharing=1.0)),
        (statistics, bayes),
    ):
        (partition,), (moments,) = kind.layout.partitions, kind.moments
        parts.append((partition, estimation.posterior(moments, partition, kind.schema), estimation))
    absent = np.any([posterior.absent for _, posterior, _ in parts], axis=0)  # rounding may make it so in one only
    return tuple(Lattice(partition, replace(posterior, absent=absent), used) for partition, posterior, used in parts)
