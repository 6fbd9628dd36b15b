import numpy as np

from cgnlearn.evaluation.calibration_curve import calibration_curve


def test_a_curve_follows_the_truth_and_leaves_the_band_if_it_must(rng):
    p = rng.random(3000)
    good = calibration_curve(p, rng.random(3000) < p)
    assert np.abs(good.observed - good.at).max() < 0.06
    assert sum(calibration_curve(p, rng.random(3000) < p).outside.any() for _ in range(10)) <= 3  # 0.5 expected
    assert ((good.low <= good.at + 1e-12) & (good.at <= good.high + 1e-12)).all()
    bad = calibration_curve(p, rng.random(3000) < p**2)
    assert bad.outside.mean() > 0.7
    middle = (bad.at > 0.2) & (bad.at < 0.8)
    assert np.abs(bad.observed - bad.at**2)[middle].max() < 0.06
    same = calibration_curve(np.full(10, 0.3), np.arange(10) < 3)
    np.testing.assert_allclose(same.observed, [0.3])
