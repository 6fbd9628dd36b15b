import numpy as np
import pytest
from scipy.special import log_softmax

from cgnlearn.experiments.scores import fold_scores


def test_a_probability_of_zero_counts_as_the_smallest_double():
    log_joint = np.array([[-1.0, -2.0], [-800.0, -3.0], [0.0, -744.0], [-5.0, -4.0]])
    true = np.array([0, 0, 1, 1])
    found = fold_scores(log_joint, true)
    p = np.exp(log_softmax(log_joint, axis=1))[np.arange(4), true]
    assert (p == 0).tolist() == [False, True, False, False]
    assert found.zeros == 1
    assert found.correct == 2
    p[1] = 5e-324
    assert found.cll == pytest.approx(log_softmax(log_joint, axis=1)[[0, 2, 3], [0, 1, 1]].sum() + np.log(p[1]))
