import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cgnlearn.model.table import read, read_training, schema_of, unread

CLASSES = np.array([0, 1])


def pandas_frame():
    return pd.DataFrame(
        {
            "age": [30, 41, 55],
            "grade": pd.Categorical(["low", "high", "low"], categories=["low", "mid", "high"]),
            "dose": np.array([0.5, 1.5, 2.5], np.float32),
            "smoker": [True, False, True],
        }
    )


def polars_frame():
    return pl.DataFrame(
        {
            "age": [30, 41, 55],
            "grade": pl.Series(["low", "high", "low"], dtype=pl.Enum(["low", "mid", "high"])),
            "dose": pl.Series([0.5, 1.5, 2.5], dtype=pl.Float32),
            "smoker": [True, False, True],
        }
    )


@pytest.mark.parametrize("frame", [pandas_frame(), polars_frame()], ids=["pandas", "polars"])
def test_frames_by_dtype(frame):
    schema = schema_of(frame, CLASSES, "from_dtype")
    assert schema.names == ("age", "grade", "dose", "smoker")
    assert schema.levels == (None, ("low", "mid", "high"), None, None)  # the declared level that does not occur too
    table = read(frame, schema)
    np.testing.assert_array_equal(table.values, [[30, 0.5, 1], [41, 1.5, 0], [55, 2.5, 1]])
    np.testing.assert_array_equal(table.codes, [[0], [2], [0]])


@pytest.mark.parametrize(
    "frame", [pandas_frame(), polars_frame(), polars_frame().to_arrow()], ids=["pandas", "polars", "arrow"]
)
def test_decode_is_the_inverse_of_encode(frame):
    schema = schema_of(frame, CLASSES, "from_dtype")
    table = read(frame, schema)
    back = unread(table)
    assert type(back) is type(frame)
    again = read(back, schema)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.codes, table.codes)
    if not isinstance(frame, pa.Table):
        assert schema_of(back, CLASSES, "from_dtype").levels == schema.levels


def test_a_polars_categorical_has_only_the_levels_it_holds():
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["z", "z"]}, schema={"a": pl.Categorical, "b": pl.Categorical})
    assert schema_of(frame, CLASSES, "from_dtype").levels == (("x", "y"), ("z",))


def test_arrays_with_named_discrete_columns():
    X = np.array([[3.0, 1.5], [7.0, 2.5], [3.0, 0.5]])
    for chosen in ([0], [True, False], np.array([0])):
        schema = schema_of(X, CLASSES, chosen)
        assert schema.levels == ((3.0, 7.0), None)
    table = read(X, schema)
    np.testing.assert_array_equal(table.codes, [[0], [1], [0]])
    np.testing.assert_array_equal(table.values, [[1.5], [2.5], [0.5]])
    strings = np.array([["b", 1.5], ["a", 2.5]], dtype=object)
    assert read(strings, schema_of(strings, CLASSES, [0])).codes.tolist() == [[1], [0]]
    assert read([["a", 1.5]], schema_of([["b", 1.5], ["a", 2.5]], CLASSES, [0])).codes.tolist() == [[0]]


def test_plain_floats_are_not_copied():
    X = np.arange(6.0).reshape(3, 2)
    assert read(X, schema_of(X, CLASSES, "from_dtype")).values is X


def test_names_choose_columns_of_frames():
    frame = pd.DataFrame({"a": ["u", "v"], "b": [1, 2]})
    assert schema_of(frame, CLASSES, ["a"]).levels == (("u", "v"), None)
    assert schema_of(frame, CLASSES, ["a", "b"]).levels == (("u", "v"), (1, 2))
    assert schema_of(frame.assign(a=[1, 2]), CLASSES, None).levels == (None, None)


@pytest.mark.parametrize(
    ("X", "categorical", "message"),
    [
        (pd.DataFrame({"city": ["a", "b"]}), "from_dtype", "column 'city' holds String and is not categorical: cast"),
        (pl.DataFrame({"city": ["a", "b"]}), "from_dtype", "column 'city' holds String and is not categorical: cast"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "from_dtype", "column 0 holds values that are not numbers"),
        (np.array([[1.0, np.nan]]), "from_dtype", "column 1 holds NaN in row 0: impute"),
        (np.array([[1.0], [np.inf]]), "from_dtype", "column 0 holds infinity in row 1: impute"),
        (pd.DataFrame({"x": [1.0, None]}), "from_dtype", "column 'x' holds NaN in row 1"),
        (pl.DataFrame({"x": [1, None]}), "from_dtype", "column 'x' holds NaN in row 1"),
        (pd.DataFrame({"g": pd.Categorical(["a", None])}), "from_dtype", "column 'g' has missing values"),
        (np.array([["a"], [None]], dtype=object), [0], "column 0 has missing values"),
        (np.array([[1.0], [np.nan]]), [0], "column 0 has missing values"),
        (np.array([["a"], [3]], dtype=object), [0], "column 0 mixes levels of different types"),
        (np.zeros((2, 2)), "auto", 'must be "from_dtype" or a list'),
        (np.zeros((2, 2)), [2], "names column 2, but X has 2"),
        (np.zeros((2, 2)), [True], "masks 1 columns, but X has 2"),
        (np.zeros((2, 2)), ["a"], "holds names, but X has none"),
        (pd.DataFrame({"a": [1]}), ["b"], "names 'b', which is not a column"),
        (np.zeros((2, 2)), [[0]], "flat list"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "from_dtype", "columns of the same name: rename them"),
        (pl.LazyFrame({"a": [1]}), "from_dtype", "lazy frame: collect"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(X, categorical, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(X, schema_of(X, CLASSES, categorical))
    assert "\n" not in str(caught.value)


def test_unknown_levels_are_refused_by_name():
    schema = schema_of(pandas_frame(), CLASSES, "from_dtype")
    other = pandas_frame().assign(grade=pd.Categorical(["low", "top", "low"]))
    with pytest.raises(ValueError, match=r"column 'grade' has the level 'top', unknown.*'low', 'mid', 'high'"):
        read(other, schema)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "Expected 2D array of rows and columns, not one of 1 dim"),
        (np.zeros((0, 3)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (pd.DataFrame({"a": np.zeros(0)}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
        (pl.DataFrame(), r"0 sample\(s\)"),
        (np.zeros((3, 2), "datetime64[s]"), "column 0 holds dates or times: turn them into numbers"),
        (np.array([[1.0, pd.Timestamp("2020")]], dtype=object), "column 1 holds dates or times"),
        (pd.DataFrame({"day": pd.date_range("2020", periods=3)}), "column 'day' holds dates or times"),
        (pl.DataFrame({"day": pd.date_range("2020", periods=3)}), "column 'day' holds dates or times"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 1.0])}), "column 's' is sparse .*make it dense"),
        (np.zeros((3, 2), complex), "Complex data not supported"),
        (np.ma.masked_array([[1.0], [2.0]], mask=[[False], [True]]), "column 0 holds NaN in row 1"),
        (np.array([[10**400]], dtype=object), "column 0 holds a number beyond floating point"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_odd_tables_are_refused_in_one_line(X, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(X, schema_of(X, CLASSES, "from_dtype"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", None, "b"], dtype=object), r"y has missing values \(NaN\), the first in row 1"),
        (np.array([np.nan, "a"], dtype=object), "y has missing values"),
        (pd.Series(["a", pd.NA]), "y has missing values"),
        (pd.Series(["a", pd.NA], dtype="string"), "y has missing values"),
        (pd.Series([1, None], dtype="Int64"), "y has missing values"),
        (pd.Categorical(["a", None]), "y has missing values"),
        (pl.Series(["a", None]), "y has missing values"),
        ([1.0, np.nan], "y has missing values"),
        (np.array([1, "a"], dtype=object), "y mixes text and other labels"),
        ([0.5, 1.5, 2.25], "Unknown label type: continuous"),
        (["a", "a"], "y has one class only, 'a'"),
    ],
    ids=str,
)
def test_odd_targets_are_refused_in_one_line(y, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_training(np.zeros((len(y), 1)), y)
    assert "\n" not in str(caught.value)


def test_levels_of_two_kinds_are_refused():
    for X, chosen in (
        (pd.DataFrame({"c": pd.Categorical([1, "a"])}), "from_dtype"),
        (pd.DataFrame({"c": np.array([1, "a"], dtype=object)}), ["c"]),
    ):
        with pytest.raises(ValueError, match="column 'c' mixes levels of different types"):
            schema_of(X, CLASSES, chosen)
