"""The classifiers of the comparison, each tuned on the training samples.

Peers are pipelines: missing numbers are imputed by their median (except for gradient boosting), numbers are
standardised, categories are one-hot encoded.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.svm import SVC

import cgnlearn

WIDE = 1000  # columns; above, discriminant analysis uses all principal components
MOST_COLUMNS = {"lrcv-power": 5_000, "hgb": 5_000, "catboost": 5_000}  # above, a fit takes many minutes
FOREST_LEAVES = (1, 2, 5, 10)
SUPPORT_GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.001]}


class TooWide(ValueError):
    """A model that is skipped because a fit would take too long."""


def folds(y, groups, n_folds=5, *, whole=False):
    """Folds of the training samples, persons kept together; ``whole``: every class in every fold."""
    if groups is not None:
        per_class = [len(np.unique(groups[y == label])) for label in np.unique(y)]
        return list(StratifiedGroupKFold(min(n_folds, *per_class)).split(y, y, groups))
    n_folds = max(2, min(n_folds, np.bincount(y).min())) if whole else n_folds
    return list(StratifiedKFold(n_folds).split(y, y))


def prepared(n_columns, categorical, *steps, impute=True):
    """Preprocessing of a peer; ``steps`` transform numbers after imputation."""
    numbers = [i for i in range(n_columns) if i not in set(categorical)]
    first = (SimpleImputer(strategy="median", keep_empty_features=True),) if impute else ()
    of_numbers = make_pipeline(*first, *steps) if first or steps else "passthrough"
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer([("numbers", of_numbers, numbers), ("categories", one_hot, categorical)])


class ForestByOutOfBag(ClassifierMixin, BaseEstimator):
    """A random forest whose smallest leaf is chosen by the out-of-bag log loss."""

    def fit(self, X, y):
        best = np.inf
        for leaf in FOREST_LEAVES:
            forest = RandomForestClassifier(500, min_samples_leaf=leaf, oob_score=True, random_state=0).fit(X, y)
            # Half a vote more for every class: otherwise single zero votes would dominate the log loss.
            votes = np.nan_to_num(forest.oob_decision_function_, nan=0.0) + 0.5 / 500
            loss = log_loss(y, votes / votes.sum(axis=1, keepdims=True), labels=forest.classes_)
            if loss < best:
                best, self.forest_ = loss, forest
        self.classes_ = self.forest_.classes_
        return self

    def predict_proba(self, X):
        return self.forest_.predict_proba(X)


class BoostingByFolds(ClassifierMixin, BaseEstimator):
    """Histogram gradient boosting with the median number of iterations of early stopping over folds.

    Early stopping on a tenth of fifty samples would be too noisy.
    """

    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y):
        best = np.inf
        for leaf in (5, 20) if len(y) < 500 else (20,):
            settings = {"learning_rate": 0.05, "min_samples_leaf": leaf, "random_state": 0}
            losses, iterations = [], []
            for train, rest in self.inner:
                stopped = HistGradientBoostingClassifier(
                    max_iter=500, early_stopping=True, n_iter_no_change=10, **settings
                ).fit(X[train], y[train], X_val=X[rest], y_val=y[rest])
                losses.append(-stopped.validation_score_.max())
                iterations.append(np.argmax(stopped.validation_score_))  # the first score is that of no tree
            if np.mean(losses) < best:
                best, chosen = np.mean(losses), settings | {"max_iter": max(1, int(np.median(iterations)))}
        self.boosting_ = HistGradientBoostingClassifier(early_stopping=False, **chosen).fit(X, y)
        self.classes_ = self.boosting_.classes_
        return self

    def predict_proba(self, X):
        return self.boosting_.predict_proba(X)


class CatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost with its own treatment of categories and missing numbers."""

    def __init__(self, categorical):
        self.categorical = categorical

    def fit(self, X, y):
        from catboost import CatBoostClassifier

        loss = "Logloss" if len(np.unique(y)) == 2 else "MultiClass"
        settings = {"random_seed": 0, "thread_count": 1, "verbose": False, "allow_writing_files": False}
        self.model_ = CatBoostClassifier(iterations=400, loss_function=loss, **settings)
        self.model_.fit(self._frame(X), y, cat_features=self.categorical)
        self.classes_ = np.asarray(self.model_.classes_)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(self._frame(X))

    def _frame(self, X):
        if not self.categorical:
            return X
        columns = X.astype(object)
        columns[:, self.categorical] = X[:, self.categorical].astype(int)
        return columns


def logistic(y, groups):
    return LogisticRegressionCV(
        Cs=10, cv=folds(y, groups), scoring="neg_log_loss", max_iter=1000, l1_ratios=(0,), use_legacy_attributes=False
    )


def power():
    """Yeo-Johnson transform of standardised numbers, bounded to avoid overflow."""
    bounded = FunctionTransformer(np.clip, kw_args={"a_min": -10.0, "a_max": 10.0})
    return StandardScaler(), PowerTransformer(), bounded


def peer(name, X, y, categorical, groups):
    """The unfitted peer of that name for these training samples."""
    p = X.shape[1]
    if p > MOST_COLUMNS.get(name, np.inf):
        raise TooWide(f"skipped: more than {MOST_COLUMNS[name]:,} columns")
    scaled = prepared(p, categorical, StandardScaler())
    components = (PCA(),) if p > WIDE else ()
    if name == "frequencies":
        return DummyClassifier(strategy="prior")
    if name == "lrcv":
        return make_pipeline(scaled, logistic(y, groups))
    if name == "lrcv-power":
        return make_pipeline(prepared(p, categorical, *power()), logistic(y, groups))
    if name == "lda":
        return make_pipeline(scaled, *components, LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"))
    if name == "qda":
        return make_pipeline(scaled, *components, QuadraticDiscriminantAnalysis(solver="eigen", shrinkage="auto"))
    if name == "gnb":
        return make_pipeline(scaled, GaussianNB())
    if name == "forest":
        return make_pipeline(prepared(p, categorical), ForestByOutOfBag())
    if name == "hgb":
        return make_pipeline(prepared(p, categorical, impute=False), BoostingByFolds(folds(y, groups, whole=True)))
    if name == "catboost":
        return CatBoost(categorical)
    if name == "svc":
        inner = folds(y, groups, whole=True)
        tuned = GridSearchCV(SVC(), SUPPORT_GRID, cv=inner)
        return make_pipeline(scaled, Platt(tuned, inner))
    raise ValueError(f"there is no peer {name!r}")


class Platt(ClassifierMixin, BaseEstimator):
    """A support vector machine tuned by accuracy, with Platt scaling over the same folds."""

    def __init__(self, search, inner):
        self.search, self.inner = search, inner

    def fit(self, X, y):
        machine = self.search.fit(X, y).best_estimator_
        self.calibrated_ = CalibratedClassifierCV(machine, cv=self.inner, ensemble=False).fit(X, y)
        self.classes_ = self.calibrated_.classes_
        return self

    def predict_proba(self, X):
        return self.calibrated_.predict_proba(X)


PEERS = {
    "lrcv": "LogisticRegressionCV, scaled",
    "lrcv-power": "LogisticRegressionCV, Yeo-Johnson",
    "lda": "LDA, shrinkage",
    "qda": "QDA, shrinkage",
    "gnb": "GaussianNB",
    "forest": "random forest",
    "hgb": "HistGradientBoosting",
    "catboost": "CatBoost",
    "svc": "SVC, Platt scaling",
}
BASELINE = {"frequencies": "class frequencies"}
OURS = {"ours": "CGNClassifierCV"}
OURS_ORDERED = {"ours-ordered": "CGNClassifierCV(ordered=True)"}
NAMES = {**OURS, **OURS_ORDERED, **PEERS, **BASELINE}


def fitted(name, X, y, categorical, groups):
    """A model fitted to training samples."""
    if name in OURS or name in OURS_ORDERED:
        model = cgnlearn.CGNClassifierCV(categorical_features=categorical or None, ordered=name in OURS_ORDERED)
        return model.fit(X, y, groups=groups) if groups is not None else model.fit(X, y)
    return peer(name, X, y, categorical, groups).fit(X, y)
