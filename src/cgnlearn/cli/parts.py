"""Files that do not fit into memory: what ``fit`` and ``evaluate`` do with them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cgnlearn.cli.terminal import counted, print_table, say, warn_of_worse_than_nothing

if TYPE_CHECKING:
    from cgnlearn.cli.roles import Roles


def fitted_in_parts(model: Any, data: Path, roles: Roles, drop_missing: bool) -> Any:
    """The model, fitted to a file that does not fit into memory."""
    from cgnlearn import fit_stream

    asked = _columns(data, roles) | {"drop_missing": drop_missing}
    with counted(f"counting {data}") as progress:
        return fit_stream(model, data, roles.target or "", progress=progress, **asked)


def evaluate_in_parts(
    models: Mapping[str, Any], data: Path, roles: Roles, drop_missing: bool, cv: tuple[int, int], seed: int,
    output: Path | None, report: Path | None, refused: Mapping[str, Any], *, as_json: bool,
) -> None:  # fmt: skip
    """Cross-validate on a file that does not fit into memory, and tell."""
    for option, value in refused.items():
        if value is not None:
            raise click.UsageError(f"{option} needs all rows in memory: leave it out, or give more --memory")
    from cgnlearn import evaluate_stream
    from cgnlearn.evaluation.study import BASELINE
    from cgnlearn.evaluation.summaries import summary_text
    from cgnlearn.files import write_whole

    asked = _columns(data, roles) | {"groups": roles.groups, "drop_missing": drop_missing}
    models = {name: model for name, model in models.items() if name != BASELINE}
    if report is not None:
        say(f"no report is written, as it shows rows, and {data} is read in parts: give more --memory to have one")
    with counted(f"reading {data} twice") as progress:
        found = evaluate_stream(
            models, data, roles.target or "", n_folds=cv[0], n_repeats=cv[1], seed=seed, progress=progress, **asked
        )
    for name, n_rows in found.sampled.items():
        say(f"{name} needs rows in memory: each fold fitted it to a random sample of {n_rows:,}, and scored all rows")
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / "summary.csv", summary_text(found.summaries))
        say(f"{output} gets summary.csv only: the predictions of {data} are not kept")
    how = f"{cv[0]}-fold cross-validation, cut at random" + (f", {cv[1]} times" if cv[1] > 1 else "")
    if as_json:
        told = {
            "data": {
                "file": data.name, "sha256": _sha256(data), "rows": sum(found.counts.values()),
                "attributes": asked["columns"], "classes": found.counts,
            },
            "cross_validation": {"folds": cv[0], "repeats": cv[1], "seed": seed},
            "models": [summary.as_dict() | _sample_of(found.sampled, summary.model) for summary in found.summaries],
        }  # fmt: skip
        click.echo(json.dumps(told, indent=1))
    else:
        print_table(found.summaries, f"{data.name}: {how}")
    warn_of_worse_than_nothing(found.summaries)


def _columns(data: Path, roles: Roles) -> dict[str, Any]:
    """Which columns are attributes, and which of them have levels."""
    from cgnlearn.cli.data import judged_columns
    from cgnlearn.cli.datafile import WrongCall

    try:
        attributes, levels, remarks = judged_columns(data, roles)
    except WrongCall as error:
        raise click.UsageError(str(error)) from None
    for remark in remarks:
        say(remark)
    assert roles.target is not None
    as_text = {*levels, *(name for name in roles.categorical if name in attributes), roles.target}
    return {"columns": attributes, "as_text": as_text}


def _sample_of(sampled: Mapping[str, int], model: str) -> dict[str, int]:
    return {"fitted_to_sample_of": sampled[model]} if model in sampled else {}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
