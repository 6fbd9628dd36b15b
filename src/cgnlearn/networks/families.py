"""Families: a feature with its parents. A collection of them defines what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cgnlearn.data.arrays import Columns

Node = Any  # a column's index or name


class Family(NamedTuple):
    """One feature with its parents, besides the class."""

    child: Node
    parents: tuple[Node, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Families:
    """A collection of families over columns of X; a column may be the child of several.

    ``children[i]`` has the parents ``indices[indptr[i]:indptr[i + 1]]``. Each column of ``chain``, all of them
    continuous, also has a family with the ``k - 1`` columns before it. These families are not listed, because ordered
    columns have a solver of their own.
    """

    children: Columns
    indptr: Columns
    indices: Columns
    chain: Columns = field(default_factory=lambda: np.zeros(0, np.intp))
    k: int = 1
    pairwise: bool = False  # only pairs inside the windows are needed: two columns have to be observed together

    @classmethod
    def of(
        cls, families: Iterable[Family], chain: Iterable[int] = (), k: int = 1, *, pairwise: bool = False
    ) -> Families:
        """Families from a list, and optionally a chain."""
        listed = list(families)
        return cls(
            np.array([child for child, _ in listed], np.intp),
            np.cumsum([0] + [len(parents) for _, parents in listed], dtype=np.intp),
            np.array([parent for _, parents in listed for parent in parents], np.intp),
            np.array(list(chain), np.intp),
            k,
            pairwise,
        )

    def __iter__(self) -> Iterator[Family]:
        """The families outside the chain."""
        indices, indptr = self.indices.tolist(), self.indptr.tolist()
        for i, child in enumerate(self.children.tolist()):
            yield Family(child, tuple(indices[indptr[i] : indptr[i + 1]]))

    def windows(self) -> Iterator[Family]:
        """The families of the chain: windows, or each column alone and with each one before it in its window."""
        chain = self.chain.tolist()
        for i, child in enumerate(chain):
            before = chain[max(0, i - self.k + 1) : i]
            if self.pairwise:
                yield Family(child, ())
                yield from (Family(child, (parent,)) for parent in before)
            else:
                yield Family(child, tuple(before))

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        """What equality compares; the orders of families and of parents do not matter."""
        listed = sorted((child, tuple(sorted(parents))) for child, parents in self)
        return tuple(listed), tuple(self.chain.tolist()), (self.k, self.pairwise) if len(self.chain) else 1

    def in_same_order(self, other: Families) -> bool:
        """Whether both list the same families in the same order."""
        return self is other or all(
            np.array_equal(getattr(self, part.name), getattr(other, part.name)) for part in fields(self)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Families):
            return NotImplemented
        return self.in_same_order(other) or self._content == other._content

    def __hash__(self) -> int:
        return hash((len(self.children), len(self.indices), len(self.chain), self.k))

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without cached properties

    def __repr__(self) -> str:
        return f"Families({len(self.children) + len(self.chain)})"
