"""Columns as people write them: what is no measurement is excluded or told, never used in silence."""

import numpy as np
import pandas as pd
import pytest

from cgnlearn.tables.batches import stream_of
from cgnlearn.tables.formats import source_of
from cgnlearn.tables.read import training_data
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError

N = 40
X = np.random.default_rng(0).normal(size=N).round(3)
CLASSES = ["ill", "well"] * (N // 2)
EXCLUDED = {
    "dates or times": [
        lambda i: f"2024-01-{i % 5 + 1}", lambda i: f"202401{i % 28 + 1:02d}", lambda i: f"2024-{i % 12 + 1:02d}",
        lambda i: f"{i % 28 + 1}-Jan-2024", lambda i: f"Mar {i % 3 + 1}, 2024", lambda i: f"{i % 28 + 1}. Dezember 23",
        lambda i: f"2024-01-{i % 28 + 1:02d}T10:00:00.000+01:00", lambda i: f"{i % 24}:30", lambda i: f"Jan {2000 + i}",
    ],
    "numbers with signs between the digits": [
        lambda i: f"{i + 1}\u202f{i:03d}", lambda i: f"{i + 1}'000.50", lambda i: f"{i + 1},00,{i:03d}",
        lambda i: f"{i + 1}\u00a0000", lambda i: f"$ {i + 1},000",
    ],
    "percentages": [lambda i: f"{i}%" if i % 2 else str(i)],
    "values beyond a limit": [lambda i: f"<{i % 4}" if i % 2 else f"{i % 9}.5", lambda i: ">= 7" if i % 3 else str(i)],
    "two numbers in a cell": [lambda i: f"{120 + i % 4}/{80 + i % 3}"],
    "words among numbers": [lambda i: "-" if i % 3 == 0 else f"{i / 7}", lambda i: "#DIV/0!" if i % 5 == 0 else str(i)],
    "numbers of rows": [lambda i: str(i + 1), lambda i: str(5 * i)],
    "names of rows": [lambda i: f"patient {i}", lambda i: hex(i)],
}  # fmt: skip


def read(path, **columns):
    pd.DataFrame({"x": X, **columns} | ({} if "k" in columns else {"k": CLASSES})).to_csv(path, index=False)
    return training_data(source_of(path), Roles("k"))


@pytest.mark.parametrize(("what", "cell"), [(what, cell) for what, cells in EXCLUDED.items() for cell in cells])
def test_what_is_no_measurement_is_excluded_with_a_reason(what, cell, tmp_path):
    data = read(tmp_path / "data.csv", w=[cell(i) for i in range(N)])
    assert list(data.X.columns) == ["x"]
    assert any(f"'w', which holds {what} such as " in remark for remark in data.remarks), data.remarks


@pytest.mark.parametrize("cell", [
    lambda i: f"{i * 10 % 50}-{i * 10 % 50 + 9}",  # age groups
    lambda i: "TRUE" if i % 2 else "FALSE",
    lambda i: ("1a", "2b", "3a")[i % 3],
    lambda i: ("1", "2", "unknown")[i % 3],
])  # fmt: skip
def test_levels_stay_levels(cell, tmp_path):
    data = read(tmp_path / "data.csv", w=[cell(i) for i in range(N)])
    assert str(data.X["w"].dtype) == "category"
    assert data.remarks == ()


def test_codes_of_a_missing_value_are_told(tmp_path):
    path = tmp_path / "data.csv"
    values = np.abs(X)
    for code in ("-999", "-9", "-99.0", "999"):
        told = read(path, w=[code if i % 5 == 0 else str(v) for i, v in enumerate(values)]).remarks
        assert told == (f"'w' has {float(code):.0f} several times, far from the other numbers: if it stands for a "
                        f"missing value, add --na {float(code):.0f}",)  # fmt: skip
    assert read(path, w=["-9" if i % 5 == 0 else v for i, v in enumerate(X)]).remarks == ()  # others are negative, too
    assert read(path, w=["9" if i % 5 == 0 else 5 + v for i, v in enumerate(X)]).remarks == ()  # not far
    assert read(path, w=["-9" if i == 0 else v for i, v in enumerate(values)]).remarks == ()  # once


def test_codes_with_leading_zeros_and_words_that_differ_by_case_are_told(tmp_path):
    path = tmp_path / "data.csv"
    told = read(path, zip=[f"0{1000 + i * 7 % 31}" for i in range(N)]).remarks
    assert told == ("'zip' has numbers with leading zeros and is taken as numeric: if they are labels, add "
                    "--categorical zip",)  # fmt: skip
    told = read(path, sex=["f", "F", "m", "m"] * 10, k=["ill", "well", "Ill", "well"] * 10).remarks
    assert told == (
        "'F' and 'f' in column 'sex' are different levels: if they are one, write them in the same way",
        "'Ill' and 'ill' in column 'k' are different classes: if they are one, write them in the same way",
    )


def test_the_largest_numbers_are_looked_at_without_a_warning(tmp_path):
    for first in (1.7e308, -1.7e308):
        data = read(tmp_path / "data.csv", w=[first, *([-first] * (N - 1))])
        assert data.X["w"].tolist() == [first, *([-first] * (N - 1))]


def test_bars_separate_and_a_line_for_excel_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x|k\n" + "".join(f"{x}|{k}\n" for x, k in zip(X, CLASSES, strict=True)))
    data = training_data(source_of(path), Roles("k"))
    assert data.X["x"].tolist() == X.tolist()
    assert "separated by bars" in data.remarks[0]
    path.write_text("sep=;\n" + "x;k\n1;ill\n2.5;well\n")
    with pytest.raises(DataFileError, match="begins with 'sep=;', which is for Excel only: remove the first line"):
        source_of(path)


def test_python_takes_the_columns_it_is_given(tmp_path):
    path = tmp_path / "data.csv"
    read(path, n=np.arange(N), day=[20240100 + i % 28 + 1 for i in range(N)])
    stream = stream_of(path, "k", ["n", "day"], (), None, drop_missing=False, batch_rows=9)
    assert stream.survey.schema.levels == (None, None)
