"""Effect curves: the log odds of a class against the value of one feature, with all others integrated out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import MISSING
from cgnlearn.data.table import Table, to_training_type
from cgnlearn.estimators.explanation import column_of
from cgnlearn.networks.densities import normalised
from cgnlearn.networks.uncertainty import NoPosteriorError
from cgnlearn.plots.style import GREY, INK, LINES, Display, needs, new_axes, without_frame, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_POINTS = 121
RANGE = 0.05  # by which a curve goes beyond the values, relative to their range
MOST_RUG = 400  # values that are drawn
MOST_PANELS = 12
MOST_BANDS = 3  # curves, above which intervals would hide each other
MOST_ACROSS = 8  # names in a line of a legend
LETTER = 5.2  # points, of a letter below a level
LEAST_PROBABILITY = 1e-12  # in the ends of an interval
MOST_LOG_ODDS = 12.0  # that are in view


class EffectDisplay(Display):
    """Log odds of each class against all others, given one feature and nothing else.

    The curve says what the model would predict if this were the only feature that had been measured. Effects of
    dependent features overlap: their sum is not the effect of all.

    Parameters
    ----------
    values : array (points,) or sequence of levels
        Values of the feature.
    log_odds : array (points, curves)
    classes : sequence of str
        The class of each curve.
    name : str
        The feature.
    prior_log_odds : array (curves,)
        Log odds without the feature.
    interval : array (points, curves, 2), optional
        Credible interval of the log odds.
    rug : array (samples,), optional
        Observed values, drawn as ticks; of a discrete feature their counts: (levels,).
    """

    def __init__(
        self,
        values: ArrayLike | Sequence[Any],
        log_odds: ArrayLike,
        classes: Sequence[str],
        name: str,
        prior_log_odds: ArrayLike,
        interval: ArrayLike | None = None,
        rug: ArrayLike | None = None,
    ) -> None:
        self.values = np.asarray(values)
        self.log_odds, self.prior_log_odds = (np.asarray(given, dtype=float) for given in (log_odds, prior_log_odds))
        self.classes, self.name, self.title = list(classes), name, ""
        self.interval, self.rug = (
            None if given is None else np.asarray(given, dtype=float) for given in (interval, rug)
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, feature: Any, *, of: Any = None, level: float = 0.9, ax: Axes | None = None
    ) -> Self:
        """Draw the effect of a feature on the predictions of a fitted classifier.

        Parameters
        ----------
        estimator : CGNClassifier or CGNClassifierCV
            One that accepts missing values.
        X : array or data frame
            Samples, such as those of training, whose values give the range and are drawn as ticks.
        feature : name or index of a column
        of : class label, optional
            The class whose log odds are drawn; None: the second one of two classes, or all of more.
        level : float
            Level of the credible interval.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from cgnlearn import CGNClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> display = EffectDisplay.from_estimator(CGNClassifier("tan").fit(X, y), X, "petal width (cm)")
        >>> display.classes, display.log_odds.shape
        (['0', '1', '2'], (121, 3))
        """
        needs(estimator, "shapley", "effects of features")
        return cls._of(estimator, estimator._table(X), feature, of, level).plot(ax)

    @classmethod
    def panel(
        cls, estimator: Any, X: Any, y: Any, *, of: Any = None, level: float = 0.9, most: int = MOST_PANELS
    ) -> list[Self]:
        """Draw the effects of all features in one figure, the most important first.

        Importance is the rise of the log loss of the given samples if the feature is integrated out, which stands above
        each curve with its 95% confidence interval.

        Parameters
        ----------
        estimator, X, of, level
            As in `from_estimator`; samples that were not trained on tell what matters for new ones.
        y : array (samples,)
        most : int
            Number of features that are drawn.
        """
        needs(estimator, "shapley", "effects of features")
        importance, table = estimator.feature_importance(X, y), estimator._table(X)
        order = np.argsort(-importance.increase, kind="stable")[:most].tolist()
        n_columns = min(3, len(order))
        n_rows = -(-len(order) // n_columns)
        size = (3.4 * n_columns, 2.6 * n_rows)
        axes = np.ravel(new_axes(None, nrows=n_rows, ncols=n_columns, figsize=size, sharey=True))
        found = []
        for column, ax in zip(order, axes, strict=False):
            display = cls._of(estimator, table, column, of, level)
            value, low, high = (part[column] for part in importance)
            display.title = f"{value:+.3f} nats ({low:+.3f} to {high:+.3f})"
            found.append(display.plot(ax))
        share_view(found, axes, n_columns)
        return found

    @classmethod
    def _of(
        cls,
        estimator: Any,
        table: Table,
        feature: Any,
        of: Any = None,
        level: float = 0.9,
        grid: Floats | None = None,
    ) -> Self:
        """The effect that `from_estimator` draws; ``grid`` are values of a feature of numbers, None: over its range."""
        estimator._check_integrates("an effect")
        schema, classes = table.schema, estimator.classes_.tolist()
        column = column_of(feature, schema)
        if of is not None and of not in classes:
            raise ValueError(f"{of!r} is none of the classes {classes}")
        curves = [classes.index(of)] if of is not None else [1] if len(classes) == 2 else list(range(len(classes)))
        values, cells, rug = _places(table, column, grid)
        alone = _alone(table, column, cells)
        log_odds = _log_odds(normalised(estimator._log_scores(alone)))[:, curves]
        prior = _log_odds(estimator.class_log_prior_[None])[0, curves]
        interval = None
        with suppress(NoPosteriorError):
            low_and_high = estimator.predict_interval(to_training_type(alone), level)[:, curves]
            ends = logit(np.clip(low_and_high, LEAST_PROBABILITY, 1 - LEAST_PROBABILITY))
            interval = np.stack([np.minimum(ends[..., 0], log_odds), np.maximum(ends[..., 1], log_odds)], axis=-1)
        name = str(column) if schema.names is None else schema.names[column]
        return cls(values, log_odds, [str(classes[i]) for i in curves], name, prior, interval, rug)

    @property
    def is_discrete(self) -> bool:
        """Whether the values are levels."""
        return self.values.dtype.kind not in "fiu"

    def _size(self) -> tuple[float, float]:
        return 5.2, 3.6

    def _draw(self, ax: Axes) -> None:
        at = np.arange(len(self.values)) if self.is_discrete else self.values
        colours = [LINES[i % len(LINES)] for i in range(len(self.classes))]
        for curve, (label, colour) in enumerate(zip(self.classes, colours, strict=True)):
            odds = self.log_odds[:, curve]
            shift = 0.12 * (curve - (len(self.classes) - 1) / 2) if self.is_discrete else 0.0
            if self.interval is not None and len(self.classes) <= MOST_BANDS:
                low, high = self.interval[:, curve].T
                if self.is_discrete:
                    ax.vlines(at + shift, low, high, color=colour, linewidth=1.2, alpha=0.6)
                else:
                    ax.fill_between(at, low, high, color=colour, alpha=0.18, linewidth=0)
            look: dict[str, Any] = {"marker": "o", "linestyle": "none"} if self.is_discrete else {"linewidth": 1.6}
            ax.plot(at + shift, odds, color=colour, label=label, **look)
            ax.axhline(self.prior_log_odds[curve], color=colour, linewidth=0.8, linestyle=":")
        if self.is_discrete:
            counts = [""] * len(at) if self.rug is None else [f"\n(n = {n:.0f})" for n in self.rug]
            room = ax.get_window_extent().width * 72 / ax.figure.dpi / len(at)
            names = [wrapped(str(level), max(4, int(room / LETTER))) for level in self.values]
            ax.set_xticks(at, [name + n for name, n in zip(names, counts, strict=True)])
            ax.set_xlim(-0.5, len(at) - 0.5)
        elif self.rug is not None:
            transform = ax.get_xaxis_transform()
            ax.vlines(self.rug, 0, 0.035, transform=transform, color=INK, linewidth=0.5, alpha=0.35)
        one = f"log odds of {self.classes[0]}" if len(self.classes) == 1 else "log odds"
        ax.set(xlabel=self.name, ylabel=one)
        ax.axhline(0, color=GREY, linewidth=0.6)
        ax.set_ylim(*view_of([self]))
        if self.title:
            ax.set_title(self.title, fontsize=8, color=INK, loc="left")
        if len(self.classes) > 1:
            ax.legend(frameon=False, fontsize=8, loc="best")
        without_frame(ax)


def share_view(displays: Sequence[EffectDisplay], axes: Any, n_columns: int) -> None:
    """Give drawn effects that share a vertical axis one view, one legend and labels at the left only."""
    axes[0].set_ylim(*view_of(displays))
    for i, ax in enumerate(axes):
        if i >= len(displays):
            ax.set_visible(False)
        elif i % n_columns:
            ax.set_ylabel("")
        legend = ax.get_legend()
        if legend is not None:
            legend.remove()
    lines, names = axes[0].get_legend_handles_labels()
    if len(names) > 1:
        look: dict[str, Any] = {"frameon": False, "fontsize": 8, "loc": "outside upper left"}
        axes[0].figure.legend(lines, names, ncols=min(len(names), MOST_ACROSS), **look)


def view_of(displays: Sequence[EffectDisplay]) -> tuple[float, float]:
    """The log odds that are in view: all curves, and their bands as far as these leave half of it to the curves."""
    curves = [part for each in displays for part in (each.log_odds, each.prior_log_odds, np.zeros(1))]
    every = np.concatenate([np.ravel(part) for part in curves if part is not None])
    low, high = np.clip([every.min(), every.max()], -MOST_LOG_ODDS, MOST_LOG_ODDS)
    span = max(high - low, 1.0) / 2
    for band in (each.interval for each in displays if each.interval is not None):
        low, high = min(low, max(band.min(), every.min() - span)), max(high, min(band.max(), every.max() + span))
    low, high = np.clip([low, high], -MOST_LOG_ODDS, MOST_LOG_ODDS)
    return low - RANGE * (high - low) - 0.05, high + RANGE * (high - low) + 0.05


def _places(table: Table, column: int, grid: Floats | None) -> tuple[Any, Any, Floats]:
    """Values of a column at which the effect is computed, as they are shown and as cells, and what is observed."""
    schema, position = table.schema, table.schema.position[column]
    levels = schema.levels[column]
    if levels is not None:
        codes = table.codes[:, position]
        counts = np.bincount(codes[codes > MISSING], minlength=len(levels)).astype(float)
        return np.array([str(level) for level in levels], object), np.arange(len(levels)), counts
    observed = np.sort(table.values[~np.isnan(table.values[:, position]), position])
    if not len(observed):
        raise ValueError(f"{schema.name(column)} has no value in X: give samples that have some")
    if grid is None:
        low, high = observed[0], observed[-1]
        beyond = RANGE * (high - low) or max(abs(low), 1.0) * RANGE
        grid = np.linspace(low - beyond, high + beyond, N_POINTS)
    return grid, grid, observed[np.linspace(0, len(observed) - 1, min(len(observed), MOST_RUG)).astype(int)]


def _alone(table: Table, column: int, cells: Any) -> Table:
    """Samples of which nothing but a column is observed."""
    schema = table.schema
    values = np.full((len(cells), len(schema.continuous)), np.nan)
    codes = np.full((len(cells), len(schema.discrete)), MISSING, np.int32)
    (values if schema.levels[column] is None else codes)[:, schema.position[column]] = cells
    return replace(table, values=values, codes=codes, labels=None, weights=None)


def _log_odds(log_proba: Floats) -> Floats:
    """Log odds of each class against all others, from log probabilities."""
    others = [np.logaddexp.reduce(np.delete(log_proba, i, axis=1), axis=1) for i in range(log_proba.shape[1])]
    return log_proba - np.stack(others, axis=1)
