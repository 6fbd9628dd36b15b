"""The command ``cgnlearn``. Heavy imports are inside its commands, so that --help is fast."""

from __future__ import annotations

import click

from cgnlearn.cli.demo import demo
from cgnlearn.cli.evaluate import evaluate
from cgnlearn.cli.export import export
from cgnlearn.cli.fit import fit
from cgnlearn.cli.inspect import inspect
from cgnlearn.cli.merge import merge
from cgnlearn.cli.plan import plan
from cgnlearn.cli.predict import predict
from cgnlearn.cli.reproduce import reproduce
from cgnlearn.cli.spectra import spectra
from cgnlearn.cli.terminal import Program
from cgnlearn.cli.update import update
from cgnlearn.cli.validate import validate


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="cgnlearn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Conditional Gaussian network classifiers with exact Bayesian averaging.

    For few samples, many features and calibrated probabilities. Data are read from csv, tsv, xlsx, parquet and npz
    files. Results go to stdout, messages to stderr.
    """


for command in (demo, evaluate, export, fit, inspect, merge, plan, predict, reproduce, spectra, update, validate):
    main.add_command(command)
