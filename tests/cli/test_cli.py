"""The command line, as a new user meets it."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import brentq
from sklearn.datasets import load_wine

from cgnlearn import Band, CGNClassifier, load, save
from cgnlearn.cli.main import main
from tests.cli.running import fails, outcome, works


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "wine.csv"
    frame = load_wine(as_frame=True).frame.rename(columns={"target": "class"})
    frame["class"] = frame["class"].map({0: "red", 1: "rosé", 2: "white"})
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """Mixed columns, a subject's several rows, and the frame itself."""
    rng = np.random.default_rng(0)
    n = 120
    ill = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "subject": np.arange(n) // 4,
            "stage": rng.integers(1, 4, n),
            "sex": np.where(rng.random(n) < 0.5, "f", "m"),
            "marker": 2 * ill + rng.normal(size=n),
            "ratio": rng.normal(size=n),
            "diagnosis": np.where(ill, "ill", "healthy"),
        }
    )
    path = tmp_path_factory.mktemp("data") / "patients.csv"
    frame.to_csv(path, index=False)
    return path, frame


def test_help_answers_without_the_heavy_modules():
    code = (
        "import sys; sys.argv = ['cgnlearn', '--help']\n"
        "from cgnlearn.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('sklearn', 'pandas', 'scipy', 'numpy', 'matplotlib', 'rich') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.splitlines()[-1] == "[]"
    for command in ("demo", "evaluate", "fit", "predict", "inspect"):
        assert command in found
        assert "--help" in works(command, "--help")


def test_python_m_works_and_completes():
    environment = os.environ | {"_CGNLEARN_COMPLETE": "bash_complete", "COMP_WORDS": "cgnlearn ins", "COMP_CWORD": "1"}
    script = "from cgnlearn.cli.main import main; main(prog_name='cgnlearn')"
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "plain,inspect"
    found = subprocess.run([sys.executable, "-m", "cgnlearn", "--version"], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("cgnlearn ")


def test_evaluate_prints_what_it_found(wine, tmp_path):
    out = works("evaluate", wine, "-t", "class", "--cv", "5x2", "--structure", "complete", "-o", tmp_path / "out")
    assert "complete ml" in out
    assert "complete bayes" in out
    assert "class frequencies" in out
    told = json.loads(
        works(
            "evaluate", wine, "-t", "class", "--cv", "5x2", "--structure", "complete", "--json", "-o", tmp_path / "out"
        )
    )
    assert told["data"]["classes"] == {"red": 59, "rosé": 71, "white": 48}
    assert told["cross_validation"] == {"folds": 5, "repeats": 2, "seed": 0}
    found = told["models"]
    assert [entry["model"] for entry in found] == ["complete ml", "complete bayes", "class frequencies"]
    assert found[1]["folds"] == 10
    assert found[1]["accuracy"]["mean"] > 0.97
    assert found[1]["log_loss"]["mean"] < found[0]["log_loss"]["mean"]
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    assert len(rows) == 3 * 2 * 178
    bayes = rows[rows["model"] == "complete bayes"]
    logs = bayes.filter(like="log p(").to_numpy()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    truth = [row[f"log p({row['true']})"] for _, row in bayes.iterrows()]
    assert found[1]["log_loss"]["mean"] == pytest.approx(-np.mean(truth))
    with open(tmp_path / "out" / "summary.csv", newline="") as file:
        summary = list(csv.DictReader(file))  # pandas' older ways of reading lose a digit
    assert float(summary[1]["log_loss"]) == found[1]["log_loss"]["mean"]
    lines = wine.read_text().splitlines()
    assert all(lines[line - 1].endswith(f",{true}") for line, true in zip(rows["line"], rows["true"], strict=True))


def test_groups_categoricals_and_missing_cells(patients, tmp_path):
    path, frame = patients
    options = ("-t", "diagnosis", "--groups", "subject", "--categorical", "stage", "--cv", "5", "--json", "-s", "tan")
    found = json.loads(works("evaluate", path, *options, "-p", "bayes"))["models"]
    assert found[0]["accuracy"]["mean"] > 0.7
    holes = frame.copy()
    holes.loc[[3, 50], "marker"] = np.nan
    holes.loc[7, "sex"] = "unknown"
    gaps = tmp_path / "gaps.csv"
    holes.to_csv(gaps, index=False)
    code, out, err = outcome("evaluate", gaps, *options, "--na", "unknown")
    assert code == 0
    assert "cgnlearn: 3 cells are taken as missing: marker 2 empty; sex 1 'unknown'\n" in err
    assert json.loads(out)["data"]["missing"] == {"sex": {"unknown": 1}, "marker": {"": 2}}
    assert json.loads(out)["models"][1]["accuracy"]["mean"] > 0.7
    code, out, err = outcome("evaluate", gaps, *options, "--drop-missing")
    assert code == 0
    assert "excluded 2 of 120 rows with missing values" in err
    assert json.loads(out)["data"]["rows_left_out"] == 2


def test_levels_are_those_of_the_training_rows(tmp_path):
    """A level of one row is unknown where that row is tested: naive Bayes without the column says the same of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "level": ["u", "v"] * 20, "class": np.repeat(["x", "y"], 20)})
    frame.loc[11, "level"] = "rare"
    path = tmp_path / "rare.csv"
    frame.to_csv(path, index=False)
    works("evaluate", path, "-t", "class", "--cv", "4", "-s", "naive_bayes", "-p", "bayes", "-o", tmp_path / "out")
    works(
        "evaluate",
        path,
        "-t",
        "class",
        "--cv",
        "4",
        "-s",
        "naive_bayes",
        "-p",
        "bayes",
        "-o",
        tmp_path / "less",
        "--ignore",
        "level",
    )
    said, without = (pd.read_csv(tmp_path / name / "rows.csv").query("sample == 11") for name in ("out", "less"))
    np.testing.assert_allclose(said["log p(x)"], without["log p(x)"], rtol=1e-12)


def test_a_rare_class_lowers_the_number_of_folds(wine, tmp_path):
    lines = wine.read_text().splitlines(keepends=True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:90] + lines[-4:]))
    structure = ("-s", "naive_bayes")
    code, out, err = outcome("evaluate", few, "-t", "class", "--cv", "10x2", *structure)
    assert code == 0
    assert err.startswith("cgnlearn: the smallest class has 4 samples, so that 4 folds are used instead of 10 (choose")
    assert "few.csv: stratified 4-fold cross-validation, 2 times" in out
    assert (
        json.loads(works("evaluate", few, "-t", "class", "--cv", "10x2", "--json", *structure))["models"][0]["folds"]
        == 8
    )


@pytest.mark.slow
def test_ten_patients_and_two_hospitals(tmp_path):
    """Two classes of five samples have five folds; of two hospitals each is held out, also where settings are tuned."""
    rng = np.random.default_rng(0)
    ten = pd.DataFrame({"a": rng.normal(size=10), "ill": ["yes", "no"] * 5})
    ten.to_csv(tmp_path / "ten.csv", index=False)
    code, out, err = outcome("evaluate", tmp_path / "ten.csv", "-t", "ill", "-s", "naive_bayes")
    assert code == 0
    assert "5 folds are used instead of 10 (choose their number with --cv)" in err
    assert "stratified 5-fold" in out

    n = 80
    y = np.arange(n) % 2
    hospitals = pd.DataFrame({"a": y + rng.normal(size=n), "Hospital": np.repeat(["A", "B"], n // 2), "ill": y})
    hospitals.to_csv(tmp_path / "two.csv", index=False)
    words = ("-t", "ill", "--groups", "Hospital", "--cv", "2", "--report", tmp_path / "two.html")
    tuned = ("-s", "naive_bayes", "-p", "bayes", "--likelihood-power", "cv", "-s", "fwgjan")
    code, out, err = outcome("evaluate", tmp_path / "two.csv", *words, *tuned, "-o", tmp_path / "out")
    assert code == 0, err
    assert "cgnlearn: 2 of 2 folds are trained on one group of each class: settings tuned there are compared on" in err
    assert "2 of 2 folds are trained on one group of each class" in (tmp_path / "two.html").read_text()
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    assert rows.groupby("fold")["sample"].agg(lambda of: set(of // 40)).map(len).tolist() == [1, 1]
    works("evaluate", tmp_path / "two.csv", *words)  # the mixture and logistic regression


@pytest.mark.slow
def test_a_report_of_an_interrupted_run_gone_on_with_is_the_same(wine, tmp_path):
    words = ("evaluate", wine, "-t", "class", "--cv", "3", "-s", "tan", "--json")
    out = works(*words, "-o", tmp_path / "clean", "--report", tmp_path / "clean.html")
    works(*words, "-o", tmp_path / "cut")
    rows = tmp_path / "cut" / "rows.csv"
    rows.write_bytes(rows.read_bytes()[: rows.stat().st_size // 2])
    code, again, err = outcome(*words, "-o", tmp_path / "cut", "--report", tmp_path / "cut.html")
    first, second = (json.loads(text) for text in (out, again))
    for entry in (*first["models"], *second["models"]):
        entry.pop("seconds", None)  # which differ from run to run
    assert (code, second) == (0, first)
    assert re.search("continuing from [2-7] of 9 finished parts", err)
    assert rows.read_bytes() == (tmp_path / "clean" / "rows.csv").read_bytes()
    changing = 'Written by [^<]*|<td class="n time"[^/]*</td>'
    clean, cut = (re.sub(changing, "", (tmp_path / f"{name}.html").read_text()) for name in ("clean", "cut"))
    assert clean == cut


@pytest.mark.slow
def test_a_default_call_goes_on_in_another_process(patients, tmp_path):
    """The mixture and logistic regression are described alike there; a folder of earlier versions is refused."""
    _, frame = patients
    few = tmp_path / "few.csv"
    frame.iloc[:24, 3:].to_csv(few, index=False)
    words = ["evaluate", str(few), "-t", "diagnosis", "--cv", "2", "-o", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "cgnlearn", *words], capture_output=True, text=True, check=True)
    rows = tmp_path / "out" / "rows.csv"
    before = rows.read_bytes()
    rows.write_bytes(before[: before.rfind(b"logistic regression,0,1")])
    code, _, err = outcome(*words)
    assert (code, rows.read_bytes()) == (0, before)
    assert "continuing from 6 of 10 finished parts" in err
    manifest = tmp_path / "out" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["settings"]["models"] = {"mixture": "CGNClassifierCV() at 0x7f93"}
    del content["settings"]["model_parameters"]
    manifest.write_text(json.dumps(content))
    assert "out is of an earlier version and cannot be continued: choose another folder" in fails(1, *words)


def test_average_over_bands(wine, tmp_path):
    few = ("-t", "class", "-s", "band_average", "--k-max", "3", "-p", "bayes")
    found = json.loads(works("evaluate", wine, *few, "--cv", "3", "--json"))["models"]
    assert found[0]["model"] == "band_average bayes"
    assert found[0]["accuracy"]["mean"] > 0.9
    works("fit", wine, *few, "-o", tmp_path / "model.skops")
    assert load(tmp_path / "model.skops").order_probability_.shape == (13, 3)
    assert len(works("predict", tmp_path / "model.skops", wine).splitlines()) == 179


def test_searched_structures(wine, tmp_path):
    few = ("-t", "class", "-s", "bwgjan")
    found = json.loads(works("evaluate", wine, *few, "--cv", "3", "--json", "-p", "bayes"))["models"]
    assert found[0]["model"] == "bwgjan bayes"
    assert found[0]["accuracy"]["mean"] > 0.95
    works("fit", wine, *few, "-o", tmp_path / "model.skops")
    told = json.loads(works("inspect", tmp_path / "model.skops", "--json"))
    assert told["structure"] == "bwgjan"
    assert told["features"] == len(load(tmp_path / "model.skops").structure_.nodes)
    assert len(works("predict", tmp_path / "model.skops", wine).splitlines()) == 179


def test_fit_predict_inspect(patients, tmp_path):
    path, frame = patients
    model, graph = tmp_path / "model.skops", tmp_path / "graph.svg"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-s", "tan", "--sharing", "1", "-o", model)
    X = frame.drop(columns="diagnosis").assign(
        stage=pd.Categorical(frame["stage"].astype(str)), sex=pd.Categorical(frame["sex"])
    )
    ours = CGNClassifier("tan", sharing=1.0).fit(X, frame["diagnosis"])
    out = works("predict", model, path, "--log-density")
    rows = list(csv.DictReader(io.StringIO(out)))
    np.testing.assert_allclose([float(row["probability_ill"]) for row in rows], ours.predict_proba(X)[:, 1], rtol=1e-5)
    np.testing.assert_allclose([float(row["log_density"]) for row in rows], ours.score_samples(X), rtol=1e-5)
    assert [row["predicted"] for row in rows] == ours.predict(X).tolist()
    works("predict", model, path, "--log-density", "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == out
    assert all(len(cell.split("e")[0].strip("-0.").replace(".", "")) <= 6 for cell in (rows[3]["probability_ill"],))
    assert [row["diagnosis"] for row in rows] == frame["diagnosis"].tolist()  # the outcome of the file
    assert [int(row["row"]) for row in rows] == list(range(2, 122))  # its lines
    assert "log_density" not in works("predict", model, path)
    assert json.loads(works("predict", model, path, "--json"))["predictions"][7]["predicted"] == rows[7]["predicted"]
    told = json.loads(works("inspect", model, "--json", "--graph", graph))
    assert (told["structure"], told["parameters"], told["edges"]) == ("tan", ours.n_parameters_, 4)
    assert told["discrete"] == ["stage", "sex"]
    assert told["log_evidence"] == pytest.approx(ours.log_evidence_)
    assert "<svg" in graph.read_text()
    assert "log evidence" in works("inspect", model)
    works("inspect", model, "--graph", tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


def test_predict_names_the_next_measurement(patients, tmp_path):
    path, frame = patients
    model, new = tmp_path / "model.skops", tmp_path / "new.csv"
    works("fit", path, "-t", "diagnosis", "-s", "naive_bayes", "-o", model)
    some = frame.drop(columns="diagnosis").iloc[:3].astype(object)
    some["ratio"] = None
    some.iloc[0, 1:] = None
    some.to_csv(new, index=False)
    rows = list(csv.DictReader(io.StringIO(works("predict", model, new, "--next"))))
    assert rows[1]["next_measurement"] in ("ratio", "")
    assert rows[0]["next_measurement"] in frame.columns
    assert 0 < float(rows[0]["expected_fall"]) < 0.7
    assert "next_measurement" not in works("predict", model, new)
    chosen = works("predict", model, new, "--next", "--test-costs", "ratio=2")
    assert {row["next_measurement"] for row in csv.DictReader(io.StringIO(chosen))} <= {"ratio", ""}
    assert "add --next" in fails(2, "predict", model, new, "--test-costs", "ratio=2")
    assert "'scan' is no column of X" in fails(2, "predict", model, new, "--next", "--test-costs", "scan=2")
    assert "'ratio=-1' is not COLUMN=COST" in fails(2, "predict", model, path, "--next", "--test-costs", "ratio=-1")


def test_predict_takes_the_columns_it_needs_in_any_order(patients, tmp_path):
    path, frame = patients
    model = tmp_path / "model.skops"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-s", "naive_bayes", "-o", model)
    expected = pd.read_csv(io.StringIO(works("predict", model, path))).drop(columns=["row", "diagnosis"])
    shuffled = frame.drop(columns="diagnosis")[["ratio", "sex", "stage", "marker", "subject"]]
    shuffled = shuffled.assign(stage=shuffled["stage"].astype(float), more=np.nan)  # 1.0 is the level 1
    for name in ("shuffled.parquet", "shuffled.tsv"):
        other = tmp_path / name
        shuffled.to_parquet(other) if name.endswith("parquet") else shuffled.to_csv(other, sep="\t", index=False)
        found = pd.read_csv(io.StringIO(works("predict", model, other)))
        assert found.pop("row").tolist() == list(range(1, 121) if name.endswith("parquet") else range(2, 122))
        pd.testing.assert_frame_equal(found, expected)
    one = tmp_path / "one.csv"
    shuffled.assign(stage=9).to_csv(one, index=False)
    code, out, err = outcome("predict", model, one)
    assert code == 0
    told = "column 'stage' has '9' in line 2 (and others in 119 more rows), which is not a level of the training data"
    assert told in err
    assert "it counts as missing" in err
    shuffled.assign(stage="").to_csv(one, index=False)
    assert works("predict", model, one) == out
    shuffled.assign(marker="high").to_csv(one, index=False)
    error = fails(1, "predict", model, one)
    assert "column 'marker' holds 'high' in line 2 (and in 119 more): the model was trained on numbers there" in error
    shuffled.assign(marker=np.nan).to_csv(one, index=False)
    expected = works("predict", model, one)
    shuffled.drop(columns="marker").to_csv(one, index=False)
    code, out, err = outcome("predict", model, one)
    assert (code, out) == (0, expected)
    assert f"{one} lacks column 'marker' (of the model): its values count as missing" in err
    shuffled[["marker", "sex"]].to_csv(one, index=False)
    assert "lacks 3 of 5 columns, 'subject', 'stage', 'ratio' (of the model)" in fails(1, "predict", model, one)


def test_levels_of_models_made_in_python_are_found_in_files(tmp_path):
    y = np.arange(40) % 2
    frame = pd.DataFrame({"old": y == (np.arange(40) < 35), "code": 11 + y, "x": np.arange(40.0) % 7})
    model = CGNClassifier(categorical_features=["old", "code"]).fit(frame, y)
    save(model, tmp_path / "model.skops")
    frame.to_csv(tmp_path / "new.csv", index=False)
    rows = list(csv.DictReader(io.StringIO(works("predict", tmp_path / "model.skops", tmp_path / "new.csv"))))
    assert [row["predicted"] for row in rows] == model.predict(frame).astype(str).tolist()
    frame.assign(code="1_1").to_csv(tmp_path / "new.csv", index=False)  # which Python reads as 11
    assert "'1_1' in line 2" in outcome("predict", tmp_path / "model.skops", tmp_path / "new.csv")[2]


def test_models_made_in_python_are_read_too(tmp_path):
    X, y = load_wine(return_X_y=True)
    save(CGNClassifier(Band(3)).fit(X, y), tmp_path / "model.skops")
    np.savez(tmp_path / "wine.npz", X=X, y=y)
    rows = list(csv.DictReader(io.StringIO(works("predict", tmp_path / "model.skops", tmp_path / "wine.npz"))))
    proba = load(tmp_path / "model.skops").predict_proba(X)
    np.testing.assert_allclose([float(row["probability_2"]) for row in rows], proba[:, 2], rtol=1e-5, atol=1e-300)
    np.savez(tmp_path / "other.npz", X=X[:, 1:])
    assert "13 columns of numbers" in fails(1, "predict", tmp_path / "model.skops", tmp_path / "other.npz")


def test_wide_npz(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 500)) + 2 * y[:, None] * (np.arange(500) < 40)
    np.savez(tmp_path / "wide.npz", X=X.astype(np.float32), y=np.array(["no", "yes"])[y], mz=np.linspace(700, 900, 500))
    found = json.loads(
        works(
            "evaluate",
            tmp_path / "wide.npz",
            "-s",
            "band",
            "--k",
            "3",
            "--likelihood-power",
            "0.2",
            "--cv",
            "4",
            "--json",
            "--report",
            tmp_path / "wide.html",
        )
    )["models"]
    assert found[1]["model"] == "band 3 bayes, likelihood power 0.2"
    assert found[1]["accuracy"]["mean"] > 0.8
    assert "Mean spectra of the classes" in (tmp_path / "wide.html").read_text()


def test_k_and_likelihood_power_by_cross_validation(wine, tmp_path):
    chosen = ("-t", "class", "-s", "band", "--k", "cv", "--k-max", "4", "--likelihood-power", "cv")
    found = json.loads(
        works("evaluate", wine, *chosen, "--cv", "3", "--json", "-p", "bayes", "--report", tmp_path / "r.html")
    )["models"]
    assert found[0]["model"] == "band cv bayes, likelihood power cv"
    assert "Inner scores of every k" in (tmp_path / "r.html").read_text()
    works("fit", wine, *chosen, "-o", tmp_path / "model.skops")
    model = load(tmp_path / "model.skops")
    told = json.loads(works("inspect", tmp_path / "model.skops", "--json"))
    assert told["likelihood_power"] == model.likelihood_power_
    assert model.structure_.n_edges == sum(min(v, model.k_ - 1) for v in range(13)) == told["edges"]


@pytest.mark.slow
def test_demo(tmp_path, monkeypatch):
    from cgnlearn.reporting import demonstration
    from cgnlearn.spectra import make_raw_spectra

    def few(*_, **__):
        return make_raw_spectra(
            20, n_replicates=2, n_points=700, mass_range=(2000.0, 2400.0), n_peaks=6, n_markers=3, random_state=0
        )

    monkeypatch.setattr(demonstration, "make_raw_spectra", few)
    splits = demonstration.repeated_splits
    monkeypatch.setattr(demonstration, "repeated_splits", lambda *args, **more: splits(*args, **more | {"n_folds": 2}))
    report = tmp_path / "new" / "report.html"
    code, out, err = outcome("demo", "-o", report)
    assert code == 0, err
    assert f"report: {report}" in err
    assert "mixture" in out
    assert "logistic regression" in out
    assert "by sample, the log odds of its spectra averaged" in out
    text = report.read_text(encoding="utf-8")
    for anchor, name in (("s0", "simulated spectra, by spectrum"), ("s1", "wine")):  # the same figures in both
        rows = out[out.index(f"{name} ") :].split("┡")[1].split("└")[0].split("\n")[1:-1]
        table = text[text.index(f'id="{anchor}-models"') :].split(f'id="{anchor}-trust"')[0]
        for number, metric in enumerate(("accuracy", "log_loss", "brier"), start=2):
            printed = [row.split("│")[number].split()[0] for row in rows if row.split("│")[1].strip()]
            assert [value for value in printed if value not in table] == [], (name, metric)
    assert "of 3 planted markers" in err
    assert len(list((tmp_path / "new" / "spectra" / "spectra").iterdir())) == 40
    for name in ("iris", "wine", "balance scale", "waveform"):
        assert name in out
    assert "does not exist" in out  # maximum likelihood of the complete structure, on 32 wines with 13 columns
    text = report.read_text(encoding="utf-8")
    assert "simulated spectra" in text
    assert "Triangles mark the peaks" in text
    assert "of 3 planted markers" in text


def test_wrong_calls_are_one_line_and_exit_2(wine, tmp_path):
    assert "Missing argument 'DATA'" in fails(2, "evaluate")
    assert "No such command 'evalute'" in fails(2, "evalute")
    assert "add --target COLUMN" in fails(2, "evaluate", wine)
    assert "has no column 'klass'" in fails(2, "evaluate", wine, "-t", "klass")
    assert "does not exist" in fails(2, "evaluate", tmp_path / "absent.csv", "-t", "class")
    assert "'5y2' is not of the form 10x3" in fails(2, "evaluate", wine, "-t", "class", "--cv", "5y2")
    assert "neither a whole number nor cv" in fails(2, "evaluate", wine, "-t", "class", "-s", "band", "--k", "3.5")
    assert "Missing option '-o'" in fails(2, "fit", wine, "-t", "class")
    for words, error in (
        (("-s", "band", "--k", "0"), "'0' is not a whole number above 0, nor cv"),
        (("-s", "tan", "--likelihood-power", "-1"), "'-1' is not a number above 0, nor cv"),
        (("-s", "tan", "--likelihood-power", "nan"), "'nan' is not a number above 0"),
        (("--jobs", "0"), "--jobs must be a number of processes"),
        (("--likelihood-power", "cv"), "--likelihood-power is for networks"),
        (("-s", "tan", "--ordered"), "--ordered is for the mixture"),
        (("--id", "name"), "has no column 'name' (--id)"),
        (("--groups", "subject"), "has no column 'subject' (--groups)"),
        (("--ignore", "alcohol,ask"), "has no column 'ask' (--ignore): did you mean 'ash'?"),
        (("--categorical", "stage"), "has no column 'stage' (--categorical)"),
        (("--id", "alcohol", "--ignore", "alcohol"), "cannot be both --id and --ignore"),
        (("--positive", "blue"), "the classes are red, rosé, white"),
        (("--prevalence", "0.1"), "name it with --positive"),
    ):
        assert error in fails(2, "evaluate", wine, "-t", "class", *words), words
    assert "seems to be a measurement, not the class" in fails(2, "evaluate", wine, "-t", "alcohol")


def test_failed_runs_are_one_line_and_exit_1(wine, tmp_path):
    assert "damaged or not a model file" in fails(1, "predict", wine, wine)
    ml = ("-s", "complete", "-p", "ml", "-o", tmp_path / "m.skops")
    few = tmp_path / "few.csv"
    few.write_text("".join(wine.read_text().splitlines(keepends=True)[i] for i in (0, 1, 2, 3, 80, 81, 82)))
    error = fails(1, "fit", few, "-t", "class", *ml)
    assert "maximum likelihood does not exist for column" in error
    assert "use --estimation bayes" in error
    assert "drop the column with --ignore" in error
    words = ("evaluate", wine, "-t", "class", "--cv", "3", "-s", "naive_bayes", "-o", tmp_path / "out")
    works(*words)
    assert "another seed (0, not 1)" in fails(1, *words, "--seed", "1")


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_too(wine, tmp_path):
    lines = wine.read_text().splitlines(keepends=True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:40] + lines[-4:]))
    code, _, err = outcome("fit", few, "-t", "class", "-s", "fwgjan", "-o", tmp_path / "m.skops")
    assert code == 0
    assert err.startswith("cgnlearn: warning: the smallest class has 4 samples")
    assert err.count("\n") == 2


def test_a_traceback_only_with_debug(wine):
    found = CliRunner().invoke(main, ["predict", str(wine), str(wine), "--debug"])
    assert isinstance(found.exception, ValueError)


def test_a_fault_in_the_report_loses_nothing_and_names_the_file_to_send(wine, tmp_path, monkeypatch):
    def broken(*_):
        raise KeyError(4952)

    words = ("evaluate", wine, "-t", "class", "--cv", "2", "-s", "naive_bayes", "-o", tmp_path / "out")
    table = works(*words)
    monkeypatch.setattr("cgnlearn.reporting.cards.cards", broken)
    code, out, err = outcome(*words, "--report", tmp_path / "wine.html")
    assert (code, out) == (1, table)
    assert "a fault of cgnlearn (IncompleteReportError: parts of the report" in err
    sent = tmp_path / "cgnlearn-traceback.txt"
    assert f"please report it with the file {sent}" in err
    assert "KeyError: 4952" in sent.read_text()
    assert "--report" in sent.read_text()
    assert "Comparison of models" in (tmp_path / "wine.html").read_text()


def test_table_and_report_show_the_same_figures_and_the_costs(tmp_path):
    """Groups of unequal sizes, so that means over folds and over samples differ."""
    rng = np.random.default_rng(0)
    groups = np.repeat(list("ABCD"), [10, 20, 40, 80])
    y = np.arange(150) % 2
    frame = pd.DataFrame({"a": 1.5 * y + rng.normal(size=150), "clinic": groups, "ill": np.where(y, "yes", "no")})
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "cost.csv").write_text("class,treat,wait\nyes,1,10\nno,2,0\n")
    report = tmp_path / "report.html"
    words = ("-t", "ill", "--groups", "clinic", "-s", "naive_bayes", "-p", "bayes", "--positive", "yes")
    code, out, _ = outcome(
        "evaluate", tmp_path / "data.csv", *words, "--cost", tmp_path / "cost.csv", "--report", report, "--json"
    )
    assert code == 0
    model = json.loads(out)["models"][0]
    text = report.read_text()
    row = re.search(r'<tr class="chosen">.*?</tr>', text, flags=re.DOTALL)[0]
    shown = [model["accuracy"]["mean"], model["log_loss"]["mean"], model["brier"]["mean"], model["auc"]["value"]]
    for value in shown:
        assert f"<span>{value:.3f}<small>" in row
    auc = model["decisions"]["auc"]
    assert f'{auc["value"]:.3f} <span class="soft">({auc["low"]:.3f} to {auc["high"]:.3f})' in text
    cost = model["cost"]
    assert f'{cost["value"]:.3f} <span class="soft">({cost["low"]:.3f} to {cost["high"]:.3f})' in text
    assert "true class no: treat 2, wait 0; true class yes: treat 1, wait 10." in text


def test_an_exception_that_says_nothing_is_called_a_fault(wine, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyError(4952)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cgnlearn.data.splits.repeated_splits", broken)
    error = fails(1, "evaluate", wine, "-t", "class")
    assert "error: a fault of cgnlearn (KeyError: 4952): please report it with the file cgnlearn-traceback.txt" in error
    assert "in broken" in (tmp_path / "cgnlearn-traceback.txt").read_text()
    found = CliRunner().invoke(main, ["evaluate", str(wine), "-t", "class", "--debug"])
    assert isinstance(found.exception, KeyError)

    def rootless(*_, **__):
        return brentq(np.cosh, -1.0, 1.0)

    monkeypatch.setattr("cgnlearn.data.splits.repeated_splits", rootless)  # a ValueError, but not about the table
    assert "a fault of cgnlearn (ValueError: f(a) and f(b)" in fails(1, "evaluate", wine, "-t", "class")


def test_interrupted_runs_keep_what_was_done(wine, tmp_path):
    """Ctrl-C in a real process: a table of what is there, exit code 1, and a folder to go on from."""
    words = ["evaluate", str(wine), "-t", "class", "--cv", "10x200", "-s", "naive_bayes", "--json", "-o", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "cgnlearn", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # what runs in the background ignores it
    )
    rows = tmp_path / "rows.csv"
    for _ in range(600):
        if rows.exists() and rows.stat().st_size > 20_000:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "interrupted after" in err
    assert "Traceback" not in err
    done = json.loads(out)["models"][0]["folds"]
    assert 0 < done < 2000
    assert (tmp_path / "summary.csv").exists()


def test_the_model_remembers_its_columns(patients, tmp_path):
    path, frame = patients
    model = tmp_path / "model.skops"
    options = ("-t", "diagnosis", "--categorical", "stage", "-s", "naive_bayes")
    told = json.loads(
        works(
            "fit", path, *options, "--id", "subject", "--groups", "subject", "--ignore", "ratio", "-o", model, "--json"
        )
    )
    assert told["columns"] == {
        "target": "diagnosis",
        "id": "subject",
        "groups": "subject",
        "ignore": ["ratio"],
        "categorical": ["stage"],
        "na": [],
        "site": None,
    }
    assert load(model).feature_names_in_.tolist() == ["stage", "sex", "marker"]
    rows = list(csv.DictReader(io.StringIO(works("predict", model, path))))
    assert [row["id"] for row in rows] == frame["subject"].astype(str).tolist()
    assert json.loads(works("inspect", model, "--json"))["file"]["columns"]["id"] == "subject"
    nameless = tmp_path / "nameless.csv"
    frame.drop(columns="subject").to_csv(nameless, index=False)
    code, _out, err = outcome("predict", model, nameless)
    assert code == 0
    assert "has no column 'subject', which named the rows in training: they are numbered only" in err
    assert "has no column 'subject' (--id)" in fails(2, "predict", model, nameless, "--id", "subject")
    assert [row["id"] for row in csv.DictReader(io.StringIO(works("predict", model, path, "--id", "sex")))][:5] == (
        frame["sex"][:5].tolist()
    )
    works("evaluate", path, *options, "--id", "subject", "--cv", "2", "-o", tmp_path / "out")
    kept = pd.read_csv(tmp_path / "out" / "rows.csv")
    assert (kept["id"] == frame["subject"].to_numpy()[kept["sample"]]).all()


def test_columns_keep_their_parts_where_a_file_is_read_in_parts(patients, tmp_path):
    path, frame = patients
    dated = tmp_path / "dated.csv"
    frame.assign(seen="2024-03-01").to_csv(dated, index=False)
    columns = ("-t", "diagnosis", "--id", "subject", "--ignore", "ratio", "--categorical", "stage", "-s", "naive_bayes")
    said = {}
    for name, memory in (("whole", "1GB"), ("parts", "1kB")):
        model, out = tmp_path / f"{name}.skops", tmp_path / f"{name}.csv"
        code, _, err = outcome("fit", dated, *columns, "--memory", memory, "-o", model)
        assert code == 0, err
        assert "excluded column 'seen', which holds dates or times" in err
        assert load(model).feature_names_in_.tolist() == ["stage", "sex", "marker"]
        works("predict", model, dated, "--memory", memory, "-o", out)
        said[name] = pd.read_csv(out).drop(columns=["typicality", "unusual"])
    pd.testing.assert_frame_equal(said["whole"], said["parts"], rtol=1e-9)
    assert said["parts"]["id"].tolist() == frame["subject"].tolist()
    semicolons = tmp_path / "semicolons.csv"
    frame.to_csv(semicolons, index=False, sep=";")
    latin = tmp_path / "latin.csv"
    latin.write_text(path.read_text().replace("ill", "übel"), encoding="latin-1")
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    arrow = tmp_path / "typed.arrow"
    frame.to_feather(arrow)
    for data, more, why in (
        (semicolons, (), "semicolons"),
        (latin, (), "Latin-1"),
        (packed, (), "packed by gz"),
        (arrow, (), ""),
        (path, ("--na", "f"), "taken as missing: sex"),
    ):
        for name, memory in (("whole", "1GB"), ("parts", "1kB")):
            model, out = tmp_path / f"{name}.skops", tmp_path / f"{name}.csv"
            code, _, err = outcome("fit", data, *columns, *more, "--memory", memory, "-o", model)
            assert (code, why in err) == (0, True), err
            works("predict", model, data, "--memory", memory, "-o", out)
            said[name] = pd.read_csv(out).drop(columns=["typicality", "unusual"])
        pd.testing.assert_frame_equal(said["whole"], said["parts"], rtol=1e-9)


@pytest.mark.shared
@pytest.mark.filterwarnings("default")  # of columns with few values
def test_a_clinical_table_with_holes_in_all_but_one_row(shared, tmp_path):
    path, model = shared / "data" / "mixed" / "heart-hungarian.csv", tmp_path / "model.skops"
    options = ("-t", "class", "-s", "tan", "-p", "bayes")
    code, out, err = outcome("evaluate", path, *options, "--cv", "2", "--positive", ">50_1", "--json")
    assert code == 0
    assert "782 cells are taken as missing: ca 291 empty; thal 266 empty; slope 190 empty" in err
    told = json.loads(out)
    assert told["data"]["missing"]["ca"] == {"": 291}
    assert told["data"]["rows"] == 294
    tree, nothing = told["models"]
    assert tree["accuracy"]["mean"] > nothing["accuracy"]["mean"] + 0.1
    assert tree["decisions"]["auc"]["low"] > 0.75
    assert "is observed in" not in err  # in every fold anew
    works("fit", path, *options, "-o", model)
    rows = pd.read_csv(io.StringIO(works("predict", model, path)))
    assert rows.notna().all(axis=None)
    assert len(rows) == 294


def test_groups_reach_the_inner_choices(patients, tmp_path, monkeypatch):
    path, frame = patients
    seen = []
    fit = CGNClassifier.fit

    def spy(self, X, y, sample_weight=None, groups=None, sites=None):
        seen.append(groups)
        return fit(self, X, y, sample_weight, groups, sites)

    monkeypatch.setattr(CGNClassifier, "fit", spy)
    options = ("-t", "diagnosis", "--groups", "subject", "-s", "naive_bayes", "--categorical", "stage")
    works("fit", path, *options, "-o", tmp_path / "model.skops")
    assert seen[0].tolist() == frame["subject"].astype(str).tolist()
    works("evaluate", path, *options, "-p", "bayes", "--cv", "2")
    assert [len(groups) for groups in seen[1:]] == [60, 60]


def test_predictions_for_another_prevalence_and_least_cost(patients, tmp_path):
    path, _frame = patients
    model, costs = tmp_path / "model.skops", tmp_path / "costs.csv"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-s", "naive_bayes", "-o", model)
    options = ("predict", model, path, "--class-prior", "ill=0.01,healthy=0.99")
    rows = pd.read_csv(io.StringIO(works(*options)))
    usual = pd.read_csv(io.StringIO(works("predict", model, path)))
    odds = (
        usual["probability_ill"] / usual["probability_healthy"] * 0.01 / 0.99
    )  # the classes are equally frequent in training
    np.testing.assert_allclose(rows["probability_ill"] / rows["probability_healthy"], odds, rtol=1e-5)
    costs.write_text("true;treat;wait\nill;0;500\nhealthy;1,5;0\n")
    found = pd.read_csv(io.StringIO(works(*options, "--cost", costs)))
    treated = 500 * found["probability_ill"] > 1.5 * found["probability_healthy"]
    assert (found["decision"] == np.where(treated, "treat", "wait")).all()
    assert {"treat", "wait"} <= set(found["decision"])
    assert (found["predicted"] == rows["predicted"]).all()
    np.testing.assert_allclose(
        found["expected_cost"],
        np.where(treated, 1.5 * found["probability_healthy"], 500 * found["probability_ill"]),
        rtol=1e-5,
    )
    for prior, error in (
        ("ill=0.01,healthy=0.5", "sum to 0.51, not to 1"),
        ("ill=0.5,sick=0.5", "must name each class once, or all but one: healthy, ill"),
        ("ill", "is not CLASS=PROBABILITY"),
        ("ill=1.5,healthy=-.5", "between 0 and 1"),
    ):
        assert error in fails(2, "predict", model, path, "--class-prior", prior)
    assert works("predict", model, path, "--class-prior", "ill=0.01") == works(*options)  # the rest is the other's
    costs.write_text("true,treat\nill,0\nhealty,1\n")
    assert "must name class 'healthy' in exactly one row" in fails(2, *options, "--cost", costs)


def test_every_prediction_has_its_typicality_and_unusual_rows_are_marked(patients, tmp_path):
    path, frame = patients
    model, odd = tmp_path / "model.skops", tmp_path / "odd.csv"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "--ignore", "subject", "-s", "tan", "-o", model)
    frame.assign(marker=np.where(frame.index < 3, 1e3, frame["marker"])).to_csv(odd, index=False)
    code, out, err = outcome("predict", model, odd)
    assert code == 0
    rows = pd.read_csv(io.StringIO(out))
    assert rows["unusual"][:3].all()
    n = int(rows["unusual"].sum())
    assert (rows["unusual"] == (rows["typicality"] < 0.01)).all()
    assert f"{n} of 120 samples are unlike the training data" in err
    told = json.loads(works("predict", model, odd, "-o", tmp_path / "out.csv", "--json"))
    assert told["rows_unusual"] == n
    assert sum(told["predicted"].values()) == told["rows"] == 120
    statistics, merged = tmp_path / "part.stats", tmp_path / "merged.skops"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-s", "tan", "-o", statistics)
    works("merge", statistics, "-s", "tan", "-o", merged)
    code, out, err = outcome("predict", merged, path)
    assert code == 0
    assert re.search("the column typicality is empty: .* only fit computes them\n", err)
    assert pd.read_csv(io.StringIO(out))["typicality"].isna().all()


def test_decisions_about_one_class(patients, tmp_path):
    path, _frame = patients
    costs = tmp_path / "costs.csv"
    costs.write_text("class,ill,healthy\nill,0,1\nhealthy,1,0\n")
    options = (
        "-t",
        "diagnosis",
        "--categorical",
        "stage",
        "--ignore",
        "subject",
        "--cv",
        "5",
        "-s",
        "naive_bayes",
        "-p",
        "bayes",
        "--positive",
        "ill",
        "--prevalence",
        "0.1",
        "--cost",
        costs,
    )
    told = json.loads(works("evaluate", path, *options, "--json", "-o", tmp_path / "out"))
    found, nothing = told["models"]
    rows = pd.read_csv(tmp_path / "out" / "rows.csv").query("model == 'naive_bayes bayes'")
    called, ill = rows["log p(ill)"] >= np.log(0.5), rows["true"] == "ill"
    sensitivity, specificity = called[ill].mean(), (~called)[~ill].mean()
    figures = found["decisions"]
    assert figures["sensitivity"]["value"] == pytest.approx(sensitivity)
    assert figures["specificity"]["value"] == pytest.approx(specificity)
    expected = 0.1 * sensitivity / (0.1 * sensitivity + 0.9 * (1 - specificity))
    assert figures["positive_predictive_value"]["value"] == pytest.approx(expected)
    assert found["cost"]["value"] == pytest.approx((called != ill).mean())  # as each error costs one
    assert nothing["decisions"]["auc"]["low"] < 0.5 < nothing["decisions"]["auc"]["high"]
    curve = pd.read_csv(tmp_path / "out" / "decision_curve.csv").query("model == 'naive_bayes bayes'")
    [at_half] = curve[curve["threshold"] == 0.5]["net_benefit"]
    assert at_half == pytest.approx(0.1 * sensitivity - 0.9 * (1 - specificity), abs=1e-9)
    out = works("evaluate", path, *options)
    assert "sensitivity" in out
    assert "cost per sample" in out


def test_ml_on_some_folds_is_set_beside_the_others_on_these(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": 0.0, "class": ["x", "y"] * 20})
    frame.loc[[4, 5], "b"] = [1.0, 2.0]  # without these rows b varies in no class
    path = tmp_path / "some.csv"
    frame.to_csv(path, index=False)
    words = ("evaluate", path, "-t", "class", "--cv", "4", "-s", "naive_bayes", "--json", "-o", tmp_path / "out")
    _, out, err = outcome(*words)
    found = {entry["model"]: entry for entry in json.loads(out)["models"]}
    ml = found["naive_bayes ml"]
    why = "maximum likelihood does not exist for column 'b' in the cell class "
    assert ml["reason_without_answer"].startswith(why)
    [line] = [line for line in err.splitlines() if "does not exist in" in line]
    n_without = ml["folds_without_answer"]
    assert line.startswith(f"cgnlearn: naive_bayes ml does not exist in {n_without} of 4 folds: {why}")
    assert "use --estimation bayes" in line
    assert line.endswith("drop the column with --ignore")
    n_answered = ml["folds"] - ml["folds_without_answer"]
    assert 0 < n_answered < 4
    beside = found[f"naive_bayes bayes in the same {n_answered} folds"]
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    answered = set(rows[(rows["model"] == "naive_bayes ml") & rows["log p(x)"].notna()]["fold"])
    bayes = rows[(rows["model"] == "naive_bayes bayes") & rows["fold"].isin(answered)]
    truth = np.where(bayes["true"] == "x", bayes["log p(x)"], bayes["log p(y)"])
    by_fold = pd.Series(truth).groupby(bayes["fold"].to_numpy()).mean()
    assert beside["log_loss"]["mean"] == pytest.approx(-by_fold.mean())


def test_without_a_structure_the_mixture_is_taken(patients, tmp_path, monkeypatch):
    from cgnlearn import CGNClassifierCV
    from cgnlearn.cli import models

    def small(name, seed, ordered, *_):
        assert name == "mixture"
        return CGNClassifierCV(candidates=["naive_bayes", "complete"], ordered=ordered, random_state=seed)

    assert isinstance(models.tuned("mixture", 0, True), CGNClassifierCV)
    monkeypatch.setattr(models, "tuned", small)
    path, _frame = patients
    columns = ("-t", "diagnosis", "--categorical", "stage", "--ignore", "subject")
    found = json.loads(works("evaluate", path, *columns, "--cv", "3", "--json"))["models"]
    assert [entry["model"] for entry in found] == [
        "mixture",
        "logistic regression",
        "random forest",
        "gradient boosting",
        "class frequencies",
    ]
    assert max(entry["log_loss"]["mean"] for entry in found[:3]) < found[4]["log_loss"]["mean"]
    assert all(entry["seconds"]["fit"] > 0 and entry["auc"]["value"] > 0.7 for entry in found[:4])
    beside = ("--cv", "2", "-s", "naive_bayes", "-p", "bayes", "--compare", "logistic_regression", "--json")
    named = [entry["model"] for entry in json.loads(works("evaluate", path, *columns, *beside))["models"]]
    assert named == ["naive_bayes bayes", "logistic regression", "class frequencies"]
    alone = json.loads(works("evaluate", path, *columns, "--cv", "2", "--compare", "none", "--json"))["models"]
    assert [entry["model"] for entry in alone] == ["mixture", "class frequencies"]
    model = tmp_path / "model.skops"
    code, _, err = outcome("fit", path, *columns, "-o", model)
    assert code == 0
    assert "members: saved" in err
    told = json.loads(works("inspect", model, "--json"))
    assert told["structure"] == "mixture"
    assert sum(member["weight"] for member in told["members"]) == pytest.approx(1)
    assert "complete, transform none and power, sharing" in works("inspect", model)
    assert "mixture of several" in fails(2, "inspect", model, "--graph", tmp_path / "g.svg")
    rows = pd.read_csv(io.StringIO(works("predict", model, path, "--class-prior", "ill=0.2,healthy=0.8")))
    np.testing.assert_allclose(rows["probability_ill"] + rows["probability_healthy"], 1, rtol=1e-5)
    assert rows["typicality"].between(0, 1).all()


def test_logistic_regression_bears_rare_classes_holes_and_new_levels(rng):
    from cgnlearn.evaluation.comparators import logistic_regression

    frame = pd.DataFrame({"a": rng.normal(size=30), "level": pd.Categorical(["u", "v", "w"] * 10), "gone": np.nan})
    frame.loc[3, ["a", "level"]] = None
    y = np.array(["x", "y"] * 15)
    y[:2] = "z"
    model = logistic_regression(0).fit(frame.iloc[:29].assign(level=frame["level"].cat.remove_categories("v")), y[:29])
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1)


@pytest.mark.parametrize("absent", ["click", "rich", "pandas"])
def test_without_the_extra_the_command_says_how_to_install_it(absent, wine):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\n"
        f"sys.argv = ['cgnlearn', 'evaluate', {str(wine)!r}, '-t', 'class', '-s', 'naive_bayes', '--cv', '2']\n"
        "from cgnlearn.cli.entry import run\nrun()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1].endswith(f"needs {absent}: pip install 'cgnlearn[cli]'")
    assert "Traceback" not in found.stderr


def test_long_work_tells_how_far_it_is(capsys, monkeypatch):
    from cgnlearn.cli import terminal

    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.02)
    with terminal.waiting("fitting") as more:
        time.sleep(0.1)
        more("3 steps")
        time.sleep(0.1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "cgnlearn: fitting: 0 s"
    assert said[-1] == "cgnlearn: fitting, 3 steps: 0 s"


def test_the_time_left_goes_by_the_kind_of_the_parts(capsys, monkeypatch):
    from cgnlearn.cli import terminal

    now = 0.0
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 10.0)
    monkeypatch.setattr(terminal, "MINUTES_FROM", 100.0)
    monkeypatch.setattr(terminal, "monotonic", lambda: now)

    def parts():
        nonlocal now
        for kind in ["slow", "quick"] * 3:
            now += 60 if kind == "slow" else 1
            yield kind

    kinds = ["slow", "quick"] * 3
    assert list(terminal.with_progress(parts(), "computing", 2, terminal.Pace(kinds))) == kinds
    assert capsys.readouterr().err.splitlines() == [
        "cgnlearn: computing: 3 of 8",  # nothing is known of the quick ones
        "cgnlearn: the other 4 parts will take about 2 min",
        "cgnlearn: computing: 5 of 8, about 62 s left",
        "cgnlearn: computing: 7 of 8, about 1 s left",
    ]


def test_a_long_fit_says_so_before_it_begins(capsys, monkeypatch):
    from cgnlearn import CGNClassifierCV
    from cgnlearn.cli import terminal

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5000, 40)), rng.integers(4, size=5000)
    monkeypatch.setattr(terminal, "MINUTES_FROM", 100.0)
    terminal.print_expected_time(CGNClassifierCV(), X, y, n_fits=10)
    assert re.fullmatch(r"cgnlearn: 10 fits of the mixture may take \d+ min: .*\n", capsys.readouterr().err)
    terminal.print_expected_time(CGNClassifierCV(), X[:100, :3], y[:100], n_fits=10)
    terminal.print_expected_time(CGNClassifier(), X, y)
    assert capsys.readouterr().err == ""


def test_the_mixture_says_how_long_it_will_go_on(rng):
    pytest.importorskip("sklearn.callback")
    from cgnlearn import CGNClassifierCV
    from cgnlearn.cli import terminal

    said = []
    model, X = CGNClassifierCV(candidates=["naive_bayes", "aode"]), rng.normal(size=(30, 2))
    model.set_callbacks(terminal._Steps(said.append))
    model.fit(X, np.arange(30) % 2)
    assert [line.split(" steps")[0] for line in said] == [f"{n} of 5" for n in range(1, 6)]
    assert said[-1] == "5 of 5 steps, about 0 s left"


def test_a_threshold_of_a_class_changes_what_is_predicted(patients, tmp_path):
    path, _frame = patients
    model, columns = tmp_path / "model.skops", ("-t", "diagnosis", "--categorical", "stage", "--ignore", "subject")
    works("fit", path, *columns, "-s", "naive_bayes", "-o", model)
    found = pd.read_csv(io.StringIO(works("predict", model, path, "--threshold", "ill=0.2")))
    expected = np.where(found["probability_ill"] >= 0.2, "ill", "healthy")
    assert found["predicted"].tolist() == expected.tolist()
    assert (found["predicted"] == "ill").sum() > (found["probability_ill"] >= 0.5).sum()
    assert "--threshold must name one class" in fails(2, "predict", model, path, "--threshold", "dead=0.2")
    assert "--threshold must name one class" in fails(2, "predict", model, path, "--threshold", "ill=0.2,healthy=0.3")


def test_figures_are_saved_for_a_paper(patients, tmp_path):
    path, _frame = patients
    words = ("evaluate", path, "-t", "diagnosis", "--ignore", "subject,sex", "-s", "naive_bayes", "-p", "bayes")
    words = (*words, "--cv", "2", "--figures", tmp_path / "figures")
    works(*words, "--report", tmp_path / "report.html")
    assert {"roc.svg", "roc.pdf", "calibration.pdf"} <= {file.name for file in (tmp_path / "figures").iterdir()}
    assert "add --report PATH" in fails(2, *words)


@pytest.mark.parametrize(
    ("names", "is_ordered", "axis"),
    [(range(60), False, None), (range(60), True, "column"), (np.arange(60) + 1000.5, False, "m/z")],
)
def test_counted_columns_are_a_spectrum_only_where_their_order_matters(names, is_ordered, axis):
    from cgnlearn.cli.evaluate import _spectrum

    columns = SimpleNamespace(X=pd.DataFrame(np.zeros((2, 60)), columns=[str(name) for name in names]))
    assert _spectrum(columns, is_ordered).get("axis") == axis
