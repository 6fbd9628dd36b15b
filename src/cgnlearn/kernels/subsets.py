"""Compiled loops over sets of observed features: each set factorised once, and the densities of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Joint, Subsets, Trie
from cgnlearn.kernels.compilation import compiled


@compiled
def put_densities(values: Any, rows: Any, task_of_row: Any, subsets: Subsets, joint: Joint, out: Any) -> bool:
    """Fill ``out`` (rows of the table, columns, classes); False if a scale is not positive definite.

    ``values`` are (samples, nodes) in standard units; the samples of a task stand together.
    """
    members, present, wanted = subsets
    mean, scale, columns, log_unit, behind, shape, least, shift, own_spread, highest, averages = joint
    n_classes, size = len(mean), members.shape[1]
    factor = np.zeros((n_classes, size, size))
    white = np.zeros(size)
    of = np.zeros(size, np.intp)
    n, last = 0, -1
    for row in range(len(values)):
        task = task_of_row[row]
        if task != last:
            last, n = task, 0
            for j in range(size):
                if present[task, j]:
                    of[n] = j
                    n += 1
            for label in range(n_classes):
                for a in range(n):
                    i = members[task, of[a]]
                    for b in range(a + 1):
                        total = scale[label, i, members[task, of[b]]]
                        for c in range(b):
                            total -= factor[label, a, c] * factor[label, b, c]
                        if a > b:
                            factor[label, a, b] = total / factor[label, b, b]
                        elif total > 0:
                            factor[label, a, a] = np.sqrt(total)
                        else:
                            return False
        for label in range(n_classes):
            distance = 0.0
            for a in range(n):
                v = members[task, of[a]]
                residual = values[row, v] - mean[label, v]
                for b in range(a):
                    residual -= factor[label, a, b] * white[b]
                pivot = factor[label, a, a]
                white[a] = residual / pivot
                if wanted[task, of[a]]:
                    residual += shift[label, v]
                    spread = pivot * pivot * behind[label, v] + own_spread[label, v]
                    density = highest[label, v, a] - log_unit[v]
                    if averages:
                        spread *= least[label, v] + distance / behind[label, v]
                        density -= 0.5 * np.log(spread)
                        density -= (shape[label, v] + 0.5 * a + 0.5) * np.log1p(residual * residual / spread)
                    else:
                        density -= 0.5 * (np.log(spread) + residual * residual / spread)
                    out[rows[row], columns[v], label] = density
                distance += white[a] * white[a]
    return True


@compiled
def put_factors(trie: Trie, joint: Joint, factor: Any) -> bool:
    """Fill the factor's rows (classes, sets, members) of every set's last member; False if one is not positive."""
    member, depth, path = trie
    for label in range(len(factor)):
        rows, scale = factor[label], joint.scale[label]
        for t in range(len(member)):
            v = member[t]
            for b in range(depth[t] + 1):
                u = path[t, b] if b < depth[t] else t
                total = scale[v, member[u]]
                for c in range(b):
                    total -= rows[t, c] * rows[u, c]
                if u != t:
                    rows[t, b] = total / rows[u, b]
                elif total > 0:
                    rows[t, b] = np.sqrt(total)
                else:
                    return False
    return True


@compiled
def put_last_densities(values: Any, trie: Trie, factor: Any, joint: Joint, out: Any) -> None:
    """Fill ``out`` (sets, classes, samples) with the log density of each set's last member given the others.

    ``values`` are (nodes, samples) in standard units.
    """
    member, depth, path = trie
    n_sets, n = len(member), values.shape[1]
    white, distance, log_after = np.zeros((n_sets, n)), np.zeros((n_sets, n)), np.zeros((n_sets, n))
    residual = np.zeros(n)
    for label in range(len(factor)):
        # In a group the leverage after a member is that before the next: one logarithm serves both.
        telescopes = joint.averages
        for v in range(len(joint.log_unit)):
            same = joint.behind[label, v] == joint.behind[label, 0] and joint.least[label, v] == joint.least[label, 0]
            telescopes &= same and joint.shift[label, v] == 0 and joint.own_spread[label, v] == 0
        for t in range(n_sets):
            v, d = member[t], depth[t]
            centre = joint.mean[label, v]
            for i in range(n):
                residual[i] = values[v, i] - centre
            for b in range(d):
                slope, given = factor[label, t, b], white[path[t, b]]
                for i in range(n):
                    residual[i] -= slope * given[i]
            pivot = factor[label, t, d]
            own, before, found = white[t], distance[t], out[t, label]
            if d:
                above = path[t, d - 1]
                for i in range(n):
                    before[i] = distance[above, i] + white[above, i] * white[above, i]
            else:
                before[:] = 0.0
            highest = joint.highest[label, v, d] - joint.log_unit[v]
            spread = pivot * pivot * joint.behind[label, v] + joint.own_spread[label, v]
            shift, power = joint.shift[label, v], joint.shape[label, v] + 0.5 * d + 0.5
            least, per_sample = joint.least[label, v], 1 / joint.behind[label, v]
            if telescopes:
                highest -= 0.5 * np.log(spread)
                after, first = log_after[t], np.log(least)
                for i in range(n):
                    own[i] = residual[i] / pivot
                    after[i] = np.log(least + (before[i] + own[i] * own[i]) * per_sample)
                    log_before = log_after[path[t, d - 1], i] if d else first
                    found[i] = highest - 0.5 * log_before - power * (after[i] - log_before)
                continue
            for i in range(n):
                own[i] = residual[i] / pivot
                square = (residual[i] + shift) * (residual[i] + shift)
                if joint.averages:
                    wide = spread * (least + before[i] * per_sample)
                    found[i] = highest - 0.5 * np.log(wide) - power * np.log1p(square / wide)
                else:
                    found[i] = highest - 0.5 * (np.log(spread) + square / spread)
