import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics import accuracy_score, log_loss

from cgnlearn.evaluation.metrics import accuracy, brier, calibration_error, cll, reliability, worth


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
