"""What a set of families needs counted and factorised.

The continuous families that are cut into cells by the same discrete parents form a *partition*. Within it, families
that nest (the parents of one are the whole of another) share a *block*: an ordered set of attributes whose one
triangular factor gives the regression of every member on the members before it. Blocks of one shape are stacked, so
that linear algebra runs over arrays and not over nodes.

A family with an *incomplete* column (one with missing values) counts the samples in which all its members are observed.
These differ between families: each is a block of its own, in a partition whose blocks are counted *apart*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from cgnlearn.model.families import Families, Family
from cgnlearn.model.schema import Schema
from cgnlearn.model.table import Table

MOST_CELLS = 10_000_000  # of one family; beyond it the structure, not the machine, is at fault
MOST_APART = 1 << 28  # products of two members, of families that are counted each by its own rows


@dataclass(frozen=True, eq=False)
class Cells:
    """The configurations of some discrete columns.

    Parameters
    ----------
    columns : tuple of int
        Columns of X.
    codes : tuple of int
        The same as positions among the table's codes.
    levels : tuple of int
        How many levels each of them has.
    """

    columns: tuple[int, ...]
    codes: tuple[int, ...]
    levels: tuple[int, ...]

    @property
    def n(self) -> int:
        """How many configurations there are."""
        return prod(self.levels)

    def observed(self, table: Table) -> NDArray[np.bool_]:
        """In which rows none of the columns is missing."""
        seen: NDArray[np.bool_] = np.all(table.codes[:, self.codes] >= 0, axis=1)
        return seen

    def index(self, table: Table) -> NDArray[np.intp]:
        """The configuration of each row."""
        if not self.columns:
            return np.zeros(table.n_rows, np.intp)
        codes = tuple(table.codes[:, code] for code in self.codes)
        return np.ravel_multi_index(codes, self.levels).astype(np.intp)


@dataclass(frozen=True, eq=False)
class DiscreteFamily:
    """A discrete attribute and the configurations of its parents (the class apart)."""

    column: int  # X's
    code: int  # the table's
    n_levels: int
    cells: Cells


@dataclass(frozen=True, eq=False)
class Stack:
    """Blocks of one shape.

    Parameters
    ----------
    members : ndarray (blocks, size)
        Positions among the partition's attributes; each member depends on those before it in its block.
    n_given : int
        The first so many members of each block are there as parents only: their own density stands elsewhere.
    """

    members: NDArray[np.intp]
    n_given: int

    @property
    def size(self) -> int:
        """How many members each block has."""
        return int(self.members.shape[1])

    def without(self, absent: NDArray[np.bool_]) -> tuple[Stack, ...]:
        """The blocks without some of the partition's attributes: they then differ in shape."""
        gone = absent[self.members]
        if not gone.any():
            return (self,)
        shapes: dict[tuple[int, int], list[NDArray[np.intp]]] = {}
        for members, leaving in zip(self.members, gone, strict=True):
            n_given = self.n_given - int(leaving[: self.n_given].sum())
            if len(members) - leaving.sum() > n_given:
                shapes.setdefault((len(members) - leaving.sum(), n_given), []).append(members[~leaving])
        return tuple(Stack(np.array(found), n_given) for (_, n_given), found in shapes.items())


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of attributes whose scatter is kept: each one with itself, then first < second, sorted.

    Parameters
    ----------
    first, second : ndarray (pairs,)
        Positions of attributes.
    n : int
        How many attributes there are.
    reach : int or None
        If the pairs are just those of attributes at most so far apart, how far.
    """

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    n: int
    reach: int | None = None

    @classmethod
    def within(cls, n: int, reach: int) -> Pairs:
        """All pairs of attributes at most so far apart."""
        position = np.arange(n)
        after = np.minimum(reach, n - 1 - position)
        first = np.repeat(position, after)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(after) - after, after)
        return cls(np.concatenate([position, first]), np.concatenate([position, second]), n, reach)

    @classmethod
    def of_blocks(cls, n: int, stacks: Sequence[Stack]) -> Pairs:
        """All pairs that stand together in a block."""
        keys: list[NDArray[Any]] = [np.zeros(0, np.intp)]
        for stack in stacks:
            i, j = np.tril_indices(stack.size, -1)
            a, b = stack.members[:, i], stack.members[:, j]
            keys.append((np.minimum(a, b) * n + np.maximum(a, b)).ravel())
        ordered = np.sort(np.concatenate(keys))  # several times as fast as np.unique, which hashes
        first, second = np.divmod(ordered[np.diff(ordered, prepend=-1) > 0], n)
        if len(first) in (0, n * (n - 1) // 2):
            return cls.within(n, n - 1 if len(first) else 0)
        diagonal = np.arange(n)
        return cls(np.concatenate([diagonal, first]), np.concatenate([diagonal, second]), n)

    def __len__(self) -> int:
        return len(self.first)

    def place(self, a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where among the pairs a and b stand, in any shape and order; every one must be kept."""
        first, second = np.minimum(a, b), np.maximum(a, b)
        if self.reach is not None:
            short = np.maximum(0, first - (self.n - 1 - self.reach))  # rows that the end of the band has cut short
            rest = self.n + first * self.reach - short * (short - 1) // 2 + second - first - 1
        else:
            keys = self.first[self.n :] * self.n + self.second[self.n :]
            rest = np.searchsorted(keys, first * self.n + second) + self.n
        return np.where(first == second, first, rest)

    def banded(self, entries: NDArray[np.float64]) -> NDArray[np.float64]:
        """Entries on the pairs of a band (…, pairs) by attribute and distance to one before it: (…, n, reach + 1).

        A view of an array in which they stand by the first of the pair; 0 where there is none so far before.
        """
        assert self.reach is not None
        n, width = self.n, self.reach + 1
        ahead = np.zeros((*entries.shape[:-1], self.reach + n, width))  # zeros before the first attribute
        ahead[..., self.reach :, 0] = entries[..., :n]
        n_whole = n - self.reach  # whose pairs the end of the band has not cut short
        whole = entries[..., n : n + n_whole * self.reach].reshape(*entries.shape[:-1], n_whole, self.reach)
        ahead[..., self.reach : n, 1:] = whole
        for first in range(n_whole, n - 1):
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
    """The continuous attributes of families with the same discrete parents.

    Parameters
    ----------
    cells : Cells
        The configurations of the discrete parents, the class apart.
    columns : ndarray (attributes,)
        Columns of X.
    values : ndarray (attributes,)
        The same attributes as positions among the table's values.
    pairs : Pairs
    stacks : tuple of Stack
    k : int or None
        Of a chain: every attribute depends on the k - 1 before it.
    apart : bool
        Whether every block has attributes of its own, which stand for the same columns as those of other blocks but
        count the rows in which all of the block is observed.
    """

    cells: Cells
    columns: NDArray[np.intp]
    values: NDArray[np.intp]
    pairs: Pairs
    stacks: tuple[Stack, ...]
    k: int | None = None
    apart: bool = False

    @classmethod
    def of_chain(cls, columns: NDArray[np.intp], values: NDArray[np.intp], k: int) -> Partition:
        """A chain: one block for the first k, then sliding windows."""
        m = len(columns)
        k = min(k, m)
        position = np.arange(m)
        stacks = [Stack(position[None, :k], 0)]
        if m > k:
            stacks.append(Stack(sliding_window_view(position, k)[1:], k - 1))
        return cls(Cells((), (), ()), columns, values, Pairs.within(m, k - 1), tuple(stacks), k)

    @classmethod
    def of_families(cls, cells: Cells, families: NDArray[np.intp], schema: Schema) -> Partition:
        """Families (families, members) of one size, that lie apart."""
        n, size = families.shape
        columns = families.ravel()
        stacks = (Stack(np.arange(n * size).reshape(n, size), size - 1),)
        values = np.array([schema.position[column] for column in columns.tolist()], np.intp)
        return cls(cells, columns, values, Pairs.of_blocks(n * size, stacks), stacks, apart=True)

    @property
    def n_attributes(self) -> int:
        """How many continuous attributes take part."""
        return len(self.columns)

    @property
    def blocks(self) -> NDArray[np.intp]:
        """The attributes of the blocks that lie apart: (blocks, members)."""
        assert self.apart
        return self.stacks[0].members


@dataclass(frozen=True, eq=False)
class Layout:
    """Discrete families and partitions of continuous ones: what `Statistics` collects and solvers factorise."""

    discrete: tuple[DiscreteFamily, ...]
    partitions: tuple[Partition, ...]

    @staticmethod
    @lru_cache(maxsize=16)  # batches of one stream have the same families
    def of(families: Families, schema: Schema, incomplete: tuple[int, ...] = ()) -> Layout:
        """The layout of a bag of families, where some columns are incomplete."""
        position = schema.position
        discrete = []
        blocks: dict[tuple[int, ...], _Blocks] = {}
        apart: dict[tuple[tuple[int, ...], int], tuple[Cells, list[list[int]]]] = {}
        holed = frozenset(incomplete)
        whole = holed.isdisjoint(families.chain.tolist())  # a chain that is not falls into its families
        for child, parents in families if whole else chain(families, _without_runs(families, holed)):
            cut = tuple(sorted(parent for parent in parents if schema.levels[parent] is not None))
            cells = Cells(
                cut, tuple(position[column] for column in cut), tuple(len(schema.levels_of(column)) for column in cut)
            )
            if cells.n * schema.n_classes > MOST_CELLS:
                raise ValueError(
                    f"the discrete parents of {schema.name(child)} have {cells.n} configurations, "
                    f"which with {schema.n_classes} classes is more than {MOST_CELLS} cells: give it fewer parents"
                )
            if schema.levels[child] is None:
                continuous = tuple(p for p in parents if schema.levels[p] is None) if cut else parents
                if not holed.isdisjoint(parents) or child in holed:
                    found = apart.setdefault((cut, len(continuous) + 1), (cells, []))[1]
                    found.append([*continuous, child])
                    continue
                if cut not in blocks:
                    blocks[cut] = _Blocks(cells)
                blocks[cut].add(child, continuous)
                continue
            if len(cut) < len(parents):
                wrong = next(parent for parent in parents if schema.levels[parent] is None)
                raise ValueError(
                    f"{schema.name(wrong)} is continuous and cannot be a parent of "
                    f"{schema.name(child)}, which is discrete: turn the edge round or remove it"
                )
            discrete.append(DiscreteFamily(child, position[child], len(schema.levels_of(child)), cells))
        n_products = sum(cells.n * len(found) * size * (size + 1) // 2 for (_, size), (cells, found) in apart.items())
        if n_products * schema.n_classes > MOST_APART:
            raise ValueError(
                "values are missing in columns of large families, each of which has to be counted by rows of its own, "
                f"{n_products * schema.n_classes / 2**27:.0f} GB in all: take a smaller k or simpler structure, or "
                "impute them"
            )
        partitions = [found.partition(schema) for found in blocks.values()]
        run = families.chain if whole else _run(families, holed)
        if len(run):
            values = np.array([position[column] for column in run.tolist()], np.intp)
            partitions.append(Partition.of_chain(run, values, families.k))
        partitions += [Partition.of_families(cells, np.array(found), schema) for cells, found in apart.values()]
        return Layout(tuple(discrete), tuple(partitions))


def _run(families: Families, incomplete: frozenset[int]) -> NDArray[np.intp]:
    """What stays a chain without its incomplete columns: of pairs all the others, of windows nothing."""
    kept = [column for column in families.chain.tolist() if column not in incomplete] if families.pairwise else []
    return np.array(kept, np.intp)


def _without_runs(families: Families, incomplete: frozenset[int]) -> Iterator[Family]:
    """The families of a chain that does not stay one."""
    for family in families.windows():
        if not families.pairwise or family.child in incomplete or not incomplete.isdisjoint(family.parents):
            yield family


class _Blocks:
    """The blocks of one partition while it is being laid out."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.blocks: list[tuple[list[int], int]] = []  # members, how many of them are given
        self.ending_in: dict[int, int] = {}

    def add(self, child: int, parents: Sequence[int]) -> None:
        """Put a family where it nests, or open a block for it."""
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
        stacked = {shape: np.array(found, np.intp) for shape, found in shapes.items()}
        columns = np.unique(np.concatenate([members.ravel() for members in stacked.values()]))
        stacks = tuple(Stack(np.searchsorted(columns, members), n_given) for (_, n_given), members in stacked.items())
        return Partition(
            cells=self.cells,
            columns=columns,
            values=np.array([schema.position[column] for column in columns.tolist()], np.intp),
            pairs=Pairs.of_blocks(len(columns), stacks),
            stacks=stacks,
        )
