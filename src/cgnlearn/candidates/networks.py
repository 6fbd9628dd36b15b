"""Candidates that are networks: a structure learner under several estimations, from the same statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cgnlearn.candidates.candidate import (
    COPIES,
    LEAST_SECONDS,
    Candidate,
    Fitted,
    HeldOut,
    Profile,
    Samples,
    Settings,
    Skipped,
    Training,
)
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.coalitions import Likelihoods, Players, coalitions_of
from cgnlearn.networks.estimation import Bayes, Estimation
from cgnlearn.networks.indicators import Indicated, Indicators, without_indicators
from cgnlearn.networks.model import Model, NotExactError
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.sampling import draw, drawable
from cgnlearn.networks.stacked import Stacked, grouped
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.together import Together
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.fixed import FEW_COLUMNS, Complete, Jan, NaiveBayes
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.search import GreedyJan
from cgnlearn.structures.selective_naive_bayes import Selection, SelectiveNaiveBayes
from cgnlearn.structures.tan import TAN
from cgnlearn.structures.tan_average import TANAverage

SHARINGS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0)  # all from the same moments
FEW_SHARINGS = (0.0, 0.1, 0.4, 1.0)  # in folds
ROTATED_SHARINGS = (0.0, 0.3, 1.0)
JEFFREYS = 0.5  # pseudo-count of a level, tried beside the prior's
SCALES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # of the prior, for more columns than samples
MOST_TREE = 150  # columns of a TAN, which is learned in every fold
MOST_FORESTS = 25  # columns of a TAN average
# Where each pattern of missing values has its own networks: samples × columns × classes, and columns², in a second.
WITH_MISSING, PATTERNS = 3e5, 6e3
PAIRED = 1e3  # discrete columns², in a second, whose levels are counted in pairs
SEARCHED = 2e4  # samples × columns² in a second, where groups of columns are searched
MISSING = "it needs complete samples, and values are missing"
NO_EVIDENCE = "the prior's location has no evidence"


@dataclass(frozen=True, eq=False)
class FittedNetworks(Fitted):
    """Models from the same statistics."""

    transform: str
    learner: Learner  # needs no more samples
    statistics: Statistics
    estimations: tuple[Estimation, ...]  # one for each setting
    missing_indicator: bool = False  # whether being missing is a feature too
    has_density: bool = True

    @property
    def is_sum(self) -> bool:  # type: ignore[override]
        return self.learner.is_sum

    @property
    def accepts_missing(self) -> bool:  # type: ignore[override]
        return self.learner.accepts_missing

    @cached_property
    def models(self) -> list[Model]:
        """One for each setting."""
        models = self.learner.models(self.statistics, self.estimations)
        if not self.missing_indicator:
            return models
        indicators = Indicators.of(self.statistics, self.estimations[0])
        return [Indicated(model, indicators) for model in models]

    @cached_property
    def _together(self) -> Together | None:
        return Together.of(self.models)

    def log_likelihood(self, samples: Samples) -> Floats:
        table = samples[self.transform]
        if self._together is not None and self._together.suits(table):
            return self._together.log_likelihood(table)
        return np.stack([model.log_likelihood(table) for model in self.models])

    @cached_property
    def _stacked(self) -> list[Stacked] | None:
        """The networks of all models; None of averages over structures."""
        features = [without_indicators(model) for model in self.models]
        if networks := [model for model in features if isinstance(model, Network)]:
            return grouped(networks)
        if selections := [model for model in features if isinstance(model, Selection)]:
            return grouped(
                [selection.own for selection in selections],
                np.stack([selection.inclusion_probability for selection in selections]),
            )
        return None

    def log_densities(self, samples: Samples, log_likelihood: Floats, training: Training | None) -> list[LogDensities]:
        table = samples[self.transform]
        if self._stacked is None:
            return [model.log_densities(table, own) for model, own in zip(self.models, log_likelihood, strict=True)]
        first = self.models[0]
        indicators = first.indicators if isinstance(first, Indicated) else None
        if indicators is not None:
            log_likelihood = log_likelihood - indicators.log_likelihood(table)
        found, start = [], 0
        for each in self._stacked:
            stop = start + len(each.networks)
            found += each.log_densities(table, log_likelihood[start:stop])
            start = stop
        return found if indicators is None else [each + indicators.posterior(table) for each in found]

    def leave_one_out(self, samples: Samples) -> Floats:
        check_leave_one_out(self.learner)
        return np.stack([model.leave_one_out(samples[self.transform]).log_likelihood for model in self.models])

    def contributions(self, samples: Samples, setting: int) -> Floats:
        return self.models[setting].contributions(samples[self.transform])

    def coalitions(self, samples: Samples, powers: Floats, players: Players) -> Likelihoods:
        table = samples[self.transform]
        first, *others = (
            coalitions_of(model, table, players) * float(power)
            for model, power in zip(self.models, powers, strict=True)
        )
        return sum(others, start=first)

    def draw(self, setting: int, labels: NDArray[np.intp], rng: Any) -> Table:
        return draw(drawable(self.models[setting]), labels, rng)

    def restricted(self, which: Sequence[int]) -> Self:
        return replace(self, estimations=tuple(self.estimations[i] for i in which))

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without cached properties


def check_leave_one_out(learner: Learner) -> None:
    """Raise `NotExactError` if the structure depends on the samples."""
    if not learner.has_leave_one_out:
        raise NotExactError(f"{learner!r} has no exact leave-one-out, as its structure is learned: take folds")


@dataclass(frozen=True)
class NetworkCandidate(Candidate):
    """A learner under several estimations, from statistics that are collected once."""

    learner: Learner
    transform: str
    estimations: tuple[Estimation, ...]
    varying: tuple[str, ...] = ()  # what the estimations differ in: "sharing", "prior_scale", "dirichlet"
    missing_indicator: bool = False  # whether being missing is a feature too

    make: ClassVar[Callable[..., Learner]]  # the learner with its default settings
    sharings: ClassVar[tuple[float, ...]] = SHARINGS
    is_joint: ClassVar[bool] = False  # whether a missing value changes the densities of other features
    least_with_missing: ClassVar[float] = 0.3  # seconds, where it is joint
    chooses_by_evidence: ClassVar[bool] = False  # among structures, for which heavy samples count as one each

    @classmethod
    def named_learner(cls, random_state: Any = 0) -> Learner:
        """Return the learner that the name stands for in `CGNClassifier`."""
        return cls.make()

    @classmethod
    def is_of(cls, learner: Learner) -> bool:
        """Whether the name stands for such a learner."""
        return type(learner) is type(cls.named_learner())

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        """Return why it does not suit a table, or None."""
        return None

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        for transform in profile.transforms:
            reason = profile.why_no_transform(transform)
            if reason is None and profile.prior.in_own_units and transform != "none":
                reason = "the prior is in the columns' own units"
            reason = reason or cls.why_not(profile)
            yield Skipped(cls.name, transform, reason) if reason else cls.of(profile, transform)

    @classmethod
    def of(cls, profile: Profile, transform: str) -> Self:
        """With all sharings and, where columns are discrete, Jeffreys' pseudo-count as well."""
        sharings = cls.sharings if profile.m else cls.sharings[:1]
        priors = [profile.prior]
        if profile.schema.discrete:
            priors = list(dict.fromkeys([profile.prior, replace(profile.prior, dirichlet=JEFFREYS)]))
        varying = ("sharing", "dirichlet") if profile.schema.discrete else ("sharing",)
        return cls(cls.learner_for(profile), transform, grid(priors, sharings), varying)

    @classmethod
    def learner_for(cls, profile: Profile) -> Learner:
        """Return the learner that the name stands for among candidates."""
        return cls.named_learner()

    @property
    def settings(self) -> list[Settings]:
        found: list[Settings] = []
        for estimation in self.estimations:
            values = {
                "sharing": estimation.sharing,
                "prior_scale": estimation.prior.multiple,
                "dirichlet": estimation.prior.dirichlet,
            }
            varying = {name: values[name] for name in self.varying}
            found.append({"candidate": self.name, "transform": self.transform} | varying)
        return found

    def choice(self, setting: int) -> tuple[Learner, Estimation]:
        """Return what is fitted if one of the settings is chosen."""
        return self.learner, self.estimations[setting]

    def fit(self, samples: Samples) -> Fitted:
        table = samples[self.transform]
        if self.chooses_by_evidence:
            table = table.without_excess_weight()
        learner = self.learner.resolved(table, self.estimations[0], samples.groups)
        statistics = collect(table, learner.families(table.schema))
        return FittedNetworks(
            self.transform, learner, statistics, self.estimations, self.missing_indicator, self.has_density
        )

    def leave_one_out(self, samples: Samples, class_log_prior: Floats) -> HeldOut:
        check_leave_one_out(self.learner)
        return super().leave_one_out(samples, class_log_prior)

    def n_numbers(self, profile: Profile) -> float:
        pairs = profile.m**2 * profile.schema.n_classes if self.is_joint and not profile.is_wide else 0
        return super().n_numbers(profile) + COPIES * float(pairs)

    def seconds(self, profile: Profile) -> float:
        if profile.has_missing and self.is_joint:
            n_columns = profile.schema.n_columns
            size = profile.n_samples * n_columns * profile.schema.n_classes
            return self.least_with_missing + size / WITH_MISSING + n_columns**2 / PATTERNS
        return super().seconds(profile) * (2 if profile.schema.discrete else 1)  # with twice as many settings


def grid(priors: Sequence[Prior], sharings: Sequence[float]) -> tuple[Bayes, ...]:
    """Every prior with every sharing."""
    return tuple(Bayes(prior, sharing) for prior in priors for sharing in sharings)


@dataclass(frozen=True)
class LearnerCandidate(NetworkCandidate):
    """A learner given by the user."""

    name: str = ""

    @property
    def member(self) -> str:
        return repr(self.learner)  # there may be several of a name

    @classmethod
    def in_words(cls, settings: Settings) -> str:
        return str(settings["candidate"])


class FrequenciesCandidate(NetworkCandidate):
    """The class frequencies: the baseline, always among the candidates."""

    name = "frequencies"
    label = "the class frequencies alone"
    has_density = False

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        yield cls(Jan([]), "none", grid([profile.prior], (0.0,)))

    def seconds(self, profile: Profile) -> float:
        return LEAST_SECONDS


class NaiveBayesCandidate(NetworkCandidate):
    """Features that are independent in each class."""

    name = "naive_bayes"
    label = "each feature by itself (naive Bayes)"
    gain = 0.06
    make = NaiveBayes
    speed = 2e7


class CompleteCandidate(NetworkCandidate):
    """Continuous features joint, discrete ones independent."""

    name = "complete"
    label = "every feature with every other (complete)"
    gain = 0.17
    make = Complete
    is_joint = True
    least_with_missing = 2.2

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        if profile.m < 2:
            return "fewer than two continuous columns"
        if not profile.is_wide:
            return f"more than {FEW_COLUMNS} columns, and fewer than samples" if profile.m > FEW_COLUMNS else None
        if profile.schema.discrete:
            return "more columns than samples, and some are discrete"
        if profile.has_missing:
            return MISSING
        if profile.prior.by_class or profile.prior.is_uneven:
            return "no rotation with a prior by class, or with strengths by feature"
        return 'no rotation with the prior location "paper"' if profile.prior.location == "paper" else None

    @classmethod
    def of(cls, profile: Profile, transform: str) -> Self:
        if not profile.is_wide:
            return super().of(profile, transform)
        # By rotation, where the scale of the prior matters.
        scales = SCALES if profile.prior.scale == "variance" else (profile.prior.scale,)
        priors = [replace(profile.prior, scale=scale) for scale in scales]
        return cls(Complete(), transform, grid(priors, ROTATED_SHARINGS), ("sharing", "prior_scale"))

    @classmethod
    def learner_for(cls, profile: Profile) -> Learner:
        # Joint discrete columns would have too many cells.
        return Jan([profile.schema.continuous, *([column] for column in profile.schema.discrete)])


class TANCandidate(NetworkCandidate):
    """The best tree of features."""

    name = "tan"
    label = "each feature with the one most related to it (TAN)"
    gain = 0.14
    make = TAN
    speed = 1e6
    sharings = FEW_SHARINGS
    is_joint = True

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        if profile.schema.n_columns < 2:
            return "one column"
        return f"more than {MOST_TREE} columns" if profile.schema.n_columns > MOST_TREE else None

    def seconds(self, profile: Profile) -> float:
        return super().seconds(profile) + len(profile.schema.discrete) ** 2 / PAIRED


class SelectiveNaiveBayesCandidate(NetworkCandidate):
    """Naive Bayes, averaged over the subsets of features that depend on the class."""

    name = "selective_naive_bayes"
    label = "each feature by itself, weighted by its relevance (selective naive Bayes)"
    gain = 0.08
    make = SelectiveNaiveBayes
    speed = 3e6
    sharings = (0.0, 1.0)  # those that have an evidence

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        return None if profile.prior.is_coherent else NO_EVIDENCE


class TANAverageCandidate(SelectiveNaiveBayesCandidate):
    """The average over all forests of features."""

    name = "tan_average"
    label = "each feature with at most one other, averaged over all choices (TAN average)"
    make = TANAverage
    by_default = False
    chooses_by_evidence = True

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        if profile.has_missing:
            return MISSING
        if not 2 <= profile.schema.n_columns <= MOST_FORESTS:
            return f"fewer than 2 or more than {MOST_FORESTS} columns"
        return super().why_not(profile)


class ForwardCandidate(NetworkCandidate):
    """Groups of features, searched by adding and joining them."""

    name = "fwgjan"
    label = "groups of features, found by forward search"
    by_default = False
    sharings = FEW_SHARINGS
    search: ClassVar[Any] = "forward"

    @classmethod
    def named_learner(cls, random_state: Any = 0) -> Learner:
        return GreedyJan(cls.search, random_state=random_state)

    @classmethod
    def is_of(cls, learner: Learner) -> bool:
        return isinstance(learner, GreedyJan) and learner.search == cls.search

    def seconds(self, profile: Profile) -> float:
        return super().seconds(profile) + profile.n_samples * profile.schema.n_columns**2 / SEARCHED


class BackwardCandidate(ForwardCandidate):
    """Groups of features, searched by removing and joining them."""

    name = "bwgjan"
    label = "groups of features, found by backward search"
    search = "backward"


class CondensedCandidate(ForwardCandidate):
    """One group of features, searched by removing some."""

    name = "wcgjan"
    label = "one group of features, found by backward search"
    search = "condensed"
