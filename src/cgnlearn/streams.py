"""Rows that do not fit into memory: fitted, and predicted, batch by batch."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from cgnlearn.data.splits import hashed
from cgnlearn.data.table import Table, to_training_type
from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
from cgnlearn.networks.moments import numeric_libraries
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.tables.batches import Agreed, Stream, stream_of
from cgnlearn.tables.formats import source_of
from cgnlearn.tables.read import BATCH_ROWS, Part, model_frames

SAMPLE_ROWS = 20_000  # about as many are drawn for what cannot be fitted to statistics
COUNTERS = 2  # batches that are counted at once, besides the one that is read

Result = TypeVar("Result")
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
    """Fit a copy of a classifier to files of any size; it equals a fit to all rows at once.

    The files are read twice: the columns that have levels, and the target, to agree on levels and classes over all
    files; then the columns of the model, to be counted. Only a batch of rows is in memory. Columns of text are
    categorical, besides those that the model's ``categorical_features`` say.

    Parameters
    ----------
    model : CGNClassifier or CGNClassifierCV
        The structure of a `CGNClassifier` must be one that statistics tell: nothing searched or chosen by ``"cv"``.
        A `CGNClassifierCV`, which compares models on some thousand rows at any rate, is fitted to a random sample, and
        a warning tells of it.
    source : path, list of paths or pyarrow.dataset.Dataset
        Parquet, Arrow (``.arrow``, ``.feather``), csv or tsv files, or folders of these.
    target : str
        The column of the classes.
    columns : list of str, optional
        The features; None: all but the target.
    categorical_features : collection of str
        Columns, maybe the target, whose numbers are mere labels: they are read as text, 1 and 1.0 as one level.
    drop_missing : bool
        Leave out rows with an empty cell, instead of counting what they have.
    batch_rows : int
        Rows in memory at once.
    sample_rows : int
        About how many rows a `CGNClassifierCV` is fitted to.
    progress : callable, optional
        Called with the number of rows counted so far and of all rows.

    Returns
    -------
    CGNClassifier or CGNClassifierCV
        The fitted copy; ``model`` stays as it is.

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
        counting_learner(model, "fit_stream")  # refuses what cannot be fitted before anything is read
    stream = stream_of(
        source,
        target,
        columns,
        categorical_features,
        model.categorical_features,
        drop_missing=drop_missing,
        batch_rows=batch_rows,
    )
    return fitted_to(model, stream, agreed_on(stream), sample_rows, progress)


def agreed_on(stream: Stream) -> Agreed:
    """Levels and classes of all rows; a warning tells how many have no class and are left out."""
    agreed = stream.agreed()
    n_without = agreed.n_read - agreed.n_labelled
    if n_without:
        warnings.warn(f"left out {n_without} of {agreed.n_read} rows without a class", UserWarning, stacklevel=3)
    return agreed


def fitted_to(
    model: Any, stream: Stream, agreed: Agreed, sample_rows: int = SAMPLE_ROWS, progress: Progress | None = None
) -> Any:
    """A copy of the model, fitted to a stream whose levels and classes have been agreed on."""
    progress = progress or (lambda n_done, n_all: None)
    if not isinstance(model, CGNClassifier):
        return _fitted_to_sample(model, stream, agreed, sample_rows, progress)
    families = counting_learner(model, "fit_stream").families(agreed.schema)

    def counted(part: Part) -> Statistics:
        return collect(stream.table(part, agreed.schema), families)

    total: Any = 0
    with numeric_libraries().limit(limits=1, user_api="blas"):  # products this small lose by being cut up
        n_done = 0
        for statistics, part in _side_by_side(counted, stream.parts()):
            total = total + statistics
            n_done += len(part.kept)
            progress(n_done, agreed.n_read)
    return type(model).from_statistics(total, **model.get_params(deep=False))


def _side_by_side(work: Callable[[Part], Result], parts: Iterator[Part]) -> Iterator[tuple[Result, Part]]:
    """The results of batches with rows, in their order, while the next ones are read and worked on."""
    with ThreadPoolExecutor(COUNTERS) as pool:
        open_work: deque[tuple[Future[Result], Part]] = deque()
        for part in parts:
            if part.kept.any():
                open_work.append((pool.submit(work, part), part))
            if len(open_work) > COUNTERS:
                first, its_part = open_work.popleft()
                yield first.result(), its_part
        for first, its_part in open_work:
            yield first.result(), its_part


def _fitted_to_sample(model: Any, stream: Stream, agreed: Agreed, sample_rows: int, progress: Progress) -> Any:
    """A copy of the model, fitted to some rows."""
    import pandas as pd

    schema, n_samples = agreed.schema, agreed.n_samples
    tables, n_seen, n_done = [], 0, 0
    for part in stream.parts():
        n_done += len(part.kept)
        if part.kept.any():
            table = stream.table(part, schema)
            tables.append(table.rows(np.flatnonzero(chance(n_seen, table.n_samples) < sample_rows / n_samples)))
            n_seen += table.n_samples
        progress(n_done, agreed.n_read)
    y = np.array(schema.classes)[np.concatenate([table.labels for table in tables if table.labels is not None])]
    absent = set(schema.classes) - set(y.tolist())
    if absent:
        raise ValueError(f"the sample has no row of class {min(absent, key=str)!s}: give more sample_rows")
    if len(y) < n_samples:
        warnings.warn(f"fitted to a random sample of {len(y):,} of {n_samples:,} rows", UserWarning, stacklevel=4)
    return clone(model).fit(pd.concat([frame_of(table) for table in tables], ignore_index=True), y)


def chance(start: int, n_samples: int) -> NDArray[np.float64]:
    """For rows with consecutive numbers a random number from 0 to 1 each, the same whenever it is asked for."""
    return hashed(np.arange(start, start + n_samples, dtype=np.uint64), seed=1 << 20) / 2.0**64


def frame_of(table: Table) -> Any:
    """Rows in the model's form as a pandas frame, whose categoricals have all levels."""
    return to_training_type(replace(table, schema=replace(table.schema, frame="pandas")))


def predict_stream(
    model: Any, source: Any, *, method: str = "predict_proba", batch_rows: int = BATCH_ROWS
) -> Iterator[NDArray[Any]]:
    """Predict the rows of files of any size, batch by batch.

    Parameters
    ----------
    model : CGNClassifier
        Fitted to columns with names, by `fit_stream` or not.
    source : path, list of paths or pyarrow.dataset.Dataset
    method : str
        The classifier's: ``"predict"``, ``"predict_log_proba"``, ``"score_samples"``, ...
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
        raise ValueError("the model was trained on columns without names: read the rows and predict them by themselves")
    levels = dict(zip(names.tolist(), model.statistics_.schema.levels, strict=True))
    for frame in model_frames(source_of(source), levels, batch_rows):
        yield getattr(model, method)(frame)
