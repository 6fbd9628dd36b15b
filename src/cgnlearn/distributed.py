"""Dask arrays and data frames: partitions are counted on their workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cgnlearn.data.columns import CATEGORICAL, content
from cgnlearn.data.frames import chosen_columns, is_missing
from cgnlearn.data.labels import check_classes
from cgnlearn.data.levels import Levels, sorted_levels
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import read, schema_of
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.networks.families import Families
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, collect

FAN_IN = 8  # statistics added by one task
BY_CLASS = ("predict_proba", "predict_log_proba", "predict_joint_log_proba")


def fit_dask(model: CGNClassifier, X: Any, y: Any, sample_weight: Any = None) -> CGNClassifier:
    """Fit a copy of a classifier to a dask array or data frame; the result equals a fit to all samples in memory.

    Each worker computes statistics of its partitions, and only statistics are sent and added. A first pass finds the
    classes, and the levels that no dtype declares. It runs on dask's scheduler: threads, processes, or the cluster of
    the current ``distributed.Client``.

    Parameters
    ----------
    model : CGNClassifier
        Its structure must be computable from statistics: no search, nothing chosen by ``"cv"``.
    X : dask array or dask data frame (samples, features)
    y : dask array or dask series (samples,)
        With the same partitions as X.
    sample_weight : dask array or dask series (samples,), optional

    Returns
    -------
    CGNClassifier
        The fitted copy, in memory; ``model`` is not changed.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, fit_dask, predict_dask
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
    >>> model = fit_dask(CGNClassifier("tan"), X, y)
    >>> predict_dask(model, X, method="predict")[:2].compute()
    array([0, 0])
    """
    dask = _dask()
    if not isinstance(model, CGNClassifier):
        raise TypeError(
            f"fit_dask cannot fit a {type(model).__name__}, which needs samples: fit it to a random sample, such as "
            "X.sample(frac=0.01).compute()"
        )
    learner = counting_learner(model, "fit_dask")
    parts = _partitions(X, y, sample_weight)
    # Made-up rows with the names and dtypes, so that nothing is computed.
    example = np.zeros((1, X.shape[1]), X.dtype) if hasattr(X, "chunks") else X._meta_nonempty
    undeclared = _undeclared(X, example, model.categorical_features)
    found = _reduced([dask.delayed(_distinct)(*part, undeclared) for part in parts], _united).compute()
    if found is None:
        raise ValueError("all sample weights are zero")
    schema = _schema(example, found, undeclared, model.categorical_features)
    shared = dask.delayed((schema, learner.families(schema)))
    statistics = _reduced([dask.delayed(_counted)(*part, shared) for part in parts], _added).compute()
    return type(model).from_statistics(statistics, **model.get_params(deep=False))


def predict_dask(model: Any, X: Any, *, method: str = "predict_proba") -> Any:
    """Predict the samples of a dask array or data frame lazily.

    Parameters
    ----------
    model : CGNClassifier or Pipeline
    X : dask array or dask data frame
    method : str
        ``"predict"``, ``"predict_proba"``, ``"predict_log_proba"``, ``"predict_joint_log_proba"`` or
        ``"score_samples"``.

    Returns
    -------
    dask array, or dask data frame or series, as X is
        With a column for each class if the method has one.

    Examples
    --------
    >>> import dask.array as da
    >>> from cgnlearn import CGNClassifier
    >>> model = CGNClassifier().fit([[0.0], [1.0], [4.0], [6.0]], list("aabb"))
    >>> predict_dask(model, da.from_array([[0.5], [5.0]], chunks=1), method="predict").compute()
    array(['a', 'b'], dtype='<U1')
    """
    import dask.array as da

    check_is_fitted(model)
    _dask()
    if method not in (*BY_CLASS, "predict", "score_samples"):
        raise ValueError(f"method must be one of {', '.join((*BY_CLASS, 'predict', 'score_samples'))}, not {method!r}")
    classes = model.classes_
    kind = classes.dtype if method == "predict" else np.dtype(float)
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1})
        if method in BY_CLASS:
            return X.map_blocks(_predicted, model, method, dtype=kind, chunks=(X.chunks[0], (len(classes),)))
        return X.map_blocks(_predicted, model, method, dtype=kind, drop_axis=1)
    import pandas as pd

    empty = np.empty((0, len(classes)) if method in BY_CLASS else 0, kind)
    meta: Any = pd.DataFrame(empty, columns=classes.tolist()) if empty.ndim == 2 else pd.Series(empty, name=method)
    return X.map_partitions(_predicted_frame, model, method, meta, meta=meta)


def _predicted(X: Any, model: Any, method: str) -> NDArray[Any]:
    return np.asarray(getattr(model, method)(X))


def _predicted_frame(X: Any, model: Any, method: str, empty: Any) -> Any:
    if not len(X):
        return empty.set_axis(X.index)
    found = _predicted(X, model, method)
    return type(empty)(
        found, index=X.index, **({"columns": empty.columns} if found.ndim == 2 else {"name": empty.name})
    )


# ---- partitions


def _partitions(X: Any, y: Any, sample_weight: Any) -> list[tuple[Any, Any, Any]]:
    """Samples, labels and weights of each partition, delayed."""
    columns = [_delayed(X), _delayed(y)]
    if sample_weight is not None:
        columns.append(_delayed(sample_weight))
    if len({len(column) for column in columns}) > 1:
        numbers = ", ".join(str(len(column)) for column in columns)
        raise ValueError(f"X, y and sample_weight have different partitions ({numbers}): rechunk or repartition them")
    weights = columns[2] if sample_weight is not None else [None] * len(columns[0])
    return list(zip(columns[0], columns[1], weights, strict=True))


def _delayed(rows: Any) -> list[Any]:
    import dask.array as da

    if isinstance(rows, da.Array):
        whole = rows.rechunk({1: -1}) if rows.ndim == 2 else rows
        return list(whole.to_delayed().ravel())
    if not hasattr(rows, "to_delayed"):
        raise TypeError(f"fit_dask needs dask arrays or dask data frames, not {type(rows).__name__}")
    return list(rows.to_delayed())


def _undeclared(X: Any, example: Any, categorical_features: Any) -> list[Any]:
    """Indexes of the categorical columns whose levels no dtype declares."""
    names = None if isinstance(example, np.ndarray) else list(example.columns)
    chosen = chosen_columns(categorical_features, names, example.shape[1])
    if names is None:
        return chosen or []
    contents = [content(column) for column in nw.from_native(example).iter_columns()]
    declared = [i for i, kind in enumerate(example.dtypes) if str(kind) == "category" and X.iloc[:, i].cat.known]
    if chosen is None:
        chosen = [i for i, what in enumerate(contents) if what in CATEGORICAL]
    return [i for i in chosen if i not in declared and contents[i] != "truths"]


def _schema(example: Any, found: dict[Any, set[Any]], undeclared: Sequence[int], categorical_features: Any) -> Schema:
    classes = np.array(_in_order(found["y"], "y"))
    check_classes(classes)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}: a classifier needs at least two")
    schema = schema_of(example, classes, categorical_features)
    levels: list[Levels | None] = list(schema.levels)
    for i in undeclared:
        levels[i] = _in_order(found[i], schema.name(i))
    return Schema(schema.names, tuple(levels), schema.classes, schema.frame)


def _in_order(levels: set[Any], name: str) -> Levels:
    if any(is_missing(level) for level in levels):
        raise ValueError(f"{name} has missing values: drop these samples")
    return sorted_levels(levels, name)


# ---- tasks of the workers


def _weighted(X: Any, y: Any, weights: Any) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """The samples with a non-zero weight."""
    labels = np.asarray(y)
    if len(labels) != len(X) or (weights is not None and len(weights) != len(X)):
        raise ValueError("a partition has different lengths of X, y and sample_weight: align them")
    if weights is None:
        return X, labels, None
    weights = np.asarray(weights)
    kept = weights != 0
    return X[kept], labels[kept], weights[kept]


def _distinct(X: Any, y: Any, weights: Any, columns: Sequence[int]) -> dict[Any, set[Any]] | None:
    """The labels, and the levels of some columns."""
    X, labels, _ = _weighted(X, y, weights)
    if not len(labels):
        return None
    found: dict[Any, set[Any]] = {"y": set(labels.tolist())}
    for i in columns:
        levels = X[:, i].tolist() if isinstance(X, np.ndarray) else X.iloc[:, i].unique().tolist()
        found[i] = {level for level in levels if not is_missing(level)}
    return found


def _united(parts: Sequence[dict[Any, set[Any]] | None]) -> dict[Any, set[Any]] | None:
    some = [part for part in parts if part is not None]
    return {key: set().union(*(part[key] for part in some)) for key in some[0]} if some else None


def _counted(X: Any, y: Any, weights: Any, shared: tuple[Schema, Families]) -> Statistics | None:
    """Statistics of a partition."""
    X, labels, weights = _weighted(X, y, weights)
    if not len(labels):
        return None
    schema, families = shared
    with numeric_libraries().limit(limits=1, user_api="blas"):  # the workers share the cores
        return collect(read(X, schema, labels, weights), families)


def _added(parts: Sequence[Statistics | None]) -> Statistics | None:
    some: list[Any] = [part for part in parts if part is not None]
    return sum(some) if some else None


def _reduced(parts: list[Any], join: Any) -> Any:
    """Join all parts in a tree of tasks."""
    import dask

    joined = parts if len(parts) > 1 else [dask.delayed(join)(parts)]
    while len(joined) > 1:
        joined = [dask.delayed(join)(joined[start : start + FAN_IN]) for start in range(0, len(joined), FAN_IN)]
    return joined[0]


def _dask() -> Any:
    try:
        import dask
        import dask.dataframe
    except ImportError as error:
        raise ImportError("dask arrays and data frames need dask: pip install 'cgnlearn[dask]'") from error
    return dask
