"""The classifiers of the commands: those of the options, the defaults, and the baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from cgnlearn.candidates.registry import MIXTURE, NETWORKS
from cgnlearn.cli.terminal import say

ESTIMATIONS = ("bayes", "ml", "discriminative")
NO_OTHERS = "none"
NAMED = ("logistic_regression", "random_forest", "gradient_boosting")


def compared(
    structures: Sequence[str],
    estimation: Sequence[str],
    *,
    seed: int,
    ordered: bool,
    time_limit: float | None = None,
    prior: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The models of an evaluation by name: those of the options, or the default."""
    if not any(structure in NETWORKS for structure in structures):
        _refuse_options_of_networks(estimation=estimation, **options)
    if ordered and structures and MIXTURE not in structures:
        raise _not_ordered()
    if time_limit is not None and structures and not set(structures) - set(NETWORKS):
        raise _no_limit()
    models: dict[str, Any] = {}
    known = prior_of(prior)
    for structure in dict.fromkeys(structures or (MIXTURE,)):
        if structure in NETWORKS:
            for name in dict.fromkeys(estimation or ("ml", "bayes")):
                model = classifier(structure, name, seed=seed, prior=known, **options)
                models[label(structure, name, **options)] = model
        else:
            models[structure] = tuned(structure, seed, ordered, known, time_limit)
    return models


def with_comparators(
    models: Mapping[str, Any], names: Sequence[str], *, by_default: bool, n_columns: int, n_classes: int, seed: int
) -> dict[str, Any]:
    """The models, the named ones of scikit-learn or those compared by default, and the class frequencies."""
    from sklearn.dummy import DummyClassifier

    from cgnlearn.evaluation.comparators import COMPARATORS, comparators
    from cgnlearn.evaluation.study import BASELINE

    wanted = None if by_default and not names else [name.replace("_", " ") for name in NAMED if name in names]
    others = comparators(n_columns, n_classes, seed, wanted)
    if wanted is None:
        for name in COMPARATORS.keys() - others.keys():
            size = f"{n_columns:,} features and {n_classes} classes"
            say(f"{name} is slow with {size} and is skipped: ask for it with --compare {name.replace(' ', '_')}")
    return {**models, **others, BASELINE: DummyClassifier(strategy="prior")}


def chosen(
    structure: str | None,
    estimation: str | None,
    *,
    seed: int,
    ordered: bool,
    time_limit: float | None = None,
    prior: Path | None = None,
    **options: Any,
) -> Any:
    """The classifier of the options."""
    if structure in NETWORKS:
        if ordered:
            raise _not_ordered()
        if time_limit is not None:
            raise _no_limit()
        return classifier(structure, estimation or "bayes", seed=seed, prior=prior_of(prior), **options)
    _refuse_options_of_networks(estimation=estimation, **options)
    return tuned(structure or MIXTURE, seed, ordered, prior_of(prior), time_limit)


def prior_of(path: Path | None) -> Any:
    """The prior that a file of reference ranges expresses, if there is one."""
    if path is None:
        return None
    from cgnlearn.tables.knowledge import read_prior

    try:
        return read_prior(path)
    except ValueError as error:
        raise click.UsageError(f"--prior {error}") from None


def tuned(name: str, seed: int, ordered: bool, prior: Any = None, time_limit: float | None = None) -> Any:
    """The mixture of all candidates, or of one."""
    from cgnlearn import CGNClassifierCV

    candidates = None if name == MIXTURE else [name]
    settings = {"ordered": ordered, "prior": prior, "time_limit": time_limit, "random_state": seed}
    return CGNClassifierCV(candidates=candidates, **settings)


def _not_ordered() -> click.UsageError:
    return click.UsageError(f"--ordered is for the {MIXTURE}: omit --structure, or name band or box without --ordered")


def _no_limit() -> click.UsageError:
    return click.UsageError(f"--time-limit is for the {MIXTURE}: omit --structure, or omit --time-limit")


def _refuse_options_of_networks(**options: Any) -> None:
    given = [name for name, value in options.items() if value not in (None, ())]
    if given:
        option = "--" + given[0].replace("_", "-")
        raise click.UsageError(f"{option} is for networks: name one with --structure, or omit {option}")


def classifier(
    structure: str,
    estimation: Any,
    *,
    seed: int,
    k: Any = None,
    k_max: int | None = None,
    sharing: float | None = None,
    prior: Any = None,
    prior_location: Any = None,
    likelihood_power: Any = None,
) -> Any:
    """The network classifier of the options."""
    from cgnlearn import Band, BandAverage, Box, CGNClassifier, Prior

    if prior is not None and prior_location not in (None, "pooled"):
        raise click.UsageError(f"--prior gives the means, so --prior-location {prior_location} cannot: omit one")
    shape: Any = structure
    if structure in ("band", "box"):
        shape = (Band if structure == "band" else Box)(k or "cv", k_max=k_max or 20)
    elif structure == "band_average":
        shape = BandAverage(k_max=k_max or 20)
    return CGNClassifier(
        shape,
        estimation=estimation,
        prior=prior or Prior(location=prior_location or "pooled"),
        random_state=seed,
        sharing=0.0 if sharing is None else sharing,
        likelihood_power=1.0 if likelihood_power is None else likelihood_power,
    )


def label(
    structure: str, estimation: str, *, k: Any = None, sharing: Any = None, likelihood_power: Any = None, **_: Any
) -> str:
    """The name of a classifier in tables."""
    order = f" {k or 'cv'}" if structure in ("band", "box") else ""
    more = "".join(
        f", {name} {value if value == 'cv' else f'{value:g}'}"
        for name, value, usual in (("sharing", sharing, 0), ("likelihood power", likelihood_power, 1))
        if value not in (None, usual)
    )
    return f"{structure}{order} {estimation}{more}"
