"""The command line: thin commands over the library. Heavy imports wait inside them, so that --help answers at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from cgnlearn.datafile import Data
    from cgnlearn.evaluation import FoldResult, Split, Summary

STRUCTURES = ("naive_bayes", "complete", "tree", "band", "box", "fwgjan", "bwgjan", "wcgjan")


class _Program(click.Group):
    """A group whose errors are one line on stderr: 1 if the run failed, 2 if the call is wrong."""

    def main(self, *args: Any, **extra: Any) -> Any:
        debug = "--debug" in (sys.argv if not args else args[0] or sys.argv)
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except click.exceptions.Abort:
            _say("interrupted")
            code = 1
        except click.UsageError as error:
            command = error.ctx.command_path if error.ctx else "cgnlearn"
            _say(f"error: {_one_line(error.format_message())} (see {command} --help)")
            code = 2
        except click.ClickException as error:
            _say(f"error: {_one_line(error.format_message())}")
            code = error.exit_code
        except BrokenPipeError:  # the reader of our output has had enough
            sys.stderr.close()
            code = 1
        except Exception as error:
            if debug:
                raise
            _say(f"error: {_one_line(str(error)) or type(error).__name__}")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _say(message: str) -> None:
    click.echo(f"cgnlearn: {message}", err=True)


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="cgnlearn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Conditional Gaussian network classifiers with exact Bayesian averaging.

    For few samples, many variables and probabilities that mean what they say. Data are read from csv, tsv, parquet
    and npz files. Results go to stdout, messages to stderr.
    """


# ---- options


class _NumberOr(click.ParamType):
    """A number, or the word cv."""

    name = "number|cv"

    def __init__(self, kind: type[int] | type[float]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "cv" or isinstance(value, int | float):
            return value
        try:
            return self.kind(value)
        except ValueError:
            what = "a whole number" if self.kind is int else "a number"
            self.fail(f"{value!r} is neither {what} nor cv")


class _Folds(click.ParamType):
    """FOLDSxREPEATS."""

    name = "FOLDSxREPEATS"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        folds, _, repeats = value.lower().partition("x")
        try:
            pair = int(folds), int(repeats or 1)
        except ValueError:
            self.fail(f"{value!r} is not of the form 10x3 (folds x repetitions)")
        if pair[0] < 2 or pair[1] < 1:
            self.fail(f"{value!r} needs at least 2 folds and 1 repetition")
        return pair


_EXISTING = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _options(*options: Decorator) -> Decorator:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


_data_options = _options(
    click.argument("data", type=_EXISTING),
    click.option("-t", "--target", help="Column (npz: array) of the classes; npz default: y."),
    click.option("--categorical", multiple=True, metavar="COLUMNS",
                 help="Columns of numbers that are mere labels, separated by commas. Columns of words always are."),
    click.option("--drop-missing", is_flag=True, help="Leave out rows with an empty cell."),
)  # fmt: skip


def _model_options(*, many: bool) -> Decorator:
    """The options that make a classifier; ``many``: several structures and parameters may be given."""
    again = " May be repeated." if many else ""
    return _options(
        click.option("-s", "--structure", type=click.Choice(STRUCTURES), multiple=many, show_default=True,
                     default=("naive_bayes",) if many else "naive_bayes",
                     help=f"Which attributes depend on which.{again}"),
        click.option("--k", type=_NumberOr(int), help="Order of band and box, or cv to choose it."),
        click.option("--k-max", type=click.IntRange(1), default=20, show_default=True, help="Largest order that --k cv tries."),
        click.option("-p", "--parameters", type=click.Choice(("bayes", "ml")), multiple=many, show_default=True,
                     default=("ml", "bayes") if many else "bayes",
                     help=f"Exact Bayesian averaging or maximum likelihood.{again}"),
        click.option("--sharing", type=_NumberOr(float), default=0.0, show_default=True,
                     help="How much the classes share slopes and variances: 0 to 1."),
        click.option("--prior-location", type=click.Choice(("pooled", "paper", "cell")), default="pooled",
                     show_default=True, help="Where the prior expects the means."),
        click.option("--temperature", type=_NumberOr(float), default=1.0, show_default=True,
                     help="Trust in the attributes, or cv to choose it."),
        click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Where chance starts."),
    )  # fmt: skip


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _classifier(
    structure: str, parameters: str, *, k: Any, k_max: int, sharing: Any, prior_location: Any, temperature: Any, seed: int
) -> Any:
    from cgnlearn import Band, Box, CGNClassifier, Prior

    shape: Any = structure
    if structure in ("band", "box"):
        if k is None:
            raise click.UsageError(f"--structure {structure} needs its order: add --k NUMBER or --k cv")
        learner = Band if structure == "band" else Box
        shape = learner(k, k_max=k_max) if k == "cv" else learner(k)  # type: ignore[call-arg]
    return CGNClassifier(
        shape, parameters=parameters, sharing=sharing, prior=Prior(location=prior_location), temperature=temperature,
        random_state=seed,
    )  # fmt: skip


def _read(path: Path, target: str | None, categorical: Sequence[str], drop_missing: bool, groups: str | None = None) -> Data:
    """Read training data; a column that is not there is a wrong call."""
    from cgnlearn import datafile

    if target is None:
        if path.suffix.lower() != ".npz":
            raise click.UsageError("name the column of the classes: add --target COLUMN")
        target = "y"
    listed = [name.strip() for given in categorical for name in given.split(",") if name.strip()]
    try:
        with _waiting(f"reading {path}"):
            data = datafile.read(path, target=target, groups=groups, categorical=listed, drop_missing=drop_missing)
    except datafile.NoSuchColumn as error:
        raise click.UsageError(str(error)) from None
    assert data.y is not None
    n_classes = len(set(data.y.tolist()))
    if n_classes > max(2, len(data.y) // 2):
        raise datafile.DataFileError(
            f"{path}: column {target!r} has {n_classes} different values in {len(data.y)} rows and cannot be the class: "
            "name another with --target"
        )
    if data.n_dropped:
        _say(f"left out {data.n_dropped} of {data.n_dropped + len(data.y)} rows, which have empty cells")
    return data


# ---- progress


def _stderr() -> Any:
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """A sign of life on a terminal."""
    with _stderr().status(what):
        yield


def _with_progress(results: Iterable[FoldResult], what: str, n_done: int, n_all: int) -> Iterator[FoldResult]:
    """The same results, with a bar and the time left on a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_stderr(), transient=True) as progress:
        task = progress.add_task(what, total=n_all, completed=n_done)
        for result in results:
            progress.advance(task)
            yield result


# ---- commands


@main.command()
@_data_options
@click.option("--groups", help="Column (npz: array) that says which rows belong together, such as a subject's.")
@_model_options(many=True)
@click.option("--cv", type=_Folds(), default="10x1", show_default=True, help="Folds and repetitions.")
@click.option("-j", "--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for rows.csv, summary.csv and manifest.json; an interrupted run goes on where it stopped.")  # fmt: skip
@click.option("--report", type=_NEW_FILE, help="Where to write the HTML report.")
@_json_option
def evaluate(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool, groups: str | None,
    structure: tuple[str, ...], parameters: tuple[str, ...], cv: tuple[int, int], jobs: int, output: Path | None,
    report: Path | None, as_json: bool, seed: int, **model_options: Any,
) -> None:  # fmt: skip
    """Cross-validate: accuracy, CLL, Brier score and calibration error, ML beside Bayes."""
    models = {
        _label(shape, how, **model_options): _classifier(shape, how, seed=seed, **model_options)
        for shape in dict.fromkeys(structure)
        for how in dict.fromkeys(parameters)
    }
    from sklearn.dummy import DummyClassifier

    from cgnlearn.evaluation import cut
    from cgnlearn.report.study import BASELINE, Study

    models[BASELINE] = DummyClassifier(strategy="prior")
    read = _read(data, target, categorical, drop_missing, groups)
    assert read.y is not None
    splits = cut(read.y, groups=read.groups, n_folds=cv[0], n_repeats=cv[1], seed=seed)
    results, finished = _evaluated(models, read, splits, jobs, output, _manifest(read, models, cv, seed, target, groups))
    study = Study(
        name=data.name, X=read.X, y=read.y, models=models, splits=splits, results=results,
        settings=_settings(read, cv, seed, target, groups), lines=read.lines, positions=_spectrum(read.positions),
    )  # fmt: skip
    if not results:
        raise click.exceptions.Abort()
    if report is not None:
        with _waiting("writing the report"):
            _write_report(report, [study], f"Evaluation of {data.name}")
    if as_json:
        click.echo(json.dumps(_plain(study.summaries), indent=1))
    else:
        _print_table(study.summaries, f"{data.name}: {_in_words(cv)}")
    if not finished:
        again = f"; call again to go on from {output}" if output else "; with --output it could be gone on with"
        _say(f"interrupted after {len(results)} of {len(splits) * len(models)} parts{again}")
        sys.exit(1)


def _label(structure: str, parameters: str, *, k: Any, sharing: Any, temperature: Any, **_: Any) -> str:
    order = f" {k}" if structure in ("band", "box") else ""
    more = "".join(
        f", {name} {value}" for name, value, usual in (("sharing", sharing, 0), ("temperature", temperature, 1)) if value != usual
    )
    return f"{structure}{order} {parameters}{more}"


def _evaluated(
    models: dict[str, Any], data: Data, splits: Sequence[Split], jobs: int, output: Path | None, manifest: dict[str, Any]
) -> tuple[list[FoldResult], bool]:
    """All results, those on disk included, and whether the run came to its end."""
    import numpy as np

    from cgnlearn.evaluation import evaluate, summarise
    from cgnlearn.results import Results

    assert data.y is not None
    classes, true = np.unique(data.y, return_inverse=True)
    store = None if output is None else Results(output, manifest, data.lines, data.y, classes.tolist())
    results = [] if store is None else store.open(splits)
    if results:
        _say(f"going on from {len(results)} finished parts in {output}")
    todo = evaluate(models, data.X, data.y, splits, done={result.task for result in results}, n_jobs=jobs)
    finished = True
    try:
        for result in _with_progress(todo, "cross-validating", len(results), len(splits) * len(models)):
            if store is not None:
                store.append(result)
            results.append(result)
    except KeyboardInterrupt:
        finished = False
    if store is not None:
        store.write_summary(summarise(results, true))
    return results, finished


def _manifest(
    data: Data, models: dict[str, Any], cv: tuple[int, int], seed: int, target: str | None, groups: str | None
) -> dict[str, Any]:
    """All that the results depend on."""
    from cgnlearn import __version__

    return {
        "cgnlearn": __version__,
        "data": data.path.name,
        "sha256": data.sha256,
        "rows": len(data.lines),
        "target": target,
        "groups": groups,
        "categorical": [name for name, kind in data.X.dtypes.items() if str(kind) == "category"],
        "folds": list(cv),
        "seed": seed,
        "models": {name: _one_line(repr(model)) for name, model in models.items()},
    }


def _settings(data: Data, cv: tuple[int, int], seed: int, target: str | None, groups: str | None) -> dict[str, str]:
    settings = {
        "File": data.path.name,
        "SHA-256": data.sha256,
        "Class column": target or "y",
        "Row numbers": "lines of the file" if data.lines[0] else "rows of the file, from 0",
        "Cross-validation": f"{_in_words(cv)}, seed {seed}",
    }
    if groups:
        settings["Groups"] = f"{groups}: rows of one group stay on one side of every split"
    if data.n_dropped:
        settings["Left out"] = f"{data.n_dropped} rows with empty cells"
    return settings


def _in_words(cv: tuple[int, int]) -> str:
    folds, repeats = cv
    return f"stratified {folds}-fold cross-validation" + (f", {repeats} times" if repeats > 1 else "")


def _spectrum(positions: Any) -> Any:
    """Positions along a spectrum, if there are enough columns to speak of one."""
    return positions if positions is not None and len(positions) >= 50 else None


def _write_report(path: Path, studies: Sequence[Any], title: str) -> None:
    from cgnlearn.report import write_report

    write_report(path, studies, title)
    _say(f"report: {path}")


def _plain(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """What --json prints."""
    return [
        {
            "model": summary.model,
            "folds": summary.n_folds,
            "folds_without_answer": summary.n_without,
            **{name: {"mean": mean, "sd": sd} for name, (mean, sd) in summary.metrics.items()},
        }
        for summary in summaries
    ]


def _print_table(summaries: Sequence[Summary], title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("model", overflow="fold")
    for heading in ("accuracy", "CLL per row", "Brier", "calibration error"):
        table.add_column(heading, justify="right")
    for summary in summaries:
        cells = [
            f"{mean:.3f}" + ("" if sd is None else f" ± {sd:.3f}") for mean, sd in summary.metrics.values()
        ] or ["does not exist"] * 4
        note = f" ({summary.n_folds - summary.n_without} of {summary.n_folds} folds)" if summary.n_without else ""
        table.add_row(summary.model + note, *cells)
    Console(width=None if sys.stdout.isatty() else 110).print(table)


@main.command()
@_data_options
@_model_options(many=False)
@click.option("-o", "--output", type=_NEW_FILE, required=True, help="Where the model goes, such as model.skops.")
@_json_option
def fit(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool, structure: str, parameters: str,
    output: Path, as_json: bool, seed: int, **model_options: Any,
) -> None:  # fmt: skip
    """Fit a classifier and save it."""
    model = _classifier(structure, parameters, seed=seed, **model_options)
    from cgnlearn.persistence import save

    read = _read(data, target, categorical, drop_missing)
    with _waiting("fitting"):
        model.fit(read.X, read.y)
        save(model, output)
    if as_json:
        click.echo(json.dumps(_description(model) | {"path": str(output)}, indent=1))
    else:
        _say(f"{len(read.lines)} rows, {model.n_features_in_} attributes, {model.n_parameters_} parameters: saved {output}")


@main.command()
@click.argument("model", type=_EXISTING)
@click.argument("data", type=_EXISTING)
@click.option("-o", "--output", type=_NEW_FILE, help="A csv file; default: stdout.")
@_json_option
def predict(model: Path, data: Path, output: Path | None, as_json: bool) -> None:
    """Predict the rows of a file with a saved model.

    For each row: the most probable class, the probability of every class, and the log density of the row, which is
    low where it is unlike the training data.
    """
    from cgnlearn import prediction
    from cgnlearn.persistence import load

    with _waiting("predicting"):
        table = prediction.predict_file(load(model), data)
    if as_json:
        text = json.dumps([dict(zip(table.header, row, strict=True)) for row in table.rows], indent=1) + "\n"
    else:
        text = table.to_csv()
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="")
        _say(f"{len(table.rows)} rows: {output}")


@main.command()
@click.argument("model", type=_EXISTING)
@click.option("--graph", type=_NEW_FILE, help="Draw the structure: svg, png, pdf or dot by the ending.")
@_json_option
def inspect(model: Path, graph: Path | None, as_json: bool) -> None:
    """Say what a saved model is."""
    from cgnlearn.persistence import classifier_of, load, read_header

    if graph is not None and graph.suffix.lower() not in (".svg", ".png", ".pdf", ".dot"):
        raise click.UsageError(f"--graph {graph}: the ending must be svg, png, pdf or dot")
    header = read_header(model)
    classifier = classifier_of(load(model))
    described = _description(classifier)
    if as_json:
        del header["entries"]
        click.echo(json.dumps(described | {"file": header}, indent=1))
    else:
        described["rows"] = f"{header['training_rows']:g}"
        described["training checksum"] = header["training_sha256"][:16]
        described["written by"] = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
        width = max(map(len, described))
        for name, value in described.items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            click.echo(f"{name:<{width}}  {shown}")
    if graph is not None:
        if graph.suffix.lower() == ".dot":
            graph.write_text(classifier.structure_.to_dot() + "\n", encoding="utf-8")
        else:
            _draw(classifier, graph)
        _say(f"graph: {graph}")


def _draw(classifier: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    from cgnlearn.plots import StructureDisplay

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    StructureDisplay.from_estimator(classifier, ax=figure.subplots())
    figure.savefig(path)


def _description(model: Any) -> dict[str, Any]:
    """What a person asks of a fitted model first."""
    structure, encoder = model.structure_, model._encoder
    found: dict[str, Any] = {
        "classes": [str(label) for label in model.classes_],
        "structure": model.structure if isinstance(model.structure, str) else _one_line(repr(model.structure)),
        "attributes": len(structure.nodes),
        "edges": structure.n_edges,
        "parameters": model.n_parameters_,
        "estimated by": model.parameters,
        "sharing": float(model.sharing),
        "temperature": float(model.temperature_),
        "discrete": [str(encoder.names[i] if encoder.names else i) for i in encoder.discrete],
    }
    with suppress(AttributeError):  # it is not defined for every model
        found["log evidence"] = model.log_evidence_
    return found


@main.command()
@click.option("-o", "--output", type=_NEW_FILE, default=Path("demo/report.html"), show_default=True,
              help="Where the report goes.")  # fmt: skip
@click.option("-j", "--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
@_json_option
def demo(output: Path, jobs: int, as_json: bool) -> None:
    """Maximum likelihood beside Bayesian averaging on embedded data, with a report."""
    from cgnlearn.evaluation import evaluate
    from cgnlearn.report import demonstration

    studies = []
    for study in demonstration.studies():
        n_all = len(study.splits) * len(study.models)
        todo = evaluate(study.models, study.X, study.y, study.splits, n_jobs=jobs)
        study.results.extend(_with_progress(todo, study.name, 0, n_all))
        if not as_json:
            _print_table(study.summaries, study.name)
        studies.append(study)
    if as_json:
        click.echo(json.dumps({study.name: _plain(study.summaries) for study in studies}, indent=1))
    with _waiting("writing the report"):
        _write_report(output, studies, "Maximum likelihood beside Bayesian averaging")
