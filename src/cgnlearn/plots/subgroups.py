"""Forest plot of subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.subgroups import Subgroup
from cgnlearn.plots.style import BLUE, GREY, Display, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cgnlearn.evaluation.validation import Validation

MEASURES = {  # name: label, and the value of a perfect model or the whole
    "observed_expected": ("Observed / expected", 1.0),
    "slope": ("Calibration slope", 1.0),
    "auc": ("AUC", None),
    "log_loss": ("Log loss", None),
    "sensitivity": ("Sensitivity", None),
    "specificity": ("Specificity", None),
}


def estimate_of(subgroup: Subgroup, measure: str) -> Estimate | None:
    """A measure of a subgroup; None if it is too small."""
    found: Estimate | None
    if measure in ("observed_expected", "slope"):
        found = None if subgroup.calibration is None else getattr(subgroup.calibration, measure)
    else:
        found = getattr(subgroup, measure)
    return found


class SubgroupsDisplay(Display):
    """Forest plot of one measure: a line for each subgroup, with its 95% confidence interval.

    Subgroups that are too small to tell are named, without a point.
    """

    def __init__(self, subgroups: Sequence[Subgroup], measure: str, overall: Estimate | None = None) -> None:
        if measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
        self.subgroups, self.measure, self.overall = list(subgroups), measure, overall

    @classmethod
    def from_validation(
        cls, validation: Validation, measure: str = "observed_expected", *, ax: Axes | None = None
    ) -> Self:
        """Draw the subgroups of a validation with ``by``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_breast_cancer
        >>> from cgnlearn import CGNClassifier, validate
        >>> from cgnlearn.plots import SubgroupsDisplay
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = CGNClassifier().fit(X[:300], y[:300])
        >>> site = np.where(np.arange(269) % 2, "north", "south")
        >>> found = validate(model, X[300:], y[300:], by={"site": site})
        >>> len(SubgroupsDisplay.from_validation(found, "auc").subgroups)
        2
        """
        if not validation.subgroups:
            raise ValueError("this validation has no subgroups: validate with by=COLUMNS")
        of: Any = validation.calibration if measure in ("observed_expected", "slope") else validation
        overall = getattr(of, measure, None)
        return cls(validation.subgroups, measure, overall).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.4, 1.2 + 0.3 * (len(self.subgroups) + 1)

    def _draw(self, ax: Axes) -> None:
        title, perfect = MEASURES[self.measure]
        rows: list[tuple[str, Estimate | None]] = [("all samples", self.overall)]
        rows += [
            (f"{of.column} = {of.level} ({of.n}, {of.n_events} events)", estimate_of(of, self.measure))
            for of in self.subgroups
        ]
        finite = [end for _, of in rows if of is not None for end in of if end is not None and np.isfinite(end)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        if perfect is not None:
            low, high = min(low, perfect), max(high, perfect)
            ax.axvline(perfect, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
        margin = 0.06 * (high - low) or 0.1
        for row, (_, of) in enumerate(rows):
            if of is None:
                ax.text(low, row, "too few to tell" if row else "", color=GREY, va="center", fontsize="small")
                continue
            if of.low is not None and of.high is not None:
                ends = np.clip([of.low, of.high], low - margin, high + margin)
                ax.plot(ends, [row, row], color=BLUE, linewidth=1.6)
            if np.isfinite(of.value):
                ax.plot([of.value], [row], marker="s" if row else "D", color=BLUE, markersize=5)
        ax.set_yticks(range(len(rows)), [name for name, _ in rows])
        ax.set(xlim=(low - margin, high + margin), ylim=(len(rows) - 0.5, -0.5), xlabel=f"{title}, 95% CI")
        ax.tick_params(axis="y", length=0)
        without_frame(ax)
