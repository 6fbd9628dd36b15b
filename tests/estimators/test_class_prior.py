import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, norm

from cgnlearn import CGNClassifier
from cgnlearn.estimators.class_prior import HeldOutRatios, _excess, estimated


def place(rng, n, prior):
    y = rng.choice(len(prior), size=n, p=prior)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def true_ratio(X, n_classes):
    """ln p(x | class) of the simulation."""
    return np.column_stack([norm.logpdf(X - 1.5 * label).sum(axis=1) for label in range(n_classes)])


def test_two_classes_are_those_of_a_direct_search(rng):
    X, _ = place(rng, 150, [0.8, 0.2])
    ratio = true_ratio(X, 2)
    found = estimated(ratio, np.array([0, 1]), 0.95)

    def height(share):
        mixed = np.log((1 - share) * np.exp(ratio[:, 0]) + share * np.exp(ratio[:, 1])).sum()
        return mixed + np.log(share) + np.log(1 - share)

    best = minimize_scalar(lambda share: -height(share), bounds=(0.001, 0.999), method="bounded")
    assert found.value[1] == pytest.approx(best.x, abs=1e-4)
    inside = [share for share in np.linspace(0.001, 0.999, 999) if height(share) > -best.fun - chi2.ppf(0.95, 1) / 2]
    assert found.low[1] == pytest.approx(min(inside), abs=0.002)
    assert found.high[1] == pytest.approx(max(inside), abs=0.002)
    assert found.low[0] == pytest.approx(1 - found.high[1])


@pytest.mark.parametrize("prevalence", [0.05, 0.5, 0.9])
def test_intervals_cover_the_truth(rng, prevalence):
    n_covered = 0
    for _ in range(60):
        X, _ = place(rng, 200, [1 - prevalence, prevalence])
        found = estimated(true_ratio(X, 2), np.array([0, 1]), 0.9)
        n_covered += found.low[1] <= prevalence <= found.high[1]
    assert 46 <= n_covered <= 60  # 54 expected, standard deviation 2.3


def test_intervals_know_that_the_model_was_learned_from_few_samples(rng):
    """Without the held-out training samples, a model of 50 samples is taken for the truth."""
    n_covered, n_without, n_times = 0, 0, 150
    for _ in range(n_times):
        model = CGNClassifier().fit(*place(rng, 50, [0.5, 0.5]))
        X, _ = place(rng, 300, [0.2, 0.8])
        log_ratio = model.predict_log_proba(X) - model.class_log_prior_
        with_own = estimated(log_ratio, model.classes_, 0.9, model._held_out)
        without = estimated(log_ratio, model.classes_, 0.9)
        np.testing.assert_array_equal(with_own.value, without.value)
        n_covered += with_own.low[1] <= 0.8 <= with_own.high[1]
        n_without += without.low[1] <= 0.8 <= without.high[1]
    assert n_covered / n_times > 0.85
    assert n_without < n_covered - 10


def test_the_variance_from_the_model_is_that_of_the_delta_method(rng):
    """Two classes: the score is one number, and its slope that of the log likelihood in the frequency."""
    ratio, own = rng.exponential(size=(80, 2)), rng.exponential(size=(40, 2))
    labels, value = np.arange(40) % 2, np.array([0.3, 0.7])

    def score(of):
        return (of[:, 1] - of[:, 0]) / (of @ value)

    by_class = [np.var(score(own)[labels == label], ddof=1) / 20 for label in (0, 1)]
    from_model = 80**2 * (0.3**2 * by_class[0] + 0.7**2 * by_class[1])
    excess = _excess(ratio, HeldOutRatios(np.log(own), labels), value)
    np.testing.assert_allclose(excess, from_model / np.square(score(ratio)).sum(), rtol=1e-10)


def test_three_classes_and_another_prevalence(rng):
    model = CGNClassifier().fit(*place(rng, 900, [0.4, 0.3, 0.3]))
    X, y = place(rng, 400, [0.1, 0.2, 0.7])
    found = model.estimate_class_prior(X)
    np.testing.assert_allclose(found.value.sum(), 1)
    np.testing.assert_allclose(found.value, np.bincount(y) / 400, atol=0.08)
    assert (found.low < found.value).all()
    assert (found.value < found.high).all()
    assert str(found).startswith("0 0.")
    corrected = model.with_class_prior(found.value)
    assert corrected.score(X, y) >= model.score(X, y)


def test_a_rare_class_far_out_may_become_frequent(rng):
    def place(n, share):
        y = rng.random(n) < share
        return np.where(y, rng.normal(size=n) * 6 + 4, rng.normal(size=n))[:, None], y.astype(int)

    model = CGNClassifier().fit(*place(1500, 0.03))
    X, _ = place(300, 0.6)
    assert (model.typicality(X) < 0.01).mean() > 0.05  # the rare class, of which hardly a training sample is typical
    expected = model._ranking.expected_share(0.01, np.array([0.4, 0.6]))
    assert expected == pytest.approx((model.typicality(X) < 0.01).mean(), abs=0.08)
    assert model._ranking.expected_share(0.01, np.array([0.97, 0.03])) == pytest.approx(0.01, abs=0.004)
    assert model.estimate_class_prior(X).value[1] == pytest.approx(0.6, abs=0.12)
    with pytest.raises(ValueError, match="more than the class frequencies has changed"):
        model.estimate_class_prior(X + 40)


def test_other_changes_few_samples_and_bad_levels_are_refused(rng):
    model = CGNClassifier().fit(*place(rng, 200, [0.5, 0.5]))
    X, _ = place(rng, 100, [0.9, 0.1])
    with pytest.raises(ValueError, match="more than the class frequencies has changed"):
        model.estimate_class_prior(X + 6)
    with pytest.raises(ValueError, match="at least 20 samples, not 5"):
        model.estimate_class_prior(X[:5])
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.estimate_class_prior(X, level=1.0)
