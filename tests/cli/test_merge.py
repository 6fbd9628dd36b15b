"""Statistics as files: what is pooled is what the rows in one place would give, and no row can be read from them."""

import io
import json
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from cgnlearn import CGNClassifier, Prior, load, save
from tests.cli.running import outcome, works


@pytest.fixture
def path(tmp_path):
    return tmp_path / "part.stats"


@pytest.fixture
def patients(rng):
    """Two discrete and two continuous columns; far from 0, where raw sums would lose all digits."""
    n = 300
    ill = np.arange(n) % 2
    return pd.DataFrame(
        {
            "sex": pd.Categorical(np.where(rng.random(n) < 0.5, "f", "m")),
            "stage": pd.Categorical(rng.integers(1, 4, n).astype(str)),
            "marker": 1e8 + 2 * ill + rng.normal(size=n),
            "ratio": -1e8 + rng.normal(size=n),
            "diagnosis": np.where(ill, "ill", "healthy"),
        }
    )


def fitted(rows, structure="tan", **options):
    return CGNClassifier(structure, **options).fit(rows.drop(columns="diagnosis"), rows["diagnosis"])


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan"])
def test_merged_files_equal_one_fit(structure, patients, path):
    total = 0
    for part in np.array_split(np.arange(len(patients)), 3):
        save(fitted(patients.iloc[part], structure).statistics_, path)
        total = total + load(path)
    X = patients.drop(columns="diagnosis")
    merged = CGNClassifier.from_statistics(total, structure=structure)
    whole = fitted(patients, structure)
    np.testing.assert_allclose(merged.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
    assert merged.structure_ == whole.structure_


def test_no_rows_values_are_in_a_file_without_samples(patients, path):
    """Means are measured from a point: no row must be given away by it, by empty cells neither."""
    rows = patients[(patients["sex"] == "f") | (patients["diagnosis"] == "ill")]  # leaves a cell empty
    model = fitted(rows, "complete")
    X, y = rows.drop(columns="diagnosis"), rows["diagnosis"]
    batched = CGNClassifier("complete").partial_fit(X[:1], y[:1], classes=y).partial_fit(X[1:], y[1:])
    first = rows[["marker", "ratio"]].iloc[0].to_numpy()
    for kept in (model.statistics_, model, batched):
        save(kept, path, **({} if kept is model.statistics_ else {"with_samples": False}))
        with ZipFile(path) as archive:
            arrays = [np.load(io.BytesIO(archive.read(name))) for name in archive.namelist() if name.endswith(".npy")]
        numbers = np.concatenate([array.ravel() for array in arrays if array.dtype.kind == "f"])
        assert len(numbers) > 10
        assert not np.isclose(numbers[:, None], first, rtol=0, atol=1e-6).any()
        statistics = load(path) if kept is model.statistics_ else load(path).statistics_
        for moments in statistics.moments:
            assert not np.isclose(moments.origin + moments.mean, first, rtol=0, atol=1e-6).any()


def test_small_cells_are_not_exported(patients, path):
    rare = patients.copy()
    rare["stage"] = rare["stage"].cat.add_categories(["4"])
    rare.loc[[0, 2, 4], "stage"] = "4"  # all of them healthy
    statistics = fitted(rare, "naive_bayes").statistics_
    message = r"class 'healthy', column 'stage' = '4' has 3 samples, fewer than 5: merge levels"
    with pytest.raises(ValueError, match=message) as raised:
        save(statistics, path, minimum_cell=5)
    assert "\n" not in str(raised.value)
    assert not path.exists()
    save(statistics, path, minimum_cell=3)  # empty cells reveal nobody's values
    assert load(path).classes.sum() == 300
    joined = {"sex": [], "stage": ["sex"], "marker": ["sex", "stage"]}
    with pytest.raises(ValueError, match=r"class 'healthy', column 'sex' = '.', column 'stage' = '4' has \d"):
        save(fitted(rare, joined).statistics_, path, minimum_cell=3.5)
    with pytest.raises(ValueError, match="class 'healthy' has 150 samples, fewer than 151"):
        save(statistics, path, minimum_cell=151)
    with pytest.raises(ValueError, match="save the model's statistics_"):
        save(fitted(patients), path, minimum_cell=5)


def test_decay_is_exact_with_respect_to_the_weighted_sample(patients):
    X, y = patients.drop(columns="diagnosis"), patients["diagnosis"]
    for structure in ("complete", "tan"):
        model = CGNClassifier(structure)
        weights = np.zeros(len(y))
        for part in np.array_split(np.arange(len(y)), 5):
            model.partial_fit(X.iloc[part], y.iloc[part], classes=["healthy", "ill"], decay=0.7)
            weights = 0.7 * weights
            weights[part] = 1
        whole = CGNClassifier(structure).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
        assert model.statistics_.classes.sum() == pytest.approx(weights.sum())
    for wrong in (0, 1.1, -0.5, "0.5", np.nan):
        with pytest.raises(ValueError, match="decay must be a number above 0"):
            model.partial_fit(X, y, decay=wrong)


# ---- the command


def run(*words):
    code, _, err = outcome(*words)
    return code, err


@pytest.fixture
def parts(patients, tmp_path):
    """Two hospitals' rows, and their statistics."""
    found = []
    for number, name in enumerate("ab"):
        rows = patients.iloc[number::2].assign(diagnosis=patients["diagnosis"].iloc[: len(patients) // 2].to_numpy())
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        code, err = run("fit", tmp_path / f"{name}.csv", "-t", "diagnosis", "--categorical", "stage",
                        "-s", "tan", "-o", tmp_path / f"{name}.stats")  # fmt: skip
        assert code == 0, err
        found.append(rows)
    return pd.concat(found), tmp_path


def test_merge(parts):
    rows, folder = parts
    model = folder / "model.skops"
    code, err = run("merge", folder / "a.stats", folder / "b.stats", "-s", "tan", "-o", model)
    assert (code, "2 files, 300 samples" in err) == (0, True), err
    X = rows.drop(columns="diagnosis")
    expected = fitted(rows).predict_joint_log_proba(X)
    np.testing.assert_allclose(load(model).predict_joint_log_proba(X), expected, rtol=1e-10)
    assert run("merge", folder / "a.stats", folder / "b.stats", "-o", folder / "sum.stats")[0] == 0
    assert run("merge", folder / "sum.stats", "-s", "tan", "-o", model)[0] == 0
    np.testing.assert_allclose(load(model).predict_joint_log_proba(X), expected, rtol=1e-10)


def test_parts_with_more_columns_than_rows_have_all_pairs_counted(rng, tmp_path):
    """Fitted by themselves they would be rotated, and their statistics say nothing of pairs."""
    y = np.arange(40) % 2
    X = pd.DataFrame(rng.normal(size=(40, 310)) + y[:, None] * 0.1).rename(columns="c{}".format)
    for name, part in (("a", slice(0, 24)), ("b", slice(24, 40))):
        X[part].assign(y=y[part]).to_csv(tmp_path / f"{name}.csv", index=False)
        code, err = run("fit", tmp_path / f"{name}.csv", "-t", "y", "-s", "complete", "-o", tmp_path / f"{name}.stats")
        assert code == 0, err
    model = tmp_path / "model.skops"
    code, err = run("merge", tmp_path / "a.stats", tmp_path / "b.stats", "-s", "complete", "-o", model)
    assert code == 0, err
    whole = CGNClassifier("complete").fit(X, y)
    np.testing.assert_allclose(load(model).predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-7, atol=1e-9)


def test_statistics_that_allow_no_model_are_not_written(parts):
    rows, folder = parts
    rows.assign(ratio=rows["marker"]).to_csv(folder / "twice.csv", index=False)
    code, err = run("fit", folder / "twice.csv", "-t", "diagnosis", "--categorical", "stage", "-s", "complete",
                    "-p", "ml", "-o", folder / "twice.stats")  # fmt: skip
    assert (code, err.count("\n")) == (1, 1), err
    assert not (folder / "twice.stats").exists()


@pytest.mark.parametrize("structure", ["naive_bayes", "complete"])
def test_what_has_to_be_chosen_by_rows_is_refused(structure, patients, rng):
    statistics = fitted(patients, structure).statistics_
    for name in ("likelihood_power", "sharing"):
        options = {"structure": structure, name: "cv"}
        with pytest.raises(ValueError, match=f"from_statistics cannot choose the {name}: fit once, then pass on its"):
            CGNClassifier.from_statistics(statistics, **options)
        assert not hasattr(CGNClassifier(**options), "partial_fit")
    rotated = CGNClassifier("complete").fit(rng.normal(size=(20, 310)), np.arange(20) % 2)
    with pytest.raises(ValueError, match="from_statistics cannot add samples to a rotation"):
        CGNClassifier.from_statistics(rotated.statistics_, structure=rotated._learner)


def test_what_cannot_be_merged_is_refused_in_one_line(parts):
    rows, folder = parts
    out = folder / "out.skops"

    def made(name, frame, *words):
        frame.to_csv(folder / "other.csv", index=False)
        options = ("-t", "diagnosis", "--categorical", "stage", *words)
        assert run("fit", folder / "other.csv", *options, "-o", folder / name)[0] == 0

    made("columns.stats", rows.drop(columns="ratio"), "-s", "tan")
    made("levels.stats", rows[rows["stage"] != "3"], "-s", "tan")
    made("classes.stats", rows.replace({"diagnosis": {"ill": "dead"}}), "-s", "tan")
    made("structure.stats", rows, "-s", "complete")
    made("model.skops", rows)
    for name, told, expected in (
        ("columns.stats", "columns differ", 1),
        ("levels.stats", "the levels of column 'stage' differ (1, 2, 3, not 1, 2)", 1),
        ("classes.stats", "classes differ (healthy, ill, not dead, healthy)", 1),
        ("structure.stats", "of different structures", 1),
        ("model.skops", "holds a model, not statistics", 2),
    ):
        code, err = run("merge", folder / "a.stats", folder / name, "-o", out)
        assert (code, err.count("\n")) == (expected, 1), err
        assert told in err
        assert str(folder / name) in err
    code, err = run("merge", folder / "a.stats", "-s", "complete", "-o", out)
    assert (code, "were not counted together" in err) == (1, True)
    code, err = run("merge", folder / "a.stats", "-s", "band", "--k", "cv", "-o", out)
    assert (code, "cannot learn the structure" in err) == (1, True)
    code, err = run("predict", folder / "a.stats", folder / "a.csv")
    assert (code, "error: these are statistics, not a model" in err, err.count("\n")) == (1, True, 1)
    code, err = run("fit", folder / "a.csv", "-t", "diagnosis", "-o", out, "--minimum-cell", 5)
    assert (code, "ends in .stats" in err) == (2, True)
    assert not out.exists()


# ---- published tables


def table_of(rows, path):
    """Table 1 of the samples, as a file."""
    lines = ["class,feature,level,n,mean,sd"]
    for label, of_class in rows.groupby("diagnosis"):
        for name in ("marker", "ratio"):
            values = of_class[name].to_numpy()
            lines.append(f"{label},{name},,{len(values)},{values.mean()!r},{values.std(ddof=1)!r}")
        for name in ("sex", "stage"):
            lines += [f"{label},{name},{level},{n},," for level, n in of_class[name].value_counts().items()]
    path.write_text("\n".join(lines).replace("np.float64(", "").replace(")", "") + "\n")
    return path


def test_a_table_merges_with_statistics(parts):
    rows, folder = parts
    half = len(rows) // 2
    table = table_of(rows.iloc[half:], folder / "table1.csv")
    model = folder / "model.skops"
    code, err = run("merge", table, folder / "a.stats", "-o", model)
    assert (code, "2 files, 300 samples" in err) == (0, True), err
    X = rows.drop(columns="diagnosis")
    expected = fitted(rows, "naive_bayes").predict_log_proba(X)
    np.testing.assert_allclose(load(model).predict_log_proba(X), expected, rtol=1e-6, atol=1e-6)
    code, err = run("predict", model, folder / "b.csv", "-o", folder / "predictions.csv")
    assert code == 0, err


def test_a_table_alone_is_a_model_that_predicts(parts):
    rows, folder = parts
    model = folder / "model.skops"
    assert run("merge", table_of(rows, folder / "table1.csv"), "-o", model)[0] == 0
    code, err = run("predict", model, folder / "b.csv", "-o", folder / "predictions.csv")
    assert code == 0, err
    assert len(pd.read_csv(folder / "predictions.csv")) == 150


def test_tables_that_cannot_be_merged_are_refused_in_one_line(parts):
    rows, folder = parts
    table = table_of(rows, folder / "table1.csv")
    for words, told in (
        ((table, "-s", "tan"), "a table of means, which is for naive Bayes"),
        (
            (table_of(rows.replace({"diagnosis": {"ill": "dead"}}), folder / "t2.csv"), folder / "a.stats"),
            "include 'dead'",
        ),
    ):
        code, err = run("merge", *words, "-o", folder / "out.skops")
        assert (code != 0, err.count("\n"), told in err) == (True, 1, True), err


# ---- priors from files


def test_ranges_from_a_file(parts):
    rows, folder = parts
    (folder / "prior.csv").write_text(
        "class,feature,low,high,worth\nhealthy,marker,99999998,100000002,20\nill,marker,99999990,99999994,20\n"
    )
    options = ("-t", "diagnosis", "--categorical", "stage", "-s", "naive_bayes", "--prior", folder / "prior.csv")
    model = folder / "model.skops"
    assert run("fit", folder / "a.csv", *options, "-o", model)[0] == 0
    found = works("inspect", model)
    assert "marker in ill: expected 1e+08" in found
    assert "prior and data conflict strongly" in found
    plain = json.loads(works("inspect", model, "--json"))
    assert [(each["label"], each["feature"]) for each in plain["prior"]] == [("ill", "marker"), ("healthy", "marker")]
    prior = Prior.from_ranges({"healthy": {"marker": (99999998, 100000002)}, "ill": {"marker": (99999990, 99999994)}})
    X, y = rows.iloc[:150].drop(columns="diagnosis"), rows["diagnosis"].iloc[:150]
    expected = CGNClassifier(prior=prior).fit(X, y).predict_joint_log_proba(X)
    np.testing.assert_allclose(load(model).predict_joint_log_proba(X), expected, rtol=1e-10)
    for more, told in (
        (("--prior-location", "cell"), "--prior gives the means"),
        (("--prior", folder / "b.csv"), "there is no column 'class'"),
    ):
        code, err = run("fit", folder / "a.csv", *options, *more, "-o", model)
        assert (code, err.count("\n"), told in err) == (2, 1, True), err


@pytest.mark.filterwarnings("default")
def test_ranges_that_held_out_rows_speak_against_are_set_aside(parts):
    _, folder = parts
    (folder / "prior.csv").write_text(
        "class,feature,low,high,worth\nhealthy,marker,100000000,100000004,900\nill,marker,99999998,100000002,900\n"
    )
    options = ("-t", "diagnosis", "--categorical", "stage", "-s", "naive_bayes", "--prior", folder / "prior.csv")
    code, err = run("fit", folder / "a.csv", *options, "-o", folder / "model.skops")
    assert (code, "the reference ranges are set aside" in err) == (0, True), err
    assert "`cgnlearn inspect` says which conflict\n" in err
    found = works("inspect", folder / "model.skops")
    assert "2 ranges, set aside in the fit" in found
    plain = works("inspect", folder / "model.skops", "--json")
    assert json.loads(plain)["prior_is_set_aside"] is True
