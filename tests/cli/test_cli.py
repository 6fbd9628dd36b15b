"""The command line, as a new user meets it."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_wine

from cgnlearn import Band, CGNClassifier, load, save
from cgnlearn.cli.main import main


def run(*words):
    """Exit code, stdout, stderr."""
    found = CliRunner().invoke(main, [str(word) for word in words], prog_name="cgnlearn")
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found.exit_code, found.stdout, found.stderr


def works(*words):
    code, out, err = run(*words)
    assert code == 0, err
    return out


def fails(code, *words):
    """The one line of an error."""
    found, out, err = run(*words)
    assert (found, out) == (code, "")
    assert err.startswith("cgnlearn: error: ")
    assert err.count("\n") == 1
    return err


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
    assert found[1]["cll"]["mean"] > found[0]["cll"]["mean"]
    rows = pd.read_csv(tmp_path / "out" / "rows.csv")
    assert len(rows) == 3 * 2 * 178
    bayes = rows[rows["model"] == "complete bayes"]
    logs = bayes.filter(like="log p(").to_numpy()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    truth = [row[f"log p({row['true']})"] for _, row in bayes.iterrows()]
    per_fold = bayes.assign(truth=truth).groupby(["repeat", "fold"])["truth"].mean()
    assert found[1]["cll"]["mean"] == pytest.approx(per_fold.mean())
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary["cll"][1] == found[1]["cll"]["mean"]
    lines = wine.read_text().splitlines()
    assert all(lines[line - 1].endswith(f",{true}") for line, true in zip(rows["line"], rows["true"], strict=True))


def test_groups_categoricals_and_missing_cells(patients, tmp_path):
    path, frame = patients
    options = ("-t", "diagnosis", "--groups", "subject", "--categorical", "stage", "--cv", "5", "--json")
    found = json.loads(works("evaluate", path, *options, "--structure", "tree", "-p", "bayes"))["models"]
    assert found[0]["accuracy"]["mean"] > 0.7
    holes = frame.copy()
    holes.loc[[3, 50], "marker"] = np.nan
    gaps = tmp_path / "gaps.csv"
    holes.to_csv(gaps, index=False)
    error = fails(1, "evaluate", gaps, *options)
    assert "column 'marker' has no value in line 5 (and in 1 more)" in error
    assert "--drop-missing" in error
    code, _, err = run("evaluate", gaps, *options, "--drop-missing")
    assert code == 0
    assert "left out 2 of 120 rows" in err


def test_a_rare_class_lowers_the_number_of_folds(wine, tmp_path):
    lines = wine.read_text().splitlines(keepends=True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:90] + lines[-4:]))
    code, out, err = run("evaluate", few, "-t", "class", "--cv", "10x2")
    assert code == 0
    assert err == "cgnlearn: the smallest class has 4 rows, so that 4 folds are cut instead of 10\n"
    assert "few.csv: stratified 4-fold cross-validation, 2 times" in out
    assert json.loads(works("evaluate", few, "-t", "class", "--cv", "10x2", "--json"))["models"][0]["folds"] == 8


def test_a_report_of_an_interrupted_run_gone_on_with_is_the_same(wine, tmp_path):
    words = ("evaluate", wine, "-t", "class", "--cv", "3", "-s", "tree", "--json")
    out = works(*words, "-o", tmp_path / "clean", "--report", tmp_path / "clean.html")
    works(*words, "-o", tmp_path / "cut")
    rows = tmp_path / "cut" / "rows.csv"
    rows.write_bytes(rows.read_bytes()[: rows.stat().st_size // 2])
    code, again, err = run(*words, "-o", tmp_path / "cut", "--report", tmp_path / "cut.html")
    assert (code, again) == (0, out)
    assert re.search("going on from [2-7] of 9 finished parts", err)
    assert rows.read_bytes() == (tmp_path / "clean" / "rows.csv").read_bytes()
    clean, cut = (re.sub("Written by [^<]*", "", (tmp_path / f"{name}.html").read_text()) for name in ("clean", "cut"))
    assert clean == cut


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
    assert told["attributes"] == len(load(tmp_path / "model.skops").structure_.nodes)
    assert len(works("predict", tmp_path / "model.skops", wine).splitlines()) == 179


def test_fit_predict_inspect(patients, tmp_path):
    path, frame = patients
    model, graph = tmp_path / "model.skops", tmp_path / "graph.svg"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-s", "tree", "--sharing", "1", "-o", model)
    X = frame.drop(columns="diagnosis").assign(
        stage=pd.Categorical(frame["stage"].astype(str)), sex=pd.Categorical(frame["sex"])
    )
    ours = CGNClassifier("tree", sharing=1.0).fit(X, frame["diagnosis"])
    out = works("predict", model, path)
    rows = list(csv.DictReader(io.StringIO(out)))
    np.testing.assert_allclose([float(row["p(ill)"]) for row in rows], ours.predict_proba(X)[:, 1], rtol=1e-12)
    np.testing.assert_allclose([float(row["log_density"]) for row in rows], ours.score_samples(X), rtol=1e-12)
    assert [row["predicted"] for row in rows] == ours.predict(X).tolist()
    works("predict", model, path, "-o", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == out
    assert json.loads(works("predict", model, path, "--json"))["predictions"][7]["predicted"] == rows[7]["predicted"]
    told = json.loads(works("inspect", model, "--json", "--graph", graph))
    assert (told["structure"], told["parameters"], told["edges"]) == ("tree", ours.n_parameters_, 4)
    assert told["discrete"] == ["stage", "sex"]
    assert told["log_evidence"] == pytest.approx(ours.log_evidence_)
    assert "<svg" in graph.read_text()
    assert "log evidence" in works("inspect", model)
    works("inspect", model, "--graph", tmp_path / "graph.dot")
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


def test_predict_takes_the_columns_it_needs_in_any_order(patients, tmp_path):
    path, frame = patients
    model = tmp_path / "model.skops"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-o", model)
    expected = works("predict", model, path)
    shuffled = frame.drop(columns="diagnosis")[["ratio", "sex", "stage", "marker", "subject"]]
    shuffled = shuffled.assign(stage=shuffled["stage"].astype(float), more=np.nan)  # 1.0 is the level 1
    for name in ("shuffled.parquet", "shuffled.tsv"):
        other = tmp_path / name
        shuffled.to_parquet(other) if name.endswith("parquet") else shuffled.to_csv(other, sep="\t", index=False)
        assert works("predict", model, other) == expected
    one = tmp_path / "one.csv"
    shuffled.assign(stage=9).to_csv(one, index=False)
    assert "column 'stage' has '9' in line 2, which the model has not seen" in fails(1, "predict", model, one)
    shuffled.assign(marker="high").to_csv(one, index=False)
    assert "column 'marker' holds 'high' in line 2, but the model was trained on numbers" in fails(
        1, "predict", model, one
    )
    shuffled.drop(columns="marker").to_csv(one, index=False)
    assert "has no column 'marker' (a column of the model)" in fails(1, "predict", model, one)


def test_models_made_in_python_are_read_too(tmp_path):
    X, y = load_wine(return_X_y=True)
    save(CGNClassifier(Band(3)).fit(X, y), tmp_path / "model.skops")
    np.savez(tmp_path / "wine.npz", X=X, y=y)
    rows = list(csv.DictReader(io.StringIO(works("predict", tmp_path / "model.skops", tmp_path / "wine.npz"))))
    proba = load(tmp_path / "model.skops").predict_proba(X)
    np.testing.assert_allclose([float(row["p(2)"]) for row in rows], proba[:, 2], rtol=1e-9, atol=1e-300)
    np.savez(tmp_path / "other.npz", X=X[:, 1:])
    assert "13 columns of numbers" in fails(1, "predict", tmp_path / "model.skops", tmp_path / "other.npz")


def test_wide_npz(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 500)) + 2 * y[:, None] * (np.arange(500) < 40)
    np.savez(tmp_path / "wide.npz", X=X.astype(np.float32), y=np.array(["no", "yes"])[y], mz=np.linspace(700, 900, 500))
    found = json.loads(
        works("evaluate", tmp_path / "wide.npz", "-s", "band", "--k", "3", "--temperature", "0.2", "--cv", "4",
              "--json", "--report", tmp_path / "wide.html")
    )["models"]  # fmt: skip
    assert found[1]["model"] == "band 3 bayes, temperature 0.2"
    assert found[1]["accuracy"]["mean"] > 0.8
    assert "Evidence along the spectrum" in (tmp_path / "wide.html").read_text()


def test_k_and_temperature_by_cross_validation(wine, tmp_path):
    chosen = ("-t", "class", "-s", "band", "--k", "cv", "--k-max", "4", "--temperature", "cv")
    found = json.loads(
        works("evaluate", wine, *chosen, "--cv", "3", "--json", "-p", "bayes", "--report", tmp_path / "r.html")
    )["models"]
    assert found[0]["model"] == "band cv bayes, temperature cv"
    assert "Inner scores of every k" in (tmp_path / "r.html").read_text()
    works("fit", wine, *chosen, "-o", tmp_path / "model.skops")
    model = load(tmp_path / "model.skops")
    told = json.loads(works("inspect", tmp_path / "model.skops", "--json"))
    assert told["temperature"] == model.temperature_
    assert model.structure_.n_edges == sum(min(v, model.k_ - 1) for v in range(13)) == told["edges"]


def test_demo(tmp_path, monkeypatch):
    from cgnlearn.datasets import make_spectra
    from cgnlearn.report import demonstration

    monkeypatch.setattr(demonstration, "make_spectra", lambda **_: make_spectra(40, 90, n_peaks=10, random_state=0))
    report = tmp_path / "new" / "report.html"
    code, out, err = run("demo", "-o", report)
    assert code == 0, err
    assert f"report: {report}" in err
    assert "band cv bayes, temperature cv" in out
    for name in ("iris", "wine", "balance scale", "waveform"):
        assert name in out
    assert "does not exist" in out  # maximum likelihood of the complete structure, on 32 wines with 13 columns
    text = report.read_text(encoding="utf-8")
    assert "simulated spectra" in text
    assert "Triangles mark the peaks" in text


def test_wrong_calls_are_one_line_and_exit_2(wine, tmp_path):
    assert "Missing argument 'DATA'" in fails(2, "evaluate")
    assert "No such command 'evalute'" in fails(2, "evalute")
    assert "add --target COLUMN" in fails(2, "evaluate", wine)
    assert "has no column 'klass'" in fails(2, "evaluate", wine, "-t", "klass")
    assert "does not exist" in fails(2, "evaluate", tmp_path / "absent.csv", "-t", "class")
    assert "'5y2' is not of the form 10x3" in fails(2, "evaluate", wine, "-t", "class", "--cv", "5y2")
    assert "add --k NUMBER" in fails(2, "evaluate", wine, "-t", "class", "-s", "band")
    assert "neither a whole number nor cv" in fails(2, "evaluate", wine, "-t", "class", "-s", "band", "--k", "3.5")
    assert "Missing option '-o'" in fails(2, "fit", wine, "-t", "class")


def test_failed_runs_are_one_line_and_exit_1(wine, tmp_path):
    assert "temperature must be" in fails(1, "evaluate", wine, "-t", "class", "--temperature", "-2")
    assert "cannot be the class" in fails(1, "evaluate", wine, "-t", "alcohol")
    assert "damaged or no model file" in fails(1, "predict", wine, wine)
    assert "200 folds are more than the 71 rows" in fails(1, "evaluate", wine, "-t", "class", "--cv", "200")
    ml = ("-s", "complete", "-p", "ml", "-o", tmp_path / "m.skops")
    few = tmp_path / "few.csv"
    few.write_text("".join(wine.read_text().splitlines(keepends=True)[i] for i in (0, 1, 2, 3, 80, 81, 82)))
    error = fails(1, "fit", few, "-t", "class", *ml)
    assert "maximum likelihood does not exist for column" in error
    works("evaluate", wine, "-t", "class", "--cv", "3", "-o", tmp_path / "out")
    assert "another seed (0, not 1)" in fails(1, "evaluate", wine, "-t", "class", "--cv", "3", "--seed", "1",
                                              "-o", tmp_path / "out")  # fmt: skip


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_too(wine, tmp_path):
    lines = wine.read_text().splitlines(keepends=True)
    few = tmp_path / "few.csv"
    few.write_text("".join(lines[:40] + lines[-4:]))
    code, _, err = run("fit", few, "-t", "class", "-s", "fwgjan", "-o", tmp_path / "m.skops")
    assert code == 0
    assert err.startswith("cgnlearn: warning: the smallest class has 4 rows")
    assert err.count("\n") == 2


def test_a_traceback_only_with_debug(wine):
    found = CliRunner().invoke(main, ["evaluate", str(wine), "-t", "class", "--temperature", "-2", "--debug"])
    assert isinstance(found.exception, ValueError)


def test_interrupted_runs_keep_what_was_done(wine, tmp_path):
    """Ctrl-C in a real process: a table of what is there, exit code 1, and a folder to go on from."""
    words = ["evaluate", str(wine), "-t", "class", "--cv", "10x200", "--json", "-o", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "cgnlearn", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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


def damaged(text, kind, rng):
    content = bytearray(text.encode())
    if kind == 0:  # a flipped byte
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    elif kind == 1:  # some overwritten
        for place in rng.integers(len(content), size=5):
            content[place] = rng.integers(256)
    elif kind == 2:  # cut
        del content[rng.integers(len(content)) :]
    elif kind == 3:  # a piece taken out
        start = rng.integers(len(content) - 20)
        del content[start : start + rng.integers(1, 20)]
    elif kind == 4:  # a sign of the format put in
        content.insert(rng.integers(len(content)), int(rng.choice(list(b'",\n\r;\0 -e'))))
    else:  # a piece doubled
        start = rng.integers(len(content) - 60)
        content[start:start] = content[start : start + rng.integers(1, 60)]
    return bytes(content)


def test_200_damaged_files_give_one_line_or_an_answer(patients, tmp_path):
    path, _ = patients
    model = tmp_path / "model.skops"
    works("fit", path, "-t", "diagnosis", "--categorical", "stage", "-o", model)
    text = "".join(path.read_text().splitlines(keepends=True)[:41])
    rng = np.random.default_rng(0)
    broken = tmp_path / "broken.csv"
    codes = {"evaluate": [], "predict": []}
    options = ("-t", "diagnosis", "--cv", "2", "-p", "bayes", "--categorical", "stage", "--json")
    for number in range(200):
        broken.write_bytes(damaged(text, number % 6, rng))
        for command, words in (
            ("evaluate", ("evaluate", broken, *options)),
            ("predict", ("predict", model, broken)),
        ):
            code, out, err = run(*words)
            codes[command].append(code)
            if code == 0:
                answer = json.loads(out) if command == "evaluate" else list(csv.DictReader(io.StringIO(out)))
                assert answer
                if command == "predict":
                    for row in answer:
                        assert float(row["p(ill)"]) + float(row["p(healthy)"]) == pytest.approx(1)
            else:
                assert err.startswith("cgnlearn: error: ")
                assert err.count("\n") == 1
                assert "Traceback" not in err
    assert {0, 1} <= set(codes["evaluate"]) <= {0, 1, 2}  # 2: the name of a column was hit
    assert set(codes["predict"]) == {0, 1}
