import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, log_softmax
from sklearn.linear_model import LogisticRegression

from cgnlearn.logistic.recalibration import recalibrate


def two_classes(log_odds):
    return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])


@pytest.mark.parametrize("scale", [0.3, 1, 10, 200])
def test_intercept_and_slope_are_those_of_logistic_regression(rng, scale):
    x = rng.normal(0.5, 1, size=150)
    y = rng.random(150) < expit(0.8 * x - 0.4)
    x *= scale
    found = recalibrate(two_classes(x), y.astype(int))
    peer = LogisticRegression(C=np.inf, tol=1e-14, solver="newton-cholesky", max_iter=1000).fit(x[:, None] / scale, y)
    assert found.slope * scale == pytest.approx(peer.coef_[0, 0], abs=1e-8)
    assert found.intercept[1] == pytest.approx(peer.intercept_[0], abs=1e-8)
    shift = recalibrate(two_classes(x), y.astype(int), 1.0)
    expected = brentq(lambda a: expit(x + a).sum() - y.sum(), -2000, 2000, xtol=1e-13)
    assert shift.intercept[1] == pytest.approx(expected, abs=1e-8)
    assert shift.log_likelihood == pytest.approx(log_expit(np.where(y, x + expected, -x - expected)).sum())


def test_several_classes_reach_the_maximum(rng):
    log_proba = log_softmax(2 * rng.normal(size=(200, 4)), axis=1)
    true = np.array([rng.choice(4, p=np.exp(row)) for row in log_softmax(0.5 * log_proba + [0, 0.5, 0, -0.5], axis=1)])

    def loss(at):
        return -log_softmax(np.append(0, at[:3]) + at[3] * log_proba, axis=1)[np.arange(200), true].sum()

    best = minimize(loss, np.array([0, 0, 0, 1.0]), options={"gtol": 1e-7})
    found = recalibrate(log_proba, true)
    np.testing.assert_allclose([*found.intercept[1:], found.slope], best.x, atol=1e-5)
    assert -found.log_likelihood <= best.fun + 1e-9
    np.testing.assert_allclose(np.exp(found(log_proba)).sum(axis=0), np.bincount(true))
    # A class that does not occur has no probability; the others are as without it.
    without = true != 2
    three = recalibrate(log_proba[without], true[without])
    assert three.intercept[2] == -np.inf
    alone = recalibrate(log_proba[without][:, [0, 1, 3]], np.array([0, 1, 9, 2])[true[without]])
    assert three.slope == pytest.approx(alone.slope)


def test_separated_classes_have_an_infinite_slope():
    x = np.array([-2.0, -1, 0, 1, 2])
    assert recalibrate(two_classes(x), np.array([0, 0, 0, 1, 1])).slope == np.inf
    assert recalibrate(two_classes(x), np.array([1, 1, 1, 0, 0])).slope == -np.inf
    tied = recalibrate(two_classes(np.array([-1.0, 0, 0, 0, 1])), np.array([0, 0, 0, 1, 1]))
    assert tied.slope == np.inf
    assert tied.log_likelihood == pytest.approx(np.log(1 / 3) + 2 * np.log(2 / 3))
    assert np.isnan(recalibrate(two_classes(np.zeros(4)), np.array([0, 1, 0, 1])).slope)
    assert np.isnan(recalibrate(two_classes(x), np.zeros(5, int)).slope)
    log_proba = log_softmax(np.random.default_rng(0).normal(size=(50, 3)), axis=1)
    assert recalibrate(log_proba, log_proba.argmax(axis=1)).slope == np.inf


def test_probabilities_of_zero_are_bounded():
    with np.errstate(divide="ignore"):
        log_proba = np.log([[1, 0], [1, 0], [0, 1], [0, 1], [0.5, 0.5]])
    found = recalibrate(log_proba, np.array([0, 1, 1, 0, 1]))
    assert abs(found.slope) < 1e-6
    assert np.isfinite(found(log_proba)).all()
    with np.errstate(divide="ignore"):
        certain = np.log(np.eye(3)[[0, 1, 2, 0, 1, 2]])
    shifted = recalibrate(certain, np.array([0, 1, 2, 1, 2, 0]), 1.0)  # no curvature at the start
    assert np.isfinite(shifted.intercept).all()
    assert np.isfinite(shifted.log_likelihood)
