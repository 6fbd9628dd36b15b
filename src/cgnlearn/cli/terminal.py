"""Output in the terminal: one-line errors, progress and tables. Results go to stdout, all else to stderr."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cgnlearn.cli.console import console, never_fail, text_column

if TYPE_CHECKING:
    from cgnlearn.evaluation.calibration import Calibration, MulticlassCalibration
    from cgnlearn.evaluation.decisions import Decisions
    from cgnlearn.evaluation.estimates import Estimate
    from cgnlearn.evaluation.metrics import Summary
    from cgnlearn.evaluation.run import Run
    from cgnlearn.reporting.demonstration import Comparison

SECONDS_BETWEEN_LINES = 10.0
MINUTES_FROM = 100.0  # seconds of work that are announced before they start


class Program(click.Group):
    """A group whose errors are one line on stderr; exit code 1 if the run failed, 2 if the usage is invalid."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError):  # click itself would print an empty line
            raise click.exceptions.Abort from None

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run and exit; ``--debug`` may stand anywhere."""
        given = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in given
        given = [word for word in given if word != "--debug"] or ["--help"]
        extra["standalone_mode"] = False
        never_fail()
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _warned_once()
                code = super().main(given, **extra)
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
            from cgnlearn.cli.faults import is_fault, message_of

            told = message_of(error, given) if is_fault(error) else str(error)
            say(f"error: {by_options(one_line(told)) or type(error).__name__}")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


def _warned_once() -> Callable[..., None]:
    """A function that shows each warning once, in one line; the figures in it may differ from fold to fold."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        words = by_options(one_line(str(message)))
        without_figures = re.sub(r"\d+\.\d+", "", words)
        if without_figures not in shown:
            shown.add(without_figures)
            say(f"warning: {words}")

    return show


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def by_options(advice: str) -> str:
    """Advice of the library with options of the command line."""
    advice = advice.replace('estimation="bayes"', "--estimation bayes")
    advice = advice.replace("; Prior(binding=True) keeps them", "").replace("prior_agreement_", "`cgnlearn inspect`")
    return advice.replace("drop the column", "drop the column with --ignore")


def say(message: str) -> None:
    """Print a message."""
    click.echo(f"cgnlearn: {message}", err=True)


def _bar(stderr: Any, *columns: Any) -> Any:
    """A bar on a terminal; elsewhere nothing, not even the empty line that rich before 15 prints at the end."""
    from rich.progress import Progress

    shown = stderr.is_terminal
    return Progress(*columns, console=stderr if shown else console(quiet=True), transient=True, disable=not shown)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show the elapsed time; yields a function that adds details."""
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    stderr = console(stderr=True)
    if not stderr.is_terminal:
        with _lines_now_and_then(what) as more:
            yield more
        return
    columns = (SpinnerColumn(), text_column("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda words: progress.update(task, description=f"{what}: {words}")


@contextmanager
def _lines_now_and_then(what: str) -> Iterator[Callable[[str], None]]:
    done, started, words = Event(), monotonic(), ""

    def print_lines() -> None:
        while not done.wait(SECONDS_BETWEEN_LINES):
            say(f"{what}{words}: {monotonic() - started:.0f} s")

    def more(added: str) -> None:
        nonlocal words
        words = f", {added}"

    thread = Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield more
    finally:
        done.set()
        thread.join()


@contextmanager
def fitting(model: Any) -> Iterator[None]:
    """Show progress during a fit, with the steps of a search where scikit-learn has callbacks."""
    with waiting("fitting") as show:
        if not hasattr(model, "set_callbacks"):
            yield
            return
        model.set_callbacks(_Steps(show))
        try:
            yield
        finally:
            model.__dict__.pop("_skl_callbacks", None)  # not part of the model


class _Steps:
    """A callback of scikit-learn that counts the steps of a search and estimates the time left."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self.show = show
        self.n_done = 0
        self.started = monotonic()

    def setup(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Mapping[str, float] | None = None) -> None:
        if context.parent is None:  # the fit itself
            return
        self.n_done += 1
        share = (metadata or {}).get("share_done")
        from cgnlearn.progress import steps  # late, as it imports scikit-learn

        self.show(steps(self.n_done, context.parent.max_subtasks, share, self.started))

    def teardown(self, estimator: Any, context: Any) -> None: ...


class Pace:
    """Time left of work of several kinds, from the mean time of each kind."""

    def __init__(self, kinds: Iterable[str]) -> None:  # of all parts, with repetitions
        self.todo = Counter(kinds)
        self.took: dict[str, list[float]] = {}
        self.last = monotonic()

    def done(self, kind: str) -> float | None:
        """Record a finished part; return the seconds left, or None until each kind has been timed."""
        now = monotonic()
        self.took.setdefault(kind, []).append(now - self.last)
        self.last = now
        self.todo[kind] -= 1
        if set(self.took) != set(self.todo):
            return None
        return sum(n * sum(self.took[kind]) / len(self.took[kind]) for kind, n in self.todo.items())


def with_progress(kinds: Iterable[str], what: str, n_done: int, pace: Pace) -> Iterator[str]:
    """Pass on the kinds of finished parts, with a bar and the time left on a terminal, or a line now and then."""
    from rich.progress import BarColumn, MofNCompleteColumn

    from cgnlearn.progress import duration

    stderr, printed, n_all, is_announced = console(stderr=True), monotonic(), n_done + pace.todo.total(), False
    columns = (text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), text_column("{task.fields[left]}"))
    with _bar(stderr, *columns) as progress:
        task = progress.add_task(what, total=n_all, completed=n_done, left="")
        for number, kind in enumerate(kinds, start=n_done + 1):
            seconds = pace.done(kind)
            left = "" if seconds is None else f", about {duration(seconds)} left"
            progress.update(task, advance=1, left=left.removeprefix(", "))
            if seconds is not None and seconds > MINUTES_FROM and not is_announced:
                say(f"the other {n_all - number} parts will take about {duration(seconds)}")
                is_announced, printed = True, monotonic()
            elif not stderr.is_terminal and monotonic() - printed > SECONDS_BETWEEN_LINES:
                printed = monotonic()
                say(f"{what}: {number} of {n_all}{left}")
            yield kind


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function of the rows done and all rows: a bar on a terminal, a line now and then elsewhere."""
    from rich.progress import BarColumn, TaskProgressColumn, TimeRemainingColumn

    stderr = console(stderr=True)
    printed = monotonic()

    def show(n_done: int, n_all: int) -> None:
        nonlocal printed
        if not stderr.is_terminal and monotonic() - printed > SECONDS_BETWEEN_LINES:
            printed = monotonic()
            say(f"{what}: {n_done:,} of {n_all:,} rows")
        progress.update(task, completed=n_done, total=n_all)

    columns = (text_column("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with _bar(stderr, *columns) as progress:
        task = progress.add_task(what, total=None)
        yield show


def print_expected_time(model: Any, X: Any, y: Any, n_fits: int = 1, jobs: int = 1) -> None:
    """Print the expected time of the fits of a mixture if it is minutes."""
    from cgnlearn import CGNClassifierCV
    from cgnlearn.estimators.mixture_classifier import expected_seconds
    from cgnlearn.progress import duration

    # The library's warning, one for each fold, names parameters that are not options.
    warnings.filterwarnings("ignore", "comparing these candidates may take", UserWarning)
    if isinstance(model, CGNClassifierCV):
        seconds = expected_seconds(model, X, y) * n_fits / (jobs if jobs > 0 else os.cpu_count() or 1)
        if seconds > MINUTES_FROM:
            fits = f"{n_fits} fits" if n_fits > 1 else "a fit"
            say(f"{fits} of the mixture may take {duration(seconds)}: --time-limit or a single --structure is faster")


def finish(run: Run[Any], what: str, jobs: int) -> bool:
    """Compute the missing parts of a run and show progress; False if the user interrupts it."""
    n_all = len(run.work.sizes)
    n_done = n_all - len(run.missing)
    if n_done:
        say(f"continuing from {n_done} of {n_all} finished parts in {run.folder}")
    # After Ctrl-C joblib warns of unfinished tasks.
    warnings.filterwarnings("ignore", ".*tasks.*", UserWarning, "joblib")
    try:
        pace = Pace(unit.name for unit in run.missing)
        for _ in with_progress((unit.name for unit in run.go_on(jobs)), what, n_done, pace):
            pass
    except KeyboardInterrupt:
        again = f"; call again to continue from {run.folder}" if run.folder else ""
        say(f"interrupted after {n_all - len(run.missing)} of {n_all} parts{again}")
        return False
    return True


class Beside(NamedTuple):
    """What a table shows of each model beside its metrics; a model may lack any of it."""

    costs: Mapping[str, Estimate] = {}
    auc: Mapping[str, Estimate] = {}


def print_table(summaries: Sequence[Summary], title: str, beside: Beside | None = None, unit: str = "sample") -> None:
    """Print a table of metrics and, if given, of the AUC and of mean costs."""
    from cgnlearn.evaluation.metrics import METRICS

    costs, auc = beside or Beside()
    rows = []
    for summary in summaries:
        cells = [f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}") for mean, sd in summary.metrics.values()]
        note = f" ({summary.n_folds - summary.n_without} of {summary.n_folds} folds)" if summary.n_without else ""
        cells = cells or ["does not exist"] * len(METRICS)
        if auc:
            cells.append(f"{auc[summary.model].value:.3f}" if summary.model in auc else "")
        if costs:
            cells.append(_with_interval(costs.get(summary.model)))
        rows.append([summary.model + note, *cells])
    headings = [metric.label for metric in METRICS.values()] + ["AUC"] * bool(auc)
    headings += [f"cost per {unit}"] * bool(costs)
    print_rows(title, ["model"], headings, rows)


def print_by_site(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the log loss of every model at every site that was held out."""
    models = list(rows[0]["log_loss"]) if rows else []
    cells = [
        [
            str(row["site"]),
            str(row["samples"]),
            *("" if loss is None else f"{loss:.3f}" for loss in row["log_loss"].values()),
        ]
        for row in rows
    ]
    print_rows("log loss by site, each held out", ["site"], ["samples", *models], cells)


def print_warnings(summaries: Sequence[Summary]) -> None:
    """Print a line for each model that does not exist in some fold, or that is worse than the class frequencies."""
    from cgnlearn.evaluation.study import BASELINE

    for summary in summaries:
        if summary.n_without and summary.reason is not None:
            folds = f"{summary.n_without} of {summary.n_folds} folds"
            say(f"{summary.model} does not exist in {folds}: {by_options(one_line(summary.reason))}")
    loss = {summary.model: summary.metrics["log_loss"].mean for summary in summaries if not summary.n_without}
    for model, value in loss.items():
        if value > loss.get(BASELINE, value):
            say(f"{model} has a higher log loss than the class frequencies: do not use it")


def print_decisions(decisions: Mapping[str, Decisions], title: str) -> None:
    """Print a table of the quality of decisions."""
    rows = []
    for model, of in decisions.items():
        measures = of.auc, of.sensitivity, of.specificity, of.positive_predictive_value, of.negative_predictive_value
        rows.append([model, *map(_with_interval, measures)])
    print_rows(title, ["model"], ["AUC", "sensitivity", "specificity", "PPV", "NPV"], rows)


def print_calibration(found: Mapping[str, Calibration | MulticlassCalibration], label: str | None) -> None:
    """Print a table of calibration, with what it says."""
    rows = []
    for model, of in found.items():
        of_class = [getattr(of, name, None) for name in ("observed_expected", "intercept")] if label is not None else []
        rows.append([model, *map(_with_interval, [*of_class, of.slope]), of.words])
    headings = ["observed/expected", "intercept", "slope"] if label is not None else ["slope"]
    about = "all probabilities" if label is None else f"the probabilities of {label}"
    if rows:
        title = f"calibration of {about}, 95% confidence intervals"
        print_rows(title, ["model"], [*headings, "in words"], rows)


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    span = estimate.span("{:.3f}".format, to="–")
    return f"{estimate.value:.3f} ({span})" if span else f"{estimate.value:.3f}"


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Print maximum likelihood and Bayesian averaging, a line for each set, structure and number of samples."""
    rows = []
    for part in comparisons:
        cells = [
            f"{summary.metrics[metric].mean:.3f}" if not summary.n_without else "does not exist"
            for metric in ("accuracy", "log_loss")
            for summary in part.study.summaries
        ]
        rows.append([part.study.name, part.structure, str(part.n_train), *cells])
    title = "maximum likelihood (ML) and Bayesian averaging (Bayes)"
    print_rows(title, ["set", "structure"], ["samples", "accuracy ML", "Bayes", "log loss ML", "Bayes"], rows)


def print_rows(title: str, words: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with columns of words, then columns of numbers."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    console(width=None if sys.stdout.isatty() else 120).print(table)
