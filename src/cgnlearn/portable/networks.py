"""Networks, and averages over structures, as plain values: parameters from which any language computes densities."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cgnlearn.networks.estimation import Estimation, Posterior
from cgnlearn.networks.indicators import Indicated, Indicators
from cgnlearn.networks.layout import Partition
from cgnlearn.networks.model import Model
from cgnlearn.networks.network import Network
from cgnlearn.networks.rotation import RotatedNetwork
from cgnlearn.structures.band_average import AveragedBand
from cgnlearn.structures.selective_naive_bayes import Selection
from cgnlearn.structures.tan_average import ForestAverage

Description = dict[str, Any]


def described(models: Sequence[Model], transform: str) -> Iterator[tuple[list[Description], list[int]]]:
    """Descriptions whose log likelihoods add up to those of some of the models, and which models these are.

    Models that differ in their sharing and pseudo-counts alone have one description, with a setting for each.
    """
    alike: dict[Hashable, list[int]] = {}
    for i, model in enumerate(models):
        alike.setdefault(_what_differs(model), []).append(i)
    for which in alike.values():
        parts = _parts([models[i] for i in which])
        yield [part | {"transform": transform} for part in parts], which


def _what_differs(model: Model) -> Hashable:
    """What models with one description have in common, besides the statistics."""
    if isinstance(model, Indicated):
        return _what_differs(model.features)
    if isinstance(model, Network):
        prior = replace(model.estimation.prior, dirichlet=1.0)
        return prior, model.estimation.averages, tuple(model.structure.families)
    if isinstance(model, Selection):
        return replace(model.own.estimation.prior, dirichlet=1.0)
    return "rotated" if isinstance(model, RotatedNetwork) else id(model)


def _parts(models: Sequence[Any]) -> list[Description]:
    first = models[0]
    if isinstance(first, Indicated):
        return [*_parts([model.features for model in models]), _of_indicators(first.indicators)]
    if isinstance(first, Network):
        return [network(models)]
    if isinstance(first, Selection):
        return [_selection(models)]
    if isinstance(first, ForestAverage):
        return [_forests(first)]
    if isinstance(first, AveragedBand):
        return [network([first.discrete]), *_orders(first)]
    if isinstance(first, RotatedNetwork):
        return [network([model.discrete for model in models]), *_rotation(models)]
    raise TypeError(f"{type(first).__name__} has no portable description")


def network(networks: Sequence[Network]) -> Description:
    """One structure under several estimations.

    Continuous features are described with sharing 0, from which readers compute any other.
    """
    base = networks[0]
    if base.estimation.averages and base.estimation.sharing:
        base = Network.of(base.structure, base.statistics, replace(base.estimation, sharing=0.0))
    statistics, nodes = base.statistics, base.integration.nodes
    group_of = {id(posterior): i for i, posterior in enumerate(base.posteriors)}
    return {
        "kind": "network",
        "estimation": "bayes" if base.estimation.averages else "ml",
        "settings": [_setting(network.estimation) for network in networks],
        "discrete": [
            _discrete(family.column, family.cells.columns, counts)
            for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True)
        ],
        "groups": [
            _group(partition, posterior, base.estimation)
            for partition, posterior in zip(statistics.layout.partitions, base.posteriors, strict=True)
        ],
        "continuous": [
            _family(column, group_of[id(nodes[column].posterior)], nodes[column].own, nodes[column].given.tolist())
            for column in base.structure.nodes
            if column in nodes
        ],
    }


def _setting(estimation: Estimation) -> Description:
    # By maximum likelihood the covariances of the description are already those of all classes together.
    sharing = estimation.sharing if estimation.averages else 0.0
    return {"sharing": sharing, "dirichlet": estimation.dirichlet}


def _discrete(column: int, parents: Sequence[int], counts: Any) -> Description:
    return {"column": column, "parents": list(parents), "counts": counts}


def _family(column: int, group: int, own: int, given: Sequence[int]) -> Description:
    return {"column": column, "group": group, "own": own, "given": list(given)}


def _group(partition: Partition, posterior: Posterior, estimation: Estimation) -> Description:
    """Features with the same discrete parents; arrays are (configurations, classes), and features or pairs."""
    pairs, n = partition.pairs, partition.n_features
    found: Description = {
        "parents": list(partition.cells.columns),
        "columns": partition.columns,
        "origin": posterior.units.origin,
        "unit": posterior.units.unit,
        "centre": posterior.centre,
        "scale": posterior.scale,
        "shape": posterior.shape,
        "leverage": posterior.least_leverage,
    }
    if pairs.reach is None:
        found["pairs"] = [pairs.first[n:], pairs.second[n:]]
    else:
        found["reach"] = pairs.reach
    if estimation.averages:
        # Where classes differ in their prior, sharing mixes it with its mean over them, as if this were everyone's.
        assert posterior.prior is not None
        scale, shape = posterior.prior.scale.mean(axis=0), posterior.prior.shape.mean(axis=0)
        found |= {"prior_scale": scale, "prior_shape": shape.tolist()}
    if posterior.shift is not None:
        found |= {"shift": posterior.shift, "own_spread": posterior.own_spread}
    return found


def _of_indicators(indicators: Indicators) -> Description:
    return {
        "kind": "indicators",
        "columns": list(indicators.columns),
        "counts": indicators.counts,
        "dirichlet": indicators.dirichlet,
    }


def _selection(selections: Sequence[Selection]) -> Description:
    return {
        "kind": "selection",
        "own": network([each.own for each in selections]),
        "free": network([each.free for each in selections]),
        "log_in": [each.log_in for each in selections],
        "log_out": [each.log_out for each in selections],
    }


def _forests(average: ForestAverage) -> Description:
    """Densities of every feature given each other one, and the weights of the arcs."""
    statistics, estimation = average.statistics, average.estimation
    own = replace(estimation, sharing=0.0)
    groups, families = [], []
    for i, (partition, moments) in enumerate(zip(statistics.layout.partitions, statistics.moments, strict=True)):
        posterior = own.posterior(moments, partition, statistics.schema)
        groups.append(_group(partition, posterior, own))
        present, columns = np.flatnonzero(~posterior.absent).tolist(), partition.columns.tolist()
        if partition.cells.columns:
            families += [_family(columns[at], i, at, []) for at in present]
        else:
            families += [_family(columns[at], i, at, [other]) for at in present for other in present if other < at]
    return {
        "kind": "forests",
        "needs_complete": True,
        "alone": network([average.alone]),
        "nodes": average.nodes,
        "log_weights": average.log_weights,
        "given": {
            "estimation": "bayes",
            "settings": [_setting(estimation)],
            "discrete": [
                _discrete(family.column, family.cells.columns, counts)
                for family, counts in zip(statistics.layout.discrete, statistics.counts, strict=True)
                if family.cells.columns
            ],
            "groups": groups,
            "continuous": families,
        },
    }


def _orders(average: AveragedBand) -> Iterator[Description]:
    """Regressions of each feature on the features just before it, of every order, and their weights."""
    if not average.lattices:
        return
    free, _, own = average.lattices
    yield {
        "kind": "orders",
        "needs_complete": True,
        "own": _group(own.partition, own.posterior, own.estimation),
        "free": _group(free.partition, free.posterior, free.estimation),
        "absent": np.flatnonzero(own.posterior.absent),
        "log_weight": average.log_weight,
    }


def _rotation(networks: Sequence[RotatedNetwork]) -> Iterator[Description]:
    blocks = [network.blocks[0] for network in networks if network.blocks]
    for rotation in [block.rotation for block in blocks[:1]]:
        yield {
            "kind": "rotation",
            "needs_complete": True,
            "columns": rotation.columns,
            "origin": rotation.origin,
            "unit": rotation.unit,
            "basis": rotation.basis,
            "parents": list(blocks[0].cells.columns),
            "settings": [
                {
                    "multiple": block.multiple,
                    "origin": block.posterior.units.origin,
                    "centre": block.posterior.centre,
                    "scale": block.posterior.scale,
                    "shape": block.posterior.shape,
                    "leverage": block.posterior.least_leverage,
                }
                for block in blocks
            ],
        }
