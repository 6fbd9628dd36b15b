"""The command ``cgnlearn evaluate``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.cli import folder, options
from cgnlearn.cli.given import Given, given_data
from cgnlearn.cli.models import compared
from cgnlearn.cli.parts import evaluate_in_parts
from cgnlearn.cli.terminal import (
    finish,
    foretell,
    one_line,
    print_decisions,
    print_table,
    say,
    tell_of_no_answer,
    waiting,
    warn_of_worse_than_nothing,
)

if TYPE_CHECKING:
    from cgnlearn.evaluation.decisions import Costs, Decisions
    from cgnlearn.evaluation.estimates import Estimate
    from cgnlearn.evaluation.metrics import Summary
    from cgnlearn.evaluation.study import Study
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles

CV = "Folds and repetitions.  [default: 10x1]"
PREVALENCE = "Of the positive class where decisions will be made; default: as in the data."
OUTPUT = "Folder for rows.csv, summary.csv and manifest.json; an interrupted run goes on there."


@click.command()
@given_data
@options.model_options(many=True)
@click.option("--cv", type=options.folds_and_repeats, metavar="FOLDSXREPEATS", default="10x1", help=CV)
@click.option("--positive", metavar="CLASS", help="Class to tell from the others: AUC, sensitivity, specificity, ...")
@click.option("--prevalence", type=click.FloatRange(0, 1, min_open=True, max_open=True), help=PREVALENCE)
@options.cost_option
@options.jobs_option(1)
@click.option("-o", "--output", type=options.NEW_FOLDER, help=OUTPUT)
@click.option("--report", type=options.NEW_REPORT, help="Where to write the HTML report.")
@options.memory_option
@options.json_option
def evaluate(
    given: Given,
    structure: tuple[str, ...],
    estimation: tuple[str, ...],
    ordered: bool,
    cv: tuple[int, int],
    positive: str | None,
    prevalence: float | None,
    cost: Path | None,
    jobs: int,
    output: Path | None,
    report: Path | None,
    memory: int | None,
    as_json: bool,
    seed: int,
    **model: Any,
) -> None:
    """Cross-validate: accuracy, log loss, Brier score and calibration error, ML beside Bayes.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels: all steps are then learned within the folds.
    """
    if prevalence is not None and positive is None:
        raise click.UsageError("--prevalence is that of a class: name it with --positive CLASS")
    data, of_spectra, roles = given.data, given.of_spectra, given.roles
    has_mixture = not structure or MIXTURE in structure
    models = compared(structure, estimation, seed=seed, ordered=ordered or (of_spectra and has_mixture), **model)
    if given.is_beyond(memory):
        refused = {"--positive": positive, "--cost": cost}
        evaluate_in_parts(models, given, cv, seed, output, report, refused, as_json=as_json)
        return
    from cgnlearn.data.splits import fewer, repeated_splits
    from cgnlearn.evaluation.metrics import summary_text
    from cgnlearn.evaluation.run import Run
    from cgnlearn.evaluation.study import Study
    from cgnlearn.files import write_whole

    read: Any = given.spectra() if of_spectra else given.table()
    own = models
    if of_spectra:
        models = {name: read.before(model) for name, model in own.items()}
    costs = _checked(read.y, positive, cost)
    splits = repeated_splits(read.y, groups=read.groups, n_folds=cv[0], n_repeats=cv[1], seed=seed)
    if reason := fewer(read.y, cv[0], read.groups):
        say(reason)
    foretell(own.get(MIXTURE), read.X, read.y, len(splits), jobs)
    how = f"stratified {len(splits) // cv[1]}-fold cross-validation" + (f", {cv[1]} times" if cv[1] > 1 else "")
    settings = _settings(read, roles, of_spectra) | {"Cross-validation": f"{how}, seed {seed}"}
    proposed, raw = MIXTURE if MIXTURE in models else None, read.spectra if of_spectra else None
    asked: dict[str, Any] = {"proposed": proposed, "positive": positive, "prevalence": prevalence}
    rows: dict[str, Any] = {"lines": read.lines, "ids": read.ids, "groups": read.groups, "raw": raw}
    study = Study(data.name, read.X, read.y, models, splits, settings=settings, **asked, **rows, **_spectrum(read))
    run = Run(study.work(_manifest(read, roles, models, cv, seed), explained=report is not None), output)
    is_finished = finish(run, "cross-validating", jobs)
    study = replace(study, results=run.results)
    if not study.results:
        raise click.exceptions.Exit(1)
    summaries = _with_common_folds(study)
    decided, mean_costs = _decided(study, positive, prevalence, costs)
    if output is not None:
        write_whole(output / "summary.csv", summary_text(study.summaries))
        if positive is not None:
            write_whole(output / "decision_curve.csv", _curve_text(study, positive, prevalence))
    if report is not None:
        from cgnlearn.report import write_report

        with waiting("writing the report"):
            write_report(report, [study], f"Evaluation of {data.name}")
        say(f"report: {report}")
    if as_json:
        told = {
            "data": _data_as_dict(study, read),
            "cross_validation": {"folds": len(splits) // cv[1], "repeats": cv[1], "seed": seed},
            "models": [_model_as_dict(summary, decided, mean_costs) for summary in summaries],
        }
        click.echo(json.dumps(told, indent=1))
    else:
        spread = "mean ± standard deviation of the folds"
        print_table(summaries, f"{data.name}: {how}, {spread}", mean_costs)
        if positive is not None:
            stated = "the prevalence of the data" if prevalence is None else f"a prevalence of {prevalence:g}"
            intervals = f"95 % intervals; predictive values (PPV, NPV) at {stated}"
            print_decisions(decided, f"{positive} against the others, {intervals}")
            if read.groups is not None:
                say("the intervals take rows for independent, but rows of one group are not: they are too narrow")
        if of_spectra and read.groups is not None:
            folder.print_by_sample(study)
    tell_of_no_answer(study.summaries)
    warn_of_worse_than_nothing(study.summaries)
    if not is_finished:
        raise click.exceptions.Exit(1)


def _checked(y: Any, positive: str | None, cost: Path | None) -> Costs | None:
    """The costs, if there are any, after the classes that the options name have been found among those of the data."""
    from cgnlearn.cli.costs import read_costs

    classes = sorted(set(y.tolist()))
    if positive is not None and positive not in classes:
        raise click.UsageError(f"--positive {positive}: the classes are {', '.join(classes)}")
    return None if cost is None else read_costs(cost, classes)


def _decided(
    study: Study, positive: str | None, prevalence: float | None, costs: Costs | None
) -> tuple[dict[str, Decisions], dict[str, Estimate]]:
    """What models are worth to those who decide, by their names."""
    from cgnlearn.evaluation.decisions import decisions, one_class, predictions_by_model

    said = predictions_by_model(study)
    decided: dict[str, Decisions] = {}
    if positive is not None:
        place = study.classes.index(positive)
        decided = {model: decisions(one_class(found, place), prevalence) for model, found in said.items()}
    return decided, {} if costs is None else {model: costs.mean(found) for model, found in said.items()}


def _curve_text(study: Study, positive: str, prevalence: float | None) -> str:
    """The net benefit of every model at every threshold, as csv."""
    from cgnlearn.evaluation.decisions import decision_curve, one_class, predictions_by_model
    from cgnlearn.evaluation.run import csv_text

    rows: list[list[Any]] = [["model", "threshold", "net_benefit", "act_on_all"]]
    for model, found in predictions_by_model(study).items():
        curve = decision_curve(one_class(found, study.classes.index(positive)), prevalence)
        rows += [[model, *map(float, of)] for of in zip(*curve, strict=True)]
    return csv_text(*rows)


def _with_common_folds(study: Study) -> list[Summary]:
    """The summaries, and below each model that answered in some folds only the first one in these."""
    from cgnlearn.evaluation.study import summarise

    found = []
    for summary in study.summaries:
        found.append(summary)
        first = next((other for other in study.summaries if other.metrics and not other.n_without), None)
        if summary.n_without and summary.metrics and first is not None:
            of_model = [result for result in study.results if result.unit.name == summary.model]
            answered = {result.unit[1:] for result in of_model if result.log_proba is not None}
            common = [r for r in study.results if r.unit.name == first.model and r.unit[1:] in answered]
            [beside] = summarise(common, study.true)
            found.append(replace(beside, model=f"{first.model} in the same {beside.n_folds} folds"))
    return found


def _model_as_dict(summary: Summary, decided: dict[str, Decisions], costs: dict[str, Estimate]) -> dict[str, Any]:
    """All that was found of a model, in plain values; the keys stay as they are."""
    found = summary.as_dict()
    if summary.model in decided:
        found["decisions"] = decided[summary.model].as_dict()
    if summary.model in costs:
        found["cost"] = costs[summary.model]._asdict()
    return found


def _data_as_dict(study: Study, read: Data) -> dict[str, Any]:
    counts = {"rows": len(study.y), "rows_left_out": read.n_dropped, "features": study.names, "classes": study.counts}
    return {"file": read.path.name, "sha256": read.sha256, **counts, "missing": read.missing}


def _manifest(data: Data, roles: Roles, models: dict[str, Any], cv: tuple[int, int], seed: int) -> dict[str, Any]:
    """All that the results depend on."""
    kinds = {name: str(kind) for name, kind in data.X.dtypes.items()} if data.X.shape[1] < 1000 else None
    read = {"data": data.path.name, "sha256": data.sha256, "rows": len(data.lines), **roles.as_dict()}
    described = {name: one_line(repr(model)) for name, model in models.items()}
    return read | {"features": kinds, "folds": list(cv), "seed": seed, "models": described}


def _settings(data: Data, roles: Roles, of_spectra: bool) -> dict[str, str]:
    """What the report says of the data."""
    settings = {"File": data.path.name, "SHA-256": data.sha256, "Class column": str(roles.target)}
    if not of_spectra:
        settings["Row numbers"] = "lines of the file" if data.is_text else "rows of the file, from 0"
    if data.groups is not None:
        together = "samples" if roles.groups is None else roles.groups
        settings["Groups"] = f"{together}: {'spectra' if of_spectra else 'rows'} of one stay on one side of every split"
    if roles.id:
        settings["Rows are named by"] = roles.id
    if data.n_dropped:
        settings["Left out"] = f"{data.n_dropped} rows without a class or with missing values"
    return settings


def _spectrum(data: Data) -> dict[str, Any]:
    """Where the columns stand along a spectrum, if there are enough to speak of one."""
    from cgnlearn.tables.text import rising_numbers

    positions = rising_numbers(data.X.columns)
    if positions is None or len(positions) < 50:
        return {}
    numbered = bool((positions == range(len(positions))).all())  # an npz file without names
    return {"positions": positions, "axis": "column" if numbered else "m/z"}
