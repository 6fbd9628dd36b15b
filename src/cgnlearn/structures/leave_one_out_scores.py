"""Log odds of groups of features by exact leave-one-out.

Removing a sample from a posterior is a change of rank one (`cgnlearn.networks.leave_one_out`), so one factorisation of
a group serves all samples. Searches share nothing between classes: a held-out sample changes the log density under its
own class only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels import downdate
from cgnlearn.kernels.limits import LEAST_LEFT, SINGULAR
from cgnlearn.networks.estimation import Estimation, Posterior
from cgnlearn.networks.leave_one_out import Removal
from cgnlearn.networks.model import NotExactError
from cgnlearn.networks.network import Network
from cgnlearn.networks.statistics import Statistics
from cgnlearn.networks.structure import Structure
from cgnlearn.structures.fold_scores import Folds

LEAST_ACCURATE = 1e-4  # share of |Ψ'| left without a sample for which a difference of distances is accurate


class LeaveOneOutFolds(Folds):
    """One fold of all samples, with the posterior of all continuous features and its downdate by each sample.

    The estimation has no sharing. By maximum likelihood a sample without which a class has no covariance is impossible:
    its log odds are infinite.
    """

    def __init__(self, table: Table, estimation: Estimation) -> None:
        is_paper = estimation.averages and estimation.prior.location == "paper"
        if is_paper or table.incomplete:
            reason = 'with the prior location "paper"' if is_paper else "with missing values"
            raise NotExactError(f'GreedyJan(cv="loo") has no closed form {reason}: use folds, such as cv=10')
        self._has_equal_weights = table.weights is None
        super().__init__(table, estimation, [np.arange(table.n_samples)])

    def _training(self, parts: Sequence[Statistics]) -> Iterator[Statistics]:
        return iter(parts)

    def _class_log_prior(self, i: int, training: Statistics) -> Floats:
        return Network.of(Structure.jan([]), training, self.estimation).leave_one_out(self._tables[i]).class_log_prior

    def _log_likelihood(self, i: int, network: Network) -> Floats:
        return network.leave_one_out(self._tables[i]).log_likelihood

    def _set_posterior(self, i: int, posterior: Posterior, places: NDArray[np.intp]) -> None:
        super()._set_posterior(i, posterior, places)
        table = self._tables[i]
        self._removal = Removal.of(table, np.arange(table.n_samples), 0, posterior, self.estimation)
        self._n = posterior.n[0]
        self._overall = np.where(self._present[i], posterior.overall, 0.0)

    def _centred(self, folds: slice, members: NDArray[np.intp]) -> Floats:
        centred = super()._centred(folds, members)
        for slot in np.flatnonzero(self._removal.alone):
            # A class without its only sample has the overall mean as its centre.
            centred[:, self.labels[slot], ..., slot] = self._values[folds, members, slot] - self._overall[members]
        return centred

    def _are_accurate(self, distance: Floats) -> NDArray[np.bool_]:
        accurate = super()._are_accurate(distance)
        for label, slots in self._slots_by_class():
            left = 1 - self._removal.down[label, slots] * distance[:, label, :, slots]
            accurate &= (left > LEAST_ACCURATE).all(axis=(0, 2))
        return accurate

    def _log_densities(self, folds: slice, distance: Floats, log_det: Floats, n_present: NDArray[np.intp]) -> Floats:
        found = super()._log_densities(folds, distance, log_det, n_present)
        size = n_present[:, :, None]
        for label, slots in self._slots_by_class():
            # Samples of equal weight differ in their distance only: one number serves all.
            rows = slice(slots.start, slots.start + 1) if self._has_equal_weights else slots
            before, down = self._removal.before[label, rows], self._removal.down[label, rows]
            growth, lighter = self._removal.growth[rows], self._removal.lighter[label, rows]
            whole = distance[:, label, :, slots]  # (folds, groups, slots)
            left = downdate.left_of_determinant(down, whole)
            singular = left <= SINGULAR * size
            whole = downdate.own_leverage(before if self.estimation.averages else 0.0, growth, whole, left) / left
            lost = log_det[:, label, :, None] + np.log(left)
            if self.estimation.averages:
                given, whole = np.log(before), np.log(whole)
            else:
                # The scale is a variance, divided by the number of samples without this one.
                kept = np.maximum(1 - lighter / self._n[label], LEAST_LEFT)
                given, whole, lost = np.zeros(1), whole * kept, lost - size * np.log(kept)
            shape = self._shape[folds, label, None, None] - lighter / 2
            own = self.estimation.log_density_of_blocks(given, whole, lost, size, shape)
            found[:, label, :, slots] = own if self.estimation.averages else np.where(singular, -np.inf, own)
        return found
