"""Log likelihoods of every set of features, as attributions need them.

A player is a feature, or a group of features that are shown or hidden together; a coalition is a set of players. Hidden
features are integrated out as missing ones are. Arrays are (coalitions, classes, samples); bit i of a coalition's
number stands for the i-th of some players.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.table import Table
from cgnlearn.networks.components import Mask
from cgnlearn.networks.model import Model

MOST_TABULATED = 14  # players whose coalitions are all evaluated one by one
MOST_PLAYERS = 20  # whose coalitions are enumerated at all
ROWS = 1 << 16  # samples, repeated for each coalition, that are evaluated at once

Players = Sequence[tuple[int, ...]]  # the columns of X of each


class Piece(Protocol):
    """Log likelihoods of the features of some players, independent of those of all others."""

    @property
    def players(self) -> tuple[int, ...]:
        """Numbers of the players."""

    @property
    def is_countable(self) -> bool:
        """Whether the log likelihoods of all coalitions of its players can be had."""

    def every(self, rows: slice) -> Floats:
        """Log likelihoods of all coalitions of its players, for some samples: (2^players, classes, samples)."""

    def of(self, shown: Mask) -> Floats:
        """Log likelihoods of coalitions, given as masks (coalitions, its players)."""

    def times(self, power: float) -> Piece:
        """All log likelihoods times a factor."""


@dataclass(frozen=True, eq=False)
class Tabulated:
    """Log likelihoods of all coalitions of a few players."""

    players: tuple[int, ...]
    values: Floats  # (2^players, classes, samples)

    is_countable: ClassVar[bool] = True

    def every(self, rows: slice) -> Floats:
        return self.values[..., rows]

    def of(self, shown: Mask) -> Floats:
        return self.values[shown @ (1 << np.arange(len(self.players)))]

    def times(self, power: float) -> Tabulated:
        return self if power == 1 else Tabulated(self.players, power * self.values)


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Log likelihoods that are evaluated one coalition after the other."""

    players: tuple[int, ...]
    evaluate: Callable[[Mask], Floats]  # of coalitions, as masks of its players

    @property
    def is_countable(self) -> bool:
        return len(self.players) <= MOST_TABULATED

    @cached_property
    def table(self) -> Floats:
        """Log likelihoods of all coalitions."""
        return self.evaluate(masks(len(self.players)))

    def every(self, rows: slice) -> Floats:
        return self.table[..., rows]

    def of(self, shown: Mask) -> Floats:
        return self.evaluate(shown)

    def times(self, power: float) -> Evaluated:
        return Evaluated(self.players, lambda shown: power * self.evaluate(shown))


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """ln p(x_S | class) of any coalition S, up to a constant of the sample: a sum over players and pieces."""

    alone: Floats  # what single players add: (players, classes, samples)
    pieces: tuple[Piece, ...] = ()
    constant: Floats | float = 0.0  # of every coalition: (classes, 1)

    @property
    def is_active(self) -> Mask:
        """Whether each player adds anything: (players,)."""
        active = np.asarray(self.alone.any(axis=(1, 2)))
        for piece in self.pieces:
            active[list(piece.players)] = True
        return active

    @property
    def is_countable(self) -> bool:
        """Whether the log likelihoods of all coalitions can be had."""
        return all(piece.is_countable for piece in self.pieces)

    def every(self, players: Sequence[int], rows: slice) -> Floats:
        """Log likelihoods of all coalitions of the players that are active, and maybe of others, for some samples."""
        alone = self.alone[..., rows]
        total = np.empty((1 << len(players), *alone.shape[1:]))
        total[0] = self.constant
        bit = {player: i for i, player in enumerate(players)}
        # A piece is added as soon as all of its players are there: coalitions with later players copy it.
        ready: list[list[Piece]] = [[] for _ in players]
        for piece in self.pieces:
            ready[max(bit[player] for player in piece.players)].append(piece)
        for i, player in enumerate(players):
            joined(total[: 1 << i], alone[player][None], np.zeros(1 << i, np.intp), total[1 << i : 2 << i])
            for piece in ready[i]:
                number = _own_number(tuple(bit[player] for player in piece.players), i + 1)
                joined(total[: 2 << i], piece.every(rows), number, total[: 2 << i])
        return total

    def along(self, order: NDArray[np.intp]) -> Floats:
        """Log likelihoods of the first 0, 1, ... players of an order: (1 + players, classes, samples)."""
        total = np.zeros((1 + len(order), *self.alone.shape[1:]))
        np.cumsum(self.alone[order], axis=0, out=total[1:])
        when = np.argsort(order)
        for piece in self.pieces:
            # It changes only where one of its own players comes in.
            entry = when[list(piece.players)]
            steps = np.sort(entry)
            values = piece.of(entry <= np.concatenate([[-1], steps])[:, None])
            total += values[np.searchsorted(steps, np.arange(len(total)) - 1, side="right")]
        return total + self.constant

    def __mul__(self, power: float) -> Likelihoods:
        pieces = tuple(piece.times(power) for piece in self.pieces)
        return Likelihoods(power * self.alone, pieces, power * self.constant)

    def __add__(self, other: Likelihoods) -> Likelihoods:
        return Likelihoods(self.alone + other.alone, self.pieces + other.pieces, self.constant + other.constant)


def joined(before: Floats, terms: Floats, which: NDArray[np.intp], out: Floats) -> None:
    """Add to each of some log likelihoods one of the terms, all (..., classes, samples)."""
    from cgnlearn.kernels.coalitions import put_sums

    flat, flat_terms = (np.ascontiguousarray(each).reshape(len(each), -1) for each in (before, terms))
    put_sums(flat, flat_terms, which, out.reshape(len(out), -1))


@lru_cache(maxsize=24)
def _own_number(places: tuple[int, ...], n_players: int) -> NDArray[np.intp]:
    """The number that each coalition has among the players in these places."""
    every = np.arange(1 << n_players)
    own = np.zeros(len(every), np.intp)
    for i, place in enumerate(places):
        own |= (every >> place & 1) << i
    return own


def masks(n_players: int) -> Mask:
    """All coalitions: (2^players, players)."""
    return (np.arange(1 << n_players)[:, None] >> np.arange(n_players) & 1).astype(bool)


@runtime_checkable
class Coalitional(Protocol):
    """A model with a fast way to the log likelihoods of coalitions."""

    def coalitions(self, table: Table, players: Players) -> Likelihoods:
        """Log likelihoods of coalitions of the features of samples."""


def coalitions_of(model: Model, table: Table, players: Players) -> Likelihoods:
    """Log likelihoods of coalitions of the features of samples under a model that accepts missing values."""
    if isinstance(model, Coalitional):
        return model.coalitions(table, players)
    return evaluated(model.log_likelihood, table, players)


def additive(contributions: Floats, players: Players) -> Likelihoods:
    """Log likelihoods that are sums over features: contributions (samples, columns of X, classes)."""
    by_player = np.zeros((len(players), contributions.shape[2], len(contributions)))
    for player, columns in enumerate(players):
        by_player[player] = contributions[:, list(columns)].sum(axis=1).T
    return Likelihoods(by_player)


def evaluated(log_likelihood: Callable[[Table], Floats], table: Table, players: Players) -> Likelihoods:
    """Log likelihoods by predictions of samples (samples, classes), whose hidden features are missing."""
    every = tuple(range(len(players)))
    nothing = np.zeros((len(players), table.schema.n_classes, table.n_samples))
    return Likelihoods(nothing, (piece_of(log_likelihood, table, players, every),))


def piece_of(
    log_likelihood: Callable[[Table], Floats], table: Table, players: Players, some: tuple[int, ...]
) -> Evaluated:
    """Log likelihoods of coalitions of some players, while all other features are hidden."""

    def evaluate(shown: Mask) -> Floats:
        found = np.empty((len(shown), table.schema.n_classes, table.n_samples))
        by_column = np.zeros((len(shown), table.schema.n_columns), bool)
        for i, player in enumerate(some):
            by_column[:, list(players[player])] = shown[:, i, None]
        for part, hidden in _hidden(table, by_column):
            found[part] = log_likelihood(hidden).reshape(-1, table.n_samples, found.shape[1]).swapaxes(1, 2)
        return found

    return Evaluated(some, evaluate)


def _hidden(table: Table, shown: Mask) -> Iterator[tuple[slice, Table]]:
    """Chunks of masks (coalitions, columns of X), with the samples repeated for each of them."""
    step = max(1, ROWS // max(1, table.n_samples))
    for start in range(0, len(shown), step):
        part = slice(start, min(start + step, len(shown)))
        rows = np.tile(np.arange(table.n_samples), part.stop - part.start)
        unlabelled = replace(table, labels=None, weights=None)
        yield part, hiding(unlabelled.rows(rows), np.repeat(shown[part], table.n_samples, axis=0))


def hiding(table: Table, shown: Mask) -> Table:
    """The samples with missing values where they are not shown: (samples, columns of X)."""
    schema = table.schema
    values = np.where(shown[:, schema.continuous], table.values, np.nan)
    codes = np.where(shown[:, schema.discrete], table.codes, np.int32(MISSING))
    return replace(table, values=values, codes=codes)
