"""Ideas for more candidates, measured by bench/ablation.py; all but the first are prototypes, for prediction only.

- ``aode``: averaged one-dependence estimators, a candidate of the package that is used where it is named.
- ``density``: a kernel density for each class, in the metric of the pooled within-class covariance, with the kernel of
  a Student distribution; discrete columns as in naive Bayes. Its leave-one-out is exact, covariance included.
- ``clusters``: a mixture of two to four Gaussians for each class, by variational Bayes, on columns after Yeo-Johnson's
  transform; discrete columns as in naive Bayes.
- ``kernel``: logistic regression on a radial kernel between the samples, on standardised columns and indicators.
- ``kernel_within``: the same in the metric of the pooled within-class covariance, which is learned in every fold.
- ``codes``: logistic and ordinal regression on the numbers of the levels too, as if these were in order.
- ``hinges``: logistic regression on pieces of lines with knots at quantiles, as an additive spline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist, pdist
from scipy.special import logsumexp
from sklearn.mixture import BayesianGaussianMixture

from cgnlearn.candidates.aode import AODECandidate
from cgnlearn.candidates.candidate import Candidate, Fitted, frequencies
from cgnlearn.candidates.logistic import LogisticCandidate
from cgnlearn.candidates.ordinal import OrdinalCandidate
from cgnlearn.logistic.design import Design, Features
from cgnlearn.logistic.features import Expansion
from cgnlearn.networks.model import NotExactError

BANDWIDTHS = (0.2, 0.3, 0.45, 0.7, 1.0, 1.5)  # of a density, in within-class deviations
FREEDOM = 3.0  # of its Student kernel
PRIOR = 5.0  # samples that the prior of the within-class covariance is worth: independent columns of variance 1
PSEUDO_COUNT = 0.5  # of a level
FARTHEST = 8.0  # standard deviations
CLUSTERS = ((2, "full"), (3, "full"), (2, "diag"), (4, "diag"))  # components of a class, and their covariance
LEAST_LOG_DENSITY = -1e3
WIDTHS = (1.0, 3.0)  # of a radial kernel, relative to the median squared distance
MOST_VECTORS, MOST_PARAMETERS = 100, 598  # of the Gram matrix; with all contrasts
LEAST_EIGENVALUE = 1e-4  # relative
N_PIECES = 6  # of a curve of lines


def transforms(profile) -> list[str]:
    return [name for name in profile.transforms if not profile.why_no_transform(name)]


@dataclass(frozen=True, eq=False)
class FittedDensity(Fitted):
    """Kernel densities of the classes, at several bandwidths."""

    transform: str
    bandwidths: tuple[float, ...]
    centre: np.ndarray  # of the columns
    unit: np.ndarray
    values: np.ndarray  # of the training samples, in these units
    labels: np.ndarray
    codes: np.ndarray
    counts: tuple[np.ndarray, ...]  # of each discrete column: (classes, levels)
    n_classes: int

    has_density = is_sum = accepts_missing = False

    @classmethod
    def of(cls, table, transform, bandwidths):
        n_classes = table.schema.n_classes
        centre, deviation = table.values.mean(axis=0), table.values.std(axis=0)
        unit = np.where(deviation > 0, deviation, np.inf)
        values = np.clip((table.values - centre) / unit, -FARTHEST, FARTHEST)
        counts = _level_counts(table)
        return cls(transform, bandwidths, centre, unit, values, table.labels, table.codes, counts, n_classes)

    @property
    def n(self):
        return np.bincount(self.labels, minlength=self.n_classes).astype(float)

    def _within(self):
        """Deviations from the class means, the inverse of their scatter with its prior, and the samples behind it."""
        means = np.zeros((self.n_classes, self.values.shape[1]))
        np.add.at(means, self.labels, self.values)
        deviations = self.values - (means / np.maximum(self.n, 1.0)[:, None])[self.labels]
        scatter = deviations.T @ deviations + PRIOR * np.eye(self.values.shape[1])
        return deviations, np.linalg.inv(scatter), len(self.values) - self.n_classes + PRIOR

    def log_likelihood(self, samples):
        table = samples[self.transform]
        values = np.clip((table.values - self.centre) / self.unit, -FARTHEST, FARTHEST)
        _, inverse, behind = self._within()
        factor = np.linalg.cholesky(inverse)
        squares = behind * cdist(values @ factor, self.values @ factor, "sqeuclidean")
        log_levels = _log_levels(self.counts, table, self.n_classes)
        return self._densities(squares, np.tile(self.n, (len(values), 1))) + log_levels

    def leave_one_out(self, samples):
        """The scatter without sample i is Ψ - a e eᵀ with a = n / (n - 1) of its class: one update of each distance."""
        deviations, inverse, behind = self._within()
        own = self.n[self.labels]
        a = np.where(own > 1, own / np.maximum(own - 1, 1.0), 0.0)
        factor = np.linalg.cholesky(inverse)
        squares = cdist(self.values @ factor, self.values @ factor, "sqeuclidean")
        towards = deviations @ inverse
        across = np.einsum("sf,sf->s", towards, self.values)[:, None] - towards @ self.values.T
        rest = 1 - a * np.einsum("sf,sf->s", towards, deviations)
        squares = (behind - 1) * (squares + (a / rest)[:, None] * np.square(across))
        np.fill_diagonal(squares, np.inf)
        every = np.arange(len(self.values))
        n = np.tile(self.n, (len(every), 1))
        n[every, self.labels] -= 1
        log_levels = np.zeros_like(n)
        for counts, codes in zip(self.counts, self.codes.T, strict=True):
            without = np.tile(counts, (len(every), 1, 1))
            without[every, self.labels, codes] -= 1
            log_levels += _log_frequencies(without)[every, :, codes]
        return self._densities(squares, n) + log_levels

    def _densities(self, squares, n):
        """Log densities, up to a constant of each sample: (bandwidths, samples, classes)."""
        found = np.full((len(self.bandwidths), *n.shape), LEAST_LOG_DENSITY)
        for place, bandwidth in enumerate(self.bandwidths):
            log_kernel = -(FREEDOM + self.values.shape[1]) / 2 * np.log1p(squares / (FREEDOM * bandwidth**2))
            for label in np.flatnonzero(self.n):
                total = logsumexp(log_kernel[:, self.labels == label], axis=1)
                found[place, :, label] = np.maximum(total, LEAST_LOG_DENSITY) - np.log(np.maximum(n[:, label], 0.5))
        return found

    def log_densities(self, samples, training):
        raise NotImplementedError

    def contributions(self, samples, setting):
        raise NotImplementedError

    def restricted(self, which):
        return replace(self, bandwidths=tuple(self.bandwidths[i] for i in which))


def _level_counts(table):
    """Samples at each level of each discrete column, by class."""
    counts = []
    for column, codes in zip(table.schema.discrete, table.codes.T, strict=True):
        counts.append(np.zeros((table.schema.n_classes, len(table.schema.levels_of(column)))))
        np.add.at(counts[-1], (table.labels, codes), 1.0)
    return tuple(counts)


def _log_levels(counts, table, n_classes):
    """Log frequencies of the samples' levels, summed over the discrete columns: (samples, classes)."""
    found = np.zeros((table.n_samples, n_classes))
    for own, codes in zip(counts, table.codes.T, strict=True):
        found += _log_frequencies(own)[:, np.maximum(codes, 0)].T * (codes >= 0)[:, None]
    return found


def _log_frequencies(counts):
    total = counts.sum(axis=-1, keepdims=True) + PSEUDO_COUNT * counts.shape[-1]
    return np.log((counts + PSEUDO_COUNT) / total)


@dataclass(frozen=True)
class DensityCandidate(Candidate):
    transform: str

    name = "density"
    has_density = False

    @classmethod
    def suited(cls, profile) -> Iterator[DensityCandidate]:
        if profile.m > 1 and not profile.has_missing:
            yield from map(cls, transforms(profile))

    @property
    def settings(self):
        return [{"candidate": self.name, "transform": self.transform, "bandwidth": each} for each in BANDWIDTHS]

    def fit(self, samples):
        return FittedDensity.of(samples[self.transform], self.transform, BANDWIDTHS)


@dataclass(frozen=True, eq=False)
class FittedClusters(Fitted):
    """A mixture of Gaussians for each class, by variational Bayes; discrete columns as in naive Bayes."""

    transform: str
    centre: np.ndarray
    unit: np.ndarray
    mixtures: tuple[tuple, ...]  # for each setting, that of each class; None for a class of one sample
    counts: tuple[np.ndarray, ...]  # as in `FittedDensity`

    has_density = is_sum = accepts_missing = False

    @classmethod
    def of(cls, table, transform):
        centre, deviation = table.values.mean(axis=0), table.values.std(axis=0)
        unit = np.where(deviation > 0, deviation, np.inf)
        values = np.clip((table.values - centre) / unit, -FARTHEST, FARTHEST)
        of_classes = [values[table.labels == label] for label in range(table.schema.n_classes)]
        within = np.concatenate([own - own.mean(axis=0) for own in of_classes]).var(axis=0) + 1e-3
        mixtures = tuple(
            tuple(_clusters(own, within, *setting) if len(own) > 1 else None for own in of_classes)
            for setting in CLUSTERS
        )
        return cls(transform, centre, unit, mixtures, _level_counts(table))

    def log_likelihood(self, samples):
        table = samples[self.transform]
        values = np.clip((table.values - self.centre) / self.unit, -FARTHEST, FARTHEST)
        found = np.full((len(self.mixtures), len(values), len(self.mixtures[0])), LEAST_LOG_DENSITY)
        for setting, of_classes in enumerate(self.mixtures):
            for label, mixture in enumerate(of_classes):
                if mixture is not None:
                    found[setting, :, label] = np.maximum(mixture.score_samples(values), LEAST_LOG_DENSITY)
        return found + _log_levels(self.counts, table, found.shape[2])

    def leave_one_out(self, samples):
        raise NotExactError("clusters need refits: take folds")

    def log_densities(self, samples, log_likelihood, training):
        raise NotImplementedError

    def contributions(self, samples, setting):
        raise NotImplementedError

    def restricted(self, which):
        return replace(self, mixtures=tuple(self.mixtures[i] for i in which))


def _clusters(values, within, n_components, kind):
    return BayesianGaussianMixture(
        n_components=min(n_components, len(values)),
        covariance_type=kind,
        covariance_prior=within if kind == "diag" else np.diag(within),
        degrees_of_freedom_prior=values.shape[1] + 2.0,
        mean_prior=np.zeros(values.shape[1]),
        mean_precision_prior=0.3,
        random_state=0,
        n_init=2,
    ).fit(values)


@dataclass(frozen=True)
class ClustersCandidate(Candidate):
    transform: str

    name = "clusters"
    has_density = False

    @classmethod
    def suited(cls, profile) -> Iterator[ClustersCandidate]:
        if profile.m > 1 and not profile.has_missing:
            yield cls(transforms(profile)[-1])

    @property
    def settings(self):
        common = {"candidate": self.name, "transform": self.transform}
        return [{**common, "components": n, "covariance": kind} for n, kind in CLUSTERS]

    def fit(self, samples):
        return FittedClusters.of(samples[self.transform], self.transform)


class Radial:
    """The leading coordinates of the samples in the space of a radial kernel, as features of a regression."""

    terms = "kernel"

    def __init__(self, table, width, *, within):
        self.columns, self.metric = Expansion.of(table, "linear"), None
        self.mean = np.nanmean(self.columns(table).values, axis=0)
        if within:
            self.metric = self._metric(table)
        self.points = self._points(table)
        self.width = width * max(np.median(pdist(self.points, "sqeuclidean")), np.finfo(float).tiny)
        values, vectors = np.linalg.eigh(self._kernel(self.points))
        most = min(MOST_VECTORS, max(5, MOST_PARAMETERS // (table.schema.n_classes - 1) - 1))
        kept = np.argsort(-values)[:most]
        kept = kept[values[kept] > LEAST_EIGENVALUE * values[-1]]
        self.basis = vectors[:, kept] / np.sqrt(values[kept])

    def _metric(self, table):
        points, labels = self._points(table), table.labels
        variances = np.maximum(points.var(axis=0), 1e-3)
        means = np.zeros((table.schema.n_classes, points.shape[1]))
        np.add.at(means, labels, points)
        points -= (means / np.maximum(np.bincount(labels, minlength=len(means)), 1)[:, None])[labels]
        p = points.shape[1]
        return np.linalg.cholesky(np.linalg.inv((points.T @ points + p * np.diag(variances)) / (len(points) + p)))

    def _points(self, table):
        values = self.columns(table).values - self.mean
        values[np.isnan(values)] = 0.0
        values = np.clip(values, -FARTHEST, FARTHEST)
        return values if self.metric is None else values @ self.metric

    def _kernel(self, points):
        return np.exp(-cdist(points, self.points, "sqeuclidean") / self.width)

    def __call__(self, table):
        found = self._kernel(self._points(table)) @ self.basis
        return Features(np.zeros(found.shape[1], np.intp), found)

    def log_odds(self, odds, table):
        return odds.log_odds(self, table)


@dataclass(frozen=True)
class KernelCandidate(LogisticCandidate):
    width: float = 1.0
    within: bool = False

    member = "kernel"
    gain = 0.05

    def _design(self, table):
        features = Radial(table, self.width, within=self.within)
        return features, Design.of(features(table).values, table, frequencies(table, self.dirichlet))

    def leave_one_out(self, samples, class_log_prior):
        if self.within:
            raise NotExactError("the metric is learned from the classes: take folds")
        return super().leave_one_out(samples, class_log_prior)


class Pieces(Expansion):
    """Columns, and what they exceed each of their knots by."""

    def __call__(self, table):
        continuous = np.array(table.schema.continuous, np.intp)
        clipped = np.clip(self._standard(table), self.least, self.most)
        parts = [Expansion(self.terms, self.mean, self.deviation, self.least, self.most, None)(table)]
        for column, values, knots in zip(continuous, clipped.T, self.edges, strict=True):
            parts.append(Features(np.full(len(knots), column), np.maximum(values[:, None] - knots, 0.0)))
        return Features.joined(parts, table.n_samples)

    def log_odds(self, odds, table):
        return odds.log_odds(self, table)


@dataclass(frozen=True)
class HingesCandidate(LogisticCandidate):
    member = "hinges"
    gain = 0.05

    def _design(self, table):
        plain = Expansion.of(table, "linear")
        inner = np.linspace(0, 1, N_PIECES + 1)[1:-1]
        knots = tuple(np.unique(np.nanquantile(values, inner)) for values in plain._standard(table).T)
        curves = Pieces(plain.terms, plain.mean, plain.deviation, plain.least, plain.most, knots)
        return curves, Design.of(curves(table).values, table, frequencies(table, self.dirichlet))


class Coded(Expansion):
    """Columns, an indicator for every level, and the number of the level, in units of levels drawn evenly."""

    def __call__(self, table):
        parts = [super().__call__(table)]
        for column, codes in zip(table.schema.discrete, table.codes.T, strict=True):
            n = len(table.schema.levels_of(column))
            numbers = (codes - (n - 1) / 2) / np.sqrt((n * n - 1) / 12)
            parts.append(Features(np.array([column]), np.where(codes < 0, np.nan, numbers)[:, None]))
        return Features.joined(parts, table.n_samples)

    def log_odds(self, odds, table):
        return odds.log_odds(self, table)


class _Coded:
    @property
    def member(self):
        return f"codes, {self.name}"

    def _design(self, table):
        coded = Coded.of(table, "linear")
        return coded, Design.of(coded(table).values, table, frequencies(table, self.dirichlet))


@dataclass(frozen=True)
class CodedLogistic(_Coded, LogisticCandidate):
    """Regression on the numbers of levels too."""


@dataclass(frozen=True)
class CodedOrdinal(_Coded, OrdinalCandidate):
    """The same, of one score."""


def _coded(profile):
    if all(len(profile.schema.levels_of(column)) < 3 for column in profile.schema.discrete):
        return []
    kinds = (CodedLogistic, CodedOrdinal) if profile.schema.n_classes > 2 else (CodedLogistic,)
    return [kind(name, "linear", profile.prior.dirichlet) for kind in kinds for name in transforms(profile)]


def _kernels(within):
    def suited(profile):
        chosen = transforms(profile)[-1]
        return [KernelCandidate(chosen, "kernel", profile.prior.dirichlet, None, width, within) for width in WIDTHS]

    return suited


IDEAS = {
    "aode": AODECandidate.suited,
    "density": DensityCandidate.suited,
    "kernel": _kernels(False),
    "kernel_within": _kernels(True),
    "codes": _coded,
    "clusters": ClustersCandidate.suited,
    "hinges": lambda profile: [HingesCandidate("none", "hinges", profile.prior.dirichlet)] if profile.m else [],
}
