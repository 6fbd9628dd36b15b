"""Fitting a model, or a pipeline that ends in one, so that what it chooses by itself parts no group."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from cgnlearn.data.splits import stratified

USUAL_FOLDS = 5  # what None means to scikit-learn


def last_step(model: Any) -> Any:
    """The model itself, or the last step of the pipeline that holds it."""
    while isinstance(model, Pipeline):
        model = model[-1]
    return model


def steps_before(model: Any) -> Iterator[Any]:
    """The steps of a pipeline before the last, outermost first; none of what is no pipeline."""
    while isinstance(model, Pipeline):
        yield from (step for _, step in model.steps[:-1])
        model = model[-1]


def fit_options(model: Any, y: NDArray[Any], groups: NDArray[Any] | None) -> dict[str, Any]:
    """What to give ``fit`` besides X and y.

    A last step whose ``fit`` takes ``groups`` gets them; one that cross-validates, such as LogisticRegressionCV, is set
    to as many folds that part no group.

    Parameters
    ----------
    model : estimator or Pipeline
        Not yet fitted; its ``cv`` is set where that is needed.
    y, groups : ndarray (samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from cgnlearn import CGNClassifier
    >>> model = make_pipeline(StandardScaler(), CGNClassifier(likelihood_power="cv"))
    >>> list(fit_options(model, np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])))
    ['cgnclassifier__groups']
    """
    if groups is None:
        return {}
    last = last_step(model)
    if "groups" in signature(last.fit).parameters:
        path = ""
        while isinstance(model, Pipeline):
            name, model = model.steps[-1]
            path += f"{name}__"
        return {f"{path}groups": groups}
    if hasattr(last, "cv"):
        splits = hasattr(last.cv, "get_n_splits")
        n_folds = last.cv.get_n_splits(None, y) if splits else last.cv or USUAL_FOLDS
        last.set_params(cv=stratified(y, n_folds, 0, groups).pairs)
    return {}
