"""Wrapper searches over JAN structures (Algorithm 1 of the paper): one greedy loop, three neighbourhoods.

A structure is a tuple of groups of columns. The loop is a generator of the states it visits, which serves progress
reports, early stopping and inspection.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation, MaximumLikelihood
from cgnlearn.networks.families import Node
from cgnlearn.networks.moments import CHUNK, numeric_libraries
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.edges import Arc, Edges, arcs_of, joined
from cgnlearn.structures.fixed import Jan
from cgnlearn.structures.fold_scores import Folds, Group
from cgnlearn.structures.learner import Learner, Watch
from cgnlearn.structures.leave_one_out_scores import LeaveOneOutFolds

Groups = tuple[Group, ...]

SAME = 1e-12  # scores closer than this are equal: the order of summation must break no tie
MOST_BYTES = 1 << 29  # of cached log odds


class Move(NamedTuple):
    """A move to a neighbour: groups to remove, by position, and one to add unless it is empty."""

    removed: tuple[int, ...]
    added: Group

    def applied(self, groups: Groups) -> Groups:
        """Groups of the neighbour: a changed group keeps its place, a new or joined one goes to the end."""
        kept = [group for i, group in enumerate(groups) if i not in self.removed]
        place = self.removed[0] if len(self.removed) == 1 else len(kept)
        if self.added:
            kept.insert(place, self.added)
        return tuple(kept)


def forward(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each absent feature as a new group, then into each group (fwGJAN)."""
    present = {column for group in groups for column in group}
    for column in columns:
        if column not in present:
            yield Move((), (column,))
            for i, group in enumerate(groups):
                yield Move((i,), (*group, column))


def condensed(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each feature removed (wcGJAN)."""
    for i, group in enumerate(groups):
        for position in range(len(group)):
            yield Move((i,), group[:position] + group[position + 1 :])


def backward(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each feature removed, then each two groups joined (bwGJAN)."""
    yield from condensed(groups, columns)
    for a in range(1, len(groups)):
        for b in range(a):
            yield Move((b, a), groups[b] + groups[a])


NEIGHBOURS = {"forward": forward, "backward": backward, "condensed": condensed}


class Rules(NamedTuple):
    """What every structure of a search obeys."""

    required: Groups  # columns that stay together
    kept: frozenset[int]  # all of them
    forbidden: tuple[Arc, ...]  # columns that stay apart

    @classmethod
    def of(cls, required: Edges, forbidden: Edges, schema: Schema, columns: Sequence[int]) -> Rules:
        """Rules about the columns that are not constant, after checks."""
        apart = arcs_of(forbidden, schema, "GreedyJan's forbidden")
        together = [pair for pair in arcs_of(required, schema, "GreedyJan's required") if set(pair) <= set(columns)]
        groups = tuple(joined(together))
        for group in groups:
            for one, other in apart:
                if one in group and other in group:
                    names = f"{schema.name(one)} and {schema.name(other)}"
                    raise ValueError(f"{names} are forbidden in one group, but required edges join them: remove one")
        return cls(groups, frozenset(column for group in groups for column in group), tuple(apart))

    def obeying(self, groups: Groups, moves: Iterable[Move]) -> Iterator[Move]:
        """The moves to structures that obey."""
        for move in moves:
            kept = {column for i in move.removed for column in groups[i]} & self.kept
            if kept <= set(move.added) and not any({one, other} <= set(move.added) for one, other in self.forbidden):
                yield move


@dataclass(frozen=True)
class SearchState:
    """A structure that a search visited."""

    groups: tuple[tuple[Node, ...], ...]  # features of each group, in the order of their addition
    structure: Structure
    score: float  # cross-validated accuracy or minus log loss; -inf if the sample is not acceptable
    n_scored: int  # number of structures scored before this one was chosen

    def renamed(self, names: Mapping[Node, Node]) -> SearchState:
        """State with other names for the features."""
        groups = tuple(tuple(names[node] for node in group) for group in self.groups)
        return replace(self, groups=groups, structure=self.structure.renamed(names))


def greedy(
    start: Groups, neighbours: Callable[[Groups], Iterator[Move]], scores: Callable[[Groups, Sequence[Move]], Floats]
) -> Iterator[tuple[Groups, float]]:
    """Algorithm 1: go to the best neighbour, the first of equal ones, while it is not worse."""
    groups, score = start, float(scores(start, [Move((), ())])[0])
    yield groups, score
    while moves := list(neighbours(groups)):
        found = scores(groups, moves)
        most = found.max()
        slack = SAME * max(1.0, abs(most)) if np.isfinite(most) else 0.0
        best = int(np.argmax(found >= most - slack))
        if found[best] < score - slack:
            return
        groups, score = moves[best].applied(groups), float(found[best])
        yield groups, score


class Scores:
    """Cross-validated scores of neighbours, from cached log odds of groups."""

    def __init__(self, folds: Folds, scoring: str, most_bytes: int) -> None:
        self.n_scored = 0
        self.any_acceptable = False
        self._folds = folds
        self._score_of = {"accuracy": _accuracies, "log_loss": _log_likelihoods}[scoring]
        self._capacity = max(1, most_bytes // folds.class_odds.nbytes)  # groups
        self._cache: dict[Group, Floats | None] = {}
        self._none = np.zeros_like(folds.class_odds)
        # The order inside a group matters only for the paper's prior location.
        self._key: Callable[[Group], Group] = (
            tuple if folds.estimation.prior.location == "paper" else lambda group: tuple(sorted(group))
        )

    def __call__(self, groups: Groups, moves: Sequence[Move]) -> Floats:
        """Score of each neighbour of these groups."""
        self.n_scored += len(moves)
        # Products this small gain little from a second thread, which may have to wait for other work.
        with numeric_libraries().limit(limits=1, user_api="blas"):
            return self._scores(groups, moves)

    def _scores(self, groups: Groups, moves: Sequence[Move]) -> Floats:
        own = [self._key(group) for group in groups]
        added = [self._key(move.added) for move in moves]
        needed = {*own, *added}
        if len(self._cache) + len(needed - self._cache.keys()) > self._capacity:
            self._cache = {group: odds for group, odds in self._cache.items() if group in needed}
        odds = self._odds(own, {})
        # The largest group that each neighbour changes.
        changes = [(move, key) for move, key in zip(moves, added, strict=True) if move.removed]
        bases = {key: max((own[i] for i in move.removed), key=len) for move, key in changes}
        bad = np.array([found is None for found in odds], bool)
        # Sums over the kept groups, the odds of the class alone first, as a matrix product without subtraction: "all
        # minus the removed" would lose every digit where a sample is nearly impossible under one group.
        stacked = np.stack([self._folds.class_odds, *(self._none if o is None else o for o in odds)])
        impossible = np.isposinf(stacked)
        kept = np.ones((len(moves), len(stacked)))
        for i, move in enumerate(moves):
            kept[i, [1 + position for position in move.removed]] = 0.0
        scores = np.full(len(moves), -np.inf)
        possible = np.flatnonzero((kept[:, 1:] @ bad == 0) & self._folds.acceptable)
        step = max(1, 64 * CHUNK // self._none.size)
        for start in range(0, len(possible), step):
            chosen = possible[start : start + step].tolist()
            new = self._odds([added[i] for i in chosen], bases)
            good = [i for i, of_group in zip(chosen, new, strict=True) if of_group is not None]
            if good:
                sums = _sums(kept[good], stacked, impossible)
                for of_move, of_group in zip(sums, (o for o in new if o is not None), strict=True):
                    of_move += of_group
                scores[good] = self._score_of(sums, self._folds)
        return scores

    def _odds(self, groups: Sequence[Group], bases: Mapping[Group, Group]) -> list[Floats | None]:
        """Log odds of each group, cached as long as there is room."""
        found = {group: self._cache[group] for group in groups if group in self._cache}
        found[()] = self._none
        unknown = [group for group in dict.fromkeys(groups) if group not in found]
        for group, odds in self._computed(unknown, bases):
            found[group] = odds
            self.any_acceptable |= odds is not None
            if len(self._cache) < self._capacity:
                # A copy, since a view would keep its whole batch in memory.
                self._cache[group] = None if odds is None else odds.copy()
        return [found[group] for group in groups]

    def _computed(self, groups: Sequence[Group], bases: Mapping[Group, Group]) -> Iterator[tuple[Group, Floats | None]]:
        """Log odds of groups: first those that differ from one base by one feature, together, then the others."""
        near: dict[Group, list[Group]] = {}
        for group in groups:
            base = bases.get(group, ())
            if base and abs(len(group) - len(base)) == 1 and self._folds.is_batched((*group, *base)):
                near.setdefault(base, []).append(group)
        done = set()
        for base, wanted in near.items():
            if len(wanted) > 2:
                for group, odds in self._folds.near(base, wanted):
                    done.add(group)
                    yield group, odds
        yield from self._folds.log_odds([group for group in groups if group not in done])


def _sums(kept: Floats, stacked: Floats, impossible: NDArray[np.bool_]) -> Floats:
    """Sums of the kept ones of the stacked log odds, some of which may be infinite."""
    shape = (len(kept), *stacked.shape[1:])
    flat, infinite = stacked.reshape(len(stacked), -1), impossible.reshape(len(stacked), -1)
    if not infinite.any():
        return (kept @ flat).reshape(shape)
    sums = kept @ np.where(infinite, 0.0, flat)
    sums[kept @ infinite > 0] = np.inf
    return sums.reshape(shape)


def _accuracies(odds: Floats, folds: Folds) -> Floats:
    """Accuracy of predicting the first of the most probable classes."""
    # Against a later class a tie suffices: log odds below the least positive number.
    later = np.arange(odds.shape[1])[:, None, None] >= folds.labels
    right = (odds < np.where(later, np.finfo(float).tiny, 0.0)).all(axis=1)
    shares: Floats = right.reshape(len(odds), -1) @ folds.weights.ravel()
    return shares


def _log_likelihoods(odds: Floats, folds: Folds) -> Floats:
    """Mean log probability of the true classes."""
    found: Floats = -np.logaddexp.reduce(odds, axis=1, initial=0.0).reshape(len(odds), -1) @ folds.weights.ravel()
    return found


class GreedyJan(Learner):
    """Greedy wrapper search over groups of features, scored by cross-validation inside the training data.

    fwGJAN starts from the class alone and adds features, bwGJAN starts from naive Bayes and removes features or
    joins groups, wcGJAN starts from one group of all features and removes some (Pérez, Larrañaga and Inza 2006).
    The search goes to the best neighbour, the first of equal ones, while it is not worse. Features that are constant in
    the training data are excluded. Scores use the classifier's prior, without sharing between classes.

    Parameters
    ----------
    search : {"forward", "backward", "condensed"}
    cv : int or "loo", default=10
        Number of stratified folds, the same for all structures, which keep the ``groups`` of ``fit`` together; fewer
        if a class has fewer samples. ``"loo"``: exact leave-one-out, from one factorisation of each group, with a
        fixed prior.
    scoring : {"accuracy", "log_loss"}
        Accuracy or minus log loss; mean over the folds, or over the samples for ``"loo"``.
    estimation : {"ml", "bayes"}
        Estimation of the scored structures. With ``"ml"`` a structure whose parameters do not exist in some fold, or
        for ``"loo"`` with all samples, scores minus infinity.
    random_state : int, RandomState or None, default=0
        Random seed of the folds.
    required, forbidden : sequence of pairs of columns, optional
        Features that must be in the same group, and features that must not be, as names or indexes. Required features
        are in every structure of the search. ``"condensed"``, with its one group, can forbid nothing.

    The classifier then has ``search_path_``: the visited structures with their scores, the chosen one last.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, GreedyJan
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CGNClassifier(GreedyJan("forward")).fit(X, y)
    >>> for state in model.search_path_:
    ...     print(f"{state.score:.4f}", state.groups)
    0.3333 ()
    0.9533 ((3,),)
    0.9667 ((3, 2),)
    0.9800 ((3, 2, 0),)
    """

    def __init__(
        self,
        search: Literal["forward", "backward", "condensed"] = "forward",
        cv: int | Literal["loo"] = 10,
        scoring: Literal["accuracy", "log_loss"] = "accuracy",
        estimation: Literal["ml", "bayes"] = "ml",
        random_state: Any = 0,
        required: Edges = (),
        forbidden: Edges = (),
    ) -> None:
        self.search = search
        self.cv = cv
        self.scoring = scoring
        self.estimation = estimation
        self.random_state = random_state
        self.required = required
        self.forbidden = forbidden

    has_leave_one_out = False

    @property
    def needs_samples(self) -> bool:
        return True

    def resolved(self, table: Table, estimation: Estimation, groups: Any = None, watch: Watch = iter) -> SearchedJan:
        names = dict(enumerate(table.schema.names or range(table.schema.n_columns)))
        path = [state.renamed(names) for state in watch(self.states(table, estimation, groups))]
        chosen = Jan(path[-1].groups).resolved(table, estimation)
        assert isinstance(chosen, Jan)
        return SearchedJan(chosen.groups, path)

    def states(self, table: Table, estimation: Estimation, groups: Any = None) -> Iterator[SearchState]:
        """Visited states of the search, one after the other; folds keep each group of samples together."""
        self._check()
        schema = table.schema
        scored_by = (Bayes if self.estimation == "bayes" else MaximumLikelihood)(estimation.prior)
        folds = self._folds(table, scored_by, groups)
        columns = [column for column in range(schema.n_columns) if column not in set(folds.constant)]
        rules = Rules.of(self.required, self.forbidden, schema, columns)
        rest = tuple((column,) for column in columns if column not in rules.kept)
        together = (tuple(columns),) if columns else ()
        start: dict[str, Groups] = {
            "forward": rules.required,
            "backward": (*rules.required, *rest),
            "condensed": together,
        }
        scores = Scores(folds, self.scoring, MOST_BYTES)
        neighbours = NEIGHBOURS[self.search]
        for groups, score in greedy(
            start[self.search], lambda now: rules.obeying(now, neighbours(now, columns)), scores
        ):
            yield _visited(groups, schema, score, scores.n_scored)
        if not scores.any_acceptable:
            if groups:  # where the training samples of a fold lack a class, all scores are minus infinity
                yield _visited((), schema, score, scores.n_scored)
            warnings.warn(
                "no structure of the search has a maximum likelihood, so the class alone is used: "
                'use estimation="bayes" in GreedyJan, or more samples',
                UserWarning,
                stacklevel=2,
            )

    def _folds(self, table: Table, estimation: Estimation, groups: Any) -> Folds:
        if self.cv == "loo":
            if groups is not None:
                raise ValueError('GreedyJan(cv="loo") cannot hold out groups: use folds, such as cv=10')
            return LeaveOneOutFolds(table, estimation)
        assert table.labels is not None
        splits = stratified(table.labels, self.cv, self.random_state, groups)
        if splits.fewer:
            warnings.warn(splits.fewer, UserWarning, stacklevel=3)
        return Folds(table, estimation, [test for _, test in splits.pairs])

    def _check(self) -> None:
        choices = {"search": NEIGHBOURS, "scoring": ("accuracy", "log_loss"), "estimation": ("ml", "bayes")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                options = " or ".join(f'"{word}"' for word in allowed)
                raise ValueError(f"GreedyJan's {name} must be {options}, not {getattr(self, name)!r}")
        if self.search == "condensed" and len(self.forbidden):
            raise ValueError(
                'GreedyJan("condensed") has all features in one group, so nothing can be forbidden: use "backward"'
            )
        cv = self.cv
        are_folds = isinstance(cv, int | np.integer) and not isinstance(cv, bool) and cv >= 2
        if not are_folds and not (isinstance(cv, str) and cv == "loo"):
            raise ValueError(f'GreedyJan\'s cv must be a whole number of at least 2, or "loo", not {cv!r}')


class SearchedJan(Jan):
    """The groups that a search has chosen, and the states that it visited."""

    def __init__(self, groups: Iterable[Iterable[Any]], path: list[SearchState]) -> None:
        super().__init__(groups)
        self.path = path


def _visited(groups: Groups, schema: Schema, score: float, n_scored: int) -> SearchState:
    structure = Structure.jan([schema.discrete_first(list(group)) for group in groups])
    return SearchState(groups, structure, score, n_scored)
