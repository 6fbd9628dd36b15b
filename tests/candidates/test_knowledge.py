"""Reference ranges are believed until held-out samples speak against them."""

import warnings

import numpy as np
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV, Prior
from cgnlearn.data.warning import DataWarning

RIGHT = {0: {0: (-2, 2), 1: (-2, 2)}, 1: {0: (0, 4), 1: (0, 4)}}
EXCHANGED = {0: RIGHT[1], 1: RIGHT[0]}


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 2)) + 2 * y[:, None], y


def test_right_ranges_are_kept_in_silence():
    X, y = drawn(30)
    model = CGNClassifier(prior=Prior.from_ranges(RIGHT)).fit(X, y)
    binding = CGNClassifier(prior=Prior.from_ranges(RIGHT, binding=True)).fit(X, y)
    assert model.prior_.ranges
    np.testing.assert_array_equal(model.predict_log_proba(X), binding.predict_log_proba(X))


@pytest.mark.parametrize("structure", ["naive_bayes", "complete"])
@pytest.mark.parametrize("estimation", ["bayes", "discriminative"])
def test_exchanged_ranges_are_set_aside_and_stay_on_record(structure, estimation):
    X, y = drawn(30)
    with pytest.warns(DataWarning, match="ranges are set aside") as caught:
        model = CGNClassifier(structure, estimation=estimation, prior=Prior.from_ranges(EXCHANGED)).fit(X, y)
    assert len(caught) == 1
    without = CGNClassifier(structure, estimation=estimation).fit(X, y)
    np.testing.assert_array_equal(model.predict_log_proba(X), without.predict_log_proba(X))
    assert not model.prior_.ranges
    assert model.prior.ranges
    assert {each.words for each in model.prior_agreement_} == {"conflict strongly"}


def test_the_losses_are_those_of_leave_one_out():
    X, y = drawn(24, seed=1)
    prior = Prior.from_ranges(EXCHANGED, binding=True)
    losses = [
        CGNClassifier(prior=each, likelihood_power="cv").fit(X, y).cv_results_["mean_test_log_loss"][0]
        for each in (None, prior)
    ]
    with pytest.warns(DataWarning, match=f"log loss {losses[0]:.3f}, with them {losses[1]:.3f}"):
        CGNClassifier(prior=Prior.from_ranges(EXCHANGED)).fit(X, y)


def test_a_sample_of_each_class_does_not_outweigh_ranges():
    X, y = drawn(2)
    assert CGNClassifier(prior=Prior.from_ranges(EXCHANGED)).fit(X, y).prior_.ranges


def test_binding_ranges_hold_in_any_case():
    X, y = drawn(30)
    prior = Prior.from_ranges(EXCHANGED, binding=True)
    model = CGNClassifier(prior=prior).fit(X, y)
    assert model.prior_ == prior
    assert model.score(X, y) < CGNClassifier().fit(X, y).score(X, y)


def test_statistics_alone_cannot_tell_and_keep_them():
    X, y = drawn(30)
    prior = Prior.from_ranges(EXCHANGED)
    statistics = CGNClassifier().fit(X, y).statistics_
    added = CGNClassifier.from_statistics(statistics, prior=prior)
    updated = CGNClassifier(prior=prior).partial_fit(X, y, classes=[0, 1])
    binding = CGNClassifier(prior=Prior.from_ranges(EXCHANGED, binding=True)).fit(X, y)
    for model in (added, updated):
        np.testing.assert_allclose(model.predict_log_proba(X), binding.predict_log_proba(X), rtol=1e-10)


def test_groups_and_the_mixture():
    X, y = drawn(40)
    groups = np.arange(40) // 4
    with pytest.warns(DataWarning, match="ranges are set aside"):
        model = CGNClassifierCV(candidates=["naive_bayes"], prior=Prior.from_ranges(EXCHANGED)).fit(X, y, groups=groups)
    without = CGNClassifierCV(candidates=["naive_bayes"]).fit(X, y, groups=groups)
    assert not model.prior_.ranges
    np.testing.assert_array_equal(model.predict_log_proba(X), without.predict_log_proba(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = CGNClassifierCV(candidates=["naive_bayes"], prior=Prior.from_ranges(RIGHT)).fit(X, y)
    assert kept.prior_.ranges


def test_maximum_likelihood_has_no_prior_to_test():
    X, y = drawn(30)
    CGNClassifier(estimation="ml", prior=Prior.from_ranges(EXCHANGED)).fit(X, y)


def test_binding_is_true_or_false():
    with pytest.raises(ValueError, match="binding must be True or False"):
        Prior.from_ranges(RIGHT, binding="yes")
