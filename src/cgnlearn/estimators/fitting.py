"""What surrounds a fit of either estimator: what was fitted before, weights of samples, and the samples it keeps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from cgnlearn.data.frames import as_cells
from cgnlearn.data.splits import stratified_sample
from cgnlearn.data.table import Table
from cgnlearn.data.warning import DataWarning

LEAST_KEPT, MOST_KEPT = 1000, 10_000  # training samples that a model keeps of more
KEPT = 20_000_000  # values of all of them
FEW_SAMPLES = 1.5  # as which all samples together hardly should count
LEAST_MEAN_WEIGHT, MOST_MEAN_WEIGHT = 0.1, 10.0  # of weights that may be frequencies


@contextmanager
def fitting(model: Any) -> Iterator[None]:
    """Remove all that was fitted before a fit, and again if it fails."""
    _clear(model)
    try:
        yield
    except BaseException:
        _clear(model)
        raise


def _clear(model: Any) -> None:
    parameters = model.get_params(deep=False)
    for name in list(vars(model)):
        if name not in parameters and not name.startswith(
            ("_skl_", "_parent_callback", "_callback", "_metadata_request")
        ):
            delattr(model, name)


def without_weightless(X: Any, y: Any, sample_weight: Any, *more: Any) -> tuple[Any, ...]:
    """Drop samples of weight 0: they must change nothing, neither levels nor folds; ``more`` is by sample too."""
    if sample_weight is None:
        return X, y, sample_weight, *more
    weights = as_cells(sample_weight)
    if weights.dtype.kind == "O":  # of which a missing one, which is false, must not count as 0
        try:
            weights = weights.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError("sample_weight holds something that is no number: give a weight for each sample") from None
    if weights.ndim != 1 or weights.all() or not weights.any() or np.shape(y)[:1] != weights.shape:
        return X, y, weights, *more
    kept = np.flatnonzero(weights)
    X, y, *more_kept = (None if part is None else _safe_indexing(part, kept) for part in (X, y, *more))
    return X, y, weights[kept], *more_kept


def warn_of_weights(table: Table) -> None:
    """Warn if weights are hardly meant as frequencies, which is what they are: they sum to one, or are very large."""
    assert table.weights is not None
    n, total = table.n_samples, float(table.weights.sum())
    effective = total**2 / float(np.square(table.weights).sum())
    if total < max(FEW_SAMPLES, LEAST_MEAN_WEIGHT * n):
        consequence = "so that hardly anything is learned from them"
    elif table.schema.continuous and total > MOST_MEAN_WEIGHT * n:  # counts of equal samples are common without any
        consequence = "so that predictions are too certain and maximum likelihood may leave no variance"
    else:
        return
    warnings.warn(
        f"sample_weight counts samples: {n} samples (an effective number of {effective:.3g}) count as {total:.6g}, "
        f"{consequence}; if the weights are no frequencies, divide them by their mean, {total / n:.3g}",
        DataWarning,
        stacklevel=5,
    )


def samples_to_keep(table: Table) -> Table:
    """The training samples that a fitted model keeps: all, or some of very many, at random within each class."""
    assert table.labels is not None
    most = max(LEAST_KEPT, min(MOST_KEPT, KEPT // max(1, table.schema.n_columns)))
    return table if table.n_samples <= most else table.rows(stratified_sample(table.labels, most))
