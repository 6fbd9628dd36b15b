"""The arguments of the compiled loops. Importing this module does not import numba."""

from __future__ import annotations

from typing import Any, NamedTuple


class Members(NamedTuple):
    """The columns of the members of blocks and their standard units: arrays (blocks, members) or (blocks,)."""

    columns: Any  # of a table's values
    origin: Any
    per_unit: Any


class Scales(NamedTuple):
    """The centres of blocks and the Cholesky factors of their scales."""

    centre: Any  # (classes, blocks, members)
    factor: Any  # (classes, blocks, members, members)


class Removed(NamedTuple):
    """The samples of a class that are held out, one at a time; if all are alike, one entry stands for all."""

    label: int  # their class
    before: Any  # h at the centre: (classes, samples)
    loss: Any  # the factor of e eᵀ that a scale loses: (classes, samples)
    growth: Any  # (samples,)
    crossing: bool  # whether other classes lose them too, by sharing


class Students(NamedTuple):
    """Log densities constant - power · ln(least + ((standard value - centre) · shrink)²) of single features.

    The first density is that of all classes together.
    """

    columns: Any  # of a table's values: (features,)
    origin: Any
    per_unit: Any
    sure: Any  # whether the feature certainly depends on the class
    centre: Any  # (1 + classes, features)
    shrink: Any
    constant: Any
    least: Any  # (1 + classes,)
    power: Any


class PairStudents(NamedTuple):
    """Student densities of all pairs of continuous features under one class, in standard units."""

    centre: Any  # (features,)
    shrink: Any  # factor of a distance from the centre: (features,)
    slope: Any  # of the second on the first: (features, features), as the rest
    own_shrink: Any  # the same for the residual of the second
    constant: Any
    least: float  # h at the centre
    power: float  # of the leverages of single features


class Elimination(NamedTuple):
    """The sum over forests by elimination of nodes, from the last to the first.

    It gives the sum if each weight is multiplied by a factor: the factor of an arc after a step is a weighted mean of
    its factor before and of the product of factors along the path through the node. So factors near one stay near one,
    whatever the weights are.
    """

    log_total: float
    parents: Any  # for node v, from v (v + 1) / 2 on: the share of the root and of every earlier node in D
    kept: Any  # for node v, from (v - 1) v (v + 1) / 3 on: (1 + v, v), the share of each arc's weight before
    passed: Any  # the same: the share of the path through v


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
    sound: Any  # number of orders with all digits: (nodes,)
    existing: Any  # number of orders that have a regression: (nodes,)


class Chain(NamedTuple):
    """The nodes of a lattice under one class: arrays (nodes,)."""

    centre: Any
    shift: Any
    own_spread: Any
    log_unit: Any
    absent: Any
    n_before: Any  # number of nodes present before each: (nodes + 1,)


class PathLaw(NamedTuple):
    """The density of all orders under one class."""

    base: Any  # the log density at f = 0 and h = F = 1, for each number of parents
    shape: float  # ρ' without parents
    least: float  # h at the centre
    bayes: bool  # whether it is Student's; else it is normal
    shifted: bool  # whether nodes have their own shift and spread


class PathSums(NamedTuple):
    """Log likelihoods of every k of both shapes, band and box."""

    constant: Any  # the part that all samples have in common: (shapes, k)
    varying: Any  # the rest: (shapes, k, samples)
    missing: Any  # number of regressions that do not exist: (shapes, k)


class RemovedPath(NamedTuple):
    """Samples of one class that are held out of a lattice, one at a time, under classes of one scale."""

    rows: Any  # less the centre of their class or, without sharing, of the one class: (nodes, samples)
    apart: Any  # that centre less the centre of each class; empty without sharing: (nodes, classes)
    owner: int  # their class; -1 if it is not among these
    before: Any  # h at the centre: (classes, samples)
    loss: Any  # the factor of e eᵀ that the scale loses: (samples,)
    growth: Any  # (samples,)
    shape: Any  # ρ' without parents: (classes,)
    lighter: Any  # twice the loss of ρ'; by maximum likelihood the share of samples left: (classes, samples)
    bayes: bool


class LeaveOneOutSums(NamedTuple):
    """Leave-one-out log likelihoods of every k."""

    constant: Any  # -½ ln F - ln unit: (shapes, k)
    varying: Any  # the rest, without terms of ρ' alone: (classes, shapes, k, samples)
    counts: Any  # of nodes by their number of parents: (shapes, k, parents)
    missing: Any  # number of regressions that do not exist: (shapes, k)


class Gathered(NamedTuple):
    """Products over windows of one length with equally many nodes present, by shape and bin."""

    wholes: Any  # of h g, or the sums of h by maximum likelihood: (shapes, classes, bins, samples)
    keeps: Any  # of g: (shapes, bins, samples)
    begun: Any  # (shapes, bins)


class MixedLaw(NamedTuple):
    """Student's density of all orders under one class, and the weights of the orders."""

    base: Any  # the log density at f = 0 and h = F = 1, for each number of parents
    shape: Any  # ρ', for each number of parents
    least: float  # h at the centre
    n_parents: Any  # (nodes, orders)
    log_weight: Any  # -inf for an order without weight: (nodes, orders)


class Subsets(NamedTuple):
    """Sets of nodes that are observed together: arrays (tasks, members)."""

    members: Any
    present: Any
    wanted: Any


class Joint(NamedTuple):
    """The joint distribution of nodes and the density of each."""

    mean: Any  # (classes, nodes)
    scale: Any  # (classes, nodes, nodes)
    columns: Any  # (nodes,)
    log_unit: Any  # (nodes,)
    behind: Any  # number of samples of the regression: (classes, nodes)
    shape: Any
    least: Any
    shift: Any
    own_spread: Any
    highest: Any  # the log density at residual 0 and spread 1: (classes, nodes, members before)
    averages: bool  # whether it is Student's; else it is normal


class Trie(NamedTuple):
    """Ordered sets of nodes, depth first: sets with the same first nodes stand together, the shortest first."""

    member: Any  # the last node: (sets,)
    depth: Any  # the number of nodes before it
