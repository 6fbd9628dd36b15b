"""Files that do not fit into memory: what ``fit`` and ``evaluate`` do with them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.options import wrong_columns
from cgnlearn.cli.terminal import counted, print_table, say, waiting, warn_of_worse_than_nothing

if TYPE_CHECKING:
    from cgnlearn.cli.given import Given
    from cgnlearn.tables.batches import Agreed, Stream


def fitted_in_parts(model: Any, given: Given) -> tuple[Any, dict[str, Any]]:
    """The model, fitted to a file that does not fit into memory, and the missing values by column and spelling."""
    from cgnlearn.estimators.classifier import CGNClassifier, counting_learner
    from cgnlearn.streams import fitted_to

    if isinstance(model, CGNClassifier):
        counting_learner(model, "fit_stream")  # refuses what cannot be fitted before anything is read
    stream, agreed = _agreed(given)
    with counted(f"counting {given.data}") as progress:
        return fitted_to(model, stream, agreed, progress=progress), stream.plan.missing


def evaluate_in_parts(
    models: Mapping[str, Any],
    given: Given,
    cv: tuple[int, int],
    seed: int,
    output: Path | None,
    report: Path | None,
    refused: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    """Cross-validate on a file that does not fit into memory, and tell."""
    for option, value in refused.items():
        if value is not None:
            raise click.UsageError(f"{option} needs all rows in memory: leave it out, or give more --memory")
    from cgnlearn.evaluation.metrics import summary_text
    from cgnlearn.evaluation.streamed import evaluated
    from cgnlearn.evaluation.study import BASELINE
    from cgnlearn.files import write_whole

    data = given.data
    assert given.source is not None
    stream, agreed = _agreed(given)
    models = {name: model for name, model in models.items() if name != BASELINE}
    if report is not None:
        say(f"no report is written, as it shows rows, and {data} is read in parts: give more --memory to have one")
    with counted(f"reading {data} twice") as progress:
        found = evaluated(models, stream, agreed, n_folds=cv[0], n_repeats=cv[1], seed=seed, progress=progress)
    for name, n_samples in found.sampled.items():
        say(
            f"{name} needs rows in memory: each fold fitted it to a random sample of {n_samples:,}, and scored all rows"
        )
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / "summary.csv", summary_text(found.summaries))
        say(f"{output} gets summary.csv only: the predictions of {data} are not kept")
    how = f"{cv[0]}-fold cross-validation, cut at random" + (f", {cv[1]} times" if cv[1] > 1 else "")
    if as_json:
        of_data = {"file": data.name, "sha256": given.source.sha256, "rows": agreed.n_samples}
        of_data |= {"rows_left_out": agreed.n_read - agreed.n_samples, "features": list(stream.plan.features)}
        of_data |= {"classes": found.counts, "missing": stream.plan.missing}
        told = {
            "data": of_data,
            "cross_validation": {"folds": cv[0], "repeats": cv[1], "seed": seed},
            "models": [summary.as_dict() | _sample_of(found.sampled, summary.model) for summary in found.summaries],
        }
        click.echo(json.dumps(told, indent=1))
    else:
        print_table(found.summaries, f"{data.name}: {how}")
    warn_of_worse_than_nothing(found.summaries)


def _agreed(given: Given) -> tuple[Stream, Agreed]:
    """The file as a stream; what is to be known of it is said."""
    from cgnlearn.tables.batches import training_stream

    assert given.source is not None
    with wrong_columns(), waiting(f"reading {given.data}"):
        stream, agreed = training_stream(given.source, given.roles, drop_missing=given.drop_missing)
    for remark in agreed.remarks:
        say(remark)
    return stream, agreed


def _sample_of(sampled: Mapping[str, int], model: str) -> dict[str, int]:
    return {"fitted_to_sample_of": sampled[model]} if model in sampled else {}
