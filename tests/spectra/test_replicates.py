"""What replicates say together, against the exact answer for normal log odds."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cgnlearn.spectra import Spectrum, by_sample, replicate_correlation, sample_ids

PRIOR = np.log([0.3, 0.7])


def posterior(log_odds):
    joint = np.column_stack([log_odds + PRIOR[0], np.full(len(log_odds), PRIOR[1])])
    return joint - np.logaddexp(*joint.T)[:, None]


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_it_is_exact_for_normal_measurements_that_correlate(rng, correlation):
    n, shift = 3, 0.8
    covariance = (1 - correlation) * np.eye(n) + correlation
    x = multivariate_normal(np.full(n, shift), covariance, allow_singular=True).rvs(20, random_state=1)
    if correlation == 1:  # replicates that repeat each other are one measurement
        true = 2 * shift * x[:, 0]
    else:
        exact = [multivariate_normal(np.full(n, sign * shift), covariance).logpdf(x) for sign in (1, -1)]
        true = exact[0] - exact[1]
    samples = np.repeat(np.arange(20), n)
    shuffled = rng.permutation(20 * n)
    found = by_sample(posterior(2 * shift * x.ravel())[shuffled], samples[shuffled], PRIOR, correlation=correlation)
    np.testing.assert_allclose(found.log_proba, posterior(true), rtol=1e-9, atol=1e-9)
    assert found.n_spectra.tolist() == [n] * 20
    assert found.samples.tolist() == list(range(20))


def test_one_spectrum_stays_what_it_was_and_averages_need_no_prior():
    said = posterior(np.array([-3.0, 0.2, 5.0]))
    for correlation in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(by_sample(said, ["a", "b", "c"], PRIOR, correlation=correlation).log_proba, said)
    pair = by_sample(said, ["a", "a", "b"])
    np.testing.assert_allclose(pair.log_proba, by_sample(said, ["a", "a", "b"], PRIOR).log_proba)
    certain = by_sample(np.log(np.array([[1.0, 1e-300], [1.0, 1e-300]])), ["a", "a"], PRIOR, correlation=0.0)
    assert np.isfinite(certain.log_proba).all()


def test_what_cannot_be_combined_is_said():
    said = posterior(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="needs class_log_prior"):
        by_sample(said, ["a", "a"], correlation=0.5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        by_sample(said, ["a", "a"], PRIOR, correlation=1.5)
    with pytest.raises(ValueError, match="2 predictions and 3 samples"):
        by_sample(said, ["a", "a", "b"], PRIOR)
    with pytest.raises(ValueError, match="of which sample"):
        sample_ids([Spectrum([1.0], [2.0])])


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_the_correlation_is_found_again(rng, correlation):
    n_samples, n = 3000, 3
    y = np.repeat(rng.integers(0, 2, n_samples), n)
    common = np.repeat(rng.normal(size=n_samples), n)
    noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=n_samples * n)
    said = posterior((1 - 2 * y) * 2 + noise)
    kept = rng.random(n_samples * n) < 0.9  # not all samples have as many
    found = replicate_correlation(said[kept], y[kept], np.repeat(np.arange(n_samples), n)[kept])
    assert found == pytest.approx(correlation, abs=0.05)
    assert replicate_correlation(said, y, np.arange(len(y))) == 1.0
