"""The model in words: what depends on what, drawn only where a drawing can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from cgnlearn.candidates.registry import in_words
from cgnlearn.networks.structure import Structure
from cgnlearn.report.figures import is_drawable, path_figure, structure_figure

MOST_IN_TREE = 120
MOST_KINDS = 8  # of members of a mixture


class Branch(NamedTuple):
    """A node of a tree with what hangs on it."""

    name: str
    branches: list[Branch]


class Members(NamedTuple):
    """Those of a mixture that see the features alike, and differ in their settings."""

    words: str
    n: int
    weight: float


class Shape(NamedTuple):
    """What the page says of the chosen model, fitted on all samples."""

    words: str
    tree: list[Branch] | None
    groups: list[list[str]] | None
    figure: Markup | None
    path: Markup | None
    members: list[Members]
    n_more: int  # members that are not listed


def shape_of(model: Any, name: str) -> Shape:
    """Of a fitted model."""
    structure: Structure | None = getattr(model, "structure_", None)
    path = path_figure(model, f"{name}-path")
    if structure is None:
        members = _members(getattr(model, "members_", ()))
        shown, rest = members[:MOST_KINDS], members[MOST_KINDS:]
        return Shape("", None, None, None, path, shown, sum(each.n for each in rest))
    said = _said_of(model, structure)
    tree = groups = figure = None
    n = len(structure.nodes)
    if structure.k is None and 0 < structure.n_edges < n * (n - 1) // 2:
        tree, groups = _tree(structure), _groups(structure)
        if groups is not None:
            tree = None
        elif tree is None and is_drawable(structure):
            figure = structure_figure(structure, f"{name}-structure")
        elif tree is None:
            said += f" It has {structure.n_edges} edges, too many for a drawing that can be read."
    return Shape(said, tree, groups, figure, path, [], 0)


def _members(members: Sequence[Any]) -> list[Members]:
    """Gathered by what they do with the features, the heaviest first."""
    weights: dict[str, list[float]] = {}
    for member in members:
        weights.setdefault(in_words(member.settings), []).append(float(member.weight))
    found = [Members(words, len(those), sum(those)) for words, those in weights.items()]
    return sorted(found, key=lambda each: -each.weight)


def _said_of(model: Any, structure: Structure) -> str:
    n = len(structure.nodes)
    if not structure.n_edges:
        return f"Within a class each of the {n} features is taken to vary by itself (naive Bayes)."
    if structure.n_edges == n * (n - 1) // 2:
        return f"Within a class every one of the {n} features may vary with every other."
    if structure.k is not None:
        return (
            f"Within a class each of {n} features depends on up to {structure.k - 1} just before it "
            f"(a band of order {structure.k})."
        )
    most = int(np.diff(structure.indptr).max())
    at_most = f"at most {most} other{'s' if most > 1 else ''}"
    return f"Within a class each of {n} features depends on {at_most}: {structure.n_edges} edges."


def _tree(structure: Structure) -> list[Branch] | None:
    """The features as branches, if each depends on one other at most and they are not too many."""
    if np.diff(structure.indptr).max(initial=0) > 1 or len(structure.nodes) > MOST_IN_TREE:
        return None
    branches = {node: Branch(str(node), []) for node in structure.nodes}
    roots: list[Branch] = []
    for child, parents in structure.families:
        (branches[parents[0]].branches if parents else roots).append(branches[child])
    return sorted(roots, key=lambda branch: not branch.branches)


def _groups(structure: Structure) -> list[list[str]] | None:
    """The features in groups, if within each every one depends on every other and none on those of another."""
    groups: dict[Any, list[str]] = {}
    first: dict[Any, Any] = {}
    for child, parents in structure.families:
        head = first[parents[0]] if parents else child
        if any(first[parent] != head for parent in parents) or len(parents) != len(groups.get(head, [])):
            return None
        first[child] = head
        groups.setdefault(head, []).append(str(child))
    return sorted(groups.values(), key=len, reverse=True)
