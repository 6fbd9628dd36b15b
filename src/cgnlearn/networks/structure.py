"""Structures: directed acyclic graphs over the features. The class is a parent of every feature and is not listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.schema import Schema
from cgnlearn.networks.families import Families, Family, Node

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False, repr=False)
class Structure:
    """An immutable directed acyclic graph over features; build one with a named constructor.

    Parameters
    ----------
    nodes : tuple
        Column indexes or names of the features in the model, parents before children.
    indptr, indices : ndarray of int
        ``nodes[i]`` has the parents ``nodes[j] for j in indices[indptr[i]:indptr[i + 1]]``.
    k : int, optional
        The k of a structure that ends in a k-BAND.
    start : int
        The position of the first node of that band.

    Examples
    --------
    >>> Structure.band(4, 3).parents
    {0: (), 1: (0,), 2: (0, 1), 3: (1, 2)}
    >>> Structure.from_parents({"age": [], "dose": ["age"]})
    Structure(2 features, 1 edge)
    """

    nodes: tuple[Node, ...]
    indptr: NDArray[np.intp]
    indices: NDArray[np.intp]
    k: int | None = None
    start: int = 0

    def __post_init__(self) -> None:
        self.indptr.flags.writeable = self.indices.flags.writeable = False

    # ---- constructors

    @classmethod
    def naive_bayes(cls, n: int) -> Structure:
        """Every feature depends on the class alone."""
        return cls.band(n, 1)

    @classmethod
    def complete(cls, n: int) -> Structure:
        """Every feature depends on all features before it."""
        return cls.band(n, max(n, 1))

    @classmethod
    def jan(cls, groups: Iterable[Iterable[Node]]) -> Structure:
        """Join augmented naive Bayes: complete inside a group, independent between groups.

        Inside a group each feature depends on those listed before it, so list discrete features first.
        """
        listed = [tuple(group) for group in groups]
        if any(not group for group in listed):
            raise ValueError("a JAN group is empty: remove it")
        nodes = tuple(node for group in listed for node in group)
        repeated = sorted(str(node) for node, n in Counter(nodes).items() if n > 1)
        if repeated:
            raise ValueError(f"features in more than one place of a JAN's groups: {', '.join(repeated)}")
        before = [position for group in listed for position in range(len(group))]
        return cls.of_preceding(nodes, np.array(before, np.intp))

    @classmethod
    def box(cls, n: int, k: int) -> Structure:
        """k-BOX: contiguous groups of ``k`` features, complete inside, independent between groups."""
        check_order(k)
        return cls.of_preceding(tuple(range(n)), np.arange(n) % k)

    @classmethod
    def band(cls, n: int, k: int) -> Structure:
        """k-BAND: every feature depends on the ``k - 1`` features just before it."""
        return cls.ending_in_band((), tuple(range(n)), k)

    @classmethod
    def ending_in_band(cls, alone: tuple[Node, ...], ordered: tuple[Node, ...], k: int) -> Structure:
        """Features that depend on the class alone, then a k-BAND of others."""
        check_order(k)
        before = np.minimum(np.arange(len(ordered)), k - 1)
        whole = cls.of_preceding((*alone, *ordered), np.concatenate([np.zeros(len(alone), np.intp), before]))
        return replace(whole, k=k, start=len(alone)) if 1 < k < len(ordered) else whole

    @classmethod
    def tree(cls, parents: Sequence[int | None]) -> Structure:
        """Every feature has at most one parent; ``None`` (or -1) marks a root."""
        return cls.from_parents(
            {child: [] if parent is None or parent == -1 else [parent] for child, parent in enumerate(parents)}
        )

    @classmethod
    def from_parents(cls, mapping: Mapping[Node, Iterable[Node]]) -> Structure:
        """Any directed acyclic graph, as a mapping from each feature to its parents."""
        parents: dict[Node, tuple[Node, ...]] = {}
        for child, listed in mapping.items():
            if isinstance(listed, str) or not isinstance(listed, Iterable):
                raise TypeError(f"the parents of {child!r} must be a list, not {listed!r}")
            parents[child] = tuple(dict.fromkeys(listed))
            for parent in parents[child]:
                if parent not in mapping:
                    raise ValueError(
                        f"{parent!r}, a parent of {child!r}, is not in the model: add an entry for it ({parent!r}: [])"
                    )
        order = _topological(parents)
        position = {node: i for i, node in enumerate(order)}
        indices = [i for node in order for i in sorted(position[parent] for parent in parents[node])]
        indptr = np.cumsum([0] + [len(parents[node]) for node in order], dtype=np.intp)
        return cls(order, indptr, np.array(indices, np.intp))

    @classmethod
    def from_chordal(
        cls, edges: Iterable[tuple[Node, Node]], n: int | Sequence[Node], discrete: Iterable[Node] = ()
    ) -> Structure:
        """A decomposable Markov network, directed along a perfect numbering of its nodes.

        Parameters
        ----------
        edges : iterable of pairs
            The undirected edges; every cycle of four or more nodes needs a chord.
        n : int or sequence
            Number of features, or their names.
        discrete : iterable
            Discrete nodes. They are numbered first, since no discrete feature may have a continuous parent.
        """
        nodes = tuple(range(n)) if isinstance(n, int) else tuple(n)
        neighbours: dict[Node, set[Node]] = {node: set() for node in nodes}
        for a, b in edges:
            for node in (a, b):
                if node not in neighbours:
                    raise ValueError(f"the edge ({a!r}, {b!r}) names {node!r}, which is not among the nodes")
            if a == b:
                raise ValueError(f"the edge ({a!r}, {b!r}) joins a node with itself")
            neighbours[a].add(b)
            neighbours[b].add(a)
        first = set(discrete)
        # Maximum cardinality search (Tarjan and Yannakakis 1984): the next node is the one with most numbered
        # neighbours. The graph is decomposable if and only if these neighbours are always joined.
        parents: dict[Node, list[Node]] = {node: [] for node in nodes}
        numbered: dict[Node, list[Node]] = {}
        while parents:
            node = max(parents, key=lambda candidate: (candidate in first, len(parents[candidate])))
            numbered[node] = parents.pop(node)
            for i, a in enumerate(numbered[node]):
                for b in numbered[node][:i]:
                    if b not in neighbours[a]:
                        raise ValueError(
                            f"the graph is not decomposable: {node!r} is joined to {b!r} and {a!r}, "
                            f"which are not joined; add the edge ({b!r}, {a!r})"
                        )
            for other in neighbours[node]:
                if other in parents:
                    parents[other].append(node)
        return cls.from_parents(numbered)

    @classmethod
    def of_preceding(cls, nodes: tuple[Node, ...], before: NDArray[np.intp]) -> Structure:
        """Node i depends on the ``before[i]`` nodes just before it."""
        indptr = np.concatenate([[0], np.cumsum(before)]).astype(np.intp)
        starts = np.arange(len(nodes)) - before
        indices = np.arange(indptr[-1]) - np.repeat(indptr[:-1], before) + np.repeat(starts, before)
        return cls(nodes=nodes, indptr=indptr, indices=indices.astype(np.intp))

    # ---- views

    @property
    def families(self) -> Iterator[Family]:
        """The families, parents before children."""
        for i, node in enumerate(self.nodes):
            own = self.indices[self.indptr[i] : self.indptr[i + 1]].tolist()
            yield Family(node, tuple(self.nodes[j] for j in own))

    def over(self, schema: Schema) -> Structure:
        """The graph with indexes of columns as nodes."""
        return self.renamed({node: schema.column(node) for node in self.nodes})

    def named(self, schema: Schema) -> Structure:
        """The graph with names of columns as nodes, if the columns have names."""
        names = schema.names
        return self if names is None else self.renamed({i: names[i] for i in self.nodes})

    def as_families(self, schema: Schema) -> Families:
        """The families of a structure over columns; a band of continuous columns becomes a chain."""
        columns = np.array(self.nodes, np.intp)
        if self.k is None or not set(self.nodes[self.start :]).isdisjoint(schema.discrete):
            return Families(columns, self.indptr, columns[self.indices])
        before = self.indptr[: self.start + 1]
        listed = columns[: self.start], before, columns[self.indices[: before[-1]]]
        return Families(*listed, columns[self.start :], self.k)

    @cached_property
    def parents(self) -> dict[Node, tuple[Node, ...]]:
        """The parents of every feature in the model."""
        return dict(self.families)

    @property
    def n_edges(self) -> int:
        """Number of edges between features."""
        return len(self.indices)

    def renamed(self, names: Mapping[Node, Node]) -> Structure:
        """The graph with other names for its nodes."""
        return replace(self, nodes=tuple(names[node] for node in self.nodes))

    def n_parameters(self, n_classes: int, levels: Mapping[Node, int] | None = None, *, sharing: float = 0.0) -> int:
        """Number of free parameters of the classifier, those of the class included.

        Parameters
        ----------
        n_classes : int
            Number of classes.
        levels : mapping
            Number of levels of every discrete feature; all others are continuous.
        sharing : float
            With 1.0 slopes and variances count once for all classes; each class has its own intercepts.
        """
        levels = levels or {}
        total = n_classes - 1
        slopes = n_classes if sharing < 1 else 1
        if not levels:
            return total + len(self.nodes) * (n_classes + slopes) + self.n_edges * slopes
        for child, parents in self.families:
            cells = int(np.prod([levels[parent] for parent in parents if parent in levels], dtype=object))
            if child in levels:
                total += n_classes * cells * (levels[child] - 1)
            else:
                n_continuous = sum(parent not in levels for parent in parents)
                total += cells * (n_classes + slopes * (n_continuous + 1))
        return total

    def to_networkx(self) -> networkx.DiGraph:
        """The graph as a networkx ``DiGraph`` (needs ``cgnlearn[graph]``)."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from((parent, child) for child, parents in self.families for parent in parents)
        return graph

    def to_dot(self) -> str:
        """The graph in the language of Graphviz."""

        def quoted(node: Node) -> str:
            return '"' + str(node).replace("\\", "\\\\").replace('"', '\\"') + '"'

        lines = [f"  {quoted(node)};" for node in self.nodes]
        lines += [f"  {quoted(parent)} -> {quoted(child)};" for child, parents in self.families for parent in parents]
        return "\n".join(["digraph structure {", *lines, "}"])

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without cached properties

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure):
            return NotImplemented
        mine, theirs = ({child: frozenset(parents) for child, parents in one.families} for one in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash((frozenset(self.nodes), self.n_edges))

    def __repr__(self) -> str:
        def counted(number: int, noun: str) -> str:
            return f"{number} {noun}" + ("" if number == 1 else "s")

        return f"Structure({counted(len(self.nodes), 'feature')}, {counted(self.n_edges, 'edge')})"


def check_order(value: Any, name: str = "k", least: int = 1, otherwise: str = "") -> None:
    """Raise an error unless the value is an integer of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}{otherwise}, not {value!r}")


def _topological(parents: Mapping[Node, tuple[Node, ...]]) -> tuple[Node, ...]:
    """The nodes with parents before children, in the order given if it has this property."""
    seen: set[Node] = set()
    for child, listed in parents.items():
        if not seen.issuperset(listed):
            break
        seen.add(child)
    else:
        return tuple(parents)
    try:
        return tuple(TopologicalSorter(parents).static_order())
    except CycleError as error:
        cycle = " -> ".join(repr(node) for node in error.args[1])
        raise ValueError(f"the structure has a cycle: {cycle}; remove one of these edges") from None
