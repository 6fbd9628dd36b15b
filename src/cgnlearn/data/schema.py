"""The columns and the classes: all that has to be kept to read other samples in the same way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

from cgnlearn.data.levels import Levels, identity


@dataclass(frozen=True, eq=False)
class Schema:
    """Columns and classes; tables with equal schemas can be counted together, whatever holds their levels."""

    names: tuple[str, ...] | None  # None: the training data had no column names
    levels: tuple[Levels | None, ...]  # of each column, in order; None: the column is continuous
    classes: Levels  # in the order of the class codes
    frame: str | None = None  # the data frame library of the training data

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        levels = (None if levels is None else tuple(map(identity, levels)) for levels in self.levels)
        return self.names, tuple(levels), self.classes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.levels)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def continuous(self) -> list[int]:
        """Indexes of the continuous columns."""
        return [i for i, levels in enumerate(self.levels) if levels is None]

    @cached_property
    def discrete(self) -> list[int]:
        """Indexes of the discrete columns."""
        return [i for i, levels in enumerate(self.levels) if levels is not None]

    @cached_property
    def position(self) -> dict[int, int]:
        """Position of each column among the continuous, or among the discrete ones."""
        return {column: i for kind in (self.continuous, self.discrete) for i, column in enumerate(kind)}

    def levels_of(self, column: int) -> Levels:
        """Levels of a discrete column."""
        levels = self.levels[column]
        assert levels is not None
        return levels

    def name(self, column: int) -> str:
        """Name of a column in messages."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    def cell(self, label: int, columns: Iterable[int], codes: Iterable[int]) -> str:
        """Name of a cell in messages: its class, and its levels of discrete columns."""
        levels = [
            f"{self.name(column)} = {self.levels_of(column)[int(code)]!r}"
            for column, code in zip(columns, codes, strict=True)
        ]
        return ", ".join([f"class {self.classes[label]!r}", *levels])

    def column(self, node: Any) -> int:
        """Column of a node of a structure, which is an index or a name."""
        n = self.n_columns
        if isinstance(node, int | np.integer) and not isinstance(node, bool):
            if 0 <= node < n:
                return int(node)
            raise ValueError(f"the structure names column {node}, but X has {n} columns")
        if self.names is None:
            raise ValueError(f"the structure names {node!r}, but X has no column names: use indexes")
        if node not in self.names:
            raise ValueError(f"the structure names {node!r}, which is not a column of X")
        return self.names.index(node)

    def discrete_first(self, columns: list[int]) -> list[int]:
        """The columns, discrete ones first, since no continuous one may be their parent."""
        return sorted(columns, key=lambda column: self.levels[column] is None)

    def difference(self, other: Schema) -> str:
        """Describe the first difference from another schema, and what to do about it."""
        if (self.names, self.n_columns) != (other.names, other.n_columns):
            mine, theirs = (own.names or f"{own.n_columns} columns without names" for own in (self, other))
            return (
                f"their columns differ ({_short(mine)}, not {_short(theirs)}): read the same columns in the same order"
            )
        if self.classes != other.classes:
            return (
                f"their classes differ ({_short(self.classes)}, not {_short(other.classes)}): name all classes in each"
            )
        pairs = enumerate(zip(self._identity[1], other._identity[1], strict=True))
        column = next(i for i, (mine, theirs) in pairs if mine != theirs)
        mine, theirs = (
            "numbers" if own is None else _short(own) for own in (self.levels[column], other.levels[column])
        )
        return f"the levels of {self.name(column)} differ ({mine}, not {theirs}): declare the same levels in each"

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties; times as text, since files hold plain values only.
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        times = [
            i for i, levels in enumerate(self.levels) if levels and all(isinstance(level, datetime) for level in levels)
        ]
        texts = {i: tuple(level.isoformat() for level in self.levels_of(i)) for i in times}  # type: ignore[attr-defined]
        levels = tuple(texts.get(i, levels) for i, levels in enumerate(self.levels))
        return state | {"levels": levels, "times": times}

    def __setstate__(self, state: dict[str, Any]) -> None:
        levels = list(state["levels"])
        for i in state.pop("times"):
            levels[i] = tuple(datetime.fromisoformat(text) for text in levels[i])
        self.__dict__.update(state | {"levels": tuple(levels)})


def _short(values: Any, most: int = 6) -> str:
    if isinstance(values, str):
        return values
    return ", ".join(str(value) for value in values[:most]) + (", …" if len(values) > most else "")
