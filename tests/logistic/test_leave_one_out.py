"""Leave-one-out in one step against refits."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine

from cgnlearn.logistic import optimiser
from cgnlearn.logistic.leave_one_out import leave_one_out
from cgnlearn.logistic.optimiser import fitted

from .samples import log_proba, random_samples, samples_of


def refits(samples, penalty, start):
    """Log probabilities of every sample by a fit without it."""
    n = len(samples.labels)
    others = (fitted(samples.rows(np.flatnonzero(np.arange(n) != i)), penalty, start) for i in range(n))
    return np.array([log_proba(samples, point)[i] for i, point in enumerate(others)])


@pytest.mark.parametrize("load_data", [load_wine, load_iris])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize(
    ("powers", "step", "most"),
    [
        ((0.0, 0.0), 2, 0.001),  # logistic regression, of which the published figures are
        ((0.0, 1.0), 1, 0.003),  # a free likelihood power, which nothing penalises, moves farther than one step tells
    ],
)
def test_leaving_one_out_against_refits(load_data, sharing, powers, step, most):
    X, y = (part[::step] for part in load_data(return_X_y=True))
    samples = replace(samples_of(X, y, sharing=sharing), powers=powers)
    whole = fitted(samples, 1 / 0.3, samples.origin)

    def log_loss(log_proba):
        return -log_proba[np.arange(len(y)), y].mean()

    exact = log_loss(refits(samples, 1 / 0.3, whole))
    found = log_loss(leave_one_out(samples, 1 / 0.3, whole).log_proba)
    assert abs(found - exact) < most
    assert abs(found - exact) < 0.3 * abs(log_loss(log_proba(samples, whole)) - exact)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_sample_is_left_out_with_all_its_weight(n_classes, rng):
    samples = random_samples(rng, n=120, n_classes=n_classes)
    samples = replace(samples, weights=rng.choice([0.3, 1.0, 10.0], 120))
    point = fitted(samples, 3.0, samples.origin)
    exact, found = refits(samples, 3.0, point), leave_one_out(samples, 3.0, point).log_proba
    moved = np.abs(exact - log_proba(samples, point)).max(axis=1)
    heavy = samples.weights == 10
    assert np.abs(found - exact).max(axis=1)[heavy].mean() < 0.25 * moved[heavy].mean()


def test_contrasts_taken_apart_still_tell_what_a_held_out_sample_costs(rng, monkeypatch):
    samples = replace(random_samples(rng, n=90), weights=np.ones(90))
    point = fitted(samples, 2.0, samples.origin)
    at = np.arange(90), samples.labels
    whole, seen = leave_one_out(samples, 2.0, point).log_proba[at].mean(), log_proba(samples, point)[at].mean()
    monkeypatch.setattr(optimiser, "MOST_DENSE", 0)
    assert abs(leave_one_out(samples, 2.0, point).log_proba[at].mean() - whole) < 0.25 * (seen - whole)
