"""Classifiers of scikit-learn that people use, prepared for tables with levels and missing values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cgnlearn.data.arrays import Floats
from cgnlearn.data.splits import allowed, stratified
from cgnlearn.evaluation.study import LOGISTIC

N_TREES = 500
MOST_LEVELS = 50  # of a column; rarer ones are one level
MOST_OF_BOOSTING = 5_000  # columns times classes: beyond, a fit takes half a minute and more


def logistic_regression(seed: int = 0) -> Any:
    """Logistic regression with a ridge penalty by cross-validated log loss, one-hot, imputed and scaled."""
    # From 1.8 on scikit-learn warns unless these are given.
    newer = "use_legacy_attributes" in signature(LogisticRegressionCV).parameters
    more = {"use_legacy_attributes": False, "l1_ratios": (0.0,)} if newer else {}
    levels = make_pipeline(_imputer("most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    last = LogisticRegressionCV(cv=_Folds(seed), scoring=_neg_log_loss, max_iter=1000, **more)
    return make_pipeline(_columns(make_pipeline(_imputer("median"), StandardScaler()), levels), last)


def random_forest(seed: int = 0) -> Any:
    """A random forest of 500 trees, one-hot and imputed; half a vote is added to each class."""
    levels = make_pipeline(_imputer("most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    return make_pipeline(_columns(_imputer("median"), levels), _Forest(N_TREES, random_state=seed))


def gradient_boosting(seed: int = 0) -> Any:
    """Gradient boosting of histograms with scikit-learn's settings, one-hot; it handles missing numbers itself."""
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS, sparse_output=False)
    return make_pipeline(_columns(_WithoutEmpty(), levels), HistGradientBoostingClassifier(random_state=seed))


COMPARATORS: dict[str, Callable[[int], Any]] = {
    LOGISTIC: logistic_regression,
    "random forest": random_forest,
    "gradient boosting": gradient_boosting,
}


def comparators(n_columns: int, n_classes: int, seed: int = 0, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The named ones; None: all of which a fit is quick.

    Examples
    --------
    >>> list(comparators(20, 2))
    ['logistic regression', 'random forest', 'gradient boosting']
    """
    if names is None:
        slow = "gradient boosting" if n_columns * n_classes > MOST_OF_BOOSTING else None
        names = [name for name in COMPARATORS if name != slow]
    return {name: COMPARATORS[name](seed) for name in names}


def _imputer(strategy: str) -> SimpleImputer:
    return SimpleImputer(strategy=strategy, keep_empty_features=True)


def _columns(numbers: Any, levels: Any) -> Any:
    """Numbers and levels of a data frame, prepared separately."""
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (levels, make_column_selector(dtype_include="category")),
    )


class _WithoutEmpty(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns with a value in training: boosting cannot bin the others."""

    def fit(self, X: Any, y: Any = None) -> Self:
        self.known_ = ~np.isnan(np.asarray(X, dtype=float)).all(axis=0)
        return self

    def transform(self, X: Any) -> Floats:
        return np.asarray(X, dtype=float)[:, self.known_]


class _Forest(RandomForestClassifier):  # type: ignore[misc]
    """A forest without probabilities of 0, of which a single error would make the log loss infinite."""

    def predict_proba(self, X: Any) -> Floats:
        votes = self.n_estimators * super().predict_proba(X) + 0.5
        return np.asarray(votes / votes.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class _Folds:
    """A scikit-learn splitter with fewer folds for classes of few samples."""

    seed: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return allowed(y, 5)

    def split(self, X: Any, y: Any, groups: Any = None) -> Any:
        return iter(stratified(y, 5, self.seed).pairs)


def _neg_log_loss(model: Any, X: Any, y: Any) -> float:
    """Negative log loss, also where the classes of the test samples differ from those of the training samples."""
    proba = model.predict_proba(X)
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    of_true = [proba[row, place[label]] if label in place else 0.0 for row, label in enumerate(np.asarray(y).tolist())]
    return float(np.log(np.maximum(of_true, np.finfo(float).tiny)).mean())
