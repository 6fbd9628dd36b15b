"""The data of ``fit`` and ``evaluate``: a table, or spectra with a table of labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder, options
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    from cgnlearn.spectra.folders import Training
    from cgnlearn.tables.batches import Stream
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles


@dataclass(frozen=True)
class Given:
    """The options about the data."""

    data: Path
    target: str | None
    row_id: str | None
    groups: str | None
    site: str | None
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    na: tuple[str, ...]
    drop_missing: bool
    sheet: str | None
    labels: Path | None
    preset: str | None
    width: float | None
    skip_bad: bool
    memory: int | None

    @cached_property
    def of_spectra(self) -> bool:
        """Whether the data are spectra, for which options about columns are refused."""
        if not folder.is_folder(self.data, self.labels):
            options.refuse_on_table(labels=self.labels, preset=self.preset, width=self.width, skip_bad=self.skip_bad)
            return False
        for name in ("row_id", "site", "ignore", "categorical", "na", "drop_missing", "sheet"):
            if getattr(self, name):
                option = "--" + name.removeprefix("row_").replace("_", "-")
                raise click.UsageError(f"{option} is about columns of a table, and spectra have none: omit it")
        return True

    @cached_property
    def roles(self) -> Roles:
        from cgnlearn.tables.options import listed_values
        from cgnlearn.tables.roles import Roles

        target = folder.class_column(self.target) if self.of_spectra else self.target
        if target is None and self.data.suffix.lower() != ".npz":
            raise click.UsageError("name the column of the classes: add --target COLUMN")
        names = () if self.of_spectra else self.source.names
        ignore, categorical = listed_values(self.ignore, names), listed_values(self.categorical, names)
        return Roles(target or "y", self.row_id, self.groups, ignore, categorical, listed_values(self.na), self.site)

    @cached_property
    def source(self) -> Source:
        arrays = [name for name in (self.target or "y", self.row_id, self.groups, self.site) if name]
        return options.opened(self.data, arrays, self.memory, self.sheet)

    @property
    def exceeds(self) -> bool:
        """Whether the table is to be read in batches."""
        return not self.of_spectra and options.exceeds(self.source, self.memory)

    def subgroups(self, by: tuple[str, ...]) -> list[str]:
        """The columns whose levels are subgroups."""
        from cgnlearn.tables.options import listed_values

        if by and self.of_spectra:
            raise click.UsageError("--by is about columns of a table, and spectra have none: omit it")
        names = listed_values(by, self.source.names) if by else ()
        with options.column_errors():
            if names:
                self.source.refuse_unknown(*((name, "--by") for name in names))
        return list(names)

    def table(self, others: Sequence[str] = ()) -> Data:
        """Read a table into memory; ``others``: columns to be read besides, which need not be features."""
        from cgnlearn.tables.read import training_data

        with options.column_errors(), waiting(f"reading {self.data}"):
            data = training_data(self.source, self.roles, drop_missing=self.drop_missing, others=others)
        for remark in data.remarks:
            say(remark)
        return data

    def stream(self) -> Stream:
        """Prepare a table to be read in batches."""
        if self.site is not None:
            raise click.UsageError("--site needs all rows in memory: omit it, or increase --memory")
        from cgnlearn.tables.batches import training_stream

        with options.column_errors(), waiting(f"reading {self.data}"):
            stream = training_stream(self.source, self.roles, drop_missing=self.drop_missing)
        for remark in stream.survey.remarks:
            say(remark)
        return stream

    def spectra(self) -> Training:
        """Read spectra, up to the first step that must be fitted."""
        labels = folder.needed_labels(self.data, self.labels, self.target)
        spectra = folder.opened(self.data, labels, target=self.target, groups=self.groups, skip_bad=self.skip_bad)
        with options.column_errors(), waiting(f"reading {self.data}"):
            return spectra.training(folder.steps_of(self.preset, self.width))


def given_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the data; the command gets them as one value."""

    @wraps(command)
    def run(**values: Any) -> Any:
        own = {field.name: values.pop(field.name) for field in fields(Given)}
        return command(Given(**own), **values)

    return options.data_options(folder.labels_option(folder.preset_options(options.memory_option(run))))
