"""Discriminative parameters: the classifier."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import cross_val_score

from cgnlearn import Band, CGNClassifier, Prior, load, save

from .samples import discriminative, samples_of

MIXED = {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 2, 3]}


def test_with_an_infinite_penalty_it_is_the_tempered_bayesian_classifier(monkeypatch):
    monkeypatch.setattr("cgnlearn.logistic.correction.penalties", lambda samples: [np.inf])
    X, y = load_breast_cancer(return_X_y=True)
    model, bayes = discriminative().fit(X, y), CGNClassifier().fit(X, y)
    found = model.discriminative_
    assert found.penalty == np.inf
    assert not found.slopes.any()
    # log p(x | class) left out, as public methods tell it up to a constant of the sample
    left = bayes.leave_one_out_log_proba(X, y)
    n = np.bincount(y).astype(float)
    left -= np.log(n - np.eye(2)[y] + Prior().dirichlet)

    def loss(parameters):
        joint = parameters[0] * left + [parameters[1], -parameters[1]] + bayes.class_log_prior_
        return -(joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1)).sum()

    best = minimize(loss, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000})
    np.testing.assert_allclose([found.likelihood_power, found.intercept[0]], best.x, rtol=1e-4)
    tempered = found.likelihood_power * bayes._model.log_likelihood(bayes._table(X)) + found.intercept
    np.testing.assert_allclose(model.predict_joint_log_proba(X), tempered + bayes.class_log_prior_, rtol=1e-12)


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", MIXED])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_mixed_features(mixed, structure, sharing):
    X, y, test = mixed
    model = discriminative(structure, sharing=sharing, categorical_features=[0, 1]).fit(X, y)
    proba = model.predict_proba(test)
    assert np.isfinite(proba).all()
    joint = model.contributions(test).sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(test), rtol=1e-9, atol=1e-9)
    found = model.discriminative_
    assert 0 <= found.likelihood_power <= 1
    np.testing.assert_allclose(found.slopes.sum(axis=1), 0, atol=1e-9)
    assert found.held_out_log_loss[found.penalties.tolist().index(found.penalty)] == found.held_out_log_loss.min()


def test_discrete_features_alone(rng):
    """Two columns that say something only together, which naive Bayes cannot see and a joint family can."""
    X = rng.integers(0, 2, (200, 2))
    y = (X[:, 0] ^ X[:, 1]) ^ (rng.uniform(size=200) < 0.1)
    naive = discriminative(categorical_features=[0, 1]).fit(X, y)
    joined = discriminative({0: [], 1: [0]}, categorical_features=[0, 1]).fit(X, y)
    assert naive.score(X, y) < 0.65
    assert joined.score(X, y) > 0.85


def test_cells_of_independent_discrete_parents_have_an_indicator(rng):
    """The log odds of the network are linear in the features, which a regression without scores can so repeat."""
    X = np.column_stack([rng.integers(0, 2, (400, 2)), rng.normal(size=400)])
    y = np.arange(400) % 2
    X[:, 2] += y * (1 + 2 * X[:, 0] * X[:, 1])
    samples = samples_of(X, y, structure={0: [], 1: [], 2: [0, 1]}, sharing=1.0, categorical_features=[0, 1])
    likeliest = CGNClassifier({0: [], 1: [], 2: [0, 1]}, estimation="ml", sharing=1.0, categorical_features=[0, 1])
    odds = np.diff(likeliest.fit(X, y).predict_joint_log_proba(X))[:, 0]
    residual = odds - samples.design @ np.linalg.lstsq(samples.design, odds)[0]
    np.testing.assert_allclose(residual, 0, atol=1e-9)


@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize("structure", ["complete", Band(2)])
def test_scaling_and_shifting_change_nothing(structure, sharing):
    X, y = load_iris(return_X_y=True)
    model = discriminative(structure, sharing=sharing)
    moved = X * [1e-6, 1, 1e5, -3] + [0, 1e4, -7, 1]
    np.testing.assert_allclose(
        clone(model).fit(moved, y).predict_proba(moved), model.fit(X, y).predict_proba(X), rtol=1e-5, atol=1e-7
    )


def test_constant_and_duplicated_columns_say_nothing_new():
    X, y = load_iris(return_X_y=True)
    constant = np.column_stack([X, np.full(len(y), 3.0)])
    plain, more = (discriminative(sharing=1.0).fit(part, y) for part in (X, constant))
    constant[:, -1] = 1e6
    np.testing.assert_allclose(more.predict_proba(constant), plain.predict_proba(X), rtol=1e-9)
    assert not more.discriminative_.slopes[-1].any()
    doubled = np.column_stack([X, X])
    assert np.isfinite(discriminative("complete").fit(doubled, y).predict_log_proba(doubled)).all()


def test_nothing_to_go_by_leaves_the_frequencies():
    X, y = np.ones((30, 2)), np.arange(30) % 3 % 2
    proba = discriminative().fit(X, y).predict_proba(X[:1])
    np.testing.assert_allclose(proba, [[2 / 3, 1 / 3]], rtol=1e-6)


def test_a_given_class_prior_moves_the_odds_and_nothing_else():
    X, y = load_breast_cancer(return_X_y=True)
    learned = discriminative(sharing=1.0).fit(X, y)
    given = discriminative(sharing=1.0, class_prior="uniform").fit(X, y)
    moved = np.diff(given.predict_log_proba(X)) - np.diff(learned.predict_log_proba(X))
    np.testing.assert_allclose(moved, -np.diff(learned.class_log_prior_)[0], atol=1e-6)


def test_separated_classes_never_end_in_certainty():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + 20 * y[:, None]
    model = discriminative(sharing=1.0).fit(X, y)
    assert model.discriminative_.likelihood_power <= 1
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_more_columns_than_rows(rng):
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 700)).cumsum(axis=1)
    X[:, 300:] += 3 * y[:, None]
    model = discriminative(Band(2)).fit(X[::2], y[::2])
    assert model.discriminative_.slopes.shape == (700 + 700 + 699, 3)
    assert model.score(X[1::2], y[1::2]) > CGNClassifier(Band(2)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) - 0.1


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_it_predicts_better_where_features_interact(sharing):
    """Correlated within the classes and one pair's product deciding: what naive Bayes takes for independent."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 1)) + 0.6 * rng.normal(size=(600, 6))
    odds = 1.5 * X[:, 0] - 1.2 * X[:, 1] + 0.8 * X[:, 2] ** 2 - 0.8
    y = (rng.uniform(size=600) < 1 / (1 + np.exp(-odds))).astype(int)
    ours, bayes = (
        cross_val_score(model, X, y, cv=5, scoring="neg_log_loss").mean()
        for model in (discriminative(sharing=sharing), CGNClassifier(sharing=sharing))
    )
    assert ours > bayes + 0.1


def test_saved_and_loaded(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = discriminative("complete").fit(X, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.discriminative_.penalty == model.discriminative_.penalty


def test_what_was_fitted_stays():
    X, y = load_iris(return_X_y=True)
    model = discriminative().fit(X, y)
    proba = model.predict_proba(X)
    model.set_params(estimation="bayes")
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    with pytest.raises(AttributeError):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), CGNClassifier().fit(X, y).predict_proba(X))
    assert not hasattr(model, "discriminative_")


def test_what_is_not_defined_says_so():
    X, y = load_iris(return_X_y=True)
    assert not hasattr(discriminative(), "partial_fit")
    with pytest.raises(AttributeError) as refused:
        discriminative().partial_fit(X, y, classes=[0, 1, 2])
    assert "needs all samples" in str(refused.value.__cause__)
    with pytest.raises(ValueError, match="from_statistics cannot have"):
        CGNClassifier.from_statistics(CGNClassifier().fit(X, y).statistics_, estimation="discriminative")
    with pytest.raises(ValueError, match="leave likelihood_power at 1"):
        discriminative(likelihood_power="cv").fit(X, y)
    with pytest.raises(ValueError, match='location "paper"'):
        discriminative(prior=Prior(location="paper")).fit(X, y)
    model = discriminative().fit(X, y)
    with pytest.raises(AttributeError, match="log_evidence_ is not defined"):
        _ = model.log_evidence_
    with pytest.raises(ValueError, match="use folds"):
        model.leave_one_out_log_proba(X, y)


def test_densities_and_draws_are_those_of_the_bayesian_twin():
    X, y = load_iris(return_X_y=True)
    model, bayes = discriminative().fit(X, y), CGNClassifier().fit(X, y)
    np.testing.assert_array_equal(model.score_samples(X), bayes.score_samples(X))
    np.testing.assert_array_equal(model.sample(5, random_state=0)[0], bayes.sample(5, random_state=0)[0])


def test_features_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("cgnlearn.logistic.correction.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="use sharing=1"):
        discriminative("complete").fit(*load_iris(return_X_y=True))


@pytest.mark.filterwarnings("ignore::UserWarning")  # that weights are frequencies
@pytest.mark.parametrize(
    ("structure", "seed"), [("naive_bayes", 0), ("complete", 0), ("complete", 4), ("tan", 0), ("tan", 4)]
)
def test_on_noise_the_weight_of_all_samples_does_not_matter(structure, seed):
    rng = np.random.default_rng(seed)
    X, new, y = rng.normal(size=(40, 3)), rng.normal(size=(1000, 3)), np.arange(40) % 2
    losses = []
    for weight in (1.0, 10.0, 1000.0):
        model = discriminative(structure=structure).fit(X, y, sample_weight=np.full(40, weight))
        losses.append(-model.predict_log_proba(new)[np.arange(1000), np.arange(1000) % 2].mean())
    fitted = model.discriminative_
    assert fitted.likelihood_power > 0 or fitted.slopes.any()  # to noise
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::UserWarning")  # that weights are frequencies
def test_weights_that_differ_count_for_their_effective_number():
    X, y = load_iris(return_X_y=True)
    weights = np.random.default_rng(0).choice([10.0, 30.0], size=150)
    model, scaled = discriminative().fit(X, y, weights), weights * weights.sum() / np.square(weights).sum()
    np.testing.assert_allclose(model.statistics_.classes, np.bincount(y, scaled))
    np.testing.assert_allclose(model.predict_proba(X), discriminative().fit(X, y, scaled).predict_proba(X), rtol=1e-9)
    light = discriminative().fit(X, y, weights / 100)  # fewer samples than there are: as frequencies
    np.testing.assert_allclose(light.statistics_.classes, np.bincount(y, weights / 100))
