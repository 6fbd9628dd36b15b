"""The report of classifiers from Python: by cross-validation, or on a test set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cgnlearn.candidates.registry import MIXTURE
from cgnlearn.data.labels import target
from cgnlearn.data.splits import Split, repeated_splits
from cgnlearn.estimators.mixture_classifier import CGNClassifierCV
from cgnlearn.evaluation.comparators import comparators
from cgnlearn.evaluation.run import Run
from cgnlearn.evaluation.study import BASELINE, Study
from cgnlearn.reporting.page import write_report


def report(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    path: str | Path,
    groups: Any = None,
    positive: Any = None,
    cv: int = 10,
    figures: str | Path | None = None,
) -> Path:
    """Write a report of one or several classifiers, an HTML page that is one file.

    A classifier that is not fitted is cross-validated; one that is fitted is scored on these samples, which must not be
    those it was fitted to.

    Parameters
    ----------
    estimator : classifier, or mapping of names to classifiers
        Of cgnlearn or scikit-learn; pipelines too. The first of a mapping is described, the others stand beside. A
        single one that is not fitted stands beside logistic regression, a random forest and gradient boosting.
    X : array or data frame (samples, features)
        Columns of text become categories.
    y : array (samples,)
        Their classes.
    path : path
        Of the page.
    groups : array (samples,), optional
        Samples of one group, such as a person, stay together in folds, and intervals are those of groups.
    positive : class, optional
        To be told from the others; None: the rarer one of two.
    cv : int
        Number of stratified folds, shuffled with seed 0.
    figures : path, optional
        Folder that gets each figure as svg and as pdf.

    Returns
    -------
    Path
        That of the page.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cgnlearn import CGNClassifier, report
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> models = {"tan": CGNClassifier("tan"), "logistic regression": LogisticRegression(max_iter=1000)}
    >>> page = report(models, X, y, cv=3, path=f"{tempfile.mkdtemp()}/iris.html")
    >>> "tan classifies 97" in page.read_text(encoding="utf-8")
    True
    """
    named = isinstance(estimator, Mapping)
    models = dict(estimator) if named else {_name(estimator): estimator}
    if not models:
        raise ValueError("there are no models: give at least one classifier")
    are_fitted = {name: _is_fitted(model) for name, model in models.items()}
    if len(set(are_fitted.values())) > 1:
        one = next(name for name, is_fitted in are_fitted.items() if is_fitted)
        raise ValueError(f"some models are fitted, such as {one!r}, and others are not: give all fitted, or none")
    labels, frame = target(y).astype(str), _frame(X)
    if len(labels) != len(frame):
        raise ValueError(f"X has {len(frame)} samples, y {len(labels)}: give the class of each")
    together = None if groups is None else np.asarray(groups)
    if together is not None and len(together) != len(labels):
        raise ValueError(f"X has {len(labels)} samples, groups {len(together)}: give the group of each")
    if positive is not None and str(positive) not in labels:
        raise ValueError(f"positive is {positive!r}, but the classes are {', '.join(np.unique(labels))}")
    first, all_fitted = next(iter(models)), any(are_fitted.values())
    raw = None
    if all_fitted:
        splits = [Split(0, 0, np.empty(0, np.intp), np.arange(len(labels)))]
        settings = {"Test set": f"{len(labels):,} samples; the models were fitted before"}
        models[BASELINE] = DummyClassifier(strategy="prior").fit(np.zeros((len(labels), 1)), labels)
        raw = X if hasattr(models[first], "feature_names_in_") else np.asarray(X)
    else:
        splits = repeated_splits(labels, groups=together, n_folds=cv)
        settings = {"Cross-validation": f"stratified, {len(splits)} folds, seed 0"}
        if not named:
            models |= comparators(frame.shape[1], len(np.unique(labels)))
        models[BASELINE] = DummyClassifier(strategy="prior")
    more = {"proposed": first, "positive": None if positive is None else str(positive), "raw": raw}
    study = Study(
        first, frame, labels, models, splits, settings=settings, groups=together, are_fitted=all_fitted, **more
    )
    run = Run(study.work(explained=True))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X (has|does not have valid) feature names", UserWarning)
        for _ in run.go_on():
            pass
        write_report(path, [replace(study, results=run.results)], f"Evaluation of {first}", figures=figures)
    return Path(path)


def _name(model: Any) -> str:
    return MIXTURE if isinstance(model, CGNClassifierCV) else type(model).__name__


def _is_fitted(model: Any) -> bool:
    if not hasattr(model, "predict_proba") and not hasattr(model, "fit"):
        raise TypeError(f"{model!r} is no classifier: give one, or a mapping of names to classifiers")
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _frame(X: Any) -> Any:
    """Samples as a data frame of pandas, text as categories."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("reports need pandas: pip install 'cgnlearn[cli]'") from error

    frame = X if isinstance(X, pd.DataFrame) else X.to_pandas() if hasattr(X, "to_pandas") else None
    if frame is None:
        values = np.asarray(X)
        if values.ndim != 2:
            raise ValueError(f"X must have two dimensions (samples, features), not shape {values.shape}")
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])]).infer_objects()
    is_number, is_truth = pd.api.types.is_numeric_dtype, pd.api.types.is_bool_dtype
    text = [i for i, kind in enumerate(frame.dtypes) if not is_number(kind) or is_truth(kind)]
    text = [i for i in text if str(frame.dtypes.iloc[i]) != "category"]
    if not text:
        return frame
    columns = [frame.iloc[:, i].astype("category") if i in text else frame.iloc[:, i] for i in range(frame.shape[1])]
    return pd.concat(columns, axis=1)
