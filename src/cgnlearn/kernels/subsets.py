"""Compiled loops over sets of observed features: each set factorised once, and the densities of its samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.arguments import Joint, Subsets
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
