"""Features of the columns: themselves, squares, products, steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.logistic.design import Features, centred


@dataclass(frozen=True, eq=False)
class Expansion:
    """Features of the columns.

    Terms are ``"linear"``: the columns and an indicator for every level; ``"squares"``: their squares too;
    ``"products"``: and the products of two continuous ones; ``"pairs"``: and of any two, indicators included;
    ``"steps"``: instead of the continuous columns, indicators of not lying below edges.
    Squares and products go no further than the training data did: what is outside would count by its square.
    """

    terms: str
    mean: Floats  # (continuous columns,), as all that follow
    deviation: Floats
    least: Floats  # in standard units
    most: Floats
    edges: tuple[Floats, ...] | None

    @classmethod
    def of(cls, table: Table, terms: str, edges: tuple[Floats, ...] | None = None) -> Expansion:
        """Learned from training samples; ``edges`` of every continuous column for ``"steps"``."""
        values = np.array(table.values, float)
        mean, deviation = centred(values, table.weights)
        values /= deviation  # a constant is 0 everywhere
        return cls(terms, mean, deviation, values.min(axis=0, initial=0.0), values.max(axis=0, initial=0.0), edges)

    def __call__(self, table: Table) -> Features:
        """Of samples."""
        continuous = np.array(table.schema.continuous, np.intp)
        values = (np.asarray(table.values, float) - self.mean) / self.deviation
        indicators = self._indicators(table)
        if self.edges is not None:
            return Features.joined([*self._steps(table, self.edges), *indicators], table.n_samples)
        parts = [Features(continuous, values), *indicators]
        if self.terms == "linear":
            return Features.joined(parts, table.n_samples)
        inside = Features(continuous, np.clip(values, self.least, self.most))
        parts.append(Features(continuous, np.square(inside.values)))
        if self.terms != "squares":
            paired = [inside, *indicators] if self.terms == "pairs" else [inside]
            owner, values = Features.joined(paired, table.n_samples)
            first, second = np.tril_indices(len(owner), -1)
            apart = owner[first] != owner[second]  # two levels of one column never meet
            first, second = first[apart], second[apart]
            parts.append(Features(owner[first], values[:, first] * values[:, second]))
        return Features.joined(parts, table.n_samples)

    @staticmethod
    def _steps(table: Table, edges: tuple[Floats, ...]) -> list[Features]:
        """Whether values reach the edges."""
        return [
            Features(np.full(len(cuts), column), np.where(np.isnan(known)[:, None], np.nan, known[:, None] >= cuts))
            for column, cuts, known in zip(table.schema.continuous, edges, table.values.T, strict=True)
        ]

    @staticmethod
    def _indicators(table: Table) -> list[Features]:
        """Of the levels of every discrete column."""
        found = []
        for column, codes in zip(table.schema.discrete, table.codes.T, strict=True):
            levels = np.arange(len(table.schema.levels_of(column)))
            values = np.where(codes[:, None] < 0, np.nan, codes[:, None] == levels)
            found.append(Features(np.full(len(levels), column), values))
        return found
