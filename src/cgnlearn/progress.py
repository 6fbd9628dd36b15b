"""Progress of a search, reported to scikit-learn's callbacks (experimental, from 1.9 on).

``sklearn.callback`` is imported only if a callback is set, because it imports rich.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from sklearn.utils.metaestimators import available_if

T = TypeVar("T")


class Watched:
    """An estimator with scikit-learn's callbacks, if scikit-learn has them."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks for the steps of a search, such as ``sklearn.callback.ProgressBar()``."""
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


def reported(fit: Callable[..., T]) -> Callable[..., T]:
    """Report the start and end of ``fit(self, X, y, ...)`` to the estimator's callbacks."""

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
    """Yield the states of a search, each a task of the estimator's fit; a callback may stop it.

    With the expected time of each state, callbacks get the share of the work done in ``metadata["share_done"]``.
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
