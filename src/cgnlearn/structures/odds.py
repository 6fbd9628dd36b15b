"""Out-of-fold log odds of groups of attributes: what a wrapper search adds up instead of refitting.

The log joint of a JAN is a sum over its groups, so a structure's cross-validated score is known as soon as the
out-of-fold log densities of its groups are. Only differences between classes matter: of each row and each other
class we keep ln p(group | other class) - ln p(group | the row's own class), its log odds against the truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model import densities
from cgnlearn.model.blocks import FARTHEST, SINGULAR, factorised
from cgnlearn.model.layout import Layout
from cgnlearn.model.network import Network, Parameters, SampleNotAcceptable, standard_units
from cgnlearn.model.prior import Posterior, Prior, maximum_likelihood
from cgnlearn.model.statistics import CHUNK, Floats, Statistics, collect
from cgnlearn.model.structure import Structure
from cgnlearn.model.table import Encoder, Table
from cgnlearn.structures.learner import discrete_first

Group = tuple[int, ...]  # columns of X

MOST_INFLATION = 1e4  # of a variance, by what the other members explain, for an inverse to be accurate
MOST_LOSS = 100.0  # how many times as great as its result the minuend of a difference of distances may be
MOST_MOMENTS = 1 << 31  # bytes of the moments of all pairs of attributes outside all folds
MOST_NUMBERS = 1 << 20  # in the moments of one group with discrete attributes; a larger one is not acceptable


@dataclass(frozen=True, eq=False)
class Fold:
    """The rows of one fold, and the posterior of all continuous attributes that the other folds give.

    Parameters
    ----------
    table : Table
        The fold's rows, in the order of their classes.
    starts : list of int
        Where each class's rows start, and where the last one's end.
    place : slice
        Where the fold's log odds stand among those of all folds.
    posterior : Posterior
        In standard units, on all pairs of attributes.
    values : ndarray (attributes, rows)
        The rows in the same units.
    constant : ndarray of bool (attributes,)
        Attributes that are left out, as they have one value only in the other folds.
    """

    table: Table
    starts: list[int]
    place: slice
    posterior: Posterior
    values: Floats
    constant: NDArray[np.bool_]

    def scale(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> Floats:
        """Entries of the posterior's scale, between attributes in any shape: (classes, …)."""
        n = len(self.constant)
        i, j = np.minimum(first, second), np.maximum(first, second)
        # The pairs are the diagonal, then the rest row by row.
        place = np.where(i == j, i, n + i * (2 * n - i - 1) // 2 + j - i - 1)
        return self.posterior.scale[0][:, place]

    def centred(self, members: NDArray[np.intp]) -> Floats:
        """Values of these attributes less their centre in each class: (classes, …, rows)."""
        centred: Floats = self.values[members] - self.posterior.centre[0][:, members, None]
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
    encoder : Encoder
    n_classes : int
    prior : Prior
    parameters : {"ml", "bayes"}
    cuts : sequence of ndarray
        The rows of each fold.
    """

    def __init__(
        self,
        table: Table,
        encoder: Encoder,
        n_classes: int,
        prior: Prior,
        parameters: Parameters,
        cuts: Sequence[NDArray[np.intp]],
    ) -> None:
        assert table.labels is not None
        self.encoder, self.n_classes, self.prior, self.parameters = encoder, n_classes, prior, parameters
        self.n_rows = table.n_rows
        self.n_odds = table.n_rows * (n_classes - 1)
        self._position = {column: i for i, column in enumerate(encoder.continuous)}
        tables = [table.rows(cut[np.argsort(table.labels[cut], kind="stable")]) for cut in cuts]
        # All continuous attributes in one block: every pair's moments, once and for all groups.
        n_bytes = 8 * len(cuts) * n_classes * len(encoder.continuous) ** 2 // 2
        if n_bytes > MOST_MOMENTS:
            raise ValueError(
                f"a search over {len(encoder.continuous)} continuous columns needs {n_bytes / 2**30:.0f} GB for their "
                "covariances: select columns first, or use Band or Box"
            )
        together = Structure.jan([encoder.continuous] if encoder.continuous else [])
        self._layout = Layout.of(together, encoder, n_classes)
        parts = [collect(part, self._layout) for part in tables]
        self.constant = self._constant_columns(table, sum(parts))  # type: ignore[arg-type]
        self.folds: list[Fold] = []
        self.class_odds = np.empty((1, self.n_odds))
        self.acceptable = True
        start = 0
        for part, outside in zip(tables, _all_but_each(parts), strict=True):
            fold = self._fold(part, outside, start)
            start = fold.place.stop
            self.folds.append(fold)
            self.acceptable &= parameters == "bayes" or bool((outside.classes > 0).all())
            if self.acceptable:
                weight = prior.dirichlet if parameters == "bayes" else 0.0
                log_prior = densities.categorical(outside.classes, weight)
                of_rows = np.broadcast_to(log_prior[:, None, None], (n_classes, 1, part.n_rows))
                fold.against_truth(of_rows, self.class_odds)

    def _constant_columns(self, table: Table, total: Statistics) -> list[int]:
        """Columns that say nothing, as they have one value only."""
        constant = [c for i, c in enumerate(self.encoder.discrete) if (table.codes[:, i] == table.codes[0, i]).all()]
        for partition, moments in zip(self._layout.partitions, total.moments, strict=True):
            constant += partition.columns[moments.constant()].tolist()
        return constant

    def _fold(self, part: Table, outside: Statistics, start: int) -> Fold:
        assert part.labels is not None
        values = np.zeros((0, part.n_rows))
        constant = np.zeros(0, bool)
        posterior = Posterior(outside.classes[None], values, values)
        for partition, moments in zip(self._layout.partitions, outside.moments, strict=True):
            units = standard_units(moments, partition, self.encoder)
            standard = moments.standardised(units.unit)
            constant = moments.constant()
            with np.errstate(over="ignore"):
                values = ((part.values - units.origin) / units.unit).T.clip(-FARTHEST, FARTHEST)
            if self.parameters == "ml":
                posterior = maximum_likelihood(standard, 0.0)
                continue
            posterior = self.prior.posterior(standard, partition.columns, units.origin, units.unit, 0.0)
            # A constant is no one's parent: as if it were independent of all, and always at its centre.
            posterior.scale[..., constant[partition.pairs].any(axis=1)] = 0.0
            posterior.scale[..., np.flatnonzero(constant)] = 1.0
            values[constant] = posterior.centre[..., constant] = 0.0
        starts = np.searchsorted(part.labels, np.arange(self.n_classes + 1)).tolist()
        place = slice(start, start + part.n_rows * (self.n_classes - 1))
        return Fold(part, starts, place, posterior, values, constant)

    def is_batched(self, group: Group) -> bool:
        """Whether the group is one of continuous attributes whose order is of no account."""
        ordered = self.parameters == "bayes" and self.prior.location == "paper"
        return not ordered and all(column in self._position for column in group)

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
            scale = fold.scale(members[:, :, None], members[:, None, :])  # (classes, groups, size, size)
            factor, good = self._factorised(scale)
            acceptable &= good
            if not acceptable.any():
                break
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)
            whitened = _whitening(factor) @ fold.centred(members)  # (classes, groups, size, rows)
            distance = np.square(whitened, out=whitened).sum(axis=2)
            n_varying = (~fold.constant)[members].sum(axis=1)
            fold.against_truth(self._log_densities(fold, distance, log_det, n_varying), odds)
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
            scale = fold.scale(members[:, None], members)  # (classes, size, size)
            factor, good = self._factorised(scale[:, None])
            if not good:
                return
            whitening = _whitening(factor[:, 0])
            whitened = whitening @ fold.centred(members)  # (classes, size, rows)
            whole = np.square(whitened).sum(axis=1)[:, None]
            log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1)

            slopes = whitening @ fold.scale(members[:, None], more)  # (classes, size, grown)
            own = fold.scale(more, more)
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

            varying = ~fold.constant
            found = self._log_densities(
                fold,
                np.concatenate([after_more, np.maximum(after_less, 0.0)], axis=1),
                log_det + np.concatenate([np.log(left), np.log(precision)], axis=1),
                varying[members].sum() + np.concatenate([varying[more], -1 * varying[members[less]]]),
            )
            fold.against_truth(found, odds)
        if self.parameters == "bayes":  # what is singular by rounding alone is made regular elsewhere
            accurate[: len(grown)] &= acceptable
        acceptable = np.concatenate([acceptable, np.ones(len(shrunk), bool)])
        for other, found, good, exact in zip([*grown, *shrunk], odds, acceptable, accurate, strict=True):
            if exact:
                yield other, found if good else None

    def _positions(self, columns: Iterable[int]) -> NDArray[np.intp]:
        """Columns of X as positions among the continuous ones."""
        return np.array([self._position[column] for column in columns], np.intp)

    def _factorised(self, scale: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Factors of (classes, groups, size, size), and of which groups they exist; the others have 1."""
        bayes = self.parameters == "bayes"
        factor = factorised(scale, always=bayes)
        if bayes:
            return factor, np.ones(scale.shape[1], bool)
        size = scale.shape[-1]
        least = SINGULAR * size * np.diagonal(scale, axis1=-2, axis2=-1)
        good = (np.diagonal(factor, axis1=-2, axis2=-1) ** 2 > least).all(axis=(0, 2))
        return (factor if good.all() else np.where(good[:, None, None], factor, np.eye(size))), good

    def _log_densities(self, fold: Fold, distance: Floats, log_det: Floats, n_varying: NDArray[np.intp]) -> Floats:
        """Of (classes, groups, rows), given ln|Ψ'| (classes, groups) and the groups' sizes."""
        log_det, size = log_det[..., None], n_varying[:, None]
        if fold.posterior.strength is None:
            return densities.multivariate_normal(distance, log_det, size)
        shape = (self.prior.shape + fold.posterior.n[0] / 2)[:, None, None]
        leverage = (1 + 1 / fold.posterior.strength[0])[:, None, None]
        return densities.multivariate_student(np.log(leverage), np.log(leverage + distance), log_det, size, shape)

    def _of_any_group(self, group: Group) -> Floats | None:
        """Log odds of a group that has discrete attributes or whose order matters."""
        encoder = self.encoder
        cells = prod(len(encoder.levels[c] or "1") for c in group) * self.n_classes
        if self.parameters == "ml" and cells > self.n_rows:
            return None  # some cell must be empty
        n_continuous = sum(column in self._position for column in group)
        if cells * max(1, n_continuous**2) > MOST_NUMBERS:
            return None
        layout = Layout.of(Structure.jan([discrete_first(list(group), encoder)]), encoder, self.n_classes)
        parts = [collect(fold.table, layout) for fold in self.folds]
        odds = np.empty((1, self.n_odds))
        classes = np.arange(self.n_classes)
        for fold, outside in zip(self.folds, _all_but_each(parts), strict=True):
            try:
                network = Network.of(outside, encoder, classes, parameters=self.parameters, prior=self.prior)
            except SampleNotAcceptable:
                return None
            fold.against_truth(network.log_likelihood(fold.table).T[:, None], odds)
        return odds[0]


def _all_but_each(parts: Sequence[Statistics]) -> Iterator[Statistics]:
    """For each part the sum of all others, by merging what stands before with what stands after it."""
    before = list(accumulate(parts))
    after = list(accumulate(reversed(parts)))[::-1]
    for i in range(len(parts)):
        others: list[Any] = [*before[max(i - 1, 0) : i], *after[i + 1 : i + 2]]
        yield sum(others)


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
