"""Classifiers of scikit-learn beside the mixture: any table, finite log losses, and only those that are quick."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cgnlearn.evaluation.comparators import COMPARATORS, comparators


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = pd.DataFrame({"a": 2 * y + rng.normal(size=60), "empty": np.nan, "b": rng.normal(size=60)})
    X.loc[::7, "a"] = np.nan
    X["level"] = pd.Categorical(np.where(rng.random(60) < 0.3 + 0.4 * y, "low", "high"), ["low", "high", "new"])
    X.loc[3, "level"] = None
    return X, np.array(["no", "yes"])[y]


@pytest.mark.parametrize("name", COMPARATORS)
def test_missing_values_new_levels_and_empty_columns_are_borne(table, name):
    X, y = table
    model = clone(COMPARATORS[name](0)).fit(X.iloc[:50], y[:50])
    new = X.iloc[50:].assign(level=pd.Categorical(["new"] * 10, ["low", "high", "new"]))
    proba = model.predict_proba(new)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert (proba > 0).all()
    assert (model.predict(X.iloc[50:]) == y[50:]).mean() > 0.6


def test_the_forest_adds_half_a_vote():
    X, y = pd.DataFrame({"a": np.r_[np.zeros(20), np.ones(20)]}), np.repeat(["no", "yes"], 20)
    proba = COMPARATORS["random forest"](0).fit(X, y).predict_proba(X.iloc[[0, -1]])
    np.testing.assert_allclose(proba, [[500.5 / 501, 0.5 / 501], [0.5 / 501, 500.5 / 501]])


def test_slow_ones_are_compared_only_if_named():
    assert list(comparators(2500, 2)) == list(COMPARATORS)
    assert "gradient boosting" not in comparators(2501, 2)
    assert list(comparators(2501, 2, names=["gradient boosting"])) == ["gradient boosting"]
