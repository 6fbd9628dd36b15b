"""The comparison of candidates by samples that their fits have not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from cgnlearn.candidates.candidate import (
    Candidate,
    HeldOut,
    Samples,
    Skipped,
    frequencies,
    held_out_frequencies,
)
from cgnlearn.candidates.power import likelihood_power, second_best
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import Table
from cgnlearn.networks.densities import is_correct, normalised, true_class_log_proba
from cgnlearn.networks.model import NotExactError

FOLDS = 5
NOTHING = "the samples weigh so little, or the columns vary so little, that nothing can be learned"
NO_FOLDS = "no class has two samples, so that none can be held out"


class Comparison:
    """Samples, whole and in folds, and the candidates that are compared by them.

    Parameters
    ----------
    samples : Samples
        With transforms that are learned from all samples.
    candidates : sequence of Candidate
    dirichlet : float
        Weight of every class before any sample is seen.
    cv : int or None
        How many folds; None: leave-one-out where it is exact, else `n_folds`.
    seed : int
    n_folds : int
    """

    def __init__(
        self,
        samples: Samples,
        candidates: Sequence[Candidate],
        dirichlet: float,
        *,
        cv: int | None,
        seed: int,
        n_folds: int = FOLDS,
    ) -> None:
        self.samples = samples
        self.candidates = candidates
        self.dirichlet = dirichlet
        self.leaves_one_out = cv is None and samples.groups is None  # which would part groups
        self.n_folds = cv or n_folds
        self.seed = seed

    @property
    def table(self) -> Table:
        """The samples."""
        return self.samples.table

    @cached_property
    def folds(self) -> list[tuple[NDArray[np.intp], Samples, Samples]]:
        """Of each fold the test indexes, and training and test samples, with transforms learned from the former."""
        assert self.table.labels is not None
        groups = self.samples.groups
        transforms = sorted({candidate.transform for candidate in self.candidates})
        found = []
        for train, test in stratified(self.table.labels, self.n_folds, self.seed, groups).pairs:
            inside = Samples.learning(transforms, self.table.rows(train), None if groups is None else groups[train])
            found.append((test, inside, Samples(self.table.rows(test), inside.transforms)))
        return found

    @property
    def _has_folds(self) -> bool:
        """Whether there are folds; where all candidates need them, it is an error if not."""
        assert self.table.labels is not None
        return not self.leaves_one_out or bool((np.bincount(self.table.labels) > 1).any())

    def held_out(self, n_jobs: int | None = None) -> Iterator[HeldOut | Skipped]:
        """All candidates, in their order, one after the other or in several threads."""
        if n_jobs in (None, 1):
            yield from map(self._held_out, self.candidates)
            return
        _ = self._has_folds and self.folds  # not by several threads at once
        for transform in sorted({candidate.transform for candidate in self.candidates}):
            _ = self.samples[transform]
        run = Parallel(n_jobs, prefer="threads", return_as="generator")
        yield from run(delayed(self._held_out)(candidate) for candidate in self.candidates)

    def _held_out(self, candidate: Candidate) -> HeldOut | Skipped:
        found = None
        if self.leaves_one_out:
            with suppress(NotExactError):
                class_log_prior = held_out_frequencies(self.table, self.dirichlet)
                found = candidate.leave_one_out(self.samples, class_log_prior)
        if found is None:
            if not self._has_folds:
                return Skipped(candidate.name, candidate.transform, NO_FOLDS)
            found = self._out_of_fold(candidate.fixed(self.samples))
        return found if len(found.log_likelihood) else Skipped(candidate.name, candidate.transform, NOTHING)

    def _out_of_fold(self, candidate: Candidate) -> HeldOut:
        shape = self.table.n_samples, self.table.schema.n_classes
        likelihood, prior = np.empty((len(candidate.settings), *shape)), np.empty(shape)
        for test, inside, outside in self.folds:
            likelihood[:, test] = candidate.fit(inside).log_likelihood(outside)
            prior[test] = frequencies(inside.table, self.dirichlet)
        return HeldOut(candidate, None, likelihood, prior, [f"{len(self.folds)} folds"] * len(likelihood))


@dataclass(frozen=True, eq=False)
class Scores:
    """Of all settings of all candidates; arrays (settings,) but for `truth`."""

    power: Floats  # of the likelihood
    log_loss: Floats  # infinite where the samples do not allow the setting
    accuracy: Floats
    truth: Floats  # log probabilities of the true classes: (samples, settings)
    second: Floats  # mean log probability of the class that comes second

    @classmethod
    def of(cls, held_out: Sequence[HeldOut], table: Table, power: float | None = None) -> Scores:
        """With the likelihood power that is given, or of each setting the best."""
        assert table.labels is not None
        labels, weights = table.labels, np.ones(table.n_samples) if table.weights is None else table.weights
        found: list[tuple[float, float, float, Floats, float]] = []
        for each in held_out:
            for likelihood in each.log_likelihood:
                if np.isnan(likelihood).any():
                    found.append((power or 1.0, np.inf, 0.0, np.full(len(labels), -np.inf), -np.inf))
                    continue
                best = power or likelihood_power(likelihood, each.class_log_prior, labels, weights)
                log_proba = normalised(best * likelihood + each.class_log_prior)
                truth = true_class_log_proba(log_proba, labels)
                accuracy = np.average(is_correct(log_proba, labels), weights=weights)
                second = weights @ true_class_log_proba(log_proba, second_best(log_proba, labels)) / weights.sum()
                found.append((best, -np.average(truth, weights=weights), float(accuracy), truth, second))
        powers, losses, accuracies, truths, seconds = zip(*found, strict=True)
        return cls(np.array(powers), np.array(losses), np.array(accuracies), np.stack(truths, 1), np.array(seconds))

    def best(self, scoring: str = "log_loss") -> int:
        """The best setting; equal ones go by the other score, then to the first."""
        keys = (-self.accuracy, self.log_loss) if scoring == "log_loss" else (self.log_loss, -self.accuracy)
        return int(np.lexsort(keys)[0])

    def as_columns(self) -> dict[str, NDArray[Any]]:
        """As `cv_results_` has them."""
        return {
            "likelihood_power": self.power,
            "mean_test_log_loss": self.log_loss,
            "mean_test_accuracy": self.accuracy,
            "rank_test_log_loss": _ranks(self.log_loss),
            "rank_test_accuracy": _ranks(-self.accuracy),
        }


def _ranks(values: Floats) -> NDArray[np.intp]:
    """1 for the least; the same for equal ones."""
    return np.asarray(1 + np.searchsorted(np.sort(values), values))
