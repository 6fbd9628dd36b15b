"""Which of many ordered columns differ between the classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgnlearn.plots.style import BLUE, GREY, MOST_POINTS, TwoPanels, draw_along, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRIOR = 2 / 3  # two of the three kinds of regression depend on the class


class RelevanceDisplay(TwoPanels):
    """Posterior probability that each column depends on the class, and below it the mean order of its regression.

    Parameters
    ----------
    relevance : array (columns,)
    mean_order : array (columns,)
        Posterior mean of the number of preceding columns that a column depends on.
    positions : array (columns,)
        Position of each column along an axis, such as m/z.
    axis : str
        Label of the positions.
    """

    _size, _heights = (8.0, 4.4), (2, 1)

    def __init__(self, relevance: ArrayLike, mean_order: ArrayLike, positions: ArrayLike, axis: str = "m/z") -> None:
        self.relevance = np.asarray(relevance, dtype=float)
        self.mean_order = np.asarray(mean_order, dtype=float)
        self.positions = np.asarray(positions, dtype=float)
        self.axis = axis

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        positions: ArrayLike | None = None,
        axis: str | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the relevance of a classifier with the structure `BandAverage`.

        Parameters
        ----------
        estimator : CGNClassifier
            Fitted with ``BandAverage()``.
        positions : array (columns,), optional
            Position of each column along an axis; None: the columns' names if they are numbers, else their indices.
        axis : str, optional
            Label of the positions; None: ``"m/z"``, or ``"column"`` for indices.
        axes : two matplotlib axes, optional

        Examples
        --------
        >>> from cgnlearn import BandAverage, CGNClassifier
        >>> from cgnlearn.datasets import make_spectra
        >>> spectra = make_spectra(80, 60, random_state=0)
        >>> model = CGNClassifier(BandAverage(k_max=5)).fit(spectra.data, spectra.target)
        >>> RelevanceDisplay.from_estimator(model, positions=spectra.mz).axis
        'm/z'
        """
        probability = estimator.order_probability_
        if positions is None:
            positions = _numbers(getattr(estimator, "feature_names_in_", []))
        if positions is None:
            positions, axis = np.arange(len(probability)), axis or "column"
        mean_order = probability @ np.arange(probability.shape[1])
        return cls(estimator.inclusion_probability_, mean_order, positions, axis or "m/z").plot(axes)

    def _draw(self, upper: Axes, lower: Axes) -> None:
        draw_along(upper, self.positions, self.relevance)
        upper.axhline(PRIOR, color=GREY, linewidth=0.8, linestyle="--", label="prior")
        upper.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
        upper.set(ylabel="p(depends on class)", ylim=(0, 1.02))
        as_pixels = len(self.positions) > MOST_POINTS
        lower.step(self.positions, self.mean_order, where="mid", color=BLUE, linewidth=0.8, rasterized=as_pixels)
        lower.set(ylabel="mean order", xlabel=self.axis, ylim=(0, None))
        without_frame(lower)


def _numbers(names: Sequence[str] | NDArray[Any]) -> NDArray[np.float64] | None:
    """The names as numbers, if all are finite numbers."""
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None
