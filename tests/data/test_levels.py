from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cgnlearn import CGNClassifier, load, save
from cgnlearn.data.levels import identity, names_samples, sorted_levels
from cgnlearn.data.table import read, schema_of

SAME = [
    [True, np.True_, "True", "true", "TRUE", 1, 1.0, np.int8(1), np.float32(1), Decimal("1.0"), "1", "1.0", b"1"],
    [False, "False", 0, -0.0, "0", "0."],
    ["a", np.str_("a"), b"a"],
    [0.5, Decimal("0.5"), "0.5"],
    [date(2020, 1, 2), datetime(2020, 1, 2), pd.Timestamp("2020-01-02"), "2020-01-02"],
    [datetime(2020, 1, 2, 3), pd.Timestamp("2020-01-02 03:00"), "2020-01-02 03:00:00"],
    [pd.Interval(0, 1), "(0, 1]"],
    ["01"],
    ["1_1"],
    [11],
    ["1.10"],
    [1.1],
    [12345678901234567890, "12345678901234567890"],
    ["12345678901234567891"],
    ["١"],
    ["None"],
    [None],
]


def test_levels_are_the_same_whatever_holds_them_and_no_others():
    for i, group in enumerate(SAME):
        for j, other in enumerate(SAME):
            for one in group:
                assert all((identity(one) == identity(two)) == (i == j) for two in other), (group, other)


TRUTHS = {
    "pandas": pd.DataFrame({"x": [True, False]}),
    "pandas boolean": pd.DataFrame({"x": pd.array([True, False], dtype="boolean")}),
    "pandas Arrow": pd.DataFrame({"x": pd.array([True, False], dtype="bool[pyarrow]")}),
    "pandas objects": pd.DataFrame({"x": pd.Series([True, False], dtype=object)}),
    "pandas text": pd.DataFrame({"x": ["True", "False"]}),
    "pandas categories": pd.DataFrame({"x": pd.Categorical([True, False])}),
    "pandas categories of text": pd.DataFrame({"x": pd.Categorical(["True", "False"])}),
    "pandas categories of numbers": pd.DataFrame({"x": pd.Categorical([1, 0])}),
    "polars": pl.DataFrame({"x": [True, False]}),
    "polars text": pl.DataFrame({"x": ["true", "false"]}),
    "polars enum": pl.DataFrame({"x": ["true", "false"]}, schema={"x": pl.Enum(["true", "false"])}),
    "arrow": pa.table({"x": [True, False]}),
    "batch": pa.RecordBatch.from_pydict({"x": [True, False]}),
    "dictionary": pa.table({"x": pa.array(["True", "False"]).dictionary_encode()}),
    "array": np.array([[True], [False]]),
    "objects": np.array([[True], [False]], dtype=object),
    "text in an array": np.array([["True"], ["False"]]),
}


@pytest.mark.parametrize("trained", TRUTHS)
def test_truths_are_the_same_levels_in_every_frame(trained):
    schema = schema_of(TRUTHS[trained], np.array([0, 1]), "from_dtype")
    assert len(schema.levels[0]) == 2
    true = read(TRUTHS[trained], schema).codes[0, 0]
    for X in (*TRUTHS.values(), pd.DataFrame({"x": [1, 0]}), pl.DataFrame({"x": [1.0, 0.0]}), [[1], [0]]):
        assert read(X, schema).codes.tolist() == [[true], [1 - true]]


def test_numbers_are_the_same_levels_in_every_dtype():
    schema = schema_of(pd.DataFrame({"x": ["1", "2", "11"]}), np.array([0, 1]), "from_dtype")
    assert schema.levels == (("1", "11", "2"),)
    for X in ([2, 1], [2.0, 1.0], pd.Categorical([2, 1]), pd.array([2, 1], dtype="Int64"), ["2.0", "1"]):
        assert read(pd.DataFrame({"x": X}), schema).codes.tolist() == [[2], [0]]
    with pytest.raises(ValueError, match="has the level '1_1', unknown"):
        read(pd.DataFrame({"x": ["1_1"]}), schema)
    spelled = schema_of(pd.DataFrame({"x": pd.Categorical(["1", "1.0", "2"])}), np.array([0, 1]), "from_dtype")
    assert spelled.levels == (("1", "2"),)


def test_boolean_dtypes_declare_both_levels():
    for X in (pd.DataFrame({"x": [True]}), pl.DataFrame({"x": [True]}), np.array([[True]])):
        assert schema_of(X, np.array([0, 1]), "from_dtype").levels == ((False, True),)
        assert schema_of(X, np.array([0, 1]), None).levels == (None,)  # numbers if the user says so


def test_levels_are_plain_values():
    for levels in ([np.int64(2), np.int64(1)], [Decimal(2), Decimal(1)], [np.float32(2), np.float32(1)]):
        assert [type(level) in (int, float) for level in sorted_levels(levels, "x")] == [True, True]
    assert sorted_levels([date(2021, 1, 1), date(2020, 1, 1)], "x") == ("2020-01-01", "2021-01-01")
    assert sorted_levels([np.str_("b"), "a"], "x") == ("a", "b")
    for mixed in ([1, "a"], [1, datetime(2020, 1, 1)], ["a", datetime(2020, 1, 1)]):
        with pytest.raises(ValueError, match="x mixes levels of different types"):
            sorted_levels(mixed, "x")


def test_few_words_never_name_samples():
    assert not names_samples(20, 20)
    assert names_samples(21, 40)
    assert not names_samples(21, 42)
    assert names_samples(10_001, 10**6)


def test_statistics_of_the_same_levels_can_be_added():
    y, rng = np.arange(60) % 2, np.random.default_rng(0)
    frame = pd.DataFrame({"old": y == rng.integers(0, 2, 60), "x": rng.normal(size=60) + y})
    parts = frame[:30], frame[30:].astype({"old": str})
    one, other = (CGNClassifier("tan").fit(part, y[part.index]) for part in parts)
    assert one.statistics_.schema == other.statistics_.schema
    assert hash(one.statistics_.schema) == hash(other.statistics_.schema)
    found = CGNClassifier.from_statistics(one.statistics_ + other.statistics_, structure={"old": [], "x": ["old"]})
    whole = CGNClassifier({"old": [], "x": ["old"]}).fit(frame, y)
    np.testing.assert_allclose(found.predict_proba(frame), whole.predict_proba(frame), rtol=1e-10)
    third = CGNClassifier("tan").fit(frame.assign(old=["a", "b"] * 30), y)
    with pytest.raises(ValueError, match=r"the levels of column 'old' differ \(False, True, not a, b\)"):
        one.statistics_ + third.statistics_


def test_times_as_levels_are_the_same_after_saving(tmp_path):
    times = pd.to_datetime(["2020-01-01 00:00:00.123456789", "2021-05-01"] * 20, format="ISO8601")
    frame, y = pd.DataFrame({"when": pd.Categorical(times)}), np.arange(40) % 2
    model = CGNClassifier().fit(frame, y)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict_proba(frame), model.predict_proba(frame))
