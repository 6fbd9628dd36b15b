"""Progress of a long fit: shown with ``verbose=1``, and reported to scikit-learn's callbacks (from 1.9 on).

``sklearn.callback`` is imported only if a callback is set, because it imports rich.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from importlib.util import find_spec
from time import monotonic
from typing import Any, Self, TypeVar

from sklearn.utils.metaestimators import available_if

T = TypeVar("T")
Show = Callable[[str, float | None], None]  # of words and of the share of the work done, where it is known

SECONDS_BETWEEN_LINES = 1.0
_SHOWN: ContextVar[Show | None] = ContextVar("shown", default=None)  # of the fit that runs, in its own thread


class Watched:
    """An estimator with scikit-learn's callbacks, if scikit-learn has them."""

    @available_if(lambda _: find_spec("sklearn.callback") is not None)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set callbacks for the steps of a search, such as ``sklearn.callback.ProgressBar()``."""
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


def reported(fit: Callable[..., T]) -> Callable[..., T]:
    """Report the start and end of ``fit(self, X, y, ...)`` to the user and to the estimator's callbacks."""

    @wraps(fit)
    def run(self: Any, X: Any, y: Any, *args: Any, **kwargs: Any) -> T:
        with _shown(type(self).__name__) if self.verbose else nullcontext():
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
    context, show = getattr(estimator, "_callback_fit_ctx", None), _SHOWN.get()
    started, share, n_all = monotonic(), None, None
    if expected is not None:
        n_all = len(expected)
        if context is not None:
            context.max_subtasks = n_all
    for number, state in enumerate(states, start=1):
        yield state
        if expected is not None:
            share = sum(expected[:number]) / sum(expected)
        if show is not None:
            show(steps(number, n_all, share, started), share)
        if context is not None:
            step = context.subcontext(task_name="search step").call_on_fit_task_begin(estimator=estimator)
            if step.call_on_fit_task_end(estimator=estimator, metadata={} if share is None else {"share_done": share}):
                return


def steps(n_done: int, n_all: int | None, share: float | None, started: float) -> str:
    """How many steps are done and, from the share of the work, how long the others will take."""
    if share is None:
        return f"{n_done} steps"
    return f"{n_done} of {n_all} steps, about {duration((monotonic() - started) * (1 / share - 1))} left"


def duration(seconds: float) -> str:
    """A time in words."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def followed(estimator: Any, states: Iterable[T], n_all: int) -> Iterator[T]:
    """Yield the equal steps of a long computation with a fitted estimator, shown with ``verbose=1``."""
    with _shown(type(estimator).__name__, "computing", "computed") if estimator.verbose else nullcontext():
        yield from watched(None, states, [1.0] * n_all)


@contextmanager
def _shown(what: str, doing: str = "fitting", done: str = "fitted") -> Iterator[None]:
    """Show a fit on stderr: a bar of rich or tqdm on a terminal, else lines. Also after Ctrl-C it is closed."""
    with _rich(what) or _tqdm(what) or _lines(what, doing, done) as show:
        token = _SHOWN.set(show)
        try:
            yield
        finally:
            _SHOWN.reset(token)


def _rich(what: str) -> Any:
    """A bar of rich, which also draws in notebooks; None: not here."""
    if not find_spec("rich"):
        return None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return None

    @contextmanager
    def bar() -> Iterator[Show]:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        with Progress(*columns, console=console) as progress:
            task = progress.add_task(what, total=None, now="")
            yield lambda words, share: progress.update(task, total=share and 1.0, completed=share or 0.0, now=words)
            progress.update(task, total=1.0, completed=1.0, now="")

    return bar()


def _tqdm(what: str) -> Any:
    """A bar of tqdm; None: not here."""
    if not (find_spec("tqdm") and sys.stderr.isatty()):
        return None
    from tqdm import tqdm  # type: ignore[import-untyped]

    @contextmanager
    def bar() -> Iterator[Show]:
        layout = "{desc} {percentage:3.0f}% |{bar}| {elapsed}{postfix}"
        with tqdm(total=1.0, desc=what, bar_format=layout) as progress:

            def show(words: str, share: float | None) -> None:
                progress.set_postfix_str(words, refresh=False)
                progress.update((share or 0.0) - progress.n)
                progress.refresh()

            yield show
            show("", 1.0)

    return bar()


@contextmanager
def _lines(what: str, doing: str, done: str) -> Iterator[Show]:
    """Lines, at most one a second."""
    started = printed = monotonic()

    def show(words: str, _: float | None) -> None:
        nonlocal printed
        if monotonic() - printed >= SECONDS_BETWEEN_LINES:
            printed = monotonic()
            print(f"{what}: {words}", file=sys.stderr, flush=True)

    print(f"{what}: {doing}", file=sys.stderr, flush=True)
    yield show
    print(f"{what}: {done} in {duration(monotonic() - started)}", file=sys.stderr, flush=True)
