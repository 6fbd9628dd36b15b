"""The penalised loss against finite differences, and its optimum against scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from cgnlearn.logistic import optimiser
from cgnlearn.logistic.optimiser import Curvature, Point, Samples, fitted
from cgnlearn.logistic.path import leave_one_out

from .samples import log_proba, random_samples


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_penalty_and_offset_it_is_logistic_regression(n_classes):
    """Of two or three overlapping classes, for which the optimum is finite."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % n_classes
    X = rng.normal(size=(300, 4)) * [1, 10, 0.1, 1] + 0.5 * y[:, None] * [1, 0, 0.1, -1] + [0, 100, 0, 0]
    scaled = StandardScaler().fit_transform(X)
    samples = Samples.of(scaled, y, np.ones(300), np.zeros(n_classes), None)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(scaled, y)
    found = log_proba(samples, fitted(samples, 0.0, samples.origin))
    np.testing.assert_allclose(found, theirs.predict_log_proba(scaled), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradient_and_hessian(n_classes, rng):
    samples = random_samples(rng, n_classes=n_classes)
    shape = samples.origin.slopes.T.shape

    def point(parameters):
        return Point(parameters[:-1].reshape(shape).T, parameters[-1])

    def loss(parameters):
        return samples.loss(point(parameters), 0.7, log_proba(samples, point(parameters)))

    def gradient(parameters):
        return samples.gradient(point(parameters), 0.7, np.exp(log_proba(samples, point(parameters))))

    at = rng.normal(size=samples.n_parameters)
    assert check_grad(loss, gradient, at) < 1e-4 * np.abs(gradient(at)).max()
    step = 1e-5
    columns = [(gradient(at + step * unit) - gradient(at - step * unit)) / (2 * step) for unit in np.eye(len(at))]
    found = samples.hessian(samples.curvature(np.exp(log_proba(samples, point(at)))), 0.7)
    np.testing.assert_allclose(found, columns, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("powers", [(0.0, 1.0), (0.0, 0.1), (0.9, 1.0), (0.4, 0.4)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_both_optimisers_find_the_optimum(powers, n_classes, rng, monkeypatch):
    samples = replace(random_samples(rng, n_classes=n_classes), powers=powers)
    newton = fitted(samples, 0.3, samples.origin)
    assert powers[0] <= newton.power <= powers[1]
    gradient = samples.gradient(newton, 0.3, np.exp(log_proba(samples, newton)))
    np.testing.assert_allclose(gradient[:-1], 0, atol=1e-4)
    if newton.power > powers[0]:
        assert gradient[-1] < 1e-6  # less would be no better
    if newton.power < powers[1]:
        assert gradient[-1] > -1e-6  # nor more
    monkeypatch.setattr(optimiser, "MOST_DENSE", 0)
    other = fitted(samples, 0.3, samples.origin)
    np.testing.assert_allclose(samples.contrasts(other), samples.contrasts(newton), atol=2e-3)


@pytest.mark.parametrize("penalty", [0.3, 1e-3, 300.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_curvature_nearby_leads_to_the_same_optimum(n_classes, penalty, rng):
    samples = random_samples(rng, n_classes=n_classes, offset=False)
    start = fitted(samples, 1.0, samples.origin)
    by_products = fitted(samples, penalty, start, leave_one_out(samples, 1.0, start).curvature)
    gradient = samples.gradient(by_products, penalty, np.exp(log_proba(samples, by_products)))
    assert np.abs(gradient[:-1]).max() < 1e-4
    directly = fitted(samples, penalty, start)
    np.testing.assert_allclose(samples.contrasts(by_products), samples.contrasts(directly), atol=1e-5)


def test_a_curvature_that_is_too_far_away_is_given_up(rng, monkeypatch):
    samples = random_samples(rng, offset=False)
    near = Curvature(np.diag(np.geomspace(1e-6, 1e6, samples.n_parameters - 1)), 1.0)
    monkeypatch.setattr(optimiser, "MOST_PRODUCTS", 2)
    found = fitted(samples, 1.0, samples.origin, near)
    directly = fitted(samples, 1.0, samples.origin)
    np.testing.assert_allclose(samples.contrasts(found), samples.contrasts(directly), atol=1e-8)


def test_an_infinite_penalty_leaves_the_offset_and_the_intercept(rng):
    samples = random_samples(rng)
    found = fitted(samples, np.inf, samples.origin)
    assert not found.slopes[1:].any()
    strong = fitted(samples, 1e9, samples.origin)
    np.testing.assert_allclose(samples.contrasts(found), samples.contrasts(strong), atol=1e-6)


@pytest.mark.parametrize("offset", [True, False])
def test_a_weight_of_two_is_a_sample_twice(offset, rng):
    samples = random_samples(rng, offset=offset)
    weights = rng.integers(1, 4, 40)
    weighted = replace(samples, weights=weights.astype(float))
    repeated = replace(samples, weights=np.ones(40)).rows(np.repeat(np.arange(40), weights))
    once, twice = (fitted(each, 0.5, each.origin) for each in (weighted, repeated))
    np.testing.assert_allclose(once.slopes, twice.slopes, atol=1e-8)
    assert once.power == pytest.approx(twice.power, abs=1e-8)
