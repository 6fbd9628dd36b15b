"""The mixture of candidates, averaged in their class probabilities, and how it is assembled from a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.candidates.candidate import Fitted, Samples, frequencies, held_out_frequencies
from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.merging import Merged, Piece, as_one
from cgnlearn.candidates.power import mixture_power
from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import stratified_sample
from cgnlearn.data.table import Table, concatenated
from cgnlearn.data.transforms import Transform
from cgnlearn.networks.coalitions import Likelihoods, Players
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.integration import observed_cells
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.shapley import Member
from cgnlearn.networks.typicality import MOST_ROWS, Reference, n_draws, spread_labels, value_quantiles

NO_DENSITY = (
    "no candidate is a density of the features, as score_samples and typicality need: add naive_bayes to candidates"
)
CHUNK = 1 << 22  # numbers of one part's predictions in memory at once
N_DRAWN_FROM = 20  # members, as often as their weights say, from which samples are drawn

AnyPart = TypeVar("AnyPart", "Part", "Density")


@dataclass(frozen=True, eq=False)
class Part:
    """A member of the mixture: p(c | x) ∝ p(c) Π p(x | c)^power over the settings of its fits."""

    fits: tuple[Fitted, ...]  # one for each transform
    powers: tuple[Floats, ...]  # of the settings of each fit
    weight: float

    @property
    def accepts_missing(self) -> bool:
        return all(fitted.accepts_missing for fitted in self.fits)

    @property
    def n_settings(self) -> int:
        return sum(map(len, self.powers))

    def log_joint(self, likelihoods: Sequence[Floats], class_log_prior: Floats) -> Floats:
        """ln p(class | x) up to a constant of each sample, from the log likelihoods of each fit's settings."""
        total = class_log_prior
        for powers, of_settings in zip(self.powers, likelihoods, strict=True):
            total = total + (powers @ of_settings.reshape(len(powers), -1)).reshape(of_settings.shape[1:])
        return total

    def coalitions(self, samples: Samples, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of features, each setting's times its power."""
        nothing = np.zeros((len(players), samples.table.schema.n_classes, samples.table.n_samples))
        each = (fit.coalitions(samples, own, players) for fit, own in zip(self.fits, self.powers, strict=True))
        return sum(each, start=Likelihoods(nothing))

    def contributions(self, samples: Samples) -> Floats | None:
        """Terms of the log likelihood, by feature; None if it is no sum over features."""
        if not all(fitted.is_sum for fitted in self.fits):
            return None
        found = [
            power * fitted.contributions(samples, i)
            for fitted, powers in zip(self.fits, self.powers, strict=True)
            for i, power in enumerate(powers)
        ]
        return np.sum(found, axis=0)


@dataclass(frozen=True, eq=False)
class Density:
    """Settings of one fit that are densities of x."""

    fitted: Fitted
    weights: Floats  # (settings,)

    @property
    def accepts_missing(self) -> bool:
        return self.fitted.accepts_missing

    @property
    def n_settings(self) -> int:
        return len(self.weights)


@dataclass(frozen=True, eq=False)
class Mixture:
    """p(c | x) ∝ p(c) (m(c | x) / p(c))^power, with m = Σ weight · p(c | x) over all members."""

    transforms: Mapping[str, Transform]
    parts: tuple[Part, ...]  # weights sum to one over all of them
    density: tuple[Density, ...]  # weights sum to one over all of them; empty if no candidate is a density
    class_log_prior: Floats  # (classes,)
    weight_draws: Floats  # weights of the parts in Bayesian bootstraps: (draws, parts)
    power: float = 1.0  # of the likelihood ratios p(c | x) / p(c) of the mixture, at least 1

    def with_class_log_prior(self, class_log_prior: Floats) -> Mixture:
        """The same mixture for another prevalence of the classes."""
        return replace(self, class_log_prior=class_log_prior)

    def log_proba(self, table: Table) -> Floats:
        """ln p(class | x): (samples, classes)."""
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in chunks(Samples(table, self.transforms), self.parts):
            likelihoods = [[fitted.log_likelihood(samples) for fitted in part.fits] for part in able]
            found[which] = self.log_proba_of(likelihoods, able)
        return found

    def log_proba_of(self, likelihoods: Sequence[Sequence[Floats]], able: Sequence[Part]) -> Floats:
        """ln p(class | x) from the log likelihoods of the fits of some members: (samples, classes)."""
        of_parts = [part.log_joint(own, self.class_log_prior) for part, own in zip(able, likelihoods, strict=True)]
        return raised(mixed(np.stack(of_parts), able), self.class_log_prior, self.power)

    def leave_one_out(self, table: Table, class_log_prior: Floats) -> Floats:
        """Leave-one-out `log_proba` of the training samples; raises `NotExactError` where a member needs refits."""
        samples = Samples(table, self.transforms)
        of_parts = [
            part.log_joint([fitted.leave_one_out(samples) for fitted in part.fits], class_log_prior)
            for part in self.parts
        ]
        return raised(mixed(np.stack(of_parts), self.parts), class_log_prior, self.power)

    def log_density(self, table: Table) -> Floats:
        """ln p(x | class) of the members that are densities: (samples, classes); raises where no candidate is one."""
        if not self.density:
            raise NotExactError(NO_DENSITY)
        found = np.empty((table.n_samples, table.schema.n_classes))
        for which, samples, able in chunks(Samples(table, self.transforms), self.density):
            found[which] = mixed_density(able, samples, [part.fitted.log_likelihood(samples) for part in able])
        return found

    def drawn(self, n_columns: int) -> Table:
        """Complete samples drawn from the members that are densities and accept missing values, always the same."""
        able = [part for part in self.density if part.fitted.accepts_missing]
        members = [(part.fitted, i) for part in able for i in range(len(part.weights))]
        weights = np.concatenate([part.weights for part in able])
        rng = np.random.default_rng(0)
        labels = spread_labels(self.class_log_prior, n_draws(n_columns) // N_DRAWN_FROM)
        drawn = []
        for member in spread_labels(np.log(weights), N_DRAWN_FROM):
            fitted, setting = members[member]
            drawn.append(self.transforms[fitted.transform].inverse(fitted.draw(setting, labels, rng)))
        return concatenated(drawn)

    def coalitions(self, table: Table, players: Players) -> list[Member]:
        """Log likelihoods of coalitions of features under each member that accepts missing values."""
        able = [part for part in self.parts if part.accepts_missing]
        samples, total = Samples(table, self.transforms), sum(part.weight for part in able)
        return [Member(part.weight / total, part.coalitions(samples, players)) for part in able]

    def contributions(self, table: Table) -> Floats:
        """Mean of the members' contributions times all powers: (samples, columns of X, classes).

        A member that is no sum over features contributes nothing.
        """
        found = np.zeros((table.n_samples, table.schema.n_columns, table.schema.n_classes))
        for which, samples, able in chunks(Samples(table, self.transforms), self.parts):
            total = sum(part.weight for part in able)
            for part in able:
                if (of_part := part.contributions(samples)) is not None:
                    found[which] += self.power * part.weight / total * of_part
        return found


def mixed(log_joint: Floats, parts: Sequence[Part]) -> Floats:
    """ln Σ weight · p(class | x) from the members' log joint probabilities (members, samples, classes)."""
    log_proba = normalised(log_joint)
    log_proba += np.log([part.weight for part in parts])[:, None, None]
    highest = log_proba.max(axis=0)
    total: Floats = np.exp(log_proba - highest).sum(axis=0)
    return normalised(highest + np.log(total))


def raised(log_proba: Floats, class_log_prior: Floats, power: float) -> Floats:
    """Log probabilities whose likelihood ratios are raised to a power: a change of the prevalence stays one."""
    return log_proba if power == 1 else normalised(power * log_proba + (1 - power) * class_log_prior)


def chunks(
    samples: Samples, parts: tuple[AnyPart, ...]
) -> Iterator[tuple[NDArray[np.intp], Samples, tuple[AnyPart, ...]]]:
    """Chunks of samples, and the parts that can predict them: not all accept missing values."""
    table = samples.table
    able = tuple(part for part in parts if part.accepts_missing) or parts  # if none, the first raises
    complete = np.ones(table.n_samples, bool)
    if table.incomplete and len(able) < len(parts):
        complete = ~(np.isnan(table.values).any(axis=1) | (table.codes < 0).any(axis=1))
    widest = max(part.n_settings for part in parts)
    size = max(256, CHUNK // max(widest * table.schema.n_classes, table.schema.n_columns))
    for which, usable in ((np.flatnonzero(complete), parts), (np.flatnonzero(~complete), able)):
        for start in range(0, len(which), size):
            chunk = which[start : start + size]
            is_all = len(chunk) == table.n_samples
            yield chunk, samples if is_all else Samples(table.rows(chunk), samples.transforms), usable


def mixed_density(density: Sequence[Density], samples: Samples, likelihoods: list[Floats]) -> Floats:
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
    reference: Reference | None  # None: no member is a density


def assembled(
    merged: Sequence[Merged],
    scores: Scores,
    weights: Floats,
    samples: Samples,
    all_samples: Samples,
    dirichlet: float,
    weight_draws: Floats,  # (draws, candidates)
) -> Assembled:
    """Fit the members to all samples; ``samples`` are those compared on, ``scores`` those of the merged candidates."""
    table = samples.table
    parts, log_joint, dense = [], [], []
    for i in np.flatnonzero(weights).tolist():
        pieces = [piece for piece in merged[i] if len(piece.kept)]
        fits = [_refitted(piece, samples, all_samples) for piece in pieces]
        powers = [scores.power[i] * piece.powers[piece.kept] for piece in pieces]
        fewer, powers_of = zip(*(fitted.merged(own) for fitted, own in zip(fits, powers, strict=True)), strict=True)
        parts.append(Part(fewer, powers_of, float(weights[i])))
        one = as_one(merged[i])
        log_joint.append(scores.power[i] * one.log_likelihood[0] + one.class_log_prior)
        for piece, fitted in zip(pieces, fits, strict=True):
            if fitted.has_density:
                dense.append((piece, Density(fitted, weights[i] * piece.shares[piece.kept])))
    if not dense:
        dense = list(_best_density(merged, scores, samples, all_samples))
    total = sum(density.weights.sum() for _, density in dense)
    densities = tuple(Density(density.fitted, density.weights / total) for _, density in dense)
    needed = {fitted.transform for each in parts for fitted in each.fits} | {
        each.fitted.transform for each in densities
    }
    transforms = {name: transform for name, transform in samples.transforms.items() if name in needed}
    class_log_prior = held_out_frequencies(table, dirichlet)
    assert table.labels is not None
    held_out = mixed(np.stack(log_joint), parts)
    power = 1.0
    if len(parts) > 1:
        power = mixture_power(held_out, class_log_prior, table.labels, table.effective_weights)
    log_prior, drawn = frequencies(all_samples.table, dirichlet), weight_draws[:, np.flatnonzero(weights)]
    mixture = Mixture(transforms, tuple(parts), densities, log_prior, drawn, power)
    held_out = raised(held_out, class_log_prior, power)
    if not dense:
        return Assembled(mixture, held_out, None)
    rows = stratified_sample(table.labels, MOST_ROWS)
    subsample = Samples(table.rows(rows), samples.transforms)
    likelihoods = [piece.held_out.log_likelihood[piece.kept][:, rows] for piece, _ in dense]
    row_weights = np.ones(len(rows)) if table.weights is None else table.weights[rows]
    log_density = mixed_density(densities, subsample, likelihoods)
    observed, quantiles = observed_cells(subsample.table), value_quantiles(subsample.table)
    reference = Reference(log_density, class_log_prior[rows], row_weights, observed, quantiles)
    return Assembled(mixture, held_out, reference)


def _refitted(piece: Piece, samples: Samples, all_samples: Samples) -> Fitted:
    """The settings that have a share, fitted to all samples; an expensive candidate stays fitted to those compared."""
    candidate, fitted = piece.held_out.candidate, piece.held_out.fitted
    if all_samples is not samples and candidate.is_cheap:
        fitted = candidate.fit(all_samples)
    return (fitted or candidate.fit(samples)).restricted(piece.kept.tolist())


def _best_density(
    merged: Sequence[Merged], scores: Scores, samples: Samples, all_samples: Samples
) -> Iterator[tuple[Piece, Density]]:
    """The best candidate that is a density of x, if there is one."""
    dense = [i for i, pieces in enumerate(merged) if pieces[0].held_out.candidate.has_density]
    if not dense:
        return
    for piece in merged[min(dense, key=lambda i: scores.log_loss[i])]:
        if len(piece.kept):
            yield piece, Density(_refitted(piece, samples, all_samples), piece.shares[piece.kept])
