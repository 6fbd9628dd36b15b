"""The command ``cgnlearn demo``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.cli.command import Command
from cgnlearn.cli.folder import opened, print_by_sample, steps_of
from cgnlearn.cli.models import compared, with_comparators
from cgnlearn.cli.options import NEW_REPORT, jobs_option, json_option
from cgnlearn.cli.terminal import finish, print_comparisons, print_table, say, waiting

if TYPE_CHECKING:
    from cgnlearn.evaluation.study import Study

OUTPUT = "Path of the report.  [default: demo/report.html]"


@click.command(cls=Command)
@click.option("-o", "--output", type=NEW_REPORT, default=Path("demo/report.html"), help=OUTPUT)
@jobs_option(1)
@json_option
def demo(output: Path, jobs: int, as_json: bool) -> None:
    """Classify raw spectra and wines, and compare maximum likelihood and Bayesian averaging on embedded data.

    The spectra, simulated with a known truth, are written beside the report and read from there.
    """
    from cgnlearn.reporting import demonstration, write_report

    studies = []
    for study in (_spectra(output.parent / "spectra"), demonstration.wine_study()):
        done = _done(study, jobs, explained=True)
        if done.marks is not None:
            truth = demonstration.planted_truth(done)
            done = replace(done, settings={**done.settings, "Truth": truth})
        studies.append(done)
        if not as_json:
            print_table(done.summaries, study.name + (", by spectrum" if done.has_replicates else ""))
            if done.has_replicates:
                print_by_sample(done)
    compared = [part._replace(study=_done(part.study, jobs)) for part in demonstration.comparisons()]
    if not as_json:
        print_comparisons(compared)
    say(truth)
    if as_json:
        by_name = {study.name: study for study in studies}
        by_name |= {f"{part.study.name}, {part.structure}, {part.n_train} samples": part.study for part in compared}
        plain = {name: [summary.as_dict() for summary in study.summaries] for name, study in by_name.items()}
        click.echo(json.dumps(plain, indent=1))
    with waiting("writing the report"):
        write_report(output, studies, "Demonstration: raw spectra, wines, and small training sets", compared)
    say(f"report: {output}")


def _spectra(folder: Path) -> Study:
    """A study of simulated spectra, written to a folder first."""
    from cgnlearn.reporting import demonstration

    with waiting(f"writing spectra into {folder}"):
        simulated = demonstration.raw_spectra()
        simulated.write(folder)
    say(f"spectra: {folder}")
    with waiting(f"reading {folder}"):
        spectra = opened(folder / "spectra", folder / "labels.csv", groups="sample")
        read = spectra.training(steps_of("maldi", width=10.0))
    own = compared((), (), seed=0, ordered=True)
    own = with_comparators(own, (), by_default=True, n_columns=read.X.shape[1], n_classes=2, seed=0)
    models = {name: read.before(model) for name, model in own.items()}
    return demonstration.spectra_study(
        read.X,
        read.y,
        models,
        simulated,
        groups=read.groups,
        raw=read.spectra,
        ids=read.ids,
        proposed=MIXTURE,
        spectra=read.survey,
    )


def _done(study: Study, jobs: int, *, explained: bool = False) -> Study:
    from cgnlearn.evaluation.run import Run

    run = Run(study.work(explained=explained))
    if not finish(run, study.name, jobs):
        raise click.exceptions.Exit(1)
    return replace(study, results=run.results)
