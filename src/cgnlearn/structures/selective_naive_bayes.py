"""Selective naive Bayes: the average over all choices of the features that depend on the class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from cgnlearn.data.arrays import Columns, Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Students
from cgnlearn.networks import densities
from cgnlearn.networks.coalitions import Likelihoods, Players, additive
from cgnlearn.networks.estimation import Bayes, Estimation, Posterior, Units, is_number
from cgnlearn.networks.families import Families
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.model import LeaveOneOut
from cgnlearn.networks.moments import COMPILED_PAYS
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values
from cgnlearn.networks.stacked import Stacked
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.learner import Learner, with_evidence

ROWS = 4096  # samples of one task
NEGLIGIBLE = -40.0  # log ratio of two densities below which the smaller one does not change their mixture
CHUNK = 1 << 20  # numbers in one batch of samples


class SelectiveNaiveBayes(Learner):
    """The exact average over the 2^p naive Bayes classifiers in which each feature depends on the class or not.

    Each choice is weighted by its evidence (Dash and Cooper 2004), so that features unrelated to the class hardly
    matter. The average is again a product over the features, each a mixture of two densities, and costs little more
    than naive Bayes. It needs ``estimation="bayes"``, a prior location that is ``"pooled"`` or an array, and sharing
    0 or 1. ``structure_`` is the most probable choice; ``inclusion_probability_`` has the posterior probability that
    each feature depends on the class (0 for a constant one).

    Parameters
    ----------
    inclusion : float from 0 to 1
        Prior probability that a feature depends on the class.

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
        if not is_number(self.inclusion) or not 0 <= self.inclusion <= 1:
            raise ValueError(f"inclusion must be a probability from 0 to 1, not {self.inclusion!r}")
        return Structure.naive_bayes(schema.n_columns).as_families(schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Selection:
        return Selection.of(statistics, with_evidence(estimation, "SelectiveNaiveBayes"), self.inclusion)


@dataclass(frozen=True, eq=False)
class Selection:
    """Naive Bayes in which each feature's density is a mixture of the class's own and one common to all classes."""

    own: Network  # of all features, given the class
    free: Network  # of all features, with all samples as one class
    log_in: Floats  # ln p(the feature depends on the class | training data): (columns,)
    log_out: Floats  # ln p(it does not | training data): (columns,)
    log_evidence: float

    @classmethod
    def of(cls, statistics: Statistics, estimation: Bayes, inclusion: float) -> Selection:
        """Average from statistics of naive Bayes' families."""
        structure = Structure.naive_bayes(statistics.schema.n_columns)
        own = Network.of(structure, statistics, estimation)
        free = Network.of(structure, statistics.class_free(), estimation.class_free)
        evidence, free_evidence = _by_column(own), _by_column(free)
        present = np.isfinite(evidence) & np.isfinite(free_evidence)
        with np.errstate(divide="ignore"):
            joint_in = evidence[present] + np.log(inclusion)
            joint_out = free_evidence[present] + np.log1p(-inclusion)
        both = np.logaddexp(joint_in, joint_out)
        log_evidence = own.log_evidence + float((both - evidence[present]).sum())
        log_in, log_out = np.full(len(present), -np.inf), np.zeros(len(present))  # of constant features
        log_in[present], log_out[present] = joint_in - both, joint_out - both
        return cls(own, free, log_in, log_out, log_evidence)

    @property
    def inclusion_probability(self) -> Floats:
        """Posterior probability that each column depends on the class; 0 for a constant one."""
        return np.exp(self.log_in)

    @property
    def structure(self) -> Structure:
        return Structure.from_parents({int(column): () for column in np.flatnonzero(self.log_in > self.log_out)})

    @property
    def n_parameters(self) -> int:
        return Network.of(self.structure, self.own.statistics, self.own.estimation).n_parameters

    @property
    def class_log_prior(self) -> Floats:
        return self.own.class_log_prior

    def log_likelihood(self, table: Table) -> Floats:
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        uneven = any(posterior.separate for posterior in self.own.posteriors)  # missing values, or a prior by feature
        if table.incomplete or uneven:
            return total + self.contributions(table).sum(axis=1)
        own_densities = self.own.discrete_log_densities(table)
        free_densities = self.free.discrete_log_densities(self._class_free(table))
        for (column, own), (_, free) in zip(own_densities, free_densities, strict=True):
            total += self._mixed(column, own, free)
        if self._students is not None:
            compiled = (1 + table.schema.n_classes) * table.values.size >= COMPILED_PAYS
            (self._add_continuous if compiled else _add_few)(total, table, self._students)
        return total

    @cached_property
    def _stacked(self) -> Stacked:
        return Stacked((self.own,), self.inclusion_probability[None])

    def log_densities(self, table: Table, log_likelihood: Floats | None = None) -> LogDensities:
        return self._stacked.log_densities(table)[0]

    @cached_property
    def _students(self) -> _Students | None:
        """Densities of the continuous features, times their weights; None if there are none."""
        if not self.own.posteriors or self.own.posteriors[0].absent.all():
            return None
        columns = np.flatnonzero(~self.own.posteriors[0].absent)
        free, own = _Students.of(self.free, columns, self.log_out), _Students.of(self.own, columns, self.log_in)
        # In the units of one network; those of the other differ by rounding at most.
        return _Students(*own[:3], *(np.concatenate(parts) for parts in zip(free[3:], own[3:], strict=True)))

    @cached_property
    def _sure(self) -> NDArray[np.bool_]:
        """Which of the continuous features have a negligible common density, wherever a sample lies."""
        assert self._students is not None
        sure: NDArray[np.bool_] = np.all(_greatest_ratio(self._students) < NEGLIGIBLE, axis=0)
        return sure

    def _add_continuous(self, total: Floats, table: Table, students: _Students) -> None:
        from cgnlearn.kernels.compilation import in_threads
        from cgnlearn.kernels.mixtures import WIDTH, add_mixtures

        windows = []
        for start in range(0, len(students.columns), WIDTH):
            window = slice(start, start + WIDTH)
            origin, unit = (part[window] for part in students.units)
            by_density = (students.centre, students.shrink, students.constant)
            centre, shrink, constant = (np.ascontiguousarray(part[:, window]) for part in by_density)
            shared = (self._sure[window], centre, shrink, constant, students.least, students.power)
            windows.append(Students(students.values[window], origin, 1 / unit, *shared))

        def add(start: int) -> None:
            rows = np.arange(start, min(start + ROWS, table.n_samples))
            found = np.zeros((table.schema.n_classes, len(rows)))
            for window in windows:
                add_mixtures(table.values, rows, window, found)
            total[start : start + ROWS] += found.T

        in_threads(add, range(0, table.n_samples, ROWS))

    def contributions(self, table: Table) -> Floats:
        mixtures = np.empty((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        step = max(1, CHUNK // max(1, mixtures[:1].size))
        columns = np.arange(table.schema.n_columns)[:, None]
        for start in range(0, table.n_samples, step):
            part = table.rows(np.arange(start, min(start + step, table.n_samples)))
            own, free = self.own.contributions(part), self.free.contributions(self._class_free(part))
            mixtures[start : start + step] = self._mixed(columns, own, free)
        for column in table.incomplete:
            mixtures[table.missing(column), column] = 0.0
        return mixtures

    def coalitions(self, table: Table, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of features."""
        return additive(self.contributions(table), players)

    def _mixed(self, columns: int | Columns, own: Floats, free: Floats) -> Floats:
        mixed: Floats = np.logaddexp(self.log_in[columns] + own, self.log_out[columns] + free)
        return mixed

    def _class_free(self, table: Table) -> Table:
        """The same samples with one class."""
        return replace(table, schema=self.free.statistics.schema)

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        from cgnlearn.kernels.compilation import in_threads

        # Without a sample, each evidence of a feature is divided by the density of the sample given the others, so the
        # weights of the two densities have a closed form.
        assert table.labels is not None
        total = np.zeros((table.schema.n_classes, table.n_samples)).T
        step = max(1, CHUNK // max(1, table.schema.n_columns * table.schema.n_classes))

        def fill(start: int) -> None:
            part = table.rows(rows := np.arange(start, min(start + step, table.n_samples)))
            class_free = replace(self._class_free(part), labels=np.zeros(len(rows), np.intp))
            own, free = _leave_one_out(self.own, part), _leave_one_out(self.free, class_free)
            log_in, log_out = self.log_in[:, None] - own.log_evidence, self.log_out[:, None] - free.log_evidence
            both = np.logaddexp(log_in, log_out)[:, None]
            mixed = np.logaddexp(log_in[:, None] + own.log_density, log_out[:, None] + free.log_density) - both
            total[rows] = mixed.sum(axis=0).T

        in_threads(fill, range(0, table.n_samples, step))
        return LeaveOneOut(total, self.own.leave_one_out_class_log_prior(table.labels, table.weights))


def _add_few(total: Floats, table: Table, students: _Students) -> None:
    """Add the log densities of the continuous features of few samples."""
    standard = standard_values(table, slice(0, table.n_samples), students.values, students.units)
    white = (standard - students.centre[:, :, None]) * students.shrink[:, :, None]
    leverage = students.least[:, None, None] + np.square(white)
    log_density = students.constant[:, :, None] - students.power[:, None, None] * np.log(leverage)
    total += np.logaddexp(log_density[:1], log_density[1:]).sum(axis=1).T


class _Students(NamedTuple):
    """Student densities of single features as constant - power · ln(least + white²), in standard units."""

    columns: Columns  # of X
    values: Columns  # positions among a table's values
    units: Units
    centre: Floats  # (densities, features): the one of all classes, then each class's
    shrink: Floats  # by which a distance from the centre is multiplied to give ``white``
    constant: Floats
    least: Floats  # (densities,)
    power: Floats

    @classmethod
    def of(cls, network: Network, present: Columns, log_weight: Floats) -> _Students:
        """Densities of the features at these positions in the only partition of a naive Bayes."""
        posterior, partition = network.posteriors[0], network.statistics.layout.partitions[0]
        columns, units = partition.columns[present], Units(*(part[present] for part in posterior.units))
        scale, shape, least = posterior.scale[0][:, present], posterior.shape[0], posterior.least_leverage[0]
        # As `densities.student`, whose leverage of a sample at the centre is `least`.
        own = gammaln(shape + 0.5) - gammaln(shape) + shape * np.log(least) - 0.5 * np.log(np.pi)
        constant = own[:, None] - 0.5 * np.log(scale) + log_weight[columns] - np.log(units.unit)
        centre = posterior.centre[0][:, present]
        return cls(columns, partition.values[present], units, centre, 1 / np.sqrt(scale), constant, least, shape + 0.5)


def _greatest_ratio(students: _Students) -> Floats:
    """Maximum over x of the common log density minus each class's own: (classes, features).

    At the maximum a cubic in the distance from the common centre is 0. The maximum exists because the common density
    has the most samples and so the lightest tails.
    """
    (a, *_), b = students.power, students.power[1:, None]
    k0, k = np.square(students.shrink[0]), np.square(students.shrink[1:])
    least0, least = students.least[0], students.least[1:, None]
    distance = students.centre[0] - students.centre[1:]
    companion = np.zeros((*distance.shape, 3, 3))  # of the cubic, divided by its first coefficient
    companion[..., 1, 0] = companion[..., 2, 1] = 1.0
    cubic = k * k0 * np.maximum(a - b, 1e-12 * a)  # not 0 for equal tails
    companion[..., 0, 0] = k * k0 * distance * (b - 2 * a) / cubic
    companion[..., 0, 1] = (b * k * least0 - a * k0 * (least + k * distance**2)) / cubic
    companion[..., 0, 2] = b * k * least0 * distance / cubic
    at = np.linalg.eigvals(companion).real  # real parts of complex roots do no harm: they are points, too
    common = students.constant[0][:, None] - a * np.log(least0 + k0[:, None] * at**2)
    own = students.constant[1:, :, None] - b[..., None] * np.log(
        least[..., None] + k[..., None] * (at + distance[..., None]) ** 2
    )
    greatest: Floats = (common - own).max(axis=-1)
    # Equal tails: far from the centre the ratio of the two densities is constant.
    far = students.constant[0] - students.constant[1:] - a * np.log(k0) + b * np.log(k)
    return np.where(a - b > 1e-9 * a, greatest, np.maximum(greatest, far))


def _by_column(network: Network) -> Floats:
    """Log evidence of every column's family; nan where it is absent."""
    found = np.full(network.statistics.schema.n_columns, np.nan)
    children, evidence = network.log_evidences()
    found[children] = evidence
    return found


class _LeaveOneOut(NamedTuple):
    """Leave-one-out of training samples, feature by feature; 0 for absent and missing ones."""

    log_density: Floats  # given the other samples: (columns of X, classes, samples)
    log_evidence: Floats  # difference of the feature's log evidences with and without the sample: (columns, samples)


def _leave_one_out(network: Network, table: Table) -> _LeaveOneOut:
    """Leave-one-out of every feature of a naive Bayes with an evidence."""
    assert table.labels is not None
    n, n_classes, n_columns = table.n_samples, table.schema.n_classes, table.schema.n_columns
    found = _LeaveOneOut(np.zeros((n_columns, n_classes, n)), np.zeros((n_columns, n)))
    layout, dirichlet = network.statistics.layout, network.estimation.dirichlet
    weights = np.ones(n) if table.weights is None else table.weights
    for family, cell_counts in zip(layout.discrete, network.statistics.counts, strict=True):
        counts = cell_counts[:, 0]  # without parents there is one cell: (classes, levels)
        seen = np.flatnonzero(table.codes[:, family.code] >= 0)
        labels, code = table.labels[seen], table.codes[seen, family.code]
        log_density = densities.categorical(counts, dirichlet)[:, code]
        held_out = densities.categorical_of_sample(
            weights[seen], counts[labels, code], counts.sum(axis=-1)[labels], counts.shape[-1], dirichlet
        )
        log_density[labels, np.arange(len(seen))], found.log_evidence[family.column, seen] = held_out
        found.log_density[family.column][:, seen] = log_density
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


def _continuous(
    posterior: Posterior, members: Columns, table: Table, places: Columns, estimation: Estimation
) -> _LeaveOneOut:
    """Of samples with the features, their columns being positions in the partition."""
    assert table.labels is not None
    n, n_classes, labels = table.n_samples, table.schema.n_classes, table.labels
    weight = np.ones(n) if table.weights is None else table.weights
    found = _LeaveOneOut(np.empty((len(members), n_classes, n)), np.empty((len(members), n)))
    units = Units(*(part[members] for part in posterior.units))
    standard = standard_values(table, slice(0, n), places, units)  # (features, samples)
    centre, scale = (part[0][:, members, None] for part in (posterior.centre, posterior.scale))
    removal = Removal.of(table, np.arange(n), 0, posterior, estimation)
    log_unit = np.log(units.unit)[:, None]
    # A class without its only sample has the overall mean as its centre.
    gone = standard - np.where(removal.alone, posterior.overall[members, None], centre[labels, :, 0].T)
    for label in range(n_classes):
        own, before, away = labels == label, removal.before[label], standard - centre[label]
        products = (product / scale[label] for product in (gone * gone, gone * away, away * away))
        left, after = removal.leverages(label, *products)
        shape = posterior.shape[0, label] - removal.lighter[label] / 2
        log_det = np.log(scale[label]) + np.log(left)
        log_density = estimation.log_density_of_blocks(np.log(before), np.log(after), log_det, 1, shape)
        found.log_density[:, label] = log_density - log_unit
        of_sample = densities.evidence_of_sample(
            weight[own], posterior.shape[0, label], scale[label], left[:, own], posterior.strength[0, label]
        )
        found.log_evidence[:, own] = of_sample - weight[own] * log_unit
    return found
