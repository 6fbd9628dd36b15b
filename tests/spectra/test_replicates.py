"""Predictions combined over replicates, against the exact posterior for normal measurements."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from cgnlearn.spectra import Spectrum, by_sample, replicate_correlation, sample_ids

PRIOR = np.log([0.3, 0.7])


def posterior(log_odds):
    joint = np.column_stack([log_odds + PRIOR[0], np.full(len(log_odds), PRIOR[1])])
    return joint - np.logaddexp(*joint.T)[:, None]


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_combination_is_exact_for_correlated_normal_measurements(rng, correlation):
    n, shift = 3, 0.8
    if correlation == 1:  # identical replicates are one measurement
        x = np.repeat(shift + rng.normal(size=(20, 1)), n, axis=1)
        true = 2 * shift * x[:, 0]
    else:
        covariance = (1 - correlation) * np.eye(n) + correlation
        cases, controls = (multivariate_normal(np.full(n, mean), covariance) for mean in (shift, -shift))
        x = cases.rvs(20, random_state=1)
        true = cases.logpdf(x) - controls.logpdf(x)
    samples = np.repeat(np.arange(20), n)
    shuffled = rng.permutation(20 * n)
    combined = by_sample(posterior(2 * shift * x.ravel())[shuffled], samples[shuffled], PRIOR, correlation=correlation)
    np.testing.assert_allclose(combined.log_proba, posterior(true), rtol=1e-9, atol=1e-9)
    assert combined.n_spectra.tolist() == [n] * 20
    assert combined.samples.tolist() == list(range(20))


def test_single_spectra_are_unchanged_and_averages_need_no_prior():
    log_proba = posterior(np.array([-3.0, 0.2, 5.0]))
    for correlation in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(
            by_sample(log_proba, ["a", "b", "c"], PRIOR, correlation=correlation).log_proba, log_proba
        )
    pair = by_sample(log_proba, ["a", "a", "b"])
    np.testing.assert_allclose(pair.log_proba, by_sample(log_proba, ["a", "a", "b"], PRIOR).log_proba)
    certain = by_sample(np.log(np.array([[1.0, 1e-300], [1.0, 1e-300]])), ["a", "a"], PRIOR, correlation=0.0)
    assert np.isfinite(certain.log_proba).all()


def test_invalid_input_is_refused():
    log_proba = posterior(np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="needs class_log_prior"):
        by_sample(log_proba, ["a", "a"], correlation=0.5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        by_sample(log_proba, ["a", "a"], PRIOR, correlation=1.5)
    with pytest.raises(ValueError, match="2 predictions and 3 samples"):
        by_sample(log_proba, ["a", "a", "b"], PRIOR)
    with pytest.raises(ValueError, match="no 'sample' in its metadata"):
        sample_ids([Spectrum([1.0], [2.0])])


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_the_correlation_is_estimated(rng, correlation):
    n_samples, n = 3000, 3
    y = np.repeat(rng.integers(0, 2, n_samples), n)
    common = np.repeat(rng.normal(size=n_samples), n)
    noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=n_samples * n)
    log_proba = posterior((1 - 2 * y) * 2 + noise)
    kept = rng.random(n_samples * n) < 0.9  # samples differ in their number of spectra
    estimate = replicate_correlation(log_proba[kept], y[kept], np.repeat(np.arange(n_samples), n)[kept])
    assert estimate == pytest.approx(correlation, abs=0.05)
    assert replicate_correlation(log_proba, y, np.arange(len(y))) == 1.0
