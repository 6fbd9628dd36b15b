"""What is tried for which table, and what is left out, with the reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from cgnlearn.model.estimation import Bayes
from cgnlearn.model.prior import Prior
from cgnlearn.model.schema import Schema
from cgnlearn.ordered.average import BandAverage
from cgnlearn.structures.fixed import FEW_COLUMNS, Complete, Jan, NaiveBayes
from cgnlearn.structures.forests import TreeAverage
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.search import GreedyJan
from cgnlearn.structures.selective import SelectiveNaiveBayes
from cgnlearn.structures.tree import Tree
from cgnlearn.tuning.counted import Bands, Learned
from cgnlearn.tuning.one_dependence import OneDependences
from cgnlearn.tuning.ridge import Ridge
from cgnlearn.tuning.source import Source

MOST_ROWS = 10_000  # in which candidates are compared
SHARINGS = (0.0, 0.03, 0.1, 0.3, 0.6, 1.0)  # all from the same moments
FEW_SHARINGS = (0.0, 0.1, 0.4, 1.0)  # in folds
ROTATED_SHARINGS = (0.0, 0.3, 1.0)
SMOOTHED = 0.5  # Jeffreys' weight of a level, tried beside the prior's
SCALES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # of the prior, for more columns than rows
N_BINS = (5, 10)
FEW_BINS = (3, 5)  # of which pairs are counted
MOST_LEVELS = 500  # of all columns together, of which pairs are counted
K_MAX = 50
MOST_TREE = 150  # columns between whose pairs a tree is sought, in folds
MOST_FORESTS = 25  # columns whose forests are averaged over
MOST_SEARCHED = 500_000  # rows × columns², where groups of columns are sought, in folds
MOST_BINNED = 2000
MOST_FEATURES = 1000  # besides the columns themselves
MOST_TWICE = 5e8  # rows × parameters² of a regression that is tried of transformed columns too
MOST_POWERS = 5000  # columns

HOLES = "values are missing, and it takes whole rows"

KINDS = (
    "frequencies", "naive_bayes", "complete", "tree", "greedy", "selective", "tree_average", "bins", "one_dependence",
    "logistic", "band", "band_average",
)  # fmt: skip


class Omitted(NamedTuple):
    """What is not tried, and why."""

    kind: str
    view: str
    reason: str


@dataclass(frozen=True)
class Shape:
    """What decides which candidates suit a table.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        In which candidates are compared.
    ordered : bool
    has_holes : bool
        Whether values are missing.
    has_groups : bool
        Whether some rows belong together.
    """

    schema: Schema
    n_rows: int
    ordered: bool
    has_holes: bool = False
    has_groups: bool = False

    @property
    def m(self) -> int:
        """How many continuous columns there are."""
        return len(self.schema.continuous)

    @property
    def is_wide(self) -> bool:
        """Whether complete structures are fitted by rotation."""
        return self.m > max(self.n_rows, FEW_COLUMNS)


def candidates(
    shape: Shape, kinds: Collection[str | Learner] | None, transforms: Sequence[str], prior: Prior
) -> Iterator[Source | Omitted]:
    """All that suits a table, or of it what was asked for; and what does not suit it."""
    learners = [kind for kind in kinds or () if isinstance(kind, Learner)]
    for found in _all(shape, transforms, prior):
        if kinds is None or found.kind in kinds or found.kind == "frequencies":
            yield found
    for learner in learners:
        for view in transforms:
            yield Learned(type(learner).__name__, view, learner, _hows(prior, (0.0,)))


def _hows(prior: Prior, sharings: Sequence[float], scales: Sequence[float] | None = None) -> tuple[Bayes, ...]:
    priors = [prior] if scales is None else [replace(prior, scale=scale) for scale in scales]
    return tuple(Bayes(each, sharing) for each in priors for sharing in sharings)


def _smoothed(prior: Prior, sharings: Sequence[float], schema: Schema) -> tuple[Bayes, ...]:
    """The same, with levels smoothed more where there are any."""
    more = (
        _hows(replace(prior, dirichlet=SMOOTHED), sharings) if schema.discrete and prior.dirichlet != SMOOTHED else ()
    )
    return _hows(prior, sharings) + more


def _all(shape: Shape, transforms: Sequence[str], prior: Prior) -> Iterator[Source | Omitted]:
    yield Learned("frequencies", "none", Jan([]), _hows(prior, (0.0,)), has_density=False)
    for view in transforms:
        why = _why_no_view(view, shape, prior)
        if why:
            yield from (Omitted(kind, view, why) for kind in ("naive_bayes", "complete", "tree", "selective"))
        else:
            yield from _generative(shape, view, prior)
            yield from _ordered(shape, view, prior)
    yield from _binned(shape, prior)
    yield from _one_dependence(shape)
    for view in transforms:
        if view == "none" or not _why_no_view(view, shape, None):
            yield from _logistic(shape, view, prior)
    yield from _steps(shape, prior)


def _why_no_view(view: str, shape: Shape, prior: Prior | None) -> str | None:
    if view == "none":
        return None
    if not shape.m:
        return "no column is continuous"
    if shape.m > MOST_POWERS:
        return f"more than {MOST_POWERS} columns"
    if prior is not None and (isinstance(prior.location, tuple) or isinstance(prior.scale, tuple)):
        return "the prior is in the columns' own units"
    return None


def _generative(shape: Shape, view: str, prior: Prior) -> Iterator[Source | Omitted]:
    schema, m = shape.schema, shape.m
    varying = ("sharing", "dirichlet") if schema.discrete else ("sharing",)
    sharings = SHARINGS if m else SHARINGS[:1]
    yield Learned("naive_bayes", view, NaiveBayes(), _smoothed(prior, sharings, schema), varying)
    if m < 2:
        yield Omitted("complete", view, "fewer than two continuous columns")
    elif not shape.is_wide and m <= FEW_COLUMNS:
        groups = [schema.continuous, *([column] for column in schema.discrete)]
        yield Learned("complete", view, Jan(groups), _smoothed(prior, SHARINGS, schema), varying)
    elif not shape.is_wide:
        yield Omitted("complete", view, f"more than {FEW_COLUMNS} columns, and fewer than rows")
    elif schema.discrete:
        yield Omitted("complete", view, "more columns than rows, and some are discrete")
    elif shape.has_holes:
        yield Omitted("complete", view, HOLES)
    elif prior.location == "paper":
        yield Omitted("complete", view, 'no rotation with the prior location "paper"')
    else:
        scales = SCALES if prior.scale == "variance" else None
        hows = _hows(prior, ROTATED_SHARINGS, scales)
        yield Learned("complete", view, Complete(), hows, ("sharing", "prior_scale"))
    if schema.n_columns < 2:
        yield Omitted("tree", view, "one column")
    elif schema.n_columns > MOST_TREE:
        yield Omitted("tree", view, f"more than {MOST_TREE} columns")
    else:
        hows = _smoothed(prior, FEW_SHARINGS if m else FEW_SHARINGS[:1], schema)
        yield Learned("tree", view, Tree(), hows, varying)
    if why := _why_no_search(shape, prior):
        yield Omitted("greedy", view, why)
    else:
        search = GreedyJan("forward", cv="loo", scoring="cll", parameters="bayes")
        yield Learned("greedy", view, search, _hows(prior, FEW_SHARINGS), ("sharing",))
    if not prior.is_coherent:
        why = "the prior's location has no evidence"
        yield from (Omitted(kind, view, why) for kind in ("selective", "tree_average"))
        return
    hows = _smoothed(prior, (0.0, 1.0) if m else (0.0,), schema)
    yield Learned("selective", view, SelectiveNaiveBayes(), hows, varying)
    if shape.has_holes:
        yield Omitted("tree_average", view, HOLES)
    elif not 2 <= schema.n_columns <= MOST_FORESTS:
        yield Omitted("tree_average", view, f"fewer than 2 or more than {MOST_FORESTS} columns")
    else:
        yield Learned("tree_average", view, TreeAverage(), hows, varying)


def _why_no_search(shape: Shape, prior: Prior) -> str | None:
    if shape.m < 2:
        return "fewer than two continuous columns"
    if shape.schema.discrete:
        return "some columns are discrete: the search would take too long"
    if shape.n_rows * shape.schema.n_columns**2 > MOST_SEARCHED:
        return "the search would take too long"
    if shape.has_holes:
        return HOLES
    if prior.location == "paper":
        return 'no leave-one-out with the prior location "paper"'
    return "rows come in groups, and it leaves them out one by one" if shape.has_groups else None


def _ordered(shape: Shape, view: str, prior: Prior) -> Iterator[Source | Omitted]:
    if not shape.ordered or view != "none":
        return
    if shape.m < 3:
        yield Omitted("band", view, "fewer than three continuous columns")
        return
    if shape.has_holes:
        yield from (Omitted(kind, view, HOLES) for kind in ("band", "band_average"))
        return
    k_max = min(K_MAX, shape.m)
    yield Bands(view, k_max, _hows(prior, (0.0, 1.0)))
    if prior.is_coherent:
        yield Learned("band_average", view, BandAverage(k_max), _hows(prior, (0.0,)))
    else:
        yield Omitted("band_average", view, "the prior's location has no evidence")


def _binned(shape: Shape, prior: Prior) -> Iterator[Source | Omitted]:
    for n in N_BINS:
        if not shape.m:
            yield Omitted("bins", f"bins{n}", "no column is continuous")
        elif shape.m > MOST_BINNED:
            yield Omitted("bins", f"bins{n}", f"more than {MOST_BINNED} columns")
        else:
            hows = tuple(Bayes(Prior(dirichlet=weight)) for weight in dict.fromkeys((prior.dirichlet, SMOOTHED)))
            yield Learned("bins", f"bins{n}", NaiveBayes(), hows, ("dirichlet",), has_density=False)


def _one_dependence(shape: Shape) -> Iterator[Source | Omitted]:
    n_levels = sum(len(shape.schema.levels_of(column)) for column in shape.schema.discrete)
    for n in FEW_BINS if shape.m else FEW_BINS[:1]:
        if shape.schema.n_columns < 2:
            yield Omitted("one_dependence", f"bins{n}", "one column")
        elif n_levels + n * shape.m > MOST_LEVELS:
            yield Omitted("one_dependence", f"bins{n}", f"more than {MOST_LEVELS} levels")
        else:
            yield OneDependences(f"bins{n}", SMOOTHED)


def _logistic(shape: Shape, view: str, prior: Prior) -> Iterator[Source | Omitted]:
    m, base = shape.m, n_features(shape, "linear")
    yield Ridge(view, "linear", prior.dirichlet)
    n_pairs = base * (base - 1) // 2 if base > m else 0
    for terms, n_terms in (("squares", m), ("products", m * (m - 1) // 2), ("pairs", n_pairs)):
        work = shape.n_rows * (n_features(shape, terms) * (shape.schema.n_classes - 1)) ** 2
        if n_terms > MOST_FEATURES:
            yield Omitted(f"logistic, {terms}", view, f"{n_terms} more features")
        elif view != "none" and work > MOST_TWICE:
            yield Omitted(f"logistic, {terms}", view, "tried of the columns as they are, and would take as long again")
        elif n_terms:
            yield Ridge(view, terms, prior.dirichlet)


def n_features(shape: Shape, terms: str) -> int:
    """Of a regression with these terms."""
    m, base = shape.m, shape.m + sum(len(shape.schema.levels_of(column)) for column in shape.schema.discrete)
    return {
        "linear": base,
        "squares": base + m,
        "products": base + m * (m + 1) // 2,
        "pairs": base * (base + 1) // 2,
        "steps": 7 * m,
    }[terms]


def _steps(shape: Shape, prior: Prior) -> Iterator[Source | Omitted]:
    if shape.m and n_features(shape, "steps") <= MOST_FEATURES:
        yield Ridge("none", "steps", prior.dirichlet)
    elif shape.m:
        yield Omitted("logistic, steps", "none", f"{n_features(shape, 'steps')} features")
