"""What both estimators read, and what they refuse in one sentence."""

import warnings

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV, load, save

MODELS = [CGNClassifier(), CGNClassifierCV(candidates=["naive_bayes"])]
FRAMES = {
    "pandas": pd.DataFrame,
    "pandas by Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
    "reader": lambda columns: pa.table(columns).to_reader(),
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
}


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return {
        "site": np.array(["x", "y", "z"])[(y + rng.integers(0, 2, 60)) % 3].tolist(),
        "a": (y + rng.normal(size=60)).tolist(),
        "old": (y + rng.normal(size=60) > 0.5).tolist(),
        "b": (rng.normal(size=60) - 3 * y).tolist(),
    }, y


@pytest.mark.parametrize("model", MODELS, ids=["network", "mixture"])
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_every_frame_keeps_its_names_and_gives_the_same(frame, model, columns):
    columns, y = columns
    expected = model.fit(pd.DataFrame(columns), y).predict_proba(pd.DataFrame(columns))
    model.fit(frame(columns), y)
    assert model.feature_names_in_.tolist() == ["site", "a", "old", "b"]
    np.testing.assert_allclose(model.predict_proba(frame(columns)), expected, rtol=1e-12)
    swapped = {name: columns[name] for name in ("site", "b", "old", "a")}
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        model.predict(frame(swapped))
    with pytest.raises(
        ValueError, match=r"should match those that were passed during fit.\nFeature names unseen at fit"
    ):
        model.predict(frame({"c" if name == "b" else name: values for name, values in columns.items()}))


def test_a_table_as_pandas_reads_it_is_fitted_without_a_word(tmp_path, columns):
    columns, y = columns
    path = tmp_path / "table.csv"
    frame = pd.DataFrame(columns).assign(outcome=np.array(["ill", "well"])[y])
    frame.loc[3, "site"] = None
    frame.loc[4, "a"] = np.nan
    frame.to_csv(path, index=False)
    read = pd.read_csv(path)
    target = read.pop("outcome")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CGNClassifierCV(candidates=["naive_bayes", "logistic"]).fit(read, target)
        assert model.score(read, target) > 0.8
        save(model, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        arrow = pa.Table.from_pandas(read, preserve_index=False)
        for X in (read, pl.from_arrow(arrow), arrow):
            np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(read))
        as_text = read.astype({"old": str})
        np.testing.assert_array_equal(again.predict_proba(as_text), model.predict_proba(read))


def test_intervals_and_dates_as_levels_can_be_saved(tmp_path, columns):
    columns, y = columns
    frame = pd.DataFrame({"a": pd.cut(pd.Series(columns["a"]), 3), "day": pd.Categorical([d.date() for d in
                          pd.to_datetime(["2020-01-01", "2021-05-01"])] * 30)})  # fmt: skip
    model = CGNClassifier().fit(frame, y)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(model.predict_proba(frame.astype(str)), model.predict_proba(frame))


@pytest.mark.parametrize("model", MODELS, ids=["network", "mixture"])
def test_truths_as_objects_are_classes(model, columns):
    columns, y = columns
    X = pd.DataFrame(columns)
    model.fit(X, (y == 1).astype(object))
    assert model.classes_.tolist() == [False, True]
    assert model.predict(X).dtype == bool


@pytest.mark.parametrize("model", MODELS, ids=["network", "mixture"])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((3, 2)), [], "y is empty: give a label for each sample"),
        (np.zeros((3, 2), "datetime64[ns]"), [0, 1, 0], "columns 0, 1 hold dates or times: convert them to numbers"),
        (pd.DataFrame({"d": pd.date_range("2020", periods=3)}), [0, 1, 0], "column 'd' holds dates or times"),
        (np.zeros((3, 2)), pd.date_range("2020", periods=3), "y holds 2020-01-01.*: convert the labels to text"),
        (np.zeros((3, 2)), [0, 1], "inconsistent numbers of samples"),
    ],
    ids=str,
)
def test_what_cannot_be_fitted_is_refused_in_one_line(model, X, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", MODELS, ids=["network", "mixture"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample_weight": [None, 1.0, 1.0, 1.0]}, "sample_weight contains NaN"),
        ({"sample_weight": np.ma.masked_array(np.ones(4), mask=[1, 0, 0, 0])}, "sample_weight contains NaN"),
        ({"sample_weight": pd.array([1, None, 1, 1], dtype="Int64")}, "sample_weight contains NaN"),
        ({"sample_weight": np.array(["a", 1, 1, 1], dtype=object)}, "sample_weight holds something that is no number"),
        ({"groups": ["a", np.nan, "b", "b"]}, "groups has 1 missing values, the first for sample 1"),
        (
            {"groups": np.ma.masked_array([1, 2, 3, 4], mask=[0, 0, 0, 1])},
            "groups has 1 missing values, the first for s",
        ),
        ({"groups": np.zeros((4, 2))}, r"groups must be one name or number for each sample, not of shape \(4, 2\)"),
        ({"groups": "abcd"}, "groups must be one name or number for each sample"),
    ],
    ids=str,
)
def test_missing_weights_and_groups_are_refused_in_one_line(model, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(np.arange(8.0).reshape(4, 2), [0, 1, 0, 1], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", MODELS, ids=["network", "mixture"])
@pytest.mark.parametrize("names", [range(3), pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])], ids=str)
def test_columns_whose_headings_are_no_text_cannot_be_in_another_order(model, names, tmp_path):
    y = np.arange(30) % 2
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)) + y[:, None], columns=names)
    expected = model.fit(X, y).predict_proba(X)
    save(model, tmp_path / "model.skops")
    for fitted in (model, load(tmp_path / "model.skops")):
        np.testing.assert_array_equal(fitted.predict_proba(X), expected)
        np.testing.assert_array_equal(fitted.predict_proba(X.to_numpy()), expected)
        np.testing.assert_array_equal(fitted.predict_proba(X.set_axis([7, 8, 9], axis=1)), expected)  # as scikit-learn
        with pytest.raises(
            ValueError, match=r"must be in the same order as they were in fit, .*: put them in that order"
        ):
            fitted.predict(X.iloc[:, [1, 0, 2]])


def test_advice_about_few_values_fits_the_structure(columns):
    columns, y = columns
    X = pd.DataFrame(columns)
    X.loc[5:, "a"] = np.nan
    with pytest.warns(
        UserWarning, match=r"column 'a' is observed in 8% of the samples, .*: drop the column if it is useless"
    ):
        CGNClassifier().fit(X, y)
    X = pd.DataFrame(columns)
    X.loc[35:, "a"] = X.loc[:25, "b"] = np.nan
    with pytest.warns(UserWarning, match=r"column 'b' .* together with its parents .*: a structure with fewer parents"):
        CGNClassifier({"a": [], "b": ["a"]}).fit(X, y)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["credit-approval", "german-credit", "heart-hungarian", "hepatitis", "hypothyroid"])
@pytest.mark.filterwarnings("ignore:column .* is observed in")
def test_real_tables_as_pandas_reads_them(name, shared):
    table = pd.read_csv(shared / "data" / "mixed" / f"{name}.csv")
    target = table.pop("class")
    model = CGNClassifierCV(candidates=["naive_bayes"], transforms=["none"]).fit(table, target)
    baseline = target.value_counts(normalize=True)
    assert (
        -np.log(baseline.loc[target]).mean()
        > -model.oof_log_proba_[np.arange(len(target)), np.searchsorted(model.classes_, target)].mean()
    )
    assert [table.columns[i] for i in model.statistics_.schema.discrete] == [
        column for column in table if not pd.api.types.is_numeric_dtype(table[column])
    ]
