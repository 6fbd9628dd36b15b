"""Importance of features, and the next one to measure."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import log_loss

from cgnlearn import TAN, CGNClassifier, CGNClassifierCV, TANAverage
from tests.estimators.test_shapley import fitted_mixed


def two_features(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(size=n) + 0.7 * y
    return np.column_stack([x, 0.8 * x + 0.6 * rng.normal(size=n) + 0.8 * y]), y


def entropy(proba):
    return -(proba * np.log(proba)).sum(axis=1)


# ---- importance


@pytest.mark.parametrize("structure", ["naive_bayes", TAN()], ids=str)
def test_importance_is_the_rise_of_the_log_loss_without_the_feature(structure):
    X, y = load_wine(return_X_y=True)
    X = X[:, :5]
    model = CGNClassifier(structure).fit(X[::2], y[::2])
    found = model.feature_importance(X[1::2], y[1::2])
    before, losses = log_loss(y[1::2], model.predict_proba(X[1::2])), []
    for column in range(5):
        H = X[1::2].copy()
        H[:, column] = np.nan
        losses.append(log_loss(y[1::2], model.predict_proba(H)))
    np.testing.assert_allclose(found.increase, np.array(losses) - before, atol=1e-12)
    assert (found.low < found.increase).all()


def test_interval_of_an_importance_is_students():
    X, y = two_features()
    model = CGNClassifier().fit(X, y)
    found = model.feature_importance(X, y)
    H = X.copy()
    H[:, 1] = np.nan
    at = np.arange(len(y)), y
    lost = model.predict_log_proba(X)[at] - model.predict_log_proba(H)[at]
    low, high = student.interval(0.95, len(y) - 1, lost.mean(), lost.std(ddof=1) / np.sqrt(len(y)))
    np.testing.assert_allclose([found.low[1], found.high[1]], [low, high])


def test_twins_matter_only_together():
    X, y = two_features()
    twice = np.column_stack([X[:, 1], X[:, 1] + 1e-6 * X[:, 0], X[:, 0]])
    model = CGNClassifier("complete").fit(twice, y)
    apart = model.feature_importance(twice, y).increase
    together = model.feature_importance(twice, y, groups=[[0, 1]]).increase
    assert together[0] > 5 * max(abs(apart[0]), abs(apart[1]))


def test_wrong_labels_of_importance_are_refused():
    X, y = two_features()
    with pytest.raises(ValueError, match="X has 200 samples, y 199"):
        CGNClassifier().fit(X, y).feature_importance(X, y[1:])
    with pytest.raises(ValueError, match="feature_importance integrates features out, which TANAverage"):
        CGNClassifier(TANAverage()).fit(X, y).feature_importance(X, y)


# ---- the next measurement


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", {1: [], 0: [1]}], ids=str)
def test_expected_entropy_agrees_with_samples_drawn_from_the_model(structure):
    X, y = two_features()
    model = CGNClassifier(structure).fit(X, y)
    drawn, _ = model.sample(400_000, random_state=0)
    near = np.flatnonzero(np.abs(drawn[:, 0] - 0.4) < 0.03)
    after = entropy(model.predict_proba(np.column_stack([np.full(len(near), 0.4), drawn[near, 1]])))
    error = after.std() / np.sqrt(len(near))
    found = model.next_measurement([[0.4, np.nan]])
    assert error < 0.005
    assert abs(found.risk[0] - found.fall[0, 1] - after.mean()) < 4 * error
    assert np.isnan(found.fall[0, 0])
    assert found.risk[0] == pytest.approx(entropy(model.predict_proba([[0.4, np.nan]]))[0])


def test_expected_cost_agrees_with_samples_drawn_from_the_model():
    X, y = two_features()
    costs = np.array([[0.0, 10.0], [1.0, 0.0], [0.4, 3.0]])
    model = CGNClassifier("complete").fit(X, y)
    drawn, _ = model.sample(100_000, random_state=0)
    after = (model.predict_proba(np.column_stack([np.full(len(drawn), np.nan), drawn[:, 1]])) @ costs.T).min(axis=1)
    before = (np.exp(model.class_log_prior_) @ costs.T).min()
    found = model.next_measurement([[np.nan, np.nan]], decision_costs=costs)
    assert found.risk[0] == pytest.approx(before)
    assert abs(found.fall[0, 1] - (before - after.mean())) < 4 * after.std() / np.sqrt(len(after))


def test_a_narrow_density_far_from_the_mean_is_found():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    x = 1e4 * rng.normal(size=300)
    X = np.column_stack([x, 5e6 + x + rng.normal(size=300) + 2 * y])  # a ten-thousandth as wide, given the first
    model = CGNClassifier("complete", estimation="ml", sharing=1).fit(X, y)
    given = 3e4
    found = model.next_measurement([[given, np.nan]])
    near = np.column_stack([np.full(20_000, given), np.linspace(5e6 + given - 60, 5e6 + given + 60, 20_000)])
    joint = np.exp(model.predict_joint_log_proba(near) - model.score_samples([[given, np.nan]]))
    mass = joint.sum(axis=1) * (120 / 20_000)
    assert mass.sum() == pytest.approx(1, abs=0.01)
    expected = (mass * entropy(np.maximum(model.predict_proba(near), 1e-300))).sum()
    assert found.risk[0] - found.fall[0, 1] == pytest.approx(expected, abs=0.01)
    assert found.fall[0, 1] > 0.2


def test_discrete_features_are_summed_over():
    model, X = fitted_mixed(TAN())
    one = X.iloc[[3]].copy()
    one["b"] = pd.Categorical([None], categories=X["b"].cat.categories)
    found = model.next_measurement(one)
    after, total = 0.0, 0.0
    for level in X["b"].cat.categories:
        with_level = one.copy()
        with_level["b"] = pd.Categorical([level], categories=X["b"].cat.categories)
        share = np.exp(model.score_samples(with_level) - model.score_samples(one))[0]
        after += share * entropy(model.predict_proba(with_level))[0]
        total += share
    assert total == pytest.approx(1)
    assert found.fall[0, 1] == pytest.approx(found.risk[0] - after)
    assert np.isnan(np.delete(found.fall[0], 1)).all()


def test_costs_choose_and_stop():
    X, y = load_iris(return_X_y=True)
    model = CGNClassifier("tan").fit(X, y)
    one = [[5.8, np.nan, np.nan, np.nan]]
    assert model.next_measurement(one).feature.tolist() == [3]
    assert model.next_measurement(one, costs=[1, 1, 1, 3]).feature.tolist() == [2]
    only = model.next_measurement(one, costs={1: 1.0})
    assert only.feature.tolist() == [1]
    assert np.isnan(only.fall[0, [0, 2, 3]]).all()
    assert model.next_measurement(one, least=2.0).feature.tolist() == [-1]
    assert model.next_measurement(X[:1]).feature.tolist() == [-1]
    wrong = 1 - np.eye(3)
    assert model.next_measurement(one, {2: 0.1, 3: 0.1}, decision_costs=wrong).feature.tolist() == [3]
    assert model.next_measurement(one, {2: 0.9, 3: 0.9}, decision_costs=wrong).feature.tolist() == [-1]


def test_a_feature_outside_the_model_tells_nothing():
    X, y = load_iris(return_X_y=True)
    model = CGNClassifier({0: [], 1: [0]}).fit(X, y)
    found = model.next_measurement(np.full((1, 4), np.nan))
    assert found.fall[0, 2] == found.fall[0, 3] == 0
    assert found.fall[0, 0] > 0.1


def test_of_a_mixture():
    X, y = two_features()
    model = CGNClassifierCV(candidates=["naive_bayes", "complete", "logistic"]).fit(X, y)
    found = model.next_measurement([[0.4, np.nan], [np.nan, np.nan]])
    assert found.feature.tolist() == [1, 1]
    assert 0.05 < found.fall[0, 1] < found.risk[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": [1.0]}, "costs must have one number for each of the 2 columns"),
        ({"costs": {0: 0.0}}, "costs must be positive"),
        ({"costs": {7: 1.0}}, "7 is no column of X"),
        ({"decision_costs": [[1, 2, 3]]}, "decision_costs must have a row for each decision and 2 columns"),
    ],
)
def test_wrong_costs_are_refused(arguments, message):
    X, y = two_features()
    with pytest.raises(ValueError, match=message):
        CGNClassifier().fit(X, y).next_measurement([[np.nan, 1.0]], **arguments)
