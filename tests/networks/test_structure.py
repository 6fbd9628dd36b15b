import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgnlearn import Structure


def test_named_constructors():
    assert Structure.naive_bayes(3).parents == {0: (), 1: (), 2: ()}
    assert Structure.complete(3).parents == {0: (), 1: (0,), 2: (0, 1)}
    assert Structure.jan([[2, 0], ["a"]]).parents == {2: (), 0: (2,), "a": ()}
    assert Structure.box(5, 2).parents == {0: (), 1: (0,), 2: (), 3: (2,), 4: ()}
    assert Structure.band(5, 3).parents == {0: (), 1: (0,), 2: (0, 1), 3: (1, 2), 4: (2, 3)}
    assert Structure.tree([None, 0, 0, 2]).parents == {0: (), 1: (0,), 2: (0,), 3: (2,)}
    assert Structure.naive_bayes(0).parents == {}


@given(st.integers(1, 12), st.integers(1, 14))
def test_band_and_box_nest_as_the_paper_says(n, k):
    band, box = Structure.band(n, k).parents, Structure.box(n, k).parents
    for v in range(n):
        assert band[v] == tuple(range(max(0, v - k + 1), v))
        assert box[v] == tuple(range(v - v % k, v))
    if k >= n:
        assert Structure.band(n, k) == Structure.complete(n) == Structure.box(n, k)


def test_from_parents_orders_parents_first_and_refuses_cycles():
    late = Structure.from_parents({"c": ["a", "b"], "b": ["a"], "a": []})
    seen = set()
    for child, parents in late.families:
        assert seen.issuperset(parents)
        seen.add(child)
    with pytest.raises(ValueError, match=r"cycle: .*'a'.*'b'"):
        Structure.from_parents({"a": ["b"], "b": ["a"]})
    with pytest.raises(ValueError, match="'z', a parent of 'a', is not in the model"):
        Structure.from_parents({"a": ["z"]})
    with pytest.raises(TypeError, match="parents of 'a' must be a list"):
        Structure.from_parents({"a": "bc"})


def test_chordal_graphs_become_equivalent_dags():
    edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]
    structure = Structure.from_chordal(edges, 5)
    graph = structure.to_networkx()
    assert nx.is_directed_acyclic_graph(graph)
    assert {frozenset(e) for e in graph.edges} == {frozenset(e) for e in edges}
    for parents in structure.parents.values():  # no immoralities, hence the same independences
        assert all({a, b} in [set(e) for e in edges] for a in parents for b in parents if a != b)
    with pytest.raises(ValueError, match=r"not decomposable.*add the edge"):
        Structure.from_chordal([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
    with pytest.raises(ValueError, match="names 7"):
        Structure.from_chordal([(0, 7)], 3)


@given(st.integers(2, 9), st.data())
def test_chordality_agrees_with_networkx(n, data):
    pairs = [(a, b) for a in range(n) for b in range(a)]
    edges = data.draw(st.lists(st.sampled_from(pairs), unique=True))
    graph = nx.Graph(edges)
    graph.add_nodes_from(range(n))
    if nx.is_chordal(graph):
        assert Structure.from_chordal(edges, n).n_edges == len(edges)
    else:
        with pytest.raises(ValueError, match="not decomposable"):
            Structure.from_chordal(edges, n)


def test_discrete_nodes_are_numbered_first():
    structure = Structure.from_chordal([("x", "d"), ("x", "e"), ("d", "e")], ["x", "d", "e"], discrete=["d", "e"])
    assert structure.parents["x"] == ("d", "e")


def test_refusals():
    with pytest.raises(ValueError, match=r"more than one place.*: 1"):
        Structure.jan([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="group is empty"):
        Structure.jan([[0], []])
    for k in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="k must be a whole number"):
            Structure.band(4, k)


def test_n_parameters_counts_by_hand():
    # class 2; each of 4 nodes intercept and variance, 5 slopes, in 3 classes
    assert Structure.band(4, 3).n_parameters(3) == 2 + 3 * (4 * 2 + 5)
    # shared: intercepts per class, slopes and variances once
    assert Structure.band(4, 3).n_parameters(3, sharing=1.0) == 2 + 3 * 4 + 4 + 5
    mixed = Structure.from_parents({"d": [], "e": ["d"], "x": ["e"], "z": ["x", "d"]})
    levels = {"d": 2, "e": 3}
    # d: 1; e: 2 cells x 2; x: 3 cells x (mean, variance); z: 2 cells x (intercept, slope, variance)
    assert mixed.n_parameters(2, levels) == 1 + 2 * (1 + 4 + 6 + 6)
    assert mixed.n_parameters(2, levels, sharing=1.0) == 1 + 2 * (1 + 4) + (3 * 2 + 3) + (2 * 2 + 2 * 2)
    assert Structure.band(4, 3).n_parameters(3, {}) == Structure.band(4, 3).n_parameters(3, {"none": 2})


def test_immutable_comparable_copyable():
    structure = Structure.band(5, 2)
    with pytest.raises(ValueError, match="read-only"):
        structure.indices[0] = 3
    assert pickle.loads(pickle.dumps(structure)) == structure
    assert hash(structure) == hash(Structure.tree([None, 0, 1, 2, 3]))
    assert structure == Structure.tree([None, 0, 1, 2, 3])
    assert structure != Structure.naive_bayes(5)
    assert structure != "band"


def test_dot_quotes_names():
    dot = Structure.from_parents({'a"b': [], "c": ['a"b']}).to_dot()
    assert '"a\\"b" -> "c";' in dot
    assert repr(Structure.naive_bayes(1)) == "Structure(1 feature, 0 edges)"
    assert np.array_equal(sorted(Structure.band(3, 2).to_networkx().edges), [(0, 1), (1, 2)])
