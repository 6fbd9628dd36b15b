"""TAN against every tree there is, with weights computed apart."""

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from cgnlearn import TAN, CGNClassifier, Prior, Structure
from cgnlearn.data.table import read_training
from cgnlearn.datasets import make_waveform
from cgnlearn.networks.statistics import collect
from cgnlearn.structures.pairs import costs_of_lost_samples, pair_families


def mutual_information(a, b, y):
    """Plug-in conditional mutual information of two columns given the class, in nats per sample."""
    total = 0.0
    for label in np.unique(y):
        rows = y == label
        u, v = a[rows], b[rows]
        share = rows.mean()
        kinds = u.dtype.kind + v.dtype.kind
        if kinds == "ff":
            total -= share * 0.5 * np.log(1 - np.corrcoef(u, v)[0, 1] ** 2)
        elif kinds == "ii":
            joint = pd.crosstab(u, v, normalize=True).to_numpy()
            expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
            some = joint > 0
            total += share * (joint[some] * np.log(joint[some] / expected[some])).sum()
        else:
            levels, values = (u, v) if kinds[0] == "i" else (v, u)
            within = sum((levels == level).mean() * np.log(values[levels == level].var()) for level in set(levels))
            total += share * 0.5 * (np.log(values.var()) - within)
    return total


def rooted_trees(discrete):
    """Every choice of parents that is a tree in which no discrete feature has a continuous parent."""
    n = len(discrete)
    for parents in product([None, *range(n)], repeat=n):
        if parents.count(None) != 1:
            continue
        if any(p is not None and (p == v or (discrete[v] and not discrete[p])) for v, p in enumerate(parents)):
            continue
        graph = nx.DiGraph((p, v) for v, p in enumerate(parents) if p is not None)
        graph.add_nodes_from(range(n))
        if nx.is_arborescence(graph):
            yield parents


def mixed(seed=0, n=150):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    d = rng.integers(0, 3, n)
    e = (d + rng.integers(0, 2, n) + y) % 2
    a = rng.normal(size=n) + d * (1 + y)
    b = 0.7 * a + rng.normal(size=n)
    c = rng.normal(size=n) - e + 0.2 * b
    columns = {"a": a, "d": pd.Categorical(d.astype(str)), "b": b, "e": pd.Categorical(e.astype(str)), "c": c}
    return pd.DataFrame(columns), y


def arrays(X):
    return [
        column.cat.codes.to_numpy(int) if str(column.dtype) == "category" else column.to_numpy()
        for _, column in X.items()
    ]


@pytest.mark.parametrize("seed", range(4))
def test_mutual_information_is_greatest_among_all_trees(seed):
    X, y = mixed(seed)
    columns = arrays(X)
    discrete = [column.dtype.kind == "i" for column in columns]
    weight = {(p, v): mutual_information(columns[p], columns[v], y) for p in range(5) for v in range(5) if p != v}
    totals = {
        parents: sum(weight[p, v] for v, p in enumerate(parents) if p is not None) for parents in rooted_trees(discrete)
    }
    structure = CGNClassifier(TAN("mutual_information")).fit(X, y).structure_
    names = list(X.columns)
    ours = tuple(names.index(structure.parents[v][0]) if structure.parents[v] else None for v in names)
    assert totals[ours] == pytest.approx(max(totals.values()), rel=1e-12)
    assert len(totals) == 100


@pytest.mark.parametrize("prior", [Prior(), Prior(strength=4.0, scale=[1.0, 1.0, 2.0, 1.0, 1.0])])
def test_evidence_is_greatest_among_all_trees(prior):
    X, y = mixed(1)
    X = X.assign(e=X["c"] * 0.5 + X["a"] ** 2)  # one discrete feature: no direction among such to choose
    ours = CGNClassifier(TAN(), prior=prior).fit(X, y)
    names = list(X.columns)
    evidences = []
    for parents in rooted_trees([False, True, False, False, False]):
        structure = {names[v]: [] if p is None else [names[p]] for v, p in enumerate(parents)}
        evidences.append(CGNClassifier(structure, prior=prior).fit(X, y).log_evidence_)
    assert ours.log_evidence_ == pytest.approx(max(evidences), rel=1e-12)
    assert np.ptp(evidences) > 10


def test_discrete_features_follow_the_mean_gain_of_both_directions():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 200)
    first = rng.integers(0, 2, 200)
    X = pd.DataFrame({"u": first, "v": (first + (rng.random(200) < 0.2)) % 2, "w": rng.integers(0, 3, 200)})
    X["x"] = (X["w"] + (rng.random(200) < 0.3)) % 3
    X = X.astype(str).astype("category")
    ours = CGNClassifier(TAN()).fit(X, y).structure_

    def evidence(parents):
        return CGNClassifier(parents).fit(X, y).log_evidence_

    empty = {v: [] for v in X}
    alone = evidence(empty)
    weight = {
        frozenset((p, v)): evidence({**empty, v: [p]}) + evidence({**empty, p: [v]}) - 2 * alone
        for p in X for v in X if p < v
    }  # fmt: skip
    graph = nx.Graph([(*sorted(pair), {"weight": value}) for pair, value in weight.items()])
    theirs = nx.maximum_spanning_tree(graph)
    assert {frozenset((p[0], v)) for v, p in ours.parents.items() if p} == set(map(frozenset, theirs.edges))


def test_a_chain_is_found_again():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = np.cumsum(rng.normal(size=(2000, 12)), axis=1) + y[:, None]
    order = rng.permutation(12)
    for score in ("evidence", "mutual_information"):
        structure = CGNClassifier(TAN(score)).fit(X[:, order], y).structure_
        edges = {frozenset((order[v], order[p[0]])) for v, p in structure.parents.items() if p}
        assert edges == {frozenset(pair) for pair in pairwise(range(12))}


@pytest.mark.parametrize("score", ["evidence", "mutual_information"])
def test_units_do_not_matter(score):
    X, y = load_wine(return_X_y=True)
    scaled = X * np.logspace(-140, 140, 13) + np.logspace(-140, 140, 13) * 1e3
    plain = CGNClassifier(TAN(score)).fit(X, y).structure_
    assert CGNClassifier(TAN(score)).fit(scaled, y).structure_ == plain
    assert plain.n_edges == 12


@pytest.mark.parametrize("score", ["evidence", "mutual_information"])
def test_constant_features_stand_alone(score):
    X, y = load_iris(return_X_y=True)
    wide = np.full((150, 6), 2.5)
    columns = [1, 2, 4, 5]
    wide[:, columns] = X
    structure = CGNClassifier(TAN(score)).fit(wide, y).structure_
    plain = CGNClassifier(TAN(score)).fit(X, y).structure_
    expected = {columns[v]: tuple(columns[p] for p in parents) for v, parents in plain.parents.items()}
    assert structure == Structure.from_parents({0: (), 3: (), **expected})


@pytest.mark.parametrize("score", ["evidence", "mutual_information"])
def test_repeated_columns_and_columns_constant_in_a_class(score):
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, X[:, 0], np.where(y == 1, 0.0, X[:, 1])])
    structure = CGNClassifier(TAN(score)).fit(X, y).structure_
    assert structure.n_edges == 5
    assert {0, 4} in [{v, *p} for v, p in structure.parents.items()]


def test_a_tree_beats_naive_bayes_on_correlated_waves():
    X, y = make_waveform(1500, random_state=0)
    tree = CGNClassifier("tan").fit(X[:1000], y[:1000])
    naive = CGNClassifier().fit(X[:1000], y[:1000])
    own = (np.arange(500), y[1000:])
    assert tree.predict_log_proba(X[1000:])[own].mean() > naive.predict_log_proba(X[1000:])[own].mean()


def test_an_unknown_score_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match='"evidence" or "mutual_information"'):
        CGNClassifier(TAN("aic")).fit(X, y)


# ---- missing values


def hardly_together(seed, n_shared):
    """Two columns that share a few of 200 samples, of which the second depends on the class, and two of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1200)
    X = rng.normal(size=(1200, 4))
    X[:, 1] += 3 * y
    train, y_train = X[:200].copy(), y[:200]
    train[:100, 0], train[100 + n_shared :, 1] = np.nan, np.nan
    return train, y_train, X[200:], y[200:]


@pytest.mark.filterwarnings("ignore:.*is observed in")
@pytest.mark.parametrize("n_shared", [0, 2, 4])
@pytest.mark.parametrize("score", ["evidence", "mutual_information"])
def test_columns_hardly_ever_observed_together_are_not_joined(score, n_shared):
    worse = []
    for seed in range(5):
        X, y, T, t = hardly_together(seed, n_shared)
        tan, naive = CGNClassifier(TAN(score)).fit(X, y), CGNClassifier().fit(X, y)
        assert tan.structure_.parents[0] != (1,)
        assert tan.structure_.parents[1] != (0,)
        worse.append(naive.score(T, t) - tan.score(T, t))
    assert max(worse) < 0.03
    assert np.mean(worse) < 0.01


def test_lost_samples_cost_half_a_nat_a_parameter_and_more_the_fewer_are_left():
    X, y = mixed()
    rng = np.random.default_rng(1)
    for name in ("a", "b", "d"):
        X.loc[rng.random(150) < 0.4, name] = None
    X.loc[X["a"].notna() & (y == 0), "b"] = None  # never together in one class
    table = read_training(X, y)[0]
    found = costs_of_lost_samples(collect(table, pair_families(table.schema)))
    n_parameters = {"a": 2, "d": 2, "b": 2, "e": 1, "c": 2}
    for (i, parent), (j, child) in product(enumerate(X), repeat=2):
        if i == j or (parent in "abc" and child in "de"):
            continue  # not allowed
        expected = 0.0
        for label in (0, 1):
            own = X[child].notna()[y == label].sum()
            both = (X[child].notna() & X[parent].notna())[y == label].sum()
            expected += np.inf if both == 0 else n_parameters[child] / 2 * (own / both - 1)
        assert found[i, j] == pytest.approx(expected, abs=1e-12), (parent, child)


def test_an_edge_is_taken_where_it_is_worth_the_samples_it_loses():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = rng.normal(size=(200, 1)) + 0.1 * rng.normal(size=(200, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    parents = CGNClassifier("tan").fit(X, y).structure_.parents
    assert sorted(len(of_column) for of_column in parents.values()) == [0, 1, 1]


def test_a_column_without_values_leaves_the_tree_as_it_is():
    X, y = mixed()
    expected = CGNClassifier("tan").fit(X, y).structure_.parents
    for empty in (np.full(150, np.nan), pd.Categorical([None] * 150, categories=["p", "q"])):
        with pytest.warns(UserWarning, match="'empty' is observed in 0%"):
            found = CGNClassifier("tan").fit(X.assign(empty=empty), y)
        assert found.structure_.parents == expected | {"empty": ()}
