"""Selective naive Bayes: the average over all choices of the features that depend on the class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Students
from cgnlearn.networks.estimation import Bayes, Estimation, Units, is_number
from cgnlearn.networks.families import Families
from cgnlearn.networks.model import LeaveOneOut
from cgnlearn.networks.moments import COMPILED_PAYS
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.learner import Learner, with_evidence
from cgnlearn.structures.single import left_out_singly

ROWS = 4096  # of one piece of work
NO_DOUBT = -40.0  # nats by which one density is nothing beside another
CHUNK = 1 << 20  # numbers of one chunk of samples


class SelectiveNaiveBayes(Learner):
    """The exact average over the 2^p naive Bayes classifiers in which each feature depends on the class or not.

    Each choice counts by its evidence (Dash and Cooper 2004), so that columns that say nothing of the class hardly
    speak. The average is again a product over the features, each a mixture of two densities, and costs little more
    than naive Bayes. It needs ``estimation="bayes"``, a prior location that is ``"pooled"`` or an array, and sharing
    0 or 1. ``structure_`` is the most probable choice; ``inclusion_probability_`` how probable it is, after the data,
    that each feature depends on the class (0 for one that is constant).

    Parameters
    ----------
    inclusion : float from 0 to 1
        How probable it is beforehand that a feature depends on the class.

    Examples
    --------
    >>> import numpy as np
    >>> from cgnlearn import CGNClassifier, SelectiveNaiveBayes
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = np.column_stack([y + rng.normal(size=200), rng.normal(size=200)])
    >>> CGNClassifier(SelectiveNaiveBayes()).fit(X, y).inclusion_probability_.round(2)
    array([1.  , 0.03])
    """

    def __init__(self, inclusion: float = 0.5) -> None:
        self.inclusion = inclusion

    def families(self, schema: Schema) -> Families:
        """What has to be counted."""
        if not is_number(self.inclusion) or not 0 <= self.inclusion <= 1:
            raise ValueError(f"inclusion must be a probability from 0 to 1, not {self.inclusion!r}")
        return Structure.naive_bayes(schema.n_columns).as_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Selection:
        """The average."""
        return Selection.of(statistics, with_evidence(estimation, "SelectiveNaiveBayes"), self.inclusion)


@dataclass(frozen=True, eq=False)
class Selection:
    """A naive Bayes in which each feature's density is a mixture of its own in the class and the same in all.

    Parameters
    ----------
    own, free : Network
        Of all features: with the classes apart, and with all samples as one class.
    log_in, log_out : ndarray (columns,)
        Log probabilities, after the data, that each feature depends on the class, or does not.
    log_evidence : float
    """

    own: Network
    free: Network
    log_in: Floats
    log_out: Floats
    log_evidence: float

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes, inclusion: float) -> Selection:
        """From statistics of naive Bayes' families."""
        everything = Structure.naive_bayes(statistics.schema.n_columns)
        own = Network.of(everything, statistics, estimation)
        free = Network.of(everything, statistics.class_free(), replace(estimation, class_prior=None))
        given, unaware = _by_column(own), _by_column(free)
        there = np.isfinite(given) & np.isfinite(unaware)
        with np.errstate(divide="ignore"):
            log_prior = np.log(inclusion), np.log1p(-inclusion)
        given_and_in, unaware_and_out = given[there] + log_prior[0], unaware[there] + log_prior[1]
        both = np.logaddexp(given_and_in, unaware_and_out)
        log_evidence = own.log_evidence + float((both - given[there]).sum())
        log_in, log_out = np.full(len(there), -np.inf), np.zeros(len(there))  # of what is constant
        log_in[there], log_out[there] = given_and_in - both, unaware_and_out - both
        return cls(own, free, log_in, log_out, log_evidence)

    @property
    def inclusion_probability(self) -> Floats:
        """How probable it is that each column depends on the class; 0 for one that is constant."""
        return np.exp(self.log_in)

    @property
    def structure(self) -> Structure:
        """The most probable choice: naive Bayes over the features that rather depend on the class."""
        return Structure.from_parents({int(column): () for column in np.flatnonzero(self.log_in > self.log_out)})

    @property
    def n_parameters(self) -> int:
        """Free parameters of the most probable choice, the class's own included."""
        return Network.of(self.structure, self.own.statistics, self.own.estimation).n_parameters

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a sample."""
        return self.own.class_log_prior

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every sample and class."""
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        n_densities = (1 + table.schema.n_classes) * table.values.size
        if n_densities < COMPILED_PAYS or table.incomplete or self.own.statistics.incomplete:
            return total + self.contributions(table).sum(axis=1)
        discrete = zip(
            self.own.discrete_log_densities(table), self.free.discrete_log_densities(self._unaware(table)), strict=True
        )
        for (column, own), (_, free) in discrete:
            total += self._mixed(column, own, free)
        if self._students is not None:
            self._add_continuous(total, table, self._students)
        return total

    @cached_property
    def _students(self) -> _Students | None:
        """The densities of the continuous features, weights included; None if there is none."""
        if not self.own.posteriors or self.own.posteriors[0].absent.all():
            return None
        columns = np.flatnonzero(~self.own.posteriors[0].absent)
        free, own = _Students.of(self.free, columns, self.log_out), _Students.of(self.own, columns, self.log_in)
        # In the units of one of them, from which the other's differ by rounding at most.
        return _Students(*own[:3], *(np.concatenate(parts) for parts in zip(free[3:], own[3:], strict=True)))

    @cached_property
    def _sure(self) -> NDArray[np.bool_]:
        """Which of the students depend on the class beyond doubt, wherever a sample lies."""
        assert self._students is not None
        sure: NDArray[np.bool_] = np.all(_greatest_ratio(self._students) < NO_DOUBT, axis=0)
        return sure

    def _add_continuous(self, total: Floats, table: Table, students: _Students) -> None:
        from cgnlearn.kernels.compilation import in_threads
        from cgnlearn.kernels.mixtures import WIDTH, add_mixtures

        def of_window(part: Floats, window: slice) -> Floats:
            return np.ascontiguousarray(part[:, window])

        windows = [
            Students(
                students.values[window],
                students.units.origin[window],
                1 / students.units.unit[window],
                self._sure[window],
                of_window(students.centre, window),
                of_window(students.shrink, window),
                of_window(students.constant, window),
                students.least,
                students.power,
            )
            for window in (slice(start, start + WIDTH) for start in range(0, len(students.columns), WIDTH))
        ]

        def add(start: int) -> None:
            rows = np.arange(start, min(start + ROWS, table.n_samples))
            found = np.zeros((table.schema.n_classes, len(rows)))
            for window in windows:
                add_mixtures(table.values, rows, window, found)
            total[start : start + ROWS] += found.T

        in_threads(add, range(0, table.n_samples, ROWS))

    def contributions(self, table: Table) -> Floats:
        """The logarithm of each feature's mixture: (samples, columns of X, classes); 0 for one that is absent."""
        apart = np.empty((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        step = max(1, CHUNK // max(1, apart[:1].size))
        every = np.arange(table.schema.n_columns)
        for start in range(0, table.n_samples, step):
            part = table.rows(np.arange(start, min(start + step, table.n_samples)))
            own, free = self.own.contributions(part), self.free.contributions(self._unaware(part))
            apart[start : start + step] = self._mixed(every[:, None], own, free)
        for column in table.incomplete:
            apart[table.missing(column), column] = 0.0
        return apart

    def _mixed(self, columns: int | NDArray[np.intp], own: Floats, free: Floats) -> Floats:
        mixed: Floats = np.logaddexp(self.log_in[columns] + own, self.log_out[columns] + free)
        return mixed

    def _unaware(self, table: Table) -> Table:
        """The same samples, as if there were one class."""
        return replace(table, schema=self.free.statistics.schema)

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        """The training samples again, each seen by the average without it.

        Without a sample a feature's evidence is divided by what the others say of the sample: in its own class, or
        whatever its class. So the weights of the two densities follow the sample, and no choice is made anew.
        """
        assert table.labels is not None
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        step = max(1, CHUNK // max(1, table.schema.n_columns * table.schema.n_classes))
        for start in range(0, table.n_samples, step):
            part = table.rows(rows := np.arange(start, min(start + step, table.n_samples)))
            unaware = replace(self._unaware(part), labels=np.zeros(len(rows), np.intp))
            own, free = left_out_singly(self.own, part), left_out_singly(self.free, unaware)
            log_in, log_out = self.log_in[:, None] - own.log_evidence, self.log_out[:, None] - free.log_evidence
            both = np.logaddexp(log_in, log_out)[:, None]
            mixed = np.logaddexp(log_in[:, None] + own.log_density, log_out[:, None] + free.log_density) - both
            total[rows] = mixed.sum(axis=0).T
        return LeaveOneOut(total, self.own.leave_one_out_class_log_prior(table.labels, table.weights))


class _Students(NamedTuple):
    """Student densities of single features as constant - power · ln(least + white²), in standard units."""

    columns: NDArray[np.intp]  # X's
    values: NDArray[np.intp]  # the table's
    units: Units
    centre: Floats  # (densities, features): the one of all classes, then each class's
    shrink: Floats  # by which a distance from the centre is multiplied to give ``white``
    constant: Floats
    least: Floats  # (densities,)
    power: Floats

    @classmethod
    def of(cls, network: Network, present: NDArray[np.intp], log_weight: Floats) -> _Students:
        """Of the features at these positions in the one partition of a naive Bayes."""
        posterior, partition = network.posteriors[0], network.statistics.layout.partitions[0]
        columns, units = partition.columns[present], Units(*(part[present] for part in posterior.units))
        scale, shape, least = posterior.scale[0][:, present], posterior.shape[0], posterior.least_leverage[0]
        # That is `densities.student`, whose leverage of a sample at the centre is `least`.
        own = gammaln(shape + 0.5) - gammaln(shape) + shape * np.log(least) - 0.5 * np.log(np.pi)
        constant = own[:, None] - 0.5 * np.log(scale) + log_weight[columns] - np.log(units.unit)
        centre = posterior.centre[0][:, present]
        return cls(columns, partition.values[present], units, centre, 1 / np.sqrt(scale), constant, least, shape + 0.5)


def _greatest_ratio(students: _Students) -> Floats:
    """How far, at most, the log density of all classes rises above each class's own: (classes, features).

    Where it has its maximum, the derivative is a cubic in the distance from the common centre. There are such maxima
    because more samples stand behind the common density than behind any other: its tails are the lightest.
    """
    (a, *_), b = students.power, students.power[1:, None]
    k0, k = np.square(students.shrink[0]), np.square(students.shrink[1:])
    least0, least = students.least[0], students.least[1:, None]
    apart = students.centre[0] - students.centre[1:]
    tail = np.maximum(a - b, 1e-12 * a)  # not quite 0, which would be no cubic
    cubic = np.stack(
        [
            -k * k0 * tail,
            k * k0 * apart * (b - 2 * a),
            b * k * least0 - a * k0 * (least + k * apart**2),
            b * k * least0 * apart,
        ],
        axis=-1,
    )
    companion = np.zeros((*apart.shape, 3, 3))
    companion[..., 1, 0] = companion[..., 2, 1] = 1.0
    companion[..., 0, :] = -cubic[..., 1:] / cubic[..., :1]
    at = np.linalg.eigvals(companion).real  # the real parts of complex roots are points like any other
    common = students.constant[0][:, None] - a * np.log(least0 + k0[:, None] * at**2)
    own = students.constant[1:, :, None] - b[..., None] * np.log(
        least[..., None] + k[..., None] * (at + apart[..., None]) ** 2
    )
    greatest: Floats = (common - own).max(axis=-1)
    # Equal tails: far out the two densities keep their ratio.
    far = students.constant[0] - students.constant[1:] - a * np.log(k0) + b * np.log(k)
    return np.where(a - b > 1e-9 * a, greatest, np.maximum(greatest, far))


def _by_column(network: Network) -> Floats:
    """The log evidence of every column's family; nan where it is absent."""
    found = np.full(network.statistics.schema.n_columns, np.nan)
    for family, evidence in network.family_log_evidences():
        found[family.child] = evidence
    return found
