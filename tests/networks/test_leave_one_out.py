"""Leave-one-out in closed form against n refits, with the prior held."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgnlearn import Band, Box, CGNClassifier, Prior, Structure
from cgnlearn.data.table import read_training
from cgnlearn.networks.estimation import Bayes
from cgnlearn.networks.statistics import collect
from cgnlearn.structures.band import EveryK, every_family
from tests.solvers import COMPILED, SOLVERS, lattice_where_it_can, network

HELD = Prior(location=[0.3, -1.0, 0.5, 2.0, 60.0], scale=[1.0, 1.0, 0.8, 1.5, 90.0], strength=1.5, shape=1.3)
STRUCTURES = {
    "naive": {0: [], 1: [], 2: [], 3: [], 4: []},
    "cells": {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 2, 3]},
    "chain": {0: [], 1: [0], 2: [], 3: [2], 4: [3]},
    "cut": {1: [], 2: [1], 3: [2], 4: [1, 2, 3]},
    "complete": Structure.jan([range(5)]),
}


def data(seed, n=24, n_classes=3):
    """Every level in every class, so that a refit without one sample knows them all."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    first, second = (np.arange(n) // n_classes) % 2, (np.arange(n) // n_classes) % 3
    X = rng.normal(size=(n, 3)) + y[:, None] * [0.5, -0.3, 0.1] + first[:, None]
    X[:, 2] = 60 + 9 * X[:, 2]
    return np.column_stack([first, second, X]).astype(float), y, rng.uniform(0.5, 2.0, n)


def refitted(model, X, y, weights=None):
    """Each sample's log joint by a model of the others."""
    found = []
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        part = CGNClassifier(**model.get_params(deep=False))
        part.partial_fit(
            X[kept], y[kept], classes=np.unique(y), sample_weight=None if weights is None else weights[kept]
        )
        found.append(part.predict_joint_log_proba(X[i : i + 1])[0])
    return np.array(found)


def joint(model, X, y, weights=None, solver=None):
    found = (model._model if solver is None else network(model, solver)).leave_one_out(model._table(X, y, weights))
    return model.likelihood_power_ * found.log_likelihood + found.class_log_prior


def assert_same(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_bayes_equals_refits(structure, sharing, weighted):
    X, y, weights = data(0)
    weights = weights if weighted else None
    model = CGNClassifier(STRUCTURES[structure], sharing=sharing, prior=HELD, categorical_features=[0, 1])
    expected = refitted(model, X, y, weights)
    assert_same(joint(model.fit(X, y, weights), X, y, weights), expected)
    assert_same(joint(model, X, y, weights, COMPILED), expected)


@given(st.integers(0, 10**6), st.sampled_from(list(STRUCTURES)), st.floats(0, 1), st.booleans())
def test_bayes_equals_refits_on_any_data(seed, structure, sharing, uniform):
    X, y, weights = data(seed, n=15)
    model = CGNClassifier(
        STRUCTURES[structure], sharing=sharing, prior=HELD, class_prior="uniform" if uniform else None,
        likelihood_power=0.7, categorical_features=[0, 1],
    )  # fmt: skip
    assert_same(joint(model.fit(X, y, weights), X, y, weights), refitted(model, X, y, weights))


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("estimation", ["bayes", "ml"])
def test_centred_at_the_cells(sharing, estimation):
    """Location "cell" and maximum likelihood, whose centres forget the sample altogether."""
    X, y, weights = data(1, n=45)
    X = X[:, 2:]
    prior = Prior(location="cell", scale=[0.8, 1.5, 90.0])
    for structure in ("naive_bayes", "complete", {0: [], 1: [0], 2: [0]}):
        model = CGNClassifier(structure, sharing=sharing, estimation=estimation, prior=prior).fit(X, y, weights)
        assert_same(joint(model, X, y, weights), refitted(model, X, y, weights))


@pytest.mark.parametrize("sharing", [0.0, 0.4, 1.0])
def test_small_classes(sharing):
    X, y, _ = data(2, n=9)
    y = np.array([0, 0, 0, 0, 0, 0, 1, 1, 2])  # two samples, one sample
    held = Prior(location=HELD.location[2:], scale=HELD.scale[2:])
    model = CGNClassifier("complete", sharing=sharing, prior=held).fit(X[:, 2:], y)
    assert_same(joint(model, X[:, 2:], y), refitted(model, X[:, 2:], y))
    for prior in (Prior(), Prior(location="cell")):  # a class without samples is centred where all samples are
        model = CGNClassifier("complete", sharing=sharing, prior=prior).fit(X[:, 2:], y)
        assert np.isfinite(joint(model, X[:, 2:], y)).all()
    model = CGNClassifier(estimation="ml", sharing=1.0).fit(X[:, 2:], y)
    found = model.leave_one_out_log_proba(X[:, 2:], y)
    assert found[8, 2] == -np.inf  # the only sample of its class
    assert np.isfinite(found[:8]).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("structure", "n_columns"), [("naive_bayes", 1), ("complete", 3), (Band(2), 3), (Box(2), 4)])
def test_a_row_without_which_a_class_has_no_variance_cannot_be(structure, n_columns, solver):
    k = getattr(structure, "k", 1 if structure == "naive_bayes" else n_columns)
    rng = np.random.default_rng(9)
    y = np.repeat([0, 1], [8, k + 1])  # one sample fewer, and k members of the second class lie in a plane
    X = rng.normal(size=(len(y), n_columns)) + 1e3
    model = CGNClassifier(structure, estimation="ml").fit(X, y)
    found = network(model, SOLVERS[solver]).leave_one_out(model._table(X, y)).log_likelihood
    assert (found[y == 1, 1] == -np.inf).all()
    assert np.isfinite(found[y == 0]).all()
    assert np.isfinite(found[:, 0]).all()
    assert_same(found[y == 0], refitted_ml(structure, X, y)[y == 0])


def refitted_ml(structure, X, y):
    """ln p(x | class) of each sample by a fit of the others, where there is one."""
    found = np.full((len(y), 2), np.nan)
    for i in np.flatnonzero(y == 0):
        kept = np.arange(len(y)) != i
        part = CGNClassifier(structure, estimation="ml").fit(X[kept], y[kept])
        found[i] = part.predict_joint_log_proba(X[i : i + 1])[0] - part.class_log_prior_
    return found


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("structure", [Band(3), Box(4), "complete"], ids=str)
def test_constant_and_duplicated_columns(sharing, structure):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 8)).cumsum(axis=1), np.arange(20) % 2
    X[:, 2], X[:, 5] = 3.0, X[:, 4]
    held = Prior(location=np.linspace(-1, 1, 8), scale=np.linspace(0.5, 2, 8))
    model = CGNClassifier(structure, sharing=sharing, prior=held).fit(X, y)
    assert_same(joint(model, X, y), refitted(model, X, y))


def test_many_columns_of_large_leverage():
    """Products are turned into logarithms in time."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(12, 400)), np.arange(12) % 2
    X[0] *= 1e4
    held = Prior(location=np.zeros(400), scale=np.ones(400))
    model = CGNClassifier(prior=held).fit(X, y)
    assert_same(joint(model, X, y), refitted(model, X, y))


def test_log_proba_is_normalised_and_takes_some_of_the_rows():
    X, y, weights = data(5)
    model = CGNClassifier("tan", prior=HELD, likelihood_power=0.5, categorical_features=[0, 1]).fit(X, y, weights)
    found = model.leave_one_out_log_proba(X, y, weights)
    np.testing.assert_allclose(np.exp(found).sum(axis=1), 1)
    np.testing.assert_allclose(model.leave_one_out_log_proba(X[3:7], y[3:7], weights[3:7]), found[3:7])


def test_the_papers_location_goes_by_folds():
    X, y, _ = data(6)
    model = CGNClassifier(prior=Prior(location="paper")).fit(X, y)
    with pytest.raises(ValueError, match='no closed form with the prior location "paper": use folds'):
        model.leave_one_out_log_proba(X, y)


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "estimation", [{}, {"prior": Prior(location="cell")}, {"estimation": "ml"}], ids=["pooled", "cell", "ml"]
)
def test_both_solvers_agree(sharing, weighted, estimation):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(37, 40)).cumsum(axis=1), np.arange(37) % 3
    if "estimation" not in estimation:
        X[:, 7] = X[:, 6]
        X[:, 12] = 4.0
    weights = rng.uniform(0.5, 2, 37) if weighted else None
    model = CGNClassifier(Band(6), sharing=sharing, **estimation).fit(X, y, weights)
    assert_same(joint(model, X, y, weights, lattice_where_it_can), joint(model, X, y, weights, COMPILED))


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_every_k_at_once(sharing):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 20)).cumsum(axis=1), np.arange(30) % 2
    rows, _ = read_training(X, y)
    estimation = Bayes(sharing=sharing)
    statistics = collect(rows, every_family(rows.schema, 7))
    found = EveryK.of(statistics, rows, estimation, k_max=7, shapes=("band", "box"), leave_one_out=True)
    for i, shape in enumerate((Band, Box)):
        for k in range(1, 8):
            model = CGNClassifier(shape(k), sharing=sharing).fit(X, y)
            expected = network(model, COMPILED).leave_one_out(rows)
            assert_same(found.log_likelihood[i, k - 1], expected.log_likelihood)
            assert_same(found.class_log_prior, expected.class_log_prior)
