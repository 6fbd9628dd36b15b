"""Fits to files that do not fit into memory equal fits to all samples at once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pytest
from click.testing import CliRunner

from cgnlearn import Band, CGNClassifier, fit_stream, load, predict_stream
from cgnlearn.cli.main import main


@pytest.fixture
def rows(rng):
    """Mixed columns, far from 0, sorted so that no file has all levels and classes."""
    n = 3000
    label = np.sort(rng.integers(0, 3, n))
    frame = pd.DataFrame(
        {
            "a": 1e8 + label + rng.normal(size=n),
            "site": pd.Categorical(np.array(["x", "y", "z"])[(label + rng.integers(0, 2, n)) % 3]),
            "b": (rng.normal(size=n) - label).astype(np.float32),
            "kind": rng.integers(0, 2, n),
            "c": rng.integers(0, 100, n),
            "class": np.array(["no", "perhaps", "yes"])[label],
        }
    )
    frame["b"] += (frame["a"] - 1e8).astype(np.float32)
    return frame


def written(frame, folder, form):
    for number, part in enumerate(np.array_split(np.arange(len(frame)), 4)):
        path = folder / f"part{number}.{form}"
        piece = frame.iloc[part]
        if form == "parquet":
            piece.to_parquet(path, row_group_size=200, index=False)
        elif form == "arrow":
            pa.feather.write_feather(pa.Table.from_pandas(piece, preserve_index=False), path)
        else:
            piece.to_csv(path, index=False, sep="\t" if form == "tsv" else ",", float_format="%.17g")
    return folder


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv", "tsv"])
@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan", Band(2)])
def test_streams_batches_and_memory_agree(form, structure, rows, tmp_path):
    X, y = rows.drop(columns="class"), rows["class"]
    told = []
    model = CGNClassifier(structure, categorical_features=["site", "kind"])
    found = fit_stream(model, written(rows, tmp_path, form), "class", batch_rows=150,
                       progress=lambda *done: told.append(done))  # fmt: skip
    whole = CGNClassifier(structure, categorical_features=["site", "kind"]).fit(X, y)
    expected = whole.predict_joint_log_proba(X)
    np.testing.assert_allclose(found.predict_joint_log_proba(X), expected, rtol=1e-10)
    assert found.structure_ == whole.structure_
    assert found.classes_.tolist() == ["no", "perhaps", "yes"]
    assert told[-1] == (3000, 3000)
    assert len(told) >= 20
    assert not hasattr(model, "statistics_")
    if form != "parquet":
        return
    batched = CGNClassifier(structure, categorical_features=["site", "kind"])
    X = X.assign(kind=pd.Categorical(X["kind"]))
    for part in np.array_split(np.arange(len(y)), 100):
        batched.partial_fit(X.iloc[part], y.iloc[part], classes=["no", "perhaps", "yes"])
    np.testing.assert_allclose(batched.predict_joint_log_proba(X), expected, rtol=1e-10)


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan", Band(2)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_great_batches_are_counted_along_columns_and_agree(structure, kind, rng, tmp_path):
    label = rng.integers(0, 3, 40_000)
    X = pd.DataFrame((rng.normal(size=(40_000, 8)) @ rng.normal(size=(8, 8)) + label[:, None] + 1e8).astype(kind))
    X.columns = [f"x{i}" for i in X.columns]
    X["x0"] -= kind(1e8)
    X.assign(y=label).to_parquet(tmp_path / "samples.parquet")
    found = fit_stream(CGNClassifier(structure), tmp_path, "y", batch_rows=30_000)
    whole = CGNClassifier(structure).fit(np.ascontiguousarray(X), label)
    for own, other in zip(found.statistics_.moments, whole.statistics_.moments, strict=True):
        np.testing.assert_array_equal(own.n, other.n)
        np.testing.assert_allclose(own.origin + own.mean, other.origin + other.mean, rtol=1e-15, atol=1e-10)
        np.testing.assert_allclose(own.scatter, other.scatter, rtol=1e-10, atol=1e-10 * np.abs(other.scatter).max())


def test_predictions_come_in_batches(rows, tmp_path):
    folder = written(rows, tmp_path, "parquet")
    model = CGNClassifier("tan").fit(rows.drop(columns="class"), rows["class"])
    for method in ("predict", "predict_log_proba", "score_samples"):
        parts = list(predict_stream(model, folder, method=method, batch_rows=500))
        assert len(parts) > 4
        np.testing.assert_array_equal(np.concatenate(parts), getattr(model, method)(rows.drop(columns="class")))


def test_only_the_needed_columns_are_read(rows, tmp_path):
    """A column that cannot be read does no harm where it is not asked for."""
    rows["when"] = pd.Timestamp("2026-01-01")
    path = tmp_path / "samples.parquet"
    rows.to_parquet(path)
    found = fit_stream(CGNClassifier(), path, "class", columns=["a", "b"])
    assert found.feature_names_in_.tolist() == ["a", "b"]
    dataset = ds.dataset(path)
    np.testing.assert_array_equal(
        fit_stream(CGNClassifier(), dataset, "class", columns=["a", "b"]).predict_proba(rows[["a", "b"]]),
        found.predict_proba(rows[["a", "b"]]),
    )
    with pytest.raises(ValueError, match=r"column 'when' holds timestamp.* convert it to numbers"):
        fit_stream(CGNClassifier(), path, "class")


def test_rows_with_empty_cells_are_counted_or_left_out(rows, tmp_path):
    holes = rows.astype({"a": float, "site": object}).copy()
    holes.loc[5, "a"] = np.nan
    holes.loc[2000, "site"] = None
    kept = holes.dropna()
    for form in ("parquet", "csv"):
        folder = tmp_path / form
        folder.mkdir()
        written(holes, folder, form)
        assert fit_stream(CGNClassifier(), folder, "class").statistics_.missing.sum() == 2
        found = fit_stream(CGNClassifier(), folder, "class", drop_missing=True)
        assert found.statistics_.classes.sum() == len(kept) == 2998
        X = kept.drop(columns="class")
        whole = CGNClassifier(categorical_features=["site"]).fit(X, kept["class"])
        np.testing.assert_allclose(found.predict_proba(X), whole.predict_proba(X), rtol=1e-9)


def test_numbers_as_text_are_levels_and_the_same_ones_in_every_kind_of_file(rows, tmp_path):
    found = []
    for form in ("parquet", "csv"):
        folder = tmp_path / form
        folder.mkdir()
        written(rows.astype({"kind": float}) if form == "parquet" else rows, folder, form)
        found.append(fit_stream(CGNClassifier(), folder, "class", categorical_features=["kind"]).statistics_.schema)
    assert found[0] == found[1]
    assert found[0].levels[3] == ("0", "1")


def test_what_cannot_be_streamed_is_refused_in_one_line(rows, tmp_path):
    folder = tmp_path / "csv"
    folder.mkdir()
    written(rows, folder, "csv")
    for structure, options in ((Band("cv"), {}), ("fwgjan", {}), ("tan", {"likelihood_power": "cv"})):
        with pytest.raises(ValueError, match=r"fit_stream cannot (learn|choose).*: fit once, then pass on"):
            fit_stream(CGNClassifier(structure, **options), "nowhere", "class")
    for wrong, message in (
        ({"target": "klass"}, "no column 'klass'"),
        ({"target": "class", "columns": ["d"]}, "no column 'd'"),
        ({"target": "class", "columns": []}, "no columns besides"),
        ({"target": "a"}, "Unknown label type|more than"),
    ):
        with pytest.raises(ValueError, match=message) as raised:
            fit_stream(CGNClassifier(), folder, **wrong)
        assert "\n" not in str(raised.value)
    with pytest.raises(ValueError, match="has one class only, 'no'"):
        fit_stream(CGNClassifier(), folder / "part0.csv", "class")
    (folder / "part4.csv").write_text("a,site,b,kind,c,class\n1,x,one,1,1,no\n")
    with pytest.raises(ValueError, match=r"part4.csv: column 'b' has 'one' among numbers in line 2: correct it"):
        fit_stream(CGNClassifier(), folder, "class")
    (folder / "part4.parquet").write_bytes(b"no parquet")
    with pytest.raises(ValueError, match="all files must end in the same"):
        fit_stream(CGNClassifier(), folder, "class")
    with pytest.raises(ValueError, match="cannot be read"):
        fit_stream(CGNClassifier(), folder / "part4.parquet", "class")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fit_stream(CGNClassifier(), tmp_path / "absent.csv", "class")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="has no files"):
        fit_stream(CGNClassifier(), tmp_path / "empty", "class")


# ---- the commands


def run(*words):
    found = CliRunner().invoke(main, [str(word) for word in words], prog_name="cgnlearn")
    return found.exit_code, found.stdout, found.stderr


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_commands_read_large_files_in_batches(form, rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = rows.assign(site=rows["site"].astype(str))
    data = f"data.{form}"
    rows.to_parquet(data, row_group_size=500) if form == "parquet" else rows.to_csv(data, index=False)
    made = {}
    for name, memory in (("whole", "1GB"), ("parts", "20kB")):
        options = ("-t", "class", "--categorical", "kind", "-s", "tan", "--memory", memory, "-o", f"{name}.skops")
        code, _, err = run("fit", data, *options)
        assert (code, "3000 samples, 5 features" in err) == (0, True), err
        code, _, err = run("predict", f"{name}.skops", data, "--memory", memory, "-o", f"{name}.csv")
        assert (code, "3000 samples" in err) == (0, True), err
        made[name] = load(f"{name}.skops"), pd.read_csv(f"{name}.csv")
    (whole, expected), (parts, found) = made.values()
    assert parts.statistics_.schema == whole.statistics_.schema
    told = ["typicality", "unusual"]  # of models that have seen samples, not only counted them
    assert found[told].isna().all(axis=None)
    pd.testing.assert_frame_equal(found.drop(columns=told), expected.drop(columns=told), rtol=1e-9)
    code, out, err = run("predict", "parts.skops", data, "--memory", "1kB")
    assert (code, out, "add --output" in err) == (2, "", True)
    code, _, err = run("fit", data, "-t", "class", "-s", "fwgjan", "--memory", "1kB", "-o", "x.skops")
    assert (code, "cannot learn the structure" in err, err.count("\n")) == (1, True, 1)
    code, _, err = run("fit", data, "-t", "class", "--memory", "much", "-o", "x.skops")
    assert (code, "not an amount of memory" in err) == (2, True)


def test_truths_of_a_model_are_found_in_files(tmp_path):
    y = np.arange(40) % 2
    X = pd.DataFrame({"old": y == (np.arange(40) < 30), "x": np.arange(40.0) % 7})
    model = CGNClassifier().fit(X, y)
    X.to_csv(tmp_path / "new.csv", index=False)
    X.to_parquet(tmp_path / "new.parquet")
    for name in ("new.csv", "new.parquet"):
        (found,) = predict_stream(model, tmp_path / name)
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-12)


def test_truths_are_levels_in_every_file(tmp_path):
    y = np.arange(40) % 2
    rows = pd.DataFrame({"old": y == (np.arange(40) < 30), "x": np.arange(40.0) % 7, "ill": y == 1})
    rows["some"] = rows["old"].astype("boolean").where(np.arange(40) % 5 > 0)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_parquet(tmp_path / "rows.parquet")
    X = rows[["old", "x", "some"]]
    whole = CGNClassifier("tan").fit(X, rows["ill"])
    for name in ("rows.csv", "rows.parquet"):
        model = fit_stream(CGNClassifier("tan"), tmp_path / name, "ill")
        assert model.classes_.tolist() == ["False", "True"]
        np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=1e-10)
