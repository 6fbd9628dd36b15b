"""The mixture of candidates, averaged in their class probabilities, and how it is assembled from a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.candidates.candidate import Fitted, HeldOut, Samples, frequencies, held_out_frequencies
from cgnlearn.candidates.comparison import Scores
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table, evenly_spaced
from cgnlearn.data.transforms import Transform
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.typicality import MOST_ROWS, NoReference, Reference

NO_DENSITY = (
    "no candidate is a density of the features, as score_samples and typicality need: add naive_bayes to candidates"
)
CHUNK = 1 << 22  # numbers of one part's predictions in memory at once


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
    density: tuple[Part, ...]  # those that are densities of x, with weights that sum to one; empty: none is
    class_log_prior: Floats  # (classes,)

    def with_class_log_prior(self, class_log_prior: Floats) -> Mixture:
        """The same mixture for another prevalence of the classes."""
        return replace(self, class_log_prior=class_log_prior)

    def log_proba(self, table: Table) -> Floats:
        """ln p(class | x): (samples, classes)."""
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in _chunks(Samples(table, self.transforms), self.parts):
            likelihoods = [part.fitted.log_likelihood(samples) for part in able]
            found[which] = _mixed(able, likelihoods, self.class_log_prior)
        return found

    def leave_one_out(self, table: Table, class_log_prior: Floats) -> Floats:
        """Leave-one-out `log_proba` of the training samples; raises `NotExactError` where a member needs refits."""
        samples = Samples(table, self.transforms)
        return _mixed(self.parts, [part.fitted.leave_one_out(samples) for part in self.parts], class_log_prior)

    def log_density(self, table: Table) -> Floats:
        """ln p(x | class) of the members that are densities: (samples, classes); raises where no candidate is one."""
        if not self.density:
            raise NotExactError(NO_DENSITY)
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in _chunks(Samples(table, self.transforms), self.density):
            found[which] = mixed_density(able, samples, [part.fitted.log_likelihood(samples) for part in able])
        return found

    def contributions(self, table: Table) -> Floats:
        """Mean of the members' contributions times their powers: (samples, columns of X, classes).

        A member that is no sum over features contributes nothing.
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
    """Chunks of samples, and the parts that can predict them: not all accept missing values."""
    table = samples.table
    able = tuple(part for part in parts if part.fitted.accepts_missing) or parts  # if none, the first raises
    complete = np.ones(table.n_samples, bool)
    if table.incomplete and len(able) < len(parts):
        complete = ~(np.isnan(table.values).any(axis=1) | (table.codes < 0).any(axis=1))
    widest = max(len(part.weights) for part in parts)
    size = max(256, CHUNK // max(widest * table.schema.n_classes, table.schema.n_columns))
    for which, usable in ((np.flatnonzero(complete), parts), (np.flatnonzero(~complete), able)):
        for start in range(0, len(which), size):
            chunk = which[start : start + size]
            is_all = len(chunk) == table.n_samples
            yield chunk, samples if is_all else Samples(table.rows(chunk), samples.transforms), usable


def mixed_density(density: tuple[Part, ...], samples: Samples, likelihoods: list[Floats]) -> Floats:
    """ln p(x | class) from log likelihoods of the transformed columns: (samples, classes)."""
    found = []
    for part, likelihood in zip(density, likelihoods, strict=True):
        jacobian = samples.log_jacobian(part.fitted.transform)
        assert jacobian is not None
        found.append(likelihood + jacobian.sum(axis=1)[:, None] + np.log(part.weights)[:, None, None])
    return np.asarray(logsumexp(np.concatenate(found), axis=0))


class Assembled(NamedTuple):
    """A mixture, its log probabilities of held-out samples, and the reference of its typicality."""

    mixture: Mixture
    held_out_log_proba: Floats  # (samples, classes)
    reference: Reference | NoReference


def assembled(
    held_out: Sequence[HeldOut],
    scores: Scores,
    weight: Floats,
    samples: Samples,
    all_samples: Samples,
    dirichlet: float,
) -> Assembled:
    """Fit the settings that have weight to all samples; ``samples`` are those that were compared on."""
    starts = np.cumsum([0, *(len(each.log_likelihood) for each in held_out)]).tolist()
    places = [slice(start, stop) for start, stop in pairwise(starts)]
    parts, likelihoods, log_proba = [], [], []
    for each, place in zip(held_out, places, strict=True):
        which = np.flatnonzero(weight[place])
        if not len(which):
            continue
        powers, weights = scores.power[place][which], weight[place][which]
        parts.append(Part(_refitted(each, samples, all_samples).restricted(which.tolist()), powers, weights))
        likelihoods.append(each.log_likelihood[which])
        joint = powers[:, None, None] * likelihoods[-1] + each.class_log_prior
        log_proba.append(normalised(joint) + np.log(weights)[:, None, None])
    density = [pair for pair in zip(parts, likelihoods, strict=True) if pair[0].fitted.has_density]
    if not density:
        density = _best_density(held_out, scores, places, samples, all_samples)
    total = sum(part.weights.sum() for part, _ in density)
    of_density = tuple(Part(part.fitted, part.powers, part.weights / total) for part, _ in density)
    needed = {part.fitted.transform for part in (*parts, *of_density)}
    transforms = {name: transform for name, transform in samples.transforms.items() if name in needed}
    mixture = Mixture(transforms, tuple(parts), of_density, frequencies(all_samples.table, dirichlet))
    held_out_log_proba = np.asarray(logsumexp(np.concatenate(log_proba), axis=0))
    if not density:
        return Assembled(mixture, held_out_log_proba, NoReference(NO_DENSITY))
    table = samples.table
    rows = evenly_spaced(table.n_samples, MOST_ROWS)
    subsample = Samples(table.rows(rows), samples.transforms)
    log_density = mixed_density(of_density, subsample, [likelihood[:, rows] for _, likelihood in density])
    weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
    reference = Reference(log_density, held_out_frequencies(table, dirichlet)[rows], weights)
    return Assembled(mixture, held_out_log_proba, reference)


def _refitted(each: HeldOut, samples: Samples, all_samples: Samples) -> Fitted:
    """The candidate fitted to all samples; an expensive one stays fitted to those that were compared on."""
    if all_samples is samples or not each.candidate.is_cheap:
        return each.fitted or each.candidate.fit(samples)
    return each.candidate.fit(all_samples)


def _best_density(
    held_out: Sequence[HeldOut], scores: Scores, places: Sequence[slice], samples: Samples, all_samples: Samples
) -> list[tuple[Part, Floats]]:
    """The best setting that is a density of x, and its log likelihoods of held-out samples; empty: there is none."""
    dense = [(each, place) for each, place in zip(held_out, places, strict=True) if each.candidate.has_density]
    if not dense:
        return []
    each, place = min(dense, key=lambda pair: scores.log_loss[pair[1]].min())
    best = int(scores.log_loss[place].argmin())
    part = Part(_refitted(each, samples, all_samples).restricted([best]), np.ones(1), np.ones(1))
    return [(part, each.log_likelihood[[best]])]
