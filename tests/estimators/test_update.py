import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from sklearn.metrics import log_loss

from cgnlearn import CGNClassifier, CGNClassifierCV, load, save, update, validate
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.update import PRECISION, assembled, class_frequencies, ladder_of
from cgnlearn.estimators.updated import UpdatedClassifier


def place(rng, n, shift=0.0, prevalence=0.5):
    y = rng.random(n) < prevalence
    X = pd.DataFrame(rng.normal(size=(n, 3)) + y[:, None] + shift, columns=list("abc"))
    X["d"] = pd.Categorical(np.where(rng.random(n) < 0.3 + 0.3 * y, "u", "v"), categories=["u", "v"])
    return X, np.where(y, "yes", "no")


@pytest.fixture
def model(rng):
    return CGNClassifier("naive_bayes").fit(*place(rng, 200))


def alone(ladder, name):
    """The model of one step."""
    names = [step.name for step in ladder.steps]
    return assembled(ladder, np.eye(len(names))[names.index(name)])


def test_held_out_predictions_are_those_of_updates_without_the_sample(rng, model):
    X, y = place(rng, 30, 0.5, 0.3)
    ladder = ladder_of(model, X, y)
    assert [step.name for step in ladder.steps] == [
        "as it is",
        "class prior",
        "intercepts",
        "intercepts and slope",
        "old samples × 1",
        "old samples × 0.3",
        "old samples × 0.1",
        "old samples × 0.03",
        "new samples alone",
    ]
    i = 7
    rest = np.arange(30) != i
    without = ladder_of(model, X[rest], y[rest])
    for step in ladder.steps[:4]:
        np.testing.assert_allclose(alone(without, step.name).predict_log_proba(X[i : i + 1])[0], step.held_out[i])
    # The statistics hold the prior fixed; so does an update without the sample, but for the sample's part in its scale.
    for step in ladder.steps[4:8]:
        refit = alone(without, step.name).predict_log_proba(X[i : i + 1])[0]
        np.testing.assert_allclose(refit, step.held_out[i], atol=0.1)


def test_steps_are_what_they_say(rng, model):
    old = place(rng, 200)
    model = CGNClassifier("naive_bayes").fit(*old)
    X, y = place(rng, 60, 0.4)
    ladder = ladder_of(model, X, y)
    fresh = place(rng, 20)[0]
    np.testing.assert_allclose(alone(ladder, "as it is").predict_proba(fresh), model.predict_proba(fresh))
    both = CGNClassifier("naive_bayes").fit(pd.concat([old[0], X]), np.concatenate([old[1], y]))
    np.testing.assert_allclose(alone(ladder, "old samples × 1").predict_proba(fresh), both.predict_proba(fresh))
    new = CGNClassifier("naive_bayes").fit(X, y)
    np.testing.assert_allclose(alone(ladder, "new samples alone").predict_proba(fresh), new.predict_proba(fresh))
    weight = np.concatenate([np.full(200, 0.3), np.ones(60)])
    some = CGNClassifier("naive_bayes").fit(pd.concat([old[0], X]), np.concatenate([old[1], y]), sample_weight=weight)
    np.testing.assert_allclose(alone(ladder, "old samples × 0.3").predict_proba(fresh), some.predict_proba(fresh))
    frequencies = class_frequencies((y == "yes").astype(int), np.exp(model.class_log_prior_))
    prior = model.with_class_prior(frequencies)
    np.testing.assert_allclose(alone(ladder, "class prior").predict_proba(fresh), prior.predict_proba(fresh))
    slope = alone(ladder, "intercepts and slope").parts_[0]
    odds = slope.intercept[1] - slope.intercept[0] + slope.slope * logit(model.predict_proba(fresh)[:, 1])
    found = logit(alone(ladder, "intercepts and slope").predict_proba(fresh)[:, 1])
    np.testing.assert_allclose(found, odds)
    # The penalised likelihood has its maximum there.
    x, t = logit(model.predict_proba(X)[:, 1]), y == "yes"
    p = 1 / (1 + np.exp(-(slope.intercept[1] + slope.slope * x)))
    assert (t - p).sum() == pytest.approx(PRECISION * slope.intercept[1], abs=1e-6)
    assert ((t - p) * x).sum() == pytest.approx(PRECISION * (slope.slope - 1), abs=1e-6)


@pytest.mark.parametrize(("shift", "prevalence"), [(0.0, 0.1), (3.0, 0.5)])
def test_an_update_is_about_as_good_as_the_best_step(rng, model, shift, prevalence):
    X, y = place(rng, 100, shift, prevalence)
    fresh = place(rng, 2000, shift, prevalence)
    ladder = ladder_of(model, X, y)
    steps = [log_loss(fresh[1], alone(ladder, step.name).predict_proba(fresh[0])) for step in ladder.steps]
    updated = update(model, X, y)
    assert log_loss(fresh[1], updated.predict_proba(fresh[0])) < min(steps) + 0.02
    assert sum(rung.weight for rung in updated.ladder_) == pytest.approx(1)
    assert updated.predict(fresh[0]).shape == (2000,)
    picked = update(model, X, y, combine="pick")
    assert sorted(rung.weight for rung in picked.ladder_)[-1] == 1
    assert len(picked.parts_) == 1


def test_an_update_is_saved_with_its_history_and_updated_again(rng, model, tmp_path):
    X, y = place(rng, 40, 1.0)
    once = update(model, X, y)
    twice = update(once, *place(rng, 30, 1.0))
    assert [entry["samples"] for entry in twice.history_] == [40, 30]
    assert twice.history_[0]["classes"] == {"no": (y == "no").sum(), "yes": (y == "yes").sum()}
    save(twice, tmp_path / "m.skops")
    back = load(tmp_path / "m.skops")
    assert isinstance(back, UpdatedClassifier)
    np.testing.assert_array_equal(back.predict_log_proba(X), twice.predict_log_proba(X))
    assert back.history_ == twice.history_
    assert back.ladder_ == twice.ladder_
    np.testing.assert_allclose(back.typicality(X), twice.typicality(X))
    assert back.score_samples(X).shape == (40,)
    assert (once.typicality(X) >= model.typicality(X)).all()
    assert validate(once, X, y).n == 40
    rare = once.with_class_prior([0.99, 0.01])
    assert rare.predict_proba(X)[:, 1].mean() < once.predict_proba(X)[:, 1].mean() / 2
    np.testing.assert_allclose(rare.predict_proba(X).sum(axis=1), 1)


def test_the_mixture_has_a_pool_of_old_and_new(rng):
    old = place(rng, 100)
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(*old)
    X, y = place(rng, 60, 1.0)
    updated = update(model, X, y)
    assert [rung.name for rung in updated.ladder_] == [
        "as it is",
        "class prior",
        "intercepts",
        "intercepts and slope",
        "pool with 25% of new",
        "pool with 50% of new",
        "pool with 75% of new",
        "new samples alone",
    ]
    fresh = place(rng, 500, 1.0)
    before, after = (log_loss(fresh[1], of.predict_proba(fresh[0])) for of in (model, updated))
    assert after < before
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = np.array(["yes"] + ["no"] * 19)  # too few to refit
        assert len(update(model, X[:20], one).ladder_) == 4


def test_models_without_additive_statistics_are_recalibrated(rng):
    X, y = place(rng, 80)
    model = CGNClassifier(estimation="discriminative").fit(X, y)
    assert len(update(model, *place(rng, 30)).ladder_) == 4
    tan = CGNClassifier("tan_average").fit(X, y)  # leave-one-out in folds
    assert len(update(tan, *place(rng, 30)).ladder_) == 9


def test_unknown_levels_and_missing_values_are_no_obstacle(rng, model):
    X, y = place(rng, 40)
    X["d"] = X.d.astype(object)
    X.loc[3, "d"] = "new"
    X.loc[:5, "a"] = np.nan
    updated = update(model, X, y)
    with pytest.warns(DataWarning, match="1 in column 'd'"):
        assert np.isfinite(updated.predict_log_proba(X)).all()


def test_bad_input_is_refused(rng, model):
    X, y = place(rng, 40)
    for change, message in (
        (lambda: update(model, X[:9], y[:9]), "an update needs at least 10 samples, not 9"),
        (lambda: update(model, X, np.full(40, "no")), "all 40 samples are of class 'no'"),
        (lambda: update(model, X, np.where(y == "no", "maybe", y)), "the class 'maybe', which the model does not know"),
        (lambda: update(model, X, y, combine="all"), 'combine must be "mix" or "pick"'),
    ):
        with pytest.raises(ValueError, match=message):
            change()
    with pytest.raises(TypeError, match="update needs a CGNClassifier"):
        update("model", X, y)
    with pytest.raises(TypeError, match="cannot be fitted"):
        UpdatedClassifier().fit(X, y)
