"""The page on the reproduction says what the results beside it say."""

import importlib.util
from pathlib import Path

import pytest

from cgnlearn.experiments import ovarian, uci
from cgnlearn.experiments.protocol import read_rows
from cgnlearn.experiments.rowfile import csv_text

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", FOLDER / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_committed_results(page):
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def test_the_committed_summaries_are_those_of_the_committed_rows():
    cells = uci.cells(read_rows(FOLDER / "uci" / "rows.csv.gz"), n_folds=10)
    assert (FOLDER / "uci" / "comparisons.csv").read_text() == csv_text(uci.CELL_COLUMNS, map(uci.cell_row, cells))
    rows = read_rows(FOLDER / "ovarian" / "rows.csv.gz")
    assert len(rows) == 5 * 10 * (50 * 9 + 2)
    points = ovarian.points(rows, n_attributes=4000, n_classes=2)
    assert (FOLDER / "ovarian" / "points.csv").read_text() == csv_text(ovarian.Point._fields, points)
