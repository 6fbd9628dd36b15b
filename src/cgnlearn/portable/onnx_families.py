"""Families of a portable description as arrays, for graphs that compute all of a group at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats
from cgnlearn.portable.networks import Description


class Shared(NamedTuple):
    """Arrays of a group under a sharing: (configurations, classes, …)."""

    scale: Floats
    own_spread: Floats
    shape: Floats | None
    leverage: Floats


def shared(group: Description, sharing: float, averages: bool) -> Shared:
    """The arrays of a group under a sharing; without averages over parameters there is nothing to share."""

    def with_others(own: Floats, prior: Any) -> Floats:
        others: Floats = own + sharing * ((own - prior).sum(axis=1, keepdims=True) - (own - prior))
        return others

    scale, leverage, centre = (np.array(group[name], float) for name in ("scale", "leverage", "centre"))
    own_spread = np.array(group["own_spread"], float) if "own_spread" in group else np.zeros(centre.shape)
    if not averages:
        return Shared(scale, own_spread, None, leverage)
    prior_scale = np.zeros(scale.shape[-1])
    prior_scale[: centre.shape[-1]] = group["prior_scale"]
    shape = with_others(np.array(group["shape"], float), np.array(group["prior_shape"], float))
    return Shared(with_others(scale, prior_scale), with_others(own_spread, 0.0), shape, leverage)


class Families:
    """The densities of families of a group in one cell, as arrays with a column for each."""

    centre: Floats  # (1, features)
    whitening: Floats  # (features, whitened)
    own: Floats  # from whitened values to residuals: (whitened, families)
    before: Floats  # whitened values of the parents of a family: (whitened, families)
    shift: Floats  # (1, families), as the following
    spread: Floats
    leverage: Floats
    shape: Floats | None  # None: normal densities
    constant: Floats

    @classmethod
    def of(cls, group: Description, parts: Shared, nodes: Sequence[Description], cell: int, label: int) -> Families:
        """Families that extend each other have their whitened values in common."""
        found, n = cls(), len(nodes)
        place: dict[tuple[int, ...], int] = {}
        rows: list[Floats] = []
        owns, spread = np.zeros(n, int), np.zeros((1, n))
        scales = np.zeros(n)
        givens: list[list[int]] = []
        packed = parts.scale[cell][label]
        for i, node in enumerate(nodes):
            members = [*node["given"], node["own"]]
            scale = square(packed, len(group["columns"]), group, np.array(members))
            factor = np.linalg.cholesky(scale)
            inverse = np.linalg.inv(factor)
            for k in range(len(members)):
                if (prefix := tuple(members[: k + 1])) not in place:
                    place[prefix] = len(place)
                    rows.append(np.zeros(len(group["columns"])))
                    rows[-1][members] = inverse[k]
            owns[i], scales[i] = place[tuple(members)], factor[-1, -1]
            spread[0, i] = scales[i] ** 2 + parts.own_spread[cell][label][node["own"]]
            givens.append([place[tuple(members[: k + 1])] for k in range(len(members) - 1)])
        position = [node["own"] for node in nodes]
        found.centre, found.whitening = np.array([group["centre"][cell][label]], float), np.array(rows).T
        found.own, found.before = np.zeros((2, len(place), n))
        found.own[owns, np.arange(n)] = scales
        for i, given in enumerate(givens):
            found.before[given, i] = 1.0
        shift = np.array(group["shift"][cell][label], float)[position] if "shift" in group else np.zeros(n)
        found.shift, found.spread = shift[None], spread
        log_unit = np.log(np.array(group["unit"], float)[position])[None]
        found.shape, found.leverage = None, np.ones((1, n))
        if parts.shape is None:
            found.constant = -0.5 * np.log(2 * np.pi * spread) - log_unit
            return found
        shape, leverage = (
            np.broadcast_to(each[cell][label], len(group["columns"])) for each in (parts.shape, parts.leverage)
        )
        found.shape = (shape[position] + np.array([len(given) for given in givens]) / 2)[None]
        found.leverage = leverage[position][None]
        found.constant = gammaln(found.shape + 0.5) - gammaln(found.shape) - 0.5 * np.log(np.pi) - log_unit
        return found


def square(packed: Floats, n: int, group: Description, members: Any) -> Floats:
    """The symmetric matrix of some features from its diagonal and its listed pairs."""
    if "pairs" in group:
        first, second = (np.array(each, int) for each in group["pairs"])
    else:
        first, second = np.triu_indices(n, 1)
        near = second - first <= group["reach"]
        first, second = first[near], second[near]
    matrix = np.zeros((n, n))
    matrix[np.arange(n), np.arange(n)] = packed[:n]
    matrix[first, second] = matrix[second, first] = packed[n:]
    return matrix[np.ix_(members, members)]
