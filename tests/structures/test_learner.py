import networkx as nx
import numpy as np
import pytest

from cgnlearn import Band, Box, CGNClassifier, Complete, Jan, Structure


def test_ordered_structures_put_discrete_columns_beside(mixed):
    X, y, _ = mixed
    band = CGNClassifier(Band(2), categorical_features=[0, 3]).fit(X.astype(int), y).structure_
    assert band.parents == {0: (), 3: (), 1: (), 2: (1,), 4: (2,)}
    box = CGNClassifier(Box(2), categorical_features=[0, 3]).fit(X.astype(int), y).structure_
    assert box.parents == {0: (), 3: (), 1: (), 2: (1,), 4: ()}


def test_complete_and_jan_put_discrete_columns_first(mixed):
    X, y, _ = mixed
    complete = CGNClassifier(Complete(), categorical_features=[1]).fit(X, y).structure_
    assert complete.parents == {1: (), 0: (1,), 2: (1, 0), 3: (1, 0, 2), 4: (1, 0, 2, 3)}
    jan = CGNClassifier(Jan([[4, 1, 2]]), categorical_features=[1]).fit(X, y).structure_
    assert jan.parents == {1: (), 4: (1,), 2: (1, 4)}


def test_groups_are_checked(mixed):
    X, y, _ = mixed
    with pytest.raises(ValueError, match="names column 12"):
        CGNClassifier(Jan([[0, 12]])).fit(X, y)
    with pytest.raises(ValueError, match="more than one place"):
        CGNClassifier(Jan([[0, 1], [1]])).fit(X, y)


def test_the_tree_has_the_greatest_evidence_among_all(mixed):
    """Every spanning tree over the three continuous columns, by refitting."""
    X, y, _ = mixed
    X = X[:, 2:]
    found = CGNClassifier("tan").fit(X, y)
    graph = nx.complete_graph(3)
    trees = [list(tree.edges) for tree in nx.SpanningTreeIterator(graph)]
    evidences = [CGNClassifier(Structure.from_chordal(edges, 3)).fit(X, y).log_evidence_ for edges in trees]
    assert found.log_evidence_ == pytest.approx(max(evidences))
    assert np.ptp(evidences) > 1
