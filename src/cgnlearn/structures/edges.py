"""Edges that a structure must or must not have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cgnlearn.data.schema import Schema

Edges = Sequence[tuple[Any, Any]]  # parent and child, as names or indexes
Arc = tuple[int, int]


def arcs_of(edges: Edges, schema: Schema, what: str) -> list[Arc]:
    """Edges as columns of parent and child, each once, after checks."""
    found = []
    for edge in edges:
        if isinstance(edge, str) or len(edge) != 2:
            raise ValueError(f"{what} must list pairs of parent and child, not {edge!r}")
        parent, child = (schema.column(node) for node in edge)
        if parent == child:
            raise ValueError(f"{what} has an edge from {schema.name(parent)} to itself: remove it")
        found.append((parent, child))
    return list(dict.fromkeys(found))


def check_forest(required: Sequence[Arc], forbidden: Sequence[Arc], schema: Schema) -> None:
    """Raise an error unless a forest can have the required arcs and not the forbidden ones."""
    above: dict[int, int] = {}
    for parent, child in required:
        names = f"from {schema.name(parent)} to {schema.name(child)}"
        if (parent, child) in forbidden:
            raise ValueError(f"the edge {names} is both required and forbidden")
        if schema.levels[parent] is None and schema.levels[child] is not None:
            raise ValueError(
                f"the edge {names} is required, but no continuous feature may be the parent of a discrete one"
            )
        if child in above:
            raise ValueError(f"{schema.name(child)} has two required parents, but a TAN allows one: use a Structure")
        above[child] = parent
    for start in above:
        node, n_steps = start, 0
        while node in above and n_steps <= len(above):
            node, n_steps = above[node], n_steps + 1
        if n_steps > len(above):
            raise ValueError(f"the required edges form a cycle through {schema.name(start)}: remove one of them")


def joined(pairs: Iterable[Arc]) -> list[tuple[int, ...]]:
    """Columns that pairs connect, together and in order."""
    found: list[set[int]] = []
    for pair in pairs:
        touched = [group for group in found if not group.isdisjoint(pair)]
        found = [group for group in found if group not in touched] + [set(pair).union(*touched)]
    return sorted(tuple(sorted(group)) for group in found)
