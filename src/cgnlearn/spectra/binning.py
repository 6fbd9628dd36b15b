"""From lists of spectra to a table: bins along m/z, or the intensities of peaks that many spectra have."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cgnlearn.spectra.peaks import peaks_in_common
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError
from cgnlearn.spectra.steps import OfSpectra

Floats = NDArray[np.float64]
MOST_BINS = 1_000_000


class Features(OfSpectra):
    """A transformer of lists of spectra into a table with a column for each of the positions ``mz_``."""

    mz_: Floats

    def transform(self, X: Iterable[Spectrum]) -> Floats:
        """A row for each spectrum.

        Parameters
        ----------
        X : iterable of Spectrum

        Returns
        -------
        ndarray (spectra, positions)
        """
        check_is_fitted(self)
        rows = [self._row(spectrum) for spectrum in self._watched(X)]
        return np.array(rows).reshape(len(rows), len(self.mz_))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The positions' m/z, with as many digits as it takes to tell them apart.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        closest = np.diff(self.mz_).min(initial=1.0)
        digits = int(np.clip(2 - np.floor(np.log10(closest)), 1, 9))
        return np.array([f"{mz:.{digits}f}" for mz in self.mz_], dtype=object)

    @abstractmethod
    def _row(self, spectrum: Spectrum) -> Floats:
        """The features of one spectrum."""

    def _watched(self, X: Iterable[Spectrum]) -> Iterator[Spectrum]:
        """The same spectra; afterwards a warning, where there is a need, about their axes."""
        axes: set[int] = set()
        short, n_short = "", 0
        slack = np.diff(self.mz_).max(initial=0.0)
        for spectrum in X:
            if not spectrum.metadata.get("aligned"):  # else the axes differ on purpose
                axes.add(hash(spectrum.mz.tobytes()))
            if spectrum.mz[0] > self.mz_[0] + slack or spectrum.mz[-1] < self.mz_[-1] - slack:
                short, n_short = short or spectrum.name, n_short + 1
            yield spectrum
        if len(axes) > 1:
            warnings.warn(
                f"the spectra stand on {len(axes)} different m/z axes: they are brought together by m/z, not by index",
                stacklevel=4,
            )
        if n_short:
            more = f" and {n_short - 1} more" if n_short > 1 else ""
            warnings.warn(
                f"{short}{more}: does not reach from m/z {self.mz_[0]:.6g} to {self.mz_[-1]:.6g}; its outermost value "
                "is taken beyond",
                stacklevel=4,
            )


class Bin(Features):
    """Mean intensities of bins along m/z; a bin without a point gets the value interpolated at its centre.

    Parameters
    ----------
    width : float
        Of a bin, in m/z, or as a share of m/z if ``scale`` is ``"proportional"``.
    scale : {"uniform", "proportional"}
        Whether bins are equally wide, or grow with m/z as the width of peaks does.
    start, stop : float, optional
        Where the first bin begins and the last ends; None: the range that all spectra fitted on have in common.

    Attributes
    ----------
    edges_ : ndarray (bins + 1,)
    mz_ : ndarray (bins,)
        The bins' centres.

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
    ) -> None:
        self.width = width
        self.scale = scale
        self.start = start
        self.stop = stop

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Lay the bins.

        Parameters
        ----------
        X : iterable of Spectrum
            Not looked at where ``start`` and ``stop`` are given.
        y : ignored
        """
        if self.scale not in ("uniform", "proportional"):
            raise ValueError(f"scale must be 'uniform' or 'proportional', not {self.scale!r}")
        if not 0 < self.width < np.inf:
            raise ValueError(f"width must be positive, not {self.width!r}")
        start, stop = self.start, self.stop
        if start is None or stop is None:
            ranges = np.array([(spectrum.mz[0], spectrum.mz[-1]) for spectrum in X]).reshape(-1, 2)
            if not len(ranges):
                raise ValueError(
                    "there are no spectra to learn the range of the bins from: give some, or start and stop"
                )
            start = float(ranges[:, 0].max()) if start is None else start
            stop = float(ranges[:, 1].min()) if stop is None else stop
        self.edges_ = _edges(float(start), float(stop), self.width, proportional=self.scale == "proportional")
        self.mz_ = (self.edges_[:-1] + self.edges_[1:]) / 2
        return self

    def _row(self, spectrum: Spectrum) -> Floats:
        at = np.searchsorted(spectrum.mz, self.edges_)
        n_points = np.diff(at)
        filled = n_points > 0
        row = np.empty(len(n_points))
        if filled.any():
            # Between two bins with points there are none, so that one ends where the next begins.
            sums = np.add.reduceat(spectrum.intensity[: at[-1]], at[:-1][filled])
            row[filled] = sums / n_points[filled]
        row[~filled] = np.interp(self.mz_[~filled], spectrum.mz, spectrum.intensity)
        return row


def _edges(start: float, stop: float, width: float, *, proportional: bool) -> Floats:
    if not start < stop:
        raise SpectrumError(
            f"bins cannot go from m/z {start:g} to {stop:g}: give spectra that overlap, or another range"
        )
    if proportional and start <= 0:
        raise ValueError(f"bins in proportion to m/z cannot start at {start:g}: give a positive start")
    n_bins = np.log(stop / start) / np.log1p(width) if proportional else (stop - start) / width
    if n_bins > MOST_BINS:
        raise ValueError(f"width={width:g} makes {n_bins:.0f} bins: make them wider")
    numbers = np.arange(max(1, int(np.ceil(n_bins - 1e-6))) + 1, dtype=np.float64)
    edges: Floats = start * (1 + width) ** numbers if proportional else start + width * numbers
    if edges[-1] <= stop * (1 + 1e-9):
        edges[-1] = np.nextafter(max(stop, edges[-1]), np.inf)  # the last point is in the last bin
    return edges


class Peaks(Features):
    """Heights of the peaks that a share of the spectra fitted on has in common.

    A spectrum's height at a peak is its highest intensity within the tolerance.

    Parameters
    ----------
    half_window : int
        A peak is the highest point within so many to either side,
    noise : float
        and at least so many times as high as the noise, the median absolute deviation of the intensities.
    tolerance : float
        How far peaks of different spectra may stand from their mean to be one, as a share of m/z.
    share : float
        In which share of the spectra a peak must be found.

    Attributes
    ----------
    mz_ : ndarray (peaks,)

    Examples
    --------
    >>> from cgnlearn.spectra import make_raw_spectra, preset
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

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Learn where the peaks are.

        Parameters
        ----------
        X : iterable of Spectrum
        y : ignored
        """
        self.mz_ = peaks_in_common(X, **self.get_params())
        if not len(self.mz_):
            raise SpectrumError(f"no peak stands in {self.share:.0%} of the spectra: lower noise or share")
        return self

    def _row(self, spectrum: Spectrum) -> Floats:
        low = np.searchsorted(spectrum.mz, self.mz_ * (1 - self.tolerance))
        high = np.searchsorted(spectrum.mz, self.mz_ * (1 + self.tolerance), side="right")
        padded = np.append(spectrum.intensity, -np.inf)
        highest = np.maximum.reduceat(padded, np.column_stack([low, high]).ravel())[::2]
        return np.where(low < high, highest, np.interp(self.mz_, spectrum.mz, spectrum.intensity))
