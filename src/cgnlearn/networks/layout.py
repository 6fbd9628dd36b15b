"""Layout of families: what is counted and factorised together.

Continuous families with the same discrete parents form a *partition*, which has a cell for each configuration of these
and each class. Within it, nested families (the parents of one are all members of another) share a *block*: an ordered
set of features whose triangular factor gives the regression of every member on the members before it. Blocks of one
shape are stacked, so that linear algebra runs over arrays.

A family with an *incomplete* column (one with missing values) counts the samples in which all its members are observed.
These differ between families: each is a block of its own, in a partition whose blocks are counted *separately*.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.families import Families, Family

MOST_CELLS = 10_000_000  # of one family
MOST_SEPARATE = 1 << 28  # products of two members, of families that are counted separately


@dataclass(frozen=True, eq=False)
class Cells:
    """The configurations of some discrete columns."""

    columns: tuple[int, ...]  # of X
    codes: tuple[int, ...]  # their positions among the codes of a table
    levels: tuple[int, ...]  # their numbers of levels

    @classmethod
    def of(cls, columns: tuple[int, ...], schema: Schema) -> Cells:
        """The configurations of columns of X."""
        codes = tuple(schema.position[column] for column in columns)
        return cls(columns, codes, tuple(len(schema.levels_of(column)) for column in columns))

    @property
    def n(self) -> int:
        """Number of configurations."""
        return prod(self.levels)

    def observed(self, table: Table) -> NDArray[np.bool_]:
        """Whether each sample has values of all columns."""
        observed: NDArray[np.bool_] = np.all(table.codes[:, self.codes] >= 0, axis=1)
        return observed

    def index(self, table: Table) -> NDArray[np.intp]:
        """The configuration of each sample."""
        if not self.columns:
            return np.zeros(table.n_samples, np.intp)
        codes = tuple(table.codes[:, code] for code in self.codes)
        return np.ravel_multi_index(codes, self.levels).astype(np.intp)


@dataclass(frozen=True, eq=False)
class DiscreteFamily:
    """A discrete feature and the configurations of its parents, besides the class."""

    column: int  # of X
    code: int  # its position among the codes of a table
    n_levels: int
    cells: Cells

    def observed(self, table: Table) -> NDArray[np.intp]:
        """The samples that have values of the feature and of its parents."""
        return np.flatnonzero(self.cells.observed(table) & (table.codes[:, self.code] >= 0))


@dataclass(frozen=True, eq=False)
class Stack:
    """Blocks of one shape. Each member depends on those before it in its block."""

    members: NDArray[np.intp]  # positions among the features of the partition: (blocks, size)
    n_given: int  # the number of first members that are parents only: another block has their densities
    counted: NDArray[np.intp] | None = None  # the members before some were excluded, if any: (blocks, members counted)

    @property
    def size(self) -> int:
        """Number of members of each block."""
        return int(self.members.shape[1])

    def without(self, absent: NDArray[np.bool_]) -> tuple[Stack, ...]:
        """The blocks without some features of the partition, as stacks of the shapes that result."""
        excluded = absent[self.members]
        if not excluded.any():
            return (self,)
        shapes: dict[tuple[int, int], list[int]] = {}
        for number, out in enumerate(excluded):
            n_given = self.n_given - int(out[: self.n_given].sum())
            if (size := int((~out).sum())) > n_given:
                shapes.setdefault((size, n_given), []).append(number)
        return tuple(
            Stack(
                np.array([self.members[number][~excluded[number]] for number in blocks]), n_given, self.members[blocks]
            )
            for (_, n_given), blocks in shapes.items()
        )


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of features whose scatter is kept: each feature with itself, then first < second, sorted."""

    first: NDArray[np.intp]  # positions of features
    second: NDArray[np.intp]
    n: int  # the number of features
    reach: int | None = None  # the greatest distance, if the pairs are all those within it

    @classmethod
    def within(cls, n: int, reach: int) -> Pairs:
        """All pairs of features within a distance."""
        position = np.arange(n)
        after = np.minimum(reach, n - 1 - position)
        first = np.repeat(position, after)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after)
        return cls(np.concatenate([position, first]), np.concatenate([position, second]), n, reach)

    @classmethod
    def of_blocks(cls, n: int, stacks: Sequence[Stack]) -> Pairs:
        """All pairs of members of a block."""
        keys: list[NDArray[Any]] = [np.zeros(0, np.intp)]
        for stack in stacks:
            i, j = np.tril_indices(stack.size, -1)
            a, b = stack.members[:, i], stack.members[:, j]
            keys.append((np.minimum(a, b) * n + np.maximum(a, b)).ravel())
        ordered = np.sort(np.concatenate(keys))  # several times as fast as np.unique
        first, second = np.divmod(ordered[np.diff(ordered, prepend=-1) > 0], n)
        if len(first) in (0, n * (n - 1) // 2):
            return cls.within(n, n - 1 if len(first) else 0)
        diagonal = np.arange(n)
        return cls(np.concatenate([diagonal, first]), np.concatenate([diagonal, second]), n)

    def __len__(self) -> int:
        return len(self.first)

    def place(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.intp]:
        """Positions of the pairs (a, b), of any shape and in any order; all of them must be kept."""
        first, second = np.minimum(a, b), np.maximum(a, b)
        if self.reach is not None:
            short = np.maximum(0, first - (self.n - 1 - self.reach))  # pairs that would lie beyond the last feature
            rest = self.n + first * self.reach - short * (short - 1) // 2 + second - first - 1
        else:
            keys = self.first[self.n :] * self.n + self.second[self.n :]
            rest = np.searchsorted(keys, first * self.n + second) + self.n
        return np.where(first == second, first, rest)

    def banded(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Entries on the pairs of a band (…, pairs) by feature and distance to an earlier one: (…, n, reach + 1).

        0 where there is no feature at this distance. The result is a view of an array ordered by the first of the pair.
        """
        assert self.reach is not None
        n, width = self.n, self.reach + 1
        ahead = np.zeros((*entries.shape[:-1], self.reach + n, width))  # zeros before the first feature
        ahead[..., self.reach :, 0] = entries[..., :n]
        n_full = n - self.reach  # features that have pairs at all distances
        full = entries[..., n : n + n_full * self.reach].reshape(*entries.shape[:-1], n_full, self.reach)
        ahead[..., self.reach : n, 1:] = full
        for first in range(n_full, n - 1):
            start = int(self.place(np.array(first), np.array(first + 1)))
            ahead[..., self.reach + first, 1 : n - first] = entries[..., start : start + n - first - 1]
        *before, of_row, of_column = ahead.strides
        return as_strided(
            ahead[..., self.reach :, :], (*entries.shape[:-1], n, width), (*before, of_row, of_column - of_row)
        )

    def holds(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> bool:
        """Whether all these pairs are kept."""
        place = np.minimum(self.place(a, b), len(self) - 1)
        kept = (self.first[place] == np.minimum(a, b)) & (self.second[place] == np.maximum(a, b))
        return bool(kept.all())


@dataclass(frozen=True, eq=False)
class Partition:
    """The continuous features of families with the same discrete parents.

    Where blocks are ``separate``, a column has a feature for each of its blocks, which counts the samples in which
    all members of the block are observed.
    """

    cells: Cells  # the configurations of the discrete parents
    columns: NDArray[np.intp]  # of X: (features,)
    values: NDArray[np.intp]  # their positions among the values of a table: (features,)
    pairs: Pairs
    stacks: tuple[Stack, ...]
    k: int | None = None  # of a chain: every feature depends on the k - 1 before it
    separate: bool = False

    @classmethod
    def of_chain(cls, columns: NDArray[np.intp], schema: Schema, k: int) -> Partition:
        """A chain: one block for the first k features, then sliding windows."""
        m = len(columns)
        k = min(k, m)
        position = np.arange(m)
        stacks = [Stack(position[None, :k], 0)]
        if m > k:
            stacks.append(Stack(sliding_window_view(position, k)[1:], k - 1))
        pairs = Pairs.within(m, k - 1)
        return cls(Cells((), (), ()), columns, _positions(columns, schema), pairs, tuple(stacks), k)

    @classmethod
    def of_families(cls, cells: Cells, families: NDArray[np.intp], schema: Schema) -> Partition:
        """Families of one size that are counted separately: (families, members)."""
        n, size = families.shape
        columns = families.ravel()
        stacks = (Stack(np.arange(n * size).reshape(n, size), size - 1),)
        pairs = Pairs.of_blocks(n * size, stacks)
        return cls(cells, columns, _positions(columns, schema), pairs, stacks, separate=True)

    @property
    def n_features(self) -> int:
        """Number of continuous features."""
        return len(self.columns)

    def places_of(self, part: Partition) -> NDArray[np.intp] | None:
        """The features that those of a partition with the same cells are here; None if its families are not."""
        if self.separate:
            mine = {tuple(self.columns[block].tolist()): block for block in self.blocks}
            theirs = [mine.get(tuple(part.columns[block].tolist())) for block in part.blocks]
            return None if any(block is None for block in theirs) else np.concatenate(theirs)  # type: ignore[arg-type]
        order = np.argsort(self.columns, kind="stable")
        places = order[np.searchsorted(self.columns, part.columns, sorter=order).clip(max=len(order) - 1)]
        pairs = part.pairs
        if (self.columns[places] == part.columns).all() and self.pairs.holds(places[pairs.first], places[pairs.second]):
            return places
        return None

    @property
    def blocks(self) -> NDArray[np.intp]:
        """The features of blocks that are counted separately: (blocks, members)."""
        assert self.separate
        return self.stacks[0].members


@dataclass(frozen=True, eq=False)
class Layout:
    """Discrete families, and partitions of continuous ones: what `Statistics` counts and solvers factorise."""

    discrete: tuple[DiscreteFamily, ...]
    partitions: tuple[Partition, ...]

    @staticmethod
    @lru_cache(maxsize=16)  # batches of one stream have the same families
    def of(families: Families, schema: Schema, incomplete: tuple[int, ...] = ()) -> Layout:
        """The layout of families, where some columns are incomplete."""
        missing = frozenset(incomplete)
        listed, chain = _split_chain(families, missing)
        discrete = []
        cells_of: dict[tuple[int, ...], Cells] = {}
        blocks: dict[tuple[int, ...], _Blocks] = {}
        separate: dict[tuple[tuple[int, ...], int], list[list[int]]] = {}
        for child, parents in listed:
            conditions = tuple(sorted(parent for parent in parents if schema.levels[parent] is not None))
            if conditions not in cells_of:
                cells_of[conditions] = Cells.of(conditions, schema)
            cells = cells_of[conditions]
            if cells.n * schema.n_classes > MOST_CELLS:
                raise ValueError(
                    f"the discrete parents of {schema.name(child)} have {cells.n} configurations, "
                    f"which with {schema.n_classes} classes is more than {MOST_CELLS} cells: give it fewer parents"
                )
            continuous = tuple(parent for parent in parents if schema.levels[parent] is None) if conditions else parents
            if schema.levels[child] is not None:
                if continuous:
                    raise ValueError(
                        f"{schema.name(continuous[0])} is continuous and cannot be a parent of "
                        f"{schema.name(child)}, which is discrete: reverse the edge or remove it"
                    )
                discrete.append(DiscreteFamily(child, schema.position[child], len(schema.levels_of(child)), cells))
            elif missing.isdisjoint((child, *parents)):
                if conditions not in blocks:
                    blocks[conditions] = _Blocks(cells)
                blocks[conditions].add(child, continuous)
            else:
                separate.setdefault((conditions, len(continuous) + 1), []).append([*continuous, child])
        partitions = [of_cells.partition(schema) for of_cells in blocks.values()]
        if len(chain):
            partitions.append(Partition.of_chain(chain, schema, families.k))
        partitions += _separate_partitions(separate, cells_of, schema)
        return Layout(tuple(discrete), tuple(partitions))


def _positions(columns: NDArray[np.intp], schema: Schema) -> NDArray[np.intp]:
    """Positions of continuous columns of X among the values of a table."""
    return np.array([schema.position[column] for column in columns.tolist()], np.intp)


def _split_chain(families: Families, incomplete: frozenset[int]) -> tuple[Iterable[Family], NDArray[np.intp]]:
    """The families to be laid out one by one, and the columns that remain a chain: those of pairwise windows."""
    if incomplete.isdisjoint(families.chain.tolist()):
        return families, families.chain
    if not families.pairwise:
        return (*families, *families.windows()), np.zeros(0, np.intp)
    separate = (window for window in families.windows() if not incomplete.isdisjoint((window.child, *window.parents)))
    complete = [column for column in families.chain.tolist() if column not in incomplete]
    return (*families, *separate), np.array(complete, np.intp)


def _separate_partitions(
    families: dict[tuple[tuple[int, ...], int], list[list[int]]], cells: dict[tuple[int, ...], Cells], schema: Schema
) -> Iterator[Partition]:
    """Partitions of families, by discrete parents and size, that are counted separately."""
    n_products = schema.n_classes * sum(
        cells[conditions].n * len(members) * size * (size + 1) // 2 for (conditions, size), members in families.items()
    )
    if n_products > MOST_SEPARATE:
        raise ValueError(
            "values are missing in columns of large families, each of which is counted by samples of its own, which "
            f"takes {n_products / 2**27:.0f} GB: use a smaller k or a simpler structure, or impute them"
        )
    for (conditions, _), members in families.items():
        yield Partition.of_families(cells[conditions], np.array(members), schema)


class _Blocks:
    """The blocks of one partition under construction."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.blocks: list[tuple[list[int], int]] = []  # members, and the number of given ones
        self.ending_in: dict[int, int] = {}  # last member → block

    def add(self, child: int, parents: Sequence[int]) -> None:
        """Add a family to the block that its parents form, or as a block of its own."""
        if parents:
            extended = self.ending_in.get(parents[-1])
            if extended is not None:
                members = self.blocks[extended][0]
                if len(members) == len(parents) and set(members) == set(parents):
                    members.append(child)
                    self.ending_in[child] = extended
                    return
        self.ending_in.setdefault(child, len(self.blocks))
        self.blocks.append(([*parents, child], len(parents)))

    def partition(self, schema: Schema) -> Partition:
        shapes: dict[tuple[int, int], list[list[int]]] = {}
        for members, n_given in self.blocks:
            shapes.setdefault((len(members), n_given), []).append(members)
        stacked = {shape: np.array(blocks, np.intp) for shape, blocks in shapes.items()}
        columns = np.unique(np.concatenate([members.ravel() for members in stacked.values()]))
        stacks = tuple(Stack(np.searchsorted(columns, members), n_given) for (_, n_given), members in stacked.items())
        pairs = Pairs.of_blocks(len(columns), stacks)
        return Partition(self.cells, columns, _positions(columns, schema), pairs, stacks)
