from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit, log_softmax
from scipy.stats import chi2, t

from cgnlearn.evaluation.calibration import (
    Calibration,
    MulticlassCalibration,
    calibration,
    cross_validated,
    log_odds_of,
    multiclass_calibration,
    slope_of,
)
from cgnlearn.evaluation.decisions import Grouping
from cgnlearn.evaluation.estimates import Estimate


@pytest.fixture
def sample(rng):
    x = rng.normal(-0.5, 1.5, size=120)
    return x, rng.random(120) < expit(x)


def log_likelihood(x, y):
    return log_expit(np.where(y, x, -x)).sum()


def test_ends_of_the_intervals_have_the_likelihood_of_a_test(sample):
    x, y = sample
    found = calibration(x, y)

    def profile(b):
        return -minimize_scalar(lambda a: -log_likelihood(a + b * x, y)).fun

    of_slope = t.isf(0.025, 2 * min(y.sum(), (~y).sum()) - 2) ** 2 / 2
    for end in found.slope[1:]:
        assert profile(found.slope.value) - profile(end) == pytest.approx(of_slope, rel=1e-4)
    drop = chi2.isf(0.05, 1) / 2
    for end in found.intercept[1:]:
        best = log_likelihood(x + found.intercept.value, y)
        assert best - log_likelihood(x + end, y) == pytest.approx(drop, rel=1e-4)
    assert found.observed_expected.value == pytest.approx(y.sum() / expit(x).sum())
    low, high = found.observed_expected[1:]
    assert low < found.observed_expected.value < high
    assert (low > 1) == (found.intercept.low > 0)


def test_many_samples_have_walds_interval(rng, monkeypatch):
    x = rng.normal(size=9000)
    y = rng.random(9000) < expit(x)
    wald = calibration(x, y)
    monkeypatch.setattr("cgnlearn.evaluation.calibration.MANY", 10**9)
    profile = calibration(x, y)
    np.testing.assert_allclose(wald.slope, profile.slope, atol=2e-3)
    np.testing.assert_allclose(wald.intercept, profile.intercept, atol=2e-3)


def test_a_slope_that_hardly_anything_is_known_about_has_an_interval():
    # The rarer outcome is always among the higher of two values, which differ by very little: slopes of thousands are
    # possible, whose intercepts are as far away.
    x = np.repeat([-7.1112, -7.1111, -6.9, -2.3138, -2.3119], [12, 12, 21, 11, 11])
    happened = np.zeros(len(x), bool)
    happened[[46, 57]] = True
    found = calibration(x, happened, n_folds=2).slope

    def height(slope):  # on a grid of thresholds
        intercepts = np.concatenate([np.linspace(-60, 60, 4001) - slope * value for value in np.unique(x)])
        return np.where(happened[:, None], 1, -1) * (slope * x[:, None] + intercepts)

    best = log_expit(height(found.value)).sum(axis=0).max()
    rise = 2 * t.isf(0.025, 2) ** 2 / 2
    assert best - log_expit(height(found.low)).sum(axis=0).max() == pytest.approx(rise, abs=1e-3)
    assert found.high == np.inf  # from 10,000 on


def test_separated_and_single_outcomes_have_intervals_with_one_end():
    x = np.linspace(-2, 2, 20)
    found = calibration(x, x > 0.5)
    assert found.slope.value == np.inf
    assert 0 < found.slope.low < 20
    assert found.slope.high == np.inf
    nothing = calibration(x, np.zeros(20, bool))
    assert nothing.slope is None
    assert nothing.intercept.value == -np.inf
    assert nothing.intercept.low == -np.inf
    assert np.isfinite(nothing.intercept.high)
    assert nothing.observed_expected[:2] == (0, 0)
    assert nothing.observed_expected.high > 0
    assert calibration(x, np.ones(20, bool)).intercept.value == np.inf
    constant = calibration(np.zeros(30), np.arange(30) % 2 == 0)
    assert constant.slope is None
    assert constant.p_value > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: 3 * x, "too extreme, slope 0."),
        (lambda x: 0.3 * x, "too moderate, slope "),
        (lambda x: x + 1.5, "too high, observed/expected 0."),
        (lambda x: x - 1.5, "too low, observed/expected "),
    ],
)
def test_words_say_what_is_wrong(rng, change, words):
    x = rng.normal(size=500)
    found = calibration(change(x), rng.random(500) < expit(x))
    assert found.is_flagged
    assert words in found.words


def test_words_without_a_fault(rng):
    x = rng.normal(size=300)
    assert "no sign of miscalibration: slope" in calibration(x, rng.random(300) < expit(x)).words
    happened = rng.random(60) < expit(x[:60])
    n = min(happened.sum(), 60 - happened.sum())
    words = f"not assessed with certainty ({n} events): slope"
    assert words in calibration(x[:60], happened).words
    few = calibration(x[:12], np.arange(12) % 2 == 0)
    assert few.is_small
    assert "too few samples to tell: 6 of the rarer outcome" in few.words
    assert few.as_dict()["flagged"] is False
    constant = calibration(np.zeros(60), np.arange(60) % 2 == 0)  # as the class frequencies are
    assert constant.slope is None
    assert constant.words == "no slope: all samples have the same probabilities"


def test_words_do_not_contradict_the_intervals_they_show():
    """The slope alone may be wrong where slope and intercept together are not rejected."""
    slope, ratio = Estimate(2.08, 1.13, 3.34), Estimate(0.9, 0.6, 1.3)
    found = Calibration(62, 22, ratio, Estimate(0.1, -0.5, 0.7), slope, 0.071)
    assert found.is_open
    test = "the joint test of intercept and slope does not reject (p = 0.07)"
    told = f"undecided: slope 2.08 (1.13–3.34) excludes 1, but {test}"
    assert found.words == told
    assert MulticlassCalibration(slope, 0.071, {"a": found}).words == told
    assert MulticlassCalibration(slope, 0.071, {}).words == told  # of a verdict
    assert not replace(found, p_value=0.03).is_open
    assert "too moderate, slope 2.08" in replace(found, p_value=0.03).words
    assert not replace(found, slope=Estimate(1.2, 0.9, 1.6)).is_open


def test_several_classes(rng):
    log_proba = log_softmax(rng.normal(size=(400, 3)), axis=1)
    true = np.array([rng.choice(3, p=np.exp(row)) for row in log_proba])
    found = multiclass_calibration(3 * log_proba - np.log(np.exp(3 * log_proba).sum(axis=1))[:, None], true, "abc")
    assert found.is_flagged
    assert found.slope.low < 1 / 3 < found.slope.high
    assert "too extreme" in found.words
    assert list(found.by_class) == ["a", "b", "c"]
    assert found.by_class["b"].n_events == (true == 1).sum()
    assert "no sign" in multiclass_calibration(log_proba, true, "abc").words
    # For two classes the common slope is that of the log odds.
    x = rng.normal(size=80)
    y = rng.random(80) < 0.5
    two = np.column_stack([log_expit(-x), log_expit(x)])
    np.testing.assert_allclose(slope_of(two, y.astype(int)), calibration(x, y).slope, atol=1e-5)
    np.testing.assert_allclose(log_odds_of(two, 1), x)


def test_groups_widen_intervals(sample):
    x, y = sample
    alone = calibration(x, y, np.arange(120))
    np.testing.assert_allclose(alone.slope.value, calibration(x, y).slope.value)
    twice = calibration(np.tile(x, 4), np.tile(y, 4), np.tile(np.arange(120), 4))
    single = calibration(x, y)
    width = single.slope.high - single.slope.low
    assert 0.8 * width < twice.slope.high - twice.slope.low < 1.3 * width
    naive = calibration(np.tile(x, 4), np.tile(y, 4))
    assert naive.slope.high - naive.slope.low < 0.6 * width
    assert twice.p_value > 0.8 * single.p_value
    few = calibration(x, y, np.arange(120) % 2)
    assert few.slope.low is None
    assert few.p_value is None


def test_repetitions_are_averaged(sample):
    x, y = sample
    log_proba = np.column_stack([log_expit(-x), log_expit(x)])
    alone = Grouping(None, 1)
    once = cross_validated([(log_proba, y.astype(int))], 1, alone)
    both = cross_validated([(log_proba, y.astype(int)), (log_proba[::-1], y.astype(int)[::-1])], 1, alone)
    np.testing.assert_allclose(once.slope, both.slope)
    assert once.n == both.n == 120
    folds = cross_validated([(log_proba, y.astype(int))], 1, Grouping(None, 5))
    assert folds.slope.value == once.slope.value
    assert 1.05 < (folds.slope.high - folds.slope.low) / (once.slope.high - once.slope.low) < 1.2  # about √1.25
