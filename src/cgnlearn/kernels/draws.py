"""Compiled loops over draws of class probabilities, of which intervals are quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.kernels.compilation import compiled
from cgnlearn.kernels.elementary import exponentials, logarithms

TINY = 2.2250738585072014e-308  # the least number that is not denormal


@compiled
def drawn_intervals(
    normal: Any, weights: Any, scores: Any, directions: Any, power: float, log_prior: Any, below: float, found: Any
) -> None:
    """Quantiles of the log odds of mixed probabilities over draws, and their deviation, into ``found``.

    ``normal`` are standard normal draws (contrasts, draws), ``weights`` those of the members (members, draws),
    ``scores`` the mean, deviation and skewness of every score (3, members, samples, classes), ``directions`` their
    coordinates in the contrasts (members, samples, classes, contrasts). The mixture is raised to ``power`` relative to
    the log prior. ``below`` is the lower quantile's place among sorted draws; ``found`` is (3, samples, classes).
    """
    n_members, n_samples, n_classes, n_contrasts = directions.shape
    n = normal.shape[1]
    score = np.empty((n_classes, n))
    total = np.empty((n_classes, n))
    highest = np.empty(n)
    summed = np.empty(n)
    scratch = np.empty(n)
    first = min(max(int(np.floor(below)), 0), n - 2)
    share = min(max(below - first, 0.0), 1.0)
    lowest = np.empty(first + 2)
    for s in range(n_samples):
        total[:] = 0.0
        for member in range(n_members):
            for c in range(n_classes):
                own = score[c]
                own[:] = 0.0
                for k in range(n_contrasts):
                    along = directions[member, s, c, k]
                    for t in range(n):
                        own[t] += along * normal[k, t]
                mean, deviation, skewness = (
                    scores[0, member, s, c],
                    scores[1, member, s, c],
                    scores[2, member, s, c],
                )
                sixth = skewness / 6.0
                start, factor = 1.0 - sixth * sixth, 2.0 / skewness * deviation
                for t in range(n):
                    root = max(sixth * own[t] + start, 0.0)
                    own[t] = mean + factor * (root * root * root - 1.0)
            _softmax(score, highest, summed, scratch)
            for c in range(n_classes):
                for t in range(n):
                    total[c, t] += weights[member, t] * score[c, t]
        if power != 1.0:
            for c in range(n_classes):
                for t in range(n):
                    total[c, t] = max(total[c, t], TINY)
                logarithms(total[c], scratch)
                more = (1.0 - power) * log_prior[c]
                for t in range(n):
                    total[c, t] = power * total[c, t] + more
            _softmax(total, highest, summed, scratch)
        for c in range(n_classes):
            highest[:] = 0.0  # the probability of the other classes: not 1 - p, which rounds to 0
            for d in range(n_classes):
                if d != c:
                    for t in range(n):
                        highest[t] += total[d, t]
            for t in range(n):
                summed[t] = max(max(total[c, t], TINY) / max(highest[t], TINY), TINY)
            logarithms(summed, scratch)
            mean = 0.0
            for t in range(n):
                mean += summed[t]
            mean /= n
            square = 0.0
            for t in range(n):
                square += (summed[t] - mean) ** 2
            found[2, s, c] = np.sqrt(square / n)
            for side in range(2):
                _keep_lowest(summed, lowest)
                low = (1.0 - share) * lowest[first] + share * lowest[first + 1]
                found[side, s, c] = low if side == 0 else -low
                for t in range(n):
                    summed[t] = -summed[t]


@compiled
def _softmax(scores: Any, highest: Any, total: Any, scratch: Any) -> None:
    """Probabilities of the classes (classes, draws), in place."""
    n_classes, n = scores.shape
    highest[:] = scores[0]
    for c in range(1, n_classes):
        for t in range(n):
            highest[t] = max(highest[t], scores[c, t])
    total[:] = 0.0
    for c in range(n_classes):
        for t in range(n):
            scores[c, t] -= highest[t]
        exponentials(scores[c], scratch)
        for t in range(n):
            total[t] += scores[c, t]
    for c in range(n_classes):
        for t in range(n):
            scores[c, t] /= total[t]


@compiled
def _keep_lowest(numbers: Any, lowest: Any) -> None:
    """The lowest numbers, sorted."""
    k = len(lowest)
    lowest[:] = np.inf
    for number in numbers:
        if number < lowest[k - 1]:
            place = k - 1
            while place > 0 and lowest[place - 1] > number:
                lowest[place] = lowest[place - 1]
                place -= 1
            lowest[place] = number
