"""Files of costs: a row for each true class, a column for each decision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from cgnlearn.evaluation.decisions import Costs


def read_costs(path: Path, classes: Sequence[str]) -> Costs:
    """Read costs of decisions, in the order of the classes; the first column names the class of each row."""
    import numpy as np

    from cgnlearn.evaluation.decisions import Costs
    from cgnlearn.tables.columns import labels, only_numbers
    from cgnlearn.tables.formats import source_of

    source = source_of(path)
    first, *decisions = source.names
    if not decisions:
        raise click.UsageError(f"--cost {path}: it needs a column of classes, and one for each decision")
    rows = source.whole
    named = labels(rows, first).cells().tolist()
    for label in classes:
        if named.count(label) != 1:
            raise click.UsageError(f"--cost {path}: its first column must name class {label!r} in exactly one row")
    foreign = [label for label in named if label not in classes]
    if foreign:
        raise click.UsageError(f"--cost {path}: {foreign[0]!r} is not a class: the classes are {', '.join(classes)}")
    matrix = np.column_stack([only_numbers(rows, name, "costs are numbers") for name in decisions])
    if np.isnan(matrix).any():
        raise click.UsageError(f"--cost {path}: a cost is missing: fill it in")
    return Costs(tuple(decisions), matrix[[named.index(label) for label in classes]])
