"""The observed features on which a feature depends after missing ones have been integrated out.

A set of nodes is an integer whose bit i stands for node i. Parents come before children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Plan(NamedTuple):
    """Ordered observed nodes; each one after the given ones depends on all before it."""

    members: list[int]
    n_given: int  # the number of first members that are parents only


def bits(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order."""
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def with_observed_descendants(parents: Sequence[int], observed: int) -> int:
    """Nodes that are observed or have observed descendants: the factors of all others integrate to 1."""
    kept = observed
    for node in range(len(parents) - 1, -1, -1):
        if kept >> node & 1:
            kept |= parents[node]
    return kept


def without(missing: int, observed: int, parents: Sequence[int], children: Sequence[int]) -> dict[int, int]:
    """The observed parents of the observed nodes that depend on missing ones, after these are integrated out.

    Arcs are reversed until a missing node has no children (Shachter 1988): a child then depends on the parents of the
    missing node and on the children before it, with their parents.
    """
    new_parents: dict[int, int] = {}
    child_sets = {node: children[node] for node in bits(missing)}
    for node in sorted(child_sets, reverse=True):
        gained = parents[node]
        for child in bits(child_sets[node] & observed):
            own = new_parents.get(child, parents[child]) & ~(1 << node)
            new_parents[child] = own | gained
            for parent in bits(new_parents[child] & missing):
                child_sets[parent] |= 1 << child
            gained |= own | 1 << child
    return new_parents


def plans(parents: dict[int, int]) -> list[Plan]:
    """Families as plans, joined where the parents of one are the members of another."""
    joined: list[Plan] = []
    by_members: dict[int, Plan] = {}
    for child in sorted(parents):
        plan = by_members.pop(parents[child], None) if parents[child] else None
        if plan is None:
            plan = Plan([*bits(parents[child])], parents[child].bit_count())
            joined.append(plan)
        plan.members.append(child)
        by_members[parents[child] | 1 << child] = plan
    return joined
