"""Shapley values of features: of all coalitions, or by sampled orders.

The value of a coalition S is v(S) = ln p(c | x_S), with all other features integrated out. A feature's Shapley value is
the mean, over all orders of the features, of what it adds to v when it comes in. It depends on no order, and the sum
over features is ln p(c | x) - ln p(c).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.networks.coalitions import Likelihoods, Tabulated
from cgnlearn.networks.components import Mask

AT_ONCE = 1 << 19  # log probabilities of coalitions that are computed at once: they fit into the cache
AT_LEAST = 4  # samples that are computed at once: short inner loops cost more


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
    from cgnlearn.kernels.coalitions import put_shapley

    found = np.zeros((known.shape[1], *after.T.shape))
    players = _in_order_of_pieces(members)
    step = max(AT_LEAST, AT_ONCE // (len(before) << len(players)))
    for start in range(0, len(after) if players else 0, step):
        rows = slice(start, min(start + step, len(after)))
        each = (_log_proba(member.likelihoods.every(players, rows), before) for member in members)
        worth = _mixed(each, members, before, power)
        values = np.empty((len(players), *worth.shape[1:]))
        put_shapley(worth.reshape(len(worth), -1), *size_weights(len(players)), values.reshape(len(players), -1))
        found[players, :, rows] = values
    told = known.T * np.isin(np.arange(len(found)), players)[:, None]  # (players, samples)
    found *= told[:, None]  # what rounding has left
    # The coalitions without and with all that is known have these log probabilities, whatever members say.
    missing = after.T - before[:, None] - found.sum(axis=0)
    return found + told[:, None] * (missing / np.maximum(told.sum(axis=0), 1))


def _in_order_of_pieces(members: Sequence[Member]) -> list[int]:
    """The active players, those of a piece together."""
    pieces = [piece for member in members for piece in member.likelihoods.pieces]
    listed = [player for piece in sorted(pieces, key=lambda piece: -len(piece.players)) for player in piece.players]
    return list(dict.fromkeys([*listed, *active_players(members)]))


def active_players(members: Sequence[Member]) -> list[int]:
    """The players that change any prediction."""
    return np.flatnonzero(np.any([each.likelihoods.is_active for each in members], axis=0)).tolist()


def size_weights(n_players: int) -> tuple[Floats, Floats]:
    """Weights of v(S) for a player in S and, negative, for one outside, by the size of S: (1 + players,) each.

    Examples
    --------
    >>> size_weights(2)
    (array([0. , 0.5, 0.5]), array([0.5, 0.5, 0. ]))
    """
    joining, waiting = np.zeros((2, n_players + 1))
    joining[1:] = [1 / (n_players * comb(n_players - 1, s - 1)) for s in range(1, n_players + 1)]
    waiting[:-1] = joining[1:]
    return joining, waiting


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
    from cgnlearn.kernels.coalitions import put_shapley

    found = likelihoods.alone.copy()
    for piece in likelihoods.pieces:
        if not isinstance(piece, Tabulated):
            return None
        n_players = len(piece.players)
        values = np.empty((n_players, *found.shape[1:]))
        worth = piece.values.reshape(1 << n_players, -1).copy()
        put_shapley(worth, *size_weights(n_players), values.reshape(n_players, -1))
        found[list(piece.players)] += values
    return found


def _log_proba(total: Floats, before: Floats) -> Floats:
    """Log probabilities of the classes from log likelihoods, which are overwritten: (coalitions, classes, samples)."""
    from cgnlearn.kernels.coalitions import put_log_proba

    put_log_proba(total, before)
    return total


def _mixed(log_proba: Iterable[Floats], members: Sequence[Member], before: Floats, power: float) -> Floats:
    """Log probabilities of a mixture from those of its members."""
    each = iter(log_proba)
    total = next(each)
    if len(members) > 1:
        total += np.log(members[0].weight)
        for other, member in zip(each, members[1:], strict=True):
            np.logaddexp(total, other + np.log(member.weight), out=total)
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    if power != 1:
        total = power * total + (1 - power) * before[:, None]
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
    return total
