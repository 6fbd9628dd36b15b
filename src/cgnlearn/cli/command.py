"""A command: options in sections, and outputs that replace no input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.options import Output

OPTIONS = {
    "Data": ("target", "row_id", "groups", "site", "ignore", "categorical", "na", "drop_missing", "sheet", "memory"),
    "Model": ("structure", "estimation", "ordered", "time_limit", "prior", "seed"),
    "Evaluation": (
        "compare",
        "cv",
        "positive",
        "prevalence",
        "class_prior",
        "threshold",
        "by",
        "pick",
        "cost",
        "log_density",
        "jobs",
    ),
    "Run": ("quick", "data_dir", "raw", "download"),
    "Output": ("output", "report", "tripod", "figures", "graph", "minimum_cell", "as_json"),
    "Spectra": ("labels", "preset", "width", "peaks", "skip_bad", "by_sample", "correlation"),
    "Structure": ("k", "k_max", "sharing", "prior_location", "likelihood_power"),
}
FILES_OF_A_RUN = ("rows.csv", "summary.csv", "manifest.json", "decision_curve.csv")


class Command(click.Command):
    """A command of cgnlearn."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options in sections, those of single structures last."""
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in OPTIONS}
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = {param.name: param.get_help_record(ctx) for param in options}
        for title, names in OPTIONS.items():
            found[title] = [record for name in names if (record := records.pop(name, None)) is not None]
        found["Output"] += filter(None, records.values())  # --help
        for title, rows in found.items():
            if rows:
                with formatter.section("Prediction" if (title, self.name) == ("Evaluation", "predict") else title):
                    formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command unless it would write to what it reads, or twice to the same file."""
        written = list(self._paths(ctx, written=True))
        for option, output in written:
            others = [(name, path) for name, path in written if name != option]
            for name, path in (*self._paths(ctx, written=False), *others):
                if _replaces(output, path):
                    raise click.UsageError(f"{option} {output} would overwrite {name} {path}: choose another path", ctx)
        return super().invoke(ctx)

    def _paths(self, ctx: click.Context, *, written: bool) -> Iterator[tuple[str, Path]]:
        """The paths given, with the names of their parameters."""
        for param in self.params:
            values = ctx.params.get(param.name or "")
            if isinstance(param.type, click.Path) and isinstance(param.type, Output) == written and values is not None:
                name = param.opts[-1] if isinstance(param, click.Option) else param.make_metavar(ctx)
                yield from ((name, path) for path in (values if isinstance(values, tuple) else (values,)))


def _replaces(output: Path, path: Path) -> bool:
    """Whether an output is what is read, an existing file within it, or a folder whose results would replace it."""
    new, old = Path(os.path.realpath(output)), Path(os.path.realpath(path))
    if new.exists() and not new.is_file() and not new.is_dir():  # a device
        return False
    if new == old or (new.exists() and old.exists() and os.path.samefile(new, old)):
        return True
    if old.parent == new:
        return old.name in FILES_OF_A_RUN
    return new.is_file() and old.is_dir() and old in new.parents
