import json

import pandas as pd
import pytest

from cgnlearn import load
from tests.cli.running import fails, outcome, works
from tests.cli.test_validate import places

__all__ = ["places"]


def test_an_update_prints_its_ladder_and_is_inspected(places, tmp_path):
    new = tmp_path / "new.skops"
    code, out, err = outcome("update", places / "model.skops", places / "there.csv", "-o", new)
    assert code == 0
    for step in ("as it is", "class prior", "intercepts and slope", "old samples × 0.3", "new samples alone"):
        assert step in out
    assert f"by this step: saved {new}" in err
    shown = works("inspect", new)
    assert "history 1" in shown
    assert "160 samples" in shown
    found = json.loads(works("inspect", new, "--json"))
    assert found["history"][0]["file"] == "there.csv"
    assert len(found["history"][0]["file_sha256"]) == 64
    assert load(new).history_ == found["history"]
    predicted = works("predict", new, places / "there.csv")
    assert predicted.startswith("row,id,")
    _, _, err = outcome("validate", new, places / "there.csv")
    assert "warning: there0 and 159 more of 160 ids were in the training data" in err
    _, _, err = outcome("validate", places / "model.skops", places / "here.csv")
    assert "warning: here0 and 199 more of 200 ids were in the training data: remove these samples" in err
    assert "here0" not in (places / "model.skops").read_bytes().decode("latin-1")


def test_a_step_is_picked_and_bad_input_writes_nothing(places, tmp_path):
    new = tmp_path / "new.skops"
    words = ["update", places / "model.skops", places / "there.csv", "-o", new]
    found = json.loads(works(*words, "--pick", "--json"))
    assert sorted(rung["weight"] for rung in found["ladder"])[-1] == pytest.approx(1)
    new.unlink()
    few = tmp_path / "few.csv"
    pd.read_csv(places / "there.csv")[:6].to_csv(few, index=False)
    assert "an update needs at least 10 samples, not 6" in fails(1, "update", places / "model.skops", few, "-o", new)
    assert not new.exists()


def test_class_frequencies_are_estimated_from_the_file(places, tmp_path):
    words = ["predict", places / "model.skops", places / "there.csv"]
    code, out, err = outcome(*words, "--class-prior", "estimate")
    assert code == 0
    assert "class frequencies estimated from 160 samples, with 95% intervals: healthy 0." in err
    assert out != works(*words)
    frame = pd.read_csv(places / "there.csv")
    frame["marker"] += 50
    frame.to_csv(tmp_path / "far.csv", index=False)
    told = fails(1, "predict", places / "model.skops", tmp_path / "far.csv", "--class-prior", "estimate")
    assert "more than the class frequencies has changed" in told
