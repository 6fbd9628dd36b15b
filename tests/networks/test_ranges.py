"""Priors by class, from reference ranges or from arrays."""

import numpy as np
import pytest
from scipy.stats import multivariate_t, norm
from scipy.stats import t as student_t

from cgnlearn import Band, BandAverage, Box, CGNClassifier, CGNClassifierCV, Prior, SelectiveNaiveBayes, TANAverage

N_CLASSES, N_FEATURES = 2, 3


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], [9, 7])
    X = rng.normal(size=(16, N_FEATURES)) @ rng.normal(size=(N_FEATURES, N_FEATURES)) + 10 + y[:, None]
    return X, y, rng.normal(size=(5, N_FEATURES)) + 10.5


@pytest.fixture(scope="module")
def limits():
    rng = np.random.default_rng(4)
    low = 8 + rng.random((N_CLASSES, N_FEATURES))
    return low, low + 2 + 3 * rng.random((N_CLASSES, N_FEATURES))


def ranges(low, high, worth):
    worth = np.broadcast_to(worth, low.shape)
    return Prior.from_ranges(
        {c: {j: (low[c, j], high[c, j], worth[c, j]) for j in range(N_FEATURES)} for c in range(N_CLASSES)},
        binding=True,
    )


def hyperparameters(low, high, worth):
    """m0, sd², κ0 and ρ0 as documented, written down again."""
    shape = 1.1 + np.asarray(worth) / 2
    return (low + high) / 2, ((high - low) / (2 * norm.ppf(0.975))) ** 2, np.asarray(worth, float), shape


def log_class_prior(y):
    n = np.bincount(y) + 0.01
    return np.log(n / n.sum())


def test_naive_bayes_equals_the_formula_with_a_worth_of_its_own_for_every_range(samples, limits):
    X, y, rows = samples
    worth = np.array([[20, 3, 0.5], [7, 40, 11]])
    model = CGNClassifier(prior=ranges(*limits, worth)).fit(X, y)
    m0, variance, k0, r0 = hyperparameters(*limits, worth)
    expected = np.tile(log_class_prior(y), (len(rows), 1))
    for c in range(N_CLASSES):
        own = X[y == c]
        n, mean = len(own), own.mean(axis=0)
        k, r = k0[c] + n, r0[c] + n / 2
        centre = (k0[c] * m0[c] + n * mean) / k
        spread = 2 * r0[c] * variance[c] + ((own - mean) ** 2).sum(axis=0) + k0[c] * n / k * (mean - m0[c]) ** 2
        scale = np.sqrt(spread / 2 / r * (1 + 1 / k))
        expected[:, c] += student_t.logpdf(rows, 2 * r, centre, scale).sum(axis=1)
    np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-10)


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_a_group_is_a_multivariate_student(samples, limits, sharing):
    X, y, rows = samples
    worth = np.array([[20.0], [6.0]])
    model = CGNClassifier("complete", sharing=sharing, prior=ranges(*limits, worth)).fit(X, y)
    m0, variance, _, r0 = hyperparameters(*limits, np.broadcast_to(worth, limits[0].shape))
    prior_scale, added, count = 2 * r0 * variance, [], []
    for c in range(N_CLASSES):
        own = X[y == c]
        n, off = len(own), own.mean(axis=0) - m0[c]
        count.append(n)
        added.append(
            (own - own.mean(axis=0)).T @ (own - own.mean(axis=0)) + worth[c] * n / (worth[c] + n) * np.outer(off, off)
        )
    expected = np.tile(log_class_prior(y), (len(rows), 1))
    for c in range(N_CLASSES):
        weight = np.where(np.arange(N_CLASSES) == c, 1.0, sharing)
        scale = sum(w * part for w, part in zip(weight, added, strict=True))
        scale = scale + np.diag((1 - sharing) * prior_scale[c] + sharing * prior_scale.mean(axis=0))
        shape = (1 - sharing) * r0[c, 0] + sharing * r0[:, 0].mean() + weight @ count / 2
        k = worth[c, 0] + count[c]
        centre = (worth[c, 0] * m0[c] + X[y == c].sum(axis=0)) / k
        # Members have shapes ρ', ρ' + 1/2, …: the group has 2ρ' degrees of freedom.
        expected[:, c] += multivariate_t.logpdf(rows, centre, scale * (1 + 1 / k) / (2 * shape), df=2 * shape)
    np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-9)


STRUCTURES = ["naive_bayes", "complete", {0: [], 1: [0], 2: [0]}, Band(2), Box(2), SelectiveNaiveBayes(1.0)]


@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
@pytest.mark.parametrize("worth", [12.0, [[20, 3, 5], [7, 40, 11]]], ids=["even", "uneven"])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_leave_one_out_equals_refits(samples, limits, structure, worth, sharing):
    # With every range given, no part of the prior is learned, so that a refit has the same prior.
    X, y, _ = samples
    make = CGNClassifier(structure, prior=ranges(*limits, worth), sharing=sharing, class_prior="uniform")
    found = make.fit(X, y)._leave_one_out(make._table(X, y))
    expected = [
        CGNClassifier(**make.get_params(deep=False))
        .fit(np.delete(X, i, 0), np.delete(y, i))
        .predict_joint_log_proba(X[i : i + 1])[0]
        for i in range(len(y))
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("structure", [*STRUCTURES[:-1], TANAverage()], ids=str)
@pytest.mark.parametrize("worth", [12.0, [[20, 3, 5], [7, 40, 11]]], ids=["even", "uneven"])
def test_evidence_follows_the_chain_rule(samples, limits, structure, worth):
    X, y, _ = samples
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    first = next(n for n in range(4, len(y)) if len(set(y[:n])) == 2)
    make = CGNClassifier(structure, prior=ranges(*limits, worth))
    whole, start = make.fit(X, y).log_evidence_, CGNClassifier(**make.get_params(deep=False)).fit(X[:first], y[:first])
    total = start.log_evidence_
    for i in range(first, len(y)):
        model = CGNClassifier(**make.get_params(deep=False)).fit(X[:i], y[:i])
        total += model.predict_joint_log_proba(X[i : i + 1])[0, y[i]]
    np.testing.assert_allclose(whole, total, rtol=1e-9)


@pytest.mark.parametrize("structure", [*STRUCTURES, "tan", TANAverage(), BandAverage(k_max=2)], ids=str)
def test_knowledge_of_some_features_keeps_the_default_elsewhere(samples, structure):
    X, y, rows = samples
    some = Prior.from_ranges({0: {1: (8.0, 12.0)}}, worth=1e-6, binding=True)  # worth nothing
    default = CGNClassifier(structure).fit(X, y).predict_proba(rows)
    known = CGNClassifier(structure, prior=some).fit(X, y).predict_proba(rows)
    assert np.abs(known - default).max() > 1e-9  # the location and the scale are other ones
    assert np.isfinite(known).all()
    strong = Prior.from_ranges({0: {1: (8.0, 12.0)}}, worth=1e4, binding=True)
    if structure == "naive_bayes":
        of_features = CGNClassifier(structure, prior=strong).fit(X, y).contributions(rows)
        without = CGNClassifier(structure).fit(X, y).contributions(rows)
        np.testing.assert_allclose(of_features[:, [0, 2]], without[:, [0, 2]], rtol=1e-12)
        np.testing.assert_allclose(of_features[:, 1, 1], without[:, 1, 1], rtol=1e-12)
        sd = 4 / 2 / norm.ppf(0.975)
        np.testing.assert_allclose(of_features[:, 1, 0], norm.logpdf(rows[:, 1], 10, sd), rtol=0.01)


def test_arrays_by_class_equal_ranges(samples, limits):
    X, y, rows = samples
    m0, variance, k0, r0 = hyperparameters(*limits, np.full(limits[0].shape, 20.0))
    arrays = Prior(location=m0, scale=2 * r0 * variance, strength=k0, shape=r0)
    expected = CGNClassifier("complete", prior=ranges(*limits, 20.0)).fit(X, y).predict_proba(rows)
    np.testing.assert_allclose(CGNClassifier("complete", prior=arrays).fit(X, y).predict_proba(rows), expected)


def test_units_do_not_matter(samples, limits):
    X, y, rows = samples
    expected = CGNClassifier("tan", prior=ranges(*limits, 20.0)).fit(X, y).predict_proba(rows)
    low, high = (1e6 + 1e-3 * part for part in limits)
    moved = CGNClassifier("tan", prior=ranges(low, high, 20.0)).fit(1e6 + 1e-3 * X, y)
    np.testing.assert_allclose(moved.predict_proba(1e6 + 1e-3 * rows), expected, rtol=1e-6)


def test_missing_values_keep_the_prior(samples, limits):
    X, y, rows = samples
    X, rows = X.copy(), rows.copy()
    X[::3, 1] = rows[:2, 0] = np.nan
    model = CGNClassifier("complete", prior=ranges(*limits, 20.0)).fit(X, y)
    alone = CGNClassifier(prior=ranges(*limits, 20.0)).fit(X, y)
    for each in (model, alone):
        assert np.isfinite(each.predict_proba(rows)).all()
    observed = CGNClassifier(prior=ranges(*limits, 20.0)).fit(X[~np.isnan(X[:, 1])], y[~np.isnan(X[:, 1])])
    np.testing.assert_allclose(alone.contributions(rows)[2:, 1], observed.contributions(rows)[2:, 1], rtol=1e-10)


def test_a_mixture_takes_ranges_and_says_what_it_skips(samples, limits):
    X, y, rows = samples
    names = ["naive_bayes", "complete", "tan", "selective_naive_bayes"]
    model = CGNClassifierCV(candidates=names, prior=ranges(*limits, 20.0)).fit(X, y)
    assert np.isfinite(model.predict_proba(rows)).all()
    transform, weight = model.cv_results_["param_transform"], model.cv_results_["weight"]
    assert (weight[transform == "power"] == 0).all()  # the prior is in the columns' own units
    assert weight.sum() == pytest.approx(1)


def test_a_rotation_refuses_a_prior_by_class():
    X = np.random.default_rng(0).normal(size=(20, 400))
    prior = Prior.from_ranges({0: {0: (-1, 1)}})
    with pytest.raises(ValueError, match="rotation, which does not support a prior by class"):
        CGNClassifier("complete", prior=prior).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({0: {1: (5, 3)}}, "range of 1 in class 0 goes from 5 to 3: give the lower limit first"),
        ({0: {1: (3, 3)}}, "goes from 3 to 3"),
        ({0: {1: (3, np.inf)}}, "must be finite"),
        ({0: {1: ("low", 3)}}, "must be numbers"),
        ({0: {1: 3}}, r"must be \(low, high\), not 3"),
        ({0: {1: (1, 2, 0)}}, "has a worth of 0: give the number of samples"),
        ({0: {1: (1, 2, -3)}}, "has a worth of -3"),
        ({0: (1, 2)}, "must be by class and feature"),
        ({}, "there are no ranges"),
    ],
)
def test_impossible_ranges(given, message):
    with pytest.raises(ValueError, match=message):
        Prior.from_ranges(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"well": {"a": (1, 2)}}, "range for class 'well', but the classes are healthy, ill"),
        ({"ill": {"z": (1, 2)}}, "range for 'z', which is no column of X"),
        ({"ill": {"b": (1, 2)}}, "range for 'b', which is discrete"),
    ],
)
def test_ranges_of_what_is_not_there(given, message):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["x", "y", "x", "y"]})
    with pytest.raises(ValueError, match=message):
        CGNClassifier(prior=Prior.from_ranges(given)).fit(X, ["ill", "healthy", "ill", "healthy"])


def test_labels_that_are_numbers_may_be_named_as_text(samples):
    X, y, rows = samples
    by_number = CGNClassifier(prior=Prior.from_ranges({1: {2: (9, 11)}}, binding=True)).fit(X, y)
    by_text = CGNClassifier(prior=Prior.from_ranges({"1": {"2": (9, 11)}}, binding=True)).fit(X, y)
    np.testing.assert_array_equal(by_number.predict_proba(rows), by_text.predict_proba(rows))
