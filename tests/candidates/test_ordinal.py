"""Regression of one score as a candidate."""

import numpy as np
import pytest

from cgnlearn import CGNClassifierCV
from cgnlearn.candidates.ordinal import FittedOrdinal
from cgnlearn.logistic.path import MANY_SAMPLES


def grades(rng, n=90, n_classes=4):
    """Grades by a sum of six features."""
    X = rng.normal(size=(n, 6))
    score = X.sum(axis=1) + rng.logistic(size=n)
    return X, np.array(["none", "low", "good", "best"])[np.argsort(np.argsort(score)) * n_classes // n]


def test_grades_are_predicted_better_than_by_a_coefficient_for_each(rng):
    X, y = grades(rng, 800)
    losses = {}
    for name in ("ordinal", "logistic"):
        model = CGNClassifierCV(candidates=[name], transforms=["none"], random_state=0).fit(X[:60], y[:60])
        proba = model.predict_proba(X[60:])
        losses[name] = -np.log(proba[np.arange(740), np.searchsorted(model.classes_, y[60:])]).mean()
    assert losses["ordinal"] < losses["logistic"] - 0.02


def test_its_log_odds_are_those_of_one_score(rng):
    X, y = grades(rng)
    model = CGNClassifierCV(candidates=["ordinal"], transforms=["none"], max_members=1).fit(X, y)
    (fitted,) = model._mixture.parts[0].fits
    assert isinstance(fitted, FittedOrdinal)
    lengths = np.linalg.svd(fitted.odds.slopes[0], compute_uv=False)
    assert lengths[1] < 0.05 * lengths[0]  # penalties are averaged, each with an axis of its own
    assert {member.settings["candidate"] for member in model.members_} == {"ordinal"}


@pytest.mark.parametrize(
    ("n", "n_classes", "reason"),
    [(60, 2, "two classes are in an order anyway"), (MANY_SAMPLES + 100, 4, "enough for coefficients of each class")],
)
def test_where_it_cannot_help_it_is_skipped_with_a_reason(rng, n, n_classes, reason):
    X, y = grades(rng, n, n_classes)
    results = CGNClassifierCV(candidates=["naive_bayes", "ordinal"], transforms=["none"]).fit(X, y).cv_results_
    reasons = results["reason"][results["param_candidate"] == "ordinal"]
    assert [reason in each for each in reasons] == [True]


def test_intervals_hold_the_probabilities_of_more_samples(rng):
    X, y = grades(rng, 2000)
    whole = CGNClassifierCV(candidates=["ordinal"], transforms=["none"]).fit(X[:1500], y[:1500])
    part = CGNClassifierCV(candidates=["ordinal"], transforms=["none"]).fit(X[:100], y[:100])
    low, high = np.moveaxis(part.predict_interval(X[1500:]), -1, 0)
    proba = whole.predict_proba(X[1500:])
    assert 0.75 < ((low <= proba) & (proba <= high)).mean() <= 1.0
    assert (high - low).mean() < 0.3
