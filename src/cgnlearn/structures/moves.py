"""Moves of a wrapper search from a JAN structure to its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cgnlearn.structures.fold_scores import Group

Groups = tuple[Group, ...]


class Move(NamedTuple):
    """A move to a neighbour: groups to remove, by position, and one to add unless it is empty."""

    removed: tuple[int, ...]
    added: Group

    def applied(self, groups: Groups) -> Groups:
        """Groups of the neighbour: a changed group keeps its place, a new or joined one goes to the end."""
        kept = [group for i, group in enumerate(groups) if i not in self.removed]
        place = self.removed[0] if len(self.removed) == 1 else len(kept)
        if self.added:
            kept.insert(place, self.added)
        return tuple(kept)


def forward(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each absent feature as a new group, then into each group (fwGJAN)."""
    present = {column for group in groups for column in group}
    for column in columns:
        if column not in present:
            yield Move((), (column,))
            for i, group in enumerate(groups):
                yield Move((i,), (*group, column))


def condensed(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each feature removed (wcGJAN)."""
    for i, group in enumerate(groups):
        for position in range(len(group)):
            yield Move((i,), group[:position] + group[position + 1 :])


def backward(groups: Groups, columns: Sequence[int]) -> Iterator[Move]:
    """Each feature removed, then each two groups joined (bwGJAN)."""
    yield from condensed(groups, columns)
    for a in range(1, len(groups)):
        for b in range(a):
            yield Move((b, a), groups[b] + groups[a])


NEIGHBOURS: dict[str, Callable[[Groups, Sequence[int]], Iterator[Move]]] = {
    "forward": forward,
    "backward": backward,
    "condensed": condensed,
}
