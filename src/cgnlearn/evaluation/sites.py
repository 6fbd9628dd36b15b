"""Held-out sites: the quality of predictions at each, and what sites do to the features."""

from __future__ import annotations

import warnings
from typing import Any

from numpy.typing import NDArray

from cgnlearn.data.table import read_training
from cgnlearn.data.warning import DataWarning
from cgnlearn.estimators.sites import in_words, learned
from cgnlearn.evaluation.metrics import LOG_LOSS
from cgnlearn.evaluation.study import Study


def log_loss_by_site(study: Study) -> list[dict[str, Any]]:
    """Name, number of samples and log loss of every model at each site, in plain values."""
    assert study.sites is not None
    found = []
    for split in study.splits:
        losses: dict[str, float | None] = {}
        for result in study.results:
            if result.unit[1:] == (split.repeat, split.fold):
                log_proba = result.log_proba
                loss = None if log_proba is None else LOG_LOSS(log_proba, study.true[result.rows])
                losses[result.unit.name] = loss
        found.append({"site": str(study.sites[split.test[0]]), "samples": len(split.test), "log_loss": losses})
    return found


def sites_in_words(X: Any, y: NDArray[Any], sites: NDArray[Any]) -> list[str]:
    """What sites do to the columns of all samples, and whether they tell the classes."""
    table, _ = read_training(X, y, None, "from_dtype")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        _, shift = learned(table, sites)
    return in_words(shift, [str(X.columns[column]) for column in table.schema.continuous])
