"""Progress of a search, told to scikit-learn's callbacks where there are any (experimental, from 1.9 on).

Nothing of ``sklearn.callback`` is imported before someone sets a callback: it brings rich along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from sklearn.utils.metaestimators import available_if

T = TypeVar("T")


class Watched:
    """An estimator that takes scikit-learn's callbacks, if scikit-learn has them."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set the callbacks that hear of the steps of a search, such as ``sklearn.callback.ProgressBar()``."""
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


def reported(fit: Callable[..., T]) -> Callable[..., T]:
    """A ``fit(self, X, y, ...)`` of whose beginning and end the estimator's callbacks hear."""

    @wraps(fit)
    def run(self: Any, X: Any, y: Any, *args: Any, **kwargs: Any) -> T:
        if not (hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")):
            return fit(self, X, y, *args, **kwargs)
        from sklearn.callback import CallbackSupportMixin, with_callbacks

        def task(self: Any) -> T:
            context = CallbackSupportMixin._init_callback_context(self, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self, X=X, y=y)
            fitted = fit(self, X, y, *args, **kwargs)
            context.call_on_fit_task_end(estimator=self, X=X, y=y)
            return fitted

        fitted: T = with_callbacks(task)(self)
        return fitted

    return run


def watched(estimator: Any, states: Iterable[T], expected: Sequence[float] | None = None) -> Iterator[T]:
    """The states of a search, each one a task of the estimator's fit; a callback may stop it.

    Where it is known beforehand how many there are and about how long each takes, callbacks hear of the share of the
    work that is done: ``metadata["share_done"]``.
    """
    context = getattr(estimator, "_callback_fit_ctx", None)
    if context is None:
        yield from states
        return
    metadata: dict[str, float] = {}
    if expected is not None:
        context.max_subtasks = len(expected)
    for number, state in enumerate(states, start=1):
        yield state
        if expected is not None:
            metadata = {"share_done": sum(expected[:number]) / sum(expected)}
        step = context.subcontext(task_name="search step").call_on_fit_task_begin(estimator=estimator)
        if step.call_on_fit_task_end(estimator=estimator, metadata=metadata):
            return
