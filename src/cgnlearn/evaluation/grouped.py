"""Options for fitting models and pipelines so that their inner folds keep groups together."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from cgnlearn.data.splits import stratified

DEFAULT_FOLDS = 5  # of scikit-learn, for cv=None


def last_step(model: Any) -> Any:
    """The model itself, or the last step of a pipeline."""
    while isinstance(model, Pipeline):
        model = model[-1]
    return model


def steps_before(model: Any) -> Iterator[Any]:
    """The steps of a pipeline before the last, outermost first; none for other models."""
    while isinstance(model, Pipeline):
        yield from (step for _, step in model.steps[:-1])
        model = model[-1]


def fit_options(
    model: Any, y: NDArray[Any], groups: NDArray[Any] | None, sites: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Arguments of ``fit`` besides X and y.

    A last step whose ``fit`` has ``groups`` or ``sites`` gets them. The ``cv`` of one that cross-validates in another
    way, such as LogisticRegressionCV, is set to the same number of folds with groups kept together.
    """
    last, path = last_step(model), ""
    while isinstance(model, Pipeline):
        name, model = model.steps[-1]
        path += f"{name}__"
    taken = signature(last.fit).parameters
    given = {"groups": groups, "sites": sites}
    found = {f"{path}{name}": part for name, part in given.items() if part is not None and name in taken}
    if groups is not None and "groups" not in taken and hasattr(last, "cv"):
        is_splitter = hasattr(last.cv, "get_n_splits")
        n_folds = last.cv.get_n_splits(None, y) if is_splitter else last.cv or DEFAULT_FOLDS
        last.set_params(cv=stratified(y, n_folds, 0, groups).pairs)
    return found
