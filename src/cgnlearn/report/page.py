"""The page itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cgnlearn import __version__
from cgnlearn.evaluation.study import Study
from cgnlearn.files import write_whole

if TYPE_CHECKING:
    from cgnlearn.report.demonstration import Comparison


def write_report(
    path: str | Path, studies: Sequence[Study], title: str = "Evaluation", compared: Sequence[Comparison] = ()
) -> None:
    """Write the page: one file that needs no other, with comparisons in one table, then a part for each study."""
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'cgnlearn[report]'") from error

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"number": _number, "signed": _signed, "percent": _percent}
    template = environment.from_string(files("cgnlearn.report").joinpath("page.html").read_text(encoding="utf-8"))
    text = template.render(
        title=title,
        version=__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        compared=compared,
        parts=[_part(study, f"s{i}") for i, study in enumerate(studies)],
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _part(study: Study, anchor: str) -> dict[str, Any]:
    """What the template needs of one study."""
    from cgnlearn.report import figures

    part: dict[str, Any] = {
        "anchor": anchor,
        "study": study,
        "n_discrete": sum(str(kind) == "category" for kind in study.X.dtypes),
        "best": _best(study),
        "warnings": _warnings(study),
    }
    if study.chosen is None:
        return part
    return part | {
        "reliability": figures.reliability_figure(study, f"{anchor}-reliability"),
        "structure": figures.structure_figure(study, f"{anchor}-structure"),
        "path": figures.path_figure(study, f"{anchor}-path"),
        "evidence": figures.evidence_figure(study, f"{anchor}-evidence"),
        "closeups": [
            {"title": words, "row": row, "figure": figures.row_figure(study, row, closeup, f"{anchor}-row{i}")}
            for i, (words, row, closeup) in enumerate(study.closeups)
        ],
        "final": study.final,
    }


def _best(study: Study) -> dict[str, str]:
    """The model with the best value of each metric, of those that answered everywhere."""
    sign = {"accuracy": 1, "cll": 1, "brier": -1, "calibration_error": -1} if study.able else {}
    return {name: max(study.able, key=lambda s: way * s.metrics[name].mean).model for name, way in sign.items()}


def _warnings(study: Study) -> list[str]:
    """What this very set gives reason to be careful about."""
    found = []
    label, least = min(study.counts.items(), key=lambda item: item[1])
    if least < 30:
        found.append(f"Class {label} has {least} rows only: figures for it are rough.")
    if max(study.counts.values()) > 4 * least:
        found.append(
            "The classes are of very unequal size: accuracy alone would flatter; look at CLL and the confusion matrix."
        )
    found += [
        f"{summary.model} has no answer in {summary.n_without} of {summary.n_folds} folds, where maximum "
        "likelihood does not exist; its figures leave these folds out."
        for summary in study.summaries
        if summary.n_without
    ]
    if len(study.results) < len(study.splits) * len(study.models):
        found.append("The evaluation was interrupted: the figures stand for the folds that were done.")
    return found


def _number(value: float | None) -> str:
    """Three decimals, or none where they would be noise."""
    if value is None:
        return "—"
    return (f"{value:.3f}" if abs(value) < 100 else f"{value:.0f}").replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _percent(value: float) -> str:
    """A probability; near 0 and 1 it is not rounded to what no model knows."""
    if value > 0.9999:
        return "> 99.99 %"
    return "< 0.01 %" if value < 0.0001 else f"{100 * value:.2f} %"
