"""k and likelihood power by inner cross-validation: as a loop over folds, and the best is taken."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn import config_context
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from cgnlearn import TAN, Band, Box, CGNClassifier, GreedyJan, Prior, SampleNotAcceptableError, Structure
from cgnlearn.candidates.networks import SHARINGS
from cgnlearn.data.schema import Schema


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return X, y


LIKELIHOOD_POWERS = np.geomspace(1e-4, 1, 401)


def seed_of(random_state):
    """The seed by which both estimators split samples into folds."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max)


def curve(make, X, y, likelihood_powers, cv, seed=0, weights=None):
    """Out of fold: log losses, hits and losses of the likeliest wrong class, (likelihood powers, samples)."""
    loss, right, second = np.zeros((3, len(likelihood_powers), len(y)))
    seed = seed_of(seed)
    for train, test in StratifiedKFold(cv, shuffle=True, random_state=seed).split(X, y):
        model = make().fit(X[train], y[train], None if weights is None else weights[train])
        likelihood = model.predict_joint_log_proba(X[test]) - model.class_log_prior_
        true = np.searchsorted(model.classes_, y[test])
        for place, likelihood_power in enumerate(likelihood_powers):
            joint = likelihood_power * likelihood + model.class_log_prior_
            log_proba = joint - logsumexp(joint, axis=1, keepdims=True)
            loss[place, test] = -log_proba[np.arange(len(test)), true]
            right[place, test] = log_proba.argmax(axis=1) == true
            second[place, test] = -likeliest_wrong(log_proba, true)
    return loss, right, second


PAPER = Prior(location="paper")  # whose leave-one-out has no closed form, so that folds are cut


def held_out_scores(model, X, y, weights=None):
    """Log loss and accuracy of training samples, each by the fitted model without it."""
    log_proba = model.leave_one_out_log_proba(X, y, weights)
    right = log_proba.argmax(axis=1) == y
    return np.average([-log_proba[np.arange(len(y)), y], right], axis=1, weights=weights)


def likeliest_wrong(log_proba, true):
    return np.sort(np.where(np.eye(log_proba.shape[1], dtype=bool)[true], -np.inf, log_proba), axis=1)[:, -1]


def effective(weights):
    """Kish's number of samples."""
    return weights.sum() ** 2 / np.square(weights).sum()


def best_power(loss, second, n):
    """Of the grid, with a weak prior around 1, and a quarter of a sample more that is wrong."""
    return LIKELIHOOD_POWERS[np.argmin(loss + (0.25 * second + 0.4 * np.log(LIKELIHOOD_POWERS) ** 2) / n)]


NEAR = 0.013  # half a step of the grid


@pytest.mark.parametrize("structure", [Band, Box])
@pytest.mark.parametrize("estimation", [{}, {"estimation": "ml"}, {"sharing": 0.3}], ids=str)
def test_k_is_the_best_by_leave_one_out(wine, structure, estimation):
    X, y = wine
    model = CGNClassifier(structure("cv", k_max=6), **estimation).fit(X, y)
    results = pd.DataFrame(model.cv_results_)
    for k in range(1, 7):
        found = results.loc[k - 1, ["mean_test_log_loss", "mean_test_accuracy"]].astype(float)
        np.testing.assert_allclose(
            found, held_out_scores(CGNClassifier(structure(k), **estimation).fit(X, y), X, y), rtol=1e-8
        )
    assert model.k_ == results["mean_test_log_loss"].argmin() + 1
    plain = CGNClassifier(structure(model.k_), **estimation).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", {0: [], 3: [0], 7: [0, 3]}], ids=str)
def test_likelihood_power_and_sharing_by_leave_one_out(wine, structure):
    X, y = wine
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = CGNClassifier(structure, likelihood_power="cv", sharing="cv").fit(X, y, weights)
    results = pd.DataFrame(model.cv_results_)
    assert results["param_sharing"].tolist() == list(SHARINGS)
    for found in results.itertuples():
        losses = []
        for likelihood_power in (found.likelihood_power, *LIKELIHOOD_POWERS[::8]):
            plain = CGNClassifier(structure, sharing=found.param_sharing, likelihood_power=likelihood_power).fit(
                X, y, weights
            )
            wrong = -likeliest_wrong(plain.leave_one_out_log_proba(X, y, weights), y)
            loss, accuracy = held_out_scores(plain, X, y, weights)
            penalty = 0.25 * np.average(wrong, weights=weights) + 0.4 * np.log(likelihood_power) ** 2
            losses.append((loss + penalty / effective(weights), loss, accuracy))
        assert losses[0][0] <= min(losses)[0] + 1e-9
        np.testing.assert_allclose((found.mean_test_log_loss, found.mean_test_accuracy), losses[0][1:], rtol=1e-8)
    best = results.loc[results["mean_test_log_loss"].idxmin()]
    assert (model.sharing_, model.likelihood_power_) == (best["param_sharing"], best["likelihood_power"])


def test_groups_are_never_parted(wine):
    """With every sample twice, leave-one-out would find the twin; grouped folds do not."""
    X, y = wine
    X, y, groups = np.repeat(X[:, :4], 2, axis=0), np.repeat(y, 2), np.repeat(np.arange(len(y)), 2)
    model = CGNClassifier("complete", likelihood_power="cv").fit(X, y, groups=groups)
    loss = np.zeros(len(y))
    for train, test in StratifiedGroupKFold(5, shuffle=True, random_state=seed_of(0)).split(X, y, groups):
        part = CGNClassifier("complete", likelihood_power=model.likelihood_power_).fit(X[train], y[train])
        loss[test] = -part.predict_log_proba(X[test])[np.arange(len(test)), y[test]]
    np.testing.assert_allclose(model.cv_results_["mean_test_log_loss"], loss.mean(), rtol=1e-8)
    with pytest.raises(ValueError, match="groups has 5 entries for 356 samples"):
        CGNClassifier(likelihood_power="cv").fit(X, y, groups=groups[:5])


def test_groups_are_routed(wine):
    X, y = wine
    groups = np.arange(len(y)) // 2
    with config_context(enable_metadata_routing=True):
        model = CGNClassifier(likelihood_power="cv").set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, groups=groups)
    alone = CGNClassifier(likelihood_power="cv").fit(StandardScaler().fit_transform(X), y, groups=groups)
    assert pipeline[-1].likelihood_power_ == alone.likelihood_power_


def test_certainty_is_never_chosen():
    """Where no sample is wrong, the likelihood power stays at 1 at most, however far the classes are apart."""
    rng = np.random.default_rng(0)
    for shift in (3.0, 8.0, 50.0):
        X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
        X[y == 1] += shift
        assert CGNClassifier(likelihood_power="cv").fit(X, y).likelihood_power_ <= 1


@pytest.mark.parametrize("structure", [Band, Box])
def test_k_is_the_best_of_a_loop(wine, structure):
    X, y = wine
    model = CGNClassifier(structure("cv", k_max=6, cv=4), prior=PAPER, random_state=3).fit(X, y)
    results = pd.DataFrame(model.cv_results_)
    assert results["param_k"].tolist() == [1, 2, 3, 4, 5, 6]
    for k in range(1, 7):
        loss, right, _ = curve(lambda k=k: CGNClassifier(structure(k), prior=PAPER), X, y, [1.0], 4, seed=3)
        np.testing.assert_allclose(results["mean_test_log_loss"][k - 1], loss.mean(), rtol=1e-8)
        np.testing.assert_allclose(results["mean_test_accuracy"][k - 1], right.mean(), rtol=1e-8)
    assert model.k_ == results["mean_test_log_loss"].argmin() + 1
    assert results["rank_test_log_loss"][model.k_ - 1] == 1
    assert model.structure_ == getattr(Structure, structure.__name__.lower())(13, model.k_)
    plain = CGNClassifier(structure(model.k_), prior=PAPER).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X))


def test_k_by_accuracy_goes_by_log_loss_where_equal(wine):
    X, y = wine
    model = CGNClassifier(Band("cv", k_max=13, scoring="accuracy"), random_state=0).fit(X, y)
    results = pd.DataFrame(model.cv_results_)
    most = results[results["mean_test_accuracy"] == results["mean_test_accuracy"].max()]
    assert model.k_ == most.loc[most["mean_test_log_loss"].idxmin(), "param_k"]
    assert results.loc[model.k_ - 1, "rank_test_accuracy"] == 1


@pytest.mark.parametrize("structure", ["naive_bayes", "tan", {0: [], 3: [0], 7: [0, 3]}], ids=str)
def test_likelihood_power_of_any_structure(wine, structure):
    X, y = wine
    model = CGNClassifier(structure, likelihood_power="cv", prior=PAPER, random_state=1).fit(X, y)
    grid = [*LIKELIHOOD_POWERS, model.likelihood_power_]
    loss, right, second = curve(lambda: CGNClassifier(structure, prior=PAPER), X, y, grid, 5, seed=1)
    np.testing.assert_allclose(model.cv_results_["mean_test_log_loss"], loss[-1].mean(), rtol=1e-8)
    np.testing.assert_allclose(model.cv_results_["mean_test_accuracy"], right[-1].mean(), rtol=1e-8)
    assert "param_k" not in model.cv_results_
    assert not hasattr(model, "k_")
    best = best_power(loss[:-1].mean(axis=1), second[:-1].mean(axis=1), len(y))
    assert model.likelihood_power_ == pytest.approx(best, rel=NEAR)
    given = CGNClassifier(structure, likelihood_power=model.likelihood_power_, prior=PAPER).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), given.predict_proba(X))


def test_a_search_is_repeated_in_every_fold_and_does_not_change_the_parameter(wine):
    X, y = wine
    structure = GreedyJan(cv=2)
    model = CGNClassifier(structure, likelihood_power="cv", random_state=1).fit(X[:, :3], y)
    assert model.search_path_
    assert not [name for name in vars(structure) if name.endswith("_")]


def test_repeated_columns_are_trusted_less():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = np.repeat(rng.normal(size=(200, 1)) + y[:, None], 10, axis=1)
    model = CGNClassifier(likelihood_power="cv", random_state=0).fit(X, y)
    assert 0.05 < model.likelihood_power_ < 0.2  # ten copies of one column are worth one


def test_probabilities_are_no_more_certain_than_the_samples_support():
    """Classes far apart: any likelihood power classifies all samples, and 60 samples are no reason to be surer than 1
    in 240.
    """
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 1)) + 50 * y[:, None]
    proba = CGNClassifier(likelihood_power="cv").fit(X, y).predict_proba(X)[np.arange(60), y]
    assert 1 / 960 < 1 - proba.mean() < 1 / 120


def test_likelihood_power_stays_near_one_where_the_model_is_right():
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 2
    X = rng.normal(size=(2000, 3)) + y[:, None]
    assert CGNClassifier(likelihood_power="cv").fit(X, y).likelihood_power_ > 0.8


def test_both_together(wine):
    X, y = wine
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    structure = Box("cv", k_max=5, cv=3)
    estimation = {"sharing": 0.5, "prior": PAPER}
    model = CGNClassifier(structure, likelihood_power="cv", random_state=2, **estimation).fit(X, y, weights)
    results = pd.DataFrame(model.cv_results_)
    assert results["param_k"].tolist() == [1, 2, 3, 4, 5]
    for k, power, found in zip(
        results["param_k"], results["likelihood_power"], results["mean_test_log_loss"], strict=True
    ):
        grid = [*LIKELIHOOD_POWERS, power]
        of_rows = curve(lambda k=k: CGNClassifier(Box(k), **estimation), X, y, grid, 3, seed=2, weights=weights)
        loss, _, second = (np.average(part, axis=1, weights=weights) for part in of_rows)
        np.testing.assert_allclose(found, loss[-1], rtol=1e-8)
        assert power == pytest.approx(best_power(loss[:-1], second[:-1], effective(weights)), rel=NEAR)
    best = results["mean_test_log_loss"].idxmin()
    assert (model.k_, model.likelihood_power_) == (results["param_k"][best], results["likelihood_power"][best])


def test_random_state_cuts_the_folds(wine):
    X, y = wine

    def fitted(random_state):
        model = CGNClassifier(Band("cv", k_max=3), prior=PAPER, random_state=random_state)
        return model.fit(X, y).cv_results_["mean_test_log_loss"]

    np.testing.assert_array_equal(fitted(5), fitted(5))
    assert (fitted(5) != fitted(6)).any()


def test_discrete_columns_take_part(mixed):
    X, y, _ = mixed
    model = CGNClassifier(Band("cv"), likelihood_power="cv", categorical_features=[0, 1], random_state=0).fit(X, y)
    assert set(model.cv_results_["param_k"]) == {1, 2, 3}  # no more than there are continuous columns
    only = CGNClassifier(Band("cv"), categorical_features=[0, 1], random_state=0).fit(X[:, :2], y)
    assert only.k_ == 1


def test_k_without_maximum_likelihood_is_passed_over():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 12)), np.arange(24) % 2
    model = CGNClassifier(Band("cv", k_max=12, cv=3), estimation="ml").fit(X, y)
    loss = model.cv_results_["mean_test_log_loss"]
    assert np.isposinf(loss[11:]).all()  # 12 samples of a class leave 11 degrees of freedom
    assert np.isfinite(loss[:10]).all()
    assert model.k_ < 7
    groups = np.arange(24)
    model = CGNClassifier(Band("cv", k_max=12, cv=3), estimation="ml").fit(X, y, groups=groups)
    loss = model.cv_results_["mean_test_log_loss"]
    assert np.isposinf(loss[7:]).all()  # 8 samples of a class leave 7 degrees of freedom
    assert np.isfinite(loss[:6]).all()  # with one degree left it depends on the folds how far the worst sample is out
    X[:, 3] = X[:, 2]
    X[:, 4] = 0
    with pytest.raises(SampleNotAcceptableError, match="exists for no k without some of the samples"):
        CGNClassifier(Band("cv"), estimation="ml").fit(X, y)


def test_rare_classes_get_fewer_folds():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), np.r_[np.zeros(16), np.ones(3), 2]
    model = CGNClassifier(Band("cv"), likelihood_power="cv", random_state=0).fit(X, y)  # a class of one sample
    assert np.isfinite(model.cv_results_["mean_test_log_loss"]).all()


@pytest.mark.slow
def test_parameters_reach_a_grid_search(wine):
    X, y = wine
    search = GridSearchCV(CGNClassifier(Band("cv", k_max=2)), {"structure__k_max": [1, 3]}, cv=2).fit(X, y)
    assert search.best_estimator_.k_ <= search.best_params_["structure__k_max"]


def test_fitting_again_forgets_what_was_chosen(wine):
    X, y = wine
    model = CGNClassifier(Band("cv", k_max=3), likelihood_power="cv", random_state=0).fit(X, y)
    model.set_params(structure=TAN(), likelihood_power=0.5).fit(X, y)
    assert model.likelihood_power_ == 0.5
    assert not hasattr(model, "k_")
    assert not hasattr(model, "cv_results_")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"structure": Band("best")}, "k must be a whole number of at least 1 or \"cv\", not 'best'"),
        ({"structure": Band(0)}, 'k must be a whole number of at least 1 or "cv", not 0'),
        ({"structure": Band("cv", k_max=0)}, "k_max must be a whole number of at least 1"),
        ({"structure": Box("cv", cv=1)}, "cv must be a whole number of at least 2"),
        ({"structure": Box("cv", scoring="auc")}, 'scoring must be "log_loss" or "accuracy"'),
        ({"likelihood_power": "best"}, "likelihood_power must be a positive number or \"cv\", not 'best'"),
        ({"likelihood_power": 0}, 'likelihood_power must be a positive number or "cv", not 0'),
        ({"likelihood_power": None}, 'likelihood_power must be a positive number or "cv", not None'),
    ],
)
def test_wrong_calls_say_what_to_do(wine, wrong, message):
    with pytest.raises(ValueError, match=message):
        CGNClassifier(**wrong).fit(*wine)


@pytest.mark.parametrize("model", [CGNClassifier(Band("cv")), CGNClassifier(likelihood_power="cv")])
def test_parts_leave_nothing_to_choose_from(wine, model):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError) as error:
        model.partial_fit(*wine, classes=[0, 1, 2])
    assert "fit once, then pass on" in str(error.value.__cause__)


def test_a_learner_alone_cannot_choose():
    with pytest.raises(ValueError, match="needs samples to choose k"):
        Band("cv").families(Schema(None, (None,) * 3, (0, 1)))


def test_a_class_of_one_sample_has_no_maximum_likelihood_without_it():
    rng = np.random.default_rng(0)
    with pytest.raises(SampleNotAcceptableError, match="exists for no k without some of the samples"):
        CGNClassifier(Band("cv"), estimation="ml").fit(rng.normal(size=(20, 3)), np.arange(20) == 3)
