"""What a set of families needs counted and factorised.

The continuous families that are cut into cells by the same discrete parents form a *partition*. Within it, families
that nest (the parents of one are the whole of another) share a *block*: an ordered set of attributes whose one
triangular factor gives the regression of every member on the members before it. Blocks of one shape are stacked, so
that linear algebra runs over arrays and not over nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from cgnlearn.model.structure import Family, Structure
from cgnlearn.model.table import Encoder, Table

WORTH_A_LATTICE = 100_000  # numbers in a band's blocks; below it factorising them takes no time to speak of
MOST_CELLS = 10_000_000  # of one family; beyond it the structure, not the machine, is at fault


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
    sliding : bool
        Whether the blocks are all windows of one width but the first, each one attribute further on: their
        regressions nest along the band and come from its lattice.
    """

    members: NDArray[np.intp]
    n_given: int
    sliding: bool = False

    @property
    def size(self) -> int:
        """How many members each block has."""
        return int(self.members.shape[1])

    def without(self, left_out: NDArray[np.bool_]) -> tuple[Stack, ...]:
        """The blocks without some of the partition's attributes: they then differ in shape."""
        if self.sliding:  # the lattice passes over them
            return (self,)
        gone = left_out[self.members]
        if not gone.any():
            return (self,)
        shapes: dict[tuple[int, int], list[NDArray[np.intp]]] = {}
        for members, leaving in zip(self.members, gone, strict=True):
            n_given = self.n_given - int(leaving[: self.n_given].sum())
            if len(members) - leaving.sum() > n_given:
                shapes.setdefault((len(members) - leaving.sum(), n_given), []).append(members[~leaving])
        return tuple(Stack(np.array(found), n_given) for (_, n_given), found in shapes.items())


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
    pairs : ndarray (pairs, 2)
        The pairs of attributes (positions, the smaller first) whose scatter is needed; the first ones are every
        attribute with itself.
    stacks : tuple of Stack
    bandwidth : int or None
        If the pairs are just those of attributes at most so far apart, how far.
    """

    cells: Cells
    columns: NDArray[np.intp]
    values: NDArray[np.intp]
    pairs: NDArray[np.intp]
    stacks: tuple[Stack, ...]
    bandwidth: int | None = None

    @classmethod
    def band(cls, columns: NDArray[np.intp], values: NDArray[np.intp], k: int) -> Partition:
        """The partition of a k-BAND over these columns: one block for the first k, then sliding windows."""
        m = len(columns)
        position = np.arange(m)
        after = np.minimum(k - 1, m - 1 - position)
        first = np.repeat(position, after)
        starts = np.repeat(np.cumsum(after) - after, after)
        second = first + 1 + np.arange(len(first)) - starts
        pairs = np.concatenate([np.stack([position, position], axis=1), np.stack([first, second], axis=1)])
        stacks = [Stack(position[None, :k], 0)]
        if m > k:
            stacks.append(Stack(sliding_window_view(position, k)[1:], k - 1, sliding=True))
        return cls(Cells((), (), ()), columns, values, pairs, tuple(stacks), k - 1)

    @property
    def n_attributes(self) -> int:
        """How many continuous attributes take part."""
        return len(self.columns)

    def pair_index(self, stack: Stack) -> NDArray[np.intp]:
        """Where among the pairs each entry of the blocks' matrices is found: (blocks, size, size)."""
        first = stack.members[:, :, None]
        second = stack.members[:, None, :]
        if self.bandwidth is not None:
            return self.banded_index(np.minimum(first, second), np.maximum(first, second))
        wanted = np.minimum(first, second) * self.n_attributes + np.maximum(first, second)
        keys = self.pairs[:, 0] * self.n_attributes + self.pairs[:, 1]
        # The pairs are the diagonal, then the rest sorted: look each entry up in the part where it stands.
        rest = np.searchsorted(keys[self.n_attributes :], wanted) + self.n_attributes
        return np.where(first == second, first, rest)

    def banded_index(self, first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where among the pairs of a band ``first`` ≤ ``second`` stand: its pairs are sorted, so it is counted."""
        assert self.bandwidth is not None
        m, reach = self.n_attributes, self.bandwidth
        short = np.maximum(0, first - (m - 1 - reach))  # rows that the end of the band has cut short
        rest = m + first * reach - short * (short - 1) // 2 + second - first - 1
        return np.where(first == second, first, rest)


@dataclass(frozen=True, eq=False)
class Layout:
    """Discrete families and partitions of continuous ones: what `Statistics` collects and `Network` factorises."""

    n_classes: int
    discrete: tuple[DiscreteFamily, ...]
    partitions: tuple[Partition, ...]

    @classmethod
    def of(cls, families: Structure | Iterable[Family], encoder: Encoder, n_classes: int) -> Layout:
        """The layout of a structure whose nodes are columns of X, or of any bag of families."""
        partitions = []
        if isinstance(families, Structure):
            k = _band_order(families, encoder)
            if k:
                columns = np.array(encoder.continuous)
                partitions.append(Partition.band(columns, np.arange(len(columns)), k))
            n_others = len(families.nodes) - (len(encoder.continuous) if k else 0)
            families = islice(families.families, n_others)
        code = {column: position for position, column in enumerate(encoder.discrete)}
        n_levels = {column: len(levels) for column, levels in enumerate(encoder.levels) if levels is not None}
        discrete = []
        blocks: dict[tuple[int, ...], _Blocks] = {}
        for child, parents in families:
            cut = tuple(sorted(parent for parent in parents if parent in code))
            cells = Cells(cut, tuple(code[column] for column in cut), tuple(n_levels[column] for column in cut))
            if cells.n * n_classes > MOST_CELLS:
                raise ValueError(
                    f"the discrete parents of {encoder.name(child)} have {cells.n} configurations, "
                    f"which with {n_classes} classes is more than {MOST_CELLS} cells: give it fewer parents"
                )
            if child in code:
                if len(cut) < len(parents):
                    continuous = next(parent for parent in parents if parent not in code)
                    raise ValueError(
                        f"{encoder.name(continuous)} is continuous and cannot be a parent of "
                        f"{encoder.name(child)}, which is discrete: turn the edge round or remove it"
                    )
                discrete.append(DiscreteFamily(child, code[child], n_levels[child], cells))
            else:
                if cut not in blocks:
                    blocks[cut] = _Blocks(cells)
                blocks[cut].add(child, tuple(p for p in parents if p not in code) if cut else parents)
        position = {column: i for i, column in enumerate(encoder.continuous)}
        partitions += [found.partition(position) for found in blocks.values()]
        return cls(n_classes, tuple(discrete), tuple(partitions))


def _band_order(structure: Structure, encoder: Encoder) -> int | None:
    """The k of a structure that is a k-BAND over the continuous columns, where its lattice is the faster way."""
    m = len(encoder.continuous)
    n_others = len(structure.nodes) - m
    before = np.diff(structure.indptr)[n_others:]
    k = int(before.max(initial=0)) + 1
    if k < 2 or m * k * k < WORTH_A_LATTICE or n_others < 0:
        return None
    band = Structure.band(m, k)
    ordered = (
        list(structure.nodes[n_others:]) == encoder.continuous
        and np.array_equal(before, np.diff(band.indptr))
        and np.array_equal(structure.indices[structure.indptr[n_others] :] - n_others, band.indices)
    )
    return k if ordered else None


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

    def partition(self, position_among_values: Mapping[int, int]) -> Partition:
        shapes: dict[tuple[int, int], list[list[int]]] = {}
        for members, n_given in self.blocks:
            shapes.setdefault((len(members), n_given), []).append(members)
        stacked = {shape: np.array(found, np.intp) for shape, found in shapes.items()}
        columns = np.unique(np.concatenate([members.ravel() for members in stacked.values()]))
        stacks = tuple(Stack(np.searchsorted(columns, members), n_given) for (_, n_given), members in stacked.items())
        return Partition(
            cells=self.cells,
            columns=columns,
            values=np.array([position_among_values[column] for column in columns.tolist()], np.intp),
            pairs=_pairs(len(columns), stacks),
            stacks=stacks,
        )


def _pairs(n_attributes: int, stacks: tuple[Stack, ...]) -> NDArray[np.intp]:
    diagonal = np.repeat(np.arange(n_attributes), 2).reshape(-1, 2)
    keys: list[NDArray[Any]] = [np.zeros(0, np.intp)]
    for stack in stacks:
        i, j = np.tril_indices(stack.size, -1)
        first, second = stack.members[:, i], stack.members[:, j]
        keys.append((np.minimum(first, second) * n_attributes + np.maximum(first, second)).ravel())
    ordered = np.sort(np.concatenate(keys))  # several times as fast as np.unique, which hashes
    distinct = ordered[np.diff(ordered, prepend=-1) > 0]
    return np.concatenate([diagonal, np.stack(np.divmod(distinct, n_attributes), axis=1)])
