import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine

from cgnlearn.data.table import read_training
from cgnlearn.logistic.design import Design
from cgnlearn.logistic.uncertainty import MOST_EXACT, N_DIRECTIONS, Curved, Directions, supported_penalty


def fit_of(values, y, penalty=0.3):
    """The design of a regression, and the inverse Hessian at probabilities that are about right."""
    table, _ = read_training(values, y)
    n_classes = len(np.unique(y))
    design = Design.of(values.copy(), table, np.full(n_classes, -np.log(n_classes)))
    proba = np.full((len(y), n_classes), 0.1 / (n_classes - 1))
    proba[np.arange(len(y)), y] = 0.9
    return Curved.of(design, proba, penalty, None, 1.0)


def products(X):
    """Standardised features and products of two."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    first, second = np.triu_indices(X.shape[1])
    return np.column_stack([X, X[:, first] * X[:, second]])


def test_all_directions_of_few_parameters_are_exact(rng):
    X, y = load_wine(return_X_y=True)
    curved = fit_of(X[:, :8], y)
    assert len(curved.inverse) <= MOST_EXACT
    new = X[:40, :8] + rng.normal(size=(40, 8))
    new[3, 2] = np.nan
    np.testing.assert_allclose(Directions.of(curved).covariance(new), curved.covariance(new), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [178, 60])  # the second with fewer samples than features
def test_the_rest_of_many_parameters_is_right_on_average(n):
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(178)[:n]
    values, y = products(X)[rows], y[rows]
    curved = fit_of(values, y)
    found = Directions.of(curved)
    assert found.vectors.shape == (N_DIRECTIONS, 2, 105)
    flat = found.vectors.reshape(N_DIRECTIONS, -1)
    np.testing.assert_allclose(flat @ flat.T, np.eye(N_DIRECTIONS), atol=1e-8)
    approximate, exact = (np.einsum("saa->sa", each.covariance(values)) for each in (found, curved))
    np.testing.assert_allclose(approximate.sum(), exact.sum(), rtol=1e-8)
    assert np.abs(np.log(approximate / exact)).mean() < 0.5
    assert (np.linalg.eigvalsh(found.covariance(3 * values)) > 0).all()


@pytest.mark.parametrize("penalty", [0.01, 3.0])
def test_curvatures_are_those_without_penalty(penalty):
    X, y = load_wine(return_X_y=True)
    y = np.minimum(y, 1)
    curved = fit_of(X[:, :5], y, penalty)
    features = curved.design.values  # centred, so that the intercept is apart
    expected = 2 * 0.9 * 0.1 * np.linalg.eigvalsh(features.T @ features)  # of a contrast of length 1
    np.testing.assert_allclose(curved.curvatures(penalty), expected[::-1], rtol=1e-6)


def test_the_supported_penalty_has_the_greatest_evidence(rng):
    # Linear regression with noise of variance 1, whose evidence is that of a normal distribution.
    X = rng.normal(size=(30, 6)) * [3, 2, 1, 0.5, 0.2, 0.1]
    y = X @ rng.normal(size=6) * 0.5 + rng.normal(size=30)

    def lack(log_penalty):
        return -multivariate_normal.logpdf(y, cov=np.eye(30) + X @ X.T / np.exp(log_penalty))

    best = np.exp(minimize_scalar(lack, bounds=(-6, 6), method="bounded", options={"xatol": 1e-8}).x)
    slopes = np.linalg.solve(X.T @ X + best * np.eye(6), X.T @ y)
    eigenvalues, size = np.linalg.eigvalsh(X.T @ X), float(slopes @ slopes)
    assert supported_penalty(eigenvalues, best / 100, size) == pytest.approx(best, rel=1e-4)
    assert supported_penalty(eigenvalues, 2 * best, size) == 2 * best
