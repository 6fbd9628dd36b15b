"""Conditional Gaussian network classifiers with exact Bayesian averaging."""

from cgnlearn.classifier import CGNClassifier
from cgnlearn.learners import Band, Box, Complete, Jan, NaiveBayes, Tree
from cgnlearn.network import SampleNotAcceptable
from cgnlearn.path import ordered_path
from cgnlearn.prior import Prior
from cgnlearn.search import GreedyJan
from cgnlearn.structure import Structure

__version__ = "0.1.0.dev0"

__all__ = [
    "Band",
    "Box",
    "CGNClassifier",
    "Complete",
    "GreedyJan",
    "Jan",
    "NaiveBayes",
    "Prior",
    "SampleNotAcceptable",
    "Structure",
    "Tree",
    "ordered_path",
]
