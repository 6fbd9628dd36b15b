"""The figures about the predictions of models: calibration, ROC, precision and recall, decision curve.

Colours are those of classes; models are black and grey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup
from sklearn.metrics import precision_recall_curve, roc_curve

from cgnlearn.data.arrays import Floats
from cgnlearn.evaluation.abstention import first_repetition, risk_coverage
from cgnlearn.evaluation.decisions import Part, decision_curve
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.metrics import N_BINS
from cgnlearn.evaluation.study import BASELINE, LOGISTIC, Study, pooled
from cgnlearn.evaluation.subgroups import Subgroup
from cgnlearn.evaluation.verdict import RARE, predicted_folds
from cgnlearn.networks.structure import Structure
from cgnlearn.plots import PathDisplay, ReliabilityDisplay, StructureDisplay, SubgroupsDisplay
from cgnlearn.plots.decision_curve import draw_net_benefit
from cgnlearn.plots.reliability import ReliabilityLine
from cgnlearn.plots.style import GREY, INK, LINES, without_frame, wrapped
from cgnlearn.reporting.album import HALF, WHOLE, Album

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST_DECIDED = 20  # samples, of which the share of errors means something
ACROSS = 42  # letters across a figure of half the width
OF_MODELS: tuple[dict[str, Any], ...] = (  # the chosen one and another
    {"color": INK, "linewidth": 1.8},
    {"color": GREY, "linewidth": 1.6, "linestyle": (0, (5, 2))},
)


def class_colour(code: int) -> str:
    """The colour of a class on the whole page."""
    return LINES[code % len(LINES)]


def shown_models(study: Study) -> list[str]:
    """The chosen model and one for comparison: logistic regression, or else the best of the others."""
    assert study.chosen is not None
    first = {r.unit[1:] for r in study.results if r.unit.name == study.chosen}
    others = [s for s in study.summaries if s.metrics and s.model not in (study.chosen, BASELINE)]
    others = [s for s in others if first & predicted_folds(study, s.model)]
    others.sort(key=lambda s: (s.model != LOGISTIC, s.metrics["log_loss"].mean))
    return [study.chosen, *(s.model for s in others[:1])]


def _common(study: Study, models: list[str]) -> tuple[dict[str, Floats], Any]:
    """Log probabilities of the models on their common folds, repetitions pooled, and the true classes."""
    common = set.intersection(*(predicted_folds(study, model) for model in models))
    log_proba: dict[str, Floats] = {}
    for model in models:
        results = {r.unit[1:]: r for r in study.results if r.unit.name == model}
        log_proba[model], true = pooled([results[fold] for fold in sorted(common)], study.true)
    return log_proba, true


def calibration_figure(study: Study, album: Album) -> Markup:
    """Calibration of the chosen model in its first repetition: of the positive class, or of the predicted class."""
    assert study.chosen is not None
    log_proba, true = pooled(first_repetition(study, study.chosen), study.true)
    proba, name = np.exp(log_proba), wrapped(study.chosen, ACROSS)
    if len(study.classes) == 2 and study.positive_class is not None:
        code = study.classes.index(study.positive_class)
        line, label = (
            ReliabilityLine.of(proba[:, code], true == code, N_BINS),
            wrapped(study.positive_class, ACROSS - 15),
        )
        display = ReliabilityDisplay({name: line}, f"predicted probability of {label}", f"observed share of {label}")
        display.outcome_colours = class_colour(code), class_colour(1 - code)
    else:
        line = ReliabilityLine.of(proba.max(axis=1), proba.argmax(axis=1) == true, N_BINS)
        start = 1 / len(study.classes)
        display = ReliabilityDisplay({name: line}, "probability of the predicted class", "share correct", start)
    display.colours = (INK,)
    return album.add("calibration", f"Calibration of {study.chosen}", display.plot, (HALF, 4.3))[0]


def abstention_figure(study: Study, album: Album) -> Markup:
    """Errors of the chosen model and another one if the least certain samples are not decided."""
    found, true = _common(study, shown_models(study))
    curves = {model: risk_coverage(log_proba, true) for model, log_proba in found.items()}

    def draw(ax: Axes) -> None:
        most = 0.0
        for look, model, curve in _styled(curves):
            many = curve.coverage * len(true) >= FEWEST_DECIDED
            (line,) = ax.step(100 * curve.coverage[many], 100 * curve.risk[many], where="post", label=model, **look)
            if many.sum() == 1:  # all are equally certain: there is no line
                line.set_marker("o")
            most = max(most, float(curve.risk[many].max(initial=0.0)))
        ax.set(xlabel="samples decided, most certain first (%)", ylabel="errors among them (%)")
        top = 100 * min(1.0, max(0.05, 1.15 * most))
        ax.set(xlim=(0, 100), ylim=(-0.03 * top, top))  # a line without errors is not hidden by the axis
        _legend_above(ax)

    return album.add("risk-coverage", "Risk-coverage curve", draw, (HALF, 3.4))[0]


FORESTS = ("observed_expected", "auc")  # of subgroups


def forests(subgroups: Sequence[Subgroup], overall: Mapping[str, Estimate | None], album: Album) -> list[Markup]:
    """Forest plots of the subgroups, if one of them is large enough; ``overall`` are those of all samples."""
    drawn = []
    for measure in FORESTS if any(not of.is_small for of in subgroups) else ():
        display = SubgroupsDisplay(subgroups, measure, overall.get(measure))
        height = 1.0 + 0.28 * (len(subgroups) + 1)
        description = f"Forest plot of {measure} by subgroup"
        drawn.append(album.add(f"forest-{measure}", description, display.plot, (WHOLE, height))[0])
    return drawn


# ---- one class against the others


class Curves(NamedTuple):
    """Curves of decisions about one class against the others."""

    roc: Markup
    net_benefit: Markup
    precision: Markup | None  # for a rare class


def curves(study: Study, album: Album) -> Curves | None:
    """Curves of the chosen model and another one; None without a positive class or without both outcomes."""
    label = study.positive_class
    if label is None:
        return None
    found, true = _common(study, shown_models(study))
    code = study.classes.index(label)
    positive = true == code
    if positive.all() or not positive.any():
        return None
    parts = {model: [(np.exp(log_proba[:, code]), positive)] for model, log_proba in found.items()}

    def draw(ax: Axes) -> None:
        of_models = {model: decision_curve(own, study.prevalence) for model, own in parts.items()}
        values = {model: curve.net_benefit for model, curve in of_models.items()}
        first = of_models[next(iter(of_models))]
        draw_net_benefit(ax, first.thresholds, values, OF_MODELS, first.act_on_all, label)

    size = (HALF, 3.9)
    roc = album.add("roc", f"ROC curves for {label}", lambda ax: _draw_roc(ax, parts), size)[0]
    net_benefit = album.add("decision-curve", f"Decision curve for {label}", draw, size)[0]
    precision = None
    if positive.mean() < RARE:
        name = f"Precision and recall for {label}"
        precision = album.add("precision-recall", name, lambda ax: _draw_precision(ax, parts), size)[0]
    return Curves(roc, net_benefit, precision)


def _styled(found: dict[str, Any]) -> list[tuple[dict[str, Any], str, Any]]:
    """Models with the look of their lines, the chosen one last and thus on top."""
    return [(look, *item) for look, item in reversed(list(zip(OF_MODELS, found.items(), strict=False)))]


def _draw_roc(ax: Axes, found: dict[str, list[Part]]) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    for look, model, [(probability, positive)] in _styled(found):
        false_positives, true_positives, _ = roc_curve(positive, probability)
        ax.plot(false_positives, true_positives, label=model, **look)
    ax.set(xlabel="1 − specificity (false alarms)", ylabel="sensitivity (cases found)")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02))
    _legend_above(ax)


def _draw_precision(ax: Axes, found: dict[str, list[Part]]) -> None:
    for look, model, [(probability, positive)] in _styled(found):
        precision, recall, _ = precision_recall_curve(positive, probability)
        ax.step(recall, precision, where="post", label=model, **look)
    share = float(positive.mean())
    ax.axhline(share, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.set(xlabel="recall (sensitivity, cases found)", ylabel="precision (PPV)", xlim=(-0.01, 1.01), ylim=(0, 1.02))
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


def structure_figure(structure: Structure, album: Album) -> Markup:
    """The structure of the model fitted on all samples."""
    description = f"Structure with {len(structure.nodes)} features and {structure.n_edges} edges"

    def draw(ax: Axes) -> None:
        StructureDisplay.from_structure(structure, ax=ax)

    return album.add("structure", description, draw, (WHOLE, 4.6))[0]


def path_figure(model: Any, album: Album) -> Markup | None:
    """The inner cross-validation of the order of a band or box; None if the order was given."""
    if not hasattr(model, "k_") or "param_k" not in getattr(model, "cv_results_", {}):
        return None

    def draw(axes: Any) -> None:
        PathDisplay.from_estimator(model, axes=axes)

    return album.add("orders", "Inner scores of every k", draw, (HALF, 3.9), nrows=2, sharex=True)[0]


def is_drawable(structure: Any) -> bool:
    """Whether a drawing of the structure is readable."""
    return 0 < structure.n_edges <= 2 * len(structure.nodes) and len(structure.nodes) <= 24
