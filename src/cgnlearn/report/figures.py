"""The report's figures, as SVG text to stand inside the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from cgnlearn.evaluation.evidence import Closeup
from cgnlearn.evaluation.study import SeenRow, Study, pooled
from cgnlearn.model.densities import Floats
from cgnlearn.plots import ContributionsDisplay, PathDisplay, ReliabilityDisplay, StructureDisplay
from cgnlearn.plots.style import GREY, INK, LINES, MOST_POINTS, axes_behind, draw_along, draw_bars, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 25

_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be searched, read aloud and printed sharp
    "text.parse_math": False,  # a column called $x$ is no formula
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": GREY,
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK),
}


def _svg(
    draw: Callable[[Any], object], size: tuple[float, float], name: str, description: str, nrows: int = 1
) -> Markup:
    """Draw on fresh axes and return the SVG element, its ids made the page's own by ``name``."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_LOOK, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(nrows, sharex=True))
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, dpi=200, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", text)
    opening, _, content = text.partition(">")
    view = re.findall(r'viewBox="[^"]+"', opening)[0]
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view} '
        f'style="max-width:{round(size[0] * 96)}px" role="img" aria-label="{escape(description)}">{content}'
    )


def reliability_figure(study: Study, name: str) -> Markup:
    """The reliability diagram of the chosen model and of the best with the other way to its parameters."""
    assert study.chosen is not None
    way = _parameters(study, study.chosen)
    others = [summary for summary in study.able if _parameters(study, summary.model) != way]
    shown = [study.chosen, *(s.model for s in sorted(others, key=lambda s: -s.metrics["cll"].mean)[:1])]
    # Repetitions are pooled: every row counts as often as it was predicted. An interrupted run may have a fold of one
    # model and not of the other.
    common = set.intersection(*({r.unit[1:] for r in study.results if r.unit.name == model} for model in shown))
    found = {
        model: pooled([r for r in study.results if r.unit.name == model and r.unit[1:] in common], study.true)
        for model in shown
    }
    proba = {model: np.exp(log_proba) for model, (log_proba, _) in found.items()}
    truth = np.array(study.classes)[found[study.chosen][1]]
    return _svg(
        lambda ax: ReliabilityDisplay.from_predictions(truth, proba, classes=study.classes, ax=ax),
        (5.0, 4.2), name, f"Reliability diagram of {' and '.join(proba)}",
    )  # fmt: skip


def _parameters(study: Study, model: str) -> Any:
    return getattr(study.models[model], "parameters", None)


def structure_figure(study: Study, name: str) -> Markup:
    """The structure of the model fitted on all rows."""
    structure = study.final.structure_
    size = (6.6, 4.4) if len(structure.nodes) <= 60 else (4.4, 4.2)
    description = f"Structure with {len(structure.nodes)} attributes and {structure.n_edges} edges"
    return _svg(lambda ax: StructureDisplay.from_structure(structure, ax=ax), size, name, description)


def path_figure(study: Study, name: str) -> Markup | None:
    """How the order of a band or box was chosen, where it was."""
    if "param_k" not in getattr(study.final, "cv_results_", {}):
        return None
    words = "Inner scores of every k"
    return _svg(lambda axes: PathDisplay.from_estimator(study.final, axes=axes), (5.4, 4.4), name, words, nrows=2)


def evidence_figure(study: Study, name: str) -> Markup:
    """What each attribute adds to the truth on average: along m/z for spectra, else as bars."""
    evidence = study.evidence.for_truth
    if study.positions is not None:
        return _svg(lambda ax: _draw_along(ax, study, evidence), (7.6, 3.4), name, "Evidence along the spectrum")
    order = np.argsort(-np.abs(evidence), kind="stable")[:MOST_BARS]

    def draw(ax: Axes) -> None:
        draw_bars(ax, [shortened(study.names[i], 26) for i in order], evidence[order])
        ax.set_xlabel("mean log-odds added to the true class")

    return _svg(draw, (5.6, 0.9 + 0.24 * len(order)), name, "Mean evidence of each attribute for the true class")


def _draw_along(ax: Axes, study: Study, evidence: Floats) -> None:
    positions = study.positions
    assert positions is not None
    behind = axes_behind(ax)
    values = study.X.to_numpy()
    for i, label in enumerate(study.classes[: len(LINES)]):
        mean = values[study.true == i].mean(axis=0)
        look: dict[str, Any] = {"color": LINES[(i + 2) % len(LINES)], "linewidth": 0.7, "alpha": 0.65}
        behind.plot(positions, mean, label=f"mean {label}", rasterized=len(positions) > MOST_POINTS, **look)
    draw_along(ax, positions, evidence)
    if study.marks is not None:
        ax.plot(study.marks, np.full(len(study.marks), 1.02), "v", color=INK, markersize=5, clip_on=False,
                transform=ax.get_xaxis_transform(), label="true marker")  # fmt: skip
    handles = behind.get_legend_handles_labels()[0] + ax.get_legend_handles_labels()[0]
    ax.legend(handles=handles, frameon=False, loc="lower center", ncols=len(handles), bbox_to_anchor=(0.5, 1.05))
    ax.set(xlabel=study.axis, ylabel="mean log-odds for the truth")


def row_figure(study: Study, row: SeenRow, closeup: Closeup, name: str) -> Markup:
    """What the model that had not seen a row makes of it."""
    values = None if study.positions is None else study.X.iloc[row.index].to_numpy(dtype=float)
    display = ContributionsDisplay(
        closeup.log_odds, study.names, row.predicted, study.classes[closeup.against], closeup.prior_log_odds,
        study.positions, values, study.axis,
    )  # fmt: skip
    n_bars = min(len(study.names), 20) + 2
    size = (5.6, 0.8 + 0.22 * n_bars) if values is None else (7.6, 3.0)
    return _svg(display.plot, size, name, f"Contributions of the attributes in row {row.line}")
