"""Tests and effect sizes of two methods over folds, or of many methods over data sets."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.estimates import ALPHA

Mark = Literal["win", "draw", "loss"]


class Comparison(NamedTuple):
    """Two methods on the same folds; positive numbers, and wins, favour the first.

    The folds of a repeated cross-validation share training samples, so the rank tests are optimistic; the corrected t
    test (Nadeau and Bengio 2003) accounts for this.
    """

    mean_difference: float
    wilcoxon_p: float  # signed-rank test of the folds' differences
    rank_biserial: float  # its effect size, from -1 to 1
    mann_whitney_p: float  # as if the folds were not paired
    superiority: float  # its effect size: share of pairs of folds in which the first is better
    corrected_t_p: float

    @property
    def mark(self) -> Mark:
        """By the signed-rank test at the 5% level."""
        return mark(self.wilcoxon_p, self.rank_biserial)

    @property
    def unpaired_mark(self) -> Mark:
        """By the Mann-Whitney test at the 5% level."""
        return mark(self.mann_whitney_p, self.superiority - 0.5)


def mark(p: float, effect: float) -> Mark:
    """Win or loss by the sign of a significant effect, else a draw."""
    if p >= ALPHA or effect == 0:
        return "draw"
    return "win" if effect > 0 else "loss"


def compare(first: Floats, second: Floats, *, n_folds: int) -> Comparison:
    """Compare the values of two methods on the same folds of a repeated cross-validation."""
    difference = first - second
    if not difference.any():
        return Comparison(0.0, 1.0, 0.0, 1.0, 0.5, 1.0)
    paired = signed_rank(difference)
    unpaired = stats.mannwhitneyu(first, second)
    n = len(difference)
    error = np.sqrt((1 / n + 1 / (n_folds - 1)) * difference.var(ddof=1))  # Nadeau and Bengio (2003)
    t = difference.mean() / error if error > 0 else np.copysign(np.inf, difference.mean())
    return Comparison(
        mean_difference=float(difference.mean()),
        wilcoxon_p=paired.p,
        rank_biserial=paired.rank_biserial,
        mann_whitney_p=float(unpaired.pvalue),
        superiority=float(unpaired.statistic / n**2),
        corrected_t_p=float(2 * stats.t.sf(abs(t), n - 1)),
    )


class SignedRank(NamedTuple):
    """Wilcoxon's signed-rank test."""

    p: float
    rank_biserial: float  # (positive - negative ranks) / all ranks, from -1 to 1


def signed_rank(difference: Floats) -> SignedRank:
    """Test whether paired differences are symmetric about 0; differences of 0 are excluded."""
    nonzero = difference[difference != 0]
    if not len(nonzero):
        return SignedRank(1.0, 0.0)
    ranks = stats.rankdata(np.abs(nonzero))
    exact = len(ranks) <= 50 and len(set(ranks.tolist())) == len(ranks)
    p = float(stats.wilcoxon(nonzero, method="exact" if exact else "approx").pvalue)
    return SignedRank(p, float((np.sign(nonzero) * ranks).sum() / ranks.sum()))


def holm(p: Floats) -> Floats:
    """P values of several tests, corrected for the family-wise error rate (Holm 1979)."""
    order = np.argsort(p)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return corrected


def mean_ranks(values: Floats) -> Floats:
    """Mean rank of each method (columns) over data sets (rows), 1 for the highest value; ties share ranks."""
    ranks: Floats = stats.rankdata(-values, axis=1).mean(axis=0)
    return ranks


def critical_difference(n_methods: int, n_sets: int) -> float:
    """Smallest significant difference of two mean ranks at the 5% level (Nemenyi's test; Demšar 2006)."""
    spread = stats.studentized_range.ppf(1 - ALPHA, n_methods, np.inf) / np.sqrt(2)
    return float(spread * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))
