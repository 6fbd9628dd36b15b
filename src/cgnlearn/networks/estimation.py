"""Estimation of parameters, Bayesian or by maximum likelihood.

An estimation turns moments into the posterior that solvers read, and the terms of a solver into log densities.
Posteriors are in standard units, in which the training data have mean near 0 and variance 1: nothing overflows, and
scaling or shifting a feature changes no probability.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.networks import densities
from cgnlearn.networks.layout import Cells, Pairs, Partition
from cgnlearn.networks.moments import Moments
from cgnlearn.networks.prior import Hyperparameters, Prior
from cgnlearn.networks.statistics import Statistics

LEAST_UNIT = 1e-152  # squares of smaller numbers lose digits


class SampleNotAcceptableError(ValueError):
    """Maximum likelihood parameters do not exist for this sample (Definition 1 of the paper).

    Examples
    --------
    >>> from cgnlearn import CGNClassifier
    >>> try:
    ...     CGNClassifier("complete", estimation="ml").fit([[0, 1], [1, 0], [2, 2], [3, 5]], [0, 0, 1, 1])
    ... except SampleNotAcceptableError as error:
    ...     print(str(error).partition(":")[0])
    maximum likelihood does not exist for column 1 in the cell class 0
    """


class Units(NamedTuple):
    """Origin and unit of each feature of a partition."""

    origin: Floats
    unit: Floats

    @classmethod
    def of(cls, moments: Moments, partition: Partition, schema: Schema) -> Units:
        """The origin of the moments, and the standard deviation over all training data (1 if it is 0)."""
        deviation = np.sqrt(moments.overall()[1])
        # A constant has mean 0 from its origin: others without variance have lost it to underflow.
        lost = (deviation < LEAST_UNIT) & (moments.mean != 0).any(axis=(0, 1))
        for invalid, problem in (
            (~np.isfinite(deviation), "overflow: divide it by a constant"),
            (lost, "underflow: multiply it by a constant"),
        ):
            if invalid.any():
                raise ValueError(f"the squares of {schema.name(partition.columns[np.argmax(invalid)])} {problem}")
        return cls(moments.origin, np.where(moments.constant(), 1.0, deviation))


@dataclass(frozen=True, eq=False)
class Posterior:
    """The normal inverse Wishart of every cell of a partition, on the needed pairs, in standard units.

    Arrays are (configurations, classes), with one axis more for features or pairs where "…" says so. Where blocks are
    counted separately, or the prior's strength differs between them, ``n``, ``strength``, ``shape`` and ``own_n`` have
    the axis of features too.
    """

    pairs: Pairs
    units: Units
    absent: NDArray[np.bool_]  # (features,): excluded, because they are constant
    n: Floats  # weight of the samples behind a regression, those of other classes times the sharing
    centre: Floats  # m': (…, features)
    scale: Floats  # Ψ', or the maximum likelihood covariance: (…, pairs)
    strength: Floats  # κ'; infinite for maximum likelihood
    shape: Floats  # ρ' of a feature without continuous parents, each of which adds a half
    own_n: Floats  # weight of the samples of the class itself
    overall: Floats  # the mean over all samples, at which empty cells are centred: (features,)
    follows_prior: bool  # whether centres lie between the prior's location and the cells' means, or at the latter
    prior: Hyperparameters | None = None  # with a location; none for maximum likelihood
    shift: Floats | None = None  # centre minus the expectation of a child, for "paper": (…, features)
    own_spread: Floats | None = None  # what is added to the spread of a child, for "paper": (…, features)

    @property
    def separate(self) -> bool:
        """Whether blocks have their own weights."""
        return self.n.ndim == self.centre.ndim

    def of_block(self, members: NDArray[np.intp]) -> Posterior:
        """The posterior with the weights of one block that has its own; arrays by feature stay."""
        n, strength, shape, own_n = (part[..., members[0]] for part in (self.n, self.strength, self.shape, self.own_n))
        prior = self.prior
        if prior is not None and prior.separate:
            prior = prior.of_block(int(members[0]))
        return replace(self, n=n, strength=strength, shape=shape, own_n=own_n, prior=prior)

    def of_features(self, places: NDArray[np.intp], pairs: Pairs) -> Posterior:
        """The posterior of some features and pairs."""
        of_cells = ("n", "strength", "shape", "own_n") if self.separate else ()
        by_feature: dict[str, Any] = {
            name: None if (part := getattr(self, name)) is None else part[..., places]
            for name in ("absent", "centre", "overall", "shift", "own_spread", *of_cells)
        }
        return replace(
            self,
            pairs=pairs,
            units=Units(*(part[places] for part in self.units)),
            scale=self.scale[..., self.pairs.place(places[pairs.first], places[pairs.second])],
            prior=None if self.prior is None else self.prior.of_features(places),
            **by_feature,
        )

    @property
    def least_leverage(self) -> Floats:
        """The leverage h of a sample at the centre, in the shape of ``strength``."""
        return 1 + 1 / self.strength


class Terms(NamedTuple):
    """Terms of the log densities of some samples and features under one class."""

    rows: NDArray[np.intp] | slice
    columns: NDArray[np.intp]
    label: int
    residual: Floats  # f: (columns, samples)
    spread: Floats  # F: (columns, 1)
    leverage: Floats | float  # h
    shape: Floats  # ρ': (columns, 1)
    unit: Floats  # (columns, 1)


@dataclass(frozen=True)
class _Estimation:
    """What `Bayes` and `MaximumLikelihood` have in common."""

    prior: Prior = field(default_factory=Prior)  # with maximum likelihood, structures may be compared under it
    sharing: float = 0.0  # the weight of samples of other classes in the regressions of a class
    class_prior: tuple[float, ...] | None = None  # None: learned

    averages: ClassVar[bool]  # over parameters, or takes the most likely ones

    @property
    def dirichlet(self) -> float:
        """Pseudo-count of every level; 0 for maximum likelihood."""
        return self.prior.dirichlet if self.averages else 0.0

    def even(self, schema: Schema) -> Self:
        """The estimation with a prior whose strength and shape do not differ between features."""
        return replace(self, prior=self.prior.even(schema.continuous))

    def class_log_prior(self, statistics: Statistics) -> Floats:
        """Log probabilities of the classes."""
        if self.class_prior is not None:
            return np.log(np.array(self.class_prior))
        return densities.categorical(statistics.classes, self.dirichlet)


@dataclass(frozen=True)
class Bayes(_Estimation):
    """Exact averaging over the parameters, weighted by their posterior."""

    averages: ClassVar[bool] = True

    @property
    def has_evidence(self) -> bool:
        """Whether the marginal likelihood is defined."""
        return self.sharing in (0, 1) and self.prior.is_coherent

    @property
    def class_free(self) -> Bayes:
        """The estimation of samples that are no class's."""
        return replace(self, prior=self.prior.class_free, class_prior=None)

    def log_strength_ratio(self, before: Floats, strength: Floats) -> tuple[Floats, slice]:
        """ln(κ0/κ') of the classes that have their own regressions, and which these are: one if all share them."""
        ratio = np.log((before if before.ndim == strength.ndim - 1 else before[:, None]) / strength)
        if self.sharing == 1:
            return ratio.sum(axis=1, keepdims=True), slice(0, 1)
        return ratio, slice(None)

    def check(self, statistics: Statistics) -> None:
        """Accept any sample."""

    def posterior(self, moments: Moments, partition: Partition, schema: Schema) -> Posterior:
        """The posterior given moments."""
        units = Units.of(moments, partition, schema)
        return self.posterior_in(units, moments, moments.constant(), self._prior_in(units, partition))

    def with_prior_of(self, before: Posterior, moments: Moments) -> Posterior:
        """The posterior given other moments, under the prior of another posterior."""
        assert before.prior is not None
        return self.posterior_in(before.units, moments, before.absent, before.prior)

    def _prior_in(self, units: Units, partition: Partition) -> Hyperparameters:
        """The prior in standard units."""
        return self.prior.hyperparameters(partition, *units).shared(self.sharing)

    def posterior_in(
        self, units: Units, moments: Moments, absent: NDArray[np.bool_], prior: Hyperparameters
    ) -> Posterior:
        """The posterior in given units, from a prior in which m0 is the mean over all samples where it is unknown."""
        standard = moments.standardised(units.unit)
        if prior.separate:
            standard = standard.separated()
        n, mean = standard.n, standard.mean  # (configurations, classes), (…, features)
        overall = standard.overall()[0]
        location = overall[None] if prior.location is None else prior.location
        location = np.where(np.isnan(location), overall, location)  # (classes, features)
        own_strength, own_shape = (
            part[:, None] if standard.separate and not prior.separate else part for part in prior[2:]
        )
        added, centre = standard.scatter, mean
        strength = own_strength + n
        share = own_strength * n / strength
        if self.prior.is_coherent:
            total = standard.by_feature(own_strength) * location + standard.by_feature(n) * mean
            centre = total / standard.by_feature(strength)
            from_location = standard.products(mean - location)
            from_location *= standard.by_pair(share)
            added = np.add(added, from_location, out=from_location)
        scale = _shared(added, self.sharing)
        scale[..., : len(units.unit)] += prior.scale
        shared_n = _shared(n, self.sharing)
        shape = own_shape + shared_n / 2
        posterior = Posterior(
            moments.pairs,
            units,
            absent,
            shared_n,
            centre,
            scale,
            strength,
            shape,
            n,
            overall,
            self.prior.is_coherent,
            prior._replace(location=location),
        )
        if self.prior.location != "paper":
            return posterior
        shift = standard.by_feature(own_strength) * (mean - location) / standard.by_feature(strength)
        own_spread = _shared(standard.by_feature(share) * (mean - location) ** 2, self.sharing)
        return replace(posterior, shift=shift, own_spread=own_spread)

    def log_density(self, terms: Terms) -> Floats:
        """Student densities."""
        return densities.student(terms.residual, terms.spread * terms.leverage, terms.shape) - np.log(terms.unit)

    def log_density_of_blocks(
        self, given: Any, whole: Any, log_det: Any, size: Any, shape: Any, n_blocks: int = 1
    ) -> Floats:
        """Log densities of blocks of ``size`` own members each, in standard units.

        ``given`` and ``whole`` are the logarithms of the leverage before the first own member and after the last,
        summed over the blocks; ``log_det`` is the sum of ln F.
        """
        return densities.multivariate_student(given, whole, log_det, size, shape, n_blocks)


@dataclass(frozen=True)
class MaximumLikelihood(_Estimation):
    """The most likely parameters, where they exist."""

    averages: ClassVar[bool] = False

    def check(self, statistics: Statistics) -> None:
        """Raise an error unless every class, level and cell has samples."""
        schema, layout = statistics.schema, statistics.layout
        if self.class_prior is None and not (statistics.classes > 0).all():
            raise SampleNotAcceptableError(
                f"maximum likelihood needs samples of every class, and there are none of "
                f'{schema.classes[int(np.argmin(statistics.classes))]!r}: add some or use estimation="bayes"'
            )
        for family, counts in zip(layout.discrete, statistics.counts, strict=True):
            if not (counts > 0).all():
                label, configuration, code = np.argwhere(counts == 0)[0].tolist()
                why = f"0 samples have the level {schema.levels_of(family.column)[code]!r}"
                if family.cells.columns:
                    why += f" ({len(family.cells.columns)} discrete parents besides the class)"
                raise not_acceptable(schema, family.column, family.cells, (configuration, label), why, "levels")
        for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
            if not (moments.n > 0).all():
                configuration, label, *feature = np.argwhere(moments.n == 0)[0]
                child = partition.columns[feature[0] if partition.separate else partition.stacks[0].members[0, -1]]
                raise not_acceptable(schema, child, partition.cells, (configuration, label), "0 samples")

    def posterior(self, moments: Moments, partition: Partition, schema: Schema) -> Posterior:
        """The estimates in the form of a posterior; undefined where a cell is empty."""
        units = Units.of(moments, partition, schema)
        standard = moments.standardised(units.unit)
        n = _shared(standard.n, self.sharing)
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = _shared(standard.scatter, self.sharing) / standard.by_pair(n)
        none = np.zeros(partition.n_features, bool)  # a constant is an error, which the solver raises
        strength = np.full(n.shape, np.inf)
        overall = standard.overall()[0]
        return Posterior(
            moments.pairs, units, none, n, standard.mean, scale, strength, n / 2, standard.n, overall, False
        )

    def log_density(self, terms: Terms) -> Floats:
        """Normal densities."""
        return densities.normal(terms.residual, terms.spread) - np.log(terms.unit)

    def log_density_of_blocks(
        self, given: Any, whole: Any, log_det: Any, size: Any, shape: Any, n_blocks: int = 1
    ) -> Floats:
        """Log densities of blocks; ``given`` and ``whole`` are sums of the leverage itself."""
        return densities.multivariate_normal(whole - given, log_det, n_blocks * size)


Estimation = Bayes | MaximumLikelihood


def estimation_of(name: Any, prior: Any, sharing: Any, class_prior: Any, schema: Schema) -> Estimation:
    """The estimation of a classifier's parameters, after checks."""
    estimations: dict[Any, type[Bayes] | type[MaximumLikelihood]] = {"bayes": Bayes, "ml": MaximumLikelihood}
    if not isinstance(name, str) or name not in estimations:
        raise ValueError(f'estimation must be "bayes" or "ml" (in a classifier also "discriminative"), not {name!r}')
    if not is_number(sharing) or not 0 <= sharing <= 1:
        raise ValueError(f"sharing must be a number from 0 to 1, not {sharing!r}")
    if not isinstance(prior, Prior | None):
        raise TypeError(f"prior must be a Prior or None, not {prior!r}")
    prior = (prior or Prior()).resolved(schema)
    return estimations[name](prior, float(sharing), class_prior_of(class_prior, schema.n_classes))


def class_prior_of(given: Any, n_classes: int) -> tuple[float, ...] | None:
    """Probabilities of the classes, after checks; None: learned."""
    if given is None:
        return None
    if isinstance(given, str) and given == "uniform":
        return (1 / n_classes,) * n_classes
    if isinstance(given, str | dict):
        raise ValueError(f'class_prior must be "uniform", None or an array in the order of classes_, not {given!r}')
    try:
        probabilities = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"class_prior must hold numbers, not {given!r}") from None
    if probabilities.shape != (n_classes,):
        raise ValueError(f"class_prior must have one probability for each of the {n_classes} classes")
    if not (probabilities > 0).all() or not np.isclose(probabilities.sum(), 1.0):
        raise ValueError(f"class_prior must be positive and sum to one, not {probabilities.tolist()}")
    return tuple((probabilities / probabilities.sum()).tolist())


def is_number(value: Any) -> bool:
    """Whether a value is a real number and not a bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _shared(own: Floats, sharing: float) -> Floats:
    """Each class plus ``sharing`` times the other classes (axis 1)."""
    if sharing == 0:
        return own.copy()
    if sharing == 1:
        return np.repeat(own.sum(axis=1, keepdims=True), own.shape[1], axis=1)
    shared: Floats = (1 - sharing) * own + sharing * own.sum(axis=1, keepdims=True)
    return shared


def not_acceptable(
    schema: Schema, column: int, cells: Cells, at: Any, why: str, too_many: str = "parents"
) -> SampleNotAcceptableError:
    """The error of a column without maximum likelihood parameters in the cell ``at`` (configuration, class)."""
    codes = np.unravel_index(at[0], cells.levels) if cells.levels else ()
    return SampleNotAcceptableError(
        f"maximum likelihood does not exist for {schema.name(column)} in the cell "
        f"{schema.cell(at[1], cells.columns, codes)}: {why}; "
        f'use estimation="bayes", more samples or fewer {too_many}, or drop the column'
    )


def no_variance(
    schema: Schema, column: int, cells: Cells, at: Any, n: float, n_parents: int
) -> SampleNotAcceptableError:
    """The error of a column whose regression on its parents has residual variance 0."""
    why = f"{n:g} samples, {n_parents} continuous parents, and no residual variance"
    return not_acceptable(schema, column, cells, at, why)
