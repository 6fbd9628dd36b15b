"""The comparison of candidates on held-out samples, its scores and its table of results."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import entr

from cgnlearn.candidates.candidate import (
    Candidate,
    HeldOut,
    Samples,
    Settings,
    Skipped,
    frequencies,
    held_out_frequencies,
)
from cgnlearn.candidates.power import likelihood_power, second_best
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import Table
from cgnlearn.data.transforms import MOST_ROWS, learned
from cgnlearn.data.warning import DataWarning
from cgnlearn.networks.densities import is_correct, normalised, true_class_log_proba
from cgnlearn.networks.model import NotExactError

FOLDS = 5
NOTHING = "nothing can be learned: weights of samples or variances of columns are too small"
TOO_LATE = "the time_limit was over before it began"
NO_FOLDS = "no class has two samples, so there are no folds"


class Comparison:
    """Candidates and the samples on which they are compared, by leave-one-out where it is exact, else in folds."""

    def __init__(
        self,
        samples: Samples,  # with transforms learned from all samples
        candidates: Sequence[Candidate],
        dirichlet: float,  # pseudo-count of a class
        *,
        cv: int | None,  # folds for all candidates; None: leave-one-out where it is exact, else `n_folds`
        seed: int,
        n_folds: int = FOLDS,
        deadline: float = np.inf,  # on the clock of `time.monotonic`; candidates after the second are not begun then
    ) -> None:
        self.samples = samples
        self.candidates = candidates
        self.dirichlet = dirichlet
        self.has_leave_one_out = cv is None and samples.groups is None  # it would split groups
        self.n_folds = cv or n_folds
        self.seed = seed
        self.deadline = deadline

    @property
    def table(self) -> Table:
        """The samples."""
        return self.samples.table

    @cached_property
    def folds(self) -> list[tuple[NDArray[np.intp], Samples, Samples]]:
        """Test indexes, training samples and test samples of each fold.

        Transforms are learned from the training samples, of large tables from a part of all samples, once.
        """
        assert self.table.labels is not None
        groups = self.samples.groups
        transforms = sorted({candidate.transform for candidate in self.candidates})
        folds = []
        for train, test in stratified(self.table.labels, self.n_folds, self.seed, groups).pairs:
            known = self.samples.transforms if self.table.n_samples > MOST_ROWS else None
            table = self.table.rows(train)
            training = Samples(table, known or learned(transforms, table), None if groups is None else groups[train])
            folds.append((test, training, Samples(self.table.rows(test), training.transforms)))
        return folds

    @property
    def _has_folds(self) -> bool:
        """Whether folds can be made; where all candidates need them, making them raises the error."""
        assert self.table.labels is not None
        return not self.has_leave_one_out or bool((np.bincount(self.table.labels) > 1).any())

    def held_out(self, n_jobs: int | None = None) -> Iterator[HeldOut | Skipped]:
        """Hold the samples out for each candidate, in order, one by one or in threads.

        A candidate that fails is skipped with the reason; only the error of the first, the baseline, is raised.
        """
        if n_jobs in (None, 1):
            yield from map(self._held_out_or_skipped, self.candidates)
            return
        _ = self._has_folds and self.folds  # computed before threads start
        for transform in sorted({candidate.transform for candidate in self.candidates}):
            _ = self.samples[transform]
        run = Parallel(n_jobs, prefer="threads", return_as="generator")
        yield from run(delayed(self._held_out_or_skipped)(candidate) for candidate in self.candidates)

    def _held_out_or_skipped(self, candidate: Candidate) -> HeldOut | Skipped:
        if monotonic() > self.deadline and all(candidate is not each for each in self.candidates[:2]):
            return Skipped(candidate.name, candidate.transform, TOO_LATE)
        try:
            return self._held_out(candidate)
        except Exception as error:  # KeyboardInterrupt and SystemExit are none and end the fit
            if candidate is self.candidates[0] or isinstance(error, Warning):  # who made it an error wants one
                raise
            if isinstance(error, ValueError):
                return Skipped(candidate.name, candidate.transform, str(error))
            # What is no ValueError says nothing about the data and is a fault of the program: the fit goes on, but
            # not in silence, and tests, in which warnings are errors, fail.
            reason = f"it failed with {type(error).__name__}: {error}"
            message = f"the candidate {candidate.name} is skipped, because {reason}; please report this"
            warnings.warn(message, DataWarning, stacklevel=2)
            return Skipped(candidate.name, candidate.transform, reason)

    def _held_out(self, candidate: Candidate) -> HeldOut | Skipped:
        held_out = None
        if self.has_leave_one_out:
            with suppress(NotExactError):
                class_log_prior = held_out_frequencies(self.table, self.dirichlet)
                held_out = candidate.leave_one_out(self.samples, class_log_prior)
        if held_out is None:
            if not self._has_folds:
                return Skipped(candidate.name, candidate.transform, NO_FOLDS)
            held_out = self._out_of_fold(candidate.fixed(self.samples))
        return held_out if len(held_out.log_likelihood) else Skipped(candidate.name, candidate.transform, NOTHING)

    def _out_of_fold(self, candidate: Candidate) -> HeldOut:
        shape = self.table.n_samples, self.table.schema.n_classes
        likelihood, prior = np.empty((len(candidate.settings), *shape)), np.empty(shape)
        for test, training, held_out in self.folds:
            likelihood[:, test] = candidate.fit(training).log_likelihood(held_out)
            prior[test] = frequencies(training.table, self.dirichlet)
        return HeldOut(candidate, None, likelihood, prior, [f"{len(self.folds)} folds"] * len(likelihood))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of all settings of all candidates; arrays (settings,) except `truth`."""

    power: Floats  # of the likelihood
    log_loss: Floats  # infinite where estimates do not exist
    accuracy: Floats
    truth: Floats  # log probabilities of the true classes: (samples, settings)
    second: Floats  # mean log probability of the likeliest wrong class
    entropy: Floats  # mean entropy of the class probabilities

    @classmethod
    def of(cls, held_out: Sequence[HeldOut], table: Table, power: float | None = None) -> Scores:
        """Score with the given likelihood power, or with the best one of each setting."""
        assert table.labels is not None
        labels, weights = table.labels, table.effective_weights
        found: list[tuple[float, float, float, Floats, float, float]] = []
        for each in held_out:
            for likelihood in each.log_likelihood:
                if np.isnan(likelihood).any():
                    found.append((power or 1.0, np.inf, 0.0, np.full(len(labels), -np.inf), -np.inf, 0.0))
                    continue
                best = power or likelihood_power(likelihood, each.class_log_prior, labels, weights)
                log_proba = normalised(best * likelihood + each.class_log_prior)
                truth = true_class_log_proba(log_proba, labels)
                accuracy = np.average(is_correct(log_proba, labels), weights=weights)
                second = weights @ true_class_log_proba(log_proba, second_best(log_proba, labels)) / weights.sum()
                entropy = weights @ entr(np.exp(log_proba)).sum(axis=1) / weights.sum()
                found.append((best, -np.average(truth, weights=weights), float(accuracy), truth, second, entropy))
        powers, losses, accuracies, truths, *others = zip(*found, strict=True)
        arrays = np.array(powers), np.array(losses), np.array(accuracies), np.stack(truths, 1)
        return cls(*arrays, *map(np.array, others))

    def best(self, scoring: str = "log_loss") -> int:
        """Index of the best setting; ties go by the other score, then to the first."""
        keys = (-self.accuracy, self.log_loss) if scoring == "log_loss" else (self.log_loss, -self.accuracy)
        return int(np.lexsort(keys)[0])

    def cautious_best(self, table: Table) -> int:
        """The least confident of those whose log loss is within a standard error of the least.

        The least log loss of many is partly luck, and overconfidence costs more than its opposite.
        """
        weights = table.effective_weights / table.effective_weights.sum()
        behind = self.truth[:, [self.best()]] - self.truth
        with np.errstate(invalid="ignore"):
            error = np.sqrt(np.square(weights) @ np.square(behind - weights @ behind))
            close = (weights @ behind <= error) | (np.arange(len(self.power)) == self.best())
        return int(np.argmax(np.where(close, self.entropy, -np.inf)))

    def as_columns(self) -> dict[str, NDArray[Any]]:
        """Columns of ``cv_results_``."""
        return {
            "likelihood_power": self.power,
            "mean_test_log_loss": self.log_loss,
            "mean_test_accuracy": self.accuracy,
            "rank_test_log_loss": _ranks(self.log_loss),
            "rank_test_accuracy": _ranks(-self.accuracy),
        }


def _ranks(values: Floats) -> NDArray[np.intp]:
    """Ranks from 1 for the smallest; ties share the lowest."""
    return np.asarray(1 + np.searchsorted(np.sort(values), values))


def results(
    held_out: Sequence[HeldOut], scores: Scores, weight: Floats, skipped: Sequence[Skipped] = ()
) -> dict[str, NDArray[Any]]:
    """``cv_results_``: a row for each setting and for each skipped candidate."""
    rows: list[Settings] = [settings for each in held_out for settings in each.candidate.settings]
    n_tried = len(rows)
    rows += [{"candidate": each.name, "transform": each.transform} for each in skipped]
    table: dict[str, NDArray[Any]] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        example = next(row[name] for row in rows if name in row)
        absent = "" if isinstance(example, str) else np.nan
        table[f"param_{name}"] = np.array([row.get(name, absent) for row in rows])
    table["validation"] = np.array([name for each in held_out for name in each.validation] + [""] * len(skipped))
    for name, values in scores.as_columns().items():
        absent = n_tried + 1 if name.startswith("rank") else np.nan
        table[name] = np.append(values, [absent] * len(skipped)).astype(values.dtype)
    table["weight"] = np.append(weight, [0.0] * len(skipped))
    table["reason"] = np.array([""] * n_tried + [each.reason for each in skipped])
    return table
