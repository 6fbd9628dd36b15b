"""Data files: what they are is found out, rows are read strictly, complaints are one line that names the place."""

import bz2
import gzip
import shlex
import zipfile

import numpy as np
import pandas as pd
import pytest

from cgnlearn.tables.batches import stream_of, training_stream
from cgnlearn.tables.formats import ColumnError, source_of
from cgnlearn.tables.options import listed_values
from cgnlearn.tables.read import prediction_parts, training_data
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError, rising_numbers

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
    elif suffix == ".arrow":
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return path


def read(path, target="class", drop_missing=False, **roles):
    roles = Roles(target, **roles)
    return training_data(source_of(path, [*roles.special.values()]), roles, drop_missing=drop_missing)


def refused(path, text=None, error=DataFileError, **options):
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error) as raised:
        read(path, **options)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow"])
def test_all_kinds_give_the_same_frame(tmp_path, suffix):
    data = read(written(tmp_path, suffix), groups="who", categorical=("code",))
    assert list(data.X.columns) == ["size", "code", "colour"]
    np.testing.assert_array_equal(data.X["size"], FRAME["size"])
    assert data.X["code"].tolist() == ["1", "2", "1", "3"]
    assert list(data.X["colour"].cat.categories) == ["a, b", "blue", "red"]
    assert data.y.tolist() == FRAME["class"].tolist()
    assert data.groups.tolist() == FRAME["who"].tolist()
    assert data.lines.tolist() == ([1, 2, 3, 4] if suffix in (".parquet", ".arrow") else [2, 3, 4, 5])
    assert data.place(1) == ("row 2" if suffix in (".parquet", ".arrow") else "line 3")
    assert (data.excluded, data.missing, data.remarks) == ({}, {}, ())


# ---- what a text file is


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv.bz2", ".zip"])
def test_packed_files_are_unpacked(tmp_path, ending):
    plain = written(tmp_path, ".tsv" if "tsv" in ending else ".csv")
    path = tmp_path / f"packed{ending}"
    if ending == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(plain, "inner/data.csv")
    else:
        path.write_bytes((gzip if "gz" in ending else bz2).compress(plain.read_bytes()))
    data = read(path)
    pd.testing.assert_frame_equal(data.X, read(plain).X)
    assert data.lines.tolist() == [2, 3, 4, 5]
    [remark] = data.remarks
    assert ("inner/data.csv inside" if ending == ".zip" else "packed by") in remark


def test_a_file_from_a_german_excel(tmp_path):
    path = tmp_path / "excel.csv"
    text = "Größe;Alter;Blut;Klasse\r\n1,5;10;rhesus;gut\r\n2;20;rhesus;schlecht\r\n-0,25;30;null-A;gut\r\n"
    path.write_bytes(text.encode("cp1252"))
    data = read(path, target="Klasse")
    assert data.X["Größe"].tolist() == [1.5, 2.0, -0.25]
    assert data.X["Alter"].tolist() == [10, 20, 30]
    assert data.X["Blut"].tolist() == ["rhesus", "rhesus", "null-A"]
    assert data.remarks == (f"{path} is read as text separated by semicolons, with decimal commas, in Latin-1",)
    path.write_bytes(text.encode("utf-8-sig"))  # a mark at the beginning is no part of the first name
    assert list(read(path, target="Klasse").X.columns) == ["Größe", "Alter", "Blut"]
    path.write_bytes(text.encode("utf-16"))
    assert read(path, target="Klasse").X["Größe"].tolist() == [1.5, 2.0, -0.25]


def test_delimiters_are_told_from_the_rows(tmp_path):
    path = tmp_path / "data.csv"
    for text, expected in (
        ("a\tb\tclass\n1\t2\tx\n3\t4\ty\n", ["a", "b"]),
        ("a;b;class\n1;2;x\n3;4;y\n", ["a", "b"]),
        ("a;b,c,class\n1,2,x\n3,4,y\n", ["a;b", "c"]),  # a semicolon in a name
        ('"a;b";class\n"1;2";x\n"3;4";y\n', ["a;b"]),
        ("a,b,class\n" + '1,"u;\nv",x\n' * 30 + "2,u,y\n", ["a", "b"]),  # the first lines end inside a cell
    ):
        path.write_text(text)
        assert list(read(path).X.columns) == expected, text


def test_a_comma_is_a_decimal_sign_only_where_it_can_be_no_other(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("a\tb\tclass\n1,037\t1\tx\n2,500\t2\ty\n")  # thousands or decimals: nobody knows
    data = read(path)
    assert list(data.X.columns) == ["b"]
    assert "'a'" in data.remarks[0]
    path.write_text("a\tb\tclass\n1,037\t0,5\tx\n2,500\t2\ty\n")
    assert read(path).X["a"].tolist() == [1.037, 2.5]
    path.write_text("a\tb\tclass\n1.037\t0,5\tx\n2.500\t2\ty\n")  # points between thousands
    assert read(path).X["a"].tolist() == [1037, 2500]


def test_damaged_and_foreign_text(tmp_path):
    path = tmp_path / "data.csv"
    start = b"a,b,class\n1,2,x\n\n"
    assert "line 4 is neither UTF-8 nor Latin-1" in refused(path, start + b"3,\x81,y\n")
    assert "line 4 is neither" in refused(path, start + "3,é,".encode() + b"\xe9\n")  # UTF-8, but for one sign
    assert "binary zeros" in refused(path, start + b"3,\0,y\n")
    assert "starts like UTF-16" in refused(path, b"\xff\xfea\xd8\x00")
    for ending, content in ((".csv.gz", b"\x1f\x8bnonsense"), (".csv.bz2", b"BZh9nonsense"), (".zip", b"PK nonsense")):
        assert "cannot be unpacked" in refused(tmp_path / f"data{ending}", content)
    whole = gzip.compress(start * 100)
    assert "cannot be unpacked" in refused(tmp_path / "cut.csv.gz", whole[: len(whole) // 2])
    assert "is empty" in refused(tmp_path / "none.csv.gz", gzip.compress(b""))
    assert "only csv and tsv files are read packed" in refused(tmp_path / "data.parquet.gz", whole)
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "a")
        archive.writestr("b.csv", "b")
    assert "holds 2 files" in refused(tmp_path / "two.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.xls", "a")
    assert "holds .xls" in refused(tmp_path / "other.zip")


def test_faults_are_named_with_their_line(tmp_path):
    path = tmp_path / "data.csv"
    start = "a,b,class\n1,2,x\n\n"
    assert "line 4 has 2 fields, but the header has 3" in refused(path, start + "3,y\n")
    rows = "".join(f"{i},2,x\n" for i in range(20))
    error = refused(path, start + rows + "l2,2,y\n")
    assert "column 'a' has 'l2' among numbers in line 24: correct it, declare it missing (--na l2), or " in error
    assert "column 'a' is infinite in line 4" in refused(path, start + "inf,4,y\n")
    assert "line 4 cannot be read" in refused(path, start + '3,"4"x,y\n')
    assert "two columns are named 'a'" in refused(path, "a,a\n1,2\n")
    assert "column 2 has no name" in refused(path, "a,,b\n1,2,3\n")
    assert "no header line" in refused(path, "5.1,3.5,1.4\n4.9,3.0,1.4\n")
    assert "is empty" in refused(path, "")
    assert "no rows" in refused(path, "a,b\n")
    assert "no columns besides" in refused(path, "class\nx\n")
    assert "every row has a missing value" in refused(path, "a,b,class\n1,,x\n,2,x\n", drop_missing=True)
    path.write_text("a,class\n1,x\n")
    assert "has no column 'z' (--target): it has 'a', 'class'" in refused(path, target="z", error=ColumnError)
    assert "did you mean 'class'?" in refused(path, target="klass", error=ColumnError)
    assert "ending must be one of" in refused(tmp_path / "data.doc", "")
    assert "the format xls is not read: save the file as xlsx or csv" in refused(tmp_path / "data.xls", "")
    for suffix in (".parquet", ".npz"):
        assert "or damaged" in refused(tmp_path / f"data{suffix}", "PK nonsense")


def test_text_is_read_as_it_stands_but_for_spaces_around_it(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes('\ufeffa, b ,c,class\r\n1,"x ""y""\nz",1_0, u \r\n2, none ,2_0,v\r\n\r\n'.encode())
    data = read(path)
    assert list(data.X.columns) == ["a", "b", "c"]
    assert data.X["b"].tolist() == ['x "y"\nz', "none"]
    assert str(data.X["c"].dtype) == "category"  # 1_0 is no number outside Python
    assert data.lines.tolist() == [3, 4]
    assert data.y.tolist() == ["u", "v"]


# ---- columns


def test_one_and_one_point_zero_are_one_class(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,class\n1,1,1\n2,1.0,1.0\n3,2,0\n4,2.00,0.\n5,007,1\n")
    data = read(path, categorical=("b",))
    assert data.y.tolist() == ["1", "1", "0", "0", "1"]
    assert data.X["b"].tolist() == ["1", "1", "2", "2", "007"]


def test_columns_that_cannot_be_features_are_excluded_with_a_message(tmp_path):
    n = 60
    frame = pd.DataFrame(
        {
            "name": [f"patient {i}" for i in range(n)],
            "born": [f"19{i % 40 + 40}-0{i % 9 + 1}-11" for i in range(n)],
            "seen": [f"{i % 28 + 1}.3.2020 10:30" for i in range(n)],
            "income": [f"$ {i + 1},037" if i % 2 else str(i) for i in range(n)],
            "share": [f"{i}.5 %" for i in range(n)],
            "nothing": ["NA"] * n,
            "word": ["a", "b", "c"] * (n // 3),
            "height": np.arange(n) + 0.5,
            "class": ["x", "y"] * (n // 2),
        }
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    data = read(path)
    assert list(data.X.columns) == ["word", "height"]
    told = "\n".join(data.remarks)
    assert "'name', which holds names of rows such as 'patient 0': name one with --id name; --categorical name" in told
    assert "2 columns 'born', 'seen', which hold dates or times such as '1940-01-11': convert them to numbers" in told
    assert "'income', which holds numbers with signs between the digits such as '$ 2,037'" in told
    assert "'share', which holds percentages such as '0.5 %'" in told
    assert "'nothing': no row has a value there" in told
    assert len(data.remarks) == 5
    asked = read(path, id="name", ignore=("seen", "income", "nothing"), categorical=("born", "share"))
    assert list(asked.X.columns) == ["born", "share", "word", "height"]
    assert asked.remarks == ()
    assert asked.ids.tolist() == frame["name"].tolist()
    frame["when"] = pd.Timestamp("2020-01-01")
    data = read(written(tmp_path, ".parquet", frame[["height", "when", "class"]]))
    assert list(data.X.columns) == ["height"]
    assert "'when', which holds dates or times" in data.remarks[0]


@pytest.mark.parametrize("form", ["{} kg", "{}kg", "{}.5 mg/l", "{} °C", "€ {}", "{}.20 €", "{} µg/mL"])
def test_numbers_with_a_unit_are_recognised(tmp_path, form):
    path = tmp_path / "data.csv"
    for n_different in (4, 50):  # few are no levels either
        cells = [form.format(60 + i % n_different) for i in range(50)]
        pd.DataFrame({"a": np.arange(50) / 7, "weight": cells, "class": ["x", "y"] * 25}).to_csv(path, index=False)
        data = read(path)
        assert list(data.X.columns) == ["a"]
        assert f"'weight', which holds numbers with a unit such as {cells[0]!r}: write them without" in data.remarks[-1]
    pd.DataFrame({"a": ["1a", "2b", "3a"] * 5, "class": list("xyy") * 5}).to_csv(path, index=False)
    assert list(read(path).X["a"].cat.categories) == ["1a", "2b", "3a"]


def test_few_whole_numbers_may_be_labels(tmp_path):
    path = tmp_path / "data.csv"
    pd.DataFrame({"grade": np.arange(60) % 3, "age": np.arange(60) / 2, "class": ["x", "y"] * 30}).to_csv(
        path, index=False
    )
    data = read(path)
    assert str(data.X["grade"].dtype) == "float64"
    assert data.remarks == ("'grade' has few whole numbers and is taken as numeric: if they are labels, add "
                            "--categorical grade",)  # fmt: skip
    assert read(path, categorical=("grade",)).remarks == ()


def test_a_target_that_measures_is_asked_back(tmp_path):
    path = tmp_path / "data.csv"
    frame = pd.DataFrame({"a": np.arange(90.0), "dose": np.arange(90) % 30, "half": np.arange(90) % 15 / 2})
    frame.to_csv(path, index=False)
    error = refused(path, target="dose", error=ColumnError)
    assert "'dose' has 30 different numbers" in error
    assert "--categorical dose" in error
    assert "'half' has 15 different numbers" in refused(path, target="half", error=ColumnError)
    assert len(set(read(path, target="dose", categorical=("dose",)).y)) == 30
    frame.assign(dose=frame["dose"] % 20).to_csv(path, index=False)
    assert len(set(read(path, target="dose").y)) == 20


def test_one_class_only_names_the_column(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,class\n1,x\n2.5,x\n3,\n")
    assert "column 'class' has one class only, 'x': at least two are needed" in refused(path)
    with pytest.raises(DataFileError, match="column 'class' has one class only"):
        training_stream(source_of(path), Roles("class"))


def test_a_column_that_differs_by_case_is_suggested(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,CAD\n1,x\n2.5,y\n")
    assert "did you mean 'CAD'?" in refused(path, target="cad", error=ColumnError)


def test_advice_can_be_pasted_into_a_shell(rng, tmp_path):
    path = tmp_path / "data.csv"
    days = [f"2024-01-{i % 28 + 1}" for i in range(40)]
    frame = pd.DataFrame({"Visit, first": days, "a b": np.arange(40) % 3, "class": ["x", "y"] * 20})
    frame.to_csv(path, index=False)
    told = " ".join(read(path).remarks)
    for option, name in (("--ignore", "Visit, first"), ("--categorical", "a b")):
        words = told.split(f"{option} ")[-1]
        given = shlex.split(words)[0]
        assert listed_values([given]) == (name,)
        assert listed_values([name], frame.columns) == (name,)  # as it stands, too
    assert listed_values(['"a, b",c', "d , e,"]) == ("a, b", "c", "d", "e")
    assert listed_values(["a\nb", '"c\nd",e', ""]) == ("a", "b", "c\nd", "e")
    frame["a b"] = [*np.arange(39.0), "<5"]
    frame.to_csv(path, index=False)
    assert "(--na '<5')" in refused(path, ignore=("Visit, first",))
    limited = frame.assign(x=rng.normal(size=40), **{"a b": [f"<{i % 7 + 2}" for i in range(40)]})
    limited.to_csv(path, index=False)
    assert "declare them missing with --na '<2'; --categorical 'a b'" in " ".join(read(path).remarks)
    limited.assign(**{"a b": [f"patient {i}" for i in range(40)]}).to_csv(path, index=False)
    assert "name one with --id 'a b'; --categorical 'a b'" in " ".join(read(path).remarks)
    frame.to_csv(path, index=False)
    assert "(--categorical 'a b')" in refused(path, ignore=("Visit, first",))


# ---- numbers of rows


def noise(n=60):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.normal(size=n), "class": np.repeat(["a", "b"], n // 2)})


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_the_index_of_a_frame_is_no_feature(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    frame = noise().sample(frac=0.8, random_state=0)
    if suffix == ".arrow":
        import pyarrow.feather

        pyarrow.feather.write_feather(pyarrow.Table.from_pandas(frame), path)
    else:
        frame.to_parquet(path)
    data = read(path)
    assert list(data.X.columns) == ["x"]
    assert "'__index_level_0__', the index of a pandas frame" in data.remarks[0]
    assert read(path, id="__index_level_0__").ids.tolist() == frame.index.astype(str).tolist()
    assert stream_of(path, "class", None, (), None, drop_missing=False, batch_rows=9).survey.schema.names == ("x",)
    frame.set_index("x", append=True).to_parquet(tmp_path / "two.parquet")
    assert "no columns besides" in refused(tmp_path / "two.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["Id", "Unnamed: 0", "PassengerId", "n", "row"])
def test_numbers_of_rows_are_no_features(tmp_path, suffix, name):
    frame = noise()
    frame.insert(0, name, np.arange(60) + 1)
    path = written(tmp_path, suffix, frame)
    data = read(path)
    assert list(data.X.columns) == ["x"]
    assert f"{name!r}, which holds numbers of rows such as '1': name one with --id" in data.remarks[-1]
    assert list(read(path, categorical=(name,)).X.columns) == [name, "x"]
    stream = training_stream(source_of(path), Roles("class"))
    assert list(stream.plan.features) == ["x"]
    mixed = written(tmp_path, suffix, frame.sample(frac=1, random_state=0))  # then the name alone tells
    assert list(read(mixed).X.columns) == (["n", "x"] if name == "n" else ["x"])


def test_what_rises_in_a_small_table_may_be_measured(tmp_path):
    frame = noise(10)
    for name, column in {
        "dose": np.arange(10) + 1,
        "id": [1, 1, 2, 2, 3, 3, 4, 4, 5, 5],  # not different
        "time": np.arange(10) * 0.5,
    }.items():
        assert name in read(written(tmp_path, ".csv", frame.assign(**{name: column}))).X
    assert "id" not in read(written(tmp_path, ".csv", frame.assign(id=[3, 9, 1, 4, 5, 2, 6, 7, 8, 0]))).X
    frame = noise(60).assign(year=np.arange(60) // 2 + 1960, odd=np.arange(60) ** 2, left=np.arange(60)[::-1])
    assert list(read(written(tmp_path, ".csv", frame)).X.columns) == ["x", "year", "odd", "left"]


def test_row_names_of_r_and_pandas_need_no_name(tmp_path):
    path = tmp_path / "data.csv"
    noise().to_csv(path)
    assert list(read(path).X.columns) == ["x"]
    frame = noise()
    frame.index = [f"sample {i}" for i in range(60)]
    frame.to_csv(path)
    data = read(path)
    assert list(data.X.columns) == ["x"]
    assert "'Unnamed: 0', which holds names of rows such as 'sample 0'" in data.remarks[0]


def test_a_column_has_one_part(tmp_path):
    path = written(tmp_path, ".csv")
    assert "cannot be both --target and --id" in refused(path, id="class", error=ColumnError)
    assert "cannot be both --groups and --ignore" in refused(path, groups="who", ignore=("who",), error=ColumnError)
    data = read(path, id="who", groups="who")  # a name may also say which rows belong together
    assert data.ids.tolist() == data.groups.tolist()


# ---- missing values


def test_missing_values_are_counted_by_column_and_spelling(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,salt,b,class\n1,Na,?,x\n,NA,2,y\nNA,K,-9,x\n4,Na,4,y\n5,K,5,\n6,K,6,x\n")
    data = read(path, na=("-9",))
    np.testing.assert_array_equal(data.X["a"], [1, np.nan, np.nan, 4, 6])
    np.testing.assert_array_equal(data.X["b"], [np.nan, 2, np.nan, 4, 6])
    assert data.X["salt"].isna().tolist() == [False, True, False, False, False]
    assert list(data.X["salt"].cat.categories) == ["K", "Na"]  # sodium
    assert data.missing == {"a": {"": 1, "NA": 1}, "salt": {"NA": 1}, "b": {"?": 1, "-9": 1}}
    assert data.remarks[1] == "excluded 1 of 6 rows without a class in column 'class'"
    assert data.remarks[0] == "5 cells are taken as missing: a 1 empty, 1 'NA'; b 1 '?', 1 '-9'; salt 1 'NA'"
    assert read(path, na=("Na", "-9")).missing["salt"] == {"Na": 2, "NA": 1}
    whole = read(path, na=("-9",), drop_missing=True)
    assert whole.lines.tolist() == [5, 7]
    assert whole.excluded == {"without a class": 1, "with missing values": 3}


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_spellings_that_no_cell_has_are_told(tmp_path, suffix):
    frame = pd.DataFrame({"a": [1.0, -9, 3, -9], "b": list("uvuw"), "class": list("xyxy")})
    path = written(tmp_path, suffix, frame)
    data = read(path, na=("-9", "-99", "w", "nothing"))
    assert data.X["a"].isna().tolist() == [False, True, False, True]
    assert data.remarks[-1] == "no cell is '-99' or 'nothing': check the words of --na"
    assert training_stream(source_of(path), Roles("class", na=("-9", "-99"))).plan.remarks[-1] == (
        "no cell is '-99': check the word of --na"
    )
    assert "no cell" not in " ".join(read(path, na=("-9", "y x", "w")[::2]).remarks)
    frame.loc[0, "class"] = "unknown"
    assert "no cell" not in " ".join(read(written(tmp_path, suffix, frame), na=("unknown",)).remarks)


def test_missing_values_of_parquet_and_npz(tmp_path):
    frame = FRAME.assign(colour=FRAME["colour"].astype("category"), code=FRAME["code"].astype("Int64"))
    frame.loc[2, ["code", "colour"]] = pd.NA
    path = written(tmp_path, ".parquet", frame)
    data = read(path, na=("3", "blue"))
    np.testing.assert_array_equal(data.X["code"], [1, 2, np.nan, np.nan])
    assert data.X["colour"].isna().tolist() == [False, True, True, False]
    assert data.missing == {"code": {"null": 1, "3": 1}, "colour": {"blue": 1, "null": 1}}
    data = read(path, drop_missing=True)
    assert (len(data.X), data.excluded, data.lines.tolist()) == (3, {"with missing values": 1}, [1, 2, 4])
    frame.loc[1, "who"] = None
    path = written(tmp_path, ".parquet", frame)
    assert "column 'who' has no value in row 2: fill in the group" in refused(path, groups="who")
    np.savez(tmp_path / "data.npz", X=[[1.0, np.nan], [2.0, 3.0]], y=["a", "b"])
    assert read(tmp_path / "data.npz", target="y").missing == {"1": {"null": 1}}


def test_npz_with_positions_target_and_groups(tmp_path):
    path = tmp_path / "data.npz"
    X = np.arange(12.0).reshape(4, 3).astype(np.float32)
    np.savez(path, X=X, y=["a", "b", "a", "b"], mz=[100.5, 101.0, 103.0], subject=[1, 1, 2, 2])
    data = read(path, target="y", groups="subject")
    np.testing.assert_array_equal(data.X.to_numpy(), X)
    assert rising_numbers(data.X.columns).tolist() == [100.5, 101.0, 103.0]
    assert (data.y.tolist(), data.groups.tolist()) == (["a", "b", "a", "b"], ["1", "1", "2", "2"])
    assert "no array 'z'" in refused(path, target="z", error=ColumnError)
    np.savez(path, X=X, y=["a", "b"])
    assert "one entry for each of the 4 rows" in refused(path, target="y")
    np.savez(path, X=X, y=np.array([b"a", b"b", b"a", b"b"]))
    assert read(path, target="y").y.tolist() == ["a", "b", "a", "b"]
    np.savez(path, X=X[:, 0], y=["a", "b", "a", "b"])
    assert "its array X is float32 of shape (4,): make it one of numbers" in refused(path, target="y")
    np.savez(path, Z=X)
    assert "no array X" in refused(path)
    np.savez(path, X=np.array([["a"]], dtype=object), y=["a"])  # can only be read by unpickling
    assert "not an npz file of plain arrays" in refused(path, target="y")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_types_that_are_neither_numbers_nor_text(tmp_path, suffix):
    frame = FRAME.assign(list=[[1, 2]] * 4, bytes=[b"a", b"b"] * 2, yes=[True, False, None, True])
    frame["yes"] = frame["yes"].astype("boolean")
    path = written(tmp_path, suffix, frame)
    data = read(path, ignore=("who",), categorical=("code",))
    assert list(data.X.columns) == ["size", "code", "colour", "yes"]
    assert data.X["yes"].tolist()[::3] == ["True", "True"]  # text, with and without missing values
    assert data.X["yes"].isna().tolist() == [False, False, True, False]
    assert "excluded column 'list', which holds list<" in " ".join(data.remarks)
    assert "excluded column 'bytes', which holds binary, neither numbers nor text" in data.remarks
    assert read(path, ignore=("list", "bytes", "who")).remarks == ("1 cell is taken as missing: yes 1 null",)
    for target in ("list", "bytes"):
        assert f"column {target!r} holds " in refused(path, target=target)
    assert read(path, target="yes", ignore=("who",)).y.tolist() == ["True", "False", "True"]
    with pytest.raises(DataFileError, match="column 'list' holds list<"):
        to_predict(path, Roles(), ["list"])
    assert to_predict(path, Roles("bytes"), ["size"])[0].y is None
    names = [2**60 + 1, None, 2**60 + 3, 2**60 + 5]  # whole numbers that floats cannot tell apart
    path = written(tmp_path, suffix, FRAME.assign(name=pd.array(names, "Int64")))
    assert read(path, id="name", ignore=("who",)).ids.tolist() == [str(name or "") for name in names]


# ---- prediction


def to_predict(path, roles, columns, discrete=(), **more):
    told = []
    [data] = prediction_parts(source_of(path), roles, columns, discrete, message=told.append, **more)
    return data, told


def test_rows_to_predict_have_the_columns_of_the_model(tmp_path):
    path = written(tmp_path, ".csv")
    data, _ = to_predict(path, Roles("class", id="who"), ["colour", "size"], ["colour"])
    assert list(data.X.columns) == ["colour", "size"]
    assert data.ids.tolist() == FRAME["who"].tolist()
    with pytest.raises(DataFileError, match=r"lacks column 'sise' \(of the model\): did you mean 'size'"):
        to_predict(path, Roles(), ["sise"])
    with pytest.raises(
        DataFileError, match=r"'colour' holds 'red' in line 2 .and in 3 more.: the model was trained on"
    ):
        to_predict(path, Roles(), ["colour"])
    with pytest.raises(ColumnError, match="no column 'number'"):
        to_predict(path, Roles(id="number"), ["size"], needs_id=True)
    unnamed, told = to_predict(path, Roles(id="number"), ["size"])
    assert unnamed.ids is None
    assert "no column 'number', which named the rows in training" in told[0]


def test_rising_numbers():
    assert rising_numbers(["mz_100.5", "mz_101"]).tolist() == [100.5, 101]
    for names in (["2", "1"], ["1", "nan"], ["a", "b"], ["1"]):
        assert rising_numbers(names) is None
