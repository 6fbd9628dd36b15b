"""From a comparison to the mixture: what has weight, fitted to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from cgnlearn.model.densities import Floats, normalised
from cgnlearn.model.surprise import MOST_ROWS, Reference
from cgnlearn.model.table import evenly_spaced
from cgnlearn.tuning.comparison import Judged
from cgnlearn.tuning.mixture import Mixture, Rules, mixed_density
from cgnlearn.tuning.results import Weighed
from cgnlearn.tuning.source import Fit, frequencies, frequencies_left_out
from cgnlearn.tuning.transforms import Views


class Assembled(NamedTuple):
    """A mixture, and what its rules say of rows compared in without them."""

    mixture: Mixture
    left_out_log_proba: Floats  # (rows, classes)
    reference: Reference


def assembled(
    judged: Sequence[Judged], weighed: Weighed, views: Views, all_views: Views, dirichlet: float
) -> Assembled:
    """Fit what has weight to all rows, where candidates were compared in some (``views``)."""
    starts = np.cumsum([0, *(len(each.described) for each in judged)]).tolist()
    parts = [slice(start, stop) for start, stop in pairwise(starts)]
    rules, kept, log_proba = [], [], []
    for each, part in zip(judged, parts, strict=True):
        which = np.flatnonzero(weighed.weight[part])
        if not len(which):
            continue
        temperatures, weights = weighed.temperature[part][which], weighed.weight[part][which]
        rules.append(Rules(_refitted(each, views, all_views).kept(which.tolist()), temperatures, weights))
        kept.append(each.log_likelihood[which])
        joint = temperatures[:, None, None] * kept[-1] + each.class_log_prior
        log_proba.append(normalised(joint) + np.log(weights)[:, None, None])
    density = [(each, said) for each, said in zip(rules, kept, strict=True) if each.fit.has_density]
    if not density:
        density = [_best_density(judged, weighed, parts, views, all_views)]
    total = sum(each.weights.sum() for each, _ in density)
    of_density = tuple(Rules(each.fit, each.temperatures, each.weights / total) for each, _ in density)
    needed = {each.fit.view for each in (*rules, *of_density)}
    transforms = {name: transform for name, transform in views.transforms.items() if name in needed}
    mixture = Mixture(transforms, tuple(rules), of_density, frequencies(all_views.table, dirichlet))
    table = views.table
    some = evenly_spaced(table.n_rows, MOST_ROWS)
    seen = mixed_density(of_density, Views(table.rows(some), views.transforms), [said[:, some] for _, said in density])
    weights = np.ones(len(some)) if table.weights is None else table.weights[some]
    reference = Reference(seen, frequencies_left_out(table, dirichlet)[some], weights)
    return Assembled(mixture, np.asarray(logsumexp(np.concatenate(log_proba), axis=0)), reference)


def _refitted(each: Judged, views: Views, all_views: Views) -> Fit:
    """The source fitted to all rows; what is dear is left as it was fitted to the rows compared in."""
    if all_views is views or not each.source.is_additive:
        return each.fit or each.source.scored(views, leave_out=False).fit
    return each.source.scored(all_views, leave_out=False).fit


def _best_density(
    judged: Sequence[Judged], weighed: Weighed, parts: Sequence[slice], views: Views, all_views: Views
) -> tuple[Rules, Floats]:
    """The best candidate that is a density, and what it says of rows left out."""
    best: tuple[float, Judged, int] | None = None
    for each, part in zip(judged, parts, strict=True):
        if not each.source.has_density:
            continue
        at = int(weighed.cll[part].argmax())
        if best is None or weighed.cll[part][at] > best[0]:
            best = float(weighed.cll[part][at]), each, at
    if best is None:
        raise ValueError("there is no density of x among the candidates: add naive_bayes to them")
    _, each, at = best
    return Rules(_refitted(each, views, all_views).kept([at]), np.ones(1), np.ones(1)), each.log_likelihood[[at]]
