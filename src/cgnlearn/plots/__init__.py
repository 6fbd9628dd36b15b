"""Displays in scikit-learn's style: made by ``from_…``, drawn by ``plot``, with ``ax_`` and ``figure_`` afterwards."""

from cgnlearn.plots.contributions import ContributionsDisplay
from cgnlearn.plots.path import PathDisplay
from cgnlearn.plots.ranks import RanksDisplay
from cgnlearn.plots.relevance import RelevanceDisplay
from cgnlearn.plots.reliability import ReliabilityDisplay
from cgnlearn.plots.spectrum import SpectrumDisplay
from cgnlearn.plots.structure import StructureDisplay

__all__ = [
    "ContributionsDisplay",
    "PathDisplay",
    "RanksDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "StructureDisplay",
]
