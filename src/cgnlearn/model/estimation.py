"""How parameters are estimated: one value, made when a model is fitted and kept with it.

An estimation turns moments into the posterior that solvers read, and a solver's terms into log densities. Posteriors
are in standard units, in which the training data lie near 0 and have variance 1: nothing then overflows, and scaling or
shifting an attribute changes no probability.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model import densities
from cgnlearn.model.densities import Floats
from cgnlearn.model.layout import Cells, DiscreteFamily, Pairs, Partition
from cgnlearn.model.moments import Moments
from cgnlearn.model.prior import Prior
from cgnlearn.model.schema import Schema
from cgnlearn.model.statistics import Statistics

LEAST_UNIT = 1e-152  # squares of anything smaller lose their digits


class SampleNotAcceptable(ValueError):
    """Maximum likelihood parameters do not exist for this sample (Definition 1 of the paper).

    Examples
    --------
    >>> from cgnlearn import CGNClassifier
    >>> try:
    ...     CGNClassifier("complete", parameters="ml").fit([[0, 1], [1, 0], [2, 2], [3, 5]], [0, 0, 1, 1])
    ... except SampleNotAcceptable as error:
    ...     print(str(error).partition(":")[0])
    maximum likelihood does not exist for column 1 in the cell class 0
    """


class Units(NamedTuple):
    """Where each attribute of a partition has its zero and how long its unit is."""

    origin: Floats
    unit: Floats

    @classmethod
    def of(cls, moments: Moments, partition: Partition, schema: Schema) -> Units:
        """Standard units: a data point and the standard deviation over all training data (1 if that is 0)."""
        deviation = np.sqrt(moments.overall()[1])
        # A constant lies at its origin: what does not, and has no variance, has lost it to rounding towards 0.
        lost = (deviation < LEAST_UNIT) & (moments.mean != 0).any(axis=(0, 1))
        for wrong, words in (
            (~np.isfinite(deviation), "overflow: divide it by a constant"),
            (lost, "are too small to be told from 0: multiply it by a constant"),
        ):
            if wrong.any():
                raise ValueError(f"the squares of {schema.name(partition.columns[np.argmax(wrong)])} {words}")
        unit = np.where(moments.constant(), 1.0, deviation)
        return cls(moments.origin, unit)


@dataclass(frozen=True, eq=False)
class Posterior:
    """The normal inverse Wishart of every cell of a partition, on the needed pairs, in standard units.

    Parameters
    ----------
    pairs : Pairs
    units : Units
    absent : ndarray of bool (attributes,)
        Attributes that are left out, because they are constant and so say nothing of the class.
    n : ndarray (configurations, classes)
        Rows that speak of the regression, those of other classes counted as far as they share it. This, ``strength``,
        ``shape`` and ``own_n`` have an axis of attributes more where blocks lie apart.
    centre : ndarray (…, attributes)
        Where the attributes are centred, m'.
    scale : ndarray (…, pairs)
        Ψ'; for maximum likelihood the scatter divided by the rows.
    strength : ndarray (configurations, classes)
        κ'; infinite for maximum likelihood.
    shape : ndarray (configurations, classes)
        ρ' of an attribute without continuous parents, each of which adds a half.
    own_n : ndarray (configurations, classes)
        The classes' own rows.
    overall : ndarray (attributes,)
        The mean over all rows, where a cell without rows is centred.
    follows_prior : bool
        Whether the centres lie between the prior's location and the cells' means, or at these alone.
    shift : ndarray (…, attributes) or None
        How far the centre lies above the expectation of the attribute as a child (``"paper"`` only).
    own_spread : ndarray (…, attributes) or None
        What the attribute's spread gains when it is the child (``"paper"`` only).
    """

    pairs: Pairs
    units: Units
    absent: NDArray[np.bool_]
    n: Floats
    centre: Floats
    scale: Floats
    strength: Floats
    shape: Floats
    own_n: Floats
    overall: Floats
    follows_prior: bool
    shift: Floats | None = None
    own_spread: Floats | None = None

    @property
    def apart(self) -> bool:
        """Whether blocks lie apart."""
        return self.n.ndim == self.centre.ndim

    def of_block(self, members: NDArray[np.intp]) -> Posterior:
        """The posterior that one of the blocks that lie apart has for itself; what stands by attribute stays."""
        n, strength, shape, own_n = (part[..., members[0]] for part in (self.n, self.strength, self.shape, self.own_n))
        return replace(self, n=n, strength=strength, shape=shape, own_n=own_n)

    @property
    def least_leverage(self) -> Floats:
        """The leverage h of a row at the centre, in the shape of ``strength``."""
        return 1 + 1 / self.strength


class Terms(NamedTuple):
    """What the log densities of some rows, for some attributes, under one class are made of."""

    rows: NDArray[np.intp] | slice
    columns: NDArray[np.intp]
    label: int
    residual: Floats  # f: (columns, rows)
    spread: Floats  # F: (columns, 1)
    leverage: Floats | float  # h
    shape: Floats  # ρ': (columns, 1)
    unit: Floats  # (columns, 1)


@dataclass(frozen=True)
class _Estimation:
    """What `Bayes` and `MaximumLikelihood` have in common.

    Parameters
    ----------
    prior : Prior
        Whatever the parameters are estimated by, structures may be compared under it.
    sharing : float
        How much the rows of the other classes count in a class's regressions.
    class_prior : tuple of float or None
        Probabilities of the classes; None learns them.
    """

    prior: Prior = field(default_factory=Prior)
    sharing: float = 0.0
    class_prior: tuple[float, ...] | None = None

    averages: ClassVar[bool]  # over parameters, or takes the likeliest

    @property
    def dirichlet(self) -> float:
        """The weight of every level before any row is seen; without one, frequencies are what they are."""
        return self.prior.dirichlet if self.averages else 0.0

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

    def log_strength_ratio(self, strength: Floats) -> tuple[Floats, slice]:
        """ln(κ0/κ') of the classes whose regressions count apart, and which these are: one if all share it."""
        ratio = np.log(self.prior.strength / strength)
        if self.sharing == 1:
            return ratio.sum(axis=1, keepdims=True), slice(0, 1)
        return ratio, slice(None)

    def check(self, statistics: Statistics) -> None:
        """Anything will do."""

    def posterior(self, moments: Moments, partition: Partition, schema: Schema) -> Posterior:
        """The prior, and what the rows add to it."""
        prior, columns = self.prior, partition.columns
        units = Units.of(moments, partition, schema)
        location = None
        if not isinstance(prior.location, str):
            location = (np.array(prior.location)[columns] - units.origin) / units.unit
        scale = prior.standard_scale(columns, units.unit)
        return self.posterior_in(units, moments, moments.constant(), location, scale)

    def posterior_in(
        self, units: Units, moments: Moments, absent: NDArray[np.bool_], location: Floats | None, prior_scale: Any
    ) -> Posterior:
        """The same in units of one's own, from a location that is given (None: as the prior says) and Ψ0."""
        prior = self.prior
        standard = moments.standardised(units.unit)
        n, mean = standard.n, standard.mean  # (configurations, classes), (…, attributes)
        strength = prior.strength + n
        share = prior.strength * n / strength
        added = standard.scatter
        shift = own_spread = None
        overall = standard.overall()[0]
        if location is None:
            location = overall
        if prior.is_coherent:
            centre = (prior.strength * location + standard.by_attribute(n) * mean) / standard.by_attribute(strength)
            from_location = standard.products(mean - location)
            from_location *= standard.by_pair(share)
            added = np.add(added, from_location, out=from_location)
        else:
            centre = mean
            if prior.location == "paper":
                shift = prior.strength * (mean - location) / standard.by_attribute(strength)
                own_spread = _shared(standard.by_attribute(share) * (mean - location) ** 2, self.sharing)
        scale = _shared(added, self.sharing)
        scale[..., : len(units.unit)] += prior_scale
        behind = _shared(n, self.sharing)
        return Posterior(
            moments.pairs, units, absent, behind, centre, scale, strength, prior.shape + behind / 2,
            n, overall, prior.is_coherent, shift, own_spread,
        )  # fmt: skip

    def with_prior_of(self, before: Posterior, moments: Moments, partition: Partition) -> Posterior:
        """The posterior of other rows, under the prior that those of another posterior gave."""
        location = before.overall
        if not isinstance(self.prior.location, str):
            location = (np.array(self.prior.location)[partition.columns] - before.units.origin) / before.units.unit
        scale = self.prior.standard_scale(partition.columns, before.units.unit)
        return self.posterior_in(before.units, moments, before.absent, location, scale)

    def log_density(self, terms: Terms) -> Floats:
        """Student's."""
        return densities.student(terms.residual, terms.spread * terms.leverage, terms.shape) - np.log(terms.unit)

    def log_density_of_blocks(
        self, given: Any, whole: Any, log_det: Any, size: Any, shape: Any, n_blocks: int = 1
    ) -> Floats:
        """Of blocks of ``size`` own members each, at once and in standard units.

        ``given`` and ``whole`` are the logarithms of the leverage before the first own member and after the last,
        summed over the blocks; ``log_det`` is the sum of ln F.
        """
        return densities.multivariate_student(given, whole, log_det, size, shape, n_blocks)


@dataclass(frozen=True)
class MaximumLikelihood(_Estimation):
    """The likeliest parameters, where there are such."""

    averages: ClassVar[bool] = False

    def check(self, statistics: Statistics) -> None:
        """Every class, level and cell needs rows."""
        schema, layout = statistics.schema, statistics.layout
        if self.class_prior is None and not (statistics.classes > 0).all():
            raise SampleNotAcceptable(
                f"maximum likelihood needs rows of every class, and there are none of "
                f'{schema.classes[int(np.argmin(statistics.classes))]!r}: add some or use parameters="bayes"'
            )
        for family, counts in zip(layout.discrete, statistics.counts, strict=True):
            if not (counts > 0).all():
                raise _empty_level(schema, family, counts)
        for partition, moments in zip(layout.partitions, statistics.moments, strict=True):
            if not (moments.n > 0).all():
                configuration, label, *attribute = np.argwhere(moments.n == 0)[0]
                child = partition.columns[attribute[0] if partition.apart else partition.stacks[0].members[0, -1]]
                raise not_acceptable(schema, child, partition.cells, (configuration, label), "0 rows")

    def posterior(self, moments: Moments, partition: Partition, schema: Schema) -> Posterior:
        """The point that a posterior shrinks to with ever more data; undefined where a cell is empty."""
        units = Units.of(moments, partition, schema)
        standard = moments.standardised(units.unit)
        n = _shared(standard.n, self.sharing)
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = _shared(standard.scatter, self.sharing) / standard.by_pair(n)
        none = np.zeros(partition.n_attributes, bool)  # a constant is an error, which the solver finds
        strength = np.full(n.shape, np.inf)
        overall = standard.overall()[0]
        return Posterior(
            moments.pairs, units, none, n, standard.mean, scale, strength, n / 2, standard.n, overall, False
        )

    def log_density(self, terms: Terms) -> Floats:
        """Gauss's."""
        return densities.normal(terms.residual, terms.spread) - np.log(terms.unit)

    def log_density_of_blocks(
        self, given: Any, whole: Any, log_det: Any, size: Any, shape: Any, n_blocks: int = 1
    ) -> Floats:
        """The same, where ``given`` and ``whole`` are sums of the leverage itself."""
        return densities.multivariate_normal(whole - given, log_det, n_blocks * size)


Estimation = Bayes | MaximumLikelihood


def estimation_of(parameters: Any, prior: Any, sharing: Any, class_prior: Any, schema: Schema) -> Estimation:
    """The value that a user's parameters stand for; refuses what cannot be meant."""
    ways: dict[Any, type[Bayes] | type[MaximumLikelihood]] = {"bayes": Bayes, "ml": MaximumLikelihood}
    if not isinstance(parameters, str) or parameters not in ways:
        raise ValueError(
            f'parameters must be "bayes" or "ml" (in a classifier also "discriminative"), not {parameters!r}'
        )
    if not is_number(sharing) or not 0 <= sharing <= 1:
        raise ValueError(f"sharing must be a number from 0 to 1, not {sharing!r}")
    if not isinstance(prior, Prior | None):
        raise TypeError(f"prior must be a Prior or None, not {prior!r}")
    prior = prior or Prior()
    prior.check_attributes(schema.n_columns)
    return ways[parameters](prior, float(sharing), class_prior_of(class_prior, schema.n_classes))


def class_prior_of(given: Any, n_classes: int) -> tuple[float, ...] | None:
    """Probabilities of the classes from what a user gave; None stays None and learns them."""
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
    """Whether it is a real number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _shared(own: Floats, sharing: float) -> Floats:
    """Each class's own part plus ``sharing`` times those of the other classes (axis 1)."""
    if sharing == 0:
        return own.copy()
    if sharing == 1:
        return np.repeat(own.sum(axis=1, keepdims=True), own.shape[1], axis=1)
    shared: Floats = (1 - sharing) * own + sharing * own.sum(axis=1, keepdims=True)
    return shared


# ---- words for the cells at which maximum likelihood breaks down


def not_acceptable(schema: Schema, column: int, cells: Cells, at: Any, why: str) -> SampleNotAcceptable:
    """An attribute without maximum likelihood parameters in the cell ``at`` (configuration, class)."""
    return SampleNotAcceptable(
        f"maximum likelihood does not exist for {schema.name(column)} in the cell {_cell(schema, cells, at)}: {why}; "
        'use parameters="bayes", more rows or fewer parents, or drop the column'
    )


def _empty_level(schema: Schema, family: DiscreteFamily, counts: Floats) -> SampleNotAcceptable:
    label, configuration, code = (int(i) for i in np.argwhere(counts == 0)[0])
    parents = f" ({len(family.cells.columns)} discrete parents besides the class)" if family.cells.columns else ""
    return SampleNotAcceptable(
        f"maximum likelihood does not exist for {schema.name(family.column)} in the cell "
        f"{_cell(schema, family.cells, (configuration, label))}: 0 rows have the level "
        f"{schema.levels_of(family.column)[code]!r}{parents}; "
        'use parameters="bayes", more rows or fewer levels, or drop the column'
    )


def _cell(schema: Schema, cells: Cells, at: Any) -> str:
    parts = [f"class {schema.classes[at[1]]!r}"]
    codes = np.unravel_index(at[0], cells.levels) if cells.levels else ()
    for column, code in zip(cells.columns, codes, strict=True):
        parts.append(f"{schema.name(column)} = {schema.levels_of(column)[int(code)]!r}")
    return ", ".join(parts)
