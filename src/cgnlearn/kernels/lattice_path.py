"""Log likelihoods of every k of both shapes along the lattice, compiled.

A node with the j nodes before it is a window. With h = ``least`` + q and g = h + f²/F the log of the Student density at
ρ' is that at f = 0, h = 1, plus ρ' ln h - (ρ' + ½) ln g. If F is the regression's own, g belongs to the window and is
the h of the next node with one parent more. So a band is its windows of one length, the cliques, divided by those one
shorter that two cliques share, and a box is a set of disjoint windows. Numbers of windows with equally many nodes
present have the same ρ': they are multiplied, and one logarithm serves hundreds of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Chain, PathLaw, PathSums, Stretch
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import logarithms
from cgnlearn.kernels.lattice import ROOM, residuals


@compiled
def every_order(
    width: int, stretch: Stretch, values: Any, chain: Chain, law: PathLaw, wanted: Any, sums: PathSums
) -> None:
    """Add the nodes of a stretch for all k and the ``wanted`` shapes (band, box)."""
    orders = stretch.scale.shape[1]
    _add_constants(stretch, chain, law, wanted, sums)
    past, f, h = np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width))
    # Products by shape, k and nodes absent: of g and, where F is not the regression's own, also of h.
    products = np.ones((4 if law.shifted else 2, orders, orders + 1, width))
    place = np.zeros(orders + 1, np.int64)  # of a node in its box, for each k
    greatest = np.zeros(width)
    for column in range(0, values.shape[1], width):
        room = ROOM
        varying = sums.varying[:, :, column : column + width]
        _begin(stretch.first, place)
        least = law.least if law.bayes else 0.0
        for v in range(stretch.first, stretch.stop):
            residuals(stretch, values, chain.centre, v, column, least, past, f, h)
            n_orders = min(orders, v + 1)
            if not chain.absent[v]:
                n_orders = min(n_orders, stretch.existing[v - stretch.first])
            if v >= stretch.start and n_orders > 0:
                if law.bayes:
                    # g only grows with the window, and (f + s)² / (F + o) is at most f²/F + s²/o.
                    j = n_orders - 1
                    inverse = _inverse(stretch, chain, v, j)
                    for r in range(width):
                        greatest[r] = h[j, r] + f[j, r] * f[j, r] * inverse
                    own = chain.own_spread[v]
                    bound = greatest.max() + (chain.shift[v] ** 2 / own if own > 0.0 else 0.0)
                    if bound > room:
                        _empty(products, 1.0 if bound > ROOM else ROOM, law, wanted, varying)
                        room = ROOM
                    room /= bound
                if not law.bayes:
                    _add_squares(stretch, chain, v, n_orders, place, f, h, wanted, varying)
                elif law.shifted:
                    _add_own_spread(stretch, chain, v, n_orders, f, h)
                    _multiply_densities(chain, v, n_orders, place, f, h, wanted, products)
                else:
                    _multiply_windows(stretch, chain, v, n_orders, place, f, h, wanted, products)
                    if wanted[0] and (v < orders - 1 or v == len(stretch.scale) - 1):
                        _take_ends(stretch, chain, law, v, n_orders, f, h, varying)
            if wanted[1]:
                _go_on(place)
        if law.bayes:
            _empty(products, 1.0, law, wanted, varying)


@compiled
def _begin(v: int, place: Any) -> None:
    """The remainder of v, divided by each k."""
    for k in range(1, len(place)):
        place[k] = v % k


@compiled
def _go_on(place: Any) -> None:
    """The remainders of v + 1, without a division."""
    for k in range(1, len(place)):
        place[k] = place[k] + 1 if place[k] + 1 < k else 0


@compiled
def _add_constants(stretch: Stretch, chain: Chain, law: PathLaw, wanted: Any, sums: PathSums) -> None:
    """Add the terms that are the same for all samples."""
    first, spread, existing, orders = stretch.first, stretch.spread, stretch.existing, stretch.scale.shape[1]
    n_before, own_spread, log_unit, absent = chain.n_before, chain.own_spread, chain.log_unit, chain.absent
    band, box, base = sums.constant[0], sums.constant[1], law.base
    last = len(stretch.scale) - 1
    terms, scratch = np.ones(orders), np.zeros(orders)
    place = np.zeros(orders + 1, np.int64)
    empty = law.shape * math.log(law.least) if law.bayes and not law.shifted else 0.0
    _begin(stretch.start, place)
    for v in range(stretch.start, stretch.stop):
        for k in range(1, orders + 1 if v == 0 else 2):  # cliques of one node share nothing
            band[k - 1] += empty
        for k in range(1, orders + 1 if wanted[1] else 0):
            box[k - 1] += empty if place[k] == k - 1 or v == last else 0.0
        if not absent[v]:
            n_orders = min(orders, v + 1, existing[v - first])
            for j in range(n_orders):
                terms[j] = spread[v - first, j] + own_spread[v]
            logarithms(terms[:n_orders], scratch)
            for j in range(n_orders):
                terms[j] = base[n_before[v] - n_before[v - j]] - 0.5 * terms[j] - log_unit[v]
            terms[n_orders:] = 0.0
            for k in range(1, orders + 1):
                band[k - 1] += terms[min(k - 1, v)]
            for k in range(1, orders + 1 if wanted[1] else 0):
                box[k - 1] += terms[place[k]]
            for k in range(1, orders + 1 if n_orders < min(orders, v + 1) else 0):
                sums.missing[0, k - 1] += min(k - 1, v) >= n_orders
                sums.missing[1, k - 1] += place[k] >= n_orders
        if wanted[1]:
            _go_on(place)


@compiled
def _inverse(stretch: Stretch, chain: Chain, v: int, j: int) -> float:
    """1 / F, or 0 if the node is absent."""
    return 0.0 if chain.absent[v] else 1.0 / stretch.spread[v - stretch.first, j]


@compiled
def _multiply_windows(
    stretch: Stretch,
    chain: Chain,
    v: int,
    n_orders: int,
    place: Any,
    f: Any,
    h: Any,
    wanted: Any,
    products: Any,
) -> None:
    """Multiply the windows that end with v into the products of cliques and of boxes."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    n_before, n_with = chain.n_before, chain.n_before[v + 1]
    width = f.shape[1]
    # Views of single orders would cost as much as the products.
    for j in range(n_orders if wanted[0] else 0):
        gone, inverse = j + 1 - (n_with - n_before[v - j]), _inverse(stretch, chain, v, j)
        for r in range(width):
            products[0, j, gone, r] *= h[j, r] + f[j, r] * f[j, r] * inverse
    for k in range(1, orders + 1 if wanted[1] else 0):
        j = place[k]
        if (j == k - 1 or v == last) and j < n_orders:
            gone, inverse = k - (n_with - n_before[v - j]), _inverse(stretch, chain, v, j)
            for r in range(width):
                products[1, k - 1, gone, r] *= h[j, r] + f[j, r] * f[j, r] * inverse


@compiled
def _take_ends(
    stretch: Stretch, chain: Chain, law: PathLaw, v: int, n_orders: int, f: Any, h: Any, varying: Any
) -> None:
    """Subtract the first and the last window of every length: no two cliques share them."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    for j in range(0 if v == last else v, min(n_orders, orders - 1)):
        if v in (last, j):
            rho = law.shape + 0.5 * (chain.n_before[v + 1] - chain.n_before[v - j])
            inverse = _inverse(stretch, chain, v, j)
            for r in range(f.shape[1]):
                varying[0, j + 1, r] -= rho * math.log(h[j, r] + f[j, r] * f[j, r] * inverse)


@compiled
def _add_own_spread(stretch: Stretch, chain: Chain, v: int, n_orders: int, f: Any, h: Any) -> None:
    """Turn f into g where nodes have their own shift and spread."""
    moved = chain.shift[v]
    for j in range(0 if chain.absent[v] else n_orders):
        inverse = 1.0 / (stretch.spread[v - stretch.first, j] + chain.own_spread[v])
        for r in range(f.shape[1]):
            x = f[j, r] + moved
            f[j, r] = h[j, r] + x * x * inverse


@compiled
def _multiply_densities(
    chain: Chain, v: int, n_orders: int, place: Any, g: Any, h: Any, wanted: Any, products: Any
) -> None:
    """Multiply g and h of v into the products of every k."""
    for form in range(0 if chain.absent[v] else 2):
        for k in range(1, g.shape[0] + 1 if wanted[form] else 0):
            j = min(k - 1, v) if form == 0 else place[k]
            if j < n_orders:
                gone = k - (chain.n_before[v] - chain.n_before[v - j])
                for r in range(g.shape[1]):
                    products[form, k - 1, gone - 1, r] *= g[j, r]
                for r in range(g.shape[1]):
                    products[2 + form, k - 1, gone, r] *= h[j, r]


@compiled
def _add_squares(
    stretch: Stretch,
    chain: Chain,
    v: int,
    n_orders: int,
    place: Any,
    f: Any,
    h: Any,
    wanted: Any,
    varying: Any,
) -> None:
    """By maximum likelihood: add -½ f²/F of every node of a band, and of a box the sum at its last node."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    for k in range(1, orders + 1 if wanted[0] and not chain.absent[v] else 0):
        j = min(k - 1, v)
        if j < n_orders:
            half = 0.5 * _inverse(stretch, chain, v, j)
            total = varying[0, k - 1]
            for r in range(len(total)):
                total[r] -= f[j, r] * f[j, r] * half
    for k in range(1, orders + 1 if wanted[1] else 0):
        j = place[k]
        if (j == k - 1 or v == last) and j < n_orders:
            half = 0.5 * _inverse(stretch, chain, v, j)
            total = varying[1, k - 1]
            for r in range(len(total)):
                total[r] -= 0.5 * h[j, r] + f[j, r] * f[j, r] * half


@compiled
def _empty(products: Any, limit: float, law: PathLaw, wanted: Any, varying: Any) -> None:
    """Turn the products above ``limit`` into terms of the log likelihood and start them again."""
    n_forms, orders, _, width = products.shape
    worth, scratch = np.empty(width), np.empty(width)
    for form in range(n_forms):
        shared = form == 0 and not law.shifted  # cliques of k are what those of k + 1 have in common
        for k in range(1, orders + 1 if wanted[form % 2] else 0):
            for gone in range(k + 1):
                product = products[form, k - 1, gone]
                if product.max() > limit:
                    worth[:] = product
                    logarithms(worth, scratch)
                    rho = law.shape + 0.5 * (k - gone)
                    for r in range(width):
                        worth[r] *= rho
                    if form < 2:
                        varying[form, k - 1] -= worth
                    else:
                        varying[form - 2, k - 1] += worth
                    if shared and k < orders:
                        varying[0, k] += worth
                    product[:] = 1.0
