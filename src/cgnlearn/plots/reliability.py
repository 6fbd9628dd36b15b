"""Predicted probabilities and observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.evaluation.estimates import wilson
from cgnlearn.evaluation.metrics import N_BINS, Reliability, bin_of, reliability
from cgnlearn.plots.style import GREY, LINES, MARKERS, Display, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay(Display):
    """Reliability diagram of a classifier with any number of classes, with a histogram of predicted probabilities.

    Points on the diagonal are calibrated. Bars are 95% confidence intervals (Wilson) of the frequency. The axis begins
    at ``start``, as the predicted one of K classes has a probability of at least 1 / K.
    """

    def __init__(
        self, lines: Mapping[str, Reliability], xlabel: str, ylabel: str, start: float = 0.0, n_bins: int = N_BINS
    ) -> None:
        self.lines, self.xlabel, self.ylabel, self.start, self.n_bins = lines, xlabel, ylabel, start, n_bins

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the diagram of a fitted classifier for held-out samples; options as in `from_predictions`."""
        options.setdefault("name", type(estimator).__name__)
        return cls.from_predictions(y, estimator.predict_proba(X), classes=estimator.classes_, ax=ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        classes: ArrayLike | None = None,
        per_class: bool = False,
        n_bins: int = N_BINS,
        name: str = "classifier",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the diagram of predicted probabilities.

        Parameters
        ----------
        y_true : array (samples,)
        y_proba : array (samples, classes), or a mapping from names to such arrays
        classes : array, optional
            Classes of the columns of ``y_proba``; None: the sorted distinct values of ``y_true``.
        per_class : bool
            One line for the probability of each class, instead of one for that of the predicted class.
        n_bins : int
        name : str
            Name of a single ``y_proba``.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> display = ReliabilityDisplay.from_predictions(["a", "b", "b"], [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
        >>> display.lines["classifier"].n
        array([1, 1, 1])
        """
        labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        truth = np.asarray(y_true)
        many: dict[str, Any] = dict(y_proba) if isinstance(y_proba, Mapping) else {name: y_proba}
        lines: dict[str, Reliability] = {}
        for title, values in many.items():
            proba = np.asarray(values, dtype=float)
            if proba.shape != (len(truth), len(labels)):
                raise ValueError(f"y_proba must have {len(truth)} samples and {len(labels)} classes, not {proba.shape}")
            if per_class:
                for i, label in enumerate(labels.tolist()):
                    key = f"{label}" if len(many) == 1 else f"{title}: {label}"
                    lines[key] = reliability(proba[:, i], truth == label, n_bins)
            else:
                lines[title] = reliability(proba.max(axis=1), labels[proba.argmax(axis=1)] == truth, n_bins)
        event, frequency = ("the class", "frequency") if per_class else ("the predicted class", "accuracy")
        start = 0.0 if per_class else 1 / len(labels)
        return cls(lines, f"Probability of {event}", f"Observed {frequency}", start, n_bins).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 5.2, 5.2

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="perfect calibration")
        for i, (name, line) in enumerate(self.lines.items()):
            colour = LINES[i % len(LINES)]
            low, high = wilson(line.observed, line.n.astype(float))
            error = np.maximum([line.observed - low, high - line.observed], 0.0)
            ax.errorbar(line.predicted, line.observed, error, fmt="none", ecolor=colour, alpha=0.35, linewidth=1.2)
            ax.plot(line.predicted, line.observed, color=colour, linewidth=1, alpha=0.35)
            look: dict[str, Any] = {"color": colour, "marker": MARKERS[i % len(MARKERS)], "zorder": 3, "linewidths": 0}
            ax.scatter(line.predicted, line.observed, 18 + 160 * line.n / line.n.sum(), label=name, **look)
        first = np.floor(self.start * self.n_bins) / self.n_bins  # start of the first bin
        margin = 0.03 * (1 - first)
        ax.set(xlim=(first - margin, 1 + margin), ylim=(-0.4, 1.03), xlabel=self.xlabel)
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.set_ylabel(self.ylabel, y=0.64)
        ax.axhline(-0.03, color=GREY, linewidth=0.8)
        without_frame(ax)
        legend = ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0)  # outside
        for handle in legend.legend_handles[1:]:
            handle.set_sizes([30])  # type: ignore[union-attr]
        self._draw_histogram(ax.inset_axes((0, 0, 1, 0.22), sharex=ax))

    def _draw_histogram(self, ax: Axes) -> None:
        width = 0.9 / self.n_bins / len(self.lines)
        for i, line in enumerate(self.lines.values()):
            left = (bin_of(line.predicted, self.n_bins) + 0.05) / self.n_bins + i * width
            ax.bar(left, 100 * line.n / line.n.sum(), width, align="edge", color=LINES[i % len(LINES)], linewidth=0)
        ax.margins(y=0)
        ax.set_axis_off()
        highest = max(int(line.n.max() * 100 / line.n.sum() + 0.5) for line in self.lines.values())
        label = f"share of samples (up to {highest}%)"
        ax.text(0, 1, label, transform=ax.transAxes, fontsize="small", color=GREY, va="top")
