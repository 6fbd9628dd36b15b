"""Compiled loops over the parents of one-dependence estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms

SIDE = 4  # classes side by side: as many numbers as a vector register holds


@compiled
def log_mean_of_parents(positions: Any, alone: Any, given_parent: Any, found: Any) -> None:
    """Log of the mean over parents of p(parent) Π p(child | parent), of `SIDE` classes; 0 without parents.

    ``positions`` are numbers of levels (samples, columns), the last one for a missing value. ``alone`` (levels, `SIDE`)
    and ``given_parent`` (levels, levels, `SIDE`) are log probabilities of levels, and of levels (second) given others;
    0 for the last level and between levels of one column. Results are (samples, `SIDE`).
    """
    n_samples, m = positions.shape
    missing = len(alone) - 1
    of_parents = np.empty(m * SIDE)  # written out for each class: arrays this short are slower
    scratch = np.empty(m * SIDE)
    for s in range(n_samples):
        n = 0
        for j in range(m):
            parent = positions[s, j]
            if parent == missing:
                continue
            a, b, c, d = alone[parent, 0], alone[parent, 1], alone[parent, 2], alone[parent, 3]
            for v in range(m):
                child = positions[s, v]
                a += given_parent[parent, child, 0]
                b += given_parent[parent, child, 1]
                c += given_parent[parent, child, 2]
                d += given_parent[parent, child, 3]
            of_parents[n], of_parents[n + 1], of_parents[n + 2], of_parents[n + 3] = a, b, c, d
            n += SIDE
        for k in range(SIDE):
            highest = -np.inf
            for j in range(k, n, SIDE):
                highest = max(highest, of_parents[j])
            for j in range(k, n, SIDE):
                of_parents[j] -= highest
            found[s, k] = highest if n else 0.0
        exponentials(of_parents[:n], scratch[:n])
        for k in range(SIDE if n else 0):
            total = 0.0
            for j in range(k, n, SIDE):
                total += of_parents[j]
            found[s, k] += np.log(total * SIDE / n)


@compiled
def cumulants_of_parents(positions: Any, alone: Any, given_parent: Any, log_mean: Any, found: Any) -> None:
    """Variance and third cumulant of the log of `log_mean_of_parents` of one class, parents by their shares in it.

    ``alone`` (levels, 3) and ``given_parent`` (levels, levels, 3) have log probabilities and those cumulants, side by
    side, and 0 as there; ``log_mean`` is (samples,); results are (2, samples).
    """
    n_samples, m = positions.shape
    missing = len(alone) - 1
    shares, scratch = np.empty(m), np.empty(m)
    variances, thirds = np.empty(m), np.empty(m)
    for s in range(n_samples):
        n = 0
        for j in range(m):
            parent = positions[s, j]
            if parent == missing:
                continue
            share, variance, third = alone[parent, 0], alone[parent, 1], alone[parent, 2]
            for v in range(m):
                child = positions[s, v]
                share += given_parent[parent, child, 0]
                variance += given_parent[parent, child, 1]
                third += given_parent[parent, child, 2]
            shares[n], variances[n], thirds[n] = share - log_mean[s], variance, third
            n += 1
        exponentials(shares[:n], scratch[:n])
        variance = third = 0.0
        for j in range(n):
            variance += shares[j] * variances[j] / n
            third += shares[j] * thirds[j] / n
        found[0, s], found[1, s] = variance, third


@compiled
def own_log_means_without_each(
    positions: Any,
    labels: Any,
    weights: Any,
    counts: Any,
    together: Any,
    alone: Any,
    observed: Any,
    masses: Any,
    pseudo_counts: tuple[float, float],
    found: Any,
) -> None:
    """The same as `log_mean_of_parents`, of each sample in its own class and without it in the counts.

    ``counts`` are those of pairs of levels (classes, levels, levels), ``together`` of a level where a column is
    observed (classes, levels, columns), ``alone`` of levels (classes, levels), ``observed`` of columns (classes,
    columns), ``masses`` the pseudo-counts of all levels of a column (columns,); ``pseudo_counts`` are those of the
    back-off and of a level.
    """
    n_samples, m = positions.shape
    missing = alone.shape[1]
    backoff, of_level = pseudo_counts
    own = np.empty(m)
    ratio = np.empty(m)
    scratch = np.empty(m)
    of_parents = np.empty(m)
    for s in range(n_samples):
        label, lost = labels[s], weights[s]
        for v in range(m):
            level = positions[s, v]
            own[v] = 1.0
            if level != missing:  # rounding must not leave a negative count
                count = max(alone[label, level] - lost, 0.0) + of_level
                own[v] = count / (max(observed[label, v] - lost, 0.0) + masses[v])
        n = 0
        for j in range(m):
            parent = positions[s, j]
            if parent == missing:
                continue
            for v in range(m):
                child = positions[s, v]
                ratio[v] = 1.0
                if child != missing:
                    count = max(counts[label, parent, child] - lost, 0.0) + backoff * own[v]
                    ratio[v] = count / (max(together[label, parent, v] - lost, 0.0) + backoff)
            ratio[j] = own[j]
            logarithms(ratio, scratch)
            total = 0.0
            for v in range(m):
                total += ratio[v]
            of_parents[n] = total
            n += 1
        found[s] = 0.0
        if n == 0:
            continue
        highest = of_parents[:n].max()
        total = 0.0
        for j in range(n):
            total += np.exp(of_parents[j] - highest)
        found[s] = highest + np.log(total / n)
