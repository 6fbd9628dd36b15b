"""The prior over the parameters.

For the continuous features of a cell it is a normal inverse Wishart with location m0, strength κ0 and scale
Ψ0 = diag(s²). For one feature with |pc| continuous parents this is the paper's normal inverse gamma with shape
ρ0 = 1.1 + |pc|/2. Each of the four may differ by feature and by class, as knowledge from elsewhere does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.ranges import Range, ranges_of

LEAST_SCALE = 1e-8  # of Ψ0 in standard units: duplicate columns must not make Ψ' singular

Location = Literal["pooled", "paper", "cell"]
Numbers = Sequence[float] | Sequence[Sequence[float]]  # by feature, or by class and feature


class Hyperparameters(NamedTuple):
    """The prior of the features of a partition in standard units; ``strength`` and ``shape`` by feature if uneven.

    The axis of classes has length 1 where all classes have the same prior.
    """

    location: Floats | None  # m0; None: the mean over all samples: (classes, features)
    scale: Floats  # the diagonal of Ψ0: (classes, features)
    strength: Floats  # κ0: (classes,) or (classes, features)
    shape: Floats  # ρ0 of a feature without continuous parents: as ``strength``

    @property
    def separate(self) -> bool:
        """Whether features differ in strength and shape."""
        return self.strength.ndim == 2

    def shared(self, sharing: float) -> Hyperparameters:
        """The prior of classes that share scatter: their scales and shapes are mixed as far."""
        if sharing == 0 or len(self.scale) == 1:
            return self
        scale, shape = (
            (1 - sharing) * part + sharing * part.mean(axis=0, keepdims=True) for part in (self.scale, self.shape)
        )
        return self._replace(scale=scale, shape=shape)

    def of_features(self, places: NDArray[np.intp]) -> Hyperparameters:
        """The prior of some features; of blocks, if ``places`` are (blocks, members), which the first stands for."""
        location = None if self.location is None else self.location[:, places]
        first = places if places.ndim == 1 else places[:, 0]
        strength, shape = (part[:, first] if self.separate else part for part in (self.strength, self.shape))
        return Hyperparameters(location, self.scale[:, places], strength, shape)

    def of_block(self, feature: int) -> Hyperparameters:
        """The prior with the strength and shape of one feature, for a block that has them all to itself."""
        return self._replace(strength=self.strength[:, feature], shape=self.shape[:, feature])


@dataclass(frozen=True, repr=False)
class Prior:
    """Prior distribution of the parameters.

    An array has one value per feature, or one row per class in the order of ``classes_``. In an array of ``location``
    or ``scale`` by class, nan stands for no knowledge, and the default holds.

    Parameters
    ----------
    dirichlet : float
        Pseudo-count of every level of every discrete feature, and of every class.
    strength : float or array
        κ0, the number of samples that the location counts as.
    shape : float or array
        Shape of the inverse gamma of a feature without continuous parents; each such parent adds a half.
    location : {"pooled", "paper", "cell"} or array
        Prior means. ``"pooled"``: the mean over all training data; the order of the features inside a group then
        does not matter and the evidence is valid. ``"paper"``: the same for the child, but parents are centred at
        their mean in the cell, as in the paper. ``"cell"``: the mean of the cell.
    scale : "variance", number or array
        The diagonal of Ψ0. ``"variance"``: the variance of the feature over all training data. A number: that
        multiple of it; the greater, the more the slopes shrink towards 0. The least multiple is 1e-8, since rounding
        hides smaller ones.
    ranges : sequence of (class, feature, low, high, worth)
        Reference ranges by name, as `from_ranges` makes them. They take precedence over the arrays.
    binding : bool, default=False
        Whether ranges hold in any case. Otherwise ``fit`` sets them aside, with a warning, where held-out samples are
        predicted clearly better without them; models from statistics, which have no samples, keep them.

    Notes
    -----
    Where strength or shape differ by feature, features that the structure joins count with the least of theirs.

    Examples
    --------
    >>> Prior(strength=5.0)
    Prior(strength=5.0)
    """

    dirichlet: float = 0.01
    strength: float | Numbers = 1.0
    shape: float | Numbers = 1.1
    location: Location | Numbers = "pooled"
    scale: Literal["variance"] | float | Numbers = "variance"
    ranges: Sequence[Range] = ()
    binding: bool = False

    def __post_init__(self) -> None:
        if not _is_positive_number(self.dirichlet):
            raise ValueError(f"the prior's dirichlet must be a positive number, not {self.dirichlet!r}")
        for name in ("strength", "shape"):
            value = getattr(self, name)
            if not _is_positive_number(value):
                numbers = _array(name, value, f"the prior's {name} must be a positive number, not {value!r}")
                object.__setattr__(self, name, _as_tuple(_positive(name, numbers)))
        for name, options in (("location", '"pooled", "paper", "cell"'), ("scale", '"variance", a number')):
            value = getattr(self, name)
            if isinstance(value, str):
                if f'"{value}"' not in options.split(", "):
                    expected = f"{options} or an array of one value per feature"
                    raise ValueError(f"the prior's {name} must be {expected}, not {value!r}")
                continue
            if name == "scale" and np.ndim(value) == 0:
                if not _is_positive_number(value):
                    raise ValueError(f"the prior's scale must be positive, not {value!r}")
                object.__setattr__(self, name, float(value))
                continue
            numbers = _array(name, value)
            object.__setattr__(self, name, _as_tuple(_positive(name, numbers) if name == "scale" else numbers))
        object.__setattr__(self, "ranges", tuple(Range.checked(*each) for each in self.ranges))
        if self.ranges and (self.location in ("paper", "cell") or isinstance(self.scale, float)):
            raise ValueError('ranges need a prior with location "pooled" and scale "variance", or arrays')
        if self.binding not in (True, False):
            raise ValueError(f"the prior's binding must be True or False, not {self.binding!r}")

    @classmethod
    def from_ranges(
        cls, ranges: Mapping[Any, Mapping[Any, Sequence[float]]], worth: float = 20.0, **parameters: Any
    ) -> Self:
        """Return the prior that reference ranges express.

        A range (low, high) holds 95 % of a class: the mean is expected in its middle, the standard deviation at
        (high - low) / 3.92. Features and classes without a range keep the default.

        Parameters
        ----------
        ranges : mapping of class to mapping of feature to (low, high) or (low, high, worth)
            Features by name, or by index where X has no names.
        worth : float
            How many samples a range counts as.
        **parameters
            Other parameters of the prior.

        Examples
        --------
        >>> prior = Prior.from_ranges({"healthy": {"K": (3.5, 5.1)}, "ill": {"K": (4.9, 7.0)}}, worth=20)
        >>> prior.ranges[0]
        Range(label='healthy', feature='K', low=3.5, high=5.1, worth=20.0)
        """
        return cls(ranges=ranges_of(ranges, worth), **parameters)

    def __repr__(self) -> str:
        changed = [field for field in fields(self) if getattr(self, field.name) != field.default]
        return f"Prior({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"ranges": tuple(map(tuple, self.ranges))}  # files hold plain values only

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"ranges": tuple(Range(*each) for each in state.get("ranges", ()))})

    def resolved(self, schema: Schema) -> Prior:
        """The prior for these columns and classes, its ranges as arrays; raise an error if it does not fit them."""
        n_features, n_classes = schema.n_columns, schema.n_classes
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "ranges" or not isinstance(value, tuple):
                continue
            shape = np.shape(value)
            if shape[-1] != n_features:
                raise ValueError(
                    f"the prior's {field.name} has {shape[-1]} values, but there are {n_features} features: "
                    "give one value per column"
                )
            if len(shape) == 2 and shape[0] != n_classes:
                raise ValueError(
                    f"the prior's {field.name} has {shape[0]} rows, but there are {n_classes} classes: "
                    "give one row per class"
                )
        if not self.ranges:
            return self
        names = ("location", "scale", "strength", "shape")
        arrays = {name: self._filled(name, n_classes, n_features) for name in names}
        least_shape = arrays["shape"].copy()
        for each in self.ranges:
            at = each.place(schema)
            # The shape of the default and half a sample each, and the expected variance at φ0 / ρ0.
            shape = least_shape[at] + each.worth / 2
            found = each.mean, 2 * shape * each.deviation**2, each.worth, shape
            for name, value in zip(names, found, strict=True):
                arrays[name][at] = value
        known: dict[str, Any] = {name: _as_tuple(array) for name, array in arrays.items()}
        return replace(self, ranges=(), **known)

    def _filled(self, name: str, n_classes: int, n_features: int) -> Floats:
        """One of the parameters by class and feature; nan: learned from the data."""
        value = getattr(self, name)
        return np.array(np.broadcast_to(np.nan if isinstance(value, str) else value, (n_classes, n_features)), float)

    def known(self, n_classes: int, n_features: int) -> Floats:
        """Location and scale as given, nan where they are learned: (2, classes, features)."""
        return np.stack([self._filled(name, n_classes, n_features) for name in ("location", "scale")])

    @property
    def is_coherent(self) -> bool:
        """Whether the location does not depend on the cells, so that the evidence is valid."""
        return self.location not in ("paper", "cell")

    @property
    def in_own_units(self) -> bool:
        """Whether it has values in the units of the columns, which a transform would change."""
        return bool(self.ranges) or isinstance(self.location, tuple) or isinstance(self.scale, tuple)

    @property
    def by_class(self) -> bool:
        """Whether classes differ in it."""
        return bool(self.ranges) or any(np.ndim(value) == 2 for value in self._values)

    @property
    def is_uneven(self) -> bool:
        """Whether features or classes differ in their strength or shape."""
        return bool(self.ranges) or isinstance(self.strength, tuple) or isinstance(self.shape, tuple)

    @property
    def _values(self) -> tuple[Any, ...]:
        return self.location, self.scale, self.strength, self.shape

    @property
    def class_free(self) -> Prior:
        """The prior of samples that are no class's: without what is known by class."""
        kept: dict[str, Any] = {
            field.name: field.default
            for field in fields(self)
            if field.name == "ranges" or np.ndim(getattr(self, field.name)) == 2
        }
        return replace(self, **kept)

    def even(self, columns: Sequence[int]) -> Prior:
        """The prior in which all of these columns of X have the least strength and shape among them."""
        if not self.is_uneven or not len(columns):
            return self
        found: dict[str, Any] = {}
        for name in ("strength", "shape"):
            value = np.asarray(getattr(self, name), float)
            if value.ndim:
                least = value[..., columns].min(axis=-1, keepdims=True)
                found[name] = _as_tuple(np.repeat(least, value.shape[-1], axis=-1))
        if "shape" in found and isinstance(self.scale, tuple):
            found["scale"] = _as_tuple(np.array(self.scale) * np.array(found["shape"]) / np.array(self.shape))
        return replace(self, **found)

    @property
    def multiple(self) -> float | None:
        """The multiple of the variances that Ψ0 is; None: Ψ0 was given as an array."""
        if isinstance(self.scale, tuple):
            return None
        return 1.0 if isinstance(self.scale, str) else max(float(self.scale), LEAST_SCALE)  # type: ignore[arg-type]

    def standard_scale(self, columns: NDArray[np.intp], unit: Floats) -> Floats:
        """The diagonal of Ψ0 for these columns of X in standard units: (…, columns)."""
        if self.multiple is not None:
            return np.full(columns.shape, self.multiple)
        scale = np.array(self.scale)[..., columns]
        # In two steps: the square of the unit may overflow.
        return np.maximum(np.where(np.isnan(scale), 1.0, scale / unit / unit), LEAST_SCALE)

    def hyperparameters(self, partition: Partition, origin: Floats, unit: Floats) -> Hyperparameters:
        """The prior of the features of a partition, in standard units from its origin."""
        columns = partition.columns
        location = None
        if not isinstance(self.location, str):
            location = (np.atleast_2d(np.array(self.location))[:, columns] - origin) / unit
        scale = np.atleast_2d(self.standard_scale(columns, unit))
        strength, shape = (np.asarray(value, float) for value in (self.strength, self.shape))
        if not self.is_uneven:
            return Hyperparameters(location, scale, np.atleast_1d(strength), np.atleast_1d(shape))
        n_classes = max(len(np.atleast_2d(value)) for value in (strength, shape))
        by_feature = [
            np.broadcast_to(value[..., columns] if value.ndim else value, (n_classes, len(columns)))
            for value in (strength, shape)
        ]
        strength, shape = (_least(value, _joined(partition)) for value in by_feature)
        scale = scale * (shape / by_feature[1])  # the expected variance stays
        if all((value == value[:, :1]).all() for value in (strength, shape)):
            strength, shape = strength[:, 0], shape[:, 0]
        return Hyperparameters(location, scale, strength, shape)


def _joined(partition: Partition) -> NDArray[np.intp]:
    """The features of a partition that its families join, by number: (features,)."""
    n = partition.n_features
    if partition.k is not None:
        return np.zeros(n, np.intp) if partition.k > 1 else np.arange(n)
    pairs = partition.pairs
    graph = coo_array((np.ones(len(pairs)), (pairs.first, pairs.second)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.intp)


def _least(values: Floats, joined: NDArray[np.intp]) -> Floats:
    """Of each feature the least value among those that it is joined with: (classes, features)."""
    least = np.full((len(values), joined.max(initial=0) + 1), np.inf)
    for of_class, found in zip(values, least, strict=True):
        np.minimum.at(found, joined, of_class)
    return least[:, joined]


def _array(name: str, value: Any, otherwise: str = "") -> Floats:
    """Numbers by feature, or by class and feature, where nan may stand for no knowledge."""
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(())
    may_be_nan = numbers.ndim == 2 and name in ("location", "scale")
    if numbers.ndim in (1, 2) and numbers.size and (np.isfinite(numbers) | (may_be_nan & np.isnan(numbers))).all():
        return numbers
    raise ValueError(
        otherwise
        if otherwise and numbers.ndim == 0
        else f"the prior's {name} must be one finite number per feature, or a row of them per class"
    )


def _positive(name: str, numbers: Floats) -> Floats:
    bad = numbers <= 0
    if bad.any():
        *label, feature = np.argwhere(bad)[0].tolist()
        where = f"class {label[0]}, feature {feature}" if label else f"feature {feature}"
        raise ValueError(f"the prior's {name} must be positive, not {numbers[bad][0]} ({where})")
    return numbers


def _as_tuple(numbers: Floats) -> tuple[Any, ...]:
    return tuple(map(tuple, numbers.tolist())) if numbers.ndim == 2 else tuple(numbers.tolist())


def _is_positive_number(value: Any) -> bool:
    try:
        return bool(np.isfinite(value) and value > 0)
    except (TypeError, ValueError):
        return False
