import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from cgnlearn.evaluation.metrics import accuracy, auc, brier, calibration_error, cll, reliability, worth


def test_metrics_by_hand():
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.35, 0.65]])
    true = np.array([0, 1, 1, 1])
    logs = np.log(proba)
    assert accuracy(logs, true) == accuracy_score(true, proba.argmax(axis=1)) == 0.75
    assert cll(logs, true) == pytest.approx(-log_loss(true, proba))
    assert brier(logs, true) == pytest.approx(2 * np.mean([0.1**2, 0.8**2, 0.3**2, 0.35**2]))
    # bins 0.9: one right; 0.8: one wrong; 0.7: one right; 0.6: one right
    assert calibration_error(logs, true) == pytest.approx(np.mean([0.1, 0.8, 0.3, 0.35]))
    bins = reliability(np.array([0.05, 0.01, 1.0]), np.array([True, False, True]))
    assert (bins.n.tolist(), bins.observed.tolist()) == ([2, 1], [0.5, 1.0])
    np.testing.assert_allclose(bins.predicted, [0.03, 1.0])


def test_worth_counts_a_probability_of_zero_at_the_smallest_double():
    log_joint = np.array([[-1.0, -2.0], [-800.0, -3.0], [0.0, -744.0], [-5.0, -4.0]])
    true = np.array([0, 0, 1, 1])
    found = worth(log_joint, true)
    p = np.exp(log_softmax(log_joint, axis=1))[np.arange(4), true]
    assert (p == 0).tolist() == [False, True, False, False]
    assert found.zeros == 1
    assert found.correct == 2
    p[1] = 5e-324
    assert found.cll == pytest.approx(log_softmax(log_joint, axis=1)[[0, 2, 3], [0, 1, 1]].sum() + np.log(p[1]))


def test_auc_is_that_of_scikit_learn_and_of_the_classes_that_occur(rng):
    log_proba = log_softmax(rng.normal(size=(60, 3)), axis=1).round(1)  # with ties
    true = rng.integers(0, 3, 60)
    areas = [roc_auc_score(true == label, log_proba[:, label]) for label in range(3)]
    assert auc(log_proba, true) == pytest.approx(np.mean(areas))
    two = true < 2
    expected = [roc_auc_score(true[two] == label, log_proba[two, label]) for label in range(2)]
    assert auc(log_proba[two], true[two]) == pytest.approx(np.mean(expected))
    assert np.isnan(auc(log_proba, np.zeros(60, int)))
