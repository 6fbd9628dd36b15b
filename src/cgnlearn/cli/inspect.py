"""The command ``cgnlearn inspect``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from cgnlearn.cli.command import Command
from cgnlearn.cli.options import EXISTING, NEW_FILE, json_option
from cgnlearn.cli.terminal import one_line, say

MOST_RANGES = 20  # that are shown


@click.command(cls=Command)
@click.argument("model", type=EXISTING)
@click.option("--graph", type=NEW_FILE, help="Draw the structure: svg, png, pdf or dot by the ending.")
@json_option
def inspect(model: Path, graph: Path | None, as_json: bool) -> None:
    """Describe a saved model."""
    from cgnlearn.estimators.updated import UpdatedClassifier
    from cgnlearn.persistence import classifier_of, load, read_header

    if graph is not None and graph.suffix.lower() not in (".svg", ".png", ".pdf", ".dot"):
        raise click.UsageError(f"--graph {graph}: the ending must be svg, png, pdf or dot")
    header = read_header(model)
    loaded = classifier_of(load(model))
    if graph is not None and not hasattr(loaded, "structure_"):
        raise click.UsageError("--graph draws one structure, and this model is a mixture of several: omit it")
    described = description(loaded)
    if isinstance(loaded, UpdatedClassifier):
        if as_json:
            del header["entries"]
            click.echo(json.dumps(described | {"file": header}, indent=1))
        else:
            _print_updated(described, header)
        return
    if as_json:
        del header["entries"]
        if known := _prior(loaded):
            described |= {"prior": known, "prior_is_set_aside": loaded.prior_ != loaded.prior}
        if hasattr(loaded, "site_shift_"):
            described["sites"] = _sites(loaded)
        click.echo(json.dumps(described | {"file": header}, indent=1))
    else:
        described["samples"] = f"{header['training_rows']:g}"
        described |= {key: value for key, value in header.get("columns", {}).items() if value and key != "categorical"}
        described["training_checksum"] = header["training_sha256"][:16]
        described["written_by"] = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
        if "members" in described:
            described["members"] = _heaviest(loaded.members_)
        agreements = [str(each) for each in loaded.prior_agreement_]
        if agreements:
            listed, rest = agreements[:MOST_RANGES], len(agreements) - MOST_RANGES
            believed = "" if loaded.prior_ == loaded.prior else "set aside in the fit, "
            described["prior"] = [f"{len(agreements)} ranges, {believed}those that conflict most first"]
            described |= {f"range {i}": words for i, words in enumerate(listed, start=1)}
            if rest > 0:
                described["more ranges"] = f"{rest}, all of them with --json"
        if hasattr(loaded, "site_shift_"):
            described["sites"] = "; ".join(_sites(loaded))
        width = max(map(len, described))
        for name, value in described.items():
            shown = ", ".join(value) or "none" if isinstance(value, list) else value
            shown = f"{value:.10g}" if isinstance(value, float) else shown
            click.echo(f"{name.replace('_', ' '):<{width}}  {shown}")
    if graph is not None:
        _draw(loaded, graph)
        say(f"graph: {graph}")


def _print_updated(described: dict[str, Any], header: dict[str, Any]) -> None:
    """Print what an updated model is made of, and its history."""
    lines = {
        "classes": ", ".join(described["classes"]),
        "structure": "update of " + ", ".join(described["models"]),
        "features": described["features"],
    }
    lines |= {f"step {i}": words for i, words in enumerate(described["ladder"], start=1)}
    for i, entry in enumerate(described["history"], start=1):
        by_class = ", ".join(f"{n} {label}" for label, n in entry["classes"].items())
        checksum = f", samples {entry['samples_sha256'][:16]}"
        lines[f"history {i}"] = f"{entry['when']} {entry['what']}, {entry['samples']} samples ({by_class}){checksum}"
    lines["training checksum"] = header["training_sha256"][:16]
    lines["written by"] = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    width = max(map(len, lines))
    for name, value in lines.items():
        click.echo(f"{name:<{width}}  {value}")


def _heaviest(members: Sequence[Any], most: int = 6) -> str:
    """The members with the largest weights."""
    shown = [f"{member.weight:.2f} {member}" for member in members[:most]]
    rest = members[most:]
    if rest:
        shown.append(f"{sum(member.weight for member in rest):.2f} {len(rest)} more")
    return "; ".join(shown)


def _draw(model: Any, path: Path) -> None:
    from cgnlearn.files import whole_file, write_whole

    if path.suffix.lower() == ".dot":
        write_whole(path, model.structure_.to_dot() + "\n")
        return
    from matplotlib.figure import Figure

    from cgnlearn.plots import StructureDisplay

    figure = Figure(figsize=(8, 5.5), layout="constrained")
    StructureDisplay.from_estimator(model, ax=figure.subplots())
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:])


def description(model: Any) -> dict[str, Any]:
    """Main properties of a fitted model; the keys are part of the interface."""
    if hasattr(model, "ladder_"):
        return {
            "classes": [str(label) for label in model.classes_],
            "structure": "update",
            "features": model.n_features_in_,
            "models": [description(one)["structure"] for one in model.models_],
            "ladder": [str(rung) for rung in model.ladder_],
            "history": model.history_,
        }
    columns = model.statistics_.schema
    discrete = [str(columns.names[i] if columns.names else i) for i in columns.discrete]
    if hasattr(model, "members_"):
        return {
            "classes": [str(label) for label in model.classes_],
            "structure": "mixture",
            "features": model.n_features_in_,
            "members": [
                {**member.settings, "weight": member.weight, "likelihood_power": member.likelihood_power}
                | {"log_loss": member.log_loss}
                for member in model.members_
            ],
            "discrete": discrete,
        }
    structure = model.structure_
    found: dict[str, Any] = {
        "classes": [str(label) for label in model.classes_],
        "structure": model.structure if isinstance(model.structure, str) else one_line(repr(model.structure)),
        "features": len(structure.nodes),
        "edges": structure.n_edges,
        "parameters": model.n_parameters_,
        "estimated_by": model.estimation,
        "sharing": float(model.sharing_),
        "likelihood_power": float(model.likelihood_power_),
        "discrete": discrete,
    }
    with suppress(AttributeError):  # not defined for every model
        found["log_evidence"] = model.log_evidence_
    return found


def _sites(model: Any) -> list[str]:
    from cgnlearn.estimators.sites import in_words

    schema = model.statistics_.schema
    return in_words(model.site_shift_, [str(schema.names[i] if schema.names else i) for i in schema.continuous])


def _prior(model: Any) -> list[dict[str, Any]]:
    """What is known beforehand of each feature and class, and what the data have made of it, in plain values."""
    return [
        each._asdict()
        | {"label": str(each.label), "feature": str(each.feature), "moved": each.moved}
        | {"in_words": each.words}
        for each in model.prior_agreement_
    ]
