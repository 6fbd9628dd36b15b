"""Rows on disk: appended as they finish, kept over any interruption, in the end the same bytes whatever happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cgnlearn.results import write_whole

Row = Sequence[Any]


class Unit(NamedTuple):
    """What is computed at once: all models on one fold of one set."""

    dataset: str
    repetition: int
    fold: int


class RowFile:
    """A csv file that grows by the rows of one unit after the other.

    Each unit is written by one call. What a killed process leaves behind, a line without its end or a unit without
    all of its rows, is dropped when the file is opened again.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        The first three are those of `Unit`.
    sizes : mapping
        Every unit with its number of rows, in the order in which the finished file has them.
    """

    def __init__(self, path: Path, columns: Sequence[str], sizes: Mapping[Unit, int]) -> None:
        self.path = path
        self.columns = tuple(columns)
        self._sizes = sizes
        self._header = ",".join(self.columns)
        self._finished: dict[Unit, list[str]] = self._read() if path.exists() else {}
        self._write(self._finished)

    @property
    def missing(self) -> list[Unit]:
        """Units still to be computed."""
        return [unit for unit in self._sizes if unit not in self._finished]

    def append(self, unit: Unit, rows: Iterable[Row]) -> None:
        """Add the rows of one unit."""
        lines = [",".join(map(text, (*unit, *row))) for row in rows]
        if len(lines) != self._sizes[unit] or any(line.count(",") != len(self.columns) - 1 for line in lines):
            raise ValueError(f"the rows of {unit} do not fit the columns of {self.path}")
        self._finished[unit] = lines
        with self.path.open("ab", buffering=0) as file:
            file.write("".join(line + "\n" for line in lines).encode())

    def finish(self) -> None:
        """Put the rows into their order."""
        self._write({unit: self._finished[unit] for unit in self._sizes})

    def _read(self) -> dict[Unit, list[str]]:
        lines = self.path.read_bytes().decode("utf-8", errors="replace").split("\n")[:-1]  # the last one has no end
        if not lines or lines[0] != self._header:
            raise ValueError(f"{self.path} holds other columns: choose another folder, or remove it")
        found: dict[Unit, list[str]] = {}
        for line in lines[1:]:
            fields = line.split(",")
            if len(fields) == len(self.columns) and fields[1].isdigit() and fields[2].isdigit():
                found.setdefault(Unit(fields[0], int(fields[1]), int(fields[2])), []).append(line)
        return {unit: lines for unit, lines in found.items() if self._sizes.get(unit) == len(lines)}

    def _write(self, units: Mapping[Unit, list[str]]) -> None:
        lines = [self._header, *(line for lines in units.values() for line in lines)]
        write_whole(self.path, "".join(line + "\n" for line in lines))


def text(value: Any) -> str:
    """A value as it stands in a file: of a float ten digits, which no change in the order of a sum can reach."""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def csv_text(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """A whole csv file."""
    return "".join(",".join(map(text, row)) + "\n" for row in (columns, *rows))
