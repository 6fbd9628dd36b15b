"""Fits to several parts of the samples at once, against fits one by one and a general minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from cgnlearn.logistic import parts
from cgnlearn.logistic.optimiser import Point, fitted
from cgnlearn.logistic.parts import fitted_parts
from tests.logistic.samples import random_samples


def parts_of(samples, n_parts):
    """Weights of all samples, and of all without some."""
    left = np.random.default_rng(1).random((len(samples.weights), n_parts)) < 0.7
    left[:, 0] = True
    return samples.weights[:, None] * left


def start_of(samples, n_parts):
    return np.zeros((samples.design.shape[1], n_parts, samples.n_contrasts))


@pytest.mark.parametrize("penalty", [3.0, 0.1, 1e-3])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_every_part_is_fitted_as_if_alone(n_classes, penalty, rng):
    samples = random_samples(rng, 80, n_classes, offset=False)
    weights = parts_of(samples, 4)
    found = fitted_parts(samples, weights, penalty, start_of(samples, 4))
    for part in range(4):
        rows = np.flatnonzero(weights[:, part])
        alone = fitted(samples.rows(rows), penalty, samples.origin)
        here = samples.contrasts(Point(found[:, part], 0.0))
        np.testing.assert_allclose(here, samples.contrasts(alone), atol=2e-3)


def test_the_optimum_against_a_general_minimiser(rng):
    samples = random_samples(rng, 60, 3, offset=False)
    weights, penalty = parts_of(samples, 2), 0.5
    found = fitted_parts(samples, weights, penalty, start_of(samples, 2))
    simplex = np.linalg.svd(np.ones((1, 3)))[2][1:]  # orthonormal rows of sum 0, other than those of the package
    prior = log_softmax(log_proba_of_nothing(samples))

    def loss(flat, own):
        slopes = flat.reshape(-1, 2) @ simplex
        truth = log_softmax(samples.design @ slopes + prior, axis=1)[np.arange(60), samples.labels]
        return 0.5 * penalty * np.square(slopes[1:]).sum() - own @ truth

    for part, own in enumerate(weights.T):
        least = minimize(loss, np.zeros(10), args=(own,), method="BFGS", options={"gtol": 1e-7})
        here = samples.log_proba(samples.contrasts(Point(found[:, part], 0.0)))
        there = log_softmax(samples.design @ (least.x.reshape(-1, 2) @ simplex) + prior, axis=1)
        np.testing.assert_allclose(here, there, atol=2e-3)


def log_proba_of_nothing(samples):
    return samples.log_proba(np.array([samples.log_prior]))[0]


def test_parts_in_groups_are_the_same(rng, monkeypatch):
    samples = random_samples(rng, 40, 3, offset=False)
    weights = parts_of(samples, 5)
    at_once = fitted_parts(samples, weights, 0.2, start_of(samples, 5))
    monkeypatch.setattr(parts, "MOST_NUMBERS", 250)
    np.testing.assert_allclose(fitted_parts(samples, weights, 0.2, start_of(samples, 5)), at_once, atol=2e-3)


def test_separated_classes_and_weak_penalties_end(rng):
    samples = random_samples(rng, 12, 2, n_features=30, offset=False)
    found = fitted_parts(samples, parts_of(samples, 3), 1e-3, start_of(samples, 3))
    assert np.isfinite(found).all()
    for part in range(3):
        log_proba = samples.log_proba(samples.contrasts(Point(found[:, part], 0.0)))
        inside = parts_of(samples, 3)[:, part] > 0
        assert (log_proba.argmax(axis=1) == samples.labels)[inside].all()
