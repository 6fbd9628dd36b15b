"""The data that ``fit`` and ``evaluate`` are given: a table, or spectra with a table of labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli import folder, options

if TYPE_CHECKING:
    from cgnlearn.spectra.folders import Training
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles


@dataclass(frozen=True)
class Given:
    """What the options say of the data."""

    data: Path
    target: str | None
    row_id: str | None
    groups: str | None
    ignore: tuple[str, ...]
    categorical: tuple[str, ...]
    na: tuple[str, ...]
    drop_missing: bool
    labels: Path | None
    preset: str
    width: float | None
    skip_bad: bool

    @cached_property
    def of_spectra(self) -> bool:
        """Whether the data are spectra, which have no columns of which a user could say what they are."""
        if not folder.is_folder(self.data):
            return False
        for name in ("row_id", "ignore", "categorical", "na", "drop_missing"):
            if getattr(self, name):
                option = "--" + name.removeprefix("row_").replace("_", "-")
                raise click.UsageError(f"{option} is about the columns of a table, and spectra have none: leave it out")
        return True

    @cached_property
    def roles(self) -> Roles:
        """What the columns are."""
        from cgnlearn.tables.roles import Roles

        target = folder.class_column(self.target) if self.of_spectra else self.target
        if target is None and self.data.suffix.lower() != ".npz":
            raise click.UsageError("name the column of the classes: add --target COLUMN")
        many = (tuple(options.listed_columns(given)) for given in (self.ignore, self.categorical, self.na))
        return Roles(target or "y", self.row_id, self.groups, *many)

    @cached_property
    def source(self) -> Source | None:
        """The file of a table; None: spectra."""
        return None if self.of_spectra else options.opened(self.data, [*self.roles.special.values()])

    def is_beyond(self, memory: int | None) -> bool:
        """Whether a table needs more memory than it may have."""
        return self.source is not None and options.is_beyond(self.source, memory)

    def table(self) -> Data:
        """The rows of a table."""
        assert self.source is not None
        return options.training_data(self.source, self.roles, self.drop_missing)

    def spectra(self) -> Training:
        """The spectra, as far as nothing has to be learned from them."""
        steps: dict[str, Any] = {"preset": self.preset, "width": self.width, "skip_bad": self.skip_bad}
        return folder.training_spectra(self.data, self.labels, self.groups, target=self.target, **steps)


def given_data(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the data, which the command gets as one value."""

    @wraps(command)
    def run(**asked: Any) -> Any:
        own = {field.name: asked.pop(field.name) for field in fields(Given)}
        return command(Given(**own), **asked)

    return options.data_options(folder.labels_option(folder.preset_options(run)))
