"""Candidates that fit in a time limit: by their forecasts, those first that gain most for their time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cgnlearn.candidates.candidate import Candidate, Skipped

ANOTHER_TRANSFORM = 0.5  # of its gain: a candidate on transformed columns says much of what it says without


def affordable(candidates: Sequence[Candidate], seconds: Sequence[float], limit: float) -> list[int]:
    """Indexes of the candidates to compare, in the order in which to try them.

    The first, the baseline, is always among them, and so is the cheapest of the others.
    """
    if not candidates:
        return []
    gains = [each.gain * (1.0 if each.transform == "none" else ANOTHER_TRANSFORM) for each in candidates]
    by_worth = np.argsort(-np.array(gains) / np.array(seconds), kind="stable").tolist()
    chosen, left = [0], limit - seconds[0]
    for i in by_worth:
        if i and seconds[i] <= left:
            chosen.append(i)
            left -= seconds[i]
    if len(chosen) == 1 and len(candidates) > 1:
        chosen.append(1 + int(np.argmin(seconds[1:])))
    return chosen


def too_long(candidate: Candidate, seconds: float, limit: float) -> Skipped:
    """A candidate that does not fit in the limit."""
    reason = f"about {seconds:.2g} s, which others need of time_limit={limit:g}"
    if seconds > limit:
        reason = f"about {seconds:.2g} s, more than time_limit={limit:g}"
    return Skipped(candidate.name, candidate.transform, reason)
