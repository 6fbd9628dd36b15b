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


@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_covariances_in_closed_form_are_those_of_the_samples(rng, prevalence):
    p, y = samples(rng, 150)
    p = p.round(1)  # ties with thresholds
    thresholds = np.array([0.3, 0.1, 0.35, 0.9])
    alone = net_benefit([(p, y)], prevalence, thresholds)
    each = net_benefit([(p, y)], prevalence, thresholds, groups=np.arange(150))
    np.testing.assert_allclose(each.value, alone.value)
    np.testing.assert_allclose(each.high - each.value, (alone.high - alone.value) * np.sqrt(150 / 149), rtol=1e-9)


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


def test_the_worked_example_of_dcurves():
    # 750 patients of `df_binary` in dcurves 1.1.7: how many with and without cancer lie between its thresholds by the
    # predicted risk, how many have a family history, and the net benefits that its function `dca` states.
    thresholds = np.array([0.05, 0.1, 0.2, 0.35])
    cancer = np.repeat([True, False], [105, 645])
    risk = np.concatenate([np.repeat([0.0, *thresholds], n) for n in ([9, 9, 12, 18, 57], [325, 127, 95, 62, 36])])
    family = np.concatenate([np.repeat([0.0, 1.0], n) for n in ([81, 24], [554, 91])])
    for predicted, prevalence, stated in (
        (family, None, [0.025614035, 0.018518519, 0.001666667, -0.033333333]),
        (risk, None, [0.10554386, 0.087407407, 0.067333333, 0.050153846]),
        (family, 0.1, [0.016174156, 0.008748616, -0.008887043, -0.04551495]),
        (risk, 0.1, [0.067927959, 0.052934662, 0.037242525, 0.027237414]),
    ):
        found = net_benefit([(predicted, cancer)], prevalence, thresholds)
        np.testing.assert_allclose(found.value, stated, atol=1e-9)
    curve = decision_curve([(risk, cancer)], thresholds=thresholds)
    np.testing.assert_allclose(curve.act_on_all, [0.094736842, 0.044444444, -0.075, -0.323076923], atol=1e-9)


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
