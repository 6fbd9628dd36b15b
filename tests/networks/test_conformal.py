"""p-values of full conformal prediction against brute-force refits, and their guarantee."""

from dataclasses import replace

import numpy as np
import pytest

from cgnlearn import CGNClassifier, Prior
from cgnlearn.networks.conformal import full_p_values, held_out, held_out_p_values, p_value


def data(n=24, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 3)) + 0.8 * y[:, None], y


def brute_force(X, y, x, label, **settings):
    """ln p(label | x) of each sample of the augmented set, by refits without it under the prior of all of them."""
    X, y = np.vstack([X, x]), np.append(y, label)
    prior = Prior(location=X.mean(axis=0), scale=X.var(axis=0))
    found = []
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        model = CGNClassifier(prior=prior, **settings).fit(X[others], y[others])
        found.append(model.predict_log_proba(X[[i]])[0, y[i]])
    return np.array(found)


@pytest.mark.parametrize(("structure", "sharing"), [("naive_bayes", 0.0), ("complete", 0.3)])
def test_conformities_are_those_of_refits(structure, sharing):
    X, y = data()
    new = np.random.default_rng(1).normal(size=(3, 3)) + 1
    model = CGNClassifier(structure, sharing=sharing).fit(X, y)
    table, found = model._table(new), model.conformal_p_values(new)
    for row in range(len(new)):
        for label in range(3):
            expected = brute_force(X, y, new[row], label, structure=structure, sharing=sharing)
            one = replace(table.rows(np.array([row])), labels=np.array([label]))
            together = model._table(np.vstack([X, new[row]]), np.append(y, label))
            conformity = held_out(model._model_with(one), together, 1.0)[np.arange(25), together.labels]
            np.testing.assert_allclose(conformity, expected, rtol=0, atol=1e-9)
            same = y == label
            assert found[row, label] == ((expected[:-1][same] <= expected[-1]).sum() + 1) / (same.sum() + 1)


@pytest.mark.parametrize("per_class", [True, False])
def test_the_true_class_has_a_low_p_value_no_more_often_than_it_should(per_class):
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        y = np.arange(22) % 2
        X = rng.normal(size=(22, 2)) ** 3 + y[:, None]  # far from normal: the guarantee needs no model
        model = CGNClassifier().fit(X[:20], y[:20])
        p = model.conformal_p_values(X[20:], per_class=per_class)
        found += p[[0, 1], y[20:]].tolist()
    share = np.mean(np.array(found) <= 0.2)
    assert share <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / len(found))
    assert share >= 0.2 - 1 / 11 - 3 * np.sqrt(0.2 * 0.8 / len(found))  # p-values are multiples of 1/11 or 1/21


def test_ties_and_infinite_conformities_count():
    assert p_value(np.array([-1.0, -1.0, -2.0]), -1.0) == 1.0
    assert p_value(np.array([-1.0, -1.0, -2.0]), -np.inf) == 0.25
    assert p_value(np.zeros(0), -1.0) == 1.0


def test_p_values_of_held_out_samples():
    log_proba = np.log([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    labels = np.array([0, 0, 1, 1])
    new = np.log([[0.7, 0.3], [0.1, 0.9]])
    np.testing.assert_allclose(held_out_p_values(log_proba, labels, new, True), [[2 / 3, 1 / 3], [1 / 3, 1.0]])
    np.testing.assert_allclose(held_out_p_values(log_proba, labels, new, False), [[3 / 5, 1 / 5], [1 / 5, 1.0]])


def test_a_model_without_leave_one_out_treats_all_samples_alike():
    X, y = data(12)
    model = CGNClassifier("tan_average").fit(X, y)
    found = full_p_values(model._samples, model._table(X[:2] + 0.1), model._model_with, 1.0, per_class=False)
    assert found.shape == (2, 3)
    assert ((found * 13).round(9) % 1 == 0).all()
