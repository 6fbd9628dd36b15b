"""Options that several commands share."""

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
from cgnlearn.cli.terminal import waiting

if TYPE_CHECKING:
    from cgnlearn.tables.formats import Source

ESTIMATE = "estimate"


def number_or_cv(kind: type[int] | type[float]) -> Callable[[Any], Any]:
    """The type of an option that is a number above zero, or the word cv."""

    def convert(value: Any) -> Any:
        what = "a whole number" if kind is int else "a number"
        try:
            number = value if value == "cv" else kind(value)
        except ValueError:
            raise click.BadParameter(f"{value!r} is neither {what} nor cv") from None
        if number != "cv" and not 0 < number < float("inf"):
            raise click.BadParameter(f"{value!r} is not {what} above 0, nor cv")
        return number

    return convert


def share(value: Any) -> float:
    """The type of an option that is a number between 0 and 1."""
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not 0 < number < 1:
        raise click.BadParameter(f"{value!r} is not a number between 0 and 1, such as 0.9")
    return number


def probabilities(value: str) -> dict[str, float]:
    """The type of an option such as cancer=0.01,normal=0.99."""
    return _numbers_by_name(value, 1.0, "CLASS=PROBABILITY with a probability between 0 and 1")


def positive_numbers(value: str) -> dict[str, float]:
    """The type of an option such as ecg=20,scan=300."""
    return _numbers_by_name(value, float("inf"), "COLUMN=COST with a positive cost")


def _numbers_by_name(value: str, below: float, form: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in value.split(","):
        name, sign, number = part.rpartition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            sign = ""
        if not sign or not 0 < found.get(name.strip(), 0) < below:
            raise click.BadParameter(f"{part!r} is not {form}")
    return found


@contextmanager
def usage_errors() -> Iterator[None]:
    """Wrong values are usage errors."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def probabilities_or_estimate(value: str) -> dict[str, float] | str:
    """The type of an option such as cancer=0.01,normal=0.99, or the word estimate."""
    return value if value == ESTIMATE else probabilities(value)


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


class Input(click.Path):
    """A file, or a folder if that is allowed; files are read more than once, which a pipe does not allow."""

    def __init__(self, *, dir_okay: bool = True) -> None:
        super().__init__(exists=True, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.is_dir() and not path.is_file():
            self.fail(f"{path} is not a regular file: save its content to one", param, ctx)
        return path


class Output(click.Path):
    """A path to write to, checked before the work starts."""

    def __init__(self, *, makes_folder: bool = False, is_folder: bool = False) -> None:
        super().__init__(dir_okay=is_folder, file_okay=not is_folder, path_type=Path)
        self.makes_folder = makes_folder

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
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
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*([KMGT]?)I?B?", value.strip().upper())
        if found is None:
            self.fail(f"{value!r} is not an amount of memory such as 500MB or 2GB")
        return int(float(found[1]) * self.units[found[2]])


EXISTING = Input(dir_okay=False)
DATA = Input()  # a file, or a folder of spectra
NEW_FILE = Output()
NEW_REPORT = Output(makes_folder=True)
NEW_FOLDER = Output(makes_folder=True, is_folder=True)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def combined(*options: Decorator) -> Decorator:
    """Several options as one decorator."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


TARGET = "Column of the classes (npz: array, default y; spectra: column of the labels, default label)."
ID = "Column that names the rows: copied to the output, never a feature."
GROUPS = "Column of groups, such as subjects: rows of one group are kept together in folds."
SITE = "Column of sites, instruments or batches: features get a shift by site; evaluate holds out whole sites."
IGNORE = "Columns to exclude, separated by commas."
CATEGORICAL = "Columns of numbers that are labels, separated by commas. Columns of words always are."
NA = "Spellings of a missing value, separated by commas, besides empty, NA and ?."
COST = "Costs of decisions: a csv file with a row for each class and a column for each decision."
POSITIVE = "Class to distinguish from the others: AUC, sensitivity, specificity, ..."
PREVALENCE = "Of the positive class where decisions will be made; default: as in the data."
THRESHOLD = "Probability from which on the positive class is called; may be repeated.  [default: 0.5]"
BY = "Columns of subgroups, separated by commas, such as sex,site; they need not be features."
TRIPOD = "Path of a page for a paper: the items of TRIPOD+AI, those filled in that the run knows."
MEMORY = "Files that need more are read in batches, xlsx and npz refused; default: half of the machine's."

id_option = click.option("--id", "row_id", metavar="COLUMN", help=ID)
sheet_option = click.option("--sheet", metavar="NAME", help="Sheet of an xlsx file; default: the first.")
na_option = click.option("--na", multiple=True, metavar="WORDS", help=NA)
cost_option = click.option("--cost", type=EXISTING, help=COST)
positive_option = click.option("--positive", metavar="CLASS", help=POSITIVE)
prevalence_option = click.option(
    "--prevalence", type=click.FloatRange(0, 1, min_open=True, max_open=True), help=PREVALENCE
)
threshold_option = click.option(
    "--threshold", "threshold", multiple=True, type=click.FloatRange(0, 1, min_open=True, max_open=True), help=THRESHOLD
)
by_option = click.option("--by", multiple=True, metavar="COLUMNS", help=BY)
data_options = combined(
    click.argument("data", type=DATA),
    click.option("-t", "--target", help=TARGET),
    id_option,
    click.option("--groups", metavar="COLUMN", help=GROUPS),
    click.option("--site", metavar="COLUMN", help=SITE),
    click.option("--ignore", multiple=True, metavar="COLUMNS", help=IGNORE),
    click.option("--categorical", multiple=True, metavar="COLUMNS", help=CATEGORICAL),
    na_option,
    click.option("--drop-missing", is_flag=True, help="Exclude rows with a missing value."),
    sheet_option,
)
seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
memory_option = click.option("--memory", type=Bytes(), help=MEMORY)
report_option = click.option("--report", type=NEW_REPORT, help="Path of an HTML report.")
tripod_option = click.option("--tripod", type=NEW_REPORT, metavar="FILE.md", help=TRIPOD)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


K = "Order of band and box, or cv to choose it by cross-validation.  [default: cv]"
K_MAX = "Largest order that --k cv tries, or that band_average averages over.  [default: 20]"
ESTIMATION = "Exact Bayesian averaging, maximum likelihood, or penalised conditional likelihood."
SHARING = "How much the classes share slopes and variances.  [default: 0]"
LOCATION = "Where the prior expects the means.  [default: pooled]"
TIME_LIMIT = "For comparing the candidates of a fit of the mixture; what takes longer is skipped."
PRIOR = "Reference ranges: a table with columns class, feature, low, high (95 %) and worth (in samples)."
POWER = "Power of the features' likelihood, or cv to choose it by cross-validation.  [default: 1]"


def model_options(*, many: bool, of_samples: bool = True) -> Decorator:
    """The options of a classifier for samples or for statistics; ``many``: several structures and estimations."""
    again = " May be repeated." if many else ""
    structure = f"Which features depend on which.{again}  [default: {MIXTURE if of_samples else 'naive_bayes'}]"
    names = click.Choice(NAMES if of_samples else NETWORKS)
    estimation = f"{ESTIMATION}{again}  [default: {'ml, bayes' if many else 'bayes'}]"
    ordered = click.option("--ordered", is_flag=True, help="The order of the columns is meaningful, as in spectra.")
    limit = click.option("--time-limit", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help=TIME_LIMIT)
    return combined(
        click.option("-s", "--structure", type=names, multiple=many, help=structure),
        click.option("--k", type=number_or_cv(int), metavar="NUMBER|CV", help=K),
        click.option("--k-max", type=click.IntRange(1), help=K_MAX),
        click.option("-p", "--estimation", type=click.Choice(ESTIMATIONS), multiple=many, help=estimation),
        click.option("--sharing", type=click.FloatRange(0, 1), help=SHARING),
        click.option("--prior-location", type=click.Choice(("pooled", "paper", "cell")), help=LOCATION),
        click.option("--prior", type=EXISTING, metavar="FILE", help=PRIOR),
        click.option("--likelihood-power", type=number_or_cv(float), metavar="NUMBER|CV", help=POWER),
        *([ordered, limit] if of_samples else []),
        seed_option,
    )


def jobs_option(default: int) -> Decorator:
    """The number of processes."""

    def checked(ctx: Any, param: Any, value: int) -> int:
        if value == 0:
            raise click.UsageError("--jobs must be a number of processes, or -1 for all cores")
        return value

    text = "Number of processes; -1: all cores."
    return click.option("-j", "--jobs", type=int, default=default, show_default=True, callback=checked, help=text)


def opened(path: Path, arrays: Sequence[str] = (), memory: int | None = None, sheet: str | None = None) -> Source:
    """Open a file of a table; one that must be read whole is refused if it needs more memory than allowed."""
    from cgnlearn.tables.formats import source_of, whole_bytes

    needed, allowed = whole_bytes(path), allowed_memory(memory)
    if needed > allowed:
        raise click.UsageError(
            f"{path} needs about {needed / 2**20:,.0f} MB and cannot be read in batches, but {allowed / 2**20:,.0f} MB "
            "are allowed: save it as parquet or csv, or increase --memory"
        )
    with column_errors(), waiting(f"opening {path}"):
        return source_of(path, arrays, sheet)


def refuse_on_table(**options: Any) -> None:
    """Refuse options about spectra where the data are a table."""
    for name, value in options.items():
        if value not in (None, False):
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} is for spectra, and the data are a table: omit it")


@contextmanager
def column_errors() -> Iterator[None]:
    """Columns that do not exist are usage errors."""
    from cgnlearn.tables.formats import ColumnError

    try:
        yield
    except ColumnError as error:
        raise click.UsageError(str(error)) from None


def allowed_memory(memory: int | None) -> float:
    """The memory of the option in bytes, or half of the machine's."""
    if memory is not None:
        return memory
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, ValueError, OSError):
        return float("inf")  # the system does not report its memory


def exceeds(source: Source, memory: int | None) -> bool:
    """Whether a file that can be read in batches needs more memory than allowed."""
    return source.memory > allowed_memory(memory)
