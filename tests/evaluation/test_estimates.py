"""Estimates and their intervals at values computed by hand."""

import numpy as np
import pytest

from cgnlearn.evaluation.estimates import Estimate, difference, inflation, mean, share


def test_intervals_at_known_values():
    assert Estimate(1.0, 0.5, 2.0).through(lambda value: -value) == (-1.0, -2.0, -0.5)
    assert share(8, 10) == pytest.approx((0.8, 0.49, 0.943), abs=5e-4)
    assert inflation(5) == 2.25
    assert mean(np.array([1.0, 2.0, 3.0]), n_folds=3) == pytest.approx((2.0, -1.92, 5.92), abs=0.01)
    assert difference(np.zeros(50), n_folds=5, widest=1.0) == pytest.approx((0.0, -0.082, 0.082), abs=1e-3)
