"""Ridge logistic regression on features of the columns, at a path of penalties, as candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cgnlearn.logistic.design import Design, LinearOdds
from cgnlearn.logistic.expansion import Expansion
from cgnlearn.logistic.path import fits, penalties, steps
from cgnlearn.model.densities import Floats, normalised, of_truth
from cgnlearn.model.model import NotExact
from cgnlearn.model.table import Table
from cgnlearn.tuning.source import Description, Fit, Scored, Source, frequencies, frequencies_left_out
from cgnlearn.tuning.transforms import Bins, Views
from cgnlearn.tuning.weights import tempered

N_STEPS = 8  # bins between whose edges features step


@dataclass(frozen=True, eq=False)
class RidgeFit(Fit):
    """Log odds that are linear in features, one candidate for each penalty."""

    view: str
    expansion: Expansion
    odds: LinearOdds  # beside the class's log frequencies

    has_density = False

    def log_likelihood(self, views: Views) -> Floats:
        """The log odds but for the classes' frequencies: (candidates, samples, classes)."""
        return self.odds.log_odds(self.expansion, views[self.view])

    def left_out(self, views: Views) -> Floats:
        """Not exact."""
        raise NotExact("leaving rows out of a logistic regression is not exact: take folds")

    def contributions(self, views: Views, candidate: int) -> Floats:
        """The terms of every column, the intercept in equal parts: (samples, columns of X, classes)."""
        table, odds = views[self.view], self.odds[candidate]
        return odds.contributions(self.expansion, table) + odds.intercept / table.schema.n_columns

    def kept(self, which: Sequence[int]) -> RidgeFit:
        """Some of the candidates."""
        return replace(self, odds=self.odds[list(which)])


@dataclass(frozen=True)
class Ridge(Source):
    """Ridge logistic regression on features of a view."""

    view: str
    terms: str
    dirichlet: float  # weight of every class before any sample is seen
    path: tuple[float, ...] | None = None  # penalties; None: those that the samples suggest
    kind: str = "logistic"
    has_density: bool = False
    is_additive: bool = False

    def held(self, views: Views) -> Ridge:
        """With the penalties that all samples suggest."""
        return replace(self, path=tuple(penalties(self._design(views[self.view])[1].samples)))

    def _design(self, table: Table) -> tuple[Expansion, Design]:
        edges = Bins.of(table, N_STEPS).edges if self.terms == "steps" else None
        expansion = Expansion.of(table, self.terms, edges)
        return expansion, Design.of(expansion(table).values, table, frequencies(table, self.dirichlet))

    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """The whole path; with ``leave_out`` up to where weaker penalties are no better."""
        table = views[self.view]
        expansion, design = self._design(table)
        samples = design.samples
        path = penalties(samples) if self.path is None else self.path
        held_out, by = None, None
        if leave_out:
            prior = frequencies_left_out(table, self.dirichlet)

            def log_likelihood(log_proba: Floats) -> float:
                """As the mixture will see it: with a likelihood power."""
                weights = samples.effective_weights
                power = tempered(log_proba - prior, prior, samples.labels, weights)
                return float(weights @ of_truth(normalised(power * (log_proba - prior) + prior), samples.labels))

            found = list(steps(samples, path, log_likelihood))
            points, by = [step.point for step in found], [step.by for step in found]
            held_out = np.array([step.log_proba - prior for step in found]).reshape(len(found), *prior.shape)
        else:
            points = list(fits(samples, path))
        described: list[Description] = [
            {"kind": self.kind, "transform": self.view, "terms": self.terms, "penalty": penalty}
            for penalty in path[: len(points)]
        ]
        return Scored(RidgeFit(self.view, expansion, design.odds(points)), described, held_out, by)
