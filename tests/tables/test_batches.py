"""A file read batch by batch means what it means read at once: levels, classes, values and messages."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pytest

from cgnlearn.data.table import read_training
from cgnlearn.tables import batches
from cgnlearn.tables.batches import training_stream
from cgnlearn.tables.formats import source_of
from cgnlearn.tables.read import training_data
from cgnlearn.tables.roles import Roles

N = 40
ROWS = [(i / 7, "xyz"[i % 3], i % 4, ("ill", "well")[i % 2]) for i in range(N)]


def lines(*rows, header="a,b,c,class", delimiter=","):
    return "\n".join([header.replace(",", delimiter), *(delimiter.join(map(str, row)) for row in rows)]) + "\n"


def changed(**cells):
    """The rows, some cells of which, named by column and row, are others."""
    rows = [list(row) for row in ROWS]
    for place, cell in cells.items():
        rows[int(place[1:])]["abcd".index(place[0])] = cell
    return rows


AWKWARD = {
    "one_and_one_point_zero.csv": (lines(*((a, b, c, ("1", "1.0", "2", "2.")[c]) for a, b, c, _ in ROWS)), {}),
    "spaces.csv": (lines(*changed(d0=" ill", d1="well ", b7=" x ", a9=" 1.5")), {}),
    "no_class.csv": (lines(*changed(d3="", d38="NA", b5="w", d5="?")), {}),
    "an_empty_column.csv": (lines(*((a, "NA" if c else "", c, d) for a, b, c, d in ROWS)), {}),
    "missing.csv": (lines(*changed(a1="", a30="n/a", b2="?", c39="")), {}),
    "own_missing.csv": (lines(*changed(a1="-9", a39="-9.0", b8="-9", b9="-9.0", c3="-9.")), {"na": ("-9",)}),
    "words_at_the_end.csv": (
        lines(*((("one", "two")[i % 2] if i > 30 else i, *row[1:]) for i, row in enumerate(ROWS))),
        {},
    ),
    "dates_and_names.csv": (
        lines(*((f"2024-01-{i % 28 + 1}", f"p{i}", c, d) for i, (_, _, c, d) in enumerate(ROWS))),
        {},
    ),
    "german.csv": (
        lines(*((f"{a:.2f}".replace(".", ","), b, c, "üb" + d) for a, b, c, d in ROWS), delimiter=";").encode("cp1252"),
        {},
    ),
    "utf16.tsv": (lines(*ROWS, delimiter="\t").encode("utf-16"), {"categorical": ("c",)}),
    "quoted.csv": (lines(*changed(b0='"x, ""y""\nz"', b33='"x, ""y""\nz"')) + "\n\n,,\n", {}),
    "packed.csv.gz": (gzip.compress(lines(*ROWS).encode()), {"categorical": ("c", "a")}),
    "packed.tsv.bz2": (bz2.compress(lines(*ROWS, delimiter="\t").encode()), {"ignore": ("a",)}),
    "minus.csv": (lines(*changed(a1="−1.5", a30="−0.25")), {}),
    "thousands.tsv": (
        lines(
            *(
                (f"{i + 0.5}".replace(".", ","), b, f"{700 * i:,}".replace(",", "."), d)
                for i, (_, b, _, d) in enumerate(ROWS)
            ),
            delimiter="\t",
        ),
        {},
    ),
    "complete.csv": (lines(*changed(a1="", a30="n/a", b2="?", d5="")), {"drop_missing": True}),
    "typed.parquet": (None, {"na": ("2",)}),
    "typed.arrow": (None, {"categorical": ("c",), "groups": "b"}),
}
REFUSED = {
    "a_word.csv": (lines(*changed(a7="l2", a36="l3")), {}, "has 'l2' among numbers in line 9 (and in 1 more)"),
    "infinite.csv": (lines(*changed(a37="inf")), {}, "column 'a' is infinite in line 39"),
    "short_late.csv": (lines(*ROWS) + "\t \n" + lines(*ROWS, header="1,x,1,ill") + "1,2\n", {}, "line 84 has 2 fields"),
    "short.csv": (lines(*ROWS) + "1,2\n", {}, "line 42 has 2 fields"),
    "measured.csv": (
        lines(*((b, c, i, i + 0.5) for i, (_, b, c, _) in enumerate(ROWS))),
        {},
        "seems to be a measurement",
    ),
    "no_classes.csv": (lines(*((a, b, c, "") for a, b, c, _ in ROWS)), {}, "has no class in any row"),
    "no_group.csv": (lines(*changed(b33="")), {"groups": "b"}, "column 'b' has no value in line 35"),
    "not_there.csv": (lines(*ROWS), {"groups": "d"}, "has no column 'd' (--groups)"),
}


def written(folder, name, content):
    path = folder / name
    if content is None:
        frame = pd.DataFrame(ROWS, columns=["a", "b", "c", "class"])
        frame.loc[3, ["a", "class"]] = None
        frame.loc[20, "b"] = None if "parquet" in name else "x"
        (frame.to_parquet if "parquet" in name else frame.to_feather)(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 7)


@pytest.mark.parametrize("name", AWKWARD)
def test_both_ways_of_reading_find_the_same(name, tmp_path):
    content, options = AWKWARD[name]
    drop_missing, path = options.get("drop_missing", False), written(tmp_path, name, content)
    roles = Roles("class", **{key: value for key, value in options.items() if key != "drop_missing"})
    data = training_data(source_of(path), roles, drop_missing=drop_missing)
    whole, classes = read_training(data.X, data.y)
    stream = training_stream(source_of(path), roles, drop_missing=drop_missing)
    agreed, stream = stream.survey, batches.Stream(stream.plan, 7)
    parts = list(stream.parts())
    assert len(parts) > 3
    tables = [stream.table(part) for part in parts if part.kept.any()]
    assert agreed.schema == whole.schema
    assert agreed.schema.classes == tuple(classes.tolist())
    assert agreed.remarks == data.remarks
    assert (agreed.n_samples, agreed.n_read - agreed.n_samples) == (len(data.y), sum(data.excluded.values()))
    assert stream.plan.missing == data.missing
    np.testing.assert_array_equal(np.concatenate([table.values for table in tables]), whole.values)
    np.testing.assert_array_equal(np.concatenate([table.codes for table in tables]), whole.codes)
    np.testing.assert_array_equal(np.concatenate([table.labels for table in tables]), whole.labels)
    if roles.groups:
        numbers = np.concatenate([batches.group_numbers(part) for part in parts])
        assert len(set(zip(numbers.tolist(), data.groups.tolist(), strict=True))) == len(set(data.groups.tolist()))


@pytest.mark.parametrize("name", REFUSED)
def test_both_ways_of_reading_refuse_the_same(name, tmp_path):
    content, options, expected = REFUSED[name]
    path, roles = written(tmp_path, name, content), Roles("class", **options)
    found = []
    for read in (training_data, training_stream):
        with pytest.raises(ValueError) as raised:
            read(source_of(path), roles)
        found.append((raised.type, str(raised.value)))
    assert found[0] == found[1]
    assert expected in found[0][1]


def test_a_class_or_a_level_that_comes_late_is_known_from_the_start(tmp_path):
    path = written(tmp_path, "late.csv", lines(*changed(b39="last", d39="new")))
    agreed = training_stream(source_of(path), Roles("class")).survey
    assert agreed.schema.levels[1] == ("last", "x", "y", "z")
    assert agreed.counts == {"ill": 20, "new": 1, "well": 19}
