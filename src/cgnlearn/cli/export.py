"""The command ``cgnlearn export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.command import Command
from cgnlearn.cli.options import EXISTING, NEW_FILE
from cgnlearn.cli.terminal import say, waiting

MOST_BYTES = 10_000_000  # of a file that is written without asking


@click.command(cls=Command)
@click.argument("model", type=EXISTING)
@click.option(
    "-o", "--output", type=NEW_FILE, required=True, help="Path of the file: json, html, R or onnx by the ending."
)
@click.option("--title", help="What the model is, in a few words.")
@click.option("--about", help="What it is for and how it was validated: text, or the path of a text file.")
@click.option("--yes", is_flag=True, help=f"Write the file even if it has more than {MOST_BYTES // 10**6} MB.")
def export(model: Path, output: Path, title: str | None, about: str | None, yes: bool) -> None:
    """Write a saved model for use outside Python.

    A path that ends in .json gets a portable description: everything that predictions need, in plain values. One that
    ends in .html gets a calculator: a page that predicts in a browser, without a network. One that ends in .R gets a
    function for R, and one that ends in .onnx a graph for ONNX runtimes.
    """
    from cgnlearn.portable.export import check_ending

    try:
        check_ending(output.suffix)
    except ValueError as error:
        raise click.UsageError(f"-o {output}: {error}") from None
    from cgnlearn.files import write_whole
    from cgnlearn.persistence import classifier_of, load
    from cgnlearn.portable.export import content

    loaded: Any = load(model)
    classifier = classifier_of(loaded)
    with waiting("exporting"):
        found = content(classifier, output.suffix, title=title, about=_text(about))
    if len(found) > MOST_BYTES and not yes:
        raise click.UsageError(
            f"{output} would have {len(found) / 1e6:.0f} MB, as {classifier.n_features_in_} features need it: "
            "add --yes to write it, or select features"
        )
    write_whole(output, found)
    size = f"{len(found) / 1e3:.0f} kB" if len(found) < 1e6 else f"{len(found) / 1e6:.1f} MB"
    say(f"{classifier.n_features_in_} features, {len(classifier.classes_)} classes, {size}: wrote {output}")
    if classifier is not loaded:
        say("it takes the table of features that the model's last step takes, not the raw input of its first")


def _text(about: str | None) -> str | None:
    """The text, or the content of the file that it names."""
    if about is None or "\n" in about or len(about) > 255 or not Path(about).is_file():
        return about
    try:
        return Path(about).read_text("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError(f"--about {about} is no text in UTF-8: save it as such") from None
