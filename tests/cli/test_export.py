import json

import numpy as np
import pytest

from cgnlearn import CGNClassifier, save
from tests.cli.running import outcome
from tests.portable.cases import cells, fitted, samples
from tests.portable.reader import Reader


@pytest.fixture
def model(tmp_path):
    save(fitted("TAN"), tmp_path / "m.skops")
    return tmp_path / "m.skops"


def run(*words):
    code, _, err = outcome("export", *words)
    return code, err


@pytest.mark.filterwarnings("ignore:.*unknown from training")
def test_json_of_a_saved_model(model, tmp_path):
    (tmp_path / "about.txt").write_text("For wards. ½\n", "utf-8")
    code, err = run(model, "-o", tmp_path / "m.json", "--title", '"quoted" 😀', "--about", tmp_path / "about.txt")
    assert code == 0, err
    assert err.startswith("cgnlearn: 7 features, 3 classes, ")
    assert err.endswith("m.json\n")
    found = json.loads((tmp_path / "m.json").read_bytes())
    assert (found["title"], found["about"]) == ('"quoted" 😀', "For wards. ½\n")
    reader, X = Reader(found), samples("TAN", 5)
    proba = np.exp(reader.log_proba(cells(X)))
    np.testing.assert_allclose(proba, fitted("TAN").predict_proba(X), atol=1e-9)


def test_an_unknown_ending_is_refused(model, tmp_path):
    code, err = run(model, "-o", tmp_path / "m.pmml")
    assert code == 2
    assert "the ending must be .json" in err
    assert not (tmp_path / "m.pmml").exists()


def test_a_large_file_is_written_only_if_confirmed(model, tmp_path, monkeypatch):
    monkeypatch.setattr("cgnlearn.cli.export.MOST_BYTES", 1000)
    code, err = run(model, "-o", tmp_path / "m.json")
    assert code == 2
    assert "add --yes to write it" in err
    assert not (tmp_path / "m.json").exists()
    assert run(model, "-o", tmp_path / "m.json", "--yes")[0] == 0


def test_about_must_be_text(model, tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe")
    code, err = run(model, "-o", tmp_path / "m.json", "--about", tmp_path / "a.bin")
    assert code == 2
    assert "no text in UTF-8" in err


def test_statistics_are_refused(tmp_path):
    save(CGNClassifier().fit([[0.0], [1.0], [4.0], [6.0]], list("aabb")).statistics_, tmp_path / "p.stats")
    code, err = run(tmp_path / "p.stats", "-o", tmp_path / "m.json")
    assert code == 1
    assert "statistics, not a model" in err
