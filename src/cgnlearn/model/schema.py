"""What the columns and the classes are: all that has to be remembered to read other rows in the same way."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np

Levels = tuple[Hashable, ...]

NO_LEVELS: Levels = (None,)  # of a column in which no level was ever observed: one that cannot occur says nothing


@dataclass(frozen=True)
class Schema:
    """Columns and classes; two tables with equal schemas can be counted together.

    Parameters
    ----------
    names : tuple of str or None
        Column names, where the training data had any.
    levels : tuple
        For each column its levels, in order, or None if it is continuous.
    classes : tuple
        In the order of the class codes.
    frame : str or None
        Which data frame library the training data came from.

    Examples
    --------
    >>> schema = Schema(("age", "sex"), (None, ("f", "m")), ("healthy", "ill"))
    >>> schema.continuous, schema.discrete, schema.column("sex")
    ([0], [1], 1)
    """

    names: tuple[str, ...] | None
    levels: tuple[Levels | None, ...]
    classes: Levels
    frame: str | None = field(default=None, compare=False)

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.levels)

    @property
    def n_classes(self) -> int:
        """How many classes there are."""
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
        """Where each column stands among the continuous, or among the discrete ones."""
        return {column: i for kind in (self.continuous, self.discrete) for i, column in enumerate(kind)}

    def levels_of(self, column: int) -> Levels:
        """The levels of a discrete column."""
        levels = self.levels[column]
        assert levels is not None
        return levels

    def name(self, column: int) -> str:
        """How messages speak of a column."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    def column(self, node: Any) -> int:
        """The column that a node of a structure, an index or a name, stands for."""
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
        """The same columns, the discrete ones ahead, as no continuous one may be their parent."""
        return sorted(columns, key=lambda column: self.levels[column] is None)

    def difference(self, other: Schema) -> str:
        """The first thing in which the other is not like this one, and what to do."""
        if (self.names, self.n_columns) != (other.names, other.n_columns):
            mine, theirs = (own.names or f"{own.n_columns} columns without names" for own in (self, other))
            return f"they are of other columns ({_short(mine)}, not {_short(theirs)}): read the same ones in one order"
        if self.classes != other.classes:
            return f"they are of other classes ({_short(self.classes)}, not {_short(other.classes)}): name all in each"
        column = next(i for i in range(self.n_columns) if self.levels[i] != other.levels[i])
        mine, theirs = (
            "numbers" if own is None else _short(own) for own in (self.levels[column], other.levels[column])
        )
        return f"{self.name(column)} has other levels ({mine}, not {theirs}): declare the same ones in each"

    def __getstate__(self) -> dict[str, Any]:
        # Without what is derived; times as text, since files hold plain values only.
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
