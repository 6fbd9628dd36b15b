"""Data files: read strictly, complained about in one line that names the place."""

import numpy as np
import pandas as pd
import pytest

from cgnlearn.cli import datafile
from cgnlearn.cli.datafile import DataFileError, NoSuchColumn, rising_numbers

FRAME = pd.DataFrame(
    {
        "size": [1.5, 2.0, -3e2, 4.25],
        "code": [1, 2, 1, 3],
        "colour": ["red", "blue", "red", "a, b"],
        "who": ["p1", "p1", "p2", "p3"],
        "class": ["x", "y", "x", "y"],
    }
)


def written(folder, suffix, frame=FRAME):
    path = folder / f"data{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return path


def refused(path, text=None, error=DataFileError, **options):
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error) as raised:
        datafile.read(path, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_all_kinds_give_the_same_frame(tmp_path, suffix):
    data = datafile.read(written(tmp_path, suffix), target="class", groups="who", categorical=["code"])
    assert list(data.X.columns) == ["size", "code", "colour"]
    np.testing.assert_array_equal(data.X["size"], FRAME["size"])
    assert data.X["code"].tolist() == ["1", "2", "1", "3"]
    assert list(data.X["colour"].cat.categories) == ["a, b", "blue", "red"]
    assert data.y.tolist() == FRAME["class"].tolist()
    assert data.groups.tolist() == FRAME["who"].tolist()
    assert data.lines.tolist() == ([0, 1, 2, 3] if suffix == ".parquet" else [2, 3, 4, 5])
    assert data.n_dropped == 0


def test_categories_and_missing_values_of_parquet(tmp_path):
    frame = FRAME.assign(colour=FRAME["colour"].astype("category"), code=FRAME["code"].astype("Int64"))
    frame.loc[2, "code"] = pd.NA
    path = written(tmp_path, ".parquet", frame)
    assert "column 'code' has no value in row 2" in refused(path, target="class")
    data = datafile.read(path, target="class", drop_missing=True)
    assert (len(data.X), data.n_dropped, data.lines.tolist()) == (3, 1, [0, 1, 3])
    frame["when"] = pd.Timestamp("2020-01-01")
    assert "'when' holds timestamp" in refused(written(tmp_path, ".parquet", frame), target="class")


def test_npz_with_positions_target_and_groups(tmp_path):
    path = tmp_path / "data.npz"
    X = np.arange(12.0).reshape(4, 3).astype(np.float32)
    np.savez(path, X=X, y=["a", "b", "a", "b"], mz=[100.5, 101.0, 103.0], subject=[1, 1, 2, 2])
    data = datafile.read(path, target="y", groups="subject")
    np.testing.assert_array_equal(data.X.to_numpy(), X)
    assert rising_numbers(data.X.columns).tolist() == [100.5, 101.0, 103.0]
    assert (data.y.tolist(), data.groups.tolist()) == (["a", "b", "a", "b"], ["1", "1", "2", "2"])
    assert "no array 'z'" in refused(path, target="z", error=NoSuchColumn)
    np.savez(path, X=X, y=["a", "b"])
    assert "one entry for each of the 4 rows" in refused(path, target="y")
    np.savez(path, Z=X)
    assert "no array X" in refused(path)
    np.savez(path, X=np.array([["a"]], dtype=object), y=["a"])  # can only be read by unpickling
    assert "no npz file of plain arrays" in refused(path, target="y")


def test_faults_are_named_with_their_line(tmp_path):
    path = tmp_path / "data.csv"
    start = "a,b,class\n1,2,x\n\n"
    assert "line 4 has 2 fields, but the header has 3" in refused(path, start + "3,y\n", target="class")
    rows = "".join(f"{i},2,x\n" for i in range(20))
    assert "column 'a' has 'l2' among numbers in line 24" in refused(path, start + rows + "l2,2,y\n", target="class")
    assert "column 'b' has no value in line 4 (and in 1 more)" in refused(path, start + "3,,y\n4,?,y\n", target="class")
    assert "column 'class' has no value in line 4" in refused(path, start + "3,4,\n", target="class")
    assert "column 'a' is infinite in line 4" in refused(path, start + "inf,4,y\n", target="class")
    assert "line 4 cannot be read" in refused(path, start + '3,"4"x,y\n', target="class")
    assert "line 4 is not UTF-8" in refused(path, start.encode() + b"3,\xff,y\n", target="class")
    assert "binary zeros" in refused(path, start + "3,\0,y\n", target="class")
    assert "two columns are named 'a'" in refused(path, "a,a\n1,2\n")
    assert "column 2 has no name" in refused(path, "a,,b\n1,2,3\n")
    assert "without a header line" in refused(path, "5.1,3.5,1.4\n4.9,3.0,1.4\n")
    assert "is empty" in refused(path, "")
    assert "no rows" in refused(path, "a,b\n")
    assert "no columns besides" in refused(path, "class\nx\n", target="class")
    assert "every row has an empty cell" in refused(path, "a,class\n,x\n,y\n", target="class", drop_missing=True)
    assert "has no column 'z' (--target): it has 'a', 'class'" in refused(path, target="z", error=NoSuchColumn)
    assert "did you mean 'class'?" in refused(path, target="klass", error=NoSuchColumn)
    assert "ending must be one of" in refused(tmp_path / "data.xls", "")
    for suffix in (".parquet", ".npz"):
        assert "or damaged" in refused(tmp_path / f"data{suffix}", "PK nonsense")


def test_text_is_read_as_it_stands(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes('\ufeffa, b ,c\r\n1,"x ""y""\nz",1_0\r\n2,none,2_0\r\n\r\n'.encode())
    data = datafile.read(path)
    assert list(data.X.columns) == ["a", "b", "c"]
    assert data.X["b"].tolist() == ['x "y"\nz', "none"]
    assert str(data.X["c"].dtype) == "category"  # 1_0 is no number outside Python
    assert data.lines.tolist() == [3, 4]


def test_rising_numbers():
    assert rising_numbers(["mz_100.5", "mz_101"]).tolist() == [100.5, 101]
    for names in (["2", "1"], ["1", "nan"], ["a", "b"], ["1"]):
        assert rising_numbers(names) is None
