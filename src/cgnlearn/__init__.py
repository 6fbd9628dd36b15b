"""Conditional Gaussian network classifiers with exact Bayesian averaging."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cgnlearn.classifier import CGNClassifier as CGNClassifier
    from cgnlearn.learners import Band as Band
    from cgnlearn.learners import Box as Box
    from cgnlearn.learners import Complete as Complete
    from cgnlearn.learners import Jan as Jan
    from cgnlearn.learners import NaiveBayes as NaiveBayes
    from cgnlearn.learners import Tree as Tree
    from cgnlearn.network import SampleNotAcceptable as SampleNotAcceptable
    from cgnlearn.path import ordered_path as ordered_path
    from cgnlearn.persistence import load as load
    from cgnlearn.persistence import save as save
    from cgnlearn.prior import Prior as Prior
    from cgnlearn.search import GreedyJan as GreedyJan
    from cgnlearn.structure import Structure as Structure

__version__ = "0.1.0.dev0"

# Where each public name stands. They are fetched on first use: scikit-learn takes two seconds to import, and
# `cgnlearn --help` must not wait for it.
_HOMES = {
    "Band": "learners",
    "Box": "learners",
    "CGNClassifier": "classifier",
    "Complete": "learners",
    "GreedyJan": "search",
    "Jan": "learners",
    "NaiveBayes": "learners",
    "Prior": "prior",
    "SampleNotAcceptable": "network",
    "Structure": "structure",
    "Tree": "learners",
    "load": "persistence",
    "ordered_path": "path",
    "save": "persistence",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cgnlearn' has no attribute {name!r}")
    found = getattr(import_module(f"cgnlearn.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
