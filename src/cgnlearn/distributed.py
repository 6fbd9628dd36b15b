"""Rows that do not fit on one machine: dask arrays and data frames, counted where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from cgnlearn.data.frames import chosen_columns, is_missing
from cgnlearn.data.schema import NO_LEVELS, Levels, Schema
from cgnlearn.data.table import read, schema_of
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.networks.families import Families
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, collect

FAN_IN = 8  # statistics that are added by one task
BY_CLASS = ("predict_proba", "predict_log_proba", "predict_joint_log_proba")


def fit_dask(model: CGNClassifier, X: Any, y: Any, sample_weight: Any = None) -> CGNClassifier:
    """Fit a copy of a classifier to a dask array or data frame; it equals a fit to all rows in memory.

    Every partition is counted where it is, and the counts are added in a tree: statistics move, rows do not. Classes,
    and levels that a dtype does not declare, are found in a pass over their columns before. It runs where dask
    runs: in threads, in processes, or on the cluster of the current ``distributed.Client``.

    Parameters
    ----------
    model : CGNClassifier
        Its structure must be one that statistics tell: nothing searched or chosen by ``"cv"``.
    X : dask array or dask data frame (rows, features)
    y : dask array or dask series (rows,)
        Cut into the same partitions as X.
    sample_weight : dask array or dask series (rows,), optional

    Returns
    -------
    CGNClassifier
        The fitted copy, in memory; ``model`` stays as it is.

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
            f"fit_dask cannot fit a {type(model).__name__}, which needs rows: draw a sample, such as "
            "X.sample(frac=0.01).compute(), and fit it to that"
        )
    learner = counting_learner(model, "fit_dask")
    parts = _partitions(X, y, sample_weight)
    first = _first_rows(X)
    looked_at = _undeclared(X, first, model.categorical_features)
    found = _reduced([dask.delayed(_distinct)(*part, looked_at) for part in parts], _united).compute()
    if found is None:
        raise ValueError("there are no rows with a weight: give some")
    schema = _schema(first, found, looked_at, model.categorical_features)
    shared = dask.delayed((schema, learner.families(schema)))
    statistics = _reduced([dask.delayed(_counted)(*part, shared) for part in parts], _added).compute()
    return type(model).from_statistics(statistics, **model.get_params(deep=False))


def predict_dask(model: Any, X: Any, *, method: str = "predict_proba") -> Any:
    """Predict the rows of a dask array or data frame, lazily, where they are.

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
        With a column for each class where the method tells of classes.

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
    """Rows, labels and weights of each partition, yet to be computed."""
    columns = [_delayed(X), _delayed(y)]
    if sample_weight is not None:
        columns.append(_delayed(sample_weight))
    if len({len(column) for column in columns}) > 1:
        told = ", ".join(str(len(column)) for column in columns)
        raise ValueError(
            f"X, y and sample_weight are cut into different partitions ({told}): rechunk or repartition them"
        )
    weights = columns[2] if sample_weight is not None else [None] * len(columns[0])
    return list(zip(columns[0], columns[1], weights, strict=True))


def _delayed(rows: Any) -> list[Any]:
    import dask.array as da

    if isinstance(rows, da.Array):
        whole = rows.rechunk({1: -1}) if rows.ndim == 2 else rows
        return list(whole.to_delayed().ravel())
    if not hasattr(rows, "to_delayed"):
        raise TypeError(f"fit_dask takes dask arrays and dask data frames, not {type(rows).__name__}")
    return list(rows.to_delayed())


def _first_rows(X: Any) -> Any:
    """Rows that show names and dtypes; made up, so that nothing is computed."""
    import dask.array as da

    return np.zeros((1, X.shape[1]), X.dtype) if isinstance(X, da.Array) else X._meta_nonempty


def _undeclared(X: Any, first: Any, categorical_features: Any) -> list[Any]:
    """The categorical columns whose levels no dtype declares: indexes."""
    names = None if isinstance(first, np.ndarray) else list(first.columns)
    chosen = chosen_columns(categorical_features, names, first.shape[1])
    if names is None:
        return chosen or []
    declared = [i for i, kind in enumerate(first.dtypes) if str(kind) == "category" and X.iloc[:, i].cat.known]
    if chosen is None:
        chosen = [i for i, kind in enumerate(first.dtypes) if str(kind) == "category"]
    return [i for i in chosen if i not in declared]


def _schema(first: Any, found: dict[Any, set[Any]], looked_at: Sequence[int], categorical_features: Any) -> Schema:
    classes = np.array(_in_order(found["y"], "y"))
    check_classification_targets(classes)
    if len(classes) < 2:
        raise ValueError(f"y has one class only, {classes.tolist()[0]!r}: a classifier needs at least two")
    schema = schema_of(first, classes, categorical_features)
    levels: list[Levels | None] = list(schema.levels)
    for i in looked_at:
        levels[i] = _in_order(found[i], schema.name(i))
    return Schema(schema.names, tuple(levels), schema.classes, schema.frame)


def _in_order(levels: set[Any], name: str) -> Levels:
    if any(is_missing(level) for level in levels):
        raise ValueError(f"{name} has missing values: drop their rows")
    if len({isinstance(level, str) for level in levels}) > 1:
        raise ValueError(f"{name} mixes text and other levels: make them all text or all numbers")
    return tuple(sorted(levels)) or NO_LEVELS


# ---- what the workers do


def _that_count(X: Any, y: Any, weights: Any) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    """The rows with a weight."""
    labels = np.asarray(y)
    if len(labels) != len(X) or (weights is not None and len(weights) != len(X)):
        raise ValueError("a partition has more rows of one of X, y and sample_weight than of another: align them")
    if weights is None:
        return X, labels, None
    weights = np.asarray(weights)
    kept = weights != 0
    return X[kept], labels[kept], weights[kept]


def _distinct(X: Any, y: Any, weights: Any, columns: Sequence[int]) -> dict[Any, set[Any]] | None:
    """The labels, and the levels of some columns."""
    X, labels, _ = _that_count(X, y, weights)
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
    """The statistics of a partition."""
    X, labels, weights = _that_count(X, y, weights)
    if not len(labels):
        return None
    schema, families = shared
    with numeric_libraries().limit(limits=1, user_api="blas"):  # the workers share the cores
        return collect(read(X, schema, labels, weights), families)


def _added(parts: Sequence[Statistics | None]) -> Statistics | None:
    some: list[Any] = [part for part in parts if part is not None]
    return sum(some) if some else None


def _reduced(parts: list[Any], join: Any) -> Any:
    """All parts joined in a tree."""
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
