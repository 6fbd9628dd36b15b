"""Log likelihoods of all sets of a network's features, with those outside the set integrated out.

As `cgnlearn.networks.integration` has them, but each conditional density is computed once for all sets that need it: in
a set the density of its last feature depends on the set through the features that separate it from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels.arguments import Trie
from cgnlearn.networks import densities
from cgnlearn.networks.coalitions import MOST_TABULATED, Likelihoods, Piece, Players, Tabulated, additive, piece_of
from cgnlearn.networks.components import Component
from cgnlearn.networks.elimination import bits
from cgnlearn.networks.implied import Implied, Node
from cgnlearn.networks.runs import runs_of

if TYPE_CHECKING:
    from cgnlearn.networks.network import Network

Sets = NDArray[np.int64]  # of nodes, as bits


def network_coalitions(network: Network, table: Table, players: Players) -> Likelihoods:
    """Log likelihoods of coalitions of the features of samples."""
    integration = network.integration
    player_of = {column: player for player, columns in enumerate(players) for column in columns}
    joint = [component for component in integration.components if len(_players(component, player_of)) > 1]
    # Features that are independent of those of all other players: with all of them shown, as with any.
    contributions = network.contributions(table)
    pieces: list[Piece] = []
    others = []
    for component in joint:
        if len(_players(component, player_of)) == len(component.columns) <= MOST_TABULATED:
            if found := tabulated(network, component, table):
                order, values = found
                pieces.append(Tabulated(tuple(player_of[column] for column in order), values))
                continue
        elif runs := runs_of(network, component, table, contributions, player_of):
            pieces.append(runs)
            continue
        others.append(component)
    for component in joint:
        contributions[:, component.columns] = 0.0
    single = additive(contributions, players)
    for some, components in _nested(others, player_of):
        columns = [column for component in components for column in component.columns]
        listed = tuple(sorted(some))
        piece = piece_of(network.restricted(columns).log_likelihood, table, players, listed)
        pieces.append(piece if len(listed) > MOST_TABULATED else Tabulated(listed, piece.table))
    return replace(single, pieces=tuple(pieces))


def _players(component: Component, player_of: dict[int, int]) -> set[int]:
    return {player_of[column] for column in component.columns}


def _nested(components: Sequence[Component], player_of: dict[int, int]) -> list[tuple[set[int], list[Component]]]:
    """Components, with those that have some of their players only."""
    found: list[tuple[set[int], list[Component]]] = []
    for component in sorted(components, key=lambda each: -len(_players(each, player_of))):
        own = _players(component, player_of)
        for some, together in found:
            if own <= some:
                together.append(component)
                break
        else:
            found.append((own, [component]))
    return found


def tabulated(network: Network, component: Component, table: Table) -> tuple[list[int], Floats] | None:
    """The columns in the order of their bits, and the log likelihoods of all sets: (sets, classes, samples).

    None where they have to be evaluated one by one: a graph with discrete features that is no forest, or a scale that
    rounding has made singular.
    """
    filled = replace(
        table,
        values=np.where(np.isnan(table.values), 0.0, table.values),
        codes=np.maximum(table.codes, 0),
        labels=None,
        weights=None,
    )
    try:
        if len(component.nodes) == len(component.columns):
            order = list(component.columns)
            own = component.restricted.contributions(filled)[:, order].transpose(1, 2, 0)
            found = totals(last_densities(network, component.nodes, [0] * len(order), own, filled))
        elif component.is_forest:
            order, found = _forest(network, component, filled)
        else:
            return None
    except _SingularError:
        return None
    return order, _without_missing(found, table, order)


def _without_missing(found: Floats, table: Table, order: list[int]) -> Floats:
    """The same with the sets of samples reduced to the features that they have."""
    missing = np.array([table.missing(column) for column in order])
    incomplete = np.flatnonzero(missing.any(axis=0))
    every = np.arange(len(found))
    for row in incomplete:
        has = int((~missing[:, row]) @ (1 << np.arange(len(order))))
        found[:, :, row] = found[every & has, :, row]
    return found


# ---- continuous features


class Plan(NamedTuple):
    """How the density of the last node of every set is computed."""

    trie: Trie  # the sets of nodes that are given, each with the node
    task: NDArray[np.intp]  # of each set its entry of the trie, or after these, one, and the nodes' own families


@lru_cache(maxsize=32)
def plan_of(parents: tuple[int, ...]) -> Plan:
    """The plan for nodes with these parents, as sets; parents come before children."""
    m = len(parents)
    sets = np.arange(1 << m, dtype=np.int64)
    last = np.zeros(len(sets), np.intp)
    for node in range(m):
        last[1 << node : 2 << node] = node
    given = separators(parents)
    own = np.array([*parents, 0])[last]
    needed = given | 1 << last
    is_own = (own & ~sets) == 0
    is_own[0] = True
    wanted = {int(found) for found in np.unique(needed[~is_own])}
    for found in sorted(wanted, reverse=True):
        shorter = found
        while shorter := shorter ^ 1 << (shorter.bit_length() - 1):
            if shorter in wanted:
                break
            wanted.add(shorter)
    listed = sorted(wanted, key=lambda found: tuple(bits(found)))  # a set comes after itself without its last node
    member = np.array([found.bit_length() - 1 for found in listed], np.intp)
    depth = np.array([found.bit_count() - 1 for found in listed], np.intp)
    task = 1 + len(listed) + last
    task[0] = len(listed)
    place = {found: i for i, found in enumerate(listed)}
    task[~is_own] = [place[found] for found in needed[~is_own].tolist()]
    return Plan(Trie(member, depth), task)


def separators(parents: Sequence[int]) -> Sets:
    """For every set, the nodes of it on which its last one depends after all nodes outside are integrated out.

    `elimination.without` for all sets at once.
    """
    m = len(parents)
    sets = np.arange(1 << m, dtype=np.int64)
    kept = sets.copy()
    for node in reversed(range(m)):
        kept |= np.where(kept >> node & 1, parents[node], 0)
    missing = kept & ~sets
    above = [np.full(len(sets), parents[node], np.int64) for node in range(m)]
    below = [np.full(len(sets), sum(1 << c for c in range(m) if parents[c] >> node & 1), np.int64) for node in range(m)]
    for node in reversed(range(m)):
        gained = np.full(len(sets), parents[node], np.int64)
        for child in range(node + 1, m):
            here = (missing >> node & below[node] >> child & sets >> child & 1).astype(bool)
            if not here.any():
                continue
            own = above[child] & ~(1 << node)
            above[child] = np.where(here, own | gained, above[child])
            for parent in range(child):
                reached = here & (above[child] >> parent & missing >> parent & 1).astype(bool)
                below[parent][reached] |= 1 << child
            gained = np.where(here, gained | own | 1 << child, gained)
    found = np.zeros(len(sets), np.int64)
    for node in range(m):
        found[1 << node : 2 << node] = above[node][1 << node : 2 << node]
    return found


def last_densities(
    network: Network, nodes: Sequence[Node], configurations: Sequence[int], own: Floats, table: Table
) -> Floats:
    """Log density of the last feature of every set given the others, all continuous: (sets, classes, samples).

    ``configurations`` are those of their discrete parents; ``own`` are the log densities of the features in their own
    families: (nodes, classes, samples).
    """
    from cgnlearn.kernels.subsets import put_factors, put_last_densities

    position = {node.column: i for i, node in enumerate(nodes)}
    plan = plan_of(tuple(sum(1 << position[parent] for parent in node.parents) for node in nodes))
    n_tasks = len(plan.trie.member)
    every = np.zeros((n_tasks + 1 + len(nodes), *own.shape[1:]))  # 0 for the empty set
    every[n_tasks + 1 :] = own
    if n_tasks:
        implied = Implied.of(nodes, configurations, network.estimation)
        joint = implied.arguments(len(nodes))
        factor = np.zeros((own.shape[1], n_tasks, len(nodes)))
        if not put_factors(plan.trie, joint, factor):
            raise _SingularError
        values = np.ascontiguousarray(implied.standard(table, np.arange(table.n_samples)).T)
        put_last_densities(values, plan.trie, factor, joint, every[:n_tasks])
    return every[plan.task]


def totals(last: Floats) -> Floats:
    """Log likelihoods of all sets from the log densities of their last features, which are overwritten."""
    n_nodes = len(last).bit_length() - 1
    for i in range(n_nodes):
        last[1 << i : 2 << i] += last[: 1 << i]
    return last


class _SingularError(Exception):
    """Rounding has made a scale singular."""


# ---- forests with discrete features, by messages


class Message(NamedTuple):
    """What a feature and all below it say about their parent, a discrete feature."""

    columns: list[int]  # in the order of the bits of the sets
    shown: Floats  # with the parent's own level: (sets, classes, samples)
    hidden: Floats  # with each of its levels, to be summed over: (sets, classes, samples, levels)


def _forest(network: Network, component: Component, table: Table) -> tuple[list[int], Floats]:
    """All sets of the features of a forest with one root, from the leaves up."""
    children: dict[int, list[int]] = {column: [] for column in component.columns}
    roots = []
    for column in component.columns:
        if above := component.parents_of[column]:
            children[above[0]].append(column)
        else:
            roots.append(column)
    found = _Messages(network, component, table, children).of(roots[0], None)
    return found.columns, found.shown


@dataclass(frozen=True, eq=False)
class _Messages:
    """The messages in a forest."""

    network: Network
    component: Component
    table: Table  # complete
    children: dict[int, list[int]]

    @cached_property
    def tables(self) -> dict[int, Floats]:
        """ln p(level | class, level of the parent) of discrete features: (classes, levels of the parent, levels)."""
        statistics = self.network.statistics
        return {
            family.column: densities.categorical(counts, self.network.estimation.dirichlet)
            for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True)
        }

    def codes(self, column: int | None) -> NDArray[np.intp]:
        """The level of each sample; 0 for no column."""
        if column is None:
            return np.zeros(self.table.n_samples, np.intp)
        return self.table.codes[:, self.table.schema.position[column]].astype(np.intp)

    def of(self, column: int, parent: int | None) -> Message:
        """The message of a feature to its parent."""
        if column in self.component.node_of:
            return self._continuous(column, parent)
        own = self.tables[column]
        n_classes, n_above, n_levels = own.shape
        columns: list[int] = []
        shown = np.zeros((1, n_classes, self.table.n_samples))
        total = np.zeros((*shown.shape, n_levels))
        for child in self.children[column]:
            below = self.of(child, column)
            columns += below.columns
            shown = (below.shown[:, None] + shown).reshape(-1, *shown.shape[1:])
            total = (below.hidden[:, None] + total).reshape(-1, *total.shape[1:])
        by_level = np.empty((2 * len(shown), *shown.shape[1:], n_above))
        by_level[len(shown) :] = shown[..., None] + own[:, :, self.codes(column)].swapaxes(1, 2)
        for level in range(n_above):
            by_level[: len(shown), ..., level] = np.logaddexp.reduce(total + own[:, None, level], axis=-1)
        at = self.codes(parent)
        return Message([*columns, column], by_level[:, :, np.arange(len(at)), at], by_level)

    def _continuous(self, column: int, parent: int | None) -> Message:
        """The message of a continuous feature and those below it, which are continuous too."""
        listed, waiting = [], [column]
        while waiting:
            listed.append(here := waiting.pop())
            waiting += self.children[here]
        nodes = [node for node in self.component.nodes if node.column in listed]
        columns = [node.column for node in nodes]
        cells = nodes[0].cells
        by_level = []
        for level in range(cells.n):
            codes = self.table.codes.copy()
            codes[:, cells.codes] = level
            table = replace(self.table, codes=codes)
            own = self.component.restricted.contributions(table)[:, columns].transpose(1, 2, 0)
            configurations = [level, *(0 for _ in nodes[1:])]
            by_level.append(last_densities(self.network, nodes, configurations, own, table))
        at_level = np.stack(by_level, axis=-1)
        at = self.codes(parent)
        return Message(columns, totals(at_level[:, :, np.arange(len(at)), at]), totals(at_level))
