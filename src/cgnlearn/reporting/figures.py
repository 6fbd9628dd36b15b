"""The figures of the report, as SVG inside the page, in the light or dark colours of the page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape
from sklearn.metrics import roc_curve

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.decisions import (
    Decisions,
    Part,
    decision_curve,
    decisions,
    grouping,
    one_class,
    predictions_by_model,
)
from cgnlearn.evaluation.evidence import mean_spectrum
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, Study, pooled
from cgnlearn.evaluation.verdict import predicted_folds
from cgnlearn.networks.structure import Structure
from cgnlearn.plots import PathDisplay, ReliabilityDisplay, SpectrumDisplay, StructureDisplay
from cgnlearn.plots.style import GREY, INK, LINES, TINT, without_frame, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HALF, WHOLE, PHONE = 4.3, 8.9, 4.0  # widths in inches
ACROSS = 42  # letters across a figure of half the width

VARIABLES = {colour: f"--line{i}" for i, colour in enumerate(LINES)} | {GREY: "--grey", INK: "--ink", TINT: "--tint"}

_LOOK: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays searchable
    "text.parse_math": False,  # a column may be called $x$
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": GREY,
    **dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color", "text.color"), INK),
}


def _svg(
    draw: Callable[[Any], object], size: tuple[float, float], name: str, description: str, **layout: Any
) -> tuple[Markup, Any]:
    """Draw on new axes; return the SVG element, its ids unique by ``name``, and the axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_LOOK, "svg.hashsalt": name}):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(**layout)
        draw(axes)
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, dpi=200, metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", text)
    opening, _, content = text.partition(">")
    content = re.sub(
        r'(?<=[:"] )#[0-9a-f]{6}|(?<=:)#[0-9a-f]{6}',
        lambda found: f"var({VARIABLES[found[0]]})" if found[0] in VARIABLES else found[0],
        content,
    )
    view = re.findall(r'viewBox="[^"]+"', opening)[0]
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {view} '
        f'role="img" aria-label="{escape(description)}">{content}'
    ), axes


def _common(study: Study, models: list[str]) -> tuple[dict[str, Floats], Any]:
    """Log probabilities of the models on their common folds, repetitions pooled, and the true classes."""
    common = set.intersection(*(predicted_folds(study, model) for model in models))
    log_proba: dict[str, Floats] = {}
    for model in models:
        results = {r.unit[1:]: r for r in study.results if r.unit.name == model}
        log_proba[model], true = pooled([results[fold] for fold in sorted(common)], study.true)
    return log_proba, true


def _shown(study: Study) -> list[str]:
    """The chosen model and one for comparison: logistic regression, or else the best of the others."""
    assert study.chosen is not None
    first = {r.unit[1:] for r in study.results if r.unit.name == study.chosen}
    others = [s for s in study.summaries if s.metrics and s.model not in (study.chosen, BASELINE)]
    others = [s for s in others if first & predicted_folds(study, s.model)]
    others.sort(key=lambda s: (s.model != LOGISTIC, s.metrics["log_loss"].mean))
    return [study.chosen, *(s.model for s in others[:1])]


def reliability_figure(study: Study, name: str) -> Markup:
    """The reliability diagram of the chosen model and of another one."""
    found, true = _common(study, _shown(study))
    proba = {wrapped(model, ACROSS): np.exp(log_proba) for model, log_proba in found.items()}
    truth = np.array(study.classes)[true]

    def draw(ax: Axes) -> None:
        ReliabilityDisplay.from_predictions(truth, proba, classes=study.classes, ax=ax)

    return _svg(draw, (HALF, 4.3), name, f"Reliability diagram of {' and '.join(found)}")[0]


# ---- one class against the others


class Deciding(NamedTuple):
    """Decisions about one class against the others."""

    positive: str
    roc: Markup
    curve: Markup
    of_models: dict[str, Decisions]


def deciding(study: Study, name: str) -> Deciding | None:
    """Decisions by the chosen model and another one; None without a positive class or without both outcomes."""
    label = study.positive_class
    if label is None:
        return None
    shown = _shown(study)
    found, true = _common(study, shown)
    code = study.classes.index(label)
    positive = true == code
    if positive.all() or not positive.any():
        return None
    parts = {model: [(np.exp(log_proba[:, code]), positive)] for model, log_proba in found.items()}
    predictions = predictions_by_model(study)
    of_models = {
        model: decisions(one_class(predictions[model], code), study.prevalence, grouping(study, model))
        for model in shown
    }

    def draw(ax: Axes) -> None:
        _draw_decision(ax, parts, study.prevalence, label)

    drawn = _svg(lambda ax: _draw_roc(ax, parts), (HALF, 3.9), f"{name}-roc", f"ROC curves for {label}")[0]
    curve = _svg(draw, (HALF, 3.9), f"{name}-net", f"Decision curve for {label}")[0]
    return Deciding(label, drawn, curve, of_models)


def _draw_roc(ax: Axes, found: dict[str, list[Part]]) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    for colour, (model, [(probability, positive)]) in reversed(list(zip(LINES, found.items(), strict=False))):
        false_positives, true_positives, _ = roc_curve(positive, probability)
        ax.plot(false_positives, true_positives, color=colour, linewidth=1.6, label=model)
    ax.set(xlabel="1 − specificity (false alarms)", ylabel="sensitivity (cases found)")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02))
    _legend_above(ax)


def _draw_decision(ax: Axes, found: dict[str, list[Part]], prevalence: float | None, label: str) -> None:
    curves = {model: decision_curve(parts, prevalence) for model, parts in found.items()}
    at, _, all_treated = next(iter(curves.values()))
    most = float(all_treated[0]) + 0.01
    ax.plot(at, all_treated, color=GREY, linewidth=1.2, label=f"treat all as {label}")
    ax.axhline(0, color=GREY, linewidth=1, linestyle=(0, (4, 3)), label="treat none")
    for colour, (model, curve) in reversed(list(zip(LINES, curves.items(), strict=False))):
        ax.plot(at, curve.net_benefit, color=colour, linewidth=1.6, label=model)
    threshold = wrapped(f"threshold probability of {label}", ACROSS + 10)
    ax.set(xlabel=threshold, ylabel="net benefit per sample", xlim=(0, 1), ylim=(-0.12 * most, 1.08 * most))
    _legend_above(ax)


def _legend_above(ax: Axes) -> None:
    """A legend outside the lines, the chosen model first."""
    handles, labels = ax.get_legend_handles_labels()
    n_columns = 2 if len(labels) > 2 else 1
    labels = [wrapped(label, ACROSS // n_columns) for label in labels]
    look: dict[str, Any] = {"frameon": False, "loc": "lower left", "bbox_to_anchor": (0, 1.01), "borderaxespad": 0}
    ax.legend(handles[::-1], labels[::-1], ncols=n_columns, **look)
    without_frame(ax)


# ---- the model


def structure_figure(structure: Structure, name: str) -> Markup:
    """The structure of the model fitted on all samples."""
    description = f"Structure with {len(structure.nodes)} features and {structure.n_edges} edges"
    return _svg(lambda ax: StructureDisplay.from_structure(structure, ax=ax), (WHOLE, 4.6), name, description)[0]


def path_figure(model: Any, name: str) -> Markup | None:
    """The inner cross-validation of the order of a band or box; None if the order was given."""
    if not hasattr(model, "k_") or "param_k" not in getattr(model, "cv_results_", {}):
        return None

    def draw(axes: Any) -> None:
        PathDisplay.from_estimator(model, axes=axes)

    return _svg(draw, (HALF, 3.9), name, "Inner scores of every k", nrows=2, sharex=True)[0]


# ---- spectra


class Along(NamedTuple):
    """The figure of spectra in two widths, with the data for pointing at peaks."""

    wide: Markup
    narrow: Markup
    ends: tuple[float, float]  # of the horizontal axis, as shares of the width
    of: str
    against: str
    peaks: list[tuple[str, float, float, float]]  # name, mean intensity in both classes, log odds
    n_confused: int  # samples of one of the two classes predicted as the other


def spectrum_figure(chosen: Chosen, name: str) -> Along:
    """Mean spectra of two classes, the two confused most often, above the mean contributions of the peaks."""
    study, evidence = chosen.study, chosen.evidence
    assert evidence is not None
    assert study.positions is not None
    confused = chosen.confusion + chosen.confusion.T
    np.fill_diagonal(confused, -1)
    n_confused = int(confused.max())
    second, first = sorted(np.unravel_index(int(confused.argmax()), confused.shape))
    if study.positive_class == study.classes[second]:
        first, second = second, first
    values = study.X.to_numpy(dtype=float)
    above, below = (np.nan_to_num(mean_spectrum(values[study.true == code])) for code in (first, second))
    features = study.features
    tops = np.array([top for top in features.shown if top is not None], dtype=np.intp)
    regions = tops, np.where(features.of_column < len(tops), features.of_column, -1)
    two = study.classes[first], study.classes[second]
    subject = "mean evidence for the true class"
    display = SpectrumDisplay(study.positions, above, below, evidence.for_truth, *two, subject, study.axis, regions)

    def draw(axes: Any) -> None:
        display.plot(axes)
        axes[1].set_title("", loc="left")  # part of the caption
        if study.marks is not None:
            look = {"color": INK, "markersize": 5, "clip_on": False, "transform": axes[1].get_xaxis_transform()}
            axes[1].plot(study.marks, np.full(len(study.marks), 1.02), "v", **look)

    layout = {"nrows": 2, "sharex": True, "height_ratios": (3, 2)}
    description = "Evidence along the spectrum"
    wide, axes = _svg(draw, (WHOLE, 4.8), name, description, **layout)
    narrow, _ = _svg(draw, (PHONE, 4.4), f"{name}-narrow", description, **layout)
    ends = axes[0].transData.transform([(study.positions[0], 0), (study.positions[-1], 0)])[:, 0]
    left, right = ends / axes[0].figure.bbox.width
    peaks = [
        (features.names[i], float(above[top]), float(below[top]), float(display.evidence_[i]))
        for i, top in enumerate(tops.tolist())
    ]
    return Along(wide, narrow, (float(left), float(right)), *two, peaks, n_confused)


def is_drawable(structure: Any) -> bool:
    """Whether a drawing of the structure is readable."""
    return 0 < structure.n_edges <= 2 * len(structure.nodes) and len(structure.nodes) <= 24
