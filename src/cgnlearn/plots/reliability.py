"""Predicted probabilities and observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.calibration_curve import CalibrationCurve, calibration_curve
from cgnlearn.evaluation.metrics import N_BINS, Reliability, bin_of, reliability
from cgnlearn.plots.style import GREY, LINES, MARKERS, Display, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cgnlearn.evaluation.validation import Validation


N_BARS = 20  # of the histograms
MOST_BANDS = 2  # more would hide each other


class ReliabilityLine(NamedTuple):
    """What a reliability diagram shows of one event."""

    bins: Reliability
    curve: CalibrationCurve
    happened: NDArray[np.intp]  # number of samples by bar, where the event happened
    others: NDArray[np.intp]  # and where it did not

    @classmethod
    def of(cls, probability: Floats, happened: NDArray[np.bool_], n_bins: int) -> ReliabilityLine:
        """The line of the probabilities of an event."""
        counts = (np.bincount(bin_of(probability[of], N_BARS), minlength=N_BARS) for of in (happened, ~happened))
        bins = reliability(probability, happened, n_bins)
        return cls(bins, calibration_curve(probability, happened), *counts)


class ReliabilityDisplay(Display):
    """Reliability diagram of a classifier with any number of classes.

    The line is a smooth curve of observed frequencies. The shaded band holds the whole curve of a perfectly calibrated
    classifier with these probabilities in 95% of cases: a curve that stays inside gives no reason to recalibrate.
    Points are means of bins. Below are the predicted probabilities, upwards where the event happened, downwards where
    it did not. Samples are taken to be independent: give each of them once. The axis begins at ``start``, as the
    predicted one of K classes has a probability of at least 1 / K.
    """

    def __init__(
        self, lines: Mapping[str, ReliabilityLine], xlabel: str, ylabel: str, start: float = 0.0, n_bins: int = N_BINS
    ) -> None:
        self.lines, self.xlabel, self.ylabel, self.start, self.n_bins = lines, xlabel, ylabel, start, n_bins
        self.colours: Sequence[str] = LINES
        self.outcome_colours: tuple[str, str] | None = None  # of the bars, where the event happened or not

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
        pos_label: Any = None,
        n_bins: int = N_BINS,
        name: str = "classifier",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the diagram of predicted probabilities.

        Parameters
        ----------
        y_true : array (samples,)
        y_proba : array (samples, classes), or a mapping from names to such arrays
            With ``pos_label`` also (samples,), the probability of that class.
        classes : array, optional
            Classes of the columns of ``y_proba``; None: the sorted distinct values of ``y_true``.
        per_class : bool
            One line for the probability of each class, instead of one for that of the predicted class.
        pos_label : optional
            One line for the probability of this class, instead of one for that of the predicted class.
        n_bins : int
        name : str
            Name of a single ``y_proba``.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> display = ReliabilityDisplay.from_predictions(["a", "b", "b"], [[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
        >>> display.lines["classifier"].bins.n
        array([1, 1, 1])
        """
        labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        truth = np.asarray(y_true)
        if pos_label is not None and pos_label not in labels:
            raise ValueError(f"pos_label {pos_label!r} is not a class: the classes are {', '.join(map(str, labels))}")
        many: dict[str, Any] = dict(y_proba) if isinstance(y_proba, Mapping) else {name: y_proba}
        lines: dict[str, ReliabilityLine] = {}
        for title, values in many.items():
            proba = np.asarray(values, dtype=float)
            if pos_label is not None and proba.shape == (len(truth),):
                lines[title] = ReliabilityLine.of(proba, truth == pos_label, n_bins)
                continue
            if proba.shape != (len(truth), len(labels)):
                raise ValueError(f"y_proba must have {len(truth)} samples and {len(labels)} classes, not {proba.shape}")
            if pos_label is not None:
                of = proba[:, labels.tolist().index(pos_label)]
                lines[title] = ReliabilityLine.of(of, truth == pos_label, n_bins)
            elif per_class:
                for i, label in enumerate(labels.tolist()):
                    key = f"{label}" if len(many) == 1 else f"{title}: {label}"
                    lines[key] = ReliabilityLine.of(proba[:, i], truth == label, n_bins)
            else:
                is_right = labels[proba.argmax(axis=1)] == truth
                lines[title] = ReliabilityLine.of(proba.max(axis=1), is_right, n_bins)
        event, frequency = ("the class", "frequency") if per_class else ("the predicted class", "accuracy")
        if pos_label is not None:
            event, frequency = str(pos_label), "frequency"
        start = 0.0 if per_class or pos_label is not None else 1 / len(labels)
        return cls(lines, f"Probability of {event}", f"Observed {frequency}", start, n_bins).plot(ax)

    @classmethod
    def from_validation(cls, validation: Validation, *, name: str = "model", ax: Axes | None = None) -> Self:
        """Draw the diagram of a validation: of its positive class, or a line for each class."""
        truth, proba = np.array(validation.classes)[validation.true], np.exp(validation.log_proba)
        options: dict[str, Any] = {"classes": validation.classes, "name": name, "ax": ax}
        if validation.positive is None:
            return cls.from_predictions(truth, proba, per_class=True, **options)
        return cls.from_predictions(truth, proba, pos_label=validation.positive, **options)

    def _size(self) -> tuple[float, float]:
        return 5.2, 5.6

    def _draw(self, ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="perfect calibration")
        shaded = list(self.lines.items())[:MOST_BANDS]
        for i, (_, line) in enumerate(shaded):
            at, _, low, high = line.curve
            ax.fill_between(at, low, high, color=self.colours[i % len(self.colours)], alpha=0.14, linewidth=0)
        for i, (name, line) in enumerate(self.lines.items()):
            colour = self.colours[i % len(self.colours)]
            ax.plot(line.curve.at, line.curve.observed, color=colour, linewidth=1.8, label=name, zorder=3)
            look: dict[str, Any] = {"color": colour, "marker": MARKERS[i % len(MARKERS)], "alpha": 0.6, "linewidths": 0}
            n = line.bins.n
            ax.scatter(line.bins.predicted, line.bins.observed, 10 + 90 * n / n.sum(), zorder=2, **look)
        first = np.floor(self.start * self.n_bins) / self.n_bins  # start of the first bin
        margin = 0.03 * (1 - first)
        ax.set(xlim=(first - margin, 1 + margin), ylim=(-0.45, 1.03), xlabel=self.xlabel)
        ax.set_yticks(np.linspace(0, 1, 6))
        ax.set_ylabel(self.ylabel, y=0.65)
        ax.axhline(-0.03, color=GREY, linewidth=0.8)
        without_frame(ax)
        ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0)  # outside
        self._draw_histogram(ax.inset_axes((0, 0, 1, 0.25), sharex=ax))

    def _draw_histogram(self, ax: Axes) -> None:
        width = 0.9 / N_BARS / len(self.lines)
        for i, line in enumerate(self.lines.values()):
            left = (np.arange(N_BARS) + 0.05) / N_BARS + i * width
            total = (line.happened + line.others).sum() / 100
            own = self.outcome_colours or (self.colours[i % len(self.colours)],) * 2
            for counts, colour in zip((line.happened, -line.others), own, strict=True):
                shown = counts != 0
                ax.bar(left[shown], counts[shown] / total, width, align="edge", color=colour, linewidth=0)
        ax.axhline(0, color=GREY, linewidth=0.6)
        ends = [
            (line.happened.max(), line.others.max(), (line.happened + line.others).sum())
            for line in self.lines.values()
        ]
        up, down = (max(100 * end[i] / end[2] for end in ends) for i in (0, 1))
        space = (up + down) / 3  # a fifth of the height for the words above and below
        ax.set_ylim(-down - space, up + space)
        ax.set_axis_off()
        for y, side, words in (
            (0.97, "top", f"happened (bars up to {up:.0f}% of samples)"),
            (0.03, "bottom", f"did not (up to {down:.0f}%)"),
        ):
            ax.text(0.5, y, words, transform=ax.transAxes, fontsize="small", color=GREY, va=side, ha="center")
