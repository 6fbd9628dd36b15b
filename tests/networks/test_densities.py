import numpy as np
import pytest
from scipy.stats import invgamma, multivariate_normal, multivariate_t, norm
from scipy.stats import t as student_t

from cgnlearn.networks import densities


def test_normal_against_scipy(rng):
    residual, variance = rng.normal(size=5), rng.gamma(2, size=5)
    np.testing.assert_allclose(densities.normal(residual, variance), norm.logpdf(residual, 0, np.sqrt(variance)))


def test_student_against_scipy(rng):
    residual, spread, shape = rng.normal(size=7) * 5, rng.gamma(2, size=7), rng.gamma(3, size=7)
    expected = student_t.logpdf(residual, 2 * shape, 0, np.sqrt(spread / (2 * shape)))
    np.testing.assert_allclose(densities.student(residual, spread, shape), expected)


def test_blocks_are_the_sum_of_their_members(rng):
    """Two blocks of five members, the first two of them given: member by member, with `student` and `normal`."""
    size, n_given, n_blocks, rho, least = 5, 2, 2, 2.3, 1.25
    white, diagonal = rng.normal(size=(n_blocks, size, 6)), rng.gamma(2, size=(n_blocks, size))
    h = least + np.concatenate([np.zeros((n_blocks, 1, 6)), np.cumsum(white**2, axis=1)], axis=1)
    spread = diagonal[:, n_given:] ** 2
    found = densities.multivariate_student(
        np.log(h[:, n_given]).sum(axis=0),
        np.log(h[:, -1]).sum(axis=0),
        np.log(spread).sum(),
        size - n_given,
        rho,
        n_blocks,
    )
    members = range(n_given, size)
    residual = white * diagonal[..., None]
    expected = sum(
        densities.student(residual[b, j], spread[b, j - n_given] * h[b, j], rho + (j - n_given) / 2)
        for b in range(n_blocks)
        for j in members
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    distance = (h[:, -1] - h[:, n_given]).sum(axis=0)
    found = densities.multivariate_normal(distance, np.log(spread).sum(), spread.size)
    expected = sum(norm.logpdf(residual[b, j], 0, diagonal[b, j]) for b in range(n_blocks) for j in members)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 4])
def test_whole_groups_against_scipy(rng, size):
    root = rng.normal(size=(size, size + 2))
    scale, x = root @ root.T, rng.normal(size=(6, size)) * 3
    distance = np.einsum("ri,ij,rj->r", x, np.linalg.inv(scale), x)
    log_det = np.linalg.slogdet(scale)[1]
    found = densities.multivariate_normal(distance, log_det, size)
    np.testing.assert_allclose(found, multivariate_normal.logpdf(x, cov=scale), rtol=1e-12)
    rho, leverage = 3.3, 1.25
    found = densities.multivariate_student(np.log(leverage), np.log(leverage + distance), log_det, size, rho)
    expected = multivariate_t.logpdf(x, shape=scale * leverage / (2 * rho), df=2 * rho)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_maximum_likelihood_gives_a_level_and_a_cell_without_samples_no_probability():
    with np.errstate(divide="ignore"):
        expected = np.log([[0.75, 0.25, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(densities.categorical(np.array([[3.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), 0.0), expected)


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
    """One feature, no parents: integrate the likelihood against the normal inverse gamma prior."""
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
