"""Complete structures over more columns than samples: the rotated answer is the factorised one."""

import tracemalloc
import weakref
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from cgnlearn import CGNClassifier, Complete, Prior, SampleNotAcceptableError, load, save
from cgnlearn.data.table import read_training
from cgnlearn.networks import densities
from cgnlearn.networks.rotation import Rotation
from cgnlearn.structures import fixed
from cgnlearn.structures.fixed import RotatedComplete

N, P = 30, 80
RNG = np.random.default_rng(7)
LOCATION, SCALE = RNG.normal(100, 1, P), RNG.uniform(0.5, 2, P)


@pytest.fixture
def wide(rng):
    """Columns of many sizes far from 0, one constant, one repeated; three classes, one of them of two samples."""
    y = np.r_[np.arange(N - 2) % 2, 2, 2]
    X = 100 + np.exp(rng.normal(size=P)) * (rng.normal(size=(N, P)) + 0.5 * y[:, None])
    X[:, 3], X[:, 5] = 7.1, X[:, 4]
    rows = 100 + 3 * rng.normal(size=(9, P))
    return X, y, np.vstack([rows, X[:3]]), rng.uniform(0.5, 2, N)


def by_rotation(monkeypatch, model, *data):
    monkeypatch.setattr(fixed, "FEW_COLUMNS", 10)
    fitted = model.fit(*data)
    monkeypatch.undo()
    assert isinstance(fitted._learner, RotatedComplete)
    return fitted


def both(monkeypatch, X, y, weights=None, **parameters):
    factorised = CGNClassifier("complete", **parameters).fit(X, y, weights)
    assert isinstance(factorised._learner, Complete)
    return factorised, by_rotation(monkeypatch, CGNClassifier("complete", **parameters), X, y, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("location", ["pooled", "cell", "array"])
@pytest.mark.parametrize("scale", ["variance", 1e3, 1e-3, "array"])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_equal_to_the_factorised_answer(wide, monkeypatch, sharing, scale, location, weighted):
    X, y, rows, weights = wide
    weights = weights if weighted else None
    prior = Prior(scale=SCALE if scale == "array" else scale, location=LOCATION if location == "array" else location)
    there, here = both(monkeypatch, X, y, weights, sharing=sharing, prior=prior)
    for method in ("predict_joint_log_proba", "score_samples"):
        np.testing.assert_allclose(getattr(here, method)(rows), getattr(there, method)(rows), rtol=1e-9)
    np.testing.assert_allclose(
        here.leave_one_out_log_proba(X, y, weights), there.leave_one_out_log_proba(X, y, weights), rtol=1e-7, atol=1e-9
    )
    assert here.n_parameters_ == there.n_parameters_
    if there._estimation.has_evidence:
        assert here.log_evidence_ == pytest.approx(there.log_evidence_, rel=1e-9)
    else:
        with pytest.raises(AttributeError, match="log_evidence_ is defined for"):
            _ = here.log_evidence_


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("multiple", [1.0, 1e3])
@pytest.mark.parametrize("sharing", [0.0, 0.3, 1.0])
def test_leaving_one_out_equals_refits_with_the_prior_held(wide, monkeypatch, sharing, multiple, weighted):
    X, y, _, weights = wide
    weights = weights if weighted else None
    variance = np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
    held = Prior(location=np.average(X, axis=0, weights=weights), scale=np.maximum(multiple * variance, 1e-9))
    here = by_rotation(
        monkeypatch, CGNClassifier("complete", sharing=sharing, prior=Prior(scale=multiple)), X, y, weights
    )
    found = here._model.leave_one_out(here._table(X, y, weights))
    for i in range(N):
        others = np.arange(N) != i
        refit = CGNClassifier("complete", sharing=sharing, prior=held)
        refit.fit(X[others], y[others], None if weights is None else weights[others])
        expected = refit.predict_joint_log_proba(X[[i]])[0]
        np.testing.assert_allclose(found.log_likelihood[i] + found.class_log_prior[i], expected, rtol=1e-9)


def test_discrete_columns_cut_the_rows_into_cells(wide, monkeypatch):
    X, y, rows, _ = wide
    frame, others = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(rows).add_prefix("x")
    for table, n in ((frame, N), (others, len(rows))):
        table.insert(10, "sex", pd.Categorical(np.array(["f", "m"])[np.arange(n) // 2 % 2], ["f", "m", "x"]))
        table["site"] = pd.Categorical(np.arange(n) // 3 % 2)
    there, here = both(monkeypatch, frame, y, sharing=0.3)
    np.testing.assert_allclose(here.predict_joint_log_proba(others), there.predict_joint_log_proba(others), rtol=1e-9)
    np.testing.assert_allclose(
        here.leave_one_out_log_proba(frame, y), there.leave_one_out_log_proba(frame, y), rtol=1e-7, atol=1e-9
    )
    assert here.n_parameters_ == there.n_parameters_
    assert here.structure_ == there.structure_
    there, here = both(monkeypatch, frame, y)
    assert here.log_evidence_ == pytest.approx(there.log_evidence_, rel=1e-9)


def test_a_class_of_one_row_can_be_left_without_it(wide, monkeypatch):
    X, y, _, _ = wide
    for location in ("pooled", "cell"):
        there, here = both(monkeypatch, X[:-1], y[:-1], prior=Prior(location=location))
        found = here.leave_one_out_log_proba(X[:-1], y[:-1])
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, there.leave_one_out_log_proba(X[:-1], y[:-1]), rtol=1e-7, atol=1e-9)


def test_repeated_rows_and_columns_without_variance(monkeypatch, rng):
    X = np.repeat(rng.normal(size=(4, P)), 3, axis=0)
    X[:, 20:] = 1.5
    y = np.arange(12) % 2
    there, here = both(monkeypatch, X, y)
    np.testing.assert_allclose(here.predict_joint_log_proba(X), there.predict_joint_log_proba(X), rtol=1e-9)
    nothing = by_rotation(monkeypatch, CGNClassifier("complete"), np.ones((12, P)), y)
    np.testing.assert_allclose(nothing.predict_proba(X), 0.5)
    assert np.isfinite(nothing.leave_one_out_log_proba(np.ones((12, P)), y)).all()


def test_rows_far_out_are_finite(wide, monkeypatch):
    X, y, rows, _ = wide
    _, here = both(monkeypatch, X, y)
    far = rows.copy()
    far[0] = 1e300
    far[1, 3] = 1e9  # a constant column counts for nothing
    found = here.predict_joint_log_proba(far)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1], here.predict_joint_log_proba(rows)[1])


@pytest.mark.parametrize("groups", [None, np.arange(N) // 3])
def test_choices_are_made_by_models_of_other_rows(wide, monkeypatch, groups):
    X, y, _, _ = wide
    settings = {"likelihood_power": "cv", "sharing": "cv", "prior": Prior(scale=10)}
    there = CGNClassifier("complete", **settings).fit(X, y, None, groups)
    here = by_rotation(monkeypatch, CGNClassifier("complete", **settings), X, y, None, groups)
    assert here.likelihood_power_ == pytest.approx(there.likelihood_power_, rel=1e-6)
    scores = (model.cv_results_["mean_test_log_loss"] for model in (here, there))
    np.testing.assert_allclose(*scores, rtol=1e-7)


def test_what_cannot_be_had_says_so(wide, monkeypatch):
    X, y, rows, _ = wide
    here = by_rotation(monkeypatch, CGNClassifier("complete"), X, y)
    with pytest.raises(ValueError, match="no contributions by feature"):
        here.contributions(rows)
    with pytest.raises(ValueError, match="neither averaged nor rotated"):
        here.sample(2)
    with pytest.raises(ValueError, match="fitted by rotation, all samples at once: call fit"):
        here.partial_fit(X, y)
    with pytest.raises(ValueError, match="were not counted together"):
        CGNClassifier.from_statistics(here.statistics_, structure="complete")
    with pytest.raises(ValueError, match='does not support the prior location "paper"'):
        by_rotation(monkeypatch, CGNClassifier("complete", prior=Prior(location="paper")), X, y)
    with pytest.raises(ValueError, match="12600 continuous columns has 79373700 pairs"):
        CGNClassifier("complete").partial_fit(np.ones((2, 12_600)), [0, 1], classes=[0, 1])


@pytest.mark.parametrize("sharing", [0.0, 1.0])
def test_maximum_likelihood_does_not_exist_and_the_error_is_the_same(wide, monkeypatch, sharing):
    X, y, _, _ = wide
    model = CGNClassifier("complete", estimation="ml", sharing=sharing)
    X = np.delete(X, [3, 5], axis=1)
    with pytest.raises(SampleNotAcceptableError) as expected:
        model.fit(X, y)
    monkeypatch.setattr(fixed, "FEW_COLUMNS", 10)
    with pytest.raises(SampleNotAcceptableError) as found:
        model.fit(X, y)
    assert str(found.value) == str(expected.value)


def test_a_saved_model_predicts_the_same(wide, monkeypatch, tmp_path):
    X, y, rows, _ = wide
    here = by_rotation(monkeypatch, CGNClassifier("complete", sharing=0.3, prior=Prior(scale=10)), X, y)
    save(here, tmp_path / "wide.skops")
    again = load(tmp_path / "wide.skops")
    np.testing.assert_array_equal(again.predict_proba(rows), here.predict_proba(rows))
    np.testing.assert_array_equal(again.typicality(rows), here.typicality(rows))


def test_rotated_samples_are_kept_while_they_are_in_use(rng):
    table = read_training(rng.normal(size=(12, 30)), np.arange(12) % 2)[0]
    rotation = Rotation.of(table, Prior().resolved(table.schema))
    assert rotation.parts(table) is rotation.parts(table)
    fresh = list(replace(rotation).parts(table.rows(np.arange(12))))
    for (_, inside, outside), (_, expected, lengths) in zip(rotation.parts(table), fresh, strict=True):
        np.testing.assert_array_equal(inside, expected)
        np.testing.assert_array_equal(outside, lengths)
    other = table.rows(np.arange(5))
    assert [inside.shape[1] for _, inside, _ in rotation.parts(other)] == [5]
    known = weakref.ref(other)
    del other
    assert known() is None
    assert sorted(rotation.__getstate__()) == ["basis", "columns", "origin", "unit", "values"]


def test_wide_tables_need_no_pairs_of_columns(rng):
    X, y = rng.normal(size=(40, 3000)), np.arange(40) % 2
    tracemalloc.start()
    model = CGNClassifier("complete", sharing=1.0, prior=Prior(scale=100.0)).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.isfinite(model.leave_one_out_log_proba(X, y)).all()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * X.nbytes  # 3,000 x 3,000 numbers alone would be 75 times as much
    with pytest.raises(
        SampleNotAcceptableError, match="column 19 in the cell class 0: 20 samples, 19 continuous parents"
    ):
        CGNClassifier("complete", estimation="ml").fit(X, y)


@pytest.mark.shared
def test_expressions_of_genes(shared):
    frame = pd.read_csv(shared / "data" / "micro" / "singh_prostate_102x12600.csv.gz")
    X, y = frame.drop(columns="class").to_numpy(float), frame["class"].to_numpy()
    assert X.shape == (102, 12_600)
    model = CGNClassifier("complete", sharing=1.0, prior=Prior(scale=1e3)).fit(X, y)
    left_out = model.classes_[model.leave_one_out_log_proba(X, y).argmax(axis=1)]
    assert np.mean(left_out == y) > 0.85


def test_the_evidence_of_a_block_is_that_of_its_members(rng):
    n, shape, size = np.array([3.5, 20.0]), 1.1, 4
    prior_scale = rng.uniform(1, 2, size)
    factor = np.tril(rng.normal(size=(2, size, size))) + 3 * np.eye(size)
    spread = np.square(np.diagonal(factor, axis1=1, axis2=2))
    before = np.concatenate([np.zeros((2, 1)), np.cumsum(np.log(prior_scale) - np.log(spread), axis=1)], axis=1)
    ratio = np.array([-1.0, -2.0])
    members = densities.regression_evidence(
        n[:, None], shape + np.arange(size) / 2, prior_scale, spread, before[:, :-1], ratio[:, None]
    )
    whole = densities.block_evidence(n, shape, size, np.log(spread).sum(axis=1), before[:, -1], ratio)
    np.testing.assert_allclose(whole, members.sum(axis=1), rtol=1e-12)
