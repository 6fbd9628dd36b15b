"""The page of the report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cgnlearn import __version__
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.study import Study
from cgnlearn.evaluation.verdict import Verdict
from cgnlearn.files import write_whole
from cgnlearn.plots.style import DARK_COLOURS

if TYPE_CHECKING:
    from cgnlearn.reporting.demonstration import Comparison

PARTS = MODELS, CHOSEN = "comparison of models", "chosen model"  # those that need most come last
FEW = 30  # samples of a class, or groups: estimates are imprecise


class IncompleteReportError(Exception):
    """A report was written without the parts that raised an exception, the first of which is the cause."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(f"parts of the report {path} could not be made")
        self.path = Path(path)


def write_report(
    path: str | Path, studies: Sequence[Study], title: str = "Evaluation", compared: Sequence[Comparison] = ()
) -> None:
    """Write the page, one self-contained file: the comparisons in one table, then a part for each study.

    An exception in a part does not lose the others: the page is written without it, then the exception is raised.
    """
    pages = environment()
    values = heading(title) | {"compared": compared}
    text, fault = "", None
    for excluded in range(1 + len(PARTS)):
        try:
            parts = [_part(study, f"s{i}", PARTS[len(PARTS) - excluded :]) for i, study in enumerate(studies)]
            text = pages.get_template("page.html").render(parts=parts, **values)
            break
        except Exception as error:  # minutes of evaluation are not lost with a part of the page
            fault = fault or error
    if text:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    if fault is not None:
        raise IncompleteReportError(path) from fault


def environment() -> Any:
    """The templates with their filters."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'cgnlearn[report]'") from error
    options: dict[str, Any] = dict.fromkeys(("autoescape", "trim_blocks", "lstrip_blocks"), True)
    found = Environment(loader=FunctionLoader(_template), undefined=StrictUndefined, **options)
    found.filters |= {"number": _number, "signed": _signed, "percent": _percent}
    found.filters |= {"counted": _counted, "contribution": _contribution}
    return found


def heading(title: str) -> dict[str, Any]:
    """Title, version, time and colours of a page."""
    from cgnlearn.reporting.figures import VARIABLES

    return {
        "title": title,
        "version": __version__,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "palette": {name: (colour, DARK_COLOURS[colour]) for colour, name in VARIABLES.items()},
    }


def _template(name: str) -> str:
    return files("cgnlearn.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _part(study: Study, anchor: str, excluded: Sequence[str]) -> dict[str, Any]:
    """The values of one study for the template, without the excluded parts."""
    from cgnlearn.reporting.panels import panels

    by_fault = [f"The part about the {what} could not be made, by a fault of cgnlearn." for what in excluded]
    part: dict[str, Any] = {
        "anchor": anchor,
        "study": study,
        "n_discrete": sum(str(kind) == "category" for kind in study.X.dtypes),
        "n_missing": int(study.X.isna().to_numpy().sum()),
        "class_groups": _class_groups(study),
        "panels": [] if MODELS in excluded else panels(study),
        "costs": {} if study.costs is None else study.costs.by_model(study),
        "warnings": by_fault + _warnings(study),
        "verdict": None,
    }
    return part if study.chosen is None or CHOSEN in excluded else part | _described(study, anchor)


def _described(study: Study, anchor: str) -> dict[str, Any]:
    """The values of the chosen model for the template."""
    from cgnlearn.reporting import figures
    from cgnlearn.reporting.cards import cards
    from cgnlearn.reporting.samples import Viewer
    from cgnlearn.reporting.shape import shape_of

    chosen = Chosen.of(study)
    viewer = Viewer(chosen)
    has_spectrum = study.positions is not None and chosen.evidence is not None
    return {
        "verdict": Verdict(study),
        "chosen": chosen,
        "reliability": figures.reliability_figure(study, f"{anchor}-reliability"),
        "deciding": figures.deciding(study, f"{anchor}-decision"),
        "along": figures.spectrum_figure(chosen, f"{anchor}-spectrum") if has_spectrum else None,
        "cards": cards(chosen),
        "views": [(title, viewer.view(sample)) for title, sample in chosen.remarkable],
        "viewable": viewer.as_dict(),
        "shape": shape_of(chosen.final, anchor),
    }


def _class_groups(study: Study) -> dict[str, int] | None:
    """Number of groups with samples of each class."""
    if study.groups is None:
        return None
    groups = np.asarray(study.groups)
    return {label: len(np.unique(groups[study.true == code])) for code, label in enumerate(study.classes)}


def _warnings(study: Study) -> list[str]:
    """Limitations of this evaluation."""
    found = []
    label, least = min(study.counts.items(), key=lambda item: item[1])
    if least < FEW:
        found.append(f"Class {label} has only {least} samples: its estimates are imprecise.")
    if study.n_groups is not None and study.n_groups < FEW:
        found.append(f"The samples come from only {study.n_groups} independent groups: the estimates are imprecise.")
    if study.undivided:
        found.append(f"{study.undivided}.")
    if max(study.counts.values()) > 4 * least:
        found.append("The class sizes are very unequal: consider log loss and the confusion matrix besides accuracy.")
    for summary in study.summaries:
        if summary.n_without:
            before, _, reason = (summary.reason or "maximum likelihood does not exist").rpartition("; use ")
            compared = " (compared on the other folds)" if summary.metrics else ""
            folds = f"{summary.n_without} of {summary.n_folds} folds{compared}"
            found.append(f"{summary.model} has no predictions in {folds}: {before or reason}.")
    if study.chosen is not None and study.proposed is None and len(study.eligible) > 1:
        found.append(
            f"{study.chosen} is the best of {len(study.eligible)} models on the same folds: its results are slightly "
            "optimistic."
        )
    if study.proposed is not None and study.chosen != study.proposed:
        found.append(f"{study.proposed} does not have predictions in every fold; this report describes {study.chosen}.")
    if len(study.results) < len(study.splits) * len(study.models):
        found.append("The evaluation was interrupted: the results are those of the finished folds.")
    return found


def _number(value: float | None) -> str:
    """Three decimals, or none for numbers of three digits."""
    if value is None:
        return "—"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}").replace("-", "−")


def _signed(value: float, digits: int = 1) -> str:
    if np.isinf(value):
        return "+∞" if value > 0 else "−∞"
    decimals = digits if abs(value) < 10 else min(digits, 1) if abs(value) < 100 else 0
    return f"{value:+.{decimals}f}".replace("-", "−")


def _contribution(value: float) -> str:
    """Two decimals, or two digits of a small contribution."""
    return (f"{value:+.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:+.2g}").replace("-", "−")


def _percent(value: float) -> str:
    """A probability, never rounded to 0 or 1."""
    if value > 0.9999:
        return "> 99.99%"
    return "< 0.01%" if value < 0.0001 else f"{100 * value:.2f}%"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
