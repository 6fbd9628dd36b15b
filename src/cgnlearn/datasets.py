"""Sets that need no file: exact generators of two of the paper's, and simulated spectra."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state


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


def make_spectra(
    n_samples: int = 120,
    n_bins: int = 600,
    *,
    n_peaks: int = 60,
    n_markers: int = 8,
    effect: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Binned time-of-flight spectra of two classes, with the truth.

    Peaks, whose width grows with their flight time, rise over a baseline that decays; their heights vary from sample
    to sample around common factors, and in a few of them, the markers, with the class. The flight times jitter, the
    gain differs, and counting noise passes through a detector that smears it over neighbouring bins.

    Parameters
    ----------
    n_samples : int
        Half of them of each class.
    n_bins : int
        Of equal width in flight time, which grows with the square root of m/z.
    n_peaks, n_markers : int
        All peaks, and those that tell the classes apart.
    effect : float
        By how much the mean log height of a marker differs between the classes; the log heights of one class have a
        standard deviation of about 0.5.
    random_state : int, RandomState or None

    Returns
    -------
    Bunch
        ``data`` (n_samples, n_bins), ``target`` (``"control"`` or ``"case"``), ``mz`` (n_bins,) the bins' centres,
        ``peaks`` (n_peaks,) the peaks' m/z in rising order, and ``effects`` (n_peaks,), each peak's difference of
        mean log height, case minus control: 0 but for the markers.

    Examples
    --------
    >>> spectra = make_spectra(40, 300, n_markers=5, random_state=0)
    >>> spectra.data.shape, int((spectra.effects != 0).sum())
    ((40, 300), 5)
    """
    if n_samples < 2 or n_bins < 10:
        raise ValueError(f"spectra need at least 2 samples and 10 bins, not {n_samples!r} and {n_bins!r}")
    if not 0 <= n_markers <= n_peaks:
        raise ValueError(f"n_markers must lie between 0 and n_peaks, {n_peaks}, not {n_markers!r}")
    rng = check_random_state(random_state)
    lightest, heaviest, n_factors = 1_000.0, 12_000.0, 4
    time = np.linspace(np.sqrt(lightest), np.sqrt(heaviest), n_bins)
    width = time[1] - time[0]
    is_case = rng.permutation(n_samples) < n_samples // 2
    centres = np.sort(rng.uniform(time[5], time[-5], n_peaks))
    effects = np.zeros(n_peaks)
    markers = rng.choice(n_peaks, n_markers, replace=False)
    effects[markers] = effect * rng.choice([-1.0, 1.0], n_markers)
    factors = rng.standard_normal((n_samples, n_factors)) @ rng.normal(0.0, 0.2, (n_factors, n_peaks))
    own = rng.normal(0.0, 0.3, (n_samples, n_peaks))
    log_height = rng.normal(3.0, 0.8, n_peaks) + factors + own + np.outer(is_case - 0.5, effects)
    spread = np.maximum(0.004 * centres, width)  # a resolution that is constant over the flight time
    jitter = rng.normal(0.0, 0.3 * width, (n_samples, 1))
    signal = np.zeros((n_samples, n_bins))
    for peak in range(n_peaks):
        distance = (time - (centres[peak] + jitter)) / spread[peak]
        signal += np.exp(log_height[:, [peak]] - 0.5 * distance**2)
    decay = np.exp(-(time - time[0]) / (0.25 * (time[-1] - time[0])))
    baseline = 5.0 + rng.lognormal(3.0, 0.25, (n_samples, 1)) * decay
    expected = rng.lognormal(0.0, 0.1, (n_samples, 1)) * (signal + baseline)
    noise = np.sqrt(expected) * rng.standard_normal((n_samples, n_bins))
    smeared = np.apply_along_axis(np.convolve, 1, noise, [0.25, 0.5, 0.25], "same")
    return Bunch(
        data=expected + smeared,
        target=np.where(is_case, "case", "control"),
        mz=time**2,
        peaks=centres**2,
        effects=effects,
    )
