"""The network of a complete structure with more continuous columns than training samples."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.networks.model import LeaveOneOut, require_complete
from cgnlearn.networks.network import Network
from cgnlearn.networks.rotation import RotatedBlock
from cgnlearn.networks.structure import Structure


@dataclass(frozen=True, eq=False)
class RotatedNetwork:
    """Discrete features as in any network, and all continuous ones in a block that is rotated.

    Parameters
    ----------
    discrete : Network
    blocks : tuple of RotatedBlock
        One, or none if all continuous features are constant.
    """

    discrete: Network
    blocks: tuple[RotatedBlock, ...]

    @property
    def structure(self) -> Structure:
        """Over columns of X. Of thousands it takes gigabytes, which nothing else here does."""
        schema = self.discrete.statistics.schema
        return Structure.jan([[*schema.discrete, *schema.continuous]])

    @property
    def n_parameters(self) -> int:
        """Free parameters, the class's own included."""
        schema = self.discrete.statistics.schema
        m, n_cells = len(schema.continuous), prod(len(schema.levels_of(column)) for column in schema.discrete)
        regressions = schema.n_classes if self.discrete.estimation.sharing < 1 else 1
        return self.discrete.n_parameters + n_cells * (m * schema.n_classes + regressions * m * (m + 1) // 2)

    @property
    def class_log_prior(self) -> Floats:
        """Log probabilities of the classes before anything is seen of a sample."""
        return self.discrete.class_log_prior

    @property
    def log_evidence(self) -> float:
        """ln p(training data), the classes included."""
        return self.discrete.log_evidence + sum(block.log_evidence for block in self.blocks)

    def log_likelihood(self, table: Table) -> Floats:
        """ln p(x | class) of every sample and class."""
        require_complete(
            table.incomplete, table.schema, "a model of more columns than training samples takes whole samples"
        )
        total = self.discrete.log_likelihood(table)
        for block in self.blocks:
            total += block.log_likelihood(table)
        return total

    def leave_one_out(self, table: Table) -> LeaveOneOut:
        """The training samples again, each seen by the network without it; its prior is held."""
        require_complete(
            table.incomplete, table.schema, "a model of more columns than training samples takes whole samples"
        )
        found = self.discrete.leave_one_out(table)
        total = found.log_likelihood
        for block in self.blocks:
            total = total + block.leave_one_out(table)
        return LeaveOneOut(total, found.class_log_prior)

    def contributions(self, table: Table) -> Floats:
        """Not to be had: the rotation mixes the features."""
        raise ValueError(
            "a complete structure over more columns than training samples is fitted by rotation, which keeps no "
            "contributions by feature: take another structure, such as Band(10), or fewer columns"
        )
