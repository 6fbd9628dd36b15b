"""Regression of one score against a general optimiser, refits, and the regression of two classes."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.datasets import load_wine

from cgnlearn.data.table import read_training
from cgnlearn.logistic import ordinal, path
from cgnlearn.logistic.design import Design
from cgnlearn.logistic.optimiser import Samples
from cgnlearn.logistic.path import penalties
from cgnlearn.logistic.uncertainty import Curved

from .samples import log_proba, random_samples


def in_order(rng, n=60, n_classes=4, n_features=5, signal=2.0):
    """Samples of classes along one direction of the features."""
    X = rng.normal(size=(n, n_features))
    score = signal * X @ np.linspace(1, -1, n_features) + rng.logistic(size=n)
    labels = np.argsort(np.argsort(score)) * n_classes // n
    return Samples.of(X, labels, rng.uniform(0.5, 2.0, n), np.log(np.full(n_classes, 1 / n_classes)), None)


def oracle(samples, X, penalty, start):
    """Least loss over scores and weights of the classes of any length, by a general optimiser."""
    n_classes = samples.n_contrasts + 1

    def loss(parameters):
        slopes, of_classes, intercept = np.split(parameters, [X.shape[1], X.shape[1] + n_classes])
        of_classes = of_classes - of_classes.mean()
        log_proba = log_softmax(np.outer(X @ slopes, of_classes) + intercept, axis=1)
        size = (slopes @ slopes) * (of_classes @ of_classes)
        truth = log_proba[np.arange(len(X)), samples.labels]
        return penalty / 2 * size - samples.weights @ truth

    return minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).fun


@pytest.mark.parametrize("penalty", [0.05, 1.0, 20.0])
def test_a_fit_has_the_least_loss_that_a_general_optimiser_finds(rng, penalty):
    samples = in_order(rng)
    (point,) = list(ordinal.fits(samples, [penalty]))
    found = samples.loss(point, penalty, log_proba(samples, point))
    X = samples.design[:, 1:]
    others = [oracle(samples, X, penalty, rng.normal(size=X.shape[1] + 8)) for _ in range(5)]
    assert found == pytest.approx(min(others), abs=1e-4)
    assert np.linalg.matrix_rank(point.slopes[1:], tol=1e-8) == 1


def test_of_two_classes_it_is_the_ordinary_regression(rng):
    samples = random_samples(rng, n_classes=2, offset=False)
    tried = penalties(samples)
    for ours, theirs in zip(ordinal.fits(samples, tried), path.fits(samples, tried), strict=True):
        np.testing.assert_allclose(samples.contrasts(ours), samples.contrasts(theirs), atol=2e-3)


def test_leave_one_out_in_one_step_is_that_of_refits(rng):
    samples = in_order(rng, n=80, n_classes=3)
    every = np.arange(80)
    tried = [20.0, 3.0, 0.5]
    refits = np.empty((3, 80, 3))
    for i in every:
        rest, one = samples.rows(every != i), samples.rows(every == i)
        for k, point in enumerate(ordinal.fits(rest, tried)):
            refits[k, i] = log_proba(one, point)[0]
    steps = list(ordinal.steps(samples, tried, lambda log_proba: 0.0))
    assert [step.held_out_by for step in steps] == ["leave-one-out"] * 3
    truth = every, samples.labels
    for step, expected in zip(steps, refits, strict=True):
        error = step.log_proba[truth] - expected[truth]
        fitted_error = log_proba(samples, step.point)[truth] - expected[truth]
        assert np.abs(error).mean() < 0.1 * np.abs(fitted_error).mean()


def test_with_few_samples_to_a_parameter_held_out_predictions_are_those_of_folds(rng):
    samples = in_order(rng, n=24, n_features=12)
    tried = penalties(samples)
    steps = list(ordinal.steps(samples, tried, lambda log_proba: 0.0))
    by_folds = [i for i, step in enumerate(steps) if step.held_out_by == "5 folds"]
    assert by_folds
    assert by_folds == list(range(by_folds[0], len(steps)))
    _, test = path.stratified(samples.labels, path.N_FOLDS, 0).pairs[0]
    train = np.setdiff1d(np.arange(24), test)
    own = list(ordinal.fits(samples.rows(train), tried))[by_folds[-1]]
    np.testing.assert_allclose(steps[by_folds[-1]].log_proba[test], log_proba(samples.rows(test), own))


def test_features_that_say_nothing_and_a_class_of_one_sample(rng):
    labels = np.array([0, 1, 2, 3] * 8 + [4])
    samples = Samples.of(np.zeros((33, 0)), labels, None, np.log(np.full(5, 0.2)), None)
    assert [np.isfinite(point.slopes).all() for point in ordinal.fits(samples, [1.0])] == [True]
    samples = Samples.of(rng.normal(size=(33, 3)), labels, None, np.log(np.full(5, 0.2)), None)
    for step in ordinal.steps(samples, penalties(samples), lambda log_proba: 0.0):
        assert np.isfinite(step.log_proba).all()


def wine(n_features, n_classes):
    X, y = load_wine(return_X_y=True)
    kept = y < n_classes
    table, _ = read_training(X[kept, :n_features], y[kept])
    return Design.of(X[kept, :n_features].copy(), table, np.log(np.bincount(y[kept]) / kept.sum()))


def test_how_certain_two_classes_are_is_as_in_the_ordinary_regression():
    design = wine(6, 2)
    (point,) = ordinal.fits(design.samples, [5.0])
    proba = np.exp(log_proba(design.samples, point))
    found = ordinal.certainty(design, design.odds([point])[0], proba, 5.0, 2.0)
    np.testing.assert_allclose(found.inverse, Curved.of(design, proba, 5.0, None, 2.0).inverse, rtol=1e-6, atol=1e-9)


def test_how_certain_a_score_is_follows_the_deviations_of_simulated_fits(rng):
    design = wine(4, 3)
    samples, n = design.samples, len(design.samples.labels)
    (point,) = ordinal.fits(samples, [0.05])
    proba = np.exp(log_proba(samples, point))
    certain = ordinal.certainty(design, design.odds([point])[0], proba, 0.05, 1.0)
    new = design.samples.design[:20]
    values = new[:, 1:] * np.where(np.isfinite(design.scale), design.scale, 1.0) + design.centre
    variance = np.einsum("saa->sa", certain.covariance(values))
    drawn = []
    for _ in range(200):
        labels = (proba.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
        again = Samples.of(samples.design[:, 1:], labels, None, np.log(np.bincount(labels, minlength=3) / n), None)
        (own,) = ordinal.fits(again, [0.05])
        drawn.append(new @ own.slopes + again.log_prior)
    ratio = variance / np.var(drawn, axis=0)
    assert 0.8 < np.exp(np.log(ratio).mean()) < 1.5  # a posterior has the width of the prior besides
