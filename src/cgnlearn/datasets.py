"""Sets that need no file: exact generators of two of the paper's."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state


def make_balance_scale() -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """The balance scale set, which is all of its possible rows.

    Returns
    -------
    X : ndarray (625, 4)
        Left weight and distance, right weight and distance, each from 1 to 5.
    y : ndarray (625,)
        ``"L"``, ``"B"`` or ``"R"``: the side to which the scale tips, or balanced.

    Examples
    --------
    >>> X, y = make_balance_scale()
    >>> {str(side): int((y == side).sum()) for side in "LBR"}
    {'L': 288, 'B': 49, 'R': 288}
    """
    X = np.array(list(product(range(1, 6), repeat=4)), dtype=float)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    return X, np.array(["R", "B", "L"])[np.sign(torque).astype(int) + 1]


def make_waveform(n_samples: int = 5000, random_state: Any = None) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Breiman's waveforms: mixtures of two of three triangular waves, seen at 21 points with unit noise.

    Parameters
    ----------
    n_samples : int
    random_state : int, RandomState or None

    Returns
    -------
    X : ndarray (n_samples, 21)
    y : ndarray (n_samples,)
        0, 1 or 2, equally likely.

    References
    ----------
    Breiman, Friedman, Olshen and Stone (1984), *Classification and Regression Trees*, page 49.

    Examples
    --------
    >>> X, y = make_waveform(100, random_state=0)
    >>> X.shape
    (100, 21)
    """
    if n_samples < 1:
        raise ValueError(f"n_samples must be at least 1, not {n_samples!r}")
    rng = check_random_state(random_state)
    points = np.arange(1, 22)
    waves = np.maximum(6 - np.abs(points - np.array([[11], [15], [7]])), 0)
    first, second = np.array([[0, 1], [0, 2], [1, 2]]).T
    y = rng.randint(3, size=n_samples)
    share = rng.uniform(size=(n_samples, 1))
    X = share * waves[first[y]] + (1 - share) * waves[second[y]] + rng.standard_normal((n_samples, 21))
    return X, y
