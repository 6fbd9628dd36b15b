"""Selective naive Bayes against every choice of features, with class-free densities from SciPy."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_t
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import CGNClassifier, Prior, SelectiveNaiveBayes, load, save


def data(kinds, n=45, seed=0):
    """Columns, "c" continuous and "d" discrete, that depend less and less on three classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    columns = {}
    for i, kind in enumerate(kinds):
        values = y * 0.8**i / (1 + i) + rng.normal(size=n)
        columns[f"x{i}"] = values * 10**i if kind == "c" else pd.Categorical(np.digitize(values, [0.0, 1.0]))
    return pd.DataFrame(columns), y


def class_free(train, new, prior):
    """Log evidence of a column's values, and log density of new ones, whatever their class."""
    n = len(train)
    if str(train.dtype) == "category":
        counts = train.value_counts().loc[train.cat.categories].to_numpy()
        a, k = prior.dirichlet, len(counts)
        evidence = gammaln(a * k) - gammaln(a * k + n) + (gammaln(a + counts) - gammaln(a)).sum()
        return evidence, np.log((counts + a) / (n + a * k))[new.cat.codes]
    x, m, spread = train.to_numpy(), train.mean(), train.var(ddof=0)
    # All values together are one Student t in n dimensions, and a new one given them another.
    shape = spread / (2 * prior.shape) * (np.eye(n) + 1 / prior.strength)
    evidence = multivariate_t.logpdf(x, np.full(n, m), shape, df=2 * prior.shape)
    k, rho = prior.strength + n, prior.shape + n / 2
    phi = (spread + ((x - m) ** 2).sum()) / 2
    return evidence, student.logpdf(new.to_numpy(), 2 * rho, m, np.sqrt(phi / rho * (1 + 1 / k)))


def by_enumeration(X, y, new, inclusion=0.5, **options):
    """Joint log probabilities, log evidence and inclusion probabilities from a fit of every choice."""
    prior = options.get("prior", Prior())
    free = {name: class_free(X[name], new[name], prior) for name in X}
    evidences, joints, choices = [], [], list(product([False, True], repeat=X.shape[1]))
    for choice in choices:
        model = CGNClassifier({name: [] for name, chosen in zip(X, choice, strict=True) if chosen}, **options).fit(X, y)
        left = [name for name, chosen in zip(X, choice, strict=True) if not chosen]
        before = np.log(np.where(choice, inclusion, 1 - inclusion)).sum()
        evidences.append(before + model.log_evidence_ + sum(free[name][0] for name in left))
        joints.append(
            model.predict_joint_log_proba(new) + sum(free[name][1] for name in left)[:, None]
            if left
            else model.predict_joint_log_proba(new)
        )
    weights = np.exp(np.array(evidences) - logsumexp(evidences))
    joint = logsumexp(np.array(joints), axis=0, b=weights[:, None, None])
    return joint, logsumexp(evidences), weights @ np.array(choices, float), choices[int(np.argmax(weights))]


@pytest.mark.parametrize("kinds", ["c", "cc", "cccc", "d", "ddd", "cdcd"])
@pytest.mark.parametrize("sharing", [0, 1])
@pytest.mark.parametrize("inclusion", [0.5, 0.9])
def test_equal_to_enumeration(kinds, sharing, inclusion):
    X, y = data(kinds)
    new, _ = data(kinds, n=20, seed=1)
    joint, evidence, included, best = by_enumeration(X, y, new, inclusion, sharing=sharing)
    model = CGNClassifier(SelectiveNaiveBayes(inclusion), sharing=sharing).fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(new), joint, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_log_proba(new), joint - logsumexp(joint, axis=1, keepdims=True), 1e-9, 1e-9
    )
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(model.inclusion_probability_, included, rtol=1e-9)
    assert list(model.structure_.nodes) == [name for name, chosen in zip(X, best, strict=True) if chosen]
    apart = model.contributions(new).sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(apart, joint, rtol=1e-9)


def test_certainty_beforehand_is_naive_bayes_or_nothing():
    X, y = load_iris(return_X_y=True)
    sure = CGNClassifier(SelectiveNaiveBayes(1)).fit(X, y)
    naive = CGNClassifier().fit(X, y)
    np.testing.assert_allclose(sure.predict_joint_log_proba(X), naive.predict_joint_log_proba(X), rtol=1e-12)
    assert sure.log_evidence_ == pytest.approx(naive.log_evidence_, rel=1e-12)
    assert sure.structure_ == naive.structure_
    assert sure.n_parameters_ == naive.n_parameters_
    none = CGNClassifier(SelectiveNaiveBayes(0)).fit(X, y)
    np.testing.assert_allclose(none.predict_proba(X), 1 / 3)
    assert none.structure_.nodes == ()
    assert none.n_parameters_ == 2


def wide(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 30)) * np.logspace(-5, 5, 30)
    X[:, :10] *= 1 + y[:, None]
    return X, y


@pytest.mark.parametrize("sharing", [0, 1])
@pytest.mark.parametrize("inclusion", [0.5, 1e-6, 0, 1])
def test_compiled_equals_plain(sharing, inclusion):
    X, y = wide(5000)
    X[:, 3] = 7.0
    frame = pd.DataFrame(X).rename(columns=str).assign(level=pd.Categorical(y * (X[:, 4] > 0)))
    model = CGNClassifier(SelectiveNaiveBayes(inclusion), sharing=sharing).fit(frame, y)
    frame.iloc[:100, :30] *= 1e6
    frame.iloc[100, 0] = 1e300
    plain = model.contributions(frame).sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(model.predict_joint_log_proba(frame), plain, rtol=1e-10)
    assert model.inclusion_probability_[3] == 0


@pytest.mark.parametrize("sharing", [0, 1])
def test_far_apart_evidences_leave_the_most_probable_choice(sharing):
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.integers(0, 2, n)
    X = np.column_stack([rng.normal(size=(n, 2)) + 3 * y[:, None], y + rng.normal(size=n)])
    model = CGNClassifier(SelectiveNaiveBayes(), sharing=sharing).fit(X, y)
    naive = CGNClassifier(sharing=sharing).fit(X, y)
    assert naive.log_evidence_ - CGNClassifier(SelectiveNaiveBayes(0), sharing=sharing).fit(X, y).log_evidence_ > 10_000
    np.testing.assert_allclose(model.predict_joint_log_proba(X), naive.predict_joint_log_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(model.inclusion_probability_, 1)
    assert np.isfinite(model.predict_joint_log_proba(1e8 * rng.normal(size=(50, 3)))).all()


def test_a_column_that_says_nothing_hardly_speaks():
    X, y = wide(3000)
    model = CGNClassifier(SelectiveNaiveBayes()).fit(X, y)
    assert (model.inclusion_probability_[:10] > 0.999).all()
    assert (model.inclusion_probability_[10:] < 0.1).all()
    assert list(model.structure_.nodes) == list(range(10))


def test_parts_weights_and_files(tmp_path):
    X, y = data("cdcd", n=90)
    model = CGNClassifier(SelectiveNaiveBayes(0.3)).fit(X, y)
    wanted = model.predict_joint_log_proba(X)
    first = CGNClassifier(SelectiveNaiveBayes(0.3)).partial_fit(X[:40], y[:40], classes=[0, 1, 2])
    np.testing.assert_allclose(first.partial_fit(X[40:], y[40:]).predict_joint_log_proba(X), wanted, rtol=1e-9)
    twice = CGNClassifier(SelectiveNaiveBayes()).fit(pd.concat([X, X[:30]]), np.concatenate([y, y[:30]]))
    weighted = CGNClassifier(SelectiveNaiveBayes()).fit(X, y, sample_weight=np.repeat([2, 1], [30, 60]))
    np.testing.assert_allclose(weighted.predict_joint_log_proba(X), twice.predict_joint_log_proba(X), rtol=1e-9)
    save(model, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.predict_joint_log_proba(X), wanted)
    np.testing.assert_array_equal(back.inclusion_probability_, model.inclusion_probability_)


@pytest.mark.parametrize("options", [{"estimation": "ml"}, {"sharing": 0.5}, {"prior": Prior(location="paper")}])
def test_without_evidence_it_is_refused(options):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="SelectiveNaiveBayes weights structures by their evidence: it needs"):
        CGNClassifier(SelectiveNaiveBayes(), **options).fit(X, y)


@pytest.mark.parametrize("inclusion", [-0.1, 1.5, "half", None, True, np.nan])
def test_what_is_no_probability_is_refused(inclusion):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="inclusion must be a probability from 0 to 1"):
        CGNClassifier(SelectiveNaiveBayes(inclusion)).fit(X, y)


@parametrize_with_checks([CGNClassifier(SelectiveNaiveBayes()), CGNClassifier(SelectiveNaiveBayes(), sharing=1.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("sharing", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inclusion", [0.3, 0, 1])
def test_leave_one_out_equals_refits(sharing, weighted, inclusion):
    X, y = data("cdcdc", n=30)
    X["x4"] = 2.5  # constant
    held = Prior(location=[0.5, 0, 90.0, 0, 1.0], scale=[1.3, 1, 9000.0, 1, 1.0], strength=1.5, shape=1.3)
    weights = np.random.default_rng(3).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    options = {"structure": SelectiveNaiveBayes(inclusion), "sharing": sharing, "prior": held}
    model = CGNClassifier(**options).fit(X, y, weights if weighted else None)
    found = model.leave_one_out_log_proba(X, y, weights if weighted else None)
    expected = [
        CGNClassifier(**options).partial_fit(X[kept], y[kept], [0, 1, 2], weights[kept]).predict_log_proba(X[~kept])[0]
        for kept in ~np.eye(len(y), dtype=bool)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert np.abs(found - model.predict_log_proba(X)).max() > 0.01


def test_likelihood_power_is_chosen_by_leave_one_out():
    X, y = data("cdcd", n=60)
    model = CGNClassifier(SelectiveNaiveBayes(), likelihood_power="cv").fit(X, y)
    assert set(model.cv_results_["validation"]) == {"leave-one-out"}
    truth = model.leave_one_out_log_proba(X, y)[np.arange(60), y].mean()
    assert model.cv_results_["mean_test_log_loss"] == pytest.approx(-truth, abs=1e-12)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_leave_one_out_where_values_are_missing_equals_refits(sharing):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 24)
    X = rng.normal(size=(24, 4)) + 2 * np.outer(y, [1, 0, 0, 1])
    X[:, 3] = X[:, 3] > 0
    X[rng.random(X.shape) < 0.2] = np.nan
    held = Prior(location=np.zeros(4), scale=np.ones(4))
    model = CGNClassifier(SelectiveNaiveBayes(), sharing=sharing, prior=held, categorical_features=[3])
    found = clone(model).fit(X, y).leave_one_out_log_proba(X, y)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        expected = clone(model).fit(X[others], y[others]).predict_log_proba(X[[i]])[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-12)
