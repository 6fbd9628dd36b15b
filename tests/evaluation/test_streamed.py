"""Cross-validation of files in parts equals that of all samples in memory with the same folds."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, log_loss

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, SelectiveNaiveBayes, TANAverage, evaluate_stream, fit_stream
from cgnlearn.cli.main import main
from cgnlearn.data.splits import hashed
from cgnlearn.evaluation.metrics import CALIBRATION_ERROR


@pytest.fixture
def rows(rng):
    n = 1200
    label = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "a": 1e8 + label + rng.normal(size=n),
            "site": np.array(["x", "y", "z"])[(label + rng.choice([0, 0, 1, 2], n)) % 3],
            "b": rng.normal(size=n) - label,
            "person": rng.integers(0, 90, n),
            "class": np.array(["no", "perhaps", "yes"])[label],
        }
    )
    frame["b"] += frame["a"] - 1e8
    return frame


@pytest.fixture
def path(rows, tmp_path):
    rows.to_parquet(tmp_path / "samples.parquet", row_group_size=170, index=False)
    return tmp_path / "samples.parquet"


def in_memory(model, rows, folds):
    """The metrics of a model, fitted and asked fold by fold."""
    X = rows[["a", "site", "b"]].astype({"site": "category"})
    y = rows["class"].to_numpy()
    classes = np.unique(y)
    by_fold, all_said, all_true = [], [], []
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        proba = model.fit(X[train], y[train]).predict_proba(X[test])
        true = np.searchsorted(classes, y[test])
        brier = ((proba - np.eye(3)[true]) ** 2).sum(axis=1).mean()
        by_fold.append((accuracy_score(true, proba.argmax(axis=1)), log_loss(true, proba, labels=[0, 1, 2]), brier))
        all_said.append(np.log(proba))
        all_true.append(true)
    return np.array(by_fold), CALIBRATION_ERROR(np.concatenate(all_said), np.concatenate(all_true))


@pytest.mark.parametrize("estimation", ["ml", "bayes"])
@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan", Band(2)])
def test_parts_equal_memory(structure, estimation, rows, path):
    model = CGNClassifier(structure, estimation=estimation)
    told = []
    found = evaluate_stream({"m": model}, path, "class", columns=["a", "site", "b"], n_folds=4, seed=3,
                            batch_rows=100, progress=lambda *done: told.append(done))  # fmt: skip
    folds = hashed(np.arange(len(rows)), 3) % np.uint64(4)
    by_fold, calibration = in_memory(CGNClassifier(structure, estimation=estimation), rows, folds)
    [summary, frequencies] = found.summaries
    sizes = np.bincount(folds.astype(int))
    for column, name in enumerate(("accuracy", "log_loss", "brier")):
        assert summary.metrics[name].mean == pytest.approx(np.average(by_fold[:, column], weights=sizes), abs=1e-10)
        assert summary.metrics[name].sd == pytest.approx(by_fold[:, column].std(ddof=1), abs=1e-10)
    assert summary.metrics["calibration_error"] == pytest.approx((calibration, None), abs=1e-10)
    assert (summary.n_folds, summary.n_without) == (4, 0)
    assert found.counts == rows["class"].value_counts().to_dict()
    assert frequencies.model == "class frequencies"
    expected = []
    for fold in range(4):
        shares = rows["class"][folds != fold].value_counts(normalize=True)
        expected.append(np.log(rows["class"][folds == fold].map(shares)).mean())
    assert frequencies.metrics["log_loss"].mean == pytest.approx(-np.average(expected, weights=sizes), abs=1e-12)
    assert told[-1] == (2400, 2400)
    assert not hasattr(model, "statistics_")


def test_averages_and_repetitions(rows, path):
    models = {"selective": CGNClassifier(SelectiveNaiveBayes()), "forests": CGNClassifier(TANAverage())}
    found = evaluate_stream(models, path, "class", columns=["a", "b"], n_folds=3, n_repeats=2)
    assert [summary.n_folds for summary in found.summaries] == [6, 6, 6]
    assert found.summaries[0].metrics["calibration_error"].sd is not None
    assert found.summaries[1].metrics["log_loss"].mean < found.summaries[2].metrics["log_loss"].mean - 0.1


class Watching(ClassifierMixin, BaseEstimator):
    """Remembers which groups it was fitted to."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, groups=None):
        self.seen.append(set(groups.tolist()))
        self.model_ = CGNClassifier().fit(X, y)
        return self

    def predict_log_proba(self, X):
        return self.model_.predict_log_proba(X)


def test_groups_stay_together(rows, path):
    Watching.seen.clear()
    found = evaluate_stream({"w": Watching()}, path, "class", groups="person", n_folds=3)
    everyone = set().union(*Watching.seen)
    assert len(everyone) == 90
    assert sum(len(everyone - trained) for trained in Watching.seen) == 90  # each is left out once, and wholly
    assert sum(found.counts.values()) == len(rows)


def test_what_needs_rows_is_fitted_to_a_sample(rows, path):
    models = {"powered": CGNClassifier(likelihood_power="cv"), "naive": CGNClassifier()}
    found = evaluate_stream(models, path, "class", columns=["a", "site", "b"], n_folds=2, sample_rows=300)
    assert 100 < found.sampled["powered"] < 200
    powered, naive, nothing = (summary.metrics["log_loss"].mean for summary in found.summaries)
    assert powered < nothing - 0.2
    assert naive < nothing
    with pytest.raises(ValueError, match=r"sample, which has no sample of class no: draw a larger"):
        evaluate_stream(models, path, "class", n_folds=2, sample_rows=1)
    with pytest.warns(UserWarning, match=r"fitted to a random sample of \d+ of 1,200 rows"):
        fitted = fit_stream(CGNClassifierCV(), path, "class", columns=["a", "site", "b"], sample_rows=300)
    assert fitted.classes_.tolist() == ["no", "perhaps", "yes"]
    X = rows[["a", "site", "b"]].astype({"site": "category"})
    assert fitted.score(X, rows["class"]) > 0.55


def test_maximum_likelihood_that_does_not_exist_is_told_of(tmp_path, rng):
    frame = pd.DataFrame(rng.normal(size=(12, 6))).rename(columns=str).assign(y=["a", "b"] * 6)
    frame.to_csv(tmp_path / "few.csv", index=False)
    models = {way: CGNClassifier("complete", estimation=way) for way in ("ml", "bayes")}
    ml, bayes, _ = evaluate_stream(models, tmp_path / "few.csv", "y", n_folds=3).summaries
    assert (ml.n_without, ml.metrics) == (ml.n_folds, {})
    assert bayes.n_without == 0


def test_hostile_input_is_refused_in_one_line(rows, path, tmp_path):
    model = {"m": CGNClassifier()}
    with pytest.raises(ValueError, match="at least 2 folds"):
        evaluate_stream(model, path, "class", n_folds=1)
    rows.assign(person="only").to_parquet(tmp_path / "one.parquet")
    with pytest.raises(ValueError, match=r"has all samples of class no"):
        evaluate_stream(model, tmp_path / "one.parquet", "class", groups="person")
    rows.assign(person=rows["person"].astype(str).where(rows.index > 3)).to_parquet(tmp_path / "incomplete.parquet")
    with pytest.raises(ValueError, match="column 'person' has no value in row 1"):
        evaluate_stream(model, tmp_path / "incomplete.parquet", "class", groups="person")
    mixed = {"a": CGNClassifier(), "b": CGNClassifier(categorical_features=["person"])}
    with pytest.raises(ValueError, match="the same categorical_features"):
        evaluate_stream(mixed, path, "class")


def run(*words):
    found = CliRunner().invoke(main, [str(word) for word in words], prog_name="cgnlearn")
    return found.exit_code, found.stdout, found.stderr


def test_the_command_evaluates_in_batches(rows, path, tmp_path):
    asked = ("evaluate", path, "-t", "class", "--groups", "person", "--cv", "3x1", "--memory", "10kB")
    code, out, err = run(*asked, "-s", "tan", "-o", tmp_path / "out", "--report", tmp_path / "r.html", "--json")
    assert (code, "no report is written" in err, "summary.csv only" in err) == (0, True, True), err
    told = json.loads(out)
    assert [model["model"] for model in told["models"]] == ["tan ml", "tan bayes", "class frequencies"]
    assert told["data"]["classes"] == rows["class"].value_counts().sort_index().to_dict()
    assert told["data"]["features"] == ["a", "site", "b"]
    assert (tmp_path / "out" / "summary.csv").read_text().count("\n") == 4
    assert not (tmp_path / "r.html").exists()
    code, _, err = run(*asked, "--positive", "yes")
    assert (code, "--positive needs all rows" in err, err.count("\n")) == (2, True, 1)


@pytest.mark.slow
def test_the_command_samples_for_the_mixture(rows, path, monkeypatch):
    monkeypatch.setattr("cgnlearn.cli.models.tuned", lambda *settings: CGNClassifier(likelihood_power="cv"))
    code, out, err = run("evaluate", path, "-t", "class", "--cv", "2x1", "--memory", "10kB", "--ignore", "person")
    assert code == 0, err
    assert "mixture cannot be fitted in batches: each fold fitted it to a random sample of" in err
    assert "random forest" in out
