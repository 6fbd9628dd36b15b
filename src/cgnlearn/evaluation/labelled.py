"""Labelled samples of another place in the terms of a model: classes, gaps, and columns of subgroups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.frames import as_cells, as_frame, is_missing
from cgnlearn.data.labels import target
from cgnlearn.data.levels import identity


def true_positions(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels among the classes of a model; labels that are none raise an error that helps."""
    labels = target(y)
    known = {identity(label): i for i, label in enumerate(classes.tolist())}
    distinct, number = np.unique(labels, return_inverse=True)
    found = np.array([known.get(identity(label), -1) for label in distinct.tolist()], np.intp)
    for label in distinct[found < 0].tolist():
        listed = ", ".join(repr(one) for one in classes.tolist())
        alike = [one for one in classes.tolist() if _plain(one) == _plain(label)]
        if alike:
            n = int((labels == label).sum())
            raise ValueError(f"y has {label!r} in {n} samples, where the model says {alike[0]!r}: spell them alike")
        raise ValueError(
            f"y has the class {label!r}, which the model does not know (its classes are {listed}): drop these samples, "
            "or fit a model that knows them"
        )
    return found[number]


def _plain(label: Any) -> str:
    return str(label).strip().casefold()


def positive_position(model: Any, classes: tuple[str, ...], counts: NDArray[np.intp], positive: Any) -> int | None:
    """Position of the positive class: the given one, or of two the rarer one in training; None with more."""
    if positive is not None:
        if str(positive) not in classes:
            raise ValueError(f"positive {positive!r} is not a class of the model: these are {', '.join(classes)}")
        return classes.index(str(positive))
    if len(classes) != 2:
        return None
    trained = model.statistics_.classes if hasattr(model, "statistics_") else counts
    return int(trained[0] < trained[1]) ^ 1


def gaps_by_column(X: Any, model: Any) -> tuple[dict[str, int], dict[str, int]]:
    """Number of missing values and of unknown levels by column."""
    frame = as_frame(X)
    cells: Any = as_cells(X) if frame is None else frame
    schema = model.statistics_.schema if hasattr(model, "statistics_") else None
    missing: dict[str, int] = {}
    unknown: dict[str, int] = {}
    for number in range(cells.shape[1]):
        column = as_cells(cells[:, number]) if frame is None else cells[:, number].to_numpy()
        name = str(number) if frame is None else str(frame.columns[number])
        if column.dtype.kind in "fiub":
            gaps = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
        else:
            gaps = np.array([is_missing(cell) for cell in column], bool)
        if gaps.any():
            missing[name] = int(gaps.sum())
        if schema is not None and schema.levels[number] is not None:
            known = {identity(level) for level in schema.levels_of(number)}
            distinct, n = np.unique(column[~gaps].astype(object), return_counts=True)
            n_unknown = sum(int(m) for level, m in zip(distinct, n, strict=True) if identity(level) not in known)
            if n_unknown:
                unknown[name] = n_unknown
    return missing, unknown


def subgroup_columns(X: Any, by: Any) -> dict[str, Any]:
    """The columns of subgroups by name."""
    if by is None:
        return {}
    if isinstance(by, Mapping):
        return dict(by)
    frame = as_frame(by) if not isinstance(by, str | list | tuple) else None
    if frame is not None:
        return {str(name): frame[name].to_numpy() for name in frame.columns}
    own = as_frame(X)
    found = {}
    for name in [by] if isinstance(by, str) else list(by):
        if own is None or name not in own.columns:
            raise ValueError(f"by {name!r} is not a column of X: give the column itself, as {{{name!r}: values}}")
        found[str(name)] = own[name].to_numpy()
    return found
