"""The options of the commands, and the data and the classifier that they ask for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from cgnlearn.cli.terminal import say, waiting

if TYPE_CHECKING:
    from cgnlearn.cli.datafile import Data

STRUCTURES = (
    "naive_bayes", "complete", "tree", "band", "box", "band_average", "fwgjan", "bwgjan", "wcgjan", "selective",
    "tree_average",
)  # fmt: skip
PARAMETERS = ("bayes", "ml", "discriminative")


def number_or_cv(kind: type[int] | type[float]) -> Callable[[Any], Any]:
    """The type of an option that is a number, or the word cv."""

    def convert(value: Any) -> Any:
        try:
            return value if value == "cv" else kind(value)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise click.BadParameter(f"{value!r} is neither {what} nor cv") from None

    return convert


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
        from cgnlearn.files import NotWritten, check_writable

        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            check_writable(path, makes_folder=self.makes_folder)
        except NotWritten as error:
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


data_options = _options(
    click.argument("data", type=DATA),
    click.option("-t", "--target", help="Column (npz: array) of the classes; npz default: y."),
    click.option("--categorical", multiple=True, metavar="COLUMNS",
                 help="Columns of numbers that are mere labels, separated by commas. Columns of words always are."),
    click.option("--drop-missing", is_flag=True, help="Leave out rows with an empty cell."),
)  # fmt: skip


seed_option = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Random seed.")
memory_option = click.option(
    "--memory", type=Bytes(), help="Files that need more are read in parts; default: half of the machine's memory."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def model_options(*, many: bool) -> Decorator:
    """The options that make a classifier; ``many``: several structures and parameters may be given."""
    again = " May be repeated." if many else ""
    return _options(
        click.option("-s", "--structure", type=click.Choice(STRUCTURES), multiple=many, show_default=True,
                     default=("naive_bayes",) if many else "naive_bayes",
                     help=f"Which attributes depend on which.{again}"),
        click.option("--k", type=number_or_cv(int), metavar="NUMBER|CV",
                     help="Order of band and box, or cv to choose it."),
        click.option("--k-max", type=click.IntRange(1), default=20, show_default=True,
                     help="Largest order that --k cv tries, or that band_average averages over."),
        click.option("-p", "--parameters", type=click.Choice(PARAMETERS), multiple=many, show_default=True,
                     default=("ml", "bayes") if many else "bayes",
                     help=f"Exact Bayesian averaging, maximum likelihood, or penalised conditional likelihood.{again}"),
        click.option("--sharing", type=click.FloatRange(0, 1), default=0.0, show_default=True,
                     help="How much the classes share slopes and variances."),
        click.option("--prior-location", type=click.Choice(("pooled", "paper", "cell")), default="pooled",
                     show_default=True, help="Where the prior expects the means."),
        click.option("--temperature", type=number_or_cv(float), metavar="NUMBER|CV", default=1.0,
                     show_default=True, help="Trust in the attributes, or cv to choose it."),
        seed_option,
    )  # fmt: skip


def jobs_option(default: int) -> Decorator:
    """How many processes work."""

    def checked(ctx: Any, param: Any, value: int) -> int:
        if value == 0:
            raise click.UsageError("--jobs must be a number of processes, or -1 for all cores")
        return value

    return click.option("-j", "--jobs", type=int, default=default, show_default=True, callback=checked,
                        help="Processes; -1 takes all cores.")  # fmt: skip


def is_beyond(path: Path, memory: int | None) -> bool:
    """Whether a file that can be read in parts needs more memory than it may have."""
    from cgnlearn.cli import datafile

    if memory is None:
        try:
            memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        except (AttributeError, ValueError, OSError):
            return False  # where a system does not tell, only what is asked for counts
    return datafile.memory_needed(path) > memory


def training_data(
    path: Path, target: str | None, categorical: Sequence[str], drop_missing: bool, groups: str | None = None
) -> Data:
    """The data that the options ask for; a column that is not there is a wrong call."""
    from cgnlearn.cli import datafile

    target, listed = target_of(path, target), listed_columns(categorical)
    try:
        with waiting(f"reading {path}"):
            data = datafile.read(path, target=target, groups=groups, categorical=listed, drop_missing=drop_missing)
    except datafile.NoSuchColumn as error:
        raise click.UsageError(str(error)) from None
    assert data.y is not None
    n_classes = len(set(data.y.tolist()))
    if n_classes > max(2, len(data.y) // 2):
        raise datafile.DataFileError(
            f"{path}: column {target!r} has {n_classes} different values in {len(data.y)} rows and cannot be the class:"
            " name another with --target"
        )
    if data.n_dropped:
        say(f"left out {data.n_dropped} of {data.n_dropped + len(data.y)} rows, which have empty cells")
    return data


def target_of(path: Path, target: str | None) -> str:
    """The column of the classes."""
    if target is None and path.suffix.lower() != ".npz":
        raise click.UsageError("name the column of the classes: add --target COLUMN")
    return target or "y"


def listed_columns(given: Sequence[str]) -> list[str]:
    """Names separated by commas, in one option or several."""
    return [name.strip() for names in given for name in names.split(",") if name.strip()]


def classifier(
    structure: str, parameters: Any, *, k: Any, k_max: int, prior_location: Any, seed: int, **options: Any
) -> Any:
    """The classifier that the options ask for."""
    from cgnlearn import Band, BandAverage, Box, CGNClassifier, Prior, SelectiveNaiveBayes, TreeAverage

    averages: dict[str, Any] = {"selective": SelectiveNaiveBayes(), "tree_average": TreeAverage()}
    shape: Any = averages.get(structure, structure)
    if structure in ("band", "box"):
        if k is None:
            raise click.UsageError(f"--structure {structure} needs its order: add --k NUMBER or --k cv")
        learner = Band if structure == "band" else Box
        shape = learner(k, k_max=k_max) if k == "cv" else learner(k)
    elif structure == "band_average":
        shape = BandAverage(k_max=k_max)
    prior = Prior(location=prior_location)
    return CGNClassifier(shape, parameters=parameters, prior=prior, random_state=seed, **options)


def label(structure: str, parameters: str, *, k: Any, sharing: Any, temperature: Any, **_: Any) -> str:
    """What a classifier is called in tables."""
    order = f" {k}" if structure in ("band", "box") else ""
    more = "".join(
        f", {name} {value if value == 'cv' else f'{value:g}'}"
        for name, value, usual in (("sharing", sharing, 0), ("temperature", temperature, 1))
        if value != usual
    )
    return f"{structure}{order} {parameters}{more}"
