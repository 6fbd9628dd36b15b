import pytest

from cgnlearn.experiments.rowfile import RowFile, Unit, csv_text

COLUMNS = ("dataset", "repetition", "fold", "model", "score")
SIZES = {Unit("b", 0, 0): 2, Unit("a", 0, 0): 2, Unit("b", 0, 1): 2}


def rows_of(unit):
    return [("ml", 0.1 * unit.fold + 1 / 3), ("bayes", -1e-7)]


def opened(path):
    return RowFile(path, COLUMNS, SIZES)


def finished_bytes(path):
    file = opened(path)
    for unit in reversed(file.missing):
        file.append(unit, rows_of(unit))
    file.finish()
    return path.read_bytes()


def test_the_finished_file_is_in_the_units_order_whatever_the_order_of_work(tmp_path):
    content = finished_bytes(tmp_path / "rows.csv").decode().splitlines()
    assert content[0] == "dataset,repetition,fold,model,score"
    assert content[1:3] == ["b,0,0,ml,0.3333333333", "b,0,0,bayes,-1e-07"]
    assert [line[0] for line in content[1:]] == list("bbaabb")


def test_whatever_length_a_killed_process_leaves_the_end_is_the_same(tmp_path):
    whole = finished_bytes(tmp_path / "clean.csv")
    for length in range(whole.index(b"\n") + 1, len(whole) + 1):
        path = tmp_path / "torn.csv"
        path.write_bytes(whole[:length])
        file = opened(path)
        # A unit is taken up only with its last line's end.
        assert len(file.missing) == 3 - (whole[:length].count(b"\n") - 1) // 2
        assert finished_bytes(path) == whole


def test_lines_that_are_no_rows_and_units_that_stand_twice_are_computed_again(tmp_path):
    path = tmp_path / "rows.csv"
    whole = finished_bytes(path)
    path.write_bytes(whole + b"\0\0\0\0\n" + b"a,0,0,ml,0.3333333333\n" + b"\xff\xfe,,\nc,0,0,ml,1\nc,0,0,ml,1\n")
    assert opened(path).missing == [Unit("a", 0, 0)]
    assert finished_bytes(path) == whole


def test_a_file_with_other_columns_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("dataset,other\n1,2\n")
    with pytest.raises(ValueError, match="other columns"):
        opened(path)
    assert path.read_text() == "dataset,other\n1,2\n"


def test_rows_that_would_break_the_file_are_refused(tmp_path):
    file = opened(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match="do not fit"):
        file.append(Unit("a", 0, 0), [("ml, tempered", 1.0), ("bayes", 1.0)])
    with pytest.raises(ValueError, match="do not fit"):
        file.append(Unit("a", 0, 0), [("ml", 1.0)])
    assert len(file.missing) == 3


def test_csv_text_has_ten_digits():
    assert csv_text(("a", "b"), [(1, 2 / 3)]) == "a,b\n1,0.6666666667\n"
