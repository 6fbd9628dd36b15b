"""The average over forests against every forest there is, fitted one by one."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris, load_wine
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import CGNClassifier, Prior, Structure, TANAverage, load, save
from cgnlearn.networks.model import NotExactError
from cgnlearn.structures.arborescence import eliminated, heaviest_parents, log_arc_probabilities


def forests(discrete):
    """Every choice of at most one parent each, without a cycle and without a continuous parent of a discrete one."""
    n = len(discrete)
    for parents in product([None, *range(n)], repeat=n):
        if any(p is not None and (p == v or (discrete[v] and not discrete[p])) for v, p in enumerate(parents)):
            continue
        if all(reaches_a_root(v, parents) for v in range(n)):
            yield parents


def reaches_a_root(node, parents):
    for _ in range(len(parents)):
        if parents[node] is None:
            return True
        node = parents[node]
    return False


def data(kinds, n=60, seed=0):
    """Columns that hang together, "c" continuous and "d" discrete, in three classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    columns, latest = {}, np.zeros(n)
    for i, kind in enumerate(kinds):
        latest = 0.5 * latest + 0.4 * y + rng.normal(size=n)
        column = latest * 10**i if kind == "c" else pd.Categorical((latest > 0.3).astype(int) + (latest > 1.5))
        columns[f"x{i}"] = column
    return pd.DataFrame(columns), y


def by_enumeration(X, y, new, **options):
    """Joint log probabilities, log evidence and arc probabilities from a fit of every forest."""
    discrete = [str(dtype) == "category" for dtype in X.dtypes]
    n = len(discrete)
    listed = list(forests(discrete))
    evidences, joints = [], []
    for parents in listed:
        structure = {X.columns[v]: [] if p is None else [X.columns[p]] for v, p in enumerate(parents)}
        model = CGNClassifier(structure, **options).fit(X, y)
        evidences.append(model.log_evidence_)
        joints.append(model.predict_joint_log_proba(new))
    evidences = np.array(evidences)
    weights = np.exp(evidences - logsumexp(evidences))
    arcs = np.zeros((n, n))
    for parents, weight in zip(listed, weights, strict=True):
        for v, p in enumerate(parents):
            if p is not None:
                arcs[p, v] += weight
    joint = logsumexp(np.array(joints), axis=0, b=weights[:, None, None])
    return joint, logsumexp(evidences) - np.log(len(listed)), arcs, evidences.max()


@pytest.mark.parametrize("kinds", ["c", "cc", "ccc", "cccc", "dd", "ddd", "dc", "cdc", "dcdc", "cddc"])
@pytest.mark.parametrize("sharing", [0, 1])
def test_equal_to_enumeration(kinds, sharing):
    X, y = data(kinds)
    new, _ = data(kinds, n=20, seed=1)
    joint, evidence, arcs, best = by_enumeration(X, y, new, sharing=sharing)
    model = CGNClassifier(TANAverage(), sharing=sharing).fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(new), joint, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_log_proba(new), joint - logsumexp(joint, axis=1, keepdims=True), 1e-9, 1e-9
    )
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(model.edge_probability_, arcs, rtol=1e-9, atol=1e-12)
    mode = CGNClassifier(model.structure_, sharing=sharing).fit(X, y)
    assert mode.log_evidence_ == pytest.approx(best, rel=1e-12)
    assert model.n_parameters_ == mode.n_parameters_


def test_other_priors_and_weights_equal_enumeration():
    X, y = data("ccd")
    new, _ = data("ccd", n=10, seed=1)
    prior = Prior(strength=3.0, location=[0.1, 5.0, 0.0], scale=[2.0, 40.0, 1.0], dirichlet=0.7)
    joint, evidence, arcs, _ = by_enumeration(X, y, new, prior=prior, class_prior=[0.2, 0.3, 0.5])
    model = CGNClassifier(TANAverage(), prior=prior, class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(new), joint, rtol=1e-9)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(model.edge_probability_, arcs, rtol=1e-9, atol=1e-12)


def random_weights(n, spread, seed):
    rng = np.random.default_rng(seed)
    weights = spread * rng.normal(size=(1 + n, n))
    weights[1 + np.arange(n), np.arange(n)] = -np.inf
    weights[1:][rng.random((n, n)) < 0.2] = -np.inf
    return weights


@pytest.mark.parametrize("spread", [1.0, 100.0, 1e5])
@pytest.mark.parametrize("seed", range(5))
def test_sums_over_forests_however_far_weights_lie_apart(spread, seed):
    weights = random_weights(5, spread, seed)
    listed = list(forests([False] * 5))
    assert len(listed) == 6**4
    sums = np.array([sum(weights[0 if p is None else 1 + p, v] for v, p in enumerate(parents)) for parents in listed])
    total = logsumexp(sums)
    assert eliminated(weights).log_total == pytest.approx(total, rel=1e-12)
    arcs = np.full((6, 5), -np.inf)
    for parents, weight in zip(listed, sums, strict=True):
        for v, p in enumerate(parents):
            arcs[0 if p is None else 1 + p, v] = np.logaddexp(arcs[0 if p is None else 1 + p, v], weight - total)
    np.testing.assert_allclose(log_arc_probabilities(weights), arcs, rtol=1e-9, atol=1e-9 * max(1, spread / 1e3))
    best = weights[heaviest_parents(weights), np.arange(5)].sum()
    assert best == pytest.approx(sums.max(), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_larger_sums_equal_the_determinant(seed):
    weights = random_weights(40, 1.0, seed)
    plain = np.exp(weights)
    laplacian = np.diag(plain.sum(axis=0)) - plain[1:]
    assert eliminated(weights).log_total == pytest.approx(np.linalg.slogdet(laplacian)[1], rel=1e-12)
    inverse = np.linalg.inv(laplacian)  # d ln det / d w(u→v) = inverse[v, v] - inverse[v, u]
    arcs = plain[1:] * (np.diag(inverse)[None, :] - inverse.T)
    np.testing.assert_allclose(np.exp(log_arc_probabilities(weights))[1:], arcs, rtol=1e-8, atol=1e-14)


def test_the_heaviest_of_many_nodes():
    import networkx as nx

    for seed in range(5):
        weights = random_weights(30, 3.0, seed)
        graph = nx.DiGraph()
        for u, v in np.argwhere(np.isfinite(weights)):
            graph.add_edge(-1 if u == 0 else u - 1, v, weight=weights[u, v])
        theirs = nx.maximum_spanning_arborescence(graph).size("weight")
        assert weights[heaviest_parents(weights), np.arange(30)].sum() == pytest.approx(theirs, rel=1e-12)


@pytest.mark.parametrize("sharing", [0, 1])
def test_far_apart_evidences_leave_the_most_probable_tree(sharing):
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.integers(0, 2, n)
    X = np.cumsum(rng.normal(size=(n, 6)), axis=1) + y[:, None]
    model = CGNClassifier(TANAverage(), sharing=sharing).fit(X, y)
    best = CGNClassifier("tan", sharing=sharing).fit(X, y)
    assert best.log_evidence_ - CGNClassifier(sharing=sharing).fit(X, y).log_evidence_ > 10_000
    ours, theirs = model.predict_joint_log_proba(X), best.predict_joint_log_proba(X)
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    both = model.edge_probability_ + model.edge_probability_.T
    np.testing.assert_allclose(both, np.eye(6, k=1) + np.eye(6, k=-1), atol=1e-9)
    # Far from all data densities lie farther apart than plain numbers reach.
    far = 1e6 * rng.normal(size=(50, 6))
    found = model.predict_joint_log_proba(far)
    assert np.isfinite(found).all()


def test_outliers_equal_enumeration():
    X, y = data("cccc", n=2000)
    new = 1e5 * np.random.default_rng(2).normal(size=(30, 4)) * [1, 10, 100, 1000]
    new = pd.DataFrame(new, columns=X.columns)
    joint, *_ = by_enumeration(X, y, new)
    model = CGNClassifier(TANAverage()).fit(X, y)
    np.testing.assert_allclose(model.predict_joint_log_proba(new), joint, rtol=1e-9)


def test_constant_columns_stand_alone_and_say_nothing():
    X, y = load_iris(return_X_y=True)
    wide = np.full((150, 6), 2.5)
    columns = [1, 2, 4, 5]
    wide[:, columns] = X
    plain, model = (CGNClassifier(TANAverage()).fit(rows, y) for rows in (X, wide))
    np.testing.assert_allclose(model.predict_joint_log_proba(wide), plain.predict_joint_log_proba(X), rtol=1e-12)
    np.testing.assert_allclose(model.edge_probability_[np.ix_(columns, columns)], plain.edge_probability_)
    assert model.edge_probability_[[0, 3]].sum() == model.edge_probability_[:, [0, 3]].sum() == 0
    assert model.log_evidence_ == pytest.approx(plain.log_evidence_)
    assert model.structure_.parents[0] == model.structure_.parents[3] == ()
    nothing = CGNClassifier(TANAverage()).fit(np.ones((150, 3)), y)
    np.testing.assert_allclose(nothing.predict_proba(np.ones((1, 3))), [[1 / 3] * 3])
    assert nothing.structure_ == Structure.naive_bayes(3)


def test_repeated_columns_stay_finite():
    X, y = load_wine(return_X_y=True)
    X = np.column_stack([X, X, X[:, 0]])
    model = CGNClassifier(TANAverage()).fit(X, y)
    assert np.isfinite(model.predict_joint_log_proba(X * 1.01)).all()
    assert model.edge_probability_.sum(axis=0).max() < 1 + 1e-9


def test_parts_weights_and_files(tmp_path):
    X, y = data("cdcd", n=90)
    classifier = CGNClassifier(TANAverage())
    model = classifier.fit(X, y)
    wanted = model.predict_joint_log_proba(X)
    parts = CGNClassifier(TANAverage()).partial_fit(X[:40], y[:40], classes=[0, 1, 2]).partial_fit(X[40:], y[40:])
    np.testing.assert_allclose(parts.predict_joint_log_proba(X), wanted, rtol=1e-9)
    twice = CGNClassifier(TANAverage()).fit(pd.concat([X, X[:30]]), np.concatenate([y, y[:30]]))
    weighted = CGNClassifier(TANAverage()).fit(X, y, sample_weight=np.repeat([2, 1], [30, 60]))
    np.testing.assert_allclose(weighted.predict_joint_log_proba(X), twice.predict_joint_log_proba(X), rtol=1e-9)
    save(model, tmp_path / "model.skops")
    back = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(back.predict_joint_log_proba(X), wanted)
    np.testing.assert_array_equal(back.edge_probability_, model.edge_probability_)


@pytest.mark.parametrize(
    "options",
    [{"estimation": "ml"}, {"sharing": 0.5}, {"prior": Prior(location="paper")}, {"prior": Prior(location="cell")}],
)
def test_without_evidence_it_is_refused(options):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"TANAverage weights structures by their evidence: it needs .*pooled"):
        CGNClassifier(TANAverage(), **options).fit(X, y)


def test_what_an_average_does_not_support_raises():
    X, y = load_iris(return_X_y=True)
    model = CGNClassifier(TANAverage()).fit(X, y)
    with pytest.raises(ValueError, match="no contributions by feature"):
        model.contributions(X)
    with pytest.raises(NotExactError, match="use folds"):
        model.leave_one_out_log_proba(X, y)
    chosen = CGNClassifier(TANAverage(), likelihood_power="cv").fit(X, y)
    assert list(chosen.cv_results_["validation"]) == ["5 folds"]
    with pytest.raises(AttributeError, match="inclusion_probability_ exists only"):
        _ = model.inclusion_probability_
    with pytest.raises(ValueError, match="from a single structure"):
        model.sample(3)
    with pytest.raises(ValueError, match="701 columns needs too much memory"):
        CGNClassifier(TANAverage()).fit(np.random.default_rng(0).normal(size=(4, 701)), [0, 1, 0, 1])


@pytest.mark.slow
@parametrize_with_checks(
    [CGNClassifier(TANAverage()), CGNClassifier(TANAverage(), sharing=1.0)],
    expected_failed_checks=lambda _: {"check_estimators_pickle": "TANAverage needs complete samples"},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
