"""Shapley values against the definition: every set of features, predicted with all others missing."""

from itertools import permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from cgnlearn import (
    TAN,
    Band,
    BandAverage,
    Box,
    CGNClassifier,
    CGNClassifierCV,
    GreedyJan,
    Jan,
    Prior,
    SelectiveNaiveBayes,
    TANAverage,
)
from cgnlearn.networks import coalitions

STRUCTURES = [
    "naive_bayes",
    SelectiveNaiveBayes(),
    TAN(),
    Jan([[0, 3, 5], [1, 2], [4], [6, 7, 8, 9]]),
    GreedyJan("forward", scoring="log_loss", cv=3),
    Band(3),
    Box(4),
    "complete",
    {0: [], 1: [0], 2: [0, 1], 3: [1], 4: [2, 3], 5: [], 6: [5], 7: [4, 6], 9: []},
]


def by_definition(model, row, players=None):
    """Shapley values of a sample (an array) from predictions for every set of features: (players, classes)."""
    players = players or [[j] for j in range(len(row))]
    k = len(players)
    hidden = []
    for number in range(1 << k):
        shown = [column for i, columns in enumerate(players) if number >> i & 1 for column in columns]
        one = np.full(len(row), None, object) if row.dtype == object else np.full(len(row), np.nan)
        one[shown] = row[shown]
        hidden.append(one)
    if hasattr(model, "feature_names_in_"):
        X = pd.DataFrame(np.array(hidden), columns=model.feature_names_in_).astype(dict(model.kinds))
    else:
        X = np.array(hidden)
    worth = model.predict_log_proba(X)
    worth[0] = model.class_log_prior_
    values = np.zeros((k, worth.shape[1]))
    weight = np.array([factorial(size) * factorial(k - size - 1) / factorial(k) for size in range(k)])
    numbers = np.arange(1 << k)
    size = np.array([number.bit_count() for number in range(1 << k)])
    for i in range(k):
        others = numbers[numbers >> i & 1 == 0]
        values[i] = weight[size[others]] @ (worth[others | 1 << i] - worth[others])
    return values


def wine(p=10):
    X, y = load_wine(return_X_y=True)
    return X[:, :p], y


def mixed(n=120, seed=0):
    """Discrete and continuous columns that depend on each other, as a data frame."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    a = np.where(rng.random(n) < 0.3 + 0.4 * y, "x", "y")
    b = np.where(rng.random(n) < np.where(a == "x", 0.7, 0.2), "u", np.where(rng.random(n) < 0.5, "v", "w"))
    c = rng.normal(size=n) + (a == "x") + y
    d = c + rng.normal(size=n)
    e = rng.normal(size=n) + 0.5 * d + (b == "u")
    f = np.where(rng.random(n) < np.where(b == "u", 0.8, 0.4), "s", "t")
    X = pd.DataFrame({"a": a, "b": b, "c": c, "d": d, "e": e, "f": f})
    return X.astype({"a": "category", "b": "category", "f": "category"}), y


def fitted_mixed(structure, **settings):
    X, y = mixed()
    model = CGNClassifier(structure, **settings).fit(X, y)
    model.kinds = {name: X[name].dtype for name in X}
    return model, X


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_equals_the_definition_with_ten_features(structure):
    X, y = wine()
    model = CGNClassifier(structure, likelihood_power=0.7).fit(X, y)
    rows = [3, 100]
    values, errors = model.shapley(X[rows], return_se=True)
    assert not errors.any()
    for row, found in zip(rows, values, strict=True):
        np.testing.assert_allclose(found, by_definition(model, X[row]), atol=1e-10)
    before_and_after = model.predict_log_proba(X[rows]) - model.class_log_prior_
    np.testing.assert_allclose(values.sum(axis=1), before_and_after, atol=1e-10)


@pytest.mark.parametrize(
    "settings",
    [
        {"estimation": "ml"},
        {"sharing": 0.4},
        {"prior": Prior(location="paper")},
        {"prior": Prior(location="cell")},
        {"estimation": "discriminative"},
        {"class_prior": [0.8, 0.1, 0.1]},
    ],
    ids=str,
)
@pytest.mark.parametrize("structure", [TAN(), "complete"], ids=str)
def test_equals_the_definition_under_every_estimation(structure, settings):
    X, y = wine(6)
    model = CGNClassifier(structure, **settings).fit(X, y)
    np.testing.assert_allclose(model.shapley(X[[70]])[0], by_definition(model, X[70]), atol=1e-10)


GRAPH = {"a": [], "b": ["a"], "c": ["a"], "d": ["c"], "e": ["d", "b"], "f": ["b"]}


@pytest.mark.parametrize("structure", [TAN(), "complete", GRAPH, "naive_bayes", SelectiveNaiveBayes()], ids=str)
def test_equals_the_definition_with_discrete_features(structure):
    model, X = fitted_mixed(structure)
    for row in (0, 7):
        found = model.shapley(X.iloc[[row]])[0]
        np.testing.assert_allclose(found, by_definition(model, X.iloc[row].to_numpy(object)), atol=1e-10)


def test_a_forest_with_a_discrete_root_and_chains_below_it_goes_by_messages(monkeypatch):
    monkeypatch.setattr(coalitions, "_hidden", None)  # no set is evaluated alone
    tree = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["c"], "f": ["a"]}
    model, X = fitted_mixed(tree)
    found = model.shapley(X.iloc[[5]])[0]
    monkeypatch.undo()
    np.testing.assert_allclose(found, by_definition(model, X.iloc[5].to_numpy(object)), atol=1e-10)


def test_missing_features_have_no_value_and_change_no_other():
    X, y = wine(7)
    model = CGNClassifier("tan").fit(X, y)
    H = X[[3, 60, 100]].copy()
    H[0, 2] = H[1, [0, 4, 5]] = H[2] = np.nan
    values = model.shapley(H)
    for row, found in zip(H, values, strict=True):
        np.testing.assert_allclose(found, by_definition(model, row), atol=1e-10)
        assert not found[np.isnan(row)].any()


def test_being_missing_is_known_of_shown_features_only():
    X, y = wine(4)
    H = X.copy()
    H[np.random.default_rng(0).random(X.shape) < np.where(y == 1, 0.4, 0.1)[:, None]] = np.nan
    model = CGNClassifier(missing_indicator=True).fit(H, y)
    row = int(np.flatnonzero(np.isnan(H).sum(axis=1) == 2)[0])
    (found,) = model.shapley(H[[row]])
    assert (np.abs(found).max(axis=1) > 0.01).all()
    # Naive Bayes: log odds between classes are sums of what each feature says, its indicator included.
    (parts,) = model.contributions(H[[row]])
    np.testing.assert_allclose(found[:, 1] - found[:, 0], parts[:, 1] - parts[:, 0], atol=1e-10)
    after = model.predict_log_proba(H[[row]])[0]
    np.testing.assert_allclose(found.sum(axis=0), after - model.class_log_prior_, atol=1e-10)


def test_no_order_of_a_chain_matters():
    X, y = wine(4)
    found = [
        CGNClassifier({order[0]: [], **{b: order[:i] for i, b in enumerate(order[1:], 1)}}).fit(X, y).shapley(X[[60]])
        for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0])
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-10)
    np.testing.assert_allclose(found[2], found[0], atol=1e-10)


def test_features_that_say_the_same_share_it_and_constant_ones_have_none():
    X, y = wine(2)
    twice = np.column_stack([X[:, 0], X[:, 0], X[:, 1], np.ones(len(X))])
    found = CGNClassifier("complete").fit(twice, y).shapley(twice[:5])
    np.testing.assert_allclose(found[:, 0], found[:, 1], atol=1e-8)
    assert not found[:, 3].any()


def test_it_is_the_mean_over_all_orders():
    X, y = wine(4)
    model = CGNClassifier("tan").fit(X, y)
    expected = np.zeros((4, 3))
    for order in permutations(range(4)):
        one, worth = np.full((1, 4), np.nan), model.class_log_prior_
        for j in order:
            one[0, j] = X[9, j]
            after = model.predict_log_proba(one)[0]
            expected[j] += (after - worth) / 24
            worth = after
    np.testing.assert_allclose(model.shapley(X[[9]])[0], expected, atol=1e-10)


@pytest.mark.parametrize("structure", ["naive_bayes", TAN(), "complete"], ids=str)
def test_groups_are_shown_and_hidden_together(structure):
    X, y = wine(8)
    model = CGNClassifier(structure).fit(X, y)
    (found,) = model.shapley(X[[70]], groups={"first": [0, 3], "second": [1, 2, 7]})
    np.testing.assert_allclose(found, by_definition(model, X[70], [[0, 3], [1, 2, 7], [4, 5, 6]]), atol=1e-10)


def test_blocks_of_a_structure_as_groups_need_one_evaluation(monkeypatch):
    monkeypatch.setattr(coalitions, "_hidden", None)
    X, y = wine(8)
    model = CGNClassifier(Box(4)).fit(X, y)
    (found,) = model.shapley(X[[70]], groups=[[0, 1, 2, 3], [4, 5, 6, 7]])
    monkeypatch.undo()
    np.testing.assert_allclose(found, by_definition(model, X[70], [[0, 1, 2, 3], [4, 5, 6, 7]]), atol=1e-10)


EVEN = [list(range(start, start + 8)) for start in range(0, 48, 8)]
PEAKS = [[3, 4], list(range(10, 20)), [30, 31, 32], list(range(44, 48))]  # the rest has runs between them
CROSSED = [[*range(6), *range(20, 30)], [*range(6, 14)], [*range(14, 20), *range(40, 48)], [*range(30, 40)]]


def walks(n=60, p=48):
    """Features that are like their neighbours, one of them constant."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, p)).cumsum(axis=1) + 0.3 * y[:, None] * np.sin(np.arange(p))
    X[:, 5] = 1.0
    return X, y


@pytest.mark.parametrize("groups", [EVEN, PEAKS, CROSSED], ids=["even", "peaks", "crossed"])
@pytest.mark.parametrize(
    ("structure", "settings"),
    [
        (Band(2), {}),
        (Band(3), {"sharing": 0.5, "likelihood_power": 0.3}),
        (Band(3), {"prior": Prior(location="paper")}),
        (Band(3), {"estimation": "ml"}),
    ],
    ids=str,
)
def test_runs_of_a_band_equal_the_definition_without_an_evaluation(groups, structure, settings, monkeypatch):
    X, y = walks()
    if settings.get("estimation") == "ml":
        X[:, 5] += np.random.default_rng(1).normal(size=len(X))
    model = CGNClassifier(structure, **settings).fit(X, y)
    monkeypatch.setattr(coalitions, "_hidden", None)
    values, errors = model.shapley(X[[3, 4]], groups=groups, return_se=True)
    sampled, their_errors = model.shapley(X[[3, 4]], groups=groups, return_se=True, max_exact=2, n_permutations=400)
    monkeypatch.undo()
    assert not errors.any()
    rest = sorted({*range(48)}.difference(*groups))
    players = [*groups, rest] if rest else groups
    for row, found in zip((3, 4), values, strict=True):
        np.testing.assert_allclose(found, by_definition(model, X[row], players), atol=1e-10)
    assert np.abs((sampled - values) / np.maximum(their_errors, 1e-9)).max() < 4.5


def test_runs_of_a_band_with_missing_values_equal_the_definition():
    X, y = walks()
    model = CGNClassifier(Band(3)).fit(X, y)
    H = X[:3].copy()
    H[1, [9, 30]] = np.nan
    for row, found in zip(H, model.shapley(H, groups=EVEN), strict=True):
        np.testing.assert_allclose(found, by_definition(model, row, EVEN), atol=1e-10)


@pytest.mark.parametrize("structure", ["naive_bayes", Box(5), Band(2)], ids=str)
def test_fifteen_groups_are_exact_and_fifteen_features_sampled(structure):
    X, y = walks()
    groups = [list(range(start, start + 3)) for start in range(0, 45, 3)]
    model = CGNClassifier(structure).fit(X[:, :45], y)
    values, errors = model.shapley(X[:1, :45], groups=groups, return_se=True)
    assert not errors.any()
    np.testing.assert_allclose(values[0], by_definition(model, X[0, :45], groups), atol=1e-10)
    assert model.shapley(X[:1, :45], n_permutations=4, return_se=True)[1].any()


def test_names_of_columns_in_groups():
    model, X = fitted_mixed("tan")
    named = model.shapley(X[:2], groups=[["a", "c"], ["b"]])
    np.testing.assert_array_equal(named, model.shapley(X[:2], groups=[[0, 2], [1]]))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["a", "z"]], "'z' is no column of X, which has a, b, c, d, e, f"),
        ([["a"], ["a", "b"]], "column 'a' is in two groups"),
        ([[]], "group 0 has no columns"),
        (["a"], "group 0 is 'a', not a list of columns"),
    ],
)
def test_wrong_groups_are_refused(groups, message):
    model, X = fitted_mixed("naive_bayes")
    with pytest.raises(ValueError, match=message):
        model.shapley(X[:1], groups=groups)


# ---- more features than are enumerated


@pytest.mark.parametrize("structure", ["naive_bayes", TAN(), Jan([[0, 1, 2], [3, 4], [5, 6]])], ids=str)
def test_sampled_orders_agree_with_all_sets_within_their_error(structure, monkeypatch):
    X, y = wine(7)
    model = CGNClassifier(structure).fit(X, y)
    exact = model.shapley(X[:4])
    for module in ("coalitions", "marginals"):
        monkeypatch.setattr(f"cgnlearn.networks.{module}.MOST_TABULATED", 3)
    values, errors = model.shapley(X[:4], n_permutations=200, max_exact=3, return_se=True)
    assert 0 < errors.max() < 0.5
    assert np.abs((values - exact) / np.maximum(errors, 1e-9)).max() < 4.5
    sums = model.predict_log_proba(X[:4]) - model.class_log_prior_
    np.testing.assert_allclose(values.sum(axis=1), sums, atol=1e-10)
    if not isinstance(structure, TAN):  # its parts are small enough for exact log odds
        odds, exact_odds = (each[..., 1] - each[..., 0] for each in (values, exact))
        np.testing.assert_allclose(odds, exact_odds, atol=1e-9)
    np.testing.assert_array_equal(values, model.shapley(X[:4], n_permutations=200, max_exact=3))
    with pytest.raises(ValueError, match="max_exact must be from 0 to 20, not 21"):
        model.shapley(X[:4], max_exact=21)


def test_sampling_shows_its_progress(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), np.arange(60) % 2
    model = CGNClassifier(verbose=1).fit(X, y)
    capsys.readouterr()
    model.shapley(X[:2], n_permutations=10)
    assert "CGNClassifier: computed in" in capsys.readouterr().err
    with pytest.raises(ValueError, match="n_permutations must be at least 4"):
        model.shapley(X[:2], n_permutations=1)


def test_thousands_of_features_have_exact_log_odds():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2000)) + 0.2 * y[:, None]
    model = CGNClassifier(likelihood_power=0.1).fit(X, y)
    values = model.shapley(X[:2], n_permutations=4)
    parts = 0.1 * model.contributions(X[:2])
    np.testing.assert_allclose(values[..., 1] - values[..., 0], parts[..., 1] - parts[..., 0], atol=1e-9)


# ---- mixtures, and what is refused


@pytest.mark.parametrize("candidates", [["naive_bayes", "tan"], ["logistic", "aode"], ["naive_bayes", "tan_average"]])
def test_of_a_mixture_they_are_those_of_its_predictions(candidates):
    X, y = wine(5)
    model = CGNClassifierCV(candidates=candidates).fit(X, y)
    values = model.shapley(X[[3, 70]])
    for row, found in zip((3, 70), values, strict=True):
        np.testing.assert_allclose(found, by_definition(model, X[row]), atol=1e-10)
    sums = model.predict_log_proba(X[[3, 70]]) - model.class_log_prior_
    np.testing.assert_allclose(values.sum(axis=1), sums, atol=1e-10)


def test_of_a_mixture_missing_features_have_no_value():
    X, y = wine(5)
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(X, y)
    H = X[[3, 70]].copy()
    H[0, 1] = H[1] = np.nan
    values = model.shapley(H)
    assert not values[0, 1].any()
    assert not values[1].any()
    sums = model.predict_log_proba(H[:1]) - model.class_log_prior_
    np.testing.assert_allclose(values[:1].sum(axis=1), sums, atol=1e-10)


@pytest.mark.parametrize("structure", [TANAverage(), BandAverage()], ids=str)
def test_averages_that_need_complete_samples_are_refused(structure):
    X, y = wine(4)
    with pytest.raises(ValueError, match="shapley integrates features out, which"):
        CGNClassifier(structure).fit(X, y).shapley(X[:1])
