"""What a validation, or a cross-validation, knows about the items of TRIPOD+AI."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.evaluation.calibration import Calibration, MulticlassCalibration, calibration_by_model, with_interval
from cgnlearn.evaluation.decisions import THRESHOLD, decisions_by_model
from cgnlearn.evaluation.description import description
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.grouped import last_step
from cgnlearn.evaluation.sites import log_loss_by_site
from cgnlearn.evaluation.study import Study
from cgnlearn.evaluation.subgroups import Subgroup, subgroups_of
from cgnlearn.evaluation.table_one import table_one
from cgnlearn.evaluation.validation import Validation
from cgnlearn.evaluation.verdict import Verdict, standings
from cgnlearn.reporting.shape import members_in_words
from cgnlearn.reporting.tripod import escaped, markdown_table

MOST_FEATURES = 60  # that are listed
FORM = "{:.3f}"

Found = dict[str, list[str]]


def answers_of_validation(
    found: Validation,
    model: Any,
    X: Any,
    settings: Mapping[str, str],
    excluded: Mapping[str, int],
    history: Sequence[str] = (),
) -> Found:
    """The items that `validate` knows.

    Parameters
    ----------
    found : Validation
    model : fitted model
    X : data frame (samples, features) or None
        None: features are not listed.
    settings : mapping
        Facts about the files, such as their names and checksums.
    excluded : mapping from reasons to numbers of rows
    history : list of str
        What is known about the training of the model.
    """
    last = last_step(model)
    answers = _of_samples(X, found.true, found.classes, found.missing, excluded, found.n)
    answers |= _of_outcome(found.classes, found.positive, settings)
    answers["1"] = ["Evaluation of a prediction model on samples of another place."]
    answers["5a"] = [_listed(settings)]
    answers["7"] = [_preparation(found.unknown)]
    answers["12a"] = ["All samples are for evaluation: the model was fitted before, to other samples."]
    answers["12c"] = [_model(last), *(escaped(line) + "." for line in history)]
    answers["12e"] = [_measures_in_words(found.calibration)]
    answers["12g"] = ["`cgnlearn validate` computed all predictions from the saved model, without a change to it."]
    answers["13"] = ["The classes were not resampled or weighted."]
    answers["15"] = [_output(found.classes, found.positive, found.thresholds, found.prevalence)]
    answers["18f"] = [_software()]
    answers["21"] = [_counts(found.n, found.classes, found.true, None)]
    answers["22"] = ["The saved model predicts by itself; `cgnlearn export` writes it as JSON, calculator, R or ONNX."]
    answers["23a"] = [_table_of(found.rows), f"Calibration: {escaped(found.calibration.words)}.", *_by(found.subgroups)]
    answers["23a"].append(f"In one sentence: {escaped(found.advice)}.")
    answers["26"] = _limits(found.groups is not None, min(found.counts.values()))
    if found.unusual is not None:
        unusual = f"{found.unusual.n} of {found.unusual.n_all} samples have a typicality below 1%; of samples like the "
        answers["20c"] = [unusual + "training data 1% have."]
    if found.subgroups:
        answers["14"] = [f"Performance was compared by {_columns(found.subgroups)}: see item 23a."]
    if hasattr(last, "history_"):
        steps = [f"{each['what']}, {each['samples']} samples, {each['when']}" for each in last.history_]
        answers["12f"] = [f"The model was updated before: {escaped('; '.join(steps))}."]
    return answers


def answers_of_study(
    study: Study,
    excluded: Mapping[str, int],
    thresholds: Sequence[float] = (THRESHOLD,),
    remarks: Sequence[str] = (),
) -> Found:
    """The items that `evaluate` knows about the chosen model.

    Parameters
    ----------
    study : Study
        With results.
    excluded : mapping from reasons to numbers of rows
    thresholds : list of float
        From which on the positive class is called.
    remarks : list of str
        Messages about the columns of the file.
    """
    assert study.chosen is not None
    missing = {str(name): int(n) for name, n in study.X.isna().sum().items() if n}
    X = None if study.positions is not None else study.X
    answers = _of_samples(X, study.true, study.classes, missing, excluded, len(study.y))
    if study.positions is not None:
        answers["9b"] = [f"{len(study.names)} intensities along a spectrum ({escaped(study.axis)})."]
    answers |= _of_outcome(study.classes, study.positive_class, study.settings)
    answers["1"] = ["Development of a prediction model, with internal evaluation by cross-validation."]
    answers["5a"] = [_listed(study.settings)]
    answers["7"] = [_bullets(remarks) if remarks else "The columns were used as they are in the file."]
    answers["12a"] = [f"{escaped(study.settings.get('Cross-validation', 'cross-validation'))}; all steps in each fold."]
    answers["12c"] = [f"{escaped(study.chosen)}: `{description(study.models[study.chosen])}`."]
    calibrated = calibration_by_model(study)[study.chosen]
    answers["12e"] = [_measures_in_words(calibrated)]
    answers["12g"] = ["Each sample was predicted by the model of the folds that do not hold it."]
    answers["13"] = ["The classes were not resampled or weighted."]
    answers["15"] = [_output(study.classes, study.positive_class, thresholds, study.prevalence)]
    answers["18f"] = [_software()]
    answers["21"] = [_counts(len(study.y), study.classes, study.true, study.n_groups)]
    answers["22"] = ["`cgnlearn fit` with the same options saves the model; `cgnlearn export` writes it as JSON or R."]
    found = subgroups_of(study, study.chosen, thresholds[0])
    performance = [_table_of(rows_of(study, thresholds)), f"Calibration: {escaped(calibrated.words)}."]
    answers["23a"] = [*performance, _models(study), *_by(found)]
    answers["26"] = _limits(study.groups is not None, min(study.counts.values()))
    if found:
        answers["14"] = [f"Performance was compared by {_columns(found)}: see item 23a."]
    if study.sites is not None:
        rows = [(of["site"], of["samples"], _number(of["log_loss"][study.chosen])) for of in log_loss_by_site(study)]
        answers["12d"] = ["Whole sites were held out."]
        answers["23b"] = [markdown_table(["site", "samples", "log loss"], rows)]
    return answers


def rows_of(study: Study, thresholds: Sequence[float]) -> list[tuple[str, Estimate | None]]:
    """The measures of the chosen model, with intervals."""
    verdict, label = Verdict(study), study.positive_class
    rows: list[tuple[str, Estimate | None]] = [("accuracy", verdict.accuracy), ("log loss", verdict.log_loss)]
    rows.append(("AUC" if len(study.classes) == 2 else "macro AUC", verdict.auc))
    calibrated = calibration_by_model(study)[verdict.model]
    if isinstance(calibrated, Calibration):
        rows.append(("observed/expected", calibrated.observed_expected))
        rows.append(("calibration intercept", calibrated.intercept))
    rows.append(("calibration slope", calibrated.slope))
    for at in thresholds if label is not None else ():
        assert label is not None
        decided = decisions_by_model(study, label, at)[verdict.model]
        rows.append((f"sensitivity at {at:g}", decided.sensitivity))
        rows.append((f"specificity at {at:g}", decided.specificity))
        rows.append((f"positive predictive value at {at:g}", decided.positive_predictive_value))
        rows.append((f"negative predictive value at {at:g}", decided.negative_predictive_value))
    if study.costs is not None:
        rows.append(("mean cost per sample", study.costs.by_model(study)[verdict.model]))
    return rows


# ---- parts


def _of_samples(
    X: Any,
    true: NDArray[np.intp],
    classes: Sequence[str],
    missing: Mapping[str, int],
    excluded: Mapping[str, int],
    n: int,
) -> Found:
    counts = np.bincount(true, minlength=len(classes)).tolist()
    flow: list[tuple[str, object]] = [("rows read", n + sum(excluded.values()))]
    flow += [(f"excluded: {reason}", number) for reason, number in excluded.items()]
    flow += [("used", n), *((f"of these {label}", number) for label, number in zip(classes, counts, strict=True))]
    answers = {"10": [f"{n} samples."], "20a": [markdown_table(["step", "rows"], flow)]}
    answers["12b"] = ["Numbers enter as they are, categories as levels; transforms are learned in training."]
    told = ", ".join(f"{escaped(name)} {number}" for name, number in missing.items())
    answers["11"] = [
        f"Missing values by predictor: {told}. Samples with missing values were kept: networks integrate over these "
        "values, logistic regressions set them to the mean."
        if missing
        else "No value of a predictor is missing."
    ]
    if X is None:
        return answers
    names = [str(name) for name in X.columns]
    listed = ", ".join(f"{escaped(name)} ({_kind(X[name])})" for name in X.columns[:MOST_FEATURES])
    more = f", and {len(names) - MOST_FEATURES} more" if len(names) > MOST_FEATURES else ""
    answers["9b"] = [f"{len(names)} predictors: {listed}{more}."]
    rows = [
        (row.name, row.what, row.overall, *row.by_class, row.n_missing if row.name else "")
        for row in table_one(X, true, len(classes), range(min(len(names), MOST_FEATURES)))
    ]
    heads = [f"{label} ({number})" for label, number in zip(classes, counts, strict=True)]
    answers["20b"] = [markdown_table(["predictor", "", f"all ({n})", *heads, "missing"], rows)]
    if more:
        answers["20b"].append(f"The first {MOST_FEATURES} of {len(names)} predictors.")
    return answers


def _kind(series: Any) -> str:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_numeric_dtype(series.dtype) and not is_bool_dtype(series.dtype):
        return "number"
    return f"{series.nunique()} levels"


def _of_outcome(classes: Sequence[str], positive: str | None, settings: Mapping[str, str]) -> Found:
    column = settings.get("Class column")
    named = f"Column {escaped(column)}: " if column else ""
    of = f" Figures are for {escaped(positive)} against the others." if positive is not None else ""
    return {"8a": [f"{named}{', '.join(escaped(label) for label in classes)}.{of}"]}


def _model(model: Any) -> str:
    members = members_in_words(getattr(model, "members_", ()))
    if members:
        listed = "; ".join(f"{weight:.2f} {escaped(text)}" for text, _, weight in members)
        return f"A mixture weighted by predictions for held-out samples: {listed}."
    return f"`{description(model)}`."


def _measures_in_words(found: Calibration | MulticlassCalibration) -> str:
    what = "intercept, slope and observed/expected" if isinstance(found, Calibration) else "slope"
    return (
        f"Log loss and Brier score, AUC, calibration ({what}, a test of perfect calibration simulated from the "
        "probabilities), sensitivity, specificity and predictive values. Intervals are at 95%: of the profile "
        "likelihood for calibration, DeLong's for the AUC, Wilson's for shares."
    )


def _output(classes: Sequence[str], positive: str | None, thresholds: Sequence[float], prevalence: float | None) -> str:
    text = f"A probability of each class ({', '.join(escaped(label) for label in classes)})."
    if positive is not None:
        text += f" {escaped(positive)} is called from a probability of {', '.join(f'{at:g}' for at in thresholds)} on."
    return text + (f" Predictive values are for a prevalence of {prevalence:g}." if prevalence is not None else "")


def _software() -> str:
    names = ("cgnlearn", "numpy", "scipy", "scikit-learn", "numba")
    return f"{', '.join(f'{name} {version(name)}' for name in names)}, Python {platform.python_version()}."


def _counts(n: int, classes: Sequence[str], true: NDArray[np.intp], n_groups: int | None) -> str:
    counts = np.bincount(true, minlength=len(classes)).tolist()
    listed = ", ".join(f"{number} {escaped(label)}" for label, number in zip(classes, counts, strict=True))
    return f"{n} samples{'' if n_groups is None else f' in {n_groups} groups'}: {listed}."


def _limits(has_groups: bool, fewest: int) -> list[str]:
    told = [] if has_groups else ["Intervals take the samples to be independent."]
    if fewest < 100:  # van Calster et al. 2016, for a calibration curve 200
        told.append(f"The rarest class has {fewest} samples: calibration is known only roughly.")
    return [" ".join(told)] if told else []


def _preparation(unknown: Mapping[str, int]) -> str:
    if not unknown:
        return "The columns were used as they are in the file, in the levels of the model."
    told = ", ".join(f"{number} in {escaped(name)}" for name, number in unknown.items())
    return f"Levels that the model does not know count as missing: {told}."


def _table_of(rows: Sequence[tuple[str, Estimate | None]]) -> str:
    cells = [
        (name, "—" if of is None else _number(of.value), "" if of is None else of.span(_number)) for name, of in rows
    ]
    return markdown_table(["measure", "value", "95% CI"], cells)


def _models(study: Study) -> str:
    rows = [(of.model, with_interval("", of.value, FORM).strip()) for of in standings(study, "log_loss")]
    return markdown_table(["model", "log loss (95% CI)"], rows)


def _by(found: Sequence[Subgroup]) -> list[str]:
    """The table of subgroups, if there are any."""
    if not found:
        return []

    def cell(of: Estimate | None) -> str:
        return "—" if of is None else with_interval("", of, FORM).strip()

    rows = []
    for of in found:
        slope = None if of.calibration is None else of.calibration.slope
        ratio = None if of.calibration is None else of.calibration.observed_expected
        values = (cell(value) for value in (of.log_loss, ratio, slope, of.auc))
        rows.append((f"{of.column} = {of.level}", of.n, of.n_events, *values))
    heads = ["subgroup", "n", "events", "log loss", "observed/expected", "slope", "AUC"]
    small = [f"{of.column} = {of.level}" for of in found if of.is_small]
    told = [f"Too small to tell: {escaped(', '.join(small))}."] if small else []
    return [markdown_table(heads, rows), *told]


def _columns(found: Sequence[Subgroup]) -> str:
    return escaped(", ".join(dict.fromkeys(of.column for of in found)))


def _number(value: float | None) -> str:
    return "—" if value is None else FORM.format(value)


def _listed(settings: Mapping[str, str]) -> str:
    return _bullets([f"{name}: {value}" for name, value in settings.items()])


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
