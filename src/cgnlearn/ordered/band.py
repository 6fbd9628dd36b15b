"""Every k of the ordered structures at once, discrete attributes and class included."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.layout import Layout, Partition
from cgnlearn.model.network import Network, Parameters, posterior_of
from cgnlearn.model.prior import Prior
from cgnlearn.model.statistics import Floats, Statistics
from cgnlearn.model.structure import Family, Structure
from cgnlearn.model.table import Encoder, Table
from cgnlearn.ordered.lattice import EveryOrder, Lattice


@dataclass(frozen=True, eq=False)
class EveryK:
    """Log likelihoods of rows under k-BAND and k-BOX, k = 1, 2, …

    Parameters
    ----------
    log_likelihood : ndarray (families, k, rows, classes)
        ln p(x | class).
    exists : ndarray of bool (families, k)
        False where maximum likelihood does not exist; what stands there then means nothing.
    class_log_prior : ndarray (classes,)
    """

    log_likelihood: Floats
    exists: NDArray[np.bool_]
    class_log_prior: Floats

    @classmethod
    def of(
        cls,
        statistics: Statistics,
        table: Table,
        encoder: Encoder,
        classes: NDArray[np.generic],
        *,
        k_max: int,
        families: tuple[str, ...],
        parameters: Parameters,
        prior: Prior,
        sharing: float,
        class_prior: Floats | None = None,
    ) -> EveryK:
        """The rows of ``table``, after statistics on an `ordered_layout`."""
        others = replace(statistics, layout=replace(statistics.layout, partitions=()), moments=())
        network = Network.of(
            others, encoder, classes, parameters=parameters, prior=prior, sharing=sharing, class_prior=class_prior
        )
        alone = network.log_likelihood(table)
        total = np.broadcast_to(alone, (len(families), k_max, *alone.shape)).copy()
        exists = np.ones((len(families), k_max), bool)
        if statistics.moments:
            (partition,), (moments,) = statistics.layout.partitions, statistics.moments
            left_out = moments.constant() if parameters == "bayes" else np.zeros(partition.n_attributes, bool)
            if parameters == "ml" and not (moments.n > 0).all():
                return cls(total, np.zeros_like(exists), network.class_log_prior)
            posterior, units = posterior_of(partition, moments, encoder, parameters, prior, sharing)
            found = Lattice(partition, posterior, units, prior, left_out).every_order(table, families)
            if parameters == "bayes" and not found.exists.all():
                # Rounding has made a scale singular, which the factorising way mends.
                found = _one_by_one(statistics, table, encoder, classes, families, prior, sharing)
            # With as many attributes as k, or fewer, both families are complete.
            order = np.minimum(np.arange(k_max), found.exists.shape[1] - 1)
            total += found.log_likelihood[:, order]
            exists &= found.exists[:, order]
        return cls(total, exists, network.class_log_prior)


def ordered_layout(encoder: Encoder, n_classes: int, k_max: int) -> Layout:
    """What every k up to ``k_max`` needs counted: the continuous columns as a band, discrete ones by themselves."""
    layout = Layout.of((Family(column, ()) for column in encoder.discrete), encoder, n_classes)
    columns = np.array(encoder.continuous, np.intp)
    if not len(columns):
        return layout
    band = Partition.band(columns, np.arange(len(columns)), min(k_max, len(columns)))
    return replace(layout, partitions=(band,))


def ordered_structure(family: str, k: int, encoder: Encoder) -> Structure:
    """The k-BAND or k-BOX of the continuous columns in their order; discrete ones depend on the class alone."""
    chain = {"band": Structure.band, "box": Structure.box}[family](len(encoder.continuous), k)
    before = np.concatenate([np.zeros(len(encoder.discrete), np.intp), np.diff(chain.indptr)])
    return Structure.of_preceding((*encoder.discrete, *encoder.continuous), before)


def _one_by_one(
    statistics: Statistics,
    table: Table,
    encoder: Encoder,
    classes: NDArray[np.generic],
    families: tuple[str, ...],
    prior: Prior,
    sharing: float,
) -> EveryOrder:
    """The continuous columns' log likelihoods of each k by itself, from the same moments."""
    (band,), (moments,) = statistics.layout.partitions, statistics.moments
    assert band.bandwidth is not None
    ks = range(1, band.bandwidth + 2)
    found = np.empty((len(families), len(ks), table.n_rows, statistics.layout.n_classes))
    for i, family in enumerate(families):
        for k in ks:
            layout = Layout.of(ordered_structure(family, k, encoder), encoder, statistics.layout.n_classes)
            (partition,) = layout.partitions
            needed = band.banded_index(*partition.pairs.T)
            part = replace(moments, pairs=partition.pairs, scatter=moments.scatter[..., needed])
            alone = Statistics(replace(layout, discrete=()), statistics.classes, (), (part,))
            network = Network.of(alone, encoder, classes, prior=prior, sharing=sharing)
            found[i, k - 1] = network.log_likelihood(table)
    return EveryOrder(found, np.ones(found.shape[:2], bool))
