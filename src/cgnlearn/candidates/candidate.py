"""What a candidate is: one way to predict, with a grid of settings that are computed together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.data.transforms import Transform, learned
from cgnlearn.networks import densities
from cgnlearn.networks.prior import Prior
from cgnlearn.structures.fixed import FEW_COLUMNS

Settings = Mapping[str, Any]  # the kind, the transform, and what the grid varies, by name

MOST_POWERS = 5000  # columns for which powers are learned
LEAST_SECONDS = 0.05  # of any candidate
CELLS = 2e6  # samples × columns × classes in a second, where there is a closed form


class Samples:
    """A table through some transforms, each applied once, and which of its samples belong together."""

    def __init__(self, table: Table, transforms: Mapping[str, Transform], groups: NDArray[Any] | None = None) -> None:
        self.table = table
        self.transforms = transforms
        self.groups = groups
        self._transformed: dict[str, Table] = {}

    @classmethod
    def learning(cls, transforms: Sequence[str], table: Table, groups: NDArray[Any] | None = None) -> Samples:
        """With transforms that are learned from these samples."""
        return cls(table, learned(transforms, table), groups)

    def __getitem__(self, transform: str) -> Table:
        """The table through a transform."""
        if transform not in self._transformed:
            self._transformed[transform] = self.transforms[transform](self.table)
        return self._transformed[transform]

    def log_jacobian(self, transform: str) -> Floats | None:
        """Of every value: (samples, continuous columns)."""
        return self.transforms[transform].log_jacobian(self.table)


@dataclass(frozen=True)
class Profile:
    """What decides which candidates suit a table, and about how long they take."""

    schema: Schema
    n_samples: int  # in which candidates are compared
    transforms: Sequence[str]
    prior: Prior
    ordered: bool = False  # whether the order of the columns means something
    has_missing: bool = False

    @property
    def m(self) -> int:
        """How many continuous columns there are."""
        return len(self.schema.continuous)

    @cached_property
    def n_levels(self) -> int:
        """Of all discrete columns together."""
        return sum(len(self.schema.levels_of(column)) for column in self.schema.discrete)

    @property
    def is_wide(self) -> bool:
        """Whether complete structures are fitted by rotation."""
        return self.m > max(self.n_samples, FEW_COLUMNS)

    def why_no_transform(self, transform: str) -> str | None:
        """Why columns are not transformed, where they are not."""
        if transform == "none":
            return None
        if not self.m:
            return "no column is continuous"
        return f"more than {MOST_POWERS} columns" if self.m > MOST_POWERS else None


class Skipped(NamedTuple):
    """What is not tried, and why."""

    name: str
    transform: str
    reason: str


class Fitted(ABC):
    """A candidate fitted to samples, one predictor for each of its settings."""

    transform: str
    has_density: bool = True  # whether log likelihoods are densities of the transformed columns
    is_sum: bool = True  # whether log likelihoods are sums over features
    accepts_missing: bool = True  # whether it predicts samples with missing values

    @abstractmethod
    def log_likelihood(self, samples: Samples) -> Floats:
        """ln p(x | class), or what predictions need in its place: (settings, samples, classes).

        NaN for settings that the training samples do not allow.
        """

    @abstractmethod
    def leave_one_out(self, samples: Samples) -> Floats:
        """The same for training samples, each by the fit without it; raises `NotExactError` where that takes refits."""

    @abstractmethod
    def contributions(self, samples: Samples, setting: int) -> Floats:
        """What a setting's log likelihood is the sum of: (samples, columns of X, classes)."""

    @abstractmethod
    def restricted(self, which: Sequence[int]) -> Fitted:
        """Some of the settings."""


class HeldOut(NamedTuple):
    """A candidate, and the log likelihoods of samples by fits that have not seen them."""

    candidate: Candidate
    fitted: Fitted | None  # to all samples, where that was part of holding them out
    log_likelihood: Floats  # (settings, samples, classes)
    class_log_prior: Floats  # (samples, classes)
    by: list[str]  # how samples were held out, for each of the settings


class Candidate(ABC):
    """One way to predict, through one transform, with a grid of settings."""

    name: str  # as a user names it
    label: str  # what it does with the features, in plain words
    by_default: ClassVar[bool] = True  # whether it is tried where a user names none
    transform: str
    has_density: bool = True  # as `Fitted` has it
    is_cheap: ClassVar[bool] = True  # whether a fit to all samples of a large table is

    @classmethod
    @abstractmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        """The candidates of this kind that suit a table, and those that do not, with the reason."""

    @property
    @abstractmethod
    def settings(self) -> list[Settings]:
        """The grid."""

    @abstractmethod
    def fit(self, samples: Samples) -> Fitted:
        """Fitted to labelled samples, all settings at once."""

    def fixed(self, samples: Samples) -> Candidate:
        """The same with everything fixed that must not differ between folds."""
        return self

    def leave_one_out(self, samples: Samples, class_log_prior: Floats) -> HeldOut:
        """Each sample by the fit without it; raises `NotExactError` where that takes refits."""
        fitted = self.fit(samples)
        found = fitted.leave_one_out(samples)
        return HeldOut(self, fitted, found, class_log_prior, ["leave-one-out"] * len(found))

    def seconds(self, profile: Profile) -> float:
        """About how long it takes to hold the samples out."""
        return LEAST_SECONDS + profile.n_samples * profile.schema.n_columns * profile.schema.n_classes / CELLS

    @classmethod
    def in_words(cls, settings: Settings) -> str:
        """What a setting does with the features."""
        first = ", columns made bell-shaped first (Yeo-Johnson)" if settings["transform"] == "power" else ""
        return cls.label + first


def frequencies(table: Table, dirichlet: float) -> Floats:
    """Log probabilities of the classes: (classes,)."""
    assert table.labels is not None
    counts = np.bincount(table.labels, table.weights, minlength=table.schema.n_classes).astype(float)
    return densities.categorical(counts, dirichlet)


def held_out_frequencies(table: Table, dirichlet: float) -> Floats:
    """The same for every sample without it: (samples, classes)."""
    assert table.labels is not None
    n_classes = table.schema.n_classes
    counts = np.bincount(table.labels, table.weights, minlength=n_classes)
    weights = np.ones(table.n_samples) if table.weights is None else table.weights
    lost = np.where(table.labels[:, None] == np.arange(n_classes), weights[:, None], 0.0)
    return densities.categorical(np.maximum(counts - lost, 0.0), dirichlet)
