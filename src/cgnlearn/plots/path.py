"""Accuracy and log likelihood along a family of structures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cgnlearn.evaluation import accuracy, cll
from cgnlearn.plots.style import GREY, LINES, MARKERS, new_axes, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Path(NamedTuple):
    """One line: a point for each member of a family of structures."""

    n_parameters: NDArray[np.intp]
    accuracy: NDArray[np.float64]
    cll: NDArray[np.float64]


class PathDisplay:
    """Accuracy and CLL per row against the number of parameters, one above the other.

    Parameters
    ----------
    paths : mapping of str to Path
    """

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = paths

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
        """Draw what `ordered_path` returns.

        Parameters
        ----------
        y_true : array (rows,)
        log_joint : array (families, orders, rows, classes)
            Log joint probabilities, or log probabilities.
        n_parameters : array (families, orders)
        names : sequence of str
            What the families are called.
        classes : array, optional
            The last axis of ``log_joint``; None: the sorted distinct values of ``y_true``.
        axes : two matplotlib axes, optional
        """
        joint = np.asarray(log_joint, dtype=float)
        numbers = np.asarray(n_parameters)
        labels = np.unique(np.asarray(y_true)) if classes is None else np.asarray(classes)
        if joint.ndim != 4 or joint.shape[2:] != (len(np.asarray(y_true)), len(labels)):
            raise ValueError(f"log_joint must be families × orders × rows × classes, not of the shape {joint.shape}")
        if numbers.shape != joint.shape[:2] or len(names) != len(joint):
            raise ValueError("n_parameters must be families × orders, and names one per family, as in log_joint")
        true = np.searchsorted(labels, np.asarray(y_true))
        log_proba = joint - logsumexp(joint, axis=-1, keepdims=True)
        paths = {
            name: Path(
                numbers[i],
                np.array([accuracy(part, true) for part in log_proba[i]]),
                np.array([cll(part, true) for part in log_proba[i]]),
            )
            for i, name in enumerate(names)
        }
        return cls(paths).plot(axes)

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : two matplotlib axes, optional
        """
        if axes is None:
            axes = new_axes(None, figsize=(6.4, 5.6), nrows=2, sharex=True)
        upper, lower = axes
        for i, (name, path) in enumerate(self.paths.items()):
            style: dict[str, Any] = {"color": LINES[i % len(LINES)], "marker": MARKERS[i % len(MARKERS)]}
            style |= {"markersize": 3.5, "linewidth": 1.4}
            upper.plot(path.n_parameters, path.accuracy, label=name, **style)
            lower.plot(path.n_parameters, path.cll, label=name, **style)
        upper.set_ylabel("accuracy")
        lower.set(ylabel="CLL per row", xlabel="number of parameters", xscale="log")
        for ax in axes:
            ax.grid(color=GREY, alpha=0.2)
            without_frame(ax)
        upper.legend(frameon=False)
        self.axes_, self.figure_ = list(axes), upper.figure
        return self
