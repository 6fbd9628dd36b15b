"""Samples that are unlike the training data, by their typicality, and whether they are too many for chance."""

from __future__ import annotations

from typing import NamedTuple

from scipy import stats

from cgnlearn.data.arrays import Floats

UNUSUAL = 0.01  # typicality below which a sample is unlike the training data
MANY = 0.05  # share of such samples from which on more than chance or class frequencies has changed
CLEARLY = 0.001  # level of the test that they are more than by chance


class Unusual(NamedTuple):
    """The number of unusual samples."""

    n: int
    n_all: int
    p_value: float  # that their share is the expected one

    @classmethod
    def of(cls, typicality: Floats, expected: float = UNUSUAL) -> Unusual:
        """Those of samples with these typicalities, of which a share is expected: 1% with the classes of training.

        Examples
        --------
        >>> import numpy as np
        >>> found = Unusual.of(np.array([0.001, 0.4, 0.005, 0.9] * 10))
        >>> found.n, found.n_all, found.are_many
        (20, 40, True)
        """
        n, n_all = int((typicality < UNUSUAL).sum()), len(typicality)
        return cls(n, n_all, float(stats.binomtest(n, n_all, max(expected, UNUSUAL), "greater").pvalue))

    @property
    def are_many(self) -> bool:
        """Whether the samples as a whole are unlike the training data."""
        return self.n / self.n_all >= MANY and self.p_value < CLEARLY
