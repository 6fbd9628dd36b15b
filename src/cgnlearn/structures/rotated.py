"""Complete structures over more continuous columns than there are samples."""

from __future__ import annotations

import numpy as np

from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.estimation import Bayes, Estimation, SampleNotAcceptableError, no_variance
from cgnlearn.networks.families import Families
from cgnlearn.networks.network import Network
from cgnlearn.networks.rotation import RotatedBlock, RotatedNetwork, Rotation
from cgnlearn.networks.statistics import Statistics, collect
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.learner import Learner


class RotatedComplete(Learner):
    """`Complete`, resolved to the space that some training samples span: its model is of these samples and no others.

    Parameters
    ----------
    rotation : Rotation
    rotated : Statistics
        Of the same samples, rotated.
    """

    accepts_missing = is_sum = False

    def __init__(self, rotation: Rotation, rotated: Statistics) -> None:
        self.rotation = rotation
        self.rotated = rotated

    @classmethod
    def of(cls, table: Table, estimation: Estimation) -> RotatedComplete:
        """From the training samples."""
        if estimation.prior.location == "paper":
            raise ValueError(
                f"a complete structure over {len(table.schema.continuous)} columns and {table.n_samples} samples is "
                "fitted "
                'by rotation, which cannot have the prior location "paper": take "pooled" or "cell"'
            )
        rotation = Rotation.of(table, estimation.prior)
        return cls(rotation, rotation.statistics(table))

    @property
    def is_additive(self) -> bool:
        """No: other samples lie outside of the space."""
        return False

    def families(self, schema: Schema) -> Families:
        """What is counted besides: the discrete columns, and each continuous one by itself."""
        return Families.of(_of_discrete(schema).families, schema.continuous)

    def model(self, statistics: Statistics, estimation: Estimation) -> RotatedNetwork:
        """The model, from what is held here and the statistics of the discrete columns."""
        assert isinstance(estimation, Bayes)
        pairs = zip(self.rotated.layout.partitions, self.rotated.moments, strict=True)
        return RotatedNetwork(
            Network.of(_of_discrete(statistics.schema), statistics, estimation),
            tuple(RotatedBlock.of(self.rotation, partition, moments, estimation) for partition, moments in pairs),
        )


def _of_discrete(schema: Schema) -> Structure:
    return Structure.jan([schema.discrete] if schema.discrete else [])


def without_likelihood(table: Table, estimation: Estimation) -> SampleNotAcceptableError:
    """Why more continuous columns than samples have no maximum likelihood, told without counting their pairs."""
    schema = table.schema
    assert table.labels is not None
    statistics = collect(table, Structure.jan([[*schema.discrete, schema.continuous[0]]]).as_families(schema))
    estimation.check(statistics)  # an empty cell has words of its own
    (partition,) = statistics.layout.partitions
    inside = (partition.cells.index(table) == 0) & ((table.labels == 0) | (estimation.sharing > 0))
    n_parents = int(inside.sum()) - len(np.unique(table.labels[inside]))  # after each class's mean nothing is left
    return no_variance(schema, schema.continuous[n_parents], partition.cells, (0, 0), inside.sum(), n_parents)
