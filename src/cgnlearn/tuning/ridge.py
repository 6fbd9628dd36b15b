"""Ridge logistic regression on features of the columns, at a path of penalties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import helmert

from cgnlearn.data.splits import stratified
from cgnlearn.model.densities import Floats, normalised, of_truth
from cgnlearn.model.discriminative import CHUNK, CONSTANT, row_space
from cgnlearn.model.families import Columns
from cgnlearn.model.logistic import Curvature, Point, Rows, fitted, leaving_out, penalty_leaving
from cgnlearn.model.model import NotExact
from cgnlearn.model.table import Table
from cgnlearn.tuning.source import Description, Fit, Scored, Source, frequencies, frequencies_left_out
from cgnlearn.tuning.transforms import Bins, Views
from cgnlearn.tuning.weights import tempered

NO_SCORES = (0.0, 0.0)  # between which the temperature of scores that are not there may move
LEAST_EFFECTIVE, LEAST_SHARE = 1.5, 0.75  # parameters to a contrast, at the strongest penalty; of one feature so much
WEAKEST = 1e-3  # penalty
N_PENALTIES = 12  # from one that leaves next to nothing to the weakest
FEW_PENALTIES, MANY_ROWS = 8, 2000  # with many rows neighbours are hardly told apart, and a fit is dear
ROWS_TO_A_PARAMETER = 4  # with fewer the fit knows the rows by heart, and leaving one out in one step flatters
N_FOLDS = 5
HOPELESS = 10.0  # nats behind the best penalty: no weight is left
ALIKE = 0.1  # nats of all rows together: two penalties that say the same
LEAST_SPREAD = 0.2  # of log odds that the strongest penalty expects
N_STEPS = 8  # bins between whose edges features step


@dataclass(frozen=True, eq=False)
class Expansion:
    """Features of rows.

    Parameters
    ----------
    terms : str
        ``"linear"``: the columns and an indicator for every level; ``"squares"``: their squares too; ``"products"``:
        and the products of two continuous ones; ``"pairs"``: and of any two, indicators included;
        ``"steps"``: instead of the columns, indicators of lying above quantiles.
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
        """The column of X of each feature, and the features (rows, features), NaN where one is missing."""
        schema = table.schema
        continuous = np.array(schema.continuous, np.intp)
        values = (np.asarray(table.values, float) - self.mean) / self.deviation
        owners, parts = [], []
        if self.cuts is None:
            owners.append(continuous)
            parts.append(values)
        else:
            for column, edges, known in zip(schema.continuous, self.cuts.edges, table.values.T, strict=True):
                owners.append(np.full(len(edges), column))
                parts.append(np.where(np.isnan(known)[:, None], np.nan, known[:, None] >= edges))
        for position, column in enumerate(schema.discrete):
            n_levels = len(schema.levels_of(column))
            owners.append(np.full(n_levels, column))
            codes = table.codes[:, position, None]
            parts.append(np.where(codes < 0, np.nan, codes == np.arange(n_levels)))
        owner, found = _joined(owners, parts, table.n_rows)
        if self.terms not in ("squares", "products", "pairs"):
            return owner, found
        found[:, : len(continuous)] = np.clip(values, self.least, self.most)
        parts, owners = (
            [values, found[:, len(continuous) :], np.square(found[:, : len(continuous)])],
            [owner, continuous],
        )
        if self.terms != "squares":
            first, second = np.tril_indices(len(owner) if self.terms == "pairs" else len(continuous), -1)
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
            values = _centred(self.expansion(part)[1], self.centre)
            found[:, start : start + size] = values @ self.slopes + self.offset[:, None]
        return found

    def left_out(self, views: Views) -> Floats:
        """Not exact."""
        raise NotExact("leaving rows out of a logistic regression is not exact: take folds")

    def contributions(self, views: Views, candidate: int) -> Floats:
        """The terms of every column, the offset in equal parts: (rows, columns of X, classes)."""
        table = views[self.view]
        owner, values = self.expansion(table)
        values = _centred(values, self.centre)
        n_columns = table.schema.n_columns
        apart = np.zeros((table.n_rows, n_columns, self.offset.shape[1]))
        apart += self.offset[candidate] / n_columns
        for label, slopes in enumerate(self.slopes[candidate].T):
            np.add.at(apart[:, :, label].T, owner, (values * slopes).T)
        return apart

    def kept(self, which: Sequence[int]) -> RidgeFit:
        """Some of the candidates."""
        return replace(self, slopes=self.slopes[list(which)], offset=self.offset[list(which)])


def _centred(values: Floats, centre: Floats) -> Floats:
    """What is missing stands where the others do in the mean."""
    values -= centre
    return np.nan_to_num(values, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)


class Design(NamedTuple):
    """Training rows as a regression sees them, and the way back to slopes of features."""

    rows: Rows
    expansion: Expansion
    values: Floats  # standardised features: (rows, features)
    centre: Floats  # (features,)
    scale: Floats  # 0 where a feature is constant
    basis: Floats | None  # of the rows' space, where features outnumber rows

    @classmethod
    def of(cls, table: Table, terms: str, dirichlet: float) -> Design:
        """Standardised, and rotated into the rows' space, which a ridge does not notice, where that is smaller."""
        assert table.labels is not None
        expansion = Expansion.of(table, terms)
        values = expansion(table)[1]
        weights = np.ones(table.n_rows) if table.weights is None else table.weights
        there = ~np.isnan(values)
        counted = weights @ there
        greatest = np.abs(values).max(axis=0, initial=0.0, where=there)
        centre = weights @ np.where(there, values, 0.0) / np.maximum(counted, np.finfo(float).tiny)
        values = _centred(values, centre)
        scale = np.sqrt(weights @ np.square(values) / np.maximum(counted, np.finfo(float).tiny))
        # Columns have unit variance already; an indicator blown up to it would be hardly penalised where it is rare.
        scale = np.where(scale <= CONSTANT * greatest, 0.0, np.maximum(scale, 1.0))
        values /= np.where(scale > 0, scale, np.inf)
        basis, design = row_space(values) if values.shape[1] > table.n_rows else (None, values[:, scale > 0])
        no_scores = np.zeros((table.n_rows, table.schema.n_classes))
        rows = Rows.of(design, no_scores, frequencies(table, dirichlet), table.labels, weights)
        return cls(rows, expansion, values, centre, scale, basis)

    def slopes(self, point: Point) -> Floats:
        """Of the features as they are: (features, classes)."""
        whole = np.zeros((len(self.centre), self.rows.n_contrasts))
        if self.basis is None:
            whole[self.scale > 0] = point.slopes[1:]
        else:
            whole = self.values.T @ (self.basis @ point.slopes[1:])
        across = helmert(self.rows.n_contrasts + 1)
        return whole @ across / np.where(self.scale > 0, self.scale, np.inf)[:, None]


@dataclass(frozen=True)
class Ridge(Source):
    """Ridge logistic regression on features of a view.

    Parameters
    ----------
    view, terms : str
    dirichlet : float
        Weight of every class before any row is seen.
    path : tuple of float or None
        The penalties; None: from one that leaves next to nothing to a very weak one.
    """

    view: str
    terms: str
    dirichlet: float
    path: tuple[float, ...] | None = None
    kind: str = "logistic"
    has_density: bool = False
    is_additive: bool = False

    def held(self, views: Views) -> Ridge:
        """With the penalties that all rows suggest."""
        return replace(self, path=tuple(_path(Design.of(views[self.view], self.terms, self.dirichlet).rows)))

    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """The whole path, every fit starting at the one before.

        Rows are left out in one step (Rad and Maleki 2020) as long as that does not flatter, which it does where there
        are few rows to a parameter; from there on out of folds.
        """
        table = views[self.view]
        design = Design.of(table, self.terms, self.dirichlet)
        rows = design.rows
        point = Point(np.zeros((rows.design.shape[1], rows.n_contrasts)), 0.0)
        without = frequencies_left_out(table, self.dirichlet)
        points: list[Point] = []
        said: list[Floats] = []
        by: list[str] = []
        best = -np.inf
        held_out: HeldOut | None = None
        near: Curvature | None = None
        before: Floats | None = None
        path = _path(rows) if self.path is None else self.path
        for penalty in path:
            point = fitted(rows, penalty, point, NO_SCORES, near)
            points.append(point)
            if not leave_out:
                continue
            if held_out is None:
                found, effective, near = leaving_out(rows, penalty, point, NO_SCORES)
                if ROWS_TO_A_PARAMETER * effective > rows.weights.sum():
                    held_out = HeldOut.of(rows)
            if held_out is not None:
                found = held_out.log_proba(penalty, point, near)
            by.append("leave-one-out" if held_out is None else f"{len(held_out.folds)} folds")
            said.append(found - without)
            temperature = tempered(said[-1], without, rows.labels, rows.weights)
            cll = float(rows.weights @ of_truth(normalised(temperature * said[-1] + without), rows.labels))
            best = max(best, cll)
            # As they are: two that tempering makes nothing of may be far apart, and the next one better than both.
            truth = of_truth(normalised(said[-1] + without), rows.labels)
            if cll < best - HOPELESS or _are_alike(truth, before, rows.weights):  # weaker ones are no better
                break
            before = truth
        n_classes, n = table.schema.n_classes, len(points)
        fit = RidgeFit(
            self.view,
            design.expansion,
            design.centre,
            np.array([design.slopes(each) for each in points]).reshape(n, len(design.centre), n_classes),
            np.array([each.slopes[0] @ helmert(n_classes) for each in points]).reshape(n, n_classes),
        )
        described: list[Description] = [
            {"kind": self.kind, "transform": self.view, "terms": self.terms, "penalty": penalty} for penalty in path[:n]
        ]
        if not leave_out:
            return Scored(fit, described, None)
        return Scored(fit, described, np.array(said).reshape(n, table.n_rows, n_classes), by)


class HeldOut(NamedTuple):
    """A regression's rows cut into folds."""

    rows: Rows
    folds: list[tuple[Columns, Columns]]

    @classmethod
    def of(cls, rows: Rows) -> HeldOut | None:
        """Always cut in the same way."""
        if np.bincount(rows.labels).max() < 2:
            return None
        return cls(rows, stratified(rows.labels, N_FOLDS, 0).pairs)

    def log_proba(self, penalty: float, start: Point, near: Curvature | None) -> Floats:
        """Of every row by a fit to the other folds, which begins at a fit to all: (rows, classes)."""
        found = np.empty((len(self.rows.labels), self.rows.n_contrasts + 1))
        for train, test in self.folds:
            point = fitted(self._some(train), penalty, start, NO_SCORES, near)
            some = self._some(test)
            found[test] = some.log_proba(some.contrasts(point))
        return found

    def _some(self, which: Columns) -> Rows:
        rows = self.rows
        return replace(
            rows,
            design=rows.design[which],
            scores=rows.scores[which],
            labels=rows.labels[which],
            weights=rows.weights[which],
        )


def _path(rows: Rows) -> list[float]:
    """Penalties, the strongest first; of many rows none that would hide what they say."""
    n_features = rows.design.shape[1] - 1
    strongest = penalty_leaving(rows, min(LEAST_EFFECTIVE, LEAST_SHARE * n_features))
    if strongest <= WEAKEST:
        return []
    spread = np.average(np.square(rows.design[:, 1:]).sum(axis=1), weights=rows.weights)
    path = np.geomspace(strongest, WEAKEST, FEW_PENALTIES if len(rows.labels) > MANY_ROWS else N_PENALTIES)
    return path[path <= max(spread / LEAST_SPREAD**2, WEAKEST)].tolist()


def _are_alike(truth: Floats, before: Floats | None, weights: Floats) -> bool:
    """Whether log probabilities differ neither in sum nor row by row."""
    if before is None:
        return False
    moved = truth - before
    return bool(abs(weights @ moved) < ALIKE and weights @ np.square(moved) < ALIKE**2)
