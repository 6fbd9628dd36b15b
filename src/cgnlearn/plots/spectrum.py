"""Mean spectra of two classes, and the log odds that a classifier takes from their peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.data.arrays import Floats
from cgnlearn.plots.features import two_classes, weighted_contributions
from cgnlearn.plots.style import BLUE, GREY, INK, MOST_POINTS, ORANGE, TwoPanels, without_frame
from cgnlearn.spectra.peaks import peak_regions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL, TICK = 28.0, 50.0  # points along the axis, of a peak's label and between ticks
MOST_LABELS = 8


class SpectrumDisplay(TwoPanels):
    """Two mean spectra, one above and one below the m/z axis, and the log odds of their peaks on the same axis.

    Parameters
    ----------
    mz : array (bins,)
        In ascending order.
    above, below : array (bins,)
        The mean spectra of the two classes.
    log_odds : array (bins,)
        Contribution of each bin.
    of, against : str
        The class above, which positive log odds favour, and the one below.
    subject : str
        Description of the log odds.
    axis : str
        Label of ``mz``.
    regions : two arrays, optional
        Peaks and the peak of each bin, as returned by `peak_regions`; None: those of the two spectra.

    Attributes
    ----------
    peaks_ : ndarray (peaks,)
        m/z of the peaks.
    evidence_ : ndarray (peaks,)
        Sum of the log odds over the bins of each peak.
    between_ : float
        Sum of the log odds over the bins between the peaks.
    """

    _size, _heights = (9.0, 5.2), (3, 2)

    def __init__(
        self,
        mz: ArrayLike,
        above: ArrayLike,
        below: ArrayLike,
        log_odds: ArrayLike,
        of: str,
        against: str,
        subject: str,
        axis: str = "m/z",
        regions: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None,
    ) -> None:
        columns = (np.asarray(given, dtype=float) for given in (mz, above, below, log_odds))
        self.mz, self.above, self.below, self.log_odds = columns
        self.of, self.against, self.subject, self.axis = of, against, subject, axis
        if len({self.mz.shape, self.above.shape, self.below.shape, self.log_odds.shape}) > 1 or self.mz.ndim != 1:
            raise ValueError("mz, above, below and log_odds must be columns of the same length")
        tops, self._region = peak_regions(self.above + self.below) if regions is None else regions
        self.peaks_: NDArray[np.float64] = self.mz[tops]
        sums = np.bincount(self._region + 1, self.log_odds, len(tops) + 1).astype(np.float64)
        self.between_ = float(sums[0])
        self.evidence_: NDArray[np.float64] = sums[1:]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        mz: ArrayLike,
        row: int | None = None,
        of: Any = None,
        against: Any = None,
    ) -> Self:
        """Draw the log odds of a fitted classifier for one spectrum, or their mean over those of two classes.

        Parameters
        ----------
        estimator : CGNClassifier or CGNClassifierCV
            The remainder of a mixture is not drawn.
        X : array or data frame (spectra, bins)
        y : array (spectra,)
            Classes of the spectra.
        mz : array (bins,)
            Such as ``mz_`` of `cgnlearn.spectra.Bin`.
        row : int, optional
            Index of a spectrum; None: the mean evidence for the true class over all spectra of the two classes.
        of, against : class labels, optional
            None: the last and the first class or, for one spectrum, the two most probable classes.

        Examples
        --------
        >>> from cgnlearn import CGNClassifier
        >>> from cgnlearn.datasets import make_spectra
        >>> made = make_spectra(40, 300, random_state=0)
        >>> model = CGNClassifier().fit(made.data, made.target)
        >>> display = SpectrumDisplay.from_estimator(model, made.data, made.target, mz=made.mz, row=0)
        >>> display.evidence_.shape == display.peaks_.shape
        True
        """
        values, labels = np.asarray(X, dtype=float), np.asarray(y)
        classes = estimator.classes_.tolist()
        if row is None:
            of, against = classes[-1] if of is None else of, classes[0] if against is None else against
        first, second = two_classes(estimator, _safe_indexing(X, [row or 0]), of, against)
        rows = np.flatnonzero(np.isin(labels, [classes[first], classes[second]])) if row is None else np.array([row])
        parts, _ = weighted_contributions(estimator, _safe_indexing(X, rows))
        log_odds = parts[:, :, first] - parts[:, :, second]
        if row is None:
            log_odds = np.where((labels[rows] == classes[first])[:, None], log_odds, -log_odds)
        subject = "mean evidence for the true class" if row is None else f"spectrum {row}"
        above, below = (values[labels == classes[code]].mean(axis=0) for code in (first, second))
        display = cls(mz, above, below, log_odds.mean(axis=0), str(classes[first]), str(classes[second]), subject)
        return display.plot()

    def _draw(self, upper: Axes, lower: Axes) -> None:
        self._draw_spectra(upper)
        self._draw_evidence(lower)

    def _draw_spectra(self, ax: Axes) -> None:
        as_pixels = len(self.mz) > MOST_POINTS
        for values, colour in ((self.above, BLUE), (-self.below, ORANGE)):
            ax.fill_between(self.mz, values, color=colour, alpha=0.25, linewidth=0, rasterized=as_pixels)
            ax.plot(self.mz, values, color=colour, linewidth=0.7, rasterized=as_pixels)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        ax.set_ylabel("mean intensity")
        ax.text(0.99, 0.96, self.of, color=BLUE, transform=ax.transAxes, ha="right", va="top")
        ax.text(0.99, 0.04, self.against, color=ORANGE, transform=ax.transAxes, ha="right", va="bottom")
        without_frame(ax)

    def _draw_evidence(self, ax: Axes) -> None:
        min_width = (self.mz[-1] - self.mz[0]) / 250  # keeps the bars of sharp peaks visible
        edges = [self.mz[self._region == peak][[0, -1]] for peak in range(len(self.peaks_))]
        widths = [max(float(high - low), min_width) for low, high in edges]
        colours = [BLUE if value >= 0 else ORANGE for value in self.evidence_]
        ax.bar(self.peaks_, self.evidence_, widths, color=colours, linewidth=0)
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.margins(y=0.18)
        label_peaks(ax, self.peaks_, self.evidence_, self.mz[-1] - self.mz[0])
        is_mean = self.subject.startswith("mean")
        ax.set(xlabel=self.axis, ylabel="log odds" if is_mean else f"log odds\n← {self.against}    {self.of} →")
        ax.set_title(f"{self.subject}; between the peaks {self.between_:+.2f}", fontsize=9, color=INK, loc="left")
        without_frame(ax)


def label_peaks(ax: Axes, peaks: Floats, heights: Floats, across: float) -> None:
    """Label the strongest peaks with their positions, beyond the bars beside them, and no two labels on each other.

    ``across`` is the length of the horizontal axis, whose ticks are set as many as there is room for.
    """
    width = ax.get_window_extent().width * 72 / ax.figure.dpi  # points
    ax.locator_params(axis="x", nbins=int(np.clip(width / TICK, 3, 9)))
    distance, named = across * LABEL / width, list[float]()
    for peak in np.argsort(-np.abs(heights), kind="stable").tolist():
        at, height = float(peaks[peak]), float(heights[peak])
        if len(named) == MOST_LABELS or height == 0 or any(abs(at - other) <= distance for other in named):
            continue
        named.append(at)
        beside = heights[np.abs(peaks - at) < distance / 2]
        top, shift, side = (beside.max(), 3, "bottom") if height > 0 else (beside.min(), -3, "top")
        look: dict[str, Any] = {"ha": "center", "va": side, "fontsize": 8, "color": INK}
        ax.annotate(f"{at:.0f}", (at, float(top)), (0, shift), textcoords="offset points", **look)
