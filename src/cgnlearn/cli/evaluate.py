"""The command ``cgnlearn evaluate``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.terminal import finish, one_line, print_table, say, waiting

if TYPE_CHECKING:
    from cgnlearn.cli.datafile import Data


@click.command()
@options.data_options
@folder.labels_option
@folder.preset_options
@click.option(
    "--groups",
    help="Column (npz: array) that says which rows belong together, such as a subject's; "
    "of spectra, a column of the labels (default: sample).",
)
@options.model_options(many=True)
@click.option("--cv", type=options.folds_and_repeats, metavar="FOLDSXREPEATS", default="10x1", show_default=True,
              help="Folds and repetitions.")  # fmt: skip
@options.jobs_option(1)
@click.option("-o", "--output", type=options.NEW_FOLDER,
              help="Folder for rows.csv, summary.csv and manifest.json; an interrupted run goes on there.")  # fmt: skip
@click.option("--report", type=options.NEW_REPORT, help="Where to write the HTML report.")
@options.json_option
def evaluate(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool,
    labels: Path | None, preset: str, width: float | None, skip_bad: bool, groups: str | None,
    structure: tuple[str, ...], parameters: tuple[str, ...], cv: tuple[int, int], jobs: int, output: Path | None,
    report: Path | None, as_json: bool, seed: int, **model_options: Any,
) -> None:  # fmt: skip
    """Cross-validate: accuracy, CLL, Brier score and calibration error, ML beside Bayes.

    DATA is a table, or a folder (zip, tar) of raw spectra with --labels: all steps are then learned within the folds.
    """
    models = {
        options.label(shape, how, **model_options): options.classifier(shape, how, seed=seed, **model_options)
        for shape in dict.fromkeys(structure)
        for how in dict.fromkeys(parameters)
    }
    from sklearn.dummy import DummyClassifier

    from cgnlearn.evaluation.run import Run
    from cgnlearn.evaluation.splits import cut, fewer
    from cgnlearn.evaluation.study import BASELINE, Study, summary_text
    from cgnlearn.files import write_whole

    models[BASELINE] = DummyClassifier(strategy="prior")
    read: Any
    if folder.is_folder(data):
        read = folder.training_spectra(data, labels, groups, preset=preset, width=width, skip_bad=skip_bad)
        models = {name: read.before(model) for name, model in models.items()}
        target = "label"
    else:
        read = options.training_data(data, target, categorical, drop_missing, groups)
    splits = cut(read.y, groups=read.groups, n_folds=cv[0], n_repeats=cv[1], seed=seed)
    if reason := fewer(read.y, cv[0], read.groups):
        say(reason)
    how = f"stratified {len(splits) // cv[1]}-fold cross-validation" + (f", {cv[1]} times" if cv[1] > 1 else "")
    study = Study(
        data.name, read.X, read.y, models, splits, lines=read.lines, **_spectrum(read), groups=read.groups,
        raw=getattr(read, "spectra", None),
        settings=_settings(read, target, groups) | {"Cross-validation": f"{how}, seed {seed}"},
    )  # fmt: skip
    manifest = _manifest(read, models, cv, seed, target, groups)
    run = Run(study.work(manifest, explained=report is not None), output)
    is_finished = finish(run, "cross-validating", jobs)
    study = replace(study, results=run.results)
    if output is not None:
        write_whole(output / "summary.csv", summary_text(study.summaries))
    if not study.results:
        raise click.exceptions.Exit(1)
    if report is not None:
        from cgnlearn.report import write_report

        with waiting("writing the report"):
            write_report(report, [study], f"Evaluation of {data.name}")
        say(f"report: {report}")
    if as_json:
        click.echo(json.dumps([summary.as_dict() for summary in study.summaries], indent=1))
    else:
        print_table(study.summaries, f"{data.name}: {how}")
        if study.raw is not None and study.groups is not None:
            folder.print_by_sample(study)
    if not is_finished:
        raise click.exceptions.Exit(1)


def _manifest(
    data: Data, models: dict[str, Any], cv: tuple[int, int], seed: int, target: str | None, groups: str | None
) -> dict[str, Any]:
    """All that the results depend on."""
    return {
        "data": data.path.name, "sha256": data.sha256, "rows": len(data.lines), "target": target, "groups": groups,
        "categorical": [name for name, kind in data.X.dtypes.items() if str(kind) == "category"],
        "folds": list(cv), "seed": seed, "models": {name: one_line(repr(model)) for name, model in models.items()},
    }  # fmt: skip


def _settings(data: Data, target: str | None, groups: str | None) -> dict[str, str]:
    """What the report says of the data."""
    settings = {
        "File": data.path.name,
        "SHA-256": data.sha256,
        "Class column": target or "y",
        "Row numbers": "lines of the file" if data.lines[0] else "rows of the file, from 0",
    }
    if groups:
        settings["Groups"] = f"{groups}: rows of one group stay on one side of every split"
    if data.n_dropped:
        settings["Left out"] = f"{data.n_dropped} rows with empty cells"
    return settings


def _spectrum(data: Data) -> dict[str, Any]:
    """Where the columns stand along a spectrum, if there are enough to speak of one."""
    from cgnlearn.cli.datafile import rising_numbers

    positions = rising_numbers(data.X.columns)
    if positions is None or len(positions) < 50:
        return {}
    numbered = bool((positions == range(len(positions))).all())  # an npz file without names
    return {"positions": positions, "axis": "column" if numbered else "m/z"}
