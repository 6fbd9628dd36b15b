"""The names of types in model files outlast those in the code."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from cgnlearn import TAN, CGNClassifier, load, save, type_names
from cgnlearn.type_names import OURS, RENAMED, TYPES, nodes
from tests.snapshots import stored_schemas


@pytest.fixture
def saved(tmp_path, mixed):
    X, y, new = mixed
    model = CGNClassifier(TAN("mutual_information"), categorical_features=[0, 1]).fit(X, y)
    save(model, tmp_path / "model.skops")
    return tmp_path / "model.skops", new, model.predict_log_proba(new)


def class_at(place):
    module, _, name = place.rpartition(".")
    return getattr(import_module(module), name)


def test_each_type_has_one_name_and_stands_where_the_table_says():
    text = Path(type_names.__file__).read_text()
    assert [name for name in TYPES if text.count(f'    "{name}": "cgnlearn.') != 1] == []
    assert len(set(TYPES.values())) == len(TYPES)
    for place in TYPES.values():
        found = class_at(place)
        assert f"{found.__module__}.{found.__qualname__}" == place
    assert set(RENAMED) <= set(TYPES)


def test_files_hold_the_types_of_the_table_and_no_module_of_ours():
    """`save` refuses a type without a name; a name that no file holds has to leave the table."""
    found = {
        (node["__module__"], node["__class__"])
        for schema in stored_schemas()
        for node in nodes(schema)
        if str(node.get("__module__")).startswith(OURS)
    }
    assert found == {(OURS, name) for name in TYPES}


def test_a_file_written_before_a_rename_is_read(saved, monkeypatch):
    """All classes in the file stand in another module, under other names, and one field is renamed."""
    path, new, expected = saved
    elsewhere = ModuleType("cgnlearn.elsewhere")
    monkeypatch.setitem(sys.modules, elsewhere.__name__, elsewhere)
    for name, place in TYPES.items():
        was = class_at(place)
        now = type(f"Renamed{was.__name__}", (was,), {"__module__": elsewhere.__name__})
        setattr(elsewhere, now.__name__, now)
        monkeypatch.setitem(TYPES, name, f"{now.__module__}.{now.__name__}")
    monkeypatch.setitem(RENAMED, "tan", {"score": "criterion"})
    elsewhere.RenamedTAN.score = property(lambda tan: tan.criterion)  # for the code that has not been renamed
    back = load(path)
    np.testing.assert_array_equal(back.predict_log_proba(new), expected)
    parts = (back, back.structure, back.statistics_, back.statistics_.schema)
    assert {type(part).__module__ for part in parts} == {elsewhere.__name__}
    assert vars(back.structure) == {"criterion": "mutual_information", "required": (), "forbidden": ()}


def test_a_name_that_is_not_in_the_table_is_refused(saved, monkeypatch):
    path, *_ = saved
    monkeypatch.delitem(TYPES, "tan")
    with pytest.raises(ValueError, match=r"names the type cgnlearn\.tan, which is part of neither"):
        load(path)
