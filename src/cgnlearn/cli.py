"""The command line: thin commands over the library. Heavy imports wait inside them, so that --help answers at once."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.experiments.command import reproduce
from cgnlearn.options import EXISTING, NEW_FILE, Folds, classifier, data_options, json_option, label, model_options
from cgnlearn.terminal import Program, one_line, print_comparisons, print_table, say, waiting, with_progress

if TYPE_CHECKING:
    from cgnlearn.datafile import Data
    from cgnlearn.evaluation import FoldResult, Split, Summary


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="cgnlearn", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Conditional Gaussian network classifiers with exact Bayesian averaging.

    For few samples, many variables and probabilities that mean what they say. Data are read from csv, tsv, parquet
    and npz files. Results go to stdout, messages to stderr.
    """


main.add_command(reproduce)


def _read(
    path: Path, target: str | None, categorical: Sequence[str], drop_missing: bool, groups: str | None = None
) -> Data:
    """Read training data; a column that is not there is a wrong call."""
    from cgnlearn import datafile

    if target is None:
        if path.suffix.lower() != ".npz":
            raise click.UsageError("name the column of the classes: add --target COLUMN")
        target = "y"
    listed = [name.strip() for given in categorical for name in given.split(",") if name.strip()]
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


@main.command()
@data_options
@click.option("--groups", help="Column (npz: array) that says which rows belong together, such as a subject's.")
@model_options(many=True)
@click.option("--cv", type=Folds(), default="10x1", show_default=True, help="Folds and repetitions.")
@click.option("-j", "--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for rows.csv, summary.csv and manifest.json; an interrupted run goes on there.")  # fmt: skip
@click.option("--report", type=NEW_FILE, help="Where to write the HTML report.")
@json_option
def evaluate(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool, groups: str | None,
    structure: tuple[str, ...], parameters: tuple[str, ...], cv: tuple[int, int], jobs: int, output: Path | None,
    report: Path | None, as_json: bool, seed: int, **model_options: Any,
) -> None:  # fmt: skip
    """Cross-validate: accuracy, CLL, Brier score and calibration error, ML beside Bayes."""
    models = {
        label(shape, how, **model_options): classifier(shape, how, seed=seed, **model_options)
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
    results, finished = _evaluated(
        models, read, splits, jobs, output, _manifest(read, models, cv, seed, target, groups)
    )
    study = Study(
        name=data.name, X=read.X, y=read.y, models=models, splits=splits, results=results,
        settings=_settings(read, cv, seed, target, groups), lines=read.lines, **_spectrum(read),
    )  # fmt: skip
    if not results:
        raise click.exceptions.Abort()
    if report is not None:
        with waiting("writing the report"):
            _write_report(report, [study], f"Evaluation of {data.name}")
    if as_json:
        click.echo(json.dumps(_plain(study.summaries), indent=1))
    else:
        print_table(study.summaries, f"{data.name}: {_in_words(cv)}")
    if not finished:
        again = f"; call again to go on from {output}" if output else "; with --output it could be gone on with"
        say(f"interrupted after {len(results)} of {len(splits) * len(models)} parts{again}")
        sys.exit(1)


def _evaluated(
    models: dict[str, Any],
    data: Data,
    splits: Sequence[Split],
    jobs: int,
    output: Path | None,
    manifest: dict[str, Any],
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
        say(f"going on from {len(results)} finished parts in {output}")
    todo = evaluate(models, data.X, data.y, splits, done={result.task for result in results}, n_jobs=jobs)
    finished = True
    # After Ctrl-C joblib says how much of the work was in vain: that is the person's own wish.
    warnings.filterwarnings("ignore", ".*tasks.*", UserWarning, "joblib")
    try:
        for result in with_progress(todo, "cross-validating", len(results), len(splits) * len(models)):
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
        "models": {name: one_line(repr(model)) for name, model in models.items()},
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


def _spectrum(data: Data) -> dict[str, Any]:
    """Where the columns stand along a spectrum, if there are enough to speak of one."""
    positions = data.positions
    if positions is None or len(positions) < 50:
        return {}
    numbered = bool((positions == range(len(positions))).all())  # an npz file without names
    return {"positions": positions, "axis": "column" if numbered else "m/z"}


def _write_report(path: Path, studies: Sequence[Any], title: str, compared: Sequence[Any] = ()) -> None:
    from cgnlearn.report import write_report

    write_report(path, studies, title, compared)
    say(f"report: {path}")


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


@main.command()
@data_options
@model_options(many=False)
@click.option("-o", "--output", type=NEW_FILE, required=True, help="Where the model goes, such as model.skops.")
@json_option
def fit(
    data: Path, target: str | None, categorical: tuple[str, ...], drop_missing: bool, structure: str, parameters: str,
    output: Path, as_json: bool, seed: int, **model_options: Any,
) -> None:  # fmt: skip
    """Fit a classifier and save it."""
    model = classifier(structure, parameters, seed=seed, **model_options)
    from cgnlearn.persistence import save

    read = _read(data, target, categorical, drop_missing)
    with waiting("fitting"):
        model.fit(read.X, read.y)
        save(model, output)
    if as_json:
        click.echo(json.dumps(_description(model) | {"path": str(output)}, indent=1))
    else:
        counted = f"{len(read.lines)} rows, {model.n_features_in_} attributes, {model.n_parameters_} parameters"
        say(f"{counted}: saved {output}")


@main.command()
@click.argument("model", type=EXISTING)
@click.argument("data", type=EXISTING)
@click.option("-o", "--output", type=NEW_FILE, help="A csv file; default: stdout.")
@json_option
def predict(model: Path, data: Path, output: Path | None, as_json: bool) -> None:
    """Predict the rows of a file with a saved model.

    For each row: the most probable class, the probability of every class, and the log density of the row, which is
    low where it is unlike the training data.
    """
    from cgnlearn import prediction
    from cgnlearn.persistence import load

    with waiting("predicting"):
        table = prediction.predict_file(load(model), data)
    if as_json:
        text = json.dumps([dict(zip(table.header, row, strict=True)) for row in table.rows], indent=1) + "\n"
    else:
        text = table.to_csv()
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8", newline="")
        say(f"{len(table.rows)} rows: {output}")


@main.command()
@click.argument("model", type=EXISTING)
@click.option("--graph", type=NEW_FILE, help="Draw the structure: svg, png, pdf or dot by the ending.")
@json_option
def inspect(model: Path, graph: Path | None, as_json: bool) -> None:
    """Say what a saved model is."""
    from cgnlearn.persistence import classifier_of, load, read_header

    if graph is not None and graph.suffix.lower() not in (".svg", ".png", ".pdf", ".dot"):
        raise click.UsageError(f"--graph {graph}: the ending must be svg, png, pdf or dot")
    header = read_header(model)
    loaded = classifier_of(load(model))
    described = _description(loaded)
    if as_json:
        del header["entries"]
        click.echo(json.dumps(described | {"file": header}, indent=1))
    else:
        described["rows"] = f"{header['training_rows']:g}"
        described["training checksum"] = header["training_sha256"][:16]
        described["written by"] = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
        width = max(map(len, described))
        for name, value in described.items():
            shown = ", ".join(value) or "none" if isinstance(value, list) else value
            shown = f"{value:.10g}" if isinstance(value, float) else shown
            click.echo(f"{name:<{width}}  {shown}")
    if graph is not None:
        if graph.suffix.lower() == ".dot":
            graph.write_text(loaded.structure_.to_dot() + "\n", encoding="utf-8")
        else:
            _draw(loaded, graph)
        say(f"graph: {graph}")


def _draw(model: Any, path: Path) -> None:
    from matplotlib.figure import Figure

    from cgnlearn.plots import StructureDisplay

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    StructureDisplay.from_estimator(model, ax=figure.subplots())
    figure.savefig(path)


def _description(model: Any) -> dict[str, Any]:
    """What a person asks of a fitted model first."""
    structure, encoder = model.structure_, model.statistics_.schema
    found: dict[str, Any] = {
        "classes": [str(label) for label in model.classes_],
        "structure": model.structure if isinstance(model.structure, str) else one_line(repr(model.structure)),
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
@click.option("-o", "--output", type=NEW_FILE, default=Path("demo/report.html"), show_default=True,
              help="Where the report goes.")  # fmt: skip
@click.option("-j", "--jobs", type=int, default=1, show_default=True, help="Processes; -1 takes all cores.")
@json_option
def demo(output: Path, jobs: int, as_json: bool) -> None:
    """Maximum likelihood beside Bayesian averaging on embedded data, with a report."""
    from cgnlearn.evaluation import evaluate
    from cgnlearn.report import demonstration

    compared = list(demonstration.comparisons())

    def comparing() -> Iterator[FoldResult]:
        for part in compared:
            for result in evaluate(part.models, part.X, part.y, part.splits, n_jobs=jobs):
                part.results.append(result)
                yield result

    for _ in with_progress(comparing(), "four sets", 0, sum(2 * len(part.splits) for part in compared)):
        pass
    if not as_json:
        print_comparisons(compared)
    studies = []
    for study in demonstration.studies():
        n_all = len(study.splits) * len(study.models)
        todo = evaluate(study.models, study.X, study.y, study.splits, n_jobs=jobs)
        study.results.extend(with_progress(todo, study.name, 0, n_all))
        if not as_json:
            print_table(study.summaries, study.name)
        studies.append(study)
    if as_json:
        found: dict[str, Any] = {
            f"{part.name}, {part.structure}, {part.n_train} rows": _plain(part.summaries) for part in compared
        }
        found |= {study.name: _plain(study.summaries) for study in studies}
        click.echo(json.dumps(found, indent=1))
    with waiting("writing the report"):
        _write_report(output, studies, "Maximum likelihood beside Bayesian averaging", compared)
