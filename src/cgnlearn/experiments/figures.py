"""The paper's two figures: accuracy and CLL against the number of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cgnlearn.experiments.ovarian import AVERAGED, CHOSEN, TEMPERED, Point
from cgnlearn.files import whole_file

# Colours: estimation; line styles: family of structures.
COLOURS = {"ml": "#c44e52", "bayes paper": "#1f4e9c", "shared": "#2a8f5c", TEMPERED: "#8e5aa8"}
LABELS = {"ml": "ML", "bayes paper": "BA", "shared": "BA, shared regressions", TEMPERED: "the same, tempered"}
STYLES = {"band": "-", "box": "--"}


def draw(points: Sequence[Point], folder: Path) -> list[Path]:
    """Write ``accuracy.svg`` and ``cll.svg``; the same points give the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    written = []
    with mpl.rc_context({"svg.hashsalt": "cgnlearn", "svg.fonttype": "none", "font.size": 9}):
        for metric, title in (("accuracy", "Accuracy"), ("cll", "CLL per spectrum (nats)")):
            figure = Figure(figsize=(8.0, 4.6), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=metric == "accuracy")
            _panel(left, points, metric, ("ml", "bayes paper"))
            left.set_title("The paper's models")
            left.set_ylabel(title)
            _panel(right, points, metric, ("bayes paper", "shared", TEMPERED))
            _levels(right, points, metric)
            right.set_title("Beyond the paper")
            if metric == "cll":
                right.set_yscale("symlog", linthresh=0.1)
                right.yaxis.set_major_formatter("{x:g}")
                right.set_ylim(top=0.0)
            for axes in (left, right):
                axes.set_xlabel("parameters (thousands)")
                axes.grid(alpha=0.25)
            labels = {
                label: handle
                for axes in (left, right)
                for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            figure.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3, fontsize=7.5)
            path = folder / f"{metric}.svg"
            with whole_file(path) as file:
                figure.savefig(file, format="svg", metadata={"Date": None})
            written.append(path)
    return written


def _panel(axes: Any, points: Sequence[Point], metric: str, models: Sequence[str]) -> None:
    for model in models:
        for family, style in STYLES.items():
            own = [p for p in points if (p.parameters, p.structure) == (model, family)]
            line = sorted((p.n_parameters / 1000, getattr(p, metric)) for p in own)
            if line:
                label = f"k-{family.upper()} {LABELS[model]}"
                axes.plot(*zip(*line, strict=True), style, color=COLOURS[model], label=label, lw=1.4)


def _levels(axes: Any, points: Sequence[Point], metric: str) -> None:
    """Horizontal lines for models that choose k or average over it."""
    for model, style, label in ((CHOSEN, "-.", "k chosen inside the fold"), (AVERAGED, ":", "averaged over k")):
        for point in points:
            if point.parameters == model:
                axes.axhline(getattr(point, metric), ls=style, color="#444444", lw=1.0, label=label)
