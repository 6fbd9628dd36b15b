"""The mixture: rules that each predict the class, averaged in their probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.model.densities import Floats, normalised
from cgnlearn.model.table import Table
from cgnlearn.tuning.source import Fit
from cgnlearn.tuning.transforms import Transform, Views

CHUNK = 1 << 22  # numbers of one rule's predictions that are held at once


@dataclass(frozen=True, eq=False)
class Rules:
    """Candidates of one fit: p(c | x) ∝ p(c) p(x | c)^temperature each.

    Parameters
    ----------
    fit : Fit
    temperatures, weights : ndarray (candidates,)
    """

    fit: Fit
    temperatures: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ weight · p(c | x) over all rules.

    Parameters
    ----------
    transforms : dict of Transform
    rules : tuple of Rules
        Weights sum to one over all of them.
    density : tuple of Rules
        Those that are densities of x; weights sum to one here too.
    class_log_prior : ndarray (classes,)
    """

    transforms: Mapping[str, Transform]
    rules: tuple[Rules, ...]
    density: tuple[Rules, ...]
    class_log_prior: Floats

    def with_class_log_prior(self, class_log_prior: Floats) -> Mixture:
        """The same for another prevalence."""
        return replace(self, class_log_prior=class_log_prior)

    def log_proba(self, table: Table) -> Floats:
        """ln p(class | x): (rows, classes)."""
        found = np.empty((table.n_rows, table.schema.n_classes))
        for rows, views, able in _parts(Views(table, self.transforms), self.rules):
            found[rows] = self._mixed(able, views, left_out=False, class_log_prior=self.class_log_prior)
        return found

    def left_out(self, table: Table, class_log_prior: Floats) -> Floats:
        """The same of all training rows, each without itself; raises `NotExact` where a rule would need refits."""
        return self._mixed(self.rules, Views(table, self.transforms), left_out=True, class_log_prior=class_log_prior)

    def _mixed(self, able: tuple[Rules, ...], views: Views, *, left_out: bool, class_log_prior: Floats) -> Floats:
        total = np.full((views.table.n_rows, views.table.schema.n_classes), -np.inf)
        for rules in able:
            said = (rules.fit.left_out if left_out else rules.fit.log_likelihood)(views)
            for found, temperature, weight in zip(said, rules.temperatures, rules.weights, strict=True):
                log_proba = normalised(temperature * found + class_log_prior)
                np.logaddexp(total, np.log(weight) + log_proba, out=total)
        return normalised(total)

    def log_density(self, table: Table) -> Floats:
        """ln p(x | class), mixed over the rules that are densities: (rows, classes)."""
        found = np.empty((table.n_rows, table.schema.n_classes))
        for rows, views, able in _parts(Views(table, self.transforms), self.density):
            found[rows] = mixed_density(able, views, [rules.fit.log_likelihood(views) for rules in able])
        return found

    def contributions(self, table: Table) -> Floats:
        """The rules' contributions times their temperature, averaged: (rows, columns of X, classes).

        A rule that is no sum over attributes has none.
        """
        found = np.zeros((table.n_rows, table.schema.n_columns, table.schema.n_classes))
        for rows, views, able in _parts(Views(table, self.transforms), self.rules):
            total = sum(rules.weights.sum() for rules in able)
            for rules in able:
                if not rules.fit.is_sum:
                    continue
                for i, (temperature, weight) in enumerate(zip(rules.temperatures, rules.weights, strict=True)):
                    found[rows] += weight / total * temperature * rules.fit.contributions(views, i)
        return found


def _parts(views: Views, rules: tuple[Rules, ...]) -> Iterator[tuple[NDArray[np.intp], Views, tuple[Rules, ...]]]:
    """Some rows at a time, and the rules that can say something of them: not all can where a value is missing."""
    table = views.table
    able = tuple(each for each in rules if each.fit.takes_holes) or rules  # if none can, the first says why not
    whole = np.ones(table.n_rows, bool)
    if table.incomplete and len(able) < len(rules):
        whole = ~(np.isnan(table.values).any(axis=1) | (table.codes < 0).any(axis=1))
    widest = max(len(each.weights) for each in rules)
    size = max(256, CHUNK // max(widest * table.schema.n_classes, table.schema.n_columns))
    for which, those in ((np.flatnonzero(whole), rules), (np.flatnonzero(~whole), able)):
        for start in range(0, len(which), size):
            part = which[start : start + size]
            yield part, views if len(part) == table.n_rows else Views(table.rows(part), views.transforms), those


def mixed_density(density: tuple[Rules, ...], views: Views, said: list[Floats]) -> Floats:
    """ln p(x | class) from what the rules say in their views: (rows, classes)."""
    parts = []
    for rules, found in zip(density, said, strict=True):
        jacobian = views.log_jacobian(rules.fit.view)
        assert jacobian is not None
        parts.append(found + jacobian.sum(axis=1)[:, None] + np.log(rules.weights)[:, None, None])
    return np.asarray(logsumexp(np.concatenate(parts), axis=0))
