"""The page of the report."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cgnlearn import __version__
from cgnlearn.evaluation.chosen import Chosen
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.study import Study, pooled
from cgnlearn.evaluation.verdict import Verdict
from cgnlearn.files import write_whole
from cgnlearn.plots.style import DARK_COLOURS, LINES

if TYPE_CHECKING:
    from cgnlearn.reporting.album import Album
    from cgnlearn.reporting.demonstration import Comparison
    from cgnlearn.spectra.quality import Survey

PARTS = MODELS, CHOSEN = "comparison of models", "chosen model"  # those that need most come last
FEW = 30  # samples of a class, or groups: estimates are imprecise
MOST_ROWS = 60  # features of Table 1
MOST_SPECTRA = 400  # listed with their quality


class IncompleteReportError(Exception):
    """A report was written without the parts that raised an exception, the first of which is the cause."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(f"parts of the report {path} could not be made")
        self.path = Path(path)


def write_report(
    path: str | Path,
    studies: Sequence[Study],
    title: str = "Evaluation",
    compared: Sequence[Comparison] = (),
    figures: str | Path | None = None,
) -> None:
    """Write the page, one self-contained file: a part for each study, then the comparisons in one picture.

    The folder ``figures``, if given, gets each figure as svg and as pdf. An exception in a part does not lose the
    others: the page is written without it, then the exception is raised.
    """
    from cgnlearn.reporting.album import Album

    pages, values = environment(), heading(title)
    folder = None if figures is None else Path(figures)
    text, fault = "", None
    for excluded in range(1 + len(PARTS)):
        try:
            without = PARTS[len(PARTS) - excluded :]
            parts = []
            for i, study in enumerate(studies):
                own = folder if folder is None or len(studies) == 1 else folder / f"{i + 1}"
                parts.append(_part(study, Album(f"s{i}", own), without))
            values["compared"] = _compared(compared, Album("all", folder))
            text = pages.get_template("page.html").render(parts=parts, **values)
            break
        except Exception as error:  # minutes of evaluation are not lost with a part of the page
            fault = fault or error
    if text:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    if fault is not None:
        raise IncompleteReportError(path) from fault


@cache
def environment() -> Any:
    """The templates with their filters; those that one report has compiled serve the next one."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError as error:
        raise ImportError("reports need jinja2: pip install 'cgnlearn[report]'") from error
    options: dict[str, Any] = dict.fromkeys(("autoescape", "trim_blocks", "lstrip_blocks"), True)
    found = Environment(loader=FunctionLoader(_template), undefined=StrictUndefined, **options)
    found.filters |= {"number": _number, "signed": _signed, "percent": _percent, "share": _share}
    found.filters |= {"counted": _counted, "contribution": _contribution, "seconds": _seconds}
    found.filters["between"] = _between
    found.globals["n_colours"] = len(LINES)
    return found


def heading(title: str) -> dict[str, Any]:
    """Title, version, time and colours of a page."""
    from cgnlearn.reporting.album import VARIABLES

    return {
        "title": title,
        "version": __version__,
        "written": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "palette": {name: (colour, DARK_COLOURS[colour]) for colour, name in VARIABLES.items()},
    }


def _template(name: str) -> str:
    return files("cgnlearn.reporting").joinpath("templates", name).read_text(encoding="utf-8")


def _compared(compared: Sequence[Comparison], album: Album) -> Any:
    """The picture of maximum likelihood beside Bayesian averaging, if there are comparisons."""
    if not compared:
        return None
    from cgnlearn.reporting.demonstration import comparison_figure

    return comparison_figure(compared, album)


def _part(study: Study, album: Album, excluded: Sequence[str]) -> dict[str, Any]:
    """The values of one study for the template, without the excluded parts."""
    from cgnlearn.reporting.leaderboard import leaderboard

    by_fault = [f"The part about the {what} could not be made, by a fault of cgnlearn." for what in excluded]
    is_described = study.chosen is not None and CHOSEN not in excluded
    verdict = Verdict(study) if is_described else None
    part: dict[str, Any] = {
        "anchor": album.anchor,
        "study": study,
        "n_discrete": sum(str(kind) == "category" for kind in study.X.dtypes),
        "n_missing": int(study.X.isna().to_numpy().sum()),
        "class_groups": _class_groups(study),
        "leaderboard": None if MODELS in excluded else leaderboard(study, verdict),
        "costs": {} if study.costs is None else study.costs.by_model(study),
        "warnings": by_fault + _warnings(study),
        "verdict": verdict,
        "along": None,
    }
    if verdict is None:
        return part
    return part | _described(study, album)


def _described(study: Study, album: Album) -> dict[str, Any]:
    """The values of the chosen model for the template."""
    from cgnlearn.evaluation.abstention import first_repetition, prediction_sets, risk_coverage
    from cgnlearn.evaluation.by_class import confused_pairs, of_classes
    from cgnlearn.evaluation.of_samples import correlation_of_replicates, of_samples
    from cgnlearn.evaluation.subgroups import subgroups_of
    from cgnlearn.evaluation.table_one import table_one
    from cgnlearn.reporting import figures, spectra_figures
    from cgnlearn.reporting.cards import cards
    from cgnlearn.reporting.effects import save_effects
    from cgnlearn.reporting.leaderboard import leaderboard
    from cgnlearn.reporting.samples import Viewer
    from cgnlearn.reporting.shape import shape_of
    from cgnlearn.reporting.thresholds import MEASURES, thresholds

    assert study.chosen is not None
    chosen = Chosen.of(study)
    viewer = Viewer(chosen)
    has_spectrum = study.positions is not None and chosen.evidence is not None
    by_sample, found = of_samples(study), cards(chosen)
    in_subgroups = subgroups_of(study, study.chosen)
    if found is not None:
        save_effects(found.effects, album)
    shown = list(range(len(study.names)))
    if len(shown) > MOST_ROWS and found is not None:  # those with the largest contributions
        place = {name: at for at, name in enumerate(study.names)}
        shown = [place[card.name] for card in (*found.shown, *found.folded)[:MOST_ROWS] if card.name in place]
    rows = [] if study.positions is not None else table_one(study.X, study.true, len(study.classes), shown[:MOST_ROWS])
    return {
        "chosen": chosen,
        "calibration": figures.calibration_figure(study, album),
        "curves": figures.curves(study, album),
        "thresholds": thresholds(study, figures.shown_models(study)),
        "measures": MEASURES,
        "by_class": of_classes(study, study.chosen),
        "confused": confused_pairs(study.classes, chosen.confusion),
        "by_sample": None if by_sample is None else leaderboard(by_sample, Verdict(by_sample)),
        "correlation": None if by_sample is None else correlation_of_replicates(study),
        "along": spectra_figures.along_figure(chosen, album) if has_spectrum else None,
        "steps": None if study.spectra is None else spectra_figures.steps_figure(study.spectra, album),
        "spectra_rows": [] if study.spectra is None else _spectra_rows(study, study.spectra),
        "cards": found,
        "abstention": figures.abstention_figure(study, album),
        "risk": risk_coverage(*pooled(first_repetition(study, study.chosen), study.true)),
        "sets": prediction_sets(study, study.chosen),
        "subgroups": in_subgroups,
        "forests": figures.forests(in_subgroups, _overall(study), album),
        "table_one": rows,
        "views": [(title, viewer.view(sample)) for title, sample in chosen.remarkable],
        "viewable": viewer.as_dict(),
        "shape": shape_of(chosen.final, album),
    }


def _overall(study: Study) -> dict[str, Estimate | None]:
    """The figures of all samples that forest plots show beside those of subgroups."""
    verdict = Verdict(study)
    return {"auc": verdict.auc, "observed_expected": getattr(verdict.calibration, "observed_expected", None)}


def _spectra_rows(study: Study, survey: Survey) -> list[dict[str, Any]]:
    """The quality of each spectrum, outliers first."""
    every = zip(survey.files, study.y.tolist(), survey.quality, survey.remarks, strict=True)
    rows = [{"file": file, "label": label, **of._asdict(), "remark": remark} for file, label, of, remark in every]
    return sorted(rows, key=lambda row: not row["remark"])[:MOST_SPECTRA]


def _class_groups(study: Study) -> dict[str, int] | None:
    """Number of groups with samples of each class."""
    if study.groups is None:
        return None
    groups = np.asarray(study.groups)
    return {label: len(np.unique(groups[study.true == code])) for code, label in enumerate(study.classes)}


def _warnings(study: Study) -> list[str]:
    """Limitations of this evaluation."""
    found = list(study.spectra.warnings) if study.spectra is not None else []
    label, least = min(study.counts.items(), key=lambda item: item[1])
    if least < FEW:
        found.append(f"Class {label} has only {least} samples: its estimates are imprecise.")
    if study.n_groups is not None and study.n_groups < FEW:
        found.append(f"The samples come from only {study.n_groups} independent groups: the estimates are imprecise.")
    if study.undivided:
        found.append(f"{study.undivided}.")
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


def _between(value: float, interval: tuple[float, float]) -> str:
    """A probability and its interval in words; none is rounded to 0 or 1."""
    ends = (value, *interval)
    shown, low, high = (f"{p:.2f}" if 0.01 < p < 0.99 else f"{min(max(p, 0.001), 0.999):.3f}" for p in ends)
    return f"{shown}, between {low} and {high}"


def _share(value: float) -> str:
    """A share in per cent, with one decimal."""
    return f"{100 * value:.1f}%" if value >= 0.0005 or value == 0 else "< 0.1%"


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 0.1 else f"{1000 * value:.0f} ms"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
