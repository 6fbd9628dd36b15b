"""Discriminative parameters against logistic regression, refits and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from cgnlearn import Band, CGNClassifier, Prior, load, save
from cgnlearn.model import logistic
from cgnlearn.model.discriminative import _left_out_scores, _penalties, _standardised, row_space
from cgnlearn.model.logistic import Curvature, Point, Rows, fitted, leaving_out, left_out

MIXED = {0: [], 1: [0], 2: [0, 1], 3: [1, 2], 4: [0, 2, 3]}


def discriminative(structure="naive_bayes", **settings):
    return CGNClassifier(structure, parameters="discriminative", **settings)


def rows_of(model, X, y, weights=None):
    """The regression that a fitted classifier's correction is the solution of."""
    table, network = model._table(X, y, weights), model._generative
    values, _, scale = _standardised(network, table)
    weights = np.ones(len(y)) if weights is None else weights
    frequencies = np.log(np.bincount(table.labels, weights) / weights.sum())
    return Rows.of(values[:, scale > 0], _left_out_scores(network, table), frequencies, table.labels, weights)


def origin(rows, temperature=1.0):
    return Point(np.zeros((rows.design.shape[1], rows.n_contrasts)), temperature)


def random_rows(rng, n=40, n_classes=3, n_features=4):
    labels = np.arange(n) % n_classes
    return Rows.of(
        rng.normal(size=(n, n_features)),
        rng.normal(size=(n, n_classes)),
        rng.normal(size=n_classes),
        labels,
        rng.uniform(0.5, 2.0, n),
    )


# ---- the regression


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_penalty_and_scores_it_is_logistic_regression(n_classes):
    """Of two or three overlapping classes, for which the optimum is finite."""
    rng = np.random.default_rng(1)
    y = np.arange(300) % n_classes
    X = rng.normal(size=(300, 4)) * [1, 10, 0.1, 1] + 0.5 * y[:, None] * [1, 0, 0.1, -1] + [0, 100, 0, 0]
    rows = rows_of(discriminative(sharing=1.0).fit(X, y), X, y)
    point = fitted(rows, 0.0, origin(rows), bounds=(0.0, 0.0))
    scaled = StandardScaler().fit_transform(X)
    theirs = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(scaled, y)
    np.testing.assert_allclose(
        rows.log_proba(rows.contrasts(point)), theirs.predict_log_proba(scaled), rtol=1e-5, atol=1e-6
    )


def test_with_an_infinite_penalty_it_is_the_tempered_bayesian_classifier(monkeypatch):
    monkeypatch.setattr("cgnlearn.model.discriminative._penalties", lambda rows: [])
    X, y = load_breast_cancer(return_X_y=True)
    model, bayes = discriminative().fit(X, y), CGNClassifier().fit(X, y)
    found = model.discriminative_
    assert found.penalty == np.inf
    assert not found.slopes.any()
    # log p(x | class) left out, as public methods tell it up to a constant of the row
    left = bayes.leave_one_out_log_proba(X, y)
    n = np.bincount(y).astype(float)
    left -= np.log(n - np.eye(2)[y] + Prior().dirichlet)

    def loss(parameters):
        joint = parameters[0] * left + [parameters[1], -parameters[1]] + bayes.class_log_prior_
        return -(joint[np.arange(len(y)), y] - np.logaddexp.reduce(joint, axis=1)).sum()

    best = minimize(loss, [0.5, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-9, "maxiter": 4000})
    np.testing.assert_allclose([found.temperature, found.offset[0]], best.x, rtol=1e-4)
    tempered = found.temperature * bayes._model.log_likelihood(bayes._table(X)) + found.offset
    np.testing.assert_allclose(model.predict_joint_log_proba(X), tempered + bayes.class_log_prior_, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradient_and_hessian(n_classes, rng):
    rows = random_rows(rng, n_classes=n_classes)
    shape = (rows.n_contrasts, rows.design.shape[1])

    def point(parameters):
        return Point(parameters[:-1].reshape(shape).T, parameters[-1])

    at = rng.normal(size=shape[0] * shape[1] + 1)
    gap = check_grad(lambda p: rows.loss(point(p), 0.7), lambda p: rows.gradient(point(p), 0.7), at)
    assert gap < 1e-4 * np.abs(rows.gradient(point(at), 0.7)).max()
    step = 1e-5
    columns = [
        (rows.gradient(point(at + step * unit), 0.7) - rows.gradient(point(at - step * unit), 0.7)) / (2 * step)
        for unit in np.eye(len(at))
    ]
    np.testing.assert_allclose(rows.hessian(point(at), 0.7), columns, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, 0.1), (0.9, 1.0), (0.4, 0.4)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_both_optimisers_find_the_optimum(bounds, n_classes, rng, monkeypatch):
    rows = random_rows(rng, n_classes=n_classes)
    newton = fitted(rows, 0.3, origin(rows), bounds)
    assert bounds[0] <= newton.temperature <= bounds[1]
    gradient = rows.gradient(newton, 0.3)
    np.testing.assert_allclose(gradient[:-1], 0, atol=1e-6)
    if newton.temperature > bounds[0]:
        assert gradient[-1] < 1e-6  # less would be no better
    if newton.temperature < bounds[1]:
        assert gradient[-1] > -1e-6  # nor more
    monkeypatch.setattr(logistic, "MOST_DENSE", 0)
    other = fitted(rows, 0.3, origin(rows), bounds)
    np.testing.assert_allclose(rows.contrasts(other), rows.contrasts(newton), atol=1e-4)


@pytest.mark.parametrize("penalty", [0.3, 1e-3, 300.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_curvature_nearby_leads_to_the_same_optimum(n_classes, penalty, rng):
    rows = random_rows(rng, n_classes=n_classes)
    start = fitted(rows, 1.0, origin(rows), (0.0, 0.0))
    near = leaving_out(rows, 1.0, start, (0.0, 0.0)).curvature
    by_products = fitted(rows, penalty, start, (0.0, 0.0), near)
    assert np.abs(rows.gradient(by_products, penalty)[:-1]).max() < 1e-4
    directly = fitted(rows, penalty, start, (0.0, 0.0))
    np.testing.assert_allclose(rows.contrasts(by_products), rows.contrasts(directly), atol=1e-5)


def test_a_curvature_that_is_too_far_away_is_given_up(rng, monkeypatch):
    rows = random_rows(rng)
    near = Curvature(np.diag(np.geomspace(1e-6, 1e6, rows.n_parameters - 1)), 1.0)
    monkeypatch.setattr(logistic, "MOST_PRODUCTS", 2)
    found = fitted(rows, 1.0, origin(rows), (0.0, 0.0), near)
    directly = fitted(rows, 1.0, origin(rows), (0.0, 0.0))
    np.testing.assert_allclose(rows.contrasts(found), rows.contrasts(directly), atol=1e-8)


@pytest.mark.parametrize("load_data", [load_wine, load_iris])
@pytest.mark.parametrize("sharing", [0.0, 1.0])
@pytest.mark.parametrize(
    ("bounds", "step", "most"),
    [
        ((0.0, 0.0), 2, 0.001),  # logistic regression, of which the published figures are
        ((0.0, 1.0), 1, 0.003),  # a free temperature, which nothing penalises, moves farther than one step tells
    ],
)
def test_leaving_one_out_against_refits(load_data, sharing, bounds, step, most):
    penalty = 1 / 0.3
    X, y = (part[::step] for part in load_data(return_X_y=True))
    rows = rows_of(discriminative(sharing=sharing).fit(X, y), X, y)
    whole = fitted(rows, penalty, origin(rows), bounds)
    refits = np.empty((len(y), 3))
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        others = replace(
            rows, design=rows.design[kept], scores=rows.scores[kept], labels=y[kept], weights=rows.weights[kept]
        )
        refits[i] = rows.log_proba(rows.contrasts(fitted(others, penalty, whole, bounds)))[i]

    def cll(log_proba):
        return log_proba[np.arange(len(y)), y].mean()

    found, seen = cll(left_out(rows, penalty, whole, bounds)), cll(rows.log_proba(rows.contrasts(whole)))
    assert abs(found - cll(refits)) < most
    assert abs(found - cll(refits)) < 0.3 * abs(seen - cll(refits))


def test_contrasts_taken_apart_still_tell_what_a_left_out_row_costs(rng, monkeypatch):
    rows = random_rows(rng, n=90)
    point = fitted(rows, 2.0, origin(rows))
    whole = left_out(rows, 2.0, point)
    monkeypatch.setattr(logistic, "MOST_DENSE", 0)
    at = np.arange(90), rows.labels
    seen = rows.log_proba(rows.contrasts(point))[at].mean()
    assert abs(left_out(rows, 2.0, point)[at].mean() - whole[at].mean()) < 0.25 * (seen - whole[at].mean())


def test_the_weakest_penalty_leaves_no_more_than_a_parameter_to_four_rows():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    rows = rows_of(discriminative(sharing=1.0).fit(rng.normal(size=(60, 30)), y), rng.normal(size=(60, 30)), y)
    squares = np.linalg.svd(rows.design[:, 1:], compute_uv=False) ** 2 / 3
    effective = [2 * (squares / (squares + penalty)).sum() for penalty in _penalties(rows)]
    np.testing.assert_allclose([effective[0], effective[-1]], [1.0, 15.0], rtol=1e-6)
    assert np.all(np.diff(effective) > 0)


def test_rotation_changes_no_slope(rng):
    X, labels = rng.normal(size=(20, 50)), np.arange(20) % 2
    scores, one = rng.normal(size=(20, 2)), np.ones(20)
    basis, rotated = row_space(X)
    whole, small = (Rows.of(part, scores, np.zeros(2), labels, one) for part in (X, rotated))
    slopes = fitted(whole, 2.0, origin(whole)).slopes
    found = fitted(small, 2.0, origin(small)).slopes
    np.testing.assert_allclose(X.T @ (basis @ found[1:]), slopes[1:], atol=1e-6)
    np.testing.assert_allclose(found[0], slopes[0], atol=1e-6)


# ---- the classifier


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", MIXED])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_mixed_attributes(mixed, structure, sharing):
    X, y, test = mixed
    model = discriminative(structure, sharing=sharing, categorical_features=[0, 1]).fit(X, y)
    proba = model.predict_proba(test)
    assert np.isfinite(proba).all()
    joint = model.contributions(test).sum(axis=1) + model.class_log_prior_
    np.testing.assert_allclose(joint, model.predict_joint_log_proba(test), rtol=1e-9, atol=1e-9)
    found = model.discriminative_
    assert 0 <= found.temperature <= 1
    np.testing.assert_allclose(found.slopes.sum(axis=0), 0, atol=1e-9)
    assert found.left_out_cll[found.penalties.tolist().index(found.penalty)] == found.left_out_cll.max()


def test_discrete_attributes_alone(rng):
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
    model = discriminative({0: [], 1: [], 2: [0, 1]}, sharing=1.0, categorical_features=[0, 1]).fit(X, y)
    rows = rows_of(model, X, y)
    likeliest = CGNClassifier({0: [], 1: [], 2: [0, 1]}, parameters="ml", sharing=1.0, categorical_features=[0, 1])
    odds = np.diff(likeliest.fit(X, y).predict_joint_log_proba(X))[:, 0]
    residual = odds - rows.design @ np.linalg.lstsq(rows.design, odds)[0]
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


@pytest.mark.parametrize("n_columns", [4, 60])
def test_a_weight_of_two_is_a_row_twice(n_columns, rng):
    y = np.arange(45) % 3
    X = rng.normal(size=(45, n_columns)) + 0.7 * y[:, None]
    weights = rng.integers(0, 3, 45)
    weights[:3] = 1
    weighted = discriminative().fit(X, y, sample_weight=weights)
    repeated = discriminative().fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.discriminative_.left_out_cll, repeated.discriminative_.left_out_cll, rtol=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-5, atol=1e-7)


def test_constant_and_duplicated_columns_say_nothing_new():
    X, y = load_iris(return_X_y=True)
    constant = np.column_stack([X, np.full(len(y), 3.0)])
    plain, more = (discriminative(sharing=1.0).fit(part, y) for part in (X, constant))
    constant[:, -1] = 1e6
    np.testing.assert_allclose(more.predict_proba(constant), plain.predict_proba(X), rtol=1e-9)
    assert not more.discriminative_.slopes[:, -1].any()
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
    assert model.discriminative_.temperature <= 1
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_more_columns_than_rows(rng):
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 700)).cumsum(axis=1)
    X[:, 300:] += 3 * y[:, None]
    model = discriminative(Band(2)).fit(X[::2], y[::2])
    assert model.discriminative_.slopes.shape == (3, 700 + 700 + 699)
    assert model.score(X[1::2], y[1::2]) > CGNClassifier(Band(2)).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) - 0.1


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_it_predicts_better_where_attributes_interact(sharing):
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
    model.set_params(parameters="bayes")
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
    assert "need all rows" in str(refused.value.__cause__)
    with pytest.raises(ValueError, match="from_statistics cannot have"):
        CGNClassifier.from_statistics(CGNClassifier().fit(X, y).statistics_, parameters="discriminative")
    with pytest.raises(ValueError, match="leave temperature at 1"):
        discriminative(temperature="cv").fit(X, y)
    with pytest.raises(ValueError, match='location "paper"'):
        discriminative(prior=Prior(location="paper")).fit(X, y)
    model = discriminative().fit(X, y)
    with pytest.raises(AttributeError, match="log_evidence_ is not defined"):
        _ = model.log_evidence_
    with pytest.raises(ValueError, match="take folds"):
        model.leave_one_out_log_proba(X, y)


def test_densities_and_draws_are_those_of_the_bayesian_twin():
    X, y = load_iris(return_X_y=True)
    model, bayes = discriminative().fit(X, y), CGNClassifier().fit(X, y)
    np.testing.assert_array_equal(model.score_samples(X), bayes.score_samples(X))
    np.testing.assert_array_equal(model.sample(5, random_state=0)[0], bayes.sample(5, random_state=0)[0])


def test_features_that_would_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("cgnlearn.model.discriminative.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="use sharing=1"):
        discriminative("complete").fit(*load_iris(return_X_y=True))
