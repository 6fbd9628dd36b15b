"""The page on the reproduction says what the results beside it say."""

import importlib.util
from pathlib import Path

import pytest

from cgnlearn.evaluation.run import csv_text, read_rows
from cgnlearn.experiments import ovarian, uci

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", FOLDER / "page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_that_of_the_committed_results(page):
    assert page.PAGE.read_text(encoding="utf-8") == page.page()


def assert_same_values(path, expected):
    """Up to what other versions of NumPy and SciPy may round differently."""
    found = [line.split(",") for line in path.read_text().splitlines()]
    wanted = [line.split(",") for line in expected.splitlines()]
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert one == other or float(one) == pytest.approx(float(other), rel=1e-6)


def test_the_committed_summaries_are_those_of_the_committed_rows():
    cells = uci.cells(read_rows(FOLDER / "uci" / "rows.csv.gz"), n_folds=10)
    assert_same_values(FOLDER / "uci" / "comparisons.csv", csv_text(uci.CELL_COLUMNS, *map(uci.cell_row, cells)))
    rows = read_rows(FOLDER / "ovarian" / "rows.csv.gz")
    points = ovarian.points(rows, n_features=4000, n_classes=2)
    assert_same_values(FOLDER / "ovarian" / "points.csv", csv_text(ovarian.Point._fields, *points))
