"""The look that all displays share: colours that can be told apart in grey and by the colour-blind."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY, INK = "#2b6ca3", "#d1701f", "#8a929a", "#22303c"
LINES = (BLUE, ORANGE, "#3a8f5c", "#8a4f9e", "#b0413e", "#5b6770", "#c2a11f", "#1f9aa8")
TINT = "#e8f0f7"
_DARK = "#6db3e8 #f0a05a #6cc793 #c591d6 #ec8581 #a9b4bd #e0c552 #5dcad6 #8f99a3 #e3e8ec #22384a"
BY_NIGHT = dict(zip((*LINES, GREY, INK, TINT), _DARK.split(), strict=True))  # the same colours on a dark page
MARKERS = "osD^vPX*"
MOST_POINTS = 2000  # of a line drawn as such; a longer one goes into a vector file as pixels, or it would be megabytes


def new_axes(ax: Axes | None, **figure_options: Any) -> Any:
    """The axes given, or those of a new figure (an array of them with ``nrows``)."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'cgnlearn[plot]'") from error
    return plt.subplots(layout="constrained", **figure_options)[1]


class Display(ABC):
    """A drawing on one pair of axes; a subclass has its size and draws."""

    @abstractmethod
    def _size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw, on the matplotlib axes given or on new ones."""
        ax = new_axes(ax, figsize=self._size())
        self._draw(ax)
        taken_literally(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class TwoPanels(ABC):
    """A drawing on two pairs of axes, one above the other, along the same positions."""

    _size: ClassVar[tuple[float, float]]  # width and height of a figure of its own, in inches
    _heights: ClassVar[tuple[int, int]] = (1, 1)  # of the two, as a ratio

    @abstractmethod
    def _draw(self, upper: Axes, lower: Axes) -> None:
        """Draw on the axes."""

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw, on the two matplotlib axes given or on new ones."""
        if axes is None:
            axes = new_axes(None, figsize=self._size, nrows=2, sharex=True, height_ratios=self._heights)
        assert axes is not None
        self._draw(*axes)
        for ax in axes:
            taken_literally(ax)
        self.axes_, self.figure_ = list(axes), axes[0].figure
        return self


def wrapped(name: str, most: int) -> str:
    """A name in full, in lines of at most so many letters, broken after spaces and underscores where there are any.

    Examples
    --------
    >>> print(wrapped("nonflavanoid_phenols", 13))
    nonflavanoid_
    phenols
    """
    lines = [""]
    for piece in re.split(r"(?<=[_ ])", name):
        for part in (piece[start : start + most] for start in range(0, len(piece), most)):
            if len(lines[-1]) + len(part) <= most:
                lines[-1] += part
            else:
                lines.append(part)
    return "\n".join(line.rstrip(" ") for line in lines)


def draw_bars(ax: Axes, names: Sequence[str], values: Sequence[float] | NDArray[np.float64]) -> None:
    """Bars to the right for, to the left against, from the top down."""
    ax.barh(range(len(names)), values, color=[BLUE if value >= 0 else ORANGE for value in values], height=0.72)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.axvline(0, color=GREY, linewidth=0.8)
    without_frame(ax)


def draw_along(ax: Axes, positions: NDArray[np.float64], values: NDArray[np.float64]) -> None:
    """Above the line for, below it against, along an axis."""
    for side, colour in ((np.maximum(values, 0), BLUE), (np.minimum(values, 0), ORANGE)):
        as_pixels = len(positions) > MOST_POINTS
        ax.fill_between(positions, side, color=colour, linewidth=0.6, step="mid", rasterized=as_pixels)
    ax.axhline(0, color=GREY, linewidth=0.8)
    without_frame(ax)


def axes_behind(ax: Axes) -> Axes:
    """Axes of intensities behind those given."""
    behind = ax.twinx()
    behind.set_ylabel("intensity", color=GREY)
    behind.tick_params(colors=GREY)
    behind.spines[["top", "left"]].set_visible(False)
    ax.set_zorder(behind.get_zorder() + 1)
    ax.patch.set_visible(False)
    return behind


def without_frame(ax: Axes) -> None:
    """Leave only the left and the lower line of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def taken_literally(ax: Axes) -> None:
    """Show the names on the axes as they are: a column called ``$x$`` is no formula."""
    from matplotlib.text import Text

    for text in ax.findobj(Text):
        text.set_parse_math(False)
