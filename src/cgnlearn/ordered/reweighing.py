"""Mixtures of all orders with rows left out, compiled. Imported only where it runs, as it needs numba.

Without a row every regression's evidence is divided by what it loses with the row, so its weight in the mixture follows
the row. With F, f and q as in `recursion`, of the row less the centre of its own class, and g = 1 - down · q what is
left of the determinant of a scale (see `cgnlearn.model.forgetting`), the evidence loses with a row of weight u

    Γ(ρ')/Γ(ρ⁻) · (κ⁻/κ')^½ (π F)^(-u/2) (g of the window / g of the parents)^ρ⁻ (g of the parents)^½,  ρ⁻ = ρ' - u/2

which, if u is 1, is the density of the row without itself. A mixture is the sum of weight × density / loss over the
sum of weight / loss. Where the class in question forgets the row as well, density / loss is free of g: with leverages h
times g as H it is a constant times (H of the parents / H of the window)^ρ⁻ (H of the window)^(-½).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cgnlearn.model.compilation import compiled
from cgnlearn.ordered.left_out import _add_far, _keep, _lengthen, _other_leverage, _own_leverage
from cgnlearn.ordered.mixing import NEGLIGIBLE, _exponentials, _logarithms, _ratios
from cgnlearn.ordered.recursion import _residuals


@compiled
def add_left_out(
    width: int,
    scale: Any,
    coefficients: Any,
    rows: Any,
    forgotten: Any,
    law: Any,
    n_parents: Any,
    log_weight: Any,
    bounds: Any,
    sums: Any,
) -> None:
    """Add the weights of all orders without each row of one class, and the weighted densities: ln, (…, nodes, rows).

    ``scale``, and kf, kb, F and B with the number of sound orders in ``coefficients``, are of one scale for all classes
    or of each class's own. ``rows`` are the values less the centre of their own class (nodes, rows); the centres of the
    scales less that one; and, if all classes of one scale forget a row, that one less those of the classes (nodes,
    classes), else nothing. ``forgotten`` are h at the centre (classes, rows), and down, growth² and half the weight
    (rows,). ``law`` is ρ' of no parents and the density at f = 0 and h = F = 1 (classes, parents); what the evidence
    loses but for F and g, and the density at F = H = 1 without the row, over that loss (parents, rows); the rows' own
    class; and whether that is left unmixed. ``bounds`` are the nodes start..stop and the first of ``width`` rows.
    ``sums`` are the weights and for each class the densities, -inf where nothing has been added yet.

    A term is left out where it is `NEGLIGIBLE`, or would be so at its peak, in every row at hand.
    """
    found, sound = coefficients
    values, centre, apart = rows
    before, down, grown, half = forgotten
    shape, base, lost, gained, owner, whole = law
    start, stop, column = bounds
    weights, mixtures = sums
    n_scales, n_nodes, orders = scale.shape
    n_apart, place = apart.shape[1], owner if n_scales > 1 else 0
    first = max(0, start - orders + 1)
    mine = (found[place, 0], found[place, 1], found[place, 2], found[place, 3])
    spread = mine[2]
    states = np.zeros((n_scales, 3, orders, width))
    past, f, q = states[place, 0], states[place, 1], states[place, 2]
    of_apart = (np.zeros((orders, n_apart)), np.zeros((orders, n_apart)), np.zeros((orders, n_apart)))
    apart_past, apart_f, apart_q = of_apart
    far = np.zeros((n_apart, orders, width))
    nowhere = np.zeros(n_nodes)
    term, root, work = np.zeros(orders * width), np.zeros(orders * width), np.zeros(orders * width + orders)
    weighted = np.zeros(orders * width)
    listed, taken = np.zeros(orders, np.int64), np.zeros(orders, np.int64)
    log_spread, peak = np.zeros(orders), np.zeros(orders)
    longer, farther, kept, left = np.zeros(width), np.zeros(width), np.ones(width), np.ones(width)
    given, leverage, total, quarter = np.ones(width), np.ones(width), np.zeros(width), np.zeros(width)
    tile = slice(column, column + width)
    loss, u, rise = down[tile], half[tile], grown[tile]
    quarter[:] = 0.25 * loss
    for v in range(first, stop):
        if n_apart:
            here = (past, apart_past, far)
            _add_far(scale[0], (values, apart), v, first, column, owner, (mine, sound[0], sound[0]), here)
            _residuals(scale[0], apart, nowhere, v, first, 0, mine, sound[0], of_apart)
        for at in range(n_scales):
            of_scale = (found[at, 0], found[at, 1], found[at, 2], found[at, 3])
            state = (states[at, 0], states[at, 1], states[at, 2])
            _residuals(scale[at], values, centre[at], v, first, column, of_scale, sound[at], state)
        if v < start:
            continue
        i, n = v - first, 0
        for j in range(min(orders, v + 1)):
            if log_weight[v, j] > -np.inf:
                listed[n] = j
                log_spread[n] = spread[i, j]
                n += 1
        if n == 0:
            continue
        _logarithms(log_spread[:n], work)

        # The logarithms of weight / loss, but for the roots.
        for s in range(n):
            j = listed[s]
            _lengthen(f[j], q[j], 0.0, 1.0 / spread[i, j], longer)
            _keep(loss, q[j], kept)
            _keep(loss, longer, left)
            part = weighted[s * width : (s + 1) * width]
            for r in range(width):
                part[r] = left[r] / kept[r]
        slack = -0.5 * math.log(left.min())  # by which roots raise a term at most: the longest window has the least
        _logarithms(weighted[: n * width], work)
        for s in range(n):
            count = n_parents[v, listed[s]]
            part, of_count = weighted[s * width : (s + 1) * width], lost[count, tile]
            rho, constant, log_f = shape[owner] + 0.5 * count, log_weight[v, listed[s]], log_spread[s]
            for r in range(width):
                part[r] = constant + u[r] * log_f - of_count[r] - (rho - u[r]) * part[r]

        into = weights[v, tile]
        total[:] = into
        for s in range(n):
            part = weighted[s * width : (s + 1) * width]
            peak[s] = slack
            for r in range(width):
                total[r] = max(total[r], part[r])
        m = _choose(weighted, n, total, peak, taken)
        for s in range(m):
            part, part_root = term[s * width : (s + 1) * width], root[s * width : (s + 1) * width]
            _keep(loss, q[listed[taken[s]]], kept)
            part[:] = weighted[taken[s] * width : (taken[s] + 1) * width]
            for r in range(width):
                part_root[r] = 1.0 / math.sqrt(kept[r])
        _add(term[: m * width], root, work, total, into)

        for c in range(len(mixtures)):
            if c == owner and whole:
                continue
            into = mixtures[c, v, tile]
            forgets = c == owner or n_apart > 0
            others = states[0 if forgets else c]
            other_spread = spread if forgets else found[c, 2]
            for s in range(n):
                peak[s] = other_spread[i, listed[s]]
            _logarithms(peak[:n], work)
            for s in range(n):
                peak[s] = base[c, n_parents[v, listed[s]]] - 0.5 * peak[s] + (2 * slack if forgets else slack)
            m = _choose(weighted, n, into, peak, taken)
            for s in range(m):
                j = listed[taken[s]]
                part, part_root = term[s * width : (s + 1) * width], root[s * width : (s + 1) * width]
                _keep(loss, q[j], kept)
                if not forgets:
                    state = (others[0], others[1], others[2])
                    _ratios(state, j, 1.0 / other_spread[i, j], before[c, column], part, part_root)
                    for r in range(width):
                        part_root[r] = part_root[r] / math.sqrt(kept[r])
                    continue
                inverse = 1.0 / spread[i, j]
                _lengthen(f[j], q[j], 0.0, inverse, longer)
                _keep(loss, longer, left)
                of_class = before[c, tile]
                if c == owner:
                    _own_leverage(of_class, rise, q[j], kept, given)
                    _own_leverage(of_class, rise, longer, left, leverage)
                else:
                    between = apart_q[j, c] + apart_f[j, c] * apart_f[j, c] * inverse
                    _lengthen(f[j], far[c, j], apart_f[j, c], inverse, farther)
                    _other_leverage(of_class, quarter, q[j], kept, far[c, j], apart_q[j, c], given)
                    _other_leverage(of_class, quarter, longer, left, farther, between, leverage)
                for r in range(width):
                    part[r] = given[r] / leverage[r]
                for r in range(width):
                    part_root[r] = 1.0 / math.sqrt(leverage[r])
            _logarithms(term[: m * width], work)
            for s in range(m):
                place_of, j = taken[s], listed[taken[s]]
                count = n_parents[v, j]
                part = term[s * width : (s + 1) * width]
                rho = shape[c] + 0.5 * count
                if forgets:
                    of_count, constant, log_f = gained[count, tile], log_weight[v, j], log_spread[place_of]
                    for r in range(width):
                        part[r] = constant + (u[r] - 0.5) * log_f + of_count[r] + (rho - u[r]) * part[r]
                else:
                    constant, before_it = peak[place_of] - slack, weighted[place_of * width :]
                    for r in range(width):
                        part[r] = constant + before_it[r] + rho * part[r]
            total[:] = into
            for s in range(m):
                for r in range(width):
                    total[r] = max(total[r], term[s * width + r])
            _add(term[: m * width], root, work, total, into)


@compiled
def _choose(term: Any, n: int, against: Any, peak: Any, taken: Any) -> int:
    """How many of the terms may be seen beside what they are held against, once they are raised to their peaks."""
    width, m = len(against), 0
    for s in range(n):
        part, needed = term[s * width : (s + 1) * width], -NEGLIGIBLE - peak[s]
        seen = 0
        for r in range(width):
            seen += part[r] - against[r] >= needed
        if seen > 0:
            taken[m] = s
            m += 1
    return m


@compiled
def _add(term: Any, root: Any, work: Any, top: Any, into: Any) -> None:
    """Add terms, given as logarithms but for factors ``root``, to a logarithm; ``top`` is the greatest of all."""
    width = len(top)
    for s in range(len(term) // width):
        part = term[s * width : (s + 1) * width]
        for r in range(width):
            part[r] -= top[r]
    _exponentials(term, work)
    for r in range(width):
        into[r] -= top[r]
    _exponentials(into, work)
    for s in range(len(term) // width):
        part, part_root = term[s * width : (s + 1) * width], root[s * width : (s + 1) * width]
        for r in range(width):
            into[r] += part[r] * part_root[r]
    _logarithms(into, work)
    for r in range(width):
        into[r] += top[r]
