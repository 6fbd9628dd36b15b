"""The graph of a structure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cgnlearn.networks.structure import Structure
from cgnlearn.plots.style import BLUE, GREY, INK, TINT, Display, needs, without_frame, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES = 60  # larger graphs are unreadable
FONT_SIZE = 8.5
GAP = 1.4  # between neighbours in a row
PIXELS = 400  # largest side of the pattern: all 11,300² marks would need too much memory


class StructureDisplay(Display):
    """A structure as a graph or, with more than 60 features, as a matrix of marks (children × parents).

    The class, a parent of every feature, is not drawn.

    Examples
    --------
    >>> from cgnlearn import Structure
    >>> display = StructureDisplay.from_structure(Structure.band(5, 2))
    >>> sorted(name for text in display.ax_.texts if (name := text.get_text()))
    ['0', '1', '2', '3', '4']
    """

    def __init__(self, structure: Structure) -> None:
        self.structure = structure

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the structure of a fitted classifier, on the given or new matplotlib axes."""
        one = "CGNClassifier with the structure of a member, or ImportanceDisplay"
        needs(estimator, "structure_", "one structure", one if hasattr(estimator, "members_") else "CGNClassifier")
        return cls(estimator.structure_).plot(ax)

    @classmethod
    def from_structure(cls, structure: Structure, *, ax: Axes | None = None) -> Self:
        """Draw a structure, on the given or new matplotlib axes."""
        return cls(structure).plot(ax)

    def _size(self) -> tuple[float, float]:
        return (7.2, 4.8) if len(self.structure.nodes) <= MOST_NODES else (4.8, 4.8)

    def _draw(self, ax: Axes) -> None:
        n = len(self.structure.nodes)
        if n <= MOST_NODES:
            self._draw_graph(ax)
            return
        image = pattern(self.structure) > 0
        ax.imshow(image, cmap="Blues", vmin=0, vmax=1.25, extent=(0, n, n, 0), interpolation="nearest")
        ax.set(xlabel="parent (feature number)", ylabel="child (feature number)")
        without_frame(ax)

    def _draw_graph(self, ax: Axes) -> None:
        places = _places(self.structure)
        x, y = np.array(list(places.values())).T if places else (np.zeros(1), np.zeros(1))
        ax.set_xlim(x.min() - 0.8, x.max() + 0.8)
        ax.set_ylim(y.min() - 0.5, y.max() + 0.5)
        # The number of letters between two neighbours; a letter is about half as wide as it is high.
        gap = GAP / (np.ptp(x) + 1.6) * ax.figure.bbox.width / ax.figure.dpi * 72
        most = int(np.clip((gap - 12) / (0.55 * FONT_SIZE), 4, 20))
        bbox = {"boxstyle": "round,pad=0.35", "facecolor": TINT, "edgecolor": BLUE, "linewidth": 0.9}
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": FONT_SIZE, "color": INK, "bbox": bbox}
        boxes = {
            node: ax.text(*place, wrapped(str(node), most), **look).get_bbox_patch() for node, place in places.items()
        }
        crowded = self.structure.n_edges > 3 * len(places)
        arrow = {"arrowstyle": "-|>", "color": GREY, "linewidth": 0.8, "shrinkA": 1, "shrinkB": 1}
        arrow |= {"alpha": 0.5, "mutation_scale": 6} if crowded else {"alpha": 0.9, "mutation_scale": 9}
        for child, parents in self.structure.families:
            for parent in parents:
                ends = {"patchA": boxes[parent], "patchB": boxes[child]}
                ax.annotate("", xy=places[child], xytext=places[parent], arrowprops=arrow | ends)
        ax.set_axis_off()


def pattern(structure: Structure) -> NDArray[np.intp]:
    """Number of edges in each cell of a grid of at most 400 × 400 (children, parents)."""
    n = len(structure.nodes)
    size = min(n, PIXELS)
    child = np.repeat(np.arange(n), np.diff(structure.indptr))
    rows, columns = (positions * size // n for positions in (child, structure.indices))
    return np.bincount(rows * size + columns, minlength=size * size).reshape(size, size)


def _places(structure: Structure) -> dict[Any, tuple[float, float]]:
    """Position of each node: connected components as trees or rings, isolated nodes in rows."""
    import networkx as nx

    graph = structure.to_networkx()
    parts = sorted(nx.weakly_connected_components(graph), key=len, reverse=True)
    joined = [part for part in parts if len(part) > 1]
    alone = [node for node in structure.nodes if graph.degree(node) == 0]
    places: dict[Any, tuple[float, float]] = {}
    left = 0.0
    lowest = 0.0
    for part in joined:
        own = _tree_places(graph.subgraph(part)) or _ring_places([node for node in structure.nodes if node in part])
        x, y = np.array(list(own.values())).T
        for node, (px, py) in own.items():
            places[node] = (left + px - float(x.min()), py - float(y.max()))
        left += float(np.ptp(x)) + 1.2 * GAP
        lowest = min(lowest, float(y.min() - y.max()))
    per_row = max(int(np.ceil(np.sqrt(1.6 * len(alone)))), round(left / GAP), 1)
    for i, node in enumerate(alone):
        row, column = divmod(i, per_row)
        places[node] = (GAP * column, lowest - (1.1 if joined else 0.0) - 0.8 * row)
    return places


def _ring_places(nodes: list[Any]) -> dict[Any, tuple[float, float]]:
    radius = max(0.32 * len(nodes), 0.7)
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(nodes)) / len(nodes)
    return {
        node: (1.5 * radius * float(np.cos(angle)), radius * float(np.sin(angle)))
        for node, angle in zip(nodes, angles, strict=True)
    }


def _tree_places(graph: Any) -> dict[Any, tuple[float, float]] | None:
    """Leaves side by side, parents above the middle of their children; None if the graph is not a tree."""
    import networkx as nx

    if not nx.is_arborescence(graph):
        return None
    root = next(node for node in graph if graph.in_degree(node) == 0)
    depth = nx.shortest_path_length(graph, root)
    x: dict[Any, float] = {}
    n_leaves = 0
    for node in nx.dfs_postorder_nodes(graph, root):
        children = list(graph.successors(node))
        if children:
            x[node] = float(np.mean([x[child] for child in children]))
        else:
            x[node] = GAP * n_leaves
            n_leaves += 1
    end: dict[int, float] = {}
    for node in sorted(x, key=lambda node: (depth[node], x[node])):  # no overlaps within a layer
        x[node] = max(x[node], end.get(depth[node], -np.inf))
        end[depth[node]] = x[node] + GAP
    return {node: (x[node], -1.0 * depth[node]) for node in x}
