"""Runs of neighbouring features of a band that are shown and hidden together.

Each feature of a band depends on those just before it. So the log density of a shown run depends on the other runs
through few of them: the shown ones that are near enough, counted across hidden ones. It is computed once for all
coalitions that have these in common. Of the joint distribution only the first and the last features of a run are
needed: the others are integrated out from neighbour to neighbour, however long the band is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.coalitions import MOST_PLAYERS, joined
from cgnlearn.networks.components import Component, Mask
from cgnlearn.networks.elimination import bits
from cgnlearn.networks.implied import Implied, Node

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

MOST_RUNS = 62  # whose sets are numbers
MOST_DENSITIES = 1 << 14  # of runs given others
OWN = -1  # stands for runs before one that are all shown as far as they matter

Sets = NDArray[np.int64]  # of runs, as bits


class Run(NamedTuple):
    """Neighbouring nodes of one player."""

    player: int
    start: int
    stop: int


def runs_of(
    network: Network, component: Component, table: Table, own: Floats, player_of: dict[int, int]
) -> Runs | None:
    """Log likelihoods of coalitions whose features are long runs of a band; None if they are not.

    ``own`` are the log densities of features in their own families: (samples, columns of X, classes).
    """
    nodes = component.nodes
    first = first_parents(nodes)
    if first is None or len(nodes) < len(component.columns):
        return None
    if any(table.missing(node.column).any() for node in nodes):
        return None
    runs, start = [], 0
    for player, listed in groupby(player_of[node.column] for node in nodes):
        stop = start + len(list(listed))
        runs.append(Run(player, start, stop))
        start = stop
    width = max(i - above for i, above in enumerate(first))
    if len(runs) > MOST_RUNS or len(nodes) < 2 * width * len(runs):
        return None
    kept = sorted(
        {node for run in runs for node in (*range(run.start, run.stop)[:width], *range(run.start, run.stop)[-width:])}
    )
    implied = Implied.of(nodes, [0] * len(nodes), network.estimation, kept)
    columns = [node.column for node in nodes]
    densities = RunDensities(
        runs,
        first,
        implied,
        {node: i for i, node in enumerate(kept)},
        implied.standard(table, np.arange(table.n_samples)),
        np.ascontiguousarray(own[:, columns].transpose(1, 2, 0)),
    )
    # Players with one run come last, in order: then a run doubles the coalitions that were there before it.
    of_players = [run.player for run in runs]
    several = [player for player in dict.fromkeys(of_players) if of_players.count(player) > 1]
    return Runs(tuple(dict.fromkeys([*several, *of_players])), len(several), densities)


def first_parents(nodes: Sequence[Node]) -> list[int] | None:
    """The first parent of each node if its parents are the nodes just before it, as in a band or a group, else None."""
    position = {node.column: i for i, node in enumerate(nodes)}
    found: list[int] = []
    for i, node in enumerate(nodes):
        parents = sorted(position[column] for column in node.parents)
        above = i - len(parents)
        if parents != list(range(above, i)) or (found and above < found[-1]):
            return None
        found.append(above)
    return found


@dataclass(frozen=True, eq=False)
class RunDensities:
    """Log densities of runs given shown ones before them; every other run is hidden."""

    runs: list[Run]
    first: list[int]  # the first parent of each node
    implied: Implied  # of the nodes at the ends of runs
    place: dict[int, int]  # of these nodes among themselves
    standard: Floats  # their values: (samples, nodes at ends)
    own: Floats  # log densities of all nodes in their own families: (nodes, classes, samples)
    known: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def needed(self, number: int, shown: Mask) -> Sets:
        """The shown runs before a run on which it depends, for coalitions given as masks (coalitions, runs)."""
        reach = np.full(len(shown), self.first[self.runs[number].start])
        found = np.zeros(len(shown), np.int64)
        is_own = np.ones(len(shown), bool)
        for before in range(number - 1, -1, -1):
            run = self.runs[before]
            near = reach < run.stop
            if not near.any():
                break
            hidden = near & ~shown[:, before]
            reach[hidden] = np.minimum(reach[hidden], self.first[run.start])
            is_own &= ~hidden
            found[near & shown[:, before]] |= 1 << before
        return np.where(is_own, OWN, found)

    def of(self, number: int, given: int) -> Floats:
        """Log density of a run given some before it: (classes, samples)."""
        if (number, given) not in self.known:
            self.known[number, given] = self._of(number, given)
        return self.known[number, given]

    def _of(self, number: int, given: int) -> Floats:
        start, stop = self.runs[number].start, self.runs[number].stop
        reaches: list[int] = []  # of the first nodes of the run, which depend on hidden ones
        while given != OWN and start + len(reaches) < stop:
            reach = self._reach(number, given, start + len(reaches))
            if reach is None:
                break
            reaches.append(reach)
        total: Floats = self.own[start + len(reaches) : stop].sum(axis=0)
        node = start
        for reach, same in groupby(reaches):
            after = node + len(list(same))
            before = [
                self.place[other]
                for run in bits(max(given, 0))
                for other in range(max(reach, self.runs[run].start), self.runs[run].stop)
            ]
            members = np.array([*before, *(self.place[other] for other in range(start, after))], np.intp)
            total = total + self.implied.log_density(self.standard, members, len(before) + node - start)
            node = after
        return total

    def _reach(self, number: int, given: int, node: int) -> int | None:
        """The first node on which one depends after hidden ones have been integrated out; None if it needs none."""
        reach, depends = self.first[node], False
        for before in range(number - 1, -1, -1):
            run = self.runs[before]
            if reach >= run.stop:
                break
            if not given >> before & 1:
                depends, reach = True, min(reach, self.first[run.start])
        return reach if depends else None


class Step(NamedTuple):
    """What a run adds to coalitions."""

    coalitions: NDArray[np.intp] | None  # those that show it; None: all that were there are repeated with it
    given: list[int]  # the sets of runs on which it may depend
    which: NDArray[np.intp]  # of these each coalition has


@dataclass(frozen=True, eq=False)
class Runs:
    """Log likelihoods of coalitions of runs."""

    players: tuple[int, ...]
    n_several: int  # the number of first players that have several runs
    densities: RunDensities
    power: float = 1.0

    @cached_property
    def bit(self) -> list[int]:
        """The place of each run's player."""
        return [self.players.index(run.player) for run in self.densities.runs]

    @property
    def is_countable(self) -> bool:
        if len(self.players) > MOST_PLAYERS:
            return False
        return sum(len(step.given) for step in self.steps) <= MOST_DENSITIES

    @cached_property
    def steps(self) -> list[Step]:
        """How all coalitions are built up, run by run."""
        found = []
        sets = np.arange(1 << self.n_several)
        for number, bit in enumerate(self.bit):
            coalitions = np.flatnonzero(sets >> bit & 1) if bit < self.n_several else None
            there = sets if coalitions is None else sets[coalitions]
            shown = (there[:, None] >> np.array(self.bit[:number], np.int64) & 1).astype(bool)
            given, which = np.unique(self.densities.needed(number, shown), return_inverse=True)
            found.append(Step(coalitions, given.tolist(), which.ravel()))
            if coalitions is None:
                sets = np.concatenate([sets, sets | 1 << bit])
        return found

    def every(self, rows: slice) -> Floats:
        total = np.zeros((1 << len(self.players), *self.densities.own[0, :, rows].shape))
        n = 1 << self.n_several
        for number, step in enumerate(self.steps):
            values = self.power * np.stack([self.densities.of(number, given)[:, rows] for given in step.given])
            if step.coalitions is None:
                joined(total[:n], values, step.which, total[n : 2 * n])
                n *= 2
            else:
                total[step.coalitions] += values[step.which]
        return total

    def of(self, shown: Mask) -> Floats:
        by_run = shown[:, self.bit]
        total = np.zeros((len(shown), *self.densities.own.shape[1:]))
        for number in range(len(self.bit)):
            rows = np.flatnonzero(by_run[:, number])
            given, which = np.unique(self.densities.needed(number, by_run[rows]), return_inverse=True)
            for i, found in enumerate(given.tolist()):
                total[rows[which.ravel() == i]] += self.power * self.densities.of(number, found)
        return total

    def times(self, power: float) -> Runs:
        return replace(self, power=power * self.power)
