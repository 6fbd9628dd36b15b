import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cgnlearn import CGNClassifier, CGNClassifierCV
from cgnlearn.portable.document import description
from cgnlearn.portable.packing import as_json, packed
from tests.portable.cases import EVERY_CASE, cells, described, fitted, samples, table
from tests.portable.reader import Reader

unknown = pytest.mark.filterwarnings("ignore:.*unknown from training")
few = pytest.mark.filterwarnings("ignore:.*is observed in")


@unknown
@few
@pytest.mark.parametrize("name", EVERY_CASE)
def test_the_reader_predicts_the_same(name):
    model, X = fitted(name), samples(name, 15)
    reader = Reader(json.loads(as_json(packed(described(name)))))
    found = reader.log_proba(cells(X))
    np.testing.assert_allclose(np.exp(found), model.predict_proba(X), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "estimator", [CGNClassifier("complete", sharing=0.3), CGNClassifierCV(candidates=["complete"])]
)
def test_more_columns_than_samples(estimator):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 310)), np.arange(30) % 2
    X[y == 1, :5] += 2
    model = estimator.fit(X[:24], y[:24])
    found = description(model)
    assert "rotation" in {each["kind"] for each in found["models"]}
    reader = Reader(found)
    proba = np.exp(reader.log_proba(X[24:]))
    np.testing.assert_allclose(proba, model.predict_proba(X[24:]), atol=1e-9, rtol=0)


@pytest.mark.parametrize("name", ["TAN", "mixture"])
def test_typicality_of_complete_samples(name):
    model, (X, _) = fitted(name), table(30, 3)
    reader = Reader(described(name))
    np.testing.assert_allclose(reader.log_density(cells(X)), model.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(reader.typicality(cells(X)), model.typicality(X), atol=0.02)


@few
def test_columns_tell_ranges_units_and_levels():
    X, _y = table(150, 0, missing=0.15)
    columns = description(fitted("groups with cells"))["columns"]
    age, stage = columns[0], columns[5]
    assert (age["label"], age["unit"], age["kind"]) == ("age", "years", "continuous")
    np.testing.assert_allclose(age["quantiles"], np.nanquantile(X["age (years)"], [0, 0.05, 0.5, 0.95, 1]))
    assert stage["levels"] == ["I", "II", "III"]
    assert stage["levels"][stage["typical"]] == X["stage"].mode()[0]
    assert columns[2]["label"] == "it's 5'"


def test_columns_without_values_change_nothing():
    X, y = table(90, 0)
    X["empty"], X["declared"] = np.nan, X["stage"].where(np.zeros(90, bool))
    model = CGNClassifierCV(candidates=["naive_bayes", "logistic", "aode"]).fit(X, y)
    reader = Reader(description(model))
    X["empty"] = 3.0
    found = reader.log_proba(cells(X[:5]))
    np.testing.assert_allclose(np.exp(found), model.predict_proba(X[:5]), atol=1e-9)


def test_levels_of_numbers_truths_and_times():
    X = np.array([[1, 0.5], [0, 0.25], [1, 0.5], [0, 0.5]] * 5, object)
    model = CGNClassifier(categorical_features=[0, 1]).fit(X, [True, False] * 10)
    found = description(model)
    assert found["classes"] == [False, True]
    reader = Reader(found)
    for spelled in (True, 1, "1.0", "true", 1.0):
        np.testing.assert_allclose(np.exp(reader.log_proba([[spelled, 0.5]])[0]), model.predict_proba([[1, 0.5]])[0])
    np.testing.assert_array_equal(reader.read([["007", "1_1"]]), [[np.nan, np.nan]])


def test_after_partial_fit_no_range_is_known():
    X, y = table(60, 0, numeric=True)
    found = description(CGNClassifier().partial_fit(X, y, classes=np.unique(y)))
    assert found["typicality"] is None
    assert found["columns"][0]["quantiles"] is None


def test_a_pipeline_is_refused():
    X, y = table(60, 0, numeric=True)
    with pytest.raises(TypeError, match="export its last step"):
        description(make_pipeline(StandardScaler(), CGNClassifier()).fit(X, y))
