"""Mean ranks of methods over many data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.evaluation.significance import critical_difference, mean_ranks
from cgnlearn.plots.style import BLUE, GREY, INK, Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RanksDisplay(Display):
    """Critical difference diagram (Demšar 2006): methods by mean rank, the best on the left.

    Methods joined by a bar do not differ significantly by Nemenyi's test at the 5% level.

    Parameters
    ----------
    ranks : array (methods,)
    names : sequence of str
    difference : float
        The critical difference of mean ranks.
    marked : str, optional
        The method drawn in colour.
    title : str

    Examples
    --------
    >>> accuracy = [[0.9, 0.8, 0.7], [0.9, 0.8, 0.8], [0.9, 0.6, 0.8]]  # data sets × methods
    >>> RanksDisplay.from_values(accuracy, ["a", "b", "c"]).ranks.round(1).tolist()
    [1.0, 2.5, 2.5]
    """

    def __init__(
        self, ranks: ArrayLike, names: Sequence[str], difference: float, marked: str | None = None, title: str = ""
    ) -> None:
        self.ranks = np.asarray(ranks, dtype=float)
        self.names, self.difference, self.marked, self.title = list(names), difference, marked, title

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        names: Sequence[str],
        *,
        marked: str | None = None,
        title: str = "",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the diagram of a score of methods on data sets.

        Parameters
        ----------
        values : array (data sets, methods)
            Scores, higher is better.
        names, marked, title
            As in `RanksDisplay`.
        ax : matplotlib axes, optional
        """
        scores = np.asarray(values, dtype=float)
        if scores.ndim != 2 or scores.shape[1] != len(names):
            raise ValueError(f"values must have {len(names)} columns, one for each name, not shape {scores.shape}")
        if len(names) < 2:
            raise ValueError("ranks need at least two methods")
        return cls(mean_ranks(scores), names, critical_difference(len(names), len(scores)), marked, title).plot(ax)

    @property
    def alike(self) -> list[tuple[float, float]]:
        """The ranges of mean ranks without significant differences: the bars, none inside another."""
        ranks = np.sort(self.ranks)
        ranges: list[tuple[float, float]] = []
        for low in ranks:
            high = float(ranks[ranks <= low + self.difference].max())
            if high > low and (not ranges or high > ranges[-1][1]):
                ranges.append((float(low), high))
        return ranges

    def _size(self) -> tuple[float, float]:
        return 8.4, 1.1 + 0.24 * ((len(self.names) + 1) // 2) + 0.14 * len(self.alike)

    def _draw(self, ax: Axes) -> None:
        n = len(self.names)
        order = np.argsort(self.ranks, kind="stable")
        n_left = (n + 1) // 2
        bars = self.alike
        below = 0.35 * len(bars) + 0.5  # start of the names
        longest = max(len(name) for name in self.names)
        margin = n * (longest + 6) / 46  # about the width of the names beside a line of half the figure
        ax.set(xlim=(1 - margin, n + margin), ylim=(below + n_left + 0.2, -2.4))
        ax.axis("off")
        ax.plot([1, n], [0, 0], color=INK, linewidth=1)
        for rank in range(1, n + 1):
            ax.plot([rank, rank], [-0.18, 0], color=INK, linewidth=1)
            ax.text(rank, -0.3, str(rank), ha="center", va="bottom", fontsize=8, color=INK)
        ax.plot([1, 1 + self.difference], [-1.45, -1.45], color=INK, linewidth=1.6)
        words = f"  critical difference {self.difference:.2f}"
        ax.text(1 + self.difference, -1.45, words, ha="left", va="center", fontsize=8, color=INK)
        if self.title:
            ax.text(n + margin, -1.45, self.title, ha="right", va="center", fontsize=10, color=INK)
        for i, (low, high) in enumerate(bars):
            height = 0.35 * (i + 1)
            ax.plot([low - 0.04, high + 0.04], [height, height], color=GREY, linewidth=3, solid_capstyle="butt")
        for place, method in enumerate(order):
            left = place < n_left
            height = below + (place if left else n - 1 - place)
            edge, side = (0.85, "right") if left else (n + 0.15, "left")
            rank, name = self.ranks[method], self.names[method]
            colour, width, weight = (BLUE, 1.6, "bold") if name == self.marked else (INK, 0.8, "normal")
            ax.plot([rank, rank, edge], [0, height, height], color=colour, linewidth=width)
            label = f"{name}  {rank:.2f} " if left else f" {rank:.2f}  {name}"
            ax.text(edge, height, label, ha=side, va="center", fontsize=9, color=colour, fontweight=weight)
