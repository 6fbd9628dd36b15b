"""Fits on dask equal fits in memory: in threads, and on a cluster of two processes, one of which may be killed."""

import os
import time
from threading import Thread

import numpy as np
import pandas as pd
import pytest

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

import dask  # noqa: E402

from cgnlearn import (  # noqa: E402
    Band,
    CGNClassifier,
    CGNClassifierCV,
    SelectiveNaiveBayes,
    TANAverage,
    fit_dask,
    predict_dask,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of dask's own making


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 2000
    label = np.sort(rng.integers(0, 3, n))  # no partition has all classes
    frame = pd.DataFrame(
        {
            "a": 1e8 + label + rng.normal(size=n),
            "site": pd.Categorical(np.array(["x", "y", "z"])[(label + rng.integers(0, 2, n)) % 3]),
            "b": rng.normal(size=n) - label,
            "kind": np.where(rng.random(n) < 0.5, "k", "l"),
        }
    )
    frame["b"] += frame["a"] - 1e8
    return frame, pd.Series(np.array(["no", "perhaps", "yes"])[label])


def assert_equal_fits(found, whole, X):
    np.testing.assert_allclose(found.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), rtol=1e-10)
    assert found.structure_ == whole.structure_


@pytest.mark.parametrize("structure", ["naive_bayes", "complete", "tan", Band(2), TANAverage(), SelectiveNaiveBayes()])
def test_frames_with_categoricals(structure, rows):
    X, y = rows
    model = CGNClassifier(structure, categorical_features=["site", "kind"])
    cut = dd.from_pandas(X, npartitions=11)
    with dask.config.set(scheduler="threads"):
        found = fit_dask(model, cut, dd.from_pandas(y, npartitions=11))
        unknown = cut.assign(site=cut["site"].cat.as_unknown())
        assert_equal_fits(fit_dask(model, unknown, dd.from_pandas(y, npartitions=11)), found, X)
    assert_equal_fits(found, CGNClassifier(structure, categorical_features=["site", "kind"]).fit(X, y), X)
    assert not hasattr(model, "statistics_")


def test_arrays_weights_and_partitions_without_rows(rows):
    X, y = rows
    numbers = np.column_stack([X[["a", "b"]], X["site"].cat.codes])
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    weights[:200] = 0  # the first partitions count for nothing
    parts = [
        da.from_array(part, chunks=(100, 2) if part.ndim == 2 else 100) for part in (numbers, y.to_numpy(), weights)
    ]
    model = CGNClassifier("complete", categorical_features=[2])
    with dask.config.set(scheduler="synchronous"):
        found = fit_dask(model, *parts)
        whole = CGNClassifier("complete", categorical_features=[2]).fit(numbers, y.to_numpy(), weights)
        assert_equal_fits(found, whole, numbers)
        for method in ("predict", "predict_log_proba", "score_samples"):
            lazy = predict_dask(found, parts[0], method=method)
            assert isinstance(lazy, da.Array)
            np.testing.assert_array_equal(lazy.compute(), getattr(found, method)(numbers))


def test_predictions_are_lazy_and_keep_the_index(rows):
    X, y = rows
    model = CGNClassifier({"a": [], "b": ["a"], "site": []}).fit(X[["a", "b", "site"]], y)
    X = X[["a", "b", "site"]].set_axis(np.arange(len(X)) * 2)
    cut = dd.from_pandas(X, npartitions=5)
    lazy = predict_dask(model, cut[cut["a"] > 1e8 - 100])
    assert isinstance(lazy, dd.DataFrame)
    expected = pd.DataFrame(model.predict_proba(X), index=X.index, columns=["no", "perhaps", "yes"])
    with dask.config.set(scheduler="threads"):
        pd.testing.assert_frame_equal(lazy.compute(), expected)
        some = cut.map_partitions(lambda part: part[part.index < 100])  # most partitions are empty
        assert predict_dask(model, some, method="predict").compute().tolist() == model.predict(X[:50]).tolist()
    with pytest.raises(ValueError, match="method must be one of"):
        predict_dask(model, cut, method="contributions")


def test_what_cannot_be_fitted_is_refused_in_one_line(rows):
    X, y = rows
    cut, labels = dd.from_pandas(X[["a", "b"]], npartitions=3), dd.from_pandas(y, npartitions=3)
    for structure in (Band("cv"), "fwgjan"):
        with pytest.raises(ValueError, match=r"fit_dask cannot learn the structure .*: fit once"):
            fit_dask(CGNClassifier(structure), cut, labels)
    with pytest.raises(
        TypeError, match=r"fit_dask cannot fit a CGNClassifierCV, which needs samples: .* a random sample"
    ):
        fit_dask(CGNClassifierCV(), cut, labels)
    with pytest.raises(ValueError, match=r"different partitions \(3, 2\): rechunk or repartition"):
        fit_dask(CGNClassifier(), cut, dd.from_pandas(y, npartitions=2))
    with pytest.raises(TypeError, match="needs dask arrays or dask data frames, not DataFrame"):
        fit_dask(CGNClassifier(), X, y)
    with dask.config.set(scheduler="synchronous"):
        with pytest.raises(ValueError, match="one class only, 'a'"):
            fit_dask(CGNClassifier(), cut, dd.from_pandas(pd.Series(["a"] * len(y)), npartitions=3))
        with pytest.raises(ValueError, match="y has missing values"):
            fit_dask(CGNClassifier(), cut, dd.from_pandas(y.where(y != "no").astype(object), npartitions=3))


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_on_two_processes(rows, client):
    X, y = rows
    cut, labels = dd.from_pandas(X, npartitions=12), dd.from_pandas(y, npartitions=12)
    for structure in ("complete", "tan"):
        options = {"categorical_features": ["site", "kind"]}
        found = fit_dask(CGNClassifier(structure, **options), cut, labels)
        whole = CGNClassifier(structure, **options).fit(X, y)
        assert_equal_fits(found, whole, X)
    np.testing.assert_array_equal(predict_dask(found, cut, method="predict").compute(), found.predict(X))


def slow(part):
    time.sleep(0.2)
    return part


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(rows, client):
    X, y = rows
    cut, labels = dd.from_pandas(X[["a", "b"]], npartitions=20), dd.from_pandas(y, npartitions=20)
    slowly = cut.map_partitions(slow, meta=cut._meta)
    pids = client.run(os.getpid)
    victim = next(iter(pids.values()))
    before = set(pids)

    def kill():
        time.sleep(1.0)
        os.kill(victim, 9)

    killer = Thread(target=kill)
    killer.start()
    found = fit_dask(CGNClassifier("complete"), slowly, labels)
    killer.join()
    assert_equal_fits(found, CGNClassifier("complete").fit(X[["a", "b"]], y), X[["a", "b"]])
    assert set(client.run(os.getpid)) != before


def test_text_and_truths_are_discrete_by_their_dtype(rows):
    X, y = rows
    X = X.assign(old=X["b"] > 0)
    with dask.config.set(scheduler="threads"):
        found = fit_dask(CGNClassifier("tan"), dd.from_pandas(X, npartitions=7), dd.from_pandas(y, npartitions=7))
    assert_equal_fits(found, CGNClassifier("tan").fit(X, y), X)
    assert found.statistics_.schema.levels == (None, ("x", "y", "z"), None, ("k", "l"), (False, True))
