"""Averaged one-dependence estimators (Webb, Boughton and Wang 2005) on discrete codes.

Each feature in turn is the parent of all others, and the models are averaged in their probabilities:

    p(x | c) = 1/|J| Σ_j p(b_j | c) Π_{v≠j} p(b_v | c, b_j)
    p(b_v | c, b_j) = (n(c, b_j, b_v) + w p(b_v | c)) / (n(c, b_j) + w)

with w the weight of backing off. Missing values are left out of counts, products and average, and n(c, b_j)
counts the samples in which the child is observed too. Leave-one-out takes a sample out of the counts in closed form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from cgnlearn.candidates.candidate import Candidate, Fitted, Profile, Samples, Settings, Skipped
from cgnlearn.data.arrays import Floats

Codes = NDArray[np.integer[Any]]

CHUNK = 1 << 21  # numbers that are held at once
N_BINS = (3, 5)
MOST_LEVELS = 500  # of all columns together, of which pairs are counted
BACKOFFS = (1.0, 5.0)
DIRICHLET = 0.5  # Jeffreys' weight of a level


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often, in each class, any two levels occur together."""

    n_levels: tuple[int, ...]  # of each column; the levels of all columns are numbered through
    counts: Floats  # (classes, levels, levels); on the diagonal how often a level occurs

    @classmethod
    def of(
        cls, codes: Codes, labels: NDArray[np.intp], weights: Floats | None, n_levels: Sequence[int], n_classes: int
    ) -> PairCounts:
        """Count samples; a code is -1 where a level is missing.

        Examples
        --------
        >>> found = PairCounts.of(np.array([[0, 1], [0, -1]]), np.array([0, 0]), None, (1, 2), 1)
        >>> found.counts[0]
        array([[2., 0., 1.],
               [0., 0., 0.],
               [1., 0., 1.]])
        """
        there = cls(tuple(int(n) for n in n_levels), np.zeros((n_classes, sum(n_levels), sum(n_levels))))
        for label in range(n_classes):
            rows = np.flatnonzero(labels == label)
            for part in there._parts(len(rows)):
                inside = there.indicators(codes[rows[part]])
                weighted = inside if weights is None else inside * weights[rows[part], None]
                there.counts[label] += inside.T @ weighted
        return there

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
        return len(self.counts)

    @cached_property
    def column(self) -> NDArray[np.intp]:
        """The column of each level: (levels,)."""
        return np.repeat(np.arange(len(self.n_levels)), self.n_levels)

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.cumsum([0, *self.n_levels[:-1]])[: len(self.n_levels)].astype(np.intp)

    @cached_property
    def alone(self) -> Floats:
        """How often each level is there: (classes, levels)."""
        return np.einsum("ctt->ct", self.counts).copy()

    @cached_property
    def together(self) -> Floats:
        """How often a level is there together with any of a column: (classes, levels, columns)."""
        return np.add.reduceat(self.counts, self._starts, axis=2)

    @cached_property
    def seen(self) -> Floats:
        """How often a column is there: (classes, columns)."""
        return np.add.reduceat(self.alone, self._starts, axis=1)

    def positions(self, codes: Codes) -> NDArray[np.intp]:
        """Positions of the samples' levels in the line; a missing one has its column's first: (samples, columns)."""
        return self._starts + np.maximum(codes, 0)

    def indicators(self, codes: Codes) -> Floats:
        """1 for each level that is there: (samples, levels)."""
        found = np.zeros((len(codes), len(self.column)))
        np.put_along_axis(found, self.positions(codes), (codes >= 0).astype(float), axis=1)
        return found

    def _parts(self, n_samples: int) -> Iterator[slice]:
        """Some samples at a time."""
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
    backoff: float  # how many samples p(b_v | c) is worth where b_v is predicted from a parent
    dirichlet: float  # weight of each level before any sample is seen

    @cached_property
    def _alone(self) -> Floats:
        """p(level | class): (classes, levels)."""
        pairs = self.pairs
        return (pairs.alone + self.dirichlet) / (pairs.seen + self.dirichlet * np.array(pairs.n_levels))[
            :, pairs.column
        ]

    def log_likelihood(self, codes: Codes) -> Floats:
        """ln p(levels | class): (samples, classes)."""
        pairs = self.pairs
        found = np.zeros((len(codes), pairs.n_classes))
        apart = pairs.column[:, None] != pairs.column
        for label in range(pairs.n_classes):
            alone = self._alone[label]
            of_pairs = (pairs.counts[label] + self.backoff * alone) / (pairs.together[label] + self.backoff)[
                :, pairs.column
            ]
            of_pairs = np.where(apart, np.log(of_pairs), 0.0)
            for part in pairs._parts(len(codes)):
                there, positions = codes[part] >= 0, pairs.positions(codes[part])
                of_parents = pairs.indicators(codes[part]) @ of_pairs.T + np.log(alone)
                found[part, label] = _averaged(np.take_along_axis(of_parents, positions, axis=1), there)
        return found

    def leave_one_out(self, codes: Codes, labels: NDArray[np.intp], weights: Floats | None = None) -> Floats:
        """The same of counted samples, each without itself: (samples, classes).

        Other classes than its own have not seen a sample anyway.
        """
        found = self.log_likelihood(codes)
        weights = np.ones(len(codes)) if weights is None else weights
        for part in self.pairs._parts(len(codes)):
            own = self._own_leave_one_out(codes[part], labels[part], weights[part, None])
            found[np.arange(part.start, part.stop), labels[part]] = own
        return found

    def _own_leave_one_out(self, codes: Codes, labels: NDArray[np.intp], weights: Floats) -> Floats:
        pairs, there, positions = self.pairs, codes >= 0, self.pairs.positions(codes)
        of_class = labels[:, None]
        # Rounding must not leave a negative count.
        level = np.maximum(pairs.alone[of_class, positions] - weights, 0.0) + self.dirichlet
        seen = np.maximum(pairs.seen[labels] - weights, 0.0) + self.dirichlet * np.array(pairs.n_levels)
        alone = level / seen
        of_parents = np.log(alone)
        for parent in range(codes.shape[1]):
            at = positions[:, [parent]]
            met = np.maximum(pairs.counts[of_class, at, positions] - weights, 0.0) + self.backoff * alone
            both = np.maximum(pairs.together[labels, at[:, 0]] - weights, 0.0) + self.backoff
            told = np.where(there, np.log(met / both), 0.0)
            told[:, parent] = 0.0
            of_parents[:, parent] += told.sum(axis=1)
        return _averaged(of_parents, there)

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _averaged(of_parents: Floats, there: NDArray[np.bool_]) -> Floats:
    """The log of the mean over parents that are there: (samples,); 0 where none is."""
    n_parents = there.sum(axis=1)
    if not of_parents.shape[1]:
        return np.zeros(len(of_parents))
    total = logsumexp(np.where(there, of_parents, -np.inf), axis=1)
    return np.where(n_parents > 0, total - np.log(np.maximum(n_parents, 1)), 0.0)


@dataclass(frozen=True, eq=False)
class FittedAODE(Fitted):
    """Averages from the same counts."""

    transform: str
    models: tuple[AODE, ...]  # one for each setting

    has_density = is_sum = False

    def log_likelihood(self, samples: Samples) -> Floats:
        """ln p(levels | class): (settings, samples, classes)."""
        return np.stack([model.log_likelihood(samples[self.transform].codes) for model in self.models])

    def leave_one_out(self, samples: Samples) -> Floats:
        """The same for training samples, each by the counts without it."""
        table = samples[self.transform]
        assert table.labels is not None
        return np.stack([model.leave_one_out(table.codes, table.labels, table.weights) for model in self.models])

    def contributions(self, samples: Samples, setting: int) -> Floats:
        """None: an average over parents is no sum over features."""
        raise ValueError("an average of one-dependence estimators is no sum over features")

    def restricted(self, which: Sequence[int]) -> FittedAODE:
        """Some of the settings."""
        return replace(self, models=tuple(self.models[i] for i in which))


@dataclass(frozen=True)
class AODECandidate(Candidate):
    """Averages of one-dependence estimators on bins, for several weights of backing off."""

    transform: str  # one whose columns are all discrete

    name = "aode"
    label = "each feature with one other, which all take in turn, cut into bins (AODE)"
    has_density = False

    @classmethod
    def suited(cls, profile: Profile) -> Iterator[AODECandidate | Skipped]:
        """Two numbers of bins."""
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
        """The weights of backing off."""
        return [{"candidate": self.name, "transform": self.transform, "backoff": backoff} for backoff in BACKOFFS]

    def fit(self, samples: Samples) -> FittedAODE:
        """Counted once for all."""
        table = samples[self.transform]
        assert table.labels is not None
        n_levels = [len(table.schema.levels_of(column)) for column in range(table.schema.n_columns)]
        pairs = PairCounts.of(table.codes, table.labels, table.weights, n_levels, table.schema.n_classes)
        return FittedAODE(self.transform, tuple(AODE(pairs, backoff, DIRICHLET) for backoff in BACKOFFS))
