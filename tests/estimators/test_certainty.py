"""Intervals and prediction sets of both estimators: contracts, bad input, model files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, load, save
from cgnlearn.networks.uncertainty import NoSamplesError
from cgnlearn.persistence import read_header

X, y = load_iris(return_X_y=True)
TRAIN, NEW = slice(None, None, 3), slice(1, None, 12)
FITTED = {
    "naive Bayes": CGNClassifier(),
    "TAN": CGNClassifier("tan", likelihood_power=0.5),
    "TAN average": CGNClassifier("tan_average"),
    "band": CGNClassifier(Band(2), class_prior="uniform"),
    "band average": CGNClassifier("band_average"),
    "selective": CGNClassifier("selective_naive_bayes", sharing=1.0),
    "discriminative": CGNClassifier(estimation="discriminative", sharing=1.0),
    "mixture": CGNClassifierCV(candidates=["naive_bayes", "logistic", "aode"], transforms=["none"]),
    "bands": CGNClassifierCV(candidates=["band"], ordered=True),
}


@pytest.fixture(scope="module", params=FITTED)
def model(request):
    return FITTED[request.param].fit(X[TRAIN], y[TRAIN])


def test_intervals_contain_the_probability_and_grow_with_the_level(model):
    proba = model.predict_proba(X[NEW])
    narrow, std = model.predict_interval(X[NEW], 0.5, return_std=True)
    wide = model.predict_interval(X[NEW], level=0.95)
    assert narrow.shape == (*proba.shape, 2)
    assert std.shape == proba.shape
    assert (std > 0).all()
    for found in (narrow, wide):
        assert ((found >= 0) & (found <= 1)).all()
        assert (found[..., 0] <= proba).all()
        assert (proba <= found[..., 1]).all()
    assert (wide[..., 0] <= narrow[..., 0]).all()
    assert (wide[..., 1] >= narrow[..., 1]).all()
    assert (np.ptp(wide, axis=2).max(axis=1) > 0.001).any()


def test_more_samples_give_narrower_intervals(model):
    few, many = (
        np.ptp(clone(model).fit(X[::step], y[::step]).predict_interval(X[NEW]), axis=2).mean() for step in (6, 1)
    )
    assert many < few


def test_a_p_value_of_one_minus_the_coverage_is_not_enough():
    few = np.r_[0:4, 50:54, 100:104]
    model = CGNClassifier().fit(X[few], y[few])  # p-values are fifths
    p = model.conformal_p_values(X[NEW])
    assert np.isclose(p, 0.2).any()
    np.testing.assert_array_equal(model.predict_set(X[NEW], coverage=0.8), p > 0.3)


def test_sets_contain_the_true_class_mostly(model):
    found = model.predict_set(X[NEW], coverage=0.8)
    assert found.dtype == bool
    p = model.conformal_p_values(X[NEW])
    np.testing.assert_array_equal(found, p > 0.2 + 1e-9)
    assert ((p > 0) & (p <= 1)).all()
    assert found[np.arange(len(found)), y[NEW]].mean() > 0.6
    assert found.sum() < found.size


@pytest.mark.parametrize(
    "untrained", [CGNClassifier(estimation="discriminative"), CGNClassifierCV(candidates=["naive_bayes"])]
)
def test_another_class_prior_keeps_the_coverage_of_each_class(rng, untrained):
    """Training samples are held out at the class prior that new ones have."""
    y = rng.integers(0, 2, 1200)
    X = rng.normal(size=(1200, 3)) + y[:, None]
    model = clone(untrained).set_params(class_prior=[0.95, 0.05]).fit(X[:200], y[:200])
    sets = model.predict_set(X[200:], coverage=0.9)
    covered = [sets[y[200:] == label][:, label].mean() for label in (0, 1)]
    assert min(covered) > 0.83  # at the training frequencies of the held-out samples, 0.6 in the second class
    assert max(covered) < 0.97


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, "0.9", None, True, float("nan")])
def test_levels_outside_0_and_1_are_refused(model, value):
    with pytest.raises(ValueError, match="level must be a number between 0 and 1"):
        model.predict_interval(X[NEW], level=value)
    with pytest.raises(ValueError, match="coverage must be a number between 0 and 1"):
        model.predict_set(X[NEW], coverage=value)


@pytest.mark.parametrize("kind", [CGNClassifier(), CGNClassifierCV(candidates=["naive_bayes"])])
def test_sets_with_weights_are_refused_with_the_reason(kind):
    weighted = kind.fit(X[TRAIN], y[TRAIN], sample_weight=1 + np.arange(50) % 2)
    assert weighted.predict_interval(X[NEW]).shape == (13, 3, 2)
    with pytest.raises(ValueError, match="not exchangeable"):
        weighted.predict_set(X[NEW])


def test_models_without_samples_say_so():
    counted = CGNClassifier().partial_fit(X[TRAIN], y[TRAIN], classes=y)
    for model in (counted, CGNClassifier.from_statistics(counted.statistics_)):
        assert model.predict_interval(X[NEW]).shape == (13, 3, 2)
        with pytest.raises(NoSamplesError, match="need the training samples"):
            model.predict_set(X[NEW])
    continued = CGNClassifier().fit(X[TRAIN], y[TRAIN]).partial_fit(X[NEW], y[NEW])
    with pytest.raises(NoSamplesError):
        continued.predict_set(X[NEW])


def test_files_hold_the_samples_unless_told_not_to(model, tmp_path):
    save(model, tmp_path / "with.skops")
    save(model, tmp_path / "without.skops", with_samples=False)
    assert read_header(tmp_path / "with.skops")["training_samples_held"] == 50
    assert read_header(tmp_path / "without.skops")["training_samples_held"] == 0
    back, bare = load(tmp_path / "with.skops"), load(tmp_path / "without.skops")
    for name in ("predict_interval", "predict_set"):
        expected = getattr(model, name)(X[NEW])
        np.testing.assert_allclose(getattr(back, name)(X[NEW]), expected, atol=1e-12)
        if needs_samples(model, name):
            with pytest.raises(NoSamplesError, match="fit it"):
                getattr(bare, name)(X[NEW])
        else:
            np.testing.assert_allclose(getattr(bare, name)(X[NEW]), expected, atol=1e-12)
    np.testing.assert_array_equal(bare.predict_proba(X[NEW]), model.predict_proba(X[NEW]))
    assert model._n_samples_kept == 50  # the model itself is as before
    values = {float(value) for value in X[TRAIN].ravel()}
    assert not any(set(np.ravel(part).tolist()) >= values for part in arrays(bare))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_set(X[NEW]), model.predict_set(X[NEW]))


def needs_samples(model, name):
    if isinstance(model, CGNClassifierCV):
        return name == "predict_interval" and any(each.settings["candidate"] == "logistic" for each in model.members_)
    return name == "predict_set" or model.estimation == "discriminative"


def arrays(value, depth=0):
    """All arrays of an object."""
    if isinstance(value, np.ndarray):
        yield value
    elif depth < 6:
        inner = vars(value).values() if hasattr(value, "__dict__") else value if isinstance(value, list | tuple) else ()
        for part in inner:
            yield from arrays(part, depth + 1)


def test_a_class_with_one_sample_is_never_ruled_out():
    few_X, few_y = np.vstack([X[:20], X[-1:]]), np.append(y[:20] + np.arange(20) % 2, 2)
    model = CGNClassifier().fit(few_X, few_y)
    assert model.predict_set(X[NEW], coverage=0.9)[:, 2].all()
    assert np.isfinite(model.predict_interval(X[NEW])).all()


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan"])
def test_missing_values(structure):
    holed = X.copy()
    holed[::4, 1] = np.nan
    model = CGNClassifier(structure, missing_indicator=True).fit(holed[TRAIN], y[TRAIN])
    proba, found = model.predict_proba(holed[NEW]), model.predict_interval(holed[NEW])
    assert (found[..., 0] <= proba).all()
    assert (proba <= found[..., 1]).all()
    assert model.predict_set(holed[NEW]).any(axis=1).all()


def test_mixed_columns_and_another_prevalence():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=pd.Categorical(np.where(X[:, 0] > 5.8, "long", "short")))
    model = CGNClassifier("tan").fit(frame[TRAIN], y[TRAIN]).with_class_prior([0.98, 0.01, 0.01])
    assert (model.predict_interval(frame[NEW])[..., 0] <= model.predict_proba(frame[NEW])).all()
    assert model.predict_set(frame[NEW]).shape == (13, 3)
