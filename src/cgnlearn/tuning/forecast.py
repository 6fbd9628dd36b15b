"""About how long a comparison of candidates takes, before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cgnlearn.classifier import without_weightless
from cgnlearn.model.frames import readable
from cgnlearn.model.prior import Prior
from cgnlearn.model.table import read_training
from cgnlearn.tuning.candidates import MOST_ROWS, Shape, candidates, n_features
from cgnlearn.tuning.ridge import Ridge
from cgnlearn.tuning.source import Source

if TYPE_CHECKING:
    from cgnlearn.tuning.estimator import CGNClassifierCV

HESSIANS = 15  # that a path of penalties costs, leaving rows out included
FLOPS = 4e9  # of a slow processor, in a second
LEAST = 0.05  # seconds of any source
CELLS = 2e6  # rows × columns × classes in a second, where there is a closed form
CELLS_OF_BANDS = 1e5  # where all orders are tried
CELLS_WITH_HOLES = 1e4  # where each pattern of holes has its own networks


def seconds_of(sources: Sequence[Source], shape: Shape) -> list[float]:
    """About how long each source takes; where it is long, almost all of it are the Hessians of logistic regressions."""
    cells = shape.n_rows * shape.schema.n_columns * shape.schema.n_classes
    found = []
    for source in sources:
        if isinstance(source, Ridge):
            size = min(n_features(shape, source.terms), shape.n_rows)
            work = shape.n_rows * float(size * (shape.schema.n_classes - 1)) ** 2
            found.append(LEAST + HESSIANS * work / FLOPS)
        else:
            with_holes = shape.has_holes and source.kind in ("complete", "tree")
            is_band = source.kind in ("band", "band_average")
            found.append(LEAST + cells / (CELLS_WITH_HOLES if with_holes else CELLS_OF_BANDS if is_band else CELLS))
    return found


def expected_seconds(model: CGNClassifierCV, X: Any, y: Any) -> float:
    """About how long a fit takes."""
    X, y, _, _ = without_weightless(readable(X), y, None, None)
    table, _ = read_training(X, y, None, model.categorical_features)
    n_rows = min(table.n_rows, MOST_ROWS)
    shape = Shape(table.schema, n_rows, bool(model.ordered), bool(table.incomplete))
    suiting = candidates(shape, model.candidates, model.transforms, model.prior or Prior())
    return sum(seconds_of([each for each in suiting if isinstance(each, Source)], shape))
