"""Out-of-fold log odds of groups of features, from which a wrapper search scores structures without refits.

The log joint of a JAN is a sum over its groups, so the out-of-fold log densities of its groups give its cross-validated
score. Only differences between classes matter: of each sample and each other class we keep
ln p(group | other class) - ln p(group | true class), the log odds against the true class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table
from cgnlearn.kernels.limits import SINGULAR
from cgnlearn.networks.estimation import Estimation, Posterior, SampleNotAcceptableError
from cgnlearn.networks.factors import factorised
from cgnlearn.networks.families import Families, Family
from cgnlearn.networks.moments import CHUNK
from cgnlearn.networks.network import Network
from cgnlearn.networks.solver import standard_values
from cgnlearn.networks.statistics import Statistics, all_but_each, collect
from cgnlearn.networks.structure import Structure

Group = tuple[int, ...]  # columns of X

AT_ONCE = 4 * CHUNK  # numbers computed at a time: few enough to stay in cache
MOST_INFLATION = 1e4  # variance inflation factor for which an inverse is accurate
MOST_LOSS = 100.0  # ratio of the minuend to the result for which a difference of distances is accurate
MOST_BYTES = 4 << 30  # of the scales of all pairs of features in all folds
MOST_NUMBERS = 1 << 20  # in the moments of one group with discrete features; a larger one is not acceptable


class Folds:
    """A labelled table split into folds, each with the posterior of all continuous features from the other folds.

    All folds have the same slots, in the order of the classes: of each class as many as the fold with most of its
    samples needs, so that many folds are computed at once. A slot without a sample has weight 0. A feature that is
    constant in the other folds counts as independent of all others and always at its centre.
    """

    def __init__(self, table: Table, estimation: Estimation, folds: Sequence[NDArray[np.intp]]) -> None:
        assert table.labels is not None
        self.schema, self.estimation = table.schema, estimation
        self.n_samples, self.n_classes = table.n_samples, self.schema.n_classes
        continuous = self.schema.continuous
        n_bytes = 8 * len(folds) * self.n_classes * len(continuous) ** 2
        if n_bytes > MOST_BYTES:
            raise ValueError(
                f"a search over {len(continuous)} continuous columns needs {n_bytes / 2**30:.0f} GB for their "
                "covariances: select columns first, or use Band or Box"
            )
        # Every pair of continuous features, once and for all groups.
        self._table = table
        complete = [column for column in continuous if column not in table.incomplete]
        incomplete = [Family(column, ()) for column in continuous if column in table.incomplete]
        together = Families.of(incomplete, complete, max(1, len(complete)))
        self._tables = [table.rows(fold[np.argsort(table.labels[fold], kind="stable")]) for fold in folds]
        parts = [collect(part, together, table.incomplete) for part in self._tables]
        self.constant = _constant_columns(table, sum(parts))  # type: ignore[arg-type]

        counts = np.array([np.bincount(table.labels[fold], minlength=self.n_classes) for fold in folds])
        self._ends = np.cumsum(counts.max(axis=0))  # where each class's slots end
        self.labels = np.repeat(np.arange(self.n_classes), counts.max(axis=0))  # of each slot, the same in all folds
        self.weights = np.zeros((len(folds), len(self.labels)))  # in the mean over folds of the means inside each
        self.class_odds = np.empty((self.n_classes - 1, *self.weights.shape))  # log odds of the class alone
        self.acceptable = True  # whether there are parameters of the class alone
        self._slots = [  # of each fold's samples
            np.concatenate([np.arange(end - n, end) for end, n in zip(self._ends, of_fold, strict=True)])
            for of_fold in counts
        ]
        self._shape, self._least_leverage = np.ones((2, *counts.shape))
        self._scale = np.empty((*counts.shape, len(continuous), len(continuous)))  # in standard units, as all below
        self._centre = np.empty((*counts.shape, len(continuous)))
        self._values = np.zeros((len(folds), len(continuous), len(self.labels)))
        self._present = np.empty((len(folds), len(continuous)), bool)
        for i, training in enumerate(self._training(parts)):
            self._fill_slots(i, training)

    # ---- training and test samples of a fold

    def _training(self, parts: Sequence[Statistics]) -> Iterator[Statistics]:
        """Statistics of the training samples of each fold, from the statistics of all folds."""
        return all_but_each(parts)

    def _class_log_prior(self, i: int, training: Statistics) -> Floats:
        """Log prior in a fold: (samples or 1, classes)."""
        return self.estimation.class_log_prior(training)[None]

    def _log_likelihood(self, i: int, network: Network) -> Floats:
        """Log likelihood of a fold's samples: (samples, classes)."""
        return network.log_likelihood(self._tables[i])

    def _fill_slots(self, i: int, training: Statistics) -> None:
        """Set the values of a fold's samples and the posterior from its training samples."""
        part, slots = self._tables[i], self._slots[i]
        weights = np.ones(part.n_samples) if part.weights is None else part.weights
        self.weights[i, slots] = weights / (weights.sum() * len(self._tables))
        self.acceptable &= self.estimation.averages or bool((training.classes > 0).all())
        if self.acceptable:
            log_prior = np.zeros((self.n_classes, len(self.labels)))
            log_prior[:, slots] = self._class_log_prior(i, training).T
            self._against_truth(log_prior[None, :, None], self.class_odds[None, :, i : i + 1])
        for partition, moments in zip(training.layout.partitions, training.moments, strict=True):
            if partition.separate:
                continue  # columns with missing values, whose groups are counted separately
            posterior = self.estimation.posterior(moments, partition, self.schema)
            self._set_posterior(i, posterior, partition.values)
            values = standard_values(part, slice(0, part.n_samples), partition.values, posterior.units)
            self._values[i][partition.values[:, None], slots] = np.where(posterior.absent[:, None], 0.0, values)

    def _set_posterior(self, i: int, posterior: Posterior, places: NDArray[np.intp]) -> None:
        """Set the posterior of all pairs of the features at these places."""
        present = self._present[i, places] = ~posterior.absent
        every = np.arange(len(present))
        scale = posterior.scale[0][:, posterior.pairs.place(every[:, None], every)]
        self._scale[i][:, places[:, None], places] = np.where(present[:, None] & present, scale, np.eye(len(every)))
        self._centre[i][:, places] = np.where(present, posterior.centre[0], 0.0)
        self._shape[i], self._least_leverage[i] = posterior.shape[0], posterior.least_leverage[0]

    # ---- log odds of groups

    def is_batched(self, group: Group) -> bool:
        """Whether the group has complete continuous features only and their order does not matter."""
        ordered = self.estimation.averages and self.estimation.prior.location == "paper"
        has_missing = not set(self._table.incomplete).isdisjoint(group)
        return not ordered and not has_missing and all(self.schema.levels[column] is None for column in group)

    def log_odds(self, groups: Sequence[Group]) -> Iterator[tuple[Group, Floats | None]]:
        """Each group with its log odds, or None if the sample is not acceptable for it."""
        if not self.acceptable:
            yield from ((group, None) for group in groups)
            return
        by_size: dict[int, list[Group]] = {}
        for group in groups:
            if self.is_batched(group):
                by_size.setdefault(len(group), []).append(group)
            else:
                yield group, self._of_any_group(group)
        for size, stacked in by_size.items():
            step = max(1, AT_ONCE // (size * self.n_classes * len(self.labels)))
            for start in range(0, len(stacked), step):
                part = stacked[start : start + step]
                odds, acceptable = self._of_continuous_groups(part)
                for group, found, good in zip(part, odds, acceptable, strict=True):
                    yield group, found if good else None

    def _of_continuous_groups(self, groups: Sequence[Group]) -> tuple[Floats, NDArray[np.bool_]]:
        """Log odds of groups of one size, and which of them are acceptable."""
        members = np.array([self._positions(group) for group in groups])
        odds = np.empty((len(groups), *self.class_odds.shape))
        acceptable = np.ones(len(groups), bool)
        for folds in self._some_folds(members.size):
            scale = self._scale[folds, :, members[:, :, None], members[:, None, :]]
            factor, good = self._factorised(scale)  # (folds, classes, groups, size, size)
            acceptable &= good
            if not acceptable.any():
                break
            whitened = _whitening(factor) @ self._centred(folds, members)  # (folds, classes, groups, size, slots)
            distance = np.square(whitened, out=whitened).sum(axis=-2)
            n_present = self._present[folds, members].sum(axis=-1)
            found = self._log_densities(folds, distance, _log_det(factor), n_present)
            self._against_truth(found, odds[:, :, folds])
        return odds, acceptable

    def near(self, group: Group, wanted: Sequence[Group]) -> Iterator[tuple[Group, Floats | None]]:
        """Log odds of groups with one feature more or less than this one, all from its factorisation.

        Another feature v adds its regression on the group. Member j's regression on all the others has the residual
        u_j / K_jj and the variance 1 / K_jj, with K the inverse of the scale and u = K (y - m'); without it the
        distance is less by u_j² / K_jj and ln|Ψ'| more by ln K_jj. Groups for which this is inaccurate are skipped.
        """
        members = self._positions(group)
        grown = [other for other in wanted if len(other) > len(group)]
        shrunk = [other for other in wanted if len(other) < len(group)]
        more = self._positions(next(iter(set(other).difference(group))) for other in grown)
        less = np.array([group.index(*set(group).difference(other)) for other in shrunk], np.intp)
        odds = np.empty((len(wanted), *self.class_odds.shape))
        accurate = np.ones(len(wanted), bool)
        acceptable = np.ones(len(wanted), bool)
        after_more, after_less = slice(0, len(grown)), slice(len(grown), len(wanted))
        for folds in self._some_folds(len(members) + len(wanted)):
            scale = self._scale[folds, :, members[:, None], members]  # (folds, classes, size, size)
            factor, good = self._factorised(scale[:, :, None])
            if not good:
                return
            whitening = _whitening(factor[:, :, 0])
            whitened = whitening @ self._centred(folds, members)  # (folds, classes, size, slots)
            whole = np.square(whitened).sum(axis=2)[:, :, None]

            slopes = whitening @ self._scale[folds, :, members[:, None], more]  # (folds, classes, size, grown)
            own = self._scale[folds, :, more, more]
            left = own - np.square(slopes).sum(axis=2)
            regular = left > SINGULAR * (len(group) + 1) * own
            acceptable[after_more] &= regular.all(axis=(0, 1))
            left = np.where(regular, left, 1.0)
            precision = np.square(whitening).sum(axis=2)[..., less]  # K_jj: (folds, classes, shrunk)
            inflation = precision * np.diagonal(scale, axis1=2, axis2=3)[..., less]

            distance = np.empty((*left.shape[:2], len(wanted), len(self.labels)))
            np.matmul(slopes.swapaxes(2, 3), whitened, out=distance[:, :, after_more])
            distance[:, :, after_more] -= self._centred(folds, more)
            np.matmul(whitening[..., less].swapaxes(2, 3), whitened, out=distance[:, :, after_less])
            np.square(distance, out=distance)
            distance *= np.concatenate([1 / left, -1 / precision], axis=2)[..., None]
            distance += whole
            remains = distance[:, :, after_less]
            accurate[after_less] &= (inflation < MOST_INFLATION).all(axis=(0, 1))
            accurate[after_less] &= (whole <= MOST_LOSS * np.maximum(remains, 1.0)).all(axis=(0, 1, 3))
            np.maximum(remains, 0.0, out=remains)
            accurate &= self._are_accurate(distance)

            log_det = _log_det(factor) + np.log(np.concatenate([left, precision], axis=2))
            present = self._present[folds]
            n_present = present[:, members].sum(axis=1, keepdims=True) + np.concatenate(
                [present[:, more], -1 * present[:, members[less]]], axis=1
            )
            self._against_truth(self._log_densities(folds, distance, log_det, n_present), odds[:, :, folds])
        if self.estimation.averages:  # singular by rounding only: `log_odds` regularises it
            accurate &= acceptable
        for other, found, good, exact in zip([*grown, *shrunk], odds, acceptable, accurate, strict=True):
            if exact:
                yield other, found if good else None

    def _some_folds(self, n_of_each: int) -> Iterator[slice]:
        """Batches of folds that stay in cache, given the number of values of each class and slot."""
        step = max(1, AT_ONCE // (n_of_each * self.n_classes * len(self.labels)))
        for start in range(0, len(self.weights), step):
            yield slice(start, start + step)

    def _centred(self, folds: slice, members: NDArray[np.intp]) -> Floats:
        """Values of these features minus their centre in each class: (folds, classes, …, slots)."""
        centred: Floats = self._values[folds, None, members] - self._centre[folds, :, members, None]
        return centred

    def _are_accurate(self, distance: Floats) -> NDArray[np.bool_]:
        """Groups whose log densities are as accurate as their distances (folds, classes, groups, slots)."""
        return np.ones(distance.shape[2], bool)

    def _slots_by_class(self) -> Iterator[tuple[int, slice]]:
        """Each class with its slots."""
        for label, (start, end) in enumerate(pairwise([0, *self._ends])):
            yield label, slice(start, end)

    def _against_truth(self, log_densities: Floats, out: Floats) -> None:
        """Turn log densities (folds, classes, groups, slots) into log odds (groups, other classes, folds, slots)."""
        for label, slots in self._slots_by_class():
            for other in range(self.n_classes):
                if other != label:
                    # The other classes in their order, without the true one.
                    np.subtract(
                        log_densities[:, other, :, slots],
                        log_densities[:, label, :, slots],
                        out=out[:, other - (other > label), :, slots].swapaxes(0, 1),
                    )

    def _positions(self, columns: Iterable[int]) -> NDArray[np.intp]:
        """Columns of X as positions among the continuous ones."""
        return np.array([self.schema.position[column] for column in columns], np.intp)

    def _factorised(self, scale: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Factors (folds, classes, groups, size, size), and which groups have one; the others get the identity."""
        factor = factorised(scale, always=self.estimation.averages)
        if self.estimation.averages:
            return factor, np.ones(scale.shape[2], bool)
        size = scale.shape[-1]
        least = SINGULAR * size * np.diagonal(scale, axis1=-2, axis2=-1)
        good = (np.diagonal(factor, axis1=-2, axis2=-1) ** 2 > least).all(axis=(0, 1, 3))
        return (factor if good.all() else np.where(good[:, None, None], factor, np.eye(size))), good

    def _log_densities(self, folds: slice, distance: Floats, log_det: Floats, n_present: NDArray[np.intp]) -> Floats:
        """Log densities (folds, classes, groups, slots), given ln|Ψ'| (folds, classes, groups) and sizes."""
        before, after = 0.0, distance
        if self.estimation.averages:
            leverage = self._least_leverage[folds, :, None, None]
            before, after = np.log(leverage), np.log(leverage + distance)
        shape, size = self._shape[folds, :, None, None], n_present[:, None, :, None]
        return self.estimation.log_density_of_blocks(before, after, log_det[..., None], size, shape)

    def _of_any_group(self, group: Group) -> Floats | None:
        """Log odds of a group with discrete features or missing values, or whose order matters."""
        schema = self.schema
        cells = prod(len(schema.levels[c] or "1") for c in group) * self.n_classes
        if not self.estimation.averages and cells > self.n_samples:
            return None  # some cell must be empty
        n_continuous = sum(schema.levels[column] is None for column in group)
        if cells * max(1, n_continuous**2) > MOST_NUMBERS:
            return None
        structure = Structure.jan([self._table.most_complete_first(list(group))])
        families = structure.as_families(schema)
        parts = [collect(part, families, self._table.incomplete) for part in self._tables]
        found = np.zeros((len(parts), self.n_classes, 1, len(self.labels)))
        for i, training in enumerate(self._training(parts)):
            try:
                network = Network.of(structure, training, self.estimation)
            except SampleNotAcceptableError:
                return None
            found[i, :, 0, self._slots[i]] = self._log_likelihood(i, network)
        odds = np.empty((1, *self.class_odds.shape))
        self._against_truth(found, odds)
        return odds[0]


def _constant_columns(table: Table, total: Statistics) -> list[int]:
    discrete = table.schema.discrete
    constant = [c for i, c in enumerate(discrete) if len(np.unique(table.codes[table.codes[:, i] >= 0, i])) < 2]
    for partition, moments in zip(total.layout.partitions, total.moments, strict=True):
        constant += partition.columns[moments.constant()].tolist()
    return constant


def _log_det(factor: Floats) -> Floats:
    """ln of the determinants of matrices with these Cholesky factors."""
    log_det: Floats = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
    return log_det


def _whitening(factor: Floats) -> Floats:
    """Inverses of stacked lower triangular matrices, by forward substitution."""
    whitening = np.zeros_like(factor)
    for j in range(factor.shape[-1]):
        pivot = factor[..., j, j, None]
        whitening[..., j, j] = 1 / pivot[..., 0]
        if j:
            before = factor[..., j : j + 1, :j] @ whitening[..., :j, :j]
            whitening[..., j, :j] = -before[..., 0, :] / pivot
    return whitening
