"""Marks in numbers are decimal or between thousands for a whole column, never for a cell."""

import math

import numpy as np
import pytest

from cgnlearn.tables import batches
from cgnlearn.tables.batches import training_stream
from cgnlearn.tables.columns import numbers
from cgnlearn.tables.formats import source_of
from cgnlearn.tables.numerals import POINT, Marks, Numeral, number, numerals
from cgnlearn.tables.read import prediction_parts, training_data
from cgnlearn.tables.roles import Roles
from cgnlearn.tables.text import DataFileError

RNG = np.random.default_rng(0)
CRP, CELLS = RNG.uniform(0, 2, 60).round(2), RNG.integers(300, 12_000, 60)


def read(path, text):
    path.write_text(text)
    return training_data(source_of(path), Roles("k"))


def german(value, decimals=0):
    return f"{value:,.{decimals}f}".translate(str.maketrans(",.", ".,"))


def table(header, *columns):
    return "\n".join([header, *map(";".join, zip(*columns, strict=True))]) + "\n"


def test_points_between_thousands_beside_decimal_commas(tmp_path):
    path = tmp_path / "data.csv"
    columns = [german(x, 2) for x in CRP], list(map(german, CELLS)), ["gesund", "krank"] * 30
    data = read(path, table("CRP;Leukozyten;k", *columns))
    np.testing.assert_array_equal(data.X["CRP"], CRP)
    np.testing.assert_array_equal(data.X["Leukozyten"], CELLS)
    assert "with points between thousands in column 'Leukozyten'" in data.remarks[0]
    data = read(path, "CRP;Leukozyten;k\n0,69;3.462;gesund\n0,39;670;krank\n")
    assert data.X["Leukozyten"].tolist() == [3462, 670]
    assert "(3.462 is 3462)" in data.remarks[0]


def test_commas_between_thousands_beside_decimal_points(tmp_path):
    path = tmp_path / "data.csv"
    columns = [f"{x:.2f}" for x in CRP], [f"{n:,}" for n in CELLS], ["ok", "ill"] * 30
    data = read(path, table("crp;leuk;k", *columns))
    np.testing.assert_array_equal(data.X["crp"], CRP)
    np.testing.assert_array_equal(data.X["leuk"], CELLS)
    assert "decimal commas" not in data.remarks[0]
    assert "with commas between thousands in column 'leuk'" in data.remarks[0]
    for text in ("crp;leuk;k\n0.93;3,462;ok\n0.97;670;ill\n", 'crp,leuk,k\n0.93,"3,462",ok\n0.97,670,ill\n'):
        assert read(path, text).X["leuk"].tolist() == [3462, 670]


@pytest.mark.parametrize("text", [
    "n;leuk;k\n1;3,462;ok\n2;670;ill\n",  # nothing tells
    "n;leuk;k\n1;3.462;ok\n2;670;ill\n",
    "n;m;leuk;k\n0,5;1;3.462;ok\n0.5;2;670;ill\n",  # another column has both
    "p;m;leuk;k\n0.25;0,5;3.462;ok\n0.5;1,5;670;ill\n",  # the other columns differ
    "n;leuk;k\n1;0,97;ok\n2;0.93;ill\n",  # two marks in one column
    "n;leuk;k\n0,5;3.462;ok\n0,7;3,462;ill\n",
])  # fmt: skip
def test_ambiguous_columns_are_excluded_with_a_message(text, tmp_path):
    path = tmp_path / "data.csv"
    data = read(path, text)
    assert "leuk" not in data.X.columns
    assert any("'leuk'" in remark and "decimal or stand between thousands" in remark for remark in data.remarks)
    with pytest.raises(DataFileError, match="whose mark may be decimal or stand between thousands, in line"):
        list(prediction_parts(source_of(path), Roles(), ["leuk"]))


def test_a_slip_is_an_error_that_names_its_line(tmp_path):
    rows = [f"{i};{i + 0.25}" for i in range(30)]
    with pytest.raises(DataFileError, match="has '3,462' among numbers in line 32"):
        read(
            tmp_path / "data.csv",
            "n;a;k\n" + "".join(f"{row};x\n" for row in rows) + "9;3,462;y\n",
        )


def test_few_slips_in_a_long_column_are_slips(tmp_path):
    rows = "".join(f"{i + 0.25};{i % 7};{'xy'[i % 2]}\n" for i in range(3000))
    with pytest.raises(DataFileError, match=r"has '0,5' among numbers in line 3002 \(and in 149 more\)"):
        read(tmp_path / "data.csv", "a;n;k\n" + rows + "0,5;1;x\n" * 150)


def test_batches_and_several_files_are_read_in_one_way(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 7)
    text = table("CRP;n;k", [german(x, 2) for x in CRP], list(map(german, CELLS)), ["gesund", "krank"] * 30)
    for suffix in (".csv", ".tsv"):
        path = tmp_path / f"data{suffix}"
        path.write_text(text.replace(";", "\t") if suffix == ".tsv" else text)
        stream = training_stream(source_of(path), Roles("k"))
        found = np.concatenate([part.features["n"] for part in stream.parts()])
        np.testing.assert_array_equal(found, CELLS)
    header, *rows = text.splitlines()
    (tmp_path / "parts").mkdir()
    for i, part in enumerate(
        (rows[:30], [row.replace(",", "") for row in rows[30:]])
    ):  # no decimal comma in the second
        (tmp_path / "parts" / f"{i}.csv").write_text("\n".join([header, *part]) + "\n")
    found = [numbers(rows, "n").values for rows in source_of(tmp_path / "parts").batches(["n"], 100)]
    np.testing.assert_array_equal(np.concatenate(found), CELLS)


def test_numbers_in_many_spellings():
    for cell, numeral, expected in (
        ("−0.3", POINT, -0.3), ("−1,5", Numeral(","), -1.5), ("1.037,5", Numeral(",", "."), 1037.5),
        ("1,5e3", Numeral(","), 1500), ("-12.345.678", Numeral(",", "."), -12345678), ("inf", Numeral(","), math.inf),
        ("1,037.25", Numeral(".", ","), 1037.25), ("1037,5", Numeral(",", "."), 1037.5),
    ):  # fmt: skip
        assert numeral.number(cell) == expected
    for cell, numeral in (
        ("1_000", POINT), ("1,5", POINT), ("1.5", Numeral(",")), ("1.03,5", Numeral(",", ".")),
        ("0.037", Numeral(",", ".")), ("1.3.2024", Numeral(",")), ("²", POINT), ("", POINT), ("", Numeral(",")),
    ):  # fmt: skip
        assert math.isnan(numeral.number(cell)), cell
    assert number("−7") == -7


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("seed", range(20))
def test_random_columns_are_read_right_or_not_at_all(decimal, seed):
    rng = np.random.default_rng(seed)
    truth, columns = {}, {}
    for i in range(4):
        decimals = int(rng.integers(0, 4))
        values = np.round(rng.normal(size=12) * 10.0 ** rng.integers(0, 7), decimals)
        grouped = bool(rng.integers(2))
        cells = [f"{value:{',' if grouped else ''}.{decimals}f}" for value in values]
        if decimal == ",":
            cells = [cell.translate(str.maketrans(",.", ".,")) for cell in cells]
        truth[str(i)], columns[str(i)] = values, cells
    marks = {name: Marks() for name in columns}
    for name, cells in columns.items():
        for cell in cells:
            if "." in cell or "," in cell:
                marks[name].add(cell)
    for name, numeral in numerals(marks, by_semicolons=True).items():
        if numeral.decimal:
            np.testing.assert_array_equal([numeral.number(cell) for cell in columns[name]], truth[name])
