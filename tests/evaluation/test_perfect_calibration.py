import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax

from cgnlearn.evaluation.calibration_curve import calibration_curve
from cgnlearn.evaluation.perfect_calibration import p_value


def test_simulated_test_agrees_with_chi_squared(rng, monkeypatch):
    log_proba = log_softmax(rng.normal(size=(600, 3)), axis=1)
    true = np.array([rng.choice(3, p=np.exp(row)) for row in log_softmax(0.85 * log_proba, axis=1)])
    simulated = p_value(log_proba, true)
    monkeypatch.setattr("cgnlearn.evaluation.perfect_calibration.MOST_DRAWN", 0)
    assert simulated == pytest.approx(p_value(log_proba, true), abs=0.05)


@pytest.mark.slow
def test_levels_of_the_test_and_of_the_band(rng):
    n_flagged = n_outside = 0
    for _ in range(300):
        x = rng.normal(-1, 1.5, size=40)
        y = rng.random(40) < expit(x)
        n_flagged += p_value(np.column_stack([log_expit(-x), log_expit(x)]), y.astype(int)) < 0.05
        n_outside += calibration_curve(expit(x), y).outside.any()
    assert 4 <= n_flagged <= 28  # 15 expected, standard deviation 3.8
    assert 4 <= n_outside <= 30
