"""Which columns of a file are what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from cgnlearn.tables.formats import ColumnError, Source


@dataclass(frozen=True)
class Roles:
    """Which columns are what; a model file remembers it."""

    target: str | None = None
    id: str | None = None
    groups: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()  # of numbers that are mere labels; columns of words are categorical anyway
    na: tuple[str, ...] = ()  # spellings of a missing value, besides the usual ones

    @classmethod
    def remembered(cls, told: Any) -> Roles:
        """From what a model file says; what is none of ours is left aside."""
        told = told if isinstance(told, Mapping) else {}
        parts: dict[str, Any] = {}
        for key, value in told.items():
            if key in ("target", "id", "groups") and isinstance(value, str):
                parts[key] = value
            elif key in ("ignore", "categorical", "na") and isinstance(value, list):
                parts[key] = tuple(map(str, value))
        return cls(**parts)

    def as_dict(self) -> dict[str, Any]:
        """In plain values."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @property
    def special(self) -> dict[str, str]:
        """The columns that are no features, by the option that says so."""
        found = {f"--{part.name}": getattr(self, part.name) for part in fields(self)[:3]}
        return {option: name for option, name in found.items() if name is not None}

    def check(self, source: Source) -> None:
        """Refuse columns that are not there, or that are to be two things at once."""
        listed_ones = [(name, "--ignore") for name in self.ignore] + [
            (name, "--categorical") for name in self.categorical
        ]
        source.refuse_unknown(*((name, option) for option, name in self.special.items()), *listed_ones)
        both = [(name, option) for option, name in self.special.items()] + listed_ones[: len(self.ignore)]
        for name, n in Counter(name for name, _ in both).items():
            options = [option for other, option in both if other == name]
            # An id may also say which rows belong together.
            if n > 1 and set(options) != {"--id", "--groups"}:
                raise ColumnError(f"column {name!r} cannot be both {options[0]} and {options[1]}: give it one part")
