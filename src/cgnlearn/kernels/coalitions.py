"""Compiled loops over coalitions: from their log likelihoods to log probabilities, and to Shapley values."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms

TILE = 256  # numbers whose exponentials and logarithms are taken together


@compiled
def put_sums(before: Any, terms: Any, which: Any, out: Any) -> None:
    """Fill ``out`` (coalitions, columns), which may be ``before``, with the sum of that and of one of the terms."""
    for s in range(len(which)):
        first, second, total = before[s], terms[which[s]], out[s]
        for i in range(len(total)):
            total[i] = first[i] + second[i]


@compiled
def put_log_proba(total: Any, before: Any) -> None:
    """Turn log likelihoods (coalitions, classes, samples) into log probabilities, given log prior ones."""
    n_sets, n_classes, n = total.shape
    most = max(1, TILE // n)
    highest, sums, each, scratch = np.empty((4, most * n))
    for start in range(0, n_sets, most):
        sets = total[start : start + most]
        size = len(sets) * n
        for s in range(len(sets)):
            at = s * n
            for i in range(n):
                sets[s, 0, i] += before[0]
                highest[at + i] = sets[s, 0, i]
            for label in range(1, n_classes):
                for i in range(n):
                    sets[s, label, i] += before[label]
                    highest[at + i] = max(highest[at + i], sets[s, label, i])
        if n_classes == 2:  # one of the two terms is 1
            for s in range(len(sets)):
                for i in range(n):
                    sums[s * n + i] = -abs(sets[s, 0, i] - sets[s, 1, i])
            exponentials(sums[:size], scratch)
            for i in range(size):
                sums[i] += 1.0
        else:
            sums[:] = 0.0
            for label in range(n_classes):
                for s in range(len(sets)):
                    for i in range(n):
                        each[s * n + i] = sets[s, label, i] - highest[s * n + i]
                exponentials(each[:size], scratch)
                for i in range(size):
                    sums[i] += each[i]
        logarithms(sums[:size], scratch)
        for s in range(len(sets)):
            at = s * n
            for i in range(n):
                highest[at + i] += sums[at + i]
            for label in range(n_classes):
                for i in range(n):
                    sets[s, label, i] -= highest[at + i]


@compiled
def put_shapley(worth: Any, joining: Any, waiting: Any, out: Any) -> None:
    """Fill ``out`` (players, columns) from the worth of all coalitions (2^players, columns), which is overwritten.

    ``joining`` and ``waiting`` are the weights of a coalition's worth for its players and, negative, for all others, by
    its size.
    """
    n_sets, n = worth.shape
    others = np.zeros(n)
    for s in range(n_sets):
        size, rest = 0, s
        while rest:
            size, rest = size + 1, rest & (rest - 1)
        inside, outside = joining[size] + waiting[size], waiting[size]
        own = worth[s]
        for i in range(n):
            others[i] += outside * own[i]
            own[i] *= inside
    for player in range(len(out) - 1, -1, -1):
        # The coalitions with the last player are the second half; then it no longer matters whether it is there.
        half = 1 << player
        of_player = out[player]
        for i in range(n):
            of_player[i] = -others[i]
        for s in range(half):
            low, high = worth[s], worth[half + s]
            for i in range(n):
                of_player[i] += high[i]
                low[i] += high[i]
