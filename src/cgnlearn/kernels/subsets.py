"""Compiled loops over sets of observed features: each set factorised once, and the densities of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Joint, Subsets, Trie
from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import logarithms


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
    member, depth = trie
    path = np.zeros(factor.shape[2], np.intp)
    for label in range(len(factor)):
        rows, scale = factor[label], joint.scale[label]
        for t in range(len(member)):
            v, own = member[t], rows[t]
            path[depth[t]] = t
            for b in range(depth[t] + 1):
                u = path[b]
                total = scale[v, member[u]]
                for c in range(b):
                    total -= own[c] * rows[u, c]
                if u != t:
                    own[b] = total / rows[u, b]
                elif total > 0:
                    own[b] = np.sqrt(total)
                else:
                    return False
    return True


@compiled
def put_last_densities(values: Any, trie: Trie, factor: Any, joint: Joint, out: Any) -> None:
    """Fill ``out`` (sets, classes, samples) with the log density of each set's last member given the others.

    ``values`` are (nodes, samples) in standard units.
    """
    member, depth = trie
    most, n = factor.shape[2], values.shape[1]
    # Of the sets on the way to the present one, by their depth.
    white, distance, log_after = np.zeros((most, n)), np.zeros((1 + most, n)), np.zeros((1 + most, n))
    residual, scratch = np.zeros(n), np.zeros(n)
    for label in range(len(factor)):
        # In a group the leverage after a member is that before the next: one logarithm serves both.
        telescopes = joint.averages
        for v in range(len(joint.log_unit)):
            same = joint.behind[label, v] == joint.behind[label, 0] and joint.least[label, v] == joint.least[label, 0]
            telescopes &= same and joint.shift[label, v] == 0 and joint.own_spread[label, v] == 0
        log_after[0] = np.log(joint.least[label, 0])
        for t in range(len(member)):
            v, d = member[t], depth[t]
            centre, slopes = joint.mean[label, v], factor[label, t]
            for i in range(n):
                residual[i] = values[v, i] - centre
            for b in range(d):
                slope, given = slopes[b], white[b]
                for i in range(n):
                    residual[i] -= slope * given[i]
            pivot = slopes[d]
            own, before, after, found = white[d], distance[d], distance[1 + d], out[t, label]
            for i in range(n):
                own[i] = residual[i] / pivot
                after[i] = before[i] + own[i] * own[i]
            highest = joint.highest[label, v, d] - joint.log_unit[v]
            spread = pivot * pivot * joint.behind[label, v] + joint.own_spread[label, v]
            shift, power = joint.shift[label, v], joint.shape[label, v] + 0.5 * d + 0.5
            least, per_sample = joint.least[label, v], 1 / joint.behind[label, v]
            if telescopes:
                highest -= 0.5 * np.log(spread)
                log_before, log_own = log_after[d], log_after[1 + d]
                for i in range(n):
                    log_own[i] = least + after[i] * per_sample
                logarithms(log_own, scratch)
                for i in range(n):
                    found[i] = highest - 0.5 * log_before[i] - power * (log_own[i] - log_before[i])
            elif joint.averages:
                for i in range(n):
                    wide = spread * (least + before[i] * per_sample)
                    found[i] = wide
                    residual[i] = 1.0 + (residual[i] + shift) * (residual[i] + shift) / wide
                logarithms(found, scratch)
                logarithms(residual, scratch)
                for i in range(n):
                    found[i] = highest - 0.5 * found[i] - power * residual[i]
            else:
                for i in range(n):
                    square = (residual[i] + shift) * (residual[i] + shift)
                    found[i] = highest - 0.5 * (np.log(spread) + square / spread)
