"""The command line: thin commands over the library."""

from __future__ import annotations

from pathlib import Path

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="cgnlearn")
def main() -> None:
    """Conditional Gaussian network classifiers with exact Bayesian averaging."""


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("demo/report.html"),
    show_default=True,
    help="Where the report goes.",
)
def demo(output: Path) -> None:
    """Maximum likelihood beside Bayesian averaging on four embedded sets."""
    # Heavy imports wait for the command, so that `cgnlearn --help` answers at once.
    import numpy as np
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from sklearn.datasets import load_iris, load_wine

    from cgnlearn import CGNClassifier
    from cgnlearn.datasets import make_balance_scale, make_waveform
    from cgnlearn.evaluation import FoldResult, cross_validate

    sets = {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "balance scale": make_balance_scale(),
        "waveform": make_waveform(2000, random_state=0),
    }
    n_folds = 10
    runs = [
        (name, structure, fraction)
        for name in sets
        for structure in ("naive_bayes", "complete")
        for fraction in (1.0, 0.2)
    ]
    table = Table(title="Maximum likelihood (ML) beside Bayesian averaging (Bayes), 10-fold cross-validation")
    for heading in ("set", "structure", "training rows", "accuracy ML", "Bayes", "CLL per row ML", "Bayes"):
        table.add_column(heading, justify="left" if heading in ("set", "structure") else "right")

    def words(results: list[FoldResult | None]) -> tuple[str, str]:
        found = [result for result in results if result is not None]
        if len(found) < len(results):
            return "—", "does not exist"
        return tuple(f"{np.mean([getattr(r, what) for r in found]):.3f}" for what in ("accuracy", "cll"))  # type: ignore[return-value]

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("cross-validating", total=2 * n_folds * len(runs))
        for name, structure, fraction in runs:
            X, y = sets[name]
            cells = []
            for parameters in ("ml", "bayes"):
                model = CGNClassifier(structure, parameters=parameters)
                results = []
                for result in cross_validate(model, X, y, n_folds=n_folds, fraction=fraction):
                    results.append(result)
                    progress.advance(task)
                cells.append(words(results))
            (ml_accuracy, ml_cll), (bayes_accuracy, bayes_cll) = cells
            rows = f"{int(len(y) * 0.9 * fraction)}"
            table.add_row(name, structure, rows, ml_accuracy, bayes_accuracy, ml_cll, bayes_cll)
    console = Console(record=True)
    console.print(table)
    console.print(
        "CLL is the mean log probability given to the true class: 0 is perfect. Bayes answers where too few rows "
        "leave ML without an answer, and is the more careful the fewer rows there are."
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    console.save_html(str(output))
    click.echo(f"report: {output}")
