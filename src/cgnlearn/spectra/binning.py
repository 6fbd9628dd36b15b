"""From spectra to a table of features: bins along m/z, or the heights of common peaks."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cgnlearn.data.arrays import Floats
from cgnlearn.data.warning import DataWarning
from cgnlearn.spectra.peaks import peaks_in_common
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError, first_and_count
from cgnlearn.spectra.steps import SpectraTransformer

MAX_BINS = 1_000_000


class Features(SpectraTransformer):
    """A transformer from spectra to a table with a column for each position in ``mz_``."""

    mz_: Floats

    def transform(self, X: Iterable[Spectrum]) -> Floats:
        """Return the features (spectra, positions); warn of different axes and of spectra that are too short."""
        check_is_fitted(self)
        rows: list[Floats] = []
        short: list[str] = []
        axes: set[int] = set()
        slack = np.diff(self.mz_).max(initial=0.0)
        for spectrum in X:
            rows.append(self._row(spectrum))
            if not spectrum.metadata.get("aligned"):  # aligned spectra have an axis each
                axes.add(hash(spectrum.mz.tobytes()))
            if spectrum.mz[0] > self.mz_[0] + slack or spectrum.mz[-1] < self.mz_[-1] - slack:
                short.append(spectrum.name)
        if len(axes) > 1:
            message = f"the spectra have {len(axes)} different m/z axes: they are matched by m/z, not by index"
            warnings.warn(message, DataWarning, stacklevel=3)
        if short:
            message = f"{first_and_count(short)}: does not cover m/z {self.mz_[0]:.6g} to {self.mz_[-1]:.6g}"
            warnings.warn(f"{message}; its first or last value is used beyond its range", stacklevel=3)
        return np.array(rows).reshape(len(rows), len(self.mz_))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the m/z of each position, with enough digits to be distinct; ``input_features`` is ignored."""
        check_is_fitted(self)
        closest = np.diff(self.mz_).min(initial=1.0)
        digits = int(np.clip(2 - np.floor(np.log10(closest)), 1, 9))
        return np.array([f"{mz:.{digits}f}" for mz in self.mz_], dtype=object)

    @abstractmethod
    def _row(self, spectrum: Spectrum) -> Floats:
        """The features of one spectrum."""


class Bin(Features):
    """Mean intensities in bins along m/z; a bin without points gets the value interpolated at its centre.

    Sums, with 0 in a bin without points, are what DRIAMS and MaldiAMRKit have; they depend on how dense the points are.

    Parameters
    ----------
    width : float
        Width of a bin in m/z, or as a share of m/z if ``scale`` is ``"proportional"``.
    scale : {"uniform", "proportional"}
        Whether bins have equal widths, or widths that grow with m/z as those of peaks do.
    start, stop : float, optional
        Start of the first bin and end of the last; None: the range common to all training spectra.
    value : {"mean", "sum"}
        What a bin holds of the intensities of its points.

    Attributes
    ----------
    edges_ : ndarray (bins + 1,)
    mz_ : ndarray (bins,)
        Centres of the bins.

    Examples
    --------
    >>> spectra = [Spectrum([1.0, 1.4, 2.2, 4.1], [2.0, 4.0, 5.0, 9.0])]
    >>> bins = Bin(width=1.0, start=1.0, stop=5.0).fit(spectra)
    >>> bins.transform(spectra).round(2).tolist()
    [[3.0, 5.0, 7.74, 9.0]]
    >>> bins.get_feature_names_out().tolist()
    ['1.50', '2.50', '3.50', '4.50']
    """

    def __init__(
        self,
        width: float = 1.0,
        scale: Literal["uniform", "proportional"] = "uniform",
        start: float | None = None,
        stop: float | None = None,
        value: Literal["mean", "sum"] = "mean",
    ) -> None:
        self.value = value
        self.width = width
        self.scale = scale
        self.start = start
        self.stop = stop

    def _learn(self, X: Iterable[Spectrum]) -> None:
        if self.scale not in ("uniform", "proportional"):
            raise ValueError(f"scale must be 'uniform' or 'proportional', not {self.scale!r}")
        if self.value not in ("mean", "sum"):
            raise ValueError(f"value must be 'mean' or 'sum', not {self.value!r}")
        if not 0 < self.width < np.inf:
            raise ValueError(f"width must be positive, not {self.width!r}")
        start, stop = self.start, self.stop
        if start is None or stop is None:
            ranges = np.array([(spectrum.mz[0], spectrum.mz[-1]) for spectrum in X]).reshape(-1, 2)
            if not len(ranges):
                raise ValueError("there are no spectra to learn the range of the bins from: give start and stop")
            start = float(ranges[:, 0].max()) if start is None else start
            stop = float(ranges[:, 1].min()) if stop is None else stop
        self.edges_ = _edges(float(start), float(stop), self.width, proportional=self.scale == "proportional")
        self.mz_ = (self.edges_[:-1] + self.edges_[1:]) / 2

    def _row(self, spectrum: Spectrum) -> Floats:
        at = np.searchsorted(spectrum.mz, self.edges_)
        n_points = np.diff(at)
        filled = n_points > 0
        row = np.empty(len(n_points))
        if filled.any():
            # Bins without points are skipped: the points of one bin end where those of the next begin.
            sums = np.add.reduceat(spectrum.intensity[: at[-1]], at[:-1][filled])
            row[filled] = sums if self.value == "sum" else sums / n_points[filled]
        row[~filled] = 0.0 if self.value == "sum" else np.interp(self.mz_[~filled], spectrum.mz, spectrum.intensity)
        return row


def _edges(start: float, stop: float, width: float, *, proportional: bool) -> Floats:
    if not start < stop:
        raise SpectrumError(f"bins cannot range from m/z {start:g} to {stop:g}: give overlapping spectra, or a range")
    if proportional and start <= 0:
        raise ValueError(f"bins proportional to m/z cannot start at {start:g}: give a positive start")
    n_bins = np.log(stop / start) / np.log1p(width) if proportional else (stop - start) / width
    if n_bins > MAX_BINS:
        raise ValueError(f"width={width:g} gives {n_bins:.0f} bins: give a wider one")
    numbers = np.arange(max(1, int(np.ceil(n_bins - 1e-6))) + 1, dtype=np.float64)
    edges: Floats = start * (1 + width) ** numbers if proportional else start + width * numbers
    if edges[-1] <= stop * (1 + 1e-9):
        edges[-1] = np.nextafter(max(stop, edges[-1]), np.inf)  # the last point is in the last bin
    return edges


class Peaks(Features):
    """Heights of the peaks common to a share of the training spectra.

    The height of a spectrum at a peak is its largest intensity within the tolerance.

    Parameters
    ----------
    half_window : int
        A peak is the highest among this many points on either side.
    noise : float
        Smallest height of a peak, as a multiple of the noise: the median absolute deviation of the intensities.
    tolerance : float
        Largest distance of the peaks of different spectra from their common mean, as a share of m/z.
    share : float
        Share of the training spectra that must have a peak.

    Attributes
    ----------
    mz_ : ndarray (peaks,)

    Examples
    --------
    >>> from cgnlearn.spectra import make_raw_spectra
    >>> made = make_raw_spectra(10, n_points=5000, random_state=0)
    >>> X = Peaks().fit_transform(made.spectra)
    >>> X.shape[0]
    10
    """

    def __init__(
        self, half_window: int = 20, noise: float = 2.0, tolerance: float = 0.002, share: float = 0.25
    ) -> None:
        self.half_window = half_window
        self.noise = noise
        self.tolerance = tolerance
        self.share = share

    def _learn(self, X: Iterable[Spectrum]) -> None:
        self.mz_ = peaks_in_common(X, **self.get_params())
        if not len(self.mz_):
            raise SpectrumError(f"no peak is common to {self.share:.0%} of the spectra: lower noise or share")

    def _row(self, spectrum: Spectrum) -> Floats:
        low = np.searchsorted(spectrum.mz, self.mz_ * (1 - self.tolerance))
        high = np.searchsorted(spectrum.mz, self.mz_ * (1 + self.tolerance), side="right")
        padded = np.append(spectrum.intensity, -np.inf)
        highest = np.maximum.reduceat(padded, np.column_stack([low, high]).ravel())[::2]
        return np.where(low < high, highest, np.interp(self.mz_, spectrum.mz, spectrum.intensity))
