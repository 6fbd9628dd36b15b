"""The protocol of candidates: a model with a grid of settings, which are fitted and held out together."""

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
from cgnlearn.networks.coalitions import Likelihoods, Players, evaluated
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.fixed import FEW_COLUMNS

Settings = Mapping[str, Any]  # candidate, transform, and what the grid varies, by name

MOST_POWERS = 5000  # columns up to which power transforms are learned
COPIES = 4  # of a large array, at a time
LEAST_SECONDS = 0.02  # of any candidate


class Samples:
    """A table, its transforms, each applied once, and the groups of its samples."""

    def __init__(self, table: Table, transforms: Mapping[str, Transform], groups: NDArray[Any] | None = None) -> None:
        self.table = table
        self.transforms = transforms
        self.groups = groups
        self._transformed: dict[str, Table] = {}

    @classmethod
    def learning(cls, transforms: Sequence[str], table: Table, groups: NDArray[Any] | None = None) -> Samples:
        """With transforms learned from these samples."""
        return cls(table, learned(transforms, table), groups)

    def __getitem__(self, transform: str) -> Table:
        """The transformed table."""
        if transform not in self._transformed:
            self._transformed[transform] = self.transforms[transform](self.table)
        return self._transformed[transform]

    def log_jacobian(self, transform: str) -> Floats | None:
        """Log Jacobian of a transform at every value: (samples, continuous columns)."""
        return self.transforms[transform].log_jacobian(self.table)


class Training(NamedTuple):
    """Training samples that a fitted model keeps."""

    samples: Samples
    proba: Floats  # class probabilities of the samples, held out: (samples, classes)
    times: float  # number of samples for which each stands, if these are a part of more


@dataclass(frozen=True)
class Profile:
    """The properties of a table that decide which candidates suit it and about how long they take."""

    schema: Schema
    n_samples: int  # used to compare candidates
    transforms: Sequence[str]
    prior: Prior
    ordered: bool = False  # whether the order of the columns is meaningful
    has_missing: bool = False

    @property
    def m(self) -> int:
        """Number of continuous columns."""
        return len(self.schema.continuous)

    @cached_property
    def n_levels(self) -> int:
        """Number of levels of all discrete columns."""
        return sum(len(self.schema.levels_of(column)) for column in self.schema.discrete)

    @property
    def is_wide(self) -> bool:
        """Whether complete structures are fitted by rotation."""
        return self.m > max(self.n_samples, FEW_COLUMNS)

    def why_no_transform(self, transform: str) -> str | None:
        """Return why columns cannot be transformed, or None."""
        if transform == "none":
            return None
        if not self.m:
            return "no column is continuous"
        return f"more than {MOST_POWERS} columns" if self.m > MOST_POWERS else None


class Skipped(NamedTuple):
    """A candidate that is not tried, and the reason."""

    name: str
    transform: str
    reason: str


class Fitted(ABC):
    """A candidate fitted to samples: one model for each of its settings."""

    transform: str
    has_density: bool = True  # whether log likelihoods are densities of the transformed columns
    is_sum: bool = True  # whether log likelihoods are sums over features
    accepts_missing: bool = True  # whether it predicts samples with missing values

    @abstractmethod
    def log_likelihood(self, samples: Samples) -> Floats:
        """ln p(x | class), up to a constant of each sample: (settings, samples, classes).

        NaN for settings whose estimates do not exist.
        """

    @abstractmethod
    def log_densities(self, samples: Samples, log_likelihood: Floats, training: Training | None) -> list[LogDensities]:
        """The posterior of `log_likelihood`, of each setting; raises `NoSamplesError` if it needs ``training``."""

    @abstractmethod
    def leave_one_out(self, samples: Samples) -> Floats:
        """`log_likelihood` of the training samples, each by the fit without it.

        Raises `NotExactError` where that takes refits.
        """

    @abstractmethod
    def contributions(self, samples: Samples, setting: int) -> Floats:
        """The terms of a setting's log likelihood, by feature: (samples, columns of X, classes)."""

    def coalitions(self, samples: Samples, powers: Floats, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of features, the sum over settings of each times its power."""

        def log_likelihood(table: Table) -> Floats:
            return np.tensordot(powers, self.log_likelihood(Samples(table, samples.transforms)), 1)

        return evaluated(log_likelihood, samples.table, players)

    def draw(self, setting: int, labels: NDArray[np.intp], rng: Any) -> Table:
        """One complete sample per class code, in transformed columns; of a density that accepts missing values."""
        raise NotImplementedError

    @abstractmethod
    def restricted(self, which: Sequence[int]) -> Fitted:
        """Some of the settings."""

    def merged(self, powers: Floats) -> tuple[Fitted, Floats]:
        """Fit and powers with the same sum of powers × log likelihoods, of fewer settings if that is possible."""
        return self, powers


class HeldOut(NamedTuple):
    """A candidate and its log likelihoods of held-out samples."""

    candidate: Candidate
    fitted: Fitted | None  # to all samples, where leave-one-out needed it
    log_likelihood: Floats  # (settings, samples, classes)
    class_log_prior: Floats  # (samples, classes)
    validation: list[str]  # of each setting: "leave-one-out" or the number of folds


class Candidate(ABC):
    """A model with a grid of settings, on transformed columns."""

    name: str  # in `candidates=` and `structure=`
    label: str  # how it models the features, in plain words
    by_default: ClassVar[bool] = True  # whether it is tried unless candidates are named
    transform: str
    has_density: bool = True  # as `Fitted` has it
    gain: float = 0.05  # about its usual weight in a mixture of all candidates
    speed: ClassVar[float] = 2e6  # samples × columns × classes in a second
    is_cheap: ClassVar[bool] = True  # whether it is refitted to all samples of a large table

    @property
    def member(self) -> str:
        """The member of the mixture into which its settings are merged."""
        return self.name

    @classmethod
    @abstractmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        """The candidates of this class, one for each transform: suited to a table, or skipped with a reason."""

    @property
    @abstractmethod
    def settings(self) -> list[Settings]:
        """The grid."""

    @abstractmethod
    def fit(self, samples: Samples) -> Fitted:
        """Fit all settings to labelled samples."""

    def fixed(self, samples: Samples) -> Candidate:
        """The same candidate with settings that must not differ between folds learned from all samples."""
        return self

    def leave_one_out(self, samples: Samples, class_log_prior: Floats) -> HeldOut:
        """Hold every sample out once; raises `NotExactError` where that takes refits."""
        fitted = self.fit(samples)
        found = fitted.leave_one_out(samples)
        return HeldOut(self, fitted, found, class_log_prior, ["leave-one-out"] * len(found))

    def seconds(self, profile: Profile) -> float:
        """Expected time of the held-out predictions."""
        return LEAST_SECONDS + profile.n_samples * profile.schema.n_columns * profile.schema.n_classes / self.speed

    def megabytes(self, profile: Profile) -> float:
        """Expected memory of the held-out predictions: those of all settings, and what they are computed from."""
        predictions = profile.n_samples * profile.schema.n_classes * max(1, len(self.settings))
        return 8e-6 * (COPIES * predictions + self.n_numbers(profile))

    def n_numbers(self, profile: Profile) -> float:
        """Numbers in memory besides the predictions."""
        return COPIES * float(profile.n_samples * profile.schema.n_columns)

    @classmethod
    def in_words(cls, settings: Settings) -> str:
        """Describe how a member models the features."""
        return cls.label


def frequencies(table: Table, dirichlet: float) -> Floats:
    """Log frequencies of the classes, with pseudo-counts: (classes,)."""
    assert table.labels is not None
    counts = np.bincount(table.labels, table.weights, minlength=table.schema.n_classes).astype(float)
    return densities.categorical(counts, dirichlet)


def held_out_frequencies(table: Table, dirichlet: float) -> Floats:
    """Leave-one-out `frequencies`: (samples, classes)."""
    assert table.labels is not None
    n_classes = table.schema.n_classes
    counts = np.bincount(table.labels, table.weights, minlength=n_classes)
    weights = np.ones(table.n_samples) if table.weights is None else table.weights
    lost = np.where(table.labels[:, None] == np.arange(n_classes), weights[:, None], 0.0)
    return densities.categorical(np.maximum(counts - lost, 0.0), dirichlet)
