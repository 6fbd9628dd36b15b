"""Metrics against those of scikit-learn, and as sums over parts of a data set."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from cgnlearn.cli.terminal import print_table
from cgnlearn.data.splits import repeated_splits
from cgnlearn.evaluation.metrics import (
    ACCURACY,
    BRIER,
    CALIBRATION_ERROR,
    LOG_LOSS,
    MEANS,
    METRICS,
    Metric,
    Tally,
    reliability,
    summary_text,
)
from cgnlearn.evaluation.run import Unit
from cgnlearn.evaluation.study import FoldResult, Study
from cgnlearn.reporting.leaderboard import leaderboard


def predictions(rng, n_classes, n=200):
    log_proba = log_softmax(2 * rng.normal(size=(n, n_classes)), axis=1)
    return log_proba, rng.integers(0, n_classes, n)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_metrics_are_those_of_scikit_learn(rng, n_classes):
    log_proba, true = predictions(rng, n_classes)
    proba = np.exp(log_proba)
    assert ACCURACY(log_proba, true) == accuracy_score(true, proba.argmax(axis=1))
    assert LOG_LOSS(log_proba, true) == pytest.approx(log_loss(true, proba, labels=range(n_classes)))
    by_class = [brier_score_loss(true == label, proba[:, label]) for label in range(n_classes)]
    assert BRIER(log_proba, true) == pytest.approx(sum(by_class))
    best, is_right = proba.max(axis=1), proba.argmax(axis=1) == true
    observed, predicted = calibration_curve(is_right, best, n_bins=10)
    n = np.histogram(best, np.linspace(0, 1, 11))[0]
    assert CALIBRATION_ERROR(log_proba, true) == pytest.approx(
        np.average(np.abs(observed - predicted), weights=n[n > 0])
    )
    bins = reliability(best, is_right)
    np.testing.assert_array_equal(bins.n, n[n > 0])
    np.testing.assert_allclose(bins.observed, observed)
    np.testing.assert_allclose(bins.predicted, predicted)


def test_metrics_by_hand():
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.35, 0.65]])
    true = np.array([0, 1, 1, 1])
    logs = np.log(proba)
    assert ACCURACY(logs, true) == 0.75
    assert BRIER(logs, true) == pytest.approx(2 * np.mean([0.1**2, 0.8**2, 0.3**2, 0.35**2]))
    # bins 0.9: one right; 0.8: one wrong; 0.7: one right; 0.6: one right
    assert CALIBRATION_ERROR(logs, true) == pytest.approx(np.mean([0.1, 0.8, 0.3, 0.35]))
    bins = reliability(np.array([0.05, 0.01, 1.0]), np.array([True, False, True]))
    assert (bins.n.tolist(), bins.observed.tolist()) == ([2, 1], [0.5, 1.0])
    np.testing.assert_allclose(bins.predicted, [0.03, 1.0])


def test_a_zero_probability_of_the_truth_is_an_infinite_log_loss_and_certainty_none():
    certain = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert LOG_LOSS(certain, np.array([0, 0])) == np.inf
    assert not np.signbit(LOG_LOSS(certain, np.array([0, 1])))
    assert BRIER(certain, np.array([0, 0])) == 1.0


def test_tallies_of_parts_add_up_to_that_of_the_whole(rng):
    log_proba, true = predictions(rng, 3)
    parts = [Tally.of(log_proba[part], true[part]) for part in np.split(np.arange(200), [10, 90])]
    for metric in METRICS.values():
        assert (parts[0] + parts[1] + parts[2]).value(metric) == pytest.approx(metric(log_proba, true), abs=1e-12)


def test_the_table_of_metrics_says_which_way_is_better(rng):
    log_proba, true = predictions(rng, 3)
    sure = np.log(np.where(np.eye(3)[true] > 0, 0.98, 0.01))
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.sign * metric(sure, true) > metric.sign * metric(log_proba, true)
        assert 0 <= metric(sure, true) <= metric.most


def test_a_metric_is_defined_in_one_place(rng, monkeypatch, capsys):
    """One that is put into the table is in summaries, their file, the terminal and the report."""

    def nearly(log_proba, true):
        return (log_proba.argsort(axis=1)[:, -2] == true).astype(float)

    second = Metric("second", "second place", "Nearly right", "The share of second guesses.", -1, 1.0, nearly)
    monkeypatch.setitem(METRICS, "second", second)
    monkeypatch.setitem(MEANS, "second", second)
    log_proba, true = predictions(rng, 3, n=60)
    y = np.array(["a", "b", "c"])[true]
    study = Study("a set", pd.DataFrame({"x": np.zeros(60)}), y, {"m": None}, repeated_splits(y, n_folds=2))
    results = [FoldResult(Unit("m", 0, split.fold), split.test, log_proba[split.test]) for split in study.splits]
    study = replace(study, results=results, proposed="m")
    [summary] = study.summaries
    parts = [second(log_proba[split.test], true[split.test]) for split in study.splits]
    expected = np.average(parts, weights=[len(split.test) for split in study.splits])
    assert summary.metrics["second"].mean == pytest.approx(expected)
    assert summary_text(study.summaries).splitlines()[0].endswith(",second,second_sd")
    print_table(study.summaries, "a set")
    assert "second place" in capsys.readouterr().out
    [line] = leaderboard(study, None).lines
    assert line.metrics["second"].value.value == pytest.approx(second(log_proba, true))
