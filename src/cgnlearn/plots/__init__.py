"""Displays as in scikit-learn: created by ``from_…``, drawn by ``plot``, which sets ``ax_`` and ``figure_``."""

from cgnlearn.plots.features import ContributionsDisplay, RelevanceDisplay
from cgnlearn.plots.importance import ImportanceDisplay
from cgnlearn.plots.path import PathDisplay
from cgnlearn.plots.ranks import RanksDisplay
from cgnlearn.plots.reliability import ReliabilityDisplay
from cgnlearn.plots.spectrum import SpectrumDisplay
from cgnlearn.plots.structure import StructureDisplay

__all__ = [
    "ContributionsDisplay",
    "ImportanceDisplay",
    "PathDisplay",
    "RanksDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "StructureDisplay",
]
