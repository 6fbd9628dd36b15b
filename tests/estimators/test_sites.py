import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, CGNClassifierCV, load, save
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.sites import in_words
from cgnlearn.evaluation.metrics import LOG_LOSS


def simulated(seed=0, shift=1.5, n_sites=5, n=40, m=5, frequency=0.5, apart=1.5):
    rng = np.random.default_rng(seed)
    of_site = np.repeat(np.arange(n_sites), n)
    y = (rng.random(len(of_site)) < frequency).astype(int)
    y[::n], y[1::n] = 0, 1
    direction = apart * np.array([1, -1, 0.5, 0, 0])[:m]
    moved = shift * rng.normal(size=(n_sites, m))
    return rng.normal(size=(len(y), m)) + y[:, None] * direction + moved[of_site], y, of_site


def test_training_without_shifts_equals_a_fit_to_the_corrected_samples():
    X, y, of_site = simulated()
    model = CGNClassifier("complete").fit(X, y, sites=of_site)
    corrected = X - model.site_shift_.shifts[of_site]
    other = CGNClassifier("complete").fit(corrected, y)
    np.testing.assert_allclose(model.predict_proba(X, sites=of_site), other.predict_proba(corrected), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(corrected), other.predict_proba(corrected), rtol=1e-9)
    found = model.leave_one_out_log_proba(X, y, sites=of_site)
    np.testing.assert_allclose(found, other.leave_one_out_log_proba(corrected, y), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples(X, sites=of_site), other.score_samples(corrected), rtol=1e-9)
    np.testing.assert_allclose(model.typicality(X, sites=of_site), other.typicality(corrected))
    assert (model.predict(X, sites=of_site) == other.predict(corrected)).all()


@pytest.mark.parametrize("estimator", [CGNClassifier("tan"), CGNClassifierCV(candidates=["naive_bayes", "complete"])])
def test_intervals_sets_and_explanations_are_those_of_the_corrected_samples(estimator):
    X, y, of_site = simulated()
    model = clone(estimator).fit(X, y, sites=of_site)
    some = slice(None, None, 20)
    corrected = (X - model.site_shift_.shifts[of_site])[some]
    at = {"sites": of_site[some]}
    holed = np.where(np.arange(5) < 3, X[some], np.nan), np.where(np.arange(5) < 3, corrected, np.nan)
    np.testing.assert_allclose(model.predict_interval(X[some], **at), model.predict_interval(corrected), rtol=1e-6)
    np.testing.assert_array_equal(model.predict_set(X[some], **at), model.predict_set(corrected))
    np.testing.assert_allclose(model.contributions(X[some], **at), model.contributions(corrected), atol=1e-9)
    np.testing.assert_allclose(model.shapley(X[some], **at), model.shapley(corrected), atol=1e-9)
    falls = [model.next_measurement(holed[0], **at).fall, model.next_measurement(holed[1]).fall]
    np.testing.assert_allclose(*falls, atol=1e-9)
    importance = [model.feature_importance(X[some], y[some], **at), model.feature_importance(corrected, y[some])]
    np.testing.assert_allclose(*importance, atol=1e-9)


def test_intervals_at_a_new_site_are_those_at_its_class_frequencies():
    X, y, of_site = simulated(frequency=0.3, apart=3.0)
    model = CGNClassifier().fit(X[of_site < 4], y[of_site < 4], sites=of_site[of_site < 4])
    new = np.flatnonzero(of_site == 4)
    new = np.concatenate([new[y[new] == 1], new[y[new] == 0][:3]])  # a site where the class is frequent
    proba = model.predict_proba(X[new], sites=of_site[new])
    interval = model.predict_interval(X[new], sites=of_site[new])
    assert ((interval[..., 0] <= proba) & (proba <= interval[..., 1])).all()
    np.testing.assert_allclose(interval[:, 0, 0], 1 - interval[:, 1, 1], atol=1e-9)


@pytest.mark.parametrize("estimator", [CGNClassifier("naive_bayes"), CGNClassifierCV(candidates=["complete"])])
def test_a_new_site_gets_its_shift_from_unlabelled_samples(estimator):
    losses = []
    for seed in range(3):
        X, y, of_site = simulated(seed)
        old, new = of_site < 4, of_site == 4
        model = clone(estimator).fit(X[old], y[old], sites=of_site[old])
        ignoring = clone(estimator).fit(X[old], y[old])
        found = model.predict_log_proba(X[new], sites=of_site[new]), ignoring.predict_log_proba(X[new])
        losses.append([LOG_LOSS(each, y[new]) for each in found])
    with_sites, without = np.mean(losses, axis=0)
    assert with_sites < without - 0.3


def test_another_class_frequency_is_not_taken_for_a_shift():
    X, y, of_site = simulated(shift=0.0, n=80, apart=3.0)
    rng = np.random.default_rng(5)
    new = (rng.random(100) < 0.9).astype(int)
    Z = rng.normal(size=(100, 5)) + new[:, None] * 3.0 * np.array([1, -1, 0.5, 0, 0])
    model = CGNClassifier().fit(X, y, sites=of_site)
    found = model.predict_log_proba(Z, sites=["elsewhere"] * 100)
    assert LOG_LOSS(found, new) < LOG_LOSS(model.predict_log_proba(Z), new) + 0.005
    assert np.exp(found)[:, 1].mean() == pytest.approx(new.mean(), abs=0.05)


def test_a_shift_that_looks_like_another_class_is_refused():
    # One feature, and a site whose samples could all be of either class with one shift or the other.
    rng = np.random.default_rng(0)
    of_site = np.repeat(np.arange(6), 40)
    y = np.tile(np.repeat([0, 1], 20), 6)
    X = rng.normal(size=(240, 1)) * 0.5 + 2.0 * y[:, None] + 2 * rng.normal(size=6)[of_site, None]
    model = CGNClassifier().fit(X, y, sites=of_site)
    middle = model.site_shift_.means.mean()
    Z = rng.normal(size=(60, 1)) * 0.5 + middle
    with pytest.warns(DataWarning, match=r"site 'new' is new, and its shift cannot be told from its class frequencies"):
        found = model.predict_proba(Z, sites=["new"] * 60)
    np.testing.assert_allclose(found, model.predict_proba(Z))


def test_few_samples_of_a_new_site_are_predicted_without_a_shift():
    X, y, of_site = simulated()
    model = CGNClassifier().fit(X, y, sites=of_site)
    with pytest.warns(DataWarning, match="site 'new' is new, and has 1 samples, of the 5"):
        found = model.predict_proba(X[:1], sites=["new"])
    np.testing.assert_allclose(found, model.predict_proba(X[:1]))


def test_a_given_class_prior_stays():
    X, y, of_site = simulated(frequency=0.7)
    model = CGNClassifier(class_prior=[0.5, 0.5]).fit(X[of_site < 4], y[of_site < 4], sites=of_site[of_site < 4])
    new = of_site == 4
    table = model._placed(X[new], of_site[new])
    assert np.abs(table.log_odds).max() < 1e-12


def test_models_with_sites_are_stored(tmp_path):
    X, y, of_site = simulated()
    names = np.array(["a", "b", "c", "d", "e"])[of_site]
    model = CGNClassifier().fit(X, y, sites=names)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X, sites=names), model.predict_proba(X, sites=names))


def test_sites_are_routed_through_pipelines():
    X, y, of_site = simulated()
    with sklearn.config_context(enable_metadata_routing=True):
        last = CGNClassifier().set_fit_request(sites=True).set_predict_proba_request(sites=True)
        pipeline = make_pipeline(StandardScaler(), last).fit(X, y, sites=of_site)
        found = pipeline.predict_proba(X, sites=of_site)
    scaled = StandardScaler().fit_transform(X)
    expected = CGNClassifier().fit(scaled, y, sites=of_site).predict_proba(scaled, sites=of_site)
    np.testing.assert_allclose(found, expected)


def test_what_sites_do_in_words():
    X, y, of_site = simulated(shift=2.0)
    shift = CGNClassifier().fit(X, y, sites=of_site).site_shift_
    [words] = in_words(shift, list("abcde"))
    assert words.startswith("5 sites; their share of the variance within classes: ")
    mostly = np.where(np.random.default_rng(9).random(len(y)) < 0.9, y, 1 - y)
    shift = CGNClassifier().fit(X, y, sites=mostly).site_shift_
    assert "classes and sites are confounded" in in_words(shift, list("abcde"))[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y, s: np.arange(len(y)), "each sample has a site of its own"),
        (lambda y, s: y, r"site [01] has [01], site [01] has [01], and no site joins them"),
        (lambda y, s: s[:-1], "sites must have one entry for each"),
        (lambda y, s: np.where(s == 0, np.nan, s), "the site of sample 0 is missing"),
    ],
)
def test_sites_that_say_nothing_are_refused(change, message):
    X, y, of_site = simulated()
    with pytest.raises(ValueError, match=message):
        CGNClassifier().fit(X, y, sites=change(y, of_site))


def test_a_site_of_one_class_is_told():
    X, y, of_site = simulated()
    y = np.where(of_site == 2, 1, y)
    with pytest.warns(DataWarning, match="site 2 has samples of class 1 only"):
        model = CGNClassifier().fit(X, y, sites=of_site)
    assert np.isfinite(model.predict_proba(X, sites=of_site)).all()


def test_sites_where_they_do_not_belong():
    X, y, of_site = simulated()
    with pytest.raises(ValueError, match="the model was fitted without sites"):
        CGNClassifier().fit(X, y).predict_proba(X, sites=of_site)
    model = CGNClassifier().fit(X, y, sites=of_site)
    with pytest.raises(ValueError, match="site 9 is not one of the training samples'"):
        model.leave_one_out_log_proba(X, y, sites=of_site + 9)
    with pytest.raises(ValueError, match="shifts of sites need all samples at once"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="sites shift continuous columns, and there are none"):
        CGNClassifier(categorical_features=[0]).fit((X[:, :1] > 0).astype(int), y, sites=of_site)
    assert not hasattr(model.fit(X, y), "site_shift_")
