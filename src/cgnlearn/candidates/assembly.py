"""From a comparison to the mixture: what has weight, fitted to all samples."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from cgnlearn.candidates.candidate import Fitted, HeldOut, Samples, frequencies, held_out_frequencies
from cgnlearn.candidates.comparison import Scores
from cgnlearn.candidates.mixture import Mixture, Part, mixed_density
from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import evenly_spaced
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.typicality import MOST_ROWS, Reference


class Assembled(NamedTuple):
    """A mixture, and its log probabilities of held-out samples."""

    mixture: Mixture
    held_out_log_proba: Floats  # (samples, classes)
    reference: Reference


def assembled(
    held_out: Sequence[HeldOut],
    scores: Scores,
    weight: Floats,
    samples: Samples,
    all_samples: Samples,
    dirichlet: float,
) -> Assembled:
    """Fit what has weight to all samples, where candidates were compared in some (``samples``)."""
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
    density = [(part, found) for part, found in zip(parts, likelihoods, strict=True) if part.fitted.has_density]
    if not density:
        density = [_best_density(held_out, scores, places, samples, all_samples)]
    total = sum(part.weights.sum() for part, _ in density)
    of_density = tuple(Part(part.fitted, part.powers, part.weights / total) for part, _ in density)
    needed = {part.fitted.transform for part in (*parts, *of_density)}
    transforms = {name: transform for name, transform in samples.transforms.items() if name in needed}
    mixture = Mixture(transforms, tuple(parts), of_density, frequencies(all_samples.table, dirichlet))
    table = samples.table
    some = evenly_spaced(table.n_samples, MOST_ROWS)
    spread = Samples(table.rows(some), samples.transforms)
    seen = mixed_density(of_density, spread, [found[:, some] for _, found in density])
    weights = np.ones(len(some)) if table.weights is None else table.weights[some]
    reference = Reference(seen, held_out_frequencies(table, dirichlet)[some], weights)
    return Assembled(mixture, np.asarray(logsumexp(np.concatenate(log_proba), axis=0)), reference)


def _refitted(each: HeldOut, samples: Samples, all_samples: Samples) -> Fitted:
    """The candidate fitted to all samples; what is expensive stays fitted to the samples compared in."""
    if all_samples is samples or not each.candidate.is_cheap:
        return each.fitted or each.candidate.fit(samples)
    return each.candidate.fit(all_samples)


def _best_density(
    held_out: Sequence[HeldOut], scores: Scores, places: Sequence[slice], samples: Samples, all_samples: Samples
) -> tuple[Part, Floats]:
    """The best setting that is a density, and its log likelihoods of held-out samples."""
    dense = [(each, place) for each, place in zip(held_out, places, strict=True) if each.candidate.has_density]
    if not dense:
        raise ValueError("there is no density of x among the candidates: add naive_bayes to them")
    each, place = min(dense, key=lambda pair: scores.log_loss[pair[1]].min())
    best = int(scores.log_loss[place].argmin())
    part = Part(_refitted(each, samples, all_samples).restricted([best]), np.ones(1), np.ones(1))
    return part, each.log_likelihood[[best]]
