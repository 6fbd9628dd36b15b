"""Fitted models that between them hold every type of ours that a model file can hold."""

from unittest import mock

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from cgnlearn import (
    TAN,
    Band,
    BandAverage,
    Box,
    CGNClassifier,
    CGNClassifierCV,
    Complete,
    GreedyJan,
    Jan,
    NaiveBayes,
    Prior,
    SelectiveNaiveBayes,
    Structure,
    TANAverage,
    update,
)
from cgnlearn.spectra import Peaks, make_raw_spectra, preset
from cgnlearn.structures import fixed

LEARNERS = {
    "naive Bayes": NaiveBayes(),
    "selective naive Bayes": SelectiveNaiveBayes(),
    "complete": Complete(),
    "TAN": TAN(),
    "average of TANs": TANAverage(),
    "JAN": Jan([[0, 1]]),
    "search": GreedyJan("forward", cv=3),
    "band": Band(2),
    "box": Box(2),
    "average of bands": BandAverage(3),
    "given structure": Structure.from_parents({0: [], 1: [0]}),
}
CANDIDATES = ["aode", "logistic", "band"]  # each of another type; the others are networks, and "ordinal"


def continuous():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 4)) + y[:, None], y


def mixed():
    X, y = continuous()
    colours = np.array(["red", "green"])[y ^ (X[:, 1] > 0)]
    levels = {
        "colour": pd.Categorical(colours),
        "size": pd.Categorical((X[:, 0] > 0).astype(str)),
    }
    return pd.DataFrame(np.exp(X), columns=list("abcd")).assign(**levels), y


def stored_models():
    """Names and models, fitted one by one."""
    X, y = continuous()
    for name, learner in LEARNERS.items():
        yield name, CGNClassifier(learner).fit(X, y)
    yield "maximum likelihood", CGNClassifier("complete", estimation="ml").fit(X, y)
    yield "discriminative", CGNClassifier(estimation="discriminative").fit(X, y)
    yield "chosen", CGNClassifier(Band("cv", k_max=2, cv=2), sharing="cv", likelihood_power="cv").fit(X, y)
    with mock.patch.object(fixed, "FEW_COLUMNS", 2):
        yield "rotated", CGNClassifier("complete").fit(X[:3], y[:3])
    yield "statistics", CGNClassifier("tan").fit(X, y).statistics_
    for candidate in CANDIDATES:
        yield candidate, CGNClassifierCV(candidates=["naive_bayes", candidate], ordered=True).fit(*mixed())
    yield "ordinal", CGNClassifierCV(candidates=["ordinal"]).fit(X, np.arange(len(y)) % 3)
    yield "best", CGNClassifierCV(candidates=["band"], ordered=True, combine="best").fit(X, y)
    yield "sites", CGNClassifier().fit(X, y, sites=np.arange(len(y)) // 2 % 2)
    yield "ranges", CGNClassifier(prior=Prior.from_ranges({0: {0: (-1.0, 1.0)}})).fit(X, y)
    yield "updated", update(CGNClassifier().fit(X[:30], y[:30]), X[30:], y[30:])
    yield "location of the paper", CGNClassifier(prior=Prior(location="paper")).fit(X, y)
    made = make_raw_spectra(12, n_points=3000, random_state=0)
    for steps in (preset("seldi"), preset("maldi", align=True).set_params(normalise__method="pqn"), Peaks()):
        yield f"{steps}", make_pipeline(steps, CGNClassifier(sharing=1.0)).fit(list(made.spectra), made.target)
