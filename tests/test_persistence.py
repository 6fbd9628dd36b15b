"""Model files: exact round trips, and nothing but models let in."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, StandardScaler

import cgnlearn
from cgnlearn import TAN, Band, Box, CGNClassifier, GreedyJan, Jan, Prior, Structure
from cgnlearn.persistence import FORMAT, HEADER, ModelFileError, _packed, load, read_header, save

STRUCTURES = {
    "naive_bayes": "naive_bayes",
    "complete": "complete",
    "tan": "tan",
    "mutual information": TAN("mutual_information"),
    "band": Band(3),
    "box": Box(2),
    "jan": Jan([[0, 2], [3, 4]]),
    "mapping": {2: [], 3: [2], 0: []},
    "bwgjan": "bwgjan",
    "search": GreedyJan("forward", cv=3),
    "chosen band": Band(k="cv", k_max=3, cv=2),
    "structure": Structure.from_parents({3: [4], 4: []}),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.fixture
def saved(path, mixed):
    X, y, _ = mixed
    model = CGNClassifier("tan", categorical_features=[0, 1]).fit(X, y)
    save(model, path)
    return model, path


@pytest.mark.parametrize("structure", STRUCTURES.values(), ids=STRUCTURES)
@pytest.mark.parametrize("options", [{}, {"estimation": "ml"}, {"sharing": 0.5, "prior": Prior(location="paper")}])
def test_round_trip_is_exact(structure, options, path, mixed):
    X, y, new = mixed
    discrete = [] if "estimation" in options else [0, 1]  # maximum likelihood needs samples in every cell
    model = CGNClassifier(structure, categorical_features=discrete, **options).fit(X, y)
    save(model, path)
    back = load(path)
    np.testing.assert_array_equal(back.predict_joint_log_proba(new), model.predict_joint_log_proba(new))
    np.testing.assert_array_equal(back.contributions(new), model.contributions(new))
    assert back.structure_ == model.structure_
    assert repr(back) == repr(model)
    if hasattr(model, "search_path_"):
        assert [state.score for state in back.search_path_] == [state.score for state in model.search_path_]
    save(back, path)
    np.testing.assert_array_equal(load(path).predict_proba(new), model.predict_proba(new))


def test_a_loaded_model_goes_on_learning(path, mixed):
    X, y, new = mixed
    save(CGNClassifier("complete").fit(X[:50], y[:50]), path)
    on = load(path).partial_fit(X[50:], y[50:])
    np.testing.assert_allclose(on.predict_log_proba(new), CGNClassifier("complete").fit(X, y).predict_log_proba(new))


def test_frames_pipelines_and_labels_of_all_kinds(path, mixed):
    X, y, _ = mixed
    frame = pd.DataFrame(X[:, 2:], columns=["a", "b", "näme"])
    frame["level"] = pd.Categorical(X[:, 0].astype(int).astype(str))
    for labels in (y, y.astype(str), y > 0, pd.Series(y.astype(str)).astype(object), y.astype(float)):
        model = CGNClassifier({"level": [], "a": ["level"], "näme": ["a"]}).fit(frame, labels)
        save(model, path)
        back = load(path)
        np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
        assert back.classes_.dtype == model.classes_.dtype
        np.testing.assert_array_equal(back.sample(5, 0)[0], model.sample(5, 0)[0])
    pipeline = make_pipeline(StandardScaler(), PowerTransformer(), CGNClassifier(Band(2))).fit(X, y)
    save(pipeline, path)
    np.testing.assert_array_equal(load(path).predict_proba(X), pipeline.predict_proba(X))


def test_header(saved):
    model, path = saved
    header = read_header(path)
    assert header["versions"]["cgnlearn"] == cgnlearn.__version__
    assert header["classes"] == ["0", "1", "2"]
    assert (header["n_features"], header["feature_names"], header["training_rows"]) == (5, None, 90)
    assert header["training_sha256"] == cgnlearn.persistence.training_checksum(model)


def test_the_checksum_tells_training_data_apart(mixed):
    X, y, _ = mixed
    of = lambda rows: cgnlearn.persistence.training_checksum(CGNClassifier().fit(X[rows], y[rows]))  # noqa: E731
    assert of(slice(None)) == of(slice(None)) != of(slice(1, None))


def test_what_is_no_fitted_model_is_not_saved(path, mixed):
    X, y, _ = mixed
    with pytest.raises(TypeError, match="not StandardScaler"):
        save(StandardScaler().fit(X), path)
    with pytest.raises(ValueError, match="not fitted"):
        save(CGNClassifier(), path)
    with pytest.raises(ModelFileError, match=r"contains .*harmless.*replace it"):
        save(make_pipeline(FunctionTransformer(harmless), CGNClassifier()).fit(X, y), path)
    assert not path.exists()


def harmless(X):
    return X


class Foreign:
    """What a hostile file might name; it must never be built."""

    built = False

    def __setstate__(self, state):
        type(self).built = True


def rewritten(path, change=None, header=None, drop=None):
    """The file with other entries, its checksums made to agree: damage by intent, not by accident."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    if change:
        entries = {name: change(name, content) for name, content in entries.items() if name != drop}
    told = json.loads(entries.pop(HEADER))
    told["entries"] = {name: hashlib.sha256(content).hexdigest() for name, content in entries.items()}
    told |= header or {}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.writestr(HEADER, json.dumps(told))


def test_foreign_types_are_refused_and_not_built(saved):
    model, path = saved
    model.structure = Foreign()
    model.structure.content = 1
    path.write_bytes(_packed(skops.io.dumps(model), read_header(path), zipfile.ZIP_STORED))
    with pytest.raises(ModelFileError, match=r"names the type .*Foreign") as raised:
        load(path)
    assert "\n" not in str(raised.value)
    assert not Foreign.built


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "subprocess.Popen", "cgnlearn.persistence.save"])
@pytest.mark.parametrize(
    "loader", ["ObjectNode", "TypeNode", "FunctionNode", "ConstructorFromReduceNode", "PartialNode"]
)
def test_functions_cannot_be_smuggled_in(saved, name, loader):
    _, path = saved
    module, _, feature = name.rpartition(".")

    def change(entry, content):
        if entry != "model.json":
            return content
        schema = json.loads(content)
        inner = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '["x"]'}
        parts = dict.fromkeys(("func", "args", "kwds", "namespace"), inner)
        schema["content"]["content"]["structure"] = {
            "__class__": feature, "__module__": module, "__loader__": loader, "__id__": 1,
            "content": parts if loader == "PartialNode" else inner,
        }  # fmt: skip
        return json.dumps(schema).encode()

    rewritten(path, change)
    with pytest.raises(ModelFileError) as raised:
        load(path)
    assert "\n" not in str(raised.value)


def test_newer_versions_are_refused(saved):
    _, path = saved
    for header in ({"versions": {"cgnlearn": "1.2.0"}}, {"format": FORMAT + 1}):
        rewritten(path, header=header)
        with pytest.raises(ModelFileError, match=r"newer than this one .* upgrade"):
            load(path)


def test_another_model_under_the_same_header_is_refused(saved, mixed, tmp_path):
    _, path = saved
    X, y, _ = mixed
    other = tmp_path / "other.skops"
    save(CGNClassifier("tan").fit(X, y), other)
    told = {name: read_header(path)[name] for name in ("training_sha256",)}
    rewritten(other, header=told)
    with pytest.raises(ModelFileError, match="another model"):
        load(other)


def test_what_is_no_model_file_is_refused(tmp_path):
    for name, content in (("empty", b""), ("text", b"hello"), ("zip", b"PK\x05\x06" + bytes(18))):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError, match="damaged or not a model file"):
            load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def test_200_damaged_files_are_refused_or_load_equal(saved, mixed, tmp_path):
    model, path = saved
    _, _, new = mixed
    whole = path.read_bytes()
    expected = model.predict_joint_log_proba(new)
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged.skops"
    errors = []
    for number in range(200):
        damaged.write_bytes(_damaged(whole, number % 5, rng))
        try:
            found = load(damaged)
        except ModelFileError as error:
            errors.append(str(error))
        else:
            np.testing.assert_array_equal(found.predict_joint_log_proba(new), expected)
    assert len(errors) > 150
    assert not any("\n" in error for error in errors)


def _damaged(whole, kind, rng):
    content = bytearray(whole)
    if kind == 0:  # a flipped byte
        content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    elif kind == 1:  # many
        for place in rng.integers(len(content), size=20):
            content[place] = rng.integers(256)
    elif kind == 2:  # cut
        del content[rng.integers(len(content)) :]
    elif kind == 3:  # a piece taken out
        start = rng.integers(len(content) - 50)
        del content[start : start + rng.integers(1, 50)]
    else:  # an entry renamed, by a tool that keeps the archive whole
        buffer = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(buffer, "w") as new:
            names = old.namelist()
            chosen = names[rng.integers(len(names))]
            for name in names:
                new.writestr(f"{name}x" if name == chosen else name, old.read(name))
        return buffer.getvalue()
    return bytes(content)


def test_older_files_are_refused(saved):
    _, path = saved
    rewritten(path, header={"format": FORMAT - 1}, change=lambda _, content: content, drop="model.json")
    with pytest.raises(ModelFileError, match=r"written by an older cgnlearn: fit the model again"):
        load(path)


def test_entries_that_nothing_refers_to_and_bombs_are_refused_before_they_are_read(saved, monkeypatch):
    _, path = saved
    good = path.read_bytes()
    with zipfile.ZipFile(path, "a", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.npy", bytes(100))
    rewritten(path)
    monkeypatch.setattr(cgnlearn.persistence, "_sha256_of", lambda *_: pytest.fail("an entry was read"))
    with pytest.raises(ModelFileError, match=r"nothing refers to its entry 'more\.npy'"):
        load(path)
    path.write_bytes(good)
    with zipfile.ZipFile(path) as archive:
        array = next(name for name in archive.namelist() if name.endswith(".npy"))
        others = {name: archive.read(name) for name in archive.namelist() if name != array}
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in others.items():
            archive.writestr(name, content)
        archive.writestr(array, bytes(100 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(ModelFileError, match=r"unpacks to 100 MB, more than 64 MB"):
        load(path)
    path.write_bytes(good)
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_LZMA) as archive:
        for name, content in others.items():
            archive.writestr(name, content)
    with pytest.raises(ModelFileError, match="unknown compression"):
        load(path)


def test_a_model_of_mostly_zeros_is_not_packed_so_tightly_that_it_would_be_refused(path, mixed, monkeypatch):
    X, y, new = mixed
    monkeypatch.setattr(cgnlearn.persistence, "SMALL_BYTES", 0)
    monkeypatch.setattr(cgnlearn.persistence, "MOST_TIMES", 1.5)
    model = CGNClassifier("complete", categorical_features=[0, 1]).fit(X, y)
    save(model, path)
    np.testing.assert_array_equal(load(path).predict_proba(new), model.predict_proba(new))
