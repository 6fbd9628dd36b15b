"""Figures for those who decide, against values counted by hand, SciPy, scikit-learn and pairs one by one."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm, t
from sklearn.metrics import confusion_matrix, roc_auc_score

from cgnlearn.evaluation import decisions as d
from cgnlearn.evaluation.estimates import share


def noisy(rng, n=150):
    happened = rng.random(n) < 0.3
    probability = (1 / (1 + np.exp(-(rng.normal(size=n) + 1.2 * happened - 0.5)))).round(2)  # with ties
    return probability, happened


def test_shares_have_wilson_intervals():
    for right, n in ((0, 7), (3, 10), (40, 41), (9, 9)):
        found = share(right, n)
        low, high = binomtest(right, n).proportion_ci(method="wilson")
        assert found == pytest.approx((right / n, low, high))


def test_auc_and_delong_interval_by_all_pairs(rng):
    probability, happened = noisy(rng)
    wins = np.array([[(x > y) + 0.5 * (x == y) for y in probability[~happened]] for x in probability[happened]])
    m, n = wins.shape
    variance = wins.mean(axis=1).var(ddof=1) / m + wins.mean(axis=0).var(ddof=1) / n
    value = roc_auc_score(happened, probability)
    half = norm.ppf(0.975) * np.sqrt(variance) / (value * (1 - value))
    odds = np.exp(np.log(value / (1 - value)) + np.array([-half, half]))
    assert d.auc([(probability, happened)]) == pytest.approx((value, *(odds / (1 + odds))))


@pytest.mark.parametrize(("n_folds", "widening"), [(10, 1.5), (2, 2.0)])
def test_cross_validated_auc_is_widened(n_folds, widening, rng):
    """Folds share training samples, which DeLong's interval does not know."""
    probability, happened = noisy(rng, 40)
    plain, cross_validated = (d.auc([(probability, happened)], g) for g in (None, d.Grouping(None, n_folds)))
    assert cross_validated.value == plain.value
    widths = [np.diff(np.log([f.low / (1 - f.low), f.high / (1 - f.high)])) for f in (plain, cross_validated)]
    assert widths[1] / widths[0] == pytest.approx(np.sqrt(widening) * t.ppf(0.975, 38) / norm.ppf(0.975))
    sure = [d.auc([(happened.astype(float), happened)], g).low for g in (None, d.Grouping(None, n_folds))]
    assert sure[1] < sure[0] < 1


def test_proportions_and_costs_of_a_cross_validation_are_widened_too(rng):
    part = noisy(rng, 60)
    plain, cross_validated = (d.decisions([part], 0.05, g) for g in (None, d.Grouping(None, 10)))
    for name in ("sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value"):
        own, other = getattr(plain, name), getattr(cross_validated, name)
        assert own.value == pytest.approx(other.value)
        assert 1.05 < (other.high - other.low) / (own.high - own.low) < 1.35, name
    costs = d.Costs(("treat", "wait"), np.array([[1.0, 0.0], [0.0, 5.0]]))
    predictions = [(np.log(np.column_stack([1 - part[0], part[0]])), part[1].astype(int))]
    own, other = (costs.mean(predictions, g) for g in (None, d.Grouping(None, 10)))
    widening = np.sqrt(1.25) * t.ppf(0.975, 59) / norm.ppf(0.975)
    assert (other.high - other.value) / (own.high - own.value) == pytest.approx(widening)


def test_an_auc_without_a_wrong_pair_still_has_a_width():
    happened = np.arange(50) < 20
    found = d.auc([(happened.astype(float), happened)])
    theta = found.low  # where the distance of 1 is as great as 1.96 standard errors by Hanley and McNeil's formula
    variance = theta * (1 - theta) * (1 + 24 * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (20 * 30)
    assert (found.value, found.high) == (1, 1)
    assert (1 - theta) / np.sqrt(variance) == pytest.approx(norm.ppf(0.975))
    mirrored = d.auc([(1 - happened.astype(float), happened)])
    assert (mirrored.value, mirrored.low, mirrored.high) == pytest.approx((0, 0, 1 - theta))


def test_counts_and_predictive_values_of_the_data(rng):
    probability, happened = noisy(rng)
    (tn, fp), (fn, tp) = confusion_matrix(happened, probability >= 0.5)
    found = d.decisions([(probability, happened)])
    assert (found.n_positive, found.n_negative) == (tp + fn, tn + fp)
    assert found.sensitivity == share(tp, tp + fn)
    assert found.specificity == share(tn, tn + fp)
    assert found.positive_predictive_value == share(tp, tp + fp)
    assert found.negative_predictive_value == share(tn, tn + fn)
    assert found.prevalence == happened.mean()


def test_predictive_values_at_another_prevalence():
    # 90 of 100 found, 80 of 100 left alone; of 10,000 with a prevalence of 1 %: 90 of 100, and 1,980 of 9,900 called.
    found = d.predictive_value(90, 100, 80, 100, 0.01)
    assert found.value == pytest.approx(90 / (90 + 1980))
    rng = np.random.default_rng(0)
    sensitivity, specificity = rng.binomial(100, 0.9, 20000) / 100, rng.binomial(100, 0.8, 20000) / 100
    drawn = sensitivity * 0.01 / (sensitivity * 0.01 + (1 - specificity) * 0.99)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx((low, high), rel=0.1)
    assert d.predictive_value(0, 100, 100, 100, 0.01) is None
    sure = d.predictive_value(90, 100, 100, 100, 0.01)
    assert sure.value == sure.high == 1
    assert 0 < sure.low < 0.5  # a hundred without a false alarm say little of one in ten thousand


def test_intervals_cover_as_often_as_they_say():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        found = d.predictive_value(rng.binomial(40, 0.8), 40, rng.binomial(60, 0.9), 60, 0.05)
        covered += found is not None and found.low <= 0.8 * 0.05 / (0.8 * 0.05 + 0.1 * 0.95) <= found.high
    assert 0.92 <= covered / 400 <= 0.99


def test_repetitions_make_means_but_no_more_rows(rng):
    probability, happened = noisy(rng)
    once, twice = d.decisions([(probability, happened)]), d.decisions([(probability, happened)] * 2)
    assert once == twice
    only = (probability[happened], happened[happened])
    assert d.decisions([(probability, happened), only]) == once  # what an interruption left has no others
    with pytest.raises(ValueError, match="finish the evaluation"):
        d.decisions([only])


def test_net_benefit_by_hand(rng):
    probability, happened = noisy(rng)
    curve = d.decision_curve([(probability, happened)])
    n = len(happened)
    for threshold, benefit, of_all in zip(*curve, strict=True):
        called = probability >= threshold
        odds = threshold / (1 - threshold)
        assert benefit == pytest.approx(((called & happened).sum() - odds * (called & ~happened).sum()) / n)
        assert of_all == pytest.approx((happened.sum() - odds * (~happened).sum()) / n)
    rare = d.decision_curve([(probability, happened)], prevalence=0.01, thresholds=np.array([0.2]))
    called = probability >= 0.2
    expected = 0.01 * called[happened].mean() - 0.99 * 0.25 * called[~happened].mean()
    assert rare.net_benefit[0] == pytest.approx(expected)


def test_least_expected_cost_by_hand():
    # classes: ill, healthy; decisions: treat, test, wait
    costs = d.Costs(("treat", "test", "wait"), np.array([[0.0, 3.0, 20.0], [10.0, 2.0, 0.0]]))
    log_proba = np.log([[0.9, 0.1], [0.5, 0.5], [0.01, 0.99]])
    best, expected = costs.least(log_proba)
    assert best.tolist() == [0, 1, 2]
    assert expected == pytest.approx([1.0, 2.5, 0.2])
    found = costs.mean([(log_proba, np.array([0, 1, 0]))])
    assert found.value == pytest.approx((0 + 2 + 20) / 3)
    half = norm.ppf(0.975) * np.std([0, 2, 20], ddof=1) / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.0, found.value + half))  # no cost is negative


def test_groups_make_intervals_as_wide_as_their_number_asks_for(rng):
    """Each sample five times, as a group: intervals are those of the samples, and not of five times as many."""
    probability, happened = noisy(rng, 80)
    part = np.repeat(probability, 5), np.repeat(happened, 5)
    groups = d.Grouping(np.repeat(np.arange(80), 5), 10)
    once, five = d.decisions([(probability, happened)]), d.decisions([part], grouping=groups)
    for name in ("auc", "sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value"):
        own, other = getattr(once, name), getattr(five, name)
        assert own.value == pytest.approx(other.value)
        ratio = (other.high - other.low) / (own.high - own.low)
        assert 1 <= ratio < 1.3, name  # folds share training samples, and t instead of z
    rare = [d.decisions([p], 0.05, g) for p, g in (((probability, happened), None), (part, groups))]
    first, second = (found.positive_predictive_value for found in rare)
    assert second.low < first.low < first.value == pytest.approx(second.value)
    two = d.decisions([part], 0.05, d.Grouping(np.repeat([0, 1], 200), 2))
    assert {two.auc.low, two.sensitivity.low, two.positive_predictive_value.low} == {None}


def test_small_examples():
    found = d.decisions([(np.array([0.9, 0.8, 0.4, 0.1]), np.array([True, True, False, False]))])
    assert (found.sensitivity.value, found.sensitivity.low) == pytest.approx((1.0, 0.34), abs=0.005)
    part = np.array([0.9, 0.3]), np.array([True, False])
    curve = d.decision_curve([part], thresholds=np.array([0.2, 0.5]))
    assert curve.net_benefit.tolist() == pytest.approx([0.375, 0.5])
    assert curve.act_on_all.tolist() == pytest.approx([0.375, 0.0])
    costs = d.Costs(("treat", "wait"), np.array([[0.0, 10.0], [1.0, 0.0]]))
    decision, expected = costs.least(np.log([[0.2, 0.8]]))
    assert (decision.tolist(), expected.tolist()) == ([0], pytest.approx([0.8]))
