"""The mixture: members that each predict the class, averaged in their probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.candidates.candidate import Fitted, Samples
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.data.transforms import Transform
from cgnlearn.networks.densities import normalised

CHUNK = 1 << 22  # numbers of one part's predictions that are held at once


@dataclass(frozen=True, eq=False)
class Part:
    """Members from one fit: p(c | x) ∝ p(c) p(x | c)^power each."""

    fitted: Fitted
    powers: Floats  # (members,)
    weights: Floats


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ weight · p(c | x) over all members."""

    transforms: Mapping[str, Transform]
    parts: tuple[Part, ...]  # weights sum to one over all of them
    density: tuple[Part, ...]  # those that are densities of x; weights sum to one here too
    class_log_prior: Floats  # (classes,)

    def with_class_log_prior(self, class_log_prior: Floats) -> Mixture:
        """The same for another prevalence."""
        return replace(self, class_log_prior=class_log_prior)

    def log_proba(self, table: Table) -> Floats:
        """ln p(class | x): (samples, classes)."""
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in _chunks(Samples(table, self.transforms), self.parts):
            likelihoods = [part.fitted.log_likelihood(samples) for part in able]
            found[which] = _mixed(able, likelihoods, self.class_log_prior)
        return found

    def leave_one_out(self, table: Table, class_log_prior: Floats) -> Floats:
        """Leave-one-out of training samples; raises `NotExactError` where a member would need refits."""
        samples = Samples(table, self.transforms)
        return _mixed(self.parts, [part.fitted.leave_one_out(samples) for part in self.parts], class_log_prior)

    def log_density(self, table: Table) -> Floats:
        """ln p(x | class), mixed over the members that are densities: (samples, classes)."""
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in _chunks(Samples(table, self.transforms), self.density):
            found[which] = mixed_density(able, samples, [part.fitted.log_likelihood(samples) for part in able])
        return found

    def contributions(self, table: Table) -> Floats:
        """The members' contributions times their power, averaged: (samples, columns of X, classes).

        A member that is no sum over features has none.
        """
        found = np.zeros((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        for which, samples, able in _chunks(Samples(table, self.transforms), self.parts):
            total = sum(part.weights.sum() for part in able)
            for part in (part for part in able if part.fitted.is_sum):
                for i, (power, weight) in enumerate(zip(part.powers, part.weights, strict=True)):
                    found[which] += weight / total * power * part.fitted.contributions(samples, i)
        return found


def _mixed(parts: tuple[Part, ...], likelihoods: list[Floats], class_log_prior: Floats) -> Floats:
    """ln p(class | x) from the log likelihoods of each part's members: (samples, classes)."""
    total = np.full(likelihoods[0].shape[1:], -np.inf)
    for part, of_part in zip(parts, likelihoods, strict=True):
        for likelihood, power, weight in zip(of_part, part.powers, part.weights, strict=True):
            log_proba = normalised(power * likelihood + class_log_prior)
            np.logaddexp(total, np.log(weight) + log_proba, out=total)
    return normalised(total)


def _chunks(samples: Samples, parts: tuple[Part, ...]) -> Iterator[tuple[NDArray[np.intp], Samples, tuple[Part, ...]]]:
    """Some samples at a time, and the parts that can predict them: not all can where a value is missing."""
    table = samples.table
    able = tuple(part for part in parts if part.fitted.accepts_missing) or parts  # if none can, the first says why not
    whole = np.ones(table.n_samples, bool)
    if table.incomplete and len(able) < len(parts):
        whole = ~(np.isnan(table.values).any(axis=1) | (table.codes < 0).any(axis=1))
    widest = max(len(part.weights) for part in parts)
    size = max(256, CHUNK // max(widest * table.schema.n_classes, table.schema.n_columns))
    for which, those in ((np.flatnonzero(whole), parts), (np.flatnonzero(~whole), able)):
        for start in range(0, len(which), size):
            some = which[start : start + size]
            all_of_them = len(some) == table.n_samples
            yield some, samples if all_of_them else Samples(table.rows(some), samples.transforms), those


def mixed_density(density: tuple[Part, ...], samples: Samples, likelihoods: list[Floats]) -> Floats:
    """ln p(x | class) from the log likelihoods of transformed columns: (samples, classes)."""
    found = []
    for part, likelihood in zip(density, likelihoods, strict=True):
        jacobian = samples.log_jacobian(part.fitted.transform)
        assert jacobian is not None
        found.append(likelihood + jacobian.sum(axis=1)[:, None] + np.log(part.weights)[:, None, None])
    return np.asarray(logsumexp(np.concatenate(found), axis=0))
