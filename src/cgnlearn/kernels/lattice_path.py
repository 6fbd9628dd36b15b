"""Log likelihoods of every k of both shapes along the lattice, compiled.

A node with the j before it is a window. With h = ``least`` + q and g = h + f²/F the Student density at ρ' is that at
f = 0, h = 1, plus ρ' ln h - (ρ' + ½) ln g. If F is the regression's own, g belongs to the window and is the h of the
next node with one parent more. So a band is its windows of one length, the cliques, over those one shorter that two of
them share, and a box is some windows apart. Numbers of windows with equally many nodes present, whose ρ' is the same,
are multiplied, and one logarithm serves hundreds of them.
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
    width: int, stretch: Stretch, values: Any, chain: Chain, law: PathLaw, wanted: Any, lowest: int, sums: PathSums
) -> None:
    """Add what the nodes of a stretch say, for all k from ``lowest`` up; ``wanted`` says which shapes: band, box."""
    orders = stretch.scale.shape[1]
    n_parents = np.zeros((stretch.stop - stretch.start, orders), np.int64)  # those present
    _add_constants(stretch, chain, law, wanted, lowest, n_parents, sums)
    past, f, q = np.zeros((orders, width)), np.zeros((orders, width)), np.zeros((orders, width))
    # The bin of k and of so many nodes absent: products of g for both shapes and, where F is not the own one, of h.
    products = np.ones((4 if law.shifted else 2, orders + 1, orders, width))
    for column in range(0, values.shape[1], width):
        room = ROOM
        varying = sums.varying[:, :, column : column + width]
        for v in range(stretch.first, stretch.stop):
            residuals(stretch, values, chain.centre, v, column, past, f, q)
            if v < stretch.start:
                continue
            i = v - stretch.first
            n_orders = min(orders, v + 1)
            if not chain.absent[v]:
                n_orders = min(n_orders, stretch.existing[i])
            if n_orders == 0:
                continue
            counts = n_parents[v - stretch.start]
            if not law.bayes:
                _add_squares(stretch, chain, v, n_orders, f, q, wanted, lowest, varying)
                continue
            spread = stretch.spread[i, n_orders - 1] + chain.own_spread[v]
            inverse = 0.0 if chain.absent[v] else 1.0 / spread
            bound = 1.0  # numbers of windows only grow with them
            for r in range(width):
                x = f[n_orders - 1, r] + chain.shift[v]
                bound = max(bound, law.least + q[n_orders - 1, r] + x * x * inverse)
            if law.shifted and not chain.absent[v]:
                for j in range(n_orders):
                    inverse = 1.0 / (stretch.spread[i, j] + chain.own_spread[v])
                    for r in range(width):
                        x = f[j, r] + chain.shift[v]
                        bound = max(bound, law.least + q[j, r] + x * x * inverse)
            if bound > room:
                _empty(products, law, wanted, lowest, varying)
                room = ROOM
            room /= bound
            if law.shifted:
                _multiply_densities(stretch, chain, law.least, v, n_orders, counts, f, q, wanted, lowest, products)
                continue
            _multiply_windows(stretch, chain, law.least, v, n_orders, counts, f, q, wanted, lowest, products)
            if wanted[0]:
                _take_ends(stretch, chain, law, v, n_orders, counts, f, q, varying)
        if law.bayes:
            _empty(products, law, wanted, lowest, varying)


@compiled
def _add_constants(
    stretch: Stretch, chain: Chain, law: PathLaw, wanted: Any, lowest: int, n_parents: Any, sums: PathSums
) -> None:
    """What is alike for all rows, and how many parents are present: (nodes, orders)."""
    orders = stretch.scale.shape[1]
    last = len(stretch.scale) - 1
    log_spread = np.zeros(orders)
    of_nothing = law.shape * math.log(law.least) if law.bayes and not law.shifted else 0.0
    for v in range(stretch.start, stretch.stop):
        i, counts = v - stretch.first, n_parents[v - stretch.start]
        n_orders = min(orders, v + 1)
        for j in range(1, n_orders):
            counts[j] = counts[j - 1] + (0 if chain.absent[v - j] else 1)
        for k in range(lowest, orders + 1):
            if k == 1 or v == 0:  # cliques of one node have nothing in common
                sums.constant[0, k - 1] += of_nothing
            if v % k == k - 1 or v == last:
                sums.constant[1, k - 1] += of_nothing
        if chain.absent[v]:
            continue
        for j in range(min(n_orders, stretch.existing[i])):
            log_spread[j] = math.log(stretch.spread[i, j] + chain.own_spread[v])
        for form in range(2):
            for k in range(lowest, orders + 1):
                j = min(k - 1, v) if form == 0 else v % k
                if j >= stretch.existing[i]:
                    sums.missing[form, k - 1] += 1
                elif wanted[form]:
                    sums.constant[form, k - 1] += law.base[counts[j]] - 0.5 * log_spread[j] - chain.log_unit[v]


@compiled
def _inverse(stretch: Stretch, chain: Chain, v: int, j: int) -> float:
    """1 / F, which counts for nothing if the node is absent."""
    return 0.0 if chain.absent[v] else 1.0 / stretch.spread[v - stretch.first, j]


@compiled
def _multiply(least: float, f: Any, q: Any, inverse: float, product: Any) -> None:
    for r in range(len(product)):
        product[r] *= least + q[r] + f[r] * f[r] * inverse


@compiled
def _multiply_windows(
    stretch: Stretch,
    chain: Chain,
    least: float,
    v: int,
    n_orders: int,
    n_parents: Any,
    f: Any,
    q: Any,
    wanted: Any,
    lowest: int,
    products: Any,
) -> None:
    """Multiply the windows that end with v into the products of cliques, and of the boxes that they are."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    present = 0 if chain.absent[v] else 1
    for j in range(max(0, lowest - 2), n_orders if wanted[0] else 0):
        _multiply(least, f[j], q[j], _inverse(stretch, chain, v, j), products[0, j + 1 - n_parents[j] - present, j])
    for k in range(lowest, orders + 1 if wanted[1] else 0):
        j = v % k
        if (j == k - 1 or v == last) and j < n_orders:
            gone = k - n_parents[j] - present
            _multiply(least, f[j], q[j], _inverse(stretch, chain, v, j), products[1, gone, k - 1])


@compiled
def _take_ends(
    stretch: Stretch, chain: Chain, law: PathLaw, v: int, n_orders: int, n_parents: Any, f: Any, q: Any, varying: Any
) -> None:
    """No two cliques share the first window of a length, and none the last: take them away beforehand."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    for j in range(min(n_orders, orders - 1)):
        if v in (j, last):
            rho = law.shape + 0.5 * (n_parents[j] + (0 if chain.absent[v] else 1))
            inverse = _inverse(stretch, chain, v, j)
            for r in range(f.shape[1]):
                varying[0, j + 1, r] -= rho * math.log(law.least + q[j, r] + f[j, r] * f[j, r] * inverse)


@compiled
def _multiply_densities(
    stretch: Stretch,
    chain: Chain,
    least: float,
    v: int,
    n_orders: int,
    n_parents: Any,
    f: Any,
    q: Any,
    wanted: Any,
    lowest: int,
    products: Any,
) -> None:
    """Multiply g and h of v for every k; f and q are written over."""
    if chain.absent[v]:
        return
    orders, moved = stretch.scale.shape[1], chain.shift[v]
    for j in range(n_orders):
        inverse = 1.0 / (stretch.spread[v - stretch.first, j] + chain.own_spread[v])
        for r in range(f.shape[1]):
            x = f[j, r] + moved
            f[j, r] = least + q[j, r] + x * x * inverse
        for r in range(f.shape[1]):
            q[j, r] += least
    for form in range(2):
        for k in range(lowest, orders + 1 if wanted[form] else 0):
            j = min(k - 1, v) if form == 0 else v % k
            if j < n_orders:
                g, h = products[form, k - 1 - n_parents[j], k - 1], products[2 + form, k - n_parents[j], k - 1]
                for r in range(f.shape[1]):
                    g[r] *= f[j, r]
                for r in range(f.shape[1]):
                    h[r] *= q[j, r]


@compiled
def _add_squares(
    stretch: Stretch, chain: Chain, v: int, n_orders: int, f: Any, q: Any, wanted: Any, lowest: int, varying: Any
) -> None:
    """By maximum likelihood: -½ f²/F of every node of a band, and of a box the sum over its nodes at its end."""
    orders, last = stretch.scale.shape[1], len(stretch.scale) - 1
    for k in range(lowest, orders + 1 if wanted[0] and not chain.absent[v] else 0):
        j = min(k - 1, v)
        if j < n_orders:
            half = 0.5 * _inverse(stretch, chain, v, j)
            total = varying[0, k - 1]
            for r in range(len(total)):
                total[r] -= f[j, r] * f[j, r] * half
    for k in range(lowest, orders + 1 if wanted[1] else 0):
        j = v % k
        if (j == k - 1 or v == last) and j < n_orders:
            half = 0.5 * _inverse(stretch, chain, v, j)
            total = varying[1, k - 1]
            for r in range(len(total)):
                total[r] -= 0.5 * q[j, r] + f[j, r] * f[j, r] * half


@compiled
def _empty(products: Any, law: PathLaw, wanted: Any, lowest: int, varying: Any) -> None:
    """Turn the products into what they are worth and start them anew."""
    n_forms, _, orders, width = products.shape
    worth, scratch = np.empty(width), np.empty(width)
    for form in range(n_forms):
        shared = form == 0 and not law.shifted  # cliques of k are what those of k + 1 have in common
        for k in range(max(1, lowest - 1) if shared else lowest, orders + 1 if wanted[form % 2] else 0):
            for gone in range(k + 1):
                product = products[form, gone, k - 1]
                if product.max() > 1.0:
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
