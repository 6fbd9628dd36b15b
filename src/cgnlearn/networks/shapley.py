"""Shapley values of features: of all coalitions, or by sampled orders.

The value of a coalition S is v(S) = ln p(c | x_S), with all other features integrated out. A feature's Shapley value is
the mean, over all orders of the features, of what it adds to v when it comes in. It depends on no order, and the sum
over features is ln p(c | x) - ln p(c).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.coalitions import Likelihoods, Tabulated, masks
from cgnlearn.networks.components import Mask, distinct


class Member(NamedTuple):
    """A member of a mixture: p(c | x_S) ∝ p(c) exp of its log likelihoods."""

    weight: float
    likelihoods: Likelihoods


class Attributions(NamedTuple):
    """Shapley values and their standard errors: (players, classes, samples)."""

    values: Floats
    errors: Floats


def exact(members: Sequence[Member], known: Mask, before: Floats, after: Floats, power: float = 1.0) -> Floats:
    """Shapley values from all coalitions: (players, classes, samples).

    ``known`` (samples, players) is false where nothing of a player is known, shown or not. ``before`` (classes,) and
    ``after`` (samples, classes) are the log probabilities without and with all that is known; ``power`` is that of the
    mixture's likelihood ratios.
    """
    found = np.zeros((known.shape[1], *after.T.shape))
    players = active_players(members)
    worth = _mixed([_log_proba(each.likelihoods.every(players), before) for each in members], members, before, power)
    shown = masks(len(players))
    for rows, own in _by_pattern(known[:, players]):
        n_shown = shown[:, own].sum(axis=1)
        worth[np.ix_(n_shown == 0, np.arange(len(before)), rows)] = before[:, None]
        worth[np.ix_(n_shown == own.sum(), np.arange(len(before)), rows)] = after[rows].T
    found[players] = np.tensordot(marginal_weights(len(players)), worth, 1)
    found *= known.T[:, None]  # what rounding has left
    return found


def active_players(members: Sequence[Member]) -> list[int]:
    """The players that change any prediction."""
    return np.flatnonzero(np.any([each.likelihoods.is_active for each in members], axis=0)).tolist()


def _by_pattern(known: Mask) -> Iterator[tuple[NDArray[np.intp], Mask]]:
    """The samples of each pattern, and the pattern."""
    patterns, of_row = (
        distinct(np.ascontiguousarray(known)) if known.size else (known[:1], np.zeros(len(known), np.intp))
    )
    for number, pattern in enumerate(patterns):
        yield np.flatnonzero(of_row == number), pattern


@lru_cache(maxsize=4)
def marginal_weights(n_players: int) -> Floats:
    """Weights by which the values of all coalitions sum to Shapley values: (players, 2^players).

    Examples
    --------
    >>> marginal_weights(2)
    array([[-0.5,  0.5, -0.5,  0.5],
           [-0.5, -0.5,  0.5,  0.5]])
    """
    shown = masks(n_players)
    size = shown.sum(axis=1)
    joining, waiting = np.zeros((2, n_players + 1))
    joining[1:] = [1 / (n_players * comb(n_players - 1, s - 1)) for s in range(1, n_players + 1)]
    waiting[:-1] = joining[1:]
    return np.where(shown.T, joining[size], -waiting[size])


def sampled(
    members: Sequence[Member],
    known: Mask,
    before: Floats,
    after: Floats,
    orders: Iterable[NDArray[np.intp]],
    power: float = 1.0,
) -> Attributions:
    """Shapley values from random orders, each with its reverse; arguments as of `exact`.

    Of a single model, whose log likelihoods are sums over small pieces, only the normaliser is sampled: differences
    between classes, which are log odds, are exact.
    """
    fixed = _of_log_likelihoods(members[0].likelihoods) if len(members) == 1 and power == 1 else None
    total, squares = np.zeros((2, known.shape[1], *after.T.shape))
    n_pairs = 0
    for order in orders:
        n_pairs += 1
        pair = np.zeros_like(total)
        for one in (order, order[::-1]):
            along = [each.likelihoods.along(one) for each in members]
            own = along[0].copy() if fixed is not None else 0.0
            worth = _mixed([_log_proba(each, before) for each in along], members, before, power)
            for row, n_known in enumerate(np.cumsum(known[:, one], axis=1)):
                first, last = np.searchsorted(n_known, [1, n_known[-1]])
                worth[: 1 + first, :, row], worth[1 + last :, :, row] = before, after[row]
            pair[one] += np.diff(worth - own, axis=0) / 2
        total += pair
        squares += np.square(pair)
    mean = total / n_pairs
    variance = np.maximum(squares / n_pairs - np.square(mean), 0.0) / (n_pairs - 1)
    return Attributions(mean if fixed is None else mean + fixed, np.sqrt(variance))


def _of_log_likelihoods(likelihoods: Likelihoods) -> Floats | None:
    """Exact Shapley values of the log likelihoods, if all of their pieces are tabulated."""
    found = likelihoods.alone.copy()
    for piece in likelihoods.pieces:
        if not isinstance(piece, Tabulated):
            return None
        found[list(piece.players)] += np.tensordot(marginal_weights(len(piece.players)), piece.values, 1)
    return found


def _log_proba(total: Floats, before: Floats) -> Floats:
    """Log probabilities of the classes from log likelihoods, which are overwritten: (coalitions, classes, samples)."""
    total += before[:, None]
    highest = total.max(axis=1, keepdims=True)
    total -= highest
    total -= np.log(np.exp(total).sum(axis=1, keepdims=True))
    return total


def _mixed(log_proba: list[Floats], members: Sequence[Member], before: Floats, power: float) -> Floats:
    """Log probabilities of a mixture from those of its members."""
    total = log_proba[0]
    if len(members) > 1:
        total += np.log(members[0].weight)
        for each, member in zip(log_proba[1:], members[1:], strict=True):
            np.logaddexp(total, each + np.log(member.weight), out=total)
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    if power != 1:
        total = power * total + (1 - power) * before[:, None]
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    return total
