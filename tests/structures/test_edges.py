"""Edges that are required or forbidden."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from cgnlearn import TAN, CGNClassifier, GreedyJan


def iris():
    return load_iris(return_X_y=True)


def is_forest(parents):
    """Whether a tuple of parents, None for a root, has no cycle."""
    for start in range(len(parents)):
        node = start
        for _ in range(len(parents)):
            node = parents[node]
            if node is None:
                break
        else:
            return False
    return True


@pytest.mark.parametrize(
    ("required", "forbidden"),
    [([(3, 1)], []), ([], [(0, 2), (2, 0)]), ([(1, 0), (0, 3)], [(2, 1)]), ([(2, 3)], [(0, 1), (1, 0), (0, 2)])],
)
def test_the_tree_is_the_best_of_those_that_obey(required, forbidden):
    X, y = iris()
    model = CGNClassifier(TAN(required=required, forbidden=forbidden)).fit(X, y)
    arcs = {(parent, child) for child, parents in model.structure_.parents.items() for parent in parents}
    assert set(required) <= arcs
    assert not arcs & set(forbidden)
    best = -np.inf
    for parents in product([None, 0, 1, 2, 3], repeat=4):
        own = {(parent, child) for child, parent in enumerate(parents) if parent is not None}
        if set(required) <= own and not own & set(forbidden) and is_forest(parents):
            graph = {child: [] if parent is None else [parent] for child, parent in enumerate(parents)}
            if len(own) == 3:
                best = max(best, CGNClassifier(graph).fit(X, y).log_evidence_)
    assert model.log_evidence_ == pytest.approx(best)


def test_edges_by_name_and_with_missing_values():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.2)
    length, width = "petal length (cm)", "sepal width (cm)"
    parents = CGNClassifier(TAN(required=[(width, length)])).fit(X, y).structure_.parents
    assert parents[length] == (width,)


def test_edges_of_constant_features_are_ignored():
    X, y = iris()
    X[:, 1] = 1.0
    assert CGNClassifier(TAN(required=[(1, 0), (2, 3)])).fit(X, y).structure_.parents[3] == (2,)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ({"required": [(0, 1), (1, 0)]}, "required edges form a cycle through column"),
        ({"required": [(0, 2), (1, 2)]}, "column 2 has two required parents"),
        ({"required": [(0, 1)], "forbidden": [(0, 1)]}, "is both required and forbidden"),
        ({"required": [(1, 1)]}, "from column 1 to itself"),
        ({"required": [(0, 1, 2)]}, "TAN's required must list pairs of parent and child"),
        ({"forbidden": ["ab"]}, "TAN's forbidden must list pairs"),
        ({"forbidden": [(0, 9)]}, "names column 9, but X has 4 columns"),
    ],
)
def test_impossible_edges_are_refused(edges, message):
    X, y = iris()
    with pytest.raises(ValueError, match=message):
        CGNClassifier(TAN(**edges)).fit(X, y)


def test_a_continuous_parent_of_a_discrete_feature_is_refused():
    X = pd.DataFrame({"a": ["x", "y"] * 10, "b": np.arange(20.0)})
    with pytest.raises(ValueError, match="no continuous feature may be the parent"):
        CGNClassifier(TAN(required=[("b", "a")])).fit(X, np.arange(20) % 3 == 0)


@pytest.mark.parametrize("search", ["forward", "backward"])
def test_searched_groups_obey(search):
    X, y = load_wine(return_X_y=True)
    X = X[:, :6]
    rules = {"required": [(0, 4), (4, 5)], "forbidden": [(1, 2), (0, 3)]}
    learner = GreedyJan(search, cv=3, scoring="log_loss", estimation="bayes", **rules)
    model = CGNClassifier(learner).fit(X, y)
    for state in model.search_path_:
        assert any({0, 4, 5} <= set(group) for group in state.groups)
        assert not any({1, 2} <= set(group) or {0, 3} <= set(group) for group in state.groups)
    assert len(model.search_path_) > 1
    free = CGNClassifier(GreedyJan(search, cv=3, scoring="log_loss", estimation="bayes")).fit(X, y)
    assert free.search_path_[-1].groups != model.search_path_[-1].groups


def test_required_features_are_never_removed():
    X, y = load_wine(return_X_y=True)
    model = CGNClassifier(GreedyJan("condensed", cv=3, required=[(3, 4)])).fit(X[:, :5], y)
    assert all({3, 4} <= set(state.groups[0]) for state in model.search_path_)


def test_impossible_rules_of_a_search_are_refused():
    X, y = iris()
    with pytest.raises(ValueError, match="column 0 and column 2 are forbidden in one group, but required edges join"):
        CGNClassifier(GreedyJan(required=[(0, 1), (1, 2)], forbidden=[(0, 2)])).fit(X, y)
    with pytest.raises(ValueError, match="so nothing can be forbidden"):
        CGNClassifier(GreedyJan("condensed", forbidden=[(0, 2)])).fit(X, y)
