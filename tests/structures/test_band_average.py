"""The average over bands: against every order and kind of regression written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import Band, BandAverage, CGNClassifier, Prior, load, save
from cgnlearn.datasets import make_spectra
from cgnlearn.networks.model import NotExactError

KINDS = ("free", "shared", "own")


def chained(seed=0, n=30, p=4, classes=2, n_test=9):
    """Samples whose columns hang together, some of which differ between the classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_test, p))
    y = np.arange(n + n_test) % classes
    for column in range(1, p):
        X[:, column] += rng.normal() * X[:, column - 1]
    X += rng.normal(size=p) * (rng.uniform(size=p) < 0.5) * y[:, None]
    X = 3.0 + X * np.geomspace(1, 100, p)
    return X[:n], y[:n], X[n:]


# ---- the oracle: dense matrices, one regression at a time


def posteriors(X, y, weights, columns, kind, prior):
    """For each class: m', κ', Ψ' and the samples behind the regression, over some columns."""
    X, n_classes = X[:, columns], y.max() + 1
    location = np.average(X, axis=0, weights=weights)
    before = np.diag(np.average((X - location) ** 2, axis=0, weights=weights))
    labels = np.zeros_like(y) if kind == "free" else y
    centres, strengths, added, n = [], [], [], []
    for label in range(labels.max() + 1):
        rows, w = X[labels == label], weights[labels == label]
        mean = np.average(rows, axis=0, weights=w)
        strengths.append(prior.strength + w.sum())
        centres.append((prior.strength * location + w.sum() * mean) / strengths[-1])
        away = mean - location
        scatter = (rows - mean).T @ (w[:, None] * (rows - mean))
        added.append(scatter + prior.strength * w.sum() / strengths[-1] * np.outer(away, away))
        n.append(w.sum())
    if kind == "shared":
        added, n = [sum(added)] * len(added), [sum(n)] * len(n)
    found = [(m, kappa, before + a, rows) for m, kappa, a, rows in zip(centres, strengths, added, n, strict=True)]
    return before, found * (n_classes if kind == "free" else 1)


def regression(X, y, weights, test, v, order, kind, prior):
    """Log evidence of one regression, and log densities of the test samples: (samples, classes)."""
    columns = [u for u in range(v - order, v + 1) if np.ptp(X[:, u]) > 0]
    d = len(columns) - 1
    before, found = posteriors(X, y, weights, columns, kind, prior)
    density = np.zeros((len(test), len(found)))
    evidence = 0.0
    shape = prior.shape + d / 2
    for label, (centre, strength, scale, n) in enumerate(found):
        slopes = np.linalg.solve(scale[:d, :d], scale[:d, d])
        spread = scale[d, d] - scale[d, :d] @ slopes
        after = shape + n / 2
        away = test[:, columns] - centre
        leverage = 1 + 1 / strength + np.einsum("ri,ij,rj->r", away[:, :d], np.linalg.inv(scale[:d, :d]), away[:, :d])
        variance = spread / 2 / after * leverage
        density[:, label] = stats.t.logpdf(away[:, d] - away[:, :d] @ slopes, 2 * after, scale=np.sqrt(variance))
        if kind == "own" or label == 0:
            evidence += gammaln(after) - gammaln(shape) - n / 2 * np.log(2 * np.pi)
            evidence += shape * np.log(before[d, d] / 2) - after * np.log(spread / 2)
            evidence += (np.linalg.slogdet(before[:d, :d])[1] - np.linalg.slogdet(scale[:d, :d])[1]) / 2
        if kind != "free" or label == 0:
            evidence += np.log(prior.strength / strength) / 2
    return evidence, density


def brute_force(X, y, test, k_max, weights=None, prior=None):
    """Log mixtures (samples, columns, classes), order probabilities, relevances, and the sum of log evidences."""
    weights = np.ones(len(y)) if weights is None else weights
    p = X.shape[1]
    apart, orders, relevance = np.zeros((len(test), p, y.max() + 1)), np.zeros((p, k_max)), np.zeros(p)
    total = 0.0
    for v in range(p):
        if np.ptp(X[:, v]) == 0:
            continue
        terms = [(order, kind) for kind in KINDS for order in range(min(k_max, v + 1))]
        found = [regression(X, y, weights, test, v, *term, prior or Prior()) for term in terms]
        evidence = np.array([of for of, _ in found])
        weight = evidence - logsumexp(evidence)
        apart[:, v] = logsumexp(weight[:, None, None] + np.array([of for _, of in found]), axis=0)
        for (order, kind), probability in zip(terms, np.exp(weight), strict=True):
            orders[v, order] += probability
            relevance[v] += probability * (kind != "free")
        total += logsumexp(evidence - np.log(len(terms)))
    return apart, orders, relevance, total


def assert_is_brute_force(model, X, y, test, k_max, weights=None, prior=None, tolerance=1e-9):
    apart, orders, relevance, evidence = brute_force(X, y, test, k_max, weights, prior)
    close = {"rtol": tolerance, "atol": tolerance}
    np.testing.assert_allclose(model.contributions(test), apart, **close)
    joint = apart.sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(model.predict_joint_log_proba(test), joint, **close)
    np.testing.assert_allclose(model.order_probability_, orders, **close)
    np.testing.assert_allclose(model.inclusion_probability_, relevance, **close)
    counts = np.bincount(y, weights)
    of_classes = gammaln(0.01 * len(counts)) - gammaln(0.01 * len(counts) + counts.sum())
    of_classes += (gammaln(0.01 + counts) - gammaln(0.01)).sum()
    np.testing.assert_allclose(model.log_evidence_, evidence + of_classes, **close)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 5), st.integers(2, 3))
def test_average_is_brute_force(seed, p, k_max, classes):
    X, y, test = chained(seed, p=p, classes=classes)
    assert_is_brute_force(CGNClassifier(BandAverage(k_max)).fit(X, y), X, y, test, k_max)


def test_weights_and_priors():
    X, y, test = chained(1, classes=3)
    weights = np.random.default_rng(0).uniform(0.2, 3, len(y))
    prior = Prior(strength=2.5, shape=1.7)
    model = CGNClassifier(BandAverage(4), prior=prior).fit(X, y, sample_weight=weights)
    assert_is_brute_force(model, X, y, test, 4, weights, prior)


def test_constant_and_repeated_columns():
    X, y, test = chained(2, p=6)
    for part in (X, test):
        part[:, 2] = 7.0
        part[:, 4] = part[:, 3]
    model = CGNClassifier(BandAverage(4)).fit(X, y)
    assert_is_brute_force(model, X, y, test, 4)
    assert model.inclusion_probability_[2] == 0
    assert not model.order_probability_[2].any()
    assert not model.contributions(test)[:, 2].any()


def test_long_bands_fall_into_stretches_and_batches(monkeypatch):
    monkeypatch.setattr("cgnlearn.networks.lattice.STRETCH", 5)
    monkeypatch.setattr("cgnlearn.networks.lattice.BATCH", 200)
    X, y, test = chained(3, p=14, n_test=45)
    assert_is_brute_force(CGNClassifier(BandAverage(4)).fit(X, y), X, y, test, 4)


def test_rows_far_out_need_the_orders_that_are_improbable():
    """A sample whose parent lies far out is spoken for by the order without it, however little that weighs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 1] = X[:, 0] + 0.5 * X[:, 1]
    test = X[:40].copy()
    test[:, 0] *= np.geomspace(1, 1e60, len(test))
    model = CGNClassifier(BandAverage(2)).fit(X, y)
    assert model.order_probability_[1, 0] < 1e-18
    assert_is_brute_force(model, X, y, test, 2, tolerance=1e-9)
    without = CGNClassifier(Band(1)).fit(X, y).contributions(test)
    assert np.abs(model.contributions(test)[-1, 1] - without[-1, 1]).max() < 60  # the best order is 180 nats away
    assert np.isfinite(model.predict_joint_log_proba(test * 1e200)).all()


def test_discrete_columns_beside(mixed):
    X, y, test = mixed
    model = CGNClassifier(BandAverage(3), categorical_features=[0, 1]).fit(X, y)
    continuous = CGNClassifier(BandAverage(3)).fit(X[:, 2:], y)
    discrete = CGNClassifier(categorical_features=[0, 1]).fit(X[:, :2], y)
    expected = continuous.predict_joint_log_proba(test[:, 2:]) + discrete.predict_joint_log_proba(test[:, :2])
    np.testing.assert_allclose(model.predict_joint_log_proba(test), expected - model.class_log_prior_)
    np.testing.assert_allclose(model.inclusion_probability_, [1, 1, *continuous.inclusion_probability_])
    np.testing.assert_allclose(model.order_probability_, [[1, 0, 0]] * 2 + continuous.order_probability_.tolist())
    np.testing.assert_allclose(
        model.contributions(test).sum(axis=1) + model.class_log_prior_, expected - model.class_log_prior_
    )
    assert set(model.structure_.nodes) == set(range(5))
    only = CGNClassifier(BandAverage(3), categorical_features=[0, 1]).fit(X[:, :2], y)
    np.testing.assert_allclose(only.predict_proba(test[:, :2]), discrete.predict_proba(test[:, :2]))
    np.testing.assert_allclose(only.log_evidence_, discrete.log_evidence_)
    assert only.inclusion_probability_.tolist() == [1, 1]


def test_evidences_ten_thousand_nats_apart_leave_the_best():
    rng = np.random.default_rng(5)
    n = 50_000
    y = np.arange(n) % 2
    first = rng.normal(size=n)
    slope = np.where(y == 0, 1.0, -1.0)  # so that neither sharing nor forgetting the class will do
    X = np.column_stack([first * np.where(y == 0, 1, 5), slope * first + 0.01 * rng.normal(size=n)])
    model = CGNClassifier(BandAverage(2)).fit(X, y)
    best = CGNClassifier(Band(2)).fit(X, y)
    assert best.log_evidence_ - CGNClassifier(Band(1)).fit(X, y).log_evidence_ > 10_000
    assert best.log_evidence_ - CGNClassifier(Band(2), sharing=1.0).fit(X, y).log_evidence_ > 10_000
    test = X[:100] * np.geomspace(0.1, 2, 100)[:, None]
    np.testing.assert_allclose(model.predict_joint_log_proba(test), best.predict_joint_log_proba(test), rtol=1e-6)
    np.testing.assert_allclose(model.predict_proba(test).sum(axis=1), 1)
    np.testing.assert_allclose(model.order_probability_, [[1, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(model.inclusion_probability_, [1, 1])
    assert model.structure_.parents == {0: (), 1: (0,)}


def test_a_scale_that_rounding_has_made_singular_loses_orders_only(monkeypatch):
    monkeypatch.setattr("cgnlearn.networks.prior.LEAST_SCALE", 0.0)
    X, y, test = chained(6, p=5)
    for part in (X, test):
        part[:, 3] = part[:, 2]
    model = CGNClassifier(BandAverage(4), prior=Prior(scale=np.full(5, 1e-30))).fit(X, y)
    assert np.isfinite(model.predict_joint_log_proba(test)).all()
    np.testing.assert_allclose(model.order_probability_.sum(axis=1), 1)


# ---- what every structure has to do


def test_partial_fit_is_fit():
    X, y, test = chained(7)
    whole = CGNClassifier(BandAverage(3)).fit(X, y)
    parts = CGNClassifier(BandAverage(3))
    for rows in (slice(0, 7), slice(7, None)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
        np.testing.assert_allclose(parts.predict_proba(test).sum(axis=1), 1)
    np.testing.assert_allclose(parts.predict_joint_log_proba(test), whole.predict_joint_log_proba(test), rtol=1e-10)
    np.testing.assert_allclose(parts.inclusion_probability_, whole.inclusion_probability_, rtol=1e-9)


def test_save_and_load(tmp_path):
    X, y, test = chained(8)
    model = CGNClassifier(BandAverage(3)).fit(X, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_joint_log_proba(test), model.predict_joint_log_proba(test))
    np.testing.assert_array_equal(again.order_probability_, model.order_probability_)


def test_a_weight_of_two_is_the_row_twice():
    X, y, test = chained(9)
    twice = np.arange(len(y)) % 3 == 0
    weighted = CGNClassifier(BandAverage(3)).fit(X, y, sample_weight=1 + twice)
    repeated = CGNClassifier(BandAverage(3)).fit(np.concatenate([X, X[twice]]), np.concatenate([y, y[twice]]))
    np.testing.assert_allclose(
        weighted.predict_joint_log_proba(test), repeated.predict_joint_log_proba(test), rtol=1e-9
    )


def test_structure_has_the_most_probable_orders():
    X, y, _ = chained(10)
    model = CGNClassifier(BandAverage(3)).fit(X, y)
    orders = model.order_probability_.argmax(axis=1)
    assert model.structure_.parents == {v: tuple(range(v - j, v)) for v, j in enumerate(orders.tolist())}
    assert model.n_parameters_ == 1 + 2 * sum(2 + j for j in orders.tolist())


@pytest.mark.slow
@parametrize_with_checks(
    [CGNClassifier(BandAverage(3))],
    expected_failed_checks=lambda _: {
        "check_estimators_pickle": "several k at once need complete samples: no missing values"
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"estimation": "ml"}, 'needs estimation="bayes"'),
        ({"prior": Prior(location="cell")}, 'location that is "pooled" or an array'),
        ({"prior": Prior(location="paper")}, 'location that is "pooled" or an array'),
        ({"sharing": 0.5}, "leave sharing at 0"),
        ({"structure": BandAverage(0)}, "k_max must be a whole number of at least 1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_invalid_settings_raise(parameters, words):
    X, y, _ = chained()
    with pytest.raises(ValueError, match=words):
        CGNClassifier(**{"structure": BandAverage(3)} | parameters).fit(X, y)


def test_leave_one_out_needs_folds():
    X, y, _ = chained()
    model = CGNClassifier(BandAverage(3), likelihood_power="cv").fit(X, y)
    assert list(model.cv_results_["validation"]) == ["5 folds"]
    with pytest.raises(NotExactError, match="use folds"):
        model.leave_one_out_log_proba(X, y)


def test_no_orders_of_one_structure():
    X, y, _ = chained()
    with pytest.raises(AttributeError, match="inclusion_probability_ exists only for an average"):
        _ = CGNClassifier(Band(2)).fit(X, y).inclusion_probability_


@pytest.mark.parametrize("seed", range(3))
def test_relevance_is_high_where_simulated_spectra_differ(seed):
    spectra = make_spectra(200, 400, n_peaks=20, n_markers=6, random_state=seed)
    model = CGNClassifier(BandAverage(10)).fit(spectra.data, spectra.target)
    time, markers = np.sqrt(spectra.mz), np.sqrt(spectra.peaks[spectra.effects != 0])
    distance = np.abs(time - markers[:, None]) / np.maximum(0.004 * markers, time[1] - time[0])[:, None]
    for near in distance < 2:
        assert model.inclusion_probability_[near].max() > 0.9
    away = model.inclusion_probability_[(distance > 6).all(axis=0)]
    assert np.median(away) < 0.2
    assert away.mean() < 0.5 * model.inclusion_probability_[(distance < 2).any(axis=0)].mean()
