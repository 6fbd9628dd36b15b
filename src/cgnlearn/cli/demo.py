"""The command ``cgnlearn demo``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.cli.folder import print_by_sample, training_spectra
from cgnlearn.cli.models import compared
from cgnlearn.cli.options import NEW_REPORT, jobs_option, json_option
from cgnlearn.cli.terminal import finish, print_comparisons, print_table, say, waiting

if TYPE_CHECKING:
    from cgnlearn.evaluation.study import Study

OUTPUT = "Where the report goes.  [default: demo/report.html]"


@click.command()
@click.option("-o", "--output", type=NEW_REPORT, default=Path("demo/report.html"), help=OUTPUT)
@jobs_option(1)
@json_option
def demo(output: Path, jobs: int, as_json: bool) -> None:
    """Maximum likelihood beside Bayesian averaging on embedded data, and the way from raw spectra to a diagnosis.

    The spectra, simulated with a known truth, are written beside the report, and read again.
    """
    from cgnlearn.report import demonstration, write_report

    compared = [part._replace(study=_done(part.study, jobs)) for part in demonstration.comparisons()]
    if not as_json:
        print_comparisons(compared)
    studies = []
    for study in (demonstration.wine_study(), _spectra(output.parent / "spectra")):
        done = _done(study, jobs, explained=True)
        if done.marks is not None:
            truth = demonstration.planted_truth(done)
            done = replace(done, settings={**done.settings, "Truth": truth})
        studies.append(done)
        if not as_json:
            print_table(done.summaries, study.name)
            if done.groups is not None:
                print_by_sample(done)
    say(truth)
    if as_json:
        found = {f"{part.study.name}, {part.structure}, {part.n_train} rows": part.study for part in compared}
        found |= {study.name: study for study in studies}
        plain = {name: [summary.as_dict() for summary in study.summaries] for name, study in found.items()}
        click.echo(json.dumps(plain, indent=1))
    with waiting("writing the report"):
        write_report(output, studies, "Maximum likelihood beside Bayesian averaging", compared)
    say(f"report: {output}")


def _spectra(folder: Path) -> Study:
    """The study of spectra that are written to a folder first."""
    from cgnlearn.report import demonstration

    with waiting(f"writing spectra into {folder}"):
        made = demonstration.raw_spectra()
        made.write(folder)
    say(f"spectra: {folder}")
    read = training_spectra(
        folder / "spectra", folder / "labels.csv", "sample", preset="maldi", width=10.0, skip_bad=False
    )
    models = {name: read.before(model) for name, model in compared((), (), seed=0, ordered=True).items()}
    return demonstration.spectra_study(
        read.X, read.y, models, made, groups=read.groups, raw=read.spectra, ids=read.ids, proposed=MIXTURE
    )


def _done(study: Study, jobs: int, *, explained: bool = False) -> Study:
    from cgnlearn.evaluation.run import Run

    run = Run(study.work(explained=explained))
    if not finish(run, study.name, jobs):
        raise click.exceptions.Exit(1)
    return replace(study, results=run.results)
