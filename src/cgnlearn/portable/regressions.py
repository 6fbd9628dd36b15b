"""Logistic regressions and AODE as plain values.

A regression is a sum over terms, each a product of factors: a value in its own units, the indicator of a level, or
that of a value at or above an edge. A term with a missing factor counts as its mean in training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cgnlearn.candidates.aode import AODE
from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.logistic.correction import Discriminative
from cgnlearn.logistic.design import LinearOdds
from cgnlearn.logistic.features import Expansion, joint_cells, own_features
from cgnlearn.logistic.uncertainty import Directions
from cgnlearn.networks.layout import Cells
from cgnlearn.portable.networks import Description

Factor = tuple[Any, ...]  # column, then what it is; see `_value`, `_level` and `_step`
Term = tuple[Factor, ...]


def _value(column: int, origin: float, unit: float, least: float = -np.inf, most: float = np.inf) -> Factor:
    """(x - origin) / unit, clipped; the slopes of constants, which have an infinite unit, are 0."""
    return column, "value", float(origin), float(unit) if np.isfinite(unit) else 1.0, float(least), float(most)


def _level(column: int, code: int) -> Factor:
    """1 for a level, 0 for others."""
    return column, "level", code


def _step(column: int, edge: float) -> Factor:
    """1 at or above an edge, 0 below."""
    return column, "step", float(edge)


def regression(terms: list[Term], odds: LinearOdds, setting: int | None = None, posterior: Any = None) -> Description:
    """Log odds that are linear in terms; those without a slope are dropped."""
    slopes, intercept = (part if setting is None else part[setting] for part in (odds.slopes, odds.intercept))
    assert len(terms) == len(odds.centre)
    kept = [i for i, of_classes in enumerate(slopes) if of_classes.any()]
    place: dict[Factor, int] = {}
    numbered = [[place.setdefault(factor, len(place)) for factor in terms[i]] for i in kept]
    found: Description = {
        "kind": "regression",
        "factors": [list(factor) for factor in place],
        "terms": numbered,
        "centre": odds.centre[kept],
        # Of all classes but the last, which is 0: log odds are differences.
        "slopes": slopes[kept] - slopes[kept][:, -1:],
        "intercept": intercept - intercept[-1],
    }
    # Of more than the largest number of samples a part is kept, with other means.
    if isinstance(posterior, Directions) and np.allclose(posterior.centre, odds.centre):
        found["interval"] = {
            "scale": posterior.scale[kept],
            "directions": posterior.vectors[:, :, [0, *(1 + i for i in kept)]],
            "variance": posterior.variance,
            "rest": posterior.rest,
        }
    return found


def terms_of_expansion(expansion: Expansion, schema: Schema) -> list[Term]:
    """The features of an `Expansion`, in its order."""
    indicators = [_level(column, i) for column in schema.discrete for i in range(len(schema.levels_of(column)))]
    if expansion.edges is not None:
        edges = zip(schema.continuous, expansion.edges, strict=True)
        steps = [_step(column, edge) for column, of_column in edges for edge in of_column]
        return [(factor,) for factor in (*steps, *indicators)]
    units = list(zip(schema.continuous, expansion.mean, expansion.deviation, strict=True))
    terms: list[Term] = [(factor,) for factor in (*(_value(*unit) for unit in units), *indicators)]
    if expansion.terms == "linear":
        return terms
    ends = zip(units, expansion.least, expansion.most, strict=True)
    clipped = [_value(*unit, least, most) for unit, least, most in ends]
    terms += [(factor, factor) for factor in clipped]
    if expansion.terms != "squares":
        paired = [*clipped, *indicators] if expansion.terms == "pairs" else clipped
        terms += [(first, second) for i, first in enumerate(paired) for second in paired[:i] if first[0] != second[0]]
    return terms


def terms_of_network(model: Discriminative) -> list[Term]:
    """The features of a network's structure, in the order of `features_of`."""
    network = model.network
    layout = network.statistics.layout
    terms: list[Term] = []
    for family in layout.discrete:
        of_cells = _configurations(family.cells)
        terms += [(*cell, _level(family.column, code)) for cell in of_cells for code in range(family.n_levels)]
    for cells in joint_cells(network):
        terms += _configurations(cells)
    for partition, posterior in zip(layout.partitions, network.posteriors, strict=True):
        kept, pairs = own_features(partition)
        origin = posterior.units.origin + posterior.overall * posterior.units.unit
        parts = zip(partition.columns.tolist(), origin, posterior.units.unit, strict=True)
        factors = [_value(*part) for part in parts]
        of_cell: list[Term] = [(factors[i],) for i in kept]
        if network.estimation.sharing < 1:
            of_pairs = zip(partition.pairs.first[pairs], partition.pairs.second[pairs], strict=True)
            of_cell += [(factors[first], factors[second]) for first, second in of_pairs]
        cells_of = _configurations(partition.cells) if partition.cells.n > 1 else [()]
        terms += [(*cell, *term) for cell in cells_of for term in of_cell]
    return terms


def _configurations(cells: Cells) -> list[Term]:
    """The indicators whose product is 1 in each configuration."""
    codes = np.ndindex(cells.levels)
    return [tuple(_level(column, int(code)) for column, code in zip(cells.columns, at, strict=True)) for at in codes]


def aode(models: tuple[AODE, ...]) -> Description:
    """AODE models from the same counts, of which those of each pair of levels are listed once."""
    pairs = models[0].pairs
    first, second = np.triu_indices(len(pairs.column))
    counts: Floats = pairs.counts[:, first, second]
    return {
        "kind": "aode",
        "levels": list(pairs.n_levels),
        "counts": counts,
        "settings": [{"backoff": model.backoff, "dirichlet": model.dirichlet} for model in models],
    }
