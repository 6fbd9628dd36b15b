"""Additive sufficient statistics: counts of discrete families, moments of continuous ones.

A classifier keeps nothing else of its training data, and ``a + b`` are the statistics of the samples of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cgnlearn.data.arrays import Floats
from cgnlearn.data.schema import Schema
from cgnlearn.data.table import Table
from cgnlearn.networks.families import Families
from cgnlearn.networks.layout import DiscreteFamily, Layout, Partition
from cgnlearn.networks.moments import Moments, moments_of


class NotCountedError(ValueError):
    """The statistics do not contain these families."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of training data; ``sum()`` over parts of the data gives those of all.

    Parameters
    ----------
    schema : Schema
    families : Families
        The families counted.
    classes : ndarray (classes,)
        Weight of each class.
    counts : tuple of ndarray (classes, configurations, levels)
        One for each discrete family.
    moments : tuple of Moments
        One for each partition of the layout.
    missing : ndarray (classes, columns)
        Weight of the samples of each class in which each column of X is missing.
    incomplete : tuple of int
        Columns with missing values: a family with such a column counts the samples in which all its columns are
        observed.
    """

    schema: Schema
    families: Families
    classes: Floats
    counts: tuple[Floats, ...]
    moments: tuple[Moments, ...]
    missing: Floats
    incomplete: tuple[int, ...] = ()

    @classmethod
    def from_summary(
        cls,
        n: Mapping[Any, float],
        mean: Mapping[str, Mapping[Any, float]] | None = None,
        sd: Mapping[str, Mapping[Any, float]] | None = None,
        counts: Mapping[str, Mapping[Any, Mapping[Any, float]]] | None = None,
        *,
        correlation: Mapping[Any, ArrayLike] | None = None,
        divisor: Literal["n-1", "n"] = "n-1",
        schema: Schema | None = None,
    ) -> Statistics:
        """Return the statistics that a published table of counts, means and standard deviations has.

        They are those of naive Bayes and add to those of samples; with correlations, those of all continuous features
        together.

        Parameters
        ----------
        n : mapping of class to number of samples
        mean, sd : mapping of feature to mapping of class to number
            Of the continuous features.
        counts : mapping of feature to mapping of level to mapping of class to number
            Of the discrete features; over the levels they add up to ``n``.
        correlation : mapping of class to matrix, optional
            Correlations of the continuous features, in their order.
        divisor : {"n-1", "n"}
            That of the published standard deviations.
        schema : Schema, optional
            ``schema`` of the statistics to which these will be added, for the order of columns, classes and levels.
            Default: the order given, classes and levels sorted.

        Examples
        --------
        >>> from cgnlearn import CGNClassifier, Statistics
        >>> table = Statistics.from_summary(
        ...     n={"ill": 40, "well": 60},
        ...     mean={"K": {"ill": 5.6, "well": 4.2}},
        ...     sd={"K": {"ill": 0.5, "well": 0.4}},
        ...     counts={"sex": {"f": {"ill": 25, "well": 30}, "m": {"ill": 15, "well": 30}}},
        ... )
        >>> import pandas as pd
        >>> model = CGNClassifier.from_statistics(table)
        >>> model.predict(pd.DataFrame({"K": [4.0, 6.0], "sex": ["m", "f"]}))
        array(['well', 'ill'], dtype='<U4')
        """
        from cgnlearn.networks.summary import statistics_of_summary

        return statistics_of_summary(
            n, mean or {}, sd or {}, counts or {}, correlation=correlation, divisor=divisor, schema=schema
        )

    @cached_property
    def layout(self) -> Layout:
        """The layout by which the families were counted."""
        return Layout.of(self.families, self.schema, self.incomplete)

    @property
    def without_values(self) -> list[int]:
        """Columns of X that no sample has a value of."""
        return np.flatnonzero((self.missing >= self.classes[:, None]).all(axis=0)).tolist()

    def __repr__(self) -> str:
        return f"Statistics({self.classes.sum():g} samples, {len(self.classes)} classes)"

    def __add__(self, other: Statistics) -> Statistics:
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.schema != other.schema:
            raise ValueError(f"these statistics cannot be added: {self.schema.difference(other.schema)}")
        if self.families != other.families:
            raise ValueError(
                "these statistics are of different structures and cannot be added: count both for the same structure, "
                "or restrict both to families that they share"
            )
        other = other.restricted(self.families)  # in the same order
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
        """The statistics with all sample weights multiplied."""
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
        """The statistics of families that the present ones contain: a TAN of all pairs, a k of a greater one."""
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
        """The statistics in the layout for more incomplete columns, to be added to others."""
        if incomplete == self.incomplete:
            return self
        partitions = Layout.of(self.families, self.schema, incomplete).partitions
        return replace(
            self, moments=tuple(self._moments_of(partition) for partition in partitions), incomplete=incomplete
        )

    def class_free(self) -> Statistics:
        """The statistics of the same samples as one class."""
        return replace(
            self,
            schema=replace(self.schema, classes=("any",)),
            classes=self.classes.sum(keepdims=True),
            counts=tuple(part.sum(axis=0, keepdims=True) for part in self.counts),
            moments=tuple(part.pooled(1) for part in self.moments),
            missing=self.missing.sum(axis=0, keepdims=True),
        )

    def shareable(self, minimum_cell: float = 0.0) -> Statistics:
        """The statistics without the values of any single sample.

        Parameters
        ----------
        minimum_cell : float
            The least weight of a cell of a family, unless it is empty; less raises an error.
        """
        for n, columns in self._cells():
            few = np.argwhere((n > 0) & (n < minimum_cell))
            if len(few):
                label, *codes = few[0].tolist()
                raise ValueError(
                    f"the cell {self.schema.cell(label, columns, codes)} has {n[tuple(few[0])]:g} samples, fewer than "
                    f"{minimum_cell:g}: merge levels, drop columns, or choose a simpler structure"
                )
        few = np.argwhere((self.missing > 0) & (self.missing < minimum_cell))
        if len(few):
            label, column = few[0].tolist()
            raise ValueError(
                f"{self.schema.name(column)} is missing in {self.missing[label, column]:g} samples of class "
                f"{self.schema.classes[label]!r}, fewer than {minimum_cell:g}: impute them or drop the column"
            )
        return self.recentred()

    def recentred(self) -> Statistics:
        """The statistics with moments measured from means; a sum is measured from the origin of its first part."""
        return replace(self, moments=tuple(part.recentred() for part in self.moments))

    def smallest_family(self) -> tuple[float, tuple[int, ...]]:
        """The family with the fewest samples: its share of all samples, and its child and parents."""
        candidates: list[tuple[float, tuple[int, ...]]] = [(float(self.classes.sum()), ())]
        for family, counts in zip(self.layout.discrete, self.counts, strict=True):
            candidates.append((float(counts.sum()), (family.column, *family.cells.columns)))
        for partition, moments in zip(self.layout.partitions, self.moments, strict=True):
            if partition.separate:
                weights = moments.n.sum(axis=(0, 1))[partition.blocks[:, 0]]
                block = partition.blocks[least := int(np.argmin(weights))]
                *given, child = partition.columns[block].tolist()
                candidates.append((float(weights[least]), (child, *partition.cells.columns, *given)))
        weight, columns = min(candidates, key=lambda candidate: candidate[0])
        return weight / float(self.classes.sum()), columns

    def _cells(self) -> Iterator[tuple[Floats, tuple[int, ...]]]:
        """The weights of cells, as arrays by class and levels, with the columns of these levels."""
        yield self.classes, ()
        for family, counts in zip(self.layout.discrete, self.counts, strict=True):
            columns = (*family.cells.columns, family.column)
            yield counts.reshape(len(counts), *family.cells.levels, family.n_levels), columns
        for partition, moments in zip(self.layout.partitions, self.moments, strict=True):
            weights = moments.n[..., partition.blocks[:, 0]] if partition.separate else moments.n[..., None]
            for n in np.moveaxis(weights, -1, 0):
                yield n.T.reshape(-1, *partition.cells.levels), partition.cells.columns

    def _counts_of(self, family: DiscreteFamily) -> Floats:
        wanted = (*family.cells.columns, family.column)
        for own, counts in zip(self.layout.discrete, self.counts, strict=True):
            axes = (*own.cells.columns, own.column)
            if set(wanted) <= set(axes) and self._of_same_rows(wanted, axes):
                by_level = counts.reshape(len(counts), *own.cells.levels, own.n_levels)
                others = tuple(1 + i for i, column in enumerate(axes) if column not in wanted)
                kept = [column for column in axes if column in wanted]
                summed = by_level.sum(axis=others).transpose(0, *(1 + kept.index(column) for column in wanted))
                return summed.reshape(len(counts), family.cells.n, family.n_levels)
        raise self._not_counted(wanted)

    def _of_same_rows(self, wanted: Iterable[int], counted: Iterable[int]) -> bool:
        """Whether columns are observed in the samples in which all of more columns, which were counted, are."""
        return set(self.incomplete).intersection(counted) <= set(wanted)

    def _moments_of(self, partition: Partition) -> Moments:
        """The moments of a partition; of blocks that are counted separately, each from a block of the same samples."""
        if not partition.separate:
            return self._from_together(partition)
        blocks, conditions = partition.columns[partition.blocks], partition.cells.columns
        incomplete = set(self.incomplete)
        complete = [incomplete.isdisjoint((*conditions, *members)) for members in blocks.tolist()]
        if all(complete):
            try:
                return self._from_together(partition).separated()
            except NotCountedError:  # in one partition; perhaps in several
                pass
        parts = [
            self._from_together(alone).separated() if is_complete else self._from_separate(alone)
            for is_complete, members in zip(complete, blocks, strict=True)
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

    def _from_separate(self, partition: Partition) -> Moments:
        """The moments of one block that is counted separately, from a block that was."""
        conditions, members = partition.cells.columns, partition.columns.tolist()
        for own, moments in zip(self.layout.partitions, self.moments, strict=True):
            if not own.separate or not set(conditions) <= set(own.cells.columns):
                continue
            by_block = own.columns[own.blocks]
            has_all = np.all([(by_block == member).any(axis=1) for member in members], axis=0)
            for block in own.blocks[has_all]:
                columns = own.columns[block].tolist()
                if self._of_same_rows((*conditions, *members), (*own.cells.columns, *columns)):
                    places = block[[columns.index(member) for member in members]]
                    return moments.of_features(places, partition.pairs).marginal(own.cells, partition.cells)
        raise self._not_counted((*conditions, *members))

    def _from_together(self, partition: Partition) -> Moments:
        """The moments of complete features."""
        ours = sorted(zip(self.layout.partitions, self.moments, strict=True), key=lambda own: own[0].cells.n)
        for own, moments in ours:
            if own.separate or not set(partition.cells.columns) <= set(own.cells.columns):
                continue
            if not self._of_same_rows(partition.cells.columns, own.cells.columns):
                continue
            places = own.places_of(partition)
            if places is not None:
                return moments.of_features(places, partition.pairs).marginal(own.cells, partition.cells)
        raise self._not_counted((*partition.cells.columns, *partition.columns.tolist()))

    def _not_counted(self, columns: Sequence[int]) -> NotCountedError:
        names = ", ".join(self.schema.name(column) for column in columns[:5]) + (", …" if len(columns) > 5 else "")
        incomplete = [self.schema.name(column) for column in columns if column in self.incomplete]
        if incomplete:
            names += f" (of which {incomplete[0]} has missing values, so that each family has samples of its own)"
        return NotCountedError(f"{names} were not counted together: collect statistics for a structure that joins them")

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
    """The statistics of a labelled table; ``incomplete`` are columns that count as such even without missing values."""
    assert table.labels is not None
    incomplete = tuple(sorted({*incomplete, *table.incomplete}))
    layout = Layout.of(families, table.schema, incomplete)
    n_classes = table.schema.n_classes
    counts = []
    for family in layout.discrete:
        shape = (n_classes, family.cells.n, family.n_levels)
        observed = table
        if not set(incomplete).isdisjoint((family.column, *family.cells.columns)):
            observed = table.rows(family.observed(table))
        assert observed.labels is not None
        levels = observed.codes[:, family.code]
        cell = np.ravel_multi_index((observed.labels, family.cells.index(observed), levels), shape)
        counts.append(np.bincount(cell, observed.weights, minlength=np.prod(shape)).reshape(shape).astype(float))
    missing = np.zeros((n_classes, table.schema.n_columns))
    for column in table.incomplete:
        without = np.flatnonzero(table.missing(column))
        weights = None if table.weights is None else table.weights[without]
        missing[:, column] = np.bincount(table.labels[without], weights, minlength=n_classes)
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
    """For each part the sum of all others: of those before and of those after it."""
    before = list(accumulate(parts))
    after = list(accumulate(reversed(parts)))[::-1]
    for i in range(len(parts)):
        others: list[Any] = [*before[max(i - 1, 0) : i], *after[i + 1 : i + 2]]
        yield sum(others)
