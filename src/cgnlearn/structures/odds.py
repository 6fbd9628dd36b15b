"""Out-of-fold log odds of groups of attributes: what a wrapper search adds up instead of refitting.

The log joint of a JAN is a sum over its groups, so a structure's cross-validated score is known as soon as the
out-of-fold log densities of its groups are. Only differences between classes matter: of each row and each other
class we keep ln p(group | other class) - ln p(group | the row's own class), its log odds against the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.blocks import factorised
from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Estimation, SampleNotAcceptable
from cgnlearn.model.families import Families
from cgnlearn.model.moments import CHUNK
from cgnlearn.model.network import Network
from cgnlearn.model.solver import SINGULAR, standard_values
from cgnlearn.model.statistics import Statistics, all_but_each, collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Table

Group = tuple[int, ...]  # columns of X

MOST_INFLATION = 1e4  # of a variance, by what the other members explain, for an inverse to be accurate
MOST_LOSS = 100.0  # how many times as great as its result the minuend of a difference of distances may be
MOST_BYTES = 4 << 30  # of the scales of all pairs of attributes outside all folds
MOST_NUMBERS = 1 << 20  # in the moments of one group with discrete attributes; a larger one is not acceptable


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of one fold, and the posterior of all continuous attributes that the other folds give.

    An absent attribute, one with a single value in the other folds, is as if it were independent of all others and
    always at its centre.

    Parameters
    ----------
    table : Table
        The fold's rows, in the order of their classes.
    starts : list of int
        Where each class's rows start, and where the last one's end.
    place : slice
        Where the fold's log odds stand among those of all folds.
    shape, least_leverage : ndarray (classes,)
        ρ' of an attribute without parents, and h of a row at the centre.
    scale : ndarray (classes, attributes, attributes)
        Ψ' in standard units.
    centre : ndarray (classes, attributes)
    values : ndarray (attributes, rows)
        The rows in the same units.
    present : ndarray of bool (attributes,)
    """

    table: Table
    starts: list[int]
    place: slice
    shape: Floats
    least_leverage: Floats
    scale: Floats
    centre: Floats
    values: Floats
    present: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table, outside: Statistics, how: Estimation, start: int) -> Fold:
        """The fold whose log odds begin at ``start``."""
        assert table.labels is not None
        n_classes = table.schema.n_classes
        starts = np.searchsorted(table.labels, np.arange(n_classes + 1)).tolist()
        place = slice(start, start + table.n_rows * (n_classes - 1))
        for partition, moments in zip(outside.layout.partitions, outside.moments, strict=True):
            posterior = how.posterior(moments, partition, table.schema)
            present = ~posterior.absent
            every = np.arange(partition.n_attributes)
            scale = posterior.scale[0][:, posterior.pairs.place(every[:, None], every)]
            scale = np.where(present[:, None] & present, scale, np.eye(len(every)))
            centre = np.where(present, posterior.centre[0], 0.0)
            values = standard_values(table, slice(0, table.n_rows), partition.values, posterior.units)
            values[posterior.absent] = 0.0
            return cls(
                table, starts, place, posterior.shape[0], posterior.least_leverage[0], scale, centre, values, present
            )
        none = np.zeros(0)
        return cls(table, starts, place, none, none, none, none, none, np.zeros(0, bool))

    def centred(self, members: NDArray[np.intp]) -> Floats:
        """Values of these attributes less their centre in each class: (classes, …, rows)."""
        centred: Floats = self.values[members] - self.centre[:, members, None]
        return centred

    def against_truth(self, log_densities: Floats, out: Floats) -> None:
        """Turn log densities (classes, groups, rows) into log odds (groups, (other classes × rows))."""
        n_classes = len(log_densities)
        odds = out[:, self.place].reshape(len(out), n_classes - 1, -1)
        for label in range(n_classes):
            rows = slice(self.starts[label], self.starts[label + 1])
            for other in range(n_classes):
                if other != label:
                    # The other classes stand in their order, the row's own left out.
                    np.subtract(
                        log_densities[other, :, rows],
                        log_densities[label, :, rows],
                        out=odds[:, other - (other > label), rows],
                    )


class Folds:
    """A labelled table cut into folds, with statistics of all that is outside each.

    Parameters
    ----------
    table : Table
    how : Estimation
    cuts : sequence of ndarray
        The rows of each fold.
    """

    def __init__(self, table: Table, how: Estimation, cuts: Sequence[NDArray[np.intp]]) -> None:
        assert table.labels is not None
        self.schema, self.how = table.schema, how
        self.n_rows, self.n_classes = table.n_rows, self.schema.n_classes
        self.n_odds = table.n_rows * (self.n_classes - 1)
        continuous = self.schema.continuous
        tables = [table.rows(cut[np.argsort(table.labels[cut], kind="stable")]) for cut in cuts]
        n_bytes = 8 * len(cuts) * self.n_classes * len(continuous) ** 2
        if n_bytes > MOST_BYTES:
            raise ValueError(
                f"a search over {len(continuous)} continuous columns needs {n_bytes / 2**30:.0f} GB for their "
                "covariances: select columns first, or use Band or Box"
            )
        # Every pair of continuous attributes, once and for all groups.
        together = Families.of((), continuous, max(1, len(continuous)))
        parts = [collect(part, together) for part in tables]
        self.absent = _absent_columns(table, sum(parts))  # type: ignore[arg-type]
        self.folds: list[Fold] = []
        self.class_odds = np.empty((1, self.n_odds))
        self.acceptable = True
        start = 0
        for part, outside in zip(tables, all_but_each(parts), strict=True):
            fold = Fold.of(part, outside, how, start)
            start = fold.place.stop
            self.folds.append(fold)
            self.acceptable &= how.averages or bool((outside.classes > 0).all())
            if self.acceptable:
                log_prior = how.class_log_prior(outside)
                of_rows = np.broadcast_to(log_prior[:, None, None], (self.n_classes, 1, part.n_rows))
                fold.against_truth(of_rows, self.class_odds)

    def is_batched(self, group: Group) -> bool:
        """Whether the group is one of continuous attributes whose order is of no account."""
        ordered = self.how.averages and self.how.prior.location == "paper"
        return not ordered and all(self.schema.levels[column] is None for column in group)

    def log_odds(self, groups: Sequence[Group]) -> Iterator[tuple[Group, Floats | None]]:
        """Each group with its log odds (other classes × rows), or None if its sample is not acceptable."""
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
            # Few enough at a time for one class of one fold to stay in cache.
            step = max(1, 4 * CHUNK // (size * self.n_classes * len(self.folds[0].table.codes)))
            for start in range(0, len(stacked), step):
                part = stacked[start : start + step]
                odds, acceptable = self._of_continuous_groups(part)
                for group, found, good in zip(part, odds, acceptable, strict=True):
                    yield group, found if good else None

    def _of_continuous_groups(self, groups: Sequence[Group]) -> tuple[Floats, NDArray[np.bool_]]:
        """Log odds of groups of one size, and which of them are acceptable."""
        members = np.array([self._positions(group) for group in groups])
        odds = np.empty((len(groups), self.n_odds))
        acceptable = np.ones(len(groups), bool)
        for fold in self.folds:
            scale = fold.scale[:, members[:, :, None], members[:, None, :]]  # (classes, groups, size, size)
            factor, good = self._factorised(scale)
            acceptable &= good
            if not acceptable.any():
                break
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            whitened = _whitening(factor) @ fold.centred(members)  # (classes, groups, size, rows)
            distance = np.square(whitened, out=whitened).sum(axis=2)
            n_present = fold.present[members].sum(axis=1)
            fold.against_truth(self._log_densities(fold, distance, log_det, n_present), odds)
        return odds, acceptable

    def near(self, group: Group, wanted: Sequence[Group]) -> Iterator[tuple[Group, Floats | None]]:
        """Log odds of groups that have one attribute more or less than this one, all from its one factorisation.

        Another attribute v adds its regression on the group. Member j's regression on all the others has the residual
        u_j / K_jj and the variance 1 / K_jj, with K the inverse of the scale and u = K (y - m'); without it the
        distance is less by u_j² / K_jj and ln|Ψ'| more by ln K_jj. Left out are groups for which this is inaccurate.
        """
        members = self._positions(group)
        grown = [other for other in wanted if len(other) > len(group)]
        shrunk = [other for other in wanted if len(other) < len(group)]
        more = self._positions(next(iter(set(other).difference(group))) for other in grown)
        less = np.array([group.index(*set(group).difference(other)) for other in shrunk], np.intp)
        odds = np.empty((len(wanted), self.n_odds))
        accurate = np.ones(len(wanted), bool)
        acceptable = np.ones(len(grown), bool)
        for fold in self.folds:
            scale = fold.scale[:, members[:, None], members]  # (classes, size, size)
            factor, good = self._factorised(scale[:, None])
            if not good:
                return
            whitening = _whitening(factor[:, 0])
            whitened = whitening @ fold.centred(members)  # (classes, size, rows)
            whole = np.square(whitened).sum(axis=1)[:, None]
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)

            slopes = whitening @ fold.scale[:, members[:, None], more]  # (classes, size, grown)
            own = fold.scale[:, more, more]
            left = own - np.square(slopes).sum(axis=1)
            regular = left > SINGULAR * (len(group) + 1) * own
            acceptable &= regular.all(axis=0)
            left = np.where(regular, left, 1.0)
            residual = fold.centred(more) - slopes.transpose(0, 2, 1) @ whitened
            after_more = whole + np.square(residual, out=residual) / left[..., None]

            precision = np.square(whitening).sum(axis=1)[:, less]  # K_jj: (classes, shrunk)
            inflation = precision * np.diagonal(scale, axis1=1, axis2=2)[:, less]
            residual = whitening[:, :, less].transpose(0, 2, 1) @ whitened
            after_less = whole - np.square(residual, out=residual) / precision[..., None]
            accurate[len(grown) :] &= (inflation < MOST_INFLATION).all(axis=0)
            accurate[len(grown) :] &= (whole <= MOST_LOSS * np.maximum(after_less, 1.0)).all(axis=(0, 2))

            found = self._log_densities(
                fold,
                np.concatenate([after_more, np.maximum(after_less, 0.0)], axis=1),
                log_det + np.concatenate([np.log(left), np.log(precision)], axis=1),
                fold.present[members].sum() + np.concatenate([fold.present[more], -1 * fold.present[members[less]]]),
            )
            fold.against_truth(found, odds)
        if self.how.averages:  # what is singular by rounding alone is made regular elsewhere
            accurate[: len(grown)] &= acceptable
        acceptable = np.concatenate([acceptable, np.ones(len(shrunk), bool)])
        for other, found, good, exact in zip([*grown, *shrunk], odds, acceptable, accurate, strict=True):
            if exact:
                yield other, found if good else None

    def _positions(self, columns: Iterable[int]) -> NDArray[np.intp]:
        """Columns of X as positions among the continuous ones."""
        return np.array([self.schema.position[column] for column in columns], np.intp)

    def _factorised(self, scale: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Factors of (classes, groups, size, size), and of which groups they exist; the others have 1."""
        factor = factorised(scale, always=self.how.averages)
        if self.how.averages:
            return factor, np.ones(scale.shape[1], bool)
        size = scale.shape[-1]
        least = SINGULAR * size * np.diagonal(scale, axis1=-2, axis2=-1)
        good = (np.diagonal(factor, axis1=-2, axis2=-1) ** 2 > least).all(axis=(0, 2))
        return (factor if good.all() else np.where(good[:, None, None], factor, np.eye(size))), good

    def _log_densities(self, fold: Fold, distance: Floats, log_det: Floats, n_present: NDArray[np.intp]) -> Floats:
        """Of (classes, groups, rows), given ln|Ψ'| (classes, groups) and the groups' sizes."""
        log_det, size = log_det[..., None], n_present[:, None]
        before, shape = (part[:, None, None] for part in (fold.least_leverage, fold.shape))
        after = before + distance
        if self.how.averages:
            before, after = np.log(before), np.log(after, out=after)
        return self.how.log_density_of_blocks(before, after, log_det, size, shape)

    def _of_any_group(self, group: Group) -> Floats | None:
        """Log odds of a group that has discrete attributes or whose order matters."""
        schema = self.schema
        cells = prod(len(schema.levels[c] or "1") for c in group) * self.n_classes
        if not self.how.averages and cells > self.n_rows:
            return None  # some cell must be empty
        n_continuous = sum(schema.levels[column] is None for column in group)
        if cells * max(1, n_continuous**2) > MOST_NUMBERS:
            return None
        structure = Structure.jan([schema.discrete_first(list(group))])
        families = structure.as_families(schema)
        parts = [collect(fold.table, families) for fold in self.folds]
        odds = np.empty((1, self.n_odds))
        for fold, outside in zip(self.folds, all_but_each(parts), strict=True):
            try:
                network = Network.of(structure, outside, self.how)
            except SampleNotAcceptable:
                return None
            fold.against_truth(network.log_likelihood(fold.table).T[:, None], odds)
        return odds[0]


def _absent_columns(table: Table, total: Statistics) -> list[int]:
    """Columns that say nothing, as they have one value only."""
    discrete = table.schema.discrete
    absent = [c for i, c in enumerate(discrete) if (table.codes[:, i] == table.codes[0, i]).all()]
    for partition, moments in zip(total.layout.partitions, total.moments, strict=True):
        absent += partition.columns[moments.constant()].tolist()
    return absent


def _whitening(factor: Floats) -> Floats:
    """Inverses of stacked lower triangular matrices, row by row through forward substitution."""
    whitening = np.zeros_like(factor)
    for j in range(factor.shape[-1]):
        pivot = factor[..., j, j, None]
        whitening[..., j, j] = 1 / pivot[..., 0]
        if j:
            before = factor[..., j : j + 1, :j] @ whitening[..., :j, :j]
            whitening[..., j, :j] = -before[..., 0, :] / pivot
    return whitening
