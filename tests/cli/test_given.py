"""Data as users have them: packed, in sheets, too large, with options that do not apply."""

import gzip
import io
import json
import os
import zipfile

import numpy as np
import pandas as pd
import pytest

from cgnlearn import load
from tests.cli.running import run

QUICK = ("-s", "naive_bayes", "-p", "bayes")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    frame = pd.DataFrame(
        {"x": rng.normal(size=60) + 2 * y, "a, b": rng.normal(size=60), "k": np.array(["no", "yes"])[y]}
    )
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def zipped(path, **files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return path


def test_a_zip_file_of_one_table_is_a_table(table, tmp_path):
    path = zipped(tmp_path / "data.zip", data_csv=table.read_bytes())
    assert run("fit", path, "-t", "k", *QUICK, "-o", tmp_path / "m.skops").exit_code == 0
    plain = run("predict", tmp_path / "m.skops", table).stdout
    assert run("predict", tmp_path / "m.skops", path).stdout == plain
    (tmp_path / "bad.zip").write_bytes(path.read_bytes()[:100])
    found = run("fit", tmp_path / "bad.zip", "-t", "k", "-o", tmp_path / "m.skops")
    assert found.exit_code == 1
    assert "cannot be unpacked" in found.stderr
    two = zipped(tmp_path / "two.zip", a_csv=table.read_bytes(), b_csv=table.read_bytes())
    assert "add --labels" in run("fit", two, "-t", "k", "-o", tmp_path / "m.skops").stderr


def test_options_of_spectra_are_refused_for_a_table(table, tmp_path):
    assert run("fit", table, "-t", "k", *QUICK, "-o", tmp_path / "m.skops").exit_code == 0
    for words in (
        ("--preset", "maldi"), ("--preset", "seldi"), ("--width", "3"), ("--skip-bad",), ("--labels", table),
    ):  # fmt: skip
        for call in (("fit", table, "-t", "k", "-o", tmp_path / "n.skops"), ("evaluate", table, "-t", "k")):
            found = run(*call, *words)
            assert found.exit_code == 2
            assert f"{words[0]} is for spectra, and the data are a table: omit it" in found.stderr
    for words in (("--by-sample",), ("--correlation", "1"), ("--skip-bad",), ("--labels", table)):
        found = run("predict", tmp_path / "m.skops", table, *words)
        assert found.exit_code == 2
        assert f"{words[0]} is for spectra" in found.stderr


def test_names_with_commas_are_named(table, tmp_path):
    for words, n_features in (
        (("--ignore", "a, b"), 1), (("--ignore", '"a, b"'), 1), (("--categorical", '"a, b",x'), 2),
    ):  # fmt: skip
        found = run("fit", table, "-t", "k", *words, *QUICK, "-o", tmp_path / "m.skops")
        assert f" {n_features} features" in found.stderr, found.stderr
    assert load(tmp_path / "m.skops").statistics_.schema.discrete == [0, 1]


def test_a_pipe_is_refused_at_once(table, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    for words in (
        ("fit", tmp_path / "pipe.csv", "-t", "k", "-o", tmp_path / "m.skops"),
        ("predict", tmp_path / "pipe.csv", table),
        ("evaluate", table, "-t", "k", "--cost", tmp_path / "pipe.csv"),
    ):  # fmt: skip
        found = run(*words)
        assert found.exit_code == 2
        assert "is not a regular file" in found.stderr


# ---- memory


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".zip"])
def test_packed_tables_are_read_in_batches_too(table, tmp_path, ending, monkeypatch):
    content = table.read_bytes()
    path = tmp_path / f"big{ending}"
    if ending == ".zip":
        zipped(path, data_csv=content)
    else:
        path.write_bytes(gzip.compress(content) if "gz" in ending else content)
    monkeypatch.setattr("cgnlearn.tables.text.TextFile.batches", counting := Counting())
    options = ("-t", "k", *QUICK, "--memory", "1KB")
    assert run("fit", path, *options, "-o", tmp_path / "m.skops").exit_code == 0
    assert counting.at_once == {1 << 16}
    found = run("predict", tmp_path / "m.skops", path, "--memory", "1KB", "-o", tmp_path / "out.csv")
    assert found.exit_code == 0, found.stderr
    assert counting.at_once == {1 << 16}
    assert "in batches" in run("evaluate", path, *options, "--report", tmp_path / "r.html").stderr


class Counting:
    """Notes how many rows are asked for at once."""

    def __init__(self):
        from cgnlearn.tables.text import TextFile

        self.own, self.at_once = TextFile.batches, set()

    def __get__(self, file, kind=None):
        def batches(names, n_rows):
            self.at_once.add(n_rows)
            return self.own(file, names, n_rows)

        return batches


def test_what_must_be_read_whole_is_refused_beyond_the_limit(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, X=np.zeros((1000, 5000)), y=["a", "b"] * 500)  # 40 MB in 40 KB
    assert path.stat().st_size < 200_000
    found = run("fit", path, *QUICK, "--memory", "20MB", "-o", tmp_path / "m.skops")
    assert found.exit_code == 2
    assert "cannot be read in batches, but 20 MB are allowed: save it as parquet" in found.stderr


def test_endless_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("cgnlearn.tables.text.LONGEST_LINE", 1 << 22)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,k\n" + b"1" * (1 << 23)))
    found = run("fit", path, "-t", "k", "-o", tmp_path / "m.skops")
    assert found.exit_code == 1
    assert "line 2 is longer than" in found.stderr


# ---- sheets


def workbook(path, *sheets):
    """An xlsx file, written by hand: the package that is used reads only."""
    names = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, (name, _) in enumerate(sheets, 1))
    space = "http://schemas.openxmlformats.org"
    relations = "".join(
        f'<Relationship Id="rId{i}" Type="{space}/officeDocument/2006/relationships/worksheet" '
        f'Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'spreadsheetml.worksheet+xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", (
            f'<Types xmlns="{space}/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.'
            'openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/'
            f'vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{kinds}</Types>'
        ))  # fmt: skip
        archive.writestr("_rels/.rels", (
            f'<Relationships xmlns="{space}/package/2006/relationships"><Relationship Id="rId1" Type="{space}/'
            'officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ))  # fmt: skip
        archive.writestr("xl/workbook.xml", (
            f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{space}/officeDocument/2006/relationships">'
            f"<sheets>{names}</sheets></workbook>"
        ))  # fmt: skip
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{space}/package/2006/relationships">{relations}</Relationships>',
        )
        for i, (_, rows) in enumerate(sheets, 1):
            cells = ""
            for r, row in enumerate(rows, 1):
                cells += f'<row r="{r}">'
                for c, cell in enumerate(row):
                    place = f"{'ABCDEFGH'[c]}{r}"
                    if isinstance(cell, bool):
                        cells += f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
                    elif isinstance(cell, str):
                        cells += f'<c r="{place}" t="inlineStr"><is><t>{cell}</t></is></c>'
                    elif cell is not None:
                        cells += f'<c r="{place}"><v>{cell}</v></c>'
                cells += "</row>"
            archive.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f'<worksheet xmlns="{space}/spreadsheetml/2006/main"><sheetData>{cells}</sheetData></worksheet>',
            )
    return path


def test_sheets_are_read(table, tmp_path):
    frame = pd.read_csv(table)
    rows = [list(frame.columns), *frame.astype(object).values.tolist()]
    rows[3][0] = None
    rows.insert(5, [None, None, None])
    path = workbook(tmp_path / "data.xlsx", ("Data", rows), ("Notes", [["x", "k"], [1, "no"], [2.5, "yes"]]))
    found = run("fit", path, "-t", "k", *QUICK, "-o", tmp_path / "m.skops")
    assert found.exit_code == 0, found.stderr
    assert "is read from sheet 'Data', one of 2" in found.stderr
    assert "1 cell is taken as missing: x 1 null" in found.stderr
    frame.loc[2, "x"] = np.nan
    frame.to_csv(table, index=False)
    expected = run("predict", tmp_path / "m.skops", table).stdout.splitlines()
    said = run("predict", tmp_path / "m.skops", path).stdout.splitlines()
    assert [line.split(",", 1)[1] for line in said] == [line.split(",", 1)[1] for line in expected]
    assert [line.split(",")[0] for line in said[1:6]] == ["2", "3", "4", "5", "7"]  # rows of the sheet
    assert run("predict", tmp_path / "m.skops", path, "--sheet", "Notes").stdout.count("\n") == 3
    for words, expected in (
        (("--sheet", "None"), "has no sheet 'None': it has 'Data', 'Notes'"), (("-t", "z"), "has no column 'z'"),
    ):  # fmt: skip
        assert expected in run("evaluate", path, "-t", "k", *words).stderr
    found = run("predict", tmp_path / "m.skops", path, "-o", tmp_path / "out.xlsx")
    assert "predictions are written as csv: use a name that ends in .csv" in found.stderr
    assert "omit --sheet" in run("evaluate", table, "-t", "k", "--sheet", "Data").stderr
    (tmp_path / "bad.xlsx").write_bytes(b"PK nonsense")
    assert "is not a readable xlsx file" in run("evaluate", tmp_path / "bad.xlsx", "-t", "k").stderr
    (tmp_path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0")
    assert "xls is not read: save the file as xlsx or csv" in run("evaluate", tmp_path / "old.xls", "-t", "k").stderr


def test_cells_of_sheets(tmp_path):
    from cgnlearn.tables.formats import source_of
    from cgnlearn.tables.read import training_data
    from cgnlearn.tables.roles import Roles

    rows = [["flag", "text", "comma", "day", "k"]]
    rows += [[i % 2 == 0, "a" if i % 3 else 1.5, f"{i},25", f"2024-01-{i + 10}", i % 2] for i in range(12)]
    data = training_data(source_of(workbook(tmp_path / "data.xlsx", ("S", rows))), Roles("k"))
    assert data.X["flag"].tolist() == ["True", "False"] * 6
    assert set(data.X["text"]) == {"a", "1.5"}
    assert data.X["comma"].tolist() == [i + 0.25 for i in range(12)]
    assert "day" not in data.X
    assert data.y.tolist() == ["0", "1"] * 6
    assert data.place(0) == "row 2"


# ---- options


def test_costs_are_in_the_report(table, tmp_path):
    costs, report = tmp_path / "costs.csv", tmp_path / "report.html"
    costs.write_text("k,treat,wait\nyes,0,20\nno,1,0\n")
    found = run("evaluate", table, "-t", "k", *QUICK, "--cv", "2", "--cost", costs, "--report", report, "--json")
    assert found.exit_code == 0, found.stderr
    cost = json.loads(found.stdout)["models"][0]["cost"]["value"]
    page = report.read_text(encoding="utf-8")
    assert "no: treat 1, wait 0; yes: treat 0, wait 20" in page
    assert f"naive_bayes bayes {cost:.3f} (" in page


def test_words_of_predict_that_no_cell_has_are_told(table, tmp_path):
    model = tmp_path / "m.skops"
    assert "no cell is '-9': check" in run("fit", table, "-t", "k", "--na", "-9", *QUICK, "-o", model).stderr
    assert "no cell" not in run("predict", model, table).stderr  # the model's own words need not be there
    assert "no cell is '-8': check the word of --na" in run("predict", model, table, "--na", "-8").stderr


def test_a_file_read_in_parts_means_the_same(tmp_path):
    path, lines = tmp_path / "data.csv", ["x,level,empty,w,k"]
    rng = np.random.default_rng(1)
    for i in range(80):
        label = ("1", "1.0", " 2", "2.0 ")[i % 4] if i % 20 else ""  # rows without a class, and spaces
        lines.append(f"{rng.normal() + i % 4},{('1', '1.0', '2')[i % 3]},,{'-9.0' if i % 8 == 0 else i / 7},{label}")
    path.write_text("\n".join(lines) + "\n")
    options = ("-t", "k", "--categorical", "level", "--na", "-9", *QUICK)
    whole = run("fit", path, *options, "--json", "-o", tmp_path / "whole.skops")
    parts = run("fit", path, *options, "--json", "--memory", "1KB", "-o", tmp_path / "parts.skops")
    assert (whole.exit_code, parts.exit_code) == (0, 0), parts.stderr
    assert sorted(whole.stderr.splitlines()) == sorted(parts.stderr.splitlines())
    for told in ("excluded column 'empty': no row has a value there", "excluded 4 of 80 rows without a class",
                 "10 cells are taken as missing: w 10 '-9.0'"):  # fmt: skip
        assert told in parts.stderr
    first, second = json.loads(whole.stdout), json.loads(parts.stdout)
    assert first["classes"] == ["1", "2"]
    assert {key: first[key] for key in first if key != "path"} == {key: second[key] for key in second if key != "path"}
    out = (run("predict", tmp_path / f"{name}.skops", path).stdout for name in ("whole", "parts"))
    said = [pd.read_csv(io.StringIO(text)) for text in out]
    of_classes = [frame.drop(columns=["typicality", "unusual"]) for frame in said]  # which need samples in memory
    pd.testing.assert_frame_equal(*of_classes)
