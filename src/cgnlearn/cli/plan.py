"""The command ``cgnlearn plan``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli import options
from cgnlearn.cli.command import Command
from cgnlearn.cli.given import Given, given_data
from cgnlearn.cli.models import chosen
from cgnlearn.cli.terminal import waiting

SIZES = "Numbers of training samples to try, separated by commas; default: four."


def numbers(value: str) -> list[int]:
    """The type of an option such as 20,40,80."""
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r} is not of the form 20,40,80") from None


@click.command(cls=Command)
@given_data
@options.model_options(many=False)
@click.option("--sizes", type=numbers, metavar="N,N,...", help=SIZES)
@click.option("--repeats", type=click.IntRange(1), default=2, show_default=True, help="Number of cross-validations.")
@click.option("--graph", type=options.NEW_FILE, help="Path of a picture of the learning curve (svg, png, pdf).")
@options.json_option
def plan(given: Given, sizes: list[int] | None, repeats: int, graph: Path | None, as_json: bool, **asked: Any) -> None:
    """Tell what more samples are worth: log loss, AUC and calibration with 2, 4 and 8 times as many."""
    if given.of_spectra:
        raise click.UsageError("a plan needs a table: convert the spectra first, with cgnlearn spectra")
    if given.site is not None:
        raise click.UsageError("a plan knows no sites: omit --site, and use --groups to hold out whole sites")
    if given.exceeds:
        raise click.UsageError("a plan needs all rows in memory: increase --memory")
    from cgnlearn.evaluation.plan import plan as plan_of

    model, read = chosen(**asked), given.table()
    with waiting("fitting subsamples"):
        asked_for: dict[str, Any] = {"sizes": sizes, "n_repeats": repeats, "random_state": asked["seed"]}
        found = plan_of(model, read.X, read.y, groups=read.groups, **asked_for)
    if graph is not None:
        from cgnlearn.plots.learning_curve import LearningCurveDisplay

        figure: Any = LearningCurveDisplay.from_plan(found).figure_
        figure.savefig(graph)
    if as_json:
        minimum = [each._asdict() | {"label": str(each.label), "n": each.n} for each in found.minimum]
        result = {
            "samples": found.n_samples,
            "measured": [each._asdict() for each in found.measured],
            "expected": [each._asdict() for each in found.expected],
            "cost_of_halving": {str(label): cost for label, cost in found.cost_of_halving.items()},
            "most_wanted": str(found.most_wanted),
            "minimum": minimum,
        }
        click.echo(json.dumps(result, indent=1))
        return
    for name, part in (("measured", found.measured), ("expected", found.expected)):
        for each in part:
            band = f"{each.log_loss_low:.3f} to {each.log_loss_high:.3f}"
            slope = f"{each.calibration_slope:.2f}"
            click.echo(
                f"{name:9} {each.n:7} samples: log loss {each.log_loss:.3f} ({band}), AUC {each.auc:.3f}, slope {slope}"
            )
    for least in found.minimum:
        what = f"minimum for {least.label} (R² {least.r_squared:.2f}, {least.n_parameters} parameters)"
        criteria = f"{least.shrinkage} shrinkage, {least.optimism} optimism, {least.prevalence} risk"
        click.echo(f"{what}: {least.n} samples ({criteria})")
    click.echo(found.sentence)
