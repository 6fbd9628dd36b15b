"""Candidates within a time limit."""

import numpy as np
import pytest

from cgnlearn import CGNClassifierCV
from cgnlearn.candidates import comparison
from cgnlearn.candidates.budget import affordable
from cgnlearn.candidates.logistic import LogisticCandidate
from cgnlearn.candidates.networks import CompleteCandidate, FrequenciesCandidate, LearnerCandidate, NaiveBayesCandidate
from cgnlearn.estimators.mixture_classifier import expected_seconds


def candidate(kind, transform="none"):
    return kind(None, transform, ())


FEW = [
    candidate(FrequenciesCandidate),
    candidate(NaiveBayesCandidate),
    candidate(CompleteCandidate),
    candidate(CompleteCandidate, "power"),
    LogisticCandidate("none", "linear", 0.01),
]  # of gains 0.05, 0.06, 0.17, 0.085 and 0.19


def test_the_best_for_their_time_come_first():
    assert affordable(FEW, [1.0, 1.0, 1.0, 1.0, 1.0], 100.0) == [0, 4, 2, 3, 1]
    assert affordable(FEW, [1.0, 1.0, 1.0, 1.0, 10.0], 100.0) == [0, 2, 3, 1, 4]


def test_what_does_not_fit_is_passed_over_and_what_does_is_taken():
    assert affordable(FEW, [1.0, 1.0, 5.0, 5.0, 2.0], 4.0) == [0, 4, 1]


def test_the_baseline_and_the_cheapest_are_always_tried():
    assert affordable(FEW, [1.0, 3.0, 2.0, 9.0, 9.0], 0.1) == [0, 2]
    assert affordable(FEW[:1], [1.0], 0.1) == [0]
    assert affordable([], [], 0.1) == []


def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 5)) + y[:, None], y


def test_a_limit_chooses_by_forecasts_and_says_what_it_skipped():
    X, y = data()
    model = CGNClassifierCV(time_limit=0.15).fit(X, y)
    results = model.cv_results_
    skipped = np.flatnonzero([("time_limit" in reason) for reason in results["reason"]])
    assert len(skipped)
    assert "s, which others need of time_limit=0.15" in results["reason"][skipped[0]]
    assert {"frequencies", "logistic"} <= set(results["param_candidate"][results["reason"] == ""])
    assert expected_seconds(CGNClassifierCV(time_limit=0.15), X, y) <= 0.15 < expected_seconds(CGNClassifierCV(), X, y)


def test_a_limit_that_suffices_changes_nothing():
    X, y = data()
    np.testing.assert_array_equal(
        CGNClassifierCV(time_limit=1000).fit(X, y).predict_proba(X), CGNClassifierCV().fit(X, y).predict_proba(X)
    )


def test_what_has_not_begun_in_time_is_skipped(monkeypatch):
    X, y = data()
    ticks = iter(np.arange(0.0, 1e6, 400.0))
    monkeypatch.setattr(comparison, "monotonic", lambda: 1e9 + next(ticks))
    model = CGNClassifierCV(candidates=["naive_bayes", "complete", "aode"], time_limit=1000).fit(X, y)
    late = model.cv_results_["reason"] == comparison.TOO_LATE
    assert late.sum() == 6 - 1  # the frequencies and the best for its time are tried in any case
    assert set(model.cv_results_["param_candidate"][~late]) == {"frequencies", "complete"}


@pytest.mark.parametrize("limit", [0, -1.0, "long", True, np.nan])
def test_a_limit_is_a_positive_number(limit):
    with pytest.raises(ValueError, match="time_limit must be None or a positive number of seconds, not"):
        CGNClassifierCV(time_limit=limit).fit(*data())


def test_a_given_learner_has_a_gain_too():
    assert LearnerCandidate.gain == pytest.approx(0.05)
