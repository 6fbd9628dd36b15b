"""The style of all displays; the first eight colours are distinct in greyscale and for the colour-blind."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, ORANGE, GREY, INK = "#2b6ca3", "#d1701f", "#8a929a", "#22303c"
_MORE = (
    "#3a8f5c #8a4f9e #b0413e #5b6770 #c2a11f #1f9aa8 #3a3ad8 #d83ad8 #1c4a1c #b48ab4 #34107c #6b1440 #8b3df0 #35b535"
)
LINES = (BLUE, ORANGE, *_MORE.split(), "#e8468e", "#7f9a1a", "#7c7ce8", "#7c5810")  # classes, far from each other
TINT = "#e8f0f7"
_DARK = """#6db3e8 #f0a05a #6cc793 #c591d6 #ec8581 #a9b4bd #e0c552 #5dcad6 #8f8fff #f07ff0 #5a9c5a #d9b8d9 #9a7be0
#c9709a #b98cff #6fe06f #ff8fbf #c3dc6a #b3b3ff #c9a35a #8f99a3 #e3e8ec #22384a"""
DARK_COLOURS = dict(zip((*LINES, GREY, INK, TINT), _DARK.split(), strict=True))  # the same colours on a dark page
MARKERS = "osD^vPX*"
MOST_POINTS = 2000  # longer lines are rasterised, as vector files would take megabytes


def new_axes(ax: Axes | Sequence[Axes] | None, **figure_options: Any) -> Any:
    """The given axes, or those of a new figure (an array of them with ``nrows``)."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("displays need matplotlib: pip install 'cgnlearn[plot]'") from error
    return plt.subplots(layout="constrained", **figure_options)[1]


def needs(estimator: Any, name: str, what: str, which: str = "CGNClassifier or CGNClassifierCV") -> None:
    """Raise unless the estimator is fitted and has what a display draws."""
    check_is_fitted(estimator)
    if not hasattr(estimator, name):
        last = " or its last step, on samples as that reads them" if hasattr(estimator, "named_steps") else ""
        raise ValueError(f"{type(estimator).__name__} does not have {what}: use {which}{last}")


class Display(ABC):
    """A display on one pair of axes."""

    @abstractmethod
    def _size(self) -> tuple[float, float]:
        """Width and height of a new figure, in inches."""

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw on the axes."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the given or new matplotlib axes."""
        ax = new_axes(ax, figsize=self._size())
        self._draw(ax)
        without_formulas(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class TwoPanels(ABC):
    """A display on two pairs of axes, one above the other, with a common horizontal axis."""

    _size: ClassVar[tuple[float, float]]  # width and height of a new figure, in inches
    _heights: ClassVar[tuple[int, int]] = (1, 1)  # ratio of the two

    @abstractmethod
    def _draw(self, upper: Axes, lower: Axes) -> None:
        """Draw on the axes."""

    def plot(self, axes: Sequence[Axes] | None = None) -> Self:
        """Draw on the two given or new matplotlib axes."""
        pair = new_axes(axes, figsize=self._size, nrows=2, sharex=True, height_ratios=self._heights)
        self._draw(*pair)
        for ax in pair:
            without_formulas(ax)
        self.axes_, self.figure_ = list(pair), pair[0].figure
        return self


def wrapped(name: str, most: int) -> str:
    """Break a name into lines of at most ``most`` letters, if possible after spaces and underscores."""
    lines = [""]
    for piece in re.split(r"(?<=[_ ])", name):
        for part in (piece[start : start + most] for start in range(0, len(piece), most)):
            if len(lines[-1]) + len(part) <= most:
                lines[-1] += part
            else:
                lines.append(part)
    return "\n".join(line.rstrip(" ") for line in lines)


def without_frame(ax: Axes) -> None:
    """Remove the upper and the right line of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def without_formulas(ax: Axes) -> None:
    """Turn off formulas in texts, as a column may be called ``$x$``."""
    from matplotlib.text import Text

    for text in ax.findobj(Text):
        text.set_parse_math(False)
