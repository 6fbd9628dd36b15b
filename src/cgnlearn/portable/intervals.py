"""What readers need to know, besides the models themselves, to tell how certain the probabilities are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cgnlearn.networks.indicators import Indicated
from cgnlearn.networks.intervals import normal_draws
from cgnlearn.networks.network import Network
from cgnlearn.portable.networks import Description
from cgnlearn.structures.selective_naive_bayes import Selection

LEVEL = 0.9
MOST_CLASSES = 10  # whose draws a file holds


def interval(model: Any, models: Sequence[Description], members: Sequence[Description]) -> Description | None:
    """The values besides those of the members' models; None for what needs more than a file can hold.

    That is true of averages over structures, of rotated networks, of single regressions, which need training samples,
    and of maximum likelihood, which has no posterior.
    """
    used = {i for member in members for each in member["likelihoods"] for i in each["models"]}
    n_classes, mixture = len(model.classes_), getattr(model, "_mixture", None)
    if n_classes > MOST_CLASSES or not all(_is_certain(models[i]) for i in used):
        return None
    given = model._class_prior is not None if mixture else model._given_class_prior is not None
    dirichlet = model._dirichlet if mixture else model._estimation.dirichlet
    return {
        "level": LEVEL,
        "draws": normal_draws(n_classes - 1) if mixture or n_classes > 2 else None,
        "member_weights": mixture.weight_draws if mixture else None,
        "class_mass": None if given else model.statistics_.classes + dirichlet,
    }


def _is_certain(description: Description) -> bool:
    """Whether a reader can tell how certain the log likelihoods of a model are."""
    own = description["own"] if description["kind"] == "selection" else description
    return own["kind"] in ("aode", "indicators") or "interval" in own


def with_interval(description: Description, model: Any) -> Description:
    """A description with what intervals need besides; as it is where they need more, or nothing."""
    if isinstance(model, Indicated):
        return with_interval(description, model.features)
    if isinstance(model, Selection):
        own = description["own"] | {"interval": _of_network(model.own)}
        return description | {"own": own} if description["kind"] == "selection" else description
    if isinstance(model, Network) and description["kind"] == "network" and model.estimation.averages:
        return description | {"interval": _of_network(model)}
    return description


def without_interval(description: Description) -> Description:
    """The description alone."""
    own = {key: value for key, value in description.items() if key != "interval"}
    return own | {"own": without_interval(own["own"])} if own["kind"] == "selection" else own


def _of_network(network: Network) -> Description:
    """Values at which missing parents stand, and the number of samples in each configuration and class."""
    statistics = network.statistics
    fill = np.zeros(statistics.schema.n_columns)
    parts = list(zip(statistics.layout.partitions, network.posteriors, strict=True))
    for partition, posterior in reversed(parts):  # the first one with a column counts
        fill[partition.columns] = posterior.overall * posterior.units.unit + posterior.units.origin
    for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True):
        fill[family.column] = counts.sum(axis=(0, 1)).argmax()
    own_n = [posterior.own_n.mean(axis=2) if posterior.separate else posterior.own_n for _, posterior in parts]
    return {"fill": fill, "own_n": own_n}
