"""Band and Box: learners of ordered columns, and every k of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table, read, read_training
from cgnlearn.networks.blocks import Blocks
from cgnlearn.networks.estimation import Estimation, SampleNotAcceptableError, estimation_of
from cgnlearn.networks.families import Families, Family
from cgnlearn.networks.lattice import SHAPES, EveryOrder, Lattice
from cgnlearn.networks.model import LeaveOneOut, require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.prior import Prior
from cgnlearn.networks.statistics import Statistics, collect
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
        return isinstance(self.k, str)

    def structure(self, schema: Schema) -> Structure:
        self.check()
        if isinstance(self.k, str):
            raise ValueError(f"{self!r} needs samples to choose k: fit a CGNClassifier with it, or give k a number")
        return ordered_structure(self.shape, self.k, schema)

    def model(self, statistics: Statistics, estimation: Estimation) -> Network:
        # Every k has the same prior.
        return super().model(statistics, estimation.even(statistics.schema))

    def greatest_k(self, schema: Schema) -> int:
        """Greatest k to try."""
        return min(self.k_max, max(1, len(schema.continuous)))

    def check(self) -> None:
        """Raise an error if a parameter is invalid."""
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
        ``"cv"``: chosen by exact leave-one-out, in which all k cost little more than one; the classifier then has
        ``k_`` and ``cv_results_``.
    k_max : int, default=50
        Greatest k to try.
    cv : int, default=5
        Number of folds where leave-one-out is not exact or samples have groups; as many as the rarest class has
        samples if that is fewer, but at least 2.
    scoring : {"log_loss", "accuracy"}, default="log_loss"
        Score by which k is chosen. Ties go by the other score, then to the smaller k.

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
    """k-BAND or k-BOX of the continuous columns in their order; discrete ones depend on the class alone."""
    if shape == "band":
        return Structure.ending_in_band(tuple(schema.discrete), tuple(schema.continuous), k)
    before = np.concatenate([np.zeros(len(schema.discrete), np.intp), np.arange(len(schema.continuous)) % k])
    return Structure.of_preceding((*schema.discrete, *schema.continuous), before)


def every_family(schema: Schema, k_max: int) -> Families:
    """Families to count for every k up to ``k_max``."""
    return Families.of((Family(column, ()) for column in schema.discrete), schema.continuous, k_max)


def discrete_network(statistics: Statistics, estimation: Estimation) -> Network:
    """Network of the discrete columns, which depend on the class alone."""
    return Network.of(Structure.jan([[column] for column in statistics.schema.discrete]), statistics, estimation)


def require_complete_order(columns: Iterable[int], schema: Schema) -> None:
    """Raise an error if any of the columns is continuous: several k at once need them without missing values."""
    ordered = [column for column in columns if schema.levels[column] is None]
    require_complete(ordered, schema, "several k at once need complete samples", "give k a number")


@dataclass(frozen=True, eq=False)
class EveryK:
    """Log likelihoods of samples under k-BAND and k-BOX, k = 1, 2, …"""

    log_likelihood: Floats  # ln p(x | class): (shapes, k, samples, classes)
    exists: NDArray[np.bool_]  # (shapes, k), False where there is no maximum likelihood and so no log likelihood
    class_log_prior: Floats  # (classes,), of leave-one-out (samples, classes)

    @classmethod
    def of(
        cls,
        statistics: Statistics,  # of `every_family`
        table: Table,
        estimation: Estimation,
        *,
        k_max: int,
        shapes: tuple[str, ...],
        leave_one_out: bool = False,
    ) -> EveryK:
        """Log likelihoods of new samples, or of the training samples by leave-one-out."""
        schema = statistics.schema
        estimation = estimation.even(schema)
        require_complete_order((*statistics.incomplete, *table.incomplete), schema)
        discrete = _densities(discrete_network(statistics, estimation), table, leave_one_out)
        total = np.broadcast_to(discrete.log_likelihood, (len(shapes), k_max, *discrete.log_likelihood.shape)).copy()
        exists = np.ones((len(shapes), k_max), bool)
        for partition, moments in zip(statistics.layout.partitions, statistics.moments, strict=True):
            if not estimation.averages and not (moments.n > 0).all():
                return cls(total, np.zeros_like(exists), discrete.class_log_prior)
            lattice = Lattice(partition, estimation.posterior(moments, partition, schema), estimation)
            found = (lattice.every_order_leave_one_out if leave_one_out else lattice.every_order)(table, shapes)
            if estimation.averages and not found.exists.all():
                # Rounding has made a scale singular; `Blocks` regularises it.
                k_of_chain = partition.k or 1
                found = _one_by_one(statistics, table, estimation, k_of_chain, shapes, leave_one_out)
            # With as many features as k, or fewer, both shapes are complete.
            order = np.minimum(np.arange(k_max), found.exists.shape[1] - 1)
            total += found.log_likelihood[:, order]
            exists &= found.exists[:, order]
        return cls(total, exists, discrete.class_log_prior)


def _densities(network: Network, table: Table, leave_one_out: bool) -> LeaveOneOut:
    if leave_one_out:
        return network.leave_one_out(table)
    return LeaveOneOut(network.log_likelihood(table), network.class_log_prior)


def _one_by_one(
    statistics: Statistics, table: Table, estimation: Estimation, k_max: int, shapes: tuple[str, ...], held_out: bool
) -> EveryOrder:
    """Log likelihoods of the continuous columns for each k separately, from the same moments."""
    schema = statistics.schema
    chain = np.array(schema.continuous)
    found = np.empty((len(shapes), k_max, table.n_samples, schema.n_classes))
    for i, shape in enumerate(shapes):
        for k in range(1, k_max + 1):
            structure = getattr(Structure, shape)(len(chain), k).renamed(dict(enumerate(chain.tolist())))
            network = Network.of(structure, statistics, estimation, Blocks.of)
            found[i, k - 1] = _densities(network, table, held_out).log_likelihood
    return EveryOrder(found, np.ones(found.shape[:2], bool))


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
