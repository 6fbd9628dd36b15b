"""Files that do not fit into memory: fit and predict in batches."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import hashed
from cgnlearn.data.table import Table, to_training_type
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.tables.batches import Stream, stream_of
from cgnlearn.tables.formats import source_of
from cgnlearn.tables.read import BATCH_ROWS, Part, model_frames

SAMPLE_ROWS = 20_000  # about as many are drawn for models that cannot be fitted to statistics
COUNTERS = 2  # batches counted at the same time, besides the one being read

Progress = Callable[[int, int], Any]  # rows done, rows in all


def fit_stream(
    model: Any,
    source: Any,
    target: str,
    *,
    columns: Sequence[str] | None = None,
    categorical_features: Collection[str] = (),
    drop_missing: bool = False,
    batch_rows: int = BATCH_ROWS,
    sample_rows: int = SAMPLE_ROWS,
    progress: Progress | None = None,
) -> Any:
    """Fit a copy of a classifier to files of any size; the result equals a fit to all rows in memory.

    The files are read twice: first the target and the categorical columns, to collect classes and levels over all
    files, then the columns of the model. Only a batch of rows is in memory. Columns of text are categorical, besides
    the model's ``categorical_features``.

    Parameters
    ----------
    model : CGNClassifier or CGNClassifierCV
        The structure of a `CGNClassifier` must be computable from statistics: no search, nothing chosen by ``"cv"``.
        A `CGNClassifierCV` is fitted to a random sample of the rows, with a warning.
    source : path, list of paths or pyarrow.dataset.Dataset
        Parquet, Arrow (``.arrow``, ``.feather``), csv or tsv files, or folders of these.
    target : str
        The column of the classes.
    columns : list of str, optional
        The features; None: all but the target.
    categorical_features : collection of str
        Columns of numbers (features or the target) that are labels: read as text, 1 and 1.0 as one level.
    drop_missing : bool
        Drop rows with a missing value.
    batch_rows : int
        Rows in memory at once.
    sample_rows : int
        About how many rows a `CGNClassifierCV` is fitted to.
    progress : callable, optional
        Called with the number of rows read so far and of all rows.

    Returns
    -------
    CGNClassifier or CGNClassifierCV
        The fitted copy; ``model`` is not changed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from cgnlearn import CGNClassifier, fit_stream
    >>> path = Path(tempfile.mkdtemp(), "iris.parquet")
    >>> load_iris(as_frame=True).frame.to_parquet(path)
    >>> model = fit_stream(CGNClassifier("tan"), path, "target", batch_rows=32)
    >>> model.statistics_
    Statistics(150 samples, 3 classes)
    """
    if isinstance(model, CGNClassifier):
        counting_learner(model, "fit_stream")  # fail before anything is read
    options: dict[str, Any] = {"drop_missing": drop_missing, "batch_rows": batch_rows}
    stream = stream_of(source, target, columns, categorical_features, model.categorical_features, **options)
    warn_without_class(stream)
    return fit_to(stream, model, sample_rows, progress)


def warn_without_class(stream: Stream) -> None:
    """Warn of rows without a class."""
    n_without = stream.survey.n_read - stream.survey.n_labelled
    if n_without:
        warnings.warn(f"excluded {n_without} of {stream.survey.n_read} rows without a class", stacklevel=3)


def fit_to(stream: Stream, model: Any, sample_rows: int = SAMPLE_ROWS, progress: Progress | None = None) -> Any:
    """Fit a copy of a model to a stream."""
    progress = progress or (lambda n_done, n_all: None)
    if not isinstance(model, CGNClassifier):
        return _fit_to_sample(stream, model, sample_rows, progress)
    families = counting_learner(model, "fit_stream").families(stream.survey.schema)
    total: Any = 0
    n_done = 0
    with numeric_libraries().limit(limits=1, user_api="blas"):  # products this small are slower in several threads
        for statistics, part in _in_threads(lambda part: collect(stream.table(part), families), stream.parts()):
            total = total + statistics
            n_done += len(part.kept)
            progress(n_done, stream.survey.n_read)
    return type(model).from_statistics(total, **model.get_params(deep=False))


def _in_threads(work: Callable[[Part], Statistics], parts: Iterator[Part]) -> Iterator[tuple[Statistics, Part]]:
    """Results of the batches with samples, in order, while the next batches are read and counted."""
    with ThreadPoolExecutor(COUNTERS) as pool:
        pending: deque[tuple[Future[Statistics], Part]] = deque()
        for part in parts:
            if part.kept.any():
                pending.append((pool.submit(work, part), part))
            if len(pending) > COUNTERS:
                first, its_part = pending.popleft()
                yield first.result(), its_part
        for first, its_part in pending:
            yield first.result(), its_part


def _fit_to_sample(stream: Stream, model: Any, sample_rows: int, progress: Progress) -> Any:
    """Fit a copy of a model to a random sample of a stream."""
    schema, n_samples = stream.survey.schema, stream.survey.n_samples
    tables, n_seen, n_done = [], 0, 0
    for part in stream.parts():
        n_done += len(part.kept)
        if part.kept.any():
            table = stream.table(part)
            tables.append(table.rows(np.flatnonzero(uniform(n_seen, table.n_samples) < sample_rows / n_samples)))
            n_seen += table.n_samples
        progress(n_done, stream.survey.n_read)
    X, y = frame_of(tables)
    absent = set(schema.classes) - set(y.tolist())
    if absent:
        raise ValueError(f"the random sample has no row of class {min(absent, key=str)!s}: increase sample_rows")
    if len(y) < n_samples:
        warnings.warn(f"fitted to a random sample of {len(y):,} of {n_samples:,} rows", UserWarning, stacklevel=4)
    return clone(model).fit(X, y)


def uniform(start: int, n_rows: int) -> Floats:
    """A uniform random number for each of the rows from ``start`` on, a hash of the row's number."""
    return hashed(np.arange(start, start + n_rows, dtype=np.uint64), seed=1 << 20) / 2.0**64


def frame_of(tables: Sequence[Table]) -> tuple[Any, NDArray[Any]]:
    """Tables as one pandas frame, whose categoricals have all levels, and the classes."""
    import pandas as pd

    schema = replace(tables[0].schema, frame="pandas")
    frames = [to_training_type(replace(table, schema=schema)) for table in tables]
    codes = np.concatenate([np.asarray(table.labels) for table in tables])
    return pd.concat(frames, ignore_index=True), np.array(schema.classes)[codes]


def predict_stream(
    model: Any, source: Any, *, method: str = "predict_proba", batch_rows: int = BATCH_ROWS
) -> Iterator[NDArray[Any]]:
    """Predict the rows of files of any size in batches.

    Parameters
    ----------
    model : CGNClassifier
        Fitted to columns with names.
    source : path, list of paths or pyarrow.dataset.Dataset
    method : str
        ``"predict"``, ``"predict_log_proba"``, ``"score_samples"``, ...
    batch_rows : int

    Yields
    ------
    ndarray (rows of a batch, ...)

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from cgnlearn import CGNClassifier
    >>> rows = pd.DataFrame({"x": [0.0, 1.0, 4.0, 6.0]})
    >>> path = tempfile.mkdtemp() + "/rows.csv"
    >>> rows.to_csv(path, index=False)
    >>> list(predict_stream(CGNClassifier().fit(rows, list("aabb")), path, method="predict"))
    [array(['a', 'a', 'b', 'b'], dtype='<U1')]
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError("the model was trained on columns without names: read the rows and call its methods")
    levels = dict(zip(names.tolist(), model.statistics_.schema.levels, strict=True))
    for frame in model_frames(source_of(source), levels, batch_rows):
        yield getattr(model, method)(frame)
