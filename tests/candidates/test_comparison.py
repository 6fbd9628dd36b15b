"""The mixture that tunes itself: its parts against brute force, and what it promises."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import TAN, CGNClassifier, CGNClassifierCV, NaiveBayes, Prior, load, save
from cgnlearn.candidates import registry
from cgnlearn.candidates.candidate import HeldOut, Profile, Samples
from cgnlearn.candidates.comparison import Comparison, Scores
from cgnlearn.candidates.mixture import raised
from cgnlearn.candidates.power import likelihood_power, mixture_power
from cgnlearn.candidates.weights import (
    N_BOOTSTRAPS,
    SPREAD,
    TRUSTED,
    Evidence,
    not_worse_than,
    stacking,
    worth_keeping,
)
from cgnlearn.data.splits import stratified
from cgnlearn.data.table import read_training
from cgnlearn.data.transforms import Bins, Power
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators import mixture_classifier
from cgnlearn.estimators.mixture_classifier import expected_seconds
from cgnlearn.networks.model import NotExactError

FEW = ["naive_bayes", "complete", "logistic"]
LUCKLESS = ValueError("no such luck")


def two_classes(n=60, p=3, seed=0, shift=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p)) + shift * y[:, None]
    X[:, 0] = np.exp(X[:, 0])
    return X, y


def mixed(n=80, seed=1):
    import pandas as pd

    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "length": rng.normal(size=n) + y,
            "weight": rng.lognormal(size=n),
            "colour": pd.Categorical(np.array(["red", "green", "blue"])[(y + (rng.random(n) < 0.3)) % 3]),
            "size": pd.Categorical(rng.integers(0, 2, n).astype(str)),
        }
    ), np.array(["a", "b", "c"])[y]


def table_of(X, y=None):
    return read_training(X, np.arange(len(X)) % 2 if y is None else y)[0]


# ---- transforms


def test_powers_are_scikit_learns():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=300), rng.normal(size=300) ** 3, -rng.gamma(2.0, size=300) + 1])
    low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0, method="averaged_inverted_cdf")
    standard = (X - middle) / (high - low)
    expected = PowerTransformer(standardize=False).fit(standard)
    found = Power.of(table_of(X))
    np.testing.assert_allclose(found.powers, expected.lambdas_, atol=1e-3)
    given = Power(middle, high - low, expected.lambdas_)
    np.testing.assert_allclose(given(table_of(X)).values, expected.transform(standard), atol=1e-9)
    np.testing.assert_allclose(given.inverse(given(table_of(X))).values, X, atol=1e-9)


def test_the_jacobian_is_the_derivative():
    X = np.linspace(-3, 4, 50)[:, None] + [[0.0, 0.1]]
    power, step = Power(np.array([0.5, -0.2]), np.array([1.0, 2.5]), np.array([0.3, 1.9])), 1e-6
    derivative = (power(table_of(X + step)).values - power(table_of(X - step)).values) / (2 * step)
    np.testing.assert_allclose(power.log_jacobian(table_of(X)), np.log(derivative), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e100])
def test_powers_of_hostile_columns_are_finite(scale):
    rng = np.random.default_rng(0)
    X = scale * np.column_stack([np.ones(50), 1e6 + rng.normal(size=50), rng.standard_cauchy(50), np.arange(50) == 7])
    assert np.isfinite(Power.of(table_of(X))(table_of(X)).values).all()


def test_samples_of_all_classes_stand_for_a_large_table():
    y = np.arange(4000) % 2
    X = np.where(y == 0, 0.1, 10.0)[:, None] * np.random.default_rng(0).normal(size=(4000, 1)) + 6 * y[:, None]
    (edges,) = Bins.of(table_of(X, y), 5).edges
    np.testing.assert_allclose(np.quantile(X, [0.2, 0.4, 0.6, 0.8]), edges, atol=0.6)


def test_power_transforms_do_not_depend_on_origin_and_unit():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(size=99), np.where(rng.random(99) < 0.8, 0, rng.random(99)), np.ones(99)])
    X[3, 0] = np.nan
    weights = rng.integers(1, 4, 99)
    repeated = read_training(np.repeat(X, weights, axis=0), np.repeat(np.arange(99) % 2, weights))[0]
    expected = Power.of(repeated)
    weighted = Power.of(read_training(X, np.arange(99) % 2, weights.astype(float))[0])
    for name in ("origin", "unit", "powers"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(expected, name), rtol=1e-9)
    for shift, scale in ((0.0, 1e-6), (1e6, 1.0), (-1e3, 1e6)):
        moved = table_of(shift + scale * X)
        np.testing.assert_allclose(
            Power.of(moved)(moved).values, Power.of(table_of(X))(table_of(X)).values, rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-6), (0.0, 1e6), (273.15, 1.0), (1e6, 1e3), (-1.0, 1e-3)])
def test_the_mixture_does_not_depend_on_units(shift, scale):
    X, y = load_wine(return_X_y=True)
    X, y, T = X[::3, :6], y[::3], X[1::3, :6]
    settings = {"candidates": ["naive_bayes", "complete", "tan", "logistic"], "random_state": 0}
    expected = CGNClassifierCV(**settings).fit(X, y).predict_proba(T)
    scales, shifts = np.where(np.arange(6) % 2, scale, 1.0), np.where(np.arange(6) % 2, shift, 0.0)
    found = CGNClassifierCV(**settings).fit(shifts + scales * X, y).predict_proba(shifts + scales * T)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1e-6), (0.0, 1e6), (1e6, 1.0)])
def test_the_mixture_of_a_mixed_table_does_not_depend_on_units(shift, scale):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.integers(0, 3, 60), rng.lognormal(y), np.where(rng.random(60) < 0.7, 0, rng.random(60))])
    settings = {"candidates": ["naive_bayes", "tan", "logistic"], "categorical_features": [0]}
    moved = X.copy()
    moved[:, 1] = shift + scale * X[:, 1]
    expected = CGNClassifierCV(**settings).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(CGNClassifierCV(**settings).fit(moved, y).predict_proba(moved), expected, atol=1e-6)


def test_the_greatest_float_has_a_prediction():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 3)) + y[:, None]
    model = CGNClassifierCV().fit(X, y)
    most = np.finfo(float).max
    rows = np.array([[0.0, most, 0.0], [0.0, -most, 0.0], [most, most, -most]])
    assert np.isfinite(model.predict_proba(rows)).all()
    assert np.isfinite(model.score_samples(rows)).all()
    np.testing.assert_allclose(model.typicality(rows), 1 / 61)


def test_bins_have_equally_many_samples():
    X = np.column_stack([np.random.default_rng(0).permutation(100), np.repeat([0.0, 1.0], [90, 10]), np.ones(100)])
    binned = Bins.of(table_of(X), 5)(table_of(X))
    assert np.bincount(binned.codes[:, 0]).tolist() == [20] * 5
    assert np.unique(binned.codes[:, 1]).tolist() == [0, 1]
    assert [len(levels) for levels in binned.schema.levels] == [5, 2, 1]


@pytest.mark.parametrize("n", [60, 2001])
def test_folds_learn_their_transforms_unless_samples_are_many(n):
    table = table_of(np.random.default_rng(0).lognormal(size=(n, 2)))
    transforms = {"power": Power.of(table)}
    profile = Profile(table.schema, n, ("power",), Prior().resolved(table.schema))
    candidates = [each for each in registry.suited(profile, ["naive_bayes"]) if each.transform == "power"]
    comparison = Comparison(Samples(table, transforms), candidates, 1.0, cv=5, seed=0)
    for _, training, held_out in comparison.folds:
        own = training.transforms["power"]
        assert held_out.transforms["power"] is own
        if n > 2000:
            assert own is transforms["power"]
        else:
            np.testing.assert_array_equal(own.powers, Power.of(training.table).powers)
            assert (own.powers != transforms["power"].powers).any()


def test_bins_of_few_samples_are_those_of_many():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.normal(size=300), rng.integers(0, 3, 300), rng.lognormal(size=300)])
    X[::7, 1] = np.nan
    bins = Bins.of(table_of(X), 5)
    assert [len(edges) for edges in bins.edges] == [0, 4, 2, 4]
    of_many = bins(table_of(X)).codes
    for column, edges in enumerate(bins.edges):
        expected = np.searchsorted(edges, X[:, column], side="right")
        np.testing.assert_array_equal(of_many[:, column], np.where(np.isnan(X[:, column]), -1, expected))
    np.testing.assert_array_equal(bins(table_of(X[:9])).codes, of_many[:9])


# ---- likelihood powers and weights


@pytest.mark.parametrize("stretch", [0.3, 4.0, 30.0])
def test_the_likelihood_power_is_the_best_of_a_fine_grid(stretch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 80)
    scores = stretch * (np.eye(3)[y] + rng.normal(size=(80, 3)))
    prior, weights = np.log([0.2, 0.3, 0.5]), rng.uniform(0.5, 2, 80)

    def judged(tau):
        joint = tau * scores + prior
        log_proba = joint - logsumexp(joint, axis=1, keepdims=True)
        truth, doubt = (np.average(log_proba[np.arange(80), of], weights=weights) for of in (y, second))
        return truth + (0.25 * doubt - 0.4 * np.log(tau) ** 2) / weights.sum()

    second = np.array([max({0, 1, 2} - {own}, key=row.__getitem__) for own, row in zip(y, scores + prior, strict=True)])

    grid = np.geomspace(1e-4, 1, 4001)
    best = grid[np.argmax([judged(tau) for tau in grid])]
    assert likelihood_power(scores, prior, y, weights) == pytest.approx(best, rel=5e-3)


def test_without_errors_a_quarter_of_a_sample_counts_as_one():
    y, even = np.arange(10) % 2, np.log([0.5, 0.5])
    assert likelihood_power(2.0 * np.eye(2)[y], even, y, np.ones(10)) == 1.0  # not sure anyway
    for margin in (10.0, 30.0):
        doubt = 1 / (1 + np.exp(margin * likelihood_power(margin * np.eye(2)[y], even, y, np.ones(10))))
        assert 0.25 / 10.25 / 10 < doubt < 0.25 / 10.25


def test_one_class_has_no_second():
    assert likelihood_power(np.zeros((5, 1)), np.zeros(1), np.zeros(5, int), np.ones(5)) == 1.0


@pytest.mark.parametrize(
    ("steepness", "least", "most"), [(0.5, 1.0, 1.0), (1.0, 1.0, 1.1), (1.4, 1.1, 1.45), (9.0, 1.5, 1.5)]
)
def test_the_power_of_a_mixture_follows_how_unsure_it_is(steepness, least, most):
    rng = np.random.default_rng(0)
    n, prior = 2000, np.log([0.2, 0.3, 0.5])
    scores = rng.normal(size=(n, 3))
    truth = steepness * scores + prior
    y = (np.exp(truth - logsumexp(truth, axis=1, keepdims=True)).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    log_proba = scores + prior - logsumexp(scores + prior, axis=1, keepdims=True)
    found = mixture_power(log_proba, prior, y, np.ones(n))
    assert least - 1e-3 <= found <= most

    def judged(power):
        joint = power * (log_proba - prior) + prior
        raised = joint - logsumexp(joint, axis=1, keepdims=True)
        truth, doubt = (raised[np.arange(n), of].mean() for of in (y, second))
        return truth + (4 * doubt - 15 * np.log(power) ** 2) / n

    second = np.where(np.eye(3, dtype=bool)[y], -np.inf, log_proba).argmax(axis=1)
    grid = np.geomspace(1, 1.5, 2001)
    assert found == pytest.approx(grid[np.argmax([judged(power) for power in grid])], rel=1e-3)


def test_of_few_samples_a_mixture_is_hardly_raised():
    y = np.arange(20) % 2
    log_proba = np.log(np.where(np.eye(2, dtype=bool)[y], 0.8, 0.2))
    assert 1.0 <= mixture_power(log_proba, np.log([0.5, 0.5]), y, np.ones(20)) < 1.04


def test_a_power_leaves_another_prevalence_as_it_is():
    rng = np.random.default_rng(0)
    odds, prior, other = rng.normal(size=(9, 3)), np.log([0.2, 0.3, 0.5]), np.log([0.6, 0.3, 0.1])
    here, there = (
        raised(odds + each - logsumexp(odds + each, axis=1, keepdims=True), each, 1.3) for each in (prior, other)
    )
    moved = there - here - (other - prior)
    np.testing.assert_allclose(moved, moved[:, :1].repeat(3, axis=1), atol=1e-12)


def test_a_mixture_that_was_always_right_is_not_sure():
    rng = np.random.default_rng(0)
    y = np.arange(12) % 2
    X = rng.normal(size=(12, 400)) + 10.0 * y[:, None]
    proba = CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y).predict_proba(X)[np.arange(12), y]
    assert proba.min() > 0.9
    assert proba.max() < 1 - 0.25 / 12.25  # 0.994 without any doubt


def held_out_truth(n=40, k=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.log(rng.beta(2, 1, size=(n, k)) * [0.9, 0.8, 0.95, 0.1]), rng.uniform(0.5, 2.0, n)


def test_pseudo_bma_by_a_loop_over_bootstraps():
    truth, weights = held_out_truth()
    found = Evidence.of(weights, np.random.RandomState(3)).pseudo_bma(np.vstack([truth, truth[0]]))
    counts, truth = np.append(weights, 0.25), np.vstack([truth, truth[0]])
    drawn = np.random.RandomState(3).standard_gamma(counts, (N_BOOTSTRAPS, len(counts)))
    expected = np.mean([softmax(TRUSTED * counts.sum() * (row / row.sum()) @ truth) for row in drawn], axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_stacking_has_the_best_penalised_likelihood():
    truth, weights = held_out_truth()

    def loss(free):
        w = softmax(free)
        return -(weights @ np.log(np.exp(truth) @ w) + SPREAD / len(w) * np.log(w).sum())

    expected = softmax(minimize(loss, np.zeros(4), tol=1e-12).x)
    np.testing.assert_allclose(stacking(truth, weights), expected, atol=1e-4)


def test_only_what_has_next_to_no_weight_is_dropped():
    assert worth_keeping(np.array([0.004, 0.9, 0.005, 0.091]), 0.01).tolist() == [False, True, False, True]
    assert worth_keeping(np.full(300, 1 / 300), 0.01).sum() > 295


# ---- what candidates say of samples left out


def test_leave_one_out_scores_are_those_of_refits():
    X, y = two_classes(24)
    model = CGNClassifierCV(candidates=["naive_bayes", "complete"], transforms=["none"]).fit(X, y)
    held = Prior(location=X.mean(axis=0), scale=X.var(axis=0))
    results = model.cv_results_
    for kind in ("naive_bayes", "complete"):
        for sharing in (0.0, 0.3):
            (at,) = np.flatnonzero((results["param_candidate"] == kind) & (results["param_sharing"] == sharing))
            truth = []
            for i in range(len(y)):
                rest = np.arange(len(y)) != i
                settings = {"sharing": sharing, "prior": held, "likelihood_power": results["likelihood_power"][at]}
                refit = CGNClassifier(kind, **settings).fit(X[rest], y[rest])
                truth.append(refit.predict_log_proba(X[[i]])[0, y[i]])
            assert results["mean_test_log_loss"][at] == pytest.approx(-np.mean(truth), abs=1e-9)


def test_out_of_fold_scores_are_those_of_refits():
    X, y = two_classes(40)
    model = CGNClassifierCV(candidates=[TAN()], cv=2).fit(X, y)
    results = model.cv_results_
    (at,) = np.flatnonzero((results["param_candidate"] == "tan") & (results["param_transform"] == "none"))
    assert results["validation"][at] == "2 folds"
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    from sklearn.model_selection import StratifiedKFold

    truth = np.empty(len(y))
    for train, test in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, y):
        refit = CGNClassifier("tan", likelihood_power=results["likelihood_power"][at]).fit(X[train], y[train])
        truth[test] = refit.predict_log_proba(X[test])[np.arange(len(test)), y[test]]
    assert results["mean_test_log_loss"][at] == pytest.approx(-truth.mean(), abs=1e-9)


def test_one_column_has_a_logistic_regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = (rng.uniform(size=400) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(int)
    results = CGNClassifierCV(candidates=["naive_bayes", "logistic"], transforms=["none"]).fit(x, y).cv_results_
    linear = results["mean_test_log_loss"][results["param_terms"] == "linear"]
    assert len(linear) > 4
    said = cross_val_predict(LogisticRegression(), x, y, cv=LeaveOneOut(), method="predict_log_proba")
    assert linear.min() == pytest.approx(-said[np.arange(400), y].mean(), abs=2e-3)


def test_where_nothing_can_be_learned_there_is_a_reason():
    X, y = two_classes(30)
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(np.full_like(X, 5.0), y)
    results = model.cv_results_
    is_logistic = results["param_candidate"] == "logistic"
    assert is_logistic.any()
    assert all("nothing can be learned" in reason for reason in results["reason"][is_logistic])
    assert np.isfinite(model.score_samples(X)).all()


# ---- the mixture


def test_it_is_the_weighted_sum_of_its_members():
    X, y = two_classes(50)
    model = CGNClassifierCV(candidates=["naive_bayes"], transforms=["none"]).fit(X, y)
    results = model.cv_results_
    of_setting = dict(zip(results["param_sharing"], results["likelihood_power"], strict=True))
    expected = np.zeros((50, 2))
    for member in model.members_:
        log_odds = np.zeros((50, 2))
        assert sum(share for _, share in member.shares) == pytest.approx(1)
        for setting, share in member.shares if member.settings["candidate"] == "naive_bayes" else ():
            plain = CGNClassifier(sharing=setting["sharing"]).fit(X, y)
            power = share * of_setting[setting["sharing"]] * member.likelihood_power
            log_odds += power * (plain.predict_joint_log_proba(X) - plain.class_log_prior_)
        expected += member.weight * softmax(log_odds, axis=1)  # both classes are equally frequent
    expected = expected**model.mixture_power_
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    assert model.weights_.sum() == pytest.approx(1)
    assert (np.diff(model.weights_) <= 0).all()


def test_at_most_eight_members_each_with_its_settings_merged():
    X, y = load_iris(return_X_y=True)
    all_of_them = CGNClassifierCV(max_members=None).fit(X[::3], y[::3])
    few = CGNClassifierCV(max_members=3).fit(X[::3], y[::3])
    names = [tuple(member.settings.values()) for member in all_of_them.members_]
    assert len(set(names)) == len(names) > 8  # one for each candidate, transform and terms
    assert len(CGNClassifierCV().fit(X[::3], y[::3]).members_) == 8
    assert [tuple(member.settings.values()) for member in few.members_] == names[:3]
    np.testing.assert_allclose(few.weights_, all_of_them.weights_[:3] / all_of_them.weights_[:3].sum())
    for member in few.members_:
        assert sum(share for _, share in member.shares) == pytest.approx(1)
    with pytest.raises(ValueError, match="max_members must be None or a number of at least 1, not 0"):
        CGNClassifierCV(max_members=0).fit(X, y)


def test_contributions_of_one_merged_member_are_exact():
    X, y = two_classes(50)
    for candidates in (["naive_bayes"], ["complete"], ["tan"], ["logistic"]):
        model = CGNClassifierCV(candidates=candidates, combine="best").fit(X, y)
        assert len(model.members_[0].shares) > 1
        np.testing.assert_allclose(model.contributions_remainder(X), 0.0, atol=1e-9)


def test_the_best_is_the_least_confident_of_those_within_a_standard_error():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    table, _ = read_training(np.zeros((200, 1)) + rng.normal(size=(200, 1)), y)
    right = np.where(rng.random((200, 1)) < 0.9, 1.0, -1.0)
    log_odds = np.concatenate([2.2 * right, 2.0 * right, 0.1 * right], axis=1)  # best, nearly as good, much worse
    likelihoods = np.stack([np.where(y == label, odds.T, 0.0) for odds in [log_odds] for label in (0, 1)], axis=2)
    held_out = HeldOut(None, None, likelihoods, np.log(np.full((200, 2), 0.5)), [])
    scores = Scores.of([held_out], table, power=1.0)
    assert (scores.best(), scores.cautious_best(table)) == (0, 1)


def test_densities_are_densities():
    """The Jacobian of the power transform included: the mixture integrates to one."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.lognormal(sigma=0.7, size=(80, 1)) * (1 + y[:, None])
    model = CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y)
    assert {setting["transform"] for member in model.members_ for setting, _ in member.shares} == {"none", "power"}
    grid = np.linspace(-60, 200, 400_001)[:, None]
    assert np.exp(model.score_samples(grid)).sum() * (grid[1, 0] - grid[0, 0]) == pytest.approx(1, abs=2e-3)


def test_the_whole_life_on_mixed_columns(tmp_path):
    X, y = mixed()
    model = CGNClassifierCV().fit(X, y)
    log_proba = model.predict_log_proba(X)
    np.testing.assert_allclose(np.exp(log_proba).sum(axis=1), 1)
    assert model.score(X, y) > 0.6
    # what the contributions leave unsaid is what remains
    told = model.contributions(X).sum(axis=1) + model.class_log_prior_ + model.contributions_remainder(X)
    np.testing.assert_allclose(told - logsumexp(told, axis=1, keepdims=True), log_proba, atol=1e-8)
    joint = model.predict_joint_log_proba(X)
    np.testing.assert_allclose(logsumexp(joint, axis=1), model.score_samples(X))
    far = X.assign(length=1e3)
    assert (model.typicality(far) < 0.05).all()
    assert 0.3 < model.typicality(X).mean() < 0.7
    with pytest.raises(NotExactError, match="take folds"):
        model.leave_one_out_log_proba(X, y)
    results = model.cv_results_
    assert len({len(column) for column in results.values()}) == 1
    assert {"selective_naive_bayes", "tan", "complete", "logistic"} <= set(results["param_candidate"])
    path = tmp_path / "mixture.skops"
    save(model, path)
    again = load(path)
    np.testing.assert_array_equal(again.predict_log_proba(X), log_proba)
    np.testing.assert_array_equal(again.typicality(X), model.typicality(X))
    html = model._repr_html_()
    assert str(model.members_[0]) in html
    assert html.count("<div") == html.count("</div>")


def test_leave_one_out_log_proba_equals_oof_log_proba():
    X, y = two_classes(40)
    model = CGNClassifierCV(candidates=["naive_bayes", "complete", "aode"]).fit(X, y)
    np.testing.assert_allclose(model.leave_one_out_log_proba(X, y), model.oof_log_proba_, atol=1e-9)


def test_another_prevalence_needs_no_refit():
    X, y = two_classes(50)
    model = CGNClassifierCV(candidates=FEW).fit(X, y)
    other = model.with_class_prior([0.9, 0.1])
    given = CGNClassifierCV(candidates=FEW, class_prior=[0.9, 0.1]).fit(X, y)
    np.testing.assert_array_equal(other.predict_proba(X), given.predict_proba(X))
    np.testing.assert_array_equal(other.typicality(X), given.typicality(X))
    assert (other.predict_proba(X)[:, 0] > model.predict_proba(X)[:, 0]).all()


def test_the_best_one_alone():
    X, y = two_classes(50)
    model = CGNClassifierCV(candidates=FEW, combine="best").fit(X, y)
    assert model.weights_.tolist() == [1.0]
    assert model.best_ == model.members_[0]
    truth = model.oof_log_proba_[np.arange(50), y]
    assert model.best_.log_loss == pytest.approx(-truth.mean())
    assert np.isfinite(model.score_samples(X)).all()


LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


def end_games():
    """Every board on which a game of noughts and crosses can end, and whether the first player has won."""
    found = {}

    def play(board, player):
        won = [any(all(board[i] == one for i in line) for line in LINES) for one in (1, 2)]
        if any(won) or 0 not in board:
            found[board] = won[0]
            return
        for i in (i for i in range(9) if board[i] == 0):
            play((*board[:i], player, *board[i + 1 :]), 3 - player)

    play((0,) * 9, 1)
    return np.array(sorted(found)), np.array([found[board] for board in sorted(found)], int)


@pytest.mark.slow
def test_penalties_that_only_tempering_makes_alike_do_not_end_the_path():
    X, y = end_games()
    assert X.shape == (958, 9)
    some = np.random.default_rng(1).permutation(958)[:50]
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic"], categorical_features=list(range(9)))
    results = model.fit(X[some], y[some]).cv_results_
    assert results["param_penalty"][results["param_terms"] == "linear"].min() == pytest.approx(1e-3)


def test_the_same_numbers_whatever_n_jobs():
    X, y = mixed(60)
    found = [CGNClassifierCV(n_jobs=n_jobs).fit(X, y).predict_log_proba(X) for n_jobs in (None, 2)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("p", [3, 400])
def test_never_worse_than_knowing_nothing(p):
    """On noise, narrow and wide, it comes down to the class frequencies."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, p)), (np.arange(40) % 3 == 0).astype(int)
    new, truth = rng.normal(size=(400, p)), (np.arange(400) % 3 == 0).astype(int)
    model = CGNClassifierCV().fit(X, y)
    knowing_nothing = np.log([2 / 3, 1 / 3])[truth].mean()
    assert model.predict_log_proba(new)[np.arange(400), truth].mean() > knowing_nothing - 0.12
    results = model.cv_results_
    floor = -results["mean_test_log_loss"][results["param_candidate"] == "frequencies"]
    assert model.oof_log_proba_[np.arange(40), y].mean() >= floor - 1e-12


def test_groups_are_never_parted():
    """Every person has four equal samples and a class by chance: nothing can be known of another person."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.normal(size=(30, 3)), 4, axis=0), np.repeat(np.arange(30) % 2, 4)
    X += 1e-3 * rng.normal(size=X.shape)
    candidates = ["complete", "logistic", "aode"]
    model = CGNClassifierCV(candidates=candidates).fit(X, y, groups=np.repeat(np.arange(30), 4))
    assert {name for name in model.cv_results_["validation"] if name} == {"5 folds"}
    honest, fooled = model.oof_log_proba_, CGNClassifierCV(candidates=candidates).fit(X, y).oof_log_proba_
    at = np.arange(len(y)), y
    assert honest[at].mean() < -0.55 < fooled[at].mean()


def test_a_large_table_is_compared_in_some_of_its_rows(monkeypatch):
    X, y = two_classes(400)
    whole = CGNClassifierCV(candidates=["naive_bayes"], transforms=["none"]).fit(X, y)
    monkeypatch.setattr(mixture_classifier, "MOST_SAMPLES", 100)
    model = CGNClassifierCV(candidates=["naive_bayes"], transforms=["none"]).fit(X, y)
    assert len(model.tuning_indices_) == 100
    assert len(whole.tuning_indices_) == 400
    assert model.oof_log_proba_.shape == (100, 2)
    assert {fitted.statistics.classes.sum() for part in model._mixture.parts for fitted in part.fits} == {400}


def test_many_classes_are_compared_on_fewer_samples(monkeypatch):
    monkeypatch.setattr(mixture_classifier, "MOST_PREDICTIONS", 400)
    X, y = two_classes(400)
    assert len(CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y).tuning_indices_) == 200
    X, y = load_iris(return_X_y=True)
    assert len(CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y).tuning_indices_) <= 133


def test_a_candidate_that_needs_too_much_memory_is_skipped(monkeypatch):
    monkeypatch.setattr(registry, "MOST_MEGABYTES", 0.2)
    X, y = load_wine(return_X_y=True)
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(X, y)
    results = model.cv_results_
    large = np.char.find(results["reason"], "GB of memory: use fewer columns") >= 0
    assert set(results["param_candidate"][large]) == {"logistic"}
    assert model.score(X, y) > 0.9


SEARCHES = "bwgjan", "wcgjan"


@pytest.mark.filterwarnings("ignore:sample_weight counts samples")
@pytest.mark.parametrize(
    "candidate",
    [pytest.param(name, marks=pytest.mark.slow if name in SEARCHES else ()) for name in (*registry.CANDIDATES, None)],
)
def test_weights_of_noise_promise_nothing(candidate):
    rng = np.random.default_rng(0)
    n_classes = 3 if candidate == "ordinal" else 2
    X, y = rng.normal(size=(40, 3)), np.arange(40) % n_classes
    fresh, truth = rng.normal(size=(1000, 3)), np.arange(1000) % n_classes
    losses = []
    for weight in (1.0, 10.0, 1000.0):
        model = CGNClassifierCV(candidates=candidate and [candidate], ordered=candidate is not None)
        model.fit(X, y, sample_weight=np.full(40, weight))
        losses.append(-model.predict_log_proba(fresh)[np.arange(1000), truth].mean())
    np.testing.assert_allclose(losses, losses[0], atol=0.02)


def test_samples_of_weight_zero_change_nothing():
    X, y = two_classes(60)
    weights = np.r_[np.ones(50), np.zeros(10)]
    model = CGNClassifierCV(candidates=FEW).fit(X, y, sample_weight=weights)
    without = CGNClassifierCV(candidates=FEW).fit(X[:50], y[:50], sample_weight=weights[:50])
    np.testing.assert_array_equal(model.predict_proba(X), without.predict_proba(X))


def test_ordered_columns_have_bands():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.cumsum(rng.normal(size=(60, 30)), axis=1) + np.where(np.arange(30) > 15, 1.0, 0.0) * y[:, None]
    model = CGNClassifierCV(candidates=["band", "band_average"], ordered=True).fit(X, y)
    results = model.cv_results_
    assert (results["param_candidate"] == "band").sum() == 60
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.contributions(X).shape == (60, 30, 2)
    unordered = CGNClassifierCV(candidates=["band", "naive_bayes"]).fit(X, y)
    assert "band" not in set(unordered.cv_results_["param_candidate"][unordered.cv_results_["reason"] == ""])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"candidates": ["forest"]}, "candidates must be learners or among"),
        ({"transforms": ["log"]}, 'transforms must be "none" or "power"'),
        ({"combine": "vote"}, 'combine must be "mixture" or "best"'),
        ({"cv": 1}, "at least 2"),
        ({"class_prior": [0.5]}, "one probability for each"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        CGNClassifierCV(**settings).fit(*two_classes(20))


class Failing(NaiveBayes):
    """A learner whose error is chosen."""

    def __init__(self, error):
        self.error = error

    def families(self, schema):
        raise self.error


@pytest.mark.parametrize("settings", [{}, {"n_jobs": 2}, {"cv": 3}], ids=str)
def test_a_candidate_that_fails_is_skipped_with_the_reason(settings):
    X, y = two_classes(20)
    options = {"transforms": ["none"], **settings}
    model = CGNClassifierCV(candidates=["naive_bayes", Failing(LUCKLESS)], **options).fit(X, y)
    results = model.cv_results_
    assert results["reason"][results["param_candidate"] == "Failing"].tolist() == ["no such luck"]
    alone = CGNClassifierCV(candidates=["naive_bayes"], **options).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_a_fault_of_the_program_is_skipped_but_not_in_silence():
    X, y = two_classes(20)
    model = CGNClassifierCV(candidates=["naive_bayes", Failing(KeyError(3))], transforms=["none"])
    with pytest.warns(DataWarning, match="candidate Failing is skipped, because it failed with KeyError: 3"):
        model.fit(X, y)
    assert model.cv_results_["reason"].tolist()[-1] == "it failed with KeyError: 3"
    model.set_params(candidates=["naive_bayes", Failing(KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)


def test_without_any_candidate_the_reason_is_raised():
    with pytest.raises(ValueError, match="no candidate can be fitted; Failing: no such luck"):
        CGNClassifierCV(candidates=[Failing(LUCKLESS)]).fit(*two_classes(20))


def test_a_column_without_values_changes_nothing():
    X, y = mixed()
    options = {
        "candidates": ["naive_bayes", "tan", "tan_average", "fwgjan"],
        "transforms": ["none"],
    }
    model = CGNClassifierCV(**options).fit(X, y)
    empty = X.assign(number=np.nan, level=X["size"].where(np.zeros(80, bool)))
    found = CGNClassifierCV(**options).fit(empty, y)
    assert found.cv_results_["reason"].tolist() == model.cv_results_["reason"].tolist()
    np.testing.assert_allclose(found.predict_proba(empty), model.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(
        found.predict_proba(X.assign(number=7.0, level=X["size"])), model.predict_proba(X), atol=1e-9
    )
    assert expected_seconds(found, empty, y) < 2 * expected_seconds(model, X, y)


def test_a_column_without_values_does_not_keep_a_wide_table_from_being_rotated():
    X, y = two_classes(20, 310)
    X[:, 300] = np.nan
    model = CGNClassifierCV(candidates=["complete"], transforms=["none"]).fit(X, y)
    assert not any(model.cv_results_["reason"])
    without = CGNClassifierCV(candidates=["complete"], transforms=["none"]).fit(np.delete(X, 300, axis=1), y)
    np.testing.assert_allclose(model.predict_proba(X), without.predict_proba(np.delete(X, 300, axis=1)), atol=1e-9)


def test_hostile_tables_are_fitted():
    X, y = load_iris(return_X_y=True)
    tiny = np.r_[0, 1, 50, 51, 100]  # of the last class one sample
    assert CGNClassifierCV().fit(X[tiny], y[tiny]).predict_proba(X).shape == (150, 3)
    constant = np.column_stack([X[::5], np.ones(30), X[::5, 0]])
    assert np.isfinite(CGNClassifierCV().fit(constant, y[::5]).predict_log_proba(constant)).all()
    each = CGNClassifierCV().fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(each.predict_log_proba([[0.5]])).all()


def test_in_a_pipeline_and_cloned(tmp_path):
    X, y = two_classes(40)
    pipe = make_pipeline(StandardScaler(), CGNClassifierCV(candidates=["naive_bayes"])).fit(X, y)
    save(pipe, tmp_path / "pipe.skops")
    np.testing.assert_array_equal(load(tmp_path / "pipe.skops").predict(X), pipe.predict(X))
    assert not hasattr(clone(pipe)[-1], "members_")
    assert not hasattr(pipe[-1], "partial_fit")


@parametrize_with_checks(
    [CGNClassifierCV(candidates=["naive_bayes"], transforms=("none",))],
    expected_failed_checks=lambda _: dict.fromkeys(
        ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"],
        "a sample of weight 2 is held out as a whole, one of two equal samples is not",
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# ---- missing values


def test_missing_values_are_taken_in_training_and_in_prediction():
    X, y = mixed(120)
    incomplete = X.copy()
    rng = np.random.default_rng(0)
    for name in ("length", "colour"):
        incomplete.loc[rng.random(len(X)) < 0.3, name] = np.nan
    model = CGNClassifierCV(candidates=["naive_bayes", "complete", "tan_average", "aode"]).fit(incomplete, y)
    assert np.isfinite(model.predict_log_proba(incomplete)).all()
    assert np.isfinite(model.score_samples(incomplete)).all()
    reasons = set(model.cv_results_["reason"])
    assert "it needs complete samples, and values are missing" in reasons
    nothing = X.iloc[:1].copy()
    nothing.loc[:, :] = np.nan
    np.testing.assert_allclose(model.predict_log_proba(nothing), model.class_log_prior_[None], atol=0.15)


def test_a_search_is_judged_by_searches_of_its_own_in_every_fold():
    X, y = two_classes(60, p=4)
    model = CGNClassifierCV(candidates=["fwgjan"], transforms=("none",), cv=3, random_state=0).fit(X, y)
    found = model.cv_results_
    (row,) = np.flatnonzero((found["param_candidate"] == "fwgjan") & (found["param_sharing"] == 0.0))
    seed = check_random_state(0).randint(np.iinfo(np.int32).max)
    told = np.empty(len(y))
    for train, test in stratified(y, 3, seed, None).pairs:
        alone = CGNClassifier("fwgjan").fit(X[train], y[train])
        joint = found["likelihood_power"][row] * (alone.predict_joint_log_proba(X[test]) - alone.class_log_prior_)
        joint += alone.class_log_prior_
        told[test] = (joint - logsumexp(joint, axis=1, keepdims=True))[np.arange(len(test)), y[test]]
    np.testing.assert_allclose(found["mean_test_log_loss"][row], -told.mean(), rtol=1e-9)


def test_both_estimators_choose_by_one_rule():
    """A single model's sharing and likelihood power are those of the same settings in a mixture."""
    X, y = two_classes(60, p=4)
    for name in ("naive_bayes", "tan", "selective_naive_bayes", "fwgjan"):
        alone = CGNClassifier(name, sharing="cv", likelihood_power="cv").fit(X, y)
        mixture = CGNClassifierCV(candidates=[name], transforms=("none",)).fit(X, y)
        here = np.flatnonzero(mixture.cv_results_["param_candidate"] == name)
        for column in ("param_sharing", "likelihood_power", "mean_test_log_loss", "mean_test_accuracy"):
            np.testing.assert_array_equal(alone.cv_results_[column], mixture.cv_results_[column][here])
        best = here[mixture.cv_results_["mean_test_log_loss"][here].argmin()]
        assert alone.sharing_ == mixture.cv_results_["param_sharing"][best]
        assert alone.likelihood_power_ == mixture.cv_results_["likelihood_power"][best]


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_skipped_has_a_reason(ordered):
    X, y = two_classes(30, p=2)
    results = CGNClassifierCV(candidates=["band", "naive_bayes"], ordered=ordered).fit(X, y).cv_results_
    (reason,) = results["reason"][results["param_candidate"] == "band"]
    assert reason.startswith("fewer than three" if ordered else "the columns have no order")


def test_incomplete_samples_are_predicted_by_the_members_that_accept_them():
    X, y = two_classes(60)
    model = CGNClassifierCV(candidates=["tan_average", "naive_bayes"]).fit(X, y)
    able = CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y)
    assert "tan_average" in {member.settings["candidate"] for member in model.members_}
    incomplete = X[:5].copy()
    incomplete[::2, 1] = np.nan
    found = model.predict_proba(incomplete)
    np.testing.assert_array_equal(found[1::2], model.predict_proba(X[1:5:2]))
    np.testing.assert_allclose(found[::2], able.predict_proba(incomplete)[::2], atol=0.1)
    assert model.contributions(incomplete).shape == (5, 3, 2)
    assert (model.contributions(incomplete)[::2, 1] == model.contributions(incomplete)[::2, 1][0]).all()


def test_a_mixture_worse_than_its_floor_is_moved_to_it():
    truth = np.log(np.array([[0.5, 0.9], [0.5, 0.01], [0.5, 0.01]]))
    moved = not_worse_than(0, np.array([0.0, 1.0]), truth, np.ones(3))
    assert moved.sum() == pytest.approx(1)
    assert moved[0] > 0.8
    assert np.log(np.exp(truth) @ moved).sum() >= truth[:, 0].sum()
    better = np.log(np.array([[0.5, 0.9], [0.5, 0.8]]))
    assert not_worse_than(0, np.array([0.1, 0.9]), better, np.ones(2)).tolist() == [0.1, 0.9]


@pytest.mark.parametrize("candidates", [["logistic"], ["aode"], ["aode", "logistic"]], ids=str)
def test_candidates_without_a_density_predict_and_say_that_they_have_none(candidates, tmp_path):
    X, y = load_wine(return_X_y=True)
    X = X[:, :4]
    model = CGNClassifierCV(candidates=candidates).fit(X, y)
    assert model.score(X, y) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    for method in (model.score_samples, model.typicality, model.predict_joint_log_proba):
        with pytest.raises(
            ValueError, match=r"no candidate is a density of the features, .*: add naive_bayes"
        ) as caught:
            method(X)
        assert "\n" not in str(caught.value)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict_proba(X), model.predict_proba(X))
