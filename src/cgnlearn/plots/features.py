"""Features: their contributions to the log odds of a sample, and the probability that they depend on the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing

from cgnlearn.data.arrays import Floats
from cgnlearn.data.frames import readable
from cgnlearn.plots.style import BLUE, GREY, INK, MOST_POINTS, ORANGE, Display, TwoPanels, needs, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 20
PRIOR = 2 / 3  # of relevance: two of the three kinds of regression depend on the class


def weighted_contributions(estimator: Any, X: Any) -> tuple[Floats, Floats]:
    """What each feature adds to the log joint density, (samples, features, classes), and the remainder of a mixture."""
    needs(estimator, "contributions", "the contributions of features")
    parts = estimator.contributions(X)
    if hasattr(estimator, "contributions_remainder"):  # its contributions have the powers of the members
        return parts, estimator.contributions_remainder(X)
    return estimator.likelihood_power_ * parts, np.zeros(parts[:, 0].shape)


def two_classes(estimator: Any, one: Any, of: Any, against: Any) -> tuple[int, int]:
    """Indexes of the named classes, or of the two most probable ones of a sample."""
    classes = estimator.classes_.tolist()
    for label in (label for label in (of, against) if label is not None and label not in classes):
        raise ValueError(f"{label!r} is none of the classes {classes}")
    log_proba = estimator.predict_log_proba(one)[0]
    first = int(np.argmax(log_proba)) if of is None else classes.index(of)
    others = np.where(np.arange(len(classes)) == first, -np.inf, log_proba)
    return first, int(np.argmax(others)) if against is None else classes.index(against)


class ContributionsDisplay(Display):
    """Contribution of each feature to the log odds of two classes: bars, or a line along m/z over the spectrum.

    As a waterfall, bars begin where the one above ends, from the log odds of the class prior to those of the sample.

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
    remainder : float
        What the contributions of a mixture lack of its log odds.
    waterfall : bool
        Whether bars are drawn as a waterfall.
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
        remainder: float = 0.0,
        waterfall: bool = False,
    ) -> None:
        self.log_odds = np.asarray(log_odds, dtype=float)
        self.names, self.of, self.against, self.axis = list(names), of, against, axis
        self.prior_log_odds, self.remainder, self.waterfall = prior_log_odds, remainder, waterfall
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
        method: Literal["chain", "shapley"] = "chain",
        groups: Mapping[str, Sequence[Any]] | None = None,
        positions: ArrayLike | None = None,
        axis: str = "m/z",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the contributions of a fitted classifier to its prediction for one sample.

        Parameters
        ----------
        estimator : CGNClassifier or CGNClassifierCV
        X : array or data frame
        row : int
            Index of the sample in X.
        of, against : class labels, optional
            None: the most probable class and the second most probable.
        method : {"chain", "shapley"}
            ``"chain"``: `contributions`, each given the features before it, as bars. ``"shapley"``: `shapley` values,
            which depend on no order, as a waterfall.
        groups : mapping from names to columns, optional
            Features that are taken as one, with ``method="shapley"``; those that no group names are "others".
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
        if method not in ("chain", "shapley"):
            raise ValueError(f'method must be "chain" or "shapley", not {method!r}')
        if groups is not None and (method == "chain" or positions is not None):
            raise ValueError('groups need method="shapley", and have no positions')
        one = readable(_safe_indexing(X, [row]))
        if method == "chain":
            (parts,), (remainder,) = weighted_contributions(estimator, one)
        else:
            needs(estimator, "shapley", "the contributions of features")
            (parts,) = estimator.shapley(one, groups)
            remainder = np.zeros(parts.shape[1])
        first, second = two_classes(estimator, one, of, against)
        listed = list(groups) if groups else getattr(estimator, "feature_names_in_", range(len(parts)))
        names = [str(name) for name in listed]
        names += ["others"] * (len(parts) - len(names))
        values = None if positions is None else np.asarray(one, dtype=float)[0]
        of, against = (str(estimator.classes_.tolist()[i]) for i in (first, second))
        of_features, before, rest = (
            part[..., first] - part[..., second] for part in (parts, estimator.class_log_prior_, remainder)
        )
        around = positions, values, axis, float(rest), method == "shapley"
        return cls(of_features, names, of, against, float(before), *around).plot(ax)

    def _size(self) -> tuple[float, float]:
        if self.positions is not None:
            return 8.0, 3.4
        return 6.4, 1.2 + 0.26 * min(len(self.names) + (3 if self.waterfall else 2), MOST_BARS + 3)

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
        if self.remainder:
            ax.set_title(f"remainder of the mixture {self.remainder:+.2f}", fontsize=9, color=INK, loc="left")

    def _draw_bars(self, ax: Axes) -> None:
        """Horizontal bars, the largest contribution on top."""
        order = np.argsort(-np.abs(self.log_odds), kind="stable")
        shown, rest = order[:MOST_BARS], order[MOST_BARS:]
        bars = [(self.names[i], float(self.log_odds[i])) for i in shown]
        if len(rest):
            bars.append((f"{len(rest)} others", float(self.log_odds[rest].sum())))
        if self.remainder:
            bars.append(("remainder of the mixture", self.remainder))
        if self.waterfall:
            self._draw_waterfall(ax, bars)
            return
        names, values = zip(*bars, ("class prior", self.prior_log_odds), strict=True)
        colours = [BLUE if value >= 0 else ORANGE for value in values]
        ax.barh(range(len(names)), values, color=colours, height=0.72)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.axvline(0, color=GREY, linewidth=0.8)
        without_frame(ax)

    def _draw_waterfall(self, ax: Axes, bars: list[tuple[str, float]]) -> None:
        """Bars that begin where the one above ends, from the class prior down to the sample."""
        names = ["class prior", *(name for name, _ in bars), "sample"]
        steps = np.array([self.prior_log_odds, *(value for _, value in bars)])
        ends = np.cumsum(steps)
        starts = ends - steps
        total = float(ends[-1])
        colours = [GREY, *(BLUE if value >= 0 else ORANGE for _, value in bars), INK]
        ax.barh(range(len(names)), [*steps, total], left=[*starts, 0.0], color=colours, height=0.72)
        for i, end in enumerate(ends):
            ax.plot([end, end], [i - 0.36, i + 1.36], color=GREY, linewidth=0.8)
        for i, (value, end) in enumerate(zip([*steps, total], [*ends, total], strict=True)):
            right = value >= 0
            offset = (3 if right else -3, 0)
            side = "left" if right else "right"
            look: dict[str, Any] = {"va": "center", "ha": side, "fontsize": 8, "color": INK}
            ax.annotate(f"{value:+.2f}", (end, i), xytext=offset, textcoords="offset points", **look)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        low, high = min(0.0, starts.min(), ends.min()), max(0.0, starts.max(), ends.max())
        beyond = 0.14 * (high - low)  # room for the numbers
        ax.set_xlim(low - beyond * (low < 0 or bool((steps < 0).any())), high + beyond)
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
        needs(estimator, "order_probability_", "relevance", "CGNClassifier(BandAverage())")
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
