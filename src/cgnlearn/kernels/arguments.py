"""What the compiled loops are given. Importing this module does not import numba."""

from __future__ import annotations

from typing import Any, NamedTuple


class Members(NamedTuple):
    """Where the members of blocks stand, and their standard units: arrays (blocks, members) or (blocks,)."""

    columns: Any  # of a table's values
    origin: Any
    per_unit: Any


class Scales(NamedTuple):
    """The centres of blocks and the Cholesky factors of their scales."""

    centre: Any  # (classes, blocks, members)
    factor: Any  # (classes, blocks, members, members)


class Removed(NamedTuple):
    """What is known of the samples that leave; one stands for all if they are alike."""

    label: int  # their class
    before: Any  # h at the centre: (classes, samples)
    loss: Any  # how much of e eᵀ a scale loses: (classes, samples)
    growth: Any  # (samples,)
    crossing: bool  # whether other classes lose them too


class Students(NamedTuple):
    """Log densities constant - power · ln(least + ((standard value - centre) · shrink)²) of single features.

    The first of the densities is the one that all classes have in common.
    """

    columns: Any  # of a table's values: (features,)
    origin: Any
    per_unit: Any
    sure: Any  # whether the feature depends on the class beyond doubt
    centre: Any  # (1 + classes, features)
    shrink: Any
    constant: Any
    least: Any  # (1 + classes,)
    power: Any


class PairStudents(NamedTuple):
    """Student densities of all pairs of continuous features under one class, in standard units."""

    centre: Any  # (features,)
    shrink: Any  # by which a distance from the centre is multiplied: (features,)
    slope: Any  # of the second on the first: (features, features), as the rest
    own_shrink: Any  # the same of what is left of the second
    constant: Any
    least: float  # h at the centre
    power: float  # of the leverages of single features


class Elimination(NamedTuple):
    """How the sum over forests comes about when nodes are eliminated from the last to the first.

    It says what becomes of the sum if each weight is multiplied by a factor: the arc's factor after a step is a mean of
    its factor before and of the factors along the way through the node, with the weights' own shares as proportions.
    So factors that are near one stay so, whatever the weights are.
    """

    log_total: float
    parents: Any  # for node v, from v (v + 1) / 2 on: the share of the root and of every earlier node in D
    kept: Any  # for node v, from (v - 1) v (v + 1) / 3 on: (1 + v, v), the share of each arc's weight before
    passed: Any  # the same: the share of the way through v


class Stretch(NamedTuple):
    """The regressions of the nodes start..stop of a lattice under one scale, from the K - 1 nodes before them on."""

    scale: Any  # Ψ'[v, v-d] of all nodes: (nodes, distances)
    first: int  # the first node that the arrays below begin with
    start: int
    stop: int
    forward: Any  # kf: (nodes, orders)
    backward: Any  # kb
    spread: Any  # F
    back_spread: Any  # B
    sound: Any  # how many orders have kept their digits: (nodes,)
    existing: Any  # how many orders have a regression: (nodes,)


class Chain(NamedTuple):
    """The nodes of a lattice under one class: arrays (nodes,)."""

    centre: Any
    shift: Any
    own_spread: Any
    log_unit: Any
    absent: Any
    n_before: Any  # how many of the nodes before each are present: (nodes + 1,)


class PathLaw(NamedTuple):
    """The law of all orders under one class."""

    base: Any  # the log density at f = 0 and h = F = 1, for each number of parents
    shape: float  # ρ' without parents
    least: float  # h at the centre
    bayes: bool  # whether it is Student's, or Gauss's
    shifted: bool  # whether nodes have a shift and a spread of their own


class PathSums(NamedTuple):
    """What log likelihoods of every k are added to, the shapes being band and box."""

    constant: Any  # what is alike for all samples: (shapes, k)
    varying: Any  # the rest: (shapes, k, samples)
    missing: Any  # how many regressions do not exist: (shapes, k)


class RemovedPath(NamedTuple):
    """Samples of one class that leave a lattice, under classes of one scale."""

    rows: Any  # less the centre of their class or, where only that loses them, of the one class: (nodes, samples)
    apart: Any  # that centre less each class's; none where only the own class loses a sample: (nodes, classes)
    owner: int  # their class; -1 if it is not among these
    before: Any  # h at the centre: (classes, samples)
    loss: Any  # how much of e eᵀ the scale loses: (samples,)
    growth: Any  # (samples,)
    shape: Any  # ρ' without parents: (classes,)
    lighter: Any  # what twice it loses or, by maximum likelihood, the share of samples kept: (classes, samples)
    bayes: bool


class LeaveOneOutSums(NamedTuple):
    """What log likelihoods of every k without each sample are added to."""

    constant: Any  # -½ ln F - ln unit: (shapes, k)
    varying: Any  # the rest but what ρ' alone decides: (classes, shapes, k, samples)
    counts: Any  # of nodes with so many parents: (shapes, k, parents)
    missing: Any  # how many regressions do not exist: (shapes, k)


class Gathered(NamedTuple):
    """Products over windows of one length with equally many nodes present, by shape and bin."""

    wholes: Any  # of h g, or the sums of h by maximum likelihood: (shapes, classes, bins, samples)
    keeps: Any  # of g: (shapes, bins, samples)
    begun: Any  # (shapes, bins)


class MixedLaw(NamedTuple):
    """Student's law of all orders under one class, and how they are mixed."""

    base: Any  # the log density at f = 0 and h = F = 1, for each number of parents
    shape: Any  # ρ', for each number of parents
    least: float  # h at the centre
    n_parents: Any  # (nodes, orders)
    log_weight: Any  # -inf for an order that takes no part: (nodes, orders)


class Subsets(NamedTuple):
    """Which nodes are looked at together: arrays (tasks, members)."""

    members: Any
    present: Any
    wanted: Any


class Joint(NamedTuple):
    """The joint distribution of nodes and the law of each."""

    mean: Any  # (classes, nodes)
    scale: Any  # (classes, nodes, nodes)
    columns: Any  # (nodes,)
    log_unit: Any  # (nodes,)
    behind: Any  # samples behind the regression: (classes, nodes)
    shape: Any
    least: Any
    shift: Any
    own_spread: Any
    highest: Any  # the log density where residual is 0 and spread 1: (classes, nodes, members before)
    averages: bool  # whether the law is Student's, or Gauss's
