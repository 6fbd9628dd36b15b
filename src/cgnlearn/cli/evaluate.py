"""The command ``cgnlearn evaluate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.cli import folder, options, terminal
from cgnlearn.cli.command import Command
from cgnlearn.cli.given import Given, given_data
from cgnlearn.cli.models import NAMED, NO_OTHERS, compared, with_comparators
from cgnlearn.cli.validate import finite, print_subgroups

if TYPE_CHECKING:
    from cgnlearn.evaluation.calibration import Calibration, MulticlassCalibration
    from cgnlearn.evaluation.decisions import Costs, Decisions
    from cgnlearn.evaluation.estimates import Estimate
    from cgnlearn.evaluation.metrics import Summary
    from cgnlearn.evaluation.study import Study
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles

CV = "Folds and repetitions.  [default: 10x1]"
COMPARE = "Models of scikit-learn beside; may be repeated.  [default: all without --structure, else none]"
OUTPUT = "Folder for rows.csv, summary.csv and manifest.json; an interrupted run continues there."


@click.command(cls=Command)
@given_data
@options.model_options(many=True)
@click.option("--compare", type=click.Choice((*NAMED, NO_OTHERS)), multiple=True, help=COMPARE)
@click.option("--cv", type=options.folds_and_repeats, metavar="FOLDSXREPEATS", default="10x1", help=CV)
@options.positive_option
@options.prevalence_option
@options.threshold_option
@options.by_option
@options.cost_option
@options.jobs_option(1)
@click.option("-o", "--output", type=options.NEW_FOLDER, help=OUTPUT)
@options.report_option
@options.tripod_option
@click.option("--figures", type=options.NEW_FOLDER, help="Folder for the figures of the report, as svg and pdf.")
@options.json_option
def evaluate(
    given: Given,
    structure: tuple[str, ...],
    estimation: tuple[str, ...],
    ordered: bool,
    compare: tuple[str, ...],
    cv: tuple[int, int],
    positive: str | None,
    prevalence: float | None,
    threshold: tuple[float, ...],
    by: tuple[str, ...],
    cost: Path | None,
    jobs: int,
    output: Path | None,
    report: Path | None,
    tripod: Path | None,
    figures: Path | None,
    as_json: bool,
    seed: int,
    **model: Any,
) -> None:
    """Cross-validate classifiers: accuracy, log loss, AUC, calibration.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels; all steps are then fitted within the folds.
    """
    if prevalence is not None and positive is None:
        raise click.UsageError("--prevalence needs a class: name it with --positive CLASS")
    if threshold and positive is None:
        raise click.UsageError("--threshold needs a class: name it with --positive CLASS")
    if figures is not None and report is None:
        raise click.UsageError("--figures are those of the report: add --report PATH")
    data, of_spectra, roles = given.data, given.of_spectra, given.roles
    has_mixture = not structure or MIXTURE in structure
    models = compared(structure, estimation, seed=seed, ordered=ordered or (of_spectra and has_mixture), **model)
    if given.exceeds:
        for option, value in {"--positive": positive, "--cost": cost, "--by": by}.items():
            if value:
                raise click.UsageError(f"{option} needs all rows in memory: omit it, or increase --memory")
        if report is not None:
            terminal.say(f"no report is written, because {data} is read in batches: increase --memory for a report")
        if tripod is not None:
            raise click.UsageError("--tripod needs all rows in memory: omit it, or increase --memory")
        with_others = partial(with_comparators, models, compare, by_default=not structure, seed=seed)
        _evaluate_in_batches(with_others, given, cv, seed, output, as_json=as_json)
        return
    from cgnlearn.data.splits import fewer, repeated_splits, site_splits
    from cgnlearn.evaluation.calibration import calibration_by_model
    from cgnlearn.evaluation.metrics import summary_text
    from cgnlearn.evaluation.run import Run
    from cgnlearn.evaluation.sites import log_loss_by_site
    from cgnlearn.evaluation.study import Study
    from cgnlearn.evaluation.subgroups import subgroups_of
    from cgnlearn.files import write_whole

    read: Any = given.spectra() if of_spectra else given.table(given.subgroups(by))
    size = {"n_columns": read.X.shape[1], "n_classes": len(set(read.y.tolist()))}
    own = models = with_comparators(models, compare, by_default=not structure, seed=seed, **size)
    if of_spectra:
        models = {name: read.before(model) for name, model in own.items()}
    costs = _checked(read.y, positive, cost)
    sites = None if of_spectra else read.sites
    if sites is not None:
        splits, cv = site_splits(read.y, sites), (len(set(sites.tolist())), 1)
    else:
        splits = repeated_splits(read.y, groups=read.groups, n_folds=cv[0], n_repeats=cv[1], seed=seed)
        if reason := fewer(read.y, cv[0], read.groups):
            terminal.say(f"{reason} (choose their number with --cv)")
    terminal.print_expected_time(own.get(MIXTURE), read.X, read.y, len(splits), jobs)
    design = f"stratified {len(splits) // cv[1]}-fold cross-validation" + (f", {cv[1]} times" if cv[1] > 1 else "")
    if sites is not None:
        design = f"each of {len(splits)} sites held out"
    settings = _settings(read, roles, of_spectra) | {"Cross-validation": f"{design}, seed {seed}"}
    settings |= _of_sites(read, sites)
    proposed, raw = MIXTURE if MIXTURE in models else None, read.spectra if of_spectra else None
    asked: dict[str, Any] = {"proposed": proposed, "positive": positive, "prevalence": prevalence, "costs": costs}
    rows: dict[str, Any] = {"lines": read.lines, "ids": read.ids, "groups": read.groups, "sites": sites, "raw": raw}
    rows["by"] = {} if of_spectra else read.others
    if of_spectra:
        rows["spectra"] = read.survey
        for warning in read.survey.warnings:
            terminal.say(f"warning: {warning}")
    rows |= _spectrum(read, ordered or not {"band", "box", "band_average"}.isdisjoint(structure))
    study = Study(data.name, read.X, read.y, models, splits, settings=settings, **asked, **rows)
    if study.undivided:
        terminal.say(study.undivided)
    run = Run(study.work(_manifest(read, roles, models, cv, seed), explained=report is not None), output)
    is_finished = terminal.finish(run, "cross-validating", jobs)
    study = replace(study, results=run.results)
    if not study.results:
        raise click.exceptions.Exit(1)
    summaries = _with_common_folds(study)
    thresholds = threshold or (0.5,)
    decided, beside = {at: _decided(study, at) for at in thresholds}, _beside(study)
    calibrated = calibration_by_model(study)
    in_subgroups = subgroups_of(study, study.chosen, thresholds[0]) if study.chosen else []
    if output is not None:
        write_whole(output / "summary.csv", summary_text(study.summaries))
        if positive is not None:
            write_whole(output / "decision_curve.csv", _curve_text(study, positive, prevalence))
    if as_json:
        counts = {"rows": len(study.y), "rows_left_out": sum(read.excluded.values()), "features": study.names}
        file = {"file": read.path.name, "sha256": read.sha256}
        result = {
            "data": file | counts | {"classes": study.counts, "missing": read.missing},
            "cross_validation": {"folds": len(splits) // cv[1], "repeats": cv[1], "seed": seed},
            "models": [_model_as_dict(summary, decided, calibrated, beside, study) for summary in summaries],
        }
        if in_subgroups:
            result["subgroups"] = {"model": study.chosen, "levels": [of.as_dict() for of in in_subgroups]}
        if sites is not None:
            result["sites"] = log_loss_by_site(study)
        click.echo(json.dumps(finite(result), indent=1))
    else:
        spread = "mean ± standard deviation of the folds"
        by_spectrum = ", by spectrum" if study.has_replicates else ""
        terminal.print_table(summaries, f"{data.name}: {design}, {spread}{by_spectrum}", beside)
        if decided[thresholds[0]]:
            stated = "the prevalence of the data" if prevalence is None else f"a prevalence of {prevalence:g}"
            intervals = f"95% confidence intervals; predictive values (PPV, NPV) at {stated}"
            for at, of_models in decided.items():
                called = f", called from {at:g} on" if threshold else ""
                about = f"{study.positive_class} against the others{called}"
                terminal.print_decisions(of_models, f"{about}, {intervals}")
        terminal.print_calibration(calibrated, study.positive_class)
        print_subgroups(in_subgroups)
        if study.has_replicates:
            folder.print_by_sample(study)
        if sites is not None:
            terminal.print_by_site(log_loss_by_site(study))
    terminal.print_warnings(study.summaries)
    if tripod is not None and study.chosen is None:
        terminal.say(f"{tripod} is not written, as no model has predictions in every fold: finish the evaluation first")
    elif tripod is not None:
        from cgnlearn.reporting.tripod import write_tripod
        from cgnlearn.reporting.tripod_answers import answers_of_study

        remarks = () if of_spectra else read.remarks
        answers = answers_of_study(study, read.excluded, thresholds, remarks)
        write_tripod(tripod, f"{study.chosen} on {data.name}", answers)
        terminal.say(f"TRIPOD+AI: {tripod}")
    if report is not None:  # last, as the results above do not depend on it
        from cgnlearn.reporting import write_report

        if costs is not None:
            study = replace(study, settings={**study.settings, **_in_words(costs, study.classes, beside.costs)})
        with terminal.waiting("writing the report"):
            write_report(report, [study], f"Evaluation of {data.name}", figures=figures)
        terminal.say(f"report: {report}")
    if not is_finished:
        raise click.exceptions.Exit(1)


def _evaluate_in_batches(
    with_others: Callable[..., dict[str, Any]],
    given: Given,
    cv: tuple[int, int],
    seed: int,
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """Cross-validate on a file that does not fit into memory."""
    from cgnlearn.evaluation.metrics import summary_text
    from cgnlearn.evaluation.streamed import evaluate_on
    from cgnlearn.evaluation.study import BASELINE
    from cgnlearn.files import write_whole

    data, (n_folds, n_repeats) = given.data, cv
    stream = given.stream()
    found = with_others(n_columns=len(stream.plan.features), n_classes=len(stream.survey.counts))
    models = {name: model for name, model in found.items() if name != BASELINE}
    with terminal.counted(f"reading {data} twice") as progress:
        result = evaluate_on(stream, models, n_folds, n_repeats, seed, progress=progress)
    for name, n_samples in result.sampled.items():
        terminal.say(
            f"{name} cannot be fitted in batches: each fold fitted it to a random sample of {n_samples:,} rows"
        )
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / "summary.csv", summary_text(result.summaries))
        terminal.say(f"{output} gets summary.csv only: the predictions of {data} are not kept")
    if as_json:
        n_samples = stream.survey.n_samples
        file = {"file": data.name, "sha256": given.source.sha256, "rows": n_samples}
        file |= {"rows_left_out": stream.survey.n_read - n_samples, "features": list(stream.plan.features)}
        summaries = [summary.as_dict() for summary in result.summaries]
        for summary in summaries:
            if summary["model"] in result.sampled:
                summary["fitted_to_sample_of"] = result.sampled[summary["model"]]
        plain = {
            "data": file | {"classes": result.counts, "missing": stream.plan.missing},
            "cross_validation": {"folds": n_folds, "repeats": n_repeats, "seed": seed},
            "models": summaries,
        }
        click.echo(json.dumps(plain, indent=1))
    else:
        times = f", {n_repeats} times" if n_repeats > 1 else ""
        terminal.print_table(result.summaries, f"{data.name}: {n_folds}-fold cross-validation, split at random{times}")
    terminal.print_warnings(result.summaries)


def _checked(y: Any, positive: str | None, cost: Path | None) -> Costs | None:
    """The costs, if any; raises if an option names a class that does not exist."""
    from cgnlearn.cli.costs import read_costs
    from cgnlearn.evaluation.study import in_order

    classes = in_order(y.tolist())
    if positive is not None and positive not in classes:
        raise click.UsageError(f"--positive {positive}: the classes are {', '.join(classes)}")
    return None if cost is None else read_costs(cost, classes)


def _decided(study: Study, threshold: float) -> dict[str, Decisions]:
    """Quality of the decisions about the positive class, by model; empty without one."""
    from cgnlearn.evaluation.decisions import decisions_by_model

    return {} if study.positive_class is None else decisions_by_model(study, study.positive_class, threshold)


def _beside(study: Study) -> terminal.Beside:
    """What the table shows beside the metrics."""
    from cgnlearn.evaluation.decisions import auc_by_model

    costs = {} if study.costs is None else study.costs.by_model(study)
    return terminal.Beside(costs, auc_by_model(study))


def _in_words(costs: Costs, classes: list[str], means: Mapping[str, Estimate]) -> dict[str, str]:
    """Costs of decisions, and what they come to with each model, for the report."""
    rows = []
    for label, of_class in zip(classes, costs.matrix.tolist(), strict=True):
        decided = (f"{name} {cost:g}" for name, cost in zip(costs.decisions, of_class, strict=True))
        rows.append(f"{label}: {', '.join(decided)}")
    spans = (f"{model} {mean.value:.3f} ({mean.span('{:.3f}'.format)})" for model, mean in means.items())
    return {"Costs of decisions by class": "; ".join(rows), "Mean cost per sample (95% CI)": "; ".join(spans)}


def _curve_text(study: Study, positive: str, prevalence: float | None) -> str:
    """Net benefit of every model at every threshold, as csv."""
    from cgnlearn.evaluation.decisions import decision_curve, one_class, predictions_by_model
    from cgnlearn.evaluation.run import csv_text

    rows: list[list[Any]] = [["model", "threshold", "net_benefit", "act_on_all"]]
    for model, found in predictions_by_model(study).items():
        curve = decision_curve(one_class(found, study.classes.index(positive)), prevalence)
        rows += [[model, *map(float, of)] for of in zip(*curve, strict=True)]
    return csv_text(*rows)


def _with_common_folds(study: Study) -> list[Summary]:
    """The summaries; below each model that exists in some folds only, the first model in the same folds."""
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


def _model_as_dict(
    summary: Summary,
    decided: Mapping[float, Mapping[str, Decisions]],
    calibrated: Mapping[str, Calibration | MulticlassCalibration],
    beside: terminal.Beside,
    study: Study,
) -> dict[str, Any]:
    """All results of a model in plain values; the keys are part of the interface."""
    result, model = summary.as_dict(), summary.model
    if model in beside.auc:
        result["auc"] = beside.auc[model]._asdict()
    at_thresholds = [of[model].as_dict() | {"threshold": at} for at, of in decided.items() if model in of]
    if at_thresholds:
        result["decisions"] = at_thresholds[0]
    if at_thresholds[1:]:
        result["other_thresholds"] = at_thresholds[1:]
    if model in calibrated:
        result["calibration"] = calibrated[model].as_dict()
    if model in beside.costs:
        result["cost"] = beside.costs[model]._asdict()
    if took := study.seconds(model):
        result["seconds"] = took._asdict()
    return result


def _manifest(data: Data, roles: Roles, models: dict[str, Any], cv: tuple[int, int], seed: int) -> dict[str, Any]:
    """Everything the results depend on."""
    from cgnlearn.evaluation.description import description

    kinds = {name: str(kind) for name, kind in data.X.dtypes.items()} if data.X.shape[1] < 1000 else None
    read = {"data": data.path.name, "sha256": data.sha256, "rows": len(data.lines), **roles.as_dict()}
    parameters = {name: description(model) for name, model in models.items()}
    return read | {"features": kinds, "folds": list(cv), "seed": seed, "model_parameters": parameters}


def _settings(data: Data, roles: Roles, of_spectra: bool) -> dict[str, str]:
    """The settings in the report."""
    settings = {"File": data.path.name, "SHA-256": data.sha256, "Class column": str(roles.target)}
    if not of_spectra:
        settings["Row numbers"] = "lines of the file" if data.is_text else "rows of the file, from 1"
    if data.groups is not None:
        together = "samples" if roles.groups is None else roles.groups
        unit = "spectra" if of_spectra else "samples"
        settings["Groups"] = f"{together}: all {unit} of a group are in the same fold"
    if roles.id:
        settings["Column of names"] = roles.id
    if data.excluded:
        settings["Excluded"] = ", ".join(f"{n} rows {reason}" for reason, n in data.excluded.items())
    return settings


def _of_sites(data: Data, sites: Any) -> dict[str, str]:
    """What sites do to the features of all samples, for the terminal and the report."""
    if sites is None:
        return {}
    from cgnlearn.evaluation.sites import sites_in_words

    assert data.y is not None
    found = sites_in_words(data.X, data.y, sites)
    for line in found:
        terminal.say(line)
    return {"Sites": "; ".join(found)}


def _spectrum(data: Data, is_ordered: bool) -> dict[str, Any]:
    """Positions of the columns along a spectrum, if their names are 50 or more rising numbers.

    Columns that are merely counted, as those of an npz file without names, are one if their order was said to matter.
    """
    from cgnlearn.tables.text import rising_numbers

    positions = rising_numbers(data.X.columns)
    if positions is None or len(positions) < 50:
        return {}
    is_counted = bool((positions == range(len(positions))).all())
    if is_counted and not is_ordered:
        return {}
    return {"positions": positions, "axis": "column" if is_counted else "m/z"}
