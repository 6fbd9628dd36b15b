"""y: labels of one type without missing values, and their codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from cgnlearn.data.frames import is_missing


def target(y: Any, name: str = "y") -> NDArray[Any]:
    """Labels as a flat array of one type; missing ones raise an error."""
    cells = np.asarray(y)
    if cells.ndim == 1 and len(cells) and cells.dtype.kind in "iub":
        return cells  # nothing can be missing
    if cells.ndim == 1 and cells.dtype.kind in "fO":
        missing = np.isnan(cells) if cells.dtype.kind == "f" else np.array([is_missing(cell) for cell in cells], bool)
        if missing.any():
            raise ValueError(
                f"{name} has missing values (NaN), the first in sample {np.argmax(missing)}: drop these samples"
            )
        if len({isinstance(cell, str) for cell in cells.tolist()} if cells.dtype.kind == "O" else ()) > 1:
            raise ValueError(f"{name} mixes text and other labels: convert all to text or all to numbers")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name=name)
    return labels


def labels_of(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Class code of every label: its position among the classes."""
    are_codes = y.dtype.kind in "iu" and len(y) > 0 and np.array_equal(classes, np.arange(len(classes)))
    if are_codes and y.min() >= 0 and y.max() < len(classes):
        return y.astype(np.intp, copy=False)
    if y.dtype.kind in "iuf" and classes.dtype.kind in "iuf":  # the classes are sorted, so that labels need not be
        labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        if np.array_equal(classes[labels], y):
            return labels
    distinct, labels = np.unique(y, return_inverse=True)
    return class_codes(distinct, classes)[labels]


def class_codes(distinct: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Class codes of distinct labels."""
    code = {label: i for i, label in enumerate(classes.tolist())}
    for label in distinct.tolist():
        if label not in code:
            raise ValueError(
                f"y has the class {label!r}, which is not among the classes {classes.tolist()}: "
                "name it in the first call of partial_fit"
            )
    return np.array([code[label] for label in distinct.tolist()], np.intp)
