"""Candidates that are all in additive statistics: a learner on a view, under several estimations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from cgnlearn.model.densities import Floats
from cgnlearn.model.estimation import Estimation
from cgnlearn.model.model import Model, NotExact
from cgnlearn.model.network import Network
from cgnlearn.model.prior import Prior
from cgnlearn.model.statistics import Statistics, collect
from cgnlearn.model.structure import Structure
from cgnlearn.ordered.average import BandAverage
from cgnlearn.ordered.band import Band, EveryK, every_family
from cgnlearn.structures.forests import TreeAverage
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.rotated import RotatedComplete
from cgnlearn.structures.tree import Tree
from cgnlearn.tuning.source import Description, Fit, Scored, Source
from cgnlearn.tuning.transforms import Views

WHOLE_ROWS = (RotatedComplete, TreeAverage, BandAverage)  # learners whose models take no row with a missing value


@dataclass(frozen=True, eq=False)
class Counted(Fit):
    """Models from the same statistics.

    Parameters
    ----------
    view : str
    learner : Learner
    statistics : Statistics
    hows : tuple of Estimation
        One for each candidate.
    has_density : bool
    """

    view: str
    learner: Learner
    statistics: Statistics
    hows: tuple[Estimation, ...]
    has_density: bool = True

    @property
    def is_sum(self) -> bool:
        """Whether log likelihoods are sums over attributes."""
        return not isinstance(self.learner, RotatedComplete | TreeAverage)

    @property
    def takes_holes(self) -> bool:
        """Whether it can say something of a row in which a value is missing."""
        return not isinstance(self.learner, WHOLE_ROWS)

    @cached_property
    def models(self) -> list[Model]:
        """One for each candidate."""
        if not isinstance(self.learner, Tree):
            return [self.learner.model(self.statistics, how) for how in self.hows]
        trees: dict[Prior, Structure] = {}  # what classes share plays no part in them
        for how in self.hows:
            if how.prior not in trees:
                trees[how.prior] = self.learner.model(self.statistics, how).structure
        return [Network.of(trees[how.prior], self.statistics, how) for how in self.hows]

    def log_likelihood(self, views: Views) -> Floats:
        """ln p(x | class): (candidates, rows, classes)."""
        return np.stack([model.log_likelihood(views[self.view]) for model in self.models])

    def left_out(self, views: Views) -> Floats:
        """The same of training rows, each without itself."""
        if not self.learner.forgets:
            raise NotExact(f"{self.learner!r} would have to be learned anew without every row: take folds")
        return np.stack([model.leave_one_out(views[self.view]).log_likelihood for model in self.models])

    def contributions(self, views: Views, candidate: int) -> Floats:
        """Each attribute's log density: (rows, columns of X, classes)."""
        return self.models[candidate].contributions(views[self.view])

    def kept(self, which: Sequence[int]) -> Counted:
        """Some of the candidates."""
        return replace(self, hows=tuple(self.hows[i] for i in which))

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


@dataclass(frozen=True)
class Learned(Source):
    """A learner on a view, under several estimations.

    Parameters
    ----------
    kind, view : str
    learner : Learner
    hows : tuple of Estimation
    varying : tuple of str
        What the estimations differ in: ``"sharing"``, ``"prior_scale"``, ``"dirichlet"``.
    has_density : bool
    """

    kind: str
    view: str
    learner: Learner
    hows: tuple[Estimation, ...]
    varying: tuple[str, ...] = ()
    has_density: bool = True

    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """Counted once for all estimations."""
        table = views[self.view]
        learner = self.learner.resolved(table, self.hows[0]).learner
        statistics = collect(table, learner.families(table.schema))
        fit = Counted(self.view, learner, statistics, self.hows, self.has_density)
        found = None
        if leave_out and self.learner.forgets and not self.learner.needs_rows:
            try:
                found = fit.left_out(views)
            except NotExact:
                found = None
        return Scored(fit, [self._description(how) for how in self.hows], found)

    def _description(self, how: Estimation) -> Description:
        told = {"sharing": how.sharing, "prior_scale": how.prior.multiple, "dirichlet": how.prior.dirichlet}
        return {"kind": self.kind, "transform": self.view} | {name: told[name] for name in self.varying}


@dataclass(frozen=True, eq=False)
class EveryBand(Fit):
    """Bands of several k, by one lattice for each estimation.

    Parameters
    ----------
    view : str
    statistics : Statistics
        Of `every_family`.
    k_max : int
    hows : tuple of Estimation
    ks : tuple of int
        With the estimations, one for each candidate.
    """

    view: str
    statistics: Statistics
    k_max: int
    hows: tuple[Estimation, ...]
    ks: tuple[int, ...]

    @property
    def takes_holes(self) -> bool:
        """No: several k at once take the same rows."""
        return False

    def log_likelihood(self, views: Views) -> Floats:
        """ln p(x | class): (candidates, rows, classes)."""
        return self._said(views, left_out=False)

    def left_out(self, views: Views) -> Floats:
        """The same of training rows, each without itself."""
        return self._said(views, left_out=True)

    def _said(self, views: Views, *, left_out: bool) -> Floats:
        table = views[self.view]
        found = np.empty((len(self.ks), table.n_rows, table.schema.n_classes))
        every_k = EveryK.left_out if left_out else EveryK.of
        for how in dict.fromkeys(self.hows):
            here = [i for i, other in enumerate(self.hows) if other == how]
            k_max = max(self.ks[i] for i in here)
            statistics = self.statistics.restricted(every_family(table.schema, k_max))
            of_how = every_k(statistics, table, how, k_max=k_max, shapes=("band",)).log_likelihood[0]
            found[here] = of_how[[self.ks[i] - 1 for i in here]]
        return found

    def contributions(self, views: Views, candidate: int) -> Floats:
        """Each attribute's log density: (rows, columns of X, classes)."""
        model = Band(self.ks[candidate]).model(self.statistics, self.hows[candidate])
        return model.contributions(views[self.view])

    def kept(self, which: Sequence[int]) -> EveryBand:
        """Some of the candidates."""
        return replace(self, hows=tuple(self.hows[i] for i in which), ks=tuple(self.ks[i] for i in which))


@dataclass(frozen=True)
class Bands(Source):
    """Bands of every k up to one.

    Parameters
    ----------
    view : str
    k_max : int
    hows : tuple of Estimation
    """

    view: str
    k_max: int
    hows: tuple[Estimation, ...]
    kind: str = "band"

    def scored(self, views: Views, *, leave_out: bool) -> Scored:
        """From one lattice for each estimation."""
        table = views[self.view]
        statistics = collect(table, every_family(table.schema, self.k_max))
        ks = range(1, self.k_max + 1)
        hows = tuple(how for how in self.hows for _ in ks)
        fit = EveryBand(self.view, statistics, self.k_max, hows, (*ks,) * len(self.hows))
        described: list[Description] = [
            {"kind": self.kind, "transform": self.view, "sharing": how.sharing, "k": k} for how in self.hows for k in ks
        ]
        return Scored(fit, described, fit.left_out(views) if leave_out else None)
