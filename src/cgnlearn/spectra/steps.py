"""Steps from raw to clean spectra, as scikit-learn transformers of lists of spectra."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from cgnlearn.spectra.peaks import find_peaks, nearest_within, peaks_in_common
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError


class OfSpectra(ABC, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of lists of spectra."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class Step(OfSpectra, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A transformer whose output is a list of spectra, each of which depends on the spectrum it came from.

    Those that learn nothing in `fit` need not be fitted.
    """

    @property
    def learns(self) -> bool:
        """Whether `fit` takes anything from the spectra."""
        return False

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Learn nothing.

        Parameters
        ----------
        X : iterable of Spectrum
        y : ignored
        """
        return self

    def transform(self, X: Iterable[Spectrum]) -> list[Spectrum]:
        """Each spectrum after this step.

        Parameters
        ----------
        X : iterable of Spectrum
        """
        check_is_fitted(self)
        return [self._one(spectrum) for spectrum in X]

    def set_output(self, *, transform: Any = None) -> Self:
        """Spectra stay spectra; a table comes out at the end of the pipeline.

        Parameters
        ----------
        transform : ignored
        """
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names that were given: a list of spectra has none of its own, the end of the pipeline makes them.

        Parameters
        ----------
        input_features : sequence of str, optional
        """
        return input_features

    @abstractmethod
    def _one(self, spectrum: Spectrum) -> Spectrum:
        """The spectrum after the step."""

    def __sklearn_is_fitted__(self) -> bool:
        return not self.learns or hasattr(self, "reference_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.learns
        return tags


class Trim(Step):
    """Keep the points of a range.

    Parameters
    ----------
    start, stop : float
        The first and the last m/z kept.

    Examples
    --------
    >>> Trim(1000, 1001).transform([Spectrum([999.0, 1000.5, 1002.0], [1.0, 2.0, 3.0])])[0].mz.tolist()
    [1000.5]
    """

    def __init__(self, start: float = 2000.0, stop: float = 20_000.0) -> None:
        self.start = start
        self.stop = stop

    def _one(self, spectrum: Spectrum) -> Spectrum:
        first, after = np.searchsorted(spectrum.mz, self.start), np.searchsorted(spectrum.mz, self.stop, side="right")
        if first >= after:
            raise SpectrumError(
                f"{spectrum.name}: it has no points from m/z {self.start:g} to {self.stop:g}: trim to another range"
            )
        return Spectrum(spectrum.mz[first:after], spectrum.intensity[first:after], spectrum.metadata)


class SquareRoot(Step):
    """Square roots of the intensities, so that counting noise is as large on peaks as beside them.

    Negative intensities, of which there are no counts, become 0.

    Examples
    --------
    >>> SquareRoot().transform([Spectrum([1.0, 2.0], [9.0, -1.0])])[0].intensity.tolist()
    [3.0, 0.0]
    """

    def _one(self, spectrum: Spectrum) -> Spectrum:
        return spectrum.with_intensity(np.sqrt(np.maximum(spectrum.intensity, 0)))


class Smooth(Step):
    """The filter of Savitzky and Golay: each point becomes the value there of a polynomial fitted to its neighbours.

    Parameters
    ----------
    half_window : int
        Points to either side.
    order : int
        Of the polynomial.

    Examples
    --------
    >>> line = Spectrum(range(30), range(30))
    >>> bool(np.allclose(Smooth().transform([line])[0].intensity, line.intensity))
    True
    """

    def __init__(self, half_window: int = 10, order: int = 3) -> None:
        self.half_window = half_window
        self.order = order

    def _one(self, spectrum: Spectrum) -> Spectrum:
        window = 2 * self.half_window + 1
        if self.order >= window:
            raise ValueError(f"half_window={self.half_window} gives {window} points: too few for order={self.order}")
        if len(spectrum) < window:
            raise SpectrumError(
                f"{spectrum.name}: it has {len(spectrum)} points, fewer than the {window} to smooth over"
            )
        smooth = savgol_filter(spectrum.intensity, window, self.order)
        # The polynomial swings below zero beside high peaks; where nothing was negative, nothing becomes so.
        return spectrum.with_intensity(np.maximum(smooth, min(0.0, spectrum.intensity.min())))


class Baseline(Step):
    """Subtract the baseline that SNIP finds, with a window that decreases (pybaselines).

    Parameters
    ----------
    half_window : int
        Points to either side; as wide as the widest peak, or that peak is taken for baseline.

    Examples
    --------
    >>> flat = Spectrum(range(500), np.full(500, 7.0))
    >>> float(Baseline().transform([flat])[0].intensity.max())
    0.0
    """

    def __init__(self, half_window: int = 100) -> None:
        self.half_window = half_window

    def _one(self, spectrum: Spectrum) -> Spectrum:
        try:
            from pybaselines.smooth import snip
        except ImportError as error:
            raise ImportError("baselines need pybaselines: pip install 'cgnlearn[spectra]'") from error
        widest = max(1, min(self.half_window, (len(spectrum) - 1) // 2))
        baseline = snip(spectrum.intensity, max_half_window=widest, decreasing=True)[0]
        return spectrum.with_intensity(np.maximum(spectrum.intensity - baseline, 0))


class Normalise(Step):
    """Take away what differs between spectra as a whole, such as the amount of the sample.

    Parameters
    ----------
    method : {"tic", "median", "pqn"}
        ``"tic"``: the total ion current, by which the mean intensity over m/z becomes 1. ``"median"``: the median
        intensity becomes 1. ``"pqn"``: probabilistic quotients: after ``"tic"``, the median of the quotients to a
        reference, the median spectrum of those fitted on, becomes 1.

    Attributes
    ----------
    reference_ : Spectrum or None
        For ``"pqn"`` only.

    Examples
    --------
    >>> spectrum = Spectrum([1.0, 2.0, 3.0], [2.0, 2.0, 2.0])
    >>> Normalise().fit([spectrum]).transform([spectrum])[0].intensity.tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, method: Literal["tic", "median", "pqn"] = "tic") -> None:
        self.method = method

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Learn the reference, where there is one.

        Parameters
        ----------
        X : iterable of Spectrum
        y : ignored
        """
        if self.method not in ("tic", "median", "pqn"):
            raise ValueError(f"method must be 'tic', 'median' or 'pqn', not {self.method!r}")
        self.reference_ = _median_spectrum([_divided(s, _mean(s)) for s in X]) if self.learns else None
        return self

    @property
    def learns(self) -> bool:
        """Quotients need a reference."""
        return self.method == "pqn"

    def _one(self, spectrum: Spectrum) -> Spectrum:
        if self.method == "median":
            return _divided(spectrum, float(np.median(spectrum.intensity)))
        by_total = _divided(spectrum, _mean(spectrum))
        if self.method != "pqn":
            return by_total
        reference = self.reference_
        assert reference is not None
        inside = (reference.mz >= spectrum.mz[0]) & (reference.mz <= spectrum.mz[-1]) & (reference.intensity > 0)
        if not inside.any():
            raise SpectrumError(f"{spectrum.name}: it has no m/z in common with the reference: normalise otherwise")
        own = np.interp(reference.mz[inside], by_total.mz, by_total.intensity)
        return _divided(by_total, float(np.median(own / reference.intensity[inside])))


def _mean(spectrum: Spectrum) -> float:
    """The mean intensity over m/z, whatever the distances of the points."""
    width = spectrum.mz[-1] - spectrum.mz[0]
    if width == 0:
        return float(spectrum.intensity.mean())
    return float(np.trapezoid(spectrum.intensity, spectrum.mz) / width)


def _divided(spectrum: Spectrum, by: float) -> Spectrum:
    if not by > 0:
        raise SpectrumError(f"{spectrum.name}: it has no signal to normalise by ({by:g}): leave it out")
    return spectrum.with_intensity(spectrum.intensity / by)


def _median_spectrum(spectra: list[Spectrum]) -> Spectrum:
    """The median at each m/z of the first axis that all have."""
    start, stop = max(s.mz[0] for s in spectra), min(s.mz[-1] for s in spectra)
    axis = spectra[0].mz
    axis = axis[(axis >= start) & (axis <= stop)]
    if not len(axis):
        raise SpectrumError("the spectra have no m/z in common: trim them, or normalise by 'tic'")
    # In pieces, so that memory does not hold all spectra once more.
    pieces = np.array_split(axis, max(1, len(axis) // 1000))
    median = [np.median([np.interp(piece, s.mz, s.intensity) for s in spectra], axis=0) for piece in pieces]
    return Spectrum(axis, np.concatenate(median))


class Align(Step):
    """Bend the m/z axis of each spectrum so that its peaks stand where most spectra have them.

    Peaks that nearly all spectra have are the reference; those of a spectrum that lie near them say by how much, as a
    polynomial of m/z, its calibration is off.

    Parameters
    ----------
    order : int
        Of the polynomial.
    tolerance : float
        How far from its reference a peak may stand, as a share of m/z.
    share : float
        In which share of the spectra a peak must be found to be a reference.
    half_window : int
        A peak is the highest point within so many to either side.
    noise : float
        And at least so many times as high as the noise.

    Attributes
    ----------
    reference_ : ndarray
        m/z of the reference peaks.

    Examples
    --------
    >>> from cgnlearn.spectra import make_raw_spectra
    >>> made = make_raw_spectra(10, n_points=5000, random_state=0)
    >>> len(Align().fit_transform(made.spectra))
    10
    """

    def __init__(
        self, order: int = 2, tolerance: float = 0.002, share: float = 0.9, half_window: int = 20, noise: float = 5.0
    ) -> None:
        self.order = order
        self.tolerance = tolerance
        self.share = share
        self.half_window = half_window
        self.noise = noise

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Learn the reference peaks.

        Parameters
        ----------
        X : iterable of Spectrum
        y : ignored
        """
        finding = {name: value for name, value in self.get_params().items() if name != "order"}
        self.reference_: NDArray[np.float64] = peaks_in_common(X, **finding)
        if len(self.reference_) <= self.order:
            raise SpectrumError(
                f"{len(self.reference_)} peaks stand in {self.share:.0%} of the spectra, too few for a polynomial of "
                f"order {self.order}: lower share or order, or do not align"
            )
        return self

    @property
    def learns(self) -> bool:
        """Where the reference peaks stand."""
        return True

    def transform(self, X: Iterable[Spectrum]) -> list[Spectrum]:
        """Each spectrum with its axis bent; one with too few reference peaks as it was, which a warning tells.

        Parameters
        ----------
        X : iterable of Spectrum
        """
        given = list(X)
        aligned = super().transform(given)
        left = [spectrum.name for spectrum, other in zip(given, aligned, strict=True) if spectrum is other]
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            warnings.warn(f"{left[0]}{more}: too few reference peaks, left as it was", stacklevel=2)
        return aligned

    def _one(self, spectrum: Spectrum) -> Spectrum:
        own = spectrum.mz[find_peaks(spectrum, self.half_window, self.noise)]
        matched, reference = nearest_within(own, self.reference_, self.tolerance)
        if len(matched) <= self.order:
            return spectrum
        centre, unit = float(np.mean(matched)), float(np.ptp(matched)) or 1.0
        away = np.polynomial.polynomial.polyfit((matched - centre) / unit, reference - matched, self.order)
        # Beyond the outermost peaks the correction stays what it is there: a polynomial would run away.
        position = (np.clip(spectrum.mz, matched.min(), matched.max()) - centre) / unit
        bent = spectrum.mz + np.polynomial.polynomial.polyval(position, away)
        if (np.diff(bent) < 0).any():
            return spectrum
        return Spectrum(bent, spectrum.intensity, {**spectrum.metadata, "aligned": True})
