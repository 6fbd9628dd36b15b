"""Results of each class: its recall, its AUC against the rest, and the pairs of classes that are confused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cgnlearn.evaluation import estimates
from cgnlearn.evaluation.decisions import auc, grouping, one_class, predictions_by_model
from cgnlearn.evaluation.estimates import Estimate
from cgnlearn.evaluation.study import Study


class OfClass(NamedTuple):
    """One class: the share of its samples that are recognised, and how well it is told from the rest."""

    label: str
    n: int  # samples with a prediction
    recall: Estimate | None  # None without samples
    auc: Estimate | None


def of_classes(study: Study, model: str) -> list[OfClass]:
    """The results of a model for each class; recall in the first repetition, as in the confusion matrix."""
    predictions, own = predictions_by_model(study)[model], grouping(study, model)
    log_proba, true = predictions[0]
    right = (log_proba.argmax(axis=1) == true).astype(float)
    n_folds = 1 + max(split.fold for split in study.splits)
    found = []
    for code, label in enumerate(study.classes):
        among = true == code
        n = int(among.sum())
        groups = own.among(among)
        recall = estimates.share_of(right[among], n_folds, groups) if n else None
        parts = one_class(predictions, code)
        is_known = all(0 < happened.sum() < len(happened) for _, happened in parts)
        found.append(OfClass(label, n, recall, auc(parts, own) if is_known else None))
    return found


class ConfusedPair(NamedTuple):
    """Samples of one class that are predicted as another one."""

    true: str
    predicted: str
    n: int
    share: float  # of the samples of the class


def confused_pairs(classes: Sequence[str], confusion: NDArray[np.intp], most: int = 10) -> list[ConfusedPair]:
    """The pairs with most errors.

    Examples
    --------
    >>> confused_pairs(["a", "b"], np.array([[8, 2], [0, 5]]))
    [ConfusedPair(true='a', predicted='b', n=2, share=0.2)]
    """
    errors = confusion.copy()
    np.fill_diagonal(errors, 0)
    order = np.argsort(-errors, axis=None, kind="stable")[:most]
    places = [divmod(int(at), len(classes)) for at in order]
    return [
        ConfusedPair(classes[i], classes[j], int(errors[i, j]), float(errors[i, j] / confusion[i].sum()))
        for i, j in places
        if errors[i, j]
    ]
