"""Band and Box: learners of ordered columns, and every k of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Estimation
from cgnlearn.networks.families import Families, Family
from cgnlearn.networks.lattice import EveryOrder, Lattice
from cgnlearn.networks.model import LeaveOneOut, require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure, check_order
from cgnlearn.structures.fixed import Fixed


class Ordered(Fixed):
    """The continuous columns in their order; discrete ones depend on the class alone."""

    shape: ClassVar[str]

    def __init__(
        self,
        k: int | Literal["cv"] = 1,
        *,
        k_max: int = 50,
        cv: int = 5,
        scoring: Literal["log_loss", "accuracy"] = "log_loss",
    ) -> None:
        self.k = k
        self.k_max = k_max
        self.cv = cv
        self.scoring = scoring

    @property
    def needs_samples(self) -> bool:
        """Whether k is to be chosen."""
        return isinstance(self.k, str)

    def structure(self, schema: Schema) -> Structure:
        """The structure, its nodes being indexes of columns."""
        self.check()
        if isinstance(self.k, str):
            raise ValueError(f"{self!r} chooses k while a CGNClassifier is fitted: give it to one, or give k a number")
        return ordered_structure(self.shape, self.k, schema)

    def greatest_k(self, schema: Schema) -> int:
        """The greatest k that is tried."""
        return min(self.k_max, max(1, len(schema.continuous)))

    def check(self) -> None:
        """Refuse parameters that cannot be meant."""
        if self.k != "cv":
            check_order(self.k, otherwise=' or "cv"')
        check_order(self.k_max, "k_max")
        check_order(self.cv, "cv", least=2)
        if self.scoring not in ("log_loss", "accuracy"):
            raise ValueError(f'scoring must be "log_loss" or "accuracy", not {self.scoring!r}')


class Box(Ordered):
    """k-BOX: contiguous groups of ``k`` continuous columns. The parameters are those of `Band`.

    Examples
    --------
    >>> from cgnlearn import Box, CGNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(Box(2)).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (), 3: (2,)}
    """

    shape = "box"


class Band(Ordered):
    """k-BAND: every continuous column depends on the ``k - 1`` before it.

    Parameters
    ----------
    k : int or "cv", default=1
        ``"cv"``: the best for samples that a model has not seen, by exact leave-one-out, in which all k cost little
        more than one; the classifier then has ``k_`` and ``cv_results_``.
    k_max : int, default=50
        The greatest k tried.
    cv : int, default=5
        How many folds, where leave-one-out is not exact or samples have groups; fewer where the rarest class has not so
        many samples, but at least 2.
    scoring : {"log_loss", "accuracy"}, default="log_loss"
        What the best k is best at. Equal ones go by the other
        score, then to the smaller k.

    Examples
    --------
    >>> from cgnlearn import Band, CGNClassifier
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CGNClassifier(Band(2)).fit(X, y).structure_.parents
    {0: (), 1: (0,), 2: (1,), 3: (2,)}
    """

    shape = "band"


def ordered_structure(shape: str, k: int, schema: Schema) -> Structure:
    """The k-BAND or k-BOX of the continuous columns in their order; discrete ones depend on the class alone."""
    if shape == "band":
        return Structure.ending_in_band(tuple(schema.discrete), tuple(schema.continuous), k)
    before = np.concatenate([np.zeros(len(schema.discrete), np.intp), np.arange(len(schema.continuous)) % k])
    return Structure.of_preceding((*schema.discrete, *schema.continuous), before)


def every_family(schema: Schema, k_max: int) -> Families:
    """What every k up to ``k_max`` needs counted."""
    return Families.of((Family(column, ()) for column in schema.discrete), schema.continuous, k_max)


def refuse_missing_in_order(columns: Iterable[int], schema: Schema) -> None:
    """Say that several k at once are not to be had where values of ordered columns are missing."""
    ordered = [column for column in columns if schema.levels[column] is None]
    require_complete(ordered, schema, "several k at once take the same samples", "give k a number")


@dataclass(frozen=True, eq=False)
class EveryK:
    """Log likelihoods of samples under k-BAND and k-BOX, k = 1, 2, …

    Parameters
    ----------
    log_likelihood : ndarray (shapes, k, samples, classes)
        ln p(x | class).
    exists : ndarray of bool (shapes, k)
        False where maximum likelihood does not exist; what stands there then means nothing.
    class_log_prior : ndarray (classes,)
    """

    log_likelihood: Floats
    exists: NDArray[np.bool_]
    class_log_prior: Floats

    @classmethod
    def of(
        cls, statistics: Statistics, table: Table, estimation: Estimation, *, k_max: int, shapes: tuple[str, ...]
    ) -> EveryK:
        """The samples of ``table``, after statistics of `every_family`."""
        return cls._of(statistics, table, estimation, k_max, shapes, left_out=False)

    @classmethod
    def left_out(
        cls, statistics: Statistics, table: Table, estimation: Estimation, *, k_max: int, shapes: tuple[str, ...]
    ) -> EveryK:
        """Leave-one-out of training samples; the class log priors are then (samples, classes)."""
        return cls._of(statistics, table, estimation, k_max, shapes, left_out=True)

    @classmethod
    def _of(
        cls,
        statistics: Statistics,
        table: Table,
        estimation: Estimation,
        k_max: int,
        shapes: tuple[str, ...],
        left_out: bool,
    ) -> EveryK:
        schema = statistics.schema
        refuse_missing_in_order((*statistics.incomplete, *table.incomplete), schema)
        discrete = Network.of(Structure.jan([[column] for column in schema.discrete]), statistics, estimation)
        alone = _said(discrete, table, left_out)
        total = np.broadcast_to(alone.log_likelihood, (len(shapes), k_max, *alone.log_likelihood.shape)).copy()
        exists = np.ones((len(shapes), k_max), bool)
        for partition, moments in zip(statistics.layout.partitions, statistics.moments, strict=True):
            if not estimation.averages and not (moments.n > 0).all():
                return cls(total, np.zeros_like(exists), alone.class_log_prior)
            lattice = Lattice(partition, estimation.posterior(moments, partition, schema), estimation)
            found = (lattice.every_order_leave_one_out if left_out else lattice.every_order)(table, shapes)
            if estimation.averages and not found.exists.all():
                # Rounding has made a scale singular, which the factorising way mends.
                found = _one_by_one(statistics, table, estimation, partition.k or 1, shapes, left_out)
            # With as many features as k, or fewer, both shapes are complete.
            order = np.minimum(np.arange(k_max), found.exists.shape[1] - 1)
            total += found.log_likelihood[:, order]
            exists &= found.exists[:, order]
        return cls(total, exists, alone.class_log_prior)


def _said(network: Network, table: Table, left_out: bool) -> LeaveOneOut:
    """What a network says of samples, or of training samples without them."""
    if left_out:
        return network.leave_one_out(table)
    return LeaveOneOut(network.log_likelihood(table), network.class_log_prior)


def _one_by_one(
    statistics: Statistics, table: Table, estimation: Estimation, k_max: int, shapes: tuple[str, ...], left_out: bool
) -> EveryOrder:
    """The continuous columns' log likelihoods of each k by itself, from the same moments."""
    schema = statistics.schema
    chain = np.array(schema.continuous)
    found = np.empty((len(shapes), k_max, table.n_samples, schema.n_classes))
    for i, shape in enumerate(shapes):
        for k in range(1, k_max + 1):
            structure = getattr(Structure, shape)(len(chain), k).renamed(dict(enumerate(chain.tolist())))
            network = Network.of(structure, statistics, estimation, Blocks.of)
            found[i, k - 1] = _said(network, table, left_out).log_likelihood
    return EveryOrder(found, np.ones(found.shape[:2], bool))
