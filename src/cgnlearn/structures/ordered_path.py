"""The path of the ordered structures: one fit for every k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import read, read_training
from cgnlearn.networks.estimation import SampleNotAcceptableError, estimation_of
from cgnlearn.networks.lattice import SHAPES
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import collect
from cgnlearn.networks.structure import check_order
from cgnlearn.structures.band import EveryK, every_family


def ordered_path(
    X: Any,
    y: Any,
    X_test: Any,
    *,
    k_max: int = 50,
    structures: Sequence[Literal["band", "box"]] = ("band", "box"),
    estimation: Literal["bayes", "ml"] = "bayes",
    sharing: float = 0.0,
    prior: Prior | None = None,
) -> Floats:
    """Log joint probabilities of test samples under every k-BAND and k-BOX, at little more than the cost of one.

    Equal to fitting ``CGNClassifier(Band(k))`` and ``CGNClassifier(Box(k))`` for k = 1, 2, …, ``k_max`` and calling
    ``predict_joint_log_proba``.

    Parameters
    ----------
    X : array or data frame (samples, features)
        Training data. The order of the continuous columns matters; discrete ones depend on the class alone.
    y : array (samples,)
    X_test : array or data frame (test samples, features)
    k_max : int, default=50
    structures : sequence of {"band", "box"}, default=("band", "box")
    estimation : {"bayes", "ml"}, default="bayes"
    sharing : float from 0 to 1, default=0.0
    prior : Prior, optional

    Returns
    -------
    ndarray (structures, k_max, test samples, classes)
        ``[i, k - 1]`` is the log joint of ``structures[i]`` with this k, classes in sorted order.

    Raises
    ------
    SampleNotAcceptableError
        Where maximum likelihood does not exist for some k.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cgnlearn import ordered_path
    >>> X, y = load_wine(return_X_y=True)
    >>> joint = ordered_path(X[::2], y[::2], X[1::2], k_max=5)
    >>> joint.shape
    (2, 5, 89, 3)
    >>> (joint.argmax(axis=-1) == y[1::2]).mean(axis=-1).round(2)[0]  # accuracy of the 1-BAND, 2-BAND, ...
    array([0.92, 0.94, 0.98, 0.97, 0.97])
    """
    shapes = tuple(structures)
    if not shapes or not set(shapes) <= set(SHAPES):
        raise ValueError(f'structures must hold "band", "box" or both, not {structures!r}')
    check_order(k_max, "k_max")
    table, _ = read_training(X, y)
    estimated_by = estimation_of(estimation, prior, sharing, None, table.schema)
    statistics = collect(table, every_family(table.schema, k_max))
    found = EveryK.of(statistics, read(X_test, table.schema), estimated_by, k_max=k_max, shapes=shapes)
    if not found.exists.all():
        most = int(np.argmin(found.exists.all(axis=0)))
        instead = f"k_max={most}" if most else "fewer columns"
        raise SampleNotAcceptableError(
            f"maximum likelihood does not exist for k = {most + 1}, as some feature has no variance left in some "
            f'class: use {instead}, estimation="bayes" or more samples'
        )
    return found.log_likelihood + found.class_log_prior
