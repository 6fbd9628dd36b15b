"""Roles of a file's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cgnlearn.tables.formats import ColumnError, Source


@dataclass(frozen=True)
class Roles:
    """Roles of the columns of a training file; stored in model files."""

    target: str | None = None
    id: str | None = None
    groups: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()  # columns of numbers that are labels; columns of words always are categorical
    na: tuple[str, ...] = ()  # spellings of a missing value, besides the usual ones
    site: str | None = None  # where samples were measured

    @classmethod
    def from_header(cls, stored: Any) -> Roles:
        """The roles in a model file's header; unknown entries are skipped."""
        roles: dict[str, Any] = {}
        for key, value in stored.items() if isinstance(stored, Mapping) else ():
            if key in ("target", "id", "groups", "site") and isinstance(value, str):
                roles[key] = value
            elif key in ("ignore", "categorical", "na") and isinstance(value, list):
                roles[key] = tuple(map(str, value))
        return cls(**roles)

    def as_dict(self) -> dict[str, Any]:
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @property
    def special(self) -> dict[str, str]:
        """The columns that are not features, by option."""
        columns = {"--target": self.target, "--id": self.id, "--groups": self.groups, "--site": self.site}
        return {option: name for option, name in columns.items() if name is not None}

    def features(self, source: Source) -> list[str]:
        """The columns without another role."""
        others = {*self.special.values(), *self.ignore, *(set(source.index) - set(self.categorical))}
        return [name for name in source.names if name not in others]

    def check(self, source: Source) -> None:
        """Refuse columns that do not exist, or that have two roles."""
        roles = [(name, option) for option, name in self.special.items()] + [(name, "--ignore") for name in self.ignore]
        source.refuse_unknown(*roles, *((name, "--categorical") for name in self.categorical))
        source.refuse_unreadable(*self.special.values(), *self.categorical)
        for name in dict(roles):
            options = [option for other, option in roles if other == name]
            # An id may also be the column of groups, and so may a site.
            if len(options) > 1 and set(options) not in ({"--id", "--groups"}, {"--groups", "--site"}):
                raise ColumnError(f"column {name!r} cannot be both {options[0]} and {options[1]}: give it one role")
