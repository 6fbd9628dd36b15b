"""Sites on the command line: fit, inspect, predict, and evaluation of whole sites."""

import io
import json

import numpy as np
import pandas as pd
import pytest

from cgnlearn import CGNClassifier, load
from tests.cli.running import outcome


@pytest.fixture
def patients(tmp_path):
    rng = np.random.default_rng(0)
    site = np.repeat([0, 1, 2, 3], 40)
    ill = rng.random(160) < 0.5
    X = rng.normal(size=(160, 3)) + 2 * ill[:, None] * [1, -1, 0] + 2 * rng.normal(size=(4, 3))[site]
    rows = pd.DataFrame(X, columns=list("abc")).round(6)
    rows["hospital"], rows["diagnosis"] = np.array(list("WXYZ"))[site], np.where(ill, "ill", "well")
    rows.to_csv(tmp_path / "all.csv", index=False)
    rows[site < 3].to_csv(tmp_path / "old.csv", index=False)
    rows[site == 3].to_csv(tmp_path / "new.csv", index=False)
    return rows, tmp_path


OPTIONS = ("-t", "diagnosis", "--site", "hospital", "-s", "naive_bayes")


def test_fit_and_predict(patients):
    rows, folder = patients
    assert outcome("fit", folder / "old.csv", *OPTIONS, "-o", folder / "m.skops")[0] == 0
    model, old = load(folder / "m.skops"), rows[rows["hospital"] != "Z"]
    X = old[list("abc")]
    expected = CGNClassifier().fit(X, old["diagnosis"], sites=old["hospital"])
    np.testing.assert_allclose(
        model.predict_proba(X, sites=old["hospital"]), expected.predict_proba(X, sites=old["hospital"]), rtol=1e-9
    )
    code, out, err = outcome("predict", folder / "m.skops", folder / "new.csv")
    assert code == 0, err
    new = rows[rows["hospital"] == "Z"]
    found = pd.read_csv(io.StringIO(out))["probability_ill"]
    np.testing.assert_allclose(
        found, expected.predict_proba(new[list("abc")], sites=new["hospital"])[:, 0], rtol=1e-4, atol=1e-6
    )
    code, out, err = outcome(
        "predict", folder / "m.skops", folder / "new.csv", "--interval", "0.9", "--sets", "0.9", "--next"
    )
    assert code == 0, err
    likeliest = pd.read_csv(io.StringIO(out))
    proba = likeliest[["probability_ill", "probability_well"]].max(axis=1)
    assert ((likeliest["low"] <= proba) & (proba <= likeliest["high"])).all()
    sets = expected.predict_set(new[list("abc")], sites=new["hospital"])
    single = sets.sum(axis=1) == 1
    assert single.any()
    assert likeliest["set"][single].tolist() == np.where(sets[single, 0], "ill", "well").tolist()
    assert "3 sites; their share of the variance within classes" in outcome("inspect", folder / "m.skops")[1]
    new.drop(columns="hospital").to_csv(folder / "bare.csv", index=False)
    assert (
        "has no column 'hospital', which named the sites"
        in outcome("predict", folder / "m.skops", folder / "bare.csv")[2]
    )


def test_whole_sites_are_held_out(patients):
    rows, folder = patients
    code, out, err = outcome("evaluate", folder / "all.csv", *OPTIONS, "-p", "bayes", "--json")
    assert code == 0, err
    assert "4 sites; their share of the variance" in err
    found = json.loads(out)
    assert [(row["site"], row["samples"]) for row in found["sites"]] == [(name, 40) for name in "WXYZ"]
    X, y, sites = rows[list("abc")].to_numpy(), rows["diagnosis"].to_numpy(), rows["hospital"].to_numpy()
    for row in found["sites"]:
        test = sites == row["site"]
        model = CGNClassifier().fit(X[~test], y[~test], sites=sites[~test])
        log_proba = model.predict_log_proba(X[test], sites=sites[test])
        loss = -np.where(y[test] == "ill", log_proba[:, 0], log_proba[:, 1]).mean()
        assert row["log_loss"]["naive_bayes bayes"] == pytest.approx(loss, rel=1e-6)


def test_the_report_explains_predictions_of_held_out_sites(patients):
    _, folder = patients
    call = ("evaluate", folder / "all.csv", *OPTIONS, "-p", "bayes", "-o", folder / "results")
    code, _, err = outcome(*call, "--report", folder / "r.html")
    assert code == 0, err
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert '<span class="reason">a ' in page
    assert "does not compute contributions" not in page


def test_wrong_calls_are_one_line(patients):
    rows, folder = patients
    one = rows[rows["hospital"] == "W"]
    one.to_csv(folder / "one.csv", index=False)
    rows.assign(hospital=rows["diagnosis"]).to_csv(folder / "same.csv", index=False)
    rows.assign(hospital=rows["hospital"].where(rows.index > 0)).to_csv(folder / "gone.csv", index=False)
    out = folder / "out.skops"
    for words, expected, told in (
        (("fit", folder / "all.csv", "-t", "diagnosis", "--site", "ward", "-o", out), 2, "no column 'ward' (--site)"),
        (("fit", folder / "all.csv", *OPTIONS[:4], "-o", folder / "x.stats"), 2, "have no shifts"),
        (("evaluate", folder / "one.csv", *OPTIONS), 1, "there is one site only, W"),
        (("evaluate", folder / "same.csv", *OPTIONS), 1, "without site ill there is no sample of class ill"),
        (("fit", folder / "same.csv", *OPTIONS, "-o", out), 1, "sites and classes cannot be told apart"),
        (("fit", folder / "gone.csv", *OPTIONS, "-o", out), 1, "fill in the site"),
    ):
        code, _, err = outcome(*words)
        assert (code, told in err) == (expected, True), err
