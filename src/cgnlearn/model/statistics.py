"""Additive sufficient statistics: counts of discrete families, moments of continuous ones.

Everything the classifier knows of its training data stands here, and ``a + b`` is what the rows of both would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cgnlearn.model.densities import Floats
from cgnlearn.model.families import Families
from cgnlearn.model.layout import DiscreteFamily, Layout, Partition
from cgnlearn.model.moments import Moments, moments_of
from cgnlearn.model.schema import Schema
from cgnlearn.model.table import Table


class NotCounted(ValueError):
    """Families that statistics do not hold."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """All that is kept of the training data; ``sum()`` of the parts is the whole.

    Parameters
    ----------
    schema : Schema
    families : Families
        Which families were counted.
    classes : ndarray (classes,)
        Weight of each class.
    counts : tuple of ndarray (classes, configurations, levels)
        One for each discrete family.
    moments : tuple of Moments
        One for each partition of the layout.
    missing : ndarray (classes, columns)
        Weight of the rows of each class in which each column of X is missing.
    incomplete : tuple of int
        Columns in which values were missing: a family that has one counted the rows in which all of it was observed.
    """

    schema: Schema
    families: Families
    classes: Floats
    counts: tuple[Floats, ...]
    moments: tuple[Moments, ...]
    missing: Floats
    incomplete: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout:
        """How the families were laid out to be counted."""
        return Layout.of(self.families, self.schema, self.incomplete)

    def __repr__(self) -> str:
        return f"Statistics({self.classes.sum():g} rows, {len(self.classes)} classes)"

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.schema != other.schema:
            raise ValueError(f"these statistics cannot be added: {self.schema.difference(other.schema)}")
        if self.families != other.families:
            raise ValueError(
                "these statistics are of other structures and cannot be added: count both for the same one, "
                "or take what they share by restricted(families)"
            )
        other = other.restricted(self.families)  # into the same order
        incomplete = tuple(sorted({*self.incomplete, *other.incomplete}))
        self, other = self.with_incomplete(incomplete), other.with_incomplete(incomplete)
        return replace(
            self,
            classes=self.classes + other.classes,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            moments=tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
            missing=self.missing + other.missing,
        )

    def __radd__(self, other: Literal[0]) -> Statistics:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __rmul__(self, weight: float) -> Statistics:
        """As if every row had counted ``weight`` times as much."""
        if not isinstance(weight, int | float | np.number):
            return NotImplemented
        return replace(
            self,
            classes=weight * self.classes,
            counts=tuple(weight * part for part in self.counts),
            moments=tuple(weight * part for part in self.moments),
            missing=weight * self.missing,
        )

    def restricted(self, families: Families) -> Statistics:
        """The statistics of families that these ones contain: a tree out of all pairs, a k out of a greater one."""
        if families.in_same_order(self.families):
            return self
        layout = Layout.of(families, self.schema, self.incomplete)
        return replace(
            self,
            families=families,
            counts=tuple(self._counts_of(family) for family in layout.discrete),
            moments=tuple(self._moments_of(partition) for partition in layout.partitions),
        )

    def with_incomplete(self, incomplete: tuple[int, ...]) -> Statistics:
        """The same, prepared to be added to statistics in which more columns are incomplete."""
        if incomplete == self.incomplete:
            return self
        partitions = Layout.of(self.families, self.schema, incomplete).partitions
        return replace(
            self, moments=tuple(self._moments_of(partition) for partition in partitions), incomplete=incomplete
        )

    def class_free(self) -> Statistics:
        """The same rows as if all were of one class."""
        return replace(
            self,
            schema=replace(self.schema, classes=("any",)),
            classes=self.classes.sum(keepdims=True),
            counts=tuple(part.sum(axis=0, keepdims=True) for part in self.counts),
            moments=tuple(part.pooled(1) for part in self.moments),
            missing=self.missing.sum(axis=0, keepdims=True),
        )

    def shareable(self, minimum_cell: float = 0.0) -> Statistics:
        """The same without any single row's values; refused if a cell has fewer rows than the minimum, but some.

        Parameters
        ----------
        minimum_cell : float
            The least weight that a cell of a family may have, unless it is empty.
        """
        for n, columns in self._cells():
            few = np.argwhere((n > 0) & (n < minimum_cell))
            if len(few):
                label, *levels = few[0].tolist()
                cell = [f"class {self.schema.classes[label]!r}"] + [
                    f"{self.schema.name(column)} = {self.schema.levels_of(column)[level]!r}"
                    for column, level in zip(columns, levels, strict=True)
                ]
                raise ValueError(
                    f"the cell {', '.join(cell)} has {n[tuple(few[0])]:g} rows, fewer than {minimum_cell:g}: "
                    "join levels, leave out columns, or choose a simpler structure"
                )
        few = np.argwhere((self.missing > 0) & (self.missing < minimum_cell))
        if len(few):
            label, column = few[0].tolist()
            raise ValueError(
                f"{self.schema.name(column)} is missing in {self.missing[label, column]:g} rows of class "
                f"{self.schema.classes[label]!r}, fewer than {minimum_cell:g}: impute them or leave it out"
            )
        return self.recentred()

    def recentred(self) -> Statistics:
        """The same, measured from the mean of all rows: a sum is measured from where its first part was."""
        return replace(self, moments=tuple(part.recentred() for part in self.moments))

    def smallest_family(self) -> tuple[float, tuple[int, ...]]:
        """The least share of the rows that a family could use, and whose: the child and its parents."""
        found: list[tuple[float, tuple[int, ...]]] = []
        for family, counts in zip(self.layout.discrete, self.counts, strict=True):
            found.append((float(counts.sum()), (family.column, *family.cells.columns)))
        for partition, moments in zip(self.layout.partitions, self.moments, strict=True):
            if partition.apart:
                rows = moments.n.sum(axis=(0, 1))[partition.blocks[:, 0]]
                block = partition.blocks[least := int(np.argmin(rows))]
                *given, child = partition.columns[block].tolist()
                found.append((float(rows[least]), (child, *partition.cells.columns, *given)))
        total = self.classes.sum()
        return min(((rows / total, columns) for rows, columns in found), default=(1.0, ()), key=lambda one: one[0])

    def _cells(self) -> Iterator[tuple[Floats, tuple[int, ...]]]:
        """The weights of all cells, as arrays by class and levels, and whose levels these are."""
        yield self.classes, ()
        for family, counts in zip(self.layout.discrete, self.counts, strict=True):
            columns = (*family.cells.columns, family.column)
            yield counts.reshape(len(counts), *family.cells.levels, family.n_levels), columns
        for partition, moments in zip(self.layout.partitions, self.moments, strict=True):
            weights = moments.n[..., partition.blocks[:, 0]] if partition.apart else moments.n[..., None]
            for n in np.moveaxis(weights, -1, 0):
                yield n.T.reshape(-1, *partition.cells.levels), partition.cells.columns

    def _counts_of(self, family: DiscreteFamily) -> Floats:
        wanted = (*family.cells.columns, family.column)
        for own, counts in zip(self.layout.discrete, self.counts, strict=True):
            axes = (*own.cells.columns, own.column)
            if set(wanted) <= set(axes) and self._of_same_rows(wanted, axes):
                apart = counts.reshape(len(counts), *own.cells.levels, own.n_levels)
                others = tuple(1 + i for i, column in enumerate(axes) if column not in wanted)
                left = [column for column in axes if column in wanted]
                summed = apart.sum(axis=others).transpose(0, *(1 + left.index(column) for column in wanted))
                return summed.reshape(len(counts), family.cells.n, family.n_levels)
        raise self._not_counted(wanted)

    def _of_same_rows(self, wanted: Iterable[int], counted: Iterable[int]) -> bool:
        """Whether columns are observed wherever more columns, which were counted, are."""
        return set(self.incomplete).intersection(counted) <= set(wanted)

    def _moments_of(self, partition: Partition) -> Moments:
        if partition.apart:
            return self._moments_apart(partition)
        return self._from_together(partition)

    def _moments_apart(self, partition: Partition) -> Moments:
        """Of blocks that lie apart, each from where all its rows, and no others, were counted."""
        blocks, cut = partition.columns[partition.blocks], partition.cells.columns
        tight = np.array([set(self.incomplete).isdisjoint((*cut, *members)) for members in blocks.tolist()])
        if tight.all():
            try:
                return self._from_together(partition).set_apart()
            except NotCounted:  # in one partition; perhaps in several
                pass
        parts = [
            (self._from_together(alone).set_apart() if is_tight else self._from_apart(alone))
            for is_tight, members in zip(tight.tolist(), blocks, strict=True)
            for alone in [Partition.of_families(partition.cells, members[None], self.schema)]
        ]
        pairs, size = partition.pairs, blocks.shape[1]
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in ("n", "mean", "origin")
        }
        scatter = np.empty((*joined["n"].shape[:2], len(pairs)))
        alone = parts[0].pairs
        for number, part in enumerate(parts):
            scatter[..., pairs.place(number * size + alone.first, number * size + alone.second)] = part.scatter
        return Moments(pairs, joined["n"], joined["mean"], scatter, joined["origin"])

    def _from_apart(self, partition: Partition) -> Moments:
        """Of one block that lies apart, from one of ours that does."""
        cut, members = partition.cells.columns, partition.columns.tolist()
        for own, moments in zip(self.layout.partitions, self.moments, strict=True):
            if not own.apart or not set(cut) <= set(own.cells.columns):
                continue
            for block in self._blocks_with(own, members):
                columns = own.columns[block].tolist()
                if self._of_same_rows((*cut, *members), (*own.cells.columns, *columns)):
                    places = block[[columns.index(member) for member in members]]
                    return moments.of_attributes(places, partition.pairs).marginal(own.cells, partition.cells)
        raise self._not_counted((*cut, *members))

    @staticmethod
    def _blocks_with(partition: Partition, members: list[int]) -> Iterator[NDArray[np.intp]]:
        """The blocks that lie apart and have all these columns."""
        columns = partition.columns[partition.blocks]
        has = np.all([(columns == member).any(axis=1) for member in members], axis=0)
        yield from partition.blocks[has]

    def _from_together(self, partition: Partition) -> Moments:
        """Of attributes none of which is incomplete."""
        wanted = partition.columns
        ours = sorted(zip(self.layout.partitions, self.moments, strict=True), key=lambda own: own[0].cells.n)
        for own, moments in ours:
            if own.apart or not set(partition.cells.columns) <= set(own.cells.columns):
                continue
            if not self._of_same_rows(partition.cells.columns, own.cells.columns):
                continue
            order = np.argsort(own.columns, kind="stable")
            places = order[np.searchsorted(own.columns, wanted, sorter=order).clip(max=len(order) - 1)]
            pairs = partition.pairs
            if (own.columns[places] == wanted).all() and own.pairs.holds(places[pairs.first], places[pairs.second]):
                return moments.of_attributes(places, pairs).marginal(own.cells, partition.cells)
        raise self._not_counted((*partition.cells.columns, *wanted.tolist()))

    def _not_counted(self, columns: Sequence[int]) -> NotCounted:
        names = ", ".join(self.schema.name(column) for column in columns[:5]) + (", …" if len(columns) > 5 else "")
        holed = [self.schema.name(column) for column in columns if column in self.incomplete]
        if holed:
            names += f" (of which {holed[0]} has missing values, so that each family has rows of its own)"
        return NotCounted(f"{names} were not counted together: collect statistics for a structure that joins them")

    def __getstate__(self) -> dict[str, Any]:
        # The pairs follow from the families.
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        return state | {"moments": tuple((part.n, part.mean, part.scatter, part.origin) for part in self.moments)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        partitions = Layout.of(state["families"], state["schema"], state["incomplete"]).partitions
        moments = tuple(
            Moments(partition.pairs, *arrays) for partition, arrays in zip(partitions, state["moments"], strict=True)
        )
        for name, value in (state | {"moments": moments}).items():
            object.__setattr__(self, name, value)


def collect(table: Table, families: Families, incomplete: tuple[int, ...] = ()) -> Statistics:
    """The statistics of the rows of a labelled table; ``incomplete`` are columns to be so whatever these rows hold."""
    assert table.labels is not None
    incomplete = tuple(sorted({*incomplete, *table.incomplete}))
    layout = Layout.of(families, table.schema, incomplete)
    n_classes = table.schema.n_classes
    counts = []
    for family in layout.discrete:
        shape = (n_classes, family.cells.n, family.n_levels)
        seen = table
        if not set(incomplete).isdisjoint((family.column, *family.cells.columns)):
            seen = table.rows(np.flatnonzero(family.cells.observed(table) & (table.codes[:, family.code] >= 0)))
        assert seen.labels is not None
        cell = np.ravel_multi_index((seen.labels, family.cells.index(seen), seen.codes[:, family.code]), shape)
        counts.append(np.bincount(cell, seen.weights, minlength=np.prod(shape)).reshape(shape).astype(float))
    missing = np.zeros((n_classes, table.schema.n_columns))
    for column in table.incomplete:
        holes = np.flatnonzero(table.missing(column))
        weights = None if table.weights is None else table.weights[holes]
        missing[:, column] = np.bincount(table.labels[holes], weights, minlength=n_classes)
    return Statistics(
        table.schema,
        families,
        np.bincount(table.labels, table.weights, minlength=n_classes).astype(float),
        tuple(counts),
        tuple(moments_of(table, partition, n_classes) for partition in layout.partitions),
        missing,
        incomplete,
    )


def all_but_each(parts: Sequence[Statistics]) -> Iterator[Statistics]:
    """For each part the sum of all others, by merging what stands before with what stands after it."""
    before = list(accumulate(parts))
    after = list(accumulate(reversed(parts)))[::-1]
    for i in range(len(parts)):
        others: list[Any] = [*before[max(i - 1, 0) : i], *after[i + 1 : i + 2]]
        yield sum(others)
