"""The options of the commands, and the data and the classifier that they ask for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from cgnlearn.candidates.registry import MIXTURE, NAMES, NETWORKS
from cgnlearn.cli.models import ESTIMATIONS
from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    from cgnlearn.tables.formats import Source
    from cgnlearn.tables.read import Data
    from cgnlearn.tables.roles import Roles


def number_or_cv(kind: type[int] | type[float]) -> Callable[[Any], Any]:
    """The type of an option that is a number above zero, or the word cv."""

    def convert(value: Any) -> Any:
        what = "a whole number" if kind is int else "a number"
        try:
            found = value if value == "cv" else kind(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is neither {what} nor cv") from None
        if found != "cv" and not 0 < found < float("inf"):
            raise click.BadParameter(f"{value!r} is not {what} above 0, nor cv")
        return found

    return convert


def probabilities(value: str) -> dict[str, float]:
    """The type of an option such as cancer=0.01,normal=0.99."""
    found: dict[str, float] = {}
    for part in value.split(","):
        name, sign, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not 0 < found.get(name.strip(), 0) < 1:
            raise click.BadParameter(
                f"{part!r} is not of the form CLASS=PROBABILITY, with a probability between 0 and 1"
            )
    if abs(sum(found.values()) - 1) > 0.001:
        raise click.BadParameter(f"the probabilities sum to {sum(found.values()):g}, not to 1")
    return found


def folds_and_repeats(value: str) -> tuple[int, int]:
    """The type of an option such as 10x3."""
    folds, _, repeats = value.lower().partition("x")
    try:
        pair = int(folds), int(repeats or 1)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not of the form 10x3 (folds x repetitions)") from None
    if pair[0] < 2 or pair[1] < 1:
        raise click.BadParameter(f"{value!r} needs at least 2 folds and 1 repetition")
    return pair


class Output(click.Path):
    """Where something is to be written: tried when the command is called, not when the work is done."""

    def __init__(self, *, makes_folder: bool = False, is_folder: bool = False) -> None:
        super().__init__(dir_okay=is_folder, file_okay=not is_folder, path_type=Path)
        self.makes_folder = makes_folder

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path, if it can be written to."""
        from cgnlearn.files import NotWrittenError, check_writable

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            check_writable(path, makes_folder=self.makes_folder)
        except NotWrittenError as error:
            self.fail(str(error), param, ctx)
        return path


class Bytes(click.ParamType):  # type: ignore[type-arg]
    """An amount of memory, such as 2GB."""

    name = "SIZE"
    units: ClassVar = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """The number of bytes."""
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMGT]?)I?B?", value.strip().upper())
        if found is None:
            self.fail(f"{value!r} is no amount of memory such as 500MB or 2GB")
        return int(float(found[1]) * self.units[found[2]])


EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
DATA = click.Path(exists=True, path_type=Path)  # a file, or a folder of spectra
NEW_FILE = Output()
NEW_REPORT = Output(makes_folder=True)
NEW_FOLDER = Output(makes_folder=True, is_folder=True)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _options(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


id_option = click.option(
    "--id", "row_id", metavar="COLUMN", help="Column that names the rows: carried along, never a feature."
)
na_option = click.option(
    "--na", multiple=True, metavar="WORDS",
    help="Spellings of a missing value, separated by commas, besides empty, NA and ?.",
)  # fmt: skip
cost_option = click.option(
    "--cost",
    type=EXISTING,
    help="Costs of decisions: a csv with a row for each class, a column for each decision.",
)
data_options = _options(
    click.argument("data", type=DATA),
    click.option("-t", "--target",
                 help="Column of the classes (npz: array, default y; spectra: of the table of labels, default label)."),
    id_option,
    click.option("--groups", metavar="COLUMN",
                 help="Column that says which rows belong together, such as a subject's."),
    click.option("--ignore", multiple=True, metavar="COLUMNS", help="Columns to leave out, separated by commas."),
    click.option("--categorical", multiple=True, metavar="COLUMNS",
                 help="Columns of numbers that are mere labels, separated by commas. Columns of words always are."),
    na_option,
    click.option("--drop-missing", is_flag=True, help="Leave out rows with a missing value."),
)  # fmt: skip


seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
memory_option = click.option(
    "--memory", type=Bytes(), help="Files that need more are read in parts; default: half of the machine's memory."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def model_options(*, many: bool, of_rows: bool = True) -> Decorator:
    """The options that make a classifier of rows, or of statistics; ``many``: several may be given."""
    again = " May be repeated." if many else ""
    default = MIXTURE if of_rows else "naive_bayes"
    ordered = click.option("--ordered", is_flag=True, help="The order of the columns means something, as in spectra.")
    return _options(
        click.option(
            "-s",
            "--structure",
            type=click.Choice(NAMES if of_rows else NETWORKS),
            multiple=many,
            help=f"Which features depend on which.{again}  [default: {default}]",
        ),
        click.option(
            "--k",
            type=number_or_cv(int),
            metavar="NUMBER|CV",
            help="Order of band and box, or cv to choose it.  [default: cv]",
        ),
        click.option(
            "--k-max",
            type=click.IntRange(1),
            help="Largest order that --k cv tries, or that band_average averages over.  [default: 20]",
        ),
        click.option(
            "-p",
            "--estimation",
            type=click.Choice(ESTIMATIONS),
            multiple=many,
            help="Exact Bayesian averaging, maximum likelihood, or penalised conditional likelihood."
            f"{again}  [default: {'ml, bayes' if many else 'bayes'}]",
        ),
        click.option(
            "--sharing",
            type=click.FloatRange(0, 1),
            help="How much the classes share slopes and variances.  [default: 0]",
        ),
        click.option(
            "--prior-location",
            type=click.Choice(("pooled", "paper", "cell")),
            help="Where the prior expects the means.  [default: pooled]",
        ),
        click.option(
            "--likelihood-power",
            type=number_or_cv(float),
            metavar="NUMBER|CV",
            help="Trust in the features, or cv to choose it.  [default: 1]",
        ),
        *([ordered] if of_rows else []),
        seed_option,
    )


def jobs_option(default: int) -> Decorator:
    """How many processes work."""

    def checked(ctx: Any, param: Any, value: int) -> int:
        if value == 0:
            raise click.UsageError("--jobs must be a number of processes, or -1 for all cores")
        return value

    return click.option("-j", "--jobs", type=int, default=default, show_default=True, callback=checked,
                        help="Processes; -1 takes all cores.")  # fmt: skip


def opened(path: Path, arrays: Sequence[str] = ()) -> Source:
    """What a file is; a column that is not there is a wrong call."""
    from cgnlearn.tables.formats import source_of

    with wrong_columns(), waiting(f"looking at {path}"):
        return source_of(path, arrays)


@contextmanager
def wrong_columns() -> Iterator[None]:
    """A column that is not there is a wrong call."""
    from cgnlearn.tables.formats import ColumnError

    try:
        yield
    except ColumnError as error:
        raise click.UsageError(str(error)) from None


def is_beyond(source: Source, memory: int | None) -> bool:
    """Whether a file that can be read in parts needs more memory than it may have."""
    if memory is None:
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, ValueError, OSError):
            return False  # where a system does not tell, only what is asked for counts
    return source.memory > memory


def training_data(source: Source, roles: Roles, drop_missing: bool) -> Data:
    """The data that the options ask for."""
    from cgnlearn.tables.read import training_data as read

    with wrong_columns(), waiting(f"reading {source.path}"):
        data = read(source, roles, drop_missing=drop_missing)
    for remark in data.remarks:
        say(remark)
    return data


def listed_columns(given: Sequence[str]) -> list[str]:
    """Names separated by commas, in one option or several."""
    return [name.strip() for names in given for name in names.split(",") if name.strip()]
