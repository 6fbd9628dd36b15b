"""The learning curve of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from cgnlearn.evaluation.plan import Plan, plan
from cgnlearn.plots.style import GREY, LINES, Display, without_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class LearningCurveDisplay(Display):
    """Log loss against the number of training samples: measured, and expected with an 80% band.

    Examples
    --------
    >>> from cgnlearn import CGNClassifier, plan
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = plan(CGNClassifier(), X[::3], y[::3], n_repeats=1)
    >>> display = LearningCurveDisplay.from_plan(found)
    >>> display.ax_.get_xlabel()
    'training samples'
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    @classmethod
    def from_plan(cls, plan: Plan, *, ax: Axes | None = None) -> Self:
        """Draw a plan."""
        return cls(plan).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, ax: Axes | None = None, **settings: Any) -> Self:
        """Draw the plan of a classifier; ``settings`` are those of `cgnlearn.plan`."""
        return cls(plan(estimator, X, y, **settings)).plot(ax)

    def _size(self) -> tuple[float, float]:
        return 6.4, 3.6

    def _draw(self, ax: Axes) -> None:
        from matplotlib.ticker import FuncFormatter, NullLocator

        measured, expected = self.plan.measured, self.plan.expected
        n = [each.n for each in expected]
        low, high = ([getattr(each, name) for each in expected] for name in ("log_loss_low", "log_loss_high"))
        ax.fill_between(n, low, high, color=LINES[0], alpha=0.2, linewidth=0, label="80% band")
        ax.plot(n, [each.log_loss for each in expected], color=LINES[0], linestyle="--", label="expected")
        ax.plot(
            [each.n for each in measured], [each.log_loss for each in measured], "o", color=LINES[0], label="measured"
        )
        ticks = [measured[0].n, *n]
        ax.set(xlabel="training samples", ylabel="log loss", xscale="log", xticks=ticks)
        ax.set_ylim(bottom=0)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        ax.xaxis.set_minor_locator(NullLocator())
        ax.grid(color=GREY, alpha=0.2)
        without_frame(ax)
        ax.legend(frameon=False)
