"""Features: their contributions to the log odds of a sample, and the probability that they depend on the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.plots.style import BLUE, GREY, MOST_POINTS, ORANGE, Display, TwoPanels, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 20
PRIOR = 2 / 3  # of relevance: two of the three kinds of regression depend on the class


class ContributionsDisplay(Display):
    """Contribution of each feature to the log odds of two classes: bars, or a line along m/z over the spectrum.

    Parameters
    ----------
    log_odds : array (features,)
        Positive values favour the class ``of``.
    names : sequence of str
    of, against : str
        The two classes.
    prior_log_odds : float
        Log odds of the prior probabilities of the classes.
    positions : array (features,), optional
        Position of each feature along an axis, such as m/z; if given, a line is drawn.
    values : array (features,), optional
        The sample itself, drawn behind the line.
    axis : str
        Label of the positions.
    """

    def __init__(
        self,
        log_odds: ArrayLike,
        names: Sequence[str],
        of: str,
        against: str,
        prior_log_odds: float = 0.0,
        positions: ArrayLike | None = None,
        values: ArrayLike | None = None,
        axis: str = "m/z",
    ) -> None:
        self.log_odds = np.asarray(log_odds, dtype=float)
        self.names, self.of, self.against, self.axis = list(names), of, against, axis
        self.prior_log_odds = prior_log_odds
        self.positions, self.values = (
            None if given is None else np.asarray(given, dtype=float) for given in (positions, values)
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        row: int = 0,
        *,
        of: Any = None,
        against: Any = None,
        positions: ArrayLike | None = None,
        axis: str = "m/z",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the contributions of a fitted classifier to its prediction for one sample.

        Parameters
        ----------
        estimator : CGNClassifier
        X : array or data frame
        row : int
            Index of the sample in X.
        of, against : class labels, optional
            None: the most probable class and the second most probable.
        positions, axis
            As in `ContributionsDisplay`.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> display = ContributionsDisplay.from_estimator(CGNClassifier().fit(X, y), X, row=60)
        >>> display.of, display.against
        ('1', '2')
        """
        one = _safe_indexing(X, [row])
        joint = estimator.predict_joint_log_proba(one)[0]
        classes = estimator.classes_.tolist()
        first = int(np.argmax(joint)) if of is None else classes.index(of)
        others = np.where(np.arange(len(classes)) == first, -np.inf, joint)
        second = int(np.argmax(others)) if against is None else classes.index(against)
        parts = estimator.contributions(one)[0]
        prior = estimator.class_log_prior_
        names = [str(name) for name in getattr(estimator, "feature_names_in_", range(len(parts)))]
        values = None if positions is None else np.asarray(one, dtype=float)[0]
        log_odds = estimator.likelihood_power_ * (parts[:, first] - parts[:, second])
        two, before = (str(classes[first]), str(classes[second])), float(prior[first] - prior[second])
        return cls(log_odds, names, *two, before, positions, values, axis).plot(ax)

    def _size(self) -> tuple[float, float]:
        return (6.4, 1.2 + 0.26 * min(len(self.names) + 1, MOST_BARS + 2)) if self.positions is None else (8.0, 3.4)

    def _draw(self, ax: Axes) -> None:
        label = f"log odds   ← {self.against}    {self.of} →"
        if self.positions is None:
            self._draw_bars(ax)
            ax.set_xlabel(label)
            return
        if self.values is not None:
            behind = ax.twinx()
            look: dict[str, Any] = {"color": GREY, "alpha": 0.25, "linewidth": 0}
            behind.fill_between(self.positions, self.values, rasterized=len(self.positions) > MOST_POINTS, **look)
            behind.set_ylabel("intensity", color=GREY)
            behind.tick_params(colors=GREY)
            behind.spines[["top", "left"]].set_visible(False)
            ax.set_zorder(behind.get_zorder() + 1)
            ax.patch.set_visible(False)
        _draw_along(ax, self.positions, self.log_odds)
        ax.set(xlabel=self.axis, ylabel=label)

    def _draw_bars(self, ax: Axes) -> None:
        """Horizontal bars, the largest contribution on top."""
        order = np.argsort(-np.abs(self.log_odds), kind="stable")
        shown, rest = order[:MOST_BARS], order[MOST_BARS:]
        bars = [(self.names[i], float(self.log_odds[i])) for i in shown]
        if len(rest):
            bars.append((f"{len(rest)} others", float(self.log_odds[rest].sum())))
        names, values = zip(*bars, ("class prior", self.prior_log_odds), strict=True)
        ax.barh(range(len(names)), values, color=[BLUE if value >= 0 else ORANGE for value in values], height=0.72)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.axvline(0, color=GREY, linewidth=0.8)
        without_frame(ax)


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
        columns = (np.asarray(given, dtype=float) for given in (relevance, mean_order, positions))
        self.relevance, self.mean_order, self.positions = columns
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
        _draw_along(upper, self.positions, self.relevance)
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


def _draw_along(ax: Axes, positions: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Draw values along an axis, positive ones above the line."""
    for side, colour in ((np.maximum(values, 0), BLUE), (np.minimum(values, 0), ORANGE)):
        as_pixels = len(positions) > MOST_POINTS
        ax.fill_between(positions, side, color=colour, linewidth=0.6, step="mid", rasterized=as_pixels)
    ax.axhline(0, color=GREY, linewidth=0.8)
    without_frame(ax)
