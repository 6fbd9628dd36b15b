"""The path of penalties: where it begins, where it ends, and leave-one-out in one step against refits."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.datasets import load_iris, load_wine

from cgnlearn import CGNClassifierCV
from cgnlearn.data.splits import stratified
from cgnlearn.logistic import optimiser, path
from cgnlearn.logistic.optimiser import Samples, fitted
from cgnlearn.logistic.path import fits, leave_one_out, penalties, steps

from .samples import discriminative, log_proba, random_samples, samples_of


def regression(X, labels, offset=None, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    return Samples.of(X, labels, weights, np.log(np.bincount(labels) / len(labels)), offset)


def telling(rng, n=200, n_features=4, signal=1.0):
    """Samples whose first feature says something of their class."""
    X = rng.normal(size=(n, n_features))
    return X, (rng.uniform(size=n) < 1 / (1 + np.exp(-signal * X[:, 0]))).astype(int)


def log_likelihoods(samples, found):
    return np.array([step.log_proba[np.arange(len(samples.labels)), samples.labels].sum() for step in found])


def test_the_strongest_penalty_leaves_one_and_a_half_parameters_and_the_weakest_is_a_thousandth(rng):
    samples = regression(*telling(rng, 60, 30))
    found = penalties(samples)
    assert len(found) == 10
    squares = np.linalg.svd(samples.design[:, 1:], compute_uv=False) ** 2 / 2
    assert (squares / (squares + found[0])).sum() == pytest.approx(1.5)
    assert found[-1] == pytest.approx(1e-3)
    np.testing.assert_allclose(np.diff(np.log(found)), np.log(found[1] / found[0]))


def test_of_many_samples_no_penalty_hides_what_they_say(rng):
    samples = regression(*telling(rng, 3000))
    found = penalties(samples)
    assert found[0] <= np.square(samples.design[:, 1:]).sum(axis=1).mean() / 0.2**2
    assert len(found) < 8


def test_an_offset_is_tried_alone_and_no_features_leave_no_path(rng):
    X, y = telling(rng)
    offset = rng.normal(size=(200, 2))
    assert penalties(regression(X, y, offset)) == [np.inf, *penalties(regression(X, y))]
    assert penalties(regression(X[:, :0], y, offset)) == [np.inf]
    assert penalties(regression(X[:, :0], y)) == []
    assert list(steps(regression(X[:, :0], y), [])) == []
    light = penalties(regression(X, y, weights=np.full(200, 1e-8)))
    np.testing.assert_allclose(light, 1e-8 * np.array(penalties(regression(X, y))), rtol=1e-6)


def test_one_column(rng):
    X, y = telling(rng, n_features=1)
    samples = regression(X, y)
    found = list(steps(samples, penalties(samples)))
    assert len(found) > 3
    assert {step.held_out_by for step in found} == {"leave-one-out"}


def test_every_fit_is_the_one_that_starts_at_zero(rng):
    samples = regression(*telling(rng))
    tried = penalties(samples)
    for held_out, point, penalty in zip(steps(samples, tried), fits(samples, tried), tried, strict=False):
        directly = samples.contrasts(fitted(samples, penalty, samples.origin))
        np.testing.assert_allclose(samples.contrasts(point), directly, atol=1e-5)
        np.testing.assert_allclose(samples.contrasts(held_out.point), directly, atol=1e-5)


def test_the_path_ends_ten_nats_behind_its_best(rng, monkeypatch):
    X, y = telling(rng, 60, 40, signal=0.5)
    samples = regression(X, y)
    tried = penalties(samples)
    found = list(steps(samples, tried))
    values = log_likelihoods(samples, found)
    assert 2 < len(found) < len(tried)
    assert values[-1] < values.max() - 10
    assert (values[:-1] >= np.maximum.accumulate(values[:-1]) - 10).all()
    given = list(steps(samples, tried, lambda log_proba: 0.0))  # by which none is hopeless
    assert len(given) > len(found)
    monkeypatch.setattr(path, "MANY_SAMPLES", 59)
    assert len(list(steps(samples, tried, lambda log_proba: 0.0))) == len(found)  # tempered they gain nothing
    gains = count()
    assert len(list(steps(samples, tried, lambda log_proba: float(next(gains))))) == len(given)
    monkeypatch.setattr(path, "HOPELESS", np.inf)
    assert len(list(steps(samples, tried))) == len(given)


def test_the_path_ends_where_two_penalties_say_the_same(rng, monkeypatch):
    samples = regression(*telling(rng, 300, 2))
    tried = penalties(samples)
    found = list(steps(samples, tried))
    assert len(found) < len(tried)
    moved = np.abs(np.diff(log_likelihoods(samples, found)))
    assert moved[-1] < 0.1
    monkeypatch.setattr(path, "ALIKE", 0.0)
    assert len(list(steps(samples, tried))) == len(tried)


def test_strong_penalties_that_leave_an_offset_as_it_is_do_not_end_the_path(rng):
    X, y = telling(rng, 300, 2, signal=2.0)
    samples = regression(X, y, np.column_stack([np.zeros(300), 0.1 * X[:, 0]]))
    tried = [np.inf, 1e7, 1e6, 1e5, 10.0, 1.0]
    found = list(steps(samples, tried))
    assert [step.penalty for step in found] == tried
    values = log_likelihoods(samples, found)
    assert np.abs(np.diff(values[:3])).max() < 0.1
    assert values[-1] > values[0] + 10


def test_where_there_are_few_samples_to_a_parameter_folds_hold_out(rng):
    X, y = telling(rng, 40, 20, signal=3.0)
    samples = regression(X, y)
    found = list(steps(samples, penalties(samples), lambda log_proba: 0.0))
    by = [step.held_out_by for step in found]
    assert by[0] == "leave-one-out"
    first = by.index("5 folds")
    assert set(by[first:]) == {"5 folds"}
    for step in found[first:]:
        for train, test in stratified(samples.labels, 5, 0).pairs:
            point = fitted(samples.rows(train), step.penalty, samples.origin)
            np.testing.assert_allclose(log_proba(samples, point)[test], step.log_proba[test], rtol=2e-3, atol=2e-3)


def test_samples_to_a_parameter_are_counted_not_weighed(rng):
    X, y = telling(rng, 40, 20, signal=3.0)
    plain = regression(X, y)
    heavy = replace(plain, weights=np.full(40, 100.0))
    by = [[step.held_out_by for step in steps(each, penalties(each))] for each in (plain, heavy)]
    assert "5 folds" in by[0]
    assert "5 folds" in by[1]
    assert heavy.effective_weights.sum() == pytest.approx(40)


def test_no_class_with_two_samples_has_no_folds(rng):
    samples = regression(rng.normal(size=(3, 5)), np.arange(3))
    assert {step.held_out_by for step in steps(samples, [1.0, 0.01])} == {"leave-one-out"}


@pytest.mark.filterwarnings("ignore:sample_weight counts samples")
def test_weights_of_noise_promise_nothing(rng):
    """Heavy samples are not predicted by their own weight."""
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    found = []
    for weight in (1.0, 10.0, 1000.0):
        weights = np.full(40, weight)
        mixture = CGNClassifierCV(candidates=["naive_bayes", "logistic"], transforms=["none"]).fit(
            X, y, sample_weight=weights
        )
        candidates = mixture.cv_results_["param_terms"] == "linear"
        corrected = discriminative().fit(X, y, sample_weight=weights).discriminative_
        found.append((mixture.cv_results_["mean_test_log_loss"][candidates].min(), corrected.held_out_log_loss.min()))
    assert np.ptp(found, axis=0).max() < 0.02
    assert np.min(found) > 0.68


def test_held_out_predictions_are_normalised(rng):
    samples = random_samples(rng)
    for step in steps(samples, penalties(samples)):
        np.testing.assert_allclose(logsumexp(step.log_proba, axis=1), 0, atol=1e-12)


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
