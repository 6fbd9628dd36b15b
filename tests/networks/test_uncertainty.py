"""Cumulants of log densities against quadrature, and posteriors of networks against draws from them."""

from unittest import mock

import numpy as np
import pytest
from scipy import integrate, stats

from cgnlearn import CGNClassifier, Structure
from cgnlearn.data.arrays import contrasts_of
from cgnlearn.networks import nodes
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.lattice import Lattice
from cgnlearn.networks.network import Network
from cgnlearn.networks.uncertainty import (
    NoPosteriorError,
    categorical_cumulants,
    log_mean_exponential,
    regression_cumulants,
    scale_cumulants,
    total_comonotone,
)
from cgnlearn.structures import fixed

N_DRAWS = 20_000


def cumulants_of(moment):
    """From the first three raw moments."""
    first, second, third = (moment(order) for order in (1, 2, 3))
    return first, second - first**2, third - 3 * first * second + 2 * first**3


@pytest.mark.parametrize(("shape", "residual", "extra"), [(5.1, 1.3, 0.4), (1.6, -0.2, 2.0), (31.1, 4.0, 0.02)])
def test_cumulants_of_a_regression_equal_quadrature(shape, residual, extra):
    rate = 3.0  # φ', so that F = 6
    precision = stats.gamma(shape, scale=1 / rate)

    def moment(order):
        """E l^order, with l = a - extra/2 · noncentral chi² given the precision."""

        def given(tau):
            a = 0.5 * np.log(tau / (2 * np.pi))
            square = stats.ncx2(1, tau * residual**2 / extra)
            terms = [
                np.prod(range(order - k + 1, order + 1))
                / np.prod(range(1, k + 1))
                * a ** (order - k)
                * (-extra / 2) ** k
                * (square.moment(k) if k else 1.0)
                for k in range(order + 1)
            ]
            return sum(terms) * precision.pdf(tau)

        ends = precision.ppf([1e-13, 1 - 1e-13])
        return integrate.quad(given, *ends, limit=400, points=precision.ppf([0.01, 0.5, 0.99]))[0]

    found = regression_cumulants(residual**2 / (2 * rate), extra, shape, scale_cumulants(shape, 2 * rate))
    np.testing.assert_allclose(found, cumulants_of(moment), rtol=1e-5)


def test_cumulants_of_a_level_equal_quadrature():
    counts = np.array([2.0, 0.2, 3.5])
    of_first = stats.beta(2.7, 0.9 + 4.2)

    def moment(order):
        return integrate.quad(lambda p: np.log(p) ** order * of_first.pdf(p), 0, 1, limit=200)[0]

    found = [part[0] for part in categorical_cumulants(counts, 0.7)]
    np.testing.assert_allclose(found, cumulants_of(moment), rtol=1e-6)


def test_log_of_the_mean_of_a_density_with_a_reflected_gamma():
    draws = -np.random.default_rng(0).gamma(3.0, 0.8, 400_000)
    expected = np.log(np.exp(draws).mean()) - draws.mean()
    variance, third = np.array([3 * 0.8**2]), np.array([-2 * 3 * 0.8**3])
    np.testing.assert_allclose(log_mean_exponential(variance, third), expected, atol=0.01)


def samples(n_classes=3, p=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n_classes), [9, 14, 7][:n_classes])
    return rng.normal(size=(len(y), p)) @ rng.normal(size=(p, p)) + 0.7 * y[:, None], y, rng.normal(size=(2, p))


def drawn_log_densities(X, y, new, sharing):
    """Log densities of new samples under draws of a normal inverse Wishart: (draws, samples, classes)."""
    rng, p, classes = np.random.default_rng(1), X.shape[1], np.unique(y)
    location, added, n = X.mean(axis=0), [], np.bincount(y)
    for label in classes:
        own = X[y == label]
        apart = own.mean(axis=0) - location
        added.append(len(own) * np.cov(own.T, bias=True) + len(own) / (1 + len(own)) * np.outer(apart, apart))
    freedom, prior = 2 * 1.1 + p - 1, np.diag(X.var(axis=0))
    found = np.empty((N_DRAWS, len(new), len(classes)))
    common = stats.invwishart(freedom + n.sum(), prior + sum(added)).rvs(N_DRAWS, random_state=rng)
    for label in classes:
        own = stats.invwishart(freedom + n[label], prior + added[label]).rvs(N_DRAWS, random_state=rng)
        factor = np.linalg.cholesky(common if sharing else own)
        centre = (location + n[label] * X[y == label].mean(axis=0)) / (1 + n[label])
        mean = centre + np.einsum("dij,dj->di", factor, rng.normal(size=(N_DRAWS, p))) / np.sqrt(1 + n[label])
        for i, x in enumerate(new):
            white = np.linalg.solve(factor, (x - mean)[..., None])[..., 0]
            log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
            found[:, i, label] = -p / 2 * np.log(2 * np.pi) - log_det - np.square(white).sum(axis=1) / 2
    return found


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_posterior_of_a_complete_network_is_that_of_draws(sharing):
    X, y, new = samples()
    model = CGNClassifier("complete", sharing=sharing).fit(X, y)
    found = model._model.log_densities(model._table(new))
    drawn = drawn_log_densities(X, y, new, sharing)
    error = drawn.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(found.mean - drawn.mean(axis=0)) < 5 * error).all()
    contrasts = drawn @ contrasts_of(3).T
    for i in range(len(new)):
        np.testing.assert_allclose(found.covariance[i], np.cov(contrasts[:, i].T), rtol=0.08, atol=0.03)
    if not sharing:
        centred = drawn - drawn.mean(axis=2, keepdims=True)
        np.testing.assert_allclose(found.third / centred.std(axis=0) ** 3, stats.skew(centred), atol=0.15)


def test_discrete_features_and_class_frequencies_are_dirichlet():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 2
    X = np.column_stack([rng.integers(0, 3, 30), rng.integers(0, 2, 30)]).astype(float)
    model = CGNClassifier(categorical_features=[0, 1]).fit(X, y)
    found = model._model.log_densities(model._table(X[:1]))
    drawn = np.zeros((N_DRAWS, 2))
    for label in range(2):
        for column, n_levels in ((0, 3), (1, 2)):
            counts = np.bincount(X[y == label, column].astype(int), minlength=n_levels)
            drawn[:, label] += np.log(rng.dirichlet(counts + 0.5, N_DRAWS)[:, int(X[0, column])])  # Jeffreys
    np.testing.assert_allclose(found.mean[0], drawn.mean(axis=0), atol=5 * drawn.std() / np.sqrt(N_DRAWS))
    np.testing.assert_allclose(found.covariance[0, 0, 0], drawn.var(axis=0).sum() / 2, rtol=0.06)


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_rotated_and_complete_networks_agree(sharing):
    rng = np.random.default_rng(0)
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    X, new = rng.normal(size=(7, 9)) + y[:, None], rng.normal(size=(4, 9))
    plain = CGNClassifier("complete", sharing=sharing).fit(X, y)
    with mock.patch.object(fixed, "FEW_COLUMNS", 2):
        rotated = CGNClassifier("complete", sharing=sharing).fit(X, y)
    found, expected = (model._model.log_densities(model._table(new)) for model in (rotated, plain))
    assert type(rotated._model) is not type(plain._model)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-9 if sharing != 0.3 else 0.1)
    np.testing.assert_allclose(found.third, expected.third, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_lattice_and_blocks_agree(sharing):
    X, y, new = samples(p=6)
    model = CGNClassifier(Structure.band(6, 3), sharing=sharing).fit(X, y)
    table, own = model._table(new), model._model
    found = [
        Network.of(own.structure, own.statistics, own.estimation, solver).log_densities(table)
        for solver in (Blocks.of, Lattice)
    ]
    for part in ("mean", "covariance", "third"):
        np.testing.assert_allclose(getattr(found[0], part), getattr(found[1], part), rtol=1e-8, atol=1e-9)


def test_more_sharing_makes_the_log_odds_more_certain():
    X, y, new = samples(2)
    found = []
    for sharing in (0.0, 0.3, 0.7, 1.0):
        model = CGNClassifier("complete", sharing=sharing).fit(X, y)
        found.append(model._model.log_densities(model._table(new)).covariance[:, 0, 0])
    assert (np.diff(found, axis=0) < 0).all()


def test_a_missing_leaf_is_as_if_it_were_not_in_the_model():
    X, y, new = samples()
    new[:, 2] = np.nan
    whole = CGNClassifier().fit(X, y)
    found = whole._model.log_densities(whole._table(new))
    fewer = CGNClassifier().fit(X[:, :2], y)
    expected = fewer._model.log_densities(fewer._table(new[:, :2]))
    np.testing.assert_allclose(found.mean, expected.mean)
    np.testing.assert_allclose(found.covariance, expected.covariance)


def test_a_missing_parent_is_integrated_out_of_the_mean():
    X, y, new = samples()
    new[:, 0] = np.nan
    model = CGNClassifier("complete").fit(X, y)
    table = model._table(new)
    found = model._model.log_densities(table)
    gap = model._model.log_likelihood(table) - found.mean  # ln E p - E ln p is not negative
    assert (gap > 0).all()
    assert np.isfinite(found.covariance).all()


def test_a_parent_of_features_with_missing_values_has_several_centres():
    rng = np.random.default_rng(0)
    parent = rng.normal(size=90)
    X = np.stack([parent, *(parent + 0.3 * rng.normal(size=90) for _ in range(2))], axis=1)
    X[:8, 1] = X[-8:, 2] = np.nan
    model = CGNClassifier({0: [], 1: [0], 2: [0]}, sharing=0.5).fit(X, np.arange(90) % 2)
    new = np.full((301, 3), np.nan)
    new[:, 0] = np.linspace(-1, 1, 301)  # near the centres
    found = model.predict_interval(new)
    assert np.isfinite(found).all()
    assert (found[..., 0] < model.predict_proba(new)).all()


def test_a_feature_that_depends_on_the_class_by_chance_adds_its_variance():
    X, y, new = samples(2, 1)
    model = CGNClassifier("selective_naive_bayes").fit(X, y)
    found, chance = model._model.log_densities(model._table(new)), model.inclusion_probability_[0]
    naive = CGNClassifier().fit(X, y)
    own = naive._model.log_densities(naive._table(new))
    apart = np.diff(own.mean, axis=1)[:, 0]
    np.testing.assert_allclose(np.diff(found.mean, axis=1)[:, 0], chance * apart)
    of_odds = 2 * own.covariance[:, 0, 0]
    np.testing.assert_allclose(2 * found.covariance[:, 0, 0], chance * of_odds + chance * (1 - chance) * apart**2)


def test_a_missing_level_that_depends_on_the_class_by_chance_adds_nothing():
    X, y, new = samples(2, 2)
    (X, new), with_levels = (
        [np.column_stack([part, part[:, :1] > 0]) for part in (X, new)],
        {"categorical_features": [2]},
    )
    model = CGNClassifier("selective_naive_bayes", **with_levels).fit(X, y)
    new[:, 2] = np.nan
    found = model._model.log_densities(model._table(new))
    alone = model._model.log_densities(model._table(np.where([True, True, False], new, [[0, 0, 1.0]])))
    first = CGNClassifier("selective_naive_bayes", categorical_features=[0]).fit(X[:, 2:], y)
    level = first._model.log_densities(first._table(np.ones((len(new), 1))))
    for name in ("mean", "covariance"):  # features are independent within a class
        np.testing.assert_allclose(getattr(found, name) + getattr(level, name), getattr(alone, name))


def test_equal_parts_that_err_together_add_up():
    X, y, new = samples()
    model = CGNClassifier("complete").fit(X, y)
    part = model._model.log_densities(model._table(new))
    total = total_comonotone([part.scaled(0.25, 0.25), part.scaled(0.75, 0.75)])
    for name in ("mean", "covariance", "third"):
        np.testing.assert_allclose(getattr(total, name), getattr(part, name), rtol=1e-9)


def test_maximum_likelihood_has_no_posterior():
    X, y, new = samples()
    model = CGNClassifier(estimation="ml").fit(X, y)
    with pytest.raises(NoPosteriorError, match="no posterior"):
        model.predict_interval(new)


@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("structure", ["naive_bayes", "tan", "complete"])
def test_compiled_loops_and_arrays_agree(structure, sharing):
    X, y, new = samples(p=5)
    model = CGNClassifier(structure, sharing=sharing).fit(X, y)
    found = []
    for least in (0, 1 << 40):
        with mock.patch.object(nodes, "COMPILED", least):
            found.append(model._model.log_densities(model._table(new)))
    for name in ("mean", "covariance", "third"):
        np.testing.assert_allclose(*(getattr(each, name) for each in found), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_compiled_loops_and_arrays_agree_on_features_by_chance(sharing):
    X, y, new = samples(p=5)
    model = CGNClassifier("selective_naive_bayes", sharing=sharing).fit(X, y)
    with mock.patch.object(nodes, "COMPILED", 1 << 40):
        expected = model.predict_interval(new)
    with mock.patch.object(nodes, "COMPILED", 0):
        np.testing.assert_allclose(model.predict_interval(new), expected, rtol=1e-10)
