"""The searches against one that refits every candidate with scikit-learn, and against hostile input."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import CGNClassifier, GreedyJan, Jan, NaiveBayes, Prior, SampleNotAcceptableError
from cgnlearn.data.table import read, schema_of
from cgnlearn.networks.estimation import Bayes, MaximumLikelihood
from cgnlearn.structures.fold_scores import Folds
from cgnlearn.structures.leave_one_out_scores import LeaveOneOutFolds
from cgnlearn.structures.search import Scores

WAYS = {"ml": MaximumLikelihood, "bayes": Bayes}


def mixed(n=120, seed=3):
    """Two discrete and two continuous columns that depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    colour = (y + rng.integers(0, 2, n)) % 3
    switch = (rng.random(n) < 0.3 + 0.2 * (y == 1)).astype(int)
    a = y + switch + rng.normal(size=n)
    b = a * (y - 1) + rng.normal(size=n)
    X = pd.DataFrame(
        {
            "a": a,
            "colour": pd.Categorical(np.array(["red", "green", "blue"])[colour], ["red", "green", "blue"]),
            "b": b,
            "switch": pd.Categorical(np.where(switch, "on", "off"), ["off", "on"]),
        }
    )
    return X, y


def subset(load, columns):
    X, y = load(return_X_y=True)
    return X[:, columns], y


SLOW = pytest.mark.slow
SETS = {
    "iris": lambda: load_iris(return_X_y=True),
    "wine": lambda: subset(load_wine, [0, 2, 6, 9, 11]),
    "mixed": mixed,
}


# ---- the oracle: Algorithm 1 as it is written, each structure refitted from scratch


def own_class_log_proba(model, X, y):
    return model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()


def refitted_score(groups, X, y, learner, prior):
    model = CGNClassifier(Jan(groups), estimation=learner.estimation, prior=prior)
    folds = StratifiedKFold(learner.cv, shuffle=True, random_state=learner.random_state)
    scoring = "accuracy" if learner.scoring == "accuracy" else own_class_log_proba
    try:
        return cross_val_score(model, X, y, cv=folds, scoring=scoring, error_score="raise").mean()
    except SampleNotAcceptableError:
        return -np.inf


def literal_neighbours(search, groups, n_columns):
    found = []
    if search == "forward":
        for v in range(n_columns):
            if not any(v in group for group in groups):
                found.append([*groups, [v]])
                for i in range(len(groups)):
                    found.append([[*g, v] if j == i else g for j, g in enumerate(groups)])
        return found
    for i, group in enumerate(groups):
        for v in group:
            changed = [[u for u in g if u != v] if j == i else g for j, g in enumerate(groups)]
            found.append([g for g in changed if g])
    if search == "backward":
        for a in range(1, len(groups)):
            for b in range(a):
                found.append([g for j, g in enumerate(groups) if j not in (a, b)] + [groups[b] + groups[a]])
    return found


def refitting_search(X, y, learner, prior, score_of=refitted_score):
    n = X.shape[1]
    now = {"forward": [], "backward": [[v] for v in range(n)], "condensed": [list(range(n))]}[learner.search]
    score = score_of(now, X, y, learner, prior)
    path = [(now, score)]
    while candidates := literal_neighbours(learner.search, now, n):
        scores = [score_of(candidate, X, y, learner, prior) for candidate in candidates]
        best = max(scores)
        chosen = next(i for i, s in enumerate(scores) if s == best or s > best - 1e-12)
        if scores[chosen] < score - 1e-12:
            break
        now, score = candidates[chosen], scores[chosen]
        path.append((now, score))
    return path


@pytest.mark.parametrize("name", ["iris", pytest.param("wine", marks=SLOW), pytest.param("mixed", marks=SLOW)])
@pytest.mark.parametrize("search", ["forward", "backward", "condensed"])
@pytest.mark.parametrize(
    ("scoring", "estimation", "prior"),
    [
        ("accuracy", "ml", Prior()),
        ("log_loss", "ml", Prior()),
        ("accuracy", "bayes", Prior()),
        ("log_loss", "bayes", Prior(strength=3.0, location="cell")),
    ],
)
def test_same_path_as_refitting_every_candidate(name, search, scoring, estimation, prior):
    X, y = SETS[name]()
    learner = GreedyJan(search, cv=4, scoring=scoring, estimation=estimation, random_state=1)
    ours = CGNClassifier(learner, prior=prior).fit(X, y)
    names = X.columns if isinstance(X, pd.DataFrame) else range(X.shape[1])
    theirs = refitting_search(X, y, learner, prior)
    assert [state.groups for state in ours.search_path_] == [
        tuple(tuple(names[v] for v in group) for group in groups) for groups, _ in theirs
    ]
    np.testing.assert_allclose([s.score for s in ours.search_path_], [s for _, s in theirs], rtol=1e-9)
    assert ours.structure_ == ours.search_path_[-1].structure


def test_ten_folds_by_name_are_the_papers():
    X, y = load_iris(return_X_y=True)
    theirs = refitting_search(X, y, GreedyJan("forward", random_state=0), Prior())
    ours = CGNClassifier("fwgjan", random_state=0).fit(X, y)
    assert [s.groups for s in ours.search_path_] == [tuple(map(tuple, groups)) for groups, _ in theirs]


def test_paper_location_depends_on_the_order_in_a_group():
    X, y = subset(load_wine, [0, 6, 9])
    learner = GreedyJan("backward", cv=3, scoring="log_loss", estimation="bayes")
    prior = Prior(location="paper", strength=20.0)
    ours = CGNClassifier(learner, prior=prior).fit(X, y)
    theirs = refitting_search(X, y, learner, prior)
    assert [s.groups for s in ours.search_path_] == [tuple(map(tuple, groups)) for groups, _ in theirs]
    np.testing.assert_allclose([s.score for s in ours.search_path_], [s for _, s in theirs], rtol=1e-9)


# ---- without folds


def left_out_score(groups, X, y, learner, prior, weights=None):
    try:
        model = CGNClassifier(Jan(groups), estimation=learner.estimation, prior=prior).fit(X, y, weights)
    except SampleNotAcceptableError:
        return -np.inf
    log_proba = model.leave_one_out_log_proba(X, y, weights)
    scores = log_proba.argmax(axis=1) == y if learner.scoring == "accuracy" else log_proba[np.arange(len(y)), y]
    return np.average(scores, weights=weights)


def assert_same_path_without_folds(X, y, learner, prior, weights=None):
    ours = CGNClassifier(learner, prior=prior).fit(X, y, weights).search_path_
    theirs = refitting_search(X, y, learner, prior, lambda *given: left_out_score(*given, weights))
    names = X.columns if isinstance(X, pd.DataFrame) else range(X.shape[1])
    assert [s.groups for s in ours] == [
        tuple(tuple(names[v] for v in group) for group in groups) for groups, _ in theirs
    ]
    np.testing.assert_allclose([s.score for s in ours], [s for _, s in theirs], rtol=1e-9)


@pytest.mark.parametrize("name", ["iris", pytest.param("wine", marks=SLOW), pytest.param("mixed", marks=SLOW)])
@pytest.mark.parametrize("search", ["forward", "backward", "condensed"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("scoring", "estimation", "prior"),
    [
        ("accuracy", "ml", Prior()),
        ("log_loss", "ml", Prior()),
        ("accuracy", "bayes", Prior()),
        ("log_loss", "bayes", Prior(strength=3.0, location="cell")),
    ],
)
def test_same_path_as_leaving_rows_out_of_every_candidate(name, search, weighted, scoring, estimation, prior):
    X, y = SETS[name]()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y)) if weighted else None
    assert_same_path_without_folds(X, y, GreedyJan(search, "loo", scoring, estimation), prior, weights)


@pytest.mark.parametrize("estimation", ["ml", "bayes"])
@pytest.mark.parametrize("location", ["pooled", "cell"])
def test_left_out_groups_and_their_neighbours_are_those_of_the_network(estimation, location):
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X[:, :6], X[:, 0] + 1e-4 * X[:, 5], X[:, 0] - X[:, 1]])
    X[7, 3] = 1e3  # of great leverage
    if estimation == "bayes":
        X, y = np.column_stack([X, np.full(len(y), 3.0)])[:131], y[:131]  # a constant, and a class of one sample
    table = read(X, schema_of(X, np.unique(y), None), y)
    rows = LeaveOneOutFolds(table, WAYS[estimation](Prior(location=location)))
    for base in ((0, 1, 2, 4), (1, 2, 3, 5), (0, 2, 6), (4,)):
        shrunk = [base[:j] + base[j + 1 :] for j in range(len(base))] if len(base) > 1 else []
        grown = [tuple(sorted((*base, v))) for v in range(X.shape[1]) if v not in base]
        near = dict(rows.near(base, shrunk + grown))
        assert len(near) > len(shrunk + grown) / 2
        for group, odds in rows.log_odds([base, *shrunk, *grown]):
            alone = rows._of_any_group(group)
            assert (odds is None) == (alone is None)
            if odds is not None:
                tolerance = 1e-5 if {0, 6} <= set(group) else 1e-8
                np.testing.assert_allclose(odds, alone, rtol=tolerance, atol=tolerance)
                if group in near:
                    np.testing.assert_allclose(near[group], alone, rtol=tolerance, atol=tolerance)


def test_left_out_scores_are_those_of_as_many_refits_as_rows():
    X, y = subset(load_wine, [0, 6, 9])
    X, y = X[::4], y[::4]
    prior = Prior(location=X.mean(axis=0), scale=X.var(axis=0))  # held, whatever the samples
    path = CGNClassifier(GreedyJan("backward", "loo", "log_loss", "bayes"), prior=prior).fit(X, y).search_path_
    assert len(path) > 1
    for state in path:
        model = CGNClassifier(Jan(state.groups), prior=prior)
        expected = cross_val_score(model, X, y, cv=LeaveOneOut(), scoring=own_class_log_proba, error_score="raise")
        np.testing.assert_allclose(state.score, expected.mean(), rtol=1e-9)


def test_rows_that_maximum_likelihood_cannot_do_without_are_impossible():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [8, 30])
    X = rng.normal(size=(38, 7)) + y[:, None]
    X[1:8, 0] = 2.5  # but for its first row class 0 is constant here
    cll = CGNClassifier(GreedyJan("condensed", "loo", "log_loss")).fit(X, y).search_path_
    accuracy = CGNClassifier(GreedyJan("condensed", "loo", "accuracy")).fit(X, y).search_path_
    # Of its 8 samples any 7 have a scatter of rank 6, so that one column has to go, and the first one at that.
    assert cll[0].score == -np.inf
    assert np.isfinite([state.score for state in cll[1:]]).all()
    assert cll[1].groups == (tuple(range(1, 7)),)
    assert 0 < accuracy[0].score <= 30 / 38  # no sample of class 0 is right
    forward = CGNClassifier(GreedyJan("forward", "loo", "log_loss")).fit(X, y).search_path_
    assert not any(0 in group for group in forward[-1].groups)
    backward = CGNClassifier(GreedyJan("backward", "loo", "log_loss")).fit(X, y).search_path_
    assert [state.groups[0] for state in backward[:2]] == [(0,), (1,)]
    assert np.isfinite(backward[1].score)
    # A difference of distances cannot tell such a sample from an unlikely one.
    rows = LeaveOneOutFolds(read(X, schema_of(X, np.unique(y), None), y), MaximumLikelihood())
    assert not list(rows.near(tuple(range(1, 7)), [tuple(range(7))]))


def test_levels_seen_once_are_impossible_without_their_row():
    X, y = mixed()
    X["rare"] = pd.Categorical(np.where(np.arange(len(y)) % 2, "b", "a"))
    once = np.flatnonzero((y == 1) & (X["rare"] == "a"))
    X.loc[once[1:], "rare"] = "b"
    for search in ("forward", "backward"):
        assert_same_path_without_folds(X, y, GreedyJan(search, "loo", "log_loss"), Prior())


def test_a_class_of_one_row_without_folds():
    X, y = load_iris(return_X_y=True)
    X, y = X[:101], y[:101]
    for prior in (Prior(), Prior(location="cell")):
        assert_same_path_without_folds(X, y, GreedyJan("forward", "loo", "log_loss", "bayes"), prior)
    with pytest.warns(UserWarning, match="no structure of the search"):
        ml = CGNClassifier(GreedyJan("backward", "loo")).fit(X, y)
    assert ml.structure_.nodes == ()


def test_the_papers_location_needs_folds():
    X, y = load_iris(return_X_y=True)
    prior = Prior(location="paper")
    with pytest.raises(ValueError, match='location "paper": use folds, such as cv=10'):
        CGNClassifier(GreedyJan(cv="loo", estimation="bayes"), prior=prior).fit(X, y)
    assert_same_path_without_folds(X, y, GreedyJan(cv="loo"), prior)  # maximum likelihood has no prior


# ---- what the answer may depend on


def path_of(X, y, learner):
    return [(s.groups, s.score) for s in CGNClassifier(learner).fit(X, y).search_path_]


def test_depends_on_random_state_only():
    X, y = load_wine(return_X_y=True)
    first = path_of(X, y, GreedyJan("forward", random_state=5))
    assert path_of(X, y, GreedyJan("forward", random_state=5)) == first
    assert path_of(X, y, GreedyJan("forward", random_state=6)) != first
    by_name = CGNClassifier("fwgjan", random_state=5).fit(X, y)
    assert [(s.groups, s.score) for s in by_name.search_path_] == first
    unseeded = [CGNClassifier("fwgjan").fit(X, y).search_path_ for _ in range(2)]
    assert unseeded[0] == unseeded[1]


@pytest.mark.parametrize("search", ["forward", "backward", "condensed"])
@pytest.mark.parametrize("estimation", ["ml", "bayes"])
def test_column_order_does_not_matter_without_ties(search, estimation):
    X, y = load_wine(return_X_y=True)
    X = X[:, :7]
    order = np.random.default_rng(0).permutation(7)

    def sets(model, names):
        return {frozenset(names[v] for v in group) for group in model.search_path_[-1].groups}

    learner = GreedyJan(search, cv=3, scoring="log_loss", estimation=estimation)
    assert sets(CGNClassifier(learner).fit(X, y), range(7)) == sets(CGNClassifier(learner).fit(X[:, order], y), order)


@pytest.mark.parametrize("search", ["forward", "backward", "condensed"])
def test_little_memory_gives_the_same_path(search, monkeypatch):
    X, y = load_wine(return_X_y=True)
    learner = GreedyJan(search, cv=3, scoring="log_loss")
    roomy = path_of(X[:, :6], y, learner)
    remembered = []
    original = Scores.__call__

    def watched(self, *args):
        found = original(self, *args)
        remembered.append(sum(odds.nbytes for odds in self._cache.values() if odds is not None))
        return found

    bound = 4 * 8 * len(y) * 2  # four groups
    monkeypatch.setattr("cgnlearn.structures.search.MOST_BYTES", bound)
    monkeypatch.setattr(Scores, "__call__", watched)
    cramped = path_of(X[:, :6], y, learner)
    assert [groups for groups, _ in cramped] == [groups for groups, _ in roomy]
    np.testing.assert_allclose([s for _, s in cramped], [s for _, s in roomy], rtol=1e-12)
    assert max(remembered) <= bound


@pytest.mark.parametrize("estimation", ["ml", "bayes"])
@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120])
def test_batched_groups_are_those_of_the_network(estimation, scale):
    X, y = load_wine(return_X_y=True)
    X = X[:, :6] * scale
    X[7, 2] = 1e30 * scale  # a sample that the other folds find all but impossible
    table = read(X, schema_of(X, np.unique(y), None), y)
    cuts = [rows for _, rows in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)]
    folds = Folds(table, WAYS[estimation](), cuts)
    groups = [(0,), (4,), (1, 2), (5, 3), (0, 2, 5), (0, 1, 2, 3, 4, 5)]
    rows = folds.weights > 0
    assert np.count_nonzero(rows) == len(y)
    for group, odds in folds.log_odds(groups):
        np.testing.assert_allclose(odds[:, rows], folds._of_any_group(group)[:, rows], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimation", ["ml", "bayes"])
def test_neighbours_of_a_group_are_those_computed_alone(estimation):
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X[:, :6], X[:, 0] + 1e-4 * X[:, 5], X[:, 0] - X[:, 1]])
    X[7, 3] = 1e9
    table = read(X, schema_of(X, np.unique(y), None), y)
    cuts = [rows for _, rows in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y)]
    folds = Folds(table, WAYS[estimation](), cuts)
    collinear = {(0, 2), (2, 6)} if estimation == "ml" else set()  # the prior keeps them apart
    for base, left_out in (((0, 1, 2, 4), set()), ((1, 2, 3, 5), {(1, 2, 5)}), ((0, 2, 6), collinear)):
        shrunk = [base[:j] + base[j + 1 :] for j in range(len(base))]
        grown = [tuple(sorted((*base, v))) for v in range(8) if v not in base]
        found = dict(folds.near(base, shrunk + grown))
        assert set(shrunk) - set(found) == left_out  # left out: the outlier's, and one of all but collinear features
        alone = dict(folds.log_odds(list(found)))
        for group, odds in found.items():
            if alone[group] is None:
                assert odds is None
            else:
                tolerance = 1e-5 if {0, 6} <= set(group) else 1e-9
                np.testing.assert_allclose(odds, alone[group], rtol=tolerance, atol=tolerance)


def test_an_impossible_row_does_not_swallow_the_other_groups():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=len(y))])
    X[10, 4] = 1e60
    learner = GreedyJan("backward", cv=5, scoring="log_loss")
    ours = CGNClassifier(learner).fit(X, y)
    theirs = refitting_search(X, y, learner, Prior())
    assert [s.groups for s in ours.search_path_] == [tuple(map(tuple, groups)) for groups, _ in theirs]
    np.testing.assert_allclose([s.score for s in ours.search_path_], [s for _, s in theirs], rtol=1e-9)


def test_weights_of_zero_are_rows_left_out():
    X, y = load_iris(return_X_y=True)
    weights = np.tile([1.0, 2.0, 0.0], 50)
    kept = weights > 0
    whole = CGNClassifier("bwgjan").fit(X, y, weights)
    part = CGNClassifier("bwgjan").fit(X[kept], y[kept], weights[kept])
    assert whole.search_path_ == part.search_path_
    scaled = CGNClassifier("bwgjan").fit(X[kept], y[kept], 3 * weights[kept])
    assert [s.groups for s in scaled.search_path_] == [s.groups for s in part.search_path_]


# ---- bad or scarce input


@pytest.mark.parametrize("search", ["forward", "backward", "condensed"])
@pytest.mark.parametrize("estimation", ["ml", "bayes"])
def test_constant_columns_take_no_part(search, estimation):
    X, y = load_iris(return_X_y=True)
    learner = GreedyJan(search, cv=5, estimation=estimation)
    without = path_of(X, y, learner)
    columns = [0, 1, 3, 4]
    wide = np.full((len(y), 6), 7.3)
    wide[:, columns] = X
    renamed = [(tuple(tuple(columns[v] for v in g) for g in groups), score) for groups, score in without]
    assert path_of(wide, y, learner) == renamed


def test_column_constant_outside_one_fold():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.zeros(len(y))])
    X[3, 4] = 1.0
    learner = GreedyJan("condensed", cv=5, scoring="log_loss", estimation="bayes")
    ours = CGNClassifier(learner).fit(X, y)
    theirs = refitting_search(X, y, learner, Prior())
    assert [s.groups for s in ours.search_path_] == [tuple(map(tuple, groups)) for groups, _ in theirs]
    np.testing.assert_allclose([s.score for s in ours.search_path_], [s for _, s in theirs], rtol=1e-9)


def test_condensed_walks_down_to_the_first_acceptable_structure():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 8)
    X = rng.normal(size=(16, 12)) + y[:, None]
    model = CGNClassifier(GreedyJan("condensed", cv=4)).fit(X, y)
    scores = [state.score for state in model.search_path_]
    # Outside a fold a class has 6 samples, whose scatter has rank 5.
    assert scores[:7] == [-np.inf] * 7
    assert np.isfinite(scores[7:]).all()
    assert model.search_path_[6].groups == (tuple(range(6, 12)),)  # of equals the first was removed


def test_class_with_fewer_rows_than_folds():
    X, y = load_iris(return_X_y=True)
    X, y = X[:104], y[:104]  # four samples of the last class
    with pytest.warns(UserWarning, match="4 samples, so that 4 folds are used instead of 10"):
        model = CGNClassifier("fwgjan").fit(X, y)
    expected = CGNClassifier(GreedyJan("forward", cv=4)).fit(X, y)
    assert model.search_path_ == expected.search_path_


def test_class_with_one_row():
    X, y = load_iris(return_X_y=True)
    X, y = X[:101], y[:101]
    with pytest.warns(UserWarning, match="2 folds are used"):
        bayes = CGNClassifier(GreedyJan("forward", estimation="bayes")).fit(X, y)
    assert bayes.structure_.nodes
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ml = CGNClassifier("fwgjan").fit(X, y)
    assert ["folds" in str(w.message) for w in caught] == [True, False]
    assert "no structure of the search" in str(caught[1].message)
    assert ml.structure_.nodes == ()


def test_a_row_of_each_class_is_too_little():
    with pytest.raises(ValueError, match="no class has two"):
        CGNClassifier("fwgjan").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("name", ["fwgjan", "bwgjan", "wcgjan"])
@pytest.mark.parametrize("estimation", ["ml", "bayes"])
def test_no_acceptable_structure_leaves_the_class_alone(name, estimation):
    y = np.repeat([0, 1, 2], [10, 20, 12])
    X = np.column_stack([y == 1, y == 2]).astype(float)  # constant inside every class
    with pytest.warns(UserWarning, match=r"class alone.*bayes"):
        model = CGNClassifier(name, estimation=estimation).fit(X, y)
    assert model.structure_.nodes == ()
    assert (model.predict(X) == 1).all()
    np.testing.assert_allclose(model.predict_proba(X[:2]), np.exp(model.class_log_prior_)[None].repeat(2, axis=0))
    assert model.contributions(X).shape == (42, 2, 3)
    assert not model.contributions(X).any()
    assert model.n_parameters_ == 2
    drawn, labels = model.sample(50, random_state=0)
    assert drawn.shape == (50, 2)
    assert set(labels) <= {0, 1, 2}
    assert model.search_path_[-1].groups == ()


def test_only_constant_columns():
    y = np.repeat([0, 1], 10)
    with pytest.warns(UserWarning, match="class alone"):
        model = CGNClassifier("bwgjan").fit(np.ones((20, 2)), y)
    assert model.structure_.nodes == ()


def test_too_many_cells_are_not_acceptable():
    rng = np.random.default_rng(0)
    n = 60
    y = rng.integers(0, 2, n)
    X = np.column_stack([*(rng.integers(0, 9, (8, n))), rng.normal(size=n) + y])
    model = CGNClassifier(GreedyJan("condensed", cv=3, estimation="bayes"), categorical_features=list(range(8)))
    model.fit(X, y)
    assert model.search_path_[0].score == -np.inf
    assert np.isfinite(model.search_path_[-1].score)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"search": "sideways"}, 'search must be "forward" or "backward" or "condensed"'),
        ({"scoring": "f1"}, 'scoring must be "accuracy" or "log_loss"'),
        ({"estimation": "map"}, 'estimation must be "ml" or "bayes"'),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"cv": True}, "cv must be"),
        ({"cv": 2.5}, "cv must be"),
        ({"cv": "LOO"}, "cv must be a whole number of at least 2, or \"loo\", not 'LOO'"),
    ],
)
def test_wrong_options_are_refused(changed, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        CGNClassifier(GreedyJan(**changed)).fit(X, y)


def test_names_are_listed_when_one_is_unknown():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match='"fwgjan", "bwgjan", "wcgjan"'):
        CGNClassifier("gjan").fit(X, y)


def test_groups_that_overlap_or_name_unknown_columns_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="more than one place of a JAN's groups: 1"):
        CGNClassifier(Jan([[0, 1], [1, 2]])).fit(X, y)
    with pytest.raises(ValueError, match="names column 9, but X has 4 columns"):
        CGNClassifier(Jan([[0, 9]])).fit(X, y)
    with pytest.raises(ValueError, match="'width', which is not a column of X"):
        CGNClassifier(Jan([["width"]])).fit(pd.DataFrame(X, columns=list("abcd")), y)


def test_discrete_columns_alone():
    X, y = mixed()
    X = X[["colour", "switch"]]
    learner = GreedyJan("backward", cv=4, scoring="log_loss", estimation="bayes")
    ours = CGNClassifier(learner).fit(X, y)
    theirs = refitting_search(X, y, learner, Prior())
    np.testing.assert_allclose([s.score for s in ours.search_path_], [s for _, s in theirs], rtol=1e-9)


def test_more_columns_than_there_is_room_for_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="select columns first"):
        CGNClassifier("fwgjan").fit(rng.normal(size=(24, 6000)), np.repeat([0, 1], 12))


# ---- as a part of scikit-learn


def test_the_parameter_is_left_alone_and_the_path_goes_with_the_structure():
    X, y = load_iris(return_X_y=True)
    learner = GreedyJan("condensed", cv=3)
    model = CGNClassifier(learner).fit(X, y)
    assert not hasattr(learner, "search_path_")
    assert model.search_path_[0].n_scored == 1
    assert model.search_path_[1].n_scored == 5
    model.set_params(structure=NaiveBayes()).fit(X, y)
    assert not hasattr(model, "search_path_")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the smallest class", "ignore:the search no structure of the search")
@parametrize_with_checks(
    [
        CGNClassifier(GreedyJan(cv=2, estimation="bayes")),
        CGNClassifier(GreedyJan("backward", cv=2, scoring="log_loss", estimation="bayes")),
        CGNClassifier(GreedyJan(cv="loo", estimation="bayes")),
    ],
    expected_failed_checks=lambda model: (
        {"check_sample_weight_equivalence_on_dense_data": "a sample twice may be parted, a weight of 2 cannot"}
        | ({"check_estimators_pickle": "no closed form with missing values"} if model.structure.cv == "loo" else {})
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_grid_search_over_a_search():
    X, y = load_iris(return_X_y=True)
    grid = GridSearchCV(CGNClassifier(GreedyJan(cv=3)), {"structure__search": ["forward", "condensed"]}, cv=3)
    assert grid.fit(X, y).best_score_ > 0.9


def test_partial_fit_does_not_search():
    assert not hasattr(CGNClassifier("bwgjan"), "partial_fit")


class Recorder:
    """A callback that counts finished tasks and may end the search."""

    def __init__(self, most=np.inf):
        self.steps, self.fits, self.most = 0, 0, most

    def setup(self, estimator, context): ...
    def teardown(self, estimator, context): ...
    def on_fit_task_begin(self, estimator, context): ...
    def on_fit_task_end(self, estimator, context):
        if context.task_name == "fit":
            self.fits += 1
        else:
            self.steps += 1
        return self.steps >= self.most


def test_callbacks_hear_of_every_state_and_may_stop():
    pytest.importorskip("sklearn.callback")
    X, y = load_iris(return_X_y=True)
    recorder = Recorder()
    model = CGNClassifier("fwgjan").set_callbacks(recorder).fit(X, y)
    assert recorder.steps == len(model.search_path_) > 2
    assert recorder.fits == 1
    stopped = clone(CGNClassifier("fwgjan")).set_callbacks(Recorder(most=2)).fit(X, y)
    assert stopped.search_path_ == model.search_path_[:2]
    assert stopped.structure_ == model.search_path_[1].structure


def test_callbacks_pass_through_a_grid_search():
    callback = pytest.importorskip("sklearn.callback")
    X, y = load_iris(return_X_y=True)
    recorder = Recorder()
    recorder.max_propagation_depth = None
    assert isinstance(recorder, callback.AutoPropagatedCallback)
    grid = GridSearchCV(CGNClassifier(GreedyJan(cv=3)), {"estimation": ["ml", "bayes"]}, cv=2)
    grid.set_callbacks(recorder).fit(X, y)
    assert recorder.steps > 5


def test_folds_of_a_search_keep_groups_together():
    """Every sample twice: whoever parts the two, scores samples that were trained on."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3, :3], y[::3]
    X, y, groups = np.repeat(X, 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(len(y)), 2)
    learner = GreedyJan("backward", cv=4, estimation="bayes", scoring="log_loss")
    model = CGNClassifier(learner).fit(X, y, groups=groups)
    folds = StratifiedGroupKFold(4, shuffle=True, random_state=0)
    for state in model.search_path_:
        jan = CGNClassifier(Jan(state.groups))
        expected = cross_val_score(jan, X, y, groups=groups, cv=folds, scoring="neg_log_loss").mean()
        assert state.score == pytest.approx(expected, abs=1e-9)
    parted = CGNClassifier(learner).fit(X, y)
    assert parted.search_path_[0].score > model.search_path_[0].score
    with_likelihood_power = CGNClassifier(learner, likelihood_power="cv").fit(X, y, groups=groups.tolist())
    assert with_likelihood_power.search_path_ == model.search_path_
    with pytest.raises(ValueError, match="cannot hold out groups: use folds"):
        CGNClassifier(GreedyJan("forward", cv="loo")).fit(X, y, groups=groups)
