"""Ridge logistic regression of one score that puts the classes in an order, at a path of penalties, as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from cgnlearn.candidates.candidate import LEAST_SECONDS, Profile, Skipped, Training
from cgnlearn.candidates.logistic import FittedLogistic, LogisticCandidate, n_features
from cgnlearn.data.arrays import Floats
from cgnlearn.logistic import ordinal
from cgnlearn.logistic.design import Design, LinearOdds
from cgnlearn.logistic.optimiser import Point
from cgnlearn.logistic.optimiser import Samples as Regressed
from cgnlearn.logistic.path import MANY_SAMPLES, N_FOLDS, N_PENALTIES, SAMPLES_TO_A_PARAMETER, Step
from cgnlearn.logistic.uncertainty import Curved

MOST_WORK = 1e8  # samples × features²
# The cost of a step of Newton's method, in seconds on a slow processor: of each number of the products of a Hessian, of
# the curvature of the samples, and of its least
OF_HESSIAN, OF_CURVATURE, LEAST_OF_STEP = 3e-10, 1e-8, 2e-4
STEPS = 6  # at each penalty


@dataclass(frozen=True, eq=False)
class FittedOrdinal(FittedLogistic):
    """Log odds between the classes that are linear in one score, for each penalty."""

    def _curved(self, design: Design, odds: LinearOdds, penalty: float, training: Training) -> Curved:
        if not design.samples.is_dense:
            return super()._curved(design, odds, penalty, training)
        return ordinal.certainty(design, odds, training.proba, penalty, training.times)


@dataclass(frozen=True)
class OrdinalCandidate(LogisticCandidate):
    """One score of the features, along which the classes are in an order that is found with it."""

    name = "ordinal"
    label = "one score that puts the classes in an order (ordinal logistic regression)"
    fitted_class = FittedOrdinal
    more_terms = ("squares",)
    gains = MappingProxyType({"linear": 0.1, "squares": 0.05, "steps": 0.05})

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        if profile.schema.n_classes < 3:
            yield Skipped(cls.name, "none", "two classes are in an order anyway: that is logistic")
        elif profile.n_samples > MANY_SAMPLES:
            yield Skipped(cls.name, "none", f"more than {MANY_SAMPLES} samples, enough for coefficients of each class")
        else:
            for each in super().suited(profile):
                if not isinstance(each, Skipped) and cls._work(profile, each.terms) > MOST_WORK:
                    yield Skipped(each.member, each.transform, "too many features for that many samples")
                else:
                    yield each

    @staticmethod
    def _work(profile: Profile, terms: str) -> float:
        return profile.n_samples * float(min(n_features(profile, terms), profile.n_samples)) ** 2

    def seconds(self, profile: Profile) -> float:
        of_samples = profile.n_samples * profile.schema.n_classes**2
        of_step = LEAST_OF_STEP + OF_HESSIAN * self._work(profile, self.terms) + OF_CURVATURE * of_samples
        size = min(n_features(profile, self.terms), profile.n_samples)
        n_fits = 1 if SAMPLES_TO_A_PARAMETER * size < profile.n_samples else 1 + N_FOLDS
        return LEAST_SECONDS + n_fits * N_PENALTIES * STEPS * of_step

    def _fits(self, samples: Regressed, path: Sequence[float]) -> Iterator[Point]:
        return ordinal.fits(samples, path)

    def _steps(self, samples: Regressed, path: Sequence[float], score: Callable[[Floats], float]) -> Iterator[Step]:
        return ordinal.steps(samples, path, score)
