"""The command ``cgnlearn validate``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.command import Command
from cgnlearn.cli.costs import read_costs
from cgnlearn.cli.predictor import Predictor, matching, predictor_of
from cgnlearn.cli.terminal import print_rows, say, waiting

if TYPE_CHECKING:
    from cgnlearn.evaluation.validation import Validation

TARGET = "Column of the true classes; default: that of training."


class Labelled(NamedTuple):
    """Labelled samples in the columns of a model."""

    X: Any
    y: Any
    ids: Any
    groups: Any
    by: dict[str, Any]
    unknown: dict[str, int]
    n_without: int  # rows without a class
    sha256: str
    target: str
    frame: Any  # the features as a table; None for spectra


@click.command(cls=Command)
@click.argument("model", type=options.EXISTING)
@click.argument("data", type=options.DATA)
@click.option("-t", "--target", help=TARGET)
@options.id_option
@click.option("--groups", metavar="COLUMN", help="Column of groups, such as subjects, whose rows are not independent.")
@options.na_option
@options.by_option
@options.positive_option
@options.prevalence_option
@options.threshold_option
@options.cost_option
@options.sheet_option
@folder.labels_option
@folder.skip_option
@options.report_option
@options.tripod_option
@options.memory_option
@options.json_option
def validate(
    model: Path,
    data: Path,
    target: str | None,
    by: tuple[str, ...],
    positive: str | None,
    prevalence: float | None,
    threshold: tuple[float, ...],
    cost: Path | None,
    report: Path | None,
    tripod: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Score a saved model on labelled samples of another place.

    Calibration intercept and slope, observed/expected, log loss beside the class frequencies there, AUC, sensitivity,
    specificity, predictive values and net benefit, each with a 95% interval; how typical the samples are; and what to
    do about it.
    """
    from cgnlearn.evaluation.validation import validate as validated

    predictor, labelled = labelled_data(model, data, target, by, **given)
    if positive is not None and positive not in predictor.classes:
        raise click.UsageError(f"--positive {positive}: the classes are {', '.join(predictor.classes)}")
    if prevalence is not None and positive is None and len(predictor.classes) > 2:
        raise click.UsageError("--prevalence needs a class: name it with --positive CLASS")
    costs = None if cost is None else read_costs(cost, predictor.classes)
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        say(f"the report {report} is an HTML page")
    with waiting("validating"):
        found = validated(
            predictor.model,
            labelled.X,
            labelled.y,
            groups=labelled.groups,
            by=labelled.by or None,
            positive=positive,
            prevalence=prevalence,
            thresholds=threshold or (0.5,),
            costs=costs,
        )
    found.unknown.update(labelled.unknown)
    if labelled.ids is not None:
        tell_known_ids(model, labelled.ids)
    if as_json:
        file = {"file": data.name, "sha256": labelled.sha256, "rows_without_class": labelled.n_without}
        click.echo(json.dumps(finite(found.as_dict() | {"data": file, "model": str(model)}), indent=1))
    else:
        print_validation(found, f"{model.name} on {data.name}")
    settings = {"Model": model.name, "File": data.name, "SHA-256": labelled.sha256, "Class column": labelled.target}
    excluded = {"without a class": labelled.n_without} if labelled.n_without else {}
    if tripod is not None:
        from cgnlearn.reporting.tripod import write_tripod
        from cgnlearn.reporting.tripod_answers import answers_of_validation

        answers = answers_of_validation(found, predictor.model, labelled.frame, settings, excluded, _history(model))
        write_tripod(tripod, f"{model.name} on {data.name}", answers)
        say(f"TRIPOD+AI: {tripod}")
    if report is not None:
        from cgnlearn.reporting.validation import write_validation_report

        if labelled.n_without:
            settings["Excluded"] = f"{labelled.n_without} row{'s' * (labelled.n_without > 1)} without a class"
        with waiting("writing the report"):
            write_validation_report(report, found, f"Validation of {model.name} on {data.name}", settings)
        say(f"report: {report}")
    say(f"advice: {found.advice}")


def labelled_data(
    path: Path,
    data: Path,
    target: str | None,
    by: Sequence[str],
    *,
    row_id: str | None,
    groups: str | None,
    na: Sequence[str],
    sheet: str | None,
    labels: Path | None,
    skip_bad: bool,
    memory: int | None,
) -> tuple[Predictor, Labelled]:
    """A model file, and labelled samples in its columns."""
    from dataclasses import replace

    predictor = predictor_of(path, row_id, na)
    of_spectra = folder.checked(predictor.model, data)
    target = target or predictor.roles.target
    if of_spectra:
        if by:
            raise click.UsageError("--by is about columns of a table, and spectra have none: omit it")
        return predictor, _of_spectra(predictor, data, labels, target, groups, skip_bad)
    options.refuse_on_table(labels=labels, skip_bad=skip_bad)
    if target is None:
        raise click.UsageError("name the column of the classes: add --target COLUMN")
    predictor = predictor._replace(roles=replace(predictor.roles, target=target))
    source = options.opened(data, [target, *([row_id] if row_id else [])], memory, sheet)
    if options.exceeds(source, memory):
        raise click.UsageError(f"{data} needs more memory than is allowed: increase --memory")
    from cgnlearn.tables.options import listed_values

    columns = listed_values(tuple(by), source.names)
    with options.column_errors():
        source.refuse_unknown((target, "--target"), (groups, "--groups"), *((name, "--by") for name in columns))
    others = list(dict.fromkeys([target, *columns, *([groups] if groups else [])]))
    [read] = matching(predictor, source, needs_id=row_id is not None, others=others)
    import numpy as np

    y = read.others[target]
    kept = np.array([label is not None for label in y], bool)
    if not kept.any():
        raise click.ClickException(f"{data}: column {target!r} has no class in any row: name another one with --target")
    if not kept.all():
        say(f"{(~kept).sum()} of {len(kept)} rows have no class and are not used")
    X = read.X[kept] if hasattr(predictor.model, "feature_names_in_") else read.X[kept].to_numpy()
    return predictor, Labelled(
        X,
        y[kept].astype(str),
        None if read.ids is None else read.ids[kept],
        None if groups is None else read.others[groups][kept],
        {name: read.others[name][kept] for name in columns},
        read.unknown,
        int((~kept).sum()),
        source.sha256,
        target,
        read.X[kept],
    )


def _history(model: Path) -> list[str]:
    """What the file of a model tells about its training."""
    from cgnlearn.persistence import read_header

    header = read_header(model)
    rows, by = f"{header['training_rows']:g} training samples", f"written by cgnlearn {header['versions']['cgnlearn']}"
    return [f"{rows} (checksum {header['training_sha256'][:16]}), {by}"]


def tell_known_ids(path: Path, ids: Sequence[str]) -> None:
    """Warn of samples that the model was trained on, by the hashes of their ids."""
    from cgnlearn.persistence import known_ids, read_header

    again = known_ids(read_header(path), ids)
    if again:
        more = f" and {len(again) - 1} more" if len(again) > 1 else ""
        say(f"warning: {again[0]}{more} of {len(ids)} ids were in the training data: remove these samples")


def _of_spectra(
    predictor: Predictor, data: Path, labels: Path | None, target: str | None, groups: str | None, skip_bad: bool
) -> Labelled:
    import numpy as np

    table = folder.needed_labels(data, labels, target)
    source = folder.opened(data, table, target=target, groups=groups, skip_bad=skip_bad)
    spectra = list(source.spectra())
    y = np.array([label.label for label in source.matched], dtype=str)
    samples = source.samples
    together = samples if len(set(samples.tolist())) < len(samples) else None
    if groups is not None:
        together = np.array([label.group for label in source.matched], dtype=str)
    return Labelled(spectra, y, np.array(source.files), together, {}, {}, 0, "", str(target or "label"), None)


def finite(value: Any) -> Any:
    """Plain values without infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: finite(own) for name, own in value.items()}
    if isinstance(value, list):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not -float("inf") < value < float("inf") else value


def print_validation(found: Validation, title: str) -> None:
    """Print the tables of a validation."""
    counts = ", ".join(f"{n} {label}" for label, n in found.counts.items())
    rows = []
    for name, of in found.rows:
        rows.append(
            [name, "—" if of is None else f"{of.value:.3f}", "" if of is None else of.span("{:.3f}".format, "–")]
        )
    against = "" if found.positive is None else f", {found.positive} against the others"
    print_rows(f"{title}: {found.n} samples ({counts}){against}", ["measure"], ["value", "95% CI"], rows)
    print_subgroups(found.subgroups)
    if found.missing:
        worst = sorted(found.missing.items(), key=lambda item: -item[1])[:5]
        say("missing values: " + ", ".join(f"{n} in {name}" for name, n in worst))
    absent = [label for label, n in found.counts.items() if not n]
    if absent:
        say(f"no sample is of class {', '.join(absent)}: nothing can be said about it")


def print_subgroups(found: Sequence[Any]) -> None:
    """Print the table of subgroups, if there are any; groups that are too small are named."""

    def cell(of: Any) -> str:
        if of is None:
            return ""
        span = of.span("{:.2f}".format, to="–")
        return f"{of.value:.2f} ({span})" if span else f"{of.value:.2f}"

    rows = []
    for of in found:
        slope, ratio = (
            (None, None) if of.calibration is None else (of.calibration.slope, of.calibration.observed_expected)
        )
        cells = [cell(one) for one in (of.log_loss, ratio, slope, of.auc, of.sensitivity, of.specificity)]
        rows.append([f"{of.column} = {of.level}", str(of.n), str(of.n_events), *cells])
    headings = ["n", "events", "log loss", "observed/expected", "slope", "AUC", "sensitivity", "specificity"]
    for first, last in ((0, 5), (5, 8)) if rows else ():  # two tables, as one is too wide for a terminal
        part = [[row[0], *row[1 + first : 1 + last]] for row in rows]
        print_rows("subgroups, 95% confidence intervals", ["subgroup"], headings[first:last], part)
    small = [f"{of.column} = {of.level}" for of in found if of.is_small]
    if small:
        say(f"too small to tell (fewer than 10 of either outcome): {', '.join(small)}")
