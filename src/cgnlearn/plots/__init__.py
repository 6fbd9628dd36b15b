"""Displays as in scikit-learn: created by ``from_…``, drawn by ``plot``, which sets ``ax_`` and ``figure_``."""

from cgnlearn.plots.decision_curve import DecisionCurveDisplay
from cgnlearn.plots.effects import EffectDisplay
from cgnlearn.plots.features import ContributionsDisplay, RelevanceDisplay
from cgnlearn.plots.importance import ImportanceDisplay
from cgnlearn.plots.learning_curve import LearningCurveDisplay
from cgnlearn.plots.path import PathDisplay
from cgnlearn.plots.ranks import RanksDisplay
from cgnlearn.plots.reliability import ReliabilityDisplay
from cgnlearn.plots.spectrum import SpectrumDisplay
from cgnlearn.plots.structure import StructureDisplay
from cgnlearn.plots.subgroups import SubgroupsDisplay

__all__ = [
    "ContributionsDisplay",
    "DecisionCurveDisplay",
    "EffectDisplay",
    "ImportanceDisplay",
    "LearningCurveDisplay",
    "PathDisplay",
    "RanksDisplay",
    "RelevanceDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "StructureDisplay",
    "SubgroupsDisplay",
]
