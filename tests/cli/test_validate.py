import json

import numpy as np
import pandas as pd
import pytest

from cgnlearn import load, validate
from tests.cli.running import fails, outcome, works


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Two files, of training and of another place, and a model of the first."""
    folder = tmp_path_factory.mktemp("places")
    rng = np.random.default_rng(3)
    for name, n in (("here", 200), ("there", 160)):
        ill = rng.random(n) < (0.5 if name == "here" else 0.3)
        frame = pd.DataFrame({"id": [f"{name}{i}" for i in range(n)], "site": np.where(np.arange(n) % 3, "A", "B")})
        frame["stage"] = np.where(rng.random(n) < 0.3 + 0.4 * ill, "late", "early")
        frame["marker"], frame["ratio"] = rng.normal(size=n) + 1.5 * ill, rng.normal(size=n) + 0.5 * ill
        frame["subject"] = np.arange(n) // 2
        frame["diagnosis"] = np.where(ill, "ill", "healthy")
        frame.to_csv(folder / f"{name}.csv", index=False)
    ignored = ["--id", "id", "--ignore", "site,subject"]
    works("fit", folder / "here.csv", "-t", "diagnosis", *ignored, "-s", "naive_bayes", "-o", folder / "model.skops")
    return folder


def test_the_command_prints_what_the_function_returns(places):
    model, there = places / "model.skops", places / "there.csv"
    found = json.loads(
        works("validate", model, there, "--by", "site", "--positive", "ill", "--threshold", 0.3, "--json")
    )
    frame = pd.read_csv(there)
    own = validate(
        load(model), frame[["stage", "marker", "ratio"]], frame["diagnosis"], thresholds=(0.3,), positive="ill"
    )
    assert found["measures"]["AUC"]["value"] == pytest.approx(own.auc.value)
    assert found["measures"]["sensitivity at 0.3"]["low"] == pytest.approx(own.decisions[0.3].sensitivity.low)
    assert found["advice"] == own.advice
    assert [of["level"] for of in found["subgroups"]] == ["A", "B"]
    assert found["classes"] == own.counts
    code, out, err = outcome("validate", model, there, "--by", "site,marker", "--groups", "subject")
    assert code == 0
    assert "calibration slope" in out
    assert "marker = below" in out
    assert err.splitlines()[-1].startswith("cgnlearn: advice: ")


def test_a_report_is_written_and_tells_small_subgroups(places, tmp_path):
    frame = pd.read_csv(places / "there.csv")
    frame.loc[:3, "site"] = "C"
    frame.loc[5, "stage"] = "unheard"
    frame.loc[8, "diagnosis"] = None
    frame.to_csv(tmp_path / "more.csv", index=False)
    report = tmp_path / "new" / "report.html"
    _, _, err = outcome("validate", places / "model.skops", tmp_path / "more.csv", "--by", "site", "--report", report)
    assert "1 of 160 rows have no class" in err
    assert "too small to tell (fewer than 10 of either outcome): site = C" in err
    text = report.read_text()
    for part in (
        "Reliability diagram",
        "Decision curve",
        "site = C",
        "too few to tell",
        "1 in stage",
        "Forest plot of auc",
    ):
        assert part in text
    assert "nan" not in text.lower().replace("nanum", "")


def test_bad_input_is_one_line_and_writes_nothing(places, tmp_path):
    model, there = places / "model.skops", places / "there.csv"
    frame = pd.read_csv(there)
    report, page = tmp_path / "report.html", tmp_path / "page.md"

    def told(change, *more):
        path = tmp_path / "changed.csv"
        change(frame.copy()).to_csv(path, index=False)
        said = fails(1, "validate", model, path, "--report", report, "--tripod", page, *more)
        assert not report.exists()
        assert not page.exists()
        return said

    assert "where the model says 'ill': spell them alike" in told(lambda f: f.replace("ill", "Ill"))
    assert "'unwell', which the model does not know" in told(lambda f: f.replace("ill", "unwell"))
    assert "all 160 samples are of class 'healthy'" in told(lambda f: f.assign(diagnosis="healthy"))
    assert "has no class in any row" in told(lambda f: f.assign(diagnosis=None))
    columns = ["diagnosis", "id", "site"]
    lacks = "lacks 3 of 3 columns, 'stage', 'marker', 'ratio' (of the model)"
    frame[columns].to_csv(tmp_path / "other.csv", index=False)
    assert lacks in fails(1, "validate", model, tmp_path / "other.csv", "--tripod", page)
    words = [["class", "treat"], ["ill", "0"]]
    (tmp_path / "cost.csv").write_text("\n".join(map(",".join, words)))
    assert "must name class 'healthy' in exactly one row" in fails(
        2, "validate", model, there, "--cost", tmp_path / "cost.csv"
    )
    assert "would overwrite DATA" in fails(2, "validate", model, there, "--tripod", there)
    assert "has no column 'place' (--by)" in fails(2, "validate", model, there, "--by", "place")
    assert "has no column 'truth' (--target)" in fails(2, "validate", model, there, "-t", "truth")
    assert "--positive sick: the classes are healthy, ill" in fails(2, "validate", model, there, "--positive", "sick")
    assert "would overwrite DATA" in fails(2, "validate", model, there, "--report", there)


def test_few_events_an_absent_column_and_known_ids_are_told(places, tmp_path):
    frame = pd.read_csv(places / "there.csv")
    few = pd.concat([frame[frame.diagnosis == "healthy"][:15], frame[frame.diagnosis == "ill"][:6]])
    few.drop(columns="ratio").to_csv(tmp_path / "few.csv", index=False)
    _, _, err = outcome("validate", places / "model.skops", tmp_path / "few.csv")
    assert "'ratio'" in err
    assert "too few samples to tell: 6 of the rarer outcome, where 10 are needed" in err
    _, _, err = outcome("validate", places / "model.skops", places / "here.csv", "--id", "id")
    assert "warning: here0 and 199 more of 200 ids were in the training data: remove these samples" in err


def test_costs_of_decisions(places, tmp_path):
    (tmp_path / "cost.csv").write_text("class,treat,wait\nill,0,8\nhealthy,1,0\n")
    model, there = places / "model.skops", places / "there.csv"
    found = json.loads(works("validate", model, there, "--cost", tmp_path / "cost.csv", "--json"))
    frame = pd.read_csv(there)
    proba = load(model).predict_proba(frame[["stage", "marker", "ratio"]])
    treated = 8 * proba[:, 1] > proba[:, 0]
    ill = (frame.diagnosis == "ill").to_numpy()
    costs = {name: of["value"] for name, of in found["measures"].items() if "cost" in name}
    assert costs["mean cost per sample"] == pytest.approx(np.where(ill, 8 * ~treated, treated).mean())
    assert costs["mean cost of treat for all samples"] == pytest.approx((~ill).mean())


def test_evaluate_tells_calibration_and_subgroups(places, tmp_path):
    words = ["evaluate", places / "here.csv", "-t", "diagnosis", "--ignore", "id,subject,site", "-s", "naive_bayes"]
    words += ["-p", "bayes", "--cv", "5", "--positive", "ill"]
    found = json.loads(works(*words, "--by", "site", "--threshold", 0.3, "--threshold", 0.6, "--json"))
    first = found["models"][0]
    assert first["calibration"]["slope"]["low"] < first["calibration"]["slope"]["value"]
    assert first["decisions"]["threshold"] == 0.3
    assert first["other_thresholds"][0]["threshold"] == 0.6
    assert first["other_thresholds"][0]["specificity"]["value"] > first["decisions"]["specificity"]["value"]
    assert "calibration" not in found["models"][-1]  # of the class frequencies, which are constant
    levels = found["subgroups"]["levels"]
    assert [of["level"] for of in levels] == ["A", "B"]
    assert sum(of["n"] for of in levels) == 200
    out = works(*words, "--by", "site")
    assert "calibration of the probabilities of ill" in out
    assert "site = A" in out
    assert "(--by)" in fails(2, *words, "--by", "nowhere")
    assert "--threshold needs a class" in fails(2, *words[:-2], "--threshold", 0.2)
