"""Shifts of the continuous columns by site: x = mean of the class + shift of the site + noise, with partial pooling.

In units of a column's variance within sites and classes, σ², shifts are normal with mean 0 and variance ω². Nothing is
chosen: results are averaged over a grid of ω², weighted by its marginal likelihood given the samples, with the class
means and σ² integrated out. The weights of the grid before the data are learned from all columns. All of it is computed
from counts, means and scatter of the cells of site and class, which add.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import as_cells, is_missing
from cgnlearn.data.levels import identity, plain
from cgnlearn.data.table import Table

RATIOS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])  # ω²
START = np.where(RATIOS == 0, 0.5, 0.5 / (len(RATIOS) - 1))  # weights before any column is seen
PSEUDO_COLUMNS = 4.0  # as many columns the weights before the data count as
N_ROUNDS = 20  # in which the weights of the grid are learned
NARROWEST = 1e-3  # ω² as which 0 counts where a density is needed
FEWEST = 5  # samples of a new site


@dataclass(frozen=True, eq=False)
class SiteCells:
    """Weight, mean and scatter of every continuous column in every cell of site and class; they add."""

    names: tuple[Any, ...]  # of the sites
    n: Floats  # (sites, classes, columns)
    mean: Floats
    scatter: Floats

    @classmethod
    def of(cls, table: Table, sites: NDArray[np.intp], names: tuple[Any, ...]) -> SiteCells:
        """The cells of labelled samples, whose sites are numbers."""
        assert table.labels is not None
        n_classes, m = table.schema.n_classes, table.values.shape[1]
        n, mean, scatter = np.zeros((3, len(names), n_classes, m))
        weights = np.ones(table.n_samples) if table.weights is None else table.weights
        for site in range(len(names)):
            for label in range(n_classes):
                rows = (sites == site) & (table.labels == label)
                values = np.asarray(table.values[rows], float)
                observed = ~np.isnan(values)
                weight = np.where(observed, weights[rows, None], 0.0)
                at = (site, label)
                n[at] = weight.sum(axis=0)
                centre = np.divide(
                    (weight * np.where(observed, values, 0.0)).sum(axis=0), n[at], out=np.zeros(m), where=n[at] > 0
                )
                mean[at] = centre
                scatter[at] = (weight * np.square(np.where(observed, values - centre, 0.0))).sum(axis=0)
        return cls(names, n, mean, scatter)

    def __add__(self, other: SiteCells) -> SiteCells:
        if self.n.shape[1:] != other.n.shape[1:]:
            raise ValueError("these cells have other columns or classes: read the same columns and name all classes")
        names = tuple(dict.fromkeys((*self.names, *other.names)))
        a, b = self._among(names), other._among(names)
        n = a.n + b.n
        share = np.divide(b.n, n, out=np.zeros_like(n), where=n > 0)
        step = b.mean - a.mean
        return SiteCells(names, n, a.mean + step * share, a.scatter + b.scatter + a.n * share * np.square(step))

    def _among(self, names: tuple[Any, ...]) -> SiteCells:
        """The cells of these sites, empty for those that are not here."""
        shape = (len(names), *self.n.shape[1:])
        parts = [np.zeros(shape) for _ in range(3)]
        for part, own in zip(parts, (self.n, self.mean, self.scatter), strict=True):
            part[[names.index(name) for name in self.names]] = own
        return SiteCells(names, *parts)


@dataclass(frozen=True, eq=False)
class SiteShift:
    """The shifts of sites, learned from labelled samples, and what they say about further sites."""

    names: tuple[Any, ...]  # of the sites
    shifts: Floats  # expected, in the units of the columns: (sites, continuous columns)
    means: Floats  # of the classes where the shift is 0: (classes, continuous columns)
    deviation: Floats  # within site and class, σ: (continuous columns,)
    n: Floats  # weight of the samples in which each is observed: (continuous columns,)
    weights: Floats  # of the grid of ω² given the samples: (continuous columns, ratios)
    before: Floats  # the same before a column is seen: (ratios,)
    counts: Floats  # samples: (sites, classes)

    @classmethod
    def of(cls, cells: SiteCells, counts: Floats) -> SiteShift:
        """The shifts that cells and the number of samples by site and class imply."""
        n_sites, n_classes, m = cells.n.shape
        total = np.maximum(cells.n.sum(axis=(0, 1)), np.finfo(float).tiny)
        origin = (cells.n * cells.mean).sum(axis=(0, 1)) / total
        unit = np.sqrt(cells.scatter.sum(axis=(0, 1)) / total)
        unit = np.where(unit > 0, unit, 1.0)
        mean = np.where(cells.n > 0, (cells.mean - origin) / unit, 0.0)
        within = cells.scatter.sum(axis=(0, 1)) / np.square(unit)
        log_marginal = np.empty((m, len(RATIOS)))
        shifts = np.empty((len(RATIOS), n_sites, m))
        means = np.empty((len(RATIOS), n_classes, m))
        variance = np.empty((len(RATIOS), m))
        for i, ratio in enumerate(RATIOS):
            log_marginal[:, i], shifts[i], means[i], variance[i] = _given_ratio(cells.n, mean, within, float(ratio))
        log_marginal[within <= 0] = 0.0  # a column without variance within cells has no unit
        before, weights = _grid_weights(log_marginal, START)
        by_ratio = weights.T
        found = np.einsum("rm,rsm->sm", by_ratio, shifts)
        found[:, within <= 0] = 0.0
        deviation = unit * np.sqrt(np.einsum("rm,rm->m", by_ratio, variance))
        return cls(
            cells.names,
            found * unit,
            origin + unit * np.einsum("rm,rcm->cm", by_ratio, means),
            np.where(deviation > 0, deviation, 1.0),
            cells.n.sum(axis=(0, 1)),
            weights,
            before,
            counts,
        )

    @property
    def variance_share(self) -> Floats:
        """Share of the variance within classes that is the sites', expected: (continuous columns,)."""
        return np.asarray(self.weights @ (RATIOS / (1 + RATIOS)))

    @property
    def confounding(self) -> float:
        """The greatest share of the variance of a class's membership that is between sites: 1 if sites tell it."""
        total, of_class = self.counts.sum(), self.counts.sum(axis=0)
        of_site = self.counts.sum(axis=1, keepdims=True)
        frequency = of_class / total
        between = (of_site * np.square(self.counts / of_site - frequency)).sum(axis=0) / total
        variance = frequency * (1 - frequency)
        return float(np.max(np.divide(between, variance, out=np.zeros_like(between), where=variance > 0)))

    def place(self, site: Any) -> int | None:
        """The number of a site; None: training did not have it."""
        same = [i for i, name in enumerate(self.names) if identity(name) == identity(site)]
        return same[0] if same else None

    def of_residuals(self, away: Floats, n: Floats) -> Floats:
        """The shift of a further site whose samples are on average ``away`` from what is expected: (columns,).

        ``n`` is the weight of the samples in which each column is observed.
        """
        # The class means are uncertain too, and those of few sites have these sites' shifts in them.
        shifted = RATIOS * (1 + 1 / len(self.names))
        spread = shifted + (1 / np.maximum(n, 1e-9) + 1 / np.maximum(self.n, 1e-9))[:, None]
        log_density = -0.5 * (np.log(spread) + np.square(away / self.deviation)[:, None] / spread)
        _, weights = _grid_weights(log_density + np.log(self.weights + 1e-300) - np.log(self.before), self.before)
        return np.asarray((weights * shifted / spread).sum(axis=1) * away)

    def log_prior(self, shift: Floats) -> float:
        """Log density of the shift of a further site, up to a constant."""
        spread = np.maximum(RATIOS * (1 + 1 / len(self.names)), NARROWEST)
        standard = np.square(shift / self.deviation)[:, None]
        return float(
            logsumexp(np.log(self.weights + 1e-300) - 0.5 * (np.log(spread) + standard / spread), axis=1).sum()
        )


def _given_ratio(n: Floats, mean: Floats, within: Floats, ratio: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Log marginal likelihood up to a constant, shifts, class means and σ² for one ω² = ratio.

    With flat priors of the class means and of ln σ. Shifts are eliminated first, which leaves a system of the classes.
    """
    n_classes = n.shape[1]
    of_site, of_class = n.sum(axis=1), n.sum(axis=0)  # (sites, m), (classes, m)
    total_site, total_class = (n * mean).sum(axis=1), (n * mean).sum(axis=0)
    kept = ratio / (1 + ratio * of_site)  # 1 / (n_s + 1/ω²): (sites, m)
    system = -np.einsum("scm,sdm,sm->mcd", n, n, kept)
    system[:, np.arange(n_classes), np.arange(n_classes)] += of_class.T
    empty = of_class.T <= 0
    system[:, np.arange(n_classes), np.arange(n_classes)] += np.where(empty, 1.0, 1e-10 * of_class.T)
    right = total_class - np.einsum("scm,sm,sm->cm", n, kept, total_site)
    solved = np.linalg.solve(system, right.T[..., None])[..., 0].T  # (classes, m)
    shifts = kept * (total_site - np.einsum("scm,cm->sm", n, solved))
    residual = within + (n * np.square(mean)).sum(axis=(0, 1))
    residual = residual - (solved * total_class).sum(axis=0) - (shifts * total_site).sum(axis=0)
    freedom = np.maximum(n.sum(axis=(0, 1)) - n_classes, 1.0)
    residual = np.maximum(residual, np.finfo(float).tiny)
    log_marginal = (
        -0.5 * np.linalg.slogdet(system)[1]
        - 0.5 * np.log1p(ratio * of_site).sum(axis=0)
        - freedom / 2 * np.log(residual)
    )
    return log_marginal, shifts, solved, residual / freedom


def _grid_weights(log_marginal: Floats, start: Floats) -> tuple[Floats, Floats]:
    """Weights of the grid before the data, learned from all columns, and for every column: (columns, ratios)."""
    before, weights = start, np.tile(start, (len(log_marginal), 1))
    for _ in range(N_ROUNDS):
        found = log_marginal + np.log(before)
        weights = np.exp(found - logsumexp(found, axis=1, keepdims=True))
        before = (PSEUDO_COLUMNS * start + weights.sum(axis=0)) / (PSEUDO_COLUMNS + len(weights))
    return before, weights


def site_numbers(sites: Any, n_samples: int) -> tuple[NDArray[np.intp], tuple[Any, ...]]:
    """Number of the site of each sample, and the names of the sites; raise ValueError if one is missing."""
    cells = as_cells(sites)
    if cells.shape != (n_samples,):
        raise ValueError(f"sites must have one entry for each of the {n_samples} samples, not the shape {cells.shape}")
    names: dict[Any, Any] = {}
    numbers = np.empty(n_samples, np.intp)
    order: dict[Any, int] = {}
    for row, cell in enumerate(cells.tolist()):
        if is_missing(cell):
            raise ValueError(f"the site of sample {row} is missing: name it, or drop the sample")
        key = identity(cell)
        numbers[row] = order.setdefault(key, len(order))
        names.setdefault(key, plain(cell))
    return numbers, tuple(names.values())
