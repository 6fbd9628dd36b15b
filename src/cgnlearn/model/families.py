"""Families: an attribute with its parents. A bag of them says what is to be counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Node = Any  # a column's index or name
Columns = NDArray[np.intp]


class Family(NamedTuple):
    """One attribute with its parents (the class, a parent of all, left unsaid)."""

    child: Node
    parents: tuple[Node, ...]


def _no_columns() -> Columns:
    return np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False, repr=False)
class Families:
    """A bag of families over columns of X; a child may stand in several.

    Parameters
    ----------
    children, indptr, indices : ndarray of int
        ``children[i]`` has the parents ``indices[indptr[i]:indptr[i + 1]]``.
    chain : ndarray of int
        Continuous columns of which each one also has a family with the ``k - 1`` before it. Kept as such, because
        ordered columns have a solver of their own, and because a window over thousands need not be written out.
    k : int
    pairwise : bool
        Whether only the pairs inside the windows are wanted, so that no more than two columns need be observed at once.

    Examples
    --------
    >>> Families.of([Family(0, ()), Family(2, (0,))])
    Families(2)
    """

    children: Columns
    indptr: Columns
    indices: Columns
    chain: Columns = field(default_factory=_no_columns)
    k: int = 1
    pairwise: bool = False

    @classmethod
    def of(
        cls, families: Iterable[Family], chain: Iterable[int] = (), k: int = 1, *, pairwise: bool = False
    ) -> Families:
        """From families written out, and perhaps a chain."""
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
        """The families of the chain, written out: windows, or attributes alone and with each one before them."""
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
        """What makes two bags equal: neither the order of the families nor that of a family's parents."""
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
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without what is derived

    def __repr__(self) -> str:
        return f"Families({len(self.children) + len(self.chain)})"
