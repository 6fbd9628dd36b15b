"""Progress of a search, told to scikit-learn's callbacks where there are any (experimental, from 1.9 on)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's where it has none."""

    with_callbacks = None

__all__ = ["CallbackSupportMixin", "reported", "watched"]

T = TypeVar("T")


def reported(fit: Callable[..., T]) -> Callable[..., T]:
    """A ``fit(self, X, y, ...)`` of whose beginning and end the estimator's callbacks hear."""
    if with_callbacks is None:
        return fit

    @wraps(fit)
    def run(self: Any, X: Any, y: Any, *args: Any, **kwargs: Any) -> T:
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        fitted = fit(self, X, y, *args, **kwargs)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return fitted

    managed: Callable[..., T] = with_callbacks(run)
    return managed


def watched(estimator: Any, states: Iterable[T]) -> Iterator[T]:
    """The states of a search, each one a task of the estimator's fit; a callback may stop it."""
    context = getattr(estimator, "_callback_fit_ctx", None)
    for state in states:
        yield state
        if context is not None:
            step = context.subcontext(task_name="search step").call_on_fit_task_begin(estimator=estimator)
            if step.call_on_fit_task_end(estimator=estimator):
                return
