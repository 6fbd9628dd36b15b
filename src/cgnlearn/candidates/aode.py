"""Averaged one-dependence estimators (Webb, Boughton and Wang 2005) on discrete codes.

Each feature in turn is the parent of all others, and the models are averaged in their probabilities:

    p(x | c) = 1/|J| Σ_j p(b_j | c) Π_{v≠j} p(b_v | c, b_j)
    p(b_v | c, b_j) = (n(c, b_j, b_v) + w p(b_v | c)) / (n(c, b_j) + w)

with w the weight of the back-off. Missing values are skipped in counts, products and average, and n(c, b_j) counts
the samples in which the child is observed too. Leave-one-out subtracts a sample from the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import polygamma

from cgnlearn.candidates.candidate import COPIES, Candidate, Fitted, Profile, Samples, Settings, Skipped, Training
from cgnlearn.data.arrays import Floats
from cgnlearn.networks.uncertainty import JEFFREYS, Cumulants, LogDensities, log_mean_exponential

Codes = NDArray[np.integer[Any]]

CHUNK = 1 << 21  # numbers in memory at once
COMPILED = 1 << 21  # samples × pairs of columns × classes from which on loops are compiled
COMPILED_CUMULANTS = 1 << 13  # the same for cumulants, which take longer
N_BINS = (3, 5)
MOST_LEVELS = 500  # of all columns together: their pairs are counted
BACKOFFS = (1.0, 5.0)
MOST_KEPT = 1 << 17  # pairs of levels × classes of which cumulants are kept for few samples


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts of pairs of levels in each class."""

    n_levels: tuple[int, ...]  # of each column; the levels of all columns are numbered through
    counts: Floats  # (classes, levels, levels); counts of single levels on the diagonal

    @classmethod
    def of(
        cls, codes: Codes, labels: NDArray[np.intp], weights: Floats | None, n_levels: Sequence[int], n_classes: int
    ) -> PairCounts:
        """Count samples; a code of -1 is a missing value.

        Examples
        --------
        >>> PairCounts.of(np.array([[0, 1], [0, -1]]), np.array([0, 0]), None, (1, 2), 1).counts[0]
        array([[2., 0., 1.],
               [0., 0., 0.],
               [1., 0., 1.]])
        """
        pairs = cls(tuple(int(n) for n in n_levels), np.zeros((n_classes, sum(n_levels), sum(n_levels))))
        for label in range(n_classes):
            rows = np.flatnonzero(labels == label)
            for part in pairs.chunks(len(rows)):
                indicators = pairs.indicators(codes[rows[part]])
                weighted = indicators if weights is None else indicators * weights[rows[part], None]
                pairs.counts[label] += indicators.T @ weighted
        return pairs

    @cached_property
    def column(self) -> NDArray[np.intp]:
        """The column of each level: (levels,)."""
        return np.repeat(np.arange(len(self.n_levels)), self.n_levels)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.cumsum([0, *self.n_levels[:-1]])[: len(self.n_levels)].astype(np.intp)

    @cached_property
    def alone(self) -> Floats:
        """Counts of single levels: (classes, levels)."""
        return np.einsum("ctt->ct", self.counts).copy()

    @cached_property
    def together(self) -> Floats:
        """Counts of a level where a column is observed: (classes, levels, columns)."""
        return np.add.reduceat(self.counts, self._starts, axis=2)

    @cached_property
    def observed(self) -> Floats:
        """Counts of observed values: (classes, columns)."""
        return np.add.reduceat(self.alone, self._starts, axis=1)

    def positions(self, codes: Codes) -> NDArray[np.intp]:
        """Numbers of the samples' levels; for a missing value that of the column's first: (samples, columns)."""
        return self._starts + np.maximum(codes, 0)

    def indicators(self, codes: Codes) -> Floats:
        """1 for each level that a sample has: (samples, levels)."""
        found = np.zeros((len(codes), len(self.column)))
        np.put_along_axis(found, self.positions(codes), (codes >= 0).astype(float), axis=1)
        return found

    def chunks(self, n_samples: int) -> Iterator[slice]:
        """Chunks of samples that fit in memory."""
        size = max(1, CHUNK // max(1, len(self.column)))
        yield from (slice(start, min(start + size, n_samples)) for start in range(0, n_samples, size))


@dataclass(frozen=True, eq=False)
class AODE:
    """The average over all parents.

    Examples
    --------
    >>> codes, labels = np.array([[0, 0], [0, 1], [1, 1], [1, 1]]), np.array([0, 0, 1, 1])
    >>> model = AODE(PairCounts.of(codes, labels, None, (2, 2), 2), backoff=1.0, dirichlet=0.5)
    >>> np.exp(model.log_likelihood(np.array([[1, 1]]))).round(3)
    array([[0.062, 0.787]])
    """

    pairs: PairCounts
    backoff: float  # w
    dirichlet: float  # pseudo-count of a level

    @cached_property
    def _alone(self) -> Floats:
        """p(level | class): (classes, levels)."""
        pairs = self.pairs
        total = pairs.observed + self.dirichlet * np.array(pairs.n_levels)
        return (pairs.alone + self.dirichlet) / total[:, pairs.column]

    def log_likelihood(self, codes: Codes) -> Floats:
        """ln p(levels | class): (samples, classes)."""
        n_pairs = codes.shape[1] ** 2
        if len(codes) * n_pairs < len(self.pairs.column) ** 2:
            return self._of_few(codes)
        at = self._places(codes)
        alone, given_parent = self._tables
        if len(codes) * n_pairs * len(alone) >= COMPILED:
            return _by_loops(at, alone, given_parent)
        found = np.zeros((len(codes), len(alone)))
        step = max(1, CHUNK // max(1, n_pairs))
        for rows in (slice(start, start + step) for start in range(0, len(codes), step)):
            here = at[rows]
            for label, (of_level, of_pair) in enumerate(zip(alone, given_parent, strict=True)):
                of_parents = of_pair[here[:, :, None], here[:, None, :]].sum(axis=2) + of_level[here]
                found[rows, label] = _log_mean(of_parents, codes[rows] >= 0)
        return found

    def _places(self, codes: Codes) -> NDArray[np.int32]:
        """Numbers of the samples' levels, after all of them that of a missing value: (samples, columns)."""
        return np.where(codes >= 0, self.pairs.positions(codes), len(self.pairs.column)).astype(np.int32)

    @property
    def _tables(self) -> tuple[Floats, Floats]:
        """Log probabilities of levels (classes, levels + 1), and of levels (last axis) given others.

        0 between levels of one column, and for a level after all others, which stands for a missing value.
        """
        pairs = self.pairs
        n_classes, n_levels = self._alone.shape
        given_parent = np.zeros((n_classes, n_levels + 1, n_levels + 1))
        total = (pairs.together + self.backoff)[:, :, pairs.column]
        share = (pairs.counts + self.backoff * self._alone[:, None]) / total
        different = pairs.column[:, None] != pairs.column
        np.log(share, out=given_parent[:, :-1, :-1], where=np.broadcast_to(different, share.shape))
        return np.concatenate([np.log(self._alone), np.zeros((n_classes, 1))], axis=1), given_parent

    def _of_few(self, codes: Codes) -> Floats:
        """`log_likelihood` of few samples, for which only the pairs that they have are computed."""
        return _log_mean(self._parents_of_few(codes), codes >= 0).T

    def _parents_of_few(self, codes: Codes) -> Floats:
        """ln p(levels | class) with each parent: (classes, samples, parents)."""
        pairs, at = self.pairs, self.pairs.positions(codes)
        alone = self._alone[:, at]  # (classes, samples, columns)
        count = pairs.counts[:, at[:, :, None], at[:, None, :]]  # (classes, samples, parents, children)
        given_parent = np.log((count + self.backoff * alone[:, :, None]) / (pairs.together[:, at] + self.backoff))
        given_parent *= _others(codes)
        found: Floats = np.log(alone) + given_parent.sum(axis=3)
        return found

    def log_densities(self, codes: Codes, log_likelihood: Floats) -> LogDensities:
        """The posterior of the log likelihood: cumulants of the parents' Dirichlet distributions, by their shares."""
        n_pairs = len(codes) * codes.shape[1] ** 2
        are_few = n_pairs < len(self.pairs.column) ** 2  # fewer pairs than tables of all levels have
        if not are_few and n_pairs * len(self.pairs.counts) >= COMPILED_CUMULANTS:
            variance, third = self._cumulants_by_loops(codes, log_likelihood)
        else:
            apart = self._parents_of_few(codes) - log_likelihood.T[:, :, None]
            n_parents = np.maximum((codes >= 0).sum(axis=1), 1)[:, None]
            shares = np.exp(np.where(codes >= 0, apart, -np.inf)) / n_parents
            is_kept = self.pairs.counts.size <= MOST_KEPT or not are_few
            of_few = self._kept_of_few if is_kept else self._cumulant_of_few
            variance, third = (np.einsum("csp,csp->sc", shares, of_few(order, codes)) for order in (1, 2))
        mean = log_likelihood - log_mean_exponential(variance, third)
        return LogDensities.independent(Cumulants(mean, variance, third))

    def _own_cumulant(self, order: int) -> Floats:
        """A cumulant of ln p(level | class): (classes, levels)."""
        pairs, pseudo = self.pairs, max(self.dirichlet, JEFFREYS)
        total = pairs.observed + pseudo * np.array(pairs.n_levels)
        found: Floats = polygamma(order, pairs.alone + pseudo) - polygamma(order, total)[:, pairs.column]
        return found

    @cached_property
    def _cumulants(self) -> list[tuple[Floats, Floats]]:
        """Variance and third cumulant of ln p(level | class, parent's), parents first, and of ln p(level | class)."""
        pairs = self.pairs
        different = pairs.column[:, None] != pairs.column
        mass, total = pairs.counts + self.backoff * self._alone[:, None] + JEFFREYS, self._total_given
        found = []
        for order in (1, 2):
            given = polygamma(order, mass) - polygamma(order, total)[:, :, pairs.column]
            found.append((np.where(different, given, 0.0), self._own_cumulant(order)))
        return found

    @property
    def _total_given(self) -> Floats:
        """Pseudo-counts of all levels of a column given one, with Jeffreys': (classes, levels, columns)."""
        return self.pairs.together + self.backoff + JEFFREYS * np.array(self.pairs.n_levels)

    def _cumulants_by_loops(self, codes: Codes, log_likelihood: Floats) -> Floats:
        """Variance and third cumulant of many samples, for which loops are worth compiling: (2, samples, classes)."""
        from cgnlearn.kernels.parents import cumulants_of_parents

        at, tables = self._places(codes), self._tables
        found = np.empty((2, *log_likelihood.shape))
        for label, likelihood in enumerate(log_likelihood.T):
            alone, given_parent = (np.zeros((*table[label].shape, 3)) for table in tables)
            alone[..., 0], given_parent[..., 0] = (table[label] for table in tables)
            for order, (given, own) in enumerate(self._cumulants, 1):
                alone[:-1, order], given_parent[:-1, :-1, order] = own[label], given[label]
            of_class = np.empty((2, len(codes)))
            cumulants_of_parents(at, alone, given_parent, np.ascontiguousarray(likelihood), of_class)
            found[:, :, label] = of_class
        return found

    def _kept_of_few(self, order: int, codes: Codes) -> Floats:
        """`_cumulant_of_few` from those of all pairs of levels."""
        at = self.pairs.positions(codes)
        given, own = self._cumulants[order - 1]
        of_pairs = given[:, at[:, :, None], at[:, None, :]] * (codes >= 0)[:, None]
        found: Floats = own[:, at] + of_pairs.sum(axis=3)
        return found

    def _cumulant_of_few(self, order: int, codes: Codes) -> Floats:
        """A cumulant of the log likelihood with each parent, of few samples: (classes, samples, parents)."""
        pairs, at = self.pairs, self.pairs.positions(codes)
        counts = pairs.counts[:, at[:, :, None], at[:, None, :]]
        given = polygamma(order, counts + self.backoff * self._alone[:, at][:, :, None] + JEFFREYS)
        given -= polygamma(order, self._total_given[:, at])
        given *= _others(codes)
        found: Floats = self._own_cumulant(order)[:, at] + given.sum(axis=3)
        return found

    def leave_one_out(self, codes: Codes, labels: NDArray[np.intp], weights: Floats | None = None) -> Floats:
        """Leave-one-out `log_likelihood` of the counted samples: it differs in a sample's own class."""
        found = self.log_likelihood(codes)
        weights = np.ones(len(codes)) if weights is None else weights
        if len(codes) * codes.shape[1] ** 2 >= COMPILED:
            found[np.arange(len(codes)), labels] = self._own_by_loops(codes, labels, weights)
            return found
        for part in self.pairs.chunks(len(codes)):
            own = self._own_leave_one_out(codes[part], labels[part], weights[part, None])
            found[np.arange(part.start, part.stop), labels[part]] = own
        return found

    def _own_by_loops(self, codes: Codes, labels: NDArray[np.intp], weights: Floats) -> Floats:
        from cgnlearn.kernels.parents import own_log_means_without_each

        pairs, found = self.pairs, np.empty(len(codes))
        masses = self.dirichlet * np.array(pairs.n_levels, float)
        tables = pairs.counts, pairs.together, pairs.alone, pairs.observed, masses
        own_log_means_without_each(self._places(codes), labels, weights, *tables, (self.backoff, self.dirichlet), found)
        return found

    def _own_leave_one_out(self, codes: Codes, labels: NDArray[np.intp], weights: Floats) -> Floats:
        pairs, observed, positions = self.pairs, codes >= 0, self.pairs.positions(codes)
        of_class = labels[:, None]
        # Rounding must not leave a negative count.
        level = np.maximum(pairs.alone[of_class, positions] - weights, 0.0) + self.dirichlet
        total = np.maximum(pairs.observed[labels] - weights, 0.0) + self.dirichlet * np.array(pairs.n_levels)
        alone = level / total
        of_parents = np.log(alone)
        for parent in range(codes.shape[1]):
            at = positions[:, [parent]]
            count = np.maximum(pairs.counts[of_class, at, positions] - weights, 0.0) + self.backoff * alone
            total = np.maximum(pairs.together[labels, at[:, 0]] - weights, 0.0) + self.backoff
            given_parent = np.where(observed, np.log(count / total), 0.0)
            given_parent[:, parent] = 0.0
            of_parents[:, parent] += given_parent.sum(axis=1)
        return _log_mean(of_parents, observed)

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without cached properties


def _others(codes: Codes) -> NDArray[np.bool_]:
    """Whether a child is observed and not the parent itself: (samples, parents, children)."""
    return (codes >= 0)[:, None] & ~np.eye(codes.shape[1], dtype=bool)


def _by_loops(positions: NDArray[np.int32], alone: Floats, given_parent: Floats) -> Floats:
    """Log likelihoods of many samples, for which loops are worth compiling: (samples, classes)."""
    from cgnlearn.kernels.compilation import in_threads
    from cgnlearn.kernels.parents import SIDE, log_mean_of_parents

    step = max(1, CHUNK // max(1, positions.shape[1] ** 2))
    parts = [slice(start, start + step) for start in range(0, len(positions), step)]
    found = np.empty((len(positions), len(alone)))
    for first in range(0, len(alone), SIDE):
        classes = slice(first, first + SIDE)
        own_alone, own_given = (_side_by_side(table[classes], SIDE) for table in (alone, given_parent))

        def log_means(rows: slice, alone: Floats = own_alone, given_parent: Floats = own_given) -> Floats:
            log_mean = np.empty((len(positions[rows]), SIDE))
            log_mean_of_parents(positions[rows], alone, given_parent, log_mean)
            return log_mean

        for rows, log_mean in zip(parts, in_threads(log_means, parts), strict=True):
            found[rows, classes] = log_mean[:, : len(alone[classes])]
    return found


def _side_by_side(table: Floats, n: int) -> Floats:
    """The classes, which are the first axis, as the last of n, with 0 for those that are missing."""
    found = np.zeros((*table.shape[1:], n))
    found[..., : len(table)] = np.moveaxis(table, 0, -1)
    return found


def _log_mean(of_parents: Floats, observed: NDArray[np.bool_]) -> Floats:
    """Log of the mean over observed parents, the last axis: 0 where there is none."""
    if not of_parents.shape[-1]:
        return np.zeros(of_parents.shape[:-1])
    n_parents = observed.sum(axis=-1)
    highest = np.where(observed, of_parents, -np.inf).max(axis=-1)
    highest = np.where(n_parents > 0, highest, 0.0)
    total = np.where(observed, np.exp(of_parents - highest[..., None]), 0.0).sum(axis=-1)
    log_mean: Floats = highest + np.log(np.where(n_parents > 0, total, 1.0)) - np.log(np.maximum(n_parents, 1))
    return log_mean


@dataclass(frozen=True, eq=False)
class FittedAODE(Fitted):
    """AODE models from the same counts."""

    transform: str
    models: tuple[AODE, ...]  # one for each setting

    has_density = is_sum = False

    def log_likelihood(self, samples: Samples) -> Floats:
        return np.stack([model.log_likelihood(samples[self.transform].codes) for model in self.models])

    def log_densities(self, samples: Samples, log_likelihood: Floats, training: Training | None) -> list[LogDensities]:
        codes = samples[self.transform].codes
        return [model.log_densities(codes, own) for model, own in zip(self.models, log_likelihood, strict=True)]

    def leave_one_out(self, samples: Samples) -> Floats:
        table = samples[self.transform]
        assert table.labels is not None
        return np.stack([model.leave_one_out(table.codes, table.labels, table.weights) for model in self.models])

    def contributions(self, samples: Samples, setting: int) -> Floats:
        raise ValueError("AODE has no contributions of features: it is no sum over them")

    def restricted(self, which: Sequence[int]) -> FittedAODE:
        return replace(self, models=tuple(self.models[i] for i in which))


@dataclass(frozen=True)
class AODECandidate(Candidate):
    """AODE on bins, for several weights of the back-off."""

    transform: str  # one whose columns are all discrete

    name = "aode"
    label = "each feature with one other in turn, in bins (AODE)"
    gain = 0.07
    by_default = False  # beside the others it brings next to nothing: docs/bench-ablation.md
    has_density = False

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[AODECandidate | Skipped]:
        for n_bins in N_BINS if profile.m else N_BINS[:1]:
            transform = f"bins{n_bins}"
            if profile.schema.n_columns < 2:
                yield Skipped(cls.name, transform, "one column")
            elif profile.n_levels + n_bins * profile.m > MOST_LEVELS:
                yield Skipped(cls.name, transform, f"more than {MOST_LEVELS} levels")
            else:
                yield cls(transform)

    @property
    def settings(self) -> list[Settings]:
        return [{"candidate": self.name, "transform": self.transform, "backoff": backoff} for backoff in BACKOFFS]

    def n_numbers(self, profile: Profile) -> float:
        n_levels = profile.n_levels + int(self.transform.removeprefix("bins")) * profile.m
        return COPIES * float(profile.schema.n_classes * n_levels**2)

    def fit(self, samples: Samples) -> FittedAODE:
        table = samples[self.transform]
        assert table.labels is not None
        n_levels = [len(table.schema.levels_of(column)) for column in range(table.schema.n_columns)]
        pairs = PairCounts.of(table.codes, table.labels, table.weights, n_levels, table.schema.n_classes)
        return FittedAODE(self.transform, tuple(AODE(pairs, backoff, JEFFREYS) for backoff in BACKOFFS))
