"""Which observed features a feature depends on, once the missing ones are integrated out.

Sets of nodes are the bits of whole numbers: bit i stands for node i, and parents come before children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Plan(NamedTuple):
    """Observed nodes in their order, of which each one that is not given depends on all before it."""

    members: list[int]
    n_given: int


def bits(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def with_observed_descendants(parents: Sequence[int], observed: int) -> int:
    """The nodes that are observed or on which an observed one depends: all others have factors that integrate to 1."""
    kept = observed
    for node in range(len(parents) - 1, -1, -1):
        if kept >> node & 1:
            kept |= parents[node]
    return kept


def without(missing: int, observed: int, parents: Sequence[int], children: Sequence[int]) -> dict[int, int]:
    """The parents of the observed nodes that depend on missing ones, once these are gone.

    Arcs are reversed until a missing node has no children (Shachter 1988): a child then depends on the missing node's
    parents and on the children before it, with their parents.
    """
    found: dict[int, int] = {}
    child_sets = {node: children[node] for node in bits(missing)}
    for node in sorted(child_sets, reverse=True):
        gained = parents[node]
        for child in bits(child_sets[node] & observed):
            own = found.get(child, parents[child]) & ~(1 << node)
            found[child] = own | gained
            for parent in bits(found[child] & missing):
                child_sets[parent] |= 1 << child
            gained |= own | 1 << child
    return found


def plans(parents: dict[int, int]) -> list[Plan]:
    """Families joined where they nest: the parents of one are another with its own."""
    found: list[Plan] = []
    whole: dict[int, int] = {}  # the set of a plan's members → which plan
    for child in sorted(parents):
        number = whole.pop(parents[child], None) if parents[child] else None
        if number is None:
            found.append(Plan([*bits(parents[child]), child], parents[child].bit_count()))
            number = len(found) - 1
        else:
            found[number].members.append(child)
        whole[parents[child] | 1 << child] = number
    return found
