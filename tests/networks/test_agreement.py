import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student_t

from cgnlearn import CGNClassifier, CGNClassifierCV, Prior


def log_evidence(x, m0, k0, shape, scale):
    """ln p(x) by the chain rule: a product of Student predictives."""
    total = 0.0
    for value in x:
        total += student_t.logpdf(value, 2 * shape, m0, np.sqrt(scale / (2 * shape) * (1 + 1 / k0)))
        scale += k0 / (k0 + 1) * (value - m0) ** 2
        m0, k0, shape = (k0 * m0 + value) / (k0 + 1), k0 + 1, shape + 0.5
    return total


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(8)
    y = np.repeat(["ill", "well"], [11, 14])
    return rng.normal(size=(25, 2)) + 3 + (y == "ill")[:, None], y


def test_bayes_factors_equal_products_of_predictives(samples):
    X, y = samples
    prior = Prior.from_ranges({"well": {0: (1.0, 5.0, 30)}, "ill": {1: (5.0, 8.0, 12)}})
    found = {(each.label, each.feature): each for each in CGNClassifier("tan", prior=prior).fit(X, y).prior_agreement_}
    assert set(found) == {("well", 0), ("ill", 1)}
    for (label, feature), (low, high, worth) in {("well", 0): (1, 5, 30), ("ill", 1): (5, 8, 12)}.items():
        x, sd = X[y == label, feature], (high - low) / 2 / norm.ppf(0.975)
        shape = 1.1 + worth / 2
        known = log_evidence(x, (low + high) / 2, worth, shape, 2 * shape * sd**2)
        default = log_evidence(x, X[:, feature].mean(), 1.0, 1.1, X[:, feature].var())
        each = found[label, feature]
        assert each.log_bayes_factor == pytest.approx(known - default, rel=1e-9)
        assert each.mean == pytest.approx((worth * (low + high) / 2 + x.sum()) / (worth + len(x)))
        assert (each.worth, each.n, each.expected) == (worth, len(x), (low + high) / 2)
        assert each.expected_deviation == pytest.approx(sd)
        assert each.moved == pytest.approx((each.mean - each.expected) / sd)


def test_conflicts_come_first_and_are_named(samples):
    X, y = samples
    right, wrong = (X[y == "well", 0].mean() + np.array([-1.96, 1.96]), (9.0, 11.0))
    prior = Prior.from_ranges({"well": {0: tuple(right)}, "ill": {0: wrong}})
    model = CGNClassifierCV(candidates=["naive_bayes"], prior=prior).fit(X, y)
    first, last = model.prior_agreement_
    assert (first.label, first.words, first.is_conflict) == ("ill", "conflict strongly", True)
    assert (last.label, last.words, last.is_conflict) == ("well", "agree", False)
    assert "prior and data conflict strongly" in str(first)


def test_without_knowledge_there_is_nothing_to_compare(samples):
    X, y = samples
    for prior in (None, Prior(), Prior(location="cell"), Prior(strength=4.0)):
        assert CGNClassifier(prior=prior).fit(X, y).prior_agreement_ == []


def test_a_constant_feature_has_no_evidence(samples):
    X, y = samples
    X = np.column_stack([X, np.ones(len(y))])
    prior = Prior.from_ranges({"ill": {2: (0.0, 2.0), 0: (0.0, 8.0)}})
    assert [each.feature for each in CGNClassifier(prior=prior).fit(X, y).prior_agreement_] == [0]
