import numpy as np
import pytest
from scipy.stats import invgamma, multivariate_normal, multivariate_t, norm
from scipy.stats import t as student_t

from cgnlearn import densities


def test_normal_against_scipy(rng):
    residual, variance = rng.normal(size=5), rng.gamma(2, size=5)
    np.testing.assert_allclose(densities.normal(residual, variance), norm.logpdf(residual, 0, np.sqrt(variance)))


def test_student_against_scipy(rng):
    residual, spread, shape = rng.normal(size=7) * 5, rng.gamma(2, size=7), rng.gamma(3, size=7)
    expected = student_t.logpdf(residual, 2 * shape, 0, np.sqrt(spread / (2 * shape)))
    np.testing.assert_allclose(densities.student(residual, spread, shape), expected)


def test_student_blocks_is_a_multivariate_t(rng):
    """A whole block, nothing given: Student t with 2ρ degrees of freedom and matrix Ψ h0 / 2ρ."""
    size, rho, least = 4, 2.3, 1.25
    A = rng.normal(size=(size, size))
    scale = A @ A.T + np.eye(size)
    L = np.linalg.cholesky(scale)
    x = rng.normal(size=(6, size))
    whitened = np.linalg.solve(L, x.T)
    whole = least + (whitened**2).sum(axis=0)
    shape = rho + np.arange(size) / 2
    found = densities.student_blocks(np.full(6, np.log(least)), np.log(whole), np.diag(L)[None] ** 2, shape)
    expected = multivariate_t.logpdf(x, shape=scale * least / (2 * rho), df=2 * rho)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_normal_blocks_is_the_sum_of_normals(rng):
    residual, variance = rng.normal(size=(3, 2, 5)), rng.gamma(2, size=(3, 2))
    squares = (residual**2 / variance[..., None]).sum(axis=(0, 1))
    expected = norm.logpdf(residual, 0, np.sqrt(variance)[..., None]).sum(axis=(0, 1))
    np.testing.assert_allclose(densities.normal_blocks(np.full(5, 7.0), 7.0 + squares, variance), expected)


@pytest.mark.parametrize("size", [1, 4])
def test_whole_groups_against_scipy(rng, size):
    root = rng.normal(size=(size, size + 2))
    scale, x = root @ root.T, rng.normal(size=(6, size)) * 3
    distance = np.einsum("ri,ij,rj->r", x, np.linalg.inv(scale), x)
    log_det = np.linalg.slogdet(scale)[1]
    found = densities.multivariate_normal(distance, log_det, size)
    np.testing.assert_allclose(found, multivariate_normal.logpdf(x, cov=scale), rtol=1e-12)
    rho, leverage = 3.3, 1.25
    found = densities.multivariate_student(distance, log_det, size, rho, leverage)
    expected = multivariate_t.logpdf(x, shape=scale * leverage / (2 * rho), df=2 * rho)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_categorical_against_counting():
    counts = np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(
        np.exp(densities.categorical(counts, 0.5)), [[3.5 / 5.5, 1.5 / 5.5, 0.5 / 5.5], [1 / 3] * 3]
    )
    # the evidence of a sequence is the product of its one-step predictives
    sequence, seen, total = [0, 0, 1, 0, 2], np.zeros(3), 0.0
    for level in sequence:
        total += densities.categorical(seen, 0.3)[level]
        seen[level] += 1
    assert densities.categorical_evidence(seen, 0.3) == pytest.approx(total)


def test_regression_evidence_by_integration():
    """One attribute, no parents: integrate the likelihood against the normal inverse gamma prior."""
    y = np.array([0.3, 1.1, -0.4])
    kappa, m0, shape, scale = 1.5, 0.2, 1.1, 0.8

    log_variance, steps = np.meshgrid(np.linspace(-9, 16, 2001), np.linspace(-12, 12, 1201), indexing="ij")
    deviation = np.exp(log_variance / 2)
    mu = y.mean() + steps * deviation
    density = invgamma.logpdf(deviation**2, shape, scale=scale / 2) + norm.logpdf(mu, m0, deviation / np.sqrt(kappa))
    density += sum(norm.logpdf(value, mu, deviation) for value in y)
    numeric = (np.exp(density) * deviation**3).sum() * (25 / 2000) * (24 / 1200)  # dμ dσ² in the grid's coordinates
    n, mean = len(y), y.mean()
    spread = scale + ((y - mean) ** 2).sum() + kappa * n / (kappa + n) * (mean - m0) ** 2
    found = densities.regression_evidence(n, shape, scale, spread, 0.0, np.log(kappa / (kappa + n)))
    assert found == pytest.approx(np.log(numeric), abs=1e-7)
