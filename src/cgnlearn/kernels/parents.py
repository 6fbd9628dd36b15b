"""Compiled loops over the parents of one-dependence estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials

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
