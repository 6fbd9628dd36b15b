"""Preprocessing of spectra: scikit-learn transformers of lists of spectra."""

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
from cgnlearn.spectra.spectrum import Spectrum, SpectrumError, extra, first_and_count


class SpectraTransformer(ABC, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer of lists of spectra."""

    def fit(self, X: Iterable[Spectrum], y: Any = None) -> Self:
        """Learn from the training spectra what `transform` needs, if anything; ``y`` is ignored."""
        self._learn(X)
        return self

    @abstractmethod
    def _learn(self, X: Iterable[Spectrum]) -> None:
        """Set the fitted attributes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        return tags


class Step(SpectraTransformer, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A transformer from spectra to spectra, one at a time; a step that learns nothing needs no `fit`."""

    @property
    def learns(self) -> bool:
        """Whether `fit` takes anything from the spectra; such a step sets ``reference_``."""
        return type(self)._learn is not Step._learn

    def _learn(self, X: Iterable[Spectrum]) -> None:
        pass

    def transform(self, X: Iterable[Spectrum]) -> list[Spectrum]:
        """Process each spectrum."""
        check_is_fitted(self)
        return [self._one(spectrum) for spectrum in X]

    def set_output(self, *, transform: Any = None) -> Self:
        """Do nothing: the output is a list of spectra, and the last transformer of a pipeline returns the table."""
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return ``input_features``: spectra have no feature names, the last transformer of a pipeline has."""
        return input_features

    @abstractmethod
    def _one(self, spectrum: Spectrum) -> Spectrum:
        """Process one spectrum."""

    def __sklearn_is_fitted__(self) -> bool:
        return not self.learns or hasattr(self, "reference_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.learns
        return tags


class Trim(Step):
    """Keep the points within a range of m/z.

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
            raise SpectrumError(f"{spectrum.name}: no points from m/z {self.start:g} to {self.stop:g}: widen the range")
        return Spectrum(spectrum.mz[first:after], spectrum.intensity[first:after], spectrum.metadata)


class SquareRoot(Step):
    """Square roots of the intensities, which give counting noise the same variance on and off peaks.

    Negative intensities become 0.

    Examples
    --------
    >>> SquareRoot().transform([Spectrum([1.0, 2.0], [9.0, -1.0])])[0].intensity.tolist()
    [3.0, 0.0]
    """

    def _one(self, spectrum: Spectrum) -> Spectrum:
        return spectrum.with_intensity(np.sqrt(np.maximum(spectrum.intensity, 0)))


class Smooth(Step):
    """Savitzky-Golay filter: replace each point by the value of a polynomial fitted to its neighbours.

    Parameters
    ----------
    half_window : int
        Number of points on either side.
    order : int
        Degree of the polynomial.

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
            raise ValueError(f"half_window={self.half_window} means {window} points: too few for order={self.order}")
        if len(spectrum) < window:
            problem = f"{len(spectrum)} points are fewer than the {window} of the window"
            raise SpectrumError(f"{spectrum.name}: {problem}: lower half_window")
        smooth = savgol_filter(spectrum.intensity, window, self.order)
        # The polynomial can undershoot zero beside high peaks: keep the former minimum.
        return spectrum.with_intensity(np.maximum(smooth, min(0.0, spectrum.intensity.min())))


class Baseline(Step):
    """Subtract a baseline estimated by SNIP with decreasing window (pybaselines).

    Parameters
    ----------
    half_window : int
        Number of points on either side; at least the width of the widest peak, or it is taken for baseline.

    Examples
    --------
    >>> flat = Spectrum(range(500), np.full(500, 7.0))
    >>> float(Baseline().transform([flat])[0].intensity.max())
    0.0
    """

    def __init__(self, half_window: int = 100) -> None:
        self.half_window = half_window

    def _one(self, spectrum: Spectrum) -> Spectrum:
        widest = max(1, min(self.half_window, (len(spectrum) - 1) // 2))
        baseline = extra("pybaselines.smooth").snip(spectrum.intensity, max_half_window=widest, decreasing=True)[0]
        return spectrum.with_intensity(np.maximum(spectrum.intensity - baseline, 0))


class Normalise(Step):
    """Divide each spectrum by its overall level, which varies for instance with the amount of sample.

    Parameters
    ----------
    method : {"tic", "area", "median", "pqn"}
        ``"tic"``: total ion current, so that the mean intensity over m/z is 1. ``"area"``: the same so that the area
        is 1, as in MALDIquant. ``"median"``: the median intensity is 1. ``"pqn"``: probabilistic quotient
        normalisation, so that after ``"tic"`` the median quotient to a reference, the median of the training spectra,
        is 1.

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

    def __init__(self, method: Literal["tic", "area", "median", "pqn"] = "tic") -> None:
        self.method = method

    def _learn(self, X: Iterable[Spectrum]) -> None:
        if self.method not in ("tic", "area", "median", "pqn"):
            raise ValueError(f"method must be 'tic', 'area', 'median' or 'pqn', not {self.method!r}")
        self.reference_ = _median_spectrum([_divided(s, _mean(s)) for s in X]) if self.learns else None

    @property
    def learns(self) -> bool:
        return self.method == "pqn"

    def _one(self, spectrum: Spectrum) -> Spectrum:
        if self.method == "median":
            return _divided(spectrum, float(np.median(spectrum.intensity)))
        if self.method == "area":
            return _divided(spectrum, _mean(spectrum) * float(spectrum.mz[-1] - spectrum.mz[0]))
        by_total = _divided(spectrum, _mean(spectrum))
        if self.method != "pqn":
            return by_total
        reference = self.reference_
        assert reference is not None
        inside = (reference.mz >= spectrum.mz[0]) & (reference.mz <= spectrum.mz[-1]) & (reference.intensity > 0)
        if not inside.any():
            raise SpectrumError(f"{spectrum.name}: it has no m/z in common with the reference: use another method")
        own = np.interp(reference.mz[inside], by_total.mz, by_total.intensity)
        return _divided(by_total, float(np.median(own / reference.intensity[inside])))


def _mean(spectrum: Spectrum) -> float:
    """The mean intensity over m/z, by the trapezoidal rule."""
    width = spectrum.mz[-1] - spectrum.mz[0]
    if width == 0:
        return float(spectrum.intensity.mean())
    return float(np.trapezoid(spectrum.intensity, spectrum.mz) / width)


def _divided(spectrum: Spectrum, by: float) -> Spectrum:
    if not by > 0:
        raise SpectrumError(f"{spectrum.name}: it cannot be normalised, its level is {by:g}: remove it")
    return spectrum.with_intensity(spectrum.intensity / by)


def _median_spectrum(spectra: list[Spectrum]) -> Spectrum:
    """The median of the spectra, at the points of the first one's axis that all of them cover."""
    start, stop = max(s.mz[0] for s in spectra), min(s.mz[-1] for s in spectra)
    axis = spectra[0].mz
    axis = axis[(axis >= start) & (axis <= stop)]
    if not len(axis):
        raise SpectrumError("the spectra have no m/z in common: trim them, or normalise by 'tic'")
    # In pieces, to avoid a second copy of all spectra.
    pieces = np.array_split(axis, max(1, len(axis) // 1000))
    median = [np.median([np.interp(piece, s.mz, s.intensity) for s in spectra], axis=0) for piece in pieces]
    return Spectrum(axis, np.concatenate(median))


class Align(Step):
    """Correct the m/z axis of each spectrum so that its peaks match those common to the training spectra.

    The correction is a polynomial of m/z, fitted by least squares to the distances between the spectrum's peaks and
    the reference peaks near them.

    Parameters
    ----------
    order : int
        Degree of the polynomial.
    tolerance : float
        Largest distance of a peak from its reference, as a share of m/z.
    share : float
        Share of the training spectra that must have a peak for it to be a reference.
    half_window : int
        A peak is the highest among this many points on either side.
    noise : float
        Smallest height of a peak, as a multiple of the noise.

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

    def _learn(self, X: Iterable[Spectrum]) -> None:
        finding = {name: value for name, value in self.get_params().items() if name != "order"}
        self.reference_: NDArray[np.float64] = peaks_in_common(X, **finding)
        if len(self.reference_) <= self.order:
            raise SpectrumError(
                f"{len(self.reference_)} peaks are common to {self.share:.0%} of the spectra, too few for a polynomial "
                f"of order {self.order}: lower share or order, or do not align"
            )

    def transform(self, X: Iterable[Spectrum]) -> list[Spectrum]:
        """Correct the axis of each spectrum; one with too few reference peaks is returned unchanged, with a warning."""
        given = list(X)
        aligned = super().transform(given)
        unchanged = [spectrum.name for spectrum, other in zip(given, aligned, strict=True) if spectrum is other]
        if unchanged:
            warnings.warn(f"{first_and_count(unchanged)}: too few reference peaks, not aligned", stacklevel=2)
        return aligned

    def _one(self, spectrum: Spectrum) -> Spectrum:
        own = spectrum.mz[find_peaks(spectrum, self.half_window, self.noise)]
        matched, reference = nearest_within(own, self.reference_, self.tolerance)
        if len(matched) <= self.order:
            return spectrum
        centre, unit = float(np.mean(matched)), float(np.ptp(matched)) or 1.0
        coefficients = np.polynomial.polynomial.polyfit((matched - centre) / unit, reference - matched, self.order)
        # Constant beyond the outermost peaks, where the polynomial would diverge.
        position = (np.clip(spectrum.mz, matched.min(), matched.max()) - centre) / unit
        corrected = spectrum.mz + np.polynomial.polynomial.polyval(position, coefficients)
        if (np.diff(corrected) < 0).any():
            return spectrum
        return Spectrum(corrected, spectrum.intensity, {**spectrum.metadata, "aligned": True})
