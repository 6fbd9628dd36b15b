"""Ridge logistic regression on terms of the columns, at a path of penalties, as a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

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
    frequencies,
)
from cgnlearn.candidates.power import likelihood_power
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.data.transforms import Bins
from cgnlearn.logistic.design import Design, LinearOdds
from cgnlearn.logistic.features import Expansion
from cgnlearn.logistic.optimiser import MOST_CURVATURE, MOST_DENSE, Point
from cgnlearn.logistic.optimiser import Samples as Regressed
from cgnlearn.logistic.path import Step, fits, penalties, steps
from cgnlearn.logistic.uncertainty import LEAST_SIZE, Curved, Directions, supported_penalty
from cgnlearn.networks.coalitions import Likelihoods, Players, additive
from cgnlearn.networks.densities import normalised, true_class_log_proba
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.uncertainty import LogDensities, NoSamplesError

N_STEPS = 8  # bins, at whose edges the terms step
MOST_FEATURES = 1000  # besides the columns themselves
MOST_TWICE = 5e8  # samples × parameters² up to which transformed columns are tried too
# The cost of a path of penalties, held-out predictions included, in seconds on a slow processor:
OF_HESSIAN, OF_FACTOR = 2e-10, 4e-9  # for each number of the products of a Hessian, and of its Cholesky factor
OF_GRADIENT, OF_ODDS, LEAST_OF_GRADIENT = 2e-10, 1.3e-8, 3e-4  # the same of a gradient, and of the odds of its samples
GRADIENTS, OF_BOUNDS = 1000, 2e-9  # where the Hessian is too large, and the same of its bounds
GAINS = {"linear": 0.19, "squares": 0.09, "products": 0.09, "pairs": 0.04, "steps": 0.07}  # usual weights in a mixture
OF_TERMS = {
    "squares": ", and its square",
    "products": ", and products of two",
    "pairs": ", and pairs of levels",
    "steps": ", in steps",
}


@dataclass(frozen=True, eq=False)
class FittedLogistic(Fitted):
    """Log odds that are linear in features, for each penalty."""

    transform: str
    expansion: Expansion
    odds: LinearOdds  # in addition to the log frequencies of the classes
    penalties: Floats  # (settings,), all finite
    dirichlet: float  # pseudo-count of a class

    has_density = False

    def log_likelihood(self, samples: Samples) -> Floats:
        return self.expansion.log_odds(self.odds, samples[self.transform])

    def log_densities(self, samples: Samples, log_likelihood: Floats, training: Training | None) -> list[LogDensities]:
        if training is None:
            raise NoSamplesError(
                "intervals of a mixture with a logistic regression need the training samples, which this model does "
                "not hold: fit it again, or save it with them"
            )
        features = self.expansion(samples[self.transform]).values
        return [
            LogDensities(log_odds, posterior.covariance(features), np.zeros_like(log_odds))
            for log_odds, posterior in zip(log_likelihood, self.posteriors(training), strict=True)
        ]

    def posteriors(self, training: Training) -> list[Curved | Directions]:
        """How certain the coefficients of the settings are, which is kept for the next call."""
        known: tuple[Training, list[Curved | Directions]] | None = self.__dict__.get("_known")
        if known is not None and known[0] is training:
            return known[1]
        table = training.samples[self.transform]
        design = Design.of(self.expansion(table).values, table, frequencies(table, self.dirichlet))
        found: list[Curved | Directions] = []
        for setting, penalty in enumerate(self.penalties.tolist()):
            curved = self._curved(design, self.odds[setting], penalty, training)
            found.append(Directions.of(curved) if design.samples.is_dense else curved)
        self.__dict__["_known"] = training, found
        return found

    def _curved(self, design: Design, odds: LinearOdds, penalty: float, training: Training) -> Curved:
        """The inverse Hessian of one setting."""
        # The curvature is that at held-out probabilities: at its own, a fit that separates the classes has none.
        curved = Curved.of(design, training.proba, penalty, None, training.times)
        size = max(float(np.square(design.slopes(odds)).sum()), LEAST_SIZE)
        supported = supported_penalty(curved.curvatures(penalty), penalty, size)
        return curved if supported == penalty else Curved.of(design, training.proba, supported, None, training.times)

    def leave_one_out(self, samples: Samples) -> Floats:
        raise NotExactError("logistic regression has no exact leave-one-out: take folds")

    def contributions(self, samples: Samples, setting: int) -> Floats:
        table, odds = samples[self.transform], self.odds[setting]
        return odds.contributions(self.expansion, table) + odds.intercept / table.schema.n_columns

    def coalitions(self, samples: Samples, powers: Floats, players: Players) -> Likelihoods:
        if self.expansion.terms in ("products", "pairs"):
            return super().coalitions(samples, powers, players)
        odds = self.odds.total(powers)[0]
        found = additive(odds.contributions(self.expansion, samples[self.transform]), players)
        return replace(found, constant=odds.intercept[:, None])

    def restricted(self, which: Sequence[int]) -> FittedLogistic:
        return replace(self, odds=self.odds[list(which)], penalties=self.penalties[list(which)])

    def merged(self, powers: Floats) -> tuple[FittedLogistic, Floats]:
        total = powers.sum(keepdims=True)
        shares = powers / total
        penalty = np.exp((shares * np.log(self.penalties)).sum(keepdims=True))
        return replace(self, odds=self.odds.total(shares), penalties=penalty), total

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without inverse Hessians


@dataclass(frozen=True)
class LogisticCandidate(Candidate):
    """Ridge logistic regression with some terms, at all penalties of a path."""

    transform: str
    terms: str  # as `Expansion` has them
    dirichlet: float  # pseudo-count of a class
    path: tuple[float, ...] | None = None  # penalties; None: chosen from the samples

    name = "logistic"
    label = "a coefficient for each feature (logistic regression)"
    has_density = False
    is_cheap = False
    fitted_class: ClassVar[type[FittedLogistic]] = FittedLogistic
    more_terms: ClassVar[tuple[str, ...]] = ("squares", "products", "pairs")  # besides the columns
    gains: ClassVar[Mapping[str, float]] = GAINS

    @property
    def member(self) -> str:
        return f"{self.name}, {self.terms}"

    @property
    def gain(self) -> float:  # type: ignore[override]
        return self.gains[self.terms]

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[Self | Skipped]:
        for transform in profile.transforms:
            if not profile.why_no_transform(transform):
                yield from cls._of_transform(profile, transform)
        n_steps = n_features(profile, "steps")
        if 0 < n_steps <= MOST_FEATURES:
            yield cls("none", "steps", profile.prior.dirichlet)
        elif n_steps:
            yield Skipped(f"{cls.name}, steps", "none", f"{n_steps} features")

    @classmethod
    def _of_transform(cls, profile: Profile, transform: str) -> Iterator[Self | Skipped]:
        yield cls(transform, "linear", profile.prior.dirichlet)
        has_products = "products" in cls.more_terms and 0 < _n_products(profile) <= MOST_FEATURES
        for terms in cls.more_terms:
            if terms != "squares" or not has_products:  # products have them too
                yield from cls._with(terms, profile, transform)

    @classmethod
    def _with(cls, terms: str, profile: Profile, transform: str) -> Iterator[Self | Skipped]:
        m, base = profile.m, n_features(profile, "linear")
        n_pairs = base * (base - 1) // 2 if base > m else 0
        n_terms = {"squares": m, "products": _n_products(profile), "pairs": n_pairs}[terms]
        work = profile.n_samples * (n_features(profile, terms) * (profile.schema.n_classes - 1)) ** 2
        if n_terms > MOST_FEATURES:
            yield Skipped(f"{cls.name}, {terms}", transform, f"{n_terms} more features")
        elif transform != "none" and work > MOST_TWICE:
            reason = "too expensive to try with transformed columns too"
            yield Skipped(f"{cls.name}, {terms}", transform, reason)
        elif n_terms:
            yield cls(transform, terms, profile.prior.dirichlet)

    @property
    def settings(self) -> list[Settings]:
        common = {"candidate": self.name, "transform": self.transform, "terms": self.terms}
        return [{**common, "penalty": penalty} for penalty in self.path or ()]

    @classmethod
    def in_words(cls, settings: Settings) -> str:
        return super().in_words(settings) + OF_TERMS.get(settings["terms"], "")

    def seconds(self, profile: Profile) -> float:
        n, n_contrasts = profile.n_samples, profile.schema.n_classes - 1
        size = min(n_features(profile, self.terms), n)
        n_parameters = float(size * n_contrasts)
        if n_parameters <= MOST_DENSE and n * n_contrasts**2 <= MOST_CURVATURE:
            return LEAST_SECONDS + OF_HESSIAN * n * n_parameters**2 + OF_FACTOR * n_parameters**3
        of_one = LEAST_OF_GRADIENT + OF_GRADIENT * n * n_parameters + OF_ODDS * n * (n_contrasts + 1)
        return LEAST_SECONDS + GRADIENTS * of_one + OF_BOUNDS * (n + size) * size**2

    def n_numbers(self, profile: Profile) -> float:
        size = min(n_features(profile, self.terms), profile.n_samples)
        n_contrasts = profile.schema.n_classes - 1
        of_hessian = min((size * n_contrasts) ** 2, MOST_DENSE**2) + min(
            profile.n_samples * n_contrasts**2, MOST_CURVATURE
        )
        return COPIES * (profile.n_samples * n_features(profile, self.terms) + of_hessian)

    def fixed(self, samples: Samples) -> LogisticCandidate:
        return replace(self, path=tuple(penalties(self._design(samples[self.transform])[1].samples)))

    def _design(self, table: Table) -> tuple[Expansion, Design]:
        edges = Bins.of(table, N_STEPS).edges if self.terms == "steps" else None
        expansion = Expansion.of(table, self.terms, edges)
        return expansion, Design.of(expansion(table).values, table, frequencies(table, self.dirichlet))

    def _fits(self, samples: Regressed, path: Sequence[float]) -> Iterator[Point]:
        return fits(samples, path)

    def _steps(self, samples: Regressed, path: Sequence[float], score: Callable[[Floats], float]) -> Iterator[Step]:
        return steps(samples, path, score)

    def fit(self, samples: Samples) -> FittedLogistic:
        expansion, design = self._design(samples[self.transform])
        path = penalties(design.samples) if self.path is None else self.path
        odds = design.odds(list(self._fits(design.samples, path)))
        return self.fitted_class(self.transform, expansion, odds, np.array(path), self.dirichlet)

    def leave_one_out(self, samples: Samples, class_log_prior: Floats) -> HeldOut:
        expansion, design = self._design(samples[self.transform])
        labels, weights = design.samples.labels, design.samples.effective_weights

        def log_likelihood(log_proba: Floats) -> float:
            # As in the comparison: with a likelihood power.
            likelihood = log_proba - class_log_prior
            power = likelihood_power(likelihood, class_log_prior, labels, weights)
            return float(weights @ true_class_log_proba(normalised(power * likelihood + class_log_prior), labels))

        path = penalties(design.samples) if self.path is None else self.path
        found = list(self._steps(design.samples, path, log_likelihood))
        odds, tried = design.odds([step.point for step in found]), np.array([step.penalty for step in found])
        fitted = self.fitted_class(self.transform, expansion, odds, tried, self.dirichlet)
        likelihoods = [step.log_proba - class_log_prior for step in found]
        return HeldOut(
            replace(self, path=tuple(step.penalty for step in found)),
            fitted,
            np.array(likelihoods).reshape(len(found), *class_log_prior.shape),
            class_log_prior,
            [step.held_out_by for step in found],
        )


def _n_products(profile: Profile) -> int:
    """Number of products of two columns."""
    return profile.m * (profile.m - 1) // 2


def n_features(profile: Profile, terms: str) -> int:
    """Number of terms of a regression."""
    m, base = profile.m, profile.m + profile.n_levels
    return {
        "linear": base,
        "squares": base + m,
        "products": base + m * (m + 1) // 2,
        "pairs": base * (base + 1) // 2,
        "steps": (N_STEPS - 1) * m,
    }[terms]
