"""What a person sees in the terminal: one-line errors, progress and tables. Data go to stdout, all else to stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cgnlearn.evaluation.decisions import Decisions
    from cgnlearn.evaluation.estimates import Estimate
    from cgnlearn.evaluation.metrics import Summary
    from cgnlearn.evaluation.run import Run
    from cgnlearn.report.demonstration import Comparison

SECONDS_BETWEEN_LINES = 10.0
MINUTES_FROM = 100.0  # seconds of work that a person wants to know of beforehand


class Program(click.Group):
    """A group whose errors are one line on stderr: 1 if the run failed, 2 if the call is wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click itself would put an empty line before what is said of an interruption."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError):
            raise click.exceptions.Abort from None

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run, and leave with the exit code; ``--debug`` is taken wherever it stands."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        extra["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warned_once()
                code = super().main([word for word in given if word != "--debug"], **extra)
        except click.exceptions.Abort:
            say("interrupted")
            code = 1
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            help_of = context.command_path if context else "cgnlearn"
            hint = f" (see {help_of} --help)" if isinstance(error, click.UsageError) else ""
            say(f"error: {one_line(error.format_message())}{hint}")
            code = error.exit_code
        except ModuleNotFoundError as error:
            if debug or error.name is None or error.name.startswith("cgnlearn"):
                raise
            say(f"error: this needs {error.name.split('.')[0]}: pip install 'cgnlearn[cli]'")
            code = 1
        except Exception as error:
            if debug:
                raise
            say(f"error: {by_options(one_line(str(error))) or type(error).__name__}")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


def _warned_once() -> Callable[..., None]:
    """What shows a warning, in one line and once: the same data are often gone through again."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        words = one_line(str(message))
        if words not in said:
            said.add(words)
            say(f"warning: {words}")

    return show


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def by_options(advice: str) -> str:
    """What the library advises, in the words of the command line."""
    for parameter, option in (
        ('estimation="bayes"', "--estimation bayes"),
        ("drop the column", "drop the column with --ignore"),
    ):
        advice = advice.replace(parameter, option)
    return advice


def say(message: str) -> None:
    """A message to the person."""
    click.echo(f"cgnlearn: {message}", err=True)


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _bar(console: Any, *columns: Any) -> Any:
    """A bar on a terminal; elsewhere nothing, not even the empty line with which rich before 15 ends what it hides."""
    from rich.console import Console
    from rich.progress import Progress

    shown = console.is_terminal
    return Progress(*columns, console=console if shown else Console(quiet=True), transient=True, disable=not shown)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A sign of life with the time that has passed; what it yields may be called with more words."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = _stderr()
    if not console.is_terminal:
        with _told_now_and_then(what) as more:
            yield more
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda words: progress.update(task, description=f"{what}: {words}")


@contextmanager
def _told_now_and_then(what: str) -> Iterator[Callable[[str], None]]:
    """A line now and then, as long as something lasts."""
    done, started, words = Event(), monotonic(), ""

    def tell() -> None:
        while not done.wait(SECONDS_BETWEEN_LINES):
            say(f"{what}{words}: {monotonic() - started:.0f} s")

    def more(added: str) -> None:
        nonlocal words
        words = f", {added}"

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield more
    finally:
        done.set()
        thread.join()


@contextmanager
def fitting(model: Any) -> Iterator[None]:
    """A sign of life during a fit, with the steps of its inner choices where scikit-learn tells of them."""
    with waiting("fitting") as tell:
        if not hasattr(model, "set_callbacks"):
            yield
            return
        model.set_callbacks(_Steps(tell))
        try:
            yield
        finally:
            model.__dict__.pop("_skl_callbacks", None)  # it is no part of the model


class _Steps:
    """A callback of scikit-learn that counts the steps of a search, and says how long it will go on."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.n_done = 0
        self.started = monotonic()

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be made ready."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Steps are counted when they end."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Mapping[str, float] | None = None) -> None:
        """Count a step, but not the fit itself."""
        if context.parent is None:
            return
        self.n_done += 1
        share = (metadata or {}).get("share_done")
        if share is None:
            self.tell(f"{self.n_done} steps")
        else:
            left = (monotonic() - self.started) * (1 / share - 1)
            self.tell(f"{self.n_done} of {context.parent.max_subtasks} steps, about {_in_words(left)} left")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be put away."""


class Pace:
    """How long work of several kinds goes on, by what each kind has taken so far.

    Parameters
    ----------
    kinds : iterable of str
        Of all parts of the work, with repetitions.
    """

    def __init__(self, kinds: Iterable[str]) -> None:
        self.todo = Counter(kinds)
        self.took: dict[str, list[float]] = {}
        self.last = monotonic()

    def done(self, kind: str) -> float | None:
        """One part is done: the seconds that are left, or None as long as a kind has not been seen."""
        now = monotonic()
        self.took.setdefault(kind, []).append(now - self.last)
        self.last = now
        self.todo[kind] -= 1
        if set(self.took) != set(self.todo):
            return None
        return sum(n * sum(self.took[kind]) / len(self.took[kind]) for kind, n in self.todo.items())


def with_progress(kinds: Iterable[str], what: str, n_done: int, pace: Pace) -> Iterator[str]:
    """The same kinds of parts that get done, with a bar and the time left on a terminal, or a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn

    console, said, n_all, is_warned = _stderr(), monotonic(), n_done + pace.todo.total(), False
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with _bar(console, *columns) as progress:
        task = progress.add_task(what, total=n_all, completed=n_done, left="")
        for number, kind in enumerate(kinds, start=n_done + 1):
            seconds = pace.done(kind)
            left = "" if seconds is None else f", about {_in_words(seconds)} left"
            progress.update(task, advance=1, left=left.removeprefix(", "))
            if seconds is not None and seconds > MINUTES_FROM and not is_warned:
                say(f"the other {n_all - number} parts will take about {_in_words(seconds)}")
                is_warned, said = True, monotonic()
            elif not console.is_terminal and monotonic() - said > SECONDS_BETWEEN_LINES:
                said = monotonic()
                say(f"{what}: {number} of {n_all}{left}")
            yield kind


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """What may be called with the rows done and all rows: a bar on a terminal, a line now and then elsewhere."""
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = _stderr()
    said = monotonic()

    def tell(n_done: int, n_all: int) -> None:
        nonlocal said
        if not console.is_terminal and monotonic() - said > SECONDS_BETWEEN_LINES:
            said = monotonic()
            say(f"{what}: {n_done:,} of {n_all:,} rows")
        progress.update(task, completed=n_done, total=n_all)

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with _bar(console, *columns) as progress:
        task = progress.add_task(what, total=None)
        yield tell


def _in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def foretell(model: Any, X: Any, y: Any, n_fits: int = 1, jobs: int = 1) -> None:
    """Say how long the fits will take, if that is minutes, before they begin."""
    from cgnlearn import CGNClassifierCV
    from cgnlearn.estimators.mixture_classifier import expected_seconds

    # What it says itself, and once for each fold, advises parameters that are no options.
    warnings.filterwarnings("ignore", "comparing these candidates may take", UserWarning)
    if isinstance(model, CGNClassifierCV):
        seconds = expected_seconds(model, X, y) * n_fits / (jobs if jobs > 0 else os.cpu_count() or 1)
        if seconds > MINUTES_FROM:
            fits = f"{n_fits} fits" if n_fits > 1 else "a fit"
            say(f"{fits} of the mixture may take {_in_words(seconds)}: name a --structure for something quicker")


def finish(run: Run[Any], what: str, jobs: int) -> bool:
    """Compute what is missing, with the time left; False if the person ends it before."""
    n_all = len(run.work.sizes)
    n_done = n_all - len(run.missing)
    if n_done:
        say(f"going on from {n_done} of {n_all} finished parts in {run.folder}")
    # After Ctrl-C joblib says how much of the work was in vain: that is the person's own wish.
    warnings.filterwarnings("ignore", ".*tasks.*", UserWarning, "joblib")
    try:
        pace = Pace(unit.name for unit in run.missing)
        for _ in with_progress((unit.name for unit in run.go_on(jobs)), what, n_done, pace):
            pass
    except KeyboardInterrupt:
        again = f"; call again to go on from {run.folder}" if run.folder else ""
        say(f"interrupted after {n_all - len(run.missing)} of {n_all} parts{again}")
        return False
    return True


def print_table(
    summaries: Sequence[Summary], title: str, costs: Mapping[str, Estimate] | None = None, unit: str = "row"
) -> None:
    """A table of metrics, and of mean costs where there are any, on stdout."""
    from cgnlearn.evaluation.metrics import METRICS

    rows = []
    for summary in summaries:
        cells = [f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}") for mean, sd in summary.metrics.values()]
        note = f" ({summary.n_folds - summary.n_without} of {summary.n_folds} folds)" if summary.n_without else ""
        cells = cells or ["does not exist"] * len(METRICS)
        if costs:
            cells.append(_with_interval(costs.get(summary.model)))
        rows.append([summary.model + note, *cells])
    headings = [*(metric.label for metric in METRICS.values()), *([f"cost per {unit}"] if costs else [])]
    _print(title, ["model"], headings, rows)


def tell_of_no_answer(summaries: Sequence[Summary]) -> None:
    """A line for each model that does not exist in some fold: where, and what can be done about it."""
    for summary in summaries:
        if summary.n_without and summary.reason is not None:
            folds = f"{summary.n_without} of {summary.n_folds} folds"
            say(f"{summary.model} has no answer in {folds}: {by_options(one_line(summary.reason))}")


def warn_of_worse_than_nothing(summaries: Sequence[Summary]) -> None:
    """A line for each model that answered everywhere and has a greater log loss than what looks at nothing."""
    from cgnlearn.evaluation.study import BASELINE

    loss = {summary.model: summary.metrics["log_loss"].mean for summary in summaries if not summary.n_without}
    for model, value in loss.items():
        if value > loss.get(BASELINE, value):
            say(f"{model} gives the true classes less probability than the class frequencies do: do not use it")


def print_decisions(decisions: Mapping[str, Decisions], title: str) -> None:
    """A table of what models are worth to those who decide, on stdout."""
    rows = []
    for model, of in decisions.items():
        found = of.auc, of.sensitivity, of.specificity, of.positive_predictive_value, of.negative_predictive_value
        rows.append([model, *map(_with_interval, found)])
    _print(title, ["model"], ["AUC", "sensitivity", "specificity", "PPV", "NPV"], rows)


def _with_interval(found: Estimate | None) -> str:
    return "" if found is None else f"{found.value:.3f} ({found.span('{:.3f}'.format, to='–')})"


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Maximum likelihood beside Bayesian averaging, a line for each set, structure and number of rows, on stdout."""
    rows = []
    for part in comparisons:
        cells = [
            f"{way.metrics[metric].mean:.3f}" if not way.n_without else "does not exist"
            for metric in ("accuracy", "log_loss")
            for way in part.study.summaries
        ]
        rows.append([part.study.name, part.structure, str(part.n_train), *cells])
    title = "maximum likelihood (ML) beside Bayesian averaging (Bayes)"
    _print(title, ["set", "structure"], ["rows", "accuracy ML", "Bayes", "log loss ML", "Bayes"], rows)


def _print(title: str, words: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table with some columns of words and some of numbers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 110).print(table)
