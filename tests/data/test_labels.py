import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cgnlearn import CGNClassifier, CGNClassifierCV
from cgnlearn.data.labels import group_numbers, target
from cgnlearn.data.table import read_training

ACCEPTED = {
    "truths as objects": (np.array([True, False, True], dtype=object), [False, True], "b"),
    "pandas boolean": (pd.Series([True, False, True], dtype="boolean"), [False, True], "b"),
    "pandas Int64": (pd.Series([2, 1, 2], dtype="Int64"), [1, 2], "i"),
    "decimals": (np.array([Decimal(2), Decimal(1), Decimal("2.0")], dtype=object), [1.0, 2.0], "f"),
    "numbers as objects": (np.array([2, 1, np.int64(2)], dtype=object), [1, 2], "i"),
    "text": (np.array(["b", "a", "b"], dtype=object), ["a", "b"], "O"),
    "categories": (pd.Categorical(["b", "a", "b"]), ["a", "b"], "O"),
    "polars": (pl.Series(["b", "a", "b"]), ["a", "b"], "U"),
    "polars truths": (pl.Series([True, False, True]), [False, True], "b"),
    "arrow": (pa.chunked_array([["b", "a"], ["b"]]), ["a", "b"], "O"),
    "list": (["b", "a", "b"], ["a", "b"], "U"),
    "strings of NumPy": (np.array(["b", "a", "b"], dtype=np.dtypes.StringDType()), ["a", "b"], "O"),
}


@pytest.mark.parametrize("y", ACCEPTED)
def test_labels_of_every_kind_are_classes(y):
    labels, expected, kind = ACCEPTED[y]
    table, classes = read_training(np.zeros((3, 1)), labels)
    assert classes.tolist() == expected
    assert classes.dtype.kind == kind
    assert table.labels.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            pd.Series(pd.date_range("2020", periods=3)),
            r"y holds 2020-01-01.* \(datetime64\): convert the labels to text",
        ),
        (np.array([pd.Timestamp("2020")] * 3, dtype=object), r"y holds 2020-01-01 00:00:00 \(Timestamp\): convert"),
        ([date(2020, 1, i) for i in (1, 2, 3)], r"y holds 2020-01-01 \(date\): convert the labels to text"),
        (pd.cut(pd.Series([1.0, 2.0, 3.0]), 2), r"y holds .* \(Interval\): convert the labels to text"),
        (np.array([b"a", b"b", b"a"]), r"y holds b'a' \(bytes_\): convert"),
        (np.array([b"a", b"b", "a"], dtype=object), r"y holds b'a' \(bytes\): convert"),
        (np.array([1j, 2j, 1j]), r"y holds 1j \(complex128\): convert"),
        (np.array([(1,), (2,), 1], dtype=object), r"y holds \(1,\) \(tuple\): convert"),
        ([], "y is empty: give a label for each sample"),
        (
            np.array([Decimal("0.5"), Decimal(1), Decimal(2)], dtype=object),
            "Unknown label type: continuous, such as 0.5",
        ),
        (np.zeros((3, 2)), "y should be a 1d array"),
        (["a", np.nan, "b"], r"y has missing values \(NaN\), the first in sample 1"),  # which NumPy spells "nan"
        (["a", 1, "b"], "y mixes text and other labels"),
        (np.ma.masked_array([0, 1, 0], mask=[0, 0, 1]), r"y has missing values \(NaN\), the first in sample 2"),
        (np.array([10**25, 1, 1], dtype=object), r"y holds 1\d+ \(int\): convert the labels to text"),
    ],
    ids=str,
)
def test_labels_that_no_class_can_be_are_refused_in_one_line(y, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_training(np.zeros((3, 1)), y)
    assert "\n" not in str(caught.value)


def test_many_classes_are_no_regression():
    y = np.repeat(np.arange(30), 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_training(np.zeros((90, 1)), y)
        read_training(np.zeros((30, 1)), [f"c{i}" for i in range(30)])
    with pytest.warns(UserWarning, match="y has 30 different numbers in 30 samples: are they measurements") as caught:
        read_training(np.zeros((30, 1)), np.arange(30))
    assert len(caught) == 1


def test_a_column_of_a_frame_is_a_target():
    frame = pd.DataFrame({"y": ["a", "b"]})
    assert target(frame["y"]).tolist() == ["a", "b"]
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        assert target(frame).tolist() == ["a", "b"]


def test_groups_are_numbered_whatever_holds_them():
    for groups in (
        ["b", "a", "b"],
        np.array(["b", "a", "b"], dtype=object),
        pd.Categorical(["b", "a", "b"]),
        pl.Series(["b", "a", "b"]),
        [7, 3, 7],
        np.array([7, "3", 7.0], dtype=object),
        pd.array([7, 3, 7], dtype="Int64"),
        pd.to_datetime(["2021", "2020", "2021"]),
        np.array([["b"], ["a"], ["b"]]),
    ):
        assert group_numbers(groups, 3).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "groups",
    [
        ["a", None, "b", None],
        np.array(["a", np.nan, "b", None], dtype=object),
        [1.0, np.nan, 2.0, np.nan],
        pd.array([1, None, 2, None], dtype="Int64"),
        pd.Categorical(["a", None, "b", None]),
        pl.Series(["a", None, "b", None]),
        pd.to_datetime(["2020", None, "2021", None]),
    ],
    ids=lambda groups: type(groups).__name__,
)
def test_samples_without_a_group_are_refused_with_their_number(groups):
    with pytest.raises(ValueError, match="groups has 2 missing values, the first for sample 1: name the group of each"):
        group_numbers(groups, 4)
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    for model in (CGNClassifier(likelihood_power="cv"), CGNClassifierCV(candidates=["naive_bayes"])):
        with pytest.raises(ValueError, match="groups has 2 missing values"):
            model.fit(X, y, groups=groups)


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match="groups has 2 entries for 3 samples: give the group of each sample"):
        group_numbers(["a", "b"], 3)
