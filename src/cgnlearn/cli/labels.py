"""The table that says of each spectrum which class, sample and group it is of."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import NamedTuple

import click

from cgnlearn.cli.terminal import say

TARGET = "label"  # the column of the classes where none is named


class Label(NamedTuple):
    """What a table of labels says of a spectrum."""

    sample: str | None  # None: the table has no such column, and the reader's guess will do
    label: str | None
    group: str | None  # of the column that was asked for


def read_labels(
    path: Path, *, target: str | None = None, groups: str | None = None, needed: bool = True
) -> dict[str, Label]:
    """File or sample → what a table says of it; columns are found whether they are written large or small."""
    from cgnlearn.tables.formats import listed
    from cgnlearn.tables.text import TextFile

    table = TextFile.of(path, ".csv")
    if table.found:
        say(f"{path} is read as text {', '.join(table.found)}")
    [(found, lines)] = table.batches(table.names, None)
    columns = {name.lower(): column.cells for name, column in reversed(found.items())}
    its = f"it has {listed(table.names)}"
    key = "file" if "file" in columns else "sample"
    if key not in columns:
        raise ValueError(f"{path} needs a column file, or sample, that names the spectra, but {its}: rename one")
    classes = (target or TARGET).lower()
    if needed and classes not in columns:
        if target is None:
            raise ValueError(f"{path} needs a column {TARGET}, but {its}: name that of the classes with --target")
        raise click.UsageError(f"{path} has no column {target!r} (--target): {its}")
    if groups is not None and groups.lower() not in columns:
        raise click.UsageError(f"{path} has no column {groups!r} (--groups): {its}")
    empty = [""] * len(lines)
    known: dict[str, Label] = {}
    for i, line in enumerate(lines.tolist()):
        said = {column: columns.get(column, empty)[i] for column in ("file", "sample", classes, (groups or "").lower())}
        for column in (key, *([classes] if needed else []), *([groups.lower()] if groups else [])):
            if not said[column]:
                raise ValueError(f"{path}: line {line} lacks its {column}: fill it in")
        name = plain_name(said[key])
        if name in known:
            raise ValueError(f"{path}: line {line} names {said[key]!r} for the second time: remove it")
        known[name] = Label(said["sample"] or None, said[classes] or None, said[groups.lower()] if groups else None)
    return known


def plain_name(name: str) -> str:
    """A spectrum's name as the readers have it, however the path to it is written: a Bruker spectrum is a folder."""
    place = PurePosixPath(name.replace("\\", "/"))
    return str(place.parent if place.name in ("fid", "acqu", "acqus") else place)
