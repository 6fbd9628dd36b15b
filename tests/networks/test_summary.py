"""Statistics from published tables equal those of the samples that the tables describe."""

import numpy as np
import pandas as pd
import pytest

from cgnlearn import CGNClassifier, Statistics


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(5)
    n = 90
    ill = rng.random(n) < 0.4
    a = 1e4 + 3 * ill + rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "sex": pd.Categorical(np.where(rng.random(n) < 0.3 + 0.3 * ill, "m", "f")),
            "b": -2 + 0.5 * (a - 1e4) + rng.normal(size=n),
        }
    ), np.where(ill, "ill", "well")


def table_one(X, y, divisor=1):
    by_class = X.groupby(y, observed=True)
    sex = pd.crosstab(X["sex"], y) if "sex" in X else None
    return {
        "n": by_class.size().to_dict(),
        "mean": {name: by_class[name].mean().to_dict() for name in ("a", "b")},
        "sd": {name: by_class[name].std(ddof=divisor).to_dict() for name in ("a", "b")},
        "counts": {} if sex is None else {"sex": {level: sex.loc[level].to_dict() for level in sex.index}},
    }


@pytest.mark.parametrize("divisor", ["n-1", "n"])
def test_a_model_from_table_one_equals_the_fit_to_the_samples(patients, divisor):
    X, y = patients
    fitted = CGNClassifier().fit(X, y)
    given = table_one(X, y, int(divisor == "n-1"))
    made = Statistics.from_summary(**given, divisor=divisor, schema=fitted.statistics_.schema)
    model = CGNClassifier.from_statistics(made)
    np.testing.assert_allclose(
        model.predict_joint_log_proba(X), fitted.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10
    )
    assert model.log_evidence_ == pytest.approx(fitted.log_evidence_, rel=1e-10)


def test_a_table_adds_to_samples(patients):
    X, y = patients
    first, second = np.arange(len(y)) < 50, np.arange(len(y)) >= 50
    part = CGNClassifier().fit(X[first], y[first]).statistics_
    total = part + Statistics.from_summary(**table_one(X[second], y[second]), schema=part.schema)
    whole = CGNClassifier().fit(X, y)
    found = CGNClassifier.from_statistics(total).predict_joint_log_proba(X)
    np.testing.assert_allclose(found, whole.predict_joint_log_proba(X), rtol=1e-10, atol=1e-10)


def test_correlations_give_the_complete_structure(patients):
    X, y = patients
    X = X[["a", "b"]]
    correlation = {label: X[y == label].corr().to_numpy() for label in ("ill", "well")}
    made = Statistics.from_summary(**table_one(X, y), correlation=correlation)
    fitted = CGNClassifier("complete").fit(X, y)
    found = CGNClassifier.from_statistics(made, structure="complete").predict_joint_log_proba(X)
    np.testing.assert_allclose(found, fitted.predict_joint_log_proba(X), rtol=1e-9, atol=1e-9)
    part = fitted.statistics_ + made
    assert part.classes.sum() == 2 * len(y)


def test_without_a_schema_columns_are_in_the_order_given_and_classes_sorted():
    made = Statistics.from_summary(
        {"z": 3, "a": 4},
        {"q": {"a": 1.0, "z": 2.0}},
        {"q": {"a": 1.0, "z": 0.5}},
        {"b": {2: {"a": 4, "z": 0}, 1: {"a": 0, "z": 3}}},
    )
    assert made.schema.names == ("q", "b")
    assert tuple(made.schema.classes) == ("a", "z")
    assert made.schema.levels == (None, (1, 2))
    assert made.classes.tolist() == [4, 3]
    assert made.counts[0][:, 0].tolist() == [[0, 4], [3, 0]]


def test_a_class_of_one_sample_needs_no_standard_deviation():
    made = Statistics.from_summary({0: 1, 1: 9}, {"q": {0: 1.0, 1: 2.0}}, {"q": {0: None, 1: 0.5}})
    assert made.moments[0].scatter[0, :, 0].tolist() == [0.0, 2.0]


GOOD = {
    "n": {"ill": 10, "well": 20},
    "mean": {"K": {"ill": 5.0, "well": 4.0}},
    "sd": {"K": {"ill": 0.5, "well": 0.4}},
    "counts": {"sex": {"f": {"ill": 4, "well": 11}, "m": {"ill": 6, "well": 9}}},
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": {"ill": 10}}, "at least two"),
        ({"n": {"ill": 10, "well": 0}}, "class 'well' has no samples"),
        ({"n": {"ill": 10, "well": np.nan}}, "n must be a number"),
        ({"mean": {"K": {"ill": 5.0}}}, "the mean of 'K' is not given for class 'well'"),
        ({"mean": {"K": {"ill": 5.0, "well": 4.0, "dead": 1.0}}}, "for class 'dead', which has no n"),
        ({"mean": {}}, "'K' must have both means and standard deviations"),
        ({"sd": {"K": {"ill": -0.5, "well": 0.4}}}, "standard deviation of 'K' in class 'ill' is negative"),
        ({"sd": {"K": {"ill": None, "well": 0.4}}}, "standard deviation of 'K' must be a number"),
        ({"counts": {"sex": {"f": {"ill": 4, "well": 11}, "m": {"ill": 6, "well": 8}}}}, "add up to 19, but it has 20"),
        (
            {"counts": {"sex": {"f": {"ill": -4, "well": 11}, "m": {"ill": 14, "well": 9}}}},
            "count of 'sex' is negative",
        ),
        ({"counts": {"K": {"f": {"ill": 10, "well": 20}}}}, "'K' has means and counts"),
        ({"divisor": "n-2"}, 'divisor must be "n-1" or "n"'),
        ({"mean": {}, "sd": {}, "counts": {}}, "there are no features"),
        ({"correlation": {"ill": [[1.0]]}}, "correlation is not given for class 'well'"),
        ({"correlation": {"ill": [[1.0, 0.0]], "well": [[1.0]]}}, "must be 1 × 1, for K"),
        ({"correlation": {"ill": [[0.9]], "well": [[1.0]]}}, "1 on the diagonal"),
    ],
)
def test_tables_that_do_not_add_up(changed, message):
    with pytest.raises(ValueError, match=message):
        Statistics.from_summary(**GOOD | changed)


def test_correlations_that_contradict_each_other():
    bad = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    names = {name: {0: 1.0, 1: 1.0} for name in "abc"}
    with pytest.raises(ValueError, match="contradict each other"):
        Statistics.from_summary({0: 9, 1: 9}, names, names, correlation={0: bad, 1: bad})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": {}, "sd": {}}, "says nothing about 'K'"),
        ({"counts": {**GOOD["counts"], "age": {"1": GOOD["n"]}}}, "has 'age', which the data do not have"),
        ({"counts": {"sex": {"f": GOOD["n"]}}}, "the levels of 'sex' in the table lack 'm'"),
        ({"counts": {"sex": {"x": {"ill": 0, "well": 0}, **GOOD["counts"]["sex"]}}}, "include 'x', which the data do"),
        ({"counts": {}, "mean": {"K": {"ill": 1, "well": 1}, "sex": {"ill": 1, "well": 1}},
          "sd": {"K": {"ill": 1, "well": 1}, "sex": {"ill": 1, "well": 1}}}, "'sex' has levels in the data"),
    ],
)  # fmt: skip
def test_tables_that_do_not_match_the_data(changed, message):
    schema = Statistics.from_summary(**GOOD).schema
    with pytest.raises(ValueError, match=message):
        Statistics.from_summary(**GOOD | changed, schema=schema)
