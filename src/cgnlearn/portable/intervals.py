"""What readers need to know, besides a network itself, to tell how certain its probabilities are."""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.networks.intervals import normal_draws
from cgnlearn.networks.network import Network
from cgnlearn.portable.networks import Description

LEVEL = 0.9
MOST_CLASSES = 10  # whose draws a file holds


def interval(model: Any) -> Description | None:
    """The values besides the network; None for models whose intervals need more than a file can hold.

    Those are mixtures and regressions, which need training samples, averages over structures, and maximum likelihood,
    which has no posterior.
    """
    network = getattr(model, "_model", None)
    n_classes = len(model.classes_)
    if not isinstance(network, Network) or not network.estimation.averages or n_classes > MOST_CLASSES:
        return None
    statistics, schema = network.statistics, network.statistics.schema
    fill = np.zeros(schema.n_columns)
    parts = list(zip(statistics.layout.partitions, network.posteriors, strict=True))
    for partition, posterior in reversed(parts):  # the first one with a column counts
        fill[partition.columns] = posterior.overall * posterior.units.unit + posterior.units.origin
    for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True):
        fill[family.column] = counts.sum(axis=(0, 1)).argmax()
    found: Description = {
        "level": LEVEL,
        "fill": fill,
        "draws": None if n_classes == 2 else normal_draws(n_classes - 1),
    }
    given = model._given_class_prior is not None
    found["class_mass"] = None if given else statistics.classes + network.estimation.dirichlet
    found["own_n"] = [posterior.own_n.mean(axis=2) if posterior.separate else posterior.own_n for _, posterior in parts]
    return found
