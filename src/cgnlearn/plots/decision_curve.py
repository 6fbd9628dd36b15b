"""Decision curves with their bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.decisions import decision_curve
from cgnlearn.evaluation.net_benefit import Band, net_benefit, net_benefit_difference
from cgnlearn.plots.style import GREY, LINES, Display, without_frame, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cgnlearn.evaluation.validation import Validation

ACROSS = 24  # letters of a name in the legend


class DecisionCurveDisplay(Display):
    """Net benefit of acting above each threshold probability, with simultaneous 95% bands.

    A model is useful at a threshold where its net benefit is above that of acting on all samples and on none.
    """

    def __init__(self, curves: Mapping[str, Band], act_on_all: Any, label: str) -> None:
        self.curves, self.act_on_all, self.label = curves, act_on_all, label

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike | Mapping[str, ArrayLike],
        *,
        pos_label: Any = 1,
        prevalence: float | None = None,
        difference: bool = False,
        name: str = "classifier",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curves of probabilities of one class.

        Parameters
        ----------
        y_true : array (samples,)
        y_proba : array (samples,), or a mapping from names to such arrays
            Probability of ``pos_label``.
        pos_label : default=1
        prevalence : float, optional
            Where decisions will be made; None: that of the samples.
        difference : bool
            Draw the first model minus the second one instead.
        name : str
            Name of a single ``y_proba``.
        ax : matplotlib axes, optional

        Examples
        --------
        >>> display = DecisionCurveDisplay.from_predictions([0, 1, 0, 1], [0.2, 0.9, 0.4, 0.6])
        >>> float(display.curves["classifier"].value[49])  # at a threshold of 0.5
        0.5
        """
        happened = np.asarray(y_true) == pos_label
        many: dict[str, Any] = dict(y_proba) if isinstance(y_proba, Mapping) else {name: y_proba}
        parts = {title: (np.asarray(values, dtype=float), happened) for title, values in many.items()}
        on_all = decision_curve([next(iter(parts.values()))], prevalence).act_on_all
        if difference:
            if len(parts) != 2:
                raise ValueError(f"a difference needs two models, not {len(parts)}: give a mapping of two")
            (first, one), (second, other) = parts.items()
            band = net_benefit_difference(one, other, prevalence)
            return cls({f"{first} minus {second}": band}, None, str(pos_label)).plot(ax)
        curves = {title: net_benefit([part], prevalence) for title, part in parts.items()}
        return cls(curves, on_all, str(pos_label)).plot(ax)

    @classmethod
    def from_validation(cls, validation: Validation, *, name: str = "model", ax: Axes | None = None) -> Self:
        """Draw the curve of a validation, which must have a positive class."""
        part, band = validation.part, validation.net_benefit
        if part is None or band is None:
            raise ValueError("a decision curve needs a positive class: validate with positive=CLASS")
        on_all = decision_curve([part], validation.prevalence).act_on_all
        return cls({name: band}, on_all, str(validation.positive)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 5.2, 4.4

    def _draw(self, ax: Axes) -> None:
        bands = list(self.curves.values())
        for colour, band in zip(LINES, bands, strict=False):
            ax.fill_between(band.thresholds, band.low, band.high, color=colour, alpha=0.14, linewidth=0)
        looks = [{"color": colour, "linewidth": 1.6} for colour, _ in zip(LINES, bands, strict=False)]
        values = {name: band.value for name, band in self.curves.items()}
        draw_net_benefit(ax, bands[0].thresholds, values, looks, self.act_on_all, self.label)


def draw_net_benefit(
    ax: Axes,
    thresholds: Floats,
    curves: Mapping[str, Floats],
    looks: Sequence[Mapping[str, Any]],
    act_on_all: Floats | None,
    label: str,
) -> None:
    """Draw the net benefit of models at each threshold, the first on top, each with the look of its line.

    ``act_on_all`` is that of acting on every sample as ``label``; None: the curves are differences.
    """
    none = "no difference" if act_on_all is None else "act on none"
    lines = [
        ax.plot(thresholds, value, label=name, zorder=3 - rank / 10, **look)[0]
        for rank, (look, (name, value)) in enumerate(zip(looks, curves.items(), strict=False))
    ]
    lines.append(ax.axhline(0, color=GREY, linewidth=1, linestyle=(0, (1, 2)), label=none))
    if act_on_all is not None:
        lines += ax.plot(thresholds, act_on_all, color=GREY, linewidth=1, label=f"act on all as {label}")
        most = float(act_on_all[0]) + 0.01
        ax.set_ylim(-0.2 * most, 1.2 * most)
    threshold = wrapped(f"threshold probability of {label}", 2 * ACROSS)
    ax.set(xlabel=threshold, ylabel="net benefit per sample", xlim=(0, 1))
    names = [wrapped(str(line.get_label()), ACROSS) for line in lines]
    ax.legend(lines, names, frameon=False, loc="lower left", bbox_to_anchor=(0, 1.01), borderaxespad=0, ncols=2)
    without_frame(ax)
