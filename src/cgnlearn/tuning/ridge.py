"""Ridge logistic regression on features of the columns, at a path of penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import helmert

from cgnlearn.evaluation.metrics import of_truth
from cgnlearn.model.densities import Floats
from cgnlearn.model.discriminative import CHUNK, CONSTANT, row_space
from cgnlearn.model.families import Columns
from cgnlearn.model.logistic import Point, Rows, fitted, left_out_and_effective, strongest_penalty
from cgnlearn.model.model import NotExact
from cgnlearn.model.table import Table
from cgnlearn.tuning.source import Description, Fit, Scored, Source, frequencies, frequencies_left_out
from cgnlearn.tuning.transforms import Bins, Views

NO_SCORES = (0.0, 0.0)  # between which the temperature of scores that are not there may move
WEAKEST = 1e-3  # penalty
N_PENALTIES = 12  # from one that leaves next to nothing to the weakest
ROWS_TO_A_PARAMETER = 2.5  # with fewer the fit knows the rows by heart, and leaving one out in one step flatters
HOPELESS = 20.0  # nats behind the best penalty: no weight is left
N_STEPS = 8  # bins between whose edges features step


@dataclass(frozen=True, eq=False)
class Expansion:
    """Features of rows.

    Parameters
    ----------
    terms : str
        ``"linear"``: the columns and an indicator for every level; ``"squares"``: their squares too; ``"pairs"``: and
        the products of any two of these; ``"steps"``: indicators of lying above quantiles.
    mean, deviation, least, most : ndarray (continuous columns,)
        Products go no further than the training data did: what is outside would count by its square.
    cuts : Bins or None
    """

    terms: str
    mean: Floats
    deviation: Floats
    least: Floats
    most: Floats
    cuts: Bins | None

    @classmethod
    def of(cls, table: Table, terms: str) -> Expansion:
        """Learned from training rows."""
        values = np.asarray(table.values, float)
        there = ~np.isnan(values)
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        weights = np.where(there, weights[:, None], 0.0)
        total = np.maximum(weights.sum(axis=0), np.finfo(float).tiny)
        known = np.where(there, values, 0.0)
        mean = (weights * known).sum(axis=0) / total
        centred = np.where(there, values - mean, 0.0)
        deviation = np.sqrt((weights * np.square(centred)).sum(axis=0) / total)
        greatest = np.abs(known).max(axis=0, initial=0.0)
        deviation = np.where(deviation > CONSTANT * greatest, deviation, np.inf)  # a constant is 0 everywhere
        centred /= deviation
        least, most = centred.min(axis=0, initial=0.0), centred.max(axis=0, initial=0.0)
        return cls(terms, mean, deviation, least, most, Bins.of(table, N_STEPS) if terms == "steps" else None)

    def __call__(self, table: Table) -> tuple[Columns, Floats]:
        """The column of X to which each feature belongs, and the features (rows, features)."""
        schema = table.schema
        continuous = np.array(schema.continuous, np.intp)
        values = (np.asarray(table.values, float) - self.mean) / self.deviation
        values = np.where(np.isnan(values), 0.0, values)
        owners, parts = [], []
        if self.cuts is None:
            owners.append(continuous)
            parts.append(values)
        else:
            for column, edges, known in zip(schema.continuous, self.cuts.edges, table.values.T, strict=True):
                owners.append(np.full(len(edges), column))
                parts.append((known[:, None] >= edges).astype(float))
        for position, column in enumerate(schema.discrete):
            n_levels = len(schema.levels_of(column))
            owners.append(np.full(n_levels, column))
            parts.append((table.codes[:, position, None] == np.arange(n_levels)).astype(float))
        owner, found = _joined(owners, parts, table.n_rows)
        if self.terms not in ("squares", "pairs"):
            return owner, found
        found[:, : len(continuous)] = np.clip(values, self.least, self.most)
        parts, owners = (
            [values, found[:, len(continuous) :], np.square(found[:, : len(continuous)])],
            [owner, continuous],
        )
        if self.terms == "pairs":
            first, second = np.tril_indices(len(owner), -1)
            apart = owner[first] != owner[second]  # two levels of one column never meet
            owners.append(owner[first[apart]])
            parts.append(found[:, first[apart]] * found[:, second[apart]])
        return _joined(owners, parts, table.n_rows)


def _joined(owners: list[Columns], parts: list[Floats], n_rows: int) -> tuple[Columns, Floats]:
    return np.concatenate([np.zeros(0, np.intp), *owners]), np.concatenate([np.zeros((n_rows, 0)), *parts], axis=1)


@dataclass(frozen=True, eq=False)
class RidgeFit(Fit):
    """Log odds that are linear in features.

    Parameters
    ----------
    view : str
    expansion : Expansion
    centre : ndarray (features,)
    slopes : ndarray (candidates, features, classes)
    offset : ndarray (candidates, classes)
        Beside the class's log frequencies.
    """

    view: str
    expansion: Expansion
    centre: Floats
    slopes: Floats
    offset: Floats

    has_density = False

    def log_likelihood(self, views: Views) -> Floats:
        """The log odds but for the classes' frequencies: (candidates, rows, classes)."""
        table = views[self.view]
        found = np.empty((len(self.offset), table.n_rows, self.offset.shape[1]))
        size = max(1, CHUNK // max(1, len(self.centre)))
        for start in range(0, table.n_rows, size):
            part = table.rows(np.arange(start, min(start + size, table.n_rows)))
            values = self.expansion(part)[1] - self.centre
            found[:, start : start + size] = values @ self.slopes + self.offset[:, None]
        return found

    def left_out(self, views: Views) -> Floats:
        """Not exact."""
        raise NotExact("leaving rows out of a logistic regression is not exact: take folds")

    def contributions(self, views: Views, candidate: int) -> Floats:
        """The terms of every column, the offset in equal parts: (rows, columns of X, classes)."""
        table = views[self.view]
        owner, values = self.expansion(table)
        values = values - self.centre
        n_columns = table.schema.n_columns
        apart = np.zeros((table.n_rows, n_columns, self.offset.shape[1]))
        apart += self.offset[candidate] / n_columns
        for label, slopes in enumerate(self.slopes[candidate].T):
            np.add.at(apart[:, :, label].T, owner, (values * slopes).T)
        return apart

    def kept(self, which: Sequence[int]) -> RidgeFit:
        """Some of the candidates."""
        return replace(self, slopes=self.slopes[list(which)], offset=self.offset[list(which)])


@dataclass(frozen=True)
class Ridge(Source):
    """Ridge logistic regression on features of a view.

    Parameters
    ----------
    view, terms : str
    dirichlet : float
        Weight of every class before any row is seen.
    path : tuple of float or None
        The penalties; None: from one that leaves next to nothing to one that leaves a parameter to every four rows.
    """

    view: str
    terms: str
    dirichlet: float
    path: tuple[float, ...] | None = None
    kind: str = "logistic"
    is_additive: bool = False

    def held(self, views: Views) -> Ridge:
        """With the penalties that all rows suggest."""
        return replace(self, path=tuple(_path(self._design(views[self.view])[0])))

    def _design(self, table: Table) -> tuple[Rows, Floats | None, Floats, Floats, Floats, Expansion]:
        assert table.labels is not None
        expansion = Expansion.of(table, self.terms)
        values = expansion(table)[1]
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        centre = np.average(values, axis=0, weights=weights)
        values -= centre
        scale = np.sqrt(np.average(np.square(values), axis=0, weights=weights))
        scale[scale <= CONSTANT * np.abs(values).max(axis=0, initial=0.0)] = 0.0
        values /= np.where(scale > 0, scale, 1.0)
        values[:, scale == 0] = 0.0
        basis, design = row_space(values) if values.shape[1] > table.n_rows else (None, values[:, scale > 0])
        no_scores = np.zeros((table.n_rows, table.schema.n_classes))
        rows = Rows.of(design, no_scores, frequencies(table, self.dirichlet), table.labels, weights)
        return rows, basis, values, centre, scale, expansion

    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """The whole path, every fit starting at the one before; left out as Rad and Maleki (2020) do."""
        table = views[self.view]
        rows, basis, values, centre, scale, expansion = self._design(table)
        point = Point(np.zeros((rows.design.shape[1], rows.n_contrasts)), 0.0)
        across = helmert(table.schema.n_classes).T
        unit = np.where(scale > 0, scale, 1.0)[:, None]
        path = list(self.path) if self.path is not None else _path(rows)
        without = frequencies_left_out(table, self.dirichlet)
        slopes, offset = [], []
        said: list[Floats] = []
        cll: list[float] = []
        for penalty in path:
            if cll and cll[-1] < max(cll) - HOPELESS:  # weaker ones are worse still
                break
            point = fitted(rows, penalty, point, NO_SCORES)
            if leave_out:
                found, effective = left_out_and_effective(rows, penalty, point, NO_SCORES)
                if ROWS_TO_A_PARAMETER * effective > rows.weights.sum() and said:
                    break
                said.append(found - without)
                cll.append(float(rows.weights @ of_truth(found, rows.labels)))
            whole = np.zeros((len(centre), rows.n_contrasts))
            if basis is None:
                whole[scale > 0] = point.slopes[1:]
            else:
                whole = values.T @ (basis @ point.slopes[1:])
            slopes.append(whole @ across.T / unit)
            offset.append(across @ point.slopes[0])
        n_classes = table.schema.n_classes
        path = path[: len(slopes)]
        fit = RidgeFit(
            self.view,
            expansion,
            centre,
            np.array(slopes).reshape(len(path), len(centre), n_classes),
            np.array(offset).reshape(len(path), n_classes),
        )
        described: list[Description] = [
            {"kind": self.kind, "transform": self.view, "terms": self.terms, "penalty": penalty} for penalty in path
        ]
        return Scored(fit, described, np.array(said).reshape(len(path), table.n_rows, n_classes) if leave_out else None)


def _path(rows: Rows) -> list[float]:
    """Penalties, the strongest first."""
    strongest = strongest_penalty(rows)
    return np.geomspace(strongest, WEAKEST, N_PENALTIES).tolist() if strongest > WEAKEST else []
