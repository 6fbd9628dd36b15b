"""What a user's ``structure=`` stands for."""

from __future__ import annotations

from typing import Any

from cgnlearn.model.structure import Structure
from cgnlearn.structures.fixed import Complete, Given, NaiveBayes
from cgnlearn.structures.learner import Learner
from cgnlearn.structures.search import GreedyJan
from cgnlearn.structures.tree import Tree


def learner_of(structure: Any, random_state: Any = 0) -> Learner:
    """The learner; searches given by name cut their folds by ``random_state``."""
    if isinstance(structure, Learner):
        return structure
    if isinstance(structure, Structure):
        return Given(structure)
    if isinstance(structure, str):
        by_name: dict[str, Learner] = {
            "naive_bayes": NaiveBayes(),
            "complete": Complete(),
            "tree": Tree(),
            "fwgjan": GreedyJan("forward", random_state=random_state),
            "bwgjan": GreedyJan("backward", random_state=random_state),
            "wcgjan": GreedyJan("condensed", random_state=random_state),
        }
        if structure in by_name:
            return by_name[structure]
        names = ", ".join(f'"{name}"' for name in by_name)
        raise ValueError(f"structure must be one of {names}, a Structure, a learner or a mapping, not {structure!r}")
    try:
        return Given(Structure.from_parents(dict(structure)))
    except TypeError:
        raise TypeError(
            f"structure must be a name, a Structure, a learner or a mapping child -> parents, not {structure!r}"
        ) from None
