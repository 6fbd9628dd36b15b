"""Values: the paper's formulas taken literally, scikit-learn's classifiers, integration, chain rule."""

import numpy as np
import pytest
from scipy.stats import invgamma, multivariate_normal, norm
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from cgnlearn import CGNClassifier, Prior, SampleNotAcceptableError, Structure
from tests.oracles import paper
from tests.solvers import COMPILED, PLAIN, joint

DAGS = {
    "naive": {0: [], 1: [], 2: [], 3: [], 4: []},
    "cells": {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 2, 3]},
    "chain": {0: [], 1: [0], 2: [], 3: [2], 4: [3]},
    "immoral": {2: [], 3: [], 4: [2, 3]},
    "cut": {1: [], 2: [1], 3: [2], 4: [1, 2, 3]},
}
LEVELS = {0: 2, 1: 3}
EXPERT = [0, 0, 1.5, -0.5, 90.0]


@pytest.fixture(params=[PLAIN, COMPILED], ids=["numpy", "compiled"])
def solver(request):
    """Small jobs run in NumPy, large ones compiled: both must give the same numbers."""
    return request.param


@pytest.mark.parametrize("dag", DAGS)
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("location", ["pooled", "paper", "cell", EXPERT], ids=str)
def test_bayes_is_the_paper_to_the_letter(mixed, solver, dag, sharing, location):
    X, y, test = mixed
    prior = Prior(location=location, strength=2.5, shape=1.7, dirichlet=0.2)
    model = CGNClassifier(DAGS[dag], sharing=sharing, prior=prior, categorical_features=[0, 1]).fit(X, y)
    expected = paper.log_joint(
        X,
        y,
        test,
        DAGS[dag],
        (0, 1),
        LEVELS,
        location=location,
        sharing=sharing,
        strength=2.5,
        shape=1.7,
        dirichlet=0.2,
    )
    np.testing.assert_allclose(joint(model, test, solver), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dag", ["naive", "chain", "immoral"])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_ml_is_the_paper_to_the_letter(mixed, solver, dag, sharing):
    X, y, test = mixed
    model = CGNClassifier(DAGS[dag], estimation="ml", sharing=sharing, categorical_features=[0, 1]).fit(X, y)
    expected = paper.log_joint(X, y, test, DAGS[dag], (0, 1), LEVELS, estimation="ml", sharing=sharing)
    np.testing.assert_allclose(joint(model, test, solver), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("estimation", ["bayes", "ml"])
def test_weights_and_expert_scales(mixed, rng, estimation):
    X, y, test = mixed
    weights = rng.uniform(0, 3, len(y))
    scale = np.array([1, 1, 0.5, 2.0, 30.0])
    model = CGNClassifier(
        DAGS["chain"], estimation=estimation, prior=Prior(scale=scale), categorical_features=[0, 1]
    ).fit(X, y, weights)
    expected = paper.log_joint(
        X, y, test, DAGS["chain"], (0, 1), LEVELS, estimation=estimation, weights=weights, scale=scale
    )
    np.testing.assert_allclose(model.predict_joint_log_proba(test), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dag", DAGS)
@pytest.mark.parametrize("location", ["pooled", "paper"])
def test_contributions_add_up(mixed, solver, dag, location):
    X, y, test = mixed
    model = CGNClassifier(
        DAGS[dag], prior=Prior(location=location), likelihood_power=0.6, categorical_features=[0, 1]
    ).fit(X, y)
    apart = model.contributions(test)
    assert apart.shape == (len(test), 5, 3)
    total = model.likelihood_power_ * apart.sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(total, joint(model, test, solver), atol=1e-10)
    assert not apart[:, [i for i in range(5) if i not in DAGS[dag]]].any()


def test_ml_against_scikit_learn():
    X, y = load_wine(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    naive = CGNClassifier(estimation="ml").fit(X[train], y[train])
    theirs = GaussianNB(var_smoothing=0).fit(X[train], y[train])
    np.testing.assert_allclose(
        naive.predict_joint_log_proba(X[test]), theirs.predict_joint_log_proba(X[test]), rtol=1e-9
    )
    complete = CGNClassifier("complete", estimation="ml").fit(X[train], y[train])
    for c in range(3):
        own = X[train][y[train] == c]
        expected = multivariate_normal.logpdf(X[test], own.mean(axis=0), np.cov(own.T, ddof=0), allow_singular=True)
        expected += np.log(len(own) / len(X[train]))
        np.testing.assert_allclose(complete.predict_joint_log_proba(X[test])[:, c], expected, rtol=1e-8)


def test_complete_shared_ml_is_linear_discriminant_analysis():
    X, y = load_wine(return_X_y=True)
    ours = CGNClassifier("complete", estimation="ml", sharing=1.0).fit(X[::2], y[::2]).predict_log_proba(X[1::2])
    # theirs: the covariance is divided by n as well
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(X[::2], y[::2]).predict_log_proba(X[1::2])
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)


def test_predictive_by_integration():
    """One feature: ∫ N(x | μ, σ²) p(μ, σ² | data) dμ dσ², on a fine grid."""
    X = np.array([[0.2], [1.3], [0.7], [3.1], [2.2]])
    y = np.array([0, 0, 0, 1, 1])
    model = CGNClassifier(prior=Prior(location=[1.0], scale=[0.5]), class_prior="uniform").fit(X, y)
    x = 1.9
    log_variance, steps = np.meshgrid(np.linspace(-9, 16, 2001), np.linspace(-12, 12, 1201), indexing="ij")
    deviation = np.exp(log_variance / 2)
    for c in (0, 1):
        data = X[y == c, 0]
        mu = data.mean() + steps * deviation
        density = invgamma.logpdf(deviation**2, 1.1, scale=0.25) + norm.logpdf(mu, 1.0, deviation)
        density += sum(norm.logpdf(value, mu, deviation) for value in data)
        weight = np.exp(density) * deviation**3  # dμ dσ² in the grid's coordinates
        expected = np.log((weight * norm.pdf(x, mu, deviation)).sum() / weight.sum())
        assert model.contributions([[x]])[0, 0, c] == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("dag", DAGS)
@pytest.mark.parametrize("class_prior", [None, "uniform"])
def test_evidence_is_the_product_of_predictives(mixed, dag, class_prior):
    """p(D) = Π p(sample | samples before it), for a prior that does not depend on the data."""
    X, y, _ = mixed
    X, y = X[:30], y[:30]
    prior = Prior(location=EXPERT, scale=[1, 1, 1.2, 1.4, 150.0])
    # Every level and class must be known, and no feature constant, from the first row on: start from a few samples.
    start = 8
    order = np.concatenate([np.unique(X[:, :2], axis=0, return_index=True)[1], np.arange(30)])
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    X, y = X[order], y[order]
    settings = {"prior": prior, "class_prior": class_prior, "categorical_features": [0, 1]}
    before = CGNClassifier(DAGS[dag], **settings).partial_fit(X[:start], y[:start], classes=[0, 1, 2])
    first = before.log_evidence_
    total = 0.0
    for i in range(start, 30):
        total += before.predict_joint_log_proba(X[i : i + 1])[0, y[i]]
        before.partial_fit(X[i : i + 1], y[i : i + 1])
    assert before.log_evidence_ - first == pytest.approx(total, abs=1e-8)


def test_shared_evidence_does_not_depend_on_the_order_in_a_clique(mixed):
    X, y, _ = mixed
    found = [
        CGNClassifier(Structure.jan([group]), sharing=sharing).fit(X[:, 2:], y).log_evidence_
        for sharing in (0.0, 1.0)
        for group in ([0, 1, 2], [2, 0, 1])
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-9)
    assert found[2] == pytest.approx(found[3], abs=1e-9)
    assert found[0] != pytest.approx(found[2], abs=1e-3)


def test_evidence_is_refused_where_it_is_none(mixed):
    X, y, _ = mixed
    for settings in ({"estimation": "ml"}, {"sharing": 0.5}, {"prior": Prior(location="cell")}):
        model = CGNClassifier(**settings).fit(X[:, 2:], y)
        assert not hasattr(model, "log_evidence_")
        with pytest.raises(AttributeError, match="log_evidence_ is defined for"):
            _ = model.log_evidence_


@pytest.mark.parametrize(
    ("structure", "X", "message"),
    [
        # a class with as many samples as columns
        ("complete", [[0, 1], [1, 0], [2, 2], [0, 0], [4, 1], [3, 5]], None),
        (
            "complete",
            [[0, 1], [1, 0], [1, 1], [0, 0], [0, 0], [3, 5]],
            r"column 1 .*class 1: 3 samples, 1 continuous parents",
        ),
        (
            "naive_bayes",
            [[0, 1], [1, 0], [1, 1], [0, 7], [2, 7], [3, 7]],
            r"column 1 .*class 1: 3 samples, 0 continuous",
        ),
    ],
)
def test_ml_names_where_the_sample_is_not_acceptable(structure, X, message):
    model = CGNClassifier(structure, estimation="ml")
    if message is None:
        model.fit(X, [0, 0, 0, 1, 1, 1])
    else:
        with pytest.raises(SampleNotAcceptableError, match=message):
            model.fit(X, [0, 0, 0, 1, 1, 1])


def test_ml_names_empty_cells_and_levels(mixed):
    X, y, _ = mixed
    few = (X[:, 0] != 1) | (y != 2)
    model = CGNClassifier({0: [], 3: [0]}, estimation="ml", categorical_features=[0, 1])
    with pytest.raises(SampleNotAcceptableError, match=r"column 0 in the cell class 2: 0 samples have the level 1.0"):
        model.fit(X[few], y[few])
    model = CGNClassifier({3: [], 2: [3]}, estimation="ml").partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(SampleNotAcceptableError, match="none of 3"):
        model.predict(X)
    model = CGNClassifier({3: [], 2: [3]}, estimation="ml", class_prior="uniform")
    model.partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(SampleNotAcceptableError, match=r"column \d in the cell class 3: 0 samples"):
        model.predict(X)


def test_compiled_and_plain_paths_agree_on_many_shapes(rng):
    """Blocks of all sizes, samples beyond one tile, values beyond the product's guard."""
    X = rng.normal(size=(700, 23)) @ rng.normal(size=(23, 23))
    X[5] *= 1e160
    X[7] = 1e30
    y = rng.integers(0, 3, 700)
    for structure in (
        "naive_bayes",
        "complete",
        Structure.band(23, 4),
        Structure.box(23, 9),
        Structure.tree([None, *range(22)]),
    ):
        for estimation in ("bayes", "ml"):
            model = CGNClassifier(structure, estimation=estimation).fit(X[10:300], y[10:300])
            plain, compiled = joint(model, X, PLAIN), joint(model, X, COMPILED)
            assert np.isfinite(plain).all()
            np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-8)
