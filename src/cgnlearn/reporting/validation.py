"""The page of a validation, in the design of the report of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cgnlearn.evaluation.calibration import Calibration
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.validation import Validation
from cgnlearn.files import write_whole
from cgnlearn.plots import DecisionCurveDisplay, ReliabilityDisplay
from cgnlearn.reporting.album import HALF, Album
from cgnlearn.reporting.figures import forests
from cgnlearn.reporting.page import environment, heading

ALBUM = Album("validation")
MOST_COLUMNS = 30  # with missing values that are listed
PLAIN = {  # words of the table for readers who do not know the terms
    "log loss": "penalty for confident errors; 0 is perfect",
    "gain in log loss over these": "above 0: better than knowing the class frequencies of this place alone",
    "Brier score": "squared error of the probabilities; 0 is perfect",
    "scaled Brier score": "1 is perfect, 0 as good as the class frequencies of this place",
    "observed/expected": "1 is perfect; above 1 the probabilities are too low",
    "calibration intercept": "0 is perfect; above 0 the probabilities are too low",
    "calibration slope": "1 is perfect; below 1 the probabilities are too extreme",
    "calibration slope, all classes": "1 is perfect; below 1 the probabilities are too extreme",
    "AUC": "probability that a case ranks above another sample; 0.5 is chance",
    "mean cost per sample": "of the decisions with the lowest expected cost",
    "share of unusual samples": "typicality below 1%; of samples like the training data 1% are",
}


def write_validation_report(
    path: str | Path, validation: Validation, title: str, settings: Mapping[str, str] | None = None
) -> None:
    """Write the page, one self-contained file.

    Parameters
    ----------
    path : str or Path
    validation : Validation
        Of `cgnlearn.validate`.
    title : str
    settings : mapping, optional
        Facts to list, such as the names of the files.
    """
    ratio = getattr(validation.calibration, "observed_expected", None)
    overall = {"observed_expected": ratio, "auc": validation.auc}
    text = (
        environment()
        .get_template("validation.html")
        .render(
            found=validation,
            settings=dict(settings or {}),
            figures=_figures(validation),
            rows=[(name, of, PLAIN.get(name.partition(" at ")[0], "")) for name, of in validation.rows],
            reliability=_reliability(validation),
            curve=_curve(validation),
            forests=forests(validation.subgroups, overall, ALBUM),
            missing=sorted(validation.missing.items(), key=lambda item: -item[1])[:MOST_COLUMNS],
            warnings=_warnings(validation),
            is_good=validation.advice.startswith("usable"),
            **heading(title),
        )
    )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)


def _figures(found: Validation) -> list[tuple[str, Estimate | None, str]]:
    """The three figures of the summary."""
    calibrated = found.calibration
    shown = [("Calibration slope", calibrated.slope, "1 is perfect")]
    if isinstance(calibrated, Calibration):
        shown.append(("Observed / expected", calibrated.observed_expected, "1 is perfect"))
    else:
        shown.append(("Log loss", found.log_loss, "0 is perfect"))
    if found.auc is not None:
        shown.append(("AUC", found.auc, "0.5 is chance"))
    else:
        shown.append(("Gain in log loss over the class frequencies", found.gain, "above 0 is better"))
    return shown


def _warnings(found: Validation) -> list[str]:
    told = []
    absent = [label for label, n in found.counts.items() if not n]
    if absent:
        told.append(f"No sample is of class {', '.join(absent)}: nothing can be said about it.")
    if found.unknown:
        listed = ", ".join(f"{n} in {name}" for name, n in found.unknown.items())
        told.append(f"Levels unknown from training count as missing: {listed}.")
    small = [f"{of.column} = {of.level}" for of in found.subgroups if of.is_small]
    if small:
        told.append(f"Subgroups too small to tell (fewer than 10 of either outcome): {', '.join(small)}.")
    return told


def _reliability(found: Validation) -> Markup:
    def draw(ax: Any) -> None:
        ReliabilityDisplay.from_validation(found, ax=ax)

    return ALBUM.add("reliability", "Reliability diagram", draw, (HALF, 4.6))[0]


def _curve(found: Validation) -> Markup | None:
    if found.part is None or found.auc is None:
        return None

    def draw(ax: Any) -> None:
        DecisionCurveDisplay.from_validation(found, ax=ax)

    return ALBUM.add("decision", f"Decision curve for {found.positive}", draw, (HALF, 4.6))[0]
