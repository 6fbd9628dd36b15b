"""Accuracy and log loss along a sequence of structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cgnlearn.evaluation.metrics import ACCURACY, LOG_LOSS
from cgnlearn.networks.densities import normalised
from cgnlearn.plots.style import GREY, LINES, MARKERS, TwoPanels, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Path(NamedTuple):
    """Accuracy and log loss of each structure of a sequence; ``x`` is its order or number of parameters."""

    x: NDArray[np.intp]
    accuracy: NDArray[np.float64]
    log_loss: NDArray[np.float64]


class PathDisplay(TwoPanels):
    """Accuracy and log loss against the number of parameters, or the order k, one above the other.

    Examples
    --------
    >>> from cgnlearn import Band, CGNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = PathDisplay.from_estimator(CGNClassifier(Band("cv", k_max=3)).fit(X, y))
    >>> len(display.axes_)
    2
    """

    _size = 6.4, 5.6

    def __init__(self, paths: Mapping[str, Path], xlabel: str, xscale: Literal["linear", "log"]) -> None:
        self.paths, self.xlabel, self.xscale = paths, xlabel, xscale

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Sequence[Axes] | None = None) -> Self:
        """Draw the inner cross-validation of a classifier with ``Band(k="cv")`` or ``Box(k="cv")`` on two axes.

        The points are the scores of each k at its best likelihood power.
        """
        results = getattr(estimator, "cv_results_", {})
        if "param_k" not in results:
            raise ValueError('the classifier did not choose its k: fit it with Band(k="cv") or Box(k="cv")')
        orders = np.unique(results["param_k"])
        loss = results["mean_test_log_loss"]
        best = [int(np.argmin(np.where(results["param_k"] == k, loss, np.inf))) for k in orders]
        path = Path(orders, results["mean_test_accuracy"][best], loss[best])
        return cls({"inner cross-validation": path}, "order k", "linear").plot(axes)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        log_joint: ArrayLike,
        n_parameters: ArrayLike,
        *,
        names: Sequence[str],
        classes: ArrayLike | None = None,
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the result of `ordered_path`.

        Parameters
        ----------
        y_true : array (samples,)
        log_joint : array (families, orders, samples, classes)
            Log joint probabilities, or log probabilities.
        n_parameters : array (families, orders)
        names : sequence of str
            Names of the families.
        classes : array, optional
            Classes along the last axis of ``log_joint``; None: the sorted distinct values of ``y_true``.
        axes : two matplotlib axes, optional
        """
        joint = np.asarray(log_joint, dtype=float)
        numbers = np.asarray(n_parameters)
        labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        if joint.ndim != 4 or joint.shape[2:] != (len(np.asarray(y_true)), len(labels)):
            raise ValueError(f"log_joint must be families × orders × samples × classes, not of shape {joint.shape}")
        if numbers.shape != joint.shape[:2] or len(names) != len(joint):
            raise ValueError("n_parameters must be families × orders, and names one per family, as in log_joint")
        true = np.searchsorted(labels, np.asarray(y_true))
        paths = {
            name: Path(number, *(np.array([metric(part, true) for part in family]) for metric in (ACCURACY, LOG_LOSS)))
            for name, number, family in zip(names, numbers, normalised(joint), strict=True)
        }
        return cls(paths, "number of parameters", "log").plot(axes)

    def _draw(self, upper: Axes, lower: Axes) -> None:
        from matplotlib.ticker import LogLocator, NullFormatter

        for i, (name, path) in enumerate(self.paths.items()):
            style: dict[str, Any] = {"color": LINES[i % len(LINES)], "marker": MARKERS[i % len(MARKERS)]}
            style |= {"markersize": 3.5, "linewidth": 1.4}
            upper.plot(path.x, path.accuracy, label=name, **style)
            lower.plot(path.x, path.log_loss, label=name, **style)
        upper.set_ylabel("accuracy")
        lower.set(ylabel="log loss", xlabel=self.xlabel, xscale=self.xscale)
        for ax in (upper, lower):
            ax.grid(color=GREY, alpha=0.2)
            without_frame(ax)
        if self.xscale == "linear":
            lower.locator_params(axis="x", integer=True)
        else:
            lower.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            lower.xaxis.set_major_formatter("{x:,.0f}")
            lower.xaxis.set_minor_formatter(NullFormatter())
        upper.legend(frameon=False)
