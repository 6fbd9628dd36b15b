"""Commands over folders of raw spectra."""

import csv
import io
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from cgnlearn import CGNClassifier, load
from cgnlearn.spectra import Bin, by_sample, make_raw_spectra, preset, read
from cgnlearn.spectra.folders import Folder
from tests.cli.running import run

MODEL = ("-s", "naive_bayes", "--likelihood-power", "0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    made = make_raw_spectra(12, n_replicates=2, n_points=1500, mass_range=(2000.0, 5000.0), effect=2.0, random_state=0)
    made.write(folder, "txt")
    said = run("fit", folder / "spectra", "--labels", folder / "labels.csv", "--width", "50", *MODEL, "-p", "bayes",
               "-o", folder / "model.skops")  # fmt: skip
    assert said.exit_code == 0, said.output
    assert "24 spectra are of 12 samples and --groups is not given" in said.stderr
    return folder


def own(folder):
    """The same by the library: spectra, labels, the pipeline and its log probabilities."""
    spectra = read(folder / "spectra")
    known = pd.read_csv(folder / "labels.csv").set_index("file")
    labels = known.loc[[spectrum.metadata["file"] for spectrum in spectra]]
    steps = preset("maldi").set_params(bin__width=50.0).set_output(transform="pandas")
    model = make_pipeline(steps, CGNClassifier(likelihood_power=0.1)).fit(spectra, labels["label"].to_numpy(str))
    return labels, model, model.predict_log_proba(spectra)


def test_the_model_file_takes_raw_spectra(folder, tmp_path):
    labels, model, log_proba = own(folder)
    loaded = load(folder / "model.skops")
    spectra = read(folder / "spectra")
    np.testing.assert_allclose(loaded.predict_log_proba(spectra), log_proba, rtol=1e-9)
    assert list(loaded[-1].feature_names_in_) == list(model[:-1].get_feature_names_out())
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder / "spectra")
    for place in (folder / "spectra", tmp_path / "packed.zip"):
        said = run("predict", folder / "model.skops", place)
        assert said.exit_code == 0, said.stderr
        table = pd.read_csv(io.StringIO(said.stdout))
        assert table["file"].tolist() == labels.index.tolist()
        np.testing.assert_allclose(table[["probability_case", "probability_control"]], np.exp(log_proba), rtol=1e-5)
        assert table["sample"].tolist() == [file.removesuffix(".txt") for file in labels.index]
        assert {"typicality", "unusual"} <= set(table)


def test_predictions_by_sample(folder):
    labels, model, log_proba = own(folder)
    for options, correlation in (((), 1.0), (("--correlation", "0.4"), 0.4)):
        said = run("predict", folder / "model.skops", folder / "spectra", "--labels", folder / "labels.csv",
                   "--by-sample", *options)  # fmt: skip
        assert said.exit_code == 0, said.stderr
        table = pd.read_csv(io.StringIO(said.stdout))
        true = by_sample(log_proba, labels["sample"].to_numpy(str), model[-1].class_log_prior_, correlation=correlation)
        assert table["sample"].tolist() == true.samples.tolist()
        assert (table["spectra"] == 2).all()
        np.testing.assert_allclose(
            table[["probability_case", "probability_control"]], np.exp(true.log_proba), rtol=1e-5
        )
        typicality = pd.Series(model[-1].typicality(model[:-1].transform(read(folder / "spectra"))))
        least = typicality.groupby(labels["sample"].to_numpy(str)).min()
        np.testing.assert_allclose(table["typicality"], np.minimum(2 * least, 1), rtol=1e-5)
        assert (table["unusual"] == (table["typicality"] < 0.01)).all()


def test_evaluation_learns_within_the_folds_and_keeps_samples_together(folder, tmp_path, monkeypatch):
    fitted_on = []
    original = Bin.fit

    def fit(self, X, y=None):
        X = list(X)
        fitted_on.append({spectrum.metadata["sample"] for spectrum in X})
        return original(self, X, y)

    monkeypatch.setattr(Bin, "fit", fit)
    said = run("evaluate", folder / "spectra", "--labels", folder / "labels.csv", "--width", "50", *MODEL,
               "-p", "bayes", "--cv", "3", "-o", tmp_path / "out", "--report", tmp_path / "report.html")  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "24 spectra are of 12 samples and --groups is not given" in said.stderr
    assert "by sample, the log odds of its spectra averaged" in said.stdout
    assert "standard deviation of the folds, by spectrum" in " ".join(said.stdout.split())
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Means over held-out spectra, not over their samples, by log loss" in report
    for words in (
        "<h4>By sample</h4>",
        "Quality of spectra",
        "baseline subtracted (SNIP)",
        "of 24 spectra are outliers",
    ):
        assert words in report
    with (tmp_path / "out" / "rows.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["model"].startswith("naive")]
    samples = pd.read_csv(folder / "labels.csv").sort_values("file")["sample"].tolist()
    tested = [{samples[int(row["sample"])] for row in rows if row["fold"] == fold} for fold in "012"]
    assert sum(map(len, tested)) == 12 == len(set.union(*tested))
    trained = {frozenset(f"{s}_{i}" for s in set(samples) - fold for i in (1, 2)) for fold in tested}
    assert trained <= set(map(frozenset, fitted_on))
    assert "m/z" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_groups_of_the_labels(folder, tmp_path):
    lines = (folder / "labels.csv").read_text().splitlines()
    pairs = [f"{line},person{i // 4}" for i, line in enumerate(lines[1:])]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join([f"{lines[0]},person", *pairs]) + "\n")
    said = run("evaluate", folder / "spectra", "--labels", labels, "--groups", "person", "--width", "50", *MODEL,
               "-p", "bayes", "--cv", "2")  # fmt: skip
    assert said.exit_code == 0, said.stderr
    assert "--groups is not given" not in said.stderr


@pytest.mark.parametrize(
    "written",
    [
        lambda frame: frame.to_csv(index=False, sep=";").encode(),
        lambda frame: frame.assign(label=frame["label"].replace("case", "fällig")).to_csv(index=False).encode("cp1252"),
        lambda frame: (
            frame.rename(columns={"file": "File", "sample": "Sample"}).to_csv(index=False).encode("utf-8-sig")
        ),
        lambda frame: frame.assign(file=r".\spectra" + "\\" + frame["file"]).to_csv(index=False).encode(),
        lambda frame: frame.rename(columns={"label": "State"}).to_csv(index=False, sep="\t").encode(),
    ],
)
def test_tables_of_labels_as_people_have_them(folder, tmp_path, written):
    labels = tmp_path / "labels.csv"
    labels.write_bytes(written(pd.read_csv(folder / "labels.csv")))
    target = ("-t", "state") if b"State" in labels.read_bytes() else ()
    words = ("fit", folder / "spectra", "--labels", labels, "--width", "50", *MODEL, "-p", "bayes", *target)
    said = run(*words, "-o", tmp_path / "model.skops")
    assert said.exit_code == 0, said.stderr
    spectra = read(folder / "spectra")
    expected = load(folder / "model.skops").predict_log_proba(spectra)
    order = slice(None) if b"case" in labels.read_bytes() else slice(None, None, -1)  # control, then fällig
    np.testing.assert_allclose(load(tmp_path / "model.skops").predict_log_proba(spectra)[:, order], expected)


def test_labels_of_bruker_folders(tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("file,label\nsp1\\0_A1\\1\\1SLin\\fid,x\nsp1/0_A1/2/1SLin,y\n")
    assert {name: found.label for name, found in Folder(tmp_path, labels).known.items()} == {
        "sp1/0_A1/1/1SLin": "x",
        "sp1/0_A1/2/1SLin": "y",
    }


def test_wrong_calls(folder, tmp_path):
    spectra, labels, model = folder / "spectra", folder / "labels.csv", folder / "model.skops"
    table = tmp_path / "table.csv"
    table.write_text("a,class\n" + "".join(f"{i},{'xy'[i % 2]}\n" for i in range(8)))
    of_table = tmp_path / "table.skops"
    assert run("fit", table, "-t", "class", *MODEL, "-o", of_table).exit_code == 0
    for code, words, expected in (
        (
            2,
            ("fit", spectra, *MODEL, "-o", tmp_path / "m.skops"),
            "add --labels TABLE, a csv file with the columns file",
        ),
        (2, ("evaluate", spectra, "--labels", labels, "--id", "file"), "--id is about columns of a table"),
        (2, ("evaluate", spectra, "--labels", labels, "-t", "state"), "no column 'state' (--target): it has 'file'"),
        (2, ("evaluate", spectra, *MODEL), "add --labels"),
        (2, ("fit", spectra, "--labels", labels, "-o", tmp_path / "m.stats"), "statistics need a table"),
        (2, ("fit", spectra, "--labels", labels, "--groups", "x", "-o", tmp_path / "m.skops"), "no column 'x'"),
        (2, ("predict", of_table, spectra), "trained on a table"),
        (2, ("predict", model, table), "needs raw spectra"),
        (1, ("fit", spectra, "--labels", table, *MODEL, "-o", tmp_path / "m.skops"), "needs a column file"),
    ):
        said = run(*words)
        assert said.exit_code == code, said.stderr
        assert expected in said.stderr
        assert len(said.stderr.strip().splitlines()) == 1
