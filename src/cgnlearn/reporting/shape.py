"""Description of a fitted model: its dependencies as text, tree, groups or a drawing if that is readable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from cgnlearn.candidates.registry import in_words
from cgnlearn.networks.structure import Structure
from cgnlearn.reporting.album import Album
from cgnlearn.reporting.figures import is_drawable, path_figure, structure_figure

MOST_IN_TREE = 120
MOST_MEMBERS = 8  # rows of the table of a mixture


class Branch(NamedTuple):
    """A node of a tree with its children."""

    name: str
    branches: list[Branch]


class Members(NamedTuple):
    """Members of a mixture with the same structure and different settings."""

    text: str
    n: int
    weight: float


class Shape(NamedTuple):
    """The description of the chosen model, fitted on all samples."""

    text: str
    tree: list[Branch] | None
    groups: list[list[str]] | None
    figure: Markup | None
    path: Markup | None
    members: list[Members]
    n_more: int  # members that are not listed


def shape_of(model: Any, album: Album) -> Shape:
    """The description of a fitted model."""
    structure: Structure | None = getattr(model, "structure_", None)
    path = path_figure(model, album)
    if structure is None:
        members = members_in_words(getattr(model, "members_", ()))
        shown, rest = members[:MOST_MEMBERS], members[MOST_MEMBERS:]
        return Shape("", None, None, None, path, shown, sum(group.n for group in rest))
    text = _text(structure)
    tree = groups = figure = None
    n = len(structure.nodes)
    if structure.k is None and 0 < structure.n_edges < n * (n - 1) // 2:
        tree, groups = _tree(structure), _groups(structure)
        if groups is not None:
            tree = None
        elif tree is None and is_drawable(structure):
            figure = structure_figure(structure, album)
        elif tree is None:
            text += f" The graph with {structure.n_edges} edges is too large to draw."
    return Shape(text, tree, groups, figure, path, [], 0)


def members_in_words(members: Sequence[Any]) -> list[Members]:
    """Members grouped by structure, the largest weight first."""
    weights: dict[str, list[float]] = {}
    for member in members:
        weights.setdefault(in_words(member.settings), []).append(float(member.weight))
    groups = [Members(text, len(own), sum(own)) for text, own in weights.items()]
    return sorted(groups, key=lambda group: -group.weight)


def _text(structure: Structure) -> str:
    n = len(structure.nodes)
    if not structure.n_edges:
        return f"Within a class the {n} features are independent (naive Bayes)."
    if structure.n_edges == n * (n - 1) // 2:
        return f"Within a class all {n} features may depend on each other (complete structure)."
    if structure.k is not None:
        return (
            f"Within a class each of {n} features depends on up to {structure.k - 1} preceding ones (k={structure.k})."
        )
    most = int(np.diff(structure.indptr).max())
    at_most = f"at most {most} other{'s' if most > 1 else ''}"
    return f"Within a class each of {n} features depends on {at_most}: {structure.n_edges} edges."


def _tree(structure: Structure) -> list[Branch] | None:
    """The features as a forest, if each depends on at most one other and they are not too many."""
    if np.diff(structure.indptr).max(initial=0) > 1 or len(structure.nodes) > MOST_IN_TREE:
        return None
    branches = {node: Branch(str(node), []) for node in structure.nodes}
    roots: list[Branch] = []
    for child, parents in structure.families:
        (branches[parents[0]].branches if parents else roots).append(branches[child])
    return sorted(roots, key=lambda branch: not branch.branches)


def _groups(structure: Structure) -> list[list[str]] | None:
    """The features in groups, if they are complete within groups and independent between them."""
    groups: dict[Any, list[str]] = {}
    first: dict[Any, Any] = {}
    for child, parents in structure.families:
        head = first[parents[0]] if parents else child
        if any(first[parent] != head for parent in parents) or len(parents) != len(groups.get(head, [])):
            return None
        first[child] = head
        groups.setdefault(head, []).append(str(child))
    return sorted(groups.values(), key=len, reverse=True)
