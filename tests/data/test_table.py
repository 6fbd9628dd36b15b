import re
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cgnlearn.data.table import Table, read, read_training, schema_of, to_training_type

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
    # The declared level that does not occur too.
    assert schema.levels == (None, ("low", "mid", "high"), None, (False, True))
    table = read(frame, schema)
    np.testing.assert_array_equal(table.values, [[30, 0.5], [41, 1.5], [55, 2.5]])
    np.testing.assert_array_equal(table.codes, [[0, 1], [2, 0], [0, 1]])


@pytest.mark.parametrize(
    "frame", [pandas_frame(), polars_frame(), polars_frame().to_arrow()], ids=["pandas", "polars", "arrow"]
)
def test_decode_is_the_inverse_of_encode(frame):
    schema = schema_of(frame, CLASSES, "from_dtype")
    table = read(frame, schema)
    back = to_training_type(table)
    assert type(back) is type(frame)
    again = read(back, schema)
    np.testing.assert_array_equal(again.values, table.values)
    np.testing.assert_array_equal(again.codes, table.codes)
    if not isinstance(frame, pa.Table):
        assert schema_of(back, CLASSES, "from_dtype").levels == schema.levels


def test_a_polars_categorical_has_only_the_levels_it_holds():
    frame = pl.DataFrame({"a": ["x", "y"], "b": ["z", "z"]}, schema={"a": pl.Categorical, "b": pl.Categorical})
    assert schema_of(frame, CLASSES, "from_dtype").levels == (("x", "y"), ("z",))


def test_frames_whose_columns_are_numbered():
    frame = pandas_frame()
    numbered = frame.set_axis(range(3, 7), axis=1)
    schema = schema_of(numbered, CLASSES, "from_dtype")
    assert schema.names is None
    assert schema.levels == schema_of(frame, CLASSES, "from_dtype").levels
    found, expected = read(numbered, schema), read(frame, schema_of(frame, CLASSES, "from_dtype"))
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.codes, expected.codes)


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
        (
            pd.DataFrame({"city": ["a", "b"], "x": 1, "town": "c"}),
            None,
            "columns 'city', 'town' hold text that cat.* add",
        ),
        (
            pl.DataFrame({"city": ["a", "b"], "x": 1}),
            ["x"],
            "column 'city' holds text that categorical_features does not",
        ),
        (pandas_frame(), None, "column 'grade' holds categories that categorical_features does not name: add it there"),
        (np.array([["a", 1], ["b", 2]], dtype=object), None, "column 0 holds text that categorical_features does not"),
        (np.array([[1.0], [np.inf]]), "from_dtype", "column 0 holds infinity in sample 1: impute"),
        (np.array([[np.nan, 1.0], [2.0, -np.inf]]), "from_dtype", "column 1 holds infinity in sample 1: impute"),
        (np.array([[np.inf], [-np.inf]]), "from_dtype", "column 0 holds infinity in sample 0: impute"),
        (pl.DataFrame({"x": [None, float("inf")]}), "from_dtype", "column 'x' holds infinity in sample 1"),
        (pd.DataFrame({"x": pd.Series([None, 1, "2"], dtype=object)}), "from_dtype", "'x' holds text and numbers: con"),
        (np.array([["a"], [3], [None]], dtype=object), [0], "column 0 mixes levels of different types"),
        (np.array([["a"], [3]], dtype=object), [0], "column 0 mixes levels of different types"),
        (np.zeros((2, 2)), "auto", 'must be "from_dtype" or a list'),
        (np.zeros((2, 2)), [2], "names column 2, but X has 2"),
        (np.zeros((2, 2)), [True], "masks 1 columns, but X has 2"),
        (np.zeros((2, 2)), ["a"], "has names, but X has no"),
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


def test_handle_unknown_are_refused_by_name():
    schema = schema_of(pandas_frame(), CLASSES, "from_dtype")
    other = pandas_frame().assign(grade=pd.Categorical(["low", "top", "low"]))
    with pytest.raises(ValueError, match=r"column 'grade' has the level 'top', unknown.*'low', 'mid', 'high'"):
        read(other, schema)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([], "Expected 2D array of samples and features, not one of 1 dim"),
        (np.zeros((0, 3)), r"0 sample\(s\)"),
        (np.zeros((3, 0)), r"0 feature\(s\)"),
        (pd.DataFrame({"a": np.zeros(0)}), r"0 sample\(s\)"),
        (pd.DataFrame(index=range(3)), r"0 feature\(s\)"),
        (pl.DataFrame(), r"0 sample\(s\)"),
        (np.zeros((3, 1), "datetime64[s]"), "column 0 holds dates or times: convert them to numbers"),
        (np.zeros((3, 2), "datetime64[ns]"), "columns 0, 1 hold dates or times: convert them to numbers"),
        (np.zeros((3, 2), "timedelta64[ns]"), "columns 0, 1 hold dates or times: convert them to numbers"),
        (np.array([[1.0, pd.Timestamp("2020")]], dtype=object), "column 1 holds dates or times"),
        (pd.DataFrame({"day": pd.date_range("2020", periods=3)}), "column 'day' holds dates or times"),
        (pl.DataFrame({"day": pd.date_range("2020", periods=3)}), "column 'day' holds dates or times"),
        (pd.DataFrame({"s": pd.arrays.SparseArray([0.0, 1.0])}), "column 's' holds sparse values: make them dense"),
        (np.zeros((3, 2), complex), "Complex data not supported"),
        (np.array([[10**400]], dtype=object), "column 0 holds a number too large for floating point"),
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
        (np.array(["a", None, "b"], dtype=object), r"y has missing values \(NaN\), the first in sample 1"),
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


NUMBERS_WITH_HOLES = {
    "NaN": np.array([1.0, np.nan, 0.0]),
    "masked": np.ma.masked_array([1.0, 5.0, 0.0], mask=[False, True, False]),
    "None in an object array": np.array([1, None, 0], dtype=object),
    "NA in an object array": np.array([1, pd.NA, 0.0], dtype=object),
    "pandas float": pd.Series([1.0, None, 0.0]),
    "pandas Int64": pd.Series([1, None, 0], dtype="Int64"),
    "pandas Float64": pd.Series([1, None, 0], dtype="Float64"),
    "pandas object": pd.Series([1.0, None, 0.0], dtype=object),
    "pandas int by Arrow": pd.Series([1, None, 0], dtype="int64[pyarrow]"),
    "pandas double by Arrow": pd.Series(pd.array([1, None, 0], dtype="double[pyarrow]")),
    "polars int": pl.Series([1, None, 0]),
    "polars float, null": pl.Series([1.0, None, 0.0]),
    "polars float, NaN": pl.Series([1.0, float("nan"), 0.0]),
    "arrow": pa.chunked_array([[1, None], [0]]),
    "decimals": pd.Series([Decimal(1), None, Decimal("0.0")]),
    "decimals in an array": np.array([Decimal(1), None, Decimal(0)], dtype=object),
    "polars decimals": pl.Series([Decimal(1), None, Decimal(0)]),
    "arrow decimals": pa.chunked_array([[Decimal(1), None, Decimal(0)]]),
    "polars 128 bits": pl.Series([1, None, 0], dtype=getattr(pl, "Int128", pl.Int64)),  # 1.18 is the first to have it
    "half precision": np.array([1, np.nan, 0], np.float16),
    "text in an array": np.array(["1.0", None, "0"], dtype=object),
}


@pytest.mark.parametrize("column", NUMBERS_WITH_HOLES.values(), ids=NUMBERS_WITH_HOLES)
def test_every_mark_of_a_missing_number_is_nan(column):
    table = read(*(lambda X: (X, schema_of(X, CLASSES, "from_dtype")))(as_table(column)))
    np.testing.assert_array_equal(table.values, [[1], [np.nan], [0]])
    assert table.incomplete == table.rows(np.array([1])).incomplete == (0,)
    assert table.rows(np.array([0, 2])).incomplete == ()


LEVELS_WITH_HOLES = {
    "masked text": np.ma.masked_array(["b", "c", "a"], mask=[False, True, False]),
    "masked truths": np.ma.masked_array([True, True, False], mask=[False, True, False]),
    "polars bytes": pl.Series([b"b", None, b"a"]),
    "None": np.array(["b", None, "a"], dtype=object),
    "NA": np.array(["b", pd.NA, "a"], dtype=object),
    "pandas categorical": pd.Series(pd.Categorical(["b", None, "a"])),
    "pandas text": pd.Series(["b", None, "a"]),
    "pandas object": pd.Series(["b", np.nan, "a"], dtype=object),
    "pandas string": pd.Series(["b", pd.NA, "a"], dtype="string"),
    "pandas string by Arrow": pd.Series(["b", None, "a"], dtype="string[pyarrow]"),
    "polars text": pl.Series(["b", None, "a"]),
    "polars categorical": pl.Series(["b", None, "a"], dtype=pl.Categorical),
    "polars enum": pl.Series(["b", None, "a"], dtype=pl.Enum(["a", "b"])),
    "pandas dictionary by Arrow": pd.Series(
        ["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "pandas truths by Arrow": pd.Series([True, None, False], dtype="bool[pyarrow]"),
    "pandas intervals": pd.Series(pd.cut(pd.Series([5.0, None, 1.0]), 2)),
    "pandas object of truths": pd.Series([True, pd.NA, False], dtype=object),
    "polars truths": pl.Series([True, None, False]),
    "arrow truths": pa.chunked_array([[True, None], [False]]),
    "dates": pd.Series([date(2021, 1, 1), None, date(2020, 1, 1)]),
    "bytes": np.array([b"b", None, b"a"], dtype=object),
    "arrow text": pa.chunked_array([["b", None, "a"]]),
    "arrow dictionary": pa.chunked_array([pa.DictionaryArray.from_arrays([1, None, 0], ["a", "b"])]),
    "numbers": np.array([7.0, np.nan, 3.0]),
    "truths": np.array([True, None, False], dtype=object),
    "nanoseconds": np.array(["2021", "NaT", "2020"], "datetime64[ns]"),
    "pandas Int64": pd.Series([7, None, 3], dtype="Int64"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "pandas float": pd.Series([7, None, 3]),
    "pandas int as object": pd.Series([7, None, 3], dtype=object),
    "pandas times": pd.Series(pd.Categorical(pd.to_datetime(["2021", None, "2020"]))),
    "polars int": pl.Series([7, None, 3]),
    "polars float": pl.Series([7.0, float("nan"), 3.0]),
    "times in an object array": np.array([pd.Timestamp("2021"), pd.NaT, pd.Timestamp("2020")], dtype=object),
    "times": np.array(["2021", "NaT", "2020"], "datetime64[s]"),
}


@pytest.mark.parametrize("column", LEVELS_WITH_HOLES.values(), ids=LEVELS_WITH_HOLES)
def test_every_mark_of_a_missing_level_is_minus_one(column):
    X = as_table(column)
    schema = schema_of(X, CLASSES, [0])
    assert len(schema.levels[0]) == 2
    table = read(X, schema)
    np.testing.assert_array_equal(table.codes, [[1], [-1], [0]])
    assert table.incomplete == (0,)


def as_table(column):
    if isinstance(column, pd.Series):
        return column.to_frame("x")
    if isinstance(column, pl.Series):
        return pl.DataFrame({"x": column})
    return pa.table({"x": column}) if isinstance(column, pa.ChunkedArray) else column[:, None]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": [None, None]}),
        pd.DataFrame({"x": pd.array([None, None], "string")}),
        pl.DataFrame({"x": [None, None]}),
        pa.table({"x": pa.nulls(2)}),
        np.array([[None], [None]], dtype=object),
        np.full((2, 1), np.nan),
    ],
    ids=["pandas", "pandas string", "polars", "arrow", "objects", "NaN"],
)
def test_a_column_without_any_value_can_be_read_as_either_kind(frame):
    assert np.isnan(read(frame, schema_of(frame, CLASSES, "from_dtype")).values).all()
    schema = schema_of(frame, CLASSES, [0])
    table = read(frame, schema)
    assert table.codes.tolist() == [[-1], [-1]]
    np.testing.assert_array_equal(read(to_training_type(table), schema).codes, table.codes)
    with pytest.raises(ValueError, match=r"has the level 'a', unknown from training \(known: none\)"):
        read(np.array([["a"]], dtype=object), schema_of(np.array([[None]]), CLASSES, [0]))


def test_missing_values_survive_the_way_back_to_the_training_type():
    for frame in (pandas_frame(), polars_frame(), polars_frame().to_arrow()):
        schema = schema_of(frame, CLASSES, "from_dtype")
        table = read(frame, schema)
        table.values[1, 1], table.codes[2, 0] = np.nan, -1
        again = read(to_training_type(table), schema)
        np.testing.assert_array_equal(again.values, table.values)
        np.testing.assert_array_equal(again.codes, table.codes)


def test_handle_unknown_can_count_as_missing_with_one_warning():
    frame = pd.DataFrame({"a": list("xyx"), "b": list("uvv"), "n": [1.0, 2.0, 3.0]})
    schema = schema_of(frame, CLASSES, ["a", "b"])
    other = pd.DataFrame({"a": ["z", "x", "w"], "b": ["u", None, "?"], "n": [1.0, 2.0, 3.0]})
    message = "levels unknown from training count as missing: 2 in column 'a', 1 in column 'b'"
    for X in (other, pl.from_pandas(other)):
        with pytest.warns(UserWarning, match=re.escape(message)) as caught:
            table = read(X, schema, handle_unknown="missing")
        assert len(caught) == 1
        assert table.codes.tolist() == [[-1, 0], [0, -1], [-1, -1]]
    with pytest.raises(ValueError, match=r"column 'a' has the level '[zw]', unknown from training"):
        read(other, schema)


def test_a_table_knows_its_missing_values_however_it_was_made():
    X = np.array([[0.0, 1e308], [0.0, 1e308]])
    schema = schema_of(X, CLASSES, [0])
    table = read(X, schema)
    for complete in (table, table.rows(np.array([1])), Table(schema, table.values, table.codes)):
        assert complete.incomplete == ()  # although the sum overflows
    assert replace(table, values=np.array([[1.0], [np.nan]])).incomplete == (1,)
    assert replace(table, codes=np.array([[0], [-1]])).incomplete == (0,)
    assert read(np.array([[np.nan, np.nan], [0.0, 1.0]]), schema).incomplete == (0, 1)


def text_frames():
    columns = {"city": ["a", "b"] * 30, "old": [True, False] * 30, "x": np.arange(60.0)}
    frame = pd.DataFrame(columns)
    yield frame
    yield frame.astype({"city": object, "old": object})
    yield frame.convert_dtypes(dtype_backend="pyarrow")
    yield pl.DataFrame(columns)
    yield pa.table(columns)
    yield pa.RecordBatch.from_pydict(columns)
    yield frame.to_numpy(dtype=object)


@pytest.mark.parametrize(
    "frame", list(text_frames()), ids=lambda frame: f"{type(frame).__module__}.{type(frame).__name__}"
)
def test_text_and_truths_are_discrete_by_their_dtype_without_a_word(frame):
    schema = schema_of(frame, CLASSES, "from_dtype")
    assert schema.levels == (("a", "b"), (False, True), None)
    assert read(frame, schema).codes.tolist() == [[0, 1], [1, 0]] * 30


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pd.DataFrame(columns).to_numpy()]
)
def test_text_that_names_samples_is_refused_with_all_its_columns(make):
    names = [f"patient {i}" for i in range(60)]
    columns = {"id": names, "x": np.arange(60.0), "note": names[::-1], "lab": [f"{i}.5" for i in range(59)] + ["<5"]}
    with pytest.raises(ValueError, match="almost as many different texts as samples") as caught:
        schema_of(make(columns), CLASSES, "from_dtype")
    message = str(caught.value)
    named = ("'id', 'note'", "'lab'") if "'id'" in message else ("0, 2", "3")
    assert message.startswith(f"columns {named[0]} hold almost")
    assert f"; column {named[1]} holds numbers as text: convert them" in message
    assert "\n" not in message
    with pytest.raises(ValueError, match="almost as many"):
        schema_of(pd.DataFrame(columns)[["id"]], CLASSES, "from_dtype")
    assert len(schema_of(pd.DataFrame(columns)[["id"]], CLASSES, ["id"]).levels[0]) == 60  # the user says so
    assert len(schema_of(pd.DataFrame({"id": pd.Categorical(names)}), CLASSES, "from_dtype").levels[0]) == 60


def test_numbers_as_text_with_fewer_values_are_told():
    frame = pd.DataFrame({"age": [str(20 + i % 30) for i in range(200)], "code": ["1", "2"] * 100})
    with pytest.warns(UserWarning, match="column 'age' holds numbers as text: convert them, in pandas with") as caught:
        schema = schema_of(frame, CLASSES, "from_dtype")
    assert len(caught) == 1
    assert len(schema.levels[0]) == 30


def test_text_where_training_had_numbers_is_refused():
    schema = schema_of(pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3]}), CLASSES, "from_dtype")
    with pytest.raises(ValueError, match="columns 'a', 'c' hold text where training had numbers: convert to numbers"):
        read(pd.DataFrame({"a": ["x"], "b": [2.0], "c": ["y"]}), schema)
    assert read(pd.DataFrame({"a": [True], "b": [2], "c": [None]}), schema).values[0, :2].tolist() == [1.0, 2.0]
