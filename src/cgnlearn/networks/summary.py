"""A published table as data: statistics from counts, means and standard deviations by class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.data.arrays import Floats
from cgnlearn.data.levels import identity, plain, sorted_levels
from cgnlearn.data.schema import Schema
from cgnlearn.networks.layout import Layout
from cgnlearn.networks.moments import Moments
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure

ByClass = Mapping[Any, float]
Divisor = Literal["n-1", "n"]
ADDS_UP = 1e-6  # share of the samples of a class by which counts of levels may differ from it: rounding of weights


def statistics_of_summary(
    n: ByClass,
    mean: Mapping[str, ByClass],
    sd: Mapping[str, ByClass],
    counts: Mapping[str, Mapping[Any, ByClass]],
    *,
    correlation: Mapping[Any, ArrayLike] | None,
    divisor: Divisor,
    schema: Schema | None,
) -> Statistics:
    """The statistics; the parameters are those of `Statistics.from_summary`."""
    if divisor not in ("n-1", "n"):
        raise ValueError(f'divisor must be "n-1" or "n", not {divisor!r}')
    if set(mean) != set(sd):
        other = next(iter(set(mean) ^ set(sd)))
        raise ValueError(f"{other!r} must have both means and standard deviations")
    if twice := [name for name in mean if name in counts]:
        raise ValueError(f"{twice[0]!r} has means and counts of levels: it is continuous or discrete, not both")
    own = _schema_of(n, mean, counts)
    schema = own if schema is None else _matching(schema, own)
    number = _by_class(n, schema, "n")
    if not (number > 0).all():
        raise ValueError(f"class {schema.classes[int(np.argmin(number))]!r} has no samples: omit it")
    names = schema.names or ()
    structure = Structure.naive_bayes(schema.n_columns)
    if correlation is not None:
        structure = Structure.jan([schema.continuous, *([column] for column in schema.discrete)])
    families = structure.as_families(schema)
    layout = Layout.of(families, schema)
    of_levels = []
    for family in layout.discrete:
        of_levels.append(_counts(counts[names[family.column]], family.column, schema, number)[:, None])
    moments = []
    for partition in layout.partitions:
        of_columns = [names[column] for column in partition.columns]
        means = np.array([_by_class(mean[name], schema, f"the mean of {name!r}") for name in of_columns]).T
        deviations = np.array([_deviations(sd[name], schema, name, number) for name in of_columns]).T
        # Not the mean itself as the origin, which a single class would have.
        origin = means.mean(axis=0)
        scatter = np.empty((1, schema.n_classes, len(partition.pairs)))
        weight = number if divisor == "n" else np.maximum(number - 1, 0.0)
        first, second = partition.pairs.first, partition.pairs.second
        for label in range(schema.n_classes):
            between = np.ones(len(first))
            if correlation is not None:
                places = np.array([schema.position[column] for column in partition.columns.tolist()])
                matrix = _correlation(correlation, label, schema)
                between = matrix[places[first], places[second]]
            scatter[0, label] = weight[label] * between * deviations[label, first] * deviations[label, second]
        moments.append(Moments(partition.pairs, number[None], (means - origin)[None], scatter, origin))
    missing = np.zeros((schema.n_classes, schema.n_columns))
    return Statistics(schema, families, number, tuple(of_levels), tuple(moments), missing).recentred()


def _schema_of(n: ByClass, mean: Mapping[str, Any], counts: Mapping[str, Mapping[Any, Any]]) -> Schema:
    """The columns in the order given, first those with means; classes and levels sorted, as in a fit."""
    if len(n) < 2:
        raise ValueError("n must have the number of samples of each class, of which there are at least two")
    classes = sorted_levels(n, "n")
    if not mean and not counts:
        raise ValueError("there are no features: give means and standard deviations, or counts of levels")
    levels = [sorted_levels(of_levels, f"the counts of {name!r}") for name, of_levels in counts.items()]
    return Schema((*map(str, mean), *map(str, counts)), (*(None for _ in mean), *levels), classes)


def _matching(schema: Schema, own: Schema) -> Schema:
    """The schema to which the statistics will be added, if the table has all that it names."""
    names = schema.names or tuple(str(column) for column in range(schema.n_columns))
    for name in names:
        if name not in (own.names or ()):
            raise ValueError(f"the table says nothing about {name!r}: add its rows, or drop the column elsewhere")
    for name, levels in zip(own.names or (), own.levels, strict=True):
        if name not in names:
            raise ValueError(f"the table has {name!r}, which the data do not have: remove its rows")
        theirs = schema.levels[names.index(name)]
        if (levels is None) != (theirs is None):
            kinds = ("numbers", "levels") if theirs is None else ("levels", "numbers")
            raise ValueError(f"{name!r} has {kinds[0]} in the data, but {kinds[1]} in the table")
        if levels is not None and theirs is not None:
            _same(levels, theirs, f"the levels of {name!r}")
    _same(own.classes, schema.classes, "the classes")
    if schema.names is None:
        return Schema(names, schema.levels, schema.classes)
    return schema


def _same(ours: Sequence[Any], theirs: Sequence[Any], what: str) -> None:
    table, data = ({identity(each) for each in part} for part in (ours, theirs))
    for each in ours:
        if identity(each) not in data:
            raise ValueError(f"{what} in the table include {each!r}, which the data do not: rename or remove it")
    for each in theirs:
        if identity(each) not in table:
            raise ValueError(f"{what} in the table lack {each!r}: add its rows, with a count of 0 if there are none")


def _by_class(values: ByClass, schema: Schema, what: str) -> Floats:
    """Numbers in the order of the classes."""
    found = {identity(label): value for label, value in values.items()}
    if foreign := [label for label in values if identity(label) not in map(identity, schema.classes)]:
        raise ValueError(f"{what} is given for class {plain(foreign[0])!r}, which has no n")
    result = []
    for label in schema.classes:
        if identity(label) not in found:
            raise ValueError(f"{what} is not given for class {label!r}")
        try:
            value = float(found[identity(label)])
        except (TypeError, ValueError):
            value = np.nan
        if not np.isfinite(value) or (what == "n" and value < 0):
            raise ValueError(f"{what} must be a number, not {found[identity(label)]!r} (class {label!r})")
        result.append(value)
    return np.array(result)


def _deviations(values: ByClass, schema: Schema, name: str, number: Floats) -> Floats:
    """Standard deviations; of a single sample there need not be one."""
    single = {identity(label) for label, n in zip(schema.classes, number, strict=True) if n <= 1}
    filled = {
        label: 0.0 if identity(label) in single and _is_nothing(value) else value for label, value in values.items()
    }
    found = _by_class(filled, schema, f"the standard deviation of {name!r}")
    if (found < 0).any():
        at = int(np.argmax(found < 0))
        raise ValueError(f"the standard deviation of {name!r} in class {schema.classes[at]!r} is negative")
    return found


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _counts(values: Mapping[Any, ByClass], column: int, schema: Schema, number: Floats) -> Floats:
    """Counts of the levels of a column: (classes, levels)."""
    levels = schema.levels_of(column)
    found = {identity(level): by_class for level, by_class in values.items()}
    name = (schema.names or ())[column]
    counts = np.array([_by_class(found[identity(level)], schema, f"the count of {name!r}") for level in levels]).T
    if (counts < 0).any():
        raise ValueError(f"a count of {name!r} is negative")
    for label, (total, n) in enumerate(zip(counts.sum(axis=1), number, strict=True)):
        if abs(total - n) > ADDS_UP * n:
            raise ValueError(
                f"the counts of {name!r} in class {schema.classes[label]!r} add up to {total:g}, but it has {n:g} "
                "samples: correct them, or add a level for the rest"
            )
    return counts


def _correlation(given: Mapping[Any, ArrayLike], label: int, schema: Schema) -> Floats:
    """The correlation matrix of the continuous columns in a class."""
    found = {identity(each): matrix for each, matrix in given.items()}
    name, m = schema.classes[label], len(schema.continuous)
    if identity(name) not in found:
        raise ValueError(f"correlation is not given for class {name!r}")
    matrix = np.asarray(found[identity(name)], dtype=float)
    if matrix.shape != (m, m):
        raise ValueError(f"the correlations in class {name!r} must be {m} × {m}, for {_listed(schema)}")
    if not np.allclose(matrix, matrix.T) or not np.allclose(np.diag(matrix), 1.0):
        raise ValueError(f"the correlations in class {name!r} must be symmetric, with 1 on the diagonal")
    if np.linalg.eigvalsh(matrix).min() < -1e-2:  # published ones are rounded
        raise ValueError(f"the correlations in class {name!r} contradict each other: no samples could have them")
    return matrix


def _listed(schema: Schema) -> str:
    names: Iterable[str] = ((schema.names or ())[column] for column in schema.continuous)
    return ", ".join(names)
