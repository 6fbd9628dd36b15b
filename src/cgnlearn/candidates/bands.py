"""Candidates for ordered columns: bands and boxes of every k at once, and the average over bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from cgnlearn.candidates.candidate import Fitted, Profile, Samples, Settings, Skipped, Training
from cgnlearn.candidates.networks import MISSING, NO_EVIDENCE, NetworkCandidate, grid
from cgnlearn.data.arrays import Floats
from cgnlearn.networks.estimation import Estimation
from cgnlearn.networks.indicators import Indicators
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.uncertainty import LogDensities
from cgnlearn.structures.band import Band, Box, EveryK, Ordered, every_family
from cgnlearn.structures.band_average import BandAverage
from cgnlearn.structures.learner import Learner

K_MAX = 50


@dataclass(frozen=True, eq=False)
class FittedBands(Fitted):
    """Bands or boxes of several k, by one lattice for each estimation."""

    transform: str
    shape: str
    statistics: Statistics  # of `every_family`
    estimations: tuple[Estimation, ...]
    ks: tuple[int, ...]  # with the estimations, one for each setting
    missing_indicator: bool = False  # whether being missing is a feature too

    accepts_missing = False  # all k are computed from the same samples

    def log_likelihood(self, samples: Samples) -> Floats:
        return self._log_likelihood(samples, leave_one_out=False)

    def log_densities(self, samples: Samples, log_likelihood: Floats, training: Training | None) -> list[LogDensities]:
        return [self.network(setting).log_densities(samples[self.transform]) for setting in range(len(self.ks))]

    def leave_one_out(self, samples: Samples) -> Floats:
        return self._log_likelihood(samples, leave_one_out=True)

    def _log_likelihood(self, samples: Samples, *, leave_one_out: bool) -> Floats:
        table = samples[self.transform]
        found = np.empty((len(self.ks), table.n_samples, table.schema.n_classes))
        for estimation in dict.fromkeys(self.estimations):
            here = [i for i, other in enumerate(self.estimations) if other == estimation]
            k_max = max(self.ks[i] for i in here)
            statistics = self.statistics.restricted(every_family(table.schema, k_max))
            of_ks = EveryK.of(
                statistics, table, estimation, k_max=k_max, shapes=(self.shape,), leave_one_out=leave_one_out
            )
            at = [self.ks[i] - 1 for i in here]
            found[here] = np.where(of_ks.exists[0, at][:, None, None], of_ks.log_likelihood[0, at], np.nan)
            if self.missing_indicator:
                indicators = Indicators.of(self.statistics, estimation)
                found[here] += (indicators.leave_one_out if leave_one_out else indicators.log_likelihood)(table)
        return found

    def network(self, setting: int) -> Network:
        """The network of one setting."""
        learner = {"band": Band, "box": Box}[self.shape](self.ks[setting])
        return learner.model(self.statistics, self.estimations[setting])

    def contributions(self, samples: Samples, setting: int) -> Floats:
        return self.network(setting).contributions(samples[self.transform])

    def restricted(self, which: Sequence[int]) -> FittedBands:
        return replace(self, estimations=tuple(self.estimations[i] for i in which), ks=tuple(self.ks[i] for i in which))


class OrderedCandidate(NetworkCandidate):
    """A candidate for columns whose order is meaningful, untransformed."""

    speed = 4e6

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        yield from super().suited(replace(profile, transforms=("none",)))

    @classmethod
    def of(cls, profile: Profile, transform: str) -> Self:
        estimations = grid([profile.prior], cls.sharings)
        return cls(cls.learner_for(profile), transform, estimations, ("sharing",) if len(estimations) > 1 else ())

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        if not profile.ordered:
            return "the columns have no order, unless ordered=True"
        if profile.m < 3:
            return "fewer than three continuous columns"
        return MISSING if profile.has_missing else None


class BandCandidate(OrderedCandidate):
    """Bands of every k up to a maximum."""

    name = "band"
    label = "each feature with its neighbours (bands)"
    gain = 0.2
    sharings = (0.0, 1.0)  # a lattice each
    learner: Ordered
    kind: ClassVar[type[Ordered]] = Band

    @classmethod
    def named_learner(cls, random_state: Any = 0) -> Learner:
        return cls.kind("cv")

    @classmethod
    def learner_for(cls, profile: Profile) -> Learner:
        return cls.kind("cv", k_max=min(K_MAX, profile.m))

    @property
    def settings(self) -> list[Settings]:
        ks = range(1, self.learner.k_max + 1)
        return [{**settings, "k": k} for settings in super().settings for k in ks]

    def choice(self, setting: int) -> tuple[Learner, Estimation]:
        which, order = divmod(setting, self.learner.k_max)
        return self.kind(order + 1), self.estimations[which]

    def fit(self, samples: Samples) -> Fitted:
        table, k_max = samples[self.transform], self.learner.k_max
        statistics = collect(table, every_family(table.schema, k_max))
        ks = tuple(range(1, k_max + 1))
        estimations = tuple(estimation for estimation in self.estimations for _ in ks)
        return FittedBands(
            self.transform, self.kind.shape, statistics, estimations, ks * len(self.estimations), self.missing_indicator
        )


class BoxCandidate(BandCandidate):
    """Boxes of every k up to a maximum."""

    name = "box"
    label = "each feature with its neighbours in the same block (boxes)"
    by_default = False
    kind = Box


class BandAverageCandidate(OrderedCandidate):
    """The average over bands."""

    name = "band_average"
    label = "each feature with its neighbours, averaged over their number (band average)"
    by_default = False
    make = BandAverage
    chooses_by_evidence = True
    speed = 8e5
    sharings = (0.0,)

    @classmethod
    def learner_for(cls, profile: Profile) -> Learner:
        return BandAverage(min(K_MAX, profile.m))

    @classmethod
    def why_not(cls, profile: Profile) -> str | None:
        return super().why_not(profile) or (None if profile.prior.is_coherent else NO_EVIDENCE)
