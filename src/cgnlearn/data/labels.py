"""y: labels of one type without missing values, and their codes; the numbers of groups."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d

from cgnlearn.data.frames import as_cells, is_missing
from cgnlearn.data.levels import identity, kind_of, plain
from cgnlearn.data.warning import DataWarning


def target(y: Any, name: str = "y") -> NDArray[Any]:
    """Labels as a flat array of text, truths or numbers; missing ones and other types raise an error."""
    cells = as_cells(y)
    if cells.ndim == 1 and len(cells) and cells.dtype.kind in "iub":
        return cells  # nothing can be missing
    if cells.size and cells.dtype.kind not in "fiubUO":
        raise ValueError(_no_labels(name, cells.flat[0]))
    labels: NDArray[Any] = column_or_1d(cells, warn=True)
    if not len(labels):
        raise ValueError(f"{name} is empty: give a label for each sample")
    if labels.dtype.kind in "fO":
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.array([is_missing(cell) for cell in labels])
        if missing.any():
            raise ValueError(
                f"{name} has missing values (NaN), the first in sample {np.argmax(missing)}: drop these samples"
            )
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels, name)
    assert_all_finite(labels, input_name=name)
    return labels


def _of_one_type(cells: NDArray[Any], name: str) -> NDArray[Any]:
    """Objects as an array of their one type."""
    kinds = {kind_of(cell) for cell in cells}
    if "text" in kinds and len(kinds) > 1:
        raise ValueError(f"{name} mixes text and other labels: convert all to text or all to numbers")
    if kinds == {"text"}:
        for cell in (cell for cell in cells if not isinstance(cell, str)):
            raise ValueError(_no_labels(name, cell))
        return cells
    if kinds <= {"numbers", "truths"}:
        labels = np.array([plain(cell) for cell in cells])
        if labels.dtype.kind == "O":  # integers of more than 64 bits
            raise ValueError(_no_labels(name, max(cells, key=abs)))
        return labels
    raise ValueError(_no_labels(name, next(cell for cell in cells if kind_of(cell) not in ("numbers", "truths"))))


def _no_labels(name: str, cell: Any) -> str:
    # As scikit-learn, whose metrics accept no others; model files could not hold them either.
    return f"{name} holds {cell!s} ({type(cell).__name__}): convert the labels to text, in pandas with .astype(str)"


def check_classes(distinct: NDArray[Any], n_samples: int | None = None) -> None:
    """Refuse labels that are measurements, and warn of integers that may be."""
    if distinct.dtype.kind == "f" and (fractions := distinct[distinct != np.floor(distinct)]).size:
        raise ValueError(
            f"Unknown label type: continuous, such as {fractions[0]!s}: a classifier needs classes, so bin the numbers"
        )
    if n_samples is not None and distinct.dtype.kind in "iuf" and len(distinct) > max(20, n_samples / 2):
        message = f"y has {len(distinct)} different numbers in {n_samples} samples: are they measurements, not classes?"
        warnings.warn(message, DataWarning, stacklevel=7)


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


def group_numbers(groups: Any, n_samples: int) -> NDArray[np.intp]:
    """Number of each sample's group, whatever holds the groups; a sample without one raises an error."""
    cells = as_cells(groups)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise ValueError(f"groups must be one name or number for each sample, not of shape {cells.shape}")
    if len(cells) != n_samples:
        raise ValueError(f"groups has {len(cells)} entries for {n_samples} samples: give the group of each sample")
    if cells.dtype.kind in "fMmO":
        missing = np.array([is_missing(cell) for cell in cells], bool)
        if missing.any():
            raise ValueError(
                f"groups has {missing.sum()} missing values, the first for sample {np.argmax(missing)}: name the group "
                "of each sample, one of its own if it belongs to no other, or drop the sample"
            )
    if cells.dtype.kind != "O":
        return np.unique(cells, return_inverse=True)[1]
    found = [identity(cell) for cell in cells]
    number = {group: i for i, group in enumerate(sorted(set(found), key=str))}
    return np.array([number[group] for group in found], np.intp)
