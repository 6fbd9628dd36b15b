import numpy as np
import pytest
from scipy.special import expit

from cgnlearn.evaluation.decisions import decision_curve
from cgnlearn.evaluation.net_benefit import net_benefit, net_benefit_difference


def samples(rng, n):
    x = rng.normal(-1, 1.5, n)
    return expit(x), rng.random(n) < expit(x)


def test_values_and_pointwise_errors_are_those_of_the_formula(rng):
    p, y = samples(rng, 200)
    band = net_benefit([(p, y)])
    at = 29
    t = band.thresholds[at]
    gained = (p >= t) * np.where(y, 1, -t / (1 - t))
    assert band.value[at] == pytest.approx(gained.mean())
    half = (band.high - band.low)[at] / 2
    error = gained.std() / np.sqrt(200)
    assert 2.2 * error < half < 4 * error  # wider than 1.96, as the band holds for all thresholds
    stated = net_benefit([(p, y)], prevalence=0.1)
    np.testing.assert_allclose(stated.value, decision_curve([(p, y)], 0.1).net_benefit)


def test_a_difference_of_two_models_is_paired(rng):
    p, y = samples(rng, 200)
    same = net_benefit_difference((p, y), (p, y))
    assert np.abs(same.value).max() == same.high.max() == 0
    worse = net_benefit_difference((p, y), (rng.permutation(p), y))
    assert worse.value[30] > 0
    nearly = net_benefit_difference((p, y), (np.clip(p + 0.01, 0, 1), y))
    alone = net_benefit([(p, y)])
    assert (nearly.high - nearly.low).mean() < (alone.high - alone.low).mean() / 2
    with pytest.raises(ValueError, match="same samples in the same order"):
        net_benefit_difference((p, y), (p, ~y))


def test_groups_widen_the_band(rng):
    p, y = samples(rng, 100)
    groups = np.tile(np.arange(100), 4)
    once, four = net_benefit([(p, y)]), net_benefit([(np.tile(p, 4), np.tile(y, 4))], groups=groups)
    np.testing.assert_allclose(once.value, four.value)
    np.testing.assert_allclose((four.high - four.low)[20], (once.high - once.low)[20], rtol=0.1)


@pytest.mark.slow
def test_the_band_holds_the_whole_curve(rng):
    p, y = samples(rng, 10**6)
    thresholds = np.arange(0.05, 0.65, 0.05)
    truth = net_benefit([(p, y)], thresholds=thresholds).value
    n_inside = 0
    for _ in range(400):
        band = net_benefit([samples(rng, 300)], thresholds=thresholds)
        n_inside += bool(((band.low <= truth) & (truth <= band.high)).all())
    assert 0.91 <= n_inside / 400 <= 0.98
