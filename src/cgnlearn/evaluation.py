"""Cross-validated predictions and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

from cgnlearn.network import SampleNotAcceptable
from cgnlearn.statistics import Floats


class FoldResult(NamedTuple):
    """What one model did on one fold."""

    fold: int
    accuracy: float
    cll: float  # mean log probability of the true class


def cross_validate(
    model: Any, X: Any, y: NDArray[Any], *, n_folds: int = 10, fraction: float = 1.0, seed: int = 0
) -> Iterator[FoldResult | None]:
    """One result per fold of a stratified cross-validation; None where maximum likelihood does not exist.

    Parameters
    ----------
    model : classifier
    X, y : the data
    n_folds : int
    fraction : float
        Train on a stratified part of each training set, as the paper does to see how scarce data tell.
    seed : int
        Cuts the folds and draws the parts.
    """
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    for fold, (train, test) in enumerate(folds.split(np.zeros(len(y)), y)):
        if fraction < 1:
            train, _ = train_test_split(train, train_size=fraction, stratify=y[train], random_state=seed + fold)
        try:
            fitted = clone(model).fit(X[train], y[train])
        except SampleNotAcceptable:
            yield None
            continue
        log_proba: Floats = fitted.predict_log_proba(X[test])
        true = np.searchsorted(fitted.classes_, y[test])
        yield FoldResult(
            fold,
            float(np.mean(log_proba.argmax(axis=1) == true)),
            float(log_proba[np.arange(len(true)), true].mean()),
        )
