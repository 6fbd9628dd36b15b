"""Intervals and prediction sets on the command line."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cgnlearn import load
from tests.cli.running import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    data = load_iris(as_frame=True)
    frame = data.frame.assign(target=data.target_names[data.target])
    frame[::2].to_csv(folder / "train.csv", index=False)
    frame[1::2].to_csv(folder / "new.csv", index=False)
    for name, more in (("with", []), ("without", ["--without-samples"]), ("ml", ["-p", "ml"])):
        run_in(folder, "fit", "train.csv", "-t", "target", "-s", "complete", "-o", f"{name}.skops", *more)
    return folder


def run_in(folder, command, *arguments):
    given = [str(folder / each) if "." in each and not each[0].isdigit() else each for each in arguments]
    return run(command, *given)


def test_columns_of_intervals_and_sets(folder):
    found = run_in(folder, "predict", "with.skops", "new.csv", "--interval", "0.9", "--sets", "0.95")
    assert found.exit_code == 0
    table = pd.read_csv(io.StringIO(found.stdout), keep_default_na=False)
    model, new = load(folder / "with.skops"), pd.read_csv(folder / "new.csv").iloc[:, :4]
    best = model.predict_proba(new).argmax(axis=1)
    expected = model.predict_interval(new)[np.arange(75), best]
    np.testing.assert_allclose(table[["low", "high"]], expected, rtol=1e-5)
    sets = model.predict_set(new, 0.95)
    for words, inside in zip(table["set"], sets, strict=True):
        labels = model.classes_[inside].tolist()
        assert words == ("cannot tell" if len(labels) == 3 else " or ".join(labels) or "none")
    counts = [(sets.sum(axis=1) == 1).sum(), (sets.sum(axis=1) > 1).sum(), (~sets.any(axis=1)).sum()]
    assert "sets of 75 samples: {} have one class, {} more than one, {} none".format(*counts) in found.stderr


def test_json_has_them_too(folder):
    found = json.loads(run_in(folder, "predict", "with.skops", "new.csv", "--interval", "0.5", "--json").stdout)
    first = found["predictions"][0]
    assert first["low"] - 1e-12 <= first["probabilities"][first["predicted"]] <= first["high"] + 1e-12


@pytest.mark.parametrize(
    ("model", "options", "message", "code"),
    [
        ("without", ["--sets", "0.9"], "need the training samples", 1),
        ("ml", ["--interval", "0.9"], "has no posterior", 1),
        ("with", ["--interval", "1.5"], "'1.5' is not a number between 0 and 1", 2),
        ("with", ["--sets", "many"], "'many' is not a number between 0 and 1", 2),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, model, options, message, code):
    found = run_in(folder, "predict", f"{model}.skops", "new.csv", *options)
    assert found.exit_code == code
    assert message in found.stderr or message in str(found.exception)
